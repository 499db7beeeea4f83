//! Indexes that come to mirrors which answer already, and that go.

use backend::moment::Moment;

use super::super::building::Next;
use super::super::wish::{places, Aim};
use super::making::missing;
use super::tables::TOO_MUCH;
use super::Mirrors;

/// Rows that are looked at under a reader's lock.
const SLICE_ROWS: usize = 4096;

impl Mirrors {
    /// Builds an index that a mirror lacks, beside its readers. False: none lacks one, or it came
    /// to nothing.
    pub fn add_index(&self, now: Moment) -> bool {
        let aims = self.aims(now);
        let Some((mirror, column, sums)) = self.lacking(&aims) else { return false };
        let begun = {
            let mut tables = self.write();
            let standing = tables.of_mut(mirror);
            standing.and_then(|standing| standing.table.begin_index(column, &sums))
        };
        let Some(mut building) = begun else { return false };
        loop {
            match building.next() {
                Next::Reading => {
                    let tables = self.look();
                    let Some(standing) = tables.of(mirror) else { return false };
                    building.read(&standing.table, SLICE_ROWS);
                }
                Next::Working => building.work(),
                Next::Changing => {
                    let mut tables = self.write();
                    let Some(standing) = tables.of_mut(mirror) else { return false };
                    standing.table.build_index(&mut building);
                }
                Next::Done => break,
                Next::Gone => return false,
            }
        }
        let mut queue = self.queue();
        let mut tables = self.write();
        tables.changed();
        let Some(standing) = tables.of_mut(mirror) else { return false };
        let (oid, bytes) = (standing.oid(), standing.table.bytes());
        if standing.charge.set(bytes) {
            return true;
        }
        let gone = tables.remove(oid);
        drop(tables);
        queue.failed(oid, TOO_MUCH, now);
        self.follow_all(&queue);
        drop(queue);
        drop(gone);
        false
    }

    fn lacking(&self, aims: &[Aim]) -> Option<(u64, u16, Vec<u16>)> {
        let tables = self.look();
        aims.iter().find_map(|aim| {
            let standing = tables.iter().find(|one| one.oid() == aim.definition.oid)?;
            places(standing.table.definition(), &aim.definition)?;
            let lacking =
                |(column, sums): (&i16, &Vec<i16>)| missing(&standing.table, *column, sums);
            let (column, sums) = aim.indexes.iter().find_map(lacking)?;
            Some((standing.mirror, column, sums))
        })
    }

    /// Drops the indexes that nobody wants any more.
    pub(super) fn drop_indexes(&self, aims: &[Aim]) {
        let mut tables = self.write();
        let mut changed = false;
        for standing in tables.iter_mut() {
            let Some(aim) = aims.iter().find(|aim| aim.definition.oid == standing.oid()) else {
                continue;
            };
            let number = |column: u16| {
                let columns = &standing.table.definition().columns;
                columns.get(usize::from(column)).map(|column| column.attnum)
            };
            let wanted = |column: u16| {
                number(column).is_some_and(|number| aim.indexes.contains_key(&number))
            };
            let unwanted: Vec<u16> = standing
                .table
                .indexes()
                .map(|(column, _)| column)
                .filter(|column| !wanted(*column))
                .collect();
            for column in unwanted {
                standing.table.drop_index(column);
                standing.charge.set(standing.table.bytes());
                changed = true;
            }
        }
        if changed {
            tables.changed();
        }
    }
}
