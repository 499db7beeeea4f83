//! The statements that the simulated PostgreSQL knows.

use wire::pg::backend::{self as reply, tag as say, Column, ErrorReply};

use crate::data::cell::{show, Cell};
use crate::data::read::{is_read, tables, Form, Read};
use crate::data::{Change, Row, STARTED};
use crate::ledger::Deed;
use crate::postgres::{
    failure, frame_into, plain, set, After, Asked, CopyIn, Other, Outcome, Portal, Postgres,
    Transaction, REPORTED, UNKNOWN,
};

/// A write that waits so long for a lock may be undone.
pub const CLASHES: usize = 7;

/// What a session listens to is among its values, under such names: it is undone as they are.
pub(crate) const CHANNEL: &str = "channel ";

/// So are its temporary tables.
const TEMPORARY: &str = "temporary ";

/// And the names of what is set in the session, also to what it was before.
const SET: &str = "set ";

fn mark_of(name: &str) -> String {
    format!("{SET}{}", name.to_ascii_lowercase())
}

impl Postgres {
    pub(crate) fn row_description(&mut self, query: &str, format: i16) {
        let words: Vec<&str> = query.split_whitespace().collect();
        let columns = match is_read(query) {
            true => Read::parse(&words).columns(format),
            false => vec![Column { name: "answer", oid: 25, size: -1, format }],
        };
        reply::put_row_description(&mut self.held, &columns);
    }

