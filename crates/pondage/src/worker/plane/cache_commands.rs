//! Commands about caches, typed on an ordinary connection: the control plane answers them while
//! the client is held.

use wire::pg::backend::{self as reply, ErrorReply, TxStatus};
use wire::pg::frame::{self, Header, HEADER_BYTES};
use wire::pg::frontend::{self, tag};
use wire::pg::sqlstate;

use super::lending::user_of;
use super::requests::Taken;
use super::{Effect, Plane, WHOLE_BYTES_MAX};
use crate::control::messages::{Ref, ToControl};
use crate::session::cache_commands::is_command;
use crate::session::client::Hold;
use crate::session::trace::may_be_command;

/// The messages of one command, as far as they are there.
enum Messages {
    /// So many bytes.
    Whole(usize),
    More,
    /// It is prepared for later, or asked for in pieces.
    Refused,
}

impl Plane {
    /// Takes a command about caches, outside of transactions. None: it is something else.
    pub(super) fn cache_command(
        &mut self,
        slot: u32,
        header: Header,
        bytes: &[u8],
    ) -> Option<Taken> {
        let have = bytes.len().min(header.total);
        let body = &bytes[HEADER_BYTES..have];
        let text = match header.tag {
            tag::QUERY => body,
            tag::PARSE => &body[body.iter().position(|byte| *byte == 0)? + 1..],
            _ => return None,
        };
        if may_be_command(text) {
            if let Some(taken) = self.trace_command(slot, header, bytes) {
                return Some(taken);
            }
        }
        if !is_command(text) || !self.may_ask(slot) || header.total > WHOLE_BYTES_MAX {
            return None;
        }
        match self.quiet_status(slot) {
            Some(TxStatus::Idle) => {}
            Some(_) => return None,
            None => {
                self.clients[slot].hold = Hold::Uncertain;
                return Some(Taken::Held);
            }
        }
        let length = match messages(header, bytes) {
            Messages::Whole(length) => length,
            Messages::More => return Some(Taken::More),
            Messages::Refused => return Some(self.refuse_preparing(slot, header, bytes)),
        };
        let client = self.reference(slot);
        let (now, session) = (self.now, &mut self.clients[slot]);
        session.hold = Hold::Control;
        session.active = now;
        // As every simple query does, and every Parse without a name.
        if let Some(names) = &mut session.names {
            names.forget_unnamed();
        }
        let pool = &self.pools[session.pool as usize];
        self.effects.push(Effect::Control(ToControl::CacheCommand {
            client,
            config: pool.config.clone(),
            user: user_of(session, pool).to_owned(),
            proven: pool.proven.clone(),
            messages: bytes[..length].to_vec(),
        }));
        Some(Taken::Bytes(length))
    }

    /// Nothing of the client's is half done.
    fn may_ask(&self, slot: u32) -> bool {
        let client = &self.clients[slot];
        let replicates = self.servers.get(client.server).is_some_and(|conn| conn.replication);
        !client.batch_open && !client.skips && client.begun.is_none() && !replicates
    }

    fn refuse_preparing(&mut self, slot: u32, header: Header, bytes: &[u8]) -> Taken {
        self.tell(slot, |out| {
            reply::put_error(
                out,
                &ErrorReply {
                    severity: "ERROR",
                    code: sqlstate::FEATURE_NOT_SUPPORTED,
                    message: "a command about caches can't be prepared",
                    detail: None,
                    hint: Some("Send it as a simple query, as psql does. [P0425]"),
                },
            );
        });
        self.clients[slot].skips = true;
        self.drop_message(slot, header, bytes)
    }

    /// What the control plane answers.
    pub(super) fn cache_reply(&mut self, client: Ref, bytes: &[u8]) {
        let Some(held) = self.clients.find(client.slot, client.generation) else { return };
        if !held.is_pooled() || held.hold != Hold::Control {
            return;
        }
        held.hold = Hold::No;
        self.tell(client.slot, |out| out.extend_from_slice(bytes));
        self.resume_later(client.slot);
    }
}

/// A Query, or `Parse "" ... Execute ... Sync`.
fn messages(first: Header, bytes: &[u8]) -> Messages {
    if first.tag == tag::QUERY {
        return match first.total <= bytes.len() {
            true => Messages::Whole(first.total),
            false => Messages::More,
        };
    }
    let mut at = 0;
    let mut runs = false;
    while let Ok(Some(header)) = frame::header(&bytes[at..]) {
        let Some(message) = bytes.get(at..at + header.total) else { break };
        at += header.total;
        match header.tag {
            tag::PARSE => match frontend::parse(&message[HEADER_BYTES..]) {
                Ok(parse) if parse.name.is_empty() => {}
                _ => return Messages::Refused,
            },
            tag::EXECUTE => runs = true,
            tag::BIND | tag::DESCRIBE | tag::CLOSE => {}
            tag::SYNC if runs => return Messages::Whole(at),
            _ => return Messages::Refused,
        }
    }
    match at < WHOLE_BYTES_MAX {
        true => Messages::More,
        false => Messages::Refused,
    }
}
