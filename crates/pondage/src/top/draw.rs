//! The screen as lines, on a terminal and as text.

use std::fmt::Write;

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell as Box, Clear, Paragraph, Row, Table};
use ratatui::Frame;

use super::page::{Page, Shape};
use super::screen::Screen;
use super::sheet::{counted, Cell, Sheets};

/// A text column takes no more than this, but for the one that takes what is left.
const TEXT_WIDTH_MAX: u16 = 28;

/// What the one that takes what is left has at least.
const WIDE_WIDTH_MIN: u16 = 20;

const KEYS: [(&str, &str); 9] = [
    ("1-9 Tab", "another page"),
    ("< > s", "sort by the column to the left or right"),
    ("r", "the other way round"),
    ("/", "only rows with what is typed; Enter ends it, Esc forgets it"),
    ("Up Down PgUp PgDn Home End", "through the rows"),
    ("Space", "stand still, and go on"),
    ("?", "this"),
    ("q", "end"),
    ("", "What the columns mean: docs/console.md, under the page's SHOW."),
];

pub fn frame(frame: &mut Frame<'_>, screen: &Screen, sheets: &Sheets) {
    let rows = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [head, tabs, body, foot] = rows.areas(frame.area());
    let summary: Vec<Line<'_>> = summary(sheets).into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(summary), head);
    frame.render_widget(Line::from(titles(screen)), tabs);
    table(frame, body, screen, sheets);
    frame.render_widget(Line::from(footer(screen, sheets)), foot);
    if screen.shows_help {
        help(frame, body);
    }
}

/// Who, how many, how fast: as many lines as there is room for in the head.
fn summary(sheets: &Sheets) -> [String; 2] {
    let version = sheets.common(Page::VERSION);
    let version = version.and_then(|sheet| sheet.rows.first()?.first()).map_or("", String::as_str);
    let per_second = |name: &str| match sheets.total_rate(name) {
        Some(rate) => counted(rate),
        None => "-".to_owned(),
    };
    let list = |name: &str| {
        let lists = sheets.common(Page::LISTS);
        lists.and_then(|lists| lists.value(name)).unwrap_or("-").to_owned()
    };
    let waiting = sheets.common(Page::POOL_ROWS).map_or(0.0, |pools| pools.sum("cl_waiting"));
    [
        format!(
            "{version}   {} statements/s   {} transactions/s   in {}B/s   out {}B/s",
            per_second("query_count"),
            per_second("xact_count"),
            per_second("bytes_received"),
            per_second("bytes_sent"),
        ),
        format!(
            "clients {}, {} of them wait   servers {} used, {} free   databases {}   users {}",
            list("used_clients"),
            counted(waiting),
            list("used_servers"),
            list("free_servers"),
            list("databases"),
            list("users"),
        ),
    ]
}

fn titles(screen: &Screen) -> Vec<Span<'static>> {
    let title = |(at, page): (usize, Page)| {
        let text = format!(" {} {} ", at + 1, page.title());
        if page == screen.page {
            text.reversed()
        } else {
            text.into()
        }
    };
    Page::ALL.into_iter().enumerate().map(title).collect()
}

fn footer(screen: &Screen, sheets: &Sheets) -> Vec<Span<'static>> {
    if let Some(why) = &sheets.complaint {
        return vec![format!("not up to date: {why}").bold().red()];
    }
    let mut parts = Vec::new();
    if screen.is_paused {
        parts.push("paused  ".bold());
    }
    if screen.is_typing || !screen.filter.is_empty() {
        let end = if screen.is_typing { "_" } else { "" };
        parts.push(format!("/{}{end}  ", screen.filter).bold());
    }
    parts.push("? keys   q end".dim());
    parts
}

fn help(frame: &mut Frame<'_>, body: Rect) {
    let line = |(keys, what): &(&str, &str)| Line::from(format!(" {keys:<28}{what} "));
    frame.render_widget(Clear, body);
    frame.render_widget(Paragraph::new(KEYS.iter().map(line).collect::<Vec<_>>()), body);
}

fn table(frame: &mut Frame<'_>, body: Rect, screen: &Screen, sheets: &Sheets) {
    let rows = screen.rows(sheets);
    if rows.is_empty() {
        let why = match screen.filter.is_empty() {
            true => screen.page.empty().to_owned(),
            false => format!("nothing has \"{}\" in it: Esc shows all", screen.filter),
        };
        frame.render_widget(Paragraph::new(vec![Line::default(), Line::from(why)]), body);
        return;
    }
    let widths = widths(screen.page, &rows);
    let columns = screen.page.shown();
    let heads = columns.iter().enumerate().map(|(at, column)| {
        let width = widths.get(at).copied().unwrap_or_default();
        let head = Box::from(aligned(column.head, column.shape, width));
        match at == screen.sorted {
            true => head.style(Style::new().add_modifier(Modifier::REVERSED)),
            false => head,
        }
    });
    let lines = rows.iter().skip(screen.scrolled).map(|row| {
        let boxes = row.iter().zip(columns).zip(&widths);
        Row::new(boxes.map(|((cell, column), width)| aligned(&cell.text, column.shape, *width)))
    });
    let constraints = columns.iter().zip(&widths).map(|(column, width)| match column.shape {
        Shape::Wide => Constraint::Min(*width),
        _ => Constraint::Length(*width),
    });
    let header = Row::new(heads).style(Style::new().bold());
    frame.render_widget(Table::new(lines, constraints).header(header).column_spacing(1), body);
}

