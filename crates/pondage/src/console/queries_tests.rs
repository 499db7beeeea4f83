use super::*;
use crate::console::fixture;
use crate::console::view;
use crate::route::Way;
use crate::worker::snapshot::ReadSnapshot;

/// A shape of app/web that ran so often, each time for so long.
fn shape(text: &str, calls: u64, micros: u64) -> QuerySnapshot {
    let mut time = Histogram::default();
    for _ in 0..calls {
        time.record(micros);
    }
    QuerySnapshot {
        database: "app".to_owned(),
        user: "web".to_owned(),
        text: text.to_owned(),
        calls,
        time,
        joined: 0,
        company: 0,
        prepared: 0,
        again: 0,
        errors: 0,
        way: Way::Alone,
        why: Why::New,
        reason: String::new(),
        read: None,
    }
}

fn worker(queries: Vec<QuerySnapshot>) -> WorkerSnapshot {
    WorkerSnapshot { queries, ..WorkerSnapshot::default() }
}

fn words(row: &[Value]) -> Vec<String> {
    let word = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Tenths(tenths) => format!("{}.{}", tenths / 10, tenths % 10),
        Value::Text(text) => text.to_string(),
    };
    row.iter().map(word).collect()
}

#[test]
fn a_shape_that_several_workers_see_is_one_row_with_the_words_of_the_busiest() {
    let mut one = shape("select ?", 3, 100);
    (one.joined, one.company, one.errors) = (1, 4, 1);
    let mut other = shape("select ?", 5, 40);
    (other.joined, other.company, other.prepared, other.again) = (4, 3, 5, 2);
    (other.way, other.why) = (Way::Pipeline, Why::Free);
    other.reason = "function random() is volatile".to_owned();
    let expected = "app|web|select ?|8|500|62|50|100|5|62.5|1.4|5|2|1|pipeline|nothing stands \
        against it (parser and catalogues: function random() is volatile)";
    for order in [[&one, &other], [&other, &one]] {
        let workers = order.map(|shape| worker(vec![shape.clone()]));
        let rows = rows(&workers);
        assert_eq!(rows.len(), 1);
        assert_eq!(words(&rows[0]).join("|"), expected);
    }
}

#[test]
fn pools_keep_their_shapes_apart_and_what_took_longest_comes_first() {
    let mut guest = shape("select 1", 1, 300);
    guest.user = "guest".to_owned();
    let mut reports = shape("select 1", 2, 300);
    reports.database = "reports".to_owned();
    let given = [worker(vec![shape("select 1", 1, 200), guest]), worker(vec![reports])];
    let rows: Vec<String> = rows(&given).iter().map(|row| words(row)[..5].join(" ")).collect();
    assert_eq!(
        rows,
        ["reports web select 1 2 600", "app guest select 1 1 300", "app web select 1 1 200"]
    );
}

#[test]
fn a_shape_that_has_not_been_answered_yet_has_no_times_and_no_shares() {
    let row = &rows(&[worker(vec![shape("select 1", 0, 0)])])[0];
    assert_eq!(
        words(row).join("|"),
        "app|web|select 1|0|0|-|-|-|0|-|-|0|0|0|alone|it has not been seen often enough"
    );
}

#[test]
fn there_are_no_more_rows_than_the_ceiling_and_the_longest_stay() {
    let ceiling = ROWS_MAX as u64;
    let of = |times: std::ops::RangeInclusive<u64>| {
        worker(times.map(|n| shape(&format!("select {n}"), 1, n)).collect())
    };
    let rows = rows(&[of(1..=ceiling), of(ceiling + 1..=ceiling + 9)]);
    assert_eq!(rows.len(), ROWS_MAX);
    assert_eq!(words(&rows[0])[4], (ROWS_MAX + 9).to_string());
    assert_eq!(words(&rows[ROWS_MAX - 1])[4], "10");
}

