//! Random reads, each with one right answer: ordered, and with nothing in it that depends on which
//! of several equal values came first.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::Rng;

use crate::schema::{unmarked, Table, MARKS};

/// A read, with its constants in the text or as parameters.
#[derive(Debug, Clone)]
pub struct Read {
    pub sql: String,
    /// None: it is a simple query.
    pub values: Option<Vec<String>>,
}

impl Read {
    /// Of a text with marks around what may be a parameter.
    fn of(marked: &str, bound: bool) -> Read {
        if !bound {
            return Read { sql: unmarked(marked), values: None };
        }
        let mut values = Vec::new();
        let mut pieces = marked.split(MARKS);
        let mut sql = pieces.next().unwrap_or_default().to_owned();
        while let (Some(constant), Some(after)) = (pieces.next(), pieces.next()) {
            let inner = constant.strip_prefix('\'').and_then(|c| c.strip_suffix('\''));
            match inner.or(Some(constant)).filter(|value| !value.contains(['\'', '('])) {
                Some(value) => {
                    values.push(value.to_owned());
                    sql.push_str(&format!("${}", values.len()));
                }
                None => sql.push_str(constant),
            }
            sql.push_str(after);
        }
        Read { sql, values: Some(values) }
    }
}

/// Views of each table; they stand beside the tables.
pub fn views(table: &Table, dice: &mut StdRng) -> String {
    let name = &table.name;
    unmarked(&format!(
        "create view v_{name} as select * from {name} where {}; \
         create view c_{name} as select count(*) as n, min(id) as least from {name} group by c0",
        table.condition("", dice)
    ))
}

pub fn read(tables: &[Table], dice: &mut StdRng) -> Read {
    let table = tables.choose(dice).expect("tables");
    let other = tables.choose(dice).expect("tables");
    let mut wheres = table.condition("", dice);
    if dice.random_bool(0.3) {
        wheres = format!("{wheres} and {}", table.condition("", dice));
    }
    let marked = match dice.random_range(0..3) {
        0 => plain(table, &wheres, dice),
        1 => grouped(table, &wheres, dice),
        _ => of_two(table, other, &wheres, dice),
    };
    Read::of(&marked, dice.random_bool(0.5))
}

fn plain(table: &Table, wheres: &str, dice: &mut StdRng) -> String {
    let name = &table.name;
    match dice.random_range(0..8) {
        0..3 => format!("select * from {name} where {wheres} order by id"),
        3 => format!("select id from {name} where {wheres} order by id desc limit 3"),
        4 => format!("select id from {name} where {wheres} order by c0, id offset 1"),
        5 => {
            format!("select id from {name} where {wheres} order by c0 desc nulls last, id limit 4")
        }
        6 => format!("select * from v_{name} where {wheres} order by id"),
        _ => format!(
            "with x as (select * from {name} where {wheres}) select a.id, b.id from x a, x b \
             where a.c0 = b.c0 order by 1, 2"
        ),
    }
}

fn grouped(table: &Table, wheres: &str, dice: &mut StdRng) -> String {
    let name = &table.name;
    match dice.random_range(0..8) {
        0 => format!("select count(*), min(id), count(distinct c0) from {name} where {wheres}"),
        1 => format!("select sum(id), avg(id), max(id) from {name} where {wheres}"),
        2 => {
            format!("select count(*), min(id) from {name} where {wheres} group by c0 order by 1, 2")
        }
        3 => format!(
            "select min(id) from {name} where {wheres} group by c0 having count(*) > 1 order by 1"
        ),
        4 => format!(
            "select id, count(*) over (partition by c0), row_number() over (order by id) \
             from {name} where {wheres} order by id"
        ),
        5 => format!("select string_agg(id::text, ',' order by id) from {name} where {wheres}"),
        6 => format!("select n, least from c_{name} order by least, n"),
        _ => format!("select count(*) from (select distinct c0 from {name} where {wheres}) x"),
    }
}

fn of_two(table: &Table, other: &Table, wheres: &str, dice: &mut StdRng) -> String {
    let (name, others) = (&table.name, &other.name);
    let theirs = other.condition("", dice);
    match dice.random_range(0..8) {
        0..3 => {
            let (mine, theirs) = (table.condition("x.", dice), other.condition("y.", dice));
            let kind = ["join", "left join", "right join", "full join"].choose(dice).expect("kinds");
            let filter = match dice.random_bool(0.5) {
                true => format!("{theirs} or x.id is null or {mine}"),
                false => theirs,
            };
            format!(
                "select x.id, y.id from {name} x {kind} {others} y on x.id = y.id and {mine} \
                 where {filter} order by 1, 2"
            )
        }
        3 => format!(
            "select id from {name} where {wheres} and id in (select id from {others} where {theirs}) \
             order by id"
        ),
        4 => {
            let theirs = other.condition("y.", dice);
            format!(
                "select x.id, (select count(*) from {others} y where y.id > x.id and {theirs}) \
                 from {name} x order by 1"
            )
        }
        5 => {
            let (mine, theirs) = (table.condition("x.", dice), other.condition("y.", dice));
            format!(
                "select x.id from {name} x where {mine} and not exists (select 1 from {others} y \
                 where y.id = x.id and {theirs}) order by 1"
            )
        }
        6 => {
            let kind = ["union", "except", "intersect", "union all"].choose(dice).expect("kinds");
            format!(
                "select id from {name} where {wheres} {kind} select id from {others} where {theirs} \
                 order by 1"
            )
        }
        _ => {
            let theirs = other.condition("y.", dice);
            format!(
                "select x.id, l.id from {name} x left join lateral (select y.id from {others} y \
                 where y.id >= x.id and {theirs} order by y.id limit 1) l on true order by 1"
            )
        }
    }
}
