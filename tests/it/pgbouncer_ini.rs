//! An ini file of PgBouncer, run as it is and written as TOML.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::kit::cluster::{APP, APP_PASSWORD, SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::{cluster, wait, Address, Database, Gateway, Tool, WireClient};

const LOOKUP: &str = "SELECT rolname, rolpassword FROM pg_catalog.pg_authid WHERE rolname = $1";

/// `main` goes into `[pgbouncer]`, `database` into the database's connection string.
fn ini(at: (u16, &Path), name: &Database, database: &str, main: &str) -> String {
    let (port, directory) = at;
    let directory = directory.display();
    let users = format!("{directory}/userlist.txt");
    let list = format!(
        "; users\n\"{APP}\" \"{APP_PASSWORD}\"\n\"{SUPERUSER}\" \"{SUPERUSER_PASSWORD}\" rest\n"
    );
    std::fs::write(&users, list).expect("the list of users");
    let databases = format!("{directory}/databases.ini");
    let server = cluster().port;
    let line = format!("{} = host=127.0.0.1 port={server} {database}\n", name.name);
    std::fs::write(&databases, line).expect("the databases");
    format!(
        "; run as it is\n[databases]\n%include {databases}\n* = host=127.0.0.1 port={server}\n\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir = {directory}\nauth_file = {users}\nadmin_users = {SUPERUSER}\n\
         pidfile = {directory}/pgbouncer.pid\nlogfile = {directory}/pgbouncer.log\n{main}\n"
    )
}

fn mode_of(gateway: &Gateway, database: &Database) -> String {
    let mut console = console(gateway);
    let pools = console.table("show pools");
    let pool = pools.iter().find(|pool| pool["database"] == database.name).expect("a pool");
    pool["pool_mode"].clone()
}

/// As PgBouncer's own console is reached.
fn console(gateway: &Gateway) -> WireClient {
    WireClient::login(&gateway.address(), SUPERUSER, SUPERUSER_PASSWORD, "pgbouncer")
}

#[test]
fn an_ini_serves_psql_in_every_way_to_log_in() {
    let database = cluster().database();
    for method in ["trust", "any", "plain", "md5", "scram-sha-256"] {
        let main = format!("auth_type = {method}");
        // `any` needs a user in every database.
        let user = format!("user={APP}");
        let line = if method == "any" { user.as_str() } else { "" };
        let gateway = Gateway::start_ini(|port, at| {
            let text = ini((port, at), &database, line, &main);
            text.replace("* = ", &format!("* = {line} "))
        });
        let said = Tool::psql(&gateway, &database).args(["-c", "select 'hello', 1"]).run();
        assert_eq!(said, "hello|1\n", "{method}");
        assert_eq!(mode_of(&gateway, &database), "session");
        // A database of `*`, over the Unix socket.
        let directory = gateway.directory.path().display().to_string();
        let over_socket = Tool::psql(&gateway, &database).env("PGHOST", &directory);
        let said = over_socket.args(["-d", "template1", "-c", "select current_database()"]).run();
        assert_eq!(said, "template1\n", "{method}");
        if method != "trust" && method != "any" {
            let parameters = [("user", APP), ("database", database.name.as_str())];
            let refused = WireClient::try_login(&gateway.address(), "wrong", &parameters);
            assert_eq!(refused.err().expect("a wrong password").code, "28P01", "{method}");
        }
        assert!(gateway.directory.path().join("pgbouncer.pid").exists());
        let log = std::fs::read_to_string(gateway.directory.path().join("pgbouncer.log"));
        assert!(log.expect("a log file").contains(" login attempt: db=template1 user="));
    }
}

