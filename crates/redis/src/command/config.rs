//! CONFIG: the parameters of `redis.conf` that clients read and set.
//!
//! `config.c`. One row for each: what acts is changed, what is Redis's own business is kept and
//! shown again, and what can't be otherwise can only be set to what it is.

use super::{glob, Command, Container, Flags, Sub};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::notify::Notify;
use crate::server::Settings;

const ADMIN: Flags = Flags::ADMIN.and(Flags::NO_SCRIPT).and(Flags::LOADING).and(Flags::STALE);

pub const COMMANDS: &[Command] =
    &[Command::plain("config", -2, Flags::CONTAINER.and(ADMIN), "server", config)];

pub const CONFIG: Container = Container {
    name: "config",
    subs: &[
        Sub::help("config|help"),
        Sub::new("config|get", -3, ADMIN, get),
        Sub::new("config|resetstat", 2, ADMIN, resetstat),
        Sub::new("config|rewrite", 2, ADMIN, rewrite),
        Sub::new("config|set", -4, ADMIN, set),
    ],
    help: &[
        "GET <pattern>",
        "    Return parameters matching the glob-like <pattern> and their values.",
        "SET <directive> <value>",
        "    Set the configuration <directive> to <value>.",
        "RESETSTAT",
        "    Reset statistics reported by the INFO command.",
        "REWRITE",
        "    Rewrite the configuration file.",
    ],
};

/// What a value has to look like.
enum Form {
    Text,
    YesNo,
    /// From, to.
    Number(i64, i64),
    /// As a number, perhaps with a unit.
    Bytes(i64, i64),
    OneOf(&'static [&'static str]),
}

