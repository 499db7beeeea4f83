//! Look-ups of secrets, and cancel requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wire::pg::auth::Secret;

use super::server::{tls, Server};
use crate::config::{AuthQuery, Config, Host, PoolConfig, ServerTlsMode};
use crate::control::authquery::{AuthQueries, LookedUp, CONNECTIONS_MAX};
use crate::control::dial::Dialer;
use crate::control::messages::OpenKind;

const QUERY: &str = "SELECT rolname, rolpassword, rolvaliduntil FROM pg_authid \
                     WHERE rolname = $1 AND rolcanlogin";

const USERS: &str = "
CREATE ROLE looker LOGIN SUPERUSER PASSWORD 'looking';
CREATE ROLE past LOGIN PASSWORD 'pencil' VALID UNTIL '2020-01-01';
CREATE ROLE future LOGIN PASSWORD 'pencil' VALID UNTIL '2999-01-01';
CREATE ROLE for_ever LOGIN PASSWORD 'pencil' VALID UNTIL 'infinity';
CREATE ROLE nologin PASSWORD 'pencil';
CREATE ROLE \"odd ' name\" LOGIN PASSWORD 'pencil';
";

fn query(sql: &str, user: &str) -> AuthQuery {
    AuthQuery { sql: sql.into(), user: user.to_owned(), database: None, cache: Duration::ZERO }
}

fn asked(config: &mut Config) -> &mut AuthQuery {
    let app = config.databases.get_mut("app").expect("a database");
    app.auth_query.get_or_insert_with(|| query("", ""))
}

pub(super) type Answer = Result<Option<Secret>, String>;

pub(super) struct Asking {
    pub(super) server: Server,
    config: Config,
    pub(super) pool: PoolConfig,
    queries: AuthQueries,
}

impl Asking {
    pub(super) async fn start(password: &str) -> Asking {
        let server = Server::start().await;
        server.run(USERS).await;
        let text = format!("[users.looker]\npassword = \"{password}\"\n[databases.app]\n");
        let mut config = Config::from_text(&text).unwrap_or_else(|e| panic!("{e}"));
        let pool = server.config("scram");
        let queries = AuthQueries::new(Arc::new(Dialer::default()));
        *asked(&mut config) = query(QUERY, "looker");
        Asking { server, config, pool, queries }
    }

    /// Of the database `app`.
    fn be_asked(&mut self, sql: &str, user: &str) {
        *asked(&mut self.config) = query(sql, user);
    }

    pub(super) async fn ask(&self, user: &str) -> Answer {
        self.look_up(user, false).await.map(|found| found.secret)
    }

    async fn look_up(&self, user: &str, again: bool) -> Result<LookedUp, String> {
        self.queries.look_up(&self.config, &self.pool, user.to_owned(), again).await
    }

    fn keep_for(&mut self, time: Duration) {
        asked(&mut self.config).cache = time;
    }

    /// Queries that the database has seen.
    async fn queries(&self) -> u64 {
        self.server.value("SELECT last_value FROM asked").await.parse().expect("a number")
    }

    pub(super) fn forget(&self) {
        self.queries.forget();
    }

    async fn knows(&self, user: &str) -> bool {
        self.ask(user).await.unwrap_or_else(|e| panic!("{user}: {e}")).is_some()
    }
}

