//! Who may come in, and what else is said to AUTH and HELLO.

use wire::pg::auth::ScramVerifier;

use super::World;
use crate::control::messages::{Ref, ToControl, ToWorker};

const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";

fn guarded(more: &str) -> World {
    World::new(&format!(
        "listen.redis = \"127.0.0.1:6379\"\ndatabases.app.user = \"u\"\n\
         users.ann.password = \"sesame\"\nusers.bob.password = \"pass:word\"\n{more}"
    ))
}

#[test]
fn nothing_but_a_log_in_is_done_for_who_has_not_logged_in() {
    let mut world = guarded("");
    let client = world.connect();
    world.says(client, b"PING\r\nSET a 1\r\nMULTI\r\n", &NOAUTH.repeat(3));
    // As Redis: what is no command is said to be none.
    world.says(client, b"NONE\r\n", "-ERR unknown command 'NONE', with args beginning with: \r\n");
    let arity = "-ERR wrong number of arguments for 'get' command\r\n";
    world.says(client, b"GET\r\n", arity);
    let hello = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                 select the RESP protocol version at the same time\r\n";
    world.says(client, b"HELLO 3\r\n", hello);
    world.says(client, b"*11\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n");
}

#[test]
fn every_form_of_auth_lets_in_who_knows_the_password() {
    let more = "redis.default_user = \"bob\"\n";
    for (command, user) in [
        ("AUTH ann sesame", "ann"),
        ("AUTH ann:sesame", "ann"),
        ("auth pass:word", "bob"),
        ("AUTH bob pass:word", "bob"),
        ("AUTH bob:pass:word", "bob"),
        ("AUTH default pass:word", "bob"),
    ] {
        let mut world = guarded(more);
        let client = world.connect();
        world.says(client, format!("{command}\r\nPING\r\n").as_bytes(), "+OK\r\n+PONG\r\n");
        let conn = world.plane.clients[client].conn;
        let name = world.plane.shared.engine().session(conn).expect("a session").user.clone();
        assert_eq!(&*name, user, "{command}");
    }
    for command in ["AUTH ann sesam", "AUTH zoe sesame", "AUTH sesame", "AUTH ann \"\"", "AUTH a:b"]
    {
        let mut world = guarded(more);
        let client = world.connect();
        let expected = format!("{WRONG}{NOAUTH}");
        world.says(client, format!("{command}\r\nPING\r\n").as_bytes(), &expected);
    }
}

#[test]
fn malformed_log_ins_are_told_what_redis_tells_them() {
    let mut world = guarded("redis.users = [\"ann\"]\n");
    let client = world.connect();
    world.says(client, b"AUTH\r\n", "-ERR wrong number of arguments for 'auth' command\r\n");
    world.says(client, b"AUTH a b c\r\n", "-ERR syntax error\r\n");
    let nobody =
        "-ERR AUTH <password> called without any password configured for the default user. \
                  Are you sure your configuration is correct?\r\n";
    world.says(client, b"AUTH sesame\r\n", nobody);
    world.says(client, b"AUTH bob pass:word\r\n", WRONG);
    world.says(client, b"HELLO 4\r\n", "-NOPROTO unsupported protocol version\r\n");
    let version = "-ERR Protocol version is not an integer or out of range\r\n";
    world.says(client, b"HELLO three\r\n", version);
    world.says(client, b"HELLO 3 AUTH ann\r\n", "-ERR Syntax error in HELLO option 'AUTH'\r\n");
    let name = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
    world.says(client, b"HELLO 3 SETNAME \"a b\"\r\n", name);
    world.says(client, b"AUTH ann sesame\r\nMULTI\r\n", "+OK\r\n+OK\r\n");
    world.says(client, b"AUTH x\r\n", "-ERR Command not allowed inside a transaction\r\n");
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    world.says(client, b"EXEC\r\n", aborted);
}

