//! Commands about the server.

use super::Command;

pub const COMMANDS: &[Command] = &[];
