//! The statements that the simulated PostgreSQL knows.

use wire::pg::backend::{self as reply, tag as say, Column, ErrorReply};

use crate::ledger::Deed;
use crate::postgres::{
    failure, frame_into, plain, set, After, CopyIn, Outcome, Portal, Postgres, Transaction,
};

impl Postgres {
    pub(crate) fn row_description(&mut self) {
        let column = Column { name: "answer", oid: 25, size: -1, format: 0 };
        reply::put_row_description(&mut self.held, &[column]);
    }

    /// The language. A mark is any word; in quotes it is a constant, and `$1` stands for a value
    /// bound. What a statement says of itself is its text with all of those in their places, so
    /// a constant that was made a parameter changes nothing.
    /// ```text
    /// echo MARK              one row: the text, and the values bound that it does not name
    /// rows N MARK            N such rows
    /// big N MARK             one row of N bytes
    /// show NAME              one row
    /// sleep MICROS MARK      no row, later
    /// fail MARK | later MARK an error now | at the commit
    /// notice MARK            a NOTICE
    /// write MICROS MARK      a row that is written; first it waits for a lock so long
    /// alter MARK             changes definitions
    /// set NAME VALUE | reset NAME | reset all
    /// begin | commit | rollback
    /// copyin MARK | copyout N MARK
    /// copyearly MARK         a COPY that fails before it has read anything
    /// deallocate NAME | deallocate all | discard all
    /// ```
    pub(crate) fn statement(&mut self, portal: &mut Portal, limit: usize, simple: bool) -> Outcome {
        let query = plain(&portal.text, &portal.values);
        let words: Vec<&str> = query.split_whitespace().collect();
        let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
        let complete = |out: &mut Vec<u8>, tag: &str| reply::put_command_complete(out, tag);
        match lower.first().map_or("", String::as_str) {
            "" => reply::put_empty_query(&mut self.held),
            "echo" => {
                reply::put_data_row(&mut self.held, &[Some(query.as_bytes())]);
                complete(&mut self.held, "SELECT 1");
            }
            "rows" => {
                let count = number(1).unwrap_or(0);
                while portal.sent < count {
                    let row = format!("{} {query}", portal.sent);
                    reply::put_data_row(&mut self.held, &[Some(row.as_bytes())]);
                    portal.sent += 1;
                    if limit > 0 && portal.sent % limit == 0 && portal.sent < count {
                        reply::put_portal_suspended(&mut self.held);
                        return Outcome::Suspended;
                    }
                }
                complete(&mut self.held, &format!("SELECT {count}"));
            }
            "big" => {
                let row: Vec<u8> =
                    query.bytes().cycle().take(number(1).unwrap_or(0)).collect::<Vec<_>>();
                reply::put_data_row(&mut self.held, &[Some(&row)]);
                complete(&mut self.held, "SELECT 1");
            }
            "show" => {
                let value = self.value(words.get(1).unwrap_or(&"")).unwrap_or("").to_owned();
                reply::put_data_row(&mut self.held, &[Some(value.as_bytes())]);
                complete(&mut self.held, "SHOW");
            }
            "sleep" => return Outcome::Sleeps(number(1).unwrap_or(0) as u64, After::NoRow),
            "fail" => {
                self.error("22012", &query, simple);
                return Outcome::Failed;
            }
            "later" => {
                self.deferred = Some(query.clone());
                self.wrote(query);
            }
            "write" => return self.write(number(1).unwrap_or(0) as u64, query),
            "alter" => complete(&mut self.held, "ALTER TABLE"),
            "notice" => {
                reply::put_notice(
                    &mut self.held,
                    &ErrorReply { severity: "NOTICE", ..failure("00000", &query) },
                );
                complete(&mut self.held, "SELECT 0");
            }
            "set" => {
                let value: Vec<&str> = words.iter().skip(2).copied().collect();
                let value = value.strip_prefix(&["="]).unwrap_or(&value).join(" ");
                set(&mut self.values, words.get(1).unwrap_or(&""), &value);
                complete(&mut self.held, "SET");
            }
            "reset" => {
                self.reset(words.get(1).unwrap_or(&""));
                complete(&mut self.held, "RESET");
            }
            "select" => return self.select(&portal.text, &portal.values, simple),
            "begin" | "commit" | "rollback" => return self.transaction(&lower[0], simple),
            "copyin" => {
                frame_into(&mut self.held, say::COPY_IN, &[0, 0, 1, 0, 0]);
                self.flush();
                self.copy = Some(CopyIn { simple, rows: 0 });
                return Outcome::Copies;
            }
            "copyearly" => {
                frame_into(&mut self.held, say::COPY_IN, &[0, 0, 1, 0, 0]);
                self.error("P0001", &query, simple);
                return Outcome::Failed;
            }
            "copyout" => {
                frame_into(&mut self.held, say::COPY_OUT, &[0, 0, 1, 0, 0]);
                let count = number(1).unwrap_or(0);
                for row in 0..count {
                    let row = format!("{row} {query}\n");
                    frame_into(&mut self.held, say::COPY_DATA, row.as_bytes());
                }
                frame_into(&mut self.held, say::COPY_DONE, b"");
                complete(&mut self.held, &format!("COPY {count}"));
            }
            "deallocate" | "discard" => return self.deallocate(&words, simple),
            other => panic!("the server was sent a statement \"{other}\""),
        }
        Outcome::Done
    }

