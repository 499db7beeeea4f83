//! Whether the server of `pondage URL` lets Pondage in, found out at the start: who tries it should
//! not have to wait for a first client to hear of a wrong password. With a file nobody is asked.

use wire::pg::frontend;

use super::messages::OpenKind;
use super::Control;

impl Control {
    /// Logs in once as the servers of this pool will, and says in the log what came of it.
    pub async fn first_look(&self, database: &str, user: &str) {
        let Ok(pool) = self.config.load().pool(database, user) else { return };
        match self.dialer.start(&pool, None, &OpenKind::Pooled).await {
            Ok(mut session) => {
                let reported = session.logged_in.parameters.iter();
                let version = reported
                    .filter(|(name, _)| name == "server_version")
                    .map(|(_, value)| value.as_str())
                    .next()
                    .unwrap_or_default();
                tracing::info!(
                    event = "server_reached",
                    server = %session.at,
                    server_version = version,
                    tls = %session.tls(),
                    "the server lets us in"
                );
                let mut goodbye = Vec::new();
                frontend::put_terminate(&mut goodbye);
                let _ = session.send(&goodbye).await;
            }
            Err(error) => tracing::warn!(
                event = "server_connect_failed",
                db = database,
                user,
                sqlstate = error.code,
                hint =
                    error.hint.as_deref().unwrap_or("clients are told the same until it is mended"),
                "{}",
                error.message
            ),
        }
    }
}
