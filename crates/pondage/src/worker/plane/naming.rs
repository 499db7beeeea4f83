//! What PostgreSQL is told of where a client comes from.

use super::Plane;
use crate::session::address_name;
use crate::session::client::Phase;

impl Plane {
    /// The client's address becomes part of its application_name, if its pool wants that.
    pub(super) fn name_by_address(&mut self, slot: u32, at: u32) {
        let config = &self.pools[at as usize].config;
        if !config.application_name_add_host {
            return;
        }
        let client = &mut self.clients[slot];
        if let Phase::LoggingIn(login) = &mut client.phase {
            let preset = config.upstream.application_name.as_deref();
            address_name::add(&mut login.wish.settings, preset, &client.ends);
        }
    }
}
