//! The programs that come with PostgreSQL, unmodified, through Pondage.

use std::fmt::Write;
use std::time::Duration;

use wire::pg::backend::tag;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::place::Directory;
use crate::kit::{cluster, Address, Config, Database, Gateway, Tool, WireClient};

/// One client of a pool of five in transaction mode.
fn transaction_mode() -> (Database, Gateway) {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    (database, gateway)
}

fn session_mode() -> (Database, Gateway) {
    let database = cluster().database();
    let gateway = Gateway::start(Config::of(&database).set("pool.mode", "session"));
    (database, gateway)
}

#[test]
fn psql_describes_tables_and_schemas() {
    let (database, gateway) = transaction_mode();
    let script = "create table parent(id int primary key, name text not null default 'x');\n\
                  create table child(parent_id int references parent, check (parent_id > 0));\n\
                  create view both_of_them as select * from parent join child on id = parent_id;\n\
                  create function twice(int) returns int language sql as 'select $1 * 2';\n\
                  \\d parent\n\\d child\n\\d+ both_of_them\n\\dt\n\\df twice\n\\dn\n\\l\n\\du\n\\dp\n";
    // Not tuples only: that would leave out the footers with keys and indexes.
    let psql = Tool::new("psql", &gateway, &database).args(["-X", "-A", "-q"]);
    let said = psql.args(["-v", "ON_ERROR_STOP=1"]).input(script).run();
    for expected in [
        "id|integer||not null|",
        "name|text||not null|'x'::text",
        "\"parent_pkey\" PRIMARY KEY, btree (id)",
        "FOREIGN KEY (parent_id) REFERENCES parent(id)",
        "public|child|table|app",
        "public|twice|integer|integer|func",
        &format!("{}|app|UTF8", database.name),
    ] {
        assert!(said.contains(expected), "no {expected:?} in:\n{said}");
    }
}

#[test]
fn psql_copies_a_file_in_and_out_unchanged() {
    let (database, gateway) = transaction_mode();
    let directory = Directory::new("copy");
    let (source, target) = (directory.path().join("in.csv"), directory.path().join("out.csv"));
    let mut rows = String::new();
    for id in 0..20_000 {
        writeln!(rows, "{id},\"line {id}, with \"\"quotes\"\"\"").expect("strings take all");
    }
    std::fs::write(&source, &rows).expect("a file");
    let script = format!(
        "create table copied(id int primary key, t text);\n\
         \\copy copied from '{}' with (format csv)\n\
         \\copy (select * from copied order by id) to '{}' with (format csv, force_quote (t))\n",
        source.display(),
        target.display()
    );
    Tool::psql(&gateway, &database).args(["-v", "ON_ERROR_STOP=1"]).input(script).run();
    assert_eq!(database.one("select count(*) from copied"), "20000");
    let back = std::fs::read_to_string(&target).expect("the copied file");
    assert!(back == rows, "{} bytes came back of {}", back.len(), rows.len());
}

#[test]
fn psql_goes_on_after_a_broken_copy() {
    let (database, gateway) = transaction_mode();
    let script = "create table copied(id int primary key);\n\
                  copy copied from stdin;\n1\n2\nthree\n4\n\\.\n\
                  select 'alive', count(*) from copied;\n";
    let done = Tool::psql(&gateway, &database).input(script).outcome();
    done.expect_status(0);
    assert_eq!(done.stdout, "alive|0\n");
    assert!(done.stderr.contains("invalid input syntax for type integer"), "{}", done.stderr);
}

#[test]
fn psql_sends_many_statements_in_one_query() {
    let (database, gateway) = transaction_mode();
    // One implicit transaction, which the explicit one takes over and then undoes.
    let many = "create table t(a int); insert into t values (1), (2); select sum(a) from t; \
                begin; insert into t values (3); select sum(a) from t; rollback; \
                select count(*) from pg_class where relname = 't'";
    assert_eq!(Tool::psql(&gateway, &database).args(["-c", many]).run(), "3\n6\n0\n");
    let kept = "create table t(a int); insert into t values (1), (2); select count(*) from t";
    assert_eq!(Tool::psql(&gateway, &database).args(["-c", kept]).run(), "2\n");
    // -1 wraps all in a transaction: an error leaves nothing.
    let script = "insert into t values (10);\ninsert into t values ('no');\n";
    let done = Tool::psql(&gateway, &database)
        .args(["-1", "-v", "ON_ERROR_STOP=1", "-f", "-"])
        .input(script)
        .outcome();
    done.expect_status(3);
    assert_eq!(database.one("select sum(a) from t"), "3");
}

