//! From names to columns, as PostgreSQL finds what they mean.
//!
//! In WHERE, ON and the select list a name is a column's. In ORDER BY a bare name is first one of
//! the result's columns, then one of a table's; in GROUP BY it is the other way round
//! (`findTargetlistEntrySQL92` in parse_clause.c). Names that could be of two columns are refused,
//! and so are names of no column, which PostgreSQL may take for a row or a function.

use super::{Filter, Key, Order, Output, Select, Selected, Sort, Target, Written};

/// The table's place in FROM, and the column's name.
type Column = (usize, String);

/// A result's column, and its name.
type Named = (Output<Column>, String);

impl Selected {
    /// `columns` tells the columns of a table in FROM in their order.
    ///
    /// # Errors
    /// Why it can't be told what is meant, in words for people.
    pub fn resolved(
        &self,
        columns: &impl Fn(usize) -> Vec<String>,
    ) -> Result<Select<Column>, String> {
        let names: Vec<&str> = self.tables.iter().map(|(_, name)| name.as_str()).collect();
        for (place, name) in names.iter().enumerate() {
            if names.iter().skip(place + 1).any(|other| other == name) {
                return Err(format!("two tables are called \"{name}\""));
            }
        }
        let tables = Tables { names, columns: (0..self.tables.len()).map(columns).collect() };
        let outputs = tables.outputs(&self.targets)?;
        let group = self.group.iter().map(|key| tables.grouped(key, &outputs));
        let group = group.collect::<Result<Vec<Column>, String>>()?;
        let mut select = Select {
            distinct: self.distinct,
            shown: outputs.len(),
            outputs: Vec::new(),
            filter: tables.filter(&self.filter)?,
            group: Vec::new(),
            order: Vec::new(),
            limit: self.limit,
            offset: self.offset,
        };
        for column in group {
            if !select.group.contains(&column) {
                select.group.push(column);
            }
        }
        let mut all: Vec<Output<Column>> =
            outputs.iter().map(|(output, _)| output.clone()).collect();
        for sort in &self.order {
            let Sort { key, descending, nulls_first } = sort;
            let output = tables.sorted(key, &outputs, &mut all)?;
            let order = Order { output, descending: *descending, nulls_first: *nulls_first };
            // What is equal by a key before is so by the same key again.
            if !select.order.iter().any(|before| all[before.output] == all[output]) {
                select.order.push(order);
            }
        }
        select.outputs = all;
        check(&select, &tables)?;
        Ok(select)
    }
}

/// What PostgreSQL wants of the columns of groups and of DISTINCT.
fn check(select: &Select<Column>, tables: &Tables<'_>) -> Result<(), String> {
    if select.shown == 0 {
        return Err("it has no columns".to_owned());
    }
    let aggregate = |output: &Output<Column>| !matches!(output, Output::Column(_));
    if !select.group.is_empty() || select.outputs.iter().any(aggregate) {
        for output in &select.outputs {
            match output {
                Output::Column(column) if !select.group.contains(column) => {
                    let shown = tables.shown(column);
                    return Err(format!("{shown} is neither in GROUP BY nor in an aggregate"));
                }
                _ => {}
            }
        }
    }
    if select.distinct && select.outputs.len() > select.shown {
        return Err("it orders DISTINCT rows by what they do not show".to_owned());
    }
    Ok(())
}

struct Tables<'a> {
    names: Vec<&'a str>,
    columns: Vec<Vec<String>>,
}

