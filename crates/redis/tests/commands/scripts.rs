//! EVAL, SCRIPT, FUNCTION: replies, limits, and scripts that have to run again.

use proptest::prelude::*;
use redis::args::Words;
use redis::server::Settings;

use crate::rig::Rig;
use crate::transcript;

#[test]
fn eval_replies_as_redis_does() {
    transcript::check(include_str!("transcripts/eval.txt"));
}

#[test]
fn libraries_of_lua_work_as_in_redis() {
    transcript::check(include_str!("transcripts/script_libraries.txt"));
}

#[test]
fn functions_reply_as_in_redis() {
    transcript::check(include_str!("transcripts/functions.txt"));
}

fn eval(rig: &mut Rig, script: &str, keys: &[&str], args: &[&str]) -> String {
    let count = keys.len().to_string();
    let words = ["EVAL", script, &count].into_iter().chain(keys.iter().copied());
    let words: Words = words.chain(args.iter().copied()).collect();
    rig.run_words(rig.conn, &words)
}

#[test]
fn an_error_of_a_script_is_counted_once() {
    let counted = |script: &str, kind: &str| {
        let mut rig = Rig::new();
        rig.check("SET text 1", "OK");
        let words: Words = [kind, script, "0"].into_iter().collect();
        rig.run_words(rig.conn, &words);
        let info = rig.run("INFO everything");
        let field = |name: &str| {
            let value = info.split(&format!("{name}:")).nth(1).unwrap_or_default();
            value.split("\\r").next().unwrap_or_default().to_owned()
        };
        let calls = |name: &str| {
            let of = field(&format!("cmdstat_{name}"));
            let of = |figure: &str| {
                of.split(&format!("{figure}=")).nth(1).and_then(|rest| rest.chars().next())
            };
            (of("rejected_calls").unwrap_or('-'), of("failed_calls").unwrap_or('-'))
        };
        let codes = ["ERR", "WRONGTYPE", "MINE"].map(|code| field(&format!("errorstat_{code}")));
        (field("total_error_replies"), codes.join(" "), calls(&kind.to_lowercase()), calls("lpush"))
    };
    let one = |codes: &str, script, command| ("1".to_owned(), codes.to_owned(), script, command);
    let (fine, failed, none) = (('0', '0'), ('0', '1'), ('-', '-'));
    let wrong = "redis.call('lpush', 'text', 1)";
    assert_eq!(counted(wrong, "EVAL"), one(" count=1 ", failed, failed));
    assert_eq!(counted(&format!("return {wrong}"), "EVAL"), one(" count=1 ", failed, failed));
    let caught = "return redis.pcall('lpush', 'text', 1)";
    assert_eq!(counted(caught, "EVAL"), one(" count=1 ", failed, failed));
    let eaten = "redis.pcall('lpush', 'text', 1) return 1";
    assert_eq!(counted(eaten, "EVAL"), one(" count=1 ", fine, failed));
    let refused = "redis.pcall('lpush', 'new', 1) return 1";
    assert_eq!(counted(refused, "EVAL_RO"), one("count=1  ", fine, ('1', '0')));
    assert_eq!(
        counted("return redis.error_reply('MINE is it')", "EVAL"),
        one("  count=1", failed, none)
    );
    assert_eq!(counted("return redis.error_reply('')", "EVAL"), one("count=1  ", failed, none));
    assert_eq!(counted("error('so')", "EVAL"), one("count=1  ", failed, none));
    assert_eq!(counted("return redis.call()", "EVAL"), one("count=1  ", failed, none));
}

#[test]
fn a_script_that_misses_a_key_runs_again_and_does_everything_once() {
    let mut rig = Rig::new();
    rig.check("SET n 5", "OK");
    rig.check("SET far 7", "OK");
    rig.forget();
    // Neither key is announced: each miss is behind a change, inside of all that catches errors.
    let script = "
        redis.call('incrby', 'n', 1)
        local ok, far = pcall(function()
            local co = coroutine.create(function() return redis.call('get', 'far') end)
            local ok, value = coroutine.resume(co)
            return value
        end)
        redis.call('set', 'seen', tostring(ok) .. tostring(far))
        local also = select(2, xpcall(
            function() return redis.call('get', 'missing') end,
            function(e) redis.call('set', 'handler', 'ran') return e end))
        redis.call('incrby', 'n', 1)
        return {far, also, redis.call('get', 'n')}";
    assert_eq!(eval(&mut rig, script, &[], &[]), "[\"7\" (nil) \"7\"]");
    rig.reads("GET n", "\"7\"");
    rig.reads("GET seen", "\"true7\"");
    rig.reads("GET handler", "(nil)");
}

