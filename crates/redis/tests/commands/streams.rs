//! Streams.

use std::collections::BTreeMap;

use redis::random::Random;
use redis::value::group::Group;
use redis::value::stream::{decode_fields, encode_fields, Head, Id, ID_MAX};
use redis::value::{Stream, Tracked};

use crate::rig::{Rig, Tables};
use crate::transcript;

#[test]
fn commands_of_streams_reply_as_redis_does() {
    transcript::check(include_str!("transcripts/streams.txt"));
}

#[test]
fn an_id_of_now_is_made_and_never_goes_back() {
    let mut rig = Rig::new();
    rig.check("XADD s * a 1", "\"1700000000000-0\"");
    rig.check("XADD s * a 1", "\"1700000000000-1\"");
    rig.now -= 5_000;
    rig.check("XADD s * a 1", "\"1700000000000-2\"");
    rig.pass(5_007);
    rig.check("XADD s * a 1", "\"1700000000007-0\"");
    rig.reads("XLEN s", "4");
}

#[test]
fn about_so_many_are_kept_by_whole_nodes() {
    let mut rig = Rig::new();
    for n in 1..=250 {
        rig.run(&format!("XADD s {n} a 1"));
    }
    rig.check("XTRIM s MAXLEN ~ 151", "0");
    rig.check("XTRIM s MAXLEN ~ 10 LIMIT 50", "0");
    rig.check("XTRIM s MAXLEN ~ 10", "200");
    rig.check("XTRIM s MINID ~ 249", "0");
    rig.check("XTRIM s MINID 249", "48");
    rig.reads("XRANGE s - +", "[[\"249-0\" [\"a\" \"1\"]] [\"250-0\" [\"a\" \"1\"]]]");
    // The last node may go though it is not full.
    rig.check("XTRIM s MAXLEN ~ 0", "2");
    // A node of which a part is gone is as long as what is left of it.
    for n in 1..=1000 {
        rig.run(&format!("XADD t {n} a 1"));
    }
    rig.check("XTRIM t MAXLEN 555", "445");
    rig.check("XTRIM t MAXLEN ~ 444", "55");
    rig.check("CONFIG SET stream-node-max-entries 2", "OK");
    rig.check("XTRIM t MAXLEN ~ 0 LIMIT 1", "0");
    rig.check("XTRIM t MAXLEN ~ 0 LIMIT 3", "2");
    rig.check("CONFIG SET stream-node-max-entries 0", "OK");
    rig.check("XTRIM t MAXLEN ~ 1", "0");
    rig.check("XTRIM t MAXLEN ~ 0", "498");
}

