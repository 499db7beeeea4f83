//! Cancel requests whose client is at another Pondage: a balancer before several of them sends a
//! CancelRequest to any, and only one knows the key.
//!
//! Who does not know a key asks all its peers, and marks what it sends: a request with the mark
//! goes no further. The mark is the end of the key, which is longer for it; protocol 3.2 has keys
//! of any length.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use wire::pg::startup;

use crate::config::Peer;

/// What the key of a request ends with that a peer has passed on.
const MARK: &[u8] = b"\0asked a peer";

/// Requests on their way to peers; more are dropped, as the network may drop them.
const REQUESTS_MAX: usize = 256;

/// For one peer to take a request and to close.
const LIMIT: Duration = Duration::from_secs(5);

/// A key without its mark, and whether it had one.
pub fn unmarked(key: &[u8]) -> (&[u8], bool) {
    match key.strip_suffix(MARK) {
        Some(key) => (key, true),
        None => (key, false),
    }
}

/// Asks peers.
pub struct Peering(Arc<Semaphore>);

impl Default for Peering {
    fn default() -> Peering {
        Peering(Arc::new(Semaphore::new(REQUESTS_MAX)))
    }
}

impl Peering {
    /// Tells every peer; inside of the runtime.
    pub fn cancel(&self, peers: &[Peer], number: u32, key: &[u8]) {
        let mut request = Vec::new();
        startup::put_cancel(&mut request, number, &[key, MARK].concat());
        for peer in peers {
            let Ok(permit) = self.0.clone().try_acquire_owned() else { return };
            let (peer, request) = (peer.clone(), request.clone());
            tokio::spawn(async move {
                let _permit = permit;
                let why = match tokio::time::timeout(LIMIT, ask(&peer, &request)).await {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "it does not answer".to_owned(),
                };
                tracing::warn!(event = "peer_failed", peer = %peer, "no cancel request: {why}");
            });
        }
    }
}

async fn ask(peer: &Peer, request: &[u8]) -> io::Result<()> {
    match peer {
        Peer::Tcp { host, port } => {
            say(TcpStream::connect((host.as_str(), *port)).await?, request).await
        }
        Peer::Unix(path) => say(UnixStream::connect(path).await?, request).await,
    }
}

/// Until the peer has closed: then it has heard.
async fn say(mut link: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> io::Result<()> {
    link.write_all(request).await?;
    let mut rest = [0; 64];
    while matches!(link.read(&mut rest).await, Ok(1..)) {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_seen_and_taken_off() {
        for key in [&[1, 2, 3, 4][..], &[0; 32]] {
            assert_eq!(unmarked(key), (key, false));
            assert_eq!(unmarked(&[key, MARK].concat()), (key, true));
        }
    }
}
