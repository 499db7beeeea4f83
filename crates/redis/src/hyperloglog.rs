//! HyperLogLogs: strings of Redis's format, so that they can be moved from and to Redis, and mixed
//! with GET and SET.
//!
//! ```text
//! HYLL  encoding  0 0 0  cardinality, 8 bytes  registers
//!
//! dense (0)   16384 registers of 6 bits, the least significant bits first
//! sparse (1)  runs:  00llllll            len + 1 registers are 0
//!                    01llllll llllllll   so are these
//!                    1vvvvvll            len + 1 registers are v + 1
//! ```
//!
//! The cardinality is a copy, in little endian; its highest bit says that it is out of date. It is
//! used when it is valid, as when it comes from Redis, but not renewed here: counting takes some
//! microseconds, writing a row takes longer, and reading should not write.
//!
//! Source: `hyperloglog.c`; Ertl, "New cardinality estimation algorithms for HyperLogLog sketches",
//! 2017.

use crate::failure::Failure;

const MAGIC: &[u8; 4] = b"HYLL";
const HEADER_BYTES: usize = 16;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;

/// Bits of a hash that choose the register, and those that are counted in.
const INDEX_BITS: u32 = 14;
const COUNTED_BITS: u32 = 64 - INDEX_BITS;
pub const REGISTERS: usize = 1 << INDEX_BITS;
const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * 6 / 8;

/// A longer one becomes dense: Redis's `hll-sparse-max-bytes`.
const SPARSE_BYTES_MAX: usize = 3000;

/// What runs can tell.
const ZERO_LEN_MAX: usize = 64;
const VALUE_MAX: u8 = 32;
const VALUE_LEN_MAX: usize = 4;

/// Runs looked at, from the one before a change on, to be merged.
const MERGED_MAX: usize = 5;

const CORRUPT: Failure = Failure::text("INVALIDOBJ Corrupted HLL object detected");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HyperLogLog {
    bytes: Vec<u8>,
}

/// Equal registers next to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub value: u8,
    pub len: usize,
    /// Written in two bytes.
    pub long: bool,
}

impl Run {
    /// The run at the beginning of these bytes.
    fn read(bytes: &[u8]) -> Option<Run> {
        let first = *bytes.first()?;
        let low = usize::from(first & 0x3f);
        Some(match first >> 6 {
            0 => Run { value: 0, len: low + 1, long: false },
            1 => {
                let len = (low << 8 | usize::from(*bytes.get(1)?)) + 1;
                Run { value: 0, len, long: true }
            }
            _ => {
                let len = usize::from(first & 3) + 1;
                Run { value: (first >> 2 & 0x1f) + 1, len, long: false }
            }
        })
    }

    fn of(value: u8, len: usize) -> Run {
        Run { value, len, long: value == 0 && len > ZERO_LEN_MAX }
    }

    fn bytes(self) -> usize {
        1 + usize::from(self.long)
    }

    /// One of no length is nothing.
    fn write(self, to: &mut Vec<u8>) {
        let Some(len) = self.len.checked_sub(1) else { return };
        match (self.value, self.long) {
            (0, true) => to.extend([0x40 | (len >> 8) as u8, len as u8]),
            (0, false) => to.push(len as u8),
            (value, _) => to.push(0x80 | (value - 1) << 2 | len as u8),
        }
    }
}

impl Default for HyperLogLog {
    fn default() -> HyperLogLog {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4] = SPARSE;
        Run::of(0, REGISTERS).write(&mut bytes);
        HyperLogLog { bytes }
    }
}

