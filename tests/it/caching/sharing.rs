//! What asks the same shares what is kept, however it is written; and of several that ask the same
//! at once, one asks PostgreSQL.

use wire::pg::frontend;

use super::place::{Cached, Place};
use crate::kit::wireclient::Message;
use crate::kit::{wait, WireClient};

const SET_UP: &str = "create table k(id int primary key, big bigint, name text, short varchar(9));
    insert into k select n, n * 10, 'name ' || n, 'v' || n from generate_series(1, 50) n";

const INT2: u32 = 21;
const INT4: u32 = 23;
const INT8: u32 = 20;
const TEXT: u32 = 25;
const VARCHAR: u32 = 1043;

/// A statement with parameters.
struct Bound<'a> {
    sql: &'a str,
    /// As declared; none: PostgreSQL finds them.
    types: &'a [u32],
    /// Values of which something is asked first, so that the statement is known.
    other: &'a [&'a str],
    values: &'a [&'a str],
}

impl Bound<'_> {
    fn ask(&self, client: &mut WireClient, values: &[&str]) -> Vec<Message> {
        let mut bytes = Vec::new();
        let mut types = Vec::new();
        types.extend_from_slice(&u16::try_from(self.types.len()).expect("few").to_be_bytes());
        self.types.iter().for_each(|oid| types.extend_from_slice(&oid.to_be_bytes()));
        frontend::put_parse(&mut bytes, b"", self.sql.as_bytes(), &types);
        let values: Vec<_> = values.iter().map(|value| Some(value.as_bytes())).collect();
        frontend::put_bind(&mut bytes, b"", b"", &values);
        frontend::put_describe(&mut bytes, frontend::Target::Portal, b"");
        frontend::put_execute(&mut bytes, b"", 0);
        frontend::put_sync(&mut bytes);
        client.send(&bytes);
        client.until_ready()
    }

    /// Whether its answer is there at once when that to a statement with constants is kept.
    #[track_caller]
    fn shares(&self, place: &Place, literal: &str) -> bool {
        let mut client = place.client();
        client.warm_by(self.sql, |client| self.ask(client, self.other));
        let expected = client.warm(literal);
        let got = self.ask(&mut client, self.values);
        let hit = client.was_hit();
        let rows: Vec<_> = got.iter().filter(|m| m.tag == b'D').map(Message::values).collect();
        assert_eq!(rows, expected, "{} after {literal}", self.sql);
        hit
    }
}

#[test]
fn constants_and_parameters_are_one_statement() {
    let place = Place::start(SET_UP);
    let by_id = "select name from k where id = $1";
    let by_big = "SELECT id, name\n FROM k WHERE big=$1 -- the same";
    let by_name = "select id from k where name = $1 and short = $2";
    let swapped = "select id from k where name = $2 and short = $1";
    let range = "select id from k where id between $1 and $2 order by 1";
    let either = "select id from k where id in ($1, $2, $3) order by 1";
    for (literal, sql, types, other, values) in [
        ("select name from k where id = 5", by_id, &[][..], &["49"][..], &["5"][..]),
        ("select name from k where id = 6", by_id, &[INT8], &["48"], &["6"]),
        ("select name from k where id = 7", by_id, &[INT2], &["47"], &["7"]),
        ("select id, name from k where big = 80", by_big, &[], &["470"], &["80"]),
        ("select id, name from k where big = 90", by_big, &[INT4], &["460"], &["90"]),
        (
            "select id from k where name = 'name 9' and short = 'v9'",
            by_name,
            &[],
            &["x", "y"],
            &["name 9", "v9"],
        ),
        (
            "select id from k where name = 'name 8' and short = 'v8'",
            by_name,
            &[VARCHAR, VARCHAR],
            &["x", "y"],
            &["name 8", "v8"],
        ),
        (
            "select id from k where name = 'name 7' and short = 'v7'",
            swapped,
            &[TEXT, VARCHAR],
            &["x", "y"],
            &["v7", "name 7"],
        ),
        (
            "select id from k where id between 3 and 5 order by 1",
            range,
            &[],
            &["30", "31"],
            &["3", "5"],
        ),
        (
            "select id from k where id in (3, 5, 9) order by 1",
            either,
            &[],
            &["30", "31", "32"],
            &["3", "5", "9"],
        ),
    ] {
        let bound = Bound { sql, types, other, values };
        assert!(bound.shares(&place, literal), "{literal}, {sql} {types:?}");
    }
}

