//! What is shown, and what keys change of it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::page::Page;
use super::sheet::{Cell, Sheets};

/// A filter may be so long.
const FILTER_CHARS_MAX: usize = 100;

/// Lines of a leap.
const LEAP: usize = 10;

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Todo {
    Quit,
    Draw,
    /// Asks the console now.
    Look,
}

pub struct Screen {
    pub page: Page,
    /// The column that it is sorted by.
    pub sorted: usize,
    pub is_reversed: bool,
    /// Only rows with this in them, whatever the case.
    pub filter: String,
    /// Letters go to the filter.
    pub is_typing: bool,
    pub is_paused: bool,
    pub shows_help: bool,
    /// Rows above what is seen.
    pub scrolled: usize,
}

impl Screen {
    pub fn new(page: Page) -> Screen {
        Screen {
            page,
            sorted: page.first_sorted(),
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            shows_help: false,
            scrolled: 0,
        }
    }

    pub fn press(&mut self, key: KeyEvent, sheets: &Sheets) -> Todo {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Todo::Quit } else { Todo::Draw };
        }
        if self.is_typing {
            self.typed(key.code);
            return Todo::Draw;
        }
        if self.shows_help {
            self.shows_help = false;
            return Todo::Draw;
        }
        let places = Page::ALL.len();
        let at = Page::ALL.iter().position(|page| *page == self.page).unwrap_or_default();
        match key.code {
            KeyCode::Char('q') => return Todo::Quit,
            KeyCode::Char('?' | 'h') => self.shows_help = true,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('<' | ',') => self.sort_by(self.sorted.checked_sub(1)),
            KeyCode::Char('>' | '.' | 's') => self.sort_by(Some(self.sorted + 1)),
            KeyCode::Up | KeyCode::Char('k') => {
                self.scroll_to(self.scrolled.checked_sub(1), sheets)
            }
            KeyCode::Down | KeyCode::Char('j') => self.scroll_to(Some(self.scrolled + 1), sheets),
            KeyCode::PageUp => self.scroll_to(self.scrolled.checked_sub(LEAP), sheets),
            KeyCode::PageDown => self.scroll_to(Some(self.scrolled + LEAP), sheets),
            KeyCode::Home => self.scrolled = 0,
            KeyCode::End => self.scroll_to(Some(usize::MAX), sheets),
            KeyCode::Tab | KeyCode::Right => return self.turn_to(Page::ALL[(at + 1) % places]),
            KeyCode::BackTab | KeyCode::Left => {
                return self.turn_to(Page::ALL[(at + places - 1) % places]);
            }
            KeyCode::Char(digit) => {
                let page = digit.to_digit(10).and_then(|digit| Page::of_digit(digit as usize));
                return page.map_or(Todo::Draw, |page| self.turn_to(page));
            }
            _ => {}
        }
        Todo::Draw
    }

    fn typed(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if self.filter.chars().count() < FILTER_CHARS_MAX => {
                self.filter.push(letter);
            }
            _ => {}
        }
        self.scrolled = 0;
    }

    /// The filter stays: the same database or user is looked for on each page.
    fn turn_to(&mut self, page: Page) -> Todo {
        let Screen { filter, is_paused, .. } = std::mem::replace(self, Screen::new(page));
        (self.filter, self.is_paused) = (filter, is_paused);
        Todo::Look
    }

    fn sort_by(&mut self, column: Option<usize>) {
        let last = self.page.shown().len() - 1;
        self.sorted = column.map_or(last, |column| if column > last { 0 } else { column });
        self.scrolled = 0;
    }

    fn scroll_to(&mut self, row: Option<usize>, sheets: &Sheets) {
        let last = self.rows(sheets).len().saturating_sub(1);
        self.scrolled = row.unwrap_or(0).min(last);
    }

    /// The rows that are wanted, in the order that is wanted: the largest numbers first, texts by
    /// the alphabet.
    pub fn rows(&self, sheets: &Sheets) -> Vec<Vec<Cell>> {
        let wanted = self.filter.to_lowercase();
        let has = |row: &Vec<Cell>| {
            wanted.is_empty() || row.iter().any(|cell| cell.text.to_lowercase().contains(&wanted))
        };
        let mut rows: Vec<Vec<Cell>> = sheets.rows(self.page).into_iter().filter(has).collect();
        rows.sort_by(|one, other| {
            let order = match (one.get(self.sorted), other.get(self.sorted)) {
                (Some(one), Some(other)) => match (one.number, other.number) {
                    (Some(one), Some(other)) => other.total_cmp(&one),
                    _ => one.text.cmp(&other.text),
                },
                _ => std::cmp::Ordering::Equal,
            };
            if self.is_reversed {
                order.reverse()
            } else {
                order
            }
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::sheet::Sheet;
    use super::*;

    fn sheets(page: Page, columns: &str, rows: &[&str]) -> Sheets {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let own =
            Sheet { columns: words(columns), rows: rows.iter().map(|it| words(it)).collect() };
        let mut sheets = Sheets::default();
        let mut answers = vec![Sheet::default(); Page::COMMON.len()];
        answers.push(own);
        sheets.took(Instant::now(), page, answers);
        sheets
    }

    fn press(screen: &mut Screen, sheets: &Sheets, codes: &[KeyCode]) -> Todo {
        let mut last = Todo::Draw;
        for code in codes {
            last = screen.press(KeyEvent::new(*code, KeyModifiers::NONE), sheets);
        }
        last
    }

    fn firsts(screen: &Screen, sheets: &Sheets) -> Vec<String> {
        screen.rows(sheets).into_iter().map(|row| row[0].text.clone()).collect()
    }

    #[test]
    fn keys_sort_turn_and_filter() {
        use KeyCode::{BackTab, Backspace, Char, Enter, Esc, Tab};
        let rows = ["get 7 0", "set 9 1", "del 8 2"];
        let sheets = sheets(Page::Redis, "command calls failed", &rows);
        let mut screen = Screen::new(Page::Redis);
        // By rates, of which there are none yet: as they came.
        assert_eq!(firsts(&screen, &sheets), ["get", "set", "del"]);
        press(&mut screen, &sheets, &[Char('>')]);
        assert_eq!(firsts(&screen, &sheets), ["set", "del", "get"]);
        press(&mut screen, &sheets, &[Char('r')]);
        assert_eq!(firsts(&screen, &sheets), ["get", "del", "set"]);
        press(&mut screen, &sheets, &[Char('r'), Char('<'), Char('<')]);
        assert_eq!(firsts(&screen, &sheets), ["del", "get", "set"]);
        press(&mut screen, &sheets, &[Char('<')]);
        assert_eq!(screen.sorted, Page::Redis.shown().len() - 1);
        press(&mut screen, &sheets, &[Char('>')]);
        assert_eq!(screen.sorted, 0);

        // `q` and digits are letters while one types.
        press(&mut screen, &sheets, &[Char('/'), Char('E'), Char('q'), Backspace, Enter]);
        assert_eq!(firsts(&screen, &sheets), ["del", "get", "set"]);
        press(&mut screen, &sheets, &[Char('/'), Char('T'), Enter]);
        assert_eq!(firsts(&screen, &sheets), ["get", "set"]);
        press(&mut screen, &sheets, &[Esc]);
        assert_eq!(firsts(&screen, &sheets).len(), 3);

        assert_eq!(press(&mut screen, &sheets, &[Tab]), Todo::Look);
        assert_eq!(screen.page, Page::Procedures);
        assert_eq!(press(&mut screen, &sheets, &[BackTab, Char('2')]), Todo::Look);
        assert_eq!(screen.page, Page::Queries);
        assert_eq!(press(&mut screen, &sheets, &[Char('0')]), Todo::Draw);
        assert_eq!(press(&mut screen, &sheets, &[Char('?'), Char('q')]), Todo::Draw);
        assert_eq!(press(&mut screen, &sheets, &[Char('q')]), Todo::Quit);
    }

    #[test]
    fn nobody_scrolls_beyond_the_end() {
        use KeyCode::{Down, End, Home, PageDown, PageUp, Up};
        let sheets = sheets(Page::Redis, "command calls", &["a 1", "b 2", "c 3"]);
        let mut screen = Screen::new(Page::Redis);
        press(&mut screen, &sheets, &[Up, PageUp]);
        assert_eq!(screen.scrolled, 0);
        press(&mut screen, &sheets, &[Down]);
        assert_eq!(screen.scrolled, 1);
        press(&mut screen, &sheets, &[PageDown, Down]);
        assert_eq!(screen.scrolled, 2);
        press(&mut screen, &sheets, &[Home, End]);
        assert_eq!(screen.scrolled, 2);
    }
}
