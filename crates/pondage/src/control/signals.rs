//! Signals: HUP reloads; TERM ends when the clients have left, a second one at once; INT ends when
//! the servers are idle, a second one at once; QUIT ends at once; USR1 is PAUSE, USR2 RESUME.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{signal, SignalKind};

use super::messages::Shutdown;
use super::Control;
use crate::console::operator::Operator;
use crate::console::Process;

/// Signals that were asked for and not yet delivered count from here on.
pub struct Signals {
    hup: tokio::signal::unix::Signal,
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    usr1: tokio::signal::unix::Signal,
    usr2: tokio::signal::unix::Signal,
}

impl Signals {
    /// # Errors
    /// When the runtime can't listen for signals.
    pub fn listen() -> io::Result<Signals> {
        Ok(Signals {
            hup: signal(SignalKind::hangup())?,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            usr1: signal(SignalKind::user_defined1())?,
            usr2: signal(SignalKind::user_defined2())?,
        })
    }

    /// Does what signals say, for ever.
    pub async fn obey(mut self, control: Arc<Control>, operator: Arc<Operator>) {
        loop {
            let how = tokio::select! {
                _ = self.hup.recv() => {
                    reload(&control).await;
                    continue;
                }
                _ = self.usr1.recv() => {
                    // It may have to wait; RESUME must not wait for it.
                    let operator = operator.clone();
                    tokio::spawn(async move { operator.pause_all().await });
                    continue;
                }
                _ = self.usr2.recv() => {
                    operator.resume_all().await;
                    continue;
                }
                _ = self.term.recv() => Shutdown::WaitForClients,
                _ = self.int.recv() => Shutdown::WaitForServers,
                _ = self.quit.recv() => Shutdown::Immediate,
            };
            let again = control.stopping() == Some(how);
            control.begin_shutdown(if again { Shutdown::Immediate } else { how });
        }
    }
}

async fn reload(control: &Control) {
    if let Err(why) = control.reload().await {
        tracing::error!(event = "reload_refused", "{why}");
    }
}
