//! The dashboard's API, as a browser uses it, in front of a real gateway: its figures are the
//! console's, it lets nobody do more than they may, and tells nobody what is secret.

mod endings;
mod figures;
mod nonsense;
mod rights;
mod secrets;

use crate::kit::{Config, Database};

/// May look, and nothing else.
const LOOKER: &str = "looker";
const LOOKER_PASSWORD: &str = "looker secret";

/// The users `app`, `admin`, who may do everything, and `looker`.
fn config(database: &Database) -> Config {
    Config::of(database)
        .set("auth.stats_users", [LOOKER])
        .set("users.looker.password", LOOKER_PASSWORD)
}