#[test]
fn psql_sees_the_error_of_the_server_and_goes_on() {
    let (database, gateway) = transaction_mode();
    let script = "\\set VERBOSITY verbose\nselect 1/0;\nselect * from nowhere;\nselect 'alive';\n";
    let done = Tool::psql(&gateway, &database).input(script).outcome();
    done.expect_status(0);
    assert_eq!(done.stdout, "alive\n");
    assert!(done.stderr.contains("22012: division by zero"), "{}", done.stderr);
    assert!(done.stderr.contains("42P01: relation \"nowhere\" does not exist"), "{}", done.stderr);
    assert!(done.stderr.contains("LINE 1: select * from nowhere;"), "{}", done.stderr);
}

#[test]
fn psql_fetches_by_cursor_describes_and_runs_what_it_selects() {
    let (database, gateway) = transaction_mode();
    let script = "\\set FETCH_COUNT 7\nselect g from generate_series(1, 100) g;\n\
                  \\unset FETCH_COUNT\nselect 1 as one, now() as at \\gdesc\n\
                  select format('select %s * 10', g) from generate_series(1, 3) g \\gexec\n";
    let said = Tool::psql(&gateway, &database).input(script).run();
    let mut expected = String::new();
    for number in 1..=100 {
        writeln!(expected, "{number}").expect("strings take all");
    }
    expected += "one|integer\nat|timestamp with time zone\n10\n20\n30\n";
    assert_eq!(said, expected);
}

#[test]
fn psql_receives_a_large_result_whole() {
    let (database, gateway) = transaction_mode();
    let sql = "select g, repeat(md5(g::text), 64) from generate_series(1, 10000) g";
    let said = Tool::psql(&gateway, &database).args(["-c", sql]).run();
    let direct = cluster().superuser(&database.name).rows(sql);
    let expected: usize =
        direct.iter().map(|row| row.iter().flatten().map(|v| v.len() + 1).sum::<usize>()).sum();
    assert_eq!(said.len(), expected);
    assert!(said.ends_with('\n') && said.starts_with("1|c4ca4238a0b923820dcc509a6f75849b"));
}

#[test]
fn psql_keeps_its_time_zone_and_application_name_in_transaction_mode() {
    let (database, gateway) = transaction_mode();
    let show = "select current_setting('TimeZone'), current_setting('application_name')";
    let ask = |zone: &str, name: &str| {
        Tool::psql(&gateway, &database)
            .env("PGTZ", zone)
            .env("PGAPPNAME", name)
            .args(["-c", show, "-c", show])
            .run()
    };
    assert_eq!(ask("Asia/Tokyo", "one"), "Asia/Tokyo|one\nAsia/Tokyo|one\n");
    assert_eq!(ask("America/Lima", "two"), "America/Lima|two\nAmerica/Lima|two\n");
}

/// Runs `-n` transactions of each of 8 clients by one protocol and returns what pgbench said.
fn pgbench(gateway: &Gateway, database: &Database, arguments: &[&str]) -> String {
    let common = ["-n", "-c", "8", "-j", "2", "--random-seed=42"];
    Tool::new("pgbench", gateway, database).args(common).args(arguments).run()
}

#[test]
fn pgbench_keeps_its_books_in_every_protocol_and_reconnecting() {
    let database = cluster().database();
    // pgbench prepares by a call that blocks its thread: with fewer servers than clients, a client
    // that waits for one keeps those that hold them from going on.
    let gateway = Gateway::start(Config::of(&database).set("pool.pool_size", 8));
    Tool::new("pgbench", &gateway, &database).args(["-i", "-s", "2", "-q"]).run();
    assert_eq!(database.one("select count(*) from pgbench_accounts"), "200000");
    let mut transactions = 0;
    for protocol in ["simple", "extended", "prepared"] {
        for (arguments, each) in [(&["-t", "100"][..], 100), (&["-C", "-t", "15"][..], 15)] {
            let all = [&["-M", protocol][..], arguments].concat();
            let said = pgbench(&gateway, &database, &all);
            let expected = format!("transactions actually processed: {0}/{0}", 8 * each);
            assert!(said.contains(&expected), "{all:?}:\n{said}");
            assert!(said.contains("number of failed transactions: 0"), "{all:?}:\n{said}");
            transactions += 8 * each;
        }
    }
    // What TPC-B demands of a consistent state: all sums agree, and nothing ran twice or never.
    let books = "select (select sum(abalance) from pgbench_accounts), \
                        (select sum(bbalance) from pgbench_branches), \
                        (select sum(tbalance) from pgbench_tellers), \
                        (select sum(delta) from pgbench_history), \
                        (select count(*) from pgbench_history)";
    let row = cluster().superuser(&database.name).rows(books).remove(0);
    let [accounts, branches, tellers, history, count] = row.as_slice() else {
        panic!("five values, got {row:?}");
    };
    assert_eq!(accounts, branches);
    assert_eq!(accounts, tellers);
    assert_eq!(accounts, history);
    assert_eq!(count.as_deref(), Some(transactions.to_string().as_str()));
}

