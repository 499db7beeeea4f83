//! Sessions that go around the gateway: one writes, one looks for halves of batches, one tells what
//! is in the tables in the end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::{Client, NoTls};

use crate::client::Shared;
use crate::history::{now, Event, Outcome, NEVER};
use crate::kit::cluster::{SUPERUSER, SUPERUSER_PASSWORD};
use crate::model::{Answer, Op, Value};
use crate::workload::{collection, kind, Keys, Kind, TWINS};

/// A statement that takes longer is given up with its connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two transactions of a writer, at most, in milliseconds.
const PAUSE_MS_MAX: u64 = 12;

/// Where PostgreSQL is, not through any proxy.
#[derive(Debug, Clone)]
pub struct Place {
    pub port: u16,
    pub database: String,
}

/// PostgreSQL can't be asked now.
#[derive(Debug)]
pub struct Away(pub String);

impl From<tokio_postgres::Error> for Away {
    fn from(error: tokio_postgres::Error) -> Away {
        Away(format!("{error:?}"))
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime").block_on(future)
}

pub async fn connect(place: &Place) -> Result<Client, Away> {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(place.port).dbname(&place.database);
    config.user(SUPERUSER).password(SUPERUSER_PASSWORD).application_name("checker");
    let opened = tokio::time::timeout(PATIENCE, config.connect(NoTls)).await;
    let (client, connection) = opened.map_err(|_| Away("no connection".to_owned()))??;
    tokio::spawn(connection);
    Ok(client)
}

/// Changes keys by the functions of the schema `redis`, each change in its own transaction.
pub fn write(place: &Place, shared: &Arc<Shared>, keys: Keys, seed: u64) -> Vec<Event> {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut events = Vec::new();
    block_on(async {
        while !shared.stopped() {
            let lane = shared.lane();
            if let Ok(client) = connect(place).await {
                while !shared.stopped() && !client.is_closed() {
                    let written = write_one(&client, shared, keys, lane, &mut dice, &mut events);
                    if tokio::time::timeout(PATIENCE, written).await.is_err() {
                        break;
                    }
                    pause(&mut dice).await;
                }
            }
            pause(&mut dice).await;
        }
    });
    events
}

async fn pause(dice: &mut StdRng) {
    let pause = Duration::from_millis(dice.random_range(0..PAUSE_MS_MAX));
    tokio::time::sleep(pause).await;
}

/// What a transaction does: the statement, the key, what it means.
fn choose(shared: &Shared, keys: Keys, dice: &mut StdRng) -> (String, String, Op) {
    let text = format!("q{}", shared.tag());
    let member = format!("m{}", dice.random_range(0..8));
    let (counter, swap) = (keys.shared_counter(), keys.shared_swap());
    let (set, list) = (keys.shared_set(), keys.shared_list());
    match dice.random_range(0..if keys.families.lists { 10 } else { 8 }) {
        0..3 => (format!("select redis.incr('{counter}')::text"), counter, Op::IncrBy(1)),
        3..5 => (format!("select redis.set('{swap}', '{text}')::text"), swap, Op::Set(text)),
        5..7 => {
            let sql = format!("select redis.sadd('{set}', '{member}')::int::text");
            (sql, set, Op::SAdd(member))
        }
        7 => {
            let sql = format!("select redis.srem('{set}', '{member}')::int::text");
            (sql, set, Op::SRem(member))
        }
        _ => (format!("select redis.lpush('{list}', '{text}')::text"), list, Op::LPush(text)),
    }
}

async fn write_one(
    client: &Client,
    shared: &Shared,
    keys: Keys,
    lane: u32,
    dice: &mut StdRng,
    events: &mut Vec<Event>,
) {
    let (sql, key, op) = choose(shared, keys, dice);
    let at = events.len();
    // If nothing more is heard, it stays like this.
    let (invoked, outcome) = (now(), Outcome::Unknown);
    events.push(Event { lane, key, op, invoked, answered: NEVER, outcome });
    let event = &mut events[at];
    let said = match ask(client, "begin", &sql).await {
        Ok(said) => said,
        Err(error) => {
            // Before COMMIT was sent, so that it has not happened.
            event.outcome = Outcome::Refused(error.0);
            let _ = client.batch_execute("rollback").await;
            return;
        }
    };
    if dice.random_bool(0.3) {
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..5))).await;
    }
    let undone = dice.random_bool(0.1);
    match client.batch_execute(if undone { "rollback" } else { "commit" }).await {
        _ if undone => event.outcome = Outcome::Refused("rolled back".to_owned()),
        Ok(()) => {
            let answer = match &event.op {
                Op::Set(_) => Answer::Done,
                _ => Answer::Number(said.parse().unwrap_or(i64::MIN)),
            };
            event.outcome = Outcome::Answered(answer);
        }
        Err(_) => {}
    }
}

