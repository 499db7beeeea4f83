//! The control plane.

pub mod client_tls;
pub mod dial;
pub mod keys;
pub mod messages;
pub mod open;
pub mod pem;
pub mod tls;
pub mod transport;
pub mod verify;

#[cfg(test)]
mod tests;
