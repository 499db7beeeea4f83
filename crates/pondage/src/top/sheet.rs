//! Answers of the console, and what they were before.

use std::collections::HashMap;
use std::time::Instant;

use super::page::{Page, Shape, Shown};

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sheet {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The value of the row whose first column is this.
    pub fn value(&self, first: &str) -> Option<&str> {
        let row = self.rows.iter().find(|row| row.first().is_some_and(|it| it == first))?;
        row.get(1).map(String::as_str)
    }

    /// Of all rows together.
    pub fn sum(&self, name: &str) -> f64 {
        let Some(place) = self.place(name) else { return 0.0 };
        self.rows.iter().filter_map(|row| row.get(place)?.parse::<f64>().ok()).sum()
    }
}

/// A value of the page.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub text: String,
    /// What it is sorted by; texts are sorted by themselves.
    pub number: Option<f64>,
}

/// One look.
struct Look {
    at: Instant,
    page: Page,
    answers: Vec<Sheet>,
}

/// The last look, and the one before.
#[derive(Default)]
pub struct Sheets {
    now: Option<Look>,
    before: Option<Look>,
    /// Why there is nothing newer.
    pub complaint: Option<String>,
}

impl Sheets {
    /// Of a page: the answers to [`Page::COMMON`], then the page's own.
    pub fn took(&mut self, at: Instant, page: Page, mut answers: Vec<Sheet>) {
        if page == Page::Pools {
            join_pools(&mut answers);
        }
        self.before = self.now.take();
        self.now = Some(Look { at, page, answers });
        self.complaint = None;
    }

    /// An answer of [`Page::COMMON`].
    pub fn common(&self, place: usize) -> Option<&Sheet> {
        self.now.as_ref()?.answers.get(place)
    }

    /// What came to a counter of all databases, each second.
    pub fn total_rate(&self, name: &str) -> Option<f64> {
        let (now, before) = (self.now.as_ref()?, self.before.as_ref()?);
        let sum = |look: &Look| Some(look.answers.get(Page::TOTALS)?.sum(name));
        rate(sum(now)?, sum(before)?, now, before)
    }

    /// The rows of the page, in its columns.
    pub fn rows(&self, page: Page) -> Vec<Vec<Cell>> {
        let Some(now) = self.now.as_ref().filter(|look| look.page == page) else {
            return Vec::new();
        };
        let Some(sheet) = now.answers.last() else { return Vec::new() };
        let before = self.before.as_ref().filter(|look| look.page == page);
        let then: HashMap<Vec<&str>, &Vec<String>> = before
            .and_then(|look| look.answers.last())
            .map(|old| old.rows.iter().map(|row| (key(page, old, row), row)).collect())
            .unwrap_or_default();
        let row = |row: &Vec<String>| {
            let old = then.get(&key(page, sheet, row)).copied();
            let cell = |column: &Shown| {
                let place = sheet.place(column.name);
                let value = place.and_then(|place| row.get(place)).map_or("", String::as_str);
                if column.shape != Shape::Rate {
                    return cell(column.shape, value);
                }
                let of = |row: &Vec<String>| row.get(place?)?.parse::<f64>().ok();
                let (now_is, was) = (of(row), old.and_then(of));
                let rate = before
                    .zip(now_is.zip(was))
                    .and_then(|(before, (now_is, was))| rate(now_is, was, now, before));
                match rate {
                    Some(rate) => Cell { text: counted(rate), number: Some(rate) },
                    None => Cell { text: String::new(), number: Some(0.0) },
                }
            };
            page.shown().iter().map(cell).collect()
        };
        sheet.rows.iter().map(row).collect()
    }
}

/// SHOW POOLS beside SHOW POOLS_EXTENDED: one row of each pool.
fn join_pools(answers: &mut [Sheet]) {
    let Some((extended, common)) = answers.split_last_mut() else { return };
    let Some(pools) = common.get(Page::POOL_ROWS) else { return };
    let mut joined = pools.clone();
    let more: Vec<usize> = (2..extended.columns.len()).collect();
    joined.columns.extend(more.iter().filter_map(|at| extended.columns.get(*at).cloned()));
    for row in &mut joined.rows {
        let same = extended.rows.iter().find(|other| other.get(..2) == row.get(..2));
        let value = |at: &usize| same.and_then(|row| row.get(*at)).cloned().unwrap_or_default();
        row.extend(more.iter().map(value));
    }
    *extended = joined;
}

/// By what a row is known again.
fn key<'a>(page: Page, sheet: &Sheet, row: &'a [String]) -> Vec<&'a str> {
    let names: &[&str] = match page {
        Page::Pools => &["database", "user"],
        Page::Queries => &["database", "user", "query"],
        Page::Clients | Page::Servers => &["id"],
        Page::Blockers => &["client_id"],
        Page::Caches => &["name", "database"],
        Page::Redis => &["command"],
        Page::Procedures => &["database", "procedure", "arguments"],
        Page::Hosts => &["database", "host", "port"],
    };
    let value = |name: &&str| sheet.place(name).and_then(|place| row.get(place));
    names.iter().filter_map(value).map(String::as_str).collect()
}

