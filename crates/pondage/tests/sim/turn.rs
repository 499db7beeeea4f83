//! One turn of a worker, as `worker::driver` makes it, and what the turn asks of the world.

use std::os::unix::net::UnixStream;
use std::time::{Duration, SystemTime};

use backend::moment::Moment;
use pondage::control::messages::{OpenError, OpenKind, Opened, PoolName, ToControl, ToWorker};
use pondage::link::{Link, Socket};
use pondage::worker::plane::Effect;
use rand::Rng;
use wire::pg::auth::ScramVerifier;

use crate::judge::judge;
use crate::plan::Fault;
use crate::postgres::Postgres;
use crate::world::{ends, Checked, Mail, Post, Server, World};

impl World {
    /// One turn of a worker.
    pub(crate) fn turn(&mut self, number: usize) -> Checked {
        self.planes[number].begin_turn(Moment(self.now));
        self.unwritten.retain(|(plane, slot, server)| {
            if *plane == number {
                let plane = &mut self.planes[number];
                let list =
                    if *server { &mut plane.written_servers } else { &mut plane.written_clients };
                list.push(*slot);
            }
            *plane != number
        });
        self.deliver(number);
        self.accept(number);
        self.read_servers(number);
        self.read_links(number);
        self.read_clients(number);
        self.planes[number].end_turn();
        self.count_late(number);
        self.check_due(number)?;
        self.write(number)?;
        self.write_links(number);
        self.carry_out(number)?;
        self.linger(number)
    }

    /// A plane that has nothing to do wants no turn at once: the driver would never sleep.
    fn check_due(&self, number: usize) -> Checked {
        let plane = &self.planes[number];
        match plane.next_due() {
            Some(due) if due.0 <= self.now && !plane.has_more() => {
                Err(format!("plane {number} wants a turn at {} after that of {}", due.0, self.now))
            }
            _ => Ok(()),
        }
    }

    fn deliver(&mut self, number: usize) {
        let mut at = 0;
        while at < self.post.len() {
            let post = &self.post[at];
            if post.plane != number || post.due > self.now {
                at += 1;
                continue;
            }
            match self.post.remove(at).mail {
                Mail::Tell(message) => self.planes[number].control(message),
                Mail::Moved { parts, server } => match self.planes[number].server_arrived(*parts) {
                    Some(slot) => drop(self.at.insert((number, slot), server)),
                    None => self.servers[server].gone = true,
                },
                Mail::Linked { link, database } => self.link_arrived(number, link, database),
                Mail::Opened { ticket, server } => {
                    let opened = self.opened_message(server);
                    match self.planes[number].server_opened(ticket, &opened) {
                        Some(slot) => drop(self.at.insert((number, slot), server)),
                        None => self.servers[server].gone = true,
                    }
                }
            }
        }
    }

    fn opened_message(&self, server: usize) -> Opened {
        let (socket, _) = UnixStream::pair().expect("a pair of sockets");
        let server_state = &self.servers[server];
        Opened {
            link: Link { socket: Socket::Unix(socket), tls: None, early: Vec::new() },
            ends: ends(),
            parameters: server_state.model.parameters(),
            pid: server as u32 + 1,
            key: server_state.key.clone(),
            tls: String::new(),
            seat: None,
            life: self.life(server_state.standby),
        }
    }

    fn accept(&mut self, number: usize) {
        for (at, client) in self.clients.iter_mut().enumerate() {
            let knocks = client.plane == number && client.slot.is_none() && !client.closed;
            if knocks && self.random.random_bool(if self.calm { 1.0 } else { 0.1 }) {
                let slot = self.planes[number].client_connected(ends(), None, Moment(self.now));
                client.slot = Some(slot);
                self.client_at.insert((number, slot), at);
            }
        }
    }

    /// So many of so many bytes are read or written at once.
    pub(crate) fn part(&mut self, of: usize) -> usize {
        if of == 0 {
            0
        } else if self.plan.bytewise {
            1
        } else if self.plan.slow || self.random.random_bool(0.3) {
            self.random
                .random_range(1..=of.min(if self.plan.slow && of > 1000 { of / 4 } else { of }))
        } else {
            of.min(64 << 10)
        }
    }

    fn read_servers(&mut self, number: usize) {
        let mut slots: Vec<u32> =
            self.at.keys().filter(|(plane, _)| *plane == number).map(|(_, slot)| *slot).collect();
        slots.sort_unstable();
        self.shuffle(&mut slots);
        for slot in slots {
            for _ in 0..if self.plan.bytewise { 40 } else { 1 } {
                let Some(&server) = self.at.get(&(number, slot)) else { break };
                if !self.planes[number].server_may_read(slot) || self.random.random_bool(0.1) {
                    break;
                }
                let take = self.part(self.servers[server].model.out.len());
                if take > 0 {
                    let bytes: Vec<u8> = self.servers[server].model.out.drain(..take).collect();
                    self.planes[number].server_bytes(slot, &bytes);
                } else if self.servers[server].model.dead {
                    self.planes[number].server_closed(slot, "end");
                    break;
                } else {
                    break;
                }
            }
        }
    }