#[test]
fn pgbench_selects_in_every_protocol() {
    let (database, gateway) = transaction_mode();
    Tool::new("pgbench", &gateway, &database).args(["-i", "-s", "1", "-q"]).run();
    for protocol in ["simple", "extended", "prepared"] {
        for arguments in [&["-S", "-t", "300"][..], &["-S", "-C", "-t", "30"]] {
            let said = pgbench(&gateway, &database, &[&["-M", protocol], arguments].concat());
            assert!(said.contains("number of failed transactions: 0"), "{protocol}:\n{said}");
        }
    }
}

#[test]
fn pgbench_pipelines_batch_statements() {
    let (database, gateway) = transaction_mode();
    let directory = Directory::new("pipeline");
    let script = directory.path().join("pipeline.sql");
    let text = "\\startpipeline\nselect 1;\nselect 2;\nbegin;\nselect 3;\ncommit;\nselect 4;\n\
                \\endpipeline\n";
    std::fs::write(&script, text).expect("a file");
    for protocol in ["extended", "prepared"] {
        let file = script.display().to_string();
        let said = pgbench(&gateway, &database, &["-M", protocol, "-t", "50", "-f", &file]);
        assert!(said.contains("transactions actually processed: 400/400"), "{said}");
    }
}

/// Tables with what a dump must carry: every common type, a large value, sequence, index, view,
/// function, trigger and large object.
const DUMPED: &str = "
    create table kinds(
        id bigserial primary key, n numeric, t text, b bytea, at timestamptz, u uuid, j jsonb,
        a int[], f float8, d date, iv interval, r int4range, flag bool);
    insert into kinds(n, t, b, at, u, j, a, f, d, iv, r, flag)
        select g * 1.000001, repeat('ä' || g, g % 50), decode(md5(g::text), 'hex'),
               timestamptz '2024-02-29 12:00+00' + g * interval '1 hour', md5(g::text)::uuid,
               jsonb_build_object('g', g, 'text', E'\\n\\t\"'), array[g, null, -g], g / 3.0,
               date '2000-01-01' + g, g * interval '1 second', int4range(g, g + 5), g % 3 = 0
        from generate_series(1, 5000) g;
    insert into kinds(t) values (null), (repeat('x', 3000000));
    create index on kinds(at);
    create view odd as select id, t from kinds where id % 2 = 1;
    create table logged(id bigint references kinds, at timestamptz default now());
    create function note() returns trigger language plpgsql as
        $$ begin insert into logged(id) values (new.id); return new; end $$;
    create trigger noted after update on kinds for each row execute function note();
    update kinds set flag = true where id < 100;
    create table \"Wörter\"(\"größe\" int, \"a b\" text);
    insert into \"Wörter\" select g, g::text from generate_series(1, 1000) g;
    select lo_from_bytea(424242, 'a large object');
";

