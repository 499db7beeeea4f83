//! What is told of how statements travel: to the client that asks, and to a collector.

mod collector;
mod export;
mod notices;
