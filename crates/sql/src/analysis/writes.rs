//! Which rows an INSERT, UPDATE or DELETE writes, as far as its text says by values.

use super::reads::{boolean_parts, operator, AND};
use super::tree::{Node, Value};
use super::walk::{constant, relation, AEXPR_OP};
use super::{Name, Source};
use crate::scan::Literal;

/// What rows of one table are written. Everything is told only if it is certain, so `fixed` may
/// be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub table: Name,
    /// Every row that is written has these values: those that UPDATE and DELETE find it by, or
    /// those of the one row that INSERT makes.
    pub fixed: Vec<(String, Source)>,
    /// Of an INSERT with ON CONFLICT, the values of the row that it makes, or perhaps finds.
    pub conflicts: Vec<(String, Source)>,
    /// Columns that UPDATE gives other values.
    pub assigned: Vec<String>,
}

impl Write {
    pub(super) fn of(statement: &Node, literals: &[Literal]) -> Option<Write> {
        let table = relation(statement.child("relation")?);
        let writing = Writing { statement, literals };
        let plain = statement.child("with_clause").is_none();
        let (fixed, assigned) = match statement.kind {
            "InsertStmt" => (if plain { writing.inserted() } else { Vec::new() }, Vec::new()),
            "UpdateStmt" => {
                let assigned = statement.nodes("target_list");
                let assigned = assigned.map(|target| target.text("name").to_owned()).collect();
                (writing.found(plain, "from_clause"), assigned)
            }
            "DeleteStmt" => (writing.found(plain, "using_clause"), Vec::new()),
            _ => return None,
        };
        // What is there already may be changed instead.
        let upserts = statement.child("on_conflict_clause").is_some();
        let (fixed, conflicts) = if upserts { (Vec::new(), fixed) } else { (fixed, Vec::new()) };
        Some(Write { table, fixed, conflicts, assigned })
    }
}

struct Writing<'a> {
    statement: &'a Node,
    literals: &'a [Literal],
}

