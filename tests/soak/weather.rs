//! What goes on around the clients: servers die, the operator is busy.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::kit::{cluster, Database, Gateway, WireClient};
use crate::resident;

/// Time between two events.
const EVERY: Duration = Duration::from_millis(150);

/// Makes bad weather for so long; returns the gateway's largest memory, in bytes.
pub fn rule(seed: u64, time: Duration, gateway: &Gateway, database: &Database) -> usize {
    let mut random = StdRng::seed_from_u64(seed);
    let mut superuser = cluster().superuser("postgres");
    let mut console = gateway.console();
    let end = Instant::now() + time;
    let mut peak = 0;
    while Instant::now() < end {
        std::thread::sleep(EVERY);
        peak = peak.max(resident(gateway));
        match random.random_range(0..100) {
            0..60 => kill_one(&mut superuser, database),
            60..65 => console.run("reconnect"),
            65..70 => console.run(&format!("reconnect {}", database.name)),
            70..75 => console.run("reload"),
            75..78 => {
                console.run(&format!("pause {}", database.name));
                console.run(&format!("resume {}", database.name));
            }
            _ => {
                for what in ["pools", "servers", "clients", "stats", "lists", "mem"] {
                    console.run(&format!("show {what}"));
                }
            }
        }
    }
    peak
}

fn kill_one(superuser: &mut WireClient, database: &Database) {
    superuser.run(&format!(
        "select pg_terminate_backend(pid) from pg_stat_activity \
         where datname = '{}' and usename = 'app' and backend_type = 'client backend' \
         order by random() limit 1",
        database.name
    ));
}
