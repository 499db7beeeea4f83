//! CLIENT: what is known of connections, and what one can do to others.
//!
//! `networking.c`, `clientCommand`.

use super::connection::check_name;
use super::{Command, Container, Flags, Sub};
use crate::call::{whole, Call};
use crate::failure::{Failure, Outcome};
use crate::server::{Event, Pause, Server};
use crate::session::{ReplyMode, Session};
use crate::value::parse_integer;

pub const COMMANDS: &[Command] =
    &[Command::plain("client", -2, Flags::CONTAINER.and(ANY_TIME), "connection", client)];

const ANY_TIME: Flags = Flags::NO_SCRIPT.and(Flags::LOADING).and(Flags::STALE);
const ADMIN: Flags = ANY_TIME.and(Flags::ADMIN);

pub const CLIENT: Container = Container {
    name: "client",
    subs: &[
        Sub::help("client|help"),
        Sub::new("client|caching", 3, ANY_TIME, super::tracking::caching),
        Sub::new("client|getname", 2, ANY_TIME, getname),
        Sub::new("client|getredir", 2, ANY_TIME, super::tracking::getredir),
        Sub::new("client|id", 2, ANY_TIME, id),
        Sub::new("client|info", 2, ANY_TIME, info),
        Sub::new("client|kill", -3, ADMIN, kill),
        Sub::new("client|list", -2, ADMIN, list),
        Sub::new("client|no-evict", 3, ADMIN, no_evict),
        Sub::new("client|no-touch", 3, ANY_TIME, no_touch),
        Sub::new("client|pause", -3, ADMIN, pause),
        Sub::new("client|reply", 3, ANY_TIME, reply),
        Sub::new("client|setinfo", 4, ANY_TIME, setinfo),
        Sub::new("client|setname", 3, ANY_TIME, setname),
        Sub::new("client|tracking", -3, ANY_TIME, super::tracking::tracking),
        Sub::new("client|trackinginfo", 2, ANY_TIME, super::tracking::trackinginfo),
        Sub::new("client|unblock", -3, ADMIN, unblock),
        Sub::new("client|unpause", 2, ADMIN, unpause),
    ],
    help: &[
        "CACHING (YES|NO)",
        "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
        "GETREDIR",
        "    Return the client ID we are redirecting to when tracking is enabled.",
        "GETNAME",
        "    Return the name of the current connection.",
        "ID",
        "    Return the ID of the current connection.",
        "INFO",
        "    Return information about the current client connection.",
        "KILL <ip:port>",
        "    Kill connection made from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Kill connections. Options are:",
        "    * ADDR (<ip:port>|<unixsocket>:0)",
        "      Kill connections made from the specified address",
        "    * LADDR (<ip:port>|<unixsocket>:0)",
        "      Kill connections made to specified local address",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      Kill connections by type.",
        "    * USER <username>",
        "      Kill connections authenticated by <username>.",
        "    * SKIPME (YES|NO)",
        "      Skip killing current connection (default: yes).",
        "LIST [options ...]",
        "    Return information about client connections. Options:",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      Return clients of specified type.",
        "UNPAUSE",
        "    Stop the current client pause, resuming traffic.",
        "PAUSE <timeout> [WRITE|ALL]",
        "    Suspend all, or just write, clients for <timeout> milliseconds.",
        "REPLY (ON|OFF|SKIP)",
        "    Control the replies sent to the current connection.",
        "SETNAME <name>",
        "    Assign the name <name> to the current connection.",
        "SETINFO <option> <value>",
        "    Set client meta attr. Options are:",
        "    * LIB-NAME: the client lib name.",
        "    * LIB-VER: the client lib version.",
        "UNBLOCK <clientid> [TIMEOUT|ERROR]",
        "    Unblock the specified blocked client.",
        "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
        "         [OPTIN] [OPTOUT] [NOLOOP]",
        "    Control server assisted client side caching.",
        "TRACKINGINFO",
        "    Report tracking status for the current connection.",
        "NO-EVICT (ON|OFF)",
        "    Protect current client connection from eviction.",
        "NO-TOUCH (ON|OFF)",
        "    Will not touch LRU/LFU stats when this mode is on.",
    ],
};

fn client(call: &mut Call<'_>) -> Outcome {
    CLIENT.run(call)
}

fn id(call: &mut Call<'_>) -> Outcome {
    call.reply.integer(call.session.number as i64);
    Ok(())
}

fn getname(call: &mut Call<'_>) -> Outcome {
    match &*call.session.name {
        b"" => call.reply.null(),
        name => call.reply.bulk(name),
    }
    Ok(())
}

fn setname(call: &mut Call<'_>) -> Outcome {
    call.session.name = check_name(call.args.at(2), "Client names")?.into();
    call.reply.ok();
    Ok(())
}

