//! All keys of both servers side by side, each read by the commands of its type.

use crate::connection::words;
use crate::play::Pair;
use crate::reply::Reply;
use crate::rules::Rules;
use crate::scenario::{shown, Command};

/// As many as `<db>` of a template has.
const DATABASES: usize = 3;

/// Command, oracle, subject.
pub type Unequal = (String, String, String);

/// Ends in database 0.
pub fn compare(pair: &mut Pair, rules: Rules) -> Result<(), Unequal> {
    for database in (0..DATABASES).rev() {
        ask(pair, rules, database, &words(&format!("SELECT {database}")))?;
        ask(pair, rules, database, &words("DBSIZE"))?;
        let keys = ask(pair, rules, database, &words("KEYS *"))?;
        for key in keys.children().iter().filter_map(Reply::text) {
            key_content(pair, rules, database, key)?;
        }
    }
    Ok(())
}

fn key_content(pair: &mut Pair, rules: Rules, database: usize, key: &[u8]) -> Result<(), Unequal> {
    let of_key = |line: &str| -> Command {
        let mut command = words(line);
        let at = command.iter().position(|word| word == b"%").expect("the key's place");
        command[at] = key.to_vec();
        command
    };
    let kind = ask(pair, rules, database, &of_key("TYPE %"))?;
    let reads: &[&str] = match kind.text().unwrap_or_default() {
        b"string" => &["GET %"],
        b"hash" => &["HGETALL %", "HLEN %"],
        b"list" => &["LRANGE % 0 -1", "LLEN %"],
        b"set" => &["SMEMBERS %", "SCARD %"],
        b"zset" => &["ZRANGE % 0 -1 WITHSCORES", "ZCARD %", "ZREVRANGEBYSCORE % +inf -inf"],
        b"stream" => &["XRANGE % - +", "XINFO STREAM %", "XINFO STREAM % FULL", "XINFO GROUPS %"],
        _ => &[],
    };
    for line in reads.iter().chain(&["PTTL %"]) {
        ask(pair, rules, database, &of_key(line))?;
    }
    Ok(())
}

fn ask(
    pair: &mut Pair,
    rules: Rules,
    database: usize,
    command: &[Vec<u8>],
) -> Result<Reply, Unequal> {
    let (oracle, subject) = pair.ask(command);
    match (oracle, subject) {
        (Ok(oracle), Ok(subject)) if rules.same(command, &[], &oracle, &subject) => Ok(oracle),
        (oracle, subject) => {
            let told = |answer: Result<Reply, _>| match answer {
                Ok(reply) => reply.to_string(),
                Err(lost) => format!("{lost:?}"),
            };
            let asked = format!("at the end, database {database}: {}", shown(command));
            Err((asked, told(oracle), told(subject)))
        }
    }
}
