//! The process that runs, at its control socket: another one takes over from it, or it is told to
//! start that one itself. The words are in [`super::takeover`].
//!
//! Until the new process serves, nothing is lost: if it fails the doors are opened again.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, TryAcquireError};
use tokio::time::timeout;

use super::doors::Removed;
use super::held::{Held, Usage};
use super::notify;
use super::takeover::{HELLO, SOCKETS_MAX};
use crate::console::Process;
use crate::control::messages::Shutdown;
use crate::control::predecessors::{read_cancel_line, PREDECESSORS_MAX};
use crate::control::Control;
use crate::link::Door;
use crate::worker::Listener;

/// Connections at the control socket.
const TALKS_MAX: usize = 8;

/// The longest line of a new process: a cancel request.
const LINE_BYTES_MAX: u64 = 1024;

/// For the first word.
const HELLO_LIMIT: Duration = Duration::from_secs(5);

/// For a new process to bind what is new, read files and whatever else can be refused.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// For it to start its workers.
const SERVING_LIMIT: Duration = Duration::from_secs(30);

/// For a process that was started by us to have taken over.
const UPGRADE_LIMIT: Duration = Duration::from_secs(150);

/// After an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What goes when the process ends, or to the one that takes over.
#[derive(Default)]
pub struct House {
    pub held: Vec<Held>,
    pub files: Vec<Removed>,
    pub pid_file: Option<Removed>,
}

/// The house is looked at and changed, never waited in.
pub type SharedHouse = Arc<Mutex<House>>;

pub fn lock(house: &Mutex<House>) -> MutexGuard<'_, House> {
    house.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Handover {
    control: Arc<Control>,
    house: SharedHouse,
    /// One at a time.
    alone: Semaphore,
}

type Lines = BufReader<tokio::io::Take<tokio::net::unix::OwnedReadHalf>>;

impl Handover {
    pub fn new(control: Arc<Control>, house: SharedHouse) -> Arc<Handover> {
        Arc::new(Handover { control, house, alone: Semaphore::new(1) })
    }

