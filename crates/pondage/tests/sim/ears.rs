//! The connections that listen for all clients of a database, and what may be wrong with them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use pondage::control::messages::{Audience, Ref, ToControl, ToWorker};
use rand::Rng;

use crate::postgres::Transaction;
use crate::statements::CHANNEL;
use crate::world::{Checked, Mail, Post, World};

/// What is listened to over one of them, and for which workers.
#[derive(Default)]
struct Ear {
    channels: HashMap<Arc<[u8]>, u64>,
    /// When it says what it has said last: nothing overtakes it.
    says: u64,
    /// Who waits for an answer.
    awaited: Vec<(Ref, u64)>,
}

#[derive(Default)]
pub struct Ears {
    of: HashMap<Arc<Audience>, Ear>,
    /// Some channels are not listened to: a fault that has to be found.
    pub forgets: bool,
    /// How often a client was found to listen to what it should.
    pub found: u64,
}

impl Ears {
    pub(crate) fn are_some(&self) -> bool {
        !self.of.is_empty()
    }
}

impl World {
    pub(crate) fn listen_for(&mut self, message: ToControl) {
        let (audience, worker, more, fewer, asker) = match message {
            ToControl::ListenAnew { database, why: Some(why) } => {
                return self.lose_ears(database.as_deref(), why);
            }
            ToControl::Listen { audience, worker, more, fewer, asker, .. } => {
                (audience, worker, more, fewer, asker)
            }
            // Another connection takes over, and nobody notices.
            _ => return,
        };
        let delay = self.random.random_range(0..20_000);
        let forgets = self.ears.forgets && self.random.random_bool(0.2);
        let ear = self.ears.of.entry(audience).or_default();
        let bit = 1 << worker;
        for channel in more.into_iter().skip(usize::from(forgets)) {
            *ear.channels.entry(channel).or_default() |= bit;
        }
        for channel in fewer {
            let Some(workers) = ear.channels.get_mut(&channel) else { continue };
            *workers &= !bit;
            if *workers == 0 {
                ear.channels.remove(&channel);
            }
        }
        let Some((client, number)) = asker else { return };
        ear.says = ear.says.max(self.now + delay);
        ear.awaited.retain(|(_, due)| *due > self.now);
        ear.awaited.push((client, ear.says));
        let mail = Mail::Tell(ToWorker::Listened { client, number });
        self.post.push(Post { due: ear.says, plane: client.worker.into(), mail });
    }

    /// Connections are lost, of this database or of all: what they were to answer is not answered.
    pub(crate) fn lose_ears(&mut self, database: Option<&str>, why: &str) {
        let of = |audience: &Audience| database.is_none_or(|name| audience.database == name);
        let lost: Vec<_> = self.ears.of.keys().filter(|audience| of(audience)).cloned().collect();
        for audience in lost {
            let Some(ear) = self.ears.of.remove(&audience) else { continue };
            self.post.retain(|post| match &post.mail {
                Mail::Tell(ToWorker::Listened { client, .. }) => {
                    !ear.awaited.contains(&(*client, post.due))
                }
                _ => true,
            });
            for plane in 0..self.planes.len() {
                let (audience, why) = (audience.clone(), why.to_owned());
                let mail = Mail::Tell(ToWorker::ListenLost { audience, why });
                self.post.push(Post { due: self.now, plane, mail });
            }
        }
    }

    /// A client to whom all is answered, outside of a transaction, listens to what it would listen to
    /// alone, and a connection does for it.
    pub(crate) fn check_listeners(&mut self) -> Checked {
        if !self.plan.habits.listens || !self.plan.habits.listens_shared {
            return Ok(());
        }
        for at in 0..self.clients.len() {
            let client = &mut self.clients[at];
            let live = !client.vanished && !client.closed && client.fatal.is_none();
            if live && !client.is_outstanding() && client.direct.is_idle() {
                self.check_channels(at).map_err(|error| self.blame(at, &error))?;
            }
        }
        Ok(())
    }

    fn check_channels(&mut self, at: usize) -> Checked {
        let client = &self.clients[at];
        let Some(slot) = client.slot else { return Ok(()) };
        let Some(state) = self.planes[client.plane].clients.get(slot) else { return Ok(()) };
        let wanted: BTreeSet<&[u8]> = client.direct.channels().map(str::as_bytes).collect();
        let all = state.listens.iter().flat_map(|listens| &listens.channels);
        let has: BTreeSet<&[u8]> = all.map(|channel| &**channel).collect();
        if wanted != has {
            return Err(format!("it would listen to {wanted:?}, and listens to {has:?}"));
        }
        let heard = |channel: &&&[u8]| {
            let ears = self.ears.of.iter().filter(|(name, _)| name.database == client.database);
            let mut known = ears.filter_map(|(_, ear)| ear.channels.get(**channel));
            known.any(|workers| workers & (1 << client.plane) != 0)
        };
        let untold = |post: &Post| {
            let lost = matches!(post.mail, Mail::Tell(ToWorker::ListenLost { .. }));
            lost && post.plane == client.plane
        };
        if let Some(channel) = has.iter().find(|channel| !heard(channel)) {
            if !self.post.iter().any(untold) {
                return Err(format!("nobody listens to {channel:?} for it"));
            }
        }
        self.ears.found += u64::from(!has.is_empty());
        Ok(())
    }
}

impl crate::postgres::Postgres {
    fn is_idle(&self) -> bool {
        self.transaction == Transaction::No
    }

    fn channels(&self) -> impl Iterator<Item = &str> {
        self.values.keys().filter_map(|name| name.strip_prefix(CHANNEL))
    }
}
