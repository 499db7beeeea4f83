//! Rows that were written: how often, and whether they are on disk. A client may hear of a row
//! only when it is, and no row is written twice.

use std::collections::HashMap;

use crate::postgres::Asked;
use crate::world::Checked;

/// What became of a row on a server. Its name is all that its statement says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Its statement was done; its transaction goes on.
    Wrote(String),
    Committed(String),
    /// All that this server has committed before is on disk.
    Flushed,
}

/// What a client has heard.
#[derive(Debug, Clone)]
pub enum News {
    /// The answer to a read of data.
    Read(Box<Asked>, String),
    /// "INSERT 0 1".
    Wrote(String),
    /// The ReadyForQuery behind its transaction.
    Committed(String),
}

#[derive(Debug, Default)]
struct Row {
    commits: u32,
    /// Committed on this server, and not on disk yet.
    at_risk: Option<usize>,
}

#[derive(Debug, Default)]
pub struct Ledger {
    rows: HashMap<String, Row>,
}

impl Ledger {
    pub fn note(&mut self, server: usize, deeds: Vec<Deed>) {
        for deed in deeds {
            match deed {
                Deed::Wrote(_) => {}
                Deed::Committed(name) => {
                    let row = self.rows.entry(name).or_default();
                    row.commits += 1;
                    row.at_risk = Some(server);
                }
                Deed::Flushed => {
                    let flushed = self.rows.values_mut().filter(|row| row.at_risk == Some(server));
                    flushed.for_each(|row| row.at_risk = None);
                }
            }
        }
    }

    pub fn check(&self, news: &News) -> Checked {
        let (News::Wrote(name) | News::Committed(name)) = news else { return Ok(()) };
        let row = self.rows.get(name);
        if row.is_some_and(|row| row.at_risk.is_some()) {
            return Err(format!("it heard of \"{name}\" before that was on disk"));
        }
        match (news, row) {
            (News::Committed(_), None) => Err(format!("it was told of \"{name}\", which is not")),
            _ => Ok(()),
        }
    }

    pub fn check_end(&self) -> Checked {
        match self.rows.iter().find(|(_, row)| row.commits > 1) {
            Some((name, row)) => Err(format!("\"{name}\" was written {} times", row.commits)),
            None => Ok(()),
        }
    }
}
