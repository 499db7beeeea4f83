use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use cache::mirror::held::State as MirrorState;

use super::super::exposition::Kind;
use super::*;
use crate::console::fixture;
use crate::procedures::{Fared, Procedures};
use crate::worker::snapshot::{MemorySnapshot, WorkerSnapshot};

const OPEN: Condition = Condition { listening: true, stopping: false };

fn usage() -> Usage {
    Usage { cpu_us: Some(1_250_000), resident_bytes: Some(4096), ..Usage::default() }
}

/// Two workers with a pool in common and a user with an awkward name; worker 2 is silent.
fn view() -> View {
    let config = fixture::config();
    let mut shared = fixture::pool(&config, "app", "web");
    shared.cl_active = 3;
    shared.sv_idle = 2;
    shared.maxwait = Duration::from_micros(1_500_000);
    shared.totals.query_count = 10;
    shared.totals.query_time_us = 2_500_000;
    shared.totals.coalesced.trips = 4;
    shared.totals.coalesced.prepared = 6;
    shared.totals.coalesced.stalled = 1;
    shared.totals.coalesced.why[Why::Free as usize] = 30;
    shared.totals.coalesced.why[Why::WritesOff as usize] = 2;
    shared.totals.query_time.record(40);
    shared.totals.query_time.record(90_000_000);
    let mut awkward = fixture::pool(&config, "reports", "a\"b\\c\nd");
    awkward.failing = Some((SystemTime::UNIX_EPOCH, 2, "refused".to_owned()));
    let part = MemorySnapshot { name: "buffers", size: 8192, used: 2, free: 1, memtotal: 24_576 };
    let first = WorkerSnapshot {
        worker: 0,
        pools: vec![shared.clone(), awkward],
        memory: vec![part.clone()],
        turns: 1_000,
        logging_in: 1,
        refused: vec![("28P01".to_owned(), 4)],
        ..Default::default()
    };
    let second = WorkerSnapshot {
        worker: 1,
        pools: vec![shared],
        memory: vec![part],
        turns: 7,
        refused: vec![("28P01".to_owned(), 1), ("53300".to_owned(), 2)],
        ..Default::default()
    };
    View { workers: vec![first, second], silent: vec![2] }
}

/// Names and values, in order.
type OwnLabels = Vec<(String, String)>;

/// A sample: its name, its labels, its value.
type Sample = (String, OwnLabels, f64);

#[derive(Debug)]
struct Parsed {
    kinds: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

impl Parsed {
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let wanted = |sample: &&Sample| {
            sample.0 == name
                && sample.1.iter().map(|(n, v)| (n.as_str(), v.as_str())).eq(labels.iter().copied())
        };
        let found: Vec<&Sample> = self.samples.iter().filter(wanted).collect();
        assert_eq!(found.len(), 1, "{name} {labels:?}");
        found[0].2
    }
}

/// Reads the text format strictly: HELP and TYPE once, before the samples of their family, which
/// stand together; names, labels and escapes as they must be; no series twice.
fn parse(text: &str) -> Parsed {
    assert!(text.ends_with('\n'));
    let mut parsed = Parsed { kinds: BTreeMap::new(), samples: Vec::new() };
    let mut helped = BTreeSet::new();
    let mut family = String::new();
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(!help.is_empty() && helped.insert(name.to_owned()), "HELP {name}");
            family = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(name, family, "TYPE follows its HELP");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(parsed.kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "TYPE {name}");
        } else {
            let sample = sample(line);
            let suffix = sample.0.strip_prefix(&family).expect("a sample of its family");
            match parsed.kinds[&family].as_str() {
                "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{line}"),
                "counter" => assert!(suffix.is_empty() && family.ends_with("_total"), "{line}"),
                _ => assert!(suffix.is_empty() && !family.ends_with("_total"), "{line}"),
            }
            assert!(seen.insert((sample.0.clone(), sample.1.clone())), "twice: {line}");
            parsed.samples.push(sample);
        }
    }
    parsed
}

fn sample(line: &str) -> Sample {
    let name_end = line.find(['{', ' ']).expect("a value");
    let (name, mut rest) = line.split_at(name_end);
    assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{line}");
    let mut labels = Vec::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inside.split_once("=\"").expect("a label");
            assert!(label.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{line}");
            let (value, after) = label_value(after);
            labels.push((label.to_owned(), value));
            match after.strip_prefix(',') {
                Some(more) => inside = more,
                None => {
                    rest = after.strip_prefix('}').expect("the end of the labels");
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').expect("one blank");
    (name.to_owned(), labels, value.parse().expect("a number"))
}

/// The value up to its closing quote, unescaped, and what follows the quote.
fn label_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match letters.next().expect("an escaped letter").1 {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                other => panic!("no escape: {other}"),
            }),
            other => value.push(other),
        }
    }
    panic!("no closing quote in {text}")
}

/// Nothing is cached.
fn caches() -> Caches {
    Caches {
        named: 0,
        kept: Default::default(),
        streams: Vec::new(),
        mirrors: Vec::new(),
        mirror_memory: Default::default(),
    }
}