async fn ask(client: &Client, before: &str, sql: &str) -> Result<String, Away> {
    client.batch_execute(before).await?;
    let row = client.query_one(sql, &[]).await?;
    Ok(row.get::<_, Option<String>>(0).unwrap_or_default())
}

/// Looks again and again whether accounts and twins fit each other; gives how often.
pub fn watch(place: &Place, shared: &Arc<Shared>, keys: Keys) -> u64 {
    let names = |keys: Vec<String>| format!("'{}'", keys.join("', '"));
    let sql = format!(
        "select coalesce(sum(value_text::int8) filter (where key_text in ({accounts})), 0)::text, \
                count(*) filter (where key_text in ({twins})), \
                count(distinct value) filter (where key_text in ({twins})) \
         from redis.strings where db = 0 and key = any (array[{accounts}, {twins}]::bytea[])",
        accounts = names(keys.accounts()),
        twins = names(keys.twins()),
    );
    let mut looks = 0;
    block_on(async {
        while !shared.stopped() {
            if let Ok(client) = connect(place).await {
                while !shared.stopped() && !client.is_closed() {
                    let asked = tokio::time::timeout(PATIENCE, client.query_one(&sql, &[])).await;
                    let Ok(Ok(row)) = asked else { break };
                    looks += 1;
                    let (sum, twins, values) =
                        (row.get::<_, String>(0), row.get::<_, i64>(1), row.get::<_, i64>(2));
                    if sum != "0"
                        || (twins, values) != (0, 0) && (twins, values) != (TWINS as i64, 1)
                    {
                        shared.accuse(format!(
                            "SQL saw half of something at {} ms: the accounts' sum is {sum}, \
                             {twins} twins have {values} values",
                            now() / 1_000_000
                        ));
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    looks
}

/// What is in the tables.
pub async fn tables(client: &Client, keys: &[String]) -> Result<Vec<(String, Value)>, Away> {
    let mut found = Vec::new();
    for key in keys {
        let sql = match kind(key) {
            Kind::Text => "select array[value_text] from redis.strings",
            Kind::List => "select array_agg(value_text order by index) from redis.lists",
            Kind::Set => "select array_agg(member_text) from redis.sets",
            Kind::Hash => {
                "select array_agg(t) from redis.hashes, \
                           unnest(array[field_text, value_text]) with ordinality u (t, n)"
            }
            Kind::Zset => {
                "select array_agg(t) from redis.zsets, \
                           unnest(array[member_text, score::text]) with ordinality u (t, n)"
            }
        };
        let sql = format!("{sql} where db = 0 and key = convert_to($1, 'UTF8')");
        let rows = client.query(&sql, &[key]).await?;
        let items = rows.first().and_then(|row| row.get::<_, Option<Vec<String>>>(0));
        let value = match (items, kind(key)) {
            (None, _) => Value::Absent,
            (Some(mut items), Kind::Text) => Value::Text(items.remove(0)),
            (Some(items), _) => collection(key, items)
                .ok_or_else(|| Away(format!("the rows of {key} can't be read")))?,
        };
        found.push((key.clone(), value));
    }
    Ok(found)
}
