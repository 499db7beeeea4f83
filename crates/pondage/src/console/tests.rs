use std::time::Duration;

use wire::pg::backend::{self as reply, tag};
use wire::pg::{frontend, header, HEADER_BYTES};

use super::fixture::{self, Fake, Inbox};
use super::*;
use crate::control::messages::Command;
use crate::worker::snapshot::WorkerSnapshot;

/// Long enough that only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(10);

const ADA: Ref = Ref { worker: 0, slot: 1, generation: 1 };
const BOB: Ref = Ref { worker: 0, slot: 2, generation: 1 };

fn admin() -> Arc<ConsoleUser> {
    let (user, database) = ("root".to_owned(), "pondage".to_owned());
    Arc::new(ConsoleUser { user, database, admin: true, proven: None })
}

fn watcher() -> Arc<ConsoleUser> {
    let (user, database) = ("watch".to_owned(), "pgbouncer".to_owned());
    Arc::new(ConsoleUser { user, database, admin: false, proven: None })
}

fn query(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::put_query(&mut out, text);
    out
}

async fn next(inbox: &mut Inbox) -> ToWorker {
    tokio::time::timeout(PATIENCE, inbox.recv()).await.expect("in time").expect("a message")
}

/// One reply as readable words: command tags, errors, notices, rows counted.
async fn reply_of(inbox: &mut Inbox, client: Ref) -> String {
    match next(inbox).await {
        ToWorker::ConsoleReply { client: to, bytes, close } => {
            assert_eq!(to, client);
            let end = if close { " closed" } else { "" };
            format!("{}{end}", readable(&bytes))
        }
        other => panic!("not a reply: {other:?}"),
    }
}

fn readable(bytes: &[u8]) -> String {
    let mut rest = bytes;
    let mut words = Vec::new();
    while let Some(header) = header(rest).unwrap() {
        let body = &rest[HEADER_BYTES..header.total];
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        words.push(match header.tag {
            tag::COMMAND_COMPLETE => text(reply::command_tag(body).unwrap()),
            tag::ERROR | tag::NOTICE => {
                let fields = reply::error_fields(body).unwrap();
                let part = |part: Option<&str>| part.unwrap_or_default().to_owned();
                format!("[{} {}]", part(fields.code()), part(fields.message()))
            }
            tag::READY_FOR_QUERY => "ready".to_owned(),
            other => char::from(other).to_string(),
        });
        rest = &rest[header.total..];
    }
    words.join(" ")
}

/// Takes the next message, which must be a command, and answers it.
async fn obey(inbox: &mut Inbox, result: Result<(), String>) -> Command {
    match next(inbox).await {
        ToWorker::Command { command, reply } => {
            reply.send(result).expect("someone waits");
            command
        }
        other => panic!("not a command: {other:?}"),
    }
}

async fn tell(inbox: &mut Inbox, snapshot: WorkerSnapshot) {
    match next(inbox).await {
        ToWorker::Snapshot { reply, .. } => drop(reply.send(Box::new(snapshot))),
        other => panic!("not asked for a snapshot: {other:?}"),
    }
}

fn begin(workers: usize) -> (Console, Arc<Fake>, Vec<Inbox>) {
    let (fake, inboxes) = Fake::new(fixture::config(), workers);
    (Console::new(Arc::new(Operator::new(fake.clone()))), fake, inboxes)
}

fn some(name: &str) -> Option<String> {
    Some(name.to_owned())
}

#[tokio::test]
async fn a_pause_reaches_every_worker_and_ends_when_the_last_is_done() {
    let (mut console, _, mut inboxes) = begin(2);
    console.message(ADA, &admin(), query("PAUSE app"));
    let command = obey(&mut inboxes[1], Ok(())).await;
    assert_eq!(command, Command::Pause { database: some("app") });
    // Worker 0 still holds its order: nothing is said before it answers.
    assert_eq!(obey(&mut inboxes[0], Ok(())).await, command);
    assert_eq!(reply_of(&mut inboxes[0], ADA).await, "PAUSE ready");
}

