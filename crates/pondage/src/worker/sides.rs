//! What the planes have to say of each kind of connections.

use super::connections::Side;
use super::plane::Plane;
use super::redis::RedisPlane;

/// The clients of PostgreSQL's door.
pub struct Clients<'a>(pub &'a mut Plane);

impl Side for Clients<'_> {
    const LOST_WHEN_GONE: bool = true;

    fn may_read(&self, slot: u32) -> bool {
        self.0.client_may_read(slot)
    }

    fn bytes(&mut self, slot: u32, bytes: &[u8]) {
        self.0.client_bytes(slot, bytes);
    }

    fn closed(&mut self, slot: u32, _why: &str) {
        self.0.client_closed(slot);
    }

    fn out(&mut self, slot: u32) -> Option<&mut Vec<u8>> {
        Some(&mut self.0.clients.get_mut(slot)?.out)
    }

    fn flushed(&mut self, slot: u32) {
        self.0.client_flushed(slot);
    }

    fn write_failed(&mut self, slot: u32) -> bool {
        self.0.client_closed(slot);
        false
    }

    fn written(&mut self) -> &mut Vec<u32> {
        &mut self.0.written_clients
    }

    fn forgotten(&mut self, slot: u32) {
        self.0.client_forgotten(slot);
    }
}

/// The pools' servers.
pub struct Servers<'a>(pub &'a mut Plane);

impl Side for Servers<'_> {
    /// Its last words are its clients'.
    const LOST_WHEN_GONE: bool = false;

    fn may_read(&self, slot: u32) -> bool {
        self.0.server_may_read(slot)
    }

    fn bytes(&mut self, slot: u32, bytes: &[u8]) {
        self.0.server_bytes(slot, bytes);
    }

    fn closed(&mut self, slot: u32, why: &str) {
        self.0.server_closed(slot, why);
    }

    fn out(&mut self, slot: u32) -> Option<&mut Vec<u8>> {
        Some(&mut self.0.servers.get_mut(slot)?.server.out)
    }

    fn flushed(&mut self, slot: u32) {
        self.0.server_flushed(slot);
    }

    /// What the server said before it closed is read first; then its end is seen.
    fn write_failed(&mut self, slot: u32) -> bool {
        if let Some(conn) = self.0.servers.get_mut(slot) {
            conn.server.out.clear();
        }
        true
    }

    fn written(&mut self) -> &mut Vec<u32> {
        &mut self.0.written_servers
    }

    /// A server is forgotten before it is closed.
    fn forgotten(&mut self, _slot: u32) {}
}

/// The connections that ask how far PostgreSQL is.
pub struct Links<'a>(pub &'a mut Plane);

impl Side for Links<'_> {
    const LOST_WHEN_GONE: bool = false;

    fn may_read(&self, _slot: u32) -> bool {
        true
    }

    fn bytes(&mut self, slot: u32, bytes: &[u8]) {
        self.0.link_bytes(slot, bytes);
    }

    fn closed(&mut self, slot: u32, why: &str) {
        self.0.link_closed(slot, why);
    }

    fn out(&mut self, slot: u32) -> Option<&mut Vec<u8>> {
        self.0.link_out(slot)
    }

    fn flushed(&mut self, slot: u32) {
        self.0.link_flushed(slot);
    }

    /// What PostgreSQL said before it closed is read first.
    fn write_failed(&mut self, slot: u32) -> bool {
        self.0.link_flushed(slot);
        true
    }

    fn written(&mut self) -> &mut Vec<u32> {
        &mut self.0.written_links
    }

    fn forgotten(&mut self, _slot: u32) {}
}

/// The clients of the Redis door.
pub struct RedisClients<'a>(pub &'a mut RedisPlane);

impl Side for RedisClients<'_> {
    /// What it has sent before is run.
    const LOST_WHEN_GONE: bool = false;

    fn may_read(&self, slot: u32) -> bool {
        self.0.client_may_read(slot)
    }

    fn bytes(&mut self, slot: u32, bytes: &[u8]) {
        self.0.client_bytes(slot, bytes);
    }

    fn closed(&mut self, slot: u32, _why: &str) {
        self.0.client_closed(slot);
    }

    fn out(&mut self, slot: u32) -> Option<&mut Vec<u8>> {
        Some(&mut self.0.clients.get_mut(slot)?.out)
    }

    fn flushed(&mut self, slot: u32) {
        self.0.client_flushed(slot);
    }

    fn write_failed(&mut self, slot: u32) -> bool {
        self.0.client_broken(slot);
        false
    }

    fn written(&mut self) -> &mut Vec<u32> {
        &mut self.0.written
    }

    fn forgotten(&mut self, slot: u32) {
        self.0.client_forgotten(slot);
    }
}

/// The connections of the Redis door's engine.
pub struct RedisLinks<'a>(pub &'a mut RedisPlane);

impl Side for RedisLinks<'_> {
    const LOST_WHEN_GONE: bool = false;

    fn may_read(&self, _slot: u32) -> bool {
        true
    }

    fn bytes(&mut self, slot: u32, bytes: &[u8]) {
        self.0.link_bytes(slot as usize, bytes);
    }

    fn closed(&mut self, slot: u32, why: &str) {
        self.0.link_closed(slot as usize, why);
    }

    fn out(&mut self, slot: u32) -> Option<&mut Vec<u8>> {
        self.0.link_out(slot as usize)
    }

    fn flushed(&mut self, slot: u32) {
        self.0.link_flushed(slot as usize);
    }

    /// What PostgreSQL said before it closed is read first.
    fn write_failed(&mut self, slot: u32) -> bool {
        self.0.link_flushed(slot as usize);
        true
    }

    fn written(&mut self) -> &mut Vec<u32> {
        &mut self.0.written_links
    }

    fn forgotten(&mut self, _slot: u32) {}
}
