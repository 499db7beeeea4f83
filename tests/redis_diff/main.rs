//! The same random commands to Debian's `redis-server` and to another server, whose replies must
//! be the same bytes.
//!
//! `make redis-diff` asks Pondage's own Redis door, or the server that
//! `PONDAGE_DIFF_SUBJECT=host:port` names, which `PONDAGE_DIFF_AUTH="user password"` is told first.
//! `PONDAGE_DIFF_SEED` is the seed of
//! the first round (random), `PONDAGE_DIFF_ROUNDS` how many there are (50), and
//! `PONDAGE_DIFF_FAMILIES` which families of commands are mixed, `list,key` for example (all);
//! it ends after `PONDAGE_DIFF_FINDINGS` rounds that differ (1).
//! Everything in both servers is deleted, each round.

mod connection;
mod dice;
mod grammar;
mod keyspace;
#[path = "../it/kit/mod.rs"]
mod kit;
mod play;
mod proxy;
mod reply;
mod rules;
mod scenario;
mod scripts;
mod shrink;
mod template;

use std::fmt::Write;

use connection::Place;
use kit::cluster::APP;
use kit::{cluster, Config, Gateway, RedisServer};
use play::{play, Difference};
use scenario::Step;

/// What the steps of a round came to.
struct Finding {
    seed: u64,
    steps: Vec<Step>,
    difference: Difference,
}

/// Plays a round for each of `seeds` and shrinks those that differ, until there are `most`.
fn search(
    seeds: impl Iterator<Item = u64>,
    families: &[String],
    sides: [&Place; 2],
    most: usize,
) -> Vec<Finding> {
    let [oracle, subject] = sides;
    let mut findings = Vec::new();
    for seed in seeds {
        let mut steps = scenario::generate(seed, families);
        let Some(first) = play(&steps, oracle, subject) else {
            continue;
        };
        println!("seed {seed} differs in step {} of {}: shrinking", first.step, steps.len());
        steps.truncate(first.step + 1);
        let steps = shrink::shrink(steps, |steps| play(steps, oracle, subject).is_some());
        // One that does not come again, because threads race, is told as it was.
        let difference = play(&steps, oracle, subject).unwrap_or(first);
        findings.push(Finding { seed, steps, difference });
        if findings.len() == most {
            break;
        }
    }
    findings
}

#[track_caller]
fn expect_none(findings: &[Finding], families: &[String]) {
    let told: String = findings.iter().map(|finding| finding.told(families)).collect();
    assert!(findings.is_empty(), "{} rounds differ:{told}", findings.len());
}

impl Finding {
    fn told(&self, families: &[String]) -> String {
        let Finding { seed, steps, difference } = self;
        let mut text = String::from("\n");
        for step in steps {
            let _ = writeln!(text, "  {step}");
        }
        let Difference { asked, oracle, subject, .. } = difference;
        let families = families.join(",");
        let _ = write!(
            text,
            "asked:   {asked}\noracle:  {oracle}\nsubject: {subject}\n\
             again:   PONDAGE_DIFF_SEED={seed} PONDAGE_DIFF_ROUNDS=1 \
             PONDAGE_DIFF_FAMILIES={families}\n"
        );
        text
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")))
}

fn families() -> Vec<String> {
    match std::env::var("PONDAGE_DIFF_FAMILIES") {
        Ok(names) if !names.is_empty() => names.split(',').map(str::to_owned).collect(),
        _ => grammar::FAMILIES.iter().map(|(name, _)| (*name).to_owned()).collect(),
    }
}

fn place(address: String) -> Place {
    Place { address, auth: Vec::new() }
}

/// Pondage with a database of its own, whose clients need not log in: RESET would end that.
fn door() -> (Gateway, Place) {
    let config = Config::of(&cluster().database())
        .set("listen.redis", "127.0.0.1:{redis_port}")
        .set("redis.user", APP)
        .set("redis.default_user", APP)
        .set("auth.method", "trust");
    let gateway = Gateway::start(config);
    let place = place(format!("127.0.0.1:{}", gateway.redis_port));
    (gateway, place)
}

/// The server of the environment, or a door.
fn subject() -> (Option<Gateway>, Place) {
    match std::env::var("PONDAGE_DIFF_SUBJECT") {
        Ok(address) if !address.is_empty() => {
            let auth = std::env::var("PONDAGE_DIFF_AUTH").unwrap_or_default();
            (None, Place { address, auth: auth.split_whitespace().map(str::to_owned).collect() })
        }
        _ => {
            let (gateway, place) = door();
            (Some(gateway), place)
        }
    }
}

/// As many as take about half a minute.
const ROUNDS: u64 = 251;

#[test]
#[ignore = "as long as one likes: make redis-diff"]
fn the_subject_answers_as_redis_does() {
    let redis = RedisServer::start();
    let (oracle, (_gateway, subject)) = (place(redis.address()), subject());
    let seed = number("PONDAGE_DIFF_SEED").unwrap_or_else(|| rand::random::<u32>().into());
    let rounds = number("PONDAGE_DIFF_ROUNDS").unwrap_or(50);
    println!("{rounds} rounds from PONDAGE_DIFF_SEED={seed}");
    let families = families();
    let most = number("PONDAGE_DIFF_FINDINGS").unwrap_or(1) as usize;
    let findings = search(seed..seed + rounds, &families, [&oracle, &subject], most);
    expect_none(&findings, &families);
}

/// Always the same rounds; `make redis-diff` goes further.
#[test]
fn the_door_answers_as_redis_does() {
    let redis = RedisServer::start();
    let (oracle, (_gateway, subject)) = (place(redis.address()), door());
    let families = families();
    let findings = search(1..ROUNDS, &families, [&oracle, &subject], 1);
    expect_none(&findings, &families);
}

/// What the fuzzer finds in others is theirs: two equal servers have no difference.
#[test]
fn redis_answers_as_redis_does() {
    let servers = [RedisServer::start(), RedisServer::start()];
    let [oracle, subject] = servers.each_ref().map(|server| place(server.address()));
    let families = families();
    let findings = search(1..61, &families, [&oracle, &subject], 1);
    expect_none(&findings, &families);
}

#[test]
fn one_wrong_byte_is_found_and_few_commands_show_it() {
    let redis = RedisServer::start();
    let lying = proxy::start(&redis.address(), b":3\r\n", b":4\r\n");
    let second = RedisServer::start();
    let (oracle, subject) = (place(second.address()), place(lying));
    let families: Vec<String> = ["list", "set"].map(str::to_owned).into();
    let findings = search(1..50, &families, [&oracle, &subject], 1);
    let finding = findings.first().expect("a lie in fifty rounds");
    let told = finding.told(&families);
    assert!(finding.difference.oracle.contains(":3"), "{told}");
    assert!(finding.difference.subject.contains(":4"), "{told}");
    let commands = |step: &Step| match step {
        Step::Send { commands, .. } => commands.len(),
        _ => 1,
    };
    let total: usize = finding.steps.iter().map(commands).sum();
    assert!((1..=4).contains(&total), "{total} commands:{told}");
}