#[tokio::test]
async fn a_pause_that_waits_keeps_nobody_else_and_ends_with_its_client() {
    let (mut console, _, mut inboxes) = begin(1);
    let inbox = &mut inboxes[0];
    console.message(ADA, &admin(), query("PAUSE"));
    let ToWorker::Command { command, reply } = next(inbox).await else { panic!("no command") };
    assert_eq!(command, Command::Pause { database: None });

    console.message(BOB, &watcher(), query("SHOW STATE"));
    tell(inbox, WorkerSnapshot::default()).await;
    assert_eq!(reply_of(inbox, BOB).await, "T D D D SHOW ready");

    console.gone(ADA);
    let mut reply = reply;
    tokio::time::timeout(PATIENCE, reply.closed()).await.expect("nobody waits any more");
    // The pause itself stays.
    console.message(ADA, &admin(), query("PAUSE"));
    assert_eq!(reply_of(inbox, ADA).await, "[55000 already suspended/paused] ready");
}

#[tokio::test]
async fn commands_of_one_client_run_in_order() {
    let (mut console, _, mut inboxes) = begin(1);
    let inbox = &mut inboxes[0];
    console.message(ADA, &admin(), query("RECONNECT app"));
    console.message(ADA, &admin(), query("WAIT_CLOSE app"));
    assert_eq!(obey(inbox, Ok(())).await, Command::Reconnect { database: some("app") });
    assert_eq!(reply_of(inbox, ADA).await, "RECONNECT ready");
    assert_eq!(obey(inbox, Ok(())).await, Command::WaitClose { database: some("app") });
    assert_eq!(reply_of(inbox, ADA).await, "WAIT_CLOSE ready");
}

#[tokio::test]
async fn stats_users_may_show_and_nothing_else() {
    let (mut console, fake, mut inboxes) = begin(1);
    let inbox = &mut inboxes[0];
    for text in [
        "RELOAD",
        "PAUSE",
        "RESUME",
        "RECONNECT",
        "DISABLE app",
        "ENABLE app",
        "KILL",
        "KILL_CLIENT 1",
        "SUSPEND",
        "WAIT_CLOSE",
        "SHUTDOWN",
        "SET pool_size = 1",
    ] {
        console.message(ADA, &watcher(), query(text));
        assert_eq!(reply_of(inbox, ADA).await, "[42501 admin access needed] ready", "{text}");
    }
    assert!(fake.shutdowns.lock().unwrap().is_empty());
    console.message(ADA, &watcher(), query("SHOW VERSION; SET extra_float_digits = 3"));
    tell(inbox, WorkerSnapshot::default()).await;
    let said = reply_of(inbox, ADA).await;
    assert_eq!(said, "T D SHOW [00000 SET ignored] SET ready");
}

#[tokio::test]
async fn a_resume_needs_a_pause() {
    let (mut console, _, mut inboxes) = begin(1);
    let inbox = &mut inboxes[0];
    console.message(ADA, &admin(), query("RESUME"));
    tell(inbox, WorkerSnapshot::default()).await;
    assert_eq!(reply_of(inbox, ADA).await, "[55000 pooler is not paused/suspended] ready");
    console.message(ADA, &admin(), query("RESUME app"));
    tell(inbox, WorkerSnapshot::default()).await;
    assert_eq!(reply_of(inbox, ADA).await, "[55000 database app is not paused] ready");

    console.message(ADA, &admin(), query("KILL app; RESUME app; RESUME app"));
    assert_eq!(obey(inbox, Ok(())).await, Command::Kill { database: some("app") });
    tell(inbox, WorkerSnapshot::default()).await;
    assert_eq!(obey(inbox, Ok(())).await, Command::Resume { database: some("app") });
    tell(inbox, WorkerSnapshot::default()).await;
    let said = reply_of(inbox, ADA).await;
    assert_eq!(said, "KILL RESUME [55000 database app is not paused] ready");
}

#[tokio::test]
async fn a_suspension_ends_by_resume_or_with_the_last_client() {
    let (mut console, _, mut inboxes) = begin(1);
    let inbox = &mut inboxes[0];
    let suspended = Command::Suspend { force: false };
    let resumed = Command::Resume { database: None };
    console.message(ADA, &admin(), query("SUSPEND; SUSPEND"));
    assert_eq!(obey(inbox, Ok(())).await, suspended);
    assert_eq!(reply_of(inbox, ADA).await, "SUSPEND [55000 already suspended/paused] ready");
    console.message(ADA, &admin(), query("RESUME app; RESUME"));
    tell(inbox, WorkerSnapshot::default()).await;
    assert_eq!(reply_of(inbox, ADA).await, "[55000 database app is not paused] ready");
    console.message(ADA, &admin(), query("RESUME; SUSPEND"));
    tell(inbox, WorkerSnapshot::default()).await;
    assert_eq!(obey(inbox, Ok(())).await, resumed);
    assert_eq!(obey(inbox, Ok(())).await, suspended);
    assert_eq!(reply_of(inbox, ADA).await, "RESUME SUSPEND ready");
    console.gone(ADA);
    assert_eq!(obey(inbox, Ok(())).await, resumed);
    // Refused by a worker it is none.
    console.message(ADA, &admin(), query("SUSPEND"));
    assert_eq!(obey(inbox, Err("no".to_owned())).await, suspended);
    assert_eq!(obey(inbox, Ok(())).await, resumed);
    assert_eq!(reply_of(inbox, ADA).await, "[55000 no] ready");
}

