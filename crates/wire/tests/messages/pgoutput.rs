//! Changes as `pgoutput` writes them: "Logical Replication Message Formats".

use wire::pg::pgoutput::{
    message, put, Field, Message, Oids, Old, Prepared, Relation, RelationColumn, Tuple,
};
use wire::pg::WireError;

const TIME: i64 = 0x0102_0304_0506_0708;

/// Numbers as they are in a message: `u8`, `u16`, `u32`, `u64` by their suffix, and bytes.
macro_rules! bytes {
    ($($part:expr),* $(,)?) => {{
        let mut out: Vec<u8> = Vec::new();
        $(out.extend_from_slice(&$part.raw());)*
        out
    }};
}

trait Raw {
    fn raw(&self) -> Vec<u8>;
}

macro_rules! raw {
    ($($number:ty),*) => {$(impl Raw for $number {
        fn raw(&self) -> Vec<u8> { self.to_be_bytes().to_vec() }
    })*};
}

raw!(u8, u16, u32, u64, i32, i64);

impl Raw for &str {
    fn raw(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

/// `data` is this message, in both directions, and no part of it is any message.
#[track_caller]
fn same(data: &[u8], streamed: bool, expected: Message<'_>) {
    assert_eq!(message(data, streamed).as_ref(), Ok(&expected));
    let mut out = b"before".to_vec();
    put(&mut out, &expected);
    assert_eq!(out[6..], *data);
    for end in 0..data.len() {
        let cut = message(&data[..end], streamed);
        let shorter = matches!(cut, Ok(Message::StreamAbort { place: None, .. }));
        assert!(cut.is_err() || shorter, "cut at {end}: {cut:?}");
    }
    let more = message(&[data, b"\0"].concat(), streamed).expect_err("one byte more");
    let within = matches!(more, WireError::Truncated(_));
    assert!(within || more == WireError::Trailing("a change"), "{more}");
}

fn accounts() -> Relation {
    let column = |name: &str, type_oid, modifier, key| {
        let name = name.to_owned();
        RelationColumn { name, type_oid, modifier, key }
    };
    Relation {
        oid: 16385,
        schema: "public".to_owned(),
        name: "accounts".to_owned(),
        identity: b'd',
        columns: vec![column("id", 23, -1, true), column("sum", 1700, 655_366, false)],
    }
}

fn accounts_bytes() -> Vec<u8> {
    bytes![
        16385u32,
        "public\0accounts\0d",
        2u16,
        1u8,
        "id\0",
        23u32,
        -1i32,
        0u8,
        "sum\0",
        1700u32,
        655_366i32,
    ]
}

#[test]
fn a_transaction_begins_and_ends() {
    let begin = bytes!["B", 64u64, TIME, 741u32];
    same(&begin, false, Message::Begin { commit: 64, time: TIME, xid: 741 });
    let commit = bytes!["C", 0u8, 64u64, 96u64, TIME];
    same(&commit, false, Message::Commit { commit: 64, end: 96, time: TIME });
    same(&bytes!["O", 7u64, "there\0"], false, Message::Origin { commit: 7, name: b"there" });
    let flagged = bytes!["C", 1u8, 64u64, 96u64, TIME];
    assert_eq!(message(&flagged, false), Err(WireError::Unexpected { what: "flags", got: 1 }));
}

#[test]
fn relations_types_and_messages_alone_and_streamed() {
    let relation = accounts_bytes();
    same(
        &[b"R", &relation[..]].concat(),
        false,
        Message::Relation { xid: None, relation: accounts() },
    );
    same(
        &[&bytes!["R", 5u32][..], &relation].concat(),
        true,
        Message::Relation { xid: Some(5), relation: accounts() },
    );
    let of_type = |xid| Message::Type { xid, oid: 16400, schema: b"public", name: b"mood" };
    same(&bytes!["Y", 16400u32, "public\0mood\0"], false, of_type(None));
    same(&bytes!["Y", 5u32, 16400u32, "public\0mood\0"], true, of_type(Some(5)));
    let emitted = |xid| {
        let (prefix, content) = (&b"app"[..], &b"hello"[..]);
        Message::Emitted { xid, transactional: true, at: 9, prefix, content }
    };
    same(&bytes!["M", 1u8, 9u64, "app\0", 5u32, "hello"], false, emitted(None));
    same(&bytes!["M", 5u32, 1u8, 9u64, "app\0", 5u32, "hello"], true, emitted(Some(5)));
}

#[test]
fn a_name_that_is_not_utf8_is_kept_as_far_as_it_goes() {
    let relation = [&bytes!["R", 1u32][..], b"\xe4\0b\xff\0d\0\0"].concat();
    let Ok(Message::Relation { relation, .. }) = message(&relation, false) else {
        panic!("a relation");
    };
    assert_eq!((relation.schema.as_str(), relation.name.as_str()), ("\u{fffd}", "b\u{fffd}"));
}

#[test]
fn rows_with_every_kind_of_field() {
    let row = bytes![4u16, "n", "u", "t", 2u32, "42", "t", 0u32];
    let tuple = Tuple::parse(&row).expect("a row");
    let fields = [Field::Null, Field::Unchanged, Field::Text(b"42"), Field::Text(b"")];
    assert_eq!(tuple.fields().collect::<Vec<_>>(), fields);
    assert_eq!(tuple.columns(), 4);
    let key = bytes![1u16, "t", 1u32, "7"];
    let old = Tuple::parse(&key).expect("a row");
    for (streamed, xid) in [(false, None), (true, Some(743u32))] {
        let head = |kind: &str| {
            let mut out = kind.as_bytes().to_vec();
            out.extend(xid.iter().flat_map(|xid| xid.to_be_bytes()));
            out.extend(16385u32.to_be_bytes());
            out
        };
        let relation = 16385;
        let insert = [&head("I")[..], b"N", &row].concat();
        same(&insert, streamed, Message::Insert { xid, relation, new: tuple });
        for (kind, old) in [("", Old::Unknown), ("K", Old::Key(old)), ("O", Old::Whole(old))] {
            let before = if kind.is_empty() { &[][..] } else { &key };
            let update = [&head("U")[..], kind.as_bytes(), before, b"N", &row].concat();
            same(&update, streamed, Message::Update { xid, relation, old, new: tuple });
        }
        for (kind, old) in [("K", Old::Key(old)), ("O", Old::Whole(old))] {
            let delete = [&head("D")[..], kind.as_bytes(), &key].concat();
            same(&delete, streamed, Message::Delete { xid, relation, old });
        }
    }
    let unknown = |got: u8| Err(WireError::Unexpected { what: "kind of a row", got: got.into() });
    assert_eq!(message(&[&bytes!["I", 1u32, "K"][..], &row].concat(), false), unknown(b'K'));
    assert_eq!(message(&[&bytes!["D", 1u32, "N"][..], &row].concat(), false), unknown(b'N'));
    let binary = bytes!["I", 1u32, "N", 1u16, "b", 1u32, "x"];
    let what = "kind of a column";
    assert_eq!(message(&binary, false), Err(WireError::Unexpected { what, got: b'b'.into() }));
}

#[test]
fn truncate_names_all_relations_at_once() {
    let oids = bytes![16385u32, 16390u32];
    let relations = Oids::of(&oids).expect("whole numbers");
    assert_eq!(relations.iter().collect::<Vec<_>>(), [16385, 16390]);
    let alone = bytes!["T", 2u32, 3u8, 16385u32, 16390u32];
    same(&alone, false, Message::Truncate { xid: None, options: 3, relations });
    let streamed = bytes!["T", 5u32, 2u32, 3u8, 16385u32, 16390u32];
    same(&streamed, true, Message::Truncate { xid: Some(5), options: 3, relations });
    assert_eq!(Oids::of(&oids[1..]), None);
    let many = bytes!["T", u32::MAX, 0u8, 16385u32];
    assert!(message(&many, false).is_err());
}

#[test]
fn parts_of_transactions_that_are_still_running() {
    same(&bytes!["S", 741u32, 1u8], false, Message::StreamStart { xid: 741, first: true });
    same(&bytes!["S", 741u32, 0u8], true, Message::StreamStart { xid: 741, first: false });
    same(b"E", true, Message::StreamStop);
    let commit = bytes!["c", 741u32, 0u8, 64u64, 96u64, TIME];
    same(&commit, false, Message::StreamCommit { xid: 741, commit: 64, end: 96, time: TIME });
    let abort = bytes!["A", 741u32, 743u32];
    same(&abort, false, Message::StreamAbort { xid: 741, sub: 743, place: None });
    let parallel = bytes!["A", 741u32, 743u32, 64u64, TIME];
    let place = Some((64, TIME));
    same(&parallel, false, Message::StreamAbort { xid: 741, sub: 743, place });
}

#[test]
fn two_phases() {
    let prepared = Prepared { at: 64, end: 96, time: TIME, xid: 741, gid: b"gid" };
    let rest = bytes![64u64, 96u64, TIME, 741u32, "gid\0"];
    let with = |head: &[u8]| [head, &rest].concat();
    same(&with(b"b"), false, Message::BeginPrepare(prepared));
    same(&with(b"P\0"), false, Message::Prepare(prepared));
    same(&with(b"K\0"), false, Message::CommitPrepared(prepared));
    same(&with(b"p\0"), false, Message::StreamPrepare(prepared));
    let rollback = bytes!["r", 0u8, 64u64, 96u64, TIME, 9i64, 741u32, "gid\0"];
    same(&rollback, false, Message::RollbackPrepared { prepared, rolled_back: 9 });
}

#[test]
fn nothing_else_is_a_change() {
    assert_eq!(message(b"", false), Err(WireError::Truncated("kind of a change")));
    let what = "kind of a change";
    for kind in (0..=u8::MAX).filter(|kind| !b"BCOMRYIUDTSEcAbPKrp".contains(kind)) {
        assert_eq!(message(&[kind], true), Err(WireError::Unexpected { what, got: kind.into() }));
    }
}