    /// Serves the control socket until this process ends or was taken over from. The copies of
    /// the doors go then: their addresses are to be free.
    pub async fn attend(self: Arc<Self>, listener: UnixListener) {
        let talks = Arc::new(Semaphore::new(TALKS_MAX));
        let over = self.control.stopped();
        tokio::pin!(over);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut over => break,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // One more is closed without a word.
            let Ok(place) = talks.clone().try_acquire_owned() else { continue };
            let talk = self.clone();
            tokio::spawn(async move {
                if let Err(why) = talk.speak(stream).await {
                    tracing::info!(event = "control_socket", error = why, "a talk has ended");
                }
                drop(place);
            });
        }
        lock(&self.house).held.clear();
    }

    async fn speak(&self, stream: UnixStream) -> Result<(), String> {
        let who = stream.peer_cred().map_err(words)?;
        let own = rustix::process::geteuid().as_raw();
        if who.uid() != own && who.uid() != 0 {
            return Err(format!("user {} is not let in", who.uid()));
        }
        let pid = who.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
        let (reads, mut writes) = stream.into_split();
        let mut lines = BufReader::new(reads.take(LINE_BYTES_MAX));
        let answer = match read_line(&mut lines, HELLO_LIMIT).await?.as_str() {
            HELLO => match self.hand_over(&mut lines, &mut writes, pid).await {
                Ok(()) => return self.forward_cancels(&mut lines).await,
                Err(why) => Err(why),
            },
            "upgrade" => self.upgrade().await,
            other => Err(format!("\"{}\" is not understood", other.escape_debug())),
        };
        let line = match &answer {
            Ok(line) => line.clone(),
            Err(why) => format!("no {}", why.replace('\n', " ")),
        };
        say(&mut writes, &line).await.map_err(words)?;
        answer.map(drop)
    }

    /// # Errors
    /// Why nothing came of it; the doors are as they were.
    async fn hand_over(
        &self,
        lines: &mut Lines,
        writes: &mut tokio::net::unix::OwnedWriteHalf,
        pid: u32,
    ) -> Result<(), String> {
        let _alone = self.alone.try_acquire().map_err(|error| match error {
            TryAcquireError::NoPermits | TryAcquireError::Closed => {
                "another process is taking over".to_owned()
            }
        })?;
        if self.control.condition().stopping {
            return Err("it is ending".to_owned());
        }
        tracing::info!(event = "takeover", pid, "another process takes over");
        self.send_sockets(writes).await?;
        expect(lines, "ready", READY_LIMIT).await?;
        let retired = async {
            self.control.close_doors().await?;
            say(writes, "go").await.map_err(words)?;
            expect(lines, "serving", SERVING_LIMIT).await
        };
        if let Err(why) = retired.await {
            let why = format!("the doors are open again: {why}");
            tracing::warn!(event = "takeover_failed", pid, error = why, "nobody has taken over");
            self.control.open_doors(&self.doors());
            return Err(why);
        }
        {
            let mut house = lock(&self.house);
            house.files.drain(..).for_each(Removed::leave);
            house.pid_file.take().into_iter().for_each(Removed::leave);
        }
        notify::leave(pid);
        self.control.begin_shutdown(Shutdown::HandedOver);
        tracing::info!(event = "handed_over", pid, "clients that are here are served to their end");
        // It serves, whether it hears this or not.
        let _ = say(writes, "done").await;
        Ok(())
    }

    /// The descriptions, and the sockets themselves.
    async fn send_sockets(
        &self,
        writes: &mut tokio::net::unix::OwnedWriteHalf,
    ) -> Result<(), String> {
        let mut held = self.copies().map_err(words)?;
        for link in self.control.predecessors.links().map_err(words)? {
            let (usage, name) = (Usage::Before, String::new());
            held.push(Held { usage, name, activated: false, unix_port: None, fd: link });
        }
        let links = held.iter().filter(|one| one.usage == Usage::Before).count();
        if links >= PREDECESSORS_MAX {
            return Err(format!("{links} processes before it have clients still"));
        }
        if held.len() > SOCKETS_MAX {
            return Err(format!("it has more than {SOCKETS_MAX} sockets to hand over"));
        }
        let sockets: Vec<_> = held.iter().map(Held::describe).collect();
        let mut line = json!({ "pid": std::process::id(), "sockets": sockets }).to_string();
        line.push('\n');
        let descriptors: Vec<BorrowedFd<'_>> = held.iter().map(|one| one.fd.as_fd()).collect();
        let stream: &UnixStream = writes.as_ref();
        let sent = loop {
            stream.writable().await.map_err(words)?;
            match stream.try_io(Interest::WRITABLE, || send(stream, line.as_bytes(), &descriptors))
            {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => break sent.map_err(words)?,
            }
        };
        timeout(SERVING_LIMIT, writes.write_all(&line.as_bytes()[sent..]))
            .await
            .map_err(words)?
            .map_err(words)
    }

    fn copies(&self) -> io::Result<Vec<Held>> {
        lock(&self.house).held.iter().map(Held::copy).collect()
    }

    /// Those for clients, to be opened again.
    fn doors(&self) -> Vec<(Door, Listener)> {
        let house = lock(&self.house);
        let doors = house.held.iter().filter_map(|one| {
            let door = match one.usage {
                Usage::Postgres => Door::Postgres,
                Usage::Proxied => Door::Proxied,
                Usage::Redis => Door::Redis,
                Usage::Http | Usage::Control | Usage::Before => return None,
            };
            Some((door, one.listener().ok()?))
        });
        doors.collect()
    }

    /// The new process sends on what is for our clients, until it ends.
    async fn forward_cancels(&self, lines: &mut Lines) -> Result<(), String> {
        while let Some(line) = next_line(lines).await? {
            if let Some((number, key)) = read_cancel_line(&line) {
                self.control.cancel_request(number, key);
            }
        }
        Ok(())
    }

    /// Starts what this process was started as, whatever the binary is by now.
    ///
    /// # Errors
    /// Why nothing came of it; this process goes on.
    async fn upgrade(&self) -> Result<String, String> {
        let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
        let program = std::env::args_os().next().ok_or("it does not know its own name")?;
        let takes_over = |argument: &std::ffi::OsString| {
            [Some("-R"), Some("--takeover"), Some("--reboot")].contains(&argument.to_str())
        };
        if !arguments.iter().any(takes_over) {
            arguments.push("--takeover".into());
        }
        let mut child = Command::new(&program)
            .args(arguments)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let pid = child.id();
        let ended = tokio::task::spawn_blocking(move || child.wait());
        let over = async {
            tokio::select! {
                () = self.control.stopped() => Ok(format!("process {pid} serves now")),
                ended = ended => Err(early_end(ended.map_err(io::Error::other).and_then(|end| end))),
            }
        };
        timeout(UPGRADE_LIMIT, over)
            .await
            .unwrap_or_else(|_| Err(format!("process {pid} has not taken over in time")))
    }
}

fn early_end(ended: io::Result<ExitStatus>) -> String {
    match ended {
        Ok(status) => format!("the new process has ended ({status}); the log has its reasons"),
        Err(error) => error.to_string(),
    }
}

fn send(stream: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    beside.push(SendAncillaryMessage::ScmRights(descriptors));
    Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL)?)
}

async fn say(writes: &mut tokio::net::unix::OwnedWriteHalf, line: &str) -> io::Result<()> {
    let line = format!("{line}\n");
    timeout(HELLO_LIMIT, writes.write_all(line.as_bytes()))
        .await
        .unwrap_or_else(|late| Err(io::Error::new(io::ErrorKind::TimedOut, late)))
}

async fn expect(lines: &mut Lines, word: &str, limit: Duration) -> Result<(), String> {
    match read_line(lines, limit).await? {
        line if line == word => Ok(()),
        line => Err(format!("the new process says \"{}\"", line.escape_debug())),
    }
}

async fn read_line(lines: &mut Lines, limit: Duration) -> Result<String, String> {
    match timeout(limit, next_line(lines)).await {
        Ok(line) => line?.ok_or_else(|| "the new process has ended".to_owned()),
        Err(_) => Err(format!("the new process said nothing for {} s", limit.as_secs())),
    }
}

/// `None`: it has ended.
async fn next_line(lines: &mut Lines) -> Result<Option<String>, String> {
    lines.get_mut().set_limit(LINE_BYTES_MAX);
    let mut line = Vec::new();
    lines.read_until(b'\n', &mut line).await.map_err(words)?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => String::from_utf8(line).map(Some).map_err(words),
        Some(_) => Err("a line has no end".to_owned()),
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
