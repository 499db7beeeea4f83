//! What a client listens to, and what it has still to be told.
//!
//! Its LISTEN runs on a pooled server, in its own transaction, so PostgreSQL says which channels
//! come of it; notifications come from the connection that listens for all. What the server is told
//! while the client has it says which of them are the client's own, and is what the client hears of
//! channels that the same transaction has begun to listen to: PostgreSQL tells what was committed
//! before its end, too.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::session::client::NONE;

/// Where the process id stands in a NotificationResponse.
const PID: std::ops::Range<usize> = 5..9;

#[derive(Debug)]
pub struct Listens {
    /// Its worker's number of the audience that it is in.
    pub audience: u32,
    pub channels: Vec<Arc<[u8]>>,
    /// Those that are not listened to yet, as far as it is known.
    pub coming: Vec<Arc<[u8]>>,
    /// What PostgreSQL has said of its channels, and nobody has looked at.
    pub found: Option<Vec<Box<[u8]>>>,
    /// The ReadyForQuery of its transaction is kept back.
    pub ready: bool,
    /// It has a server, and begins when it has been told what was committed before.
    pub begins: bool,
    /// It keeps a server, and is between two transactions: it is told at once, as if it had none.
    pub rests: bool,
    /// The question whose answer it waits for.
    pub asked: u32,
    /// Notifications that it is told when it is idle.
    held: VecDeque<Arc<[u8]>>,
    /// Those that its server was told in its last transaction.
    here: VecDeque<Here>,
    /// Of `held` and `here`.
    bytes: usize,
    /// The process that had its last transaction.
    pub pid: u32,
}

/// A notification that a client's server was told.
#[derive(Debug)]
struct Here {
    message: Box<[u8]>,
    /// Nothing else tells it: it is of a channel that is new to the client.
    fresh: bool,
}

impl Default for Listens {
    fn default() -> Listens {
        Listens {
            audience: NONE,
            channels: Vec::new(),
            coming: Vec::new(),
            found: None,
            ready: false,
            begins: false,
            rests: false,
            asked: 0,
            held: VecDeque::new(),
            here: VecDeque::new(),
            bytes: 0,
            pid: 0,
        }
    }
}

impl Listens {
    pub fn has_channels(&self) -> bool {
        !self.channels.is_empty() || !self.coming.is_empty()
    }

    /// It listens to nothing, and is owed nothing.
    pub fn is_over(&self) -> bool {
        !self.has_channels() && self.found.is_none() && !self.ready && !self.is_owed()
    }

    /// Something waits for it.
    pub fn is_owed(&self) -> bool {
        !self.held.is_empty()
    }

    /// A notification that it will be told. Returns how many bytes wait.
    pub fn hold(&mut self, message: Arc<[u8]>) -> usize {
        self.bytes += message.len();
        self.held.push_back(message);
        self.bytes
    }

    /// One that its server was told. Returns how many bytes wait.
    pub fn hold_here(&mut self, message: Box<[u8]>) -> usize {
        self.bytes += message.len();
        let fresh = !self.listens_to(channel_of(&message));
        self.here.push_back(Here { message, fresh });
        self.bytes
    }

    fn listens_to(&self, channel: &[u8]) -> bool {
        self.channels.iter().any(|one| **one == *channel)
    }

    /// The next one that it can be told while it is idle.
    pub fn take(&mut self) -> Option<Arc<[u8]>> {
        let message = self.held.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }

    /// Everything of the transaction that has ended, in order, its own with this process id.
    /// Returns how many there are.
    pub fn tell(&mut self, pid: u32, out: &mut Vec<u8>) -> u64 {
        let mut told = 0;
        self.bytes = 0;
        let mut put = |message: &[u8], own: bool| {
            let start = out.len();
            out.extend_from_slice(message);
            if own {
                out[start..][PID].copy_from_slice(&pid.to_be_bytes());
            }
            told += 1;
        };
        let server = self.pid;
        let (held, here) = (std::mem::take(&mut self.held), std::mem::take(&mut self.here));
        let mut left: HashMap<&[u8], usize> = HashMap::new();
        here.iter().for_each(|one| *left.entry(&one.message).or_default() += 1);
        // What the server was told is older than what comes behind the last that both have.
        let both = held.iter().rposition(|one| left.contains_key(&one[..]));
        let mut here = here.iter();
        let only_here = |one: &Here, put: &mut dyn FnMut(&[u8], bool)| {
            let own = pid_of(&one.message) == server;
            // Others were told before the transaction began, or will be. A channel that it does not
            // listen to was left to its server by somebody else, in a way that was not seen.
            if (own || one.fresh) && self.listens_to(channel_of(&one.message)) {
                put(&one.message, own);
            }
        };
        for (at, message) in held.iter().enumerate() {
            let known = left.get(&message[..]).is_some_and(|count| *count > 0);
            let newer = both.is_none_or(|both| at > both);
            let older = if known || newer { here.len() } else { 0 };
            for one in here.by_ref().take(older) {
                left.entry(&one.message).and_modify(|count| *count -= 1);
                if known && one.message[..] == message[..] {
                    break;
                }
                only_here(one, &mut put);
            }
            if known || self.listens_to(channel_of(message)) {
                put(message, known && pid_of(message) == server);
            }
        }
        here.for_each(|one| only_here(one, &mut put));
        told
    }
}

