//! Tables in memory, kept by the replication stream, that answer statements.
//!
//! ```text
//! Select (crate sql) -> plan -> run -> DataRows
//!                                |
//! snapshot -> held::Copy -> table (rows, tree, ordered) <- held <- feed <- stream
//! ```

pub mod budget;
pub mod building;
mod change;
pub mod class;
pub mod decimal;
pub mod definition;
pub mod feed;
pub mod held;
pub mod key;
pub mod mirrored;
pub mod ordered;
pub mod output;
pub mod plan;
pub mod rows;
pub mod run;
mod spans;
pub mod stored;
pub mod table;
pub mod tree;
pub mod wish;