#[test]
fn what_a_script_overwrites_unseen_is_still_there_when_it_is_undone() {
    let mut rig = Rig::new();
    rig.check("SET blind old", "OK");
    rig.check("SET far x", "OK");
    rig.forget();
    let script = "redis.call('set', 'blind', 'new')
        if redis.call('get', 'far') == 'x' then error('stop') end";
    assert!(eval(&mut rig, script, &[], &[]).starts_with("!ERR user_script:2: stop script: "));
    // Its own error keeps what it has done; the run that missed has left nothing.
    rig.reads("GET blind", "\"new\"");
    rig.forget();
    let script = "redis.call('set', 'blind', 'newer') return redis.call('nosuch', 1)";
    assert!(eval(&mut rig, script, &[], &[]).starts_with("!ERR Unknown Redis command"));
    rig.reads("GET blind", "\"newer\"");
}

fn limited() -> Rig {
    Rig::with(Settings { lua_time_limit_ms: 5, ..Settings::default() })
}

const TOO_LONG: &str =
    "!ERR The script has run for longer than lua-time-limit. It has been ended, \
                        and what it did is undone.";
const TOO_LARGE: &str =
    "!ERR The script needs too much memory. It has been ended, and what it did is undone.";

#[test]
fn a_script_without_end_is_ended_whatever_it_catches_and_undone() {
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "local f = coroutine.wrap(function() while true do end end) while true do pcall(f) end",
        "while true do redis.pcall('get', 'a') end",
        "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
        "return (string.rep('a', 40)):find(string.rep('a?', 40) .. string.rep('a', 41))",
        "return (string.rep('a', 5000)):match('.-.-.-.-.-b')",
        "while true do collectgarbage() end",
        "while true do string.rep('', 1e9) end",
    ] {
        let mut rig = limited();
        rig.check("SET a 1", "OK");
        let whole = format!("redis.call('set', 'a', 2) redis.call('set', 'b', 2) {script}");
        assert_eq!(eval(&mut rig, &whole, &["a"], &[]), TOO_LONG, "{script}");
        rig.reads("GET a", "\"1\"");
        rig.reads("GET b", "(nil)");
        assert_eq!(eval(&mut rig, "return 1", &[], &[]), "1", "the next one runs");
    }
}

#[test]
fn a_script_without_end_takes_its_transaction_with_it() {
    let mut rig = limited();
    rig.check("MULTI", "OK");
    rig.check("SET a 1", "QUEUED");
    rig.check("EVAL \"redis.call('set','b',1) while true do end\" 0", "QUEUED");
    rig.check("SET c 1", "QUEUED");
    assert_eq!(rig.run("EXEC"), TOO_LONG);
    rig.reads("GET a", "(nil)");
    rig.reads("GET b", "(nil)");
    rig.check("SET a 2", "OK");
}

#[test]
fn no_script_brings_the_process_down() {
    let mut rig = Rig::new();
    for script in [
        "local t = {} while true do t[#t+1] = {} end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do pcall(function() t[#t+1] = ('x'):rep(1e6) .. #t end) end",
    ] {
        assert_eq!(eval(&mut rig, script, &[], &[]), TOO_LARGE, "{script}");
        assert_eq!(eval(&mut rig, "return 1", &[], &[]), "1");
    }
    for script in [
        "local function f() return 1 + f() end return f()",
        "local function f() return pcall(f) end return f()",
        "local function f() return coroutine.wrap(f)() end return f()",
        "local f f = function() return setmetatable({}, {__index = f}).x end return f()",
        "local t = {} t[1] = t return t",
        "local t = {} t[1] = t return cjson.encode(t)",
        "return cjson.decode(('['):rep(100000))",
        "return cmsgpack.unpack(('\\145'):rep(100000))",
        "return (('a'):rep(300000)):find(('.?'):rep(300000))",
        "return string.format('%99999d', 1)",
        "return ('x'):rep(1e12)",
        "return loadstring('\\27Lua')()",
        "return loadstring(string.dump(function() end))()",
        "return unpack({}, -2147483648, 2147483647)",
        "return unpack({}, 1, 2^53)",
        "local function grow(n, ...) if n == 0 then return redis.call('del', ...) end \
         return grow(n - 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...) end return grow(1500)",
        "local function grow(n, ...) if n == 0 then return ('x'):find(...) end \
         return grow(n - 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...) end return grow(1500)",
        "return redis.call('del', unpack(setmetatable({}, {__index = function() return 'x' end}), 1, 7000))",
        "return getmetatable('').__index.rep('x', 2)",
        "getmetatable('').__index = {} return 1",
        "string.rep = 1",
        "return newproxy(true)",
        "error(setmetatable({}, {__tostring = function() error('x') end}))",
        "return coroutine.yield(1)",
        "table.sort({1,2,3,4,5,6,7,8,9,10}, function() return true end) return 1",
    ] {
        eval(&mut rig, script, &[], &[]);
        assert_eq!(eval(&mut rig, "return ('ok'):upper()", &[], &[]), "\"OK\"", "{script}");
    }
}