impl Writing<'_> {
    /// The row of `INSERT INTO t (a, b) VALUES (...)`.
    fn inserted(&self) -> Vec<(String, Source)> {
        let rows =
            self.statement.child("select_stmt").map_or(&[][..], |from| from.list("values_lists"));
        let [Value::Node(row)] = rows else { return Vec::new() };
        let columns = self.statement.nodes("cols");
        let pairs = columns.zip(row.nodes("items"));
        let plain = pairs.filter(|(column, _)| column.list("indirection").is_empty());
        plain
            .filter_map(|(column, value)| {
                Some((column.text("name").to_owned(), self.source(value)?))
            })
            .collect()
    }

    /// What rows are found by, if no other table is looked at.
    fn found(&self, plain: bool, others: &str) -> Vec<(String, Source)> {
        if !plain || !self.statement.list(others).is_empty() {
            return Vec::new();
        }
        let Some(condition) = self.statement.child("where_clause") else { return Vec::new() };
        let mut found = Vec::new();
        let mut open = vec![condition];
        while let Some(conjunct) = open.pop() {
            match boolean_parts(conjunct, AND) {
                Some(parts) => open.extend(parts),
                None => found.extend(self.equality(conjunct)),
            }
        }
        // In the order of the text.
        found.sort_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, pair)| pair).collect()
    }

    /// `column = value`, and where it is.
    fn equality(&self, node: &Node) -> Option<(i64, (String, Source))> {
        let equal =
            node.kind == "AExpr" && node.number("kind") == AEXPR_OP && operator(node) == Some("=");
        let (left, right) = (node.child("lexpr")?, node.child("rexpr")?);
        let either = [(left, right), (right, left)].into_iter().filter(|_| equal);
        let pair = |(column, value)| Some((self.column(column)?, self.source(value)?));
        Some((node.number("location"), either.filter_map(pair).next()?))
    }

    fn column(&self, node: &Node) -> Option<String> {
        if node.kind != "ColumnRef" {
            return None;
        }
        let parts: Vec<&str> = node.nodes("fields").map(|part| part.text("sval")).collect();
        let target = self.statement.child("relation")?;
        let alias =
            target.child("alias").map_or(target.text("relname"), |alias| alias.text("aliasname"));
        match parts[..] {
            [column] if !column.is_empty() => Some(column.to_owned()),
            [table, column] if table == alias && !column.is_empty() => Some(column.to_owned()),
            _ => None,
        }
    }

    fn source(&self, node: &Node) -> Option<Source> {
        if node.kind == "ParamRef" {
            return u32::try_from(node.number("number")).ok().map(Source::Parameter);
        }
        let (start, kind) = constant(node)?;
        let place = self.literals.binary_search_by_key(&start, |literal| literal.start).ok()?;
        let found = self.literals[place].kind == kind;
        found.then_some(Source::Literal(u32::try_from(place).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parser, PostgresParser, Scan};

    fn told(text: &str) -> String {
        let mut scan = Scan::new();
        assert!(scan.scan(text.as_bytes()), "{text}");
        let literals = scan.literals();
        let Some(write) = PostgresParser.write(text, literals) else { return "-".to_owned() };
        let fixed = write.fixed.iter().map(|(column, source)| match source {
            Source::Parameter(number) => format!("{column}=${number}"),
            Source::Literal(place) => {
                let literal = literals[*place as usize];
                format!("{column}={}", &text[literal.start as usize..literal.end as usize])
            }
        });
        let fixed: Vec<String> = fixed.collect();
        format!("{} {} / {}", write.table, fixed.join(" "), write.assigned.join(" "))
    }

    #[test]
    fn rows_are_told_by_their_values() {
        for (text, expected) in [
            ("update t set a = 5 where id = 7", "t id=7 / a"),
            ("update app.t x set a = $2, b = b + 1 where x.id = $1 and c > 3", "app.t id=$1 / a b"),
            ("update t set id = 9 where 7 = t.id and b = 'x'", "t id=7 b='x' / id"),
            ("update t set (a, b) = (1, 2) where id = -7 returning *", "t id=-7 / a b"),
            ("delete from t where id = $1 and (k = 2 and c is null)", "t id=$1 k=2 / "),
            ("insert into t (id, a) values ($1, 'x')", "t id=$1 a='x' / "),
            ("insert into t (id, a) values ($1, now()) returning id", "t id=$1 / "),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_certain_is_not_told() {
        for (text, expected) in [
            ("update t set a = 5", "t  / a"),
            ("update t set a = 5 where id = 7 or a = 3", "t  / a"),
            ("update t set a = 5 where not id = 7", "t  / a"),
            ("update t set a = 5 where id = $1::int", "t  / a"),
            ("update t set a = 5 where id = (select 7)", "t  / a"),
            ("update t set a = 5 where o.id = 7", "t  / a"),
            ("update t set a = 5 from u where id = 7", "t  / a"),
            ("update t set a = 5 where id in (7)", "t  / a"),
            ("update t set a = 5 where id operator(app.=) 7", "t  / a"),
            ("with u as (select 1) update t set a = 5 where id = 7", "t  / a"),
            ("delete from t using u where id = 7", "t  / "),
            ("delete from t where id <> 7", "t  / "),
            ("insert into t values (7)", "t  / "),
            ("insert into t (id) values (7), (8)", "t  / "),
            ("insert into t (id) select 7", "t  / "),
            ("insert into t (id) values (7) on conflict do nothing", "t  / "),
            ("insert into t (id[1]) values (7)", "t  / "),
            ("insert into t (id) values (default)", "t  / "),
            ("insert into t default values", "t  / "),
            ("select 1", "-"),
            ("merge into t using u on t.id = u.id when matched then delete", "-"),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }
}
