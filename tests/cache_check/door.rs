//! Where clients go in: the gateway, or a cache that is broken on purpose.

use std::sync::Arc;

use crate::broken::Broken;
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::{wait, Address, Database, WireClient};

/// Rows of text.
pub type Rows = Vec<Vec<Option<String>>>;

#[derive(Clone)]
pub struct Door {
    pub cluster: &'static Cluster,
    pub database: Database,
    address: Address,
    broken: Option<Arc<Broken>>,
}

/// A session; a new one when the old one was cut.
pub struct Client {
    door: Door,
    wire: WireClient,
    /// What the broken one should have in its key.
    pub setting: String,
    beside: bool,
}

impl Door {
    pub fn gateway(cluster: &'static Cluster, database: &Database, address: Address) -> Door {
        Door { cluster, database: database.clone(), address, broken: None }
    }

    pub fn broken(cluster: &'static Cluster, database: &Database, broken: Arc<Broken>) -> Door {
        let (database, address) = (database.clone(), cluster.address());
        Door { cluster, database, address, broken: Some(broken) }
    }

    fn login(&self, beside: bool) -> WireClient {
        let parameters = [("user", APP), ("database", &self.database.name)];
        let address = if beside { self.cluster.address() } else { self.address.clone() };
        wait::for_some("a log-in", || {
            WireClient::try_login(&address, APP_PASSWORD, &parameters).ok()
        })
    }

    pub fn client(&self) -> Client {
        self.enter(false)
    }

    /// One whose writes the gateway does not see.
    pub fn beside(&self) -> Client {
        self.enter(true)
    }

    fn enter(&self, beside: bool) -> Client {
        Client { door: self.clone(), wire: self.login(beside), setting: String::new(), beside }
    }
}

fn rows_of(wire: &mut WireClient, sql: &str) -> Option<Rows> {
    let replies = wire.try_query(sql)?;
    if replies.iter().any(|reply| reply.tag == b'E') {
        return None;
    }
    Some(replies.iter().filter(|reply| reply.tag == b'D').map(|reply| reply.values()).collect())
}

impl Client {
    /// The rows of a read; none: it failed, and perhaps the session with it.
    pub fn read(&mut self, sql: &str) -> Option<Rows> {
        let wire = &mut self.wire;
        match &self.door.broken {
            Some(broken) => {
                let in_transaction = wire.status == b'T';
                let read = broken.read(sql, &self.setting, in_transaction, || rows_of(wire, sql));
                read.map(|(rows, _)| rows)
            }
            None => rows_of(wire, sql),
        }
    }

    /// Runs statements, one after the other; the last one's rows. In a broken cache all of them are
    /// one write.
    pub fn write(&mut self, statements: &[String]) -> Option<Rows> {
        let wire = &mut self.wire;
        let mut run = || {
            let mut last = None;
            for sql in statements {
                last = rows_of(wire, sql);
                if last.is_none() {
                    let _ = wire.try_query("rollback");
                    return None;
                }
            }
            last
        };
        match &self.door.broken {
            Some(broken) => broken.write(run),
            None => run(),
        }
    }

    /// What is neither read nor write: PostgreSQL answers it.
    pub fn pass(&mut self, sql: &str) -> Option<Rows> {
        rows_of(&mut self.wire, sql)
    }

    /// Whether the last answer came from the cache; the gateway tells.
    pub fn was_hit(&mut self) -> bool {
        let told = rows_of(&mut self.wire, "explain last statement").unwrap_or_default();
        told.iter().flatten().flatten().any(|line| line.starts_with("Way: cache"))
    }

    pub fn tells_hits(&self) -> bool {
        self.door.broken.is_none()
    }

    /// After a failure.
    pub fn again(&mut self) {
        let alive = self.wire.status != b'E' && self.pass("select 1").is_some();
        if !alive {
            self.wire = self.door.login(self.beside);
            self.setting.clear();
        }
    }
}
