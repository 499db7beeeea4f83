//! A standby that is late: commits that wait for it are in the log, and told by the stream, long
//! before anybody sees them.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::{kill_process, Pid, Signal};

use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::place::{postgres_program, Directory};
use crate::kit::wait;

/// What `synchronous_standby_names` says.
pub const NAME: &str = "late";

/// It writes the log down, as a standby does, and is stopped and continued again and again.
pub struct Standby {
    receiver: Child,
    ends: Arc<AtomicBool>,
    stopping: Option<JoinHandle<()>>,
    _directory: Directory,
}

impl Standby {
    pub fn start(cluster: &Cluster, seed: u64) -> Standby {
        let directory = Directory::new("late");
        let receiver = Command::new(postgres_program("pg_receivewal"))
            .args(["--synchronous", "--no-loop", "--no-password", "-h", "127.0.0.1", "-U", APP])
            .args(["-p", &cluster.port.to_string(), "-d", &format!("application_name={NAME}")])
            .arg("-D")
            .arg(directory.path())
            .env("PGPASSWORD", APP_PASSWORD)
            .stdin(Stdio::null())
            .spawn()
            .expect("pg_receivewal");
        let pid = Pid::from_child(&receiver);
        let waits = format!(
            "select count(*) from pg_stat_replication \
             where application_name = '{NAME}' and sync_state = 'sync'"
        );
        let mut watcher = cluster.superuser("postgres");
        wait::until("a synchronous standby", || watcher.one(&waits) == "1");
        let ends = Arc::new(AtomicBool::new(false));
        let (end, mut dice) = (ends.clone(), StdRng::seed_from_u64(seed));
        let stopping = thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                for (signal, longest) in [(Signal::STOP, 60), (Signal::CONT, 30)] {
                    kill_process(pid, signal).expect("it is there");
                    thread::sleep(Duration::from_millis(dice.random_range(1..longest)));
                }
            }
        });
        Standby { receiver, ends, stopping: Some(stopping), _directory: directory }
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.stopping.take().map(JoinHandle::join);
        let _ = self.receiver.kill();
        let _ = self.receiver.wait();
    }
}
