//! Whether it is worth the trouble to look for kept results of a shape: measured, and given up for
//! a while where it is not.

/// Looks that are judged together.
const WINDOW: u32 = 4096;

/// Windows without gain before the shape is left alone. The first ones fill what is empty.
const PATIENCE: u32 = 8;

/// One of so many looks has to find something. A look costs about a hundredth of a trip.
const GAIN_ONE_OF: u32 = 32;

/// So many statements the shape is left alone; then it is tried again.
const REST: u32 = WINDOW * 32;

/// See the module's documentation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Worth {
    looks: u32,
    hits: u32,
    idle: u32,
    rests: u32,
}

impl Worth {
    /// A statement of the shape comes. False: it is not looked for.
    pub fn is_tried(&mut self) -> bool {
        if self.rests > 0 {
            self.rests -= 1;
            return false;
        }
        true
    }

    /// It was looked for, and found or not.
    pub fn looked(&mut self, hit: bool) {
        self.looks += 1;
        self.hits += u32::from(hit);
        if self.looks < WINDOW {
            return;
        }
        let gains = self.hits * GAIN_ONE_OF >= self.looks;
        let idle = if gains { 0 } else { self.idle + 1 };
        *self = match idle {
            // One window is enough from now on.
            PATIENCE => Worth { idle: PATIENCE - 1, rests: REST, ..Worth::default() },
            idle => Worth { idle, ..Worth::default() },
        };
    }

    /// It is left alone at the moment.
    pub fn rests(&self) -> bool {
        self.rests > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(worth: &mut Worth, times: u32, hit_one_of: u32) {
        for n in 0..times {
            if worth.is_tried() {
                worth.looked(hit_one_of > 0 && n % hit_one_of == 0);
            }
        }
    }

    #[test]
    fn what_never_hits_is_left_alone_and_tried_again() {
        let mut worth = Worth::default();
        looks(&mut worth, WINDOW * PATIENCE - 1, 0);
        assert!(!worth.rests());
        looks(&mut worth, 1, 0);
        assert!(worth.rests());
        looks(&mut worth, REST, 0);
        assert!(!worth.rests(), "it is tried again");
        looks(&mut worth, WINDOW, 0);
        assert!(worth.rests(), "and not for long");
        looks(&mut worth, REST, 0);
        looks(&mut worth, WINDOW, 2);
        looks(&mut worth, WINDOW * (PATIENCE - 1), 0);
        assert!(!worth.rests(), "a gain is remembered");
    }

    #[test]
    fn what_hits_now_and_then_is_worth_it() {
        let mut worth = Worth::default();
        looks(&mut worth, WINDOW * PATIENCE * 4, GAIN_ONE_OF);
        assert!(!worth.rests());
    }
}
