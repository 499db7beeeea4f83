//! One connection to a server, with a deadline for every reply.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::reply::Reply;

/// A server that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a connection is opened: where, and with which words of AUTH.
#[derive(Clone, Debug)]
pub struct Place {
    pub address: String,
    pub auth: Vec<String>,
}

pub struct Connection {
    socket: TcpStream,
    unread: Vec<u8>,
}

/// Why there is no reply. It is compared like one: both servers may close the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    Closed,
    Silent,
    Nonsense(String),
}

pub type Answer = Result<Reply, Lost>;

impl Connection {
    /// Panics when `place` does not let us in: then there is nothing to compare.
    #[track_caller]
    pub fn open(place: &Place) -> Connection {
        let socket =
            TcpStream::connect(&place.address).unwrap_or_else(|e| panic!("{}: {e}", place.address));
        socket.set_nodelay(true).expect("a TCP socket");
        let mut connection = Connection { socket, unread: Vec::new() };
        if !place.auth.is_empty() {
            let mut words = vec![b"AUTH".to_vec()];
            words.extend(place.auth.iter().map(|word| word.as_bytes().to_vec()));
            let answer = connection.ask(&words);
            assert_eq!(answer, Ok(Reply::Line(b'+', b"OK".to_vec())), "AUTH at {}", place.address);
        }
        connection
    }

    /// What was sent to a closed connection shows when its reply is awaited.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    pub fn ask(&mut self, words: &[Vec<u8>]) -> Answer {
        self.send(&encode(words));
        self.reply()
    }

    pub fn reply(&mut self) -> Answer {
        self.reply_within(PATIENCE)
    }

    pub fn reply_within(&mut self, limit: Duration) -> Answer {
        let end = Instant::now() + limit;
        loop {
            match Reply::parse(&self.unread) {
                Ok(Some((reply, length))) => {
                    self.unread.drain(..length);
                    return Ok(reply);
                }
                Ok(None) => self.read_more(end)?,
                Err(what) => return Err(Lost::Nonsense(what)),
            }
        }
    }

    /// Everything up to and with `mark`, or up to the end of the connection.
    pub fn until(&mut self, mark: &[u8], limit: Duration) -> (Vec<u8>, Option<Lost>) {
        let end = Instant::now() + limit;
        loop {
            let found = self.unread.windows(mark.len()).position(|part| part == mark);
            if let Some(at) = found {
                return (self.unread.drain(..at + mark.len()).collect(), None);
            }
            if let Err(lost) = self.read_more(end) {
                return (std::mem::take(&mut self.unread), Some(lost));
            }
        }
    }

    fn read_more(&mut self, end: Instant) -> Result<(), Lost> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Lost::Silent);
        }
        self.socket.set_read_timeout(Some(left)).expect("not zero");
        let mut room = [0; 16 << 10];
        match self.socket.read(&mut room) {
            Ok(0) => Err(Lost::Closed),
            Ok(length) => {
                self.unread.extend_from_slice(&room[..length]);
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Lost::Silent)
            }
            Err(_) => Err(Lost::Closed),
        }
    }
}

/// A command as drivers send it: an array of bulk strings.
pub fn encode(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The words of a command without any blank inside.
pub fn words(text: &str) -> Vec<Vec<u8>> {
    text.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}
