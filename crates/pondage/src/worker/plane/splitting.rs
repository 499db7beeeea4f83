//! Reads from standbys: which statements and transactions go there, and to which of them.
//!
//! A client that has a statement of its own to send is *at home*, in its pool, whose servers are the
//! primary's. Each standby has a pool beside that, and a client whose next statement is known to
//! only read, or whose transaction begins READ ONLY, is moved there until it is answered.
//!
//! What it may read there: a standby *covers* the number of a probe when it has replayed all that
//! was committed when that probe began (see `control/spots.rs`). After each answer a client notes
//! the number of the last probe that has begun. A standby that covers a later one has all that the
//! client has written and read. And a standby never goes back while it lives: whoever has read
//! there last may go on, as long as it covers what its client saw at the primary.

use std::sync::Arc;
use std::time::Duration;

use backend::moment::Moment;
use backend::pool;
use backend::settings::Settings;
use wire::pg::frame::{Header, HEADER_BYTES};
use wire::pg::frontend::tag;

use super::{Effect, Plane, PoolState};
use crate::config::{
    Balance, CacheMode, Calls, Coalesce, PoolConfig, PoolMode, SessionAttrs, Several,
};
use crate::control::messages::{PoolName, ToControl};
use crate::hosts::{HostState, Replicas, Role};
use crate::route::Share;
use crate::session::client::{Hold, NONE};
use crate::session::explain;
use crate::session::unit::extended;

/// A look at the hosts is asked for no sooner than so long after the last one.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// The standbys of a pool whose reads are split.
#[derive(Debug)]
pub struct Standbys {
    of: Arc<Replicas>,
    /// The pool at each host that may be one.
    pools: Vec<(u32, Arc<HostState>)>,
    /// How often they have been taken in turn.
    turn: usize,
    /// When the hosts were last to be looked at.
    looked: Moment,
}

/// How far a client has seen.
#[derive(Debug, Default)]
pub struct Sight {
    /// Probes that had begun when the primary answered it last.
    primary: u64,
    /// And when a standby did.
    standby: u64,
    /// Which one, by its pool, in which of its lives.
    at: (u32, u64),
    /// What comes next stays at home.
    pub(super) stays: bool,
    /// Bytes of the whole statement that comes next and is known to only read; 0: it is something
    /// else.
    pub(super) reads: usize,
}

impl Plane {
    /// A client comes into a pool.
    pub(super) fn split_begins(&mut self, slot: u32, at: u32) {
        let config = &self.pools[at as usize].config;
        if config.upstream.several.split && config.mode != PoolMode::Session {
            self.clients[slot].sight = Some(Box::default());
            if self.pools[at as usize].standbys.is_none() {
                self.find_standbys(at);
            }
        }
    }

    /// The control plane has told of the hosts of a list.
    pub(super) fn know_replicas(&mut self, replicas: Arc<Replicas>) {
        let list = replicas.list.clone();
        self.replicas.retain(|known| known.list != list);
        self.replicas.push(replicas);
        for at in 0..self.pools.len() as u32 {
            let pool = &self.pools[at as usize];
            if pool.home == NONE && pool.config.upstream.hosts() == list {
                self.find_standbys(at);
            }
        }
    }

    /// Makes the pools beside a pool whose reads are split.
    pub(super) fn find_standbys(&mut self, at: u32) {
        let config = self.pools[at as usize].config.clone();
        let hosts = config.upstream.hosts();
        let splits = config.upstream.several.split && config.mode != PoolMode::Session;
        let known = self.replicas.iter().find(|known| splits && known.list == hosts).cloned();
        let before = self.pools[at as usize].standbys.take();
        let Some(of) = known else { return };
        if !before.is_some_and(|before| Arc::ptr_eq(&before.of.probes, &of.probes)) {
            // Other numbers: nobody knows what they have seen.
            for slot in self.clients.numbers() {
                let client = &mut self.clients[slot];
                let here = client.pool == at
                    || self.pools.get(client.pool as usize).is_some_and(|pool| pool.home == at);
                if let Some(sight) = client.sight.as_mut().filter(|_| here) {
                    sight.primary = u64::MAX;
                }
            }
        }
        let mut pools = Vec::new();
        for (place, state) in of.hosts.iter().enumerate() {
            if let Some(state) = state {
                pools.push((self.pool_at(at, place), state.clone()));
            }
        }
        let standbys = Standbys { of, pools, turn: 0, looked: Moment(0) };
        self.pools[at as usize].standbys = Some(Box::new(standbys));
    }

    /// The pool of one host beside the pool `home`.
    fn pool_at(&mut self, home: u32, place: usize) -> u32 {
        let config = Arc::new(beside(&self.pools[home as usize].config, place));
        let name = PoolName::of(&config);
        let at = match self.pool_by_name.get(&name) {
            Some(known) => *known,
            None => self.pool_of(config),
        };
        self.pools[at as usize].home = home;
        at
    }