#[test]
fn hello_logs_in_names_the_client_and_changes_the_protocol() {
    let mut world = guarded("");
    let client = world.connect();
    world.send(client, b"HELLO 3 AUTH ann sesame SETNAME worker-1\r\nGET none\r\n");
    world.settle();
    let heard = world.heard(client);
    assert!(heard.starts_with("%7\\r\\n$6\\r\\nserver\\r\\n$5\\r\\nredis\\r\\n"), "{heard}");
    assert!(heard.contains("proto\\r\\n:3\\r\\n"), "{heard}");
    assert!(heard.ends_with("modules\\r\\n*0\\r\\n_\\r\\n"), "{heard}");
    let conn = world.plane.clients[client].conn;
    assert_eq!(&*world.plane.shared.engine().session(conn).expect("a session").name, b"worker-1");
    world.send(client, b"HELLO 2\r\n");
    world.settle();
    assert!(world.heard(client).starts_with("*14\\r\\n$6\\r\\nserver"));
}

#[test]
fn hello_in_a_transaction_changes_the_protocol_of_what_follows() {
    let mut world = guarded("");
    let client = world.connect();
    world.says(client, b"AUTH ann sesame\r\n", "+OK\r\n");
    let lines = "MULTI\r\nHGETALL none\r\nHELLO 3\r\nHGETALL none\r\nHELLO x\r\nEXEC\r\n";
    world.send(client, lines.as_bytes());
    world.settle();
    world.send(client, b"GET none\r\n");
    world.settle();
    let heard = world.heard(client);
    let queued =
        "+OK\\r\\n+QUEUED\\r\\n+QUEUED\\r\\n+QUEUED\\r\\n+QUEUED\\r\\n*4\\r\\n*0\\r\\n%7\\r\\n";
    assert!(heard.starts_with(queued), "{heard}");
    let rest = "modules\\r\\n*0\\r\\n%0\\r\\n-ERR Protocol version is not an integer or out of \
                range\\r\\n_\\r\\n";
    assert!(heard.ends_with(rest), "{heard}");
}

#[test]
fn a_verifier_is_checked_elsewhere_and_what_follows_waits() {
    let verifier = ScramVerifier::derive("sesame", b"salt", 1);
    let text = format!("users.zoe.password = \"{verifier}\"\n");
    for (right, expected) in [
        (Ok(true), "+OK\r\n+PONG\r\n".to_owned()),
        (Ok(false), format!("{WRONG}{NOAUTH}")),
        (Err("no".to_owned()), format!("-ERR the user could not be looked up: no\r\n{NOAUTH}")),
    ] {
        let mut world = guarded(&text);
        let client = world.connect();
        world.says(client, b"AUTH zoe sesame\r\nPING\r\n", "");
        let Some(ToControl::LogIn { client: of, user, password, secret, .. }) = world.control.pop()
        else {
            panic!("nobody was asked")
        };
        assert_eq!(
            (user.as_str(), password.as_slice(), secret.is_some()),
            ("zoe", &b"sesame"[..], true)
        );
        // An answer for who was here before is nobody's.
        let gone = Ref { generation: of.generation + 1, ..of };
        world.plane.told(ToWorker::LoggedIn { client: gone, right: Ok(true) });
        world.says(client, b"", "");
        world.plane.told(ToWorker::LoggedIn { client: of, right });
        world.says(client, b"", &expected);
    }
}

#[test]
fn who_does_not_log_in_in_time_is_closed() {
    let mut world = guarded("runtime.login_timeout = \"2s\"\n");
    let (late, known) = (world.connect(), world.connect());
    world.says(known, b"AUTH ann sesame\r\n", "+OK\r\n");
    for _ in 0..30 {
        world.now = world.now.after(std::time::Duration::from_millis(100));
        world.plane.begin_turn(world.now);
        world.turn();
    }
    assert_eq!(world.closed, [late]);
}
