//! A consumer that writes down what it is told, a line each.

use backend::replication::{Changes, Old, PublishedTable};
use wire::pg::pgoutput::{Field, Relation, Tuple};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Recorder {
    pub lines: Vec<String>,
    pub progress: u64,
    /// Times that it was told.
    pub progressed: usize,
}

fn names(tables: &[PublishedTable]) -> String {
    tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(" ")
}

fn row(tuple: &Tuple<'_>) -> String {
    let field = |field| match field {
        Field::Null => "-".to_owned(),
        Field::Unchanged => "same".to_owned(),
        Field::Text(text) => String::from_utf8_lossy(text).into_owned(),
    };
    tuple.fields().map(field).collect::<Vec<_>>().join(",")
}

impl Recorder {
    fn line(&mut self, line: String) {
        self.lines.push(line);
    }
}

impl Changes for Recorder {
    fn began(&mut self, lsn: u64, tables: &[PublishedTable]) {
        self.progress = lsn;
        self.line(format!("began {lsn} {}", names(tables)));
    }

    fn published(&mut self, tables: &[PublishedTable]) {
        self.line(format!("published {}", names(tables)));
    }

    fn redefined(&mut self) {
        self.line("redefined".to_owned());
    }

    fn lost(&mut self, why: &str) {
        self.line(format!("lost {why}"));
    }

    fn relation(&mut self, relation: &Relation) {
        let columns: Vec<_> = relation.columns.iter().map(|column| column.name.as_str()).collect();
        self.line(format!("relation {} {}", relation.oid, columns.join(",")));
    }

    fn begin(&mut self, xid: u32) {
        self.line(format!("begin {xid}"));
    }

    fn streaming(&mut self, xid: u32) {
        self.line(format!("streaming {xid}"));
    }

    fn row(&mut self, xid: u32, relation: u32, old: Old<'_>, new: Option<Tuple<'_>>) {
        let old = match &old {
            Old::Absent | Old::Unknown => "?".to_owned(),
            Old::Key(old) => format!("key {}", row(old)),
            Old::Whole(old) => format!("whole {}", row(old)),
        };
        let new = new.as_ref().map_or_else(|| "gone".to_owned(), row);
        self.line(format!("row {xid} {relation} {old} -> {new}"));
    }

    fn truncate(&mut self, xid: u32, relations: &mut dyn Iterator<Item = u32>) {
        self.line(format!("truncate {xid} {:?}", relations.collect::<Vec<_>>()));
    }

    fn commit(&mut self, xid: u32, end: u64) {
        self.line(format!("commit {xid} {end}"));
    }

    fn abort(&mut self, xid: u32, sub: u32) {
        self.line(format!("abort {xid} {sub}"));
    }

    fn progress(&mut self, lsn: u64) {
        self.progressed += 1;
        assert!(lsn >= self.progress, "{lsn} after {}", self.progress);
        self.progress = lsn;
    }
}