impl HyperLogLog {
    /// # Errors
    /// Bytes that are none.
    pub fn new(bytes: Vec<u8>) -> Result<HyperLogLog, Failure> {
        let right = bytes.len() >= HEADER_BYTES
            && bytes[..4] == *MAGIC
            && (bytes[4] == SPARSE || (bytes[4] == DENSE && bytes.len() == DENSE_BYTES));
        match right {
            true => Ok(HyperLogLog { bytes }),
            false => Err(Failure::text("WRONGTYPE Key is not a valid HyperLogLog string value.")),
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn is_dense(&self) -> bool {
        self.bytes[4] == DENSE
    }

    /// True when that changes a register.
    pub fn add(&mut self, element: &[u8]) -> Result<bool, Failure> {
        let (register, value) = place(element);
        self.raise(register, value)
    }

    /// What has been counted so far is out of date.
    pub fn invalidate(&mut self) {
        self.bytes[15] |= 0x80;
    }

    /// How many different elements there are, roughly.
    pub fn count(&self) -> Result<u64, Failure> {
        let cached = self.bytes[8..HEADER_BYTES].iter().rev();
        let cached = cached.fold(0, |value, byte| value << 8 | u64::from(*byte));
        if cached >> 63 == 0 {
            return Ok(cached);
        }
        let mut histogram = [0; 64];
        if self.is_dense() {
            self.dense_registers().for_each(|value| histogram[usize::from(value)] += 1);
        } else {
            for run in self.checked_runs()? {
                histogram[usize::from(run.value)] += run.len as u32;
            }
        }
        Ok(estimate(&histogram))
    }

    /// Raises registers to those of this one.
    pub fn raise_all(&self, registers: &mut [u8; REGISTERS]) -> Result<(), Failure> {
        if self.is_dense() {
            let pairs = registers.iter_mut().zip(self.dense_registers());
            pairs.for_each(|(register, value)| *register = value.max(*register));
            return Ok(());
        }
        let mut first = 0;
        for run in self.checked_runs()? {
            let these = &mut registers[first..first + run.len];
            these.iter_mut().for_each(|register| *register = run.value.max(*register));
            first += run.len;
        }
        Ok(())
    }

    /// True when it is greater than what is there.
    pub fn raise(&mut self, register: usize, value: u8) -> Result<bool, Failure> {
        let changed = match self.is_dense() {
            true => self.raise_dense(register, value),
            false => self.raise_sparse(register, value)?,
        };
        if changed {
            self.invalidate();
        }
        Ok(changed)
    }

    /// Runs of a sparse one, as far as they can be read.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        let mut rest = &self.bytes[HEADER_BYTES..];
        std::iter::from_fn(move || {
            let run = Run::read(rest)?;
            rest = &rest[run.bytes()..];
            Some(run)
        })
    }

    fn checked_runs(&self) -> Result<impl Iterator<Item = Run> + '_, Failure> {
        match self.runs().map(|run| run.len).sum::<usize>() {
            REGISTERS => Ok(self.runs()),
            _ => Err(CORRUPT),
        }
    }

    /// Registers of a dense one.
    pub fn dense_registers(&self) -> impl Iterator<Item = u8> + '_ {
        self.bytes[HEADER_BYTES..].chunks_exact(3).flat_map(|three| {
            let bits = u32::from(three[0]) | u32::from(three[1]) << 8 | u32::from(three[2]) << 16;
            [0, 6, 12, 18].map(|shift| (bits >> shift & 0x3f) as u8)
        })
    }

    fn raise_dense(&mut self, register: usize, value: u8) -> bool {
        let at = HEADER_BYTES + register / 4 * 3;
        let shift = register % 4 * 6;
        let three = &mut self.bytes[at..at + 3];
        let bits = u32::from(three[0]) | u32::from(three[1]) << 8 | u32::from(three[2]) << 16;
        if u32::from(value) <= bits >> shift & 0x3f {
            return false;
        }
        let bits = bits & !(0x3f << shift) | u32::from(value) << shift;
        three.copy_from_slice(&bits.to_le_bytes()[..3]);
        true
    }

    fn raise_sparse(&mut self, register: usize, value: u8) -> Result<bool, Failure> {
        if value > VALUE_MAX {
            self.make_dense()?;
            return Ok(self.raise_dense(register, value));
        }
        // The run of the register, the one before it, and the register that it begins with.
        let (mut at, mut before, mut first) = (HEADER_BYTES, HEADER_BYTES, 0);
        let run = loop {
            let run = Run::read(&self.bytes[at..]).ok_or(CORRUPT)?;
            if register < first + run.len {
                break run;
            }
            before = at;
            at += run.bytes();
            first += run.len;
        };
        if run.value >= value {
            return Ok(false);
        }
        let left = register - first;
        let mut split = Vec::with_capacity(5);
        Run::of(run.value, left).write(&mut split);
        Run::of(value, 1).write(&mut split);
        Run::of(run.value, run.len - left - 1).write(&mut split);
        let more = split.len() > run.bytes();
        if more && self.bytes.len() + split.len() - run.bytes() > SPARSE_BYTES_MAX {
            self.make_dense()?;
            return Ok(self.raise_dense(register, value));
        }
        self.bytes.splice(at..at + run.bytes(), split);
        self.merge(before);
        Ok(true)
    }

    /// Equal runs next to each other become one, if that is not too long.
    fn merge(&mut self, mut at: usize) {
        for _ in 0..MERGED_MAX {
            let Some(run) = self.bytes.get(at..).and_then(Run::read) else { return };
            let next = self.bytes.get(at + run.bytes()..).and_then(Run::read);
            match next {
                Some(next)
                    if run.value != 0
                        && run.value == next.value
                        && run.len + next.len <= VALUE_LEN_MAX =>
                {
                    let mut merged = Vec::with_capacity(1);
                    Run::of(run.value, run.len + next.len).write(&mut merged);
                    self.bytes.splice(at..at + 2, merged);
                }
                _ => at += run.bytes(),
            }
        }
    }

    pub fn make_dense(&mut self) -> Result<(), Failure> {
        if self.is_dense() {
            return Ok(());
        }
        let mut dense = vec![0; DENSE_BYTES];
        dense[..HEADER_BYTES].copy_from_slice(&self.bytes[..HEADER_BYTES]);
        dense[4] = DENSE;
        let mut dense = HyperLogLog { bytes: dense };
        let mut first = 0;
        for run in self.checked_runs()? {
            if run.value > 0 {
                for at in first..first + run.len {
                    dense.raise_dense(at, run.value);
                }
            }
            first += run.len;
        }
        *self = dense;
        Ok(())
    }
}

