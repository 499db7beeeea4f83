//! Results of reads, kept until the replication stream says that they may have changed.
//!
//! An answer depends on rows: those of certain tables, often only those with certain values. A
//! [`recipe::Recipe`] says which, and gives [`tags`] for the values of one statement. The
//! [`apply::Applier`] hears what the stream tells and raises the tags of each changed row.
//! As long as none of an answer's tags has been raised, the answer is what PostgreSQL would say.
//!
//! Whether nothing has been raised *yet* is the other half: [`position`] tells how far a client has
//! seen, and so how far the stream must have come before it is given what is kept in the
//! [`store`]; and [`acks`] what others were told that it may not have seen.

pub mod acks;
pub mod apply;
pub mod cover;
pub mod doorkeeper;
pub mod entry;
pub mod fill;
pub mod kept;
pub mod lease;
pub mod mirror;
pub mod plan;
pub mod position;
pub mod recipe;
pub mod request;
pub mod shared;
pub mod store;
pub mod tags;
pub mod value;
pub mod watch;
pub mod written;
