//! Copies of tables: scripted servers, every cut.

use backend::login::ServerError;
use backend::replication::catalogue::Row;
use backend::replication::snapshot::copier::{Copier, Step};
use backend::replication::snapshot::holder::{Held, Holder, Todo};
use backend::replication::snapshot::pieces::Pieces;
use backend::replication::snapshot::{Found, FoundColumn, Limits, Rows, Source};
use wire::pg::backend::{self as messages, TxStatus};
use wire::pg::{frontend, header, HEADER_BYTES};

use super::script::error;

/// Writes down what it is told, a line each.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
struct Told {
    lines: Vec<String>,
    /// It takes no more rows than these.
    most: Option<usize>,
}

impl Rows for Told {
    fn began(&mut self, _: &str, _: u64, _: &[Found]) -> Result<(), String> {
        Ok(())
    }

    fn row(&mut self, table: usize, fields: &[Option<&[u8]>]) -> Result<(), String> {
        if self.most.is_some_and(|most| self.lines.len() >= most) {
            return Err("it is full".to_owned());
        }
        let field = |field: &Option<&[u8]>| {
            field.map_or_else(|| "NULL".to_owned(), |field| format!("{}", field.escape_ascii()))
        };
        let fields: Vec<String> = fields.iter().map(field).collect();
        self.lines.push(format!("{table}: {}", fields.join("|")));
        Ok(())
    }

    fn progress(&mut self, _: usize, _: u64, _: u64) {}

    fn done(&mut self) {}

    fn failed(&mut self, _: &str) {}
}

fn source(oid: u32, name: &str) -> Source {
    Source {
        oid,
        schema: "public".to_owned(),
        name: name.to_owned(),
        columns: vec![(1, "id".to_owned()), (3, "say \"it\"".to_owned())],
        filenode: oid + 1000,
    }
}

fn found(oid: u32, blocks: u32) -> Found {
    Found { oid, blocks, ..Found::default() }
}

fn ready(status: TxStatus) -> Vec<u8> {
    let mut out = Vec::new();
    messages::put_ready(&mut out, status);
    out
}

