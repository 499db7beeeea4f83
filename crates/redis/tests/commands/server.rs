//! Commands about the server.

use redis::server::Settings;

use crate::rig::Rig;

#[test]
fn commands_about_the_server_reply_as_in_redis() {
    let mut rig = Rig::new();
    for (line, reply) in [
        ("TIME", r#"["1700000000" "0"]"#),
        ("WAIT 1 100", "0"),
        ("WAIT x 0", "!ERR value is not an integer or out of range"),
        ("WAIT 0 -1", "!ERR timeout is negative"),
        ("WAITAOF 1 0 0", "[1 0]"),
        ("WAITAOF 2 0 0", "!ERR value is out of range, must be between 0 and 1"),
        ("LASTSAVE", "1700000000"),
        ("SAVE", "OK"),
        ("BGSAVE", "Background saving started"),
        ("BGSAVE x", "!ERR syntax error"),
        ("BGREWRITEAOF", "Background append only file rewriting started"),
        ("SHUTDOWN ABORT", "!ERR No shutdown in progress."),
        ("SHUTDOWN foo", "!ERR syntax error"),
        ("FAILOVER", "!ERR FAILOVER requires connected replicas."),
        ("CLIENT LIST ID", "!ERR syntax error"),
        ("CLIENT KILL ID 1 SKIPME", "!ERR syntax error"),
        (
            "PUBSUB CHANNELS a b",
            "!ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.",
        ),
        (
            "SLOWLOG GET 1 2",
            "!ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.",
        ),
        ("CLIENT TRACKING x", "!ERR syntax error"),
        (
            "CLIENT TRACKING on OPTIN OPTOUT",
            "!ERR You can't specify both OPTIN mode and OPTOUT mode",
        ),
        ("CLIENT TRACKING on REDIRECT 0", "!ERR The client ID you want redirect to does not exist"),
        ("HELLO 3 SETNAME", "!ERR Syntax error in HELLO option 'SETNAME'"),
        ("REPLICAOF NO ONE", "OK"),
        ("SLAVEOF no one", "OK"),
        ("ROLE", r#"["master" 0 []]"#),
        ("CLUSTER INFO", "!ERR This instance has cluster support disabled"),
        ("CLUSTER FOO", "!ERR unknown subcommand 'FOO'. Try CLUSTER HELP."),
        ("READONLY", "!ERR This instance has cluster support disabled"),
        ("MODULE LIST", "[]"),
        ("SWAPDB 0 x", "!ERR invalid second DB index"),
        ("SWAPDB 0 16", "!ERR DB index is out of range"),
        ("SLOWLOG LEN", "0"),
        ("SLOWLOG GET", "[]"),
        ("SLOWLOG GET -2", "!ERR count should be greater than or equal to -1"),
        ("LATENCY LATEST", "[]"),
        ("LATENCY RESET", "0"),
        ("LATENCY HISTORY x", "[]"),
        ("LATENCY GRAPH x", "!ERR No samples available for event 'x'"),
        ("MEMORY USAGE none", "(nil)"),
        ("MEMORY USAGE a SAMPLES", "!ERR syntax error"),
        ("MEMORY PURGE", "OK"),
        ("ACL WHOAMI", "\"ann\""),
        ("ACL USERS", "[\"ann\"]"),
        ("ACL LIST", "[\"user ann on ~* &* +@all\"]"),
        ("ACL GETUSER bob", "(nil)"),
        ("ACL CAT foo", "!ERR Unknown category 'foo'"),
        ("ACL LOG", "[]"),
        ("ACL LOG RESET", "OK"),
        ("ACL DRYRUN ann get x", "OK"),
        ("ACL DRYRUN bob get x", "!ERR User 'bob' not found"),
        ("ACL DRYRUN ann foo", "!ERR Command 'foo' not found"),
        ("ACL DRYRUN ann get", "!ERR wrong number of arguments for 'get' command"),
        ("CONFIG REWRITE", "!ERR The server is running without a config file"),
        ("CONFIG RESETSTAT", "OK"),
        ("COMMAND GETKEYS get k", r#"["k"]"#),
        ("COMMAND GETKEYS foo k", "!ERR Invalid command specified"),
        ("COMMAND GETKEYS ping", "!ERR The command has no key arguments"),
        ("COMMAND GETKEYS get", "!ERR Invalid number of arguments specified for command"),
        ("COMMAND GETKEYSANDFLAGS get k", r#"[["k" ~[RO access]]]"#),
        ("COMMAND GETKEYSANDFLAGS set k v", r#"[["k" ~[OW update]]]"#),
        ("COMMAND GETKEYSANDFLAGS set k v get", r#"[["k" ~[RW access update]]]"#),
        ("COMMAND GETKEYSANDFLAGS bitfield k get u8 0", r#"[["k" ~[RO access]]]"#),
        ("COMMAND GETKEYSANDFLAGS bitfield k set u8 0 1", r#"[["k" ~[RW access update]]]"#),
        ("COMMAND GETKEYSANDFLAGS mset a 1 b 2", r#"[["a" ~[OW update]] ["b" ~[OW update]]]"#),
        (
            "COMMAND GETKEYSANDFLAGS zunionstore d 2 a b",
            r#"[["d" ~[OW update]] ["a" ~[RO access]] ["b" ~[RO access]]]"#,
        ),
        ("COMMAND GETKEYSANDFLAGS sort a store b", r#"[["a" ~[RO access]] ["b" ~[OW update]]]"#),
        ("COMMAND INFO foo", "[(nil)]"),
        ("COMMAND LIST FILTERBY PATTERN subsc*", r#"["subscribe"]"#),
        ("COMMAND LIST FILTERBY PATTERN cli*help", r#"["client|help"]"#),
        ("CONFIG GET slaveof replica?f", r#"{"replicaof" "" "slaveof" ""}"#),
        ("CLIENT KILL USER nobody", "!ERR No such user 'nobody'"),
        ("COMMAND LIST FILTERBY MODULE x", "[]"),
        ("COMMAND LIST FILTERBY x", "!ERR syntax error"),
        (
            "DEBUG SLEEP 1",
            "!ERR DEBUG SLEEP would stop all other clients, too, and those of PostgreSQL",
        ),
        ("DEBUG PROTOCOL double", ",3.141"),
        ("DEBUG STRINGMATCH-LEN 1000 a*b", "0"),
    ] {
        rig.check(line, reply);
    }
    assert!(rig.run("LOLWUT").ends_with("Redis ver. 7.2.5\\n\""));
    assert!(rig.run("CONFIG HELP").starts_with("[CONFIG <subcommand>"));
}

#[test]
fn command_info_is_made_from_the_table() {
    let mut rig = Rig::new();
    rig.check(
        "COMMAND INFO get",
        r#"[["get" 2 ~[readonly fast] 1 1 1 ~[@read @string @fast] [] ~[{"flags" ~[RO access] "begin_search" {"type" "index" "spec" {"index" 1}} "find_keys" {"type" "range" "spec" {"lastkey" 0 "keystep" 1 "limit" 0}}}] []]]"#,
    );
    rig.check(
        "COMMAND INFO client|id",
        r#"[["client|id" 2 ~[noscript loading stale] 0 0 0 ~[@slow @connection] [] ~[] []]]"#,
    );
    rig.check(
        "COMMAND INFO exec",
        r#"[["exec" 1 ~[noscript loading stale skip_slowlog] 0 0 0 ~[@slow @transaction] [] ~[] []]]"#,
    );
    let count: usize = rig.run("COMMAND COUNT").parse().expect("a number");
    assert_eq!(count, redis::command::all().count());
    assert!(rig.run("COMMAND").matches("\"ping\"").count() == 1);
    rig.check("COMMAND DOCS get", r#"{"get" {"since" "1.0.0" "group" "string"}}"#);
    let docs = rig.run("COMMAND DOCS");
    assert!(docs.contains("\"client|list\""), "{docs}");
    for command in redis::command::all() {
        let name = command.name;
        assert_ne!(rig.run(&format!("COMMAND DOCS {name}")), "{}", "{name}");
    }
}

#[test]
fn parameters_are_read_and_set() {
    let mut rig = Rig::new();
    for (line, reply) in [
        ("CONFIG GET maxmemory", r#"{"maxmemory" "0"}"#),
        ("CONFIG GET save appendonly", r#"{"appendonly" "yes" "save" ""}"#),
        ("CONFIG GET DATABASES", r#"{"databases" "16"}"#),
        ("CONFIG GET nothing", "{}"),
        ("CONFIG GET", "!ERR wrong number of arguments for 'config|get' command"),
        (
            "CONFIG SET nothing 1",
            "!ERR Unknown option or number of arguments for CONFIG SET - 'nothing'",
        ),
        ("CONFIG SET hz 1 hz", "!ERR syntax error"),
        (
            "CONFIG SET databases 3",
            "!ERR CONFIG SET failed (possibly related to argument 'databases') - can't set \
             immutable config",
        ),
        ("CONFIG SET save \"\"", "OK"),
        ("CONFIG SET maxmemory 0", "OK"),
        (
            "CONFIG SET hz 1 hz 2",
            "!ERR CONFIG SET failed (possibly related to argument 'hz') - duplicate parameter",
        ),
        (
            "CONFIG SET slowlog-max-len x",
            "!ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - argument \
             couldn't be parsed into an integer",
        ),
        (
            "CONFIG SET active-expire-effort 11",
            "!ERR CONFIG SET failed (possibly related to argument 'active-expire-effort') - \
             argument must be between 1 and 10 inclusive",
        ),
        (
            "CONFIG SET activedefrag x",
            "!ERR CONFIG SET failed (possibly related to argument 'activedefrag') - argument must \
             be 'yes' or 'no'",
        ),
        (
            "CONFIG SET notify-keyspace-events Kq",
            "!ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - \
             Invalid event class character. Use 'Ag$lshzxeKEtmdn'.",
        ),
        ("CONFIG SET hash-max-ziplist-entries 7 proto-max-bulk-len 2mb", "OK"),
        (
            "CONFIG GET hash-max-*-entries",
            r#"{"hash-max-listpack-entries" "7" "hash-max-ziplist-entries" "7"}"#,
        ),
        ("CONFIG GET proto-max-bulk-len", r#"{"proto-max-bulk-len" "2097152"}"#),
        ("CONFIG SET hz 50", "OK"),
        ("CONFIG GET hz", r#"{"hz" "50"}"#),
    ] {
        rig.check(line, reply);
    }
    assert_eq!(rig.engine.server.settings.hash_max_listpack_entries, 7);
}

#[test]
fn info_tells_what_clients_look_for() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.check("GET a", "\"1\"");
    rig.check("GET b", "(nil)");
    rig.check("INCRBY c x", "!ERR value is not an integer or out of range");
    rig.check("GET", "!ERR wrong number of arguments for 'get' command");
    let info = rig.run("INFO everything");
    for field in [
        "redis_version:7.2.5",
        "redis_mode:standalone",
        "tcp_port:6379",
        "role:master",
        "connected_clients:1",
        "maxmemory_policy:noeviction",
        "db0:keys=1,expires=0,avg_ttl=0",
        "cmdstat_get:calls=2,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0",
        "cmdstat_incrby:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1",
        "errorstat_ERR:count=2",
        "keyspace_hits:1",
        "keyspace_misses:1",
        "# Pondage",
        "batches:1",
    ] {
        assert!(info.contains(field), "{field} in {info}");
    }
    let short = rig.run("INFO replication");
    assert!(short.starts_with("=txt:\"# Replication\\r\\nrole:master"), "{short}");
    assert!(!short.contains("# Server"));
    let figures = rig.engine.figures();
    assert_eq!(figures.batches.sizes[0], 1, "one batch with one row");
    assert_eq!(figures.commands.iter().find(|(name, _)| *name == "get").unwrap().1.calls, 2);
    rig.check("CONFIG RESETSTAT", "OK");
    assert!(rig.run("INFO stats").contains("total_error_replies:0"));
}

#[test]
fn slow_commands_are_logged() {
    use std::sync::atomic::{AtomicI64, Ordering};
    static NOW: AtomicI64 = AtomicI64::new(1_700_000_000_000_000);
    let mut rig = Rig::with(Settings { slowlog_slower_than_us: 50, ..Settings::default() });
    // Each look at the clock takes long.
    rig.engine.server.clock = Some(|| NOW.fetch_add(100, Ordering::Relaxed));
    rig.run("CLIENT SETNAME me");
    rig.check("GET a", "(nil)");
    rig.check("SLOWLOG RESET", "OK");
    rig.check("SET a \"x y\"", "OK");
    let log = rig.run("SLOWLOG GET");
    assert!(log.contains(r#"100 ["SET" "a" "x y"] "127.0.0.1:50001" "me"]"#), "{log}");
    assert!(!log.contains("GET\" \"a"), "fast commands are not timed: {log}");
    rig.check("CONFIG SET slowlog-log-slower-than -1", "OK");
    rig.check("SLOWLOG RESET", "OK");
    rig.check("SET a 1", "OK");
    rig.check("SLOWLOG LEN", "0");
    assert!(rig.engine.figures().batches.commit_us > 0);
    // All are wanted: fast ones, too.
    rig.check("CONFIG SET slowlog-log-slower-than 0", "OK");
    rig.check("SLOWLOG RESET", "OK");
    rig.check("GET a", "\"1\"");
    assert!(rig.run("SLOWLOG GET").contains(r#"["GET" "a"]"#));
    // One that has blocked is logged when it has an answer.
    let other = rig.client();
    rig.run_as(other, "BLPOP list 0");
    assert!(!rig.run("SLOWLOG GET").contains("BLPOP"));
    rig.check("RPUSH list x", "1");
    assert_eq!(rig.run("SLOWLOG GET").matches("BLPOP").count(), 1);
}

#[test]
fn questions_in_a_transaction_are_answered() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    for line in ["MULTI", "SET b 1", "DBSIZE", "INCRBY n 1", "DBSIZE", "INFO keyspace"] {
        rig.run(line);
    }
    let reply = rig.run("EXEC");
    // The count is of what had committed before the transaction.
    assert!(reply.starts_with("[OK 1 1 1 =txt:"), "{reply}");
    rig.reads("GET n", "\"1\"");
    rig.reads("DBSIZE", "3");
}

#[test]
fn debug_reload_reads_everything_again() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.check("DEBUG RELOAD", "OK");
    let loads = rig.tables.lock().loads;
    rig.check("GET a", "\"1\"");
    assert_eq!(rig.tables.lock().loads, loads + 1);
    rig.run("MULTI");
    rig.check("SAVE", "!ERR Command not allowed inside a transaction");
    rig.check("EXEC", "!EXECABORT Transaction discarded because of previous errors.");
}

#[test]
fn an_exec_that_is_refused_discards() {
    let mut rig = Rig::new();
    let aborted = "!EXECABORT Transaction discarded because of: wrong number of arguments for \
                   'exec' command";
    rig.check("MULTI", "OK");
    rig.check("EXEC x", aborted);
    rig.check("EXEC", "!ERR EXEC without MULTI");
    rig.check("EXEC x", aborted);
    rig.check("MULTI", "OK");
    rig.check("DISCARD x", "!ERR wrong number of arguments for 'discard' command");
    rig.check("EXEC", "!EXECABORT Transaction discarded because of previous errors.");
}