#[tokio::test]
async fn a_look_up_finds_secrets_and_honours_valid_until() {
    let mut asking = Asking::start("looking").await;
    let secret = asking.ask("scram").await.expect("answer").expect("secret");
    assert!(matches!(secret, Secret::Scram(_)) && secret.check_plain("scram", b"pencil"));
    let secret = asking.ask("md5").await.expect("answer").expect("secret");
    assert!(matches!(secret, Secret::Md5(_)) && secret.check_plain("md5", b"pencil"));
    for user in ["future", "for_ever", "odd ' name"] {
        assert!(asking.knows(user).await, "{user}");
    }
    for user in ["past", "nologin", "nobody", "", "x' OR true --"] {
        assert!(!asking.knows(user).await, "{user}");
        assert!(!asking.look_up(user, false).await.expect("answer").known, "{user}");
    }
    // Who has no password is somebody.
    asking.server.run("CREATE ROLE bare LOGIN").await;
    let bare = LookedUp { known: true, secret: None, kept: false };
    assert_eq!(asking.look_up("bare", false).await, Ok(bare));

    // One connection serves many at once, and another replaces it when it is lost.
    let many = (0..200).map(|_| asking.ask("scram"));
    let answers = futures_all(many).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Some(_)))));
    let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'looker'";
    assert_eq!(asking.server.value(count).await, "1");
    let kill = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                WHERE usename = 'looker'";
    asking.server.run(kill).await;
    let began = Instant::now();
    while !matches!(asking.ask("scram").await, Ok(Some(_))) {
        assert!(began.elapsed() < Duration::from_secs(10), "no new connection");
    }

    asking.pool.upstream.tls =
        tls(ServerTlsMode::VerifyCa, Some(asking.server.certificates.ca_file.clone()));
    asking.queries.forget();
    assert!(asking.knows("scram").await);
    let ssl =
        "SELECT string_agg(ssl::text, ',') FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
               WHERE usename = 'looker'";
    let began = Instant::now();
    while asking.server.value(ssl).await != "true" {
        assert!(began.elapsed() < Duration::from_secs(10), "the old connection stays");
    }
}

/// All of them at once on this thread.
async fn futures_all<F: std::future::Future<Output = Answer>>(
    futures: impl Iterator<Item = F>,
) -> Vec<Answer> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        let mut pending = false;
        for (future, answer) in &mut waiting {
            if answer.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(ready) => *answer = Some(ready),
                    std::task::Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
    waiting.into_iter().filter_map(|(_, answer)| answer).collect()
}

#[tokio::test]
async fn a_look_up_that_fails_says_why_without_saying_where() {
    let mut asking = Asking::start("wrong").await;
    let why = asking.ask("scram").await.expect_err("wrong password");
    assert!(why.contains("password authentication failed"), "{why}");
    assert!(!why.contains("127.0.0.1"), "{why}");

    for (sql, part) in [
        ("SELECT 1", "must take one parameter, $1, the user; it takes 0"),
        ("SELECT $1::text, $2::text", "must take one parameter, $1, the user; it takes 2"),
        ("SELECT $1::text", "must give two columns, user and secret, or a third"),
        ("SELECT $1::text, 'x', now(), 4", "until when the secret is valid; it gives 4"),
        ("SELECT $1::text, 'x', current_date", "the third column of auth.query is date"),
        ("SELECT $1::text, 1 AS secret", "the column \"secret\" of auth.query is int4, not text"),
        ("SELECT $1::text, 'x' FROM generate_series(1, 3)", "auth.query gave 3 rows, not one"),
        ("SELECT NULL::name, 'x' WHERE $1 <> ''", "auth.query gave a row whose user is NULL"),
        ("SELECT $1::text, 'x' FROM nowhere", "42P01: relation \"nowhere\" does not exist"),
        ("SELECT $1::text, (1 / length('') )::text", "the query failed"),
        ("SELECT $1::text, 'SCRAM-SHA-256$1'", "verifier"),
    ] {
        asking.be_asked(sql, "trusted");
        let why = asking.ask("scram").await.expect_err(sql);
        assert!(why.contains(part), "{sql}: {why}");
    }
    // None of these keeps others from being asked.
    for (sql, secret) in [
        // Another's secret is not this user's.
        ("SELECT 'other', 'x' WHERE $1 <> ''", None),
        ("SELECT $1::text, NULL::text", None),
        ("SELECT $1::varchar, 'x'::bpchar", Some("x")),
        // What a client may not see can't be looked up through its search_path either.
        ("SELECT $1::text, current_setting('search_path')", Some("pg_catalog")),
    ] {
        asking.be_asked(sql, "trusted");
        let found = asking.ask("scram").await.expect("answer");
        assert_eq!(found, secret.map(|secret| Secret::Plain(secret.to_owned())), "{sql}");
    }
}

