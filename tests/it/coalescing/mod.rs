//! Statements of different clients on one server: each gets its own answer, nobody waits for
//! another's lock, and what must not share never does.
//!
//! Every test proves by the gateway's own counters that statements did join.

mod answers;
pub mod crowd;
mod errors;
mod liveness;
mod load;
mod safety;
mod switches;
mod trains;