/// How many different elements registers tell of.
pub fn count(registers: &[u8; REGISTERS]) -> u64 {
    let mut histogram = [0; 64];
    registers.iter().for_each(|value| histogram[usize::from(*value & 0x3f)] += 1);
    estimate(&histogram)
}

/// The register that counts an element, and the position of the first set bit behind those that
/// choose it.
fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur(element);
    let rest = hash >> INDEX_BITS | 1 << COUNTED_BITS;
    (hash as usize & (REGISTERS - 1), rest.trailing_zeros() as u8 + 1)
}

/// MurmurHash2, its 64-bit version for 64-bit machines ("64A").
fn murmur(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 0xadc8_3b19;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        word = word.wrapping_mul(FACTOR);
        word ^= word >> 47;
        word = word.wrapping_mul(FACTOR);
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = hash.wrapping_mul(FACTOR);
    }
    hash ^= hash >> 47;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> 47
}

/// From how many registers have each value.
fn estimate(histogram: &[u32; 64]) -> u64 {
    /// `0.5 / ln 2`
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    let registers = REGISTERS as f64;
    let top = COUNTED_BITS as usize;
    let mut z = registers * tau((registers - f64::from(histogram[top + 1])) / registers);
    for value in histogram[1..=top].iter().rev() {
        z = (z + f64::from(*value)) * 0.5;
    }
    z += registers * sigma(f64::from(histogram[0]) / registers);
    (ALPHA * registers * registers / z).round() as u64
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn sparse_and_dense_tell_the_same_and_are_right() {
        let (mut sparse, mut dense) = (HyperLogLog::default(), HyperLogLog::default());
        dense.make_dense().unwrap();
        let mut registers = [0; REGISTERS];
        let mut check = 1;
        for number in 0..200_000u64 {
            let element = number.to_le_bytes();
            assert_eq!(sparse.add(&element).unwrap(), dense.add(&element).unwrap());
            let (register, value) = place(&element);
            registers[register] = value.max(registers[register]);
            if number + 1 == check {
                check *= 10;
                let count = sparse.count().unwrap();
                assert_eq!(count, dense.count().unwrap());
                assert_eq!(count, super::count(&registers));
                let off = count.abs_diff(number + 1) as f64 / (number + 1) as f64;
                assert!(off < 0.03, "{count} of {}", number + 1);
                assert_eq!(sparse.is_dense(), number > 5_000);
            }
        }
        let mut merged = [0; REGISTERS];
        sparse.raise_all(&mut merged).unwrap();
        assert_eq!(merged, registers);
    }

    #[test]
    fn what_is_corrupt_is_refused_and_never_panics() {
        let mut random = Random::new(1);
        for round in 0..2_000 {
            let mut one = HyperLogLog::default();
            (0..random.below(300)).for_each(|n| drop(one.add(&[n as u8, round as u8])));
            let mut bytes = one.into_bytes();
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len());
                match random.below(3) {
                    0 => bytes[at] = random.number() as u8,
                    1 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at),
                }
                if bytes.is_empty() {
                    break;
                }
            }
            let Ok(mut one) = HyperLogLog::new(bytes) else { continue };
            one.invalidate();
            let valid = one.count().is_ok();
            assert_eq!(one.raise_all(&mut [0; REGISTERS]).is_ok(), valid);
            (0..50u8).for_each(|n| drop(one.add(&[n])));
            assert_eq!(one.make_dense().is_ok(), valid);
        }
    }
}
