//! Which server a client gets, decided by the test.

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, Config, Database, Gateway, WireClient};

/// A pool of two servers, each held by a client in a transaction unless it is let go: the one that
/// is free is the one that every other client gets.
pub struct TwoServers {
    holders: [WireClient; 2],
    /// Process ids, as `pg_backend_pid()` tells them.
    pub pids: [String; 2],
    free: Option<usize>,
    // After the clients, so that these have gone when the gateway is told to end.
    pub gateway: Gateway,
    pub database: Database,
}

impl TwoServers {
    #[track_caller]
    pub fn start() -> TwoServers {
        TwoServers::start_with(|config| config)
    }

    /// In transaction mode, with more settings.
    #[track_caller]
    pub fn start_with(settings: impl FnOnce(Config) -> Config) -> TwoServers {
        let database = cluster().database();
        let config = Config::of(&database).set("pool.pool_size", 2);
        let gateway = Gateway::start(settings(config));
        let mut holders = [gateway.client(&database), gateway.client(&database)];
        let pids = [0, 1].map(|number| hold(&mut holders[number]));
        assert_ne!(pids[0], pids[1], "two transactions at once are on two servers");
        TwoServers { holders, pids, free: None, gateway, database }
    }

    /// From now on clients get this server, 0 or 1; no client may be in a transaction.
    #[track_caller]
    pub fn only(&mut self, server: usize) {
        if self.free == Some(server) {
            return;
        }
        if let Some(other) = self.free.replace(server) {
            assert_eq!(hold(&mut self.holders[other]), self.pids[other], "the only free server");
        }
        self.holders[server].run("commit");
    }

    /// Lets both servers go.
    #[track_caller]
    pub fn both(&mut self) {
        for number in (0..2).filter(|number| self.free != Some(*number)) {
            self.holders[number].run("commit");
        }
        self.free = None;
    }

    #[track_caller]
    pub fn client(&self) -> WireClient {
        self.gateway.client(&self.database)
    }

    /// A client of PostgreSQL itself, in the same database.
    #[track_caller]
    pub fn direct(&self) -> WireClient {
        direct(&self.database)
    }

    /// Names of the prepared statements that the free server has.
    #[track_caller]
    pub fn prepared(&self) -> Vec<String> {
        let rows = self.client().rows("select name from pg_prepared_statements order by 1");
        rows.into_iter().flatten().flatten().collect()
    }
}

#[track_caller]
fn hold(holder: &mut WireClient) -> String {
    holder.run("begin; select 1");
    holder.one("select pg_backend_pid()")
}

/// A pool of one server: whoever gets one gets this one.
pub struct OneServer {
    pub gateway: Gateway,
    pub database: Database,
}

impl OneServer {
    #[track_caller]
    pub fn start() -> OneServer {
        OneServer::start_with(|config| config)
    }

    /// In transaction mode, with more settings.
    #[track_caller]
    pub fn start_with(settings: impl FnOnce(Config) -> Config) -> OneServer {
        let database = cluster().database();
        let config = Config::of(&database).set("pool.pool_size", 1);
        let gateway = Gateway::start(settings(config));
        OneServer { gateway, database }
    }

    #[track_caller]
    pub fn client(&self) -> WireClient {
        self.gateway.client(&self.database)
    }

    #[track_caller]
    pub fn direct(&self) -> WireClient {
        direct(&self.database)
    }

    /// The process id of the server.
    #[track_caller]
    pub fn pid(&self) -> String {
        self.client().one("select pg_backend_pid()")
    }
}

/// A client of PostgreSQL itself, as the role that the gateway's clients have.
#[track_caller]
pub fn direct(database: &Database) -> WireClient {
    WireClient::login(&cluster().address(), APP, APP_PASSWORD, &database.name)
}
