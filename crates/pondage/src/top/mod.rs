//! `pondage top`: what a running Pondage does, live in a terminal, by its console.
//!
//! ```text
//! keys -> Screen (page, sort, filter) <- Sheets (what the console answered, and before)
//!                |-> drawn on the terminal, once a second
//! ```
//! It knows no more than the console tells, so it works from another machine as well, and every
//! number is the console's.

mod console;
mod draw;
mod page;
pub mod place;
mod screen;
mod sheet;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::cli::exit;
use crate::config::Config;
use console::Console;
use page::Page;
use screen::{Screen, Todo};
use sheet::Sheets;

/// How it is to be shown.
#[derive(Debug)]
pub struct Options {
    /// Of Pondage itself: its console is the database that is logged in to.
    pub config: Box<Config>,
    pub user: String,
    /// Between two looks.
    pub interval: Duration,
    /// The first page, by the word of its key.
    pub page: Option<String>,
    /// Prints the page once, as text, and ends.
    pub once: bool,
}

/// Shows until `q`, and gives the exit code.
pub fn run(options: &Options) -> ExitCode {
    match show(options) {
        Ok(()) => ExitCode::from(exit::FINE),
        Err(Ended { code, why }) => {
            eprintln!("error: {why}");
            ExitCode::from(code)
        }
    }
}

/// Why it could not go on.
struct Ended {
    code: u8,
    why: String,
}

impl Ended {
    fn failed(why: impl Into<String>) -> Ended {
        Ended { code: exit::FAILED, why: why.into() }
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::failed(format!("the terminal: {error}"))
    }
}

fn show(options: &Options) -> Result<(), Ended> {
    let page = match &options.page {
        None => Page::Pools,
        Some(word) => Page::named(word).ok_or_else(|| {
            let words: Vec<&str> = Page::ALL.iter().map(|page| page.title()).collect();
            let why = format!("there is no page \"{word}\"; there are {}", words.join(", "));
            Ended { code: exit::USAGE, why: why.to_lowercase() }
        })?,
    };
    let mut console = Console::new(&options.config, &options.user).map_err(Ended::failed)?;
    let mut sheets = Sheets::default();
    let mut screen = Screen::new(page);
    // Wrong addresses and passwords are told before the terminal is changed.
    console.refresh(&mut sheets, screen.page)?;
    if options.once {
        // Rates need two looks.
        std::thread::sleep(options.interval);
        console.refresh(&mut sheets, screen.page)?;
        io::stdout().write_all(draw::text(&screen, &sheets).as_bytes())?;
        return Ok(());
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Ended {
            code: exit::USAGE,
            why: "this is no terminal: --once prints a page as text".to_owned(),
        });
    }
    let mut terminal = ratatui::try_init()?;
    let shown = live(&mut terminal, &mut console, &mut sheets, &mut screen, options.interval);
    ratatui::restore();
    shown
}

fn live(
    terminal: &mut ratatui::DefaultTerminal,
    console: &mut Console,
    sheets: &mut Sheets,
    screen: &mut Screen,
    interval: Duration,
) -> Result<(), Ended> {
    let mut next = Instant::now() + interval;
    loop {
        terminal.draw(|frame| draw::frame(frame, screen, sheets))?;
        let pause = next.saturating_duration_since(Instant::now());
        let todo = match event::poll(pause)? {
            false => Todo::Look,
            true => match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => screen.press(key, sheets),
                _ => Todo::Draw,
            },
        };
        match todo {
            Todo::Quit => return Ok(()),
            Todo::Draw => {}
            Todo::Look => {
                next = Instant::now() + interval;
                if !screen.is_paused {
                    // What is shown stays, with the reason why it is old.
                    sheets.complaint = console.refresh(sheets, screen.page).err().map(|it| it.why);
                }
            }
        }
    }
}
