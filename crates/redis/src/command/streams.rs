//! Commands of streams.

use super::Command;

pub const COMMANDS: &[Command] = &[];
