//! The kit itself, against PostgreSQL without a gateway: what every other test stands on.

use wire::pg::backend::tag;
use wire::pg::frontend;

use crate::kit::cluster::{APP, APP_PASSWORD, OTHER_PASSWORD};
use crate::kit::{cluster, wait, Address, WireClient};

#[test]
fn every_role_logs_in_by_its_own_method() {
    let address = cluster().address();
    for (user, password) in [
        (APP, APP_PASSWORD),
        ("legacy", OTHER_PASSWORD),
        ("plain", OTHER_PASSWORD),
        ("trusting", ""),
    ] {
        let mut client = WireClient::login(&address, user, password, "postgres");
        assert_eq!(client.one("select current_user"), user);
    }
}

#[test]
fn wrong_password_and_missing_tls_are_refused() {
    let address = cluster().address();
    for (user, code) in
        [(APP, "28P01"), ("legacy", "28P01"), ("plain", "28P01"), ("tlsonly", "28000")]
    {
        let parameters = [("user", user), ("database", "postgres")];
        let complaint = WireClient::try_login(&address, "wrong", &parameters)
            .err()
            .unwrap_or_else(|| panic!("{user} was let in"));
        assert_eq!(complaint.code, code, "{complaint:?}");
    }
}

#[test]
fn unix_socket_and_ipv6_answer() {
    let unix = Address::unix(&cluster().directory, cluster().port);
    let v6 = Address::tcp("::1", cluster().port);
    for address in [unix, v6] {
        let mut client = WireClient::login(&address, APP, APP_PASSWORD, "postgres");
        assert_eq!(client.one("select 1"), "1");
    }
}

#[test]
fn messages_split_at_every_byte_are_understood() {
    let database = cluster().database();
    let mut client = WireClient::login(&cluster().address(), APP, APP_PASSWORD, &database.name);
    let mut bytes = Vec::new();
    frontend::put_query(&mut bytes, "select 'split'");
    let everywhere: Vec<usize> = (1..bytes.len()).collect();
    client.send_split(&bytes, &everywhere);
    let replies = client.expect_tags("TDCZ");
    assert_eq!(replies[1].values(), [Some("split".to_owned())]);
    assert_eq!(replies[2].command_tag(), "SELECT 1");
}

#[test]
fn cancel_ends_the_running_statement_and_the_connection_lives_on() {
    let mut client = WireClient::login(&cluster().address(), APP, APP_PASSWORD, "postgres");
    client.put(|out| frontend::put_query(out, "select pg_sleep(60)"));
    let (pid, _) = client.key.clone().expect("BackendKeyData");
    let running = format!(
        "select count(*) from pg_stat_activity where pid = {pid} and wait_event = 'PgSleep'"
    );
    let mut superuser = cluster().superuser("postgres");
    wait::until("the statement to run", || superuser.one(&running) == "1");
    client.cancel(&cluster().address());
    let error = client.until_ready().into_iter().find(|m| m.tag == tag::ERROR);
    assert_eq!(error.expect("an error").complaint().code, "57014");
    assert_eq!(client.one("select 1"), "1");
}

#[test]
fn tests_get_databases_of_their_own() {
    let (one, other) = (cluster().database(), cluster().database());
    one.run("create table mine(a int)");
    assert_eq!(one.one("select count(*) from pg_class where relname = 'mine'"), "1");
    assert_eq!(other.one("select count(*) from pg_class where relname = 'mine'"), "0");
}
