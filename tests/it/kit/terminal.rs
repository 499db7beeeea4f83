//! A pseudo-terminal with a program in it, and what somebody in front of it would see.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::pty::{grantpt, openpt, ptsname, unlockpt, OpenptFlags};
use rustix::termios::{tcsetwinsize, Winsize};

use super::wait;

const COLUMNS: u16 = 160;
const LINES: u16 = 30;

/// What is on the screen comes in this time.
const LIMIT: Duration = Duration::from_secs(60);

pub struct Terminal {
    process: Child,
    keys: File,
    /// A plain mutex: the reader's thread writes, the test looks.
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    #[track_caller]
    pub fn run(mut command: Command) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&ours).expect("granted");
        unlockpt(&ours).expect("unlocked");
        let name = ptsname(&ours, Vec::new()).expect("its name").into_string().expect("UTF-8");
        let size = Winsize { ws_row: LINES, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("its size");
        let theirs = || {
            let opened = File::options().read(true).write(true).open(&name);
            Stdio::from(OwnedFd::from(opened.expect("the other side")))
        };
        command.env("TERM", "xterm-256color");
        command.stdin(theirs()).stdout(theirs()).stderr(theirs());
        let process = command.spawn().expect("the program");
        // Else the end of the program would not be the end of what it writes.
        drop(command);
        let ours = File::from(ours);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(LINES, COLUMNS, 0)));
        let (mut reader, seen) = (ours.try_clone().expect("dup"), screen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The last process that has it open is gone: EIO.
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                seen.lock().expect("not poisoned").process(&bytes[..read]);
            }
        });
        Terminal { process, keys: ours, screen }
    }

    #[track_caller]
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("keys");
    }

    /// What Ctrl-C does where the program is in the foreground.
    pub fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    }

    /// All lines.
    pub fn text(&self) -> String {
        self.screen.lock().expect("not poisoned").screen().contents()
    }

    pub fn is_alternate(&self) -> bool {
        self.screen.lock().expect("not poisoned").screen().alternate_screen()
    }

    /// Waits until it is seen.
    #[track_caller]
    pub fn sees(&self, what: &str) {
        let seen = wait::within(LIMIT, || self.text().contains(what).then_some(()));
        assert!(seen.is_some(), "no {what:?} on\n{}", self.text());
    }

    /// Waits until it is no longer seen.
    #[track_caller]
    pub fn sees_no(&self, what: &str) {
        let gone = wait::within(LIMIT, || (!self.text().contains(what)).then_some(()));
        assert!(gone.is_some(), "still {what:?} on\n{}", self.text());
    }

    /// Waits for the end of the program.
    #[track_caller]
    pub fn ended(mut self) -> (ExitStatus, bool) {
        let status = wait::within(LIMIT, || self.process.try_wait().expect("a child of ours"));
        let status = status.unwrap_or_else(|| panic!("it still runs:\n{}", self.text()));
        // What it wrote last is read by then, or soon.
        let left = wait::within(Duration::from_secs(5), || (!self.is_alternate()).then_some(()));
        (status, left.is_some())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
