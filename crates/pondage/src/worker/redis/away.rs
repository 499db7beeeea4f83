//! Tables that can't be had.

use ::redis::flow::Sealed;
use ::redis::keyspace::Keyspace;
use ::redis::query::Query;
use ::redis::session::ConnId;
use ::redis::store::{Links, Store, Told};
use backend::moment::Moment;

/// What is asked of it waits.
#[derive(Debug, Default)]
pub struct NoTables(Vec<u8>);

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

    fn links(&mut self) -> &mut dyn Links {
        self
    }
}

impl Links for NoTables {
    fn count(&self) -> usize {
        0
    }

    fn wanted(&mut self, _now: Moment) -> Vec<usize> {
        Vec::new()
    }

    fn opened(&mut self, _link: usize, _now: Moment) {}

    fn failed(&mut self, _link: usize, _why: &str, _now: Moment) {}

    fn receive(&mut self, _link: usize, _bytes: &[u8], _now: Moment) {}

    fn closed(&mut self, _link: usize, _why: &str, _now: Moment) {}

    fn out(&mut self, _link: usize) -> &mut Vec<u8> {
        &mut self.0
    }

    fn dropped(&mut self) -> Vec<usize> {
        Vec::new()
    }
}
