//! What the parser says of rows that can matter, against a real PostgreSQL: all rows that a
//! generated SELECT's restrictions leave out are deleted, and its answer must stay the same.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sql::{Columns, Parser, PostgresParser, Reads, Restriction, Scan, Source, Test};

use super::server::Server;

/// Tables `t0` to `t7`, each with columns k, x, y and one that no other has, `u0` to `u7`. A
/// statement reads each once at most, so a restriction is that of a table.
const TABLES: usize = 8;

/// Values are NULL and 0 up to this.
const VALUES: i32 = 3;

const STATEMENTS: usize = 2500;

struct Schema<'a>(&'a Reads);

impl Columns for Schema<'_> {
    fn has(&self, table: usize, column: &str) -> Option<bool> {
        let unique = self.0.tables[table].relation.name.replace('t', "u");
        Some(["k", "x", "y"].contains(&column) || column == unique)
    }

    fn same(&self, _: (usize, &str), _: (usize, &str)) -> bool {
        true
    }
}

struct Writer {
    dice: StdRng,
    tables: usize,
    /// Aliases and tables of each block, the innermost last.
    scopes: Vec<Vec<(String, usize)>>,
}

impl Writer {
    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.dice.random_range(0..words.len())]
    }

    fn chance(&mut self, of: f64) -> bool {
        self.dice.random_bool(of)
    }

    fn value(&mut self) -> String {
        self.dice.random_range(0..=VALUES).to_string()
    }

    /// Mostly of the innermost block, sometimes of one around it, sometimes without a qualifier.
    fn column(&mut self) -> String {
        let around = self.scopes.len() - 1;
        let outer = self.chance(0.15).then(|| self.dice.random_range(0..=around));
        let mut scope = &self.scopes[outer.unwrap_or(around)];
        if scope.is_empty() {
            match self.scopes.iter().rev().find(|scope| !scope.is_empty()) {
                Some(other) => scope = other,
                None => return "1".to_owned(),
            }
        }
        let (alias, table) = scope[self.dice.random_range(0..scope.len())].clone();
        match self.dice.random_range(0..8) {
            0 | 1 => format!("u{table}"),
            2 => self.one_of(&["k", "x", "y"]).to_owned(),
            3 => format!("{alias}.u{table}"),
            _ => format!("{alias}.{}", self.one_of(&["k", "x", "y"])),
        }
    }

    fn values(&mut self) -> String {
        let many = self.dice.random_range(1..4);
        (0..many).map(|_| self.value()).collect::<Vec<_>>().join(", ")
    }

    fn condition(&mut self, depth: usize) -> String {
        let (column, other) = (self.column(), self.column());
        match self.dice.random_range(0..if depth == 0 { 13 } else { 22 }) {
            0..=2 => format!("{column} = {}", self.value()),
            3 => format!("{} = {column}", self.value()),
            4 | 5 => format!("{column} = {other}"),
            6 => format!("{column} in ({})", self.values()),
            7 => format!("{column} = any (array[{}])", self.values()),
            8 => format!("{column} between {} and {}", self.value(), self.value()),
            9 => format!("{column} {} {}", self.one_of(&["<", "<=", ">", ">="]), self.value()),
            10 => format!("({column}, {other}) = ({}, {})", self.value(), self.value()),
            11 => format!(
                "({column}, {other}) in (({0}, {1}), ({1}, {0}))",
                self.value(),
                self.value()
            ),
            12 => format!("{column} is null"),
            13 | 14 => format!("({} and {})", self.condition(depth - 1), self.condition(depth - 1)),
            15 => format!("({} or {})", self.condition(depth - 1), self.condition(depth - 1)),
            16 => format!("not ({})", self.condition(depth - 1)),
            17 => format!(
                "coalesce({}, {})",
                self.condition(depth - 1),
                self.one_of(&["true", "false"])
            ),
            18 => format!("({column} = {0} or {column} in ({1}))", self.value(), self.values()),
            19 => format!("{}exists ({})", self.one_of(&["", "not "]), self.select(depth - 1)),
            20 => format!(
                "{column} {}in ({})",
                self.one_of(&["", "not "]),
                self.select_one(depth - 1)
            ),
            _ => format!("{column} = (select max(q.a) from ({}) q)", self.select_one(depth - 1)),
        }
    }

    fn conditions(&mut self, depth: usize) -> String {
        let many = self.dice.random_range(1..4);
        (0..many).map(|_| self.condition(depth)).collect::<Vec<_>>().join(" and ")
    }

    fn item(&mut self, depth: usize) -> String {
        let kind = self.dice.random_range(0..12);
        if kind < 7 && depth > 0 && self.tables + 2 <= TABLES {
            let left = self.item(depth - 1);
            let right = self.item(depth - 1);
            let join =
                self.one_of(&["join", "join", "left join", "left join", "right join", "full join"]);
            return match self.dice.random_range(0..7) {
                0 => {
                    format!("({left} {join} {right} using ({}))", self.one_of(&["k", "x", "k, y"]))
                }
                1 => format!("({left} cross join {right})"),
                2 => format!("({left} natural {join} {right})"),
                _ => format!("({left} {join} {right} on {})", self.conditions(1)),
            };
        }
        if kind == 7 && depth > 0 && self.tables < TABLES {
            let lateral = self.one_of(&["", "lateral "]);
            let alias = format!("s{}", self.tables);
            return format!("{lateral}({}) {alias}", self.select_one(depth - 1));
        }
        if self.tables >= TABLES {
            return format!("(values (1)) v{}", self.dice.random::<u32>());
        }
        let table = self.tables;
        self.tables += 1;
        let alias = match self.chance(0.5) {
            true => format!("t{table}"),
            false => format!("a{table}"),
        };
        let scope = self.scopes.last_mut().expect("a block");
        scope.push((alias.clone(), table));
        match alias.starts_with('t') {
            true => alias,
            false => format!("t{table} {alias}"),
        }
    }

    /// FROM and WHERE of a block; it stays open.
    fn from(&mut self, depth: usize) -> String {
        self.scopes.push(Vec::new());
        let mut items = vec![self.item(depth + 1)];
        if self.chance(0.3) {
            items.push(self.item(depth));
        }
        let mut text = format!(" from {}", items.join(", "));
        if self.chance(0.85) {
            text += &format!(" where {}", self.conditions(depth));
        }
        text
    }

    fn select_one(&mut self, depth: usize) -> String {
        let from = self.from(depth);
        let column = self.column();
        self.scopes.pop();
        format!("select {column} as a{from}")
    }

    fn select(&mut self, depth: usize) -> String {
        let from = self.from(depth);
        let text = match self.dice.random_range(0..4) {
            0 => format!("select count(*), sum({}) {from}", self.column()),
            1 => {
                let column = self.column();
                format!("select {column}, count(*){from} group by {column} having count(*) > 1")
            }
            2 => format!("select distinct {}, {}{from}", self.column(), self.column()),
            _ => format!("select *{from}"),
        };
        self.scopes.pop();
        text
    }

    fn statement(&mut self) -> String {
        let depth = self.dice.random_range(0..3);
        match self.dice.random_range(0..8) {
            0 => format!(
                "{} {} {}",
                self.select_one(depth),
                self.one_of(&["union", "union all", "except", "intersect"]),
                self.select_one(depth)
            ),
            1 => format!("with w as ({}) {}", self.select_one(depth), self.select(depth)),
            _ => self.select(depth),
        }
    }
}

