//! The read cache in `/api/v1/state`. Mirrors and streams have the columns of their SHOWs, so that
//! a page can't say other than the console.

use serde_json::{json, Value};

use super::cache_metrics::Caches;
use crate::config::Config;
use crate::console::command::Show;
use crate::console::mirroring::{self, Known};
use crate::console::table::{Column, Value as Field};
use crate::console::{columns, streams};
use crate::control::mirrors::Pin;
use crate::worker::snapshot::Cached;

pub fn cache(config: &Config, caches: &Caches, pins: &[Pin]) -> Value {
    let Caches { named, kept, streams, mirrors, mirror_memory } = caches;
    let mirrored = mirroring::rows(Known { config, streams, mirrors, pins });
    let streams: Vec<_> = streams.iter().map(streams::row).collect();
    json!({
        "statements": named,
        "entries": kept.entries,
        "bytes": kept.bytes,
        "limit_bytes": kept.limit,
        "evicted": kept.evicted,
        "mirror_bytes": mirror_memory.used,
        "mirror_limit_bytes": mirror_memory.limit,
        "mirrors": objects(columns::of_show(Show::Mirrors), &mirrored),
        "streams": objects(columns::of_show(Show::Streams), &streams),
    })
}

/// What the reads of a pool came to.
pub fn reads(cached: &Cached) -> Value {
    json!({
        "hits": cached.hits,
        "mirrored": cached.mirrored,
        "advised": cached.advised,
        "misses": cached.misses,
        "fills": cached.fills,
        "waits": cached.waits,
        "too_old": cached.too_old,
        "unsettled": cached.unsettled,
        "leased": cached.leased,
        "unserved": cached.unserved,
        "audits": cached.audits,
        "mismatches": cached.mismatches,
    })
}

/// An object for each row, by its columns.
fn objects(columns: Option<&[Column]>, rows: &[Vec<Field>]) -> Value {
    let columns = columns.unwrap_or_default();
    let object = |row: &Vec<Field>| {
        let members = columns.iter().zip(row);
        members.map(|(column, value)| (column.name.to_owned(), plain(value))).collect()
    };
    Value::Array(rows.iter().map(object).map(Value::Object).collect())
}

pub fn plain(value: &Field) -> Value {
    match value {
        Field::Null => Value::Null,
        Field::Int(number) => json!(number),
        Field::Tenths(tenths) => json!(*tenths as f64 / 10.0),
        Field::Text(text) => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use cache::mirror::held::State;
    use cache::store;

    use super::*;
    use crate::console::{fixture, MirrorMemory};

    #[test]
    fn mirrors_and_streams_have_the_columns_of_their_shows() {
        let caches = Caches {
            named: 2,
            kept: store::Standing { entries: 7, bytes: 7_000, limit: 9_000, evicted: 3 },
            streams: vec![fixture::stream("app")],
            mirrors: vec![(
                "app".to_owned(),
                fixture::mirror(State::Copying { done: 1, total: 8 }),
            )],
            mirror_memory: MirrorMemory { used: 64, limit: 128 },
        };
        let cache = cache(&fixture::config(), &caches, &[]);
        assert_eq!((&cache["entries"], &cache["mirror_bytes"]), (&json!(7), &json!(64)));
        let mirror = &cache["mirrors"][0];
        assert_eq!(mirror["table"], "public.t");
        assert_eq!(mirror["state"], "copying");
        assert_eq!(mirror["copied_percent"], json!(12.5));
        let stream = &cache["streams"][0];
        assert_eq!((&stream["database"], &stream["since"]), (&json!("app"), &Value::Null));
        for (show, row) in [(Show::Mirrors, mirror), (Show::Streams, stream)] {
            let columns = columns::of_show(show).unwrap();
            let named = columns.iter().filter(|column| row.get(column.name).is_some());
            assert_eq!(
                (named.count(), row.as_object().unwrap().len()),
                (columns.len(), columns.len())
            );
        }
    }
}
