//! What is known of the hosts of each list: where they are, what they are, who failed of late.
//!
//! A *spot* is a host of a list, or one address of it where its name has several. A spot that could
//! not be reached is banned: it is tried last for a second, then twice as long after each further
//! failure, up to a minute. None is ever left out.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use backend::login::Credential;
use tokio::sync::watch;
use tokio::time::Instant;

use super::probing::Answer;
use crate::config::{Balance, Host, PoolConfig, SessionAttrs, Upstream};
use crate::hosts::{HostState, Replicas, Role};

/// Most lists of hosts that are remembered.
const LISTS_MAX: usize = 4096;

/// Most addresses of one name that are followed.
const ADDRESSES_MAX: usize = 16;

/// Most spots of one list.
const SPOTS_MAX: usize = 64;

/// An address that its name has no more is let go after this time: some names have others of their
/// addresses at each look.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// Answers of a primary that are remembered.
const POSITIONS_MAX: usize = 256;

const BANNED_FOR: Duration = Duration::from_secs(1);
const BANNED_FOR_MAX: Duration = Duration::from_secs(60);

/// The hosts of a database with their ports.
pub type List = Vec<(Host, u16)>;

/// What is known of each list of hosts. A RELOAD forgets nothing of it: an old primary that is back
/// must not be the first again.
#[derive(Default)]
pub struct Spots(Mutex<HashMap<List, Hosts>>);

/// One list.
#[derive(Default)]
struct Hosts {
    /// The first to try, by what is asked for: the one that did last time.
    first: HashMap<SessionAttrs, Arc<HostState>>,
    /// How often the hosts have been taken in turn.
    turn: usize,
    spots: Vec<Known>,
    resolved: Option<Instant>,
    asker: Option<Asker>,
    /// Raised when somebody has seen that a host may be another thing now.
    doubts: watch::Sender<u64>,
    /// Probes of its hosts that have begun.
    probes: Arc<AtomicU64>,
    log: Log,
}

/// Where the one primary of a list was, by the numbers of the probes that it answered.
#[derive(Default)]
struct Log {
    primary: Option<Arc<HostState>>,
    timeline: u32,
    positions: VecDeque<(u64, u64)>,
}

/// As whom a list is asked: the pool that opened the last connection.
#[derive(Clone)]
pub struct Asker {
    pub config: PoolConfig,
    pub proven: Option<Credential>,
}

/// A host, or one address of it.
#[derive(Debug, Clone)]
pub struct Spot {
    /// In the list.
    pub place: usize,
    /// None: its name has one.
    pub address: Option<SocketAddr>,
    pub state: Arc<HostState>,
}

struct Known {
    spot: Spot,
    /// When its name was last seen to have this address.
    seen: Option<Instant>,
    /// In a row.
    failures: u32,
    banned: Option<Ban>,
    bans: u64,
    probes: u64,
    failed_probes: u64,
    found: Option<Answer>,
    /// The furthest that it has ever got of any log, and how far that was when the primary became
    /// another one: until it has passed that, it may follow the old one.
    furthest: u64,
    barrier: u64,
}

#[derive(Debug, Clone)]
struct Ban {
    until: Instant,
    why: String,
}

/// A row of SHOW HOSTS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub database: String,
    pub host: String,
    pub port: u16,
    /// Where its name has several.
    pub address: Option<SocketAddr>,
    pub role: Option<Role>,
    pub banned_until: Option<SystemTime>,
    /// Why it is banned.
    pub why: String,
    pub connections: u32,
    /// What a standby has not replayed of the log of the primary. Bytes.
    pub lag_bytes: Option<u64>,
    /// How old the last transaction is that it has replayed, if something is missing.
    pub lag: Option<Duration>,
    /// Where it is in the log.
    pub position: u64,
    pub probed: Option<SystemTime>,
    pub probe_took: Duration,
    pub probes: u64,
    pub failed_probes: u64,
    pub bans: u64,
}

impl Known {
    fn new(place: usize, address: Option<SocketAddr>) -> Known {
        Known {
            spot: Spot { place, address, state: Arc::default() },
            seen: None,
            failures: 0,
            banned: None,
            bans: 0,
            probes: 0,
            failed_probes: 0,
            found: None,
            furthest: 0,
            barrier: 0,
        }
    }

