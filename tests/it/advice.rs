//! SHOW ADVICE of real traffic: what is advised can be done as it is told, and then it helps.
//!
//! Nothing is advised before two minutes have passed, so one gateway has all the traffic, a
//! database for each kind, and one test looks at all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use wire::pg::frontend;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Address, Config, Database, Gateway, WireClient};
use crate::traps::servers::direct;

/// Two minutes, and some more on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(180);

type Row = BTreeMap<String, String>;

/// Clients that say something again and again until they are told to stop.
struct Traffic {
    address: Address,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Traffic {
    fn to(gateway: &Gateway) -> Traffic {
        Traffic { address: gateway.address(), stop: Arc::default(), threads: Vec::new() }
    }

    fn add(&mut self, database: &Database, says: impl Fn(u64) -> String + Send + 'static) {
        let (stop, address, name) =
            (self.stop.clone(), self.address.clone(), database.name.clone());
        self.threads.push(std::thread::spawn(move || {
            let mut client = WireClient::login(&address, APP, APP_PASSWORD, &name);
            for round in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return client.terminate();
                }
                client.run(&says(round));
            }
        }));
    }

    #[track_caller]
    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("a client"));
    }
}

/// What is advised of this kind for this database.
fn advised(gateway: &Gateway, kind: &str, database: &Database) -> Option<Row> {
    let rows = gateway.show("advice");
    rows.into_iter().find(|row| row["kind"] == kind && row["database"] == database.name)
}

#[track_caller]
fn expected(gateway: &Gateway, kind: &str, database: &Database) -> Row {
    advised(gateway, kind, database)
        .unwrap_or_else(|| panic!("{kind}: {:#?}", gateway.show("advice")))
}

/// Puts the lines of an advice where they belong in the file, has `pondage check` look at it, and
/// reloads.
#[track_caller]
fn follow(gateway: &Gateway, config: &Config, row: &Row) -> Config {
    let command = &row["command"];
    let (section, line) = command.split_once('\n').unwrap_or_else(|| panic!("{row:#?}"));
    let section = section.strip_prefix('[').and_then(|section| section.strip_suffix(']'));
    let (key, value) = line.split_once(" = ").expect("an option");
    let path = format!("{}.{key}", section.expect("a section"));
    let config = match value.parse::<i64>() {
        Ok(number) => config.clone().set(&path, number),
        Err(_) => config.clone().set(&path, value.trim_matches('"')),
    };
    gateway.rewrite(config.clone());
    let file = gateway.file().display().to_string();
    let checked = Gateway::command(&["check", "-c", &file], &[]);
    assert_eq!(checked.status.code(), Some(0), "{command}: {checked:?}");
    gateway.console().run("RELOAD");
    config
}

/// Reads whose answers stay the same: in mode `advise`, they are only counted.
mod cache {
    use super::*;

    pub const SCHEMA: &str = "create table shelf(id int primary key, n int);
        insert into shelf select g, g % 10 from generate_series(1, 20000) g;
        analyze shelf; grant select on shelf to public";

    pub fn read(round: u64) -> String {
        format!("select count(*) from shelf where n = {}", round % 3)
    }

    /// The command names the statement; the mode that answers it is advised next.
    #[track_caller]
    pub fn helps(gateway: &Gateway, config: Config, database: &Database) -> Config {
        let row = expected(gateway, "cache", database);
        assert!(row["command"].starts_with("CREATE CACHE IN DATABASE "), "{row:#?}");
        assert!(row["gain_ms_per_second"].parse::<f64>().expect("a number") >= 1.0, "{row:#?}");
        gateway.console().run(&row["command"]);
        let mut client = gateway.client(database);
        let row = wait::for_some("advice about the mode", || {
            client.run(&read(1));
            let row = expected(gateway, "cache", database);
            row["command"].starts_with('[').then_some(row)
        });
        let config = follow(gateway, &config, &row);
        wait::until("answers from memory", || {
            client.run(&read(2));
            let told = client.rows("explain last statement");
            told.iter().flatten().flatten().any(|line| line == "Way: cache")
        });
        assert_eq!(client.one(&read(2)), "2000");
        assert_eq!(advised(gateway, "cache", database), None);
        config
    }
}

/// Calls that wait for the same row, whose key nobody can read in the text.
mod procedure {
    use super::*;

    pub const SCHEMA: &str = "create table shelf(id int primary key, n int not null default 0);
        insert into shelf select g from generate_series(1, 3) g;
        create procedure book(p_day int, p_shelf int, p_note int) language plpgsql as $$ begin
            execute 'update shelf set n = n + 1 where id = $1' using p_shelf;
            perform pg_sleep(0.02);
        end $$;
        grant all on shelf to public";

    pub fn call(client: u64, round: u64) -> String {
        format!("call book(7, {}, {})", client % 3 + 1, round * 100 + client)
    }

