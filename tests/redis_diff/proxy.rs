//! A proxy that tells a lie: it shows that lies are found.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// Listens on a free port for the life of the process and passes everything on to `address`;
/// where `truth` comes back it says `lie`, which is as long.
pub fn start(address: &str, truth: &'static [u8], lie: &'static [u8]) -> String {
    assert_eq!(truth.len(), lie.len());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let own = listener.local_addr().expect("a bound socket").to_string();
    let address = address.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&address).expect("the server behind the proxy");
            let _ = server.set_nodelay(true);
            let _ = client.set_nodelay(true);
            let (from, to) = (client.try_clone(), server.try_clone());
            let (from, to) = (from.expect("a socket"), to.expect("a socket"));
            std::thread::spawn(move || pass(from, to, b"", b""));
            std::thread::spawn(move || pass(server, client, truth, lie));
        }
    });
    own
}

fn pass(mut from: TcpStream, mut to: TcpStream, truth: &[u8], lie: &[u8]) {
    let mut room = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut room) {
        let bytes = &mut room[..length];
        for at in 0..(length + 1).saturating_sub(truth.len()) {
            if !truth.is_empty() && bytes[at..].starts_with(truth) {
                bytes[at..at + lie.len()].copy_from_slice(lie);
            }
        }
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
