//! Commands of publish and subscribe.
//!
//! <https://redis.io/docs/latest/develop/interact/pubsub/>

use super::{glob, Command, Container, Flags, Sub};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::flow::After;
use crate::pubsub::{Space, SUBSCRIPTIONS_MAX};

const ANY_TIME: Flags = Flags::PUBSUB.and(Flags::LOADING).and(Flags::STALE);
const LISTEN: Flags = ANY_TIME.and(Flags::NO_SCRIPT).and(Flags::WHILE_SUBSCRIBED);
const TELL: Flags = ANY_TIME.and(Flags::FAST);
const GROUP: &str = "pubsub";

pub const COMMANDS: &[Command] = &[
    Command::plain("subscribe", -2, LISTEN, GROUP, |call| subscribe(call, Space::Channel)),
    Command::plain("unsubscribe", -1, LISTEN, GROUP, |call| unsubscribe(call, Space::Channel)),
    Command::plain("psubscribe", -2, LISTEN, GROUP, |call| subscribe(call, Space::Pattern)),
    Command::plain("punsubscribe", -1, LISTEN, GROUP, |call| unsubscribe(call, Space::Pattern)),
    Command::plain("ssubscribe", -2, LISTEN, GROUP, |call| subscribe(call, Space::Shard)),
    Command::plain("sunsubscribe", -1, LISTEN, GROUP, |call| unsubscribe(call, Space::Shard)),
    Command::plain("publish", 3, TELL, GROUP, |call| publish(call, Space::Channel)),
    Command::plain("spublish", 3, TELL, GROUP, |call| publish(call, Space::Shard)),
    Command::plain("pubsub", -2, Flags::CONTAINER, GROUP, pubsub),
];

pub const PUBSUB: Container = Container {
    name: "pubsub",
    subs: &[
        Sub::help("pubsub|help"),
        Sub::new("pubsub|channels", -2, ANY_TIME, |call| channels(call, Space::Channel)),
        Sub::new("pubsub|numpat", 2, ANY_TIME, numpat),
        Sub::new("pubsub|numsub", -2, ANY_TIME, |call| numsub(call, Space::Channel)),
        Sub::new("pubsub|shardchannels", -2, ANY_TIME, |call| channels(call, Space::Shard)),
        Sub::new("pubsub|shardnumsub", -2, ANY_TIME, |call| numsub(call, Space::Shard)),
    ],
    help: &[
        "CHANNELS [<pattern>]",
        "    Return the currently active channels matching a <pattern> (default: '*').",
        "NUMPAT",
        "    Return number of subscriptions to patterns.",
        "NUMSUB [<channel> ...]",
        "    Return the number of subscribers for the specified channels, excluding",
        "    pattern subscriptions(default: no channels).",
        "SHARDCHANNELS [<pattern>]",
        "    Return the currently active shard level channels matching a <pattern> (default: '*').",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    Return the number of subscribers for the specified shard level channel(s)",
    ],
};

fn subscribe(call: &mut Call<'_>, space: Space) -> Outcome {
    // The others may be queued by MULTI, as they always could.
    if call.nested && space == Space::Shard {
        return Err(Failure::text("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    let session = &mut *call.session;
    if session.subscriptions.len() + call.args.len() > SUBSCRIPTIONS_MAX {
        return Err(Failure::text("ERR too many subscriptions"));
    }
    let word: &[u8] = match space {
        Space::Channel => b"subscribe",
        Space::Pattern => b"psubscribe",
        Space::Shard => b"ssubscribe",
    };
    for name in call.args.from(1).iter() {
        call.server.hub.subscribe(space, session.conn, &mut session.subscriptions, name);
        call.reply.push(3);
        call.reply.bulk(word);
        call.reply.bulk(name);
        call.reply.integer(session.subscriptions.count(space) as i64);
    }
    session.told_anyway = true;
    Ok(())
}

fn unsubscribe(call: &mut Call<'_>, space: Space) -> Outcome {
    let session = &mut *call.session;
    let word: &[u8] = match space {
        Space::Channel => b"unsubscribe",
        Space::Pattern => b"punsubscribe",
        Space::Shard => b"sunsubscribe",
    };
    let names: Vec<Box<[u8]>> = match call.args.len() {
        1 => session.subscriptions.of(space).iter().cloned().collect(),
        _ => call.args.from(1).iter().map(Box::from).collect(),
    };
    for name in &names {
        call.server.hub.unsubscribe(space, session.conn, &mut session.subscriptions, name);
        call.reply.push(3);
        call.reply.bulk(word);
        call.reply.bulk(name);
        call.reply.integer(session.subscriptions.count(space) as i64);
    }
    if names.is_empty() {
        call.reply.push(3);
        call.reply.bulk(word);
        call.reply.null();
        call.reply.integer(session.subscriptions.count(space) as i64);
    }
    session.told_anyway = true;
    Ok(())
}

/// Counts who will hear it now. They do when what this connection has written before has
/// committed, so that whoever reads on a message sees the write.
fn publish(call: &mut Call<'_>, space: Space) -> Outcome {
    let (channel, message) = (call.args.at(1), call.args.at(2));
    let receivers = call.server.hub.receivers(space, channel);
    if receivers > 0 {
        for held in &call.session.held {
            call.keys.depend_on(held.barrier);
        }
        let (channel, message) = (channel.into(), message.into());
        call.keys.afterwards(After::Publish { space, channel, message });
    }
    call.reply.integer(receivers as i64);
    Ok(())
}

fn pubsub(call: &mut Call<'_>) -> Outcome {
    PUBSUB.run(call)
}

fn channels(call: &mut Call<'_>, space: Space) -> Outcome {
    if call.args.len() > 3 {
        return Err(super::container::unknown_or_arity("pubsub", call.args));
    }
    let pattern = call.args.get(2);
    let wanted = |name: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name, false));
    let names = call.server.hub.of(space).keys().filter(|name| wanted(name));
    let names: Vec<&Box<[u8]>> = names.collect();
    call.reply.array(names.len());
    names.into_iter().for_each(|name| call.reply.bulk(name));
    Ok(())
}

/// A flat array in both protocols.
fn numsub(call: &mut Call<'_>, space: Space) -> Outcome {
    let names = call.args.from(2);
    call.reply.array(names.len() * 2);
    for name in names.iter() {
        let count = call.server.hub.of(space).get(name).map_or(0, |listeners| listeners.len());
        call.reply.bulk(name);
        call.reply.integer(count as i64);
    }
    Ok(())
}

fn numpat(call: &mut Call<'_>) -> Outcome {
    call.reply.integer(call.server.hub.of(Space::Pattern).len() as i64);
    Ok(())
}
