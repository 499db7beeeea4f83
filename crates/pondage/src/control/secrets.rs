//! What look-ups of users have found, for as long as the configuration says; and who waits for the
//! same look-up.
//!
//! Users that do not exist are kept like those that do, so that the time of an answer does not tell
//! which is which.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_postgres::types::{FromSql, Type};
use wire::pg::auth::Secret;

use super::authquery::Key;

/// Users that are kept, or are being looked up.
pub const ENTRIES_MAX: usize = 10_000;

/// What a look-up has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// There is such a user.
    pub known: bool,
    /// None: no password is right.
    pub secret: Option<Secret>,
    pub until: Option<Until>,
}

impl Found {
    pub fn nobody() -> Found {
        Found { known: false, secret: None, until: None }
    }

    /// What holds now: nobody is known by a secret that is not valid any more.
    pub fn now(self) -> Found {
        match self.until.is_some_and(|until| until.is_past(SystemTime::now())) {
            true => Found::nobody(),
            false => self,
        }
    }
}

/// A line that a client may see: it names no address.
pub type Answer = Result<Found, String>;

/// A user where it is looked up.
pub type Name = (Arc<Key>, String);

enum Entry {
    /// Somebody looks it up, for all of these too.
    Asked {
        waiting: Vec<oneshot::Sender<Answer>>,
        /// Not when a reload has been between.
        keep: bool,
    },
    Known {
        found: Found,
        /// It is not used any more from then on.
        ends: Instant,
    },
}

/// What to do for who asks.
pub enum Ask {
    Known(Found),
    /// Somebody is looking it up.
    Wait(oneshot::Receiver<Answer>),
    /// It has to be looked up; [`Secrets::answered`] follows, or [`Secrets::given_up`].
    LookUp,
    /// Too many are being looked up.
    Full,
}

#[derive(Default)]
pub struct Secrets {
    /// A plain mutex: held for a look or an insertion, never across an await.
    entries: Mutex<HashMap<Name, Entry>>,
}

impl Secrets {
    /// `again`: what is known does not count.
    pub fn ask(&self, name: &Name, again: bool, now: Instant) -> Ask {
        let mut entries = self.entries();
        match entries.get_mut(name) {
            Some(Entry::Asked { waiting, .. }) => {
                let (reply, answer) = oneshot::channel();
                waiting.push(reply);
                return Ask::Wait(answer);
            }
            Some(Entry::Known { found, ends }) if !again && now < *ends => {
                return Ask::Known(found.clone());
            }
            Some(Entry::Known { .. }) | None => {}
        }
        if entries.len() >= ENTRIES_MAX && !entries.contains_key(name) {
            make_room(&mut entries, now);
            if entries.len() >= ENTRIES_MAX {
                return Ask::Full;
            }
        }
        entries.insert(name.clone(), Entry::Asked { waiting: Vec::new(), keep: true });
        Ask::LookUp
    }

    /// Tells all who wait; what was found is kept for `time`.
    pub fn answered(&self, name: &Name, answer: &Answer, time: Duration, now: Instant) {
        let mut entries = self.entries();
        let Some(Entry::Asked { waiting, keep }) = entries.remove(name) else { return };
        if let (Ok(found), true) = (answer, keep && !time.is_zero()) {
            let known = Entry::Known { found: found.clone(), ends: now + time };
            entries.insert(name.clone(), known);
        }
        drop(entries);
        for reply in waiting {
            // Who asked may have given up.
            let _ = reply.send(answer.clone());
        }
    }

    /// Who looked it up has gone: those who wait hear nothing.
    pub fn given_up(&self, name: &Name) {
        let mut entries = self.entries();
        if matches!(entries.get(name), Some(Entry::Asked { .. })) {
            entries.remove(name);
        }
    }