const CHECKSUMS: &str = "
    select md5(string_agg(k::text, '|' order by id)), count(*), max(length(t)) from kinds k;
    select md5(string_agg(l::text, '|' order by id)), count(*), null from logged l;
    select md5(string_agg(w::text, '|' order by \"größe\")), count(*), null from \"Wörter\" w;
    select count(*)::text, last_value, null from odd, kinds_id_seq group by last_value;
    select string_agg(conname, ',' order by conname), count(*), null from pg_constraint
        where connamespace = 'public'::regnamespace;
    select string_agg(indexdef, ',' order by indexdef), count(*), null from pg_indexes
        where schemaname = 'public';
    select convert_from(lo_get(424242), 'UTF8'), 1, null;
    select string_agg(tgname, ','), count(*), null from pg_trigger where not tgisinternal;
";

#[test]
fn dump_and_restore_through_the_gateway_lose_nothing() {
    let (source, custom, parallel) =
        (cluster().database(), cluster().database(), cluster().database());
    let config = Config::of(&source).database(&custom.name).database(&parallel.name);
    let gateway = Gateway::start(config);
    let set_up = Tool::psql(&gateway, &source).args(["-v", "ON_ERROR_STOP=1"]);
    set_up.input(DUMPED).run();
    let directory = Directory::new("dump");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (file, many) = (path("custom"), path("directory"));

    let dump = |arguments: &[&str]| Tool::new("pg_dump", &gateway, &source).args(arguments).run();
    dump(&["-Fc", "-b", "-f", &file]);
    dump(&["-Fd", "-b", "-j", "2", "-f", &many]);
    let restore = |target: &Database, arguments: &[&str]| {
        let tool = Tool::new("pg_restore", &gateway, target);
        tool.args(["--exit-on-error", "--no-owner", "-d", &target.name]).args(arguments).run();
    };
    restore(&custom, &["-1", &file]);
    restore(&parallel, &["-j", "2", &many]);

    let checksums = |database: &Database| cluster().superuser(&database.name).rows(CHECKSUMS);
    let expected = checksums(&source);
    assert_eq!(expected[0][1].as_deref(), Some("5002"));
    assert_eq!(checksums(&custom), expected);
    assert_eq!(checksums(&parallel), expected);
}

#[test]
fn pg_isready_says_whether_the_door_is_open() {
    let (database, gateway) = transaction_mode();
    Tool::new("pg_isready", &gateway, &database).outcome().expect_status(0);
    let nobody = crate::kit::place::free_port().to_string();
    Tool::new("pg_isready", &gateway, &database).args(["-p", &nobody]).outcome().expect_status(2);
}

#[test]
fn notifications_reach_listeners_in_session_mode() {
    let (database, gateway) = session_mode();
    let (mut listener, mut speaker) = (gateway.client(&database), gateway.client(&database));
    listener.run("listen news");
    speaker.run("notify news, 'first'");
    speaker.run("begin; notify news, 'second'; commit");
    for payload in ["first", "second"] {
        let message = listener.expect(tag::NOTIFICATION);
        let text = format!("news\0{payload}\0");
        assert!(message.body.ends_with(text.as_bytes()), "{message:?}");
    }
    listener.run("unlisten news");
    speaker.run("notify news, 'third'");
    listener.expect_silence(Duration::from_millis(200));
    assert_eq!(listener.one("select 1"), "1");

    let said = Tool::psql(&gateway, &database).input("listen c; notify c, 'psql';\n").run();
    let expected = "Asynchronous notification \"c\" with payload \"psql\" received";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn replication_connection_identifies_the_system_in_session_mode() {
    let (database, gateway) = session_mode();
    let identify = |address: &Address| {
        let parameters =
            [("user", APP), ("database", database.name.as_str()), ("replication", "database")];
        let mut client = WireClient::login_with(address, APP_PASSWORD, &parameters);
        client.rows("IDENTIFY_SYSTEM").remove(0)
    };
    let (through, direct) = (identify(&gateway.address()), identify(&cluster().address()));
    assert_eq!(through[0], direct[0], "the system's identifier");
    assert_eq!(through[3], Some(database.name.clone()));
}

#[test]
fn pg_recvlogical_streams_changes_in_session_mode() {
    let (database, gateway) = session_mode();
    let slot = format!("slot_{}", database.name);
    let recvlogical = |arguments: &[&str]| {
        let common = ["-d", &database.name, "-S", &slot];
        Tool::new("pg_recvlogical", &gateway, &database).args(common).args(arguments).run()
    };
    recvlogical(&["--create-slot", "-P", "test_decoding"]);
    database.run("create table streamed(id int primary key, t text)");
    database.run("insert into streamed select g, 'row ' || g from generate_series(1, 500) g");
    let end = database.one("select pg_current_wal_lsn()");
    let said = recvlogical(&["--start", "--no-loop", "-f", "-", "--endpos", &end]);
    let inserted = said.lines().filter(|l| l.contains("table public.streamed: INSERT")).count();
    assert_eq!(inserted, 500, "{said}");
    assert!(said.contains("id[integer]:500 t[text]:'row 500'"), "{said}");
    recvlogical(&["--drop-slot"]);
}

#[test]
fn pg_receivewal_streams_the_log_in_session_mode() {
    let database = cluster().database();
    // The name that physical replication gives to no database at all.
    let port = i64::from(cluster().port);
    let config = Config::of(&database)
        .set("pool.mode", "session")
        .set("databases.replication.host", "127.0.0.1")
        .set("databases.replication.port", port)
        .set("databases.replication.dbname", "postgres");
    let gateway = Gateway::start(config);
    database.run("create table logged as select g from generate_series(1, 10000) g");
    let start = database.one("select pg_walfile_name(pg_current_wal_lsn())");
    database.run("select pg_switch_wal()");
    let end = database.one("select pg_current_wal_lsn()");
    let directory = Directory::new("wal");
    let target = directory.path().display().to_string();
    let arguments = ["-D", &target, "--no-loop", "--no-sync", "--endpos", &end];
    Tool::new("pg_receivewal", &gateway, &database).args(arguments).run();
    let received = std::fs::read_dir(directory.path()).expect("the directory").count();
    assert!(received > 0, "nothing received up to {end}; the log was in {start}");
}
