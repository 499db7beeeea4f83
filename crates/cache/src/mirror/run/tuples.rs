//! Rows of joined tables, each told by one number.

use super::Refused;

/// Most numbers of rows.
const IDS_MAX: usize = 1 << 22;

/// Of one table a row's number tells it itself.
#[derive(Debug, Default)]
pub(super) struct Tuples(Vec<u32>);

impl Tuples {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn put(&mut self, ids: &[u32]) -> Result<u32, Refused> {
        if let [id] = ids {
            return Ok(*id);
        }
        if self.0.len() + ids.len() > IDS_MAX {
            return Err(Refused::TooMuch);
        }
        let at = self.0.len() as u32;
        self.0.extend_from_slice(ids);
        Ok(at)
    }

    /// The rows of so many tables.
    pub fn get<'a>(&'a self, tables: usize, what: &'a u32) -> &'a [u32] {
        match tables {
            1 => std::slice::from_ref(what),
            many => &self.0[*what as usize..][..many],
        }
    }

    pub fn trim(&mut self, most: usize) {
        super::trim(&mut self.0, most);
    }
}
