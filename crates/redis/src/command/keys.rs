//! Commands of keys.

use super::Command;

pub const COMMANDS: &[Command] = &[];
