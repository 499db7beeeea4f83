//! Errors: who is told, what is skipped behind them, and what came to nothing and can be sent again.

use wire::pg::backend as messages;
use wire::pg::sqlstate;

use super::{flush, Copy, LastWords, Server, Unnamed, Verdict};
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
        if is_turned(body) {
            replies.event(head.owner, Event::Turned);
        }
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
        match staleness(head, body) {
            Some(Stale::Unusable) => replies.event(head.owner, Event::Stale(head.statement)),
            Some(Stale::Misread) => replies.event(head.owner, Event::Misread(head.statement)),
            None => {}
        }
        let verdict = match head.fate {
            Fate::Forward | Fate::HideSuccess => match rejects {
                Rejects::No => {
                    self.tell_parameters(head, replies);
                    replies.event(head.owner, Event::Error);
                    Verdict::Pass(head.owner)
                }
                Rejects::Fatal => Verdict::Drop,
                Rejects::For(again) => {
                    self.parameters.clear();
                    self.rejected = Some(again);
                    if head.flushes {
                        replies.event(head.owner, Event::Unended);
                    }
                    self.withheld =
                        (head.guest == Guest::No).then(|| message(messages::tag::ERROR, body));
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
        // Behind a Flush more may have come.
        let alone = !head.flushes || self.queue.len() == 1;
        let replans = head.replans && alone && !self.begun;
        if replans && staleness(head, error) == Some(Stale::Unusable) {
            return Rejects::For(Again::Stale);
        }
        if head.guest == Guest::No && !self.yields {
            return Rejects::No;
        }
        let fields = messages::error_fields(error).ok();
        let code = fields.as_ref().and_then(|fields| fields.code());
        let conflicts =
            matches!(code, Some(sqlstate::DEADLOCK_DETECTED | sqlstate::SERIALIZATION_FAILURE));
        if head.guest == Guest::No {
            return match conflicts {
                true if is_fatal(error) => Rejects::Fatal,
                true => Rejects::For(Again::Elsewhere),
                false => Rejects::No,
            };
        }
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

    /// Whether an owner who has a server for itself can send its statement again: not with more of
    /// its own behind it, then it is told of the error after all.
    pub(super) fn is_kept_back(&mut self, head: Request, replies: &mut impl Replies) -> bool {
        if self.queue.is_empty() || self.withheld.is_none() {
            return true;
        }
        let error = self.take_withheld();
        flush(&error, head.owner, replies);
        replies.event(head.owner, Event::Error);
        false
    }

    /// What was described stands.
    pub(super) fn tell_parameters(&mut self, head: Request, replies: &mut impl Replies) {
        if !self.parameters.is_empty() {
            flush(&std::mem::take(&mut self.parameters), head.owner, replies);
        }
    }

    /// The error in place of which [`Event::Again`] was told to an owner who has the server for
    /// itself.
    pub fn take_withheld(&mut self) -> Vec<u8> {
        self.withheld.take().unwrap_or_default()
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

/// Why a statement that the pooler has prepared can't be used as it was prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stale {
    /// Its rows would look otherwise ("cached plan must not change result type"), or it needs
    /// something by its number that was dropped, a type mostly. Nobody can use it any more.
    Unusable,
    /// Its text does not mean anything now, with the types that its values had when it was prepared:
    /// prepared anew it may, with others.
    Misread,
}

/// What an error says of it. What PostgreSQL says by `elog` is not translated.
/// Source: `RevalidateCachedQuery` in plancache.c; "cache lookup failed" in lsyscache.c, tupdesc.c
/// and others; `lookup_type_cache` in typcache.c; PostgreSQL docs, "Error Codes", class 42.
fn staleness(head: Request, error: &[u8]) -> Option<Stale> {
    if head.statement == 0 || !matches!(head.kind, Kind::Bind | Kind::Describe) {
        return None;
    }
    let fields = messages::error_fields(error).ok()?;
    let routine = fields.field(b'R').unwrap_or_default();
    let lost = || fields.message().is_some_and(|text| text.starts_with("cache lookup failed for "));
    match fields.code()? {
        sqlstate::FEATURE_NOT_SUPPORTED if routine == b"RevalidateCachedQuery" => {
            Some(Stale::Unusable)
        }
        sqlstate::INTERNAL_ERROR if lost() => Some(Stale::Unusable),
        sqlstate::UNDEFINED_OBJECT if routine == b"lookup_type_cache" => Some(Stale::Unusable),
        // That is of who asks, not of what is asked.
        sqlstate::INSUFFICIENT_PRIVILEGE => None,
        code if code.starts_with("42") => Some(Stale::Misread),
        _ => None,
    }
}

/// A message with this body.
pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![tag];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// What one that writes and stays says to nobody, unless a client wants to read only.
pub(super) fn is_turned(error: &[u8]) -> bool {
    let fields = messages::error_fields(error).ok();
    let code = fields.as_ref().and_then(|fields| fields.code());
    code.is_some_and(|code| code == sqlstate::READ_ONLY_SQL_TRANSACTION || code.starts_with("57P"))
}

pub(super) fn is_fatal(error: &[u8]) -> bool {
    let fields = messages::error_fields(error).ok();
    let severity = fields.and_then(|fields| fields.severity());
    matches!(severity, Some("FATAL" | "PANIC"))
}