    /// Nothing is known any more, and what is being looked up is not kept.
    pub fn forget(&self) {
        self.entries().retain(|_, entry| match entry {
            Entry::Known { .. } => false,
            Entry::Asked { keep, .. } => {
                *keep = false;
                true
            }
        });
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Name, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is over is dropped; if nothing is, all that is known. Those who wait stay.
fn make_room(entries: &mut HashMap<Name, Entry>, now: Instant) {
    let over = |entry: &Entry| matches!(entry, Entry::Known { ends, .. } if *ends <= now);
    let waits = |entry: &Entry| matches!(entry, Entry::Asked { .. });
    entries.retain(|_, entry| !over(entry));
    if entries.len() >= ENTRIES_MAX {
        entries.retain(|_, entry| waits(entry));
    }
}

/// A timestamptz: microseconds since 2000-01-01 UTC; the largest and the smallest are infinite.
///
/// Source: `src/include/datatype/timestamp.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until(i64);

/// Microseconds from 1970 to 2000.
const POSTGRES_EPOCH_MICROS: i128 = 946_684_800_000_000;

impl Until {
    /// Source: `get_role_password` in `src/backend/libpq/crypt.c`.
    fn is_past(self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        self.0 != i64::MAX
            && i128::from(self.0) + POSTGRES_EPOCH_MICROS < i128::try_from(now).unwrap_or(i128::MAX)
    }
}

impl FromSql<'_> for Until {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Until, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Until(i64::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Host};

    const KEEP: Duration = Duration::from_secs(5);

    fn name(user: &str) -> Name {
        let key = Key {
            hosts: vec![(Host::Tcp("db".to_owned()), 5432)],
            database: "app".to_owned(),
            user: "looker".to_owned(),
            tls: Config::from_text("[databases.app]").expect("valid").databases["app"]
                .upstream
                .tls
                .clone(),
            sql: "select $1".into(),
            cache: KEEP,
        };
        (Arc::new(key), user.to_owned())
    }

    fn found(password: &str) -> Found {
        Found { known: true, secret: Some(Secret::Plain(password.to_owned())), until: None }
    }

    fn is_look_up(ask: &Ask) -> bool {
        matches!(ask, Ask::LookUp)
    }

    #[test]
    fn one_looks_up_for_all_who_ask_meanwhile_and_others_have_it_until_it_ends() {
        let (secrets, now) = (Secrets::default(), Instant::now());
        let ask = |again, now| secrets.ask(&name("app"), again, now);
        assert!(is_look_up(&ask(false, now)));
        let (Ask::Wait(mut first), Ask::Wait(mut second)) = (ask(false, now), ask(true, now))
        else {
            panic!("they wait")
        };
        assert!(is_look_up(&secrets.ask(&name("other"), false, now)), "somebody else");
        secrets.answered(&name("app"), &Ok(found("right")), KEEP, now);
        assert_eq!(first.try_recv(), Ok(Ok(found("right"))));
        assert_eq!(second.try_recv(), Ok(Ok(found("right"))));
        let last = now + KEEP - Duration::from_millis(1);
        assert!(matches!(ask(false, last), Ask::Known(known) if known == found("right")));
        assert!(is_look_up(&ask(false, now + KEEP)));
    }

    #[test]
    fn who_asks_again_is_not_told_what_is_known() {
        let (secrets, now) = (Secrets::default(), Instant::now());
        assert!(is_look_up(&secrets.ask(&name("app"), false, now)));
        secrets.answered(&name("app"), &Ok(found("old")), KEEP, now);
        assert!(is_look_up(&secrets.ask(&name("app"), true, now)));
        secrets.answered(&name("app"), &Ok(found("new")), KEEP, now);
        let known = secrets.ask(&name("app"), false, now);
        assert!(matches!(known, Ask::Known(known) if known == found("new")));
    }

    #[test]
    fn errors_and_what_is_found_for_no_time_are_told_and_not_kept() {
        let (secrets, now) = (Secrets::default(), Instant::now());
        for (answer, time) in [(Err("away".to_owned()), KEEP), (Ok(found("x")), Duration::ZERO)] {
            assert!(is_look_up(&secrets.ask(&name("app"), false, now)));
            let Ask::Wait(mut waiting) = secrets.ask(&name("app"), false, now) else {
                panic!("it waits")
            };
            secrets.answered(&name("app"), &answer, time, now);
            assert_eq!(waiting.try_recv(), Ok(answer));
        }
        assert!(is_look_up(&secrets.ask(&name("app"), false, now)));
        let Ask::Wait(mut waiting) = secrets.ask(&name("app"), false, now) else {
            panic!("it waits")
        };
        secrets.given_up(&name("app"));
        assert!(waiting.try_recv().is_err());
        assert!(is_look_up(&secrets.ask(&name("app"), false, now)));
    }

    #[test]
    fn after_a_reload_nothing_is_known_not_even_what_was_asked_before() {
        let (secrets, now) = (Secrets::default(), Instant::now());
        for user in ["known", "asked"] {
            assert!(is_look_up(&secrets.ask(&name(user), false, now)));
        }
        secrets.answered(&name("known"), &Ok(found("x")), KEEP, now);
        secrets.forget();
        secrets.answered(&name("asked"), &Ok(found("x")), KEEP, now);
        for user in ["known", "asked"] {
            assert!(is_look_up(&secrets.ask(&name(user), false, now)));
        }
    }

    #[test]
    fn names_that_nobody_has_do_not_fill_the_memory() {
        let (secrets, now) = (Secrets::default(), Instant::now());
        let nobody = Ok(Found::nobody());
        for stranger in 0..ENTRIES_MAX * 2 {
            let name = name(&format!("stranger {stranger}"));
            assert!(is_look_up(&secrets.ask(&name, false, now)));
            secrets.answered(&name, &nobody, KEEP, now);
            assert!(secrets.entries().len() <= ENTRIES_MAX);
        }
        secrets.forget();
        for stranger in 0..ENTRIES_MAX {
            let name = name(&format!("stranger {stranger}"));
            assert!(is_look_up(&secrets.ask(&name, false, now)));
        }
        assert!(matches!(secrets.ask(&name("app"), false, now), Ask::Full));
    }

    #[test]
    fn an_infinite_date_never_passes_and_a_past_one_has() {
        let now = SystemTime::now();
        assert!(!Until(i64::MAX).is_past(now));
        assert!(Until(i64::MIN).is_past(now));
        assert!(Until(0).is_past(now));
        assert!(!Until(0).is_past(SystemTime::UNIX_EPOCH));
    }

    #[test]
    fn a_secret_ends_at_its_moment_whatever_is_kept() {
        let until = |seconds: i64| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("now");
            let micros = now.as_micros() as i128 - POSTGRES_EPOCH_MICROS;
            let until = Until(micros as i64 + seconds * 1_000_000);
            Found { until: Some(until), ..found("right") }
        };
        assert_eq!(until(60).now().secret, found("right").secret);
        assert_eq!(until(-1).now(), Found::nobody());
    }
}
