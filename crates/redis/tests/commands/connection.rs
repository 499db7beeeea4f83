//! Commands about connections.

use redis::engine::Ran;
use redis::reply::Recorded;
use redis::session::ConnId;

use crate::rig::{words, Rig};

fn try_run(rig: &mut Rig, conn: ConnId, line: &str) -> (Ran, String) {
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(conn, words(line).args(), rig.now, &mut reply);
    (ran, format!("{reply:?}"))
}

#[test]
fn simple_commands_reply_as_in_redis() {
    let mut rig = Rig::new();
    for (line, reply) in [
        ("PING", "PONG"),
        ("PING hello", "\"hello\""),
        ("PING a b", "!ERR wrong number of arguments for 'ping' command"),
        ("ECHO x", "\"x\""),
        ("SELECT 15", "OK"),
        ("SELECT 16", "!ERR DB index is out of range"),
        ("SELECT x", "!ERR value is not an integer or out of range"),
        ("CLIENT ID", "1"),
        ("CLIENT GETNAME", "(nil)"),
        ("CLIENT SETNAME me", "OK"),
        ("CLIENT GETNAME", "\"me\""),
        (
            "CLIENT SETNAME \"a b\"",
            "!ERR Client names cannot contain spaces, newlines or special characters.",
        ),
        ("CLIENT SETINFO lib-name lib", "OK"),
        ("CLIENT SETINFO lib-ver 1.0", "OK"),
        ("CLIENT SETINFO foo x", "!ERR Unrecognized option 'foo'"),
        (
            "CLIENT SETINFO lib-ver \"1 0\"",
            "!ERR lib-ver cannot contain spaces, newlines or special characters.",
        ),
        ("CLIENT", "!ERR wrong number of arguments for 'client' command"),
        ("CLIENT ID x", "!ERR wrong number of arguments for 'client|id' command"),
        ("CLIENT FOO", "!ERR unknown subcommand 'FOO'. Try CLIENT HELP."),
        ("CLIENT NO-EVICT on", "OK"),
        ("CLIENT NO-TOUCH off", "OK"),
        ("CLIENT NO-TOUCH x", "!ERR syntax error"),
        ("CLIENT LIST TYPE foo", "!ERR Unknown client type 'foo'"),
        ("CLIENT LIST ID x", "!ERR Invalid client ID"),
        ("CLIENT LIST TYPE normal x", "!ERR syntax error"),
        ("CLIENT KILL 1.2.3.4:5", "!ERR No such client"),
        ("CLIENT KILL ID 0", "!ERR client-id should be greater than 0"),
        ("CLIENT KILL ID 77", "0"),
        ("CLIENT KILL ID 1 SKIPME maybe", "!ERR syntax error"),
        ("CLIENT UNBLOCK 99", "0"),
        ("CLIENT UNBLOCK 99 foo", "!ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        ("CLIENT PAUSE x", "!ERR timeout is not an integer or out of range"),
        ("CLIENT PAUSE -1", "!ERR timeout is negative"),
        ("CLIENT PAUSE 1 some", "!ERR CLIENT PAUSE mode must be WRITE or ALL"),
        ("HELLO x", "!ERR Protocol version is not an integer or out of range"),
        ("HELLO 4", "!NOPROTO unsupported protocol version"),
        ("HELLO 2 FOO", "!ERR Syntax error in HELLO option 'FOO'"),
        (
            "SELECT 10000000000",
            "!ERR value is out of range, value must between -2147483648 and 2147483647",
        ),
    ] {
        rig.check(line, reply);
    }
}

#[test]
fn hello_switches_the_protocol() {
    let mut rig = Rig::new();
    let fields = r#""server" "redis" "version" "7.2.5" "proto" 3 "id" 1 "mode" "standalone" "role" "master" "modules" []"#;
    let mut reply = Recorded::new(2);
    rig.engine.hello(rig.conn, Some(3), Some(b"me"), &mut reply);
    assert_eq!(format!("{reply:?}"), format!("{{{fields}}}"));
    rig.check("CLIENT GETNAME", "\"me\"");
    rig.check("HELLO", &format!("{{{fields}}}"));
    rig.check("RESET", "RESET");
    rig.check("CLIENT GETNAME", "(nil)");
    let hello = words("HELLO 3 AUTH ann secret SETNAME x");
    let hello = redis::command::connection::parse_hello(hello.args()).expect("valid").auth;
    assert_eq!(hello, Some((&b"ann"[..], &b"secret"[..])));
}

#[test]
fn clients_are_listed() {
    let mut rig = Rig::new();
    let other = rig.client();
    rig.run_as(other, "CLIENT SETNAME other");
    rig.run_as(other, "MULTI");
    rig.run_as(other, "GET x");
    rig.pass(2500);
    rig.run("SELECT 3");
    let list = rig.run("CLIENT LIST");
    let lines: Vec<&str> = list.trim_matches(['"', '=']).split("\\n").collect();
    assert_eq!(lines.len(), 3, "{list}");
    assert!(
        lines[0].contains(
            "id=1 addr=127.0.0.1:50001 laddr=127.0.0.1:6379 fd=8 name= age=2 idle=0 flags=N db=3 \
             sub=0 psub=0 ssub=0 multi=-1 "
        ),
        "{list}"
    );
    assert!(lines[0].ends_with("cmd=client|list user=ann redir=-1 resp=2 lib-name= lib-ver="));
    assert!(lines[1].contains("name=other age=2 idle=2 flags=x db=0"), "{list}");
    assert!(lines[1].contains(" multi=1 "), "{list}");
    assert!(rig.run("CLIENT LIST ID 2 9").contains("id=2 "));
    assert!(rig.run("CLIENT INFO").contains("id=1 "));
    rig.check("CLIENT LIST TYPE replica", "=txt:\"\"");
    rig.check("CLIENT KILL USER ann SKIPME yes", "1");
    assert!(!rig.run("CLIENT LIST").contains("id=2 "));
    let (ran, _) = try_run(&mut rig, other, "PING");
    assert!(matches!(ran, Ran::Done { close: true, .. }));
    let me = rig.conn;
    let (ran, reply) = try_run(&mut rig, me, "CLIENT KILL 127.0.0.1:50001");
    assert!(matches!(ran, Ran::Done { close: true, .. }), "after the reply");
    assert_eq!(reply, "OK");
}

#[test]
fn replies_can_be_turned_off() {
    let mut rig = Rig::new();
    rig.check("CLIENT REPLY SKIP", "");
    rig.check("PING", "");
    rig.check("PING", "PONG");
    rig.check("CLIENT REPLY OFF", "");
    rig.check("SET a 1", "");
    rig.check("FOO", "");
    rig.check("SUBSCRIBE c", r#"<"subscribe" "c" 1>"#);
    rig.check("UNSUBSCRIBE c", r#"<"unsubscribe" "c" 0>"#);
    rig.check("CLIENT REPLY ON", "OK");
    rig.reads("GET a", "\"1\"");
}

#[test]
fn paused_clients_wait() {
    let mut rig = Rig::new();
    let other = rig.client();
    rig.check("CLIENT PAUSE 100 WRITE", "OK");
    rig.check("GET a", "(nil)");
    assert!(matches!(try_run(&mut rig, other, "SET a 1").0, Ran::Parked));
    assert!(matches!(try_run(&mut rig, other, "PUBLISH a 1").0, Ran::Parked));
    assert!(matches!(try_run(&mut rig, other, "MULTI").0, Ran::Done { .. }));
    assert!(matches!(try_run(&mut rig, other, "GET a").0, Ran::Done { .. }));
    assert!(matches!(try_run(&mut rig, other, "EXEC").0, Ran::Done { .. }), "it only reads");
    rig.check("CLIENT UNPAUSE", "OK");
    assert_eq!(rig.run_as(other, "SET a 1"), "OK");
    rig.check("CLIENT PAUSE 100", "OK");
    assert!(matches!(try_run(&mut rig, other, "GET a").0, Ran::Parked));
    assert_eq!(rig.engine.next_due(), Some(rig.now + 100));
    rig.pass(100);
    assert_eq!(rig.run_as(other, "GET a"), "\"1\"");
}

#[test]
fn changes_of_what_was_read_are_told() {
    let mut rig = Rig::new();
    let writer = rig.client();
    rig.run_as(writer, "SET a 1");
    rig.check(
        "CLIENT CACHING yes",
        "!ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
         OPTOUT mode enabled",
    );
    rig.run("HELLO 3");
    rig.check("CLIENT TRACKING on", "OK");
    rig.check("CLIENT TRACKINGINFO", r#"{"flags" ~["on"] "redirect" 0 "prefixes" []}"#);
    rig.check("GET a", "\"1\"");
    rig.run_as(writer, "SET b 1");
    rig.run_as(writer, "SET a 2");
    rig.run_as(writer, "SET a 3");
    assert_eq!(rig.told(rig.conn), [r#"<"invalidate" ["a"]>"#], "once");
    rig.check("GET a", "\"3\"");
    let change = redis::store::Told::Changed { db: 0, key: b"a"[..].into() };
    rig.tables.told(change);
    assert_eq!(rig.told(rig.conn), [r#"<"invalidate" ["a"]>"#], "by SQL");
    rig.check("GET a", "\"3\"");
    rig.run_as(writer, "FLUSHDB");
    assert_eq!(rig.told(rig.conn), [r#"<"invalidate" (nil)>"#]);
    rig.check("CLIENT TRACKING off", "OK");
    rig.check("CLIENT GETREDIR", "-1");
}

#[test]
fn tracking_by_prefix_by_choice_and_by_redirection() {
    let mut rig = Rig::new();
    let (writer, listener) = (rig.client(), rig.client());
    rig.run("HELLO 3");
    rig.check(
        "CLIENT TRACKING on PREFIX a",
        "!ERR PREFIX option requires BCAST mode to be enabled",
    );
    rig.check("CLIENT TRACKING on BCAST PREFIX a PREFIX b NOLOOP", "OK");
    rig.check(
        "CLIENT TRACKING on BCAST PREFIX ab",
        "!ERR Prefix 'ab' overlaps with an existing prefix 'a'. Prefixes for a single client must \
         not overlap.",
    );
    rig.run_as(writer, "SET abc 1");
    rig.run_as(writer, "SET xyz 1");
    rig.run("SET a 1");
    assert_eq!(rig.told(rig.conn), [r#"<"invalidate" ["abc"]>"#]);
    rig.check("CLIENT TRACKING off", "OK");
    rig.check("CLIENT TRACKING on OPTIN", "OK");
    rig.check("GET abc", "\"1\"");
    rig.check("CLIENT CACHING yes", "OK");
    rig.check("GET xyz", "\"1\"");
    rig.check("GET a", "\"1\"");
    rig.run_as(writer, "SET abc 2");
    rig.run_as(writer, "SET xyz 2");
    rig.run_as(writer, "SET a 2");
    assert_eq!(rig.told(rig.conn), [r#"<"invalidate" ["xyz"]>"#]);
    rig.check("RESET", "RESET");
    rig.run_as(listener, "SUBSCRIBE __redis__:invalidate");
    rig.check(
        "CLIENT TRACKING on REDIRECT 99",
        "!ERR The client ID you want redirect to does not exist",
    );
    rig.check("CLIENT TRACKING on REDIRECT 3", "OK");
    rig.check("GET a", "\"2\"");
    rig.run_as(writer, "SET a 3");
    assert_eq!(rig.told(listener), [r#"<"message" "__redis__:invalidate" ["a"]>"#]);
    rig.engine.disconnect(listener);
    rig.check("GET a", "\"3\"");
    rig.run_as(writer, "SET a 4");
    assert!(rig.run("CLIENT TRACKINGINFO").contains("broken_redirect"));
}

/// Redis looks at names as at strings of C.
#[test]
fn a_name_ends_at_a_zero_byte() {
    let mut rig = Rig::new();
    rig.check("CLIENT SETNAME \"a\\x00 \\x0a\"", "OK");
    rig.check("CLIENT GETNAME", r#""a\x00 \n""#);
    assert!(rig.run("CLIENT LIST").contains(" name=a age="));
    rig.check(
        "CLIENT SETNAME \"a \"",
        "!ERR Client names cannot contain spaces, newlines or special characters.",
    );
}

#[test]
fn a_subcommand_that_there_is_not_spoils_a_transaction() {
    for line in [
        "SCRIPT NOTHING",
        "SCRIPT LOAD",
        "FUNCTION NOTHING x",
        "OBJECT NOTHING k",
        "OBJECT FREQ",
        "XGROUP NOTHING k",
        "XGROUP CREATE k g",
        "XINFO STREAM",
        "CLIENT NOTHING",
    ] {
        let mut rig = Rig::new();
        rig.check("MULTI", "OK");
        let said = rig.run(line);
        assert!(said.starts_with("!ERR "), "{line}: {said}");
        rig.check("EXEC", "!EXECABORT Transaction discarded because of previous errors.");
    }
}

#[test]
fn an_exec_without_multi_leaves_what_is_watched() {
    for line in ["MULTI x", "NOTHING"] {
        let mut rig = Rig::new();
        let other = rig.client();
        rig.check("WATCH k", "OK");
        rig.check("EXEC", "!ERR EXEC without MULTI");
        // It was taken for an EXEC that is refused.
        assert!(rig.run(line).starts_with("!ERR "));
        rig.run_as(other, "SET k 1");
        rig.check("MULTI", "OK");
        rig.check("EXEC", "(nil array)");
    }
}

/// Errors quote what a client has sent byte for byte, up to a zero byte where C's strings end.
#[test]
fn errors_quote_bytes_that_are_no_text() {
    let mut rig = Rig::new();
    let mut told = |line: &str| {
        let words = crate::rig::words(line);
        let mut bytes = Error::default();
        rig.reply_to(rig.conn, &words).tell(&mut bytes);
        bytes.0
    };
    let unknown = "ERR unknown command 'no\u{e9}', with args beginning with: '\u{ff}a' '' ";
    assert_eq!(told("\"no\\xe9\" \"\\xffa\\x00b\" \"\""), latin1(unknown));
    let unknown = "ERR unknown subcommand '\u{e9}'. Try OBJECT HELP.";
    assert_eq!(told("OBJECT \"\\xe9\" k"), latin1(unknown));
    assert_eq!(told("EXPIRE k 1 \"\\xe9\""), latin1("ERR Unsupported option \u{e9}"));
    let thrown = "EVAL \"return redis.error_reply('MY \\xe9')\" 0";
    assert_eq!(told(thrown), latin1("MY \u{e9}"));
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| c as u8).collect()
}

/// The bytes of an error.
#[derive(Default)]
struct Error(Vec<u8>);

impl redis::reply::Reply for Error {
    fn protocol(&self) -> u8 {
        2
    }
    fn error(&mut self, text: &[u8]) {
        self.0 = text.to_vec();
    }
    fn bulk(&mut self, _: &[u8]) {}
    fn simple(&mut self, _: &str) {}
    fn integer(&mut self, _: i64) {}
    fn null(&mut self) {}
    fn null_array(&mut self) {}
    fn array(&mut self, _: usize) {}
    fn map(&mut self, _: usize) {}
    fn set(&mut self, _: usize) {}
    fn push(&mut self, _: usize) {}
    fn double(&mut self, _: f64) {}
    fn decimal(&mut self, _: f64) {}
    fn boolean(&mut self, _: bool) {}
    fn big_number(&mut self, _: &str) {}
    fn switch(&mut self, _: u8) {}
    fn verbatim(&mut self, _: &str, _: &[u8]) {}
    fn mark(&self) -> usize {
        0
    }
    fn rewind(&mut self, _: usize) {}
}

#[test]
fn beyond_so_many_tracked_keys_some_are_told_as_changed() {
    let mut rig = Rig::new();
    rig.run("HELLO 3");
    rig.check("CLIENT TRACKING on", "OK");
    rig.check("MGET a b c", "[(nil) (nil) (nil)]");
    assert!(rig.told(rig.conn).is_empty());
    rig.check("CONFIG SET tracking-table-max-keys 2", "OK");
    assert_eq!(rig.told(rig.conn).len(), 1);
    rig.check("MGET d e", "[(nil) (nil)]");
    assert_eq!(rig.told(rig.conn).len(), 2);
    rig.check("CONFIG SET tracking-table-max-keys 0", "OK");
    rig.check("MGET f g h", "[(nil) (nil) (nil)]");
    assert!(rig.told(rig.conn).is_empty());
    rig.check("CONFIG GET tracking-table-max-keys", r#"{"tracking-table-max-keys" "0"}"#);
}

#[test]
fn what_is_interesting_by_prefix_comes_in_one_message_a_turn() {
    let mut rig = Rig::new();
    let writer = rig.client();
    rig.run("HELLO 3");
    rig.check("CLIENT TRACKING on BCAST PREFIX a PREFIX b NOLOOP", "OK");
    rig.run_as(writer, "MSET b1 1 a2 2 a1 1 c 1");
    assert_eq!(rig.told(rig.conn), [r#"<"invalidate" ["a1" "a2"]>"#, r#"<"invalidate" ["b1"]>"#]);
    rig.check("SET a1 own", "OK");
    assert!(rig.told(rig.conn).is_empty());
    rig.run_as(writer, "DEL a1");
    assert_eq!(rig.told(rig.conn), [r#"<"invalidate" ["a1"]>"#]);
}

#[test]
fn keys_of_a_script_that_reads_nothing_are_not_tracked() {
    let mut rig = Rig::new();
    let writer = rig.client();
    rig.run("HELLO 3");
    rig.check("CLIENT TRACKING on", "OK");
    rig.check("EVAL_RO \"return redis.call('ping')\" 1 a", "PONG");
    rig.run_as(writer, "SET a 1");
    assert!(rig.told(rig.conn).is_empty());
    rig.check("EVAL_RO \"return redis.call('get', 'a')\" 2 a b", "\"1\"");
    rig.run_as(writer, "MSET a 2 b 2");
    assert_eq!(rig.told(rig.conn), [r#"<"invalidate" ["a"]>"#]);
}

#[test]
fn a_pause_of_writes_lets_scripts_pass_that_say_they_write_nothing() {
    let mut rig = Rig::new();
    rig.check(
        "SCRIPT LOAD \"#!lua flags=no-writes\\x0areturn 1\"",
        "\"77f21361171213377cb083e2ffc2ae24ffdff8fb\"",
    );
    rig.run("FUNCTION LOAD \"#!lua name=l\\x0aredis.register_function{function_name='reads', callback=function() return 2 end, flags={'no-writes'}} redis.register_function('writes', function() return 3 end)\"");
    rig.check("CLIENT PAUSE 1000 WRITE", "OK");
    let other = rig.client();
    for (line, reply) in [
        ("EVAL \"#!lua flags=no-writes\\x0areturn 'new'\" 0", "\"new\""),
        ("EVAL_RO \"return 4\" 0", "4"),
        ("EVALSHA 77f21361171213377cb083e2ffc2ae24ffdff8fb 0", "1"),
        ("FCALL reads 0", "2"),
        ("SCRIPT EXISTS x", "[0]"),
        ("MULTI", "OK"),
        ("FCALL reads 0", "QUEUED"),
        ("EXEC", "[2]"),
    ] {
        let (ran, said) = try_run(&mut rig, other, line);
        assert!(matches!(ran, Ran::Done { .. }), "{line}: {ran:?}");
        assert_eq!(said, reply, "{line}");
    }
    for line in ["EVAL \"return 1\" 0", "FCALL writes 0", "EVALSHA 00 0"] {
        let writer = rig.client();
        let (ran, _) = try_run(&mut rig, writer, line);
        assert!(matches!(ran, Ran::Parked), "{line}: {ran:?}");
    }
    assert!(rig.run("INFO clients").contains("blocked_clients:3"));
    rig.engine.disconnect(other);
    let gone = rig.client();
    try_run(&mut rig, gone, "SET a 1");
    rig.engine.disconnect(gone);
    assert!(rig.run("INFO clients").contains("blocked_clients:3"));
    rig.check("CLIENT UNPAUSE", "OK");
    rig.turn();
    assert!(rig.run("INFO clients").contains("blocked_clients:0"));
}
