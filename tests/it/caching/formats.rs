//! C11 and C14: answers in every dress in which they can be asked for.

use wire::pg::frontend::{self, tag};

use super::place::{Cached, Place, KNOWN_WITHIN};
use crate::kit::wireclient::Message;
use crate::kit::{wait, WireClient};
use crate::traps::batch::Batch;

const SET_UP: &str = "create table k(id int primary key, n bigint, m numeric, f float8, s text, b bytea,
        d date, ts timestamp, tt timestamptz, iv interval, u uuid, a int[], o bool);
    insert into k values (1, -5, 1.500, 0.1, 'Zürich', '\\x00ff', '2024-02-29', '2024-02-29 12:00',
        '2024-02-29 12:00+00', '1 mon 2 days 03:04:05', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
        '{1,null}', true), (2, null, null, null, null, null, null, null, null, null, null, null, null)";

const BY_ID: &str = "select * from k where id = $1";
const SOME: &str = "select n, s, f from k where id = $1 and n = $2";

/// Name and text of a statement, formats of its values, these, and formats of its results.
type Case<'a> = (&'a str, &'a str, &'a [u16], &'a [&'a [u8]], &'a [u16]);

/// A Bind with formats.
pub(super) fn bind(out: &mut Vec<u8>, statement: &str, formats: [&[u16]; 2], values: &[&[u8]]) {
    let mut body = vec![0];
    body.extend_from_slice(statement.as_bytes());
    body.push(0);
    let count = |body: &mut Vec<u8>, number: usize| {
        body.extend_from_slice(&u16::try_from(number).expect("few").to_be_bytes());
    };
    let codes = |body: &mut Vec<u8>, codes: &[u16]| {
        count(body, codes.len());
        codes.iter().for_each(|code| body.extend_from_slice(&code.to_be_bytes()));
    };
    codes(&mut body, formats[0]);
    count(&mut body, values.len());
    for value in values {
        body.extend_from_slice(&u32::try_from(value.len()).expect("short").to_be_bytes());
        body.extend_from_slice(value);
    }
    codes(&mut body, formats[1]);
    out.push(tag::BIND);
    out.extend_from_slice(&u32::try_from(body.len() + 4).expect("short").to_be_bytes());
    out.extend_from_slice(&body);
}

fn ask(client: &mut WireClient, bytes: &[u8]) -> Vec<Message> {
    client.send(bytes);
    client.until_ready()
}

#[test]
fn trap_c14_formats_names_and_descriptions() {
    let place = Place::start(SET_UP);
    let mut client = place.client();
    let mut direct = place.beside();
    let prepare = Batch::new().parse("by_id", BY_ID).parse("some", SOME).sync();
    let prepare = prepare.parse("none", "select s from k where id = 99").sync();
    for client in [&mut client, &mut direct] {
        ask(client, &prepare.0);
        client.until_ready();
    }
    let (one, two) = (1_i32.to_be_bytes(), 2_i32.to_be_bytes());
    let five = (-5_i64).to_be_bytes();
    let text: [&[&[u8]]; 4] = [&[b"1"], &[b"2"], &[b"1", b"-5"], &[b" 1 ", b"-5"]];
    let binary: [&[&[u8]]; 3] = [&[&one], &[&two], &[&one, &five]];
    let mixed: [&[&[u8]]; 1] = [&[&one, b"-5"]];
    let none: [&[&[u8]]; 1] = [&[]];
    let mut cases: Vec<Case<'_>> = Vec::new();
    let ways = [
        ("text", &[][..], &text[..]),
        ("text", &[0], &text),
        ("binary", &[1], &binary),
        ("mixed", &[1, 0], &mixed),
        ("none", &[], &none),
    ];
    for (_, formats, all) in ways {
        for values in all {
            let (name, sql) = match values.len() {
                0 => ("none", "select s from k where id = 99"),
                1 => ("by_id", BY_ID),
                _ => ("some", SOME),
            };
            for results in [&[][..], &[0], &[1], &[1, 0, 1]] {
                let whole = results.len() <= 1 || values.len() == 2;
                if whole {
                    cases.push((name, sql, formats, values, results));
                }
            }
        }
    }
    assert!(cases.len() > 25);
    for (name, sql, formats, values, results) in &cases {
        for describes in [false, true] {
            for named in [false, true] {
                let mut bytes = Vec::new();
                if !named {
                    frontend::put_parse(&mut bytes, b"", sql.as_bytes(), &[]);
                }
                bind(&mut bytes, if named { name } else { "" }, [formats, results], values);
                if describes {
                    frontend::put_describe(&mut bytes, frontend::Target::Portal, b"");
                }
                frontend::put_execute(&mut bytes, b"", 0);
                frontend::put_sync(&mut bytes);
                let expected = ask(&mut direct, &bytes);
                let what = format!("{sql} {values:?} {formats:?} {results:?} {describes} {named}");
                assert_eq!(ask(&mut client, &bytes), expected, "{what}");
                if values.first() == Some(&&b" 1 "[..]) {
                    continue;
                }
                let kept = wait::within(wait::DEADLINE, || {
                    let got = ask(&mut client, &bytes);
                    client.was_hit().then_some(got)
                });
                assert_eq!(
                    kept.unwrap_or_else(|| panic!("{what}: never a hit")),
                    expected,
                    "{what}"
                );
            }
        }
    }
    // Simple queries beside them.
    for sql in ["select * from k where id = 1", "select * from k where id = 99"] {
        let expected = direct.query(sql);
        assert_eq!(client.warm_by(sql, |client| client.query(sql)), expected);
    }
}

