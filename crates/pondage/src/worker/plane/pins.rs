//! What a client has in its session that can't be taken to another server pins it to its own:
//! temporary tables, cursors WITH HOLD, what it listens to, advisory locks, libraries.
//!
//! What there is, PostgreSQL is asked for, as for settings (`surveying.rs`): when a text may have
//! made such a thing, or, of a pinned client, ended one. While there is anything, the server stays
//! lent, as in session mode; when nothing is left, it goes on to others. Nobody can say whether a
//! library is loaded: that is told by the tag of LOAD, and such a server is closed behind its client.
//!
//! Source: PostgreSQL docs, "pg_depend", "pg_cursors", "pg_locks", "Session Information Functions".

use backend::moment::Moment;
use sql::{Deeds, Kept};
use wire::pg::backend::TxStatus;
use wire::pg::sqlstate;

use super::surveying::Touched;
use super::{Plane, Preparing, ServerConn};
use crate::session::login::Refused;
use crate::worker::snapshot::PinSnapshot;

/// Things of one kind that are named.
const NAMED_MAX: usize = 20;

/// Why a client keeps its server, and since when.
#[derive(Debug)]
pub struct Pinned {
    reasons: Vec<Reason>,
    /// What PostgreSQL was asked for without an answer.
    pub unsure: Kept,
    since: Moment,
}

/// One thing that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    kind: Kept,
    name: Box<str>,
}

/// Kinds, their words in answers and metrics, how one of them is named, and the question.
const KINDS: [(Kept, &str, &str, &str); 5] = [
    (
        Kept::TEMPORARY,
        "temporary",
        "temporary ",
        "pg_catalog.pg_describe_object(classid, objid, 0) AS thing FROM pg_catalog.pg_depend \
         WHERE refclassid = 2615 AND refobjid = pg_catalog.pg_my_temp_schema()",
    ),
    (
        Kept::CURSORS,
        "cursor",
        "cursor ",
        "name AS thing FROM pg_catalog.pg_cursors WHERE is_holdable",
    ),
    (Kept::CHANNELS, "listen", "LISTEN ", "pg_catalog.pg_listening_channels() AS thing"),
    (
        Kept::LOCKS,
        "lock",
        "advisory lock ",
        // Outside of a transaction all of them are the session's.
        "CASE WHEN objsubid = 1 \
           THEN ((classid::pg_catalog.int8 << 32) | objid::pg_catalog.int8)::pg_catalog.text \
           ELSE pg_catalog.format('(%s, %s)', classid::pg_catalog.int4, objid::pg_catalog.int4) \
         END AS thing FROM pg_catalog.pg_locks \
         WHERE locktype = 'advisory' AND granted AND pid = pg_catalog.pg_backend_pid() \
         ORDER BY classid, objid",
    ),
    (Kept::LIBRARIES, "library", "LOAD", ""),
];

/// The word for what PostgreSQL did not tell.
const UNKNOWN: &str = "unknown";

/// The words of all reasons.
pub const REASONS: [&str; 6] = ["temporary", "cursor", "listen", "lock", "library", UNKNOWN];

impl Reason {
    /// A row of the answer.
    pub fn of(kind: &str, name: &str) -> Option<Reason> {
        let known = KINDS.iter().find(|(_, word, ..)| *word == kind)?;
        Some(Reason { kind: known.0, name: name.into() })
    }

    /// Its word and a text for people.
    fn told(&self) -> (&'static str, String) {
        match KINDS.iter().find(|(kind, ..)| *kind == self.kind) {
            Some((_, word, before, _)) => (word, format!("{before}{}", self.name)),
            None => (UNKNOWN, UNKNOWN.to_owned()),
        }
    }
}

impl Pinned {
    fn told(&self) -> Vec<(&'static str, String)> {
        let unsure = (!self.unsure.is_nothing()).then(|| (UNKNOWN, UNKNOWN.to_owned()));
        self.reasons.iter().map(Reason::told).chain(unsure).collect()
    }

    fn is_for_nothing(&self) -> bool {
        self.reasons.is_empty() && self.unsure.is_nothing()
    }
}

