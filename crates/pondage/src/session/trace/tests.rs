use super::*;
use wire::pg::frontend;

fn is(text: &str) -> Option<Command> {
    may_be_command(text.as_bytes()).then(|| command(text.as_bytes())).flatten()
}

fn set(value: Option<bool>, local: bool) -> Option<Command> {
    Some(Command::Set { value, local })
}

#[test]
fn the_setting_is_found_in_any_dress() {
    for text in [
        "set pondage.trace = on",
        "SET pondage.trace TO 'on';",
        " Set Session Pondage . Trace = TRUE ; -- thanks",
        "set/**/pondage.trace=1",
        "set pondage.trace to y",
    ] {
        let text = text.replace(" . ", ".");
        assert_eq!(is(&text), set(Some(true), false), "{text}");
    }
    assert_eq!(is("set local pondage.trace = off"), set(Some(false), true));
    assert_eq!(is("set pondage.trace to default"), set(None, false));
    assert_eq!(is("set local pondage.trace = default"), set(None, true));
    assert_eq!(is("set pondage.trace = o"), Some(Command::Invalid));
    assert_eq!(is("set pondage.trace = 'a lot'"), Some(Command::Invalid));
    assert_eq!(is("reset pondage.trace;"), Some(Command::Reset));
    assert_eq!(is("RESET ALL"), Some(Command::ResetAll));
    assert_eq!(is("show pondage.trace"), Some(Command::Show));
    for text in [
        "",
        "s",
        "select 1",
        "set pondage.trace",
        "set pondage.traces = on",
        "set pondage.trace.x = on",
        "set other.trace = on",
        "set pondage.trace = on; select 1",
        "set pondage.trace = on, off",
        "set pondage.trace = 'on",
        "set search_path = pondage.trace",
        "reset all; select 1",
        "reset pondage",
        "show pondage.trace; show all",
        "show all",
        "/* mine */ set pondage.trace = on",
        "setpondage.trace = on",
    ] {
        assert_eq!(is(text), None, "{text}");
    }
}

#[test]
fn what_was_set_last_and_nearest_counts() {
    let mut trace = Trace::default();
    let on = |local| Command::Set { value: Some(true), local };
    trace.follow(on(true), TxStatus::Idle);
    assert!(!trace.tells() && trace.is_idle(), "SET LOCAL outside of a transaction");
    trace.follow(on(true), TxStatus::InTransaction);
    assert!(trace.tells());
    trace.transaction_over();
    assert!(trace.is_idle());
    trace.follow(on(false), TxStatus::InTransaction);
    trace.transaction_over();
    assert!(trace.tells());
    trace.follow(Command::Set { value: Some(false), local: true }, TxStatus::InTransaction);
    assert!(!trace.tells());
    trace.transaction_over();
    trace.follow(Command::Reset, TxStatus::Idle);
    assert!(!trace.tells() && trace.is_idle());
    let mut trace = Trace::from_start();
    trace.follow(Command::Set { value: Some(false), local: false }, TxStatus::Idle);
    assert!(!trace.tells());
    trace.follow(Command::ResetAll, TxStatus::Idle);
    assert!(trace.tells() && !trace.is_idle());
    let mut trace = Trace::default();
    trace.found(Some(true));
    assert!(trace.tells());
    trace.reset();
    assert!(!trace.tells() && trace.is_found());
    trace.found(None);
    assert!(trace.is_idle());
}

fn answer(n: u8) -> Vec<u8> {
    let mut out = Vec::new();
    reply::put_data_row(&mut out, &[Some(&[n])]);
    reply::put_ready(&mut out, TxStatus::Idle);
    out
}

fn tags(mut bytes: &[u8]) -> String {
    let mut tags = String::new();
    while let Ok(Some(header)) = frame::header(bytes) {
        tags.push(header.tag as char);
        bytes = &bytes[header.total..];
    }
    assert!(bytes.is_empty(), "whole messages");
    tags
}

#[test]
fn a_notice_stands_in_front_of_each_ready_wherever_replies_are_cut() {
    let replies = [answer(1), answer(2), answer(3)].concat();
    // A head is never cut.
    let ends = [5, 12, 17, 18, 23, replies.len()];
    for cut in ends.into_iter().filter(|cut| frame_is_whole(&replies, *cut)) {
        let (mut trace, mut out) = (Trace::from_start(), b"earlier".to_vec());
        for part in [&replies[..cut], &replies[cut..]] {
            trace.take(part, out.len());
            out.extend_from_slice(part);
        }
        for _ in 0..3 {
            trace.tell(&Journey::new(Engine::Pool), &mut out);
        }
        assert_eq!(tags(&out[7..]), "DNZDNZDNZ", "cut at {cut}");
    }
}

/// Whether no head of a message is cut there.
fn frame_is_whole(bytes: &[u8], cut: usize) -> bool {
    let mut at = 0;
    while let Ok(Some(header)) = frame::header(&bytes[at..]) {
        if cut > at && cut < at + HEADER_BYTES {
            return false;
        }
        at += header.total;
    }
    true
}

#[test]
fn an_answer_that_was_made_here_or_shared_gets_its_notice_at_its_end() {
    for engine in [Engine::Here, Engine::Trip(3), Engine::Pool] {
        let (mut trace, mut out) = (Trace::from_start(), answer(1));
        trace.tell(&Journey::new(engine), &mut out);
        assert_eq!(tags(&out), "DNZ", "{engine:?}");
    }
    let (mut trace, mut out) = (Trace::from_start(), vec![1, 2]);
    trace.tell(&Journey::new(Engine::Here), &mut out);
    assert_eq!(out, [1, 2], "there is no end");
}