/// None where it was counted anew.
fn rate(now_is: f64, was: f64, now: &Look, before: &Look) -> Option<f64> {
    let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
    (seconds > 0.0 && now_is >= was).then(|| (now_is - was) / seconds)
}

fn cell(shape: Shape, value: &str) -> Cell {
    let number: Option<f64> = value.parse().ok();
    let text = match (shape, number) {
        (Shape::Text | Shape::Wide, _) => {
            // One line each, whatever is in it.
            let text = value.split_whitespace().collect::<Vec<_>>().join(" ");
            return Cell { text, number: None };
        }
        (_, None) => String::new(),
        (Shape::Count | Shape::Rate, Some(number)) => counted(number),
        (Shape::Bytes, Some(number)) => bytes(number),
        (Shape::Micros, Some(number)) => micros(number),
        (Shape::Percent, Some(number)) => format!("{number:.1} %"),
    };
    Cell { text, number: Some(number.unwrap_or_default()) }
}

/// 950, 12.3k, 4.5M.
pub fn counted(number: f64) -> String {
    match number {
        n if n < 10.0 && n.fract() > 0.0 => format!("{n:.1}"),
        n if n < 10_000.0 => format!("{n:.0}"),
        n if n < 1e6 => format!("{:.1}k", n / 1e3),
        n if n < 1e9 => format!("{:.1}M", n / 1e6),
        n => format!("{:.1}G", n / 1e9),
    }
}

fn bytes(number: f64) -> String {
    match number {
        n if n < 1024.0 => format!("{n:.0} B"),
        n if n < 1_048_576.0 => format!("{:.1} KiB", n / 1024.0),
        n if n < 1_073_741_824.0 => format!("{:.1} MiB", n / 1_048_576.0),
        n => format!("{:.1} GiB", n / 1_073_741_824.0),
    }
}

fn micros(number: f64) -> String {
    match number {
        n if n < 1e3 => format!("{n:.0} us"),
        n if n < 1e6 => format!("{:.1} ms", n / 1e3),
        n => format!("{:.1} s", n / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sheet(columns: &str, rows: &[&str]) -> Sheet {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        Sheet { columns: words(columns), rows: rows.iter().map(|row| words(row)).collect() }
    }

    fn answers(calls: u64) -> Vec<Sheet> {
        vec![
            Sheet::default(),
            sheet("database query_count", &["a 1", &format!("b {calls}")]),
            sheet("list items", &["pools 2"]),
            Sheet::default(),
            sheet("command calls failed", &["get 7 0", &format!("set {calls} 1")]),
        ]
    }

    #[test]
    fn counters_become_rates_from_the_second_look_on() {
        let mut sheets = Sheets::default();
        let began = Instant::now();
        sheets.took(began, Page::Redis, answers(100));
        let texts = |sheets: &Sheets| {
            let rows = sheets.rows(Page::Redis).into_iter();
            rows.map(|row| row.into_iter().map(|cell| cell.text).collect::<Vec<_>>().join("|"))
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(&sheets), ["get||7|0|", "set||100|1|"]);
        assert_eq!(sheets.total_rate("query_count"), None);
        sheets.took(began + Duration::from_secs(2), Page::Redis, answers(300));
        assert_eq!(texts(&sheets), ["get|0|7|0|", "set|100|300|1|"]);
        assert_eq!(sheets.total_rate("query_count"), Some(100.0));
        // Pondage was started anew.
        sheets.took(began + Duration::from_secs(3), Page::Redis, answers(5));
        assert_eq!(texts(&sheets), ["get|0|7|0|", "set||5|1|"]);
        assert_eq!(sheets.common(Page::LISTS).and_then(|lists| lists.value("pools")), Some("2"));
        // Another page has no rows before it was asked for.
        assert_eq!(sheets.rows(Page::Hosts), Vec::<Vec<Cell>>::new());
    }

    #[test]
    fn pools_have_what_both_shows_say() {
        let mut answers = vec![
            Sheet::default(),
            Sheet::default(),
            Sheet::default(),
            sheet("database user cl_active", &["a u 3", "b u 4"]),
            sheet("database user xact_count query_p50", &["a u 9 1500"]),
        ];
        join_pools(&mut answers);
        let pools =
            sheet("database user cl_active xact_count query_p50", &["a u 3 9 1500", "b u 4  "]);
        assert_eq!(answers[4], pools);
    }

    #[test]
    fn numbers_are_told_with_their_units() {
        let told = |shape, value| cell(shape, value).text;
        assert_eq!(told(Shape::Count, "12345"), "12.3k");
        assert_eq!(told(Shape::Count, "0.5"), "0.5");
        assert_eq!(told(Shape::Bytes, "3145728"), "3.0 MiB");
        assert_eq!(told(Shape::Micros, "1500"), "1.5 ms");
        assert_eq!(told(Shape::Micros, ""), "");
        assert_eq!(told(Shape::Percent, "99.95"), "100.0 %");
        assert_eq!(told(Shape::Wide, "select  1\n from t"), "select 1 from t");
    }
}