    fn shuffle(&mut self, slots: &mut [u32]) {
        for at in (1..slots.len()).rev() {
            slots.swap(at, self.random.random_range(0..=at));
        }
    }

    fn read_clients(&mut self, number: usize) {
        let mut slots: Vec<u32> = self
            .client_at
            .keys()
            .chain(self.cancellers.keys())
            .filter(|(plane, _)| *plane == number)
            .map(|(_, slot)| *slot)
            .collect();
        slots.sort_unstable();
        self.shuffle(&mut slots);
        for slot in slots {
            for _ in 0..if self.plan.bytewise { 40 } else { 1 } {
                if !self.read_client(number, slot) {
                    break;
                }
            }
        }
    }

    fn read_client(&mut self, number: usize, slot: u32) -> bool {
        if let Some(bytes) = self.cancellers.remove(&(number, slot)) {
            self.planes[number].client_bytes(slot, &bytes);
            return false;
        }
        let Some(&at) = self.client_at.get(&(number, slot)) else { return false };
        if !self.planes[number].client_may_read(slot) {
            if self.clients[at].vanished && self.random.random_bool(0.1) {
                self.planes[number].client_closed(slot);
            }
            return false;
        }
        if self.random.random_bool(0.1) {
            return false;
        }
        let take = self.part(self.clients[at].to_send.len());
        if take > 0 {
            let bytes: Vec<u8> = self.clients[at].to_send.drain(..take).collect();
            self.arrived(at, take);
            self.planes[number].client_bytes(slot, &bytes);
            return true;
        }
        if self.clients[at].vanished {
            self.planes[number].client_closed(slot);
        }
        false
    }