/// Appends a command about a channel, whose name is as PostgreSQL has it: in quotes it means itself.
pub fn put_command(out: &mut Vec<u8>, verb: &[u8], channel: &[u8]) {
    out.extend_from_slice(verb);
    out.extend_from_slice(b" \"");
    for byte in channel {
        out.push(*byte);
        if *byte == b'"' {
            out.push(b'"');
        }
    }
    out.extend_from_slice(b"\";");
}

/// The process that has sent a NotificationResponse.
fn pid_of(message: &[u8]) -> u32 {
    message.get(PID).and_then(|pid| pid.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The channel of a NotificationResponse.
pub fn channel_of(message: &[u8]) -> &[u8] {
    let rest = message.get(PID.end..).unwrap_or_default();
    &rest[..rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: u32 = 77;
    const OTHER: u32 = 78;
    const CLIENT: u32 = 5;

    fn message(pid: u32, channel: &str, payload: &str) -> Vec<u8> {
        let mut out = Vec::new();
        wire::pg::backend::put_notification(&mut out, pid, channel, payload);
        out
    }

    fn of(channels: &[&str]) -> Listens {
        let channels = channels.iter().map(|name| Arc::from(name.as_bytes())).collect();
        Listens { channels, pid: SERVER, ..Listens::default() }
    }

    fn told(listens: &mut Listens, expected: &[(u32, &str, &str)]) {
        let mut out = Vec::new();
        let count = listens.tell(CLIENT, &mut out);
        let wanted: Vec<u8> = expected.iter().flat_map(|(p, c, x)| message(*p, c, x)).collect();
        assert_eq!(out.escape_ascii().to_string(), wanted.escape_ascii().to_string());
        assert_eq!((count, listens.bytes), (expected.len() as u64, 0));
    }

    #[test]
    fn own_notifications_stand_where_they_were_committed_and_have_the_clients_number() {
        let mut listens = of(&["old"]);
        listens.hold(message(OTHER, "old", "1").into());
        // Of somebody who had this server before.
        listens.hold(message(SERVER, "old", "2").into());
        listens.hold(message(SERVER, "old", "4").into());
        listens.hold(message(OTHER, "old", "6").into());
        // Its own server was told what it is told elsewhere, and more.
        for (pid, channel, payload) in [
            (OTHER, "old", "0"),
            (SERVER, "new", "3"),
            (SERVER, "old", "4"),
            (OTHER, "new", "5"),
            (OTHER, "old", "6"),
            (SERVER, "new", "7"),
        ] {
            listens.hold_here(message(pid, channel, payload).into());
        }
        listens.channels.push(Arc::from(&b"new"[..]));
        listens.hold(message(OTHER, "new", "8").into());
        told(
            &mut listens,
            &[
                (OTHER, "old", "1"),
                (SERVER, "old", "2"),
                (CLIENT, "new", "3"),
                (CLIENT, "old", "4"),
                (OTHER, "new", "5"),
                (OTHER, "old", "6"),
                (CLIENT, "new", "7"),
                (OTHER, "new", "8"),
            ],
        );
        assert!(listens.take().is_none());
    }

    #[test]
    fn what_is_no_longer_listened_to_is_not_told() {
        let mut listens = of(&["a"]);
        listens.hold(message(OTHER, "b", "1").into());
        listens.hold(message(OTHER, "a", "2").into());
        told(&mut listens, &[(OTHER, "a", "2")]);
        assert!(!listens.is_over());
        listens.channels.clear();
        assert!(listens.is_over());
    }

    #[test]
    fn bytes_that_wait_are_counted() {
        let mut listens = of(&["a"]);
        let one = message(OTHER, "a", "1");
        assert_eq!(listens.hold(one.clone().into()), one.len());
        assert_eq!(listens.hold_here(one.clone().into()), 2 * one.len());
        assert_eq!(listens.take().as_deref(), Some(&one[..]));
        assert_eq!(listens.bytes, one.len());
        assert_eq!((pid_of(&one), channel_of(&one)), (OTHER, &b"a"[..]));
        assert_eq!((pid_of(b""), channel_of(b"")), (0, &b""[..]));
    }
}