#[test]
fn keys_that_are_awaited_in_groups_are_counted() {
    let mut rig = Rig::new();
    let (one, two) = (rig.client(), rig.client());
    rig.run_as(one, "BLPOP s 0");
    let info = |rig: &mut Rig, all: &str, in_groups: &str| {
        let info = rig.run("INFO clients");
        let fields = [format!("_keys:{all}"), format!("_on_nokey:{in_groups}")];
        assert!(fields.iter().all(|field| info.contains(field)), "{info}");
    };
    info(&mut rig, "1", "0");
    rig.check("XGROUP CREATE s g $ MKSTREAM", "OK");
    rig.run_as(two, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
    info(&mut rig, "1", "1");
    rig.check("DEL s", "1");
    info(&mut rig, "1", "0");
}

#[test]
fn a_blocked_reader_gets_what_comes_behind_where_the_stream_was() {
    let mut rig = Rig::new();
    let (one, two) = (rig.client(), rig.client());
    rig.check("XADD s 1-0 a 1", "\"1-0\"");
    assert_eq!(rig.run_as(one, "XREAD BLOCK 0 STREAMS none s 0 $"), "");
    assert_eq!(rig.run_as(two, "XREAD BLOCK 500 STREAMS s 9-0"), "");
    rig.check("XADD s 2-0 b 2", "\"2-0\"");
    assert_eq!(rig.told(one), ["[[\"s\" [[\"2-0\" [\"b\" \"2\"]]]]]"]);
    assert_eq!(rig.told(two), Vec::<String>::new());
    rig.pass(600);
    assert_eq!(rig.told(two), ["(nil array)"]);
    assert_eq!(rig.run_as(one, "XREAD BLOCK 0 STREAMS other $"), "");
    rig.check("XADD other 1-0 a 1", "\"1-0\"");
    assert_eq!(rig.told(one), ["[[\"other\" [[\"1-0\" [\"a\" \"1\"]]]]]"]);
}

#[test]
fn blocked_consumers_share_what_comes_and_are_told_when_their_group_goes() {
    let mut rig = Rig::new();
    let (one, two) = (rig.client(), rig.client());
    rig.check("XGROUP CREATE s g $ MKSTREAM", "OK");
    assert_eq!(rig.run_as(one, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >"), "");
    assert_eq!(rig.run_as(two, "XREADGROUP GROUP g b BLOCK 0 STREAMS s >"), "");
    rig.check("XADD s 1-0 f v", "\"1-0\"");
    assert_eq!(rig.told(one), ["[[\"s\" [[\"1-0\" [\"f\" \"v\"]]]]]"]);
    assert_eq!(rig.told(two), Vec::<String>::new());
    rig.check("XADD s 2-0 f v", "\"2-0\"");
    assert_eq!(rig.told(two), ["[[\"s\" [[\"2-0\" [\"f\" \"v\"]]]]]"]);
    rig.reads("XPENDING s g", "[2 \"1-0\" \"2-0\" [[\"a\" \"1\"] [\"b\" \"1\"]]]");
    assert_eq!(rig.run_as(one, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >"), "");
    rig.check("XGROUP DESTROY s g", "1");
    let said = "!NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
    assert_eq!(rig.told(one), [said]);
    rig.check("XGROUP CREATE s g $", "OK");
    assert_eq!(rig.run_as(one, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >"), "");
    rig.check("DEL s", "1");
    assert_eq!(rig.told(one), [said]);
    rig.check("XGROUP CREATE s g $ MKSTREAM", "OK");
    assert_eq!(rig.run_as(one, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >"), "");
    assert_eq!(rig.run_as(two, "XREAD BLOCK 0 STREAMS s $"), "");
    rig.check("SET s text", "OK");
    let wrong = "!WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(rig.told(one), [wrong]);
    assert_eq!(rig.told(two), Vec::<String>::new());
    rig.check("DEL s", "1");
    rig.check("XADD s 1-0 f v", "\"1-0\"");
    assert_eq!(rig.told(two), ["[[\"s\" [[\"1-0\" [\"f\" \"v\"]]]]]"]);
}

#[test]
fn consumers_are_described_with_what_they_did_and_when() {
    let mut rig = Rig::new();
    rig.engine.session(rig.conn).unwrap().protocol = 3;
    rig.check("XADD s 1-0 f v", "\"1-0\"");
    rig.check("XGROUP CREATE s g 0", "OK");
    rig.check("XGROUP CREATECONSUMER s g idle", "1");
    rig.pass(100);
    rig.check("XREADGROUP GROUP g c STREAMS s >", "{\"s\" [[\"1-0\" [\"f\" \"v\"]]]}");
    rig.pass(50);
    rig.check("XREADGROUP GROUP g c STREAMS s >", "(nil array)");
    rig.pass(7);
    rig.reads(
        "XINFO CONSUMERS s g",
        "[{\"name\" \"c\" \"pending\" 1 \"idle\" 7 \"inactive\" 57} \
         {\"name\" \"idle\" \"pending\" 0 \"idle\" 157 \"inactive\" -1}]",
    );
    rig.reads("XPENDING s g IDLE 57 - + 5", "[[\"1-0\" \"c\" 57 1]]");
    rig.reads("XPENDING s g IDLE 58 - + 5", "[]");
    rig.check("XCLAIM s g d 58 1-0", "[]");
    rig.check("XCLAIM s g d 57 1-0 JUSTID", "[\"1-0\"]");
    rig.reads(
        "XINFO STREAM s FULL COUNT 1",
        "{\"length\" 1 \"radix-tree-keys\" 1 \"radix-tree-nodes\" 2 \"last-generated-id\" \
         \"1-0\" \"max-deleted-entry-id\" \"0-0\" \"entries-added\" 1 \
         \"recorded-first-entry-id\" \"1-0\" \"entries\" [[\"1-0\" [\"f\" \"v\"]]] \"groups\" \
         [{\"name\" \"g\" \"last-delivered-id\" \"1-0\" \"entries-read\" 1 \"lag\" 0 \
         \"pel-count\" 1 \"pending\" [[\"1-0\" \"d\" 1700000000157 1]] \"consumers\" [{\"name\" \
         \"c\" \"seen-time\" 1700000000150 \"active-time\" 1700000000100 \"pel-count\" 0 \
         \"pending\" []} {\"name\" \"d\" \"seen-time\" 1700000000157 \"active-time\" \
         1700000000157 \"pel-count\" 1 \"pending\" [[\"1-0\" 1700000000157 1]]} {\"name\" \
         \"idle\" \"seen-time\" 1700000000000 \"active-time\" -1 \"pel-count\" 0 \"pending\" \
         []}]}]}",
    );
}

/// What a stream is made of, for comparison.
#[derive(Debug, Clone, PartialEq)]
struct Model {
    entries: BTreeMap<Id, Vec<Vec<u8>>>,
    head: Head,
    groups: BTreeMap<Vec<u8>, Group>,
}

fn model(stream: &Stream) -> Model {
    let entries = stream.range((0, 0), ID_MAX);
    let groups = stream.groups().map(|(name, group)| (name.to_vec(), group.clone()));
    Model {
        entries: entries
            .map(|(id, fields)| (id, decode_fields(fields).map(<[u8]>::to_vec).collect()))
            .collect(),
        head: stream.head_now(),
        groups: groups.collect(),
    }
}

fn reload(stream: &mut Stream, tables: &mut Tables) -> Stream {
    stream.drain(tables);
    let head = stream.head().unwrap();
    let entries = tables.stream.iter().map(|((_, ms, seq), fields)| ((*ms, *seq), &fields[..]));
    let groups = tables.group.iter().map(|((_, name), state)| (&name[..], &state[..]));
    Stream::load(7, &head, entries, groups)
}

fn change(stream: &mut Stream, random: &mut Random) {
    let (name, consumer) = ([random.below(3) as u8], [random.below(4) as u8]);
    let last = stream.head_now().last;
    match random.below(10) {
        0..=3 => {
            let words = [&b"field"[..], &name, b"", &[0xff, 0]];
            stream.append(
                (last.0 + random.below(3) as u64, last.1 + 1),
                encode_fields(words.into_iter()),
            );
        }
        4 => {
            stream.delete((random.below(last.0 as usize + 1) as u64, last.1));
        }
        5 => stream.trim(random.below(4)),
        6 if stream.group(&name).is_none() => stream.add_group(&name, Group::new(last, None)),
        6 if random.below(4) == 0 => {
            stream.remove_group(&name);
        }
        7 => stream.set_head(Head { added: last.1 + 100, ..stream.head_now() }),
        _ => {
            if let Some(group) = stream.group_mut(&name) {
                let id = (random.below(5) as u64, 0);
                group.saw(&consumer, random.below(1_000) as i64);
                match random.below(4) {
                    0 => {
                        group.settle(id);
                    }
                    1 => {
                        group.remove_consumer(&consumer);
                    }
                    _ => group.assign(id, &consumer, 5, random.below(9) as u64),
                }
            }
        }
    }
}

#[test]
fn a_stream_is_what_its_rows_say_and_what_it_was_when_undone() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let (mut stream, mut tables) = (Stream::default(), Tables::default());
        stream.set_kid(7);
        for _ in 0..150 {
            (0..random.below(8)).for_each(|_| change(&mut stream, &mut random));
            let before = model(&stream);
            stream.remember();
            (0..random.below(8)).for_each(|_| change(&mut stream, &mut random));
            if random.below(2) == 0 {
                stream.undo();
                assert_eq!(model(&stream), before, "seed {seed}");
            } else {
                stream.keep();
            }
            let again = reload(&mut stream, &mut tables);
            assert_eq!(model(&again), model(&stream), "seed {seed}");
            assert_eq!(again.weight(), stream.weight());
            if random.below(2) == 0 {
                stream = again;
            }
        }
    }
}
