//! What a session has set: the parameters that PostgreSQL reports by ParameterStatus, those that a
//! client asked for in its StartupMessage, and those that it was found to have set since.
//!
//! A [`Settings`] never changes and is shared: thousands of clients of one application hold the
//! same one, and a server that has what its next client wants is recognised by one comparison of
//! two pointers.
//!
//! Source: PostgreSQL docs, "Protocol: Asynchronous Operations" (ParameterStatus) and
//! "System Information: set_config".

use std::sync::Arc;

use hashbrown::HashSet;

/// Reported parameters that no client can ask for when it starts.
const READ_ONLY: [&str; 6] = [
    "server_version",
    "server_encoding",
    "integer_datetimes",
    "is_superuser",
    "session_authorization",
    "in_hot_standby",
];

/// What servers are not started with for one client: names of applications, since there are too
/// many of them, and a role, since DISCARD ALL does not go back to it.
const SET_LATER: [&str; 2] = ["application_name", "role"];

/// Distinct sets an [`Interner`] holds before it drops those that nobody uses.
const SWEEP_AT: usize = 1024;

/// Names and values, sorted by name without regard to case, as PostgreSQL compares names.
#[derive(Debug, PartialEq, Eq, Hash, Default)]
pub struct Settings {
    values: Box<[(Box<str>, Box<str>)]>,
}

/// What must be done on a server so that it has what a client wants.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Change<'a> {
    Set { name: &'a str, value: &'a str },
    Reset { name: &'a str },
}