fn setinfo(call: &mut Call<'_>) -> Outcome {
    let value = call.args.at(3);
    let (name, version) = &mut call.session.library;
    if call.args.is(2, "lib-name") {
        *name = check_name(value, "lib-name")?.into();
    } else if call.args.is(2, "lib-ver") {
        *version = check_name(value, "lib-ver")?.into();
    } else {
        let option = whole(call.args.at(2));
        return Err(Failure::joined(&[b"ERR Unrecognized option '", option, b"'"]));
    }
    call.reply.ok();
    Ok(())
}

fn on_or_off(call: &Call<'_>) -> Result<bool, Failure> {
    match (call.args.is(2, "on"), call.args.is(2, "off")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(Failure::SYNTAX),
    }
}

fn no_evict(call: &mut Call<'_>) -> Outcome {
    call.session.no_evict = on_or_off(call)?;
    call.reply.ok();
    Ok(())
}

fn no_touch(call: &mut Call<'_>) -> Outcome {
    call.session.no_touch = on_or_off(call)?;
    call.reply.ok();
    Ok(())
}

fn reply(call: &mut Call<'_>) -> Outcome {
    if call.args.is(2, "on") {
        call.session.reply_mode = ReplyMode::On;
        call.reply.ok();
    } else if call.args.is(2, "off") {
        call.session.reply_mode = ReplyMode::Off;
    } else if call.args.is(2, "skip") {
        if call.session.reply_mode != ReplyMode::Off {
            call.session.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(Failure::SYNTAX);
    }
    Ok(())
}

fn info(call: &mut Call<'_>) -> Outcome {
    let text = line(call.session, call.server.now) + "\n";
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Normal,
    PubSub,
    /// Of these there are none.
    Replica,
    Master,
}

impl Type {
    fn parse(word: &[u8]) -> Result<Type, Failure> {
        Ok(match word.to_ascii_lowercase().as_slice() {
            b"normal" => Type::Normal,
            b"pubsub" => Type::PubSub,
            b"replica" | b"slave" => Type::Replica,
            b"master" => Type::Master,
            _ => {
                return Err(Failure::joined(&[b"ERR Unknown client type '", whole(word), b"'"]));
            }
        })
    }

    fn of(session: &Session) -> Type {
        if session.subscriptions.is_empty() {
            Type::Normal
        } else {
            Type::PubSub
        }
    }
}

/// All connections, also the one that asks, in order of their numbers.
fn everyone<'a>(server: &'a Server, current: &'a Session) -> Vec<&'a Session> {
    let others = server.sessions.iter().filter(|session| !session.killed);
    let mut all: Vec<&Session> = others.chain([current]).collect();
    all.sort_unstable_by_key(|session| session.number);
    all
}

fn list(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let everyone = everyone(call.server, call.session);
    let shown: Vec<&Session> = if args.len() == 4 && args.is(2, "type") {
        let wanted = Type::parse(args.at(3))?;
        everyone.into_iter().filter(|session| Type::of(session) == wanted).collect()
    } else if args.len() > 3 && args.is(2, "id") {
        let mut shown = Vec::new();
        for word in args.from(3).iter() {
            let id = parse_integer(word).ok_or(Failure::text("ERR Invalid client ID"))?;
            shown.extend(everyone.iter().find(|session| session.number as i64 == id));
        }
        shown
    } else if args.len() == 2 {
        everyone
    } else {
        return Err(Failure::SYNTAX);
    };
    let now = call.server.now;
    let text: String = shown.iter().map(|session| line(session, now) + "\n").collect();
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// A connection as CLIENT LIST shows it. Buffers are the worker's, and not counted here.
fn line(session: &Session, now: i64) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(whole(bytes)).into_owned();
    let seconds = |since: i64| now.saturating_sub(since).max(0) / 1000;
    let tracking = session.tracking.as_deref();
    let (commands, bytes) = match &session.multi {
        Some(multi) => (multi.commands.len() as i64, multi.bytes),
        None => (-1, 0),
    };
    format!(
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} \
         ssub={} multi={commands} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem={bytes} rbs=0 rbp=0 \
         obl=0 oll=0 omem=0 tot-mem={} events=r cmd={} user={} redir={} resp={} lib-name={} \
         lib-ver={}",
        session.number,
        session.address,
        session.local_address,
        session.fd,
        text(&session.name),
        seconds(session.since),
        seconds(session.last_seen),
        flags(session),
        session.db,
        session.subscriptions.channels.len(),
        session.subscriptions.patterns.len(),
        session.subscriptions.shards.len(),
        size_of::<Session>() + bytes,
        if session.last_command.is_empty() { "NULL" } else { session.last_command },
        if session.user.is_empty() { "default" } else { &session.user },
        tracking.map_or(-1, |tracking| tracking.redirect as i64),
        session.protocol,
        text(&session.library.0),
        text(&session.library.1),
    )
}