impl Tables<'_> {
    fn shown(&self, (table, column): &Column) -> String {
        format!("{}.{column}", self.names.get(*table).copied().unwrap_or_default())
    }

    fn named(&self, table: &str) -> Result<usize, String> {
        let place = self.names.iter().position(|name| *name == table);
        place.ok_or_else(|| format!("\"{table}\" is no table of it"))
    }

    /// Columns with this name.
    fn with_name(&self, name: &str) -> impl Iterator<Item = usize> + '_ {
        let name = name.to_owned();
        let has = move |columns: &Vec<String>| columns.contains(&name);
        self.columns.iter().enumerate().filter(move |(_, columns)| has(columns)).map(|(at, _)| at)
    }

    fn column(&self, Written { table, name }: &Written) -> Result<Column, String> {
        let unknown = || format!("\"{name}\" is no column of its tables");
        let place = match table {
            Some(table) => {
                let place = self.named(table)?;
                let known = self.columns.get(place).is_some_and(|all| all.contains(name));
                Some(place).filter(|_| known).ok_or_else(unknown)?
            }
            None => {
                let mut found = self.with_name(name);
                match (found.next(), found.next()) {
                    (Some(place), None) => place,
                    (None, _) => return Err(unknown()),
                    _ => return Err(format!("\"{name}\" is a column of two of its tables")),
                }
            }
        };
        Ok((place, name.clone()))
    }

    fn output(&self, output: &Output<Written>) -> Result<Output<Column>, String> {
        output.clone().map(&mut |column| self.column(&column))
    }

    fn filter(&self, filter: &Filter<Written>) -> Result<Filter<Column>, String> {
        filter.clone().map(&mut |column| self.column(&column))
    }

    fn outputs(&self, targets: &[Target]) -> Result<Vec<Named>, String> {
        let mut outputs = Vec::new();
        for target in targets {
            let places = match target {
                Target::One(output, name) => {
                    outputs.push((self.output(output)?, name.clone()));
                    continue;
                }
                Target::All(None) => 0..self.columns.len(),
                Target::All(Some(table)) => {
                    let place = self.named(table)?;
                    place..place + 1
                }
            };
            for place in places {
                for name in self.columns.get(place).into_iter().flatten() {
                    outputs.push((Output::Column((place, name.clone())), name.clone()));
                }
            }
        }
        Ok(outputs)
    }

    fn grouped(&self, key: &Key, outputs: &[Named]) -> Result<Column, String> {
        let output = match key {
            Key::Place(place) => at(*place, outputs)?.0.clone(),
            Key::One(Output::Column(Written { table: None, name }))
                if self.with_name(name).next().is_none() =>
            {
                match called(name, outputs)? {
                    Some(place) => at(place, outputs)?.0.clone(),
                    None => return Err(format!("\"{name}\" is no column of its tables")),
                }
            }
            Key::One(output) => self.output(output)?,
        };
        match output {
            Output::Column(column) => Ok(column),
            _ => Err("it groups by an aggregate".to_owned()),
        }
    }

    /// The place of what is ordered by, which is added to `all` if it is not there.
    fn sorted(
        &self,
        key: &Key,
        outputs: &[Named],
        all: &mut Vec<Output<Column>>,
    ) -> Result<usize, String> {
        let output = match key {
            Key::Place(place) => return at(*place, outputs).map(|_| *place),
            Key::One(output) => output,
        };
        if let Output::Column(Written { table: None, name }) = output {
            if let Some(place) = called(name, outputs)? {
                return Ok(place);
            }
        }
        let output = self.output(output)?;
        if let Some(place) = all.iter().position(|known| *known == output) {
            return Ok(place);
        }
        all.push(output);
        Ok(all.len() - 1)
    }
}

fn at(place: usize, outputs: &[Named]) -> Result<&Named, String> {
    outputs.get(place).ok_or_else(|| format!("its result has no column {}", place + 1))
}

/// The column of the result with this name. Several are no matter if they are the same.
fn called(name: &str, outputs: &[Named]) -> Result<Option<usize>, String> {
    let mut found = outputs.iter().enumerate().filter(|(_, (_, known))| known == name);
    let Some((first, (output, _))) = found.next() else { return Ok(None) };
    match found.all(|(_, (other, _))| other == output) {
        true => Ok(Some(first)),
        false => Err(format!("its result has two columns \"{name}\"")),
    }
}