    fn is_banned(&self, now: Instant) -> bool {
        self.banned.as_ref().is_some_and(|ban| now < ban.until)
    }
}

impl Hosts {
    fn new(count: usize) -> Hosts {
        let spots = (0..count).map(|place| Known::new(place, None)).collect();
        Hosts { spots, ..Hosts::default() }
    }

    /// All of them: none is left out.
    fn order(
        &mut self,
        wanted: SessionAttrs,
        of: (SessionAttrs, Balance),
        now: Instant,
    ) -> Vec<Spot> {
        let count = self.spots.len();
        let (target, balance) = of;
        let first = match balance {
            Balance::Disable => self.first.get(&target).and_then(|first| self.find(first)),
            Balance::RoundRobin | Balance::LeastConnections => Some(self.turn % count.max(1)),
        };
        self.turn = self.turn.wrapping_add(1);
        let first = first.unwrap_or(0);
        let mut order: Vec<&Known> =
            (0..count).map(|at| &self.spots[(first + at) % count]).collect();
        order.sort_by_key(|known| {
            let state = &known.spot.state;
            let unfit = state.role().is_some_and(|role| role.unfit(wanted).is_some());
            let load = match balance {
                Balance::LeastConnections => state.connections(),
                _ => 0,
            };
            (known.is_banned(now), unfit, load)
        });
        order.into_iter().map(|known| known.spot.clone()).collect()
    }

    fn find(&self, state: &Arc<HostState>) -> Option<usize> {
        self.spots.iter().position(|known| Arc::ptr_eq(&known.spot.state, state))
    }

    fn get_mut(&mut self, spot: &Spot) -> Option<&mut Known> {
        let at = self.find(&spot.state)?;
        self.spots.get_mut(at)
    }

    /// Whether it was not banned before.
    fn failed(&mut self, spot: &Spot, why: &str, now: Instant) -> bool {
        let Some(known) = self.get_mut(spot) else { return false };
        let new = known.failures == 0;
        let pause = BANNED_FOR.saturating_mul(1 << known.failures.min(6)).min(BANNED_FOR_MAX);
        known.failures = known.failures.saturating_add(1);
        known.bans += u64::from(new);
        known.banned = Some(Ban { until: now + pause, why: why.to_owned() });
        new
    }

    /// Whether it was banned.
    fn works(&mut self, spot: &Spot) -> bool {
        let Some(known) = self.get_mut(spot) else { return false };
        known.failures = 0;
        known.banned.take().is_some()
    }

    /// Whether it is another one than before.
    fn did(&mut self, spot: &Spot, target: SessionAttrs, balance: Balance) -> bool {
        self.works(spot);
        let Some(at) = self.find(&spot.state) else { return false };
        let before = self.first.insert(target, spot.state.clone());
        let before = before.and_then(|before| self.find(&before)).unwrap_or(0);
        balance == Balance::Disable && before != at
    }

    /// The name of a host has these addresses; empty: it stands for one server.
    fn resolved(&mut self, place: usize, mut addresses: Vec<SocketAddr>, now: Instant) {
        addresses.truncate(ADDRESSES_MAX);
        let wanted: Vec<Option<SocketAddr>> = match addresses.is_empty() {
            true => vec![None],
            false => addresses.into_iter().map(Some).collect(),
        };
        self.spots.retain(|known| {
            let here = known.spot.place != place || wanted.contains(&known.spot.address);
            let recent = |seen: Instant| now.duration_since(seen) < GONE_AFTER;
            let stays = here || known.seen.is_some_and(recent);
            if !stays {
                known.spot.state.set_gone();
            }
            stays
        });
        for address in wanted {
            let same =
                |known: &&mut Known| (known.spot.place, known.spot.address) == (place, address);
            let count = self.spots.len();
            match self.spots.iter_mut().find(same) {
                Some(known) => known.seen = Some(now),
                None if count >= SPOTS_MAX => {}
                None => {
                    let known = Known { seen: Some(now), ..Known::new(place, address) };
                    self.spots.push(known);
                }
            }
        }
        // Stable, so that those of a name keep their order.
        self.spots.sort_by_key(|known| known.spot.place);
    }

