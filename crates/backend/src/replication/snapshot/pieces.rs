//! Tables cut into pieces that are copied one by one, by whoever is free.

use std::fmt::Write;

use super::{Found, Limits, Source};

/// From here on a range of places is read without the rest of the table.
///
/// Source: release notes of 14, "TID Range Scan".
const RANGES_VERSION_MIN: u32 = 140_000;

/// Blocks of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its place among the sources.
    pub table: usize,
    first: u32,
    /// None: up to the end of the table, wherever that is.
    end: Option<u32>,
    /// Its share of the table's blocks.
    blocks: u64,
}

impl Piece {
    pub(super) fn sql(&self, source: &Source) -> String {
        let (table, columns) = (source.sql(), source.columns_sql());
        if self.first == 0 && self.end.is_none() {
            return format!("COPY {table} ({columns}) TO STDOUT");
        }
        let first = self.first;
        let mut sql =
            format!("COPY (SELECT {columns} FROM ONLY {table} WHERE ctid >= '({first},0)'");
        if let Some(end) = self.end {
            // Writing to a String never fails.
            let _ = write!(sql, " AND ctid < '({end},0)'");
        }
        sql.push_str(") TO STDOUT");
        sql
    }
}

/// What is still to be copied, and what has been. Tables come one after the other.
#[derive(Debug)]
pub struct Pieces {
    tables: Vec<Progress>,
    /// The table that the next piece is of.
    table: usize,
    /// Where that begins.
    first: u32,
    piece_blocks: u32,
}

#[derive(Debug)]
struct Progress {
    blocks: u32,
    done: u64,
}

impl Pieces {
    /// `version` as in `server_version_num`.
    pub fn new(found: &[Found], limits: &Limits, version: u32) -> Pieces {
        let progress = |found: &Found| Progress { blocks: found.blocks, done: 0 };
        Pieces {
            tables: found.iter().map(progress).collect(),
            table: 0,
            first: 0,
            piece_blocks: match version >= RANGES_VERSION_MIN {
                true => limits.piece_blocks.max(1),
                false => u32::MAX,
            },
        }
    }

    /// How many there are, none of them taken.
    pub fn count(&self) -> usize {
        let pieces = |table: &Progress| (table.blocks.div_ceil(self.piece_blocks) as usize).max(1);
        self.tables.iter().map(pieces).sum()
    }

    /// The next one. Each table has at least one.
    pub fn take(&mut self) -> Option<Piece> {
        let blocks = self.tables.get(self.table)?.blocks;
        let (table, first) = (self.table, self.first);
        let end = first.checked_add(self.piece_blocks).filter(|end| *end < blocks);
        match end {
            Some(end) => self.first = end,
            None => (self.table, self.first) = (table + 1, 0),
        }
        let share = end.unwrap_or(blocks).saturating_sub(first);
        Some(Piece { table, first, end, blocks: share.into() })
    }

    /// Blocks of its table that have been copied with this one, and all.
    pub fn done(&mut self, piece: &Piece) -> (u64, u64) {
        let Some(table) = self.tables.get_mut(piece.table) else { return (0, 0) };
        table.done += piece.blocks;
        (table.done, table.blocks.into())
    }
}