    /// The pooler's own: settings, and the end of a train of writes.
    fn select(&mut self, text: &str, values: &[String], simple: bool) -> Outcome {
        if text.contains("pg_logical_emit_message(true") {
            self.emitted = true;
        }
        for pair in values.chunks(2) {
            if pair[1] == "invalid" {
                let message = format!("invalid value for parameter \"{}\"", pair[0]);
                self.error("22023", &message, simple);
                return Outcome::Failed;
            }
            set(&mut self.values, &pair[0], &pair[1]);
        }
        reply::put_command_complete(&mut self.held, "SELECT 1");
        Outcome::Done
    }

    fn write(&mut self, lock: u64, mark: String) -> Outcome {
        let limit = self.value("lock_timeout").and_then(|limit| limit.parse::<u64>().ok());
        match limit.map(|millis| millis * 1_000).filter(|limit| *limit > 0 && *limit < lock) {
            Some(limit) => Outcome::Sleeps(limit, After::LockTimeout),
            None if lock > 0 => Outcome::Sleeps(lock, After::Wrote(mark)),
            None => {
                self.wrote(mark);
                Outcome::Done
            }
        }
    }

    /// A row has been written, and will be there when the transaction commits.
    pub(crate) fn wrote(&mut self, mark: String) {
        self.writes.push(mark.clone());
        self.deeds.push(Deed::Wrote(mark));
        reply::put_command_complete(&mut self.held, "INSERT 0 1");
    }

    fn transaction(&mut self, word: &str, simple: bool) -> Outcome {
        let mut answer = word.to_ascii_uppercase();
        let inside = matches!(self.transaction, Transaction::Block | Transaction::Failed);
        if inside == (word == "begin") {
            let message = if inside {
                "there is already a transaction in progress"
            } else {
                "there is no transaction in progress"
            };
            reply::put_notice(
                &mut self.held,
                &ErrorReply { severity: "WARNING", ..failure("25001", message) },
            );
        }
        match (word, self.transaction) {
            ("begin", Transaction::Failed) => unreachable!("refused before"),
            ("begin", _) => self.transaction = Transaction::Block,
            ("commit", Transaction::Failed) => {
                answer = "ROLLBACK".to_owned();
                self.roll_back();
            }
            ("commit", _) => {
                if let Some(mark) = self.deferred.take() {
                    self.transaction = Transaction::Implicit;
                    self.error("23503", &format!("deferred {mark}"), simple);
                    return Outcome::Failed;
                }
                self.end();
            }
            _ => self.roll_back(),
        }
        reply::put_command_complete(&mut self.held, &answer);
        Outcome::Done
    }

    fn deallocate(&mut self, words: &[&str], simple: bool) -> Outcome {
        let what = words.get(1).unwrap_or(&"").to_ascii_lowercase();
        if words[0].eq_ignore_ascii_case("discard") {
            if self.transaction == Transaction::Block {
                let message = "DISCARD ALL cannot run inside a transaction block";
                self.error("25001", message, simple);
                return Outcome::Failed;
            }
            self.statements.clear();
            self.portals.clear();
            self.reset("all");
            reply::put_command_complete(&mut self.held, "DISCARD ALL");
        } else if what == "all" {
            self.statements.retain(|name, _| name.is_empty());
            reply::put_command_complete(&mut self.held, "DEALLOCATE ALL");
        } else if self.statements.remove(what.as_bytes()).is_some() {
            reply::put_command_complete(&mut self.held, "DEALLOCATE");
        } else {
            let message = format!("prepared statement \"{what}\" does not exist");
            self.error("26000", &message, simple);
            return Outcome::Failed;
        }
        Outcome::Done
    }

    fn reset(&mut self, name: &str) {
        if name.eq_ignore_ascii_case("all") {
            self.values = self.session.clone();
            return;
        }
        let session = self.session.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        match session {
            Some((name, value)) => drop(self.values.insert(name.clone(), value.clone())),
            None => self.values.retain(|known, _| !known.eq_ignore_ascii_case(name)),
        }
    }
}
