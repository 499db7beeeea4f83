//! Commands about the server and whole databases.

use super::{Command, Flags, Keys};
use crate::call::Call;
use crate::failure::Outcome;
use crate::query::{Answer, Query};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "dbsize",
        arity: 1,
        flags: Flags::READONLY.and(Flags::FAST),
        keys: Keys::None,
        group: "keyspace",
        run: dbsize,
    },
    Command {
        name: "flushdb",
        arity: -1,
        flags: Flags::WRITE,
        keys: Keys::None,
        group: "keyspace",
        run: flushdb,
    },
];

fn dbsize(call: &mut Call<'_>) -> Outcome {
    let db = call.keys.db();
    if let Answer::Size(size) = call.ask(Query::Size { db })? {
        call.reply.integer(size as i64);
    }
    Ok(())
}

fn flushdb(call: &mut Call<'_>) -> Outcome {
    call.keys.flush();
    call.reply.ok();
    Ok(())
}
