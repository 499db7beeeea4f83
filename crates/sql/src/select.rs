//! A SELECT of the kind that can be answered without PostgreSQL.

use crate::{Name, Source};

mod resolve;

/// One SELECT of one or more tables, whose conditions and values are simple. `C` names a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select<C> {
    pub distinct: bool,
    /// Those behind `shown` are there for ORDER BY alone.
    pub outputs: Vec<Output<C>>,
    pub shown: usize,
    /// WHERE, and the conditions of all joins.
    pub filter: Filter<C>,
    pub group: Vec<C>,
    pub order: Vec<Order>,
    pub limit: Option<Source>,
    pub offset: Option<Source>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<C> {
    Column(C),
    /// `count(*)`
    CountRows,
    Count(C),
    Sum(C),
    Min(C),
    Max(C),
    Avg(C),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Its place in [`Select::outputs`].
    pub output: usize,
    pub descending: bool,
    pub nulls_first: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter<C> {
    /// All of them; none is true.
    And(Vec<Filter<C>>),
    Or(Vec<Filter<C>>),
    Compare(C, Comparison, Source),
    In(C, Vec<Source>),
    /// Neither it nor one of them is NULL, and it is none of them.
    NotIn(C, Vec<Source>),
    /// `= ANY ($1)`
    AnyOf(C, Source),
    /// Whether it is so by `LIKE` without ESCAPE; NULL is neither.
    Like(C, Source, bool),
    /// It is this truth value.
    Is(C, bool),
    Null(C),
    NotNull(C),
    /// Two columns are equal.
    Same(C, C),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// A column as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// An alias or the name of a table.
    pub table: Option<String>,
    pub name: String,
}

/// A SELECT of this kind as it is written: which columns its names mean, the catalogues say.
/// [`Selected::resolved`] makes a [`Select`] of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// In the order of FROM, each with its alias or its name.
    pub tables: Vec<(Name, String)>,
    /// Literals whose values decide what is meant, with these: the 1 of `ORDER BY 1`.
    pub fixed: Vec<(Source, usize)>,
    pub(crate) distinct: bool,
    pub(crate) targets: Vec<Target>,
    pub(crate) filter: Filter<Written>,
    pub(crate) group: Vec<Key>,
    pub(crate) order: Vec<Sort>,
    pub(crate) limit: Option<Source>,
    pub(crate) offset: Option<Source>,
}

/// An item of the select list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// `*` or `t.*`
    All(Option<String>),
    /// With the name of the result's column.
    One(Output<Written>, String),
}

/// An item of GROUP BY or ORDER BY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// A place in the result, from 0.
    Place(usize),
    One(Output<Written>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sort {
    pub key: Key,
    pub descending: bool,
    pub nulls_first: bool,
}

impl<C> Select<C> {
    /// The same with other names of columns.
    ///
    /// # Errors
    /// The first of `column`.
    pub fn map<D, E>(self, column: &mut impl FnMut(C) -> Result<D, E>) -> Result<Select<D>, E> {
        let outputs = self.outputs.into_iter().map(|output| output.map(column));
        Ok(Select {
            distinct: self.distinct,
            outputs: outputs.collect::<Result<_, E>>()?,
            shown: self.shown,
            filter: self.filter.map(column)?,
            group: self.group.into_iter().map(&mut *column).collect::<Result<_, E>>()?,
            order: self.order,
            limit: self.limit,
            offset: self.offset,
        })
    }

    /// What its values come from, some more than once.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let mut all = Vec::new();
        self.filter.put_sources(&mut all);
        all.into_iter().chain(self.limit).chain(self.offset)
    }

    /// The same with other sources; none if there is no other for one of them.
    pub fn with_sources(mut self, other: impl Fn(Source) -> Option<Source>) -> Option<Select<C>> {
        self.filter.change_sources(&other)?;
        for source in [&mut self.limit, &mut self.offset].into_iter().flatten() {
            *source = other(*source)?;
        }
        Some(self)
    }
}

impl<C> Output<C> {
    /// The same with another name of its column.
    ///
    /// # Errors
    /// That of `column`.
    pub fn map<D, E>(self, column: &mut impl FnMut(C) -> Result<D, E>) -> Result<Output<D>, E> {
        Ok(match self {
            Output::Column(one) => Output::Column(column(one)?),
            Output::CountRows => Output::CountRows,
            Output::Count(one) => Output::Count(column(one)?),
            Output::Sum(one) => Output::Sum(column(one)?),
            Output::Min(one) => Output::Min(column(one)?),
            Output::Max(one) => Output::Max(column(one)?),
            Output::Avg(one) => Output::Avg(column(one)?),
        })
    }

    /// Its column, if there is one.
    pub fn column(&self) -> Option<&C> {
        match self {
            Output::CountRows => None,
            Output::Column(one)
            | Output::Count(one)
            | Output::Sum(one)
            | Output::Min(one)
            | Output::Max(one)
            | Output::Avg(one) => Some(one),
        }
    }
}

impl<C> Filter<C> {
    /// The same with other names of columns.
    ///
    /// # Errors
    /// The first of `column`.
    pub fn map<D, E>(self, column: &mut impl FnMut(C) -> Result<D, E>) -> Result<Filter<D>, E> {
        let mut all = |parts: Vec<Filter<C>>| -> Result<Vec<Filter<D>>, E> {
            parts.into_iter().map(|part| part.map(column)).collect()
        };
        Ok(match self {
            Filter::And(parts) => Filter::And(all(parts)?),
            Filter::Or(parts) => Filter::Or(all(parts)?),
            Filter::Compare(one, comparison, source) => {
                Filter::Compare(column(one)?, comparison, source)
            }
            Filter::In(one, sources) => Filter::In(column(one)?, sources),
            Filter::NotIn(one, sources) => Filter::NotIn(column(one)?, sources),
            Filter::AnyOf(one, source) => Filter::AnyOf(column(one)?, source),
            Filter::Like(one, source, wanted) => Filter::Like(column(one)?, source, wanted),
            Filter::Is(one, value) => Filter::Is(column(one)?, value),
            Filter::Null(one) => Filter::Null(column(one)?),
            Filter::NotNull(one) => Filter::NotNull(column(one)?),
            Filter::Same(one, other) => Filter::Same(column(one)?, column(other)?),
        })
    }

    fn put_sources(&self, all: &mut Vec<Source>) {
        match self {
            Filter::And(parts) | Filter::Or(parts) => {
                parts.iter().for_each(|part| part.put_sources(all));
            }
            Filter::Compare(_, _, source)
            | Filter::AnyOf(_, source)
            | Filter::Like(_, source, _) => {
                all.push(*source);
            }
            Filter::In(_, sources) | Filter::NotIn(_, sources) => all.extend(sources),
            Filter::Is(..) | Filter::Null(_) | Filter::NotNull(_) | Filter::Same(..) => {}
        }
    }

    fn change_sources(&mut self, other: &impl Fn(Source) -> Option<Source>) -> Option<()> {
        match self {
            Filter::And(parts) | Filter::Or(parts) => {
                parts.iter_mut().try_for_each(|part| part.change_sources(other))
            }
            Filter::Compare(_, _, source)
            | Filter::AnyOf(_, source)
            | Filter::Like(_, source, _) => {
                *source = other(*source)?;
                Some(())
            }
            Filter::In(_, sources) | Filter::NotIn(_, sources) => {
                sources.iter_mut().try_for_each(|source| {
                    *source = other(*source)?;
                    Some(())
                })
            }
            Filter::Is(..) | Filter::Null(_) | Filter::NotNull(_) | Filter::Same(..) => Some(()),
        }
    }
}