/// A field of the settings.
enum Field<'a> {
    Size(&'a mut usize),
    Signed(&'a mut i64),
    Unsigned(&'a mut u64),
    Notify(&'a mut Notify),
}

/// What becomes of a value.
enum Effect {
    /// It can't be changed.
    Fixed(&'static str),
    /// It is remembered; this is what it is before.
    Kept(&'static str),
    Acts(fn(&mut Settings) -> Field<'_>),
    /// How many databases there are.
    Databases,
}

struct Parameter {
    name: &'static str,
    alias: &'static str,
    form: Form,
    effect: Effect,
}

const fn fixed(name: &'static str, form: Form, value: &'static str) -> Parameter {
    Parameter { name, alias: "", form, effect: Effect::Fixed(value) }
}

impl Parameter {
    /// With a second name.
    const fn or(mut self, alias: &'static str) -> Parameter {
        self.alias = alias;
        self
    }
}

const fn kept(name: &'static str, form: Form, value: &'static str) -> Parameter {
    Parameter { name, alias: "", form, effect: Effect::Kept(value) }
}

const fn acts(
    name: &'static str,
    alias: &'static str,
    form: Form,
    field: fn(&mut Settings) -> Field<'_>,
) -> Parameter {
    Parameter { name, alias, form, effect: Effect::Acts(field) }
}

const SMALL: Form = Form::Number(0, i32::MAX as i64);
const LARGE: Form = Form::Number(0, i64::MAX);
const BYTES: Form = Form::Bytes(0, i64::MAX);
const POLICIES: Form = Form::OneOf(&[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
]);
const SYNCS: Form = Form::OneOf(&["everysec", "always", "no"]);
const LEVELS: Form = Form::OneOf(&["debug", "verbose", "notice", "warning", "nothing"]);

const PARAMETERS: &[Parameter] = &[
    acts("hash-max-listpack-entries", "hash-max-ziplist-entries", LARGE, |settings| {
        Field::Size(&mut settings.hash_max_listpack_entries)
    }),
    acts("hash-max-listpack-value", "hash-max-ziplist-value", BYTES, |settings| {
        Field::Size(&mut settings.hash_max_listpack_value)
    }),
    acts(
        "list-max-listpack-size",
        "list-max-ziplist-size",
        Form::Number(i32::MIN as i64, i32::MAX as i64),
        |settings| Field::Signed(&mut settings.list_max_listpack_size),
    ),
    acts("set-max-intset-entries", "", LARGE, |settings| {
        Field::Size(&mut settings.set_max_intset_entries)
    }),
    acts("set-max-listpack-entries", "", LARGE, |settings| {
        Field::Size(&mut settings.set_max_listpack_entries)
    }),
    acts("set-max-listpack-value", "", LARGE, |settings| {
        Field::Size(&mut settings.set_max_listpack_value)
    }),
    acts("zset-max-listpack-entries", "zset-max-ziplist-entries", LARGE, |settings| {
        Field::Size(&mut settings.zset_max_listpack_entries)
    }),
    acts("zset-max-listpack-value", "zset-max-ziplist-value", BYTES, |settings| {
        Field::Size(&mut settings.zset_max_listpack_value)
    }),
    acts("tracking-table-max-keys", "", LARGE, |settings| {
        Field::Size(&mut settings.tracking_table_max_keys)
    }),
    acts("stream-node-max-entries", "", LARGE, |settings| {
        Field::Size(&mut settings.stream_node_max_entries)
    }),
    acts("slowlog-log-slower-than", "", Form::Number(-1, i64::MAX), |settings| {
        Field::Signed(&mut settings.slowlog_slower_than_us)
    }),
    acts("slowlog-max-len", "", LARGE, |settings| Field::Size(&mut settings.slowlog_max_len)),
    acts("busy-reply-threshold", "lua-time-limit", LARGE, |settings| {
        Field::Unsigned(&mut settings.lua_time_limit_ms)
    }),
    acts("maxclients", "", Form::Number(1, u32::MAX as i64), |settings| {
        Field::Size(&mut settings.max_clients)
    }),
    acts("proto-max-bulk-len", "", Form::Bytes(1 << 20, i64::MAX), |settings| {
        Field::Size(&mut settings.proto_max_bulk_len)
    }),
    acts("notify-keyspace-events", "", Form::Text, |settings| {
        Field::Notify(&mut settings.notify_keyspace_events)
    }),
    Parameter {
        name: "databases",
        alias: "",
        form: Form::Number(1, i32::MAX as i64),
        effect: Effect::Databases,
    },
    // What PostgreSQL and the process see to.
    fixed("appendonly", Form::YesNo, "yes"),
    fixed("appendfsync", SYNCS, "always"),
    fixed("save", Form::Text, ""),
    fixed("maxmemory", BYTES, "0"),
    fixed("maxmemory-policy", POLICIES, "noeviction"),
    fixed("cluster-enabled", Form::YesNo, "no"),
    fixed("replicaof", Form::Text, "").or("slaveof"),
    fixed("requirepass", Form::Text, ""),
    fixed("aclfile", Form::Text, ""),
    fixed("bind", Form::Text, ""),
    fixed("port", SMALL, "0"),
    fixed("tls-port", SMALL, "0"),
    fixed("unixsocket", Form::Text, ""),
    fixed("dir", Form::Text, ""),
    fixed("dbfilename", Form::Text, ""),
    fixed("appendfilename", Form::Text, ""),
    fixed("appenddirname", Form::Text, ""),
    fixed("logfile", Form::Text, ""),
    fixed("pidfile", Form::Text, ""),
    fixed("daemonize", Form::YesNo, "no"),
    fixed("supervised", Form::Text, "no"),
    fixed("protected-mode", Form::YesNo, "yes"),
    fixed("tcp-backlog", SMALL, "511"),
    fixed("io-threads", SMALL, "1"),
    fixed("enable-debug-command", Form::Text, "yes"),
    fixed("enable-module-command", Form::Text, "no"),
    fixed("client-query-buffer-limit", BYTES, "1073741824"),
    // What is Redis's own business.
    kept("timeout", SMALL, "0"),
    kept("tcp-keepalive", SMALL, "300"),
    kept("loglevel", LEVELS, "notice"),
    kept("hz", SMALL, "10"),
    kept("dynamic-hz", Form::YesNo, "yes"),
    kept("activerehashing", Form::YesNo, "yes"),
    kept("activedefrag", Form::YesNo, "no"),
    kept("active-expire-effort", Form::Number(1, 10), "1"),
    kept("list-compress-depth", SMALL, "0"),
    kept("stream-node-max-bytes", BYTES, "4096"),
    kept("hll-sparse-max-bytes", BYTES, "3000"),
    kept("maxmemory-samples", Form::Number(1, i32::MAX as i64), "5"),
    kept("maxmemory-clients", Form::Text, "0"),
    kept("maxmemory-eviction-tenacity", Form::Number(0, 100), "10"),
    kept("lfu-log-factor", SMALL, "10"),
    kept("lfu-decay-time", SMALL, "1"),
    kept("lazyfree-lazy-eviction", Form::YesNo, "no"),
    kept("lazyfree-lazy-expire", Form::YesNo, "no"),
    kept("lazyfree-lazy-server-del", Form::YesNo, "no"),
    kept("lazyfree-lazy-user-del", Form::YesNo, "no"),
    kept("lazyfree-lazy-user-flush", Form::YesNo, "no"),
    kept("latency-monitor-threshold", LARGE, "0"),
    kept("latency-tracking", Form::YesNo, "yes"),
    kept("acllog-max-len", LARGE, "128"),
    kept("acl-pubsub-default", Form::OneOf(&["allchannels", "resetchannels"]), "resetchannels"),
    kept(
        "client-output-buffer-limit",
        Form::Text,
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
    ),
    kept("stop-writes-on-bgsave-error", Form::YesNo, "yes"),
    kept("rdbcompression", Form::YesNo, "yes"),
    kept("rdbchecksum", Form::YesNo, "yes"),
    kept("no-appendfsync-on-rewrite", Form::YesNo, "no"),
    kept("auto-aof-rewrite-percentage", SMALL, "100"),
    kept("auto-aof-rewrite-min-size", BYTES, "67108864"),
    kept("aof-use-rdb-preamble", Form::YesNo, "yes"),
    kept("aof-load-truncated", Form::YesNo, "yes"),
    kept("sanitize-dump-payload", Form::OneOf(&["no", "yes", "clients"]), "no"),
    kept("repl-diskless-sync", Form::YesNo, "yes"),
    kept("repl-diskless-sync-delay", SMALL, "5"),
    kept("repl-backlog-size", BYTES, "1048576"),
    kept("repl-timeout", SMALL, "60"),
    kept("min-replicas-to-write", SMALL, "0").or("min-slaves-to-write"),
    kept("min-replicas-max-lag", SMALL, "10").or("min-slaves-max-lag"),
    kept("replica-read-only", Form::YesNo, "yes").or("slave-read-only"),
    kept("replica-serve-stale-data", Form::YesNo, "yes").or("slave-serve-stale-data"),
    kept("close-on-replica-write", Form::YesNo, "yes"),
    kept("proc-title-template", Form::Text, "{title} {listen-addr} {server-mode}"),
];

fn find(name: &[u8]) -> Option<&'static Parameter> {
    let is = |other: &str| !other.is_empty() && name.eq_ignore_ascii_case(other.as_bytes());
    PARAMETERS.iter().find(|parameter| is(parameter.name) || is(parameter.alias))
}

impl Parameter {
    fn value(&self, call: &mut Call<'_>) -> String {
        match &self.effect {
            Effect::Fixed(value) => (*value).to_owned(),
            Effect::Kept(value) => {
                let kept = call.server.parameters.get(self.name);
                kept.cloned().unwrap_or_else(|| (*value).to_owned())
            }
            Effect::Acts(field) => match field(&mut call.server.settings) {
                Field::Size(value) => value.to_string(),
                Field::Signed(value) => value.to_string(),
                Field::Unsigned(value) => value.to_string(),
                Field::Notify(value) => value.to_string(),
            },
            Effect::Databases => call.keys.databases().to_string(),
        }
    }

    /// The value as it will be shown, or why it can't be.
    fn check(&self, call: &mut Call<'_>, value: &[u8]) -> Result<String, String> {
        let value = self.form.check(value)?;
        match self.effect {
            Effect::Fixed(_) | Effect::Databases if value != self.value(call) => {
                Err("can't set immutable config".to_owned())
            }
            Effect::Acts(field) => match field(&mut call.server.settings) {
                Field::Notify(_) if Notify::parse(value.as_bytes()).is_none() => {
                    Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned())
                }
                _ => Ok(value),
            },
            _ => Ok(value),
        }
    }

    fn set(&self, call: &mut Call<'_>, value: String) {
        match self.effect {
            Effect::Fixed(_) | Effect::Databases => {}
            Effect::Kept(_) => {
                call.server.parameters.insert(self.name, value);
            }
            Effect::Acts(field) => {
                let number: i64 = value.parse().unwrap_or_default();
                match field(&mut call.server.settings) {
                    Field::Size(field) => *field = usize::try_from(number).unwrap_or_default(),
                    Field::Signed(field) => *field = number,
                    Field::Unsigned(field) => *field = number.unsigned_abs(),
                    Field::Notify(field) => {
                        *field = Notify::parse(value.as_bytes()).unwrap_or_default();
                    }
                }
                call.keys.notify = call.server.settings.notify_keyspace_events;
                call.server.tracking.limit(call.server.settings.tracking_table_max_keys);
                let limit = call.server.settings.slowlog_max_len;
                call.server.stats.slow.entries.truncate(limit);
            }
        }
    }
}

impl Form {
    /// The value in the form in which it is shown.
    fn check(&self, value: &[u8]) -> Result<String, String> {
        let text = String::from_utf8_lossy(value).into_owned();
        let between = |number: i64, from: i64, to: i64| {
            if (from..=to).contains(&number) {
                Ok(number.to_string())
            } else {
                Err(format!("argument must be between {from} and {to} inclusive"))
            }
        };
        match self {
            Form::Text => Ok(text),
            Form::YesNo => match text.to_ascii_lowercase().as_str() {
                yes_no @ ("yes" | "no") => Ok(yes_no.to_owned()),
                _ => Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Form::Number(from, to) => {
                let number = crate::value::parse_integer(value)
                    .ok_or("argument couldn't be parsed into an integer")?;
                between(number, *from, *to)
            }
            Form::Bytes(from, to) => {
                between(bytes(&text).ok_or("argument must be a memory value")?, *from, *to)
            }
            Form::OneOf(words) => {
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(&text));
                word.map(|word| (*word).to_owned()).ok_or_else(|| {
                    format!("argument(s) must be one of the following: {}", words.join(", "))
                })
            }
        }
    }
}

/// `util.c`, `memtoull`.
fn bytes(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1000 * 1000,
        "mb" => 1 << 20,
        "g" => 1000 * 1000 * 1000,
        "gb" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<i64>().ok()?.checked_mul(unit)
}

fn config(call: &mut Call<'_>) -> Outcome {
    CONFIG.run(call)
}

fn get(call: &mut Call<'_>) -> Outcome {
    let patterns = call.args.from(2);
    let wanted = |name: &str| {
        !name.is_empty()
            && patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes(), true))
    };
    let mut found = Vec::new();
    for parameter in PARAMETERS {
        for name in [parameter.name, parameter.alias] {
            if wanted(name) {
                found.push((name, parameter.value(call)));
            }
        }
    }
    call.reply.map(found.len());
    for (name, value) in found {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    Ok(())
}

fn set(call: &mut Call<'_>) -> Outcome {
    let pairs = call.args.from(2);
    if pairs.len() % 2 != 0 {
        return Err(Failure::SYNTAX);
    }
    let shown = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let mut wanted: Vec<(&'static Parameter, &[u8], &[u8])> = Vec::new();
    for at in (0..pairs.len()).step_by(2) {
        let (name, value) = (pairs.at(at), pairs.at(at + 1));
        let Some(parameter) = find(name) else {
            return Err(Failure::said(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{}'",
                shown(name)
            )));
        };
        wanted.push((parameter, name, value));
    }
    let fail = |name: &[u8], why: &str| {
        Failure::said(format!(
            "ERR CONFIG SET failed (possibly related to argument '{}') - {why}",
            shown(name)
        ))
    };
    let mut checked: Vec<(&'static Parameter, String)> = Vec::new();
    for (parameter, name, value) in wanted {
        if checked.iter().any(|(other, _)| std::ptr::eq(*other, parameter)) {
            return Err(fail(name, "duplicate parameter"));
        }
        let value = parameter.check(call, value).map_err(|why| fail(name, &why))?;
        checked.push((parameter, value));
    }
    checked.into_iter().for_each(|(parameter, value)| parameter.set(call, value));
    call.reply.ok();
    Ok(())
}

fn resetstat(call: &mut Call<'_>) -> Outcome {
    call.server.stats.reset();
    call.keys.stats = Default::default();
    call.reply.ok();
    Ok(())
}

fn rewrite(_call: &mut Call<'_>) -> Outcome {
    Err(Failure::text("ERR The server is running without a config file"))
}
