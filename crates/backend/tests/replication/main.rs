//! Following a database without a database: scripted servers, every cut, random streams.

mod client;
mod keeper;
mod plan;
mod recorder;
mod script;
mod snapshot;
