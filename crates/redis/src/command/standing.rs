//! Commands about what the server is among others: it stands alone, has saved everything it has
//! acknowledged, and is stopped by whoever started it, not by a client.

use super::connection::VERSION;
use super::{Command, Container, Flags, Sub};
use crate::call::Call;
use crate::failure::{Failure, Outcome};

const ADMIN: Flags = Flags::ADMIN.and(Flags::NO_SCRIPT);
const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);
const GROUP: &str = "server";

pub const COMMANDS: &[Command] = &[
    Command::plain("time", 1, ANY_TIME.and(Flags::FAST), GROUP, time),
    Command::plain("wait", 3, Flags::NONE, "generic", wait),
    Command::plain("waitaof", 4, Flags::NO_SCRIPT, "generic", waitaof),
    Command::plain("lastsave", 1, ANY_TIME.and(Flags::FAST), GROUP, lastsave),
    Command::plain("save", 1, ADMIN.and(Flags::NO_MULTI), GROUP, save),
    Command::plain("bgsave", -1, ADMIN, GROUP, bgsave),
    Command::plain("bgrewriteaof", 1, ADMIN, GROUP, bgrewriteaof),
    Command::plain("shutdown", -1, ADMIN.and(ANY_TIME).and(Flags::NO_MULTI), GROUP, shutdown),
    Command::plain("replicaof", 3, ADMIN.and(Flags::STALE), GROUP, replicaof),
    Command::plain("slaveof", 3, ADMIN.and(Flags::STALE), GROUP, replicaof),
    Command::plain("failover", -1, ADMIN.and(Flags::STALE), GROUP, failover),
    Command::plain("role", 1, ANY_TIME.and(Flags::FAST).and(Flags::NO_SCRIPT), GROUP, role),
    Command::plain("swapdb", 3, Flags::WRITE.and(Flags::FAST), GROUP, swapdb),
    Command::plain("lolwut", -1, Flags::READONLY.and(Flags::FAST), GROUP, lolwut),
    Command::plain("cluster", -2, Flags::CONTAINER, "cluster", cluster),
    Command::plain("asking", 1, Flags::FAST, "cluster", no_cluster),
    Command::plain("readonly", 1, ANY_TIME.and(Flags::FAST), "cluster", no_cluster),
    Command::plain("readwrite", 1, ANY_TIME.and(Flags::FAST), "cluster", no_cluster),
    Command::plain("module", -2, Flags::CONTAINER, GROUP, module),
];

pub const CLUSTER: Container = Container {
    name: "cluster",
    subs: &[
        Sub::help("cluster|help"),
        Sub::new("cluster|addslots", -3, STALE_ADMIN, no_cluster),
        Sub::new("cluster|addslotsrange", -4, STALE_ADMIN, no_cluster),
        Sub::new("cluster|bumpepoch", 2, STALE_ADMIN, no_cluster),
        Sub::new("cluster|count-failure-reports", 3, STALE_ADMIN, no_cluster),
        Sub::new("cluster|countkeysinslot", 3, Flags::STALE, no_cluster),
        Sub::new("cluster|delslots", -3, STALE_ADMIN, no_cluster),
        Sub::new("cluster|delslotsrange", -4, STALE_ADMIN, no_cluster),
        Sub::new("cluster|failover", -2, STALE_ADMIN, no_cluster),
        Sub::new("cluster|flushslots", 2, STALE_ADMIN, no_cluster),
        Sub::new("cluster|forget", 3, STALE_ADMIN, no_cluster),
        Sub::new("cluster|getkeysinslot", 4, Flags::STALE, no_cluster),
        Sub::new("cluster|info", 2, Flags::STALE, no_cluster),
        Sub::new("cluster|keyslot", 3, Flags::STALE, no_cluster),
        Sub::new("cluster|links", 2, Flags::STALE, no_cluster),
        Sub::new("cluster|meet", -4, STALE_ADMIN, no_cluster),
        Sub::new("cluster|myid", 2, Flags::STALE, no_cluster),
        Sub::new("cluster|myshardid", 2, Flags::STALE, no_cluster),
        Sub::new("cluster|nodes", 2, Flags::STALE, no_cluster),
        Sub::new("cluster|replicas", 3, STALE_ADMIN, no_cluster),
        Sub::new("cluster|replicate", 3, STALE_ADMIN, no_cluster),
        Sub::new("cluster|reset", -2, STALE_ADMIN.and(Flags::NO_SCRIPT), no_cluster),
        Sub::new("cluster|saveconfig", 2, STALE_ADMIN, no_cluster),
        Sub::new("cluster|set-config-epoch", 3, STALE_ADMIN, no_cluster),
        Sub::new("cluster|setslot", -4, STALE_ADMIN, no_cluster),
        Sub::new("cluster|shards", 2, ANY_TIME, no_cluster),
        Sub::new("cluster|slaves", 3, STALE_ADMIN, no_cluster),
        Sub::new("cluster|slots", 2, ANY_TIME, no_cluster),
    ],
    help: &["INFO", "    Return information about the cluster: there is none."],
};

const STALE_ADMIN: Flags = Flags::STALE.and(Flags::ADMIN);

