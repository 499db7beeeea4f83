//! Buffers that idle clients do not need, for those that are not idle.

use wire::resp::Parser;

use super::client::{Client, Held};

/// Of each kind.
const SPARES_MAX: usize = 256;

/// What has become larger, in bytes, is not kept.
const SPARE_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Spares {
    buffers: Vec<Vec<u8>>,
    held: Vec<Held>,
    #[allow(clippy::vec_box)] // The boxes are what is kept: clients hold one each.
    parsers: Vec<Box<Parser>>,
}

impl Spares {
    pub fn give_buffer(&mut self, to: &mut Vec<u8>) {
        if to.capacity() == 0 {
            *to = self.buffers.pop().unwrap_or_default();
        }
    }

    fn keep_buffer(&mut self, from: &mut Vec<u8>) {
        let buffer = std::mem::take(from);
        let capacity = buffer.capacity();
        if (1..=SPARE_BYTES_MAX).contains(&capacity) && self.buffers.len() < SPARES_MAX {
            self.buffers.push(buffer);
        }
    }

    pub fn give_held(&mut self, to: &mut Held) {
        if to.memory() == 0 {
            *to = self.held.pop().unwrap_or_default();
        }
    }

    pub fn parser(&mut self) -> Box<Parser> {
        self.parsers.pop().unwrap_or_default()
    }

    pub fn keep_parser(&mut self, parser: Box<Parser>) {
        if parser.memory() <= SPARE_BYTES_MAX && self.parsers.len() < SPARES_MAX {
            self.parsers.push(parser);
        }
    }

    /// Takes what a client does not need now.
    pub fn take_from(&mut self, client: &mut Client) {
        if client.input.is_empty() {
            self.keep_buffer(&mut client.input);
        }
        if client.out.is_empty() {
            self.keep_buffer(&mut client.out);
        }
        if client.held.is_empty() && client.held.memory() > 0 {
            let held = std::mem::take(&mut client.held);
            if held.memory() <= SPARE_BYTES_MAX && self.held.len() < SPARES_MAX {
                self.held.push(held);
            }
        }
    }
}
