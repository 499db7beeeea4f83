//! The rows of a table, packed into pages.
//!
//! A row's number is its place in units of four bytes, so that no table of places is needed. Rows
//! of a size share a list of free places; a row that keeps its size is changed where it is.
//!
//! ```text
//! row:  NULL bits, if a column may be NULL | columns of one width | others: length, bytes
//! ```
//!
//! A row without other columns has the same width always. The size of the place of one with others
//! is told by its first two bytes, in units; the place may be a little larger than the row.

use super::definition::Column;
use super::table::Broken;

/// Bytes that places are counted in.
const UNIT: usize = 4;

const PAGE_BITS: u32 = 20;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 1 << PAGE_BITS;

const PAGE_UNITS: u32 = (PAGE_BYTES / UNIT) as u32;

/// A larger row is not mirrored: its size in units has two bytes.
pub const ROW_BYTES_MAX: usize = u16::MAX as usize * UNIT;

/// At most one part of so many of a place is left empty if a row could have been there.
const WASTE: usize = 8;

/// The number of no row.
pub const NO_ROW: u32 = u32::MAX;

/// See the module's documentation.
#[derive(Debug)]
pub struct Rows {
    layout: Layout,
    pages: Vec<Box<[u8]>>,
    /// Where in the last page nothing has been put yet, in units.
    end: u32,
    /// By size in units, the first free place; each has the next one in its first four bytes.
    free: Vec<u32>,
    live: u64,
}

/// Where columns are.
#[derive(Debug)]
struct Layout {
    columns: Box<[Place]>,
    /// Bytes of the size, where rows have several.
    head: usize,
    /// Bytes of NULL bits behind it.
    bits: usize,
    /// Bytes of head, bits and columns of one width.
    fixed: usize,
    /// Units of the smallest row.
    least: usize,
    varies: bool,
}

/// Rows by their numbers.
pub(super) trait Fields {
    /// None: NULL.
    fn field(&self, id: u32, column: u16) -> Option<&[u8]>;
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// Offset and width.
    Fixed(u16, u16),
    /// So many are before it.
    Varying(u16),
}

impl Layout {
    fn new(columns: &[Column]) -> Layout {
        let varies = columns.iter().any(|column| column.class.width().is_none());
        let nullable = columns.iter().any(|column| !column.not_null);
        let head = if varies { 2 } else { 0 };
        let bits = if nullable { columns.len().div_ceil(8) } else { 0 };
        let mut fixed = head + bits;
        let mut before = 0;
        let place = |column: &Column| match column.class.width() {
            Some(width) => {
                let at = fixed as u16;
                fixed += width;
                Place::Fixed(at, width as u16)
            }
            None => {
                before += 1;
                Place::Varying(before - 1)
            }
        };
        let columns = columns.iter().map(place).collect();
        let least = (fixed + usize::from(before)).div_ceil(UNIT).max(1);
        Layout { columns, head, bits, fixed, least, varies }
    }
}

/// The length of a value in front of it: one byte below 255, else five.
fn put_length(length: usize, out: &mut [u8]) -> usize {
    match u8::try_from(length) {
        Ok(short) if short < 255 => {
            out[0] = short;
            1
        }
        _ => {
            out[0] = 255;
            out[1..5].copy_from_slice(&(length as u32).to_le_bytes());
            5
        }
    }
}

fn length_bytes(length: usize) -> usize {
    if length < 255 {
        1
    } else {
        5
    }
}

