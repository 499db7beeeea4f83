//! Mirrors, through the gateway.
//!
//! Every statement has a value that never comes again, so that what is kept of earlier answers can't
//! answer it: a hit is a mirror's.

mod definitions;
mod failing_over;
mod forwarder;
mod fresh;
mod kills;
mod large;
mod losses;
mod pinned;
mod rights;
mod statements;
mod visible;
mod workers;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::place::{Cached, Place, Rows};
use crate::kit::{wait, WireClient};

/// Greater than all that the tests' tables hold. Each is given once.
static UNUSED: AtomicI64 = AtomicI64::new(1_000_000_000);

/// With a number that was never there in place of each `{}`.
fn unheard(sql: &str) -> String {
    sql.replace("{}", &UNUSED.fetch_add(1, Ordering::Relaxed).to_string())
}

/// Statements with `{}` where a number is to be that never was there.
trait Mirrored {
    fn unheard_rows(&mut self, sql: &str) -> Rows;

    fn unheard_one(&mut self, sql: &str) -> String;

    /// Asks until a mirror answers; what it says then.
    fn mirror(&mut self, sql: &str) -> Rows;
}

impl Mirrored for WireClient {
    #[track_caller]
    fn unheard_rows(&mut self, sql: &str) -> Rows {
        self.rows(&unheard(sql))
    }

    #[track_caller]
    fn unheard_one(&mut self, sql: &str) -> String {
        self.one(&unheard(sql))
    }

    #[track_caller]
    fn mirror(&mut self, sql: &str) -> Rows {
        self.warm_by(&unheard(sql), |client| client.unheard_rows(sql))
    }
}

/// Has a test's threads end, also when it fails: those that look at this.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Place {
    /// Waits until all these are answered by mirrors, each as PostgreSQL answers it.
    #[track_caller]
    fn mirrors(&self, reads: &[&str]) {
        let (mut client, mut beside) = (self.client(), self.beside());
        for read in reads {
            let expected = beside.unheard_rows(read);
            assert_eq!(client.mirror(read), expected, "{read}");
        }
    }

    /// Behind a change that the gateway need not have seen: waits until `reads` give what
    /// PostgreSQL gives, by mirrors.
    #[track_caller]
    fn mirrors_again(&self, reads: &[&str], behind: &str) {
        let (mut client, mut beside) = (self.client(), self.beside());
        for read in reads {
            let expected = beside.unheard_rows(read);
            let mut got = Rows::new();
            let same = wait::within(wait::DEADLINE, || {
                got = client.unheard_rows(read);
                (client.was_hit() && got == expected).then_some(())
            });
            assert!(same.is_some(), "{read} behind {behind}: {got:?} and not {expected:?}");
        }
    }
}
