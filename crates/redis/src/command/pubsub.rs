//! Commands of pubsub.

use super::Command;

pub const COMMANDS: &[Command] = &[];