#[test]
fn trap_c14_wrong_values_are_postgresql_s_to_refuse() {
    let place = Place::start(SET_UP);
    let mut client = place.client();
    let whole = |value: &str| Batch::new().parse("", BY_ID).bind("", &[value]).execute().sync();
    client.warm_by(BY_ID, |client| ask(client, &whole("1").0));
    for value in ["", "x", "99999999999", "1.5"] {
        for _ in 0..5 {
            let replies = ask(&mut client, &whole(value).0);
            assert!(replies.iter().any(|reply| reply.tag == b'E'), "{value}: {replies:?}");
            assert_eq!(client.status, b'I');
        }
    }
    // Too few, too many, and a length that is wrong for its type.
    for (formats, values) in [
        (&[][..], &[][..]),
        (&[], &[&b"1"[..], b"2"][..]),
        (&[1], &[&b"123"[..]]),
        (&[1], &[&b""[..]]),
    ] {
        let mut bytes = Vec::new();
        frontend::put_parse(&mut bytes, b"", BY_ID.as_bytes(), &[]);
        bind(&mut bytes, "", [formats, &[]], values);
        frontend::put_execute(&mut bytes, b"", 0);
        frontend::put_sync(&mut bytes);
        for _ in 0..5 {
            let replies = ask(&mut client, &bytes);
            assert!(replies.iter().any(|reply| reply.tag == b'E'), "{values:?}: {replies:?}");
        }
    }
    client.warm_by(BY_ID, |client| ask(client, &whole("1").0));
}

#[test]
fn trap_c14_descriptions_are_right_behind_alter() {
    let place =
        Place::start("create table t(id int primary key, n int); insert into t values (1, 2)");
    const ALL: &str = "select * from t where id = 1";
    let mut beside = place.beside();
    let mut client = place.client();
    let mut named = place.client();
    let described = Batch::new().parse("", ALL).bind("", &[]).describe_portal("").execute().sync();
    for (at, change) in [
        "alter table t add c text default 'x'",
        "alter table t rename n to m",
        "alter table t alter m type bigint",
        "alter table t drop c",
        "alter table t add c varchar(7)",
        "alter table t alter c type varchar(9)",
        "begin; alter table t drop c; alter table t add c varchar(9) default 'y'; commit",
    ]
    .into_iter()
    .enumerate()
    {
        client.warm(ALL);
        named.warm_by(ALL, |client| ask(client, &described.0));
        let own = at % 2 == 0;
        if own {
            client.run(change);
        } else {
            beside.run(change);
        }
        let expected = beside.query(ALL);
        let bound = ask(&mut beside, &described.0);
        if own {
            assert_eq!(client.query(ALL), expected, "{change}, its own");
        }
        let simple = wait::within(KNOWN_WITHIN, || (client.query(ALL) == expected).then_some(()));
        assert!(simple.is_some(), "{change}: {:?} and not {expected:?}", client.query(ALL));
        let extended =
            wait::within(KNOWN_WITHIN, || (ask(&mut named, &described.0) == bound).then_some(()));
        assert!(extended.is_some(), "{change}");
        assert_eq!(client.warm_by(ALL, |client| client.query(ALL)), expected);
        assert_eq!(named.warm_by(ALL, |client| ask(client, &described.0)), bound);
    }
}

#[test]
fn trap_c11_settings_that_change_how_values_look() {
    let settings = [
        "set timezone = 'Asia/Tokyo'",
        "set timezone = 'America/New_York'",
        "set datestyle = 'german, dmy'",
        "set datestyle = 'sql, mdy'",
        "set intervalstyle = 'iso_8601'",
        "set client_encoding = 'latin1'",
        "set client_encoding = 'utf8'",
        "set extra_float_digits = -10",
        "set bytea_output = 'escape'",
        "set standard_conforming_strings = off",
        "set lc_monetary = 'C'",
        "reset all",
    ];
    // As texts and as parts of conditions.
    let reads = [
        "select * from k where id = 1",
        "select id from k where tt = '2024-02-29 21:00'",
        "select id from k where s = 'Z\u{fc}rich'",
        "select tt::text, d::text, iv::text, f::text, b::text from k where id = 1",
        "select date_trunc('day', tt) from k where id = 1",
    ];
    for mode in ["session", "transaction"] {
        let place = Place::start_with(SET_UP, |config| config.set("pool.mode", mode));
        let mut plain = place.client();
        let mut client = place.client();
        let mut direct = place.beside();
        let mut untouched = place.beside();
        plain.warm(reads[0]);
        for setting in settings {
            let name = setting.split_whitespace().nth(1).expect("a name");
            let reported = [
                "timezone",
                "datestyle",
                "intervalstyle",
                "client_encoding",
                "all",
                "standard_conforming_strings",
            ];
            if mode == "transaction" && !reported.contains(&name) {
                continue;
            }
            client.run(setting);
            direct.run(setting);
            for read in reads {
                let expected = direct.query(read);
                let usual = untouched.query(read);
                for _ in 0..6 {
                    let got = client.query(read);
                    assert_eq!(got, expected, "{mode}: {setting}: {read}, {}", client.was_hit());
                    let got = plain.query(read);
                    assert_eq!(got, usual, "{mode}: {read}, hit: {}", plain.was_hit());
                }
            }
        }
        plain.warm(reads[0]);
    }
}
