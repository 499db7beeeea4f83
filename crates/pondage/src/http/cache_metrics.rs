//! The metrics of the read cache: what reads came to, what is kept, and how the streams of changes
//! do. Labels are names of databases and users and fixed words: never SQL.

use cache::mirror::held::{MirrorInfo, State as MirrorState};
use cache::store;

use super::exposition::Exposition;
use super::families::{self, Family};
use crate::console::streams::word;
use crate::console::{mirroring, MirrorMemory, Process};
use crate::stream::{Standing, State};
use crate::worker::snapshot::{Cached, PoolSnapshot};

/// What is told of caches, beside what the pools know.
#[derive(Debug)]
pub struct Caches {
    /// Statements that are named.
    pub named: usize,
    pub kept: store::Standing,
    pub streams: Vec<Standing>,
    /// With their databases.
    pub mirrors: Vec<(String, MirrorInfo)>,
    pub mirror_memory: MirrorMemory,
}

impl Caches {
    pub fn of(process: &dyn Process) -> Caches {
        Caches {
            named: process.caches().all().len(),
            kept: process.kept(),
            streams: process.streams(),
            mirrors: mirroring::of(process),
            mirror_memory: process.mirror_memory(),
        }
    }
}

/// Writes the families; none while no pool caches and no stream is followed.
pub fn families(page: &mut Exposition, pools: &[PoolSnapshot], caches: &Caches) {
    let none = Cached::default();
    if caches.streams.is_empty() && pools.iter().all(|pool| pool.totals.cached == none) {
        return;
    }
    reads(page, pools);
    kept(page, caches);
    streams(page, &caches.streams);
    mirrors(page, caches);
}

