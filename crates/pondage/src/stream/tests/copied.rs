//! A copy of tables that is kept, and held up where a test wants it.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::mirror::Row;
use super::rig::{until, Followed, Rig, DEADLINE};
use crate::stream::{Found, Limits, Rows, Source};

/// All that was told of a copy.
#[derive(Default)]
pub struct Seen {
    pub snapshot: Option<String>,
    pub tables: Vec<Found>,
    pub copies: BTreeMap<u32, Vec<Row>>,
    pub rows: usize,
    /// The last of each table.
    pub progress: BTreeMap<usize, (u64, u64)>,
    /// `Err`: why it has failed.
    pub ended: Option<Result<(), String>>,
}

#[derive(Default)]
struct Inner {
    seen: Mutex<Seen>,
    /// No more rows than these are taken, for now.
    gate: Mutex<Option<usize>>,
    opened: Condvar,
    is_slow: AtomicBool,
    /// It takes no more rows than these; none: nothing at all.
    most: Option<usize>,
}

/// What a copy is told to.
#[derive(Clone, Default)]
pub struct Copied(Arc<Inner>);

impl Copied {
    /// One whose copy stops behind so many rows, with the streams' thread, until it is opened.
    pub fn stopping_at(rows: usize) -> Copied {
        let copied = Copied::default();
        *copied.0.gate.lock().expect("not poisoned") = Some(rows);
        copied
    }

    /// One that takes no more rows than these, and no copy at all if it takes none.
    pub fn taking(most: usize) -> Copied {
        Copied(Arc::new(Inner { most: Some(most), ..Inner::default() }))
    }

    pub fn open(&self) {
        *self.0.gate.lock().expect("not poisoned") = None;
        self.0.opened.notify_all();
    }

    /// Every row takes a moment from now on.
    pub fn slow(&self) {
        self.0.is_slow.store(true, Ordering::Relaxed);
    }

    pub fn look<T>(&self, at: impl FnOnce(&Seen) -> T) -> T {
        at(&self.0.seen.lock().expect("not poisoned"))
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.seen.lock().expect("not poisoned"));
    }

    /// Waits for so many rows.
    pub async fn reached(&self, rows: usize) {
        until(&format!("{rows} rows"), || {
            self.look(|seen| assert_eq!(seen.ended, None));
            self.look(|seen| seen.rows >= rows)
        })
        .await;
    }

    pub async fn ended(&self) -> Result<(), String> {
        until("the end of the copy", || self.look(|seen| seen.ended.is_some())).await;
        self.look(|seen| seen.ended.clone()).expect("an end")
    }

    /// Waits until it has failed, for this reason among others.
    pub async fn failed(&self, reason: &str) {
        let why = self.ended().await.expect_err("it is done");
        assert!(why.contains(reason), "{why}");
    }

    /// Whether a transaction of the stream is in the copy.
    pub fn has(&self) -> impl Fn(u32) -> bool {
        let text = self.look(|seen| seen.snapshot.clone()).expect("a snapshot");
        let parts: Vec<&str> = text.split(':').collect();
        let next: u32 = parts[1].parse().expect("a number");
        let running: HashSet<u32> =
            parts[2].split(',').filter_map(|number| number.parse().ok()).collect();
        move |xid| xid < next && !running.contains(&xid)
    }
}

impl Rows for Copied {
    fn began(&mut self, snapshot: &str, _: u64, tables: &[Found]) -> Result<(), String> {
        self.change(|seen| {
            assert_eq!(seen.snapshot, None);
            seen.snapshot = Some(snapshot.to_owned());
            seen.tables = tables.to_vec();
            seen.copies = tables.iter().map(|table| (table.oid, Vec::new())).collect();
        });
        match self.0.most {
            Some(0) => Err("nothing is taken".to_owned()),
            _ => Ok(()),
        }
    }

    fn row(&mut self, table: usize, fields: &[Option<&[u8]>]) -> Result<(), String> {
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("UTF-8");
        let row = fields.iter().map(|field| field.map(text)).collect();
        let mut rows = 0;
        self.change(|seen| {
            assert_eq!(seen.ended, None);
            let oid = seen.tables[table].oid;
            seen.copies.get_mut(&oid).expect("a table").push(row);
            seen.rows += 1;
            rows = seen.rows;
        });
        if self.0.is_slow.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_micros(150));
        }
        let gate = self.0.gate.lock().expect("not poisoned");
        let closed = |gate: &mut Option<usize>| gate.is_some_and(|most| rows >= most);
        let waited = self.0.opened.wait_timeout_while(gate, DEADLINE, closed);
        assert!(!waited.expect("not poisoned").1.timed_out(), "nobody opens");
        match self.0.most {
            Some(most) if rows > most => Err("it is full".to_owned()),
            _ => Ok(()),
        }
    }

    fn progress(&mut self, table: usize, done: u64, total: u64) {
        self.change(|seen| {
            assert!(done <= total);
            let before = seen.progress.insert(table, (done, total));
            assert!(before.is_none_or(|(before, of)| before <= done && of == total));
        });
    }

    fn done(&mut self) {
        self.change(|seen| {
            assert_eq!(seen.ended.replace(Ok(())), None);
            for table in 0..seen.tables.len() {
                assert!(seen.progress.get(&table).is_some_and(|(done, total)| done == total));
            }
        });
    }

    fn failed(&mut self, why: &str) {
        self.change(|seen| assert_eq!(seen.ended.replace(Err(why.to_owned())), None));
    }
}

/// Tables with all their columns, as they are now.
pub async fn sources(rig: &Rig, names: &[&str]) -> Vec<Source> {
    let mut sources = Vec::new();
    for name in names {
        let of = format!(
            "SELECT c.oid, n.nspname, c.relname, c.relfilenode FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = '{name}'::regclass"
        );
        let text = |value: &Option<String>| value.clone().expect("a value");
        let table: Vec<String> = rig.rows(&of).await[0].iter().map(text).collect();
        let columns = rig
            .rows(&format!(
                "SELECT attnum, attname FROM pg_attribute WHERE attrelid = '{name}'::regclass \
                 AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
            ))
            .await;
        let column =
            |row: &Vec<Option<String>>| (text(&row[0]).parse().expect("a number"), text(&row[1]));
        sources.push(Source {
            oid: table[0].parse().expect("an oid"),
            schema: table[1].clone(),
            name: table[2].clone(),
            columns: columns.iter().map(column).collect(),
            filenode: table[3].parse().expect("a file"),
        });
    }
    sources
}

/// Small pieces for several connections.
pub fn limits() -> Limits {
    Limits { connections: 3, piece_blocks: 4 }
}

/// Begins a copy of these tables.
pub async fn copy(rig: &Rig, followed: &Followed, names: &[&str], copied: &Copied) {
    let sources = sources(rig, names).await;
    followed.tap.copy(sources, limits(), Box::new(copied.clone()));
}
