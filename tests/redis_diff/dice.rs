//! Chance, and the words that commands are made of.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub struct Dice {
    chance: StdRng,
    /// The last entry of a stream, more or less: new ones have to be later.
    entry: usize,
}

/// Numbers at which something changes. None lies between a million and 2^32: as an offset it
/// would make both servers allocate hundreds of megabytes.
const BOUNDARIES: &[&str] = &[
    "-9223372036854775809",
    "-9223372036854775808",
    "-9223372036854775807",
    "-9007199254740993",
    "-4294967297",
    "-1",
    "0",
    "1",
    "10",
    "4294967296",
    "9007199254740993",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
];

/// Numbers that are none, or that some parsers take and others do not.
const ODD_NUMBERS: &[&str] = &[
    "", "-", "+1", "01", "-0", "1.5", "0x10", "1e3", " 1", "1 ", "1\n", "one", "1\0", "nan", "inf",
    "-inf", "1e400", "1e-400", "(1", "[1", "--1", "٣",
];

const FLOATS: &[&str] = &[
    "0",
    "-0",
    "0.1",
    "0.2",
    "-0.3",
    "1.5",
    "3.0",
    "10.25",
    "1e3",
    "5.0e3",
    "1e17",
    "1e-7",
    "1e21",
    "123456789.123456789",
    "0.30000000000000004",
    "3.141592653589793238",
    "1e308",
    "4.9e-324",
    "inf",
    "-inf",
    "+inf",
    "nan",
    "1e400",
    "0x1p3",
    "",
    "abc",
    "1 ",
    " 1",
    "9007199254740993",
];

const SCORES: &[&str] = &[
    "0",
    "1",
    "1",
    "2",
    "2",
    "3",
    "-1",
    "1.5",
    "2.5",
    "-0",
    "100",
    "1e5",
    "inf",
    "-inf",
    "1e17",
    "0.1",
    "3.0000001",
    "1e-7",
    "123456789012345",
];

const SCORE_BOUNDS: &[&str] =
    &["-inf", "+inf", "inf", "0", "1", "(1", "2", "(2", "3", "(3", "1.5", "-1", "100", "((1", "x"];

const LEX_BOUNDS: &[&str] =
    &["-", "+", "[m1", "(m1", "[m2", "(m3", "[m5", "[a", "(z", "[", "(", "m1", "++", "[m"];

const PATTERNS: &[&str] = &[
    "*", "s*", "?1", "[sh]1", "[^s]*", "[a-l]?", "k\\*", "h[1-3]", "", "**", "*1", "m*", "f?",
    "\\", "[", "[a", "x[]1]", "*[0-9]*", "nothing",
];

/// Times so long that no round sees their end, or over already.
const SECONDS: &[&str] = &["1000", "5000", "100000", "12345678"];
const SECONDS_OVER: &[&str] = &["0", "-1", "-1000"];
const SECONDS_BAD: &[&str] =
    &["9223372036854775807", "-9223372036854775808", "9223372036854775", "x", "", "1.5", "1e9"];