#[test]
fn what_constants_and_parameters_do_not_share() {
    let place = Place::start(SET_UP);
    // A place of the select list, and a value that is the same for all rows.
    let ordered = Bound {
        sql: "select -id from k where id < $1 order by $2",
        types: &[INT4, TEXT],
        other: &["2", "2"],
        values: &["9", "1"],
    };
    let mut client = place.client();
    client.warm_by(ordered.sql, |client| ordered.ask(client, ordered.other));
    client.warm("select -id from k where id < 9 order by 1");
    ordered.ask(&mut client, ordered.values);
    assert!(!client.was_hit(), "it is another statement");
    // Results of other types.
    let shown = Bound {
        sql: "select $1, name from k where id = $2",
        types: &[TEXT, INT4],
        other: &["1", "1"],
        values: &["5", "5"],
    };
    assert!(!shown.shares(&place, "select 5, name from k where id = 5"));
    // What is too large for the type that is declared is an error, kept or not.
    let large = "select name from k where big = 99999";
    client.warm(large);
    let narrow = Bound {
        sql: "select name from k where big = $1",
        types: &[INT2],
        other: &["100"],
        values: &["99999"],
    };
    client.warm_by(narrow.sql, |client| narrow.ask(client, narrow.other));
    let refused = narrow.ask(&mut client, narrow.values);
    assert!(refused.iter().any(|reply| reply.tag == b'E'), "{refused:?}");
}

/// Takes about a tenth of a second in PostgreSQL.
const SLOW: &str = "select count(*) from n a, n b where (a.id # b.id) % 7 = 3 and a.id < ";

fn place_of_slow() -> Place {
    let set_up =
        "create table n(id int primary key); insert into n select generate_series(1, 1200)";
    let place = Place::start(set_up);
    let mut client = place.client();
    client.run(&format!("create cache from {SLOW} 1"));
    // How long it takes becomes known.
    for limit in 1000..1010 {
        client.warm(&format!("{SLOW} {limit}"));
    }
    place
}

/// A client that asks PostgreSQL, for whose answer `waiting` waits.
#[track_caller]
fn asking(place: &Place, waiting: &mut WireClient, sql: &str) -> WireClient {
    let mut watcher = place.superuser();
    let runs = format!(
        "select count(*) from pg_stat_activity where datname = '{}' and state = 'active' \
         and query like '%n a, n b%' and pid <> pg_backend_pid()",
        place.database.name
    );
    let before = place.figure("leased_total");
    let mut asking = place.client();
    asking.put(|out| frontend::put_query(out, sql));
    wait::until("PostgreSQL is asked", || watcher.one(&runs) == "1");
    waiting.put(|out| frontend::put_query(out, sql));
    wait::until("it waits", || place.figure("leased_total") > before);
    asking
}

#[test]
fn of_many_that_ask_for_the_same_slow_answer_one_asks_postgresql() {
    let place = place_of_slow();
    let clients = 8;
    let mut together: Vec<WireClient> = (0..clients).map(|_| place.client()).collect();
    let figures = ["hits", "fills"];
    let count = || figures.map(|name| place.figure(&format!("{name}_total")));
    let before = count();
    // A fraction of the usual time: nobody has waited too long, however busy the machine is.
    let sql = format!("{SLOW} 100");
    for client in &mut together {
        client.put(|out| frontend::put_query(out, &sql));
    }
    for client in &mut together {
        assert!(client.until_ready().iter().any(|reply| reply.tag == b'D'));
    }
    let after = count();
    let since: Vec<u64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    assert_eq!(since, [clients - 1, 1], "one is kept, the others get it: {figures:?}");
}

#[test]
fn who_waits_for_another_s_answer_goes_on_when_that_one_leaves() {
    let place = place_of_slow();
    let expected = place.beside().rows(&format!("{SLOW} 3000"));
    let ways: [fn(WireClient); 2] = [WireClient::terminate, drop];
    for (at, leave) in ways.into_iter().enumerate() {
        let sql = format!("{SLOW} {}", 3000 + at);
        let mut waiting = place.client();
        let asking = asking(&place, &mut waiting, &sql);
        leave(asking);
        let answer = waiting.until_ready();
        let rows: Vec<_> = answer.iter().filter(|m| m.tag == b'D').map(Message::values).collect();
        assert_eq!(rows, expected);
    }
    // An error of the one who asks is not the others'.
    let sql = format!("{SLOW} 5000");
    let mut waiting = place.client();
    let mut asking = asking(&place, &mut waiting, &sql);
    asking.cancel(&place.gateway.address());
    let failed = asking.until_ready();
    let answer = waiting.until_ready();
    assert!(answer.iter().any(|reply| reply.tag == b'D'), "{answer:?}, {failed:?}");
}

#[test]
fn who_waits_for_another_s_answer_can_be_cancelled() {
    let place = place_of_slow();
    let mut client = place.client();
    for begin in ["", "begin"] {
        let sql = format!("{SLOW} {}", 7000 + begin.len());
        if !begin.is_empty() {
            client.run(begin);
        }
        let mut asking = asking(&place, &mut client, &sql);
        client.cancel(&place.gateway.address());
        let failed = client.until_ready();
        let complaint = failed.iter().find(|reply| reply.tag == b'E').expect("an error");
        assert_eq!(complaint.complaint().code, "57014", "{failed:?}");
        assert_eq!(client.status, if begin.is_empty() { b'I' } else { b'E' });
        assert!(asking.until_ready().iter().any(|reply| reply.tag == b'D'), "nobody else's");
        client.run("rollback");
        assert_eq!(client.one("select 7"), "7");
    }
}
