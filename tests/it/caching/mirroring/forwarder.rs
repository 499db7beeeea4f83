//! The address of a server that another one takes over.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a held connection looks whether it may go on.
const PAUSE: Duration = Duration::from_millis(2);

/// A word of the start-up packets of some of the gateway's connections.
pub type Kind = &'static str;

/// The connection that streams.
pub const STREAM: Kind = "\0replication\0";

/// Those that copy tables.
pub const COPIES: Kind = "\0enable_seqscan\0";

/// Passes on what comes to its port. When this is gone nothing is held any more.
pub struct Forwarder {
    pub port: u16,
    common: Arc<Common>,
}

struct Common {
    /// Where new connections go.
    server: AtomicU16,
    held: Mutex<Option<(Kind, usize)>>,
}

impl Forwarder {
    pub fn start(server: u16) -> Forwarder {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        let server = AtomicU16::new(server);
        let common = Arc::new(Common { server, held: Mutex::default() });
        let own = common.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let common = own.clone();
                // Who is not answered has its connection closed.
                std::thread::spawn(move || forward(client, &common));
            }
        });
        Forwarder { port, common }
    }

    /// New connections go to another server.
    pub fn moves_to(&self, server: u16) {
        self.common.server.store(server, Ordering::SeqCst);
    }

    /// Connections of this kind are told no more than so many bytes, and not that they have ended:
    /// as if their server had gone without a word.
    pub fn hold(&self, kind: Kind, behind: usize) {
        self.common.set(Some((kind, behind)));
    }

    pub fn release(&self) {
        self.common.set(None);
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.release();
    }
}

impl Common {
    fn set(&self, held: Option<(Kind, usize)>) {
        *self.held.lock().expect("no panic while held") = held;
    }

    fn holds(&self, startup: &[u8], passed: usize) -> bool {
        let held = *self.held.lock().expect("no panic while held");
        held.is_some_and(|(kind, behind)| {
            let is_of_kind = startup.windows(kind.len()).any(|part| part == kind.as_bytes());
            is_of_kind && passed >= behind
        })
    }

    fn wait(&self, startup: &[u8], passed: usize) {
        while self.holds(startup, passed) {
            std::thread::sleep(PAUSE);
        }
    }
}

fn forward(mut client: TcpStream, common: &Arc<Common>) -> std::io::Result<()> {
    let mut startup = packet(&mut client)?;
    // SSLRequest and its like; a start-up packet has at least a user.
    while startup.len() == 8 {
        client.write_all(b"N")?;
        startup = packet(&mut client)?;
    }
    let server = TcpStream::connect(("127.0.0.1", common.server.load(Ordering::SeqCst)))?;
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let (mut to, mut from) = (server.try_clone()?, client.try_clone()?);
    to.write_all(&startup)?;
    let back = common.clone();
    std::thread::spawn(move || tell(server, client, &startup, &back));
    let mut room = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut room) {
        // A server that is gone is not heard of here: see `tell`.
        let _ = to.write_all(&room[..length]);
    }
    to.shutdown(Shutdown::Both)
}

/// Tells the client what its server says.
fn tell(mut server: TcpStream, mut client: TcpStream, startup: &[u8], common: &Common) {
    let mut room = [0; 16 << 10];
    let mut passed = 0;
    loop {
        let read = server.read(&mut room);
        common.wait(startup, passed);
        let Ok(length @ 1..) = read else { break };
        if client.write_all(&room[..length]).is_err() {
            break;
        }
        passed += length;
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

/// A message without a tag.
fn packet(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let more = (u32::from_be_bytes(length) as usize).saturating_sub(4).min(1 << 16);
    let mut packet = vec![0; 4 + more];
    packet[..4].copy_from_slice(&length);
    client.read_exact(&mut packet[4..])?;
    Ok(packet)
}
