//! The doors, when another process takes over: closed at every worker, opened again if nothing
//! comes of it.

use std::time::Duration;

use tokio::sync::oneshot;

use super::messages::ToWorker;
use super::Control;
use crate::link::Door;
use crate::worker::Listener;

/// For every worker to close its doors, and for the Redis clients to have their answers.
pub const RETIRE_LIMIT: Duration = Duration::from_secs(10);

impl Control {
    /// No worker accepts anybody any more, and what Redis clients have written is committed.
    ///
    /// # Errors
    /// Some Redis client goes on and on, or a worker does not turn. The doors have to be opened
    /// again.
    pub async fn close_doors(&self) -> Result<(), String> {
        let closed = self.every_worker(|reply| ToWorker::Doors { doors: Vec::new(), reply });
        match tokio::time::timeout(RETIRE_LIMIT, closed).await {
            Ok(()) => Ok(()),
            Err(_) => {
                let limit = RETIRE_LIMIT.as_secs();
                Err(format!("its clients at the Redis door did not come to rest within {limit} s"))
            }
        }
    }

    pub fn open_doors(&self, doors: &[(Door, Listener)]) {
        for worker in &self.workers {
            let copy =
                |(door, listener): &(Door, Listener)| Some((*door, listener.try_clone().ok()?));
            let doors = doors.iter().filter_map(copy).collect();
            worker.send(ToWorker::Doors { doors, reply: oneshot::channel().0 });
        }
    }

    /// When every worker has answered, or ended.
    pub async fn ping(&self) {
        self.every_worker(|reply| ToWorker::Ping { reply }).await;
    }

    async fn every_worker(&self, message: impl Fn(oneshot::Sender<()>) -> ToWorker) {
        let asked = self.workers.iter().map(|worker| {
            let (reply, answer) = oneshot::channel();
            worker.send(message(reply));
            answer
        });
        for answer in asked.collect::<Vec<_>>() {
            // A worker that has ended has no doors.
            let _ = answer.await;
        }
    }

    /// A cancel request that came to the process that has taken over.
    pub fn cancel_request(&self, number: u32, key: Vec<u8>) {
        self.tell(0, ToWorker::CancelRequest { number, key });
    }
}