    /// A plan that does not fit any more, as `RevalidateCachedQuery` says it.
    pub(crate) fn refuse_plan(&mut self) {
        let body = b"SERROR\0VERROR\0C0A000\0Mcached plan must not change result type\0\
                     RRevalidateCachedQuery\0\0";
        frame_into(&mut self.held, say::ERROR, body);
        self.failed(false);
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
    /// look .. | lookz ..     one row: what is found; see [`Read`]
    /// find .. | count ..     rows: the same in columns
    /// put T KEY GROUP MARK   a row of a table is written, or of each
    /// del T KEY MARK         and deleted
    /// become other           names mean something else from now on
    /// set NAME VALUE | reset NAME | reset all
    /// listen NAME | unlisten NAME | unlisten *
    /// create temp NAME | drop temp NAME
    /// channels MARK          one row: what it listens to
    /// begin | commit | rollback
    /// copyin MARK | copyout N MARK
    /// copyearly MARK         a COPY that fails before it has read anything
    /// deallocate NAME | deallocate all | discard all
    /// ```
    pub(crate) fn statement(&mut self, portal: &mut Portal, limit: usize, simple: bool) -> Outcome {
        let surveys = ["pg_settings", "pg_listening_channels", "pg_cursors", "pg_depend"];
        if surveys.iter().any(|part| portal.text.contains(&format!("pg_catalog.{part}"))) {
            self.survey(&portal.text);
            return Outcome::Done;
        }
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
            "write" if number(1) == Some(CLASHES) && self.clashes(&query) => {
                self.error("40001", "could not serialize access", simple);
                return Outcome::Failed;
            }
            "write" => return self.write(number(1).unwrap_or(0) as u64, query),
            "alter" => {
                self.change(Change::Define);
                self.writes.push(query);
                complete(&mut self.held, "ALTER TABLE");
            }
            "look" | "lookz" | "find" | "count" => self.look(&Read::parse(&words), portal.format),
            "put" | "del" => {
                let (key, group) = (number(2).unwrap_or(0) as i32, number(3).unwrap_or(0) as i32);
                for table in tables(words.get(1).unwrap_or(&"")) {
                    let mark = words.get(4).unwrap_or(&"").to_string();
                    self.change(match words[0] {
                        "put" => Change::Put { table, key, row: Row { group, mark } },
                        _ => Change::Delete { table, key },
                    });
                }
                self.wrote(query);
            }
            "become" => {
                self.became = true;
                self.made_other |= self.transaction == Transaction::Block;
                set(&mut self.values, "search_path", "other");
                complete(&mut self.held, "SET");
            }
            "notice" => {
                reply::put_notice(
                    &mut self.held,
                    &ErrorReply { severity: "NOTICE", ..failure("00000", &query) },
                );
                complete(&mut self.held, "SELECT 0");
            }
            "set" if lower.get(1).is_some_and(|word| word == "local") => {
                let (name, value) = (words[2].to_owned(), words[4].to_owned());
                let old = self.value(&name).map(str::to_owned);
                set(&mut self.values, &name, &value);
                self.local.push((name, old));
                complete(&mut self.held, "SET");
            }
            "set" => {
                let value: Vec<&str> = words.iter().skip(2).copied().collect();
                let value = value.strip_prefix(&["="]).unwrap_or(&value).join(" ");
                self.set_for_good(words.get(1).unwrap_or(&""), &value);
                complete(&mut self.held, "SET");
            }
            "listen" => {
                let name = format!("{CHANNEL}{}", words.get(1).unwrap_or(&"").trim_matches('"'));
                set(&mut self.values, &name, "");
                complete(&mut self.held, "LISTEN");
            }
            "unlisten" if words.get(1) == Some(&"*") => {
                self.values.retain(|name, _| !name.starts_with(CHANNEL));
                complete(&mut self.held, "UNLISTEN");
            }
            "create" | "drop" => {
                let name = format!("{TEMPORARY}{}", words.get(2).unwrap_or(&""));
                match &*lower[0] {
                    "create" => set(&mut self.values, &name, ""),
                    _ => drop(self.values.remove(&name)),
                }
                complete(&mut self.held, &format!("{} TABLE", lower[0].to_ascii_uppercase()));
            }
            "unlisten" => {
                let name = format!("{CHANNEL}{}", words.get(1).unwrap_or(&""));
                self.values.remove(&name);
                complete(&mut self.held, "UNLISTEN");
            }
            "channels" => {
                let all = self.values.keys().filter_map(|name| name.strip_prefix(CHANNEL));
                let row = format!("{query}: {}", all.collect::<Vec<_>>().join(" "));
                reply::put_data_row(&mut self.held, &[Some(row.as_bytes())]);
                complete(&mut self.held, "SELECT 1");
            }
            "reset" => {
                self.reset(words.get(1).unwrap_or(&"").trim_matches('"'));
                complete(&mut self.held, "RESET");
            }
            "select" => return self.select(&portal.text, &portal.values, simple),
            "rollback" if lower.get(1).is_some_and(|word| word == "to") => {
                self.error("3B001", "savepoint does not exist", simple);
                return Outcome::Failed;
            }
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
        if let (Some(data), true) = (&self.data, text.contains("pg_current_snapshot()")) {
            let (snapshot, end) = data.borrow_mut().pulse();
            let (end, started) = (end.to_be_bytes(), STARTED.to_be_bytes());
            let row = [Some(snapshot.as_bytes()), Some(&end[..]), Some(&started[..])];
            reply::put_data_row(&mut self.held, &row);
            reply::put_command_complete(&mut self.held, "SELECT 1");
            return Outcome::Done;
        }
        if text.contains("pg_logical_emit_message(true") {
            self.emitted = true;
        }
        for pair in values.chunks(2) {
            if pair[1] == "invalid" {
                let message = format!("invalid value for parameter \"{}\"", pair[0]);
                self.error("22023", &message, simple);
                return Outcome::Failed;
            }
            self.set_for_good(&pair[0], &pair[1]);
        }
        reply::put_command_complete(&mut self.held, "SELECT 1");
        Outcome::Done
    }

    fn set_for_good(&mut self, name: &str, value: &str) {
        set(&mut self.values, name, value);
        self.values.insert(mark_of(name), String::new());
    }

    /// The pooler's own: what is set.
    fn survey(&mut self, text: &str) {
        let reported =
            |name: &str| REPORTED.iter().any(|(known, _)| name.eq_ignore_ascii_case(known));
        let is_set = |pair: &(&String, &String)| {
            !reported(pair.0) || self.values.contains_key(&mark_of(pair.0))
        };
        for (name, value) in self.values.iter().filter(is_set) {
            if name.starts_with(SET) {
                continue;
            } else if let Some(table) = name.strip_prefix(TEMPORARY) {
                if text.contains("pg_catalog.pg_depend") {
                    let row = [Some("temporary".as_bytes()), Some(table.as_bytes()), None];
                    reply::put_data_row(&mut self.held, &row);
                }
            } else if let Some(channel) = name.strip_prefix(CHANNEL) {
                if text.contains("'l'::pg_catalog.text") {
                    let name: String = channel.bytes().map(|byte| format!("{byte:02x}")).collect();
                    reply::put_data_row(&mut self.held, &[Some(b"l"), Some(name.as_bytes()), None]);
                } else if text.contains("pg_catalog.pg_listening_channels") {
                    let row = [Some("listen".as_bytes()), Some(channel.as_bytes()), None];
                    reply::put_data_row(&mut self.held, &row);
                }
            } else if text.contains("pg_catalog.pg_settings") {
                let row = ["s", name, value].map(|field| Some(field.as_bytes()));
                reply::put_data_row(&mut self.held, &row);
            }
        }
        if text.contains("pg_catalog.pg_prepared_statements") {
            let own = |name: &&Vec<u8>| !name.is_empty() && !name.starts_with(b"pondage_");
            for name in self.statements.keys().filter(own) {
                reply::put_data_row(&mut self.held, &[Some(b"p"), Some(name), None]);
            }
        }
        reply::put_command_complete(&mut self.held, "SELECT");
    }

    fn change(&mut self, change: Change) {
        if let Some(data) = &self.data {
            let mut data = data.borrow_mut();
            let xid = *self.xid.get_or_insert_with(|| data.begin());
            data.change(xid, change);
        } else {
            self.changes.push(change);
        }
    }

    fn look(&mut self, read: &Read, format: i16) {
        let shows = match read.zone {
            true => format!("{}|", self.value("TimeZone").unwrap_or("")),
            false => String::new(),
        };
        let other = self.value("search_path") == Some("other");
        let rows = match &self.data {
            _ if other && self.data.is_some() => vec![read.other()],
            Some(data) => {
                let (rows, defined) = data.borrow().look(read, self.xid);
                match read.form {
                    Form::Text => {
                        let found = show(&rows);
                        vec![vec![Cell::Text(format!("{shows}d{defined}|{found}"))]]
                    }
                    Form::Rows | Form::Sums => rows,
                }
            }
            None => {
                let other = match (other, self.made_other) {
                    (false, _) => Other::No,
                    // Nobody has seen it, so it stays with the server.
                    (true, false) if self.became => Other::Maybe,
                    (true, _) => Other::Yes,
                };
                let own = self.changes.clone();
                let (read, message) = (read.clone(), self.taken - 1);
                self.asked.push_back(Asked { read, shows, own, other, format, message });
                vec![vec![Cell::Text(UNKNOWN.to_owned())]]
            }
        };
        for row in &rows {
            let fields: Vec<_> = row.iter().map(|cell| cell.bytes(format)).collect();
            let fields: Vec<_> = fields.iter().map(Option::as_deref).collect();
            reply::put_data_row(&mut self.held, &fields);
        }
        reply::put_command_complete(&mut self.held, &format!("SELECT {}", rows.len()));
    }

    /// Whether this write comes to nothing because of what others did at the same time: on each
    /// server once, and where a client's own server has to do as another did.
    fn clashes(&mut self, mark: &str) -> bool {
        let again = std::mem::take(&mut self.clash_next);
        again || self.clashes.as_mut().is_some_and(|known| known.insert(mark.to_owned()))
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
        self.values.remove(&mark_of(name));
        let session = self.session.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        match session {
            Some((name, value)) => drop(self.values.insert(name.clone(), value.clone())),
            None => self.values.retain(|known, _| !known.eq_ignore_ascii_case(name)),
        }
    }
}