/// Whoever called himself by a name that no list has came in by `trust`.
#[test]
fn trust_is_for_users_that_are_known_and_any_for_the_databases_own() {
    let database = cluster().database();
    database.run("create table secrets(name text, secret text)");
    database.run("insert into secrets values ('ann', 'whatever')");
    let name = database.name.as_str();
    let log_in = |gateway: &Gateway, user: &str, database: &str| {
        let parameters = [("user", user), ("database", database)];
        WireClient::try_login(&gateway.address(), "", &parameters)
    };
    let stranger = "\"trust\" authentication failed";
    let line = format!("user={APP}");
    let trust = "auth_type = trust\n[users]\nlimited = pool_size=3\n";
    let gateway = Gateway::start_ini(|port, at| ini((port, at), &database, &line, trust));
    log_in(&gateway, SUPERUSER, name).expect("it is in the list").run("select 1");
    // A name in `[users]` alone makes nobody known.
    for user in ["stranger", "limited"] {
        let complaint = log_in(&gateway, user, name).err().expect("unknown");
        // PgBouncer's words.
        assert_eq!(complaint.code, "08P01");
        assert_eq!(complaint.message, stranger);
        assert!(complaint.hint.ends_with("[P0331]"), "{complaint:?}");
    }
    drop(gateway);
    // One that the query finds is known, too.
    let query = "select name, secret from public.secrets where name = $1";
    let main = format!("auth_type = trust\nauth_user = {SUPERUSER}\nauth_query = {query}");
    let gateway = Gateway::start_ini(|port, at| ini((port, at), &database, &line, &main));
    log_in(&gateway, "ann", name).expect("it is looked up").run("select 1");
    let complaint = log_in(&gateway, "stranger", name).err().expect("unknown");
    assert_eq!(complaint.message, stranger);
    drop(gateway);
    // With `any` everybody is whom the database says; without that nobody comes in.
    let gateway =
        Gateway::start_ini(|port, at| ini((port, at), &database, &line, "auth_type = any"));
    let mut client = log_in(&gateway, "stranger", name).expect("anybody");
    assert_eq!(client.one("select current_user"), APP);
    let mut console = log_in(&gateway, "whoever", "pgbouncer").expect("an administrator");
    let clients = console.table("show clients");
    let client = clients.iter().find(|row| row["database"] == name).expect("a row");
    assert_eq!(client["user"], APP);
    console.run("reload");
    let complaint = log_in(&gateway, SUPERUSER, "template1").err().expect("no user there");
    assert_eq!(complaint.code, "28000");
    assert!(complaint.hint.ends_with("[P0220]"), "{complaint:?}");
}

#[test]
fn scram_of_an_ini_is_never_md5() {
    let database = cluster().database();
    let text = |port, at: &Path| {
        let text = ini((port, at), &database, "", "auth_type = scram-sha-256");
        let hash = "\"hashed\" \"md51a24d5231e5b35504f6501bbdf87b4f6\"\n";
        let users = at.join("userlist.txt");
        let list = std::fs::read_to_string(&users).expect("the list");
        std::fs::write(&users, list + hash).expect("the list");
        text
    };
    let gateway = Gateway::start_ini(text);
    let mut client = WireClient::connect(&gateway.address());
    let parameters = [("user", "hashed"), ("database", database.name.as_str())];
    client.put(|out| wire::pg::startup::put_startup(out, 0, &parameters));
    let asked = client.expect(wire::pg::backend::tag::AUTHENTICATION);
    let asked = wire::pg::backend::auth(&asked.body).expect("a request");
    assert!(matches!(asked, wire::pg::backend::Auth::Sasl(_)), "{asked:?}");
}

#[test]
fn an_ini_finds_users_by_its_query() {
    let database = cluster().database();
    database.run("create role \"ini user\" login password 'found'");
    let line = format!("user={APP} password='{APP_PASSWORD}' pool_mode=transaction");
    let main = format!("auth_type = md5\nauth_user = {SUPERUSER}\nauth_query = {LOOKUP}");
    let gateway = Gateway::start_ini(|port, at| ini((port, at), &database, &line, &main));
    let mut client = WireClient::login(&gateway.address(), "ini user", "found", &database.name);
    assert_eq!(client.one("select current_user"), APP);
    assert_eq!(mode_of(&gateway, &database), "transaction");
}

