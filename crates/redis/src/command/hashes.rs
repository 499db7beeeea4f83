//! Commands of hashes.

use super::Command;

pub const COMMANDS: &[Command] = &[];