#[test]
#[ignore = "takes minutes without optimisation"]
fn what_unfolds_to_too_much_is_refused() {
    let mut rig = Rig::new();
    let twice = "local t = {} for i = 1, 40 do t = {t, t} end";
    for script in [
        format!("{twice} return t"),
        format!("{twice} return cjson.encode(t)"),
        "local t = {x = 1} for i = 1, 15 do t = {t, t, t, t, t, t} end return cmsgpack.pack(t)"
            .into(),
    ] {
        assert!(eval(&mut rig, &script, &[], &[]).contains("too large"), "{script}");
    }
}

#[test]
fn scripts_see_nothing_of_one_another() {
    let mut rig = Rig::new();
    for script in [
        "redis.x = 1",
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "rawset(redis, 'x', 1)",
        "setmetatable(string, {})",
        "KEYS.x = 1 _G.KEYS = 1",
        "getmetatable(_G).__index = 1",
    ] {
        assert!(eval(&mut rig, script, &[], &[]).contains("readonly table"), "{script}");
    }
    assert_eq!(eval(&mut rig, "return {redis.x, rawget(_G, 'x')}", &[], &[]), "[]");
}

#[test]
fn asking_postgres_twice_gives_both_answers() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    let script = "redis.call('incrby', 'a', 1)
        return {redis.call('dbsize'), redis.call('dbsize'), redis.call('get', 'a')}";
    assert_eq!(eval(&mut rig, script, &[], &[]), "[1 1 \"2\"]");
}

#[test]
fn scripts_loaded_stay_and_those_of_eval_go() {
    let mut rig = Rig::new();
    let name = rig.run("SCRIPT LOAD \"return 1\"");
    for n in 0..600 {
        eval(&mut rig, &format!("return {n} + 0"), &[], &[]);
    }
    rig.check(&format!("EVALSHA {name} 0"), "1");
    let first = "afd5dde0f2ec2d2a9d2bd8a5d3ac1a0e3ec5f6a2";
    assert_eq!(rig.run(&format!("SCRIPT EXISTS {name} {first}")), "[1 0]");
    assert_eq!(eval(&mut rig, "return 0 + 0", &[], &[]), "0", "it is compiled again");
}

#[test]
fn libraries_survive_a_dump_and_a_state_that_is_worn() {
    let mut rig = Rig::new();
    let code = "#!lua name=l\nredis.register_function('f', function(keys) return 7 end)";
    let load: Words = ["FUNCTION", "LOAD", code].into_iter().collect();
    assert_eq!(rig.run_words(rig.conn, &load), "\"l\"");
    let dump = rig.reply_to(rig.conn, &["FUNCTION", "DUMP"].into_iter().collect());
    let mut text = Text(Vec::new());
    dump.tell(&mut text);
    let restore: Words = [&b"FUNCTION"[..], b"RESTORE", &text.0].into_iter().collect();
    assert_eq!(rig.run_words(rig.conn, &restore), "!ERR Library l already exists");
    rig.check("FUNCTION FLUSH", "OK");
    rig.check("FCALL f 0", "!ERR Function not found");
    assert_eq!(rig.run_words(rig.conn, &restore), "OK");
    let hoard = "local t = {} while true do t[#t+1] = {} end";
    assert_eq!(eval(&mut rig, hoard, &[], &[]), TOO_LARGE);
    rig.check("FCALL f 0", "7");
    rig.check("SCRIPT FLUSH", "OK");
    rig.check("FCALL f 0", "7");
}

/// The bytes of a bulk string.
struct Text(Vec<u8>);

