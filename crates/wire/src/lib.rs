//! Codecs: bytes to messages and back.
//!
//! This crate sees bytes and messages and nothing else: it does no IO, reads no clock, draws no
//! random numbers (nonces are arguments), logs nothing and keeps no global. Parsers borrow from
//! the bytes they are given and return an error for whatever a peer may send; builders append to
//! a `Vec<u8>`.

pub mod pg;
pub mod proxy;
pub mod resp;