/// "temporary table t, advisory lock 1".
fn listed(told: &[(&'static str, String)]) -> String {
    told.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(", ")
}

/// Asks what there is of these kinds: rows of the kind's word, a name and nothing.
pub fn query(kinds: Kept) -> String {
    let asked = KINDS.iter().filter(|(kind, _, _, query)| kinds.meets(*kind) && !query.is_empty());
    let of = |(_, word, _, query): &(Kept, &str, &str, &str)| {
        format!(
            "(SELECT '{word}'::pg_catalog.text, thing::pg_catalog.text, NULL::pg_catalog.text \
             FROM (SELECT {query} LIMIT {NAMED_MAX}) AS there)"
        )
    };
    asked.map(of).collect::<Vec<_>>().join("\nUNION ALL ")
}

/// What a function may do, of the letters that the query answers: small ones for what it makes,
/// capitals for what it ends.
pub fn deeds(letters: &str) -> Deeds {
    let mut all = Deeds::default();
    for letter in letters.chars() {
        let (makes, ends) = match letter {
            '*' => (Deeds::ANY.makes, Deeds::ANY.ends),
            's' => (Kept::SETTINGS, Kept::NOTHING),
            't' => (Kept::TEMPORARY, Kept::NOTHING),
            'T' => (Kept::NOTHING, Kept::TEMPORARY),
            'c' => (Kept::CURSORS, Kept::NOTHING),
            'C' => (Kept::NOTHING, Kept::CURSORS),
            'l' => (Kept::CHANNELS, Kept::NOTHING),
            'L' => (Kept::NOTHING, Kept::CHANNELS),
            'a' => (Kept::LOCKS, Kept::NOTHING),
            'A' => (Kept::NOTHING, Kept::LOCKS),
            'o' => (Kept::LIBRARIES, Kept::NOTHING),
            _ => (Kept::NOTHING, Kept::NOTHING),
        };
        all = Deeds { makes: all.makes.and(makes), ends: all.ends.and(ends) };
    }
    all
}

impl ServerConn {
    /// Since when it is kept by a client that does nothing with it at the moment.
    pub(super) fn idly_pinned(&self) -> Option<Moment> {
        let idle = self.server.is_quiet() && self.server.status() == TxStatus::Idle;
        self.pinned.as_ref().filter(|_| idle).map(|pinned| pinned.since)
    }
}

impl Plane {
    /// PostgreSQL was asked for these kinds, and this is what there is. False: the client is gone.
    pub(super) fn pin(&mut self, slot: u32, server: u32, asked: Kept, found: Vec<Reason>) -> bool {
        let conn = &mut self.servers[server];
        if found.is_empty() && !conn.server.needs_library && conn.pinned.is_none() {
            return true;
        }
        let now = self.now;
        let had = conn.pinned.take();
        let was = had.is_some();
        let mut pinned = had.map_or_else(
            || Pinned { reasons: Vec::new(), unsure: Kept::NOTHING, since: now },
            |had| *had,
        );
        pinned.unsure = pinned.unsure.without(asked);
        pinned
            .reasons
            .retain(|reason| !asked.meets(reason.kind) && !reason.kind.meets(Kept::LIBRARIES));
        pinned.reasons.extend(found);
        if conn.server.needs_library {
            pinned.reasons.push(Reason { kind: Kept::LIBRARIES, name: "".into() });
        }
        self.keep_pinned(slot, server, pinned, was)
    }

    /// The same without an answer: what may be there counts as being there.
    pub(super) fn pin_unsure(&mut self, slot: u32, server: u32, asked: Kept) -> bool {
        let now = self.now;
        let conn = &mut self.servers[server];
        let had = conn.pinned.take();
        let was = had.is_some();
        let mut pinned = had.map_or_else(
            || Pinned { reasons: Vec::new(), unsure: Kept::NOTHING, since: now },
            |had| *had,
        );
        pinned.unsure = pinned.unsure.and(asked.only(Kept::HELD));
        self.keep_pinned(slot, server, pinned, was)
    }

    fn keep_pinned(&mut self, slot: u32, server: u32, pinned: Pinned, was: bool) -> bool {
        let conn = &mut self.servers[server];
        let pool = &self.pools[conn.pool as usize];
        let shared = pool.pool.shared();
        let (name, client_id) = (&pool.name, self.clients[slot].id);
        if pinned.is_for_nothing() {
            if was {
                shared.pinned.give_back();
                tracing::debug!(event = "client_unpinned", client_id, db = %name.database,
                    user = %name.user, "it keeps its server no longer");
            }
            return true;
        }
        let told = listed(&pinned.told());
        if !was && !shared.pinned.take(pool.config.max_pinned) {
            tracing::warn!(event = "pin_refused", client_id, db = %name.database,
                user = %name.user, "it would keep its server: {told}");
            let refused = refused(&name.database, pool.config.max_pinned, &told);
            conn.touched = Some(Touched::anyhow());
            self.close_client(slot, Some(&refused));
            return false;
        }
        if !was {
            tracing::debug!(event = "client_pinned", client_id, db = %name.database,
                user = %name.user, "it keeps its server: {told}");
        }
        conn.pinned = Some(Box::new(pinned));
        true
    }

    /// Whoever kept this server is gone. True: it has to be cleaned of what was kept.
    pub(super) fn unpin(&mut self, server: u32) -> bool {
        let Some(conn) = self.servers.get_mut(server) else { return false };
        let was = conn.pinned.take().is_some();
        if was {
            self.pools[conn.pool as usize].pool.shared().pinned.give_back();
        }
        was
    }

    /// Whether a server that is lost now takes something along that its client can't have
    /// elsewhere, though nothing of the client's is in flight.
    pub(super) fn would_lose(&self, conn: &ServerConn) -> bool {
        let asking = conn.preparing == Preparing::Surveying;
        let may = conn.asked.meets(Kept::HELD) || conn.server.needs_library;
        conn.pinned.is_some() || asking && may
    }

    /// What its client is told then.
    pub(super) fn pin_lost(&self, conn: &ServerConn, place: &str, why: &str) -> Refused {
        let what = match &conn.pinned {
            Some(pinned) => {
                format!("What this client had there is gone: {}.", listed(&pinned.told()))
            }
            None => "What this client had in its session there is gone.".to_owned(),
        };
        let message = format!("server connection to {place} was lost: {why}");
        Refused::new(sqlstate::ADMIN_SHUTDOWN, message).detail(what).hint("Connect again. [P0433]")
    }

    /// Whether the client keeps its server beyond its transaction.
    pub(super) fn is_pinned(&self, slot: u32) -> bool {
        let server = self.clients.get(slot).and_then(|client| self.servers.get(client.server));
        server.is_some_and(|conn| conn.pinned.is_some())
    }

    /// Rows of SHOW PINS.
    pub(super) fn pin_rows(&self) -> Vec<PinSnapshot> {
        let row = |(slot, conn): (u32, &ServerConn)| {
            let pinned = conn.pinned.as_ref()?;
            let client = self.clients.get(conn.client)?;
            let pool = &self.pools[conn.pool as usize];
            Some(PinSnapshot {
                database: pool.name.database.clone(),
                user: pool.name.user.clone(),
                client: (conn.client, client.generation),
                client_id: client.id,
                application_name: client.settings.get("application_name").unwrap_or("").to_owned(),
                reasons: pinned.told(),
                since: self.wall(pinned.since),
                server: (slot, conn.generation),
                server_id: conn.id,
                remote_pid: conn.pid,
            })
        };
        self.servers.iter().filter_map(row).collect()
    }
}

fn refused(database: &str, limit: u32, told: &str) -> Refused {
    let (code, message) = match limit {
        0 => (
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("clients of \"{database}\" may not keep a server connection"),
        ),
        _ => (
            sqlstate::TOO_MANY_CONNECTIONS,
            format!("too many clients of \"{database}\" keep a server connection"),
        ),
    };
    Refused::new(code, message)
        .detail(format!(
            "This client has left in its session: {told}. Without a server of its own it would \
             lose it. max_pinned is {limit}."
        ))
        .hint("Raise max_pinned, or use mode = \"session\" for such users; see SHOW PINS. [P0427]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_looked_up() {
        assert_eq!(query(Kept::SETTINGS.and(Kept::LIBRARIES)), "");
        let locks = query(Kept::LOCKS);
        assert!(locks.starts_with("(SELECT 'lock'") && !locks.contains("UNION"), "{locks}");
        assert_eq!(query(Kept::ASKABLE).matches("UNION ALL").count(), 3);
    }

    #[test]
    fn letters_tell_what_functions_make_and_end() {
        assert_eq!(deeds(""), Deeds::default());
        assert_eq!(deeds("*"), Deeds::ANY);
        let both = Deeds { makes: Kept::TEMPORARY.and(Kept::SETTINGS), ends: Kept::LOCKS };
        assert_eq!(deeds("stA"), both);
    }

    #[test]
    fn reasons_are_told_with_their_names() {
        let told = |kind, name| Reason::of(kind, name).map(|reason| reason.told().1);
        assert_eq!(told("temporary", "table t").as_deref(), Some("temporary table t"));
        assert_eq!(told("listen", "a").as_deref(), Some("LISTEN a"));
        assert_eq!(told("library", "").as_deref(), Some("LOAD"));
        assert_eq!(told("other", ""), None);
        assert_eq!(KINDS.map(|(_, word, ..)| word), REASONS[..5]);
    }
}