impl Settings {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).ok().map(|at| &*self.values[at].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (&**name, &**value))
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.values.binary_search_by(|(known, _)| compare(known, name))
    }

    /// These settings with others laid over them; a name keeps the spelling it has here.
    pub fn overlaid<'a>(&self, over: impl IntoIterator<Item = (&'a str, &'a str)>) -> Settings {
        let mut values: Vec<(Box<str>, Box<str>)> = self.values.to_vec();
        for (name, value) in over {
            match values.binary_search_by(|(known, _)| compare(known, name)) {
                Ok(at) => values[at].1 = value.into(),
                Err(at) => values.insert(at, (name.into(), value.into())),
            }
        }
        Settings { values: values.into() }
    }

    /// Only the names that `reported` has too: what is left after RESET ALL's like.
    pub fn restricted_to(&self, reported: &Settings) -> Settings {
        let values = self.values.iter().filter(|(name, _)| reported.find(name).is_ok());
        Settings { values: values.cloned().collect() }
    }

    /// Whether a session that was started with these is as good as one started with `other`: RESET
    /// goes to the same values in both. But for the name of the application and the role, which are
    /// set when it is lent.
    pub fn start_like(&self, other: &Settings) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        let (mut ours, mut theirs) = (self.asked_for(), other.asked_for());
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some((name, value)), Some(other))
                    if name.eq_ignore_ascii_case(other.0) && value == other.1 => {}
                _ => return false,
            }
        }
    }

    /// With what a session has to be started to have these, where others start with `plain`.
    pub fn start_parameters(&self, plain: &Settings) -> Vec<(String, String)> {
        let more = self.asked_for().filter(|(name, value)| plain.get(name) != Some(*value));
        more.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn asked_for(&self) -> impl Iterator<Item = (&str, &str)> {
        let later = |name: &str| SET_LATER.iter().any(|later| later.eq_ignore_ascii_case(name));
        self.iter().filter(move |(name, _)| !read_only(name) && !later(name))
    }

    /// What turns a server with these settings into one with `wanted`.
    pub fn changes_to<'a>(&'a self, wanted: &'a Settings) -> Vec<Change<'a>> {
        let mut changes = Vec::new();
        for (name, value) in wanted.iter().filter(|(name, _)| differs(name)) {
            if self.get(name) != Some(value) {
                changes.push(Change::Set { name, value });
            }
        }
        for (name, _) in self.iter().filter(|(name, _)| differs(name)) {
            if wanted.find(name).is_err() {
                changes.push(Change::Reset { name });
            }
        }
        changes
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Settings {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        Settings::default().overlaid(pairs)
    }
}

pub fn read_only(name: &str) -> bool {
    READ_ONLY.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether it counts as a difference between two sessions: SET SESSION AUTHORIZATION does.
fn differs(name: &str) -> bool {
    !read_only(name) || name.eq_ignore_ascii_case("session_authorization")
}

fn compare(a: &str, b: &str) -> std::cmp::Ordering {
    a.bytes().map(|c| c.to_ascii_lowercase()).cmp(b.bytes().map(|c| c.to_ascii_lowercase()))
}

/// Makes equal settings the same allocation, so that comparing two is comparing pointers.
#[derive(Debug, Default)]
pub struct Interner {
    known: HashSet<Arc<Settings>, foldhash::fast::RandomState>,
    sweep_at: usize,
}

impl Interner {
    pub fn intern(&mut self, settings: Settings) -> Arc<Settings> {
        if let Some(known) = self.known.get(&settings) {
            return known.clone();
        }
        if self.known.len() >= self.sweep_at.max(SWEEP_AT) {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.sweep_at = self.known.len() * 2;
        }
        let shared = Arc::new(settings);
        self.known.insert(shared.clone());
        shared
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_sets_what_differs_and_resets_what_is_not_wanted() {
        let server: Settings =
            [("DateStyle", "ISO, MDY"), ("geqo", "off"), ("TimeZone", "UTC")].into_iter().collect();
        let client =
            server.restricted_to(&[("datestyle", ""), ("timezone", "")].into_iter().collect());
        let client = client.overlaid([("timezone", "Asia/Tokyo"), ("statement_timeout", "5s")]);
        assert_eq!(
            server.changes_to(&client),
            [
                Change::Set { name: "statement_timeout", value: "5s" },
                Change::Set { name: "TimeZone", value: "Asia/Tokyo" },
                Change::Reset { name: "geqo" },
            ]
        );
        assert_eq!(client.changes_to(&client), []);
    }

    #[test]
    fn what_no_client_can_set_is_no_difference() {
        let server: Settings =
            [("server_version", "15.1"), ("is_superuser", "on")].into_iter().collect();
        let client: Settings = [("server_version", "15.2")].into_iter().collect();
        assert_eq!(server.changes_to(&client), []);
    }

    #[test]
    fn sessions_start_alike_but_for_the_name_of_the_application_and_the_role() {
        let plain: Settings =
            [("application_name", ""), ("is_superuser", "off"), ("TimeZone", "UTC")]
                .into_iter()
                .collect();
        let named =
            plain.overlaid([("application_name", "psql"), ("is_superuser", "on"), ("Role", "bob")]);
        assert!(plain.start_like(&named) && named.start_like(&plain));
        assert_eq!(named.start_parameters(&plain), []);
        let tokyo = named.overlaid([("timezone", "Asia/Tokyo"), ("geqo", "off")]);
        let same = plain.overlaid([("GEQO", "off"), ("TIMEZONE", "Asia/Tokyo")]);
        assert!(tokyo.start_like(&same));
        for other in [&plain, &plain.overlaid([("TimeZone", "Asia/Tokyo")])] {
            assert!(!tokyo.start_like(other) && !other.start_like(&tokyo));
        }
        let parameters = [("geqo", "off"), ("TimeZone", "Asia/Tokyo")];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(tokyo.start_parameters(&plain), parameters);
    }

    #[test]
    fn equal_settings_are_one_allocation_and_unused_ones_go() {
        let mut interner = Interner::default();
        let make = |n: usize| [("a", n.to_string().as_str())].into_iter().collect::<Settings>();
        let kept = interner.intern(make(0));
        assert!(Arc::ptr_eq(&kept, &interner.intern(make(0))));
        for n in 0..SWEEP_AT * 4 {
            interner.intern(make(n));
        }
        assert!(interner.len() <= SWEEP_AT + 1, "{} sets are kept", interner.len());
        assert!(Arc::ptr_eq(&kept, &interner.intern(make(0))));
    }
}
