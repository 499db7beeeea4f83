//! The codec against bytes: those of the documentation, of RFC 7677 and of a real PostgreSQL 15.

mod backend;
mod frame;
mod frontend;
mod pgoutput;
mod replication;
mod round_trips;
mod scram;
mod secret;
mod startup;

/// What `put` appends to a buffer that already holds something.
fn built(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = b"before".to_vec();
    put(&mut out);
    assert!(out.starts_with(b"before"));
    out.split_off(6)
}

/// The body of the one message in `message`, whose header must be right.
fn body_of(message: &[u8], tag: u8) -> &[u8] {
    let head = wire::pg::header(message).expect("a header").expect("five bytes");
    assert_eq!((head.tag, head.total), (tag, message.len()));
    &message[wire::pg::HEADER_BYTES..]
}