fn flags(session: &Session) -> String {
    let tracking = session.tracking.as_deref();
    let flags = [
        ('O', session.monitors),
        ('P', !session.subscriptions.is_empty()),
        ('x', session.multi.is_some()),
        ('b', session.blocked.is_some()),
        ('t', tracking.is_some()),
        ('R', tracking.is_some_and(|tracking| tracking.is_broken)),
        ('B', tracking.is_some_and(|tracking| tracking.broadcast)),
        ('d', session.tripped),
        ('c', session.quitting),
        ('U', session.address.starts_with('/')),
        ('e', session.no_evict),
        ('T', session.no_touch),
    ];
    let set: String = flags.iter().filter(|(_, set)| *set).map(|(flag, _)| *flag).collect();
    if set.is_empty() {
        "N".to_owned()
    } else {
        set
    }
}

/// Whom CLIENT KILL concerns.
#[derive(Debug, Default)]
struct Victims<'a> {
    id: Option<i64>,
    kind: Option<Type>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    keep_me: bool,
}

impl<'a> Victims<'a> {
    fn parse(call: &Call<'a>) -> Result<Victims<'a>, Failure> {
        let args = call.args;
        if args.len() == 3 {
            return Ok(Victims { address: Some(args.at(2)), ..Victims::default() });
        }
        let mut victims = Victims { keep_me: true, ..Victims::default() };
        for at in (2..args.len()).step_by(2) {
            let value = args.get(at + 1).ok_or(Failure::SYNTAX)?;
            match args.at(at).to_ascii_lowercase().as_slice() {
                b"id" => {
                    let id = parse_integer(value).filter(|id| *id > 0);
                    victims.id =
                        Some(id.ok_or(Failure::text("ERR client-id should be greater than 0"))?);
                }
                b"type" => victims.kind = Some(Type::parse(value)?),
                b"addr" => victims.address = Some(value),
                b"laddr" => victims.local_address = Some(value),
                b"user" => victims.user = Some(value),
                b"skipme" => {
                    victims.keep_me = match value.to_ascii_lowercase().as_slice() {
                        b"yes" => true,
                        b"no" => false,
                        _ => return Err(Failure::SYNTAX),
                    }
                }
                _ => return Err(Failure::SYNTAX),
            }
        }
        Ok(victims)
    }

    fn has(&self, session: &Session) -> bool {
        let is = |wanted: Option<&[u8]>, text: &str| wanted.is_none_or(|w| w == text.as_bytes());
        !session.killed
            && is(self.address, &session.address)
            && is(self.local_address, &session.local_address)
            && is(self.user, &session.user)
            && self.id.is_none_or(|id| session.number as i64 == id)
            && self.kind.is_none_or(|kind| Type::of(session) == kind)
    }
}

fn kill(call: &mut Call<'_>) -> Outcome {
    let victims = Victims::parse(call)?;
    if let Some(user) = victims.user {
        let is = |session: &Session| session.user.as_bytes() == user;
        // Who has no connection is nobody here: users are PostgreSQL's or the configuration's.
        if !is(call.session) && !call.server.sessions.iter().any(is) {
            return Err(Failure::joined(&[b"ERR No such user '", whole(user), b"'"]));
        }
    }
    let mut killed = Vec::new();
    for session in call.server.sessions.iter_mut().filter(|session| victims.has(session)) {
        session.killed = true;
        killed.push((session.conn, std::mem::take(&mut session.subscriptions)));
    }
    let mut count = killed.len();
    for (conn, subscriptions) in killed {
        call.server.hub.gone(conn, &subscriptions);
        call.server.tell(Event::Close(conn));
    }
    if !victims.keep_me && victims.has(call.session) {
        call.session.quitting = true;
        count += 1;
    }
    match (call.args.len(), count) {
        (3, 0) => return Err(Failure::text("ERR No such client")),
        (3, _) => call.reply.ok(),
        _ => call.reply.integer(count as i64),
    }
    Ok(())
}

fn unblock(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let with_error = match args.len() {
        3 => false,
        4 if args.is(3, "timeout") => false,
        4 if args.is(3, "error") => true,
        4 => return Err(Failure::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        _ => {
            return Err(Failure::said("ERR wrong number of arguments for 'client|unblock' command"))
        }
    };
    let id = super::number::integer(args.at(2))?;
    let was = u64::try_from(id).is_ok_and(|id| call.server.unblock(id, with_error));
    call.reply.integer(i64::from(was));
    Ok(())
}

fn pause(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut all = match args.len() {
        3 => true,
        4 if args.is(3, "write") => false,
        4 if args.is(3, "all") => true,
        4 => return Err(Failure::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Failure::SYNTAX),
    };
    let now = call.keys.now();
    let timeout = parse_integer(args.at(2))
        .ok_or(Failure::text("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Failure::text("ERR timeout is negative"));
    }
    let mut until = now.checked_add(timeout).ok_or(Failure::text("ERR timeout is out of range"))?;
    if let Some(pause) = call.server.pause {
        all |= pause.all;
        until = until.max(pause.until);
    }
    call.server.pause = Some(Pause { until, all });
    call.reply.ok();
    Ok(())
}

fn unpause(call: &mut Call<'_>) -> Outcome {
    call.server.pause = None;
    call.reply.ok();
    Ok(())
}
