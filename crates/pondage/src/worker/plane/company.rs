//! Whose statements may travel together: those of clients with equal settings, reads apart from
//! writes.

use std::sync::Arc;

use backend::climb::Climb;
use backend::lanes::Lanes;
use backend::settings::Settings;

/// Groups of one pool; a client whose settings nobody else has when there are so many travels
/// alone.
const GROUPS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Company {
    /// Somebody waits or is on the way: the pool is looked at every turn.
    pub in_use: bool,
    pub groups: Vec<Group>,
}

#[derive(Debug)]
pub struct Group {
    pub settings: Arc<Settings>,
    pub writes: bool,
    /// Texts can be read, and for writes: nobody has chosen how to commit or to wait for locks.
    sound: bool,
    /// Clients whose statements wait. Only writes have keys.
    pub waiting: Lanes,
    pub carriers: Vec<u32>,
    /// How many of them, if some of those who wait have keys.
    pub climb: Climb,
    /// The one that stands in the pool's queue for all.
    pub queued: Option<u32>,
}

/// Servers that carry a group's reads while they keep up.
const CARRIERS: usize = 2;

/// And its writes, where some have keys, to begin with: while one waits for its flush another goes
/// on. Each more makes shorter trains.
const LANE_CARRIERS: usize = 2;

impl Group {
    pub fn most_carriers(&self) -> usize {
        match (self.writes, self.waiting.has_keys()) {
            (false, _) => CARRIERS,
            (true, false) => 1,
            (true, true) => self.climb.servers(),
        }
    }

    /// Whoever has waited for long may have one more server. Where some have keys, that would only
    /// be one more to wait for.
    pub fn grows_impatient(&self) -> bool {
        !(self.writes && self.waiting.has_keys())
    }

    /// How many of those who wait one train may take, so that other servers get some as well. The
    /// pool has so many servers.
    pub fn share(&self, servers: usize) -> usize {
        let most = self.most_carriers().min(servers);
        let free = most.saturating_sub(self.carriers.len()) + 1;
        self.waiting.len().div_ceil(free).max(1)
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.carriers.is_empty() && self.queued.is_none()
    }
}

impl Company {
    /// The group of clients with these settings; none: they travel alone.
    /// `defaults` is what a server of the pool reports when it has logged in.
    pub fn group(
        &mut self,
        settings: &Arc<Settings>,
        defaults: &Settings,
        writes: bool,
    ) -> Option<usize> {
        let known = self.find(settings, writes);
        let at = match known {
            Some(at) => at,
            None => {
                if self.groups.len() >= GROUPS_MAX {
                    self.groups.retain(|group| !group.is_idle());
                }
                if self.groups.len() >= GROUPS_MAX {
                    return None;
                }
                self.groups.push(Group {
                    settings: settings.clone(),
                    writes,
                    sound: is_sound(settings, defaults, writes),
                    waiting: Lanes::default(),
                    carriers: Vec::new(),
                    climb: Climb::new(LANE_CARRIERS),
                    queued: None,
                });
                self.groups.len() - 1
            }
        };
        self.groups[at].sound.then_some(at)
    }

    pub fn find(&self, settings: &Arc<Settings>, writes: bool) -> Option<usize> {
        let same = |group: &Group| Arc::ptr_eq(&group.settings, settings) && group.writes == writes;
        self.groups.iter().position(same)
    }

    pub fn is_waiting(&self) -> bool {
        self.groups.iter().any(|group| !group.waiting.is_empty())
    }

    /// Servers that carry statements.
    pub fn carriers(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().flat_map(|group| group.carriers.iter().copied())
    }

    /// How many wait for a server of the pool, or for others of their lanes, beside those who stand
    /// in its queue.
    pub fn waiting_for_server(&self) -> usize {
        let waiting =
            |group: &Group| group.waiting.len().saturating_sub(usize::from(group.queued.is_some()));
        self.groups.iter().map(waiting).sum()
    }

