//! Random programs over all that pins a client: what each sees and hears is what it would alone, and
//! what others hold in another database without a pooler. Where LISTEN pins nobody, they are pinned
//! and listen over the shared connection at once.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::listening::heard;
use super::servers::direct;
use super::sessions::told;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

const FUNCTIONS: &str = "
    create function takes(n int) returns bool language sql as 'select pg_try_advisory_lock(n)';
    create function gives(n int) returns bool language plpgsql
        as 'begin return pg_advisory_unlock(n); end';
    create function makes(name text) returns void language plpgsql
        as $$ begin execute format('create temp table %I (a int)', name); end $$;
    create function makes_one() returns void language plpgsql
        as $$ begin create temp table t1 (a int); exception when others then null; end $$;
    create function drops(name text) returns void language plpgsql
        as $$ begin execute format('drop table if exists %I', name); end $$;
    create function hears() returns void language sql as 'listen heard';
    create function ignores() returns void language sql as 'unlisten heard';
    create function fails(n int) returns int language plpgsql
        as $$ begin perform pg_try_advisory_lock(n); create temp table t2 (a int); return 1 / 0; end $$;";

/// What one has in its session.
const LOOK: &str = "select \
    (select string_agg(relname, ',' order by relname) from pg_class \
      where relnamespace = pg_my_temp_schema() and relkind in ('r', 'v', 'S')), \
    (select string_agg(name, ',' order by name) from pg_cursors where is_holdable), \
    (select string_agg(c, ',' order by c) from pg_listening_channels() c), \
    (select string_agg(objid || mode, ',' order by objid, mode) from pg_locks \
      where locktype = 'advisory' and pid = pg_backend_pid())";

struct Pair {
    through: WireClient,
    direct: WireClient,
    open: bool,
    /// It has something that it would lose without its server.
    keeps: bool,
    /// What it was notified of.
    heard: [Vec<(bool, String, String)>; 2],
}

impl Pair {
    fn step(&mut self, random: &mut StdRng, what: &str, listen: &str) {
        let text = statement(random, self.open);
        let extended = random.random_bool(0.4) && !text.contains(';');
        let [through, direct] = self.both(&text, extended);
        assert_eq!(through, direct, "{what}: {text}");
        let status = direct.last().expect("a ReadyForQuery").clone();
        self.open = status != "Z I";
        if status != "Z E" {
            let [through, direct] = self.both(LOOK, random.random_bool(0.5));
            assert_eq!(through, direct, "{what}: after {text}");
            let has = direct[0].trim_matches(['[', ']']).split(", ");
            let keeps = |(at, has): (usize, &str)| has != "None" && (at != 2 || listen == "server");
            self.keeps = has.enumerate().any(keeps);
        }
        if !self.open {
            let [through, mut direct] = self.heard.each_mut().map(std::mem::take);
            if listen == "server" {
                // The server that has sent it is not what the client knows as its own number.
                direct.iter_mut().for_each(|(own, ..)| *own = false);
            }
            assert_eq!(through, direct, "{what}: heard after {text}");
        }
    }

    fn both(&mut self, text: &str, extended: bool) -> [Vec<String>; 2] {
        let mut answers = [&mut self.through, &mut self.direct].into_iter().zip(&mut self.heard);
        [(); 2].map(|()| {
            let (client, all) = answers.next().expect("one for each");
            let messages = match extended {
                true => client.extended(text, &[]),
                false => client.query(text),
            };
            all.extend(heard(client, &messages));
            told(&messages)
        })
    }
}