#[test]
fn databases_of_an_ini_have_users_of_their_own() {
    let (one, two) = (cluster().database(), cluster().database());
    for (database, secret) in [(&one, "one"), (&two, "two")] {
        database.run("create table secrets(name text, secret text)");
        database.run(&format!("insert into secrets values ('ann', '{secret}')"));
    }
    let server = cluster().port;
    let forced = format!("host=127.0.0.1 port={server} user={APP} password='{APP_PASSWORD}'");
    let query = "select name, secret from public.secrets where name = $1";
    let databases = format!(
        "first = {forced} dbname={} auth_user={SUPERUSER} auth_query='{query}'\n\
         second = {forced} dbname={} auth_user={SUPERUSER}\n\
         third = {forced} dbname={} auth_user={SUPERUSER} auth_dbname=second\n\
         fourth = {forced} dbname={} auth_user={SUPERUSER} auth_dbname=nowhere\n\
         fifth = {forced} dbname={}\n",
        one.name, two.name, one.name, one.name, one.name
    );
    let gateway = Gateway::start_ini(|port, at| {
        let main = format!("auth_type = md5\nauth_query = {query}");
        let text = ini((port, at), &one, "", &main);
        let list = text.lines().filter(|line| !line.starts_with(['%', '*'])).collect::<Vec<_>>();
        list.join("\n").replace("[databases]", &format!("[databases]\n{databases}"))
    });
    let log_in = |password: &str, database: &str| {
        let parameters = [("user", "ann"), ("database", database)];
        WireClient::try_login(&gateway.address(), password, &parameters)
    };
    for (database, right, wrong) in
        [("first", "one", "two"), ("second", "two", "one"), ("third", "two", "one")]
    {
        let mut client = log_in(right, database).unwrap_or_else(|no| panic!("{database}: {no:?}"));
        assert_eq!(client.one("select current_user"), APP);
        assert_eq!(log_in(wrong, database).err().expect("wrong").code, "28P01", "{database}");
    }
    let complaint = log_in("one", "fourth").err().expect("nowhere");
    let detail = "authentication database \"nowhere\" is not configured";
    assert_eq!((complaint.code.as_str(), complaint.detail.as_str()), ("08P01", detail));
    assert_eq!(log_in("one", "fifth").err().expect("nobody asks").code, "28P01");
}

#[test]
fn reload_reads_the_ini_again() {
    let database = cluster().database();
    let gateway = Gateway::start_ini(|port, at| ini((port, at), &database, "", ""));
    let mut client = gateway.client(&database);
    assert_eq!(client.one("select 1"), "1");
    assert_eq!(mode_of(&gateway, &database), "session");
    let again = |line: &str, main: &str| {
        let text = ini((gateway.port, gateway.directory.path()), &database, line, main);
        std::fs::write(&gateway.file, text).expect("the ini file");
    };
    again("pool_mode=transaction", "dns_max_ttl = 3");
    console(&gateway).run("reload");
    assert_eq!(gateway.client(&database).one("select 2"), "2");
    assert_eq!(mode_of(&gateway, &database), "transaction");
    assert!(gateway.said().contains("pgbouncer.ini:14: `dns_max_ttl` is ignored"));
    // A wrong one changes nothing, and says where.
    again("pool_mode=statement", "pool_mod = session");
    let refused = console(&gateway).error("reload");
    let detail = refused.detail;
    assert!(detail.contains("did you mean `pool_mode`?"), "{detail}");
    assert!(detail.contains("pgbouncer.ini:14:1"), "{detail}");
    assert_eq!(mode_of(&gateway, &database), "transaction");
}

#[test]
fn what_import_writes_is_what_the_ini_means() {
    let database = cluster().database();
    let directory = crate::kit::place::Directory::new("import");
    let main = "auth_type = scram-sha-256\npool_mode = transaction\nquery_timeout = 2.5\n\
                tcp_keepalive = 1";
    let text = ini((6432, directory.path()), &database, "pool_size=3", main);
    let file = directory.path().join("pgbouncer.ini");
    std::fs::write(&file, text).expect("the ini file");
    let file = file.display().to_string();
    let imported = Gateway::command(&["import", &file], &[]);
    assert!(imported.status.success(), "{imported:?}");
    assert!(imported.stderr.contains(":17: `tcp_keepalive` is ignored:"), "{}", imported.stderr);
    let toml = directory.path().join("pondage.toml");
    std::fs::write(&toml, &imported.stdout).expect("the TOML file");
    let toml = toml.display().to_string();
    let of_toml = Gateway::command(&["check", "-c", &toml], &[]);
    let of_ini = Gateway::command(&["check", "--pgbouncer-ini", &file], &[]);
    assert!(of_toml.status.success() && of_ini.status.success(), "{of_toml:?}\n{of_ini:?}");
    // Behind values stands where they were said.
    let bare = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split("  # ").next().unwrap_or_default().into()).collect()
    };
    assert_eq!(bare(&of_toml.stdout), bare(&of_ini.stdout));
    let users = directory.path().join("userlist.txt").display().to_string();
    let imported = Gateway::command(&["import", &file, &users], &[]);
    assert!(imported.stdout.contains(&format!("users_file = \"{users}\"")), "{imported:?}");
    let nowhere = Gateway::command(&["import", "/nowhere/pgbouncer.ini"], &[]);
    assert_eq!(nowhere.status.code(), Some(78), "{nowhere:?}");
}