#[tokio::test]
async fn a_pause_a_worker_refuses_is_not_remembered() {
    let (mut console, _, mut inboxes) = begin(1);
    let inbox = &mut inboxes[0];
    console.message(ADA, &admin(), query("PAUSE"));
    obey(inbox, Err("no".to_owned())).await;
    assert_eq!(reply_of(inbox, ADA).await, "[55000 no] ready");
    console.message(ADA, &admin(), query("PAUSE"));
    obey(inbox, Ok(())).await;
    assert_eq!(reply_of(inbox, ADA).await, "PAUSE ready");
}

#[tokio::test]
async fn unknown_databases_and_the_console_itself_are_refused() {
    let (mut console, _, mut inboxes) = begin(1);
    let inbox = &mut inboxes[0];
    for (text, said) in [
        ("PAUSE ap", "[3D000 no such database: ap] ready"),
        ("KILL nope", "[3D000 no such database: nope] ready"),
        ("DISABLE nope", "[3D000 no such database: nope] ready"),
        ("PAUSE pgbouncer", "[55000 cannot pause admin db: pgbouncer] ready"),
        ("SHOW FDS", "[0A000 SHOW FDS is not available] ready"),
        ("SET nonsense = 1", "[0A000 \"nonsense\" cannot be set from the console] ready"),
        ("SET pool.pool_size = x", "[22023 invalid value for \"pool.pool_size\"] ready"),
        ("SET auth_users = a, b", "[42601 SET takes one value] ready"),
    ] {
        console.message(ADA, &admin(), query(text));
        assert_eq!(reply_of(inbox, ADA).await, said, "{text}");
    }
}

#[tokio::test]
async fn a_client_is_killed_on_its_worker_by_its_id() {
    let (mut console, _, mut inboxes) = begin(2);
    let clients = vec![fixture::connection(16, 71, "active")];
    let found = WorkerSnapshot { worker: 1, clients, ..Default::default() };
    console.message(ADA, &admin(), query("KILL_CLIENT 71; KILL_CLIENT 72"));
    tell(&mut inboxes[0], WorkerSnapshot::default()).await;
    tell(&mut inboxes[1], found.clone()).await;
    let command = obey(&mut inboxes[1], Ok(())).await;
    assert_eq!(command, Command::KillClient { slot: 16, generation: 3 });
    tell(&mut inboxes[0], WorkerSnapshot::default()).await;
    tell(&mut inboxes[1], found).await;
    let said = reply_of(&mut inboxes[0], ADA).await;
    assert_eq!(said, "KILL_CLIENT [42704 client not found] ready");
}

#[tokio::test]
async fn a_reload_tells_what_needs_a_restart_and_why_it_failed() {
    let (mut console, fake, mut inboxes) = begin(1);
    *fake.reload.lock().unwrap() = Ok(vec!["listen.postgres changes at a restart".to_owned()]);
    console.message(ADA, &admin(), query("RELOAD"));
    let said = reply_of(&mut inboxes[0], ADA).await;
    assert_eq!(said, "[01000 listen.postgres changes at a restart] RELOAD ready");
    *fake.reload.lock().unwrap() = Err("pondage.toml:22:1: unknown key".to_owned());
    console.message(ADA, &admin(), query("RELOAD"));
    assert_eq!(reply_of(&mut inboxes[0], ADA).await, "[F0000 RELOAD failed] ready");
}

#[tokio::test]
async fn a_shutdown_is_passed_on_and_a_resume_then_refused() {
    let (mut console, fake, mut inboxes) = begin(1);
    console.message(ADA, &admin(), query("SHUTDOWN WAIT_FOR_CLIENTS"));
    assert_eq!(reply_of(&mut inboxes[0], ADA).await, "SHUTDOWN ready");
    assert_eq!(*fake.shutdowns.lock().unwrap(), [Shutdown::WaitForClients]);
    *fake.condition.lock().unwrap() = Condition { listening: false, stopping: true };
    console.message(ADA, &admin(), query("RESUME"));
    let said = reply_of(&mut inboxes[0], ADA).await;
    assert_eq!(said, "[55000 pooler is shutting down] ready");
}

