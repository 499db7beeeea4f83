//! The table: drawn over itself on a terminal, once at the end elsewhere.

use std::time::Duration;

use super::{Figure, Row};

pub(super) struct Shown {
    terminal: bool,
    /// How many lines of it stand above the cursor.
    lines: usize,
}

impl Shown {
    pub(super) fn new(terminal: bool) -> Shown {
        Shown { terminal, lines: 0 }
    }

    pub(super) fn update(&mut self, rows: &[Row]) {
        if self.terminal {
            self.draw(rows);
        }
    }

    pub(super) fn end(&mut self, rows: &[Row]) {
        self.draw(rows);
    }

    fn draw(&mut self, rows: &[Row]) {
        let text = text(rows);
        let over = match self.lines {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\x1b[J"),
        };
        eprint!("{over}{text}");
        self.lines = text.lines().count();
    }
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<31} {:>9} {:>9} {:>7} {:>9} {:>9}\n",
        "", "direct/s", "Pondage/s", "ratio", "p99", "p99"
    );
    for row in rows {
        let (direct, through) = (row.direct.borrow(), row.through.borrow());
        let ratio = match direct.per_second() {
            none if none <= 0.0 => "-".to_owned(),
            direct => format!("{:.2}x", through.per_second() / direct),
        };
        text += &format!(
            "{:<31} {:>9} {:>9} {:>7} {:>9} {:>9}\n",
            row.round.what,
            rate(&direct),
            rate(&through),
            ratio,
            took(direct.latencies.p99()),
            took(through.latencies.p99()),
        );
        for (side, figure) in [("direct", &direct), ("Pondage", &through)] {
            if let Some(error) = &figure.error {
                // One line each, so that it is known how many there are.
                let error: String =
                    error.chars().map(|c| if c.is_control() { ' ' } else { c }).take(55).collect();
                text += &format!("  {side}, {} failed: {error}\n", figure.failed);
            }
        }
    }
    text
}

fn rate(figure: &Figure) -> String {
    match figure.per_second() {
        _ if figure.measured.is_zero() => "...".to_owned(),
        few if few < 100.0 => format!("{few:.2}"),
        many => format!("{many:.0}"),
    }
}

fn took(took: Option<Duration>) -> String {
    match took {
        Some(took) => format!("{:.1} ms", took.as_secs_f64() * 1e3),
        None => "-".to_owned(),
    }
}
