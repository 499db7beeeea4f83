//! Commands of lists.

use super::Command;

pub const COMMANDS: &[Command] = &[];