    fn write(&mut self, number: usize) -> Checked {
        for slot in std::mem::take(&mut self.planes[number].written_servers) {
            let Some(&server) = self.at.get(&(number, slot)) else { continue };
            let Some(length) =
                self.planes[number].servers.get(slot).map(|conn| conn.server.out.len())
            else {
                continue;
            };
            let take = self.part(length);
            let out = &mut self.planes[number].servers[slot].server.out;
            let bytes: Vec<u8> = out.drain(..take).collect();
            self.servers[server].input.extend(bytes);
            if take == length {
                self.planes[number].server_flushed(slot);
            } else {
                self.unwritten.push((number, slot, true));
            }
        }
        for slot in std::mem::take(&mut self.planes[number].written_clients) {
            let Some(length) = self.planes[number].clients.get(slot).map(|client| client.out.len())
            else {
                continue;
            };
            let Some(&at) = self.client_at.get(&(number, slot)) else {
                self.planes[number].client_flushed(slot);
                continue;
            };
            let take = self.part(length);
            let bytes: Vec<u8> = self.planes[number].clients[slot].out.drain(..take).collect();
            if !self.clients[at].vanished {
                let habits = self.plan.habits.clone();
                let heard = self.clients[at].hear(&bytes, &habits);
                heard.map_err(|error| self.blame(at, &error))?;
                for news in std::mem::take(&mut self.clients[at].news) {
                    self.judge_news(at, &news).map_err(|error| self.blame(at, &error))?;
                }
            }
            if take == length {
                self.planes[number].client_flushed(slot);
            } else {
                self.unwritten.push((number, slot, false));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, number: usize) -> Checked {
        for effect in std::mem::take(&mut self.planes[number].effects) {
            match effect {
                Effect::CloseClient(slot) => self.close_client(number, slot)?,
                Effect::CloseServer(slot) => {
                    if let Some(server) = self.at.remove(&(number, slot)) {
                        self.servers[server].gone = true;
                    }
                }
                Effect::CloseLink(link) => self.close_link(number, link),
                Effect::AskPeer(_) | Effect::AskOwner(_) => {
                    return Err("the peer was asked for".to_owned());
                }
                Effect::StartTls { .. } => return Err("TLS was begun".to_owned()),
                Effect::Peer(peer, message) => {
                    let due = self.now + self.random.random_range(0..500);
                    self.post.push(Post { due, plane: peer.into(), mail: Mail::Tell(message) });
                }
                Effect::GiveServer { slot, worker, parts } => {
                    let Some(server) = self.at.remove(&(number, slot)) else {
                        return Err("a server was given away that is not there".to_owned());
                    };
                    let due = self.now + self.random.random_range(0..500);
                    self.post.push(Post {
                        due,
                        plane: worker.into(),
                        mail: Mail::Moved { parts, server },
                    });
                }
                Effect::Control(message) => self.control(number, message)?,
            }
        }
        Ok(())
    }

    fn control(&mut self, number: usize, message: ToControl) -> Checked {
        let due = self.now + self.random.random_range(0..20_000);
        match message {
            ToControl::Open {
                ticket,
                config,
                kind: kind @ (OpenKind::Pooled | OpenKind::Session { .. }),
                ..
            } => {
                let database = config.database.clone();
                let bad_luck = self.plan.habits.storm && !self.calm;
                if self.unreachable || bad_luck && self.random.random_bool(0.1) {
                    let error = OpenError {
                        code: "08001".to_owned(),
                        message: "no way".to_owned(),
                        theirs: "no way".to_owned(),
                        detail: None,
                        hint: None,
                        permanent: self.random.random_bool(0.1),
                        at: SystemTime::UNIX_EPOCH + Duration::from_micros(self.now),
                    };
                    let failed = ToWorker::ServerOpened { ticket, result: Err(error) };
                    self.post.push(Post { due, plane: number, mail: Mail::Tell(failed) });
                    return Ok(());
                }
                self.opened += 1;
                let standby = config.upstream.several.replica.as_ref().map(|replica| replica.1);
                let server = self.servers.len();
                let mut model = match kind {
                    OpenKind::Session { parameters } => Postgres::new(&parameters),
                    _ => Postgres::new(&[]),
                };
                model.data = self.kept.data(&database);
                model.clashes = Some(Default::default());
                self.servers.push(Server {
                    database,
                    model,
                    input: Vec::new(),
                    standby,
                    wakes: None,
                    key: self.random.random::<[u8; 4]>().to_vec(),
                    gone: false,
                });
                self.post.push(Post { due, plane: number, mail: Mail::Opened { ticket, server } });
            }
            ToControl::Open { ticket, config, kind: OpenKind::Pulse, .. } => {
                self.open_link(number, ticket, &config.database, due);
            }
            ToControl::Follow { config, .. } => self.follow(&config.database),
            ToControl::Derive { client, password } => {
                let verifier = ScramVerifier::derive(&password, b"salt", 4096);
                let derived = ToWorker::Derived { client, password, verifier };
                self.post.push(Post { due, plane: number, mail: Mail::Tell(derived) });
            }
            ToControl::Judge { worker, config, shape, text, .. } => {
                let (database, user) = (config.database.clone(), config.user.clone());
                let pool = PoolName { database, user, replica: None };
                let forgets =
                    [Fault::TableForgotten, Fault::SettingsForgotten, Fault::WriteForgotten];
                let faults = forgets.map(|fault| self.has_fault(fault));
                let catalogue = self.catalogue(&pool.database);
                let verdict = judge(&mut self.random, &text, faults, &catalogue);
                let known = verdict.as_ref().ok().map(|verdict| &**verdict);
                let (kept, definitions) = self.plan_of(&pool, &text, known);
                let judged = ToWorker::Judged { pool, shape, verdict, kept, definitions };
                self.post.push(Post { due, plane: worker.into(), mail: Mail::Tell(judged) });
            }
            // Nobody probes: scripts say how far standbys are.
            ToControl::Doubt { .. } => {}
            ToControl::Redefined { database } => self.redefine(&database),
            // Its tables are published from the beginning.
            ToControl::Defined { .. } => {}
            // Its client has gone; no other process has clients.
            ToControl::CancelElsewhere { .. } => {}
            message @ (ToControl::Listen { .. } | ToControl::ListenAnew { .. }) => {
                self.listen_for(message);
            }
            ToControl::Cancel { server, asker, pid, key, .. } => {
                self.cancels.push((due, pid, key, server, asker));
            }
            other => return Err(format!("the control plane was asked {other:?}")),
        }
        Ok(())
    }

    fn close_client(&mut self, number: usize, slot: u32) -> Checked {
        let unread =
            self.planes[number].clients.get(slot).is_some_and(|client| !client.out.is_empty());
        if unread {
            if !self.lingering.contains(&(number, slot)) {
                self.lingering.push((number, slot));
            }
            return Ok(());
        }
        self.planes[number].client_forgotten(slot);
        if let Some(at) = self.client_at.remove(&(number, slot)) {
            let habits = self.plan.habits.clone();
            let heard = self.clients[at].hear_end(&habits);
            heard.map_err(|error| self.blame(at, &error))?;
        }
        Ok(())
    }

    fn linger(&mut self, number: usize) -> Checked {
        let (mine, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.lingering)
            .into_iter()
            .partition(|(plane, _)| *plane == number);
        self.lingering = others;
        for (plane, slot) in mine {
            self.close_client(plane, slot)?;
        }
        Ok(())
    }
}
