//! What the catalogues of a simulated database say of its tables, and how mirrors answer reads.

use std::sync::Arc;

use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::{Column, Definition};
use cache::recipe::Source;
use cache::value::oid as types;
use pondage::route::Mirrored;
use sql::{Comparison, Filter, Order, Output, Select};
use wire::pg::backend as reply;
use wire::pg::frame;

use super::read::{oid, Form, Read, Test};
use super::{Database, TABLES};

/// Places of columns in a definition, which is also their order in the table.
pub(super) const KEY: u16 = 0;
pub(super) const GROUP: u16 = 1;
pub(super) const MARK: u16 = 2;

impl Database {
    /// All tables as they are now, whole.
    pub(crate) fn catalogue(&self) -> Vec<Definition> {
        (0..TABLES.len()).map(|table| self.definition(table)).collect()
    }

    pub(super) fn definition(&self, table: usize) -> Definition {
        let of = &self.tables[table];
        let column = |name: &str, at: u16, type_oid, type_modifier| Column {
            name: name.to_owned(),
            attnum: at as i16 + 1,
            type_oid,
            type_modifier,
            class: Class::of(type_oid),
            collation: Collation::Ordered,
            not_null: true,
            labels: Arc::default(),
        };
        Definition {
            oid: oid(table),
            filenode: of.filenode,
            schema: "public".to_owned(),
            name: TABLES[table].to_owned(),
            columns: vec![
                column("k", KEY, types::INT4, -1),
                column("g", GROUP, types::INT4, -1),
                column("v", MARK, types::TEXT, of.version),
            ],
            identity: vec![KEY],
        }
    }
}

/// With so many of its columns.
pub(super) fn narrowed(mut definition: Definition, columns: u16) -> Definition {
    definition.columns.truncate(usize::from(columns));
    definition
}

/// How mirrors answer a read with these values, of tables that are like this.
pub(super) fn mirrored(
    read: &Read,
    sources: &[Source],
    catalogue: &[Definition],
) -> Result<Arc<Mirrored>, String> {
    if read.form == Form::Text || catalogue.is_empty() {
        return Err("there are no mirrors for it".to_owned());
    }
    let count = if read.form == Form::Rows { MARK + 1 } else { GROUP + 1 };
    let tables: Vec<Definition> =
        read.tables.iter().map(|table| narrowed(catalogue[*table].clone(), count)).collect();
    let places = 0..tables.len() as u16;
    let same = places.clone().skip(1).map(|place| Filter::Same((0, KEY), (place, KEY)));
    let tests = places.clone().filter_map(|place| filter(read, place, sources));
    let last = places.end - 1;
    let outputs = match read.form {
        Form::Sums => {
            vec![Output::CountRows, Output::Sum((0, KEY)), Output::Max((last, GROUP))]
        }
        Form::Rows | Form::Text => {
            let of_each =
                places.flat_map(|at| [Output::Column((at, GROUP)), Output::Column((at, MARK))]);
            [Output::Column((0, KEY))].into_iter().chain(of_each).collect()
        }
    };
    let by_key = Order { output: 0, descending: false, nulls_first: false };
    let mut description = Vec::new();
    reply::put_row_description(&mut description, &read.columns(0));
    Ok(Arc::new(Mirrored {
        select: Select {
            distinct: false,
            shown: outputs.len(),
            outputs,
            filter: Filter::And(same.chain(tests).collect()),
            group: Vec::new(),
            order: if read.form == Form::Rows { vec![by_key] } else { Vec::new() },
            limit: None,
            offset: None,
        },
        tables,
        description: description.split_off(frame::HEADER_BYTES),
        output_types: read.columns(0).iter().map(|column| column.oid).collect(),
        fixed: Vec::new(),
    }))
}

fn filter(read: &Read, place: u16, sources: &[Source]) -> Option<Filter<(u16, u16)>> {
    let compare = |column, comparison, at: usize| {
        Some(Filter::Compare((place, column), comparison, *sources.get(at)?))
    };
    match &read.test {
        Test::All => None,
        Test::Group(_) => compare(GROUP, Comparison::Equal, 0),
        Test::Range(..) => Some(Filter::And(vec![
            compare(KEY, Comparison::GreaterEqual, 0)?,
            compare(KEY, Comparison::LessEqual, 1)?,
        ])),
        Test::Keys(_) if sources.len() == 1 => compare(KEY, Comparison::Equal, 0),
        Test::Keys(_) => Some(Filter::In((place, KEY), sources.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Caching;

    #[test]
    fn mirrors_can_answer_what_is_found_and_counted() {
        let catalogue = Database::new(1, &Caching::quiet(), 1).catalogue();
        for text in ["key $1", "in $1 $2 $3", "from $1 to $2", "group $1", "all"] {
            for head in ["find t1", "find both", "count t2", "count both"] {
                let text = format!("{head} {text}");
                let words: Vec<&str> = text.split_whitespace().collect();
                let sources: Vec<Source> = (1..=3).map(Source::Parameter).collect();
                let sources = &sources[..text.matches('$').count()];
                let known = mirrored(&Read::parse(&words), sources, &catalogue).expect("a plan");
                let Mirrored { select, tables, description, .. } = &*known;
                let made = cache::mirror::mirrored::Mirrored::new(
                    select.clone(),
                    tables.clone(),
                    &|_| types::INT4,
                    description.clone(),
                    Vec::new(),
                );
                if let Err(why) = made {
                    panic!("{text}: {why}");
                }
            }
        }
    }
}