fn complete(tag: &str) -> Vec<u8> {
    let mut out = Vec::new();
    messages::put_command_complete(&mut out, tag);
    out
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

/// A whole answer to COPY, which counts `count` rows.
fn copied(rows: &[&[u8]], count: usize) -> Vec<u8> {
    let mut out = message(messages::tag::COPY_OUT, &[0, 0, 2, 0, 0, 0, 0]);
    rows.iter().for_each(|row| out.extend(message(messages::tag::COPY_DATA, row)));
    out.extend(message(messages::tag::COPY_DONE, &[]));
    out.extend(complete(&format!("COPY {count}")));
    out.extend(ready(TxStatus::InTransaction));
    out
}

fn begun() -> Vec<u8> {
    [complete("BEGIN"), complete("SET"), ready(TxStatus::InTransaction)].concat()
}

/// The queries that it has said.
fn asked(copier: &mut Copier) -> Vec<String> {
    let said = std::mem::take(copier.out());
    let (mut rest, mut queries) = (said.as_slice(), Vec::new());
    while let Some(head) = header(rest).expect("a header") {
        let query = frontend::query(&rest[HEADER_BYTES..head.total]).expect("a query");
        queries.push(String::from_utf8(query.to_vec()).expect("UTF-8"));
        rest = &rest[head.total..];
    }
    queries
}

/// A copier that has asked for the one piece of a table.
fn asking(told: &mut Told) -> Copier {
    let mut copier = Copier::start("0003-1B-1");
    assert_eq!(
        asked(&mut copier),
        ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '0003-1B-1'"]
    );
    assert_eq!(copier.receive(&mut begun(), told), Ok(Step::Free(None)));
    let piece = Pieces::new(&[found(7, 5)], &Limits::default(), 150_000).take();
    copier.copy(piece.expect("a piece"), &source(7, "t"));
    assert_eq!(
        asked(&mut copier),
        ["COPY \"public\".\"t\" (\"id\", \"say \"\"it\"\"\") TO STDOUT"]
    );
    copier
}

const ROWS: [&[u8]; 6] = [
    b"1\tone\n",
    b"\\N\t\n",
    b"\\\\N\t\\\\.\n",
    b"a\\tb\\nc\\rd\\be\\vf\\fg\\\\\t\\\\\\\\N\n",
    "\u{e4}\t\u{1F600}\x01\n".as_bytes(),
    b"\t\\N\n",
];

const LINES: [&str; 6] = [
    "0: 1|one",
    "0: NULL|",
    r"0: \\N|\\.",
    r"0: a\tb\nc\rd\x08e\x0bf\x0cg\\|\\\\N",
    r"0: \xc3\xa4|\xf0\x9f\x98\x80\x01",
    "0: |NULL",
];

#[test]
fn rows_are_the_same_wherever_they_are_cut() {
    let bytes = copied(&ROWS, ROWS.len());
    let hear = |parts: &[&[u8]]| {
        let mut told = Told::default();
        let mut copier = asking(&mut told);
        let (mut received, mut last) = (Vec::new(), Step::Await);
        for part in parts {
            assert_eq!(last, Step::Await);
            received.extend_from_slice(part);
            last = copier.receive(&mut received, &mut told).expect("rows");
        }
        assert!(matches!(last, Step::Free(Some(_))), "{last:?}");
        assert!(received.is_empty());
        assert_eq!(told.lines, LINES);
    };
    hear(&[&bytes]);
    for cut in 1..bytes.len() {
        hear(&[&bytes[..cut], &bytes[cut..]]);
    }
    hear(&bytes.chunks(1).collect::<Vec<_>>());
}

#[test]
fn one_piece_comes_behind_the_other_until_it_is_over() {
    let mut told = Told::default();
    let mut copier = asking(&mut told);
    let notice = message(messages::tag::NOTICE, b"SNOTICE\0\0");
    let mut bytes = [notice, copied(&ROWS[..2], 2)].concat();
    let Ok(Step::Free(Some(first))) = copier.receive(&mut bytes, &mut told) else {
        panic!("no piece")
    };
    let mut pieces = Pieces::new(&[found(7, 5)], &Limits::default(), 150_000);
    assert_eq!(Some(&first), pieces.take().as_ref());
    let limits = Limits { piece_blocks: 2, ..Limits::default() };
    let mut pieces = Pieces::new(&[found(6, 0), found(7, 3)], &limits, 150_000);
    assert_eq!(pieces.count(), 3);
    pieces.take();
    copier.copy(pieces.take().expect("a piece"), &source(7, "t"));
    assert!(asked(&mut copier)[0].ends_with("ctid >= '(0,0)' AND ctid < '(2,0)') TO STDOUT"));
    let step = copier.receive(&mut copied(&ROWS[5..], 1), &mut told);
    assert!(matches!(step, Ok(Step::Free(Some(_)))), "{step:?}");
    assert_eq!(told.lines, ["0: 1|one", "0: NULL|", "1: |NULL"]);
    copier.end();
    assert_eq!(asked(&mut copier), ["COMMIT"]);
    let mut bytes = [complete("COMMIT"), ready(TxStatus::Idle)].concat();
    assert_eq!(copier.receive(&mut bytes, &mut told), Ok(Step::Over));
}

#[test]
fn what_copy_does_not_say_ends_it() {
    let data = |row: &[u8]| {
        let out = message(messages::tag::COPY_OUT, &[0, 0, 2, 0, 0, 0, 0]);
        [out, message(messages::tag::COPY_DATA, row)].concat()
    };
    let lost = |bytes: Vec<u8>, most: Option<usize>| {
        let mut told = Told { most, ..Told::default() };
        let mut copier = asking(&mut told);
        copier.receive(&mut bytes.clone(), &mut told).expect_err("an end")
    };
    for (bytes, why) in [
        (data(b"1\t2"), "a row without its end"),
        (data(b""), "a row without its end"),
        (data(b"1\t2\n3\t4\n"), "two rows in one message"),
        (data(b"1\n"), "a row of \"public\".\"t\" has other columns"),
        (data(b"1\t2\t3\n"), "a row of \"public\".\"t\" has other columns"),
        (data(b"1\t\\q\n"), "an escape that COPY does not write"),
        (data(b"1\t\\N\\\n"), "an escape that COPY does not write"),
        (copied(&ROWS[..2], 3), "COPY 2 rows of \"public\".\"t\" came of COPY 3"),
        (begun(), "an unexpected message 'C' (Asked)"),
        (ready(TxStatus::InTransaction), "an unexpected message 'Z' (Asked)"),
        (message(messages::tag::COPY_DATA, b"1\t2\n"), "an unexpected message 'd' (Asked)"),
        (
            error("42501", "permission denied for table t"),
            "\"public\".\"t\" can't be copied: ERROR 42501: permission denied for table t",
        ),
        (b"d\x7f\xff\xff\xff".to_vec(), "message too long: 2147483648, at most 1073741828"),
        (b"d\x20\0\0\0".to_vec(), "a row of more than 256 MB"),
        (b"d\0\0\0\0".to_vec(), "invalid length 0 of message 'd'"),
    ] {
        assert_eq!(lost(bytes, None), why);
    }
    assert_eq!(lost(copied(&ROWS, 6), Some(3)), "it is full");

    let mut copier = Copier::start("it's");
    assert!(asked(&mut copier)[0].ends_with("SNAPSHOT 'it''s'"));
    let mut bytes = error("22023", "invalid snapshot identifier");
    assert_eq!(
        copier.receive(&mut bytes, &mut Told::default()),
        Err("the snapshot can't be taken over: ERROR 22023: invalid snapshot identifier".to_owned())
    );
}

/// Every piece in order: its table, what it asks for behind WHERE, and the progress behind it.
fn cut(blocks: &[u32], piece_blocks: u32, version: u32) -> Vec<(usize, String, (u64, u64))> {
    let tables: Vec<Found> = blocks.iter().map(|blocks| found(7, *blocks)).collect();
    let limits = Limits { piece_blocks, ..Limits::default() };
    let mut pieces = Pieces::new(&tables, &limits, version);
    let mut all = Vec::new();
    let count = pieces.count();
    while let Some(piece) = pieces.take() {
        let mut told = Told::default();
        let mut copier = Copier::start("s");
        copier.receive(&mut begun(), &mut told).expect("a beginning");
        copier.out().clear();
        copier.copy(piece.clone(), &source(7, "t"));
        let sql = asked(&mut copier).remove(0);
        let place = sql.split_once(" WHERE ").map_or("", |(_, place)| place);
        let place = place.trim_end_matches(") TO STDOUT").to_owned();
        all.push((piece.table, place, pieces.done(&piece)));
    }
    assert_eq!(all.len(), count);
    all
}

#[test]
fn pieces_have_every_block_once() {
    let place = |text: &str| text.to_owned();
    assert_eq!(
        cut(&[0, 5, 4], 2, 140_000),
        [
            (0, place(""), (0, 0)),
            (1, place("ctid >= '(0,0)' AND ctid < '(2,0)'"), (2, 5)),
            (1, place("ctid >= '(2,0)' AND ctid < '(4,0)'"), (4, 5)),
            (1, place("ctid >= '(4,0)'"), (5, 5)),
            (2, place("ctid >= '(0,0)' AND ctid < '(2,0)'"), (2, 4)),
            (2, place("ctid >= '(2,0)'"), (4, 4)),
        ]
    );
    // Where a place is not looked up, every piece would read the whole table.
    assert_eq!(cut(&[5], 2, 139_999), [(0, place(""), (5, 5))]);
    assert_eq!(cut(&[3], 0, 150_000).len(), 3);
    let most = u32::MAX;
    assert_eq!(cut(&[most], most, 150_000), [(0, place(""), (most.into(), most.into()))]);
    assert_eq!(
        cut(&[most], most - 1, 150_000)[1],
        (0, place("ctid >= '(4294967294,0)'"), (most.into(), most.into()))
    );
    assert_eq!(cut(&[], 8, 150_000), []);
}

fn row(values: &[&str]) -> Row {
    Row::new(values.iter().map(|value| Some((*value).to_owned())).collect())
}

/// The answers of a server on which nothing has changed.
fn answers() -> [Vec<Row>; 3] {
    [
        vec![row(&["0003-1B-1", "10:12:10", "150003", "4096"])],
        vec![
            row(&["8", "public", "u", "r", "1008", "0", ""]),
            row(&["7", "public", "t", "r", "1007", "5", "3,1"]),
        ],
        vec![
            row(&["7", "1", "id", "23", "-1", "t", "0", "f"]),
            row(&["7", "2", "other", "23", "-1", "f", "0", "f"]),
            row(&["7", "3", "say \"it\"", "25", "-1", "f", "100", "f"]),
            row(&["8", "3", "say \"it\"", "1043", "24", "t", "100", "f"]),
            row(&["8", "1", "id", "20", "-1", "t", "0", "f"]),
        ],
    ]
}

fn hold(answers: [Vec<Row>; 3]) -> Result<Held, String> {
    let mut holder = Holder::new(vec![source(7, "t"), source(8, "u")])?;
    assert_eq!(
        holder.begin(),
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
         LOCK TABLE ONLY \"public\".\"t\", ONLY \"public\".\"u\" IN ACCESS SHARE MODE; \
         SELECT pg_export_snapshot(), pg_current_snapshot(), \
         current_setting('server_version_num'), pg_current_wal_insert_lsn() - '0/0'"
    );
    for answer in answers {
        if let Todo::Copy(held) = holder.answer(Ok(answer))? {
            return Ok(held);
        }
    }
    panic!("the snapshot is not held")
}

#[test]
fn the_snapshot_is_held_with_the_tables_that_were_asked_for() {
    let held = hold(answers()).expect("a snapshot");
    let column = |attnum, name: &str, type_oid, type_modifier, not_null, collation| FoundColumn {
        attnum,
        name: name.to_owned(),
        type_oid,
        type_modifier,
        not_null,
        collation,
    };
    let t = Found {
        oid: 7,
        filenode: 1007,
        blocks: 5,
        columns: vec![
            column(1, "id", 23, -1, true, 0),
            column(3, "say \"it\"", 25, -1, false, 100),
        ],
        identity: vec![3, 1],
    };
    let u = Found {
        oid: 8,
        filenode: 1008,
        blocks: 0,
        columns: vec![
            column(1, "id", 20, -1, true, 0),
            column(3, "say \"it\"", 1043, 24, true, 100),
        ],
        identity: Vec::new(),
    };
    let (name, snapshot) = ("0003-1B-1".to_owned(), "10:12:10".to_owned());
    assert_eq!(held, Held { name, snapshot, version: 150_003, lsn: 4096, tables: vec![t, u] });
}

#[test]
fn what_has_become_another_is_not_copied() {
    let changed = |step: usize, at: usize, now: &[&str]| {
        let mut answers = answers();
        match now {
            [] => drop(answers[step].remove(at)),
            now => answers[step][at] = row(now),
        }
        hold(answers).expect_err("a refusal")
    };
    let t = "\"public\".\"t\"";
    for (step, at, now, why) in [
        (1, 1, &[][..], format!("{t} is another table, or gone")),
        (
            1,
            1,
            &["7", "public", "v", "r", "1007", "5", ""],
            format!("{t} is another table, or gone"),
        ),
        (1, 1, &["7", "p", "t", "r", "1007", "5", ""], format!("{t} is another table, or gone")),
        (1, 1, &["7", "public", "t", "p", "1007", "5", ""], format!("{t} is no ordinary table")),
        (
            1,
            1,
            &["7", "public", "t", "r", "1009", "5", ""],
            format!("{t} was rewritten or emptied"),
        ),
        (2, 0, &[], format!("column \"id\" of {t} is another one, or gone")),
        (
            2,
            0,
            &["7", "1", "no", "23", "-1", "t", "0", "f"],
            format!("column \"id\" of {t} is another one, or gone"),
        ),
        (
            2,
            0,
            &["7", "1", "id", "23", "-1", "t", "0", "t"],
            format!("column \"id\" of {t} is generated, so its changes are not told"),
        ),
    ] {
        assert_eq!(changed(step, at, now), why);
    }
    assert_eq!(Holder::new(Vec::new()).err().as_deref(), Some("a copy of nothing"));
    let bare = Source { columns: Vec::new(), ..source(7, "t") };
    assert_eq!(Holder::new(vec![bare]).err().as_deref(), Some("a copy of nothing"));
    let many = vec![source(7, "t"); 257];
    assert_eq!(Holder::new(many).err().as_deref(), Some("a copy of more than 256 tables"));
}

fn refused(code: &str, message: &str) -> ServerError {
    let (severity, code) = ("ERROR".to_owned(), code.to_owned());
    ServerError { severity, code, message: message.to_owned(), detail: None, hint: None }
}

#[test]
fn it_gives_way_to_who_waits_for_longer_than_a_moment() {
    let mut holder = Holder::new(vec![source(7, "t"), source(8, "u")]).expect("a copy");
    assert!(holder.look().contains("l.relation IN (7, 8)"));
    let mut looked = |count: &str| holder.looked(Ok(vec![row(&[count])]));
    for count in ["0", "1", "0", "2", "0"] {
        looked(count).expect("no chance yet");
    }
    looked("1").expect("a moment");
    assert_eq!(
        looked("1"),
        Err("a statement that changes the table waits for the copy".to_owned())
    );
    let gone = refused("25P02", "current transaction is aborted");
    let why = holder.looked(Err(gone)).expect_err("a loss");
    assert_eq!(why, "the snapshot is held no more: ERROR 25P02: current transaction is aborted");
    holder.begin();
    let why = holder.answer(Err(refused("55P03", "no"))).expect_err("a refusal");
    assert_eq!(why, "the tables can't be locked: ERROR 55P03: no");
}
