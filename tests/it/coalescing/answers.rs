//! Whoever shares a trip is answered as PostgreSQL itself would have, byte by byte: in three
//! protocols, text and binary, values and errors.

use wire::pg::backend::tag;

use super::crowd::Crowd;
use crate::kit::WireClient;
use crate::traps::batch::Batch;
use crate::traps::servers::direct;

/// How many share a trip.
const TOGETHER: usize = 24;

const KINDS: &str = "
    create type mood as enum ('sad', 'ok', 'happy');
    create type pair as (a int, b text);
    create table kinds(
        id int primary key, i2 smallint, i4 int, i8 bigint, n numeric, n2 numeric(10, 2), f4 real,
        f8 double precision, t text, v varchar(20), c char(5), b bytea, o bool, d date, ti time,
        tz timetz, ts timestamp, tt timestamptz, iv interval, u uuid, j json, jb jsonb, ia int[],
        ta text[], r int4range, tr tstzrange, m mood, p pair, ip inet, mo money);
    insert into kinds values
        (1, 7, 42, 4200000000, 3.1400, 2.5, 0.1, 0.1, 'plain', 'varchar', 'ch', '\\x00ff27', true,
         '2024-02-29', '12:34:56.789', '12:34:56+02', '2024-02-29 12:00:00.000001',
         '2024-02-29 12:00+00', '1 mon 2 days 03:04:05', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
         '{\"a\" :  [1, null]}', '{\"b\":1, \"a\":\"x\"}', '{1,null,-3}', '{a,\"b c\",null}',
         '[1,10)', '[2024-01-01 00:00+00,)', 'ok', row(1, 'x\"y'), '192.168.0.1/24', 12.34),
        (2, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
         null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),
        (3, -32768, -2147483648, -9223372036854775808, 'NaN', -0.01, 'NaN', '-infinity', '', '',
         '', '', false, '-infinity', '00:00', '24:00+00', 'infinity', '-infinity',
         '-1 year 2 mons', '00000000-0000-0000-0000-000000000000', 'null', '{}', '{}', '{}',
         'empty', '(,)', 'sad', row(null, null), '::1', -0.01),
        (4, 32767, 2147483647, 9223372036854775807, 1e40, 99999999.99, 1e38, 1e308,
         E'Zürich \u{2603} \u{1f418} it''s \\\\ \\n\\t', 'ÄÖÜ', 'é', '\\x5c', true,
         '9999-12-31', '23:59:59.999999', '00:00-15', '0001-01-01 BC', '9999-12-31 23:59:59+00',
         '178000000 years', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '[]', '\"\u{2603}\"',
         '[0:1]={5,6}', '{{a,b},{c,d}}', '(,5]', '[2024-01-01 00:00+00,2024-01-02 00:00+00]',
         'happy', row(2, ''), '10.0.0.0/8', 92233720368547758.07);
    insert into kinds(id, i2, i4, i8, t) select g, g, g, g, 'row ' || g from generate_series(5, 60) g;
    create function noisy(int) returns int language plpgsql stable as
        $$ begin raise notice 'noise %', $1 using detail = 'of it'; return $1; end $$;
    create function noisy_failure(int) returns int language plpgsql stable as
        $$ begin raise notice 'before %', $1;
           if $1 > 3 then raise exception 'too many: %', $1 using
               errcode = 'P0099', detail = 'a detail', hint = 'a hint', column = 'i4'; end if;
           return $1; end $$;
    create function stable_fault(text) returns int language plpgsql stable as
        $$ begin return $1::int; end $$;
    create view mixed as select id, i4 * 2 as twice, t from kinds where id > 0;
    create table empty(id int primary key, t text);
";

