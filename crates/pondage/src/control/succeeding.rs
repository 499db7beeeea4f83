//! Another connection takes the place of one that listens: nothing is lost, and nothing is told twice.
//!
//! PostgreSQL has one queue of notifications, in the order in which they were committed, and who
//! listens reads it in that order. So a notification on a channel of which only these two know is a
//! mark at the same place in what both hear: the old one counts up to it, the new one from it on.
//!
//! If the old one does not hear it, they are on different servers: somebody has moved the database,
//! and what was committed between the two is missed.
//!
//! Source: "Async" in PostgreSQL's `async.c`; PostgreSQL docs, NOTIFY.

use tokio::time::timeout;
use wire::pg::backend::{self as reply, tag};
use wire::pg::frontend;

use super::listening::{heard, notify, Ear, Heard, ANSWER_MAX, ELSEWHERE};
use super::open::Session;
use crate::session::listens::put_command;

impl Ear {
    /// `session` listens from now on.
    pub(super) async fn hand_over(&mut self, session: Session) -> Result<(), String> {
        match timeout(ANSWER_MAX, self.be_followed_by(session)).await {
            Ok(done) => done,
            Err(_) => Err("the server does not answer".to_owned()),
        }
    }

    async fn be_followed_by(&mut self, mut new: Session) -> Result<(), String> {
        while self.answering.is_some() {
            let message = self.session.message().await;
            if let Heard::Answer = heard(&self.connects, &self.channels, message)? {
                self.answered();
            }
        }
        let mark = format!("pondage_{:032x}", rand::random::<u128>());
        let mut commands = Vec::new();
        put_command(&mut commands, b"LISTEN", mark.as_bytes());
        self.ask(&commands, &mark).await?;
        for channel in self.channels.keys() {
            put_command(&mut commands, b"LISTEN", channel);
        }
        // What it hears now, the old one hears as well.
        since(&mut new, &commands, &mark).await?;
        commands.clear();
        put_command(&mut commands, b"NOTIFY", mark.as_bytes());
        let more = since(&mut new, &commands, &mark).await?;
        if !self.ask(b"", &mark).await? {
            return Err(ELSEWHERE.to_owned());
        }
        self.close().await;
        self.session = new;
        put_command(&mut self.commands, b"UNLISTEN", mark.as_bytes());
        for body in more {
            let sent =
                notify(&self.connects.control, &self.connects.audience, &self.channels, &body);
            sent.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Asks the old connection, and hears it until it has answered, or up to the mark: whether that
    /// was there.
    async fn ask(&mut self, query: &[u8], mark: &str) -> Result<bool, String> {
        send(&mut self.session, query).await?;
        loop {
            let message = self.session.message().await;
            if message.as_ref().is_ok_and(|(kind, body)| is_mark(*kind, body, mark)) {
                return Ok(true);
            }
            if let Heard::Answer = heard(&self.connects, &self.channels, message)? {
                return Ok(false);
            }
        }
    }
}

/// Asks the new connection. Returns what it was notified of behind the mark.
async fn since(session: &mut Session, query: &[u8], mark: &str) -> Result<Vec<Vec<u8>>, String> {
    send(session, query).await?;
    let (mut marked, mut more) = (false, Vec::new());
    loop {
        let (kind, body) = session.message().await.map_err(|error| error.to_string())?;
        match kind {
            tag::READY_FOR_QUERY => return Ok(more),
            tag::ERROR => return Err("the new connection can't listen".to_owned()),
            _ if is_mark(kind, body, mark) => marked = true,
            tag::NOTIFICATION if marked => more.push(body.to_vec()),
            _ => {}
        }
    }
}

fn is_mark(kind: u8, body: &[u8], mark: &str) -> bool {
    let channel =
        |body| reply::notification(body).is_ok_and(|(_, channel, _)| channel == mark.as_bytes());
    kind == tag::NOTIFICATION && channel(body)
}

async fn send(session: &mut Session, query: &[u8]) -> Result<(), String> {
    let mut out = Vec::new();
    frontend::put_query(&mut out, query);
    session.send(&out).await.map_err(|error| error.to_string())
}