fn rooms(caches: &Caches) -> Rooms<'_> {
    Rooms { caches, hosts: &[], look_ups: &[], procedures: &[], traces: None, redis: None }
}

#[test]
fn the_page_is_what_prometheus_reads() {
    let parsed = parse(&page(&view(), &rooms(&caches()), OPEN, &usage()));
    assert!(parsed.kinds.len() > 30, "{:?}", parsed.kinds);
    for family in parsed.kinds.keys() {
        assert!(family.starts_with("pondage_") || family.starts_with("process_"), "{family}");
    }
    parse(&page(&View::default(), &rooms(&caches()), OPEN, &Usage::default()));
}

#[test]
fn the_redis_door_has_its_families_when_it_is_open() {
    let calls = ::redis::stats::Calls { calls: 7, rejected: 1, failed: 2, ..Default::default() };
    let mut snapshot = Snapshot::default();
    let figures = &mut snapshot.figures;
    figures.commands = vec![("get", calls)];
    figures.batches.rows = 12;
    (figures.batches.sizes[0], figures.batches.sizes[10]) = (2, 1);
    (figures.batches.commits[1], figures.batches.commit_us) = (3, 250);
    let caches = caches();
    let rooms = Rooms { redis: Some(&snapshot), ..rooms(&caches) };
    let parsed = parse(&page(&view(), &rooms, OPEN, &usage()));
    let get = ("command", "get");
    assert_eq!(parsed.value("pondage_redis_up", &[]), 1.0);
    assert_eq!(parsed.value("pondage_redis_commands_total", &[get]), 7.0);
    let rejected = [get, ("outcome", "rejected")];
    assert_eq!(parsed.value("pondage_redis_command_errors_total", &rejected), 1.0);
    assert_eq!(parsed.value("pondage_redis_batch_rows_sum", &[]), 12.0);
    assert_eq!(parsed.value("pondage_redis_batch_rows_bucket", &[("le", "1024")]), 2.0);
    assert_eq!(parsed.value("pondage_redis_batch_rows_bucket", &[("le", "+Inf")]), 3.0);
    assert_eq!(parsed.value("pondage_redis_commit_seconds_bucket", &[("le", "0.0001")]), 3.0);
    assert_eq!(parsed.value("pondage_redis_commit_seconds_sum", &[]), 0.00025);
}