    /// What an answer says of how far standbys are, as far as that is certain. The probe's number was
    /// taken before it was sent.
    fn follow(&mut self, at: usize, number: u64, answer: &Answer) {
        let reach = answer.position.max(answer.received);
        let known = &mut self.spots[at];
        if known.furthest == 0 && answer.standby {
            // Nobody knows what it was before.
            known.barrier = reach;
        }
        known.furthest = known.furthest.max(reach);
        let state = known.spot.state.clone();
        let primaries = self.spots.iter().filter(|known| {
            known.failures == 0 && known.spot.state.role().is_some_and(|role| role != Role::Standby)
        });
        if primaries.count() > 1 {
            // Which of them a standby follows is not known.
            return self.forget_log();
        }
        if !answer.standby {
            let log = &self.log;
            let same = log.primary.as_ref().is_some_and(|known| Arc::ptr_eq(known, &state));
            let back = log.positions.back().is_some_and(|(_, last)| *last > answer.position);
            if !same || back || log.timeline != answer.timeline {
                self.forget_log();
                self.log.primary = Some(state);
                self.log.timeline = answer.timeline;
            }
            let positions = &mut self.log.positions;
            if positions.len() >= POSITIONS_MAX {
                positions.pop_front();
            }
            positions.push_back((number, answer.position));
        } else if self.log.primary.is_some() {
            let known = &self.spots[at];
            let follows = answer.timeline == self.log.timeline || answer.position > known.barrier;
            let log = self.log.positions.iter().rev();
            let covers = log.clone().find(|(_, position)| *position <= answer.position);
            if let Some((number, _)) = covers.filter(|_| follows) {
                state.set_covers(*number);
            }
        }
    }

    /// From now on nothing is known of how far standbys are with the log of the primary.
    fn forget_log(&mut self) {
        self.log = Log::default();
        for known in &mut self.spots {
            known.spot.state.set_covers(0);
            known.barrier = known.furthest;
        }
    }

    /// For those who read from standbys.
    fn replicas(&self, list: &List) -> Replicas {
        let host = |place: usize| {
            let mut here = self.spots.iter().filter(|known| known.spot.place == place);
            let first = here.next().filter(|known| known.spot.address.is_none());
            first.filter(|_| here.next().is_none()).map(|known| known.spot.state.clone())
        };
        Replicas {
            list: list.clone(),
            probes: self.probes.clone(),
            hosts: (0..list.len()).map(host).collect(),
        }
    }

    /// The furthest that a primary has been seen.
    fn primary_position(&self) -> Option<u64> {
        let primary = |known: &&Known| known.found.as_ref().is_some_and(|found| !found.standby);
        let found = self.spots.iter().filter(primary).filter_map(|known| known.found.as_ref());
        found.map(|found| found.position).max()
    }

    fn standing(&self, database: &str, list: &List, now: Instant) -> Vec<Standing> {
        let primary = self.primary_position();
        let row = |known: &Known| {
            let (host, port) = list.get(known.spot.place)?;
            let ban = known.banned.as_ref().filter(|ban| now < ban.until);
            let found = known.found.as_ref();
            let behind = found
                .filter(|found| found.standby)
                .and_then(|found| Some(primary?.saturating_sub(found.position)));
            let lag = behind.and_then(|behind| match behind {
                0 => Some(Duration::ZERO),
                _ => found.and_then(|found| found.delay),
            });
            Some(Standing {
                database: database.to_owned(),
                host: match host {
                    Host::Tcp(name) => name.clone(),
                    Host::Unix(directory) => directory.display().to_string(),
                },
                port: *port,
                address: known.spot.address,
                role: known.spot.state.role(),
                banned_until: ban.map(|ban| SystemTime::now() + (ban.until - now)),
                why: ban.map_or_else(String::new, |ban| ban.why.clone()),
                connections: known.spot.state.connections(),
                lag_bytes: behind,
                lag,
                position: found.map_or(0, |found| found.position),
                probed: found.map(|found| found.at),
                probe_took: found.map_or(Duration::ZERO, |found| found.took),
                probes: known.probes,
                failed_probes: known.failed_probes,
                bans: known.bans,
            })
        };
        self.spots.iter().filter_map(row).collect()
    }
}

