//! The rows of SHOW EVENTS.

use super::show::time;
use super::table::Value;
use crate::logging::Happening;

pub fn row(one: &Happening) -> Vec<Value> {
    vec![
        Value::text(time(one.last)),
        Value::text(one.level.as_str().to_ascii_lowercase()),
        Value::text(one.event.clone()),
        Value::optional(one.database.clone()),
        Value::optional(one.sqlstate.clone()),
        Value::from(one.count),
        Value::text(time(one.first)),
        Value::text(one.detail.clone()),
    ]
}