    /// Clients that wait, but for those that stand in the pool's queue.
    pub fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().flat_map(|group| {
            let gathered = group.waiting.waiting().map(|owner| owner.0);
            gathered.filter(|slot| group.queued != Some(*slot))
        })
    }

    pub fn remove_carrier(&mut self, server: u32) {
        for group in &mut self.groups {
            group.carriers.retain(|carrier| *carrier != server);
        }
    }
}

/// Encodings whose characters may have ASCII bytes in their second half can't be scanned. What was
/// judged holds for the names and strings of a session as the pool's begin. And sessions that have
/// chosen an isolation, a way to commit or a time to wait for locks keep it.
pub(super) fn is_sound(settings: &Settings, defaults: &Settings, writes: bool) -> bool {
    settings.iter().all(|(name, value)| match &*name.to_ascii_lowercase() {
        "client_encoding" => !UNSCANNABLE.iter().any(|one| value.eq_ignore_ascii_case(one)),
        "search_path" | "role" | "session_authorization" => defaults.get(name) == Some(value),
        "standard_conforming_strings" => value == "on",
        // PostgreSQL reports this one at log-in.
        "default_transaction_read_only" => !writes || value == "off",
        "default_transaction_isolation" | "default_transaction_deferrable" => false,
        "synchronous_commit" | "lock_timeout" => !writes,
        _ => true,
    })
}

const UNSCANNABLE: [&str; 7] = ["BIG5", "GBK", "UHC", "GB18030", "SJIS", "SHIFT_JIS_2004", "JOHAB"];

#[cfg(test)]
mod tests {
    use backend::lanes::{Class, Keys};
    use backend::moment::Moment;
    use backend::reply::Owner;

    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Arc<Settings> {
        Arc::new(pairs.iter().copied().collect())
    }

    #[test]
    fn equal_settings_are_one_group_and_writes_another() {
        let (a, b) = (of(&[("TimeZone", "UTC")]), of(&[("TimeZone", "Asia/Tokyo")]));
        let mut company = Company::default();
        let mut group = |settings, writes| company.group(settings, &Settings::default(), writes);
        assert_eq!(group(&a, false), Some(0));
        assert_eq!(group(&b, false), Some(1));
        assert_eq!(group(&a, true), Some(2));
        assert_eq!(group(&a, false), Some(0));
    }

    #[test]
    fn settings_that_change_what_sharing_does_have_no_group() {
        let mut company = Company::default();
        let defaults = of(&[("search_path", "app, public")]);
        for (name, value, reads, writes) in [
            ("search_path", "app, public", true, true),
            ("search_path", "other", false, false),
            ("role", "other", false, false),
            ("standard_conforming_strings", "on", true, true),
            ("standard_conforming_strings", "off", false, false),
            ("client_encoding", "SJIS", false, false),
            ("client_encoding", "UTF8", true, true),
            ("default_transaction_isolation", "serializable", false, false),
            ("default_transaction_read_only", "off", true, true),
            ("default_transaction_read_only", "on", true, false),
            ("synchronous_commit", "remote_apply", true, false),
            ("lock_timeout", "1s", true, false),
        ] {
            let settings = of(&[(name, value)]);
            assert_eq!(company.group(&settings, &defaults, false).is_some(), reads, "{name}");
            assert_eq!(company.group(&settings, &defaults, true).is_some(), writes, "{name}");
        }
    }

    #[test]
    fn groups_that_nobody_uses_make_room() {
        let mut company = Company::default();
        for n in 0..GROUPS_MAX * 2 {
            let settings = of(&[("application_name", &n.to_string())]);
            let at = company.group(&settings, &Settings::default(), false).expect("there is room");
            if n % 4 == 0 {
                company.groups[at].waiting.wait(Owner(7), Moment(0), Keys::new(), Class::default());
            }
        }
        assert!(company.groups.len() <= GROUPS_MAX);
        assert_eq!(company.waiting().count(), GROUPS_MAX * 2 / 4);
    }
}
