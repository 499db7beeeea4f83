//! Keyspace notifications: which kinds of events are told, and on which channels.
//!
//! <https://redis.io/docs/latest/develop/use/keyspace-notifications/>

use std::fmt;

/// The letters of `notify-keyspace-events` in the order in which it is printed; the classes that
/// `A` stands for come first.
const LETTERS: &[u8] = b"g$lshzxetdnKEm";

/// How many of them `A` stands for: all up to `d`.
const ALL: u32 = (1 << 10) - 1;

/// Classes of events and kinds of channels, as CONFIG SET notify-keyspace-events takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notify(u32);

impl Notify {
    pub fn parse(letters: &[u8]) -> Option<Notify> {
        let mut all = 0;
        for letter in letters {
            all |= match letter {
                b'A' => ALL,
                other => bit(*other)?,
            };
        }
        Some(Notify(all))
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether events of this class are told on some channel.
    pub fn tells(self, class: u8) -> bool {
        let class = bit(class).unwrap_or(0);
        self.0 & class != 0 && (self.by_key() || self.by_event())
    }

    /// On `__keyspace@<db>__:<key>`.
    pub fn by_key(self) -> bool {
        self.0 & bit(b'K').unwrap_or(0) != 0
    }

    /// On `__keyevent@<db>__:<event>`.
    pub fn by_event(self) -> bool {
        self.0 & bit(b'E').unwrap_or(0) != 0
    }
}

fn bit(letter: u8) -> Option<u32> {
    LETTERS.iter().position(|other| *other == letter).map(|at| 1 << at)
}

impl fmt::Display for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0 & ALL == ALL;
        if all {
            f.write_str("A")?;
        }
        for (at, letter) in LETTERS.iter().enumerate() {
            // Behind `A`, Redis prints no class, be it one that `A` does not stand for.
            let hidden = all && at <= 10;
            if self.0 & (1 << at) != 0 && !hidden {
                write!(f, "{}", *letter as char)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_printed_as_redis_does() {
        for (given, printed) in
            [("", ""), ("KA", "AK"), ("Kg$lshzxetd", "AK"), ("nA", "A"), ("Elgx", "glxE")]
        {
            let parsed = Notify::parse(given.as_bytes()).expect(given);
            assert_eq!(parsed.to_string(), printed);
        }
        assert_eq!(Notify::parse(b"Kq"), None);
        assert!(Notify::parse(b"Kx").expect("valid").tells(b'x'));
        assert!(!Notify::parse(b"x").expect("valid").tells(b'x'), "no channel");
    }
}
