//! DEBUG: what tests of clients and of servers need.

use super::{glob, Command, Flags};
use crate::call::Call;
use crate::failure::{Failure, Outcome};

pub const COMMANDS: &[Command] = &[Command::plain(
    "debug",
    -2,
    Flags::ADMIN.and(Flags::NO_SCRIPT).and(Flags::LOADING).and(Flags::STALE),
    "server",
    debug,
)];

fn debug(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    match (args.at(1).to_ascii_lowercase().as_slice(), args.len()) {
        (b"set-active-expire", 3) => {
            call.server.keeps_expired = args.at(2) == b"0";
            call.reply.ok();
        }
        // Redis would let them do everything.
        (b"set-disable-deny-scripts", 3) => {
            call.server.scripts_may_debug = args.at(2) == b"1";
            call.reply.ok();
        }
        // Everything is read again from the tables, as from a file.
        (b"reload", _) | (b"loadaof", 2) => {
            if call.nested {
                return Err(Failure::text("ERR DEBUG RELOAD inside of a transaction"));
            }
            call.keys.forget_all(None);
            call.reply.ok();
        }
        (b"stringmatch-len", 4) => {
            let many = crate::value::parse_integer(args.at(2)).unwrap_or(0).clamp(0, 1 << 20);
            let text = vec![b'a'; many as usize];
            call.reply.integer(i64::from(glob::matches(args.at(3), &text, false)));
        }
        (b"protocol", 3) => return protocol(call),
        (b"object", 3) => return object(call),
        // Of what there is nothing here, it makes no difference.
        (b"jmap" | b"change-repl-id" | b"pause-cron", _)
        | (b"quicklist-packed-threshold" | b"replicate" | b"replybuffer", _) => call.reply.ok(),
        (b"sleep", 3) => {
            return Err(Failure::text(
                "ERR DEBUG SLEEP would stop all other clients, too, and those of PostgreSQL",
            ))
        }
        _ => return Err(super::container::unknown_or_arity("debug", args)),
    }
    Ok(())
}

/// What Redis says of the inside of a value, as far as there is such a thing.
fn object(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(2);
    let value = call.keys.peek(key)?.ok_or(Failure::NO_SUCH_KEY)?;
    let encoding = value.encoding(&call.server.settings);
    let bytes = value.weight();
    let idle = call.keys.idle(key)?.unwrap_or(0);
    // As many bits as Redis keeps of the time.
    let used = (call.keys.now() / 1000 - i64::from(idle)) & 0xff_ffff;
    call.reply.simple(&format!(
        "Value at:0x0 refcount:1 encoding:{encoding} serializedlength:{bytes} lru:{used} \
         lru_seconds_idle:{idle}"
    ));
    Ok(())
}

/// A reply of each type, for those who write clients.
fn protocol(call: &mut Call<'_>) -> Outcome {
    let reply = &mut *call.reply;
    match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(3141.0 / 1000.0),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"push" => {
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
        }
        // Without the attributes, which no reply has.
        b"attrib" => reply.bulk(b"Some real reply following the attribute"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        _ => {
            return Err(Failure::text(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|null|array|set|map|attrib|push|verbatim|true|false",
            ))
        }
    }
    Ok(())
}
