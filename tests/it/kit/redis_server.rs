//! Debian's `redis-server`, which says what is right.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::place::{free_port, Directory};
use super::wait;

/// A server without persistence on a port of its own, ended when dropped.
pub struct RedisServer {
    pub port: u16,
    process: Child,
    directory: Directory,
}

impl RedisServer {
    /// `PONDAGE_REDIS_SERVER` names another binary than the one on the `PATH`.
    #[track_caller]
    pub fn start() -> RedisServer {
        let binary = std::env::var_os("PONDAGE_REDIS_SERVER")
            .map_or_else(|| PathBuf::from("redis-server"), PathBuf::from);
        let (port, directory) = (free_port(), Directory::new("redis"));
        let log = directory.path().join("log");
        let mut process = Command::new(&binary)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--hz", "500"])
            .args(["--port", &port.to_string()])
            .arg("--dir")
            .arg(directory.path())
            .arg("--logfile")
            .arg(&log)
            // SORT ALPHA compares as the locale says.
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| {
                panic!("{}: {e} (Debian: apt-get install redis-server)", binary.display())
            });
        wait::until("redis-server to listen", || {
            if let Some(status) = process.try_wait().expect("a child of ours") {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                panic!("redis-server ended with {status}:\n{said}");
            }
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        RedisServer { port, process, directory }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Where it keeps its log.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