#[tokio::test]
async fn each_database_has_its_own_query_and_nothing_of_anothers() {
    let mut asking = Asking::start("looking").await;
    let other = Server::start().await;
    other.run(USERS).await;
    other.run("CREATE ROLE only_there LOGIN PASSWORD 'pencil'").await;
    asking.server.run("CREATE ROLE only_here LOGIN PASSWORD 'pencil'").await;
    let text = format!(
        "[users.looker]\npassword = \"looking\"\n\
         [auth]\nquery_user = \"looker\"\nquery_cache = \"600s\"\n\
         [databases.app]\n[databases.constant]\nauth_query_user = \"trusted\"\n\
         auth_query = \"SELECT $1::text, 'constant'\"\n\
         [databases.away]\nauth_query_database = \"there\"\n\
         [databases.there]\nhost = \"127.0.0.1\"\nport = {}\ndbname = \"postgres\"\n\
         [databases.shut]\nauth_query_database = \"off\"\n[databases.off]\ndisabled = true\n\
         [databases.here]\nauth_query_database = \"template1\"\n",
        other.cluster.port()
    );
    asking.config = Config::from_text(&text).unwrap_or_else(|e| panic!("{e}"));
    let mut of = async |database: &str, user: &str| {
        asking.pool.database = database.to_owned();
        asking.ask(user).await
    };
    // What one has found does not count for the other.
    assert!(of("app", "only_here").await.expect("answer").is_some());
    let constant = Some(Secret::Plain("constant".to_owned()));
    assert_eq!(of("constant", "only_here").await, Ok(constant.clone()));
    assert_eq!(of("constant", "nobody").await, Ok(constant));
    assert_eq!(of("app", "nobody").await, Ok(None));
    // Another database may have the users, at another server, or at the same one by its name there.
    assert!(of("away", "only_there").await.expect("answer").is_some());
    assert_eq!(of("away", "only_here").await, Ok(None));
    assert_eq!(of("app", "only_there").await, Ok(None));
    assert!(of("here", "only_here").await.expect("answer").is_some());
    let why = of("shut", "only_here").await.expect_err("disabled");
    assert_eq!(why, "authentication database \"off\" is disabled");
    let of_looker = "SELECT string_agg(DISTINCT datname, ' ' ORDER BY datname) \
                     FROM pg_stat_activity WHERE usename = 'looker'";
    assert_eq!(asking.server.value(of_looker).await, "postgres template1");
}

/// The sixty-fifth database found nobody until one of the others had been idle for ten minutes.
#[tokio::test]
async fn more_databases_than_connections_take_turns() {
    let mut asking = Asking::start("looking").await;
    for number in 0..CONNECTIONS_MAX + 6 {
        let sql = format!("{QUERY} AND {number} = {number}");
        asking.be_asked(&sql, "looker");
        assert!(asking.knows("scram").await, "{number}");
    }
    let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'looker'";
    let began = Instant::now();
    while asking.server.value(count).await.parse::<usize>().expect("a number") > CONNECTIONS_MAX {
        assert!(began.elapsed() < Duration::from_secs(60), "they stay");
    }
}

#[tokio::test]
async fn a_cancel_request_reaches_its_connection_with_and_without_tls() {
    let server = Server::start().await;
    let socket = Host::Unix(server.cluster.directory().to_owned());
    let mut secure = server.config("scram");
    secure.upstream.tls = tls(ServerTlsMode::Require, None);
    for config in [server.config("scram"), secure, server.config_to("scram", None, socket)] {
        let dialer = Dialer::default();
        let opened = dialer.open(&config, None, &OpenKind::Pooled).await.expect("open");
        let (ends, pid, key) = (opened.ends, opened.pid, opened.key.clone());
        let running =
            std::thread::spawn(move || super::opening::run(opened.link, "SELECT pg_sleep(60)"));
        let active = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'PgSleep'"
        );
        let began = Instant::now();
        while server.value(&active).await != "1" {
            assert!(began.elapsed() < Duration::from_secs(10), "the query does not run");
        }
        dialer.cancel(&config, &ends, pid, &key).await;
        let said = running.join().expect("query");
        assert!(said.contains("57014"), "{said}");
    }
}

/// Two databases whose lists began with the same host shared a connection for look-ups, which had
/// gone on to the second host of one of them: the other's secrets came from there.
#[tokio::test]
async fn lists_that_begin_alike_have_their_own_look_ups() {
    let mut asking = Asking::start("looking").await;
    let other = Server::start().await;
    other.run(USERS).await;
    other.run("CREATE ROLE only_here LOGIN PASSWORD 'pencil'").await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let closed = nobody.local_addr().expect("address").port();
    drop(nobody);
    asking.pool.upstream.port = closed;
    let second = |port| vec![(Host::Tcp("127.0.0.1".to_owned()), port)];
    asking.pool.upstream.several.others = second(asking.server.cluster.port());
    assert!(asking.knows("scram").await && !asking.knows("only_here").await);
    asking.pool.upstream.several.others = second(other.cluster.port());
    assert!(asking.knows("only_here").await);
}