    #[track_caller]
    pub fn helps(gateway: &Gateway, database: &Database) {
        let row = expected(gateway, "procedure", database);
        assert_eq!(row["command"], "SET PROCEDURE public.book KEY (p_shelf)", "{row:#?}");
        gateway.console().run(&row["command"]);
        let shown = gateway.show("procedures");
        let said = (&*shown[0]["key"], &*shown[0]["mode"], &*shown[0]["key_source"]);
        assert_eq!(said, ("p_shelf", "train", "command"));
        assert_eq!(advised(gateway, "procedure", database), None);
    }
}

/// Pools that are much too small and much too big.
mod pool {
    use super::*;

    fn size(gateway: &Gateway, database: &Database) -> u32 {
        let rows = gateway.show("databases");
        let row = rows.iter().find(|row| row["name"] == database.name).expect("its row");
        row["pool_size"].parse().expect("a number")
    }

    #[track_caller]
    pub fn helps(gateway: &Gateway, config: Config, database: &Database, grows: bool) -> Config {
        let row = expected(gateway, "pool", database);
        let before = size(gateway, database);
        assert_eq!(row["subject"], format!("pool_size {before}"));
        let config = follow(gateway, &config, &row);
        let after = size(gateway, database);
        assert_eq!((after > before, after < before), (grows, !grows), "{row:#?}");
        config
    }
}

/// Somebody who does nothing in a transaction, while others wait for the server.
mod transaction {
    use super::*;

    #[track_caller]
    pub fn helps(gateway: &Gateway, database: &Database) {
        let mut holder = gateway.client(database);
        holder.run("begin; select 1");
        let mut waiter = gateway.client(database);
        waiter.put(|out| frontend::put_query(out, "select 2"));
        let row = wait::for_some("advice", || advised(gateway, "transaction", database));
        gateway.console().run(&row["command"]);
        waiter.until_ready();
        let ended = holder.until_closed();
        assert_eq!(ended.last().expect("a last word").complaint().severity, "FATAL");
        wait::until("no more advice", || advised(gateway, "transaction", database).is_none());
    }
}

#[test]
fn what_is_advised_of_real_traffic_can_be_done_and_helps() {
    let [reads, calls, small, big, open] = [(); 5].map(|()| cluster().database());
    direct(&reads).run(cache::SCHEMA);
    direct(&calls).run(procedure::SCHEMA);
    let mut config = Config::base().set("cache.user", APP).set("cache.password", APP_PASSWORD);
    for (database, size) in [(&reads, 4), (&calls, 12), (&small, 1), (&big, 20), (&open, 1)] {
        let path = format!("databases.{}.pool_size", database.name);
        config = config.database(&database.name).set(&path, size);
    }
    config = config.set(&format!("databases.{}.cache", reads.name), "advise");
    let gateway = Gateway::start(config.clone());
    let mut traffic = Traffic::to(&gateway);
    (0..2).for_each(|_| traffic.add(&reads, cache::read));
    // All of the pool works all the time, on reads.
    (0..2).for_each(|_| traffic.add(&small, |_| "select pg_sleep(0.05)".to_owned()));
    traffic.add(&big, |_| "select 1; select pg_sleep(0.2)".to_owned());
    let mut bookings = Traffic::to(&gateway);
    (0..12).for_each(|client| bookings.add(&calls, move |round| procedure::call(client, round)));

    let early = gateway.show("advice");
    assert_eq!((early.len(), early[0]["kind"].as_str()), (1, "none"), "{early:?}");
    let told = wait::within(PATIENCE, || {
        std::thread::sleep(Duration::from_secs(1));
        gateway.show("advice").iter().all(|row| row["kind"] != "none").then_some(())
    });
    assert!(told.is_some(), "{:?}", gateway.show("advice"));

    // In order of gain.
    let rows = gateway.show("advice");
    let gains = rows.iter().map(|row| row["gain_ms_per_second"].parse::<f64>().expect("a number"));
    assert!(gains.collect::<Vec<_>>().is_sorted_by(|a, b| a >= b), "{rows:#?}");
    procedure::helps(&gateway, &calls);
    bookings.end();
    transaction::helps(&gateway, &open);
    let config = pool::helps(&gateway, config, &small, true);
    let config = pool::helps(&gateway, config, &big, false);
    traffic.end();
    // Reads that nobody counts: they are to be counted, and then they are.
    let row = expected(&gateway, "cache", &small);
    let config = follow(&gateway, &config, &row);
    let mode = format!("databases.{}.cache", small.name);
    assert_eq!(config.get(&mode), Some("\"advise\""), "{row:#?}");
    let counts = gateway.show("advice");
    assert!(counts.iter().all(|one| one["subject"] != row["subject"]), "{counts:#?}");
    cache::helps(&gateway, config, &reads);
}
