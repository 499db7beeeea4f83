//! Sums and averages as PostgreSQL computes them: exact, and with as many digits.
//!
//! | of | sum | avg |
//! |---|---|---|
//! | `smallint`, `integer` | `bigint` | `numeric` |
//! | `bigint`, `numeric` | `numeric` | `numeric` |
//!
//! Source: `numeric_avg`, `numeric_sum`, `int8_avg` and `select_div_scale` in
//! `src/backend/utils/adt/numeric.c`.

use smallvec::SmallVec;

use super::class::Class;
use super::stored::number::{head, special_head, Numeric, INFINITY, MINUS_INFINITY, NAN, NEGATIVE};

/// What a group of four decimal digits counts to.
const BASE: i64 = 10_000;
const GROUP: i32 = 4;

/// Groups between the first and the last of a sum; numbers further apart are not summed.
const GROUPS_MAX: i32 = 1024;

/// Source: `NUMERIC_MIN_SIG_DIGITS`, `NUMERIC_MAX_DISPLAY_SCALE` in `src/include/utils/numeric.h`.
const SIGNIFICANT_MIN: i32 = 16;
const SCALE_MAX: i32 = 1000;

/// What values of one column have come to.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    /// Of integers.
    total: i128,
    /// All values that were added.
    count: u64,
    decimals: Option<Box<Decimals>>,
    /// Something could not be added.
    refused: bool,
}

/// Numerics that have been added. Groups are added for themselves and carried at the end: an `i64`
/// has room for more of them than there are rows.
#[derive(Debug, Clone, Default)]
struct Decimals {
    /// The weight of the first of `groups`, the lowest.
    low: i32,
    groups: SmallVec<[i64; 8]>,
    /// The greatest of them.
    scale: u16,
    nan: bool,
    infinity: bool,
    minus_infinity: bool,
    /// Those that are none of the above.
    finite: u64,
}

impl Sum {
    /// Adds a stored value of an integer class or a numeric; what else is added makes the sum one
    /// that is not told.
    pub fn add(&mut self, class: Class, stored: &[u8]) {
        self.count += 1;
        let value = match class {
            Class::Int2 => stored.try_into().map(i16::from_be_bytes).map(i128::from),
            Class::Int4 => stored.try_into().map(i32::from_be_bytes).map(i128::from),
            Class::Int8 => stored.try_into().map(i64::from_be_bytes).map(i128::from),
            Class::Numeric => {
                let decimals = self.decimals.get_or_insert_default();
                self.refused |= !decimals.add(&Numeric::new(stored));
                return;
            }
            _ => {
                self.refused = true;
                return;
            }
        };
        match value {
            Ok(value) => self.add_integer(value),
            Err(_) => self.refused = true,
        }
    }

    /// Adds `count` integers that come to `total`.
    pub fn add_total(&mut self, total: i128, count: u64) {
        self.count += count;
        self.add_integer(total);
    }

    fn add_integer(&mut self, value: i128) {
        match self.total.checked_add(value) {
            Some(total) => self.total = total,
            None => self.refused = true,
        }
    }

    /// How many values were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Appends `sum` of a column of that class. False: it is NULL or not known.
    pub fn put_sum(&self, class: Class, out: &mut Vec<u8>) -> bool {
        if self.count == 0 || self.refused {
            return false;
        }
        match class {
            Class::Int2 | Class::Int4 => match i64::try_from(self.total) {
                Ok(total) => out.extend_from_slice(&total.to_be_bytes()),
                Err(_) => return false,
            },
            Class::Int8 => Number::of_integer(self.total).put(out),
            Class::Numeric => {
                let Some(decimals) = &self.decimals else { return false };
                match decimals.special() {
                    Some(sign) => out.extend_from_slice(&special_head(sign)),
                    None => decimals.number().put(out),
                }
            }
            _ => return false,
        }
        true
    }

    /// Appends `avg` of a column of that class. False: it is NULL or not known.
    pub fn put_avg(&self, class: Class, out: &mut Vec<u8>) -> bool {
        if self.count == 0 || self.refused {
            return false;
        }
        let number = match class {
            // PostgreSQL's own sum has as many bits.
            Class::Int2 | Class::Int4 if i64::try_from(self.total).is_err() => return false,
            Class::Int2 | Class::Int4 | Class::Int8 => {
                Number::of_integer(self.total).divided(self.count)
            }
            Class::Numeric => {
                let Some(decimals) = &self.decimals else { return false };
                if let Some(sign) = decimals.special() {
                    out.extend_from_slice(&special_head(sign));
                    return true;
                }
                decimals.number().divided(decimals.finite)
            }
            _ => return false,
        };
        number.put(out);
        true
    }
}

impl Decimals {
    /// False: it is too far from the others.
    fn add(&mut self, number: &Numeric<'_>) -> bool {
        match number.sign {
            NAN => self.nan = true,
            INFINITY => self.infinity = true,
            MINUS_INFINITY => self.minus_infinity = true,
            _ => {
                self.finite += 1;
                self.scale = self.scale.max(number.scale);
                return number.is_zero() || self.add_groups(number);
            }
        }
        true
    }