/// Counts itself.
const COUNTING: &str = "SELECT rolname, rolpassword, rolvaliduntil FROM pg_authid \
                        WHERE rolname = $1 AND rolcanlogin \
                        AND nextval('public.asked') > 0";

async fn counting() -> Asking {
    let mut asking = Asking::start("looking").await;
    asking.server.run("CREATE SEQUENCE public.asked").await;
    // One number is taken, so that the others count.
    asking.server.run("SELECT nextval('public.asked')").await;
    asking.be_asked(COUNTING, "looker");
    asking
}

#[tokio::test]
async fn log_ins_of_one_user_at_one_moment_share_a_query() {
    let mut asking = counting().await;
    let answers = futures_all((0..200).map(|_| asking.ask("scram"))).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Some(_)))));
    assert_eq!(asking.queries().await, 2, "one for all of them");
    assert!(!asking.look_up("scram", false).await.expect("answer").kept, "nothing is kept");
    assert_eq!(asking.queries().await, 3);
    asking.keep_for(Duration::from_secs(600));
    for (user, kept) in [("scram", false), ("scram", true), ("md5", false), ("scram", true)] {
        let found = asking.look_up(user, false).await.expect("answer");
        assert_eq!((found.secret.is_some(), found.kept), (true, kept), "{user}");
    }
    assert_eq!(asking.queries().await, 5);
    asking.queries.forget();
    assert!(!asking.look_up("scram", false).await.expect("answer").kept, "after a reload");
}

#[tokio::test]
async fn what_is_kept_ends_with_valid_until_and_when_it_is_asked_again() {
    let mut asking = counting().await;
    asking.keep_for(Duration::from_secs(600));
    asking.server.run("CREATE ROLE short LOGIN PASSWORD 'pencil'").await;
    asking
        .server
        .run(
            "DO $$ BEGIN EXECUTE format('ALTER ROLE short VALID UNTIL %L', \
              clock_timestamp() + interval '3 seconds'); END $$",
        )
        .await;
    assert!(asking.knows("short").await);
    let before = asking.queries().await;
    let began = Instant::now();
    while asking.knows("short").await {
        assert!(began.elapsed() < Duration::from_secs(30), "it is over");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(asking.queries().await, before, "the date was known");
    // Dropped and made anew with another password.
    asking.server.run("DROP ROLE short").await;
    assert_eq!(asking.look_up("short", true).await.expect("answer").secret, None);
    asking.server.run("CREATE ROLE short LOGIN PASSWORD 'other'").await;
    let known = asking.look_up("short", false).await.expect("answer");
    assert!(known.secret.is_none() && known.kept, "that there is none is kept as well");
    let secret = asking.look_up("short", true).await.expect("answer").secret.expect("secret");
    assert!(secret.check_plain("short", b"other"));
    let known = asking.look_up("short", false).await.expect("answer");
    assert!(known.kept && known.secret == Some(secret));
}

#[tokio::test]
async fn while_the_database_is_away_what_is_kept_goes_on_and_nothing_else() {
    let mut asking = counting().await;
    asking.keep_for(Duration::from_secs(600));
    assert!(asking.knows("scram").await);
    asking.pool.connect_timeout = Duration::from_secs(2);
    asking.server.run("ALTER ROLE looker NOLOGIN").await;
    let kill = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                WHERE usename = 'looker'";
    asking.server.run(kill).await;
    assert!(asking.look_up("scram", false).await.expect("it is known").kept);
    asking.look_up("md5", false).await.expect_err("nobody can be asked");
    asking.look_up("scram", true).await.expect_err("nobody can be asked");
    asking.server.run("ALTER ROLE looker LOGIN").await;
    let began = Instant::now();
    while asking.look_up("md5", false).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(10), "no new connection");
    }
}

/// The connection ended with the first look-up after it was killed.
#[tokio::test]
async fn a_connection_that_is_killed_costs_no_look_up() {
    let asking = counting().await;
    for round in 0..5 {
        assert!(asking.knows("scram").await, "{round}");
        let kill = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                    WHERE usename = 'looker'";
        asking.server.run(kill).await;
    }
}