impl redis::reply::Reply for Text {
    fn protocol(&self) -> u8 {
        2
    }
    fn bulk(&mut self, bytes: &[u8]) {
        self.0 = bytes.to_vec();
    }
    fn simple(&mut self, _: &str) {}
    fn error(&mut self, _: &str) {}
    fn integer(&mut self, _: i64) {}
    fn null(&mut self) {}
    fn null_array(&mut self) {}
    fn array(&mut self, _: usize) {}
    fn map(&mut self, _: usize) {}
    fn set(&mut self, _: usize) {}
    fn push(&mut self, _: usize) {}
    fn double(&mut self, _: f64) {}
    fn boolean(&mut self, _: bool) {}
    fn big_number(&mut self, _: &str) {}
    fn verbatim(&mut self, _: &str, _: &[u8]) {}
    fn mark(&self) -> usize {
        0
    }
    fn rewind(&mut self, _: usize) {}
}

const STEPS: &[&str] = &[
    "SET k1 a",
    "SET k2 7",
    "INCRBY k2 3",
    "DEL k1",
    "DEL h",
    "DEL s",
    "HSET h f1 v1 f2 v2",
    "HSET h f3 x",
    "HDEL h f1",
    "HDEL h f1 f2 f3 f4",
    "HSET h2 f4 y",
    "SADD s a b c",
    "SADD s 1 2 3",
    "SREM s a 1",
    "SPOP s",
    "RENAME h h3",
    "RENAME s k1",
    "RENAME k2 h",
    "COPY h h2 REPLACE",
    "EXPIRE h 100",
    "EXPIRE k1 -1",
    "PERSIST h",
    "APPEND k1 zz",
    "SETRANGE k2 2 q",
    "GETDEL k1",
    "FLUSHDB",
    "SELECT 1",
    "SELECT 0",
];

fn state(rig: &mut Rig) -> Vec<String> {
    let mut all = Vec::new();
    for key in ["k1", "k2", "h", "h2", "h3", "s"] {
        all.push(rig.run(&format!("TYPE {key}")));
        for read in ["GET", "PTTL"] {
            all.push(rig.run(&format!("{read} {key}")));
        }
        for (read, sorted) in [("HGETALL", "f1 f2 f3 f4"), ("SORT", "ALPHA")] {
            all.push(match read {
                "HGETALL" => rig.run(&format!("HMGET {key} {sorted}")),
                _ => rig.run(&format!("{read} {key} {sorted}")),
            });
        }
    }
    all
}

fn calls(steps: &[usize]) -> String {
    let one = |step: &usize| {
        let words = STEPS[*step].split(' ').map(|word| format!("'{word}'"));
        format!("redis.pcall({})\n", words.collect::<Vec<_>>().join(","))
    };
    steps.iter().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A script that is undone at any place leaves memory as it was, be it known before or not.
    #[test]
    fn a_script_that_is_undone_has_changed_nothing(
        before in prop::collection::vec(0..STEPS.len(), 0..12),
        steps in prop::collection::vec(0..STEPS.len(), 0..15),
        forget in any::<bool>(),
    ) {
        let mut rig = limited();
        for step in before {
            rig.run(STEPS[step]);
        }
        rig.run("SELECT 0");
        let expected = state(&mut rig);
        if forget {
            rig.forget();
        }
        let script = format!("{}redis.call('get', 'absent')\nwhile true do end", calls(&steps));
        prop_assert_eq!(eval(&mut rig, &script, &[], &[]), TOO_LONG);
        prop_assert_eq!(&state(&mut rig), &expected, "from memory");
        rig.forget();
        prop_assert_eq!(&state(&mut rig), &expected, "from the tables");
    }

    /// And one that runs to its end after misses has done everything once, as if it had not missed.
    #[test]
    fn a_script_that_misses_does_as_one_that_does_not(
        before in prop::collection::vec(0..STEPS.len(), 0..12),
        steps in prop::collection::vec(0..STEPS.len(), 0..15),
    ) {
        // What is popped is left to chance.
        let steps: Vec<usize> = steps.into_iter().filter(|step| STEPS[*step] != "SPOP s").collect();
        let before: Vec<usize> =
            before.into_iter().filter(|step| STEPS[*step] != "SPOP s").collect();
        let mut states = Vec::new();
        for forget in [false, true] {
            let mut rig = Rig::new();
            for step in &before {
                rig.run(STEPS[*step]);
            }
            rig.run("SELECT 0");
            state(&mut rig);
            if forget {
                rig.forget();
            }
            let script = format!("{}return redis.call('get', 'absent')", calls(&steps));
            prop_assert_eq!(eval(&mut rig, &script, &[], &[]), "(nil)");
            states.push(state(&mut rig));
            rig.forget();
            states.push(state(&mut rig));
        }
        prop_assert_eq!(&states[0], &states[1]);
        prop_assert_eq!(&states[0], &states[2]);
        prop_assert_eq!(&states[0], &states[3]);
    }
}
