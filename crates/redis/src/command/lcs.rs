//! LCS: the longest common subsequence of two strings.
//!
//! <https://redis.io/docs/latest/commands/lcs/>

use super::number::integer;
use crate::args::Args;
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::value::{Text, Value};

#[derive(Debug, Default)]
struct Options {
    len: bool,
    idx: bool,
    with_len: bool,
    /// Shorter matches are not told.
    least: i64,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Options, Failure> {
        let mut options = Options::default();
        let mut at = 0;
        while at < args.len() {
            match () {
                () if args.is(at, "idx") => options.idx = true,
                () if args.is(at, "len") => options.len = true,
                () if args.is(at, "withmatchlen") => options.with_len = true,
                () if args.is(at, "minmatchlen") && at + 1 < args.len() => {
                    options.least = integer(args.at(at + 1))?;
                    at += 1;
                }
                () => return Err(Failure::SYNTAX),
            }
            at += 1;
        }
        if options.len && options.idx {
            return Err(Failure::text(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

pub fn lcs(call: &mut Call<'_>) -> Outcome {
    let (a, b) = (text_of(call, 1), text_of(call, 2));
    let (a, b) = (a?, b?);
    let (Some(a), Some(b)) = (a, b) else {
        return Err(Failure::text("ERR The specified keys must contain string values"));
    };
    let options = Options::parse(call.args.from(3))?;
    // The memory that Redis takes for it, which is 32 bits for each pair of bytes.
    let cells = (a.len() as u64 + 1).checked_mul(b.len() as u64 + 1);
    let bytes = cells.and_then(|cells| cells.checked_mul(4));
    if bytes.is_none_or(|bytes| bytes > call.server.settings.proto_max_bulk_len as u64) {
        return Err(Failure::text(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let table = Table::new(&a, &b);
    if options.len {
        call.reply.integer(i64::from(table.len));
        return Ok(());
    }
    let (common, mut matches) = table.trace(&a);
    if !options.idx {
        call.reply.bulk(&common);
        return Ok(());
    }
    matches.retain(|found| found.len as i64 >= options.least);
    call.reply.map(2);
    call.reply.bulk(b"matches");
    call.reply.array(matches.len());
    for found in matches {
        call.reply.array(if options.with_len { 3 } else { 2 });
        for start in [found.a, found.b] {
            call.reply.array(2);
            call.reply.integer(start as i64);
            call.reply.integer((start + found.len - 1) as i64);
        }
        if options.with_len {
            call.reply.integer(found.len as i64);
        }
    }
    call.reply.bulk(b"len");
    call.reply.integer(i64::from(table.len));
    Ok(())
}

/// A key's string, empty when it does not exist; none when it is something else.
fn text_of(call: &mut Call<'_>, at: usize) -> Result<Option<Text>, Failure> {
    Ok(match call.keys.look(call.args.at(at))? {
        None => Some(Text::new()),
        Some(Value::Str(text)) => Some(text.text()),
        Some(_) => None,
    })
}

/// Equal bytes in both strings that follow one another, and where they begin.
struct Match {
    a: usize,
    b: usize,
    len: usize,
}

/// Which way the common subsequence goes from each pair of bytes: two bits a pair.
struct Table {
    ways: Vec<u8>,
    width: usize,
    height: usize,
    len: u32,
}

const BOTH: u8 = 0;
const LEFT_A: u8 = 1;
const LEFT_B: u8 = 2;

impl Table {
    fn new(a: &[u8], b: &[u8]) -> Table {
        let mut ways = vec![0u8; (a.len() * b.len()).div_ceil(4)];
        let mut above = vec![0u32; b.len() + 1];
        let mut cell = 0;
        for x in a {
            let (mut diagonal, mut left) = (0, 0);
            for (at, y) in b.iter().enumerate() {
                let over = above[at + 1];
                let (way, len) = match () {
                    () if x == y => (BOTH, diagonal + 1),
                    () if over > left => (LEFT_A, over),
                    () => (LEFT_B, left),
                };
                ways[cell / 4] |= way << (cell % 4 * 2);
                (diagonal, left, above[at + 1]) = (over, len, len);
                cell += 1;
            }
        }
        let len = above.last().copied().unwrap_or(0);
        Table { ways, width: b.len(), height: a.len(), len }
    }

    /// The subsequence, and its matches from the last to the first.
    fn trace(&self, a: &[u8]) -> (Vec<u8>, Vec<Match>) {
        let (mut i, mut j) = (self.height, self.width);
        let mut common = Vec::with_capacity(self.len as usize);
        let mut matches: Vec<Match> = Vec::new();
        while i > 0 && j > 0 {
            let cell = (i - 1) * self.width + j - 1;
            match self.ways[cell / 4] >> (cell % 4 * 2) & 3 {
                LEFT_A => i -= 1,
                LEFT_B => j -= 1,
                _ => {
                    (i, j) = (i - 1, j - 1);
                    common.push(a[i]);
                    match matches.last_mut() {
                        Some(last) if last.a == i + 1 && last.b == j + 1 => {
                            (last.a, last.b, last.len) = (i, j, last.len + 1);
                        }
                        _ => matches.push(Match { a: i, b: j, len: 1 }),
                    }
                }
            }
        }
        common.reverse();
        (common, matches)
    }
}