fn statement(random: &mut StdRng, open: bool) -> String {
    let table = ["t1", "t2", "\"T 3\""][random.random_range(0..3)];
    let cursor = ["c1", "c2"][random.random_range(0..2)];
    let savepoint = ["a", "b"][random.random_range(0..2)];
    let n = random.random_range(0..3);
    let end = ["", " on commit drop", " on commit delete rows"][random.random_range(0..3)];
    match random.random_range(0..50) {
        0 | 1 => format!("create temp table {table} (a int){end}"),
        2 => format!("create table pg_temp.{table} (a int)"),
        3 => format!("select {n} as a into temp {table}"),
        4 => format!("CREATE LOCAL TEMPORARY TABLE {table}{end} AS SELECT {n} AS a"),
        5 => format!("create temp table {table} (a int); insert into {table} values ({n})"),
        6..=8 => format!("insert into {table} values ({n})"),
        9..=11 => format!("select a from {table}"),
        12 => format!("drop table {table}"),
        13 => format!("drop table if exists {table}"),
        14 => format!("select makes('t{n}')"),
        15 => "select makes_one()".into(),
        16 => format!("select drops('t{n}')"),
        17 | 18 => format!("declare {cursor} cursor with hold for select generate_series(1, 3)"),
        19 => format!("declare {cursor} cursor for select 1"),
        20 | 21 => format!("fetch 1 from {cursor}"),
        22 => format!("close {cursor}"),
        23 => "close all".into(),
        24 => format!("listen l{n}"),
        25 => format!("unlisten l{n}"),
        26 => "unlisten *".into(),
        46 | 47 => format!("notify l{n}, '{}'", random.random::<u16>()),
        48 => format!("select pg_notify('l{n}', a::text) from {table}"),
        49 => format!("listen l{n}; notify l{n}, 'first'"),
        27 => "select hears()".into(),
        28 => "select ignores()".into(),
        29 => format!("select pg_try_advisory_lock({n})"),
        30 => format!("select pg_try_advisory_lock_shared({n})"),
        31 => format!("select pg_advisory_unlock({n})"),
        32 => "select pg_advisory_unlock_all()".into(),
        33 => format!("select pg_try_advisory_xact_lock({n})"),
        34 => format!("select takes({n})"),
        35 => format!("select gives({n})"),
        36 => format!("select fails({n})"),
        37 => format!("do $$ begin perform takes({n}); create temp view v as select 1; end $$"),
        38 => "discard temp".into(),
        39 if !open => "discard all".into(),
        39 => "select 1 / 0".into(),
        40 | 41 if open => "commit".into(),
        42 if open => "rollback".into(),
        43 if open => format!("savepoint {savepoint}"),
        44 if open => format!("rollback to {savepoint}"),
        45 if open => format!("release {savepoint}"),
        40..=43 => "begin".into(),
        _ => format!("do $$ begin perform pg_advisory_unlock({n}); end $$"),
    }
}

#[test]
fn random_programs_keep_what_they_would_keep_alone() {
    const CLIENTS: usize = 4;
    const SERVERS: usize = 3;
    for (workers, listen) in [(1, "server"), (2_i64, "server"), (1, "shared"), (2, "shared")] {
        let (database, other) = (cluster().database(), cluster().database());
        database.run(FUNCTIONS);
        other.run(FUNCTIONS);
        let config = Config::of(&database)
            .set("runtime.workers", workers)
            .set("pool.pool_size", SERVERS as i64)
            .set("pool.max_pinned", SERVERS as i64)
            .set("pool.listen", listen);
        let gateway = Gateway::start(config);
        let seed: u64 = rand::random();
        println!("{workers} workers, listen = {listen}, seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let pair = || Pair {
            through: gateway.client(&database),
            direct: direct(&other),
            open: false,
            keeps: false,
            heard: [Vec::new(), Vec::new()],
        };
        let mut pairs: Vec<Pair> = (0..CLIENTS).map(|_| pair()).collect();
        for step in 0..500 {
            let has = |at: &usize| pairs[*at].open || pairs[*at].keeps;
            let busy: Vec<usize> = (0..pairs.len()).filter(has).collect();
            let at = match busy.len() < SERVERS {
                true => random.random_range(0..pairs.len()),
                false => busy[random.random_range(0..busy.len())],
            };
            let what = format!("listen = {listen}, seed {seed}, step {step}, client {at}");
            pairs[at].step(&mut random, &what, listen);
            if random.random_bool(0.02) {
                // One goes, with all that it has, and another comes.
                let gone = std::mem::replace(&mut pairs[at], pair());
                gone.through.terminate();
                gone.direct.terminate();
                wait_for_equal_locks([&database, &other]);
            }
        }
    }
}

/// Locks of those who have gone are gone in both databases.
fn wait_for_equal_locks(databases: [&Database; 2]) {
    let mut superuser = cluster().superuser("postgres");
    wait::until("locks to be given up", || {
        let [one, other] = databases.map(|database| {
            superuser.one(&format!(
                "select count(*) from pg_locks l join pg_database d on d.oid = l.database \
                 where locktype = 'advisory' and datname = '{}'",
                database.name
            ))
        });
        one == other
    });
}