#[test]
fn the_text_tells_waiting_server_engine_and_freshness() {
    let micros = Duration::from_micros;
    let ends = Ends::Tcp {
        remote: "10.0.0.1:5432".parse().expect("an address"),
        local: "10.0.0.2:40000".parse().expect("an address"),
    };
    let pool = Journey {
        wait: micros(120),
        at_server: micros(800),
        server: Some((ends, 4711)),
        ..Journey::new(Engine::Pool)
    };
    assert_eq!(
        pool.text(),
        "pondage: waited 0.120 ms for a server, 0.800 ms at server 10.0.0.1:5432 (pid 4711), \
         engine: pool"
    );
    let trip = Journey { engine: Engine::Trip(5), set_up: micros(40), ..pool };
    assert_eq!(
        trip.text(),
        "pondage: waited 0.120 ms for a server, 0.040 ms to prepare it, 0.800 ms at server \
         10.0.0.1:5432 (pid 4711), engine: trip of 5"
    );
    let fresh = Fresh { lsn: 0x1_0000_00ab, age: Some(micros(3000)) };
    let cache = Journey { cache_wait: micros(500), ..Journey::new(Engine::Cache(fresh)) };
    assert_eq!(
        cache.text(),
        "pondage: no server, 0.500 ms for what is kept, engine: cache (fresh as of LSN 1/AB, \
         3.000 ms old)"
    );
    let mirror = Journey::new(Engine::Mirror(Fresh { age: None, ..fresh }));
    assert_eq!(mirror.text(), "pondage: no server, engine: mirror (fresh as of LSN 1/AB)");
}

#[test]
fn the_extended_protocol_gets_what_it_asks_for() {
    let mut batch = Vec::new();
    frontend::put_parse(&mut batch, b"", b"show pondage.trace", &[0, 0]);
    frontend::put_bind(&mut batch, b"", b"", &[]);
    frontend::put_describe(&mut batch, frontend::Target::Portal, b"");
    frontend::put_execute(&mut batch, b"", 0);
    assert!(matches!(messages(&batch), Messages::More));
    frontend::put_sync(&mut batch);
    let whole = batch.len();
    frontend::put_query(&mut batch, "select 1");
    assert!(matches!(messages(&batch), Messages::Whole(length) if length == whole));
    let told = |command| {
        let mut out = Vec::new();
        put_answer(&mut out, &batch[..whole], command, true, TxStatus::Idle);
        tags(&out)
    };
    assert_eq!(told(Command::Show), "12TDCZ");
    assert_eq!(told(Command::Reset), "12nCZ");
    assert_eq!(told(Command::Invalid), "12nEZ");
    assert_eq!(told(Command::Set { value: None, local: true }), "12nNCZ");
    let mut named = Vec::new();
    frontend::put_parse(&mut named, b"s", b"show pondage.trace", &[0, 0]);
    assert!(matches!(messages(&named), Messages::Other));
}

#[test]
fn answers_that_nobody_is_told_of_leave_nothing_behind() {
    let off = Command::Set { value: Some(false), local: false };
    let (mut trace, mut out) = (Trace::from_start(), Vec::new());
    trace.follow(off, TxStatus::Idle);
    for _ in 0..3 {
        trace.take(&answer(1), out.len());
        out.extend_from_slice(&answer(1));
        trace.tell(&Journey::new(Engine::Pool), &mut out);
    }
    assert_eq!(tags(&out), "DZDZDZ");
    trace.follow(Command::Reset, TxStatus::Idle);
    trace.take(&answer(1), out.len());
    out.extend_from_slice(&answer(1));
    trace.tell(&Journey::new(Engine::Pool), &mut out);
    assert_eq!(tags(&out), "DZDZDZDNZ");
}

fn failed(code: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let message = "no";
    let error = ErrorReply { severity: "ERROR", code, message, detail: None, hint: None };
    reply::put_error(&mut out, &error);
    reply::put_ready(&mut out, TxStatus::Idle);
    out
}

#[test]
fn each_answer_has_its_own_error() {
    let (mut trace, mut out) = (Trace::default(), Vec::new());
    let replies = [answer(1), failed("23505"), answer(2), failed("40001")].concat();
    trace.take(&replies, 0);
    out.extend_from_slice(&replies);
    let pool = Journey::new(Engine::Pool);
    let codes: Vec<_> = (0..4).map(|_| trace.tell(&pool, &mut out)).collect();
    assert_eq!(codes, [None, Some(*b"23505"), None, Some(*b"40001")]);
    assert_eq!(out, replies, "nobody is told");
    trace.take(&failed("22012"), out.len());
    assert_eq!(trace.tell(&Journey::new(Engine::Trip(2)), &mut out), Some(*b"22012"));
    assert_eq!(trace.tell(&Journey::new(Engine::Here), &mut out), None);
}

#[test]
fn what_was_sampled_is_answered_when_its_turn_has_come() {
    let started = |behind| Started {
        behind,
        began: Moment(behind as u64),
        parent: None,
        text: Text::Unknown,
    };
    let mut trace = Trace::default();
    // The first of five, the third, the fourth.
    trace.started.extend([started(0), started(2), started(3)]);
    assert!(!trace.is_idle());
    let turns: Vec<_> = (0..5).map(|_| trace.answered().map(|started| started.began.0)).collect();
    assert_eq!(turns, [Some(0), None, Some(2), Some(3), None]);
    assert!(trace.is_idle());
}
