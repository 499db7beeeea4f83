//! Commands of sets.

use super::Command;

pub const COMMANDS: &[Command] = &[];
