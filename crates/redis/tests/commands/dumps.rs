//! DUMP and RESTORE: payloads of a redis-server, and payloads that are none.

use redis::args::Words;
use redis::rdb::{dump, restore, Refused};
use redis::value::stream::{decode_fields, ID_MAX};
use redis::value::Value;

use crate::rig::Rig;

/// What a redis-server 7.0 dumps, and what servers of other versions do; and the value, unordered
/// ones in order.
const PAYLOADS: &[(&str, &str, &str)] = &[
    (
        "a small integer",
        "00c0fb0a0049c4c6f4d7263f68",
        "-5",
    ),
    (
        "an integer of two bytes",
        "00c12c010a00954261f265825c10",
        "300",
    ),
    (
        "an integer of four bytes",
        "00c2701101000a0001a408fe953095a5",
        "70000",
    ),
    (
        "a larger integer",
        "000d313039393531313632373737360a00dcd5c1feb95f4c57",
        "1099511627776",
    ),
    (
        "bytes",
        "00036100620a0057e523832ed1d7d8",
        "a\x00b",
    ),
    (
        "a compressed string",
        "00c30a405102616261e043010162630a00741c914583f6a4fb",
        "abababababababababababababababababababababababababababababababababababababababab\
         c",
    ),
    (
        "a list",
        "120102c33640751f750000000900816102816202dffb02c12c02f1881303f270110104f300008000\
         0105f4202002000001202502e04678e03c000148ff0a00f416760e6065d3a0",
        "a b -5 300 5000 70000 8388608 1099511627776 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ),
    (
        "a set of integers",
        "0b140400000003000000fdffffff01000000701101000a007b8d4dddaf2286d7",
        "-3 1 70000",
    ),
    (
        "a set in a table",
        "0203c001016201610a004467f0c6e2d12e5b",
        "1 a b",
    ),
    (
        "a hash",
        "10121200000004008166028176028167020c01ff0a00de133993f783817e",
        "f=v g=12",
    ),
    (
        "a hash in a table",
        "04010166c3094041017676e034000176760a003d71be523786cf45",
        "f=vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv",
    ),
    (
        "a sorted set",
        "11c32c3516350000000800816302842d696e660581640293302e3130e005000f3114816102010181\
         620283322e3504ff0a005eb3cbc453e672a3",
        "c=-inf d=0.1 a=1 b=2.5",
    ),
    (
        "a sorted set with a skip list",
        "0501c3094041016d6de03400016d6d000000000000f83f0a00f782f77e140ddf23",
        "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm=1.5",
    ),
    (
        "a hash in a zip list",
        "0d1b1b00000016000000040000026631040276310402663204027632ffff4f9cd1fd166998830900\
         d6780503e9df415b",
        "f1=v1 f2=v2",
    ),
    (
        "a sorted set in a zip list",
        "0c191900000016000000040000036f6e6505f2020374776f05f3ffff1fb2fdf0997f9e19090031cc\
         36ca998e8644",
        "one=1 two=2",
    ),
    (
        "a list of zip lists",
        "0e010d0d0000000a000000010000f8ff000178c007ff3572f8541ac4d74009007c760e540a4a250e",
        "7",
    ),
    (
        "a hash in a zip map",
        "0910020266310200763102663202007632ffff09003d8e4c656d788f7f",
        "f1=v1 f2=v2",
    ),
    (
        "a stream of Redis 7.2",
        "15011000000000000000010000000000000001c3404f409207920000001d00030140000781660200\
         010201002001038176020420120000200300024017088177028167020c0108200e0a0401dfff02f2\
         90eefe0404200d0006400d02e04678e03c0003480401ff0307000101010204020167050081ffffff\
         ffffffffff010000000000000005000000000000000048906401a2010000010203616e6e48906401\
         a201000048906401a201000001000000000000000500000000000000000469646c6549906401a201\
         0000ffffffffffffffff00046c617465070081ffffffffffffffff00000b00835c8c022f5d5a0b",
        "1-1 f=v\n5-0 f=-70000\n7-0 f=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n\
         Head { last: (7, 0), deleted: (1, 2), added: 4 }\n\
         g (5, 0) None [(5, 0) ann 1795319697480 1; \
         ann 1795319697480 Some(1795319697480) {(5, 0)}; idle 1795319697481 None {}]\n\
         late (7, 0) None []",
    ),
    (
        "a stream of Redis 7.2 without entries",
        "15000000000000000000010167030481ffffffffffffffff00000b0057cd46955f1369cc",
        "Head { last: (0, 0), deleted: (0, 0), added: 0 }\n\
         g (3, 4) None []",
    ),
    (
        "a stream of Redis 7.0",
        "13011000000000000000010000000000000001c3404f409207920000001d00030140000781660200\
         010201002001038176020420120000200300024017088177028167020c0108200e0a0401dfff02f2\
         90eefe0404200d0006400d02e04678e03c0003480401ff0307000101010204020167050081ffffff\
         ffffffffff010000000000000005000000000000000065846401a2010000010203616e6e65846401\
         a201000001000000000000000500000000000000000469646c6566846401a201000000046c617465\
         070081ffffffffffffffff00000a005096b224a1044526",
        "1-1 f=v\n5-0 f=-70000\n7-0 f=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n\
         Head { last: (7, 0), deleted: (1, 2), added: 4 }\n\
         g (5, 0) None [(5, 0) ann 1795319694437 1; \
         ann 1795319694437 Some(1795319694437) {(5, 0)}; idle 1795319694438 Some(1795319694438) {}]\n\
         late (7, 0) None []",
    ),
    (
        "a stream of Redis 6",
        "0f011000000000000000010000000000000001c3404f409207920000001d00030140000781660200\
         010201002001038176020420120000200300024017088177028167020c0108200e0a0401dfff02f2\
         90eefe0404200d0006400d02e04678e03c0003480401ff0307000201670500010000000000000005\
         000000000000000065846401a2010000010203616e6e65846401a201000001000000000000000500\
         000000000000000469646c6566846401a201000000046c617465070000000900ec1218a0095d3c6e",
        "1-1 f=v\n5-0 f=-70000\n7-0 f=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n\
         Head { last: (7, 0), deleted: (0, 0), added: 3 }\n\
         g (5, 0) None [(5, 0) ann 1795319694437 1; \
         ann 1795319694437 Some(1795319694437) {(5, 0)}; idle 1795319694438 Some(1795319694438) {}]\n\
         late (7, 0) Some(3) []",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn join(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    parts.collect::<Vec<_>>().join(&b' ')
}

fn shown(value: &Value) -> Vec<u8> {
    let sorted = |parts: &mut dyn Iterator<Item = Vec<u8>>| {
        let mut parts: Vec<_> = parts.collect();
        parts.sort();
        join(parts.into_iter())
    };
    match value {
        Value::Str(text) => text.text().to_vec(),
        Value::List(list) => join(list.iter().map(<[u8]>::to_vec)),
        Value::Set(set) => sorted(&mut set.iter().map(|member| member.to_vec())),
        Value::Hash(hash) => {
            sorted(&mut hash.iter().map(|(field, value)| [field, b"=", value].concat()))
        }
        Value::Zset(zset) => join(
            zset.iter()
                .map(|(member, score)| [member, b"=", score.to_string().as_bytes()].concat()),
        ),
        Value::Stream(stream) => {
            let entries = stream.range((0, 0), ID_MAX).map(|((ms, seq), fields)| {
                let words: Vec<_> = decode_fields(fields).map(<[u8]>::to_vec).collect();
                [format!("{ms}-{seq} ").into_bytes(), words.join(&b'=')].concat()
            });
            let mut parts: Vec<_> = entries.collect();
            parts.push(format!("{:?}", stream.head_now()).into_bytes());
            for (name, group) in stream.groups() {
                let pending = group.pending().iter().map(|(id, pending)| {
                    let owner = String::from_utf8_lossy(&pending.consumer);
                    format!("{id:?} {owner} {} {}", pending.delivered, pending.times)
                });
                let consumers = group.consumers().iter().map(|(name, consumer)| {
                    format!(
                        "{} {} {:?} {:?}",
                        String::from_utf8_lossy(name),
                        consumer.seen,
                        consumer.active,
                        consumer.pending
                    )
                });
                let parts_of: Vec<_> = pending.chain(consumers).collect();
                let name = String::from_utf8_lossy(name);
                let told =
                    format!("{name} {:?} {:?} [{}]", group.last, group.read, parts_of.join("; "));
                parts.push(told.into_bytes());
            }
            parts.join(&b'\n')
        }
    }
}

/// The body of a payload with a right footer.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut payload = body.to_vec();
    payload.extend_from_slice(&10u16.to_le_bytes());
    let mut sum = 0u64;
    for byte in &payload {
        sum ^= u64::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0x95ac_9329_ac4b_c9b5 } else { sum >> 1 };
        }
    }
    payload.extend_from_slice(&sum.to_le_bytes());
    payload
}

