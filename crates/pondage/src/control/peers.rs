//! Names of the operating system's users. They may come over a network (NSS), so asking may block.

use std::sync::LazyLock;

use nix::unistd::{Uid, User};
use tokio::sync::Semaphore;

/// Names asked for at one time; more wait their turn.
const NAMES_MAX: usize = 16;

static ASKING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(NAMES_MAX));

/// # Errors
/// There is no such user, or the system does not say; the words are for the log.
pub async fn name(uid: u32) -> Result<String, String> {
    let _permit = ASKING.acquire().await.map_err(|error| error.to_string())?;
    let found = tokio::task::spawn_blocking(move || User::from_uid(Uid::from_raw(uid))).await;
    match found {
        Ok(Ok(Some(user))) => Ok(user.name),
        Ok(Ok(None)) => Err(format!("the user with number {uid} has no name")),
        Ok(Err(error)) => Err(format!("the user with number {uid} is unknown: {error}")),
        Err(error) => Err(error.to_string()),
    }
}
