//! The process that takes over: it asks the one that runs for its sockets, makes itself ready, and
//! serves when the other has closed its doors.
//!
//! ```text
//! new -> old   takeover 1
//! old -> new   {"pid": .., "sockets": [..]}     with the sockets
//! new -> old   ready           everything that can be refused is had
//! old -> new   go              it accepts nobody any more; its Redis engine is at rest
//! new -> old   serving
//! old -> new   done            the service manager knows
//! new -> old   cancel ..       for clients that the old one has, from then on
//! ```
//!
//! Instead of any of its answers the old one may say `no` and why. If it ends without a word it was
//! killed, and nobody serves: the new one does.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use serde_json::Value;

use super::doors::DoorError;
use super::held::{Held, Usage};

/// The first line. Another number is another protocol.
pub const HELLO: &str = "takeover 1";

/// Sockets in one message. Source: SCM_MAX_FD of Linux is 253.
pub const SOCKETS_MAX: usize = 250;

/// The longest line: descriptions of that many sockets.
const LINE_BYTES_MAX: usize = 256 << 10;

/// For an answer. The longest step is the old one's, whose Redis clients come to rest.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// For a whole upgrade, of which this process hears only the end.
const UPGRADE_LIMIT: Duration = Duration::from_secs(180);

/// The code of the error when nobody is there.
pub const NONE_RUNS: &str = "P0216";

/// On the way of taking over.
pub struct Takeover {
    link: UnixStream,
    /// Of the process that runs.
    pub pid: u32,
    /// It was killed meanwhile.
    orphaned: bool,
}

/// What the other process says.
enum Answer {
    Line(String),
    /// It has ended without a word.
    Gone,
}

impl Takeover {
    /// Asks the process at `path` for its sockets.
    ///
    /// # Errors
    /// P0216 if none runs there, P0217 if it refuses.
    pub fn begin(path: &Path) -> Result<(Takeover, Vec<Held>), DoorError> {
        let link = connect(path)?;
        let mut takeover = Takeover { link, pid: 0, orphaned: false };
        takeover.say(HELLO).map_err(failed)?;
        let mut sockets = Vec::new();
        let line = match read_line(&takeover.link, Some(&mut sockets)).map_err(failed)? {
            Answer::Line(line) => granted(line)?,
            Answer::Gone => return Err(failed("it has ended")),
        };
        let described: Value = serde_json::from_str(&line).map_err(failed)?;
        let pid = described["pid"].as_u64().and_then(|pid| pid.try_into().ok());
        takeover.pid = pid.ok_or_else(|| failed("its answer names no process"))?;
        let empty = Vec::new();
        let descriptions = described["sockets"].as_array().unwrap_or(&empty);
        if descriptions.len() != sockets.len() {
            return Err(failed("its answer does not fit its sockets"));
        }
        let held = descriptions.iter().zip(sockets);
        let held = held.filter_map(|(one, fd)| Held::from_description(one, fd)).collect();
        Ok((takeover, held))
    }

    /// Says that this process is ready to serve; true when it may.
    ///
    /// # Errors
    /// P0217: the other one goes on.
    pub fn ready(&mut self) -> Result<(), DoorError> {
        self.step("ready", "go")
    }

    /// Says that this process serves. With the way to the other one, which has clients still.
    ///
    /// # Errors
    /// P0217: the other one has opened its doors again.
    pub fn serving(mut self) -> Result<Option<UnixStream>, DoorError> {
        if !self.orphaned {
            self.step("serving", "done")?;
        }
        let link = self.link;
        Ok((!self.orphaned).then_some(link))
    }

    fn step(&mut self, word: &str, expected: &str) -> Result<(), DoorError> {
        let answer = match self.say(word) {
            Ok(()) => read_line(&self.link, None).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                read_line(&self.link, None).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        match answer {
            Answer::Line(line) => match granted(line)?.as_str() {
                line if line == expected => Ok(()),
                other => Err(failed(format!("it says \"{}\"", other.escape_debug()))),
            },
            Answer::Gone => {
                tracing::warn!(
                    event = "takeover_orphaned",
                    pid = self.pid,
                    "the old process is gone"
                );
                self.orphaned = true;
                Ok(())
            }
        }
    }

    fn say(&mut self, word: &str) -> io::Result<()> {
        self.link.write_all(format!("{word}\n").as_bytes())
    }
}

/// Has the process at `path` start a new one and hand over to it; gives the new one's id.
///
/// # Errors
/// P0216 if none runs there, P0217 if nothing came of it: the other one goes on.
pub fn upgrade(path: &Path) -> Result<String, DoorError> {
    let mut link = connect(path)?;
    link.set_read_timeout(Some(UPGRADE_LIMIT)).map_err(failed)?;
    link.write_all(b"upgrade\n").map_err(failed)?;
    match read_line(&link, None).map_err(failed)? {
        Answer::Line(line) => granted(line),
        Answer::Gone => Err(failed("it has ended")),
    }
}

fn connect(path: &Path) -> Result<UnixStream, DoorError> {
    let connected = || {
        let link = UnixStream::connect(path)?;
        link.set_read_timeout(Some(ANSWER_LIMIT))?;
        link.set_write_timeout(Some(ANSWER_LIMIT))?;
        Ok::<_, io::Error>(link)
    };
    connected().map_err(|error| {
        let what = format!("reach a running process at {}", path.display());
        let help = "is it running, as this user and with this runtime.control_socket? Without \
                    --takeover a first process is started";
        DoorError::new(NONE_RUNS, what, error, help)
    })
}

fn failed(why: impl std::fmt::Display) -> DoorError {
    let help = "the process that runs goes on as before; its log and this one's say more";
    DoorError::new("P0217", "take over from the process that runs", why, help)
}

fn granted(line: String) -> Result<String, DoorError> {
    match line.strip_prefix("no ") {
        Some(why) => Err(failed(why)),
        None => Ok(line),
    }
}

/// A line, and the sockets that come with it.
fn read_line(mut link: &UnixStream, sockets: Option<&mut Vec<OwnedFd>>) -> io::Result<Answer> {
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    let mut sockets = sockets;
    loop {
        let read = match &mut sockets {
            Some(sockets) => receive(link, &mut buffer, sockets),
            None => link.read(&mut buffer),
        };
        let read = match read {
            // It was killed with something of ours unread.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer"));
            }
            read => read?,
        };
        if read == 0 {
            return Ok(Answer::Gone);
        }
        line.extend_from_slice(&buffer[..read]);
        if line.last() == Some(&b'\n') {
            line.pop();
            return String::from_utf8(line).map(Answer::Line).map_err(io::Error::other);
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(io::Error::other("its answer is too long"));
        }
    }
}

fn receive(link: &UnixStream, bytes: &mut [u8], sockets: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(link, &mut [IoSliceMut::new(bytes)], &mut beside, flags)?;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            sockets.extend(rights);
        }
    }
    Ok(received.bytes)
}

/// The ways to processes that were taken over from before, out of what was handed to us.
pub fn take_links(held: &mut Vec<Held>) -> Vec<UnixStream> {
    let (links, doors) =
        std::mem::take(held).into_iter().partition::<Vec<_>, _>(|one| one.usage == Usage::Before);
    *held = doors;
    links.into_iter().map(|link| link.fd.into()).collect()
}