#[test]
fn the_console_sets_what_an_ini_may_say_until_the_next_reload() {
    let database = cluster().database();
    let gateway =
        Gateway::start_ini(|port, at| ini((port, at), &database, "", "auth_type = trust"));
    let size = |console: &mut WireClient| {
        let config = console.table("show config");
        let row = config.iter().find(|row| row["key"] == "default_pool_size").expect("a row");
        row["value"].clone()
    };
    let mut console = console(&gateway);
    let before = size(&mut console);
    console.run("SET default_pool_size = '3'");
    assert_eq!(size(&mut console), "3");
    console.run("set pool_mode to transaction");
    assert_eq!(gateway.client(&database).one("select 1"), "1");
    assert_eq!(mode_of(&gateway, &database), "transaction");
    // Who comes from now on is asked for a password.
    console.run("set auth_type = 'scram-sha-256'");
    let parameters = [("user", APP), ("database", database.name.as_str())];
    let refused = WireClient::try_login(&gateway.address(), "wrong", &parameters);
    assert_eq!(refused.err().expect("a wrong password").code, "28P01");
    let ignored = console.query("set tcp_keepalive = 1");
    let notice = ignored.iter().find(|reply| reply.tag == b'N').expect("a notice").complaint();
    assert!(notice.message.contains("`tcp_keepalive` is ignored"), "{}", notice.message);
    let refused = console.error("set default_pool_size = many");
    assert_eq!(refused.code, "08P01");
    assert!(refused.detail.contains("SET on the console"), "{}", refused.detail);
    let refused = console.error("set listen_port = 1");
    assert!(refused.message.contains("without a restart"), "{}", refused.message);
    assert_eq!(size(&mut console), "3");
    console.run("reload");
    assert_eq!(size(&mut console), before);
    assert_eq!(gateway.client(&database).one("select 2"), "2");
    assert_eq!(mode_of(&gateway, &database), "session");
}

#[test]
fn who_runs_it_needs_no_secret_for_the_console_at_its_socket() {
    let database = cluster().database();
    let main = "auth_type = scram-sha-256";
    let gateway = Gateway::start_ini(|port, at| ini((port, at), &database, "", main));
    let socket = Address::unix(gateway.directory.path(), gateway.port);
    for user in ["pgbouncer", "pondage"] {
        let mut owner = WireClient::login(&socket, user, "", "pgbouncer");
        assert!(owner.one("show version").contains("ondage"));
        owner.run("pause");
        owner.run("resume");
        // There alone, and nowhere else.
        let of = |database: &str| [("user", user.to_owned()), ("database", database.to_owned())];
        for (address, name) in
            [(&gateway.address(), "pgbouncer"), (&socket, database.name.as_str())]
        {
            let parameters = of(name);
            let parameters: Vec<_> = parameters.iter().map(|(k, v)| (*k, v.as_str())).collect();
            assert!(WireClient::try_login(address, "", &parameters).is_err(), "{user} {name}");
        }
    }
    // Another user of the system is one like all others.
    if rustix::process::geteuid().is_root() {
        let directory = gateway.directory.path();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory, open).expect("a directory for all");
        let other = Tool::psql(&gateway, &database)
            .uid(65_534)
            .env("PGHOST", &directory.display().to_string())
            .args(["-U", "pgbouncer", "-d", "pgbouncer", "-c", "show version"])
            .outcome();
        other.expect_status(2);
        assert!(other.stderr.contains("may not use the console"), "{}", other.stderr);
    }
}

#[test]
fn the_log_file_may_be_renamed_and_the_level_changed_while_it_runs() {
    let database = cluster().database();
    let main = "log_connections = 0\nlog_disconnections = 0";
    let gateway = Gateway::start_ini(|port, at| ini((port, at), &database, "", main));
    let log = gateway.directory.path().join("pgbouncer.log");
    let old = gateway.directory.path().join("pgbouncer.log.1");
    let has = |path: &Path, what: &str| {
        std::fs::read_to_string(path).is_ok_and(|text| text.contains(what))
    };
    assert!(has(&log, "event=ready"));
    std::fs::rename(&log, &old).expect("renamed");
    gateway.signal(rustix::process::Signal::HUP);
    wait::until("a new log file", || log.exists());
    let mut console = console(&gateway);
    console.run("pause");
    wait::until("a line", || has(&log, "PAUSE command issued"));
    assert!(!has(&old, "command issued") && gateway.said().contains("PAUSE command issued"));
    // PgBouncer's way to hear less and more.
    console.run("set logfile = ''");
    console.run("resume");
    wait::until("a line", || gateway.said().contains("RESUME command issued"));
    assert!(!has(&log, "RESUME command issued"));
    let refused = console.error("set logfile = '/nowhere/at/all'");
    assert!(
        refused.detail.contains("cannot write the log to /nowhere/at/all"),
        "{}",
        refused.detail
    );
    console.run("set telemetry.log_level = error");
    console.run("pause");
    console.run("set verbose = 2");
    console.run("set verbose = 0");
    console.run("disable template1");
    wait::until("a line", || gateway.said().contains("DISABLE 'template1' command issued"));
    let said = gateway.said().text();
    assert_eq!(said.matches("PAUSE command issued").count(), 1, "the second one was not important");
}

