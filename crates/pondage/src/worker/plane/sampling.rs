//! Statements that are sampled for traces: one of so many, and those whose text says so.
//!
//! Only with a collector, which [`Plane::sampler`] says, is a request looked at twice. One that is
//! sampled is noted at its client until it is answered; then what is known of it is put into the
//! outbox of the process.

use rand::Rng;
use wire::pg::frame::{self, HEADER_BYTES};
use wire::pg::frontend::{self, tag};

use super::lending::user_of;
use super::requests::Taken;
use super::{Plane, WHOLE_BYTES_MAX};
use crate::config::Config;
use crate::export::parent::{self, Parent};
use crate::export::{Code, End, Sampled, Text, TEXT_BYTES_MAX};
use crate::session::trace::{Engine, Journey, Started, STARTED_MAX};

/// How many are sampled.
#[derive(Debug, Clone, Copy)]
pub struct Sampler {
    /// 0: none but those that ask for it.
    one_in: u32,
}

impl Sampler {
    /// None: traces are told to nobody.
    pub(super) fn of(config: &Config) -> Option<Sampler> {
        config.telemetry.otlp.as_ref().map(|otlp| Sampler { one_in: otlp.one_in })
    }
}

impl Plane {
    /// The next message of a client, while there is a sampler.
    pub(super) fn sampled_message(&mut self, slot: u32, bytes: &[u8]) -> Taken {
        if !self.clients[slot].looked_at {
            self.sample(slot, bytes);
        }
        let taken = self.next_message(slot, bytes);
        if let (Taken::Bytes(_), Some(client)) = (&taken, self.clients.get_mut(slot)) {
            client.looked_at = false;
        }
        taken
    }

    /// Looks at the first message of a request, once.
    fn sample(&mut self, slot: u32, bytes: &[u8]) {
        let Ok(Some(header)) = frame::header(bytes) else { return };
        let client = &self.clients[slot];
        let whole = header.total <= bytes.len();
        if !client.is_pooled() || (!whole && header.total <= WHOLE_BYTES_MAX) {
            return;
        }
        self.clients[slot].looked_at = true;
        let client = &self.clients[slot];
        let begins = matches!(header.tag, tag::QUERY | tag::PARSE | tag::BIND);
        if !begins || client.batch_open || client.skips {
            return;
        }
        let body = &bytes[HEADER_BYTES..bytes.len().min(header.total)];
        let text = match header.tag {
            tag::QUERY => body.strip_suffix(b"\0").unwrap_or(body),
            tag::PARSE => frontend::parse(body).map_or(&[][..], |parse| parse.query),
            // What a statement was prepared with belongs to who prepared it.
            _ => &[],
        };
        let parent = parent::find(text);
        if !self.is_sampled(parent) {
            return;
        }
        let text = match header.tag {
            tag::BIND => self.text_of(slot, body),
            _ if whole && text.len() <= TEXT_BYTES_MAX => Text::Own(text.into()),
            _ => Text::Unknown,
        };
        self.start_sample(slot, parent, text);
    }

    fn is_sampled(&mut self, parent: Option<Parent>) -> bool {
        let one_in = self.sampler.map_or(0, |sampler| sampler.one_in);
        match parent {
            Some(parent) => parent.sampled,
            None => one_in == 1 || one_in > 1 && self.random.random_range(0..one_in) == 0,
        }
    }

    /// The text of the statement that is bound.
    fn text_of(&self, slot: u32, body: &[u8]) -> Text {
        let Ok(Some(head)) = frontend::bind_head(body) else { return Text::Unknown };
        let Some(names) = &self.clients[slot].names else { return Text::Unknown };
        let known = match head.statement {
            b"" => None,
            name => names.get(name).cloned(),
        };
        known.map_or(Text::Unknown, Text::Prepared)
    }

    fn start_sample(&mut self, slot: u32, parent: Option<Parent>, text: Text) {
        let now = self.now;
        let client = &mut self.clients[slot];
        let (behind, within) = match self.servers.get(client.server) {
            Some(conn) => {
                let owner = backend::reply::Owner(slot);
                (conn.server.awaited_by(owner), conn.server.is_within_message(owner))
            }
            None => (0, false),
        };
        // Answers are told apart from where one begins.
        if client.trace.is_none() && within {
            return;
        }
        let trace = client.trace.get_or_insert_default();
        if behind == 0 {
            // What was not answered never will be.
            trace.started.clear();
        }
        if trace.started.len() < STARTED_MAX {
            trace.started.push_back(Started { behind, began: now, parent, text });
        }
    }

    /// A request of the client's is answered; with an error, if there is a code.
    pub(super) fn sample_answered(&mut self, slot: u32, journey: &Journey, code: Option<Code>) {
        let client = &mut self.clients[slot];
        let Some(trace) = &mut client.trace else { return };
        if let Some(started) = trace.answered() {
            self.put_sample(slot, started, *journey, code.map_or(End::Done, End::Failed));
        }
    }

    /// The client goes, or is closed: what it has asked for last is not answered.
    pub(super) fn sample_lost(&mut self, slot: u32) {
        let Some(journey) = self.journey(slot) else { return };
        let Some(trace) = &mut self.clients[slot].trace else { return };
        let Some(started) = trace.started.pop_front() else { return };
        let engine = match journey.server {
            Some(_) => journey.engine,
            None => Engine::Here,
        };
        self.put_sample(slot, started, Journey { engine, ..journey }, End::Lost);
    }

    fn put_sample(&mut self, slot: u32, started: Started, journey: Journey, end: End) {
        let client = &self.clients[slot];
        let Some(pool) = self.pools.get(client.pool as usize) else { return };
        self.common.outbox.put(Box::new(Sampled {
            parent: started.parent,
            text: started.text,
            database: pool.name.database.clone(),
            user: user_of(client, pool).to_owned(),
            client_id: client.id,
            client: client.ends,
            began: self.wall(started.began),
            took: self.now.since(started.began),
            journey,
            end,
        }));
    }
}