#[test]
fn percentiles_are_bounds_of_buckets() {
    let of = |durations: &[u64]| {
        let mut time = Histogram::default();
        durations.iter().for_each(|micros| time.record(*micros));
        words(&[bound(&time, 50), bound(&time, 99)]).join(" ")
    };
    assert_eq!(of(&[]), "- -");
    assert_eq!(of(&[1]), "50 50");
    assert_eq!(of(&[51]), "100 100");
    assert_eq!(of(&[10, 10, 60, 1_000]), "50 1600");
    // One of a hundred is beyond the 99th percentile, two are not.
    let mut hundred = vec![30; 99];
    hundred.push(5_000);
    assert_eq!(of(&hundred), "50 50");
    hundred[0] = 5_000;
    assert_eq!(of(&hundred), "50 6400");
    assert_eq!(of(&[60_000_000]), "13107200 13107200");
}

#[test]
fn counters_of_coalescing_are_sums_of_a_pools_workers() {
    let config = fixture::config();
    let mut pool = fixture::pool(&config, "app", "web");
    let counters = &mut pool.totals.coalesced;
    counters.trips = 4;
    (counters.batched, counters.trained, counters.prepared) = (3, 2, 1);
    (counters.skipped, counters.stalled, counters.lost) = (7, 8, 9);
    for (at, count) in counters.why.iter_mut().enumerate() {
        *count = at as u64 * 100 + 9;
    }
    let given = [0, 1].map(|worker| WorkerSnapshot {
        worker,
        pools: vec![pool.clone()],
        ..Default::default()
    });
    let rows: Vec<String> =
        view::pools(&given).iter().map(|pool| words(&coalesced(pool)).join(" ")).collect();
    assert_eq!(
        rows,
        ["app web 8 18 2.3 6 4 2 14 16 18 218 418 618 818 1018 1218 1418 1618 1818 2018 2218"]
    );
}

#[test]
fn reads_that_nobody_has_named_say_whether_they_could_be_cached() {
    let read = |normal: &str, cacheable| {
        let normal = normal.to_owned();
        Some(ReadSnapshot { normal, hits: 0, advised: 2, named: false, cacheable })
    };
    let mut one = shape("select ?", 3, 100);
    one.read = read("select $1", None);
    let mut judged = one.clone();
    judged.read = read("select $1", Some(Ok(())));
    let mut refused = shape("select now()", 9, 100);
    refused.read = read("select now()", Some(Err("function now() is stable".to_owned())));
    let mut named = shape("select a", 9, 100);
    named.read = read("select a", Some(Ok(())));
    named.read.as_mut().expect("a read").named = true;
    let write = shape("delete from t", 9, 100);
    let workers = [worker(vec![one, refused, named, write]), worker(vec![judged])];
    let rows: Vec<String> = proxied(&workers).iter().map(|row| words(row).join("|")).collect();
    let expected = [
        "app|web|select now()|9|900|2|no|function now() is stable",
        "app|web|select $1|6|600|4|yes|",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn latencies_of_a_pool_are_those_of_its_transactions_queries_and_waits() {
    let mut pool = fixture::pool(&fixture::config(), "app", "web");
    pool.totals = Default::default();
    assert_eq!(words(&latencies(&pool))[6..15], ["-"; 9]);
    for micros in (0..100).map(|n| if n < 94 { 40 } else { 700 }) {
        pool.totals.xact_time.record(micros * 2);
        pool.totals.query_time.record(micros);
    }
    pool.totals.wait_time.record(10);
    let row = words(&latencies(&pool));
    assert_eq!(row[..6], ["app", "web", "0", "0", "0", "0"]);
    assert_eq!(row[6..15], ["100", "1600", "1600", "50", "800", "800", "50", "50", "50"]);
    assert_eq!(row[15..], ["0", "-", "0"], "servers, no share, none given up");
    (pool.sv_idle, pool.sv_login, pool.share) = (2, 1, Some(4));
    pool.totals.given_up = 7;
    assert_eq!(words(&latencies(&pool))[15..], ["3", "4", "7"]);
}