const TYPES: &[&str] = &["string", "hash", "list", "set", "zset", "stream", "STRING", "nothing"];

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice { chance: StdRng::seed_from_u64(seed), entry: 1 }
    }

    /// From 0 to `end`, without it.
    pub fn below(&mut self, end: usize) -> usize {
        self.chance.random_range(0..end)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// What stands for `name` in a template.
    ///
    /// Panics for a name that no template may use.
    pub fn word(&mut self, name: &str) -> Vec<u8> {
        match name {
            "s" | "h" | "l" | "e" | "z" | "x" => self.key(name),
            "any" => {
                let kind = self.pick(&["s", "h", "l", "e", "z", "x"]);
                self.key(kind)
            }
            "pf" => self.pick(&["pf1", "pf2", "pf3"]).into(),
            "v" => self.value(),
            "n" => self.number(),
            "i" => (self.below(11) as i64 - 5).to_string().into(),
            "c" => self.below(5).to_string().into(),
            "cnt" => self.pick(&["0", "1", "2", "3", "-1", "-2", "-5", "10", "x"]).into(),
            "f" => format!("f{}", self.below(6)).into(),
            "m" => format!("m{}", self.below(7)).into(),
            "fl" => self.pick(FLOATS).into(),
            "sc" if self.chance(4) => self.pick(ODD_NUMBERS).into(),
            "sc" => self.pick(SCORES).into(),
            "g" => self.pick(SCORE_BOUNDS).into(),
            "lex" => self.pick(LEX_BOUNDS).into(),
            "b" if self.chance(4) => self.pick(&["2", "-1", "x"]).into(),
            "b" => self.pick(&["0", "1"]).into(),
            "off" if self.chance(5) => self.pick(&["-1", "4294967296", "x", "1.0"]).into(),
            "off" => self.below(70).to_string().into(),
            "bt" => {
                self.pick(&["u8", "i8", "u3", "i5", "u16", "i64", "u63", "u64", "i0", "x"]).into()
            }
            "bo" => self.pick(&["0", "1", "7", "13", "#0", "#1", "#3", "-1", "#x", "x"]).into(),
            "p" => self.pick(PATTERNS).into(),
            "db" if self.chance(5) => self.pick(&["16", "-1", "x", "10000000000"]).into(),
            "db" => self.pick(&["0", "0", "0", "1", "2"]).into(),
            "type" => self.pick(TYPES).into(),
            "id" => self.stream_id(),
            "nid" => {
                self.entry += self.below(2);
                let sequence = self.below(9);
                format!("{}-{sequence}", self.entry).into()
            }
            // Without the entry of that id.
            "xid" => [b"(".to_vec(), self.stream_id()].concat(),
            "grp" => self.pick(&["g1", "g1", "g1", "g1", "g2", "g3"]).into(),
            "con" => self.pick(&["c1", "c1", "c2"]).into(),
            _ => self.time(name),
        }
    }

    fn time(&mut self, name: &str) -> Vec<u8> {
        let thousand = name.starts_with('p');
        let text = match name {
            "ttl" | "pttl" | "at" | "pat" => match self.below(20) {
                0 => return self.pick(SECONDS_BAD).into(),
                1 | 2 => self.pick(SECONDS_OVER),
                _ => self.pick(SECONDS),
            },
            _ => panic!("no template may use <{name}>"),
        };
        let mut seconds: i64 = text.parse().expect("a number of the tables");
        if name.ends_with("at") && seconds > 0 {
            // The year 2100 and later.
            seconds += 4_102_444_800;
        }
        (if thousand { seconds * 1000 } else { seconds }).to_string().into()
    }

    /// Mostly a key of that kind, sometimes one that may have another type.
    fn key(&mut self, kind: &str) -> Vec<u8> {
        let kind = if self.chance(8) { self.pick(&["s", "h", "l", "e", "z", "x"]) } else { kind };
        match self.below(30) {
            0 => format!("{kind}\0\u{00ff}").into(),
            1 => [kind.as_bytes(), b"\xff\xfe\r\n"].concat(),
            2 => format!("{kind} with blanks").into(),
            // The streams are fewer: their groups come to something only with entries.
            _ if kind == "x" => format!("x{}", 1 + self.below(2)).into(),
            _ => format!("{kind}{}", 1 + self.below(3)).into(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        match self.below(20) {
            0 => Vec::new(),
            1 => b"\0\xff\r\n\xc3\x28".to_vec(),
            2 => vec![b'x'; 300],
            3 => (0..=255).cycle().take(5000).collect(),
            4 => self.pick(FLOATS).into(),
            5 => self.pick(ODD_NUMBERS).into(),
            6..=10 => self.number(),
            _ => format!("v{}", self.below(12)).into(),
        }
    }

    fn number(&mut self) -> Vec<u8> {
        match self.below(12) {
            0 => self.pick(BOUNDARIES).into(),
            1 => self.pick(ODD_NUMBERS).into(),
            _ => (self.below(40) as i64 - 10).to_string().into(),
        }
    }

    /// What takes the place of any word.
    pub fn junk(&mut self) -> Vec<u8> {
        match self.below(4) {
            0 => self.pick(BOUNDARIES).into(),
            1 => self.pick(ODD_NUMBERS).into(),
            2 => self.value(),
            _ => self
                .pick(&[
                    "NX",
                    "XX",
                    "GT",
                    "LT",
                    "CH",
                    "GET",
                    "LIMIT",
                    "COUNT",
                    "WITHSCORES",
                    "KEEPTTL",
                ])
                .into(),
        }
    }

    fn stream_id(&mut self) -> Vec<u8> {
        let later = self.entry + 1;
        match self.below(24) {
            0 => self.pick(&["0", "0-0", "18446744073709551615-18446744073709551615"]).into(),
            1 => self.pick(&["x", "", "1-", "-1", "1-2-3", "18446744073709551616", "1-x"]).into(),
            2..=6 => (1 + self.below(later)).to_string().into(),
            7 => format!("{}-*", 1 + self.below(later + 1)).into(),
            _ => format!("{}-{}", 1 + self.below(later), self.below(4)).into(),
        }
    }
}
