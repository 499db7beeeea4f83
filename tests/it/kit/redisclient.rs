//! A Redis client that says and hears bytes.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::{wait, Gateway};

/// Whatever bytes go over.
pub trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

pub struct RedisClient {
    stream: Box<dyn Stream>,
}

impl RedisClient {
    #[track_caller]
    pub fn connect(gateway: &Gateway) -> RedisClient {
        RedisClient { stream: Box::new(RedisClient::socket(gateway)) }
    }

    pub fn over(stream: impl Stream + 'static) -> RedisClient {
        RedisClient { stream: Box::new(stream) }
    }

    /// A connection for who wants to do more with it.
    #[track_caller]
    pub fn socket(gateway: &Gateway) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", gateway.redis_port)).expect("a connection");
        stream.set_read_timeout(Some(wait::DEADLINE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        stream
    }

    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the gateway reads");
        self.stream.flush().expect("the gateway reads");
    }

    /// Exactly these bytes come next.
    #[track_caller]
    pub fn hears(&mut self, expected: &[u8]) {
        let mut heard = vec![0; expected.len()];
        let mut read = 0;
        while read < heard.len() {
            match self.stream.read(&mut heard[read..]) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) => panic!("{error}; heard {}", heard[..read].escape_ascii()),
            }
            if !expected.starts_with(&heard[..read]) {
                break;
            }
        }
        let heard = &heard[..read];
        let same = heard.iter().zip(expected).take_while(|(a, b)| a == b).count();
        if same < expected.len() {
            let from = same.saturating_sub(20);
            let shown = |bytes: &[u8]| {
                let end = bytes.len().min(from + 200);
                bytes.get(from..end).unwrap_or_default().escape_ascii().to_string()
            };
            panic!("from byte {from} heard {}\n  instead of {}", shown(heard), shown(expected));
        }
    }

    #[track_caller]
    pub fn says(&mut self, bytes: &[u8], expected: &[u8]) {
        self.send(bytes);
        self.hears(expected);
    }

    /// The gateway closes the connection, and says nothing more.
    #[track_caller]
    pub fn ends(&mut self) {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the connection is not closed: {error}"),
        }
        assert_eq!(rest.escape_ascii().to_string(), "");
    }
}