/// `x = 1 AND y IN (2)`, of values in the text.
fn condition(restrictions: &[Restriction], text: &str, scan: &Scan) -> String {
    let value = |source: &Source| match source {
        Source::Literal(place) => {
            let literal = scan.literals()[*place as usize];
            text[literal.start as usize..literal.end as usize].to_owned()
        }
        Source::Parameter(_) => panic!("{text}: no parameters"),
    };
    let one = |Restriction { column, test }: &Restriction| match test {
        Test::Equal(values) => {
            format!("{column} IN ({})", values.iter().map(value).collect::<Vec<_>>().join(", "))
        }
        Test::AnyOf(array) => format!("{column} = ANY ({})", value(array)),
        Test::Range { low, high } => {
            let sign = |sign: &str, with: bool| format!("{sign}{}", if with { "=" } else { "" });
            let low =
                low.map(|(low, with)| format!("{column} {} {}", sign(">", with), value(&low)));
            let high =
                high.map(|(high, with)| format!("{column} {} {}", sign("<", with), value(&high)));
            [low, high].into_iter().flatten().collect::<Vec<_>>().join(" AND ")
        }
    };
    restrictions.iter().map(one).collect::<Vec<_>>().join(" AND ")
}

async fn answer(client: &tokio_postgres::Client, text: &str) -> Option<Vec<Vec<Option<String>>>> {
    let messages = client.simple_query(text).await.ok()?;
    let row = |message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => {
            let values = (0..row.len()).map(|at| row.get(at).map(str::to_owned));
            Some(values.collect::<Vec<_>>())
        }
        _ => None,
    };
    let mut rows: Vec<_> = messages.into_iter().filter_map(row).collect();
    rows.sort();
    Some(rows)
}

