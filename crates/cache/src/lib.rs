//! Results of reads, kept until the replication stream says that they may have changed.

pub mod recipe;
pub mod value;
