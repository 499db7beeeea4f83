//! Commands about the connection; CLIENT has a file of its own.

use super::{Command, Flags};
use crate::args::Args;
use crate::call::{whole, Call};
use crate::failure::{Failure, Outcome};
use crate::reply::Reply;
use crate::session::{ReplyMode, Session};

/// The version of Redis whose commands these are.
pub const VERSION: &str = "7.2.5";

const ANY_TIME: Flags = Flags::FAST.and(Flags::LOADING).and(Flags::STALE);
const BEFORE_LOG_IN: Flags =
    ANY_TIME.and(Flags::NO_SCRIPT).and(Flags::NO_AUTH).and(Flags::UNLOGGED);
const GROUP: &str = "connection";

pub const COMMANDS: &[Command] = &[
    Command::plain("ping", -1, Flags::FAST.and(Flags::WHILE_SUBSCRIBED), GROUP, ping),
    Command::plain("echo", 2, ANY_TIME, GROUP, echo),
    Command::plain("select", 2, ANY_TIME, GROUP, select),
    Command::plain(
        "quit",
        -1,
        BEFORE_LOG_IN.and(Flags::NO_MULTI).and(Flags::WHILE_SUBSCRIBED),
        GROUP,
        quit,
    ),
    Command::plain(
        "reset",
        1,
        BEFORE_LOG_IN.and(Flags::NO_MULTI).and(Flags::WHILE_SUBSCRIBED),
        GROUP,
        reset,
    ),
    Command::plain("hello", -1, BEFORE_LOG_IN, GROUP, hello),
    Command::plain("auth", -2, BEFORE_LOG_IN, GROUP, auth),
];

fn ping(call: &mut Call<'_>) -> Outcome {
    let text = call.args.get(1);
    match call.args.len() {
        1 | 2 if call.session.protocol == 2 && !call.session.subscriptions.is_empty() => {
            call.reply.array(2);
            call.reply.bulk(b"pong");
            call.reply.bulk(text.unwrap_or_default());
        }
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(text.unwrap_or_default()),
        _ => return Err(Failure::text("ERR wrong number of arguments for 'ping' command")),
    }
    Ok(())
}

fn echo(call: &mut Call<'_>) -> Outcome {
    call.reply.bulk(call.args.at(1));
    Ok(())
}

fn select(call: &mut Call<'_>) -> Outcome {
    let db = super::keys::database(call, call.args.at(1))?;
    call.session.db = db;
    call.keys.select(db);
    call.reply.ok();
    Ok(())
}

fn quit(call: &mut Call<'_>) -> Outcome {
    call.session.quitting = true;
    call.reply.ok();
    Ok(())
}

/// As if the connection were new, but for its user: who has said a password need not do so again.
fn reset(call: &mut Call<'_>) -> Outcome {
    let session = &mut *call.session;
    session.multi = None;
    super::transactions::unwatch_all(call.keys, session);
    call.server.hub.gone(session.conn, &session.subscriptions);
    session.subscriptions = Default::default();
    call.server.tracking.off(session);
    call.keys.is_tracked = !call.server.tracking.is_empty();
    call.server.monitors.remove(session.conn);
    session.monitors = false;
    session.name = Box::default();
    session.reply_mode = ReplyMode::On;
    session.protocol = 2;
    session.db = 0;
    (session.no_evict, session.no_touch) = (false, false);
    call.keys.select(0);
    call.reply.simple("RESET");
    Ok(())
}

/// What HELLO asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    pub protocol: Option<u8>,
    /// User and password.
    pub auth: Option<(&'a [u8], &'a [u8])>,
    pub name: Option<&'a [u8]>,
}

/// `networking.c`, `helloCommand`.
pub fn parse_hello(args: Args<'_>) -> Result<Hello<'_>, Failure> {
    let mut hello = Hello { protocol: None, auth: None, name: None };
    if let Some(word) = args.get(1) {
        let version = super::number::integer(word)
            .map_err(|_| Failure::text("ERR Protocol version is not an integer or out of range"))?;
        let known = u8::try_from(version).ok().filter(|version| matches!(version, 2 | 3));
        hello.protocol = Some(known.ok_or(Failure::text("NOPROTO unsupported protocol version"))?);
    }
    let mut at = 2;
    while at < args.len() {
        let more = args.len() - 1 - at;
        if args.is(at, "auth") && more >= 2 {
            hello.auth = Some((args.at(at + 1), args.at(at + 2)));
            at += 3;
        } else if args.is(at, "setname") && more >= 1 {
            hello.name = Some(check_name(args.at(at + 1), "Client names")?);
            at += 2;
        } else {
            let option = whole(args.at(at));
            return Err(Failure::joined(&[b"ERR Syntax error in HELLO option '", option, b"'"]));
        }
    }
    Ok(hello)
}

/// A name that CLIENT LIST can show in one line: up to a zero byte.
pub fn check_name<'a>(name: &'a [u8], what: &str) -> Result<&'a [u8], Failure> {
    if whole(name).iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(name);
    }
    Err(Failure::said(format!("ERR {what} cannot contain spaces, newlines or special characters.")))
}

/// HELLO in a transaction; the door itself takes any other. What comes behind it is told in its
/// protocol.
fn hello(call: &mut Call<'_>) -> Outcome {
    let hello = parse_hello(call.args)?;
    if hello.auth.is_some() {
        return auth(call);
    }
    if let Some(name) = hello.name {
        call.session.name = name.into();
    }
    call.session.protocol = hello.protocol.unwrap_or(call.session.protocol);
    call.reply.switch(call.session.protocol);
    greet(call.session, call.reply);
    Ok(())
}

/// The door authenticates before the engine sees a command, so that this one was queued by MULTI.
fn auth(_call: &mut Call<'_>) -> Outcome {
    Err(Failure::text("ERR AUTH is not possible inside of a transaction"))
}

/// The reply to HELLO.
pub fn greet(session: &Session, reply: &mut dyn Reply) {
    reply.map(7);
    for (field, value) in [("server", "redis"), ("version", VERSION)] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(i64::from(session.protocol));
    reply.bulk(b"id");
    reply.integer(session.number as i64);
    for (field, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}
