//! The rows of SHOW STREAMS: how the changes of each database come in.

use std::time::SystemTime;

use backend::replication::plan::TableStanding;

use super::show;
use super::table::Value;
use crate::stream::{Standing, State};

/// Tables that are named because they are not followed.
const NAMED_MAX: usize = 10;

pub fn row(stream: &Standing) -> Vec<Value> {
    let followed = stream.tables.iter().filter(|table| table.told.is_ok()).count();
    let position = |lsn: u64| match lsn {
        0 => Value::Null,
        lsn => Value::text(position(lsn)),
    };
    let delay = stream.delay.map(|delay| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX));
    vec![
        Value::text(stream.database.clone()),
        Value::text(word(&stream.state)),
        Value::text(why(&stream.state)),
        Value::optional(since(&stream.state).map(show::time)),
        position(stream.lsn),
        position(stream.server_lsn),
        Value::from(stream.lag()),
        delay.map_or(Value::Null, Value::from),
        Value::optional(stream.slot.clone()),
        Value::from(stream.slot_held),
        Value::text(stream.publication.clone()),
        Value::from(stream.tables.len()),
        Value::from(followed),
        Value::from(stream.begun),
        Value::text(not_followed(stream)),
        Value::optional(stream.complaint.clone()),
    ]
}

/// One word for a state, in tables and metrics.
pub fn word(state: &State) -> &'static str {
    match state {
        State::Connecting => "connecting",
        State::Preparing(_) => "preparing",
        State::Following => "following",
        State::Lost { .. } => "lost",
        State::Refused { .. } => "refused",
    }
}

/// Why nothing is answered from memory; empty while the stream is followed.
pub fn why(state: &State) -> String {
    match state {
        State::Connecting => "the stream of changes is being connected".to_owned(),
        State::Preparing(what) => format!("the stream of changes waits for {what}"),
        State::Following => String::new(),
        State::Lost { why, .. } => why.clone(),
        State::Refused { missing, .. } => format!("{}: {}", missing.what, missing.sql.join(" ")),
    }
}

fn since(state: &State) -> Option<SystemTime> {
    match state {
        State::Connecting | State::Preparing(_) | State::Following => None,
        State::Lost { since, .. } | State::Refused { since, .. } => Some(*since),
    }
}

/// As PostgreSQL writes a place in its log.
pub fn position(lsn: u64) -> String {
    format!("{:X}/{:X}", lsn >> 32, lsn & 0xffff_ffff)
}

/// Why changes of a table are not told, if they are not, and what mends it.
pub fn not_told(stream: &Standing, table: &TableStanding) -> Option<String> {
    let unfit = table.told.as_ref().err()?;
    let mut why = format!("{}.{}: {unfit}", table.schema, table.name);
    if let Some(sql) = table.mend(&stream.publication) {
        why.push_str(": ");
        why.push_str(&sql);
    }
    Some(why)
}

fn not_followed(stream: &Standing) -> String {
    let mut tables = stream.tables.iter().filter_map(|table| not_told(stream, table));
    let mut named: Vec<String> = tables.by_ref().take(NAMED_MAX).collect();
    let others = tables.count();
    if others > 0 {
        named.push(format!("and {others} more"));
    }
    named.iter().map(|why| why.trim_end_matches(';')).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use backend::replication::missing::Missing;
    use backend::replication::plan::Unfit;

    use super::*;

    fn standing(state: State) -> Standing {
        let table = |number: u32| TableStanding {
            oid: number,
            schema: "app".to_owned(),
            name: format!("t{number}"),
            told: if number == 0 { Ok(()) } else { Err(Unfit::Unlogged) },
        };
        Standing {
            database: "app".to_owned(),
            state,
            lsn: 0x1_0000_00ff,
            server_lsn: 0x1_0000_01ff,
            delay: Some(Duration::from_micros(900)),
            slot: Some("pondage_1".to_owned()),
            slot_held: 4096,
            publication: "pondage".to_owned(),
            tables: Arc::new((0..13).map(table).collect()),
            complaint: None,
            begun: 1,
        }
    }

    fn words(row: &[Value]) -> Vec<String> {
        let word = |value: &Value| match value {
            Value::Text(text) => text.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Tenths(tenths) => format!("{tenths}/10"),
            Value::Null => "-".to_owned(),
        };
        row.iter().map(word).collect()
    }

    #[test]
    fn a_stream_that_is_followed_says_how_far_it_is_behind() {
        let row = words(&row(&standing(State::Following)));
        let head =
            ["app", "following", "", "-", "1/FF", "1/1FF", "256", "900", "pondage_1", "4096"];
        assert_eq!(row[..10], head);
        assert_eq!(row[10..14], ["pondage", "13", "1", "1"]);
        let first = "app.t1: it is unlogged: ALTER TABLE \"app\".\"t1\" SET LOGGED; app.t2: ";
        assert!(row[14].starts_with(first), "{}", row[14]);
        assert!(row[14].ends_with("; and 2 more"), "{}", row[14]);
        assert_eq!(row[15], "-");
    }

    #[test]
    fn one_that_is_not_says_why_and_what_to_run() {
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_183_510);
        let missing = Missing {
            what: "role \"app\" has no REPLICATION attribute".to_owned(),
            sql: vec!["ALTER ROLE \"app\" REPLICATION;".to_owned()],
        };
        let mut refused = standing(State::Refused { missing, since });
        refused.lsn = 0;
        let row = words(&row(&refused));
        let why = "role \"app\" has no REPLICATION attribute: ALTER ROLE \"app\" REPLICATION;";
        assert_eq!(row[1..5], ["refused", why, "2026-11-20 14:05:10 UTC", "-"]);
        assert_eq!(row[6], "0", "nothing to be behind of");
        let why = why_of(State::Preparing("transactions that were open"));
        assert_eq!(why, "the stream of changes waits for transactions that were open");
    }

    fn why_of(state: State) -> String {
        why(&state)
    }
}
