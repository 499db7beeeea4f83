//! Ports, directories and programs of a test run.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// Below the kernel's ephemeral range, so that no outgoing connection takes a port between its
/// choice and its use.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// A TCP port that nobody listens on, given out once in this process.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let span = PORTS.end - PORTS.start;
    // Two runs at the same time start at different places.
    let offset = (std::process::id() % u32::from(span)) as u16;
    for _ in 0..span {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % span;
        let port =
            PORTS.start + ((u32::from(offset) * 7 + u32::from(step)) % u32::from(span)) as u16;
        let v4 = TcpListener::bind(("127.0.0.1", port));
        let v6 = TcpListener::bind(("::1", port));
        let v6_taken = v6.is_err_and(|e| e.kind() == std::io::ErrorKind::AddrInUse);
        if v4.is_ok() && !v6_taken {
            return port;
        }
    }
    panic!("no free TCP port in {PORTS:?}");
}

/// A new directory of its own, removed with everything in it when dropped. Its path is short
/// enough for a Unix socket.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    pub fn new(what: &str) -> Directory {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pondage-test-{}-{what}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Directory(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves the directory where it is, for whoever else removes it.
    pub fn keep(self) -> PathBuf {
        let path = self.0.clone();
        std::mem::forget(self);
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The path of a program of PostgreSQL: from PATH, `pg_config --bindir`, or where Debian puts it
/// (the newest version).
#[track_caller]
pub fn postgres_program(name: &str) -> PathBuf {
    let on_path = std::env::var_os("PATH").into_iter().flat_map(|path| {
        std::env::split_paths(&path).map(|dir| dir.join(name)).collect::<Vec<_>>()
    });
    let told = Command::new("pg_config")
        .arg("--bindir")
        .output()
        .ok()
        .map(|out| PathBuf::from(String::from_utf8_lossy(&out.stdout).trim_end()).join(name));
    let debian = debian_bin_dirs().into_iter().map(|dir| dir.join(name));
    let mut places = debian.chain(told).chain(on_path);
    places.find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("{name} of PostgreSQL is not installed (Debian: apt-get install postgresql)")
    })
}

/// `/usr/lib/postgresql/*/bin`, newest first.
fn debian_bin_dirs() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path.join("bin")).collect()
}

/// The root of the working tree.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace")
}

/// Cargo's target directory, which holds `debug` and `release`.
pub fn build_directory() -> PathBuf {
    let profile = profile_directory();
    profile.parent().expect("target/PROFILE").to_owned()
}

/// Where the binaries of the profile of these tests are.
pub fn profile_directory() -> PathBuf {
    // target/debug/deps/it-0123456789abcdef
    let this = std::env::current_exe().expect("the path of this test");
    this.parent().and_then(Path::parent).expect("target/PROFILE/deps").to_owned()
}
