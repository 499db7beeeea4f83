//! COPY FROM STDIN: Syncs that PostgreSQL does not answer, and how to be sure of that.

use wire::pg::frontend::{self, Target};

use super::{Copy, Server};
use crate::reply::{Event, Fate, Kind, Owner, Replies, Request};

impl Server {
    /// PostgreSQL takes no notice of Syncs while it copies in, in both protocols: those that were
    /// sent before the CopyDone are not answered.
    pub(super) fn copy_in(&mut self, head: Request, replies: &mut impl Replies) {
        let own = |request: &Request| request.owner == head.owner;
        while self.queue.get(1).is_some_and(|next| next.kind == Kind::Sync && own(next)) {
            self.queue.remove(1);
            self.eaten_syncs += 1;
        }
        let answered = self.queue.iter().any(|request| own(request) && request.kind.ends_batch());
        replies.event(head.owner, Event::CopyIn { open: !answered });
        match self.queue.front_mut() {
            Some(head) if head.copies_ended > 0 => head.copies_ended -= 1,
            _ => self.copy = Copy::In(head.owner),
        }
    }

    /// CopyDone or CopyFail was sent: Syncs that come now are answered.
    pub fn copy_done(&mut self) {
        if self.copies_in() {
            self.copy = Copy::No;
            return;
        }
        let last = self.queue.iter_mut().rev().find(|request| !request.kind.is_sync());
        if let Some(request) = last {
            request.copies_ended = request.copies_ended.saturating_add(1);
        }
    }

    /// A Sync is sent while the server copies in.
    pub fn sync_in_copy(&mut self) {
        self.eaten_syncs += 1;
    }

    /// Asks something harmless whose answer no ReadyForQuery can be taken for: what comes before
    /// it are answers to Syncs that were thought to be eaten.
    pub fn fence(&mut self, replies: &mut impl Replies) {
        self.fenced = true;
        let hidden = |kind| Request::with_fate(Owner::NOBODY, kind, Fate::Hide);
        frontend::put_close(&mut self.out, Target::Portal, b"");
        self.push(hidden(Kind::Close), replies);
        frontend::put_sync(&mut self.out);
        self.push(hidden(Kind::Sync), replies);
    }
}