/// A length and what is behind it.
fn take_length(bytes: &[u8]) -> (usize, &[u8]) {
    match bytes {
        [255, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        [short, rest @ ..] => (usize::from(*short), rest),
        [] => (0, bytes),
    }
}

impl Rows {
    pub fn new(columns: &[Column]) -> Rows {
        Rows {
            layout: Layout::new(columns),
            pages: Vec::new(),
            end: PAGE_UNITS,
            free: Vec::new(),
            live: 0,
        }
    }

    pub fn live(&self) -> u64 {
        self.live
    }

    /// All that it takes.
    pub fn bytes(&self) -> u64 {
        let lists = self.pages.capacity() * size_of::<Box<[u8]>>() + self.free.capacity() * 4;
        (self.pages.len() * PAGE_BYTES + lists) as u64
    }

    pub fn clear(&mut self) {
        self.pages = Vec::new();
        self.free = Vec::new();
        (self.end, self.live) = (PAGE_UNITS, 0);
    }

    fn row(&self, id: u32) -> &[u8] {
        let page = &self.pages[(id / PAGE_UNITS) as usize];
        &page[(id % PAGE_UNITS) as usize * UNIT..]
    }

    fn row_mut(&mut self, id: u32) -> &mut [u8] {
        let page = &mut self.pages[(id / PAGE_UNITS) as usize];
        &mut page[(id % PAGE_UNITS) as usize * UNIT..]
    }

    /// None: NULL.
    #[inline]
    pub fn field(&self, id: u32, column: u16) -> Option<&[u8]> {
        self.field_in(self.row(id), column)
    }

    /// A row's bytes as they are now.
    pub(super) fn image(&self, id: u32) -> Box<[u8]> {
        self.row(id)[..self.size(id) * UNIT].into()
    }

    /// Of a row's bytes.
    #[inline]
    pub(super) fn field_in<'a>(&self, row: &'a [u8], column: u16) -> Option<&'a [u8]> {
        let Layout { columns, head, bits, fixed, .. } = &self.layout;
        let at = usize::from(column);
        if *bits > 0 && row[head + at / 8] & 1 << (at % 8) != 0 {
            return None;
        }
        match columns[at] {
            Place::Fixed(from, width) => {
                let from = usize::from(from);
                Some(&row[from..from + usize::from(width)])
            }
            Place::Varying(before) => {
                let mut rest = &row[*fixed..];
                for _ in 0..before {
                    let (length, behind) = take_length(rest);
                    rest = &behind[length..];
                }
                let (length, behind) = take_length(rest);
                Some(&behind[..length])
            }
        }
    }

    /// In units.
    fn size_of(&self, fields: &[Option<&[u8]>]) -> Result<usize, Broken> {
        let mut bytes = self.layout.fixed;
        if fields.len() != self.layout.columns.len() {
            return Err(Broken("a row has another number of columns".to_owned()));
        }
        if self.layout.bits == 0 && fields.iter().any(Option::is_none) {
            return Err(Broken("a column that may not be NULL is".to_owned()));
        }
        for (place, field) in self.layout.columns.iter().zip(fields) {
            match (place, field) {
                (Place::Fixed(_, width), Some(value)) if value.len() != usize::from(*width) => {
                    return Err(Broken("a value has another width than its type".to_owned()));
                }
                (Place::Fixed(..), _) => {}
                (Place::Varying(_), value) => {
                    let length = value.map_or(0, <[u8]>::len);
                    bytes += length_bytes(length) + length;
                }
            }
        }
        if bytes > ROW_BYTES_MAX {
            return Err(Broken(format!("a row has more than {ROW_BYTES_MAX} bytes")));
        }
        Ok(bytes.div_ceil(UNIT).max(1))
    }

    fn size(&self, id: u32) -> usize {
        match self.layout.varies {
            true => {
                let row = self.row(id);
                usize::from(u16::from_le_bytes([row[0], row[1]]))
            }
            false => self.layout.least,
        }
    }

    /// # Errors
    /// A row that is too large, or no place for it.
    pub fn insert(&mut self, fields: &[Option<&[u8]>]) -> Result<u32, Broken> {
        let (id, size) = self.take(self.size_of(fields)?)?;
        self.write(id, size, fields);
        self.live += 1;
        Ok(id)
    }

    /// Whether [`Rows::replace`] would give the row another number.
    ///
    /// # Errors
    /// As [`Rows::insert`].
    pub fn would_move(&self, id: u32, fields: &[Option<&[u8]>]) -> Result<bool, Broken> {
        Ok(!self.fits(self.size_of(fields)?, self.size(id)))
    }

    /// Whether a row of so many units may be in such a place.
    fn fits(&self, size: usize, place: usize) -> bool {
        size <= place && place - size <= (place / WASTE).max(self.layout.least - 1)
    }

    /// Puts another row in the place of one. It stays where it is if it has about the same size.
    ///
    /// # Errors
    /// As [`Rows::insert`]; the old row is then still there.
    pub fn replace(&mut self, id: u32, fields: &[Option<&[u8]>]) -> Result<u32, Broken> {
        let (size, place) = (self.size_of(fields)?, self.size(id));
        if self.fits(size, place) {
            self.write(id, place, fields);
            return Ok(id);
        }
        let (new, size) = self.take(size)?;
        self.write(new, size, fields);
        self.give(id);
        Ok(new)
    }

    pub fn remove(&mut self, id: u32) {
        self.give(id);
        self.live -= 1;
    }

    fn write(&mut self, id: u32, size: usize, fields: &[Option<&[u8]>]) {
        let Layout { columns, head, bits, fixed, .. } = &self.layout;
        let page = &mut self.pages[(id / PAGE_UNITS) as usize];
        let row = &mut page[(id % PAGE_UNITS) as usize * UNIT..][..size * UNIT];
        if *head > 0 {
            row[..2].copy_from_slice(&(size as u16).to_le_bytes());
        }
        row[*head..head + bits].fill(0);
        let mut end = *fixed;
        for (at, (place, field)) in columns.iter().zip(fields).enumerate() {
            if field.is_none() && *bits > 0 {
                row[head + at / 8] |= 1 << (at % 8);
            }
            let value = field.unwrap_or_default();
            match *place {
                Place::Fixed(from, _) => {
                    let from = usize::from(from);
                    row[from..from + value.len()].copy_from_slice(value);
                }
                Place::Varying(_) => {
                    end += put_length(value.len(), &mut row[end..]);
                    row[end..end + value.len()].copy_from_slice(value);
                    end += value.len();
                }
            }
        }
    }

    /// A place of so many units, or somewhat more; and how many.
    fn take(&mut self, size: usize) -> Result<(u32, usize), Broken> {
        if let Some(found) = self.take_free(size) {
            return Ok(found);
        }
        if self.end + size as u32 > PAGE_UNITS {
            self.add_page()?;
        }
        let id = (self.pages.len() as u32 - 1) * PAGE_UNITS + self.end;
        self.end += size as u32;
        Ok((id, size))
    }

    /// The smallest place that is free and large enough. What is left of it stays free, if it could
    /// be a row's.
    fn take_free(&mut self, size: usize) -> Option<(u32, usize)> {
        let larger = self.free.get(size..)?.iter().position(|first| *first != NO_ROW)?;
        let place = size + larger;
        let id = self.free[place];
        let row = self.row(id);
        self.free[place] = u32::from_le_bytes([row[0], row[1], row[2], row[3]]);
        if larger < self.layout.least {
            return Some((id, place));
        }
        self.link(id + size as u32, larger);
        Some((id, size))
    }

    /// What is left of the last page stays free for rows of that size.
    fn add_page(&mut self) -> Result<(), Broken> {
        // A row's size has two bytes.
        let left = (PAGE_UNITS - self.end).min(u16::MAX.into());
        if left as usize >= self.layout.least {
            let id = (self.pages.len() as u32 - 1) * PAGE_UNITS + self.end;
            self.link(id, left as usize);
        }
        // The last place is the number of no row.
        if self.pages.len() >= (u32::MAX / PAGE_UNITS) as usize {
            return Err(Broken("it has more than 16 GiB of rows".to_owned()));
        }
        self.pages.push(vec![0; PAGE_BYTES].into_boxed_slice());
        self.end = 0;
        Ok(())
    }

    fn give(&mut self, id: u32) {
        let size = self.size(id);
        self.link(id, size);
    }

    fn link(&mut self, id: u32, size: usize) {
        if self.free.len() <= size {
            self.free.resize(size + 1, NO_ROW);
        }
        let next = std::mem::replace(&mut self.free[size], id);
        self.row_mut(id)[..4].copy_from_slice(&next.to_le_bytes());
    }
}

impl Fields for Rows {
    #[inline]
    fn field(&self, id: u32, column: u16) -> Option<&[u8]> {
        Rows::field(self, id, column)
    }
}