/// Everything is there that has families of its own.
#[test]
fn every_family_of_the_table_is_written_and_as_the_table_says() {
    let procedures = Procedures::default();
    fixture::procedure(&procedures, "app", 7, "payment")
        .tell(&Fared { calls: 1, ..Fared::default() });
    let mut following = fixture::stream("app");
    following.delay = Some(Duration::from_micros(1_500));
    let mirror = |state| ("app".to_owned(), fixture::mirror(state));
    let copying = mirror(MirrorState::Copying { done: 1, total: 8 });
    let mirrors = vec![mirror(MirrorState::Ready), copying];
    let caches = Caches { streams: vec![following], mirrors, ..caches() };
    let mut snapshot = Snapshot::default();
    snapshot.figures.commands = vec![("get", Default::default())];
    let some = Some(1);
    let usage = Usage {
        cpu_us: some,
        resident_bytes: some,
        virtual_bytes: some,
        threads: some,
        start_time: some,
        open_fds: some,
        max_fds: some,
    };
    let rooms = Rooms {
        caches: &caches,
        hosts: &[fixture::host("app")],
        look_ups: &[fixture::look_ups("app")],
        procedures: &procedures.list(),
        traces: Some(Counts::default()),
        redis: Some(&snapshot),
    };
    let parsed = parse(&page(&view(), &rooms, OPEN, &usage));
    let table: BTreeMap<&str, &Family> =
        families::all().map(|family| (family.name(), family)).collect();
    let written: Vec<&str> = parsed.kinds.keys().map(String::as_str).collect();
    assert_eq!(written, table.keys().copied().collect::<Vec<_>>());
    for (name, family) in table {
        assert_eq!(parsed.kinds[name], family.kind().word(), "{name}");
        let ends: &[&str] = match family.kind() {
            Kind::Histogram => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        let is_its =
            |sample: &&Sample| sample.0.strip_prefix(name).is_some_and(|end| ends.contains(&end));
        let samples: Vec<&Sample> = parsed.samples.iter().filter(is_its).collect();
        assert!(!samples.is_empty(), "{name} has no samples");
        for (_, labels, _) in samples {
            let names = labels.iter().map(|(label, _)| label.as_str());
            let names: Vec<&str> = names.filter(|label| *label != "le").collect();
            assert_eq!(names, family.labels(), "{name}");
        }
    }
}

#[test]
fn pools_of_several_workers_are_one_series() {
    let parsed = parse(&page(&view(), &rooms(&caches()), OPEN, &usage()));
    let app = [("database", "app"), ("user", "web")];
    assert_eq!(parsed.value("pondage_queries_total", &app), 20.0);
    assert_eq!(parsed.value("pondage_query_seconds_total", &app), 5.0);
    assert_eq!(parsed.value("pondage_pool_maxwait_seconds", &app), 1.5);
    assert_eq!(parsed.value("pondage_pool_size", &app), 7.0);
    let with = |name, value| [app[0], app[1], (name, value)];
    assert_eq!(parsed.value("pondage_client_connections", &with("state", "active")), 6.0);
    assert_eq!(parsed.value("pondage_client_connections", &with("state", "waiting")), 0.0);
    assert_eq!(parsed.value("pondage_server_connections", &with("state", "idle")), 4.0);
    assert_eq!(parsed.value("pondage_pool_info", &with("pool_mode", "transaction")), 1.0);
    let awkward = [("database", "reports"), ("user", "a\"b\\c\nd")];
    assert_eq!(parsed.value("pondage_pool_failing", &awkward), 1.0);
    assert_eq!(parsed.value("pondage_pool_failing", &app), 0.0);
}

#[test]
fn what_travelled_together_and_why_not_is_counted() {
    let parsed = parse(&page(&view(), &rooms(&caches()), OPEN, &usage()));
    let app = [("database", "app"), ("user", "web")];
    assert_eq!(parsed.value("pondage_coalesce_trips_total", &app), 8.0);
    assert_eq!(parsed.value("pondage_coalesce_prepared_total", &app), 12.0);
    assert_eq!(parsed.value("pondage_coalesce_batched_total", &app), 0.0);
    assert_eq!(parsed.value("pondage_coalesce_trained_total", &app), 0.0);
    let with = |why| [app[0], app[1], ("why", why)];
    let statements = |why| parsed.value("pondage_coalesce_statements_total", &with(why));
    assert_eq!(statements("free"), 60.0);
    assert_eq!(statements("writes_off"), 4.0);
    assert_eq!(Why::ALL.iter().map(|why| statements(why.word())).sum::<f64>(), 64.0);
    assert_eq!(parsed.value("pondage_coalesce_resent_total", &with("stalled")), 2.0);
    assert_eq!(parsed.value("pondage_coalesce_resent_total", &with("lost")), 0.0);
}

#[test]
fn workers_memory_and_the_process_have_their_series() {
    let stopping = Condition { listening: false, stopping: true };
    let parsed = parse(&page(&view(), &rooms(&caches()), stopping, &usage()));
    assert_eq!(parsed.value("pondage_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    assert_eq!(parsed.value("pondage_listening", &[]), 0.0);
    assert_eq!(parsed.value("pondage_stopping", &[]), 1.0);
    assert_eq!(parsed.value("pondage_worker_up", &[("worker", "1")]), 1.0);
    assert_eq!(parsed.value("pondage_worker_up", &[("worker", "2")]), 0.0);
    assert_eq!(parsed.value("pondage_worker_turns_total", &[("worker", "0")]), 1_000.0);
    assert_eq!(parsed.value("pondage_login_connections", &[]), 1.0);
    assert_eq!(parsed.value("pondage_client_refused_total", &[("sqlstate", "28P01")]), 5.0);
    assert_eq!(parsed.value("pondage_memory_bytes", &[("name", "buffers")]), 49_152.0);
    assert_eq!(parsed.value("pondage_memory_used_bytes", &[("name", "buffers")]), 32_768.0);
    assert_eq!(parsed.value("process_cpu_seconds_total", &[]), 1.25);
    assert_eq!(parsed.value("process_resident_memory_bytes", &[]), 4096.0);
    assert!(!parsed.kinds.contains_key("process_open_fds"), "not told, not shown");
}

#[test]
fn histograms_count_up_to_their_count() {
    let parsed = parse(&page(&view(), &rooms(&caches()), OPEN, &usage()));
    for (family, labels) in
        [("pondage_query_duration_seconds", 3), ("pondage_pool_wait_seconds", 2)]
    {
        let bucket = format!("{family}_bucket");
        let mut series: BTreeMap<OwnLabels, Vec<(f64, f64)>> = BTreeMap::new();
        for (_, of, value) in parsed.samples.iter().filter(|sample| sample.0 == bucket) {
            let (le, rest) = of.split_last().expect("le");
            assert_eq!((le.0.as_str(), rest.len()), ("le", labels));
            series.entry(rest.to_vec()).or_default().push((le.1.parse().unwrap(), *value));
        }
        assert_eq!(series.len(), 2);
        for (of, buckets) in series {
            assert!(buckets.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1), "{buckets:?}");
            let last = buckets.last().unwrap();
            assert_eq!(last.0, f64::INFINITY);
            let of: Vec<(&str, &str)> = of.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            assert_eq!(parsed.value(&format!("{family}_count"), &of), last.1);
        }
    }
    let of = [("database", "app"), ("user", "web"), ("source", "server")];
    assert_eq!(parsed.value("pondage_query_duration_seconds_count", &of), 4.0);
    assert_eq!(parsed.value("pondage_query_duration_seconds_sum", &of), 180.00008);
}