pub const MODULE: Container = Container {
    name: "module",
    subs: &[
        Sub::help("module|help"),
        Sub::new("module|list", 2, ADMIN, no_modules),
        Sub::new("module|load", -3, ADMIN, refuse_module),
        Sub::new("module|loadex", -3, ADMIN, refuse_module),
        Sub::new("module|unload", 3, ADMIN, refuse_module),
    ],
    help: &["LIST", "    Return a list of loaded modules."],
};

fn time(call: &mut Call<'_>) -> Outcome {
    let now = call.server.microseconds();
    call.reply.array(2);
    call.reply.bulk(itoa::Buffer::new().format(now.div_euclid(1_000_000)).as_bytes());
    call.reply.bulk(itoa::Buffer::new().format(now.rem_euclid(1_000_000)).as_bytes());
    Ok(())
}

/// There are no replicas, so none of them acknowledges anything, however long one waits. Redis
/// waits all the same; here the reply goes when what was written before it is in the tables.
fn wait(call: &mut Call<'_>) -> Outcome {
    super::number::integer(call.args.at(1))?;
    timeout(call.args.at(2))?;
    call.reply.integer(0);
    Ok(())
}

/// What was written before is in the tables when the reply goes: one local copy, no replica's.
fn waitaof(call: &mut Call<'_>) -> Outcome {
    let local = super::number::integer(call.args.at(1))?;
    if !(0..=1).contains(&local) {
        return Err(Failure::text("ERR value is out of range, must be between 0 and 1"));
    }
    if super::number::integer(call.args.at(2))? < 0 {
        return Err(Failure::text("ERR value is out of range, must be positive"));
    }
    timeout(call.args.at(3))?;
    call.reply.array(2);
    call.reply.integer(1);
    call.reply.integer(0);
    Ok(())
}

fn timeout(word: &[u8]) -> Outcome {
    match crate::value::parse_integer(word) {
        None => Err(Failure::text("ERR timeout is not an integer or out of range")),
        Some(timeout) if timeout < 0 => Err(Failure::text("ERR timeout is negative")),
        Some(_) => Ok(()),
    }
}

fn lastsave(call: &mut Call<'_>) -> Outcome {
    call.reply.integer(call.server.now / 1000);
    Ok(())
}

fn save(call: &mut Call<'_>) -> Outcome {
    call.reply.ok();
    Ok(())
}

fn bgsave(call: &mut Call<'_>) -> Outcome {
    match call.args.len() {
        1 => call.reply.simple("Background saving started"),
        2 if call.args.is(1, "schedule") => call.reply.simple("Background saving started"),
        _ => return Err(Failure::SYNTAX),
    }
    Ok(())
}

fn bgrewriteaof(call: &mut Call<'_>) -> Outcome {
    call.reply.simple("Background append only file rewriting started");
    Ok(())
}

fn shutdown(call: &mut Call<'_>) -> Outcome {
    if call.args.len() == 2 && call.args.is(1, "abort") {
        return Err(Failure::text("ERR No shutdown in progress."));
    }
    let known = ["save", "nosave", "now", "force"];
    let words = 1..call.args.len();
    if !words.into_iter().all(|at| known.iter().any(|word| call.args.is(at, word))) {
        return Err(Failure::SYNTAX);
    }
    Err(Failure::text("ERR a client can't stop this server: it also serves PostgreSQL's clients"))
}

fn replicaof(call: &mut Call<'_>) -> Outcome {
    if call.args.is(1, "no") && call.args.is(2, "one") {
        call.reply.ok();
        return Ok(());
    }
    Err(Failure::text("ERR replication is PostgreSQL's matter: this server can't be a replica"))
}

fn failover(_call: &mut Call<'_>) -> Outcome {
    Err(Failure::text("ERR FAILOVER requires connected replicas."))
}

fn role(call: &mut Call<'_>) -> Outcome {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

/// Each row says which database it is of: all rows of both would have to be written again.
fn swapdb(call: &mut Call<'_>) -> Outcome {
    for (at, which) in [(1, "first"), (2, "second")] {
        let db = crate::value::parse_integer(call.args.at(at))
            .ok_or_else(|| Failure::said(format!("ERR invalid {which} DB index")))?;
        if !(0..i64::from(call.keys.databases())).contains(&db) {
            return Err(Failure::text("ERR DB index is out of range"));
        }
    }
    Err(Failure::text("ERR SWAPDB is not possible: the databases are rows of one table"))
}

fn lolwut(call: &mut Call<'_>) -> Outcome {
    let text = format!("A pond keeps what falls into it.\n\nRedis ver. {VERSION}\n");
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn cluster(call: &mut Call<'_>) -> Outcome {
    CLUSTER.run(call)
}

fn no_cluster(_call: &mut Call<'_>) -> Outcome {
    Err(Failure::text("ERR This instance has cluster support disabled"))
}

fn module(call: &mut Call<'_>) -> Outcome {
    MODULE.run(call)
}

fn no_modules(call: &mut Call<'_>) -> Outcome {
    call.reply.array(0);
    Ok(())
}

fn refuse_module(_call: &mut Call<'_>) -> Outcome {
    Err(Failure::text("ERR modules can't be loaded into this server"))
}
