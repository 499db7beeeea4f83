//! What calls fight for is learned from PostgreSQL's lock table, and advised.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::coalescing::crowd::Crowd;
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{wait, WireClient};

const CLIENTS: usize = 12;

/// Nobody can read from the text which rows it locks.
const BOOKING: &str = "
    create table shelf(id int primary key, n int not null default 0);
    insert into shelf select g from generate_series(1, 3) g;
    create procedure book(p_day int, p_shelf int, p_note int) language plpgsql as $$ begin
        execute 'update shelf set n = n + 1 where id = $1' using p_shelf;
        perform pg_sleep(0.01);
    end $$;
";

fn explained(console: &mut WireClient) -> Vec<String> {
    let rows = console.rows("explain procedure book");
    rows.into_iter().flatten().flatten().collect()
}

#[test]
fn the_argument_that_waiting_calls_share_is_advised_and_then_they_wait_no_more() {
    let crowd = Crowd::start(0, BOOKING, |config| config.set("pool.pool_size", CLIENTS as i64));
    let stop = Arc::new(AtomicBool::new(false));
    let clients = (0..CLIENTS).map(|number| {
        let (address, database) = (crowd.gateway.address(), crowd.database.name.clone());
        let stop = stop.clone();
        std::thread::spawn(move || {
            let mut client = WireClient::login(&address, APP, APP_PASSWORD, &database);
            for note in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let note = note * CLIENTS + number;
                client.run(&format!("call book(7, {}, {note})", number % 3 + 1));
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut console = crowd.gateway.console();
    let advice = "calls that wait for one another have the same (p_shelf)";
    wait::until("advice", || {
        explained(&mut console)
            .iter()
            .any(|line| line.starts_with("Advice") && line.contains(advice))
    });
    console.run("set procedure book key (p_shelf)");
    wait::until("calls that ride", || {
        let rows = console.rows("show procedures");
        rows.iter().flatten().flatten().any(|value| value == "train")
    });
    wait::until("no more advice", || {
        explained(&mut console).iter().all(|line| !line.contains(advice))
    });
    stop.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().expect("a client"));
}
