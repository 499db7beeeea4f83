//! HSCAN, SSCAN and the like: their options and reply.
//!
//! Small collections are told in one go, as Redis tells its packed ones. A large one's cursor is
//! its table's (`value/table.rs`), which says why nothing that stays is left out.

use super::glob;
use super::number;
use crate::args::Args;
use crate::failure::Failure;
use crate::reply::Reply;

/// Elements told in one go when nothing else is said.
const COUNT: usize = 10;

pub struct Options<'a> {
    pub count: usize,
    pattern: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// From the words at `from` on.
    pub fn parse(args: Args<'a>, from: usize) -> Result<Options<'a>, Failure> {
        let mut options = Options { count: COUNT, pattern: None };
        let mut at = from;
        while at < args.len() {
            let value = args.get(at + 1).ok_or(Failure::SYNTAX)?;
            if args.is(at, "count") {
                let count = number::integer(value)?;
                options.count = usize::try_from(count).unwrap_or(0);
                if options.count == 0 {
                    return Err(Failure::SYNTAX);
                }
            } else if args.is(at, "match") {
                options.pattern = Some(value).filter(|pattern| *pattern != b"*");
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 2;
        }
        Ok(options)
    }

    /// For a collection that is told in one go.
    pub fn all(self) -> Options<'a> {
        Options { count: usize::MAX, ..self }
    }

    pub fn matches(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name, false))
    }
}

/// A cursor as `strtoul` reads it.
pub fn parse(word: &[u8]) -> Result<u64, Failure> {
    let invalid = Failure::text("ERR invalid cursor");
    let (negative, digits) = match word {
        [] => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with(['+', '-']));
    let number: u64 = text.and_then(|text| text.parse().ok()).ok_or(invalid)?;
    Ok(if negative { number.wrapping_neg() } else { number })
}

/// What there is to tell: the cursor to go on with, and elements.
pub fn tell<E: AsRef<[u8]>>(reply: &mut dyn Reply, cursor: u64, elements: &[E]) {
    reply.array(2);
    reply.bulk(cursor.to_string().as_bytes());
    reply.array(elements.len());
    elements.iter().for_each(|element| reply.bulk(element.as_ref()));
}
