//! Processes that this one, or one before it, has taken over from: they have clients still, whose
//! cancel requests come through our doors. Each is sent what no client of ours has the key of.

use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// Processes at one time; the next one can't take over before one has ended.
pub const PREDECESSORS_MAX: usize = 64;

/// Requests on their way to one of them; more are dropped, as the network may drop them.
const REQUESTS_MAX: usize = 256;

/// For one of them to take a request.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// Clones share one list.
#[derive(Clone, Default)]
pub struct Predecessors(Arc<Mutex<Vec<Predecessor>>>);

struct Predecessor {
    /// To be handed on.
    link: UnixStream,
    requests: mpsc::Sender<String>,
}

impl Predecessors {
    /// `link` was made when it was taken over from; its other end is closed when it ends. Has to
    /// be called inside of the runtime.
    ///
    /// # Errors
    /// The runtime does not take the socket.
    pub fn add(&self, link: UnixStream) -> std::io::Result<()> {
        link.set_nonblocking(true)?;
        let stream = tokio::net::UnixStream::from_std(link.try_clone()?)?;
        let (requests, queue) = mpsc::channel(REQUESTS_MAX);
        let own = requests.clone();
        self.list().push(Predecessor { link, requests });
        let list = self.clone();
        tokio::spawn(async move {
            forward(stream, queue).await;
            list.list().retain(|known| !known.requests.same_channel(&own));
        });
        Ok(())
    }

    /// Their links, for the process that takes over from this one.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn links(&self) -> std::io::Result<Vec<OwnedFd>> {
        self.list().iter().map(|known| Ok(known.link.try_clone()?.into())).collect()
    }

    /// Whoever knows the key is one of them, or nobody.
    pub fn cancel(&self, number: u32, key: &[u8]) {
        let line = cancel_line(number, key);
        for known in self.list().iter() {
            // A request that does not come through is one that came too late.
            let _ = known.requests.try_send(line.clone());
        }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Predecessor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until the other process ends, which says nothing.
async fn forward(stream: tokio::net::UnixStream, mut queue: mpsc::Receiver<String>) {
    let (mut reads, mut writes) = stream.into_split();
    let mut nothing = [0; 16];
    loop {
        tokio::select! {
            line = queue.recv() => {
                let Some(line) = line else { return };
                let written = tokio::time::timeout(WRITE_LIMIT, writes.write_all(line.as_bytes()));
                if !matches!(written.await, Ok(Ok(()))) {
                    return;
                }
            }
            read = reads.read(&mut nothing) => if !matches!(read, Ok(1..)) {
                return;
            }
        }
    }
}

fn cancel_line(number: u32, key: &[u8]) -> String {
    let mut line = format!("cancel {number} ");
    for byte in key {
        // Strings take all.
        let _ = write!(line, "{byte:02x}");
    }
    line.push('\n');
    line
}

/// The number and the key of a line that another process has written.
pub fn read_cancel_line(line: &str) -> Option<(u32, Vec<u8>)> {
    let (number, key) = line.strip_prefix("cancel ")?.split_once(' ')?;
    let bytes = key.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    Some((number.parse().ok()?, bytes.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_line() {
        for key in [&[][..], &[0], &[0xff, 0, 9], &[7; 256]] {
            let line = cancel_line(0x0100_0001, key);
            assert_eq!(
                read_cancel_line(line.trim_end_matches('\n')),
                Some((0x0100_0001, key.to_vec()))
            );
        }
    }

    #[test]
    fn lines_of_another_kind_are_no_keys() {
        for line in ["", "cancel", "cancel x 00", "cancel 1 0g", "cancel 1 é", "serving 1 00"] {
            assert_eq!(read_cancel_line(line), None, "{line}");
        }
    }
}
