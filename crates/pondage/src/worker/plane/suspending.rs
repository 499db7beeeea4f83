//! SUSPEND: everything that is under way is written, and nothing more is read until RESUME, so that
//! what clients and servers say waits in the kernel. Log-ins and the console go on.

use std::time::Duration;

use backend::moment::Moment;
use tokio::sync::oneshot;

use super::Plane;
use crate::session::client::Client;

impl Plane {
    /// Replied when everything is written; `force`: who does not read is closed.
    pub(super) fn suspend(&mut self, force: bool, reply: oneshot::Sender<Result<(), String>>) {
        self.suspended.get_or_insert(self.now);
        if force {
            self.close_unwritten();
        }
        self.wait_until_written(reply);
    }

    /// The time meanwhile counts for no timeout: what came in it was not read.
    pub(super) fn resume_suspended(&mut self) {
        let Some(since) = self.suspended.take() else { return };
        let gone = self.now.since(since);
        self.last_tick = self.last_tick.after(gone);
        for slot in self.clients.numbers() {
            self.clients[slot].postpone(gone);
        }
        for slot in self.servers.numbers() {
            let since = &mut self.servers[slot].server.since;
            *since = since.after(gone);
        }
        self.pools.iter_mut().for_each(|pool| pool.pool.postpone(gone));
    }

    pub(super) fn is_written(&self) -> bool {
        self.clients.iter().all(|(_, client)| !is_unwritten(client))
            && self.servers.iter().all(|(_, conn)| conn.server.out.is_empty())
    }

    fn close_unwritten(&mut self) {
        for slot in self.clients.numbers() {
            if is_unwritten(&self.clients[slot]) {
                self.client_closed(slot);
            }
        }
        for slot in self.servers.numbers() {
            // One that a client above had is gone by now.
            let unwritten = |conn: &super::ServerConn| !conn.server.out.is_empty();
            if self.servers.get(slot).is_some_and(unwritten) {
                self.server_closed(slot, "it did not read within suspend_timeout");
            }
        }
    }
}

fn is_unwritten(client: &Client) -> bool {
    client.is_pooled() && !client.out.is_empty()
}

impl Client {
    fn postpone(&mut self, by: Duration) {
        let later = |moment: &mut Moment| *moment = moment.after(by);
        [&mut self.asked, &mut self.began, &mut self.active].into_iter().for_each(later);
    }
}
