//! Tables that can't be had.

use ::redis::flow::Sealed;
use ::redis::keyspace::Keyspace;
use ::redis::query::Query;
use ::redis::session::ConnId;
use ::redis::store::{Store, Told};

/// What is asked of it waits.
#[derive(Debug)]
pub struct NoTables;

impl Store for NoTables {
    fn send(&mut self, _keys: &mut Keyspace, _sealed: &Sealed) {}

    fn load(&mut self, _db: u16, _keys: Vec<Box<[u8]>>) {}

    fn ask(&mut self, _conn: ConnId, _query: Query) {}

    fn is_ready(&self) -> bool {
        false
    }

    fn told(&mut self) -> Vec<Told> {
        Vec::new()
    }
}
