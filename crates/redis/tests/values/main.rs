//! Values against models: random changes, what they write, what undoing gives back.

#[path = "../rig/mod.rs"]
mod rig;

mod lists;
mod zsets;
