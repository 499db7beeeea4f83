//! What the dashboard's requests share: the process, its console, who is logged in, what is live.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::live::Live;
use super::sessions::Sessions;
use crate::console::operator::Operator;
use crate::console::Process;

pub struct Site {
    pub process: Arc<dyn Process>,
    pub operator: Arc<Operator>,
    pub sessions: Sessions,
    pub live: Live,
}

impl Site {
    /// `operator`: the console's own, so that both know the same averages and pauses.
    pub fn new(process: Arc<dyn Process>, operator: Arc<Operator>) -> Site {
        Site { process, operator, sessions: Sessions::default(), live: Live::default() }
    }

    /// A link to the dashboard at this address that logs in once. Its token is behind the `#`,
    /// which browsers keep to themselves.
    pub fn link(&self, address: SocketAddr) -> Option<String> {
        let token = || self.sessions.link(Instant::now());
        address.ip().is_loopback().then(|| format!("http://{address}/#token={}", token().as_str()))
    }
}