#[tokio::test]
async fn help_is_a_notice() {
    let (mut console, _, mut inboxes) = begin(1);
    console.message(ADA, &watcher(), query("SHOW HELP"));
    assert_eq!(reply_of(&mut inboxes[0], ADA).await, "[00000 Console usage] SHOW ready");
}

#[tokio::test]
async fn a_worker_that_is_gone_is_named() {
    let (mut console, _, mut inboxes) = begin(2);
    inboxes.truncate(1);
    console.message(ADA, &admin(), query("SHOW POOLS"));
    tell(&mut inboxes[0], WorkerSnapshot::default()).await;
    let said = reply_of(&mut inboxes[0], ADA).await;
    assert_eq!(said, "[58000 worker 1 did not answer within 5 s] ready");
}

#[tokio::test]
async fn who_sends_too_much_ahead_is_closed() {
    let (mut console, _, mut inboxes) = begin(1);
    let inbox = &mut inboxes[0];
    console.message(ADA, &admin(), query("PAUSE"));
    let ToWorker::Command { reply: _held, .. } = next(inbox).await else { panic!("no command") };
    let long = query(&format!("SHOW STATE --{}", "x".repeat(60_000)));
    for _ in 0..AHEAD_BYTES_MAX / long.len() {
        console.message(ADA, &admin(), long.clone());
    }
    assert!(inbox.try_recv().is_err(), "what fits waits");
    console.message(ADA, &admin(), long);
    let said = reply_of(inbox, ADA).await;
    assert_eq!(said, "[54000 too many commands sent while one runs] closed");
    assert!(console.clients.is_empty());
}

#[tokio::test]
async fn messages_and_clients_have_ceilings() {
    let (mut console, _, mut inboxes) = begin(1);
    let inbox = &mut inboxes[0];
    console.message(ADA, &admin(), vec![b'Q'; MESSAGE_BYTES_MAX + 1]);
    let said = reply_of(inbox, ADA).await;
    assert_eq!(said, "[54000 a message longer than 65536 bytes] closed");
    let client = |slot| Ref { worker: 0, slot, generation: 1 };
    for slot in 0..SESSIONS_MAX as u32 {
        console.message(client(slot), &watcher(), query(""));
        assert_eq!(reply_of(inbox, client(slot)).await, "I ready");
    }
    let late = client(u32::MAX);
    console.message(late, &watcher(), query(""));
    assert_eq!(reply_of(inbox, late).await, "[53300 more than 128 console clients] closed");
    // One that said goodbye makes room, even before its worker says that it is gone.
    let mut goodbye = Vec::new();
    frontend::put_terminate(&mut goodbye);
    console.message(client(0), &watcher(), goodbye);
    assert_eq!(reply_of(inbox, client(0)).await, " closed");
    console.message(late, &watcher(), query(""));
    assert_eq!(reply_of(inbox, late).await, "I ready");
}

#[tokio::test(start_paused = true)]
async fn averages_follow_the_samples_taken_every_period() {
    let mut config = fixture::config();
    config.telemetry.stats_period = Duration::from_secs(5);
    let (fake, mut inboxes) = Fake::new(config, 1);
    let mut console = Console::new(Arc::new(Operator::new(fake.clone())));
    let inbox = &mut inboxes[0];
    let snapshot = |queries| {
        let mut pool = fixture::pool(&fake.config, "app", "web");
        pool.totals.query_count = queries;
        WorkerSnapshot { pools: vec![pool], ..Default::default() }
    };
    let began = tokio::time::Instant::now();
    for passed in 1..=2 {
        tell(inbox, snapshot(passed * 100)).await;
        let late = began.elapsed().as_millis().saturating_sub(u128::from(passed) * 5_000);
        assert!(late < 1_000, "{late} ms");
    }
    // Half a second into the third period: 5.5 s since the first sample was taken.
    tokio::time::sleep(Duration::from_millis(500)).await;
    console.message(ADA, &watcher(), query("SHOW STATS_AVERAGES"));
    tell(inbox, snapshot(100 + 55)).await;
    let ToWorker::ConsoleReply { bytes, .. } = next(inbox).await else { panic!("no reply") };
    let row = String::from_utf8_lossy(&bytes).into_owned();
    assert!(row.contains("app\0\0\0\x010\0\0\0\x010\0\0\0\x0210"), "10 a second in {row:?}");
}
