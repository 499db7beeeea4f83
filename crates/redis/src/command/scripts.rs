//! Commands of scripts.

use super::Command;

pub const COMMANDS: &[Command] = &[];