/// Statements that are answered, by the types of their constants, with errors among them that the
/// same shape can meet.
const CASES: &[&[&str]] = &[
    &[
        "select * from kinds where id = 1",
        "select * from kinds where id = 2",
        "select * from kinds where id = 3",
        "select * from kinds where id = 4",
        "select * from kinds where id = 99",
        "select * from kinds where id = -1",
        "select * from kinds where id = 2147483647",
        "select * from kinds where id = -2147483647",
    ],
    &[
        "select id, i8 from kinds where id = 2147483648",
        "select id, i8 from kinds where id = -2147483648",
        "select id, i8 from kinds where id = 9223372036854775807",
        "select id, i8 from kinds where id = -9223372036854775807",
    ],
    &[
        "select id, t from kinds where id = 9223372036854775808",
        "select id, t from kinds where id = -9223372036854775809",
        "select id, t from kinds where id = 1.0",
        "select id, t from kinds where id = 1.5",
        "select id, t from kinds where id = 1e0",
        "select id, t from kinds where id = .1e1",
        "select id, t from kinds where id = 4.",
        "select id, t from kinds where id = -1e3",
    ],
    &[
        "select id, t from kinds where id = '1'",
        "select id, t from kinds where id = ' 4 '",
        "select id, t from kinds where id = 'abc'",
        "select id, t from kinds where id = ''",
        "select id, t from kinds where id = '99999999999'",
        "select id, t from kinds where id = '1.5'",
    ],
    &[
        "select id, i2 from kinds where i2 = 7",
        "select id, i2 from kinds where i2 = 70000",
        "select id, i2 from kinds where i2 = -1",
    ],
    &[
        "select id, i8 from kinds where i8 = 4200000000",
        "select id, i8 from kinds where i8 = -9223372036854775807",
    ],
    &[
        "select id, n from kinds where n = 3.14",
        "select id, n from kinds where n = 10000000000000000000000000000000000000000.0",
        "select id, n from kinds where n = -1e-5",
    ],
    &["select id, n from kinds where n = 'NaN'", "select id, n from kinds where n = 'many'"],
    &["select id, f8 from kinds where f8 = 0.1", "select id, f8 from kinds where f8 < -1e300"],
    &["select id, f8 from kinds where f8 = '-infinity'", "select id, f8 from kinds where f8 = 'x'"],
    &[
        "select id, t from kinds where t = 'plain'",
        "select id, t from kinds where t = 'it''s'",
        "select id, t from kinds where t = ''''",
        "select id, t from kinds where t = ''",
        "select id, t from kinds where t = 'back\\slash'",
        "select id, t from kinds where t = '\u{2603} $1 ? -- /* '",
    ],
    &["select id, c from kinds where c = 'ch'", "select id, c from kinds where c = 'ch   '"],
    &["select id, v from kinds where v = 'varchar'", "select id, v from kinds where v = 'v'"],
    &["select id, b from kinds where b = ''", "select id, b from kinds where b = 'abc'", "select id, b from kinds where b = '\\x00ff27'", "select id, b from kinds where b = '\\xzz'"],
    &["select id, d from kinds where d = '2024-02-29'", "select id, d from kinds where d = '2023-02-29'"],
    &[
        "select id, tt from kinds where tt = '2024-02-29 12:00+00'",
        "select id, tt from kinds where tt = 'infinity'",
        "select id, tt from kinds where tt = 'later'",
    ],
    &["select id, iv from kinds where iv > '1 day'", "select id, iv from kinds where iv > '1 dat'"],
    &[
        "select id, u from kinds where u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "select id, u from kinds where u = 'no uuid'",
    ],
    &["select id, m from kinds where m = 'ok'", "select id, m from kinds where m = 'angry'"],
    &["select id, mo from kinds where mo = '12.34'", "select id, mo from kinds where mo = 'rich'"],
    &["select id, ip from kinds where ip = '::1'", "select id, ip from kinds where ip = '1.2.3.456'"],
    &["select id, ia from kinds where ia = '{1,null,-3}'", "select id, ia from kinds where ia = '{'"],
    &["select id, jb from kinds where jb = '{}'", "select id, jb from kinds where jb = '{'"],
    &["select id, r from kinds where r = 'empty'", "select id, r from kinds where r = '[9,1]'"],
    &["select id, o from kinds where o = 'yes'", "select id, o from kinds where o = 'perhaps'"],
    &["select id from kinds where o = true and id < 5", "select id from kinds where o = true and id < 3"],
    &[
        "select id, t from kinds where id in (1, 3, 99) order by id",
        "select id, t from kinds where id in (-1, 2147483647, 2) order by id",
    ],
    &[
        "select id, t from kinds where t in ('plain', '', 'it''s') order by id",
        "select id, t from kinds where t in ('row 5', 'row 6', 'row 7') order by id",
    ],
    &[
        "select id from kinds where id between 3 and 9 order by id",
        "select id from kinds where id between -5 and 2 order by id",
    ],
    &[
        "select id from kinds where t like 'row 1%' order by id limit 3 offset 2",
        "select id from kinds where t like '%5' order by id limit 2 offset 0",
        "select id from kinds where t like '' order by id limit 0 offset 5",
        "select id from kinds where t like '%' order by id limit -1 offset 5",
        "select id from kinds where t like '%' order by id limit 5 offset -1",
    ],
    &[
        "select id, 10 / (id - 3), 'x' from kinds where id = 4",
        "select id, 10 / (id - 3), 'x' from kinds where id = 3",
        "select id, 10 / (id - 2), 'y' from kinds where id = 2",
    ],
    &[
        "select id, 1 / (id - 40) from kinds where id < 20 order by id",
        "select id, 1 / (id - 15) from kinds where id < 20 order by id",
    ],
    &[
        "select stable_fault(t) from kinds where id = 2",
        "select stable_fault(t) from kinds where id = 5",
    ],
    &["select noisy(id) from kinds where id < 4", "select noisy(id) from kinds where id < 3"],
    &[
        "select noisy_failure(id) from kinds where id < 3 order by id",
        "select noisy_failure(id) from kinds where id < 9 order by id",
    ],
    &["select * from mixed where id = 1", "select * from mixed where id = 4"],
    &["select twice, count(*) from mixed where id > 50 group by twice order by 1 limit 3"],
    &["select * from empty where id = 1", "select * from empty where id = 7"],
    &["select repeat(t, 100) from kinds where id = 4", "select repeat(t, 3) from kinds where id = 1"],
    &["select i2 + 1, i4 - 1, i8 * 2 from kinds where id = 1", "select i2 + 9, i4 - 1, i8 * 2 from kinds where id = 4"],
    &["select id, 'it''s', 1.50, -7, null, '' as e from kinds where id = 1"],
    &["select a.id, b.t from kinds a join kinds b on b.id = a.i4 where a.id = 7"],
    &["with x as (select id, t from kinds where id < 4) select * from x order by id desc"],
    &["values (1, 'a'), (2, 'b')", "values (-1, ''), (2147483647, '''')"],
    &["select id, t::varchar(3), n::text from kinds where id = 1 and d = '2024-02-29'::date"],
    &["select coalesce(t, 'none'), case when id = 2 then 'two' else 'other' end from kinds where id = 2"],
    &["  SELECT /* a comment */ id -- another\n FROM kinds\n\tWHERE id=1;", "  SELECT /* a comment */ id -- another\n FROM kinds\n\tWHERE id=2;"],
];