#[tokio::test]
async fn rows_that_are_left_out_do_not_matter() {
    let server = Server::start().await;
    let admin = server.cluster.admin("postgres");
    let (client, connection) = admin.connect(tokio_postgres::NoTls).await.expect("connect");
    tokio::spawn(connection);
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut dice = StdRng::seed_from_u64(seed);
    for table in 0..TABLES {
        let mut value = || match dice.random_range(0..=VALUES + 1) {
            more if more > VALUES => "NULL".to_owned(),
            value => value.to_string(),
        };
        let rows: Vec<String> = (0..6)
            .map(|_| format!("({}, {}, {}, {})", value(), value(), value(), value()))
            .collect();
        let rows = rows.join(", ");
        let make = format!(
            "CREATE TABLE t{table} (k int, x int, y int, u{table} int);
             INSERT INTO t{table} VALUES {rows}"
        );
        client.batch_execute(&make).await.expect("a table");
    }
    let (mut answered, mut restricted) = (0, 0);
    for _ in 0..STATEMENTS {
        let mut writer = Writer { dice, tables: 0, scopes: Vec::new() };
        let text = writer.statement();
        dice = writer.dice;
        // Ambiguous names and the like; and no cross product of everything.
        let _ = client.batch_execute("BEGIN; SET LOCAL statement_timeout = 200").await;
        let before = answer(&client, &text).await;
        // On a busy machine this, too, may take too long.
        let goes_on = client.batch_execute("SET LOCAL statement_timeout = 0").await.is_ok();
        if let Some(before) = before.filter(|_| goes_on) {
            answered += 1;
            let mut scan = Scan::new();
            assert!(scan.scan(text.as_bytes()), "{text}");
            let reads = PostgresParser.reads(&text, scan.literals());
            let reads = reads.unwrap_or_else(|e| panic!("{text}: {e}"));
            let mut deleted = Vec::new();
            for (place, table) in reads.tables.iter().enumerate() {
                let restrictions = reads.restrictions(place, &Schema(&reads));
                if restrictions.is_empty() {
                    continue;
                }
                restricted += 1;
                let holds = condition(&restrictions, &text, &scan);
                let delete = format!("DELETE FROM {} WHERE ({holds}) IS NOT TRUE", table.relation);
                client.batch_execute(&format!("SAVEPOINT one; {delete}")).await.expect(&delete);
                let after = answer(&client, &text).await;
                assert_eq!(after.as_ref(), Some(&before), "{text}\n{delete}\nseed {seed}");
                client.batch_execute("ROLLBACK TO one").await.expect("rollback");
                deleted.push(delete);
            }
            let all = deleted.join("; ");
            client.batch_execute(&all).await.expect(&all);
            let after = answer(&client, &text).await;
            assert_eq!(after, Some(before), "{text}\n{all}\nseed {seed}");
        }
        client.batch_execute("ROLLBACK").await.expect("rollback");
    }
    println!("{answered} statements, {restricted} restricted tables");
    assert!(answered > STATEMENTS / 4 && restricted > STATEMENTS / 4, "{answered}, {restricted}");
}