type Counter = (&'static Family, fn(&Cached) -> u64);

const COUNTERS: [Counter; 12] = [
    (families::cache::HITS, |cached| cached.hits),
    (families::cache::MIRRORED, |cached| cached.mirrored),
    (families::cache::ADVISED, |cached| cached.advised),
    (families::cache::MISSES, |cached| cached.misses),
    (families::cache::FILLS, |cached| cached.fills),
    (families::cache::WAITS, |cached| cached.waits),
    (families::cache::TOO_OLD, |cached| cached.too_old),
    (families::cache::UNSETTLED, |cached| cached.unsettled),
    (families::cache::LEASED, |cached| cached.leased),
    (families::cache::UNSERVED, |cached| cached.unserved),
    (families::cache::AUDITS, |cached| cached.audits),
    (families::cache::MISMATCHES, |cached| cached.mismatches),
];

fn reads(page: &mut Exposition, pools: &[PoolSnapshot]) {
    for (family, value) in COUNTERS {
        page.family(family);
        for pool in pools {
            let labels = [("database", &*pool.database), ("user", &*pool.user)];
            page.sample(&labels, value(&pool.totals.cached));
        }
    }
}

fn kept(page: &mut Exposition, Caches { named, kept, .. }: &Caches) {
    let gauges = [
        (families::cache::STATEMENTS, *named as u64),
        (families::cache::ENTRIES, kept.entries),
        (families::cache::BYTES, kept.bytes),
        (families::cache::MEMORY_LIMIT, kept.limit),
    ];
    for (family, value) in gauges {
        page.family(family);
        page.sample(&[], value);
    }
    page.family(families::cache::EVICTED);
    page.sample(&[], kept.evicted);
}

type Gauge = (&'static Family, fn(&Standing) -> u64);

const STREAMS: [Gauge; 4] = [
    (families::cache::STREAM_UP, |stream| u64::from(stream.state == State::Following)),
    (families::cache::STREAM_LAG, |stream| stream.lag()),
    (families::cache::STREAM_SLOT, |stream| stream.slot_held),
    (families::cache::STREAM_TABLES, |stream| {
        stream.tables.iter().filter(|table| table.told.is_ok()).count() as u64
    }),
];

fn streams(page: &mut Exposition, streams: &[Standing]) {
    for (family, value) in STREAMS {
        page.family(family);
        for stream in streams {
            page.sample(&[("database", &stream.database)], value(stream));
        }
    }
    page.family(families::cache::STREAM_INFO);
    for stream in streams {
        page.sample(&[("database", &stream.database), ("state", word(&stream.state))], 1);
    }
    page.family(families::cache::STREAM_DELAY);
    for stream in streams {
        if let Some(delay) = stream.delay {
            let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
            page.seconds(&[("database", &stream.database)], micros);
        }
    }
    page.family(families::cache::STREAM_BEGUN);
    for stream in streams {
        page.sample(&[("database", &stream.database)], stream.begun);
    }
}

type Figure = (&'static Family, fn(&MirrorInfo) -> u64);

const MIRROR_STATES: [&str; 4] = ["copying", "waiting", "ready", "failed"];

fn mirrors(page: &mut Exposition, caches: &Caches) {
    let Caches { mirrors, mirror_memory, .. } = caches;
    page.family(families::cache::MIRRORS);
    for stream in &caches.streams {
        let database = &stream.database;
        for state in MIRROR_STATES {
            let is = |(at, info): &&(String, MirrorInfo)| {
                at == database && mirroring::word(&info.state) == state
            };
            let count = mirrors.iter().filter(is).count();
            page.sample(&[("database", database), ("state", state)], count as u64);
        }
    }
    let gauges: [Figure; 2] = [
        (families::cache::MIRROR_ROWS, |info| info.rows),
        (families::cache::MIRROR_BYTES, |info| info.bytes),
    ];
    for (family, value) in gauges {
        page.family(family);
        for (database, info) in mirrors.iter().filter(|(_, info)| info.state == MirrorState::Ready)
        {
            let table = format!("{}.{}", info.schema, info.name);
            page.sample(&[("database", database), ("table", &table)], value(info));
        }
    }
    let totals = [
        (families::cache::MIRROR_USED, mirror_memory.used),
        (families::cache::MIRROR_LIMIT, mirror_memory.limit),
    ];
    for (family, value) in totals {
        page.family(family);
        page.sample(&[], value);
    }
    page.family(families::cache::MIRROR_COPIED);
    for (database, info) in mirrors {
        let MirrorState::Copying { done, total } = info.state else { continue };
        let table = format!("{}.{}", info.schema, info.name);
        let millionths = done.saturating_mul(1_000_000).checked_div(total).unwrap_or(0);
        page.millionths(&[("database", database), ("table", &table)], millionths);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::console::fixture;

    fn page(pools: &[PoolSnapshot], streams: Vec<Standing>) -> String {
        let kept = store::Standing { entries: 7, bytes: 7_000, limit: 9_000, evicted: 3 };
        let mut page = Exposition::default();
        let mirrors = vec![
            ("app".to_owned(), fixture::mirror(MirrorState::Ready)),
            ("app".to_owned(), fixture::mirror(MirrorState::Copying { done: 1, total: 8 })),
        ];
        let mirror_memory = MirrorMemory { used: 64, limit: 128 };
        let caches = Caches { named: 2, kept, streams, mirrors, mirror_memory };
        families(&mut page, pools, &caches);
        page.into_text()
    }

    #[test]
    fn without_a_cache_there_is_nothing_to_tell() {
        let pool = fixture::pool(&fixture::config(), "app", "web");
        assert_eq!(page(&[pool], Vec::new()), "");
    }

    #[test]
    fn reads_memory_and_streams_are_told() {
        let mut pool = fixture::pool(&fixture::config(), "app", "web");
        pool.totals.cached.hits = 40;
        let mut following = fixture::stream("app");
        following.state = State::Following;
        (following.lsn, following.server_lsn, following.begun) = (100, 356, 2);
        following.delay = Some(Duration::from_micros(1_500));
        let text = page(&[pool], vec![following, fixture::stream("web")]);
        for line in [
            "pondage_cache_hits_total{database=\"app\",user=\"web\"} 40",
            "pondage_cache_statements 2",
            "pondage_cache_entries 7",
            "pondage_cache_evicted_total 3",
            "pondage_cache_stream_up{database=\"app\"} 1",
            "pondage_cache_stream_up{database=\"web\"} 0",
            "pondage_cache_stream_lag_bytes{database=\"app\"} 256",
            "pondage_cache_stream_info{database=\"web\",state=\"connecting\"} 1",
            "pondage_cache_stream_delay_seconds{database=\"app\"} 0.0015",
            "pondage_cache_stream_begun_total{database=\"app\"} 2",
            "pondage_cache_mirrors{database=\"app\",state=\"ready\"} 1",
            "pondage_cache_mirrors{database=\"web\",state=\"ready\"} 0",
            "pondage_cache_mirror_rows{database=\"app\",table=\"public.t\"} 3",
            "pondage_cache_mirror_limit_bytes 128",
            "pondage_cache_mirror_copied_ratio{database=\"app\",table=\"public.t\"} 0.125",
        ] {
            assert!(text.lines().any(|got| got == line), "{line}:\n{text}");
        }
    }
}
