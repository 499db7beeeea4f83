//! Errors: who is told, what is skipped behind them, and what came to nothing and can be sent again.

use wire::pg::backend as messages;
use wire::pg::sqlstate;

use super::{Copy, LastWords, Server, Unnamed, Verdict};
use crate::reply::{Again, Event, Fate, Guest, Kind, Outcome, Owner, Replies, Request};

enum Rejects {
    /// The owner is told.
    No,
    /// It is the server that dies.
    Fatal,
    For(Again),
}

impl Server {
    /// After an error in the extended protocol everything up to the next Sync is skipped; after
    /// one in a simple Query or a FunctionCall, or in the Sync itself, nothing is.
    /// Source: PostgreSQL docs, "Message Flow: Extended Query".
    pub(super) fn error(
        &mut self,
        body: &[u8],
        head: Request,
        replies: &mut impl Replies,
    ) -> Verdict {
        let rejects = self.rejects(head, body);
        if is_fatal(body) {
            self.last_words = LastWords::ToldTo(match (head.fate, &rejects) {
                (Fate::Forward | Fate::HideSuccess, Rejects::No) => head.owner,
                _ => Owner::NOBODY,
            });
        }
        if let Copy::In(owner) = self.copy {
            self.copy = Copy::No;
            replies.event(owner, Event::CopyOver);
        }
        // Requests that would have changed it may be skipped.
        self.unnamed = Unnamed::Stale;
        let verdict = match head.fate {
            Fate::Forward | Fate::HideSuccess => match rejects {
                Rejects::No => {
                    replies.event(head.owner, Event::Error);
                    Verdict::Pass(head.owner)
                }
                Rejects::Fatal => Verdict::Drop,
                Rejects::For(again) => {
                    self.rejected = Some(again);
                    Verdict::Drop
                }
            },
            Fate::Setup => {
                self.setup_error.get_or_insert_with(|| body.to_vec());
                Verdict::Drop
            }
            Fate::Must => {
                self.broken = true;
                Verdict::Drop
            }
            Fate::Hide | Fate::Made(_) => Verdict::Drop,
        };
        if !head.kind.ends_batch() {
            self.skip(head.owner, replies);
        }
        verdict
    }

    /// Whether the owner of a request that failed is told.
    fn rejects(&self, head: Request, error: &[u8]) -> Rejects {
        if head.guest == Guest::No {
            return Rejects::No;
        }
        let fields = messages::error_fields(error).ok();
        let code = fields.as_ref().and_then(|fields| fields.code());
        let conflicts =
            matches!(code, Some(sqlstate::DEADLOCK_DETECTED | sqlstate::SERIALIZATION_FAILURE));
        if head.repeats && conflicts && (head.guest == Guest::Hurried || !self.begun) {
            return Rejects::For(Again::Conflict);
        }
        if head.guest == Guest::Hurried {
            let foreign = self.cancelling.is_some_and(|owner| owner != head.owner);
            return match code {
                Some(sqlstate::LOCK_NOT_AVAILABLE) => Rejects::For(Again::Hurried),
                Some(sqlstate::QUERY_CANCELED) if foreign => Rejects::For(Again::Hurried),
                _ if is_fatal(error) => Rejects::Fatal,
                _ => Rejects::No,
            };
        }
        if self.begun {
            return Rejects::No;
        }
        if is_fatal(error) {
            return Rejects::Fatal;
        }
        match head.guest {
            Guest::StandIn => Rejects::For(Again::Refused),
            _ => Rejects::No,
        }
    }

    /// PostgreSQL looks at nothing before the next Sync. What others have in the same batch has
    /// come to nothing with it.
    fn skip(&mut self, failed: Owner, replies: &mut impl Replies) {
        let mut outcome = Outcome::Failed;
        let mut part = None;
        while let Some(&request) = self.queue.front() {
            if request.kind.is_sync() {
                break;
            }
            self.queue.pop_front();
            self.settle(request, outcome, replies);
            outcome = Outcome::Skipped;
            if request.kind != Kind::Part {
                continue;
            }
            if part.is_none() && request.owner == failed {
                part = Some(request);
            } else if request.owner != Owner::NOBODY {
                replies.event(request.owner, Event::Again(Again::Skipped));
            }
        }
        self.skipping = self.queue.is_empty();
        // After its error comes its ReadyForQuery; after a server's last words nothing.
        if let Some(part) = part.filter(|_| !self.is_dying()) {
            self.queue.push_front(part);
        }
    }
}

pub(super) fn is_fatal(error: &[u8]) -> bool {
    let fields = messages::error_fields(error).ok();
    let severity = fields.and_then(|fields| fields.severity());
    matches!(severity, Some("FATAL" | "PANIC"))
}
