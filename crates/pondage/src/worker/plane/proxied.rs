//! Clients that come through proxies: before their first byte the proxy says where they come from
//! ([`wire::proxy`]). From then on that is the client's address, for whoever asks: rules, waits
//! after wrong passwords, the console, the log.

use core::net::SocketAddr;

use wire::pg::sqlstate;
use wire::proxy::{self, Origin};

use super::Plane;
use crate::link::Ends;
use crate::session::client::Phase;
use crate::session::login::Refused;

impl Plane {
    /// The client has come in by a door for proxies.
    pub fn client_is_proxied(&mut self, slot: u32) {
        if let Some(client) = self.clients.get_mut(slot) {
            if let Phase::LoggingIn(login) = &mut client.phase {
                login.awaits_proxy = true;
            }
        }
    }

    /// Takes the proxy's header; says how many bytes it took, none while it is incomplete.
    pub(super) fn proxy_header(&mut self, slot: u32, bytes: &[u8]) -> usize {
        let Ends::Tcp { remote: proxy, local } = self.clients[slot].ends else { return 0 };
        if !self.config.listen.is_proxy(proxy.ip()) {
            let message = "connections to this address are for proxies";
            let refused = Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, message)
                .detail(format!("{} is in no network of listen.proxies.", proxy.ip()))
                .hint("Connect to an address of listen.postgres. [P0124]");
            self.refuse(slot, &refused);
            return bytes.len();
        }
        let (origin, length) = match proxy::header(bytes) {
            Ok(None) => return 0,
            Ok(Some(header)) => header,
            Err(why) => {
                let message = "expected a header of the PROXY protocol";
                let refused = Refused::new(sqlstate::PROTOCOL_VIOLATION, message)
                    .detail(format!("From {proxy}: {why}."))
                    .hint(
                        "Have the proxy send it (HAProxy: send-proxy-v2), or connect to an \
                         address of listen.postgres. [P0125]",
                    );
                self.refuse(slot, &refused);
                return bytes.len();
            }
        };
        let client = &mut self.clients[slot];
        if let Phase::LoggingIn(login) = &mut client.phase {
            login.awaits_proxy = false;
        }
        if let Origin::Client { source, .. } = origin {
            let remote = SocketAddr::new(source.ip().to_canonical(), source.port());
            client.ends = Ends::Tcp { remote, local };
        }
        length
    }
}
