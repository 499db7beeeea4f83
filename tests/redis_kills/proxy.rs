//! A proxy between gateway and PostgreSQL that cuts connections in the middle of anything, or holds
//! bytes back.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// How often a held direction looks whether it may go on.
const PAUSE: Duration = Duration::from_millis(2);

/// What the proxy does to a direction.
#[derive(Debug, Default)]
pub struct Direction {
    /// Bytes that still pass before a connection is cut; below 0: nothing is cut.
    fuse: AtomicI64,
    held: AtomicBool,
}

#[derive(Debug)]
pub struct Proxy {
    pub port: u16,
    pub to_server: Arc<Direction>,
    pub to_client: Arc<Direction>,
}

impl Direction {
    /// Cuts the connection that moves the byte with this number.
    pub fn cut_after(&self, bytes: i64) {
        self.fuse.store(bytes, Ordering::SeqCst);
    }

    pub fn hold(&self, held: bool) {
        self.held.store(held, Ordering::SeqCst);
    }

    fn wait(&self) {
        while self.held.load(Ordering::SeqCst) {
            std::thread::sleep(PAUSE);
        }
    }

    /// How many of so many bytes may pass; fewer than all: then the connection ends.
    fn pass(&self, length: usize) -> usize {
        let left = self.fuse.load(Ordering::SeqCst);
        if left < 0 {
            return length;
        }
        let length = length as i64;
        let before = self.fuse.fetch_sub(length, Ordering::SeqCst);
        if before >= length {
            return length as usize;
        }
        // Once is enough.
        self.fuse.store(-1, Ordering::SeqCst);
        before.max(0) as usize
    }
}

impl Proxy {
    /// Listens for the life of the process and passes everything on to `port`.
    pub fn start(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let own = listener.local_addr().expect("a bound socket").port();
        let (to_server, to_client) = (Arc::new(calm()), Arc::new(calm()));
        let proxy = Proxy { port: own, to_server: to_server.clone(), to_client: to_client.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let _ = (server.set_nodelay(true), client.set_nodelay(true));
                let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else { continue };
                let (there, back) = (to_server.clone(), to_client.clone());
                std::thread::spawn(move || pass(from, to, &there));
                std::thread::spawn(move || pass(server, client, &back));
            }
        });
        proxy
    }

    /// Lets everything pass again.
    pub fn calm(&self) {
        for direction in [&self.to_server, &self.to_client] {
            direction.cut_after(-1);
            direction.hold(false);
        }
    }
}

fn calm() -> Direction {
    Direction { fuse: AtomicI64::new(-1), held: AtomicBool::new(false) }
}

fn pass(mut from: TcpStream, mut to: TcpStream, direction: &Direction) {
    let mut room = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut room) {
        direction.wait();
        let passes = direction.pass(length);
        if to.write_all(&room[..passes]).is_err() || passes < length {
            break;
        }
    }
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}
