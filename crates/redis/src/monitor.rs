//! MONITOR: every command of every connection, told to those who want to see them.
//!
//! A command is shown when it has run, which may be before it is committed, with those that it has
//! run itself: EXEC's before it, a script's behind it, as Redis shows them. What a unit shows is
//! kept until it ends, because one that has to wait runs again from its beginning.
//!
//! Source: Redis 7.2, `replication.c` (`replicationFeedMonitors`), `sds.c` (`sdscatrepr`).

use std::fmt::Write;
use std::sync::Arc;

use crate::args::Args;
use crate::reply::{Recorded, Reply};
use crate::session::ConnId;

/// Of a line; a longer one says how much is missing.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Of the lines of one unit. Nobody who reads them one by one would keep up with more.
const UNIT_BYTES_MAX: usize = 32 << 20;

/// What stands for a secret.
pub const REDACTED: &[u8] = b"(redacted)";

/// Who monitors, and what is to be told them.
#[derive(Debug, Default)]
pub struct Monitors {
    conns: Vec<ConnId>,
    lines: Vec<Arc<Recorded>>,
    bytes: usize,
}

impl Monitors {
    pub fn is_empty(&self) -> bool {
        self.conns.is_empty()
    }

    pub fn add(&mut self, conn: ConnId) {
        self.conns.push(conn);
    }

    pub fn remove(&mut self, conn: ConnId) {
        self.conns.retain(|other| *other != conn);
    }

    /// A command has run. `from`: an address, or `lua`. `at`: microseconds since 1970.
    pub fn show(&mut self, at: i64, db: u16, from: &str, args: Args<'_>) {
        if self.is_empty() || self.is_overrun() {
            return;
        }
        let mut line = format!("{}.{:06} [{db} {from}]", at / 1_000_000, at % 1_000_000);
        for (number, word) in args.iter().enumerate() {
            let room = LINE_BYTES_MAX.saturating_sub(line.len());
            if room == 0 {
                let _ = write!(line, " ... ({} more arguments)", args.len() - number);
                break;
            }
            line.push(' ');
            quote(&mut line, &word[..word.len().min(room)]);
            if word.len() > room {
                let _ = write!(line, "... ({} more bytes)", word.len() - room);
            }
        }
        self.bytes += line.len();
        let mut message = Recorded::new(2);
        message.simple(&line);
        self.lines.push(Arc::new(message));
    }

    /// The unit has shown more than anybody is told.
    fn is_overrun(&self) -> bool {
        self.bytes > UNIT_BYTES_MAX
    }

    /// The unit will run again.
    pub fn forget(&mut self) {
        self.lines.clear();
        self.bytes = 0;
    }

    /// What is to be told to whom; none to those that have to be closed, for they can't be told all.
    pub fn take(&mut self) -> (Vec<ConnId>, Option<Vec<Arc<Recorded>>>) {
        let overrun = self.is_overrun();
        let lines = std::mem::take(&mut self.lines);
        self.bytes = 0;
        let conns = if lines.is_empty() { Vec::new() } else { self.conns.clone() };
        (conns, (!overrun).then_some(lines))
    }
}

fn quote(line: &mut String, word: &[u8]) {
    line.push('"');
    for byte in word {
        match byte {
            b'\\' | b'"' => {
                line.push('\\');
                line.push(char::from(*byte));
            }
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            7 => line.push_str("\\a"),
            8 => line.push_str("\\b"),
            b' '..=b'~' => line.push(char::from(*byte)),
            _ => {
                let _ = write!(line, "\\x{byte:02x}");
            }
        }
    }
    line.push('"');
}