    fn add_groups(&mut self, number: &Numeric<'_>) -> bool {
        let high = i32::from(number.weight);
        let low = high + 1 - number.groups().count() as i32;
        if self.groups.is_empty() {
            self.low = low;
        }
        let top = self.low + self.groups.len() as i32 - 1;
        if high.max(top) - low.min(self.low) >= GROUPS_MAX {
            return false;
        }
        if low < self.low {
            let more = (self.low - low) as usize;
            self.groups.insert_many(0, std::iter::repeat_n(0, more));
            self.low = low;
        }
        if high > top {
            self.groups.resize((high - self.low + 1) as usize, 0);
        }
        let sign = if number.sign == NEGATIVE { -1 } else { 1 };
        let from = (low - self.low) as usize;
        let places = self.groups.get_mut(from..=(high - self.low) as usize).unwrap_or_default();
        for (place, group) in places.iter_mut().rev().zip(number.groups()) {
            *place += sign * i64::from(group);
        }
        true
    }

    /// What such values come to with whatever others.
    fn special(&self) -> Option<u16> {
        if self.nan || self.infinity && self.minus_infinity {
            Some(NAN)
        } else if self.infinity {
            Some(INFINITY)
        } else if self.minus_infinity {
            Some(MINUS_INFINITY)
        } else {
            None
        }
    }

    fn number(&self) -> Number {
        let carried = |sign: i64| {
            let mut carry = 0;
            let mut groups: SmallVec<[u16; 16]> = SmallVec::new();
            for group in &self.groups {
                let value = sign * group + carry;
                groups.push(value.rem_euclid(BASE) as u16);
                carry = value.div_euclid(BASE);
            }
            while carry > 0 {
                groups.push((carry % BASE) as u16);
                carry /= BASE;
            }
            (groups, carry < 0)
        };
        let (mut groups, mut negative) = carried(1);
        if negative {
            groups = carried(-1).0;
        }
        negative &= !groups.is_empty();
        let weight = self.low + groups.len() as i32 - 1;
        groups.reverse();
        Number { negative, weight, groups, scale: i32::from(self.scale) }
    }
}

/// Appends an integer as a stored numeric.
pub(super) fn put_integer(value: i64, out: &mut Vec<u8>) {
    Number::of_integer(value.into()).put(out);
}

/// A number taken apart: groups of four digits, the first of which counts 10000 to the power of
/// `weight`.
#[derive(Debug)]
struct Number {
    negative: bool,
    weight: i32,
    groups: SmallVec<[u16; 16]>,
    scale: i32,
}

impl Number {
    fn of_integer(value: i128) -> Number {
        let mut rest = value.unsigned_abs();
        let mut groups = SmallVec::new();
        while rest > 0 {
            groups.push((rest % BASE as u128) as u16);
            rest /= BASE as u128;
        }
        groups.reverse();
        let weight = groups.len() as i32 - 1;
        Number { negative: value < 0, weight, groups, scale: 0 }
    }

    /// The first group that is not zero and its weight; of zero, zeros.
    fn first(&self) -> (i32, u16) {
        let found = (0..).zip(&self.groups).find(|(_, group)| **group != 0);
        found.map_or((0, 0), |(at, group)| (self.weight - at, *group))
    }

    /// By how many values, rounded half away from zero to PostgreSQL's number of digits.
    fn divided(&self, by: u64) -> Number {
        let (weight, first) = self.first();
        let (by_weight, by_first) = Number::of_integer(by.into()).first();
        let guess = weight - by_weight - i32::from(first <= by_first);
        let scale = (SIGNIFICANT_MIN - guess * GROUP).max(self.scale).clamp(0, SCALE_MAX);
        // One group more than is shown tells how to round.
        let last = -(scale + GROUP - 1) / GROUP - 1;
        let mut rest = 0u128;
        let mut quotient = Number {
            negative: self.negative,
            weight: self.weight.max(0),
            groups: SmallVec::new(),
            scale,
        };
        for weight in (last..=quotient.weight).rev() {
            let at = usize::try_from(self.weight - weight).ok();
            let group = at.and_then(|at| self.groups.get(at)).copied().unwrap_or(0);
            rest = rest * BASE as u128 + u128::from(group);
            quotient.groups.push((rest / u128::from(by.max(1))) as u16);
            rest %= u128::from(by.max(1));
        }
        quotient.round();
        quotient
    }

    /// Cuts off what the scale does not show.
    fn round(&mut self) {
        let shown = self.weight + 1 + (self.scale + GROUP - 1) / GROUP;
        let shown = usize::try_from(shown).unwrap_or(0);
        // What the last digit that is shown counts in its group.
        let unit = 10u16.pow((GROUP - 1 - (self.scale + GROUP - 1) % GROUP) as u32);
        let next = self.groups.get(shown).copied().unwrap_or(0);
        self.groups.truncate(shown);
        let Some(last) = self.groups.last_mut() else { return };
        let up = if unit == 1 { next >= 5000 } else { *last % unit >= unit / 2 };
        *last -= *last % unit;
        let mut carry = if up { unit } else { 0 };
        for group in self.groups.iter_mut().rev() {
            let value = *group + carry;
            *group = value % BASE as u16;
            carry = value / BASE as u16;
        }
        if carry > 0 {
            self.groups.insert(0, carry);
            self.weight += 1;
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let zeros = self.groups.iter().take_while(|group| **group == 0).count();
        let groups = self.groups.get(zeros..).unwrap_or_default();
        let end = groups.iter().rposition(|group| *group != 0).map_or(0, |last| last + 1);
        let groups = groups.get(..end).unwrap_or_default();
        let zero = groups.is_empty();
        let weight = if zero { 0 } else { self.weight - zeros as i32 };
        let sign = if self.negative && !zero { NEGATIVE } else { 0 };
        out.extend_from_slice(&head(groups.len() as i16, weight as i16, sign, self.scale as u16));
        groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
    }
}
