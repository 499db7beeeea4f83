//! What the log has said lately, for SHOW EVENTS: events of one kind, database and SQLSTATE are one
//! row with a count. Only what is logged is known here, at the level that is set.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// Rows; the one that was seen longest ago gives way.
const EVENTS_MAX: usize = 200;
/// Of a row's text.
const DETAIL_BYTES_MAX: usize = 400;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    pub event: String,
    pub level: Level,
    pub database: Option<String>,
    pub sqlstate: Option<String>,
    /// With those that the log has suppressed.
    pub count: u64,
    pub first: SystemTime,
    pub last: SystemTime,
    /// What the last one said.
    pub detail: String,
}

type Kind = (String, Option<String>, Option<String>);

#[derive(Debug, Default)]
pub struct Recent(Mutex<HashMap<Kind, Happening>>);

impl Recent {
    fn rows(&self) -> MutexGuard<'_, HashMap<Kind, Happening>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what is logged, and how often it was suppressed before.
    pub fn note(&self, event: &Event<'_>, suppressed: u64, now: SystemTime) {
        let mut told = Told::default();
        event.record(&mut told);
        let Some(name) = told.event else { return };
        let detail = match (told.fields.is_empty(), told.message) {
            (true, message) => message,
            (false, message) if message.is_empty() => told.fields,
            (false, message) => format!("{message} ({})", told.fields),
        };
        let detail = cut(detail);
        let level = *event.metadata().level();
        let kind: Kind = (name, told.database, told.sqlstate);
        let mut rows = self.rows();
        if let Some(row) = rows.get_mut(&kind) {
            row.count += 1 + suppressed;
            (row.last, row.level, row.detail) = (now, level, detail);
            return;
        }
        if rows.len() >= EVENTS_MAX {
            let oldest = rows.iter().min_by_key(|(_, row)| row.last).map(|(kind, _)| kind.clone());
            oldest.map(|kind| rows.remove(&kind));
        }
        let (event, database, sqlstate) = kind.clone();
        let (count, first, last) = (1 + suppressed, now, now);
        rows.insert(
            kind,
            Happening { event, level, database, sqlstate, count, first, last, detail },
        );
    }

    /// What happened last comes first.
    pub fn all(&self) -> Vec<Happening> {
        let mut rows: Vec<Happening> = self.rows().values().cloned().collect();
        rows.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.event.cmp(&b.event)));
        rows
    }
}

#[derive(Default)]
struct Told {
    event: Option<String>,
    database: Option<String>,
    sqlstate: Option<String>,
    message: String,
    fields: String,
}

impl Visit for Told {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "event" => self.event = Some(value.to_owned()),
            "db" => self.database = Some(value.to_owned()),
            "sqlstate" => self.sqlstate = Some(value.to_owned()),
            "message" => value.clone_into(&mut self.message),
            super::THEIRS => {}
            name => {
                let blank = if self.fields.is_empty() { "" } else { " " };
                self.fields += &format!("{blank}{name}={value}");
            }
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn cut(mut text: String) -> String {
    if text.len() > DETAIL_BYTES_MAX {
        let mut end = DETAIL_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tracing::Subscriber;
    use tracing_subscriber::layer::{Context, SubscriberExt};
    use tracing_subscriber::Layer;

    use super::*;

    struct Listens(Arc<Recent>);

    impl<S: Subscriber> Layer<S> for Listens {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let second = self.0.all().iter().map(|row| row.count).sum();
            self.0.note(event, 0, SystemTime::UNIX_EPOCH + Duration::from_secs(second));
        }
    }

    fn heard(say: impl FnOnce()) -> Vec<Happening> {
        let recent = Arc::new(Recent::default());
        let layer = Listens(recent.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
        recent.all()
    }

    #[test]
    fn events_of_one_kind_and_database_are_one_row() {
        let rows = heard(|| {
            for user in ["a", "b"] {
                tracing::warn!(event = "client_refused", db = "app", sqlstate = "53300", user);
            }
            tracing::warn!(event = "client_refused", db = "app", sqlstate = "28P01", "no");
            tracing::info!(event = "reload", "configuration reloaded");
            tracing::info!("no event at all");
        });
        let told: Vec<_> = rows
            .iter()
            .map(|row| {
                (row.event.as_str(), row.sqlstate.as_deref(), row.count, row.detail.as_str())
            })
            .collect();
        assert_eq!(
            told,
            [
                ("reload", None, 1, "configuration reloaded"),
                ("client_refused", Some("28P01"), 1, "no"),
                ("client_refused", Some("53300"), 2, "user=b"),
            ]
        );
        assert!(rows[2].first < rows[2].last && rows[2].database.as_deref() == Some("app"));
    }

    #[test]
    fn there_are_never_more_rows_than_the_ceiling() {
        let rows = heard(|| {
            for number in 0..EVENTS_MAX + 5 {
                tracing::info!(event = "many", db = %number, "{}", "ä".repeat(DETAIL_BYTES_MAX));
            }
        });
        assert_eq!(rows.len(), EVENTS_MAX);
        assert!(rows.iter().all(|row| row.database.as_deref() != Some("0")), "the oldest went");
        assert!(rows.iter().all(|row| row.detail.len() <= DETAIL_BYTES_MAX + 3));
    }
}