#[test]
fn clients_and_the_log_are_told_in_pgbouncers_words() {
    let database = cluster().database();
    let main = format!("max_user_client_connections = 1\nstats_users = {APP}");
    let gateway = Gateway::start_ini(|port, at| ini((port, at), &database, "", &main));
    let log = gateway.directory.path().join("pgbouncer.log");
    let logged = |what: &str| {
        wait::until(what, || std::fs::read_to_string(&log).is_ok_and(|text| text.contains(what)));
    };
    let mut client = gateway.client(&database);
    assert_eq!(client.one("select 1"), "1");
    let name = &database.name;
    logged(&format!("/{APP}@127.0.0.1:"));
    logged(&format!(" login attempt: db={name} user={APP} tls=no replication=no\n"));
    logged(" new connection to server (from 127.0.0.1:");
    // A limit of all users counts where they are in the console, too; what Pondage would say of
    // it comes behind PgBouncer's words.
    for database in [name.as_str(), "pgbouncer"] {
        let parameters = [("user", APP), ("database", database)];
        let refused = WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters);
        let refused = refused.err().expect("no place");
        assert_eq!(refused.code, "08P01", "{database}");
        let theirs = "client connections exceeded (max_user_client_connections)";
        assert_eq!(refused.message, theirs, "{database}");
        assert!(refused.detail.contains("All 1 places"), "{}", refused.detail);
        logged(&format!("closing because: {theirs} (age="));
    }
    // Administrators come in all the same.
    let (mut one, mut other) = (console(&gateway), console(&gateway));
    let users = one.table("show users");
    let row = |name: &str| users.iter().find(|row| row["name"] == name).expect("a user").clone();
    assert_eq!(row(APP)["current_client_connections"], "1");
    assert_eq!(row(SUPERUSER)["current_client_connections"], "2");
    assert_eq!(row(SUPERUSER)["max_user_client_connections"], "1");
    let databases = one.table("show databases");
    let console = databases.iter().find(|row| row["name"] == "pgbouncer").expect("a row");
    assert_eq!(console["current_client_connections"], "2");
    let refused = other.error("kill_client nobody");
    let told = (refused.code.as_str(), refused.message.as_str());
    assert_eq!(told, ("08P01", "invalid client pointer supplied"));
    drop(client);
    logged("closing because: client ");
    gateway.client(&database).one("select 2");
    other.run(&format!("kill {name}"));
    logged(&format!("KILL '{name}' command issued"));
    logged("closing because: database was killed (age=");
}

#[test]
fn servers_of_a_forced_user_stand_by_without_clients() {
    let database = cluster().database();
    let line = |least: u32| format!("user={APP} password='{APP_PASSWORD}' min_pool_size={least}");
    let gateway = Gateway::start_ini(|port, at| ini((port, at), &database, &line(2), ""));
    wait::until("two servers", || cluster().backends(&database) == 2);
    let text = ini((gateway.port, gateway.directory.path()), &database, &line(3), "");
    std::fs::write(&gateway.file, text).expect("the ini file");
    console(&gateway).run("reload");
    wait::until("three servers", || cluster().backends(&database) == 3);
}

#[test]
fn another_process_takes_over_without_that_the_ini_says_how() {
    let database = cluster().database();
    let mut first = Gateway::start_ini(|port, at| ini((port, at), &database, "", ""));
    let pid_file = first.directory.path().join("pgbouncer.pid");
    let written = || std::fs::read_to_string(&pid_file).expect("a pid file").trim().to_owned();
    let mut client = first.client(&database);
    client.run("begin; select 1");
    let mut second = first.ini_successor();
    wait::until("its own pid", || written() == second.pid().to_string());
    client.run("commit");
    assert_eq!(second.client(&database).one("select 'new'"), "new");
    client.terminate();
    assert!(first.wait().success());
    // A script that always says -R starts the first one, too.
    second.signal(rustix::process::Signal::TERM);
    assert!(second.wait().success());
    let third = second.ini_successor();
    assert!(third.said().contains("event=takeover_of_none"));
    assert_eq!(third.client(&database).one("select 'third'"), "third");
}