    /// What a pool beside another lives by, once that has another configuration. None: there is
    /// nothing to read there any more.
    pub(super) fn renewed_beside(&self, name: &PoolName) -> Option<Arc<PoolConfig>> {
        let place = name.replica?;
        let home = self.config.pool(&name.database, &name.user).ok()?;
        let several = &home.upstream.several;
        let splits = several.split && home.mode != PoolMode::Session;
        let same = home.user == name.user && place <= several.others.len();
        (splits && same).then(|| Arc::new(beside(&home, place)))
    }

    /// Each worker has its part of the size.
    pub(super) fn limits_beside(&self, limits: &mut pool::Limits) {
        limits.size = (limits.size / self.config.runtime.workers.max(1) as u32).max(1);
    }

    /// Before a request is taken: where it goes, if it is the first of a statement.
    pub(super) fn choose(&mut self, slot: u32, header: Header, bytes: &[u8]) {
        let client = &self.clients[slot];
        if client.is_busy() || client.batch_open || client.skips {
            return;
        }
        self.go_home(slot);
        let client = &mut self.clients[slot];
        let Some(sight) = client.sight.as_mut() else { return };
        sight.reads = 0;
        // Where its transaction goes is chosen when that needs a server.
        let begun = client.begun.is_some();
        if (!begun && std::mem::take(&mut sight.stays))
            || !matches!(header.tag, tag::QUERY | tag::PARSE | tag::BIND)
            || self.pools[client.pool as usize].standbys.is_none()
            || self.only_reads(slot, header, bytes) != Some(true)
        {
            return;
        }
        if let Some(sight) = &mut self.clients[slot].sight {
            sight.reads = bytes.len();
        }
        if !begun {
            self.leave_home(slot);
        }
    }

    /// A transaction needs a server.
    pub(super) fn choose_for_transaction(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let (Some(sight), Some(begun)) = (&mut client.sight, &client.begun) else { return };
        if self.pools[client.pool as usize].home != NONE || std::mem::take(&mut sight.stays) {
            return;
        }
        if !begun.failed && sql::begins_read_only(&begun.text) && self.has_usual_settings(slot) {
            self.leave_home(slot);
        }
    }

    /// Whether a whole statement with nothing behind it is known to read only.
    fn only_reads(&mut self, slot: u32, header: Header, bytes: &[u8]) -> Option<bool> {
        let at = self.clients[slot].pool;
        let statement;
        let text = match header.tag {
            tag::QUERY if header.total == bytes.len() => {
                statement = None;
                bytes[HEADER_BYTES..].strip_suffix(b"\0")?
            }
            tag::QUERY => return None,
            _ => {
                let asked = extended(bytes)?;
                match asked.parse {
                    Some(parse) => {
                        statement = None;
                        parse.query
                    }
                    None => {
                        let names = self.clients[slot].names.as_ref()?;
                        statement = Some(names.get(asked.bind.statement)?.clone());
                        &statement.as_ref()?.query
                    }
                }
            }
        };
        if explain::is_request(text) {
            return None;
        }
        let shapes = &mut self.pools[at as usize].shapes;
        let id = match &statement {
            Some(statement) => shapes.of_statement(statement, &mut self.scan)?,
            None if self.scan.scan(text) => shapes.of(self.scan.shape()),
            None => return None,
        };
        let shape = shapes.get_mut(id)?;
        let reads = shape.verdict.as_ref().map(|verdict| verdict.share == Share::Batch);
        if shape.ask(self.now) {
            self.judge(at, id, text);
        }
        Some(reads? && self.has_usual_settings(slot))
    }

    /// Names and strings mean in its session what they mean where statements are judged, and it has
    /// chosen no isolation.
    fn has_usual_settings(&mut self, slot: u32) -> bool {
        let client = &self.clients[slot];
        let PoolState { company, welcome, .. } = &mut self.pools[client.pool as usize];
        welcome.as_ref().and_then(|all| company.group(&client.settings, all, false)).is_some()
    }

    /// Moves a client to a standby that has all that it has seen, if there is one.
    fn leave_home(&mut self, slot: u32) {
        let at = self.clients[slot].pool;
        let Some(mut standbys) = self.pools[at as usize].standbys.take() else { return };
        let chosen = self.standby_for(slot, &mut standbys);
        if let Some(to) = chosen {
            if self.pools[to as usize].welcome.is_none() {
                self.pools[to as usize].welcome = self.pools[at as usize].welcome.clone();
            }
            self.pools[to as usize].proven = self.pools[at as usize].proven.clone();
            self.move_client(slot, to);
            self.pools[at as usize].totals.split_reads += 1;
        } else if self.now >= standbys.looked.after(LOOK_AFTER) {
            standbys.looked = self.now;
            let config = self.pools[at as usize].config.clone();
            self.effects.push(Effect::Control(ToControl::Doubt { config }));
        }
        self.pools[at as usize].standbys = Some(standbys);
    }

