//! What happens at a time: keys that expire, clients that were paused.

use super::Engine;
use crate::args::{Args, Words};
use crate::call;
use crate::command::{Command, Flags};
use crate::script;
use crate::server::Event;
use crate::session::Session;

/// Keys that one turn removes since their time is over.
const EXPIRED_MAX: usize = 256;

/// Commands that may change something, or be heard by somebody, though they are no writes; scripts
/// unless they say that they don't.
const EFFECTIVE: [&str; 7] =
    ["publish", "spublish", "eval", "evalsha", "fcall", "function", "pfcount"];

impl Engine {
    /// When something has to be done though nothing happens: milliseconds since 1970.
    pub fn next_due(&self) -> Option<i64> {
        let expiry = if self.may_expire() { self.keys.next_expiry() } else { None };
        let pause = self.server.pause.map(|pause| pause.until);
        [self.next_unblocked(), expiry, pause].into_iter().flatten().min()
    }

    /// Not while rows can't be deleted: the keys are not seen anyway. Nor while clients are paused.
    fn may_expire(&self) -> bool {
        !self.keeps_expired()
            && self.server.away.is_none()
            && self.undoing.is_none()
            && !self.is_full()
    }

    /// No key is removed because its time is over, wherever it is.
    pub(super) fn keeps_expired(&self) -> bool {
        self.server.keeps_expired || self.server.pause.is_some()
    }

    /// Removes keys whose time is over.
    pub(super) fn expire_keys(&mut self) {
        for _ in 0..EXPIRED_MAX {
            if !self.may_expire() {
                return;
            }
            let Some(done) = self.keys.expire_one(self.now) else { return };
            self.follow_up(done.barrier);
        }
    }

    /// Whether CLIENT PAUSE has this command wait.
    pub(super) fn is_paused(&self, session: &Session, command: &Command, args: Args<'_>) -> bool {
        let Some(pause) = self.server.pause else { return false };
        if self.now >= pause.until {
            return false;
        }
        let scripts = self.server.scripts.as_deref();
        let effective = |command: &Command, args: Args<'_>| {
            let may = command.flags.has(Flags::WRITE) || EFFECTIVE.contains(&command.name);
            may && !(command.group == "scripting" && script::is_read_only(scripts, command, args))
        };
        if pause.all {
            return true;
        }
        match (&session.multi, command.name) {
            (Some(multi), "exec") => {
                let mut all = multi.commands.iter().map(Words::args);
                all.any(|args| call::find(args).is_ok_and(|command| effective(command, args)))
            }
            (None, "exec") => false,
            _ => effective(command, args),
        }
    }

    /// Those that were paused go on, when the time is over or CLIENT UNPAUSE has ended it.
    pub(super) fn end_pause(&mut self) {
        if self.server.pause.is_some_and(|pause| self.now >= pause.until) {
            self.server.pause = None;
        }
        if self.server.pause.is_none() {
            for conn in std::mem::take(&mut self.server.paused) {
                self.server.tell(Event::Resume(conn));
            }
        }
    }
}
