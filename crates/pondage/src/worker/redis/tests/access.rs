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

/// A file of rules that goes when the test ends.
struct Rules(std::path::PathBuf);

impl Rules {
    fn new(name: &str, text: &str) -> Rules {
        let path = std::env::temp_dir().join(format!("pondage-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        Rules(path)
    }

    fn world(&self, more: &str) -> World {
        let path = self.0.display();
        guarded(&format!("auth.method = \"hba\"\nauth.hba_file = \"{path}\"\n{more}"))
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const RULES: &str = "\
local all all trust
host other all 0.0.0.0/0 trust
host app ann 10.9.0.0/16 reject
hostssl app ann 10.0.0.0/8 scram-sha-256
hostnossl app ann 10.0.0.0/8 reject
host app bob 10.1.0.0/16 trust
host all bob 10.2.0.0/16 md5
host all,app \"bo b\" all reject
";

/// Who was rejected by the rules came in by Redis, with his password.
#[test]
fn rules_let_in_by_user_address_tls_and_database() {
    let rules = Rules::new("redis-rules", RULES);
    let mut world = rules.world("");
    let tls = || (Some("TLSv1.3".into()), None);
    let refused = |who: &str, how: &str, host: &str, why: &str| {
        format!(
            "-NOPERM {who} host \"{host}\", user \"{how}\", database \"app\", {why}\r\n{NOAUTH}"
        )
    };
    let (no_entry, rejects) = ("no pg_hba.conf entry for", "pg_hba.conf rejects connection for");
    let (p0318, p0319) = (
        "no encryption. The file is auth.hba_file. [P0318]",
        "no encryption. The file is auth.hba_file. [P0319]",
    );
    let let_in = "+OK\r\n+PONG\r\n".to_owned();
    let wrong = format!("{WRONG}{NOAUTH}");
    for (address, tls, command, expected) in [
        ([10, 0, 0, 1], tls(), "AUTH ann sesame", let_in.clone()),
        ([10, 0, 0, 2], tls(), "AUTH ann wrong", wrong.clone()),
        (
            [10, 0, 0, 1],
            (None, None),
            "AUTH ann sesame",
            refused(rejects, "ann", "10.0.0.1", p0319),
        ),
        (
            [10, 9, 0, 1],
            (None, None),
            "AUTH ann sesame",
            refused(rejects, "ann", "10.9.0.1", p0319),
        ),
        (
            [127, 0, 0, 1],
            (None, None),
            "AUTH ann sesame",
            refused(no_entry, "ann", "127.0.0.1", p0318),
        ),
        ([10, 1, 0, 1], (None, None), "AUTH bob whatever", let_in.clone()),
        ([10, 2, 0, 1], (None, None), "AUTH bob pass:word", let_in.clone()),
        ([10, 2, 0, 2], (None, None), "AUTH bob whatever", wrong.clone()),
        (
            [10, 4, 0, 1],
            (None, None),
            "HELLO 3 AUTH bob pass:word",
            refused(no_entry, "bob", "10.4.0.1", p0318),
        ),
        (
            [10, 4, 0, 1],
            (None, None),
            "AUTH \"bo b\" x",
            refused(rejects, "bo b", "10.4.0.1", p0319),
        ),
    ] {
        let client = world.connect_from(address, tls);
        world.says(client, format!("{command}\r\nPING\r\n").as_bytes(), &expected);
    }
}

#[test]
fn a_rule_that_trusts_the_default_user_asks_for_nothing() {
    let rules = Rules::new("redis-default", RULES);
    let mut world = rules.world("redis.default_user = \"bob\"\n");
    let trusted = world.connect_from([10, 1, 0, 1], (None, None));
    world.says(trusted, b"PING\r\nACL WHOAMI\r\n", "+PONG\r\n$3\r\nbob\r\n");
    world.says(trusted, b"RESET\r\nPING\r\n", "+RESET\r\n+PONG\r\n");
    let other = world.connect_from([10, 2, 0, 1], (None, None));
    world.says(other, b"PING\r\n", NOAUTH);
    world.says(other, b"AUTH pass:word\r\nPING\r\n", "+OK\r\n+PONG\r\n");
}

#[test]
fn the_method_of_the_other_door_holds_here() {
    let peer =
        "-NOPERM Peer authentication failed for user \"ann\". The method peer works on Unix \
                sockets only.\r\n";
    for (method, more, reply) in [
        ("peer", "listen.postgres = [\"unix:/tmp\"]\n", peer),
        ("scram-sha-256", "", "+OK\r\n"),
        ("trust", "", "+OK\r\n"),
        ("trust", "auth.known_only = true\n", "+OK\r\n"),
    ] {
        let mut world = guarded(&format!("auth.method = \"{method}\"\n{more}"));
        let client = world.connect();
        world.says(client, b"AUTH ann sesame\r\n", reply);
    }
    let mut world = guarded("auth.method = \"trust\"\nauth.known_only = true\n");
    let client = world.connect();
    world.says(client, b"PING\r\n", NOAUTH);
    let stranger = "-NOPERM \"trust\" authentication failed for user \"eve\". \
                    auth.known_only is set. [P0331]\r\n";
    world.says(client, b"AUTH eve x\r\n", stranger);
}

/// Passwords could be guessed here as fast as the door answers, on one connection or on many.
#[test]
fn who_guesses_waits_on_every_connection_and_nobody_else() {
    let mut world = guarded("");
    let client = world.connect();
    world.says(client, &b"AUTH ann x\r\n".repeat(6), &WRONG.repeat(6));
    // The seventh waits, and what is behind it.
    world.says(client, b"AUTH ann sesame\r\nPING\r\n", "");
    let again = world.connect();
    world.says(again, b"HELLO 3 AUTH ann x\r\n", "");
    let other = world.connect();
    world.says(other, b"AUTH bob pass:word\r\n", "+OK\r\n");
    let elsewhere = world.connect_from([10, 0, 0, 1], (None, None));
    world.says(elsewhere, b"AUTH ann sesame\r\n", "+OK\r\n");
    let due = world.plane.next_due().expect("they wait");
    assert!(due > world.now);
    let pass = |world: &mut World, millis: u64| {
        world.now = world.now.after(std::time::Duration::from_millis(millis));
        world.plane.begin_turn(world.now);
    };
    pass(&mut world, 100);
    world.says(client, b"", "+OK\r\n+PONG\r\n");
    world.says(again, b"", "");
    pass(&mut world, 2_000);
    world.says(again, b"", WRONG);
    // A right password has ended the wait of its address and user.
    world.says(again, b"AUTH ann sesame\r\n", "+OK\r\n");
}

#[test]
fn those_who_wait_are_bounded_and_one_that_leaves_is_forgotten() {
    let mut world = guarded("");
    let client = world.connect();
    for _ in 0..20 {
        world.send(client, b"AUTH ann x\r\n");
        world.turn();
        let due = world.plane.next_due().unwrap_or(world.now);
        world.now = world.now.max(due);
        world.plane.begin_turn(world.now);
        world.turn();
        world.heard(client);
    }
    let crowd: Vec<u32> = (0..8).map(|_| world.connect()).collect();
    for client in &crowd {
        world.send(*client, b"AUTH ann x\r\n");
    }
    world.turn();
    let told: Vec<String> = crowd.iter().map(|client| world.heard(*client)).collect();
    let refused =
        "-ERR too many failed log-ins from this address. Try again in a minute. [P0320]\r\n";
    let refused = refused.escape_default().to_string();
    assert!(told.contains(&refused), "{told:?}");
    assert!(told.iter().any(String::is_empty), "{told:?}");
    for client in crowd {
        world.plane.client_broken(client);
    }
    world.turn();
    world.now = world.now.after(std::time::Duration::from_secs(60));
    world.plane.begin_turn(world.now);
    world.turn();
    assert_eq!(world.plane.next_due().filter(|due| *due <= world.now), None);
}