    fn standby_for(&self, slot: u32, standbys: &mut Standbys) -> Option<u32> {
        let sight = self.clients[slot].sight.as_ref()?;
        let will_do = |(at, state): &(u32, Arc<HostState>)| {
            let pool = &self.pools[*at as usize];
            let lost = pool.failing.is_some() && pool.servers.is_empty();
            let covers = state.covers();
            let stays = sight.at == (*at, pool.life) && pool.life != 0;
            state.role() == Some(Role::Standby)
                && !(lost || pool.paused || pool.disabled || pool.retired)
                && sight.primary < covers
                && (stays || sight.standby < covers)
        };
        let pools = &standbys.pools;
        if let Some((last, _)) = pools.iter().find(|one| one.0 == sight.at.0 && will_do(one)) {
            return Some(*last);
        }
        let count = pools.len();
        let in_turn = (0..count).map(|next| &pools[(standbys.turn + next) % count]);
        let fit = in_turn.filter(|one| will_do(one));
        let home = &self.pools[self.clients[slot].pool as usize].config;
        let chosen = match home.upstream.several.balance {
            Balance::LeastConnections => fit.min_by_key(|(_, state)| state.connections()),
            Balance::Disable | Balance::RoundRobin => fit.into_iter().next(),
        };
        let chosen = chosen.map(|(at, _)| *at)?;
        let place = pools.iter().position(|(at, _)| *at == chosen)?;
        standbys.turn = place + 1;
        Some(chosen)
    }

    fn move_client(&mut self, slot: u32, to: u32) {
        let client = &mut self.clients[slot];
        let from = std::mem::replace(&mut client.pool, to);
        client.asking = NONE;
        if let Some(last) = &mut client.last {
            // Shapes have other numbers there.
            last.shape = None;
        }
        self.pools[from as usize].clients -= 1;
        self.pools[to as usize].clients += 1;
    }

    /// A client that is done at a standby is at home again.
    pub(super) fn go_home(&mut self, slot: u32) {
        let Some(client) = self.clients.get(slot).filter(|client| client.sight.is_some()) else {
            return;
        };
        let Some(pool) = self.pools.get(client.pool as usize) else { return };
        let home = pool.home;
        if home != NONE {
            self.move_client(slot, home);
            self.clients[slot].close_needed |= self.pools[home as usize].retired;
        }
    }

    /// Clients that wait for a server at a standby ask the primary instead.
    pub(super) fn send_home(&mut self, at: u32) {
        if self.pools[at as usize].home == NONE {
            return;
        }
        for slot in self.pools[at as usize].pool.waiting_since(self.now) {
            self.pools[at as usize].pool.leave(slot);
            let client = &mut self.clients[slot];
            client.hold = Hold::No;
            if let Some(sight) = &mut client.sight {
                sight.stays = true;
            }
            self.go_home(slot);
            self.resume_later(slot);
        }
    }

    /// A server of a standby is there, of this life.
    pub(super) fn lives(&mut self, at: u32, life: u64) {
        let pool = &mut self.pools[at as usize];
        if pool.home == NONE || std::mem::replace(&mut pool.life, life) == life {
            return;
        }
        // It may have less than before: who has chosen it by what it had then chooses again.
        pool.epoch += 1;
        self.send_home(at);
    }

    /// What a standby reports is not what its clients were told, where they can't set it.
    pub(super) fn as_at_home(&mut self, at: u32, defaults: Arc<Settings>) -> Arc<Settings> {
        let Some(home) = self.pools.get(self.pools[at as usize].home as usize) else {
            return defaults;
        };
        let Some(told) = &home.welcome else { return defaults };
        let fixed = told.iter().filter(|(name, _)| backend::settings::read_only(name));
        self.settings.intern(defaults.overlaid(fixed))
    }

    /// A client is answered: no less than this may it be told from now on.
    pub(super) fn note_seen(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let Some(sight) = &mut client.sight else { return };
        let at = client.pool;
        let pool = &self.pools[at as usize];
        let home = if pool.home == NONE { pool } else { &self.pools[pool.home as usize] };
        let now = home.standbys.as_ref().map_or(u64::MAX, |standbys| standbys.of.now());
        if pool.home == NONE {
            sight.primary = now;
        } else {
            // Its last answer may have outlived the server.
            let life = self.servers.get(client.server).map_or(0, |conn| conn.life);
            (sight.standby, sight.at) = (now, (at, life));
        }
    }
}

/// The same pool at one of its hosts, as a standby. Its statements travel alone.
fn beside(home: &PoolConfig, place: usize) -> PoolConfig {
    let mut here = home.clone();
    let list = home.upstream.hosts();
    here.upstream = home.upstream.at(place);
    here.upstream.several = Several {
        target: SessionAttrs::Standby,
        replica: Some(Arc::new((list, place))),
        ..Several::default()
    };
    here.min_pool_size = 0;
    (here.coalesce, here.coalesce_writes) = (Coalesce::Off, false);
    (here.cache, here.procedures) = (CacheMode::Off, Calls::Off);
    here
}
