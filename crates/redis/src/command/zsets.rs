//! Commands of zsets.

use super::Command;

pub const COMMANDS: &[Command] = &[];
