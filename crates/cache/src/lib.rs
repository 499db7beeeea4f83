//! Results of reads, kept until the replication stream says that they may have changed.
//!
//! Whether nothing has been raised *yet* is the other half: [`position`] tells how far a client has
//! seen, and so how far the stream must have come before it is given what is kept in the
//! [`store`].

pub mod cover;
pub mod entry;
pub mod fill;
pub mod plan;
pub mod position;
pub mod recipe;
pub mod request;
pub mod store;
pub mod tags;
pub mod value;