/// Statements that PostgreSQL refuses whatever their constants are.
const REFUSED: &[&str] = &[
    "select nothing from kinds where id = 1",
    "select id, t from kinds where t = 1",
    "select id from kinds where id = 1 and mood = 'ok'",
    "select id from kinds group by t having id = 1",
];

/// A query in one of the protocols, with what has to go before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Simple,
    Unnamed,
    UnnamedBinary,
    Named,
    NamedBinary,
}

const FORMS: [Form; 5] =
    [Form::Simple, Form::Unnamed, Form::UnnamedBinary, Form::Named, Form::NamedBinary];

impl Form {
    fn before(self, sql: &str) -> Option<Batch> {
        matches!(self, Form::Named | Form::NamedBinary)
            .then(|| Batch::new().close("s").parse("s", sql).describe("s").sync())
    }

    fn batch(self, sql: &str) -> Batch {
        match self {
            Form::Simple => Batch::new().query(sql),
            Form::Unnamed => {
                Batch::new().parse("", sql).bind("", &[]).describe_portal("").execute().sync()
            }
            Form::UnnamedBinary => {
                binary(Batch::new().parse("", sql), "").describe_portal("").execute().sync()
            }
            Form::Named => Batch::new().bind("s", &[]).execute().sync(),
            Form::NamedBinary => binary(Batch::new(), "s").describe_portal("").execute().sync(),
        }
    }
}

