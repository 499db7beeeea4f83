//! The metrics of the read cache: what reads came to, what is kept, and how the streams of changes
//! do. Labels are names of databases and users and fixed words: never SQL.

use cache::mirror::held::{MirrorInfo, State as MirrorState};
use cache::store;

use super::exposition::{Exposition, Kind};
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

type Counter = (&'static str, &'static str, fn(&Cached) -> u64);

const COUNTERS: [Counter; 12] = [
    ("pondage_cache_hits_total", "Reads answered from memory.", |cached| cached.hits),
    ("pondage_cache_mirrored_total", "Of the hits, those that mirrors answered.", |cached| {
        cached.mirrored
    }),
    (
        "pondage_cache_advised_total",
        "In mode advise: reads that would have been answered from memory.",
        |cached| cached.advised,
    ),
    ("pondage_cache_misses_total", "Reads of which nothing valid was kept.", |cached| {
        cached.misses
    }),
    ("pondage_cache_fills_total", "Answers that were kept.", |cached| cached.fills),
    (
        "pondage_cache_waits_total",
        "Reads that waited for the stream, or for another client's answer.",
        |cached| cached.waits,
    ),
    (
        "pondage_cache_too_old_total",
        "Reads that went to PostgreSQL because what is kept could not be shown to be new enough.",
        |cached| cached.too_old,
    ),
    (
        "pondage_cache_unsettled_total",
        "Answers that were not kept because a change of their rows was not known to be visible.",
        |cached| cached.unsettled,
    ),
    (
        "pondage_cache_leased_total",
        "Misses while PostgreSQL was asked for the same; they waited for that answer, or went \
         to PostgreSQL without keeping theirs.",
        |cached| cached.leased,
    ),
    ("pondage_cache_unserved_total", "Reads that came while there was no stream.", |cached| {
        cached.unserved
    }),
    (
        "pondage_cache_audits_total",
        "Hits that were asked of PostgreSQL all the same, and compared.",
        |cached| cached.audits,
    ),
    (
        "pondage_cache_mismatches_total",
        "Audits that found another answer; its statement is no longer cached.",
        |cached| cached.mismatches,
    ),
];

fn reads(page: &mut Exposition, pools: &[PoolSnapshot]) {
    for (name, help, value) in COUNTERS {
        page.family(name, Kind::Counter, help);
        for pool in pools {
            let labels = [("database", &*pool.database), ("user", &*pool.user)];
            page.sample(&labels, value(&pool.totals.cached));
        }
    }
}

fn kept(page: &mut Exposition, Caches { named, kept, .. }: &Caches) {
    let gauges = [
        ("pondage_cache_statements", "Statements that are named to be cached.", *named as u64),
        ("pondage_cache_entries", "Results that are kept.", kept.entries),
        ("pondage_cache_bytes", "Their memory, with everything.", kept.bytes),
        ("pondage_cache_memory_limit_bytes", "Its limit.", kept.limit),
    ];
    for (name, help, value) in gauges {
        page.family(name, Kind::Gauge, help);
        page.sample(&[], value);
    }
    let help = "Results that made room for others.";
    page.family("pondage_cache_evicted_total", Kind::Counter, help);
    page.sample(&[], kept.evicted);
}

type Gauge = (&'static str, &'static str, fn(&Standing) -> u64);

const STREAMS: [Gauge; 4] = [
    ("pondage_cache_stream_up", "1 while the database's changes are followed.", |stream| {
        u64::from(stream.state == State::Following)
    }),
    (
        "pondage_cache_stream_lag_bytes",
        "How far the stream is behind the server's log.",
        |stream| stream.lag(),
    ),
    (
        "pondage_cache_stream_slot_bytes",
        "WAL that the server keeps because of the stream.",
        |stream| stream.slot_held,
    ),
    ("pondage_cache_stream_tables", "Tables whose changes are followed.", |stream| {
        stream.tables.iter().filter(|table| table.told.is_ok()).count() as u64
    }),
];

fn streams(page: &mut Exposition, streams: &[Standing]) {
    for (name, help, value) in STREAMS {
        page.family(name, Kind::Gauge, help);
        for stream in streams {
            page.sample(&[("database", &stream.database)], value(stream));
        }
    }
    let help = "1, labelled with the state of the stream.";
    page.family("pondage_cache_stream_info", Kind::Gauge, help);
    for stream in streams {
        page.sample(&[("database", &stream.database), ("state", word(&stream.state))], 1);
    }
    let help = "How long the last transaction took from its commit until it was known here.";
    page.family("pondage_cache_stream_delay_seconds", Kind::Gauge, help);
    for stream in streams {
        if let Some(delay) = stream.delay {
            let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
            page.seconds(&[("database", &stream.database)], micros);
        }
    }
    let help = "Times that the stream has begun.";
    page.family("pondage_cache_stream_begun_total", Kind::Counter, help);
    for stream in streams {
        page.sample(&[("database", &stream.database)], stream.begun);
    }
}

type Figure = (&'static str, &'static str, fn(&MirrorInfo) -> u64);

const MIRROR_STATES: [&str; 4] = ["copying", "waiting", "ready", "failed"];

fn mirrors(page: &mut Exposition, caches: &Caches) {
    let Caches { mirrors, mirror_memory, .. } = caches;
    page.family("pondage_cache_mirrors", Kind::Gauge, "Mirrors of tables, by state.");
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
        ("pondage_cache_mirror_rows", "Rows of a mirror that answers.", |info| info.rows),
        ("pondage_cache_mirror_bytes", "Its memory, with everything.", |info| info.bytes),
    ];
    for (name, help, value) in gauges {
        page.family(name, Kind::Gauge, help);
        for (database, info) in mirrors.iter().filter(|(_, info)| info.state == MirrorState::Ready)
        {
            let table = format!("{}.{}", info.schema, info.name);
            page.sample(&[("database", database), ("table", &table)], value(info));
        }
    }
    let totals = [
        ("pondage_cache_mirror_used_bytes", "Memory of all mirrors.", mirror_memory.used),
        ("pondage_cache_mirror_limit_bytes", "Its limit.", mirror_memory.limit),
    ];
    for (name, help, value) in totals {
        page.family(name, Kind::Gauge, help);
        page.sample(&[], value);
    }
    let help = "The part of a table that is copied, while a mirror is being made.";
    page.family("pondage_cache_mirror_copied_ratio", Kind::Gauge, help);
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
