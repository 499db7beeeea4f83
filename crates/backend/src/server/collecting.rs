//! Rows that are the pooler's own.

use wire::pg::backend::{self as messages, tag};
use wire::pg::frame::Header;

use super::{wanted, Lost, Server, LOOKED_AT_BYTES_MAX};
use crate::reply::{Fate, Request};

/// So many rows are kept of one answer.
pub const ROWS_MAX: usize = 4096;

/// Values as text; `None` is NULL.
pub type Row = Vec<Option<String>>;

impl Server {
    /// The rows of the next requests with [`Fate::Setup`] are kept, until they are taken.
    pub fn collect_rows(&mut self) {
        self.rows = Some(Vec::new());
    }

    pub fn take_rows(&mut self) -> Vec<Row> {
        self.rows.take().unwrap_or_default()
    }

    fn collects(&self) -> bool {
        self.rows.is_some() && self.queue.front().is_some_and(|head| head.fate == Fate::Setup)
    }

    /// So many bytes of a message have to be there before it can be decided.
    pub(super) fn wanted(&self, header: Header) -> Result<usize, Lost> {
        let replans = || self.queue.front().is_some_and(|head| head.replans);
        let whole = match header.tag {
            tag::DATA_ROW => self.collects(),
            tag::PARAMETER_DESCRIPTION => replans(),
            _ => false,
        };
        if whole {
            return match header.total <= LOOKED_AT_BYTES_MAX {
                true => Ok(header.total),
                false => Err(Lost::TooLong { tag: header.tag, bytes: header.total }),
            };
        }
        wanted(header)
    }

    pub(super) fn collect(&mut self, body: &[u8], head: Request) -> Result<(), Lost> {
        if let Some(rows) = self.rows.as_mut().filter(|_| head.fate == Fate::Setup) {
            if rows.len() < ROWS_MAX {
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                let values = messages::data_row(body)?;
                rows.push(values.into_iter().map(|value| value.map(text)).collect());
            }
        }
        Ok(())
    }
}