/// A Bind without parameters whose results come in binary.
fn binary(batch: Batch, statement: &str) -> Batch {
    let mut body = vec![0];
    body.extend_from_slice(statement.as_bytes());
    body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 0, 1]);
    batch.message(b'B', &body)
}

/// All statements of `list` in all forms, so many to a trip, each against a direct connection.
#[track_caller]
fn compare(crowd: &mut Crowd, straight: &mut WireClient, list: &[&str]) {
    let all: Vec<(Form, &str)> =
        FORMS.iter().flat_map(|form| list.iter().map(|sql| (*form, *sql))).collect();
    for trip in all.chunks(TOGETHER) {
        let mut batches = Vec::new();
        let mut sent = Vec::new();
        let mut expected = Vec::new();
        for (at, (form, sql)) in trip.iter().enumerate() {
            if let Some(before) = form.before(sql) {
                let here = before.answer(straight);
                assert_eq!(before.answer(&mut crowd.clients[at]), here, "{sql}");
                if here.iter().any(|message| message.tag == tag::ERROR) {
                    continue;
                }
            }
            batches.push(form.batch(sql));
            sent.push((at, *form, *sql));
            expected.push(form.batch(sql).answer(straight));
        }
        crowd.hold();
        for ((at, ..), batch) in sent.iter().zip(&batches) {
            batch.to(&mut crowd.clients[*at]);
        }
        crowd.gathered(batches.len());
        crowd.release();
        for ((at, form, sql), expected) in sent.iter().zip(expected) {
            let got = crowd.clients[*at].until_ready();
            assert_eq!(got, expected, "{form:?} {sql}: in a trip (left) and directly (right)");
        }
    }
}

fn every_answer_is_that_of_postgresql(coalesce: &str, prepare_simple: bool) {
    let mut crowd = Crowd::start(TOGETHER, KINDS, |config| {
        config.set("pool.coalesce", coalesce).set("pool.prepare_simple", prepare_simple)
    });
    let mut straight = direct(&crowd.database);
    let mut joined = 0;
    let mut trips = 0;
    for case in CASES {
        crowd.learn(&Batch::new().query(case[0]), coalesce);
        let before = crowd.counters();
        compare(&mut crowd, &mut straight, case);
        let after = crowd.counters();
        joined += after["joined"] - before["joined"];
        trips += after["trips"] - before["trips"];
    }
    for sql in REFUSED {
        // Whatever fails often has no part in a batch.
        crowd.learn(&Batch::new().query(sql), "pipeline");
        compare(&mut crowd, &mut straight, &[*sql; 3]);
    }
    let counted = crowd.counters();
    let statements: u64 = CASES.iter().map(|case| (case.len() * FORMS.len()) as u64).sum();
    for row in crowd.gateway.show("queries") {
        if row["way"] == "alone" {
            eprintln!("{row:?}");
        }
    }
    // Some come to nothing behind the errors of others too often, and end alone.
    assert!(joined * 2 > statements, "{joined} of {statements} in {trips}: {counted:?}");
    assert!(joined > 3 * trips, "{joined} of {statements} in {trips}: {counted:?}");
    assert_eq!(counted["batched"] > 0, coalesce == "batch", "{counted:?}");
    assert_eq!(counted["prepared"] > 0, prepare_simple, "{counted:?}");
    assert_eq!(counted["skipped"] > 0, coalesce == "batch" || prepare_simple, "{counted:?}");
}

#[test]
fn answers_in_batches_are_those_of_postgresql() {
    every_answer_is_that_of_postgresql("batch", true);
}

#[test]
fn answers_in_pipelines_are_those_of_postgresql() {
    every_answer_is_that_of_postgresql("pipeline", true);
}

#[test]
fn answers_without_stand_ins_are_those_of_postgresql() {
    every_answer_is_that_of_postgresql("batch", false);
}