impl Spots {
    /// Never held across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<List, Hosts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, upstream: &Upstream, work: impl FnOnce(&mut Hosts) -> T) -> T {
        let list = upstream.hosts();
        let mut lists = self.lock();
        if lists.len() >= LISTS_MAX && !lists.contains_key(&list) {
            lists.clear();
        }
        let count = list.len();
        work(lists.entry(list).or_insert_with(|| Hosts::new(count)))
    }

    /// Where to try, in the order of this try.
    pub fn order(&self, upstream: &Upstream, wanted: SessionAttrs, now: Instant) -> Vec<Spot> {
        let of = (upstream.several.target, upstream.several.balance);
        self.with(upstream, |hosts| hosts.order(wanted, of, now))
    }

    /// It could not be reached.
    pub fn failed(&self, upstream: &Upstream, spot: &Spot, why: &str, now: Instant) {
        if self.with(upstream, |hosts| hosts.failed(spot, why, now)) {
            tracing::warn!(
                event = "host_banned",
                at = upstream.at(spot.place).place(),
                address = spot.address.map(tracing::field::display),
                "a host is tried last from now on: {why}"
            );
        }
    }

    fn works(&self, upstream: &Upstream, spot: &Spot) {
        if self.with(upstream, |hosts| hosts.works(spot)) {
            let at = upstream.at(spot.place).place();
            tracing::info!(event = "host_back", at, "a host that was banned answers");
        }
    }

    /// It accepted a connection. Whether another one did last time.
    pub fn did(&self, upstream: &Upstream, spot: &Spot) -> bool {
        let (target, balance) = (upstream.several.target, upstream.several.balance);
        self.with(upstream, |hosts| hosts.did(spot, target, balance))
    }

    /// Remembers as whom this list is asked.
    pub fn ask_as(&self, upstream: &Upstream, asker: impl FnOnce() -> Asker) {
        self.with(upstream, |hosts| {
            let known =
                hosts.asker.as_ref().is_some_and(|asker| asker.config.upstream == *upstream);
            if !known || hosts.spots.iter().all(|known| known.found.is_none()) {
                hosts.asker = Some(asker());
            }
        });
    }

    /// The names to resolve, with their places and ports, if the last time is so long ago.
    pub fn to_resolve(
        &self,
        upstream: &Upstream,
        now: Instant,
        after: Duration,
    ) -> Option<Vec<(usize, String, u16)>> {
        let due = self.with(upstream, |hosts| {
            let due = hosts.resolved.is_none_or(|last| now.duration_since(last) >= after);
            if due {
                hosts.resolved = Some(now);
            }
            due
        });
        let name = |(place, (host, port)): (usize, (Host, u16))| match host {
            Host::Tcp(name) if name.parse::<std::net::IpAddr>().is_err() => {
                Some((place, name, port))
            }
            _ => None,
        };
        due.then(|| upstream.hosts().into_iter().enumerate().filter_map(name).collect())
    }

    pub fn resolved(&self, upstream: &Upstream, place: usize, addresses: Vec<SocketAddr>) {
        self.with(upstream, |hosts| hosts.resolved(place, addresses, Instant::now()));
    }

    /// What there is to probe in a list, and as whom. None: nobody has opened a connection yet.
    pub fn probed(&self, list: &List) -> Option<(Asker, Vec<Spot>, watch::Receiver<u64>)> {
        let lists = self.lock();
        let hosts = lists.get(list)?;
        let spots = hosts.spots.iter().map(|known| known.spot.clone()).collect();
        Some((hosts.asker.clone()?, spots, hosts.doubts.subscribe()))
    }

    /// As whom to ask, if the spot is still one.
    pub fn asker(&self, list: &List, spot: &Spot) -> Option<Asker> {
        let lists = self.lock();
        let hosts = lists.get(list)?;
        hosts.find(&spot.state)?;
        hosts.asker.clone()
    }

    /// A host of this list may be another thing now.
    pub fn doubt(&self, upstream: &Upstream) {
        match &upstream.several.replica {
            Some(replica) => self.doubt_list(&replica.0),
            None => self.doubt_list(&upstream.hosts()),
        }
    }

    pub fn doubt_list(&self, list: &List) {
        if let Some(hosts) = self.lock().get(list) {
            hosts.doubts.send_modify(|doubts| *doubts += 1);
        }
    }

    /// The host at this place, if its name stands for one.
    pub fn at(&self, list: &List, place: usize) -> Option<Spot> {
        let lists = self.lock();
        let here = |known: &&Known| known.spot.place == place && known.spot.address.is_none();
        lists.get(list)?.spots.iter().find(here).map(|known| known.spot.clone())
    }

    /// A probe was answered. Whether the host is another thing than it was.
    pub fn answered(&self, upstream: &Upstream, spot: &Spot, number: u64, answer: Answer) -> bool {
        self.works(upstream, spot);
        let role = Role::new(answer.standby, answer.read_only);
        let before = spot.state.role();
        spot.state.set_role(role);
        self.with(upstream, |hosts| {
            let Some(known) = hosts.get_mut(spot) else { return };
            known.probes += 1;
            known.found = Some(answer.clone());
            if let Some(at) = hosts.find(&spot.state) {
                hosts.follow(at, number, &answer);
            }
        });
        if let Some(before) = before.filter(|before| *before != role) {
            tracing::info!(
                event = "host_role",
                at = upstream.at(spot.place).place(),
                before = before.word(),
                role = role.word(),
                "a host is another thing than it was"
            );
        }
        before != Some(role)
    }

    /// A probe was not answered. How often in a row that was.
    pub fn unanswered(&self, upstream: &Upstream, spot: &Spot, why: &str, now: Instant) -> u32 {
        self.failed(upstream, spot, why, now);
        self.with(upstream, |hosts| {
            let Some(known) = hosts.get_mut(spot) else { return 0 };
            known.probes += 1;
            known.failed_probes += 1;
            known.failures
        })
    }

    /// A probe begins. Its number among those of its list.
    pub fn begin_probe(&self, list: &List) -> u64 {
        let lists = self.lock();
        lists.get(list).map_or(0, |hosts| hosts.probes.fetch_add(1, Ordering::AcqRel) + 1)
    }

    pub fn replicas(&self, list: &List) -> Option<Replicas> {
        self.lock().get(list).map(|hosts| hosts.replicas(list))
    }

    /// What is known of the hosts of a database.
    pub fn standing(&self, database: &str, list: &List) -> Vec<Standing> {
        let lists = self.lock();
        let unknown = || Hosts::new(list.len());
        match lists.get(list) {
            Some(hosts) => hosts.standing(database, list, Instant::now()),
            None => unknown().standing(database, list, Instant::now()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: (SessionAttrs, Balance) = (SessionAttrs::Any, Balance::Disable);
    const TURNS: (SessionAttrs, Balance) = (SessionAttrs::Any, Balance::RoundRobin);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn order(hosts: &mut Hosts, of: (SessionAttrs, Balance), now: Instant) -> Vec<usize> {
        hosts.order(of.0, of, now).into_iter().map(|spot| spot.place).collect()
    }

    fn spot(hosts: &Hosts, at: usize) -> Spot {
        hosts.spots[at].spot.clone()
    }

    #[test]
    fn the_host_that_did_is_the_first_of_the_next_try_for_the_same() {
        let (mut hosts, now) = (Hosts::new(3), Instant::now());
        assert_eq!(order(&mut hosts, ANY, now), [0, 1, 2]);
        let second = spot(&hosts, 1);
        assert!(hosts.did(&second, ANY.0, ANY.1), "another one");
        assert!(!hosts.did(&second, ANY.0, ANY.1), "the same");
        assert_eq!(order(&mut hosts, ANY, now), [1, 2, 0]);
        let standby = (SessionAttrs::Standby, Balance::Disable);
        assert_eq!(order(&mut hosts, standby, now), [0, 1, 2], "who asks for something else");
    }

    #[test]
    fn hosts_in_turn_are_the_first_in_turn() {
        let (mut hosts, now) = (Hosts::new(2), Instant::now());
        let firsts: Vec<usize> = (0..4).map(|_| order(&mut hosts, TURNS, now)[0]).collect();
        assert_eq!(firsts, [0, 1, 0, 1]);
        let second = spot(&hosts, 1);
        assert!(!hosts.did(&second, TURNS.0, TURNS.1));
    }

    #[test]
    fn the_host_with_the_fewest_connections_is_the_first() {
        let (mut hosts, now) = (Hosts::new(3), Instant::now());
        let least = (SessionAttrs::Any, Balance::LeastConnections);
        let mut seats = Vec::new();
        for taken in [0, 0, 1] {
            seats.push(crate::hosts::Seat::new(spot(&hosts, taken).state, SessionAttrs::Any));
        }
        assert_eq!(order(&mut hosts, least, now), [2, 1, 0]);
        seats.drain(..2);
        let firsts: Vec<usize> = (0..4).map(|_| order(&mut hosts, least, now)[0]).collect();
        assert!(firsts.contains(&0) && firsts.contains(&2), "equals in turn: {firsts:?}");
        assert!(!firsts.contains(&1), "{firsts:?}");
    }

    #[test]
    fn a_host_that_is_something_else_comes_later_and_a_banned_one_last() {
        let (mut hosts, now) = (Hosts::new(3), Instant::now());
        spot(&hosts, 0).state.set_role(Role::Standby);
        spot(&hosts, 2).state.set_role(Role::Primary);
        let primary = (SessionAttrs::Primary, Balance::Disable);
        assert_eq!(order(&mut hosts, primary, now), [1, 2, 0]);
        let second = spot(&hosts, 1);
        hosts.failed(&second, "gone", now);
        assert_eq!(order(&mut hosts, primary, now), [2, 0, 1]);
    }

    #[test]
    fn a_host_that_failed_is_tried_last_for_longer_each_time_and_never_left_out() {
        let (mut hosts, start) = (Hosts::new(2), Instant::now());
        let (first, second) = (spot(&hosts, 0), spot(&hosts, 1));
        let mut now = start;
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            hosts.failed(&first, "", now);
            let before = now + seconds(pause) - Duration::from_millis(1);
            assert_eq!(order(&mut hosts, ANY, before), [1, 0]);
            now += seconds(pause);
            assert_eq!(order(&mut hosts, ANY, now), [0, 1], "{pause}");
        }
        hosts.failed(&first, "", now);
        hosts.failed(&second, "", now);
        assert_eq!(order(&mut hosts, ANY, now), [0, 1], "all failed: in their order");
        hosts.did(&first, ANY.0, ANY.1);
        hosts.failed(&first, "", now);
        assert_eq!(order(&mut hosts, ANY, now + seconds(1)), [0, 1], "it starts anew");
        assert_eq!(hosts.spots[0].bans, 2, "a ban that goes on is one");
    }

    fn answer(standby: bool, position: u64, timeline: u32) -> Answer {
        let (at, took) = (SystemTime::UNIX_EPOCH, Duration::ZERO);
        let (read_only, delay, received) = (false, None, position);
        Answer { standby, read_only, position, delay, received, timeline, at, took }
    }

    /// What the host at this place says in the probe of this number.
    fn says(hosts: &mut Hosts, at: usize, number: u64, answer: &Answer) {
        let role = Role::new(answer.standby, false);
        hosts.spots[at].spot.state.set_role(role);
        hosts.follow(at, number, answer);
    }

    fn covers(hosts: &Hosts) -> Vec<u64> {
        hosts.spots.iter().map(|known| known.spot.state.covers()).collect()
    }

    #[test]
    fn a_standby_covers_the_last_probe_whose_log_it_has_replayed() {
        let mut hosts = Hosts::new(3);
        says(&mut hosts, 1, 1, &answer(true, 50, 1));
        assert_eq!(covers(&hosts), [0, 0, 0], "nobody knows of a primary");
        for (number, position) in [(2, 100), (3, 200), (4, 300)] {
            says(&mut hosts, 0, number, &answer(false, position, 1));
        }
        says(&mut hosts, 1, 5, &answer(true, 250, 1));
        says(&mut hosts, 2, 6, &answer(true, 99, 1));
        assert_eq!(covers(&hosts), [0, 3, 0]);
        says(&mut hosts, 2, 7, &answer(true, 300, 1));
        assert_eq!(covers(&hosts), [0, 3, 4]);
    }

    #[test]
    fn standbys_of_an_old_primary_cover_nothing_of_the_new_one() {
        let mut hosts = Hosts::new(3);
        says(&mut hosts, 0, 1, &answer(false, 100, 1));
        says(&mut hosts, 1, 2, &answer(true, 100, 1));
        says(&mut hosts, 2, 3, &answer(true, 150, 1));
        assert_eq!(covers(&hosts), [0, 1, 1]);
        // The first two believe that they are it.
        says(&mut hosts, 1, 4, &answer(false, 110, 2));
        assert_eq!(covers(&hosts), [0, 0, 0]);
        says(&mut hosts, 2, 5, &answer(true, 160, 1));
        assert_eq!(covers(&hosts), [0, 0, 0]);
        // The first is gone.
        let first = spot(&hosts, 0);
        hosts.failed(&first, "gone", Instant::now());
        says(&mut hosts, 1, 6, &answer(false, 120, 2));
        // It has more of the log than the new primary, but of the old one.
        says(&mut hosts, 2, 7, &answer(true, 160, 1));
        assert_eq!(covers(&hosts), [0, 0, 0]);
        says(&mut hosts, 1, 8, &answer(false, 170, 2));
        says(&mut hosts, 2, 9, &answer(true, 170, 1));
        assert_eq!(covers(&hosts), [0, 0, 8], "it goes on, so it follows");
    }

    #[test]
    fn a_standby_that_is_met_later_is_believed_once_it_goes_on_or_has_the_timeline() {
        let mut hosts = Hosts::new(3);
        says(&mut hosts, 0, 1, &answer(false, 100, 2));
        says(&mut hosts, 1, 2, &answer(true, 130, 1));
        says(&mut hosts, 2, 3, &answer(true, 130, 2));
        assert_eq!(covers(&hosts), [0, 0, 1]);
        says(&mut hosts, 1, 4, &answer(true, 131, 1));
        assert_eq!(covers(&hosts), [0, 1, 1]);
        // The log of the primary is shorter than it was.
        says(&mut hosts, 0, 5, &answer(false, 90, 2));
        assert_eq!(covers(&hosts), [0, 0, 0]);
    }

    #[test]
    fn the_addresses_of_a_name_come_and_go() {
        let (mut hosts, now) = (Hosts::new(2), Instant::now());
        let address = |last: u8| SocketAddr::from(([10, 0, 0, last], 5432));
        hosts.resolved(0, vec![address(1), address(2)], now);
        let of = |hosts: &Hosts| hosts.spots.iter().map(|known| known.spot.place).collect();
        let places: Vec<usize> = of(&hosts);
        assert_eq!(places, [0, 0, 1], "the name itself is none of them");
        let stays = spot(&hosts, 1).state;
        let seat = crate::hosts::Seat::new(spot(&hosts, 0).state, SessionAttrs::Any);
        hosts.resolved(0, vec![address(2), address(3)], now + GONE_AFTER / 2);
        assert!(!seat.is_unfit(), "it may come back");
        hosts.resolved(0, vec![address(2), address(3)], now + GONE_AFTER);
        assert!(seat.is_unfit(), "its address is no longer the name's");
        assert!(Arc::ptr_eq(&stays, &hosts.spots[0].spot.state), "nothing of it is forgotten");
        hosts.resolved(0, Vec::new(), now + GONE_AFTER * 3);
        let places: Vec<usize> = of(&hosts);
        assert_eq!(places, [0, 1]);
        for last in 0..100 {
            hosts.resolved(0, vec![address(last), address(last + 1)], now + GONE_AFTER * 3);
        }
        assert_eq!(hosts.spots.len(), SPOTS_MAX);
    }
}