/// What each column needs, as far as it may.
fn widths(page: Page, rows: &[Vec<Cell>]) -> Vec<u16> {
    let width = |(at, column): (usize, &super::page::Shown)| {
        let texts = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.as_str());
        let longest = texts.chain([column.head]).map(|text| text.chars().count()).max();
        let longest = u16::try_from(longest.unwrap_or_default()).unwrap_or(u16::MAX);
        match column.shape {
            Shape::Text => longest.min(TEXT_WIDTH_MAX),
            Shape::Wide => WIDE_WIDTH_MIN,
            _ => longest,
        }
    };
    page.shown().iter().enumerate().map(width).collect()
}

/// Numbers stand at the right.
fn aligned(text: &str, shape: Shape, width: u16) -> String {
    match shape {
        Shape::Text | Shape::Wide => text.to_owned(),
        _ => format!("{text:>width$}", width = usize::from(width)),
    }
}

/// The whole page, for a pipe.
pub fn text(screen: &Screen, sheets: &Sheets) -> String {
    let mut out = String::new();
    for line in summary(sheets) {
        let _ = writeln!(out, "{line}");
    }
    let rows = screen.rows(sheets);
    if rows.is_empty() {
        let _ = writeln!(out, "\n{}", screen.page.empty());
        return out;
    }
    let widths = widths(screen.page, &rows);
    let columns = screen.page.shown();
    let mut line = |texts: Vec<&str>| {
        let boxes = texts.into_iter().zip(columns).zip(&widths);
        let padded = boxes.map(|((text, column), width)| match column.shape {
            Shape::Wide => text.to_owned(),
            Shape::Text => format!("{text:width$}", width = usize::from(*width)),
            shape => aligned(text, shape, *width),
        });
        let _ = writeln!(out, "{}", padded.collect::<Vec<_>>().join(" ").trim_end());
    };
    line(Vec::new());
    line(columns.iter().map(|column| column.head).collect());
    for row in &rows {
        line(row.iter().map(|cell| cell.text.as_str()).collect());
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    use super::super::sheet::Sheet;
    use super::*;

    fn drawn(screen: &Screen, sheets: &Sheets) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 8)).expect("a terminal");
        terminal.draw(|to| frame(to, screen, sheets)).expect("drawn");
        terminal.backend().to_string()
    }

    fn sheet(columns: &str, rows: &[&str]) -> Sheet {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        Sheet { columns: words(columns), rows: rows.iter().map(|row| words(row)).collect() }
    }

    #[test]
    fn a_page_has_its_head_its_rows_and_why_it_is_old() {
        let mut sheets = Sheets::default();
        let answers = vec![
            sheet("version", &["Pondage"]),
            sheet("database query_count", &["app 10"]),
            sheet("list items", &["used_clients 5", "free_servers 2"]),
            sheet("database user cl_waiting", &["app web 3"]),
            sheet("command calls failed rejected", &["get 70000 0 0", "set 9 1 0"]),
        ];
        sheets.took(Instant::now(), Page::Redis, answers);
        let screen = Screen::new(Page::Redis);
        let seen = drawn(&screen, &sheets);
        for part in [
            "Pondage   - statements/s",
            "clients 5, 3 of them wait   servers - used, 2 free",
            " 7 Redis ",
            "COMMAND CALLS/s CALLS FAILED REJECTED",
            "get             70.0k      0        0",
            "? keys   q end",
        ] {
            assert!(seen.contains(part), "no {part:?} in\n{seen}");
        }
        sheets.complaint = Some("away".to_owned());
        assert!(drawn(&screen, &sheets).contains("not up to date: away"));
        let empty = Screen { filter: "none".to_owned(), ..Screen::new(Page::Redis) };
        assert!(drawn(&empty, &sheets).contains("nothing has \"none\" in it"));
        let text = text(&screen, &sheets);
        assert!(text.contains("\nget             70.0k      0        0\n"), "{text}");
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn_on() {
        let sheets = Sheets::default();
        let mut screen = Screen::new(Page::Pools);
        for (width, height) in [(1, 1), (3, 2), (20, 4), (300, 100)] {
            for help in [false, true] {
                screen.shows_help = help;
                let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("one");
                terminal.draw(|to| frame(to, &screen, &sheets)).expect("drawn");
            }
        }
    }
}
