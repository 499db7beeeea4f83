//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! <https://redis.io/docs/latest/develop/interact/transactions/>

use super::{Command, Flags, Keys};
use crate::call::{self, Call};
use crate::failure::{Failure, Outcome};
use crate::keyspace::Keyspace;
use crate::session::{Multi, Session};

const CONTROL: Flags =
    Flags::FAST.and(Flags::NO_SCRIPT).and(Flags::LOADING).and(Flags::STALE).and(Flags::NO_MULTI);

pub const COMMANDS: &[Command] = &[
    Command { name: "multi", arity: 1, flags: CONTROL, keys: Keys::None, group: GROUP, run: multi },
    Command {
        name: "exec",
        arity: 1,
        flags: CONTROL.without(Flags::FAST).and(Flags::WRITE),
        keys: Keys::None,
        group: GROUP,
        run: exec,
    },
    Command {
        name: "discard",
        arity: 1,
        flags: CONTROL,
        keys: Keys::None,
        group: GROUP,
        run: discard,
    },
    Command {
        name: "watch",
        arity: -2,
        flags: CONTROL,
        keys: Keys::Range(1, -1, 1),
        group: GROUP,
        run: watch,
    },
    Command {
        name: "unwatch",
        arity: 1,
        flags: Flags::FAST.and(Flags::NO_SCRIPT).and(Flags::LOADING).and(Flags::STALE),
        keys: Keys::None,
        group: GROUP,
        run: unwatch,
    },
];

const GROUP: &str = "transactions";

fn multi(call: &mut Call<'_>) -> Outcome {
    if call.session.multi.is_some() {
        return Err(Failure::text("ERR MULTI calls can not be nested"));
    }
    call.session.multi = Some(Multi::default());
    call.reply.ok();
    Ok(())
}

/// All queued commands, as one unit. One that fails leaves the others as they are.
fn exec(call: &mut Call<'_>) -> Outcome {
    let Some(multi) = &call.session.multi else {
        return Err(Failure::text("ERR EXEC without MULTI"));
    };
    if multi.failed {
        forget(call);
        return Err(Failure::text("EXECABORT Transaction discarded because of previous errors."));
    }
    // Looked at before anything changes: a miss here has the whole unit run again.
    if call.session.tripped || watched_have_expired(call)? {
        forget(call);
        call.reply.null_array();
        return Ok(());
    }
    let db = call.keys.db();
    for (db, key) in call.session.watching.clone() {
        call.keys.select(db);
        call.keys.rely_on(&key)?;
    }
    call.keys.select(db);
    let protocol = call.session.protocol;
    // It stays with the session until nothing can miss any more.
    let commands = call.session.multi.as_mut().map(|multi| std::mem::take(&mut multi.commands));
    let commands = commands.unwrap_or_default();
    let result = run_all(call, &commands);
    let over = matches!(result, Err(Failure::Undone(_)));
    if let (Err(_), false, Some(multi)) = (&result, over, &mut call.session.multi) {
        multi.commands = commands;
        // It runs again from its beginning, in the database and protocol of then.
        (call.session.db, call.session.protocol) = (db, protocol);
        call.reply.switch(protocol);
        return result;
    }
    forget(call);
    result
}

fn run_all(call: &mut Call<'_>, commands: &[crate::args::Words]) -> Outcome {
    call.reply.array(commands.len());
    for words in commands {
        let command = match call::find(words.args()) {
            Ok(command) => command,
            Err(_) => continue,
        };
        let mark = call.reply.mark();
        let mut nested = Call {
            args: words.args(),
            reply: call.reply,
            keys: call.keys,
            session: call.session,
            server: call.server,
            nested: true,
        };
        let number = super::number(command);
        match nested.run_shown(command, number) {
            Ok(()) => call.server.stats.of(number).calls += 1,
            Err(Failure::Said(text)) => {
                call.server.stats.failed(number, &text);
                call.reply.rewind(mark);
                call.reply.error(&text);
            }
            Err(again) => return Err(again),
        }
    }
    Ok(())
}

fn watched_have_expired(call: &mut Call<'_>) -> Result<bool, Failure> {
    let db = call.keys.db();
    let mut expired = false;
    for (db, key) in call.session.watching.clone() {
        call.keys.select(db);
        let was_stale = call.keys.watched.is_stale(db, &key, call.session.conn);
        expired |= call.keys.has_expired(&key)? && !was_stale;
    }
    call.keys.select(db);
    Ok(expired)
}

fn discard(call: &mut Call<'_>) -> Outcome {
    if call.session.multi.is_none() {
        return Err(Failure::text("ERR DISCARD without MULTI"));
    }
    forget(call);
    call.reply.ok();
    Ok(())
}

fn watch(call: &mut Call<'_>) -> Outcome {
    if call.session.multi.is_some() {
        return Err(Failure::text("ERR WATCH inside MULTI is not allowed"));
    }
    let db = call.keys.db();
    // What is watched has to be known, so that EXEC can ask whether it is still so.
    for key in call.args.from(1).iter() {
        call.keys.exists(key)?;
    }
    for key in call.args.from(1).iter() {
        // One that has expired already is watched as absent.
        let name = (db, Box::from(key));
        if !call.session.watching.contains(&name) {
            call.keys.watched.add(db, key, call.session.conn);
            call.session.watching.push(name);
            if call.keys.has_expired(key)? {
                call.keys.watched.note_stale(db, key, call.session.conn);
            }
        }
    }
    call.reply.ok();
    Ok(())
}

fn unwatch(call: &mut Call<'_>) -> Outcome {
    unwatch_all(call.keys, call.session);
    call.reply.ok();
    Ok(())
}

fn forget(call: &mut Call<'_>) {
    call.session.multi = None;
    unwatch_all(call.keys, call.session);
}

/// An EXEC that is refused before it runs discards the transaction (`execCommandAbort`).
pub fn refused(keys: &mut Keyspace, session: &mut Session, failure: Failure) -> Failure {
    session.multi = None;
    unwatch_all(keys, session);
    match failure {
        Failure::Said(text) => {
            let why = text.strip_prefix(b"ERR ").unwrap_or(&text);
            Failure::joined(&[b"EXECABORT Transaction discarded because of: ", why])
        }
        other => other,
    }
}

/// Ends what WATCH began.
pub fn unwatch_all(keys: &mut Keyspace, session: &mut Session) {
    for (db, key) in std::mem::take(&mut session.watching) {
        keys.watched.remove(db, &key, session.conn);
    }
    session.tripped = false;
}
