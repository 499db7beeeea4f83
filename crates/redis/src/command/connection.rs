//! Commands about the connection.

use super::{Command, Flags, Keys};
use crate::call::Call;
use crate::failure::{Failure, Outcome};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "ping",
        arity: -1,
        flags: Flags::FAST.and(Flags::WHILE_SUBSCRIBED),
        keys: Keys::None,
        group: "connection",
        run: ping,
    },
    Command {
        name: "select",
        arity: 2,
        flags: Flags::FAST.and(Flags::LOADING).and(Flags::STALE),
        keys: Keys::None,
        group: "connection",
        run: select,
    },
];

fn ping(call: &mut Call<'_>) -> Outcome {
    match call.args.len() {
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(call.args.at(1)),
        _ => return Err(Failure::text("ERR wrong number of arguments for 'ping' command")),
    }
    Ok(())
}

fn select(call: &mut Call<'_>) -> Outcome {
    let db = super::number::integer(call.args.at(1))
        .map_err(|_| Failure::text("ERR invalid DB index"))?;
    match u16::try_from(db).ok().filter(|db| *db < call.keys.databases()) {
        Some(db) => {
            call.session.db = db;
            call.keys.select(db);
            call.reply.ok();
            Ok(())
        }
        None => Err(Failure::text("ERR DB index is out of range")),
    }
}