fn body(hex: &str) -> Vec<u8> {
    let payload = bytes(hex);
    payload[..payload.len() - 10].to_vec()
}

fn body_of(name: &str) -> Vec<u8> {
    let payload = PAYLOADS.iter().find(|(other, ..)| *other == name);
    body(payload.unwrap_or_else(|| panic!("no payload is {name}")).1)
}

#[test]
fn payloads_of_every_encoding_are_restored_and_dumped_again() {
    for (name, hex, expected) in PAYLOADS {
        let value = restore(&bytes(hex)).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        let text = String::from_utf8_lossy(&shown(&value)).into_owned();
        assert_eq!(text, *expected, "{name}");
        let again = restore(&dump(&value)).expect(name);
        assert_eq!(shown(&again), shown(&value), "{name}, dumped again");
    }
}

#[test]
fn a_set_in_a_list_pack_is_restored() {
    let mut set = body_of("a hash");
    set[0] = 20;
    assert_eq!(shown(&restore(&sealed(&set)).unwrap()), b"12 f g v");
}

#[test]
fn a_payload_that_was_tampered_with_is_refused() {
    let whole = bytes(PAYLOADS[6].1);
    for len in 0..whole.len() {
        assert_eq!(restore(&whole[..len]).err(), Some(Refused::Footer), "{len} bytes of it");
    }
    let mut later = whole.clone();
    let version = later.len() - 10;
    later[version] = 200;
    assert_eq!(restore(&later).err(), Some(Refused::Footer));
    // The footer is right and the rest is not a value.
    for name in ["a list", "a stream of Redis 7.2", "a stream of Redis 6"] {
        let body = body_of(name);
        for len in 0..body.len() {
            let refused = restore(&sealed(&body[..len])).err();
            assert_eq!(refused, Some(Refused::Format), "{name}: {len} bytes");
        }
    }
    let empty = [1, 0];
    assert_eq!(restore(&sealed(&empty)).err(), Some(Refused::Format), "no element");
    let twice = [2, 2, 1, b'a', 1, b'a'];
    assert_eq!(restore(&sealed(&twice)).err(), Some(Refused::Format), "a member twice");
    let nan = [&[5, 1, 1, b'a'][..], &f64::NAN.to_le_bytes()].concat();
    assert_eq!(restore(&sealed(&nan)).err(), Some(Refused::Format), "no score");
    let bomb = [&[0, 0xc3, 4, 0x81][..], &[0x7f; 8], &[0, 1, 2, 3]].concat();
    assert_eq!(restore(&sealed(&bomb)).err(), Some(Refused::Format), "endless");
}

