//! Asking a server to cancel what one of its connections does.
//!
//! The request goes to the very address the connection goes to: a name may have several, and only
//! one of them knows the key. The server answers by closing; until then the request may still be
//! on its way, and might hit the connection's next statement (trap 13).
//!
//! Source: PostgreSQL documentation, "Canceling Requests in Progress".

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::pg::startup;

use super::dial::{socket_path, Deadline, DialError, Dialed, Dialer};
use crate::config::{Host, PoolConfig};
use crate::link::Ends;

/// The limit when connect_timeout has none: nobody gets the server before the cancel is over.
const LIMIT_DEFAULT: Duration = Duration::from_secs(15);

impl Dialer {
    /// Sends the request and waits until the server has closed, at most for connect_timeout.
    pub async fn cancel(&self, config: &PoolConfig, ends: &Ends, pid: u32, key: &[u8]) {
        if let Err(why) = self.cancel_or_why(config, ends, pid, key).await {
            tracing::warn!(event = "cancel_failed", db = config.database, pid, error = why);
        }
    }

    /// # Errors
    /// Why the request may not have been heard.
    pub(super) async fn cancel_or_why(
        &self,
        config: &PoolConfig,
        ends: &Ends,
        pid: u32,
        key: &[u8],
    ) -> Result<(), String> {
        let limit = match config.connect_timeout {
            Duration::ZERO => LIMIT_DEFAULT,
            limit => limit,
        };
        let deadline = Deadline::after(limit);
        let done = deadline.run(self.request_cancel(config, ends, pid, key, deadline)).await;
        match done {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{}: {}", error.at, error.why)),
            Err(late) => Err(late.to_string()),
        }
    }

    async fn request_cancel(
        &self,
        config: &PoolConfig,
        ends: &Ends,
        pid: u32,
        key: &[u8],
        deadline: Deadline,
    ) -> Result<(), DialError> {
        let upstream = &config.upstream;
        let dialed = match (ends, &upstream.host) {
            (Ends::Tcp { remote, .. }, host) => {
                let mut dialed = match host {
                    Host::Tcp(name) => self.dial_address(upstream, name, *remote, deadline).await,
                    Host::Unix(_) => {
                        let name = remote.ip().to_string();
                        self.dial_address(upstream, &name, *remote, deadline).await
                    }
                };
                // The address is the server's; its certificate may have another host's name.
                for (host, _) in &upstream.several.others {
                    if let (Err(_), Host::Tcp(name)) = (&dialed, host) {
                        dialed = self.dial_address(upstream, name, *remote, deadline).await;
                    }
                }
                dialed
            }
            (Ends::Unix { port, .. }, Host::Unix(directory)) => {
                self.dial_unix(&socket_path(directory, *port), deadline).await
            }
            (Ends::Unix { .. }, Host::Tcp(host)) => match super::dial::shortcut(upstream) {
                Some(socket) => self.dial_unix(&socket, deadline).await,
                None => self.dial_tcp(upstream, host, deadline).await,
            },
        };
        let Dialed { mut transport, at, .. } = dialed?;
        let mut request = Vec::new();
        startup::put_cancel(&mut request, pid, key);
        let sent = async {
            transport.write_all(&request).await?;
            transport.flush().await
        };
        sent.await.map_err(|error| DialError::passing(at, error))?;
        // An end, or an error: a server closes TLS without saying goodbye.
        let mut rest = [0; 64];
        while matches!(transport.read(&mut rest).await, Ok(1..)) {}
        Ok(())
    }
}
