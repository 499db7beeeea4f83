//! A PostgreSQL whose users log in by different methods, and pool configurations for it.

use std::fs;
use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio_postgres::NoTls;
use wire::pg::auth::Secret;

use super::certificates::Certificates;
use crate::config::{
    CacheMode, Calls, ChannelBinding, Coalesce, Freshness, Host, ListenMode, PoolConfig, PoolMode,
    ServerTls, ServerTlsMode, TlsNegotiation, TlsVersions, Upstream,
};
use crate::demo::cluster::Cluster;

const HBA: &str = "
local all peered peer
local all all trust
host all trusted 127.0.0.1/32 trust
host all clear 127.0.0.1/32 password
host all md5 127.0.0.1/32 md5
host all refused 127.0.0.1/32 reject
hostssl all certified 127.0.0.1/32 cert
host all all 127.0.0.1/32 scram-sha-256
";

const USERS: &str = "
CREATE ROLE trusted LOGIN;
CREATE ROLE peered LOGIN PASSWORD 'pencil';
CREATE ROLE clear LOGIN PASSWORD 'pencil';
CREATE ROLE scram LOGIN PASSWORD 'pencil';
CREATE ROLE refused LOGIN PASSWORD 'pencil';
CREATE ROLE certified LOGIN;
SET password_encryption = 'md5';
CREATE ROLE md5 LOGIN PASSWORD 'pencil';
";

pub struct Server {
    pub cluster: Cluster,
    pub certificates: Certificates,
}

impl Server {
    pub async fn start() -> Server {
        let cluster = Cluster::start(&[], &AtomicBool::new(false)).expect("a cluster");
        let certificates = Certificates::make(cluster.directory());
        let owner = fs::metadata(cluster.data()).expect("data");
        let data = |name: &str, text: &str| {
            let path = cluster.data().join(name);
            fs::write(&path, text).expect("write");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
            chown(&path, Some(owner.uid()), Some(owner.gid())).expect("owner");
        };
        data("pg_hba.conf", HBA);
        data("server.crt", &certificates.server_cert);
        data("server.key", &certificates.server_key);
        data("root.crt", &certificates.ca);
        let server = Server { cluster, certificates };
        server.run(USERS).await;
        server.run("ALTER SYSTEM SET ssl_ca_file = 'root.crt'").await;
        server.run("ALTER SYSTEM SET ssl = on").await;
        server.run("SELECT pg_reload_conf()").await;
        // The postmaster reads all of it at once, before its next child.
        let began = Instant::now();
        while server.value("SHOW ssl").await != "on" {
            assert!(began.elapsed() < Duration::from_secs(10), "no TLS");
        }
        server
    }

    /// Runs statements as the superuser.
    pub async fn run(&self, sql: &str) {
        self.simple(sql).await;
    }

    /// The first value of the first row.
    pub async fn value(&self, sql: &str) -> String {
        self.simple(sql).await.expect("a row")
    }

    async fn simple(&self, sql: &str) -> Option<String> {
        let (client, connection) =
            self.cluster.admin("postgres").connect(NoTls).await.expect("connect");
        let driven = tokio::spawn(connection);
        let messages = client.simple_query(sql).await.expect("query");
        drop(client);
        driven.await.expect("driven").expect("connection");
        messages.into_iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
    }

    pub fn config(&self, user: &str) -> PoolConfig {
        self.config_to(user, Some("pencil"), Host::Tcp("127.0.0.1".to_owned()))
    }

    pub fn config_to(&self, user: &str, password: Option<&str>, host: Host) -> PoolConfig {
        PoolConfig {
            database: "app".to_owned(),
            user: user.to_owned(),
            connect_timeout: Duration::from_secs(10),
            ..pool(Upstream {
                host,
                port: self.cluster.port(),
                database: "postgres".to_owned(),
                user: user.to_owned(),
                password: password.map(|password| Secret::Plain(password.to_owned())),
                tls: no_tls(),
                protocol: crate::config::ServerProtocol::V3_0,
                connect_query: None,
                application_name: None,
                several: crate::config::Several::default(),
            })
        }
    }
}

pub fn no_tls() -> ServerTls {
    tls(ServerTlsMode::Disable, None)
}

pub fn tls(mode: ServerTlsMode, ca: Option<PathBuf>) -> ServerTls {
    ServerTls {
        mode,
        ca,
        cert: None,
        key: None,
        binding: ChannelBinding::Prefer,
        negotiation: TlsNegotiation::Postgres,
        versions: TlsVersions::default(),
    }
}

/// Every default that does not matter here.
pub fn pool(upstream: Upstream) -> PoolConfig {
    let never = Duration::ZERO;
    PoolConfig {
        database: "app".to_owned(),
        user: upstream.user.clone(),
        mode: PoolMode::Transaction,
        pool_size: 20,
        min_pool_size: 0,
        reserve_pool_size: 0,
        reserve_pool_timeout: never,
        wait_timeout: never,
        wait_notify: never,
        connect_timeout: Duration::from_secs(10),
        server_login_retry: never,
        server_lifetime: never,
        server_idle_timeout: never,
        server_check_delay: never,
        server_check_query: String::new(),
        server_reset_query: String::new(),
        server_reset_always: false,
        server_fast_close: false,
        server_round_robin: false,
        max_prepared_statements: 0,
        max_pinned: 0,
        query_timeout: never,
        transaction_timeout: never,
        idle_transaction_timeout: never,
        client_idle_timeout: never,
        application_name_add_host: false,
        ignore_startup_parameters: Vec::new(),
        refuse_simple: false,
        listen: ListenMode::Shared,
        coalesce: Coalesce::Batch,
        prepare_simple: true,
        coalesce_writes: false,
        procedures: Calls::Off,
        coalesce_depth: 64,
        coalesce_short: Duration::from_millis(1),
        coalesce_stall: Duration::from_millis(20),
        cache: CacheMode::Off,
        cache_freshness: Freshness::Session,
        cache_max_lag: Duration::from_secs(5),
        max_database_clients: None,
        max_database_servers: None,
        max_user_servers: None,
        disabled: false,
        upstream,
    }
}