/// Bytes are changed, put in and left out: whatever comes of it, nothing panics, and what is taken
/// for a value is one.
#[test]
fn no_payload_does_harm() {
    let mut noise = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (noise >> 33) as usize % below
    };
    let mut taken = 0;
    for round in 0..4_000 {
        let (name, hex, _) = PAYLOADS[round % PAYLOADS.len()];
        let mut body = body(hex);
        for _ in 0..=next(4) {
            let (at, byte) = (next(body.len().max(1)), [0, 1, 0x7f, 0x80, 0xfe, 0xff][next(6)]);
            match next(5) {
                0 => body.insert(at.min(body.len()), byte),
                1 if !body.is_empty() => drop(body.remove(at)),
                2 if !body.is_empty() => body[at] = body[at].wrapping_add(1),
                3 if !body.is_empty() => body[at] = next(256) as u8,
                _ if !body.is_empty() => body[at] = byte,
                _ => {}
            }
        }
        if let Ok(value) = restore(&sealed(&body)) {
            taken += 1;
            let again = restore(&dump(&value)).expect(name);
            assert_eq!(shown(&again), shown(&value), "{name}, round {round}");
        }
    }
    assert!(taken > 100, "{taken} of the payloads were still right");
}

fn restored(rig: &mut Rig, key: &str, hex: &str, options: &[&str]) -> String {
    let mut words: Words = ["RESTORE", key].into_iter().collect();
    words.push(options.first().map_or(b"0", |ttl| ttl.as_bytes()));
    words.push(&bytes(hex));
    options.iter().skip(1).for_each(|option| words.push(option.as_bytes()));
    let conn = rig.conn;
    rig.run_words(conn, &words)
}

#[test]
fn restore_minds_its_options() {
    let mut rig = Rig::new();
    let (five, list) = (PAYLOADS[0].1, PAYLOADS[6].1);
    assert_eq!(restored(&mut rig, "k", five, &[]), "OK");
    rig.reads("GET k", "\"-5\"");
    assert_eq!(restored(&mut rig, "k", five, &[]), "!BUSYKEY Target key name already exists.");
    assert_eq!(restored(&mut rig, "k", list, &["60000", "REPLACE"]), "OK");
    rig.reads("TYPE k", "list");
    rig.reads("PTTL k", "60000");
    let at = (rig.now + 5_000).to_string();
    assert_eq!(restored(&mut rig, "k", five, &[&at, "ABSTTL", "replace"]), "OK");
    rig.reads("PTTL k", "5000");
    assert_eq!(restored(&mut rig, "k", five, &["1", "ABSTTL", "REPLACE"]), "OK");
    rig.reads("EXISTS k", "0");
    assert_eq!(restored(&mut rig, "k", five, &["0", "IDLETIME", "90"]), "OK");
    rig.check("OBJECT IDLETIME k", "90");
    rig.pass(5_000);
    rig.check("OBJECT IDLETIME k", "95");
    rig.check("TOUCH k", "1");
    rig.check("OBJECT IDLETIME k", "0");
    let dumped = restored(&mut rig, "other", list, &[]);
    assert_eq!(dumped, "OK");
    rig.reads("DUMP nokey", "(nil)");
}
