//! The console, asked again and again over one connection, which is made anew when it is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backend::login::ServerError;
use tokio::runtime::Runtime;
use wire::pg::backend::{self as reply, tag};
use wire::pg::frontend;

use super::page::Page;
use super::sheet::{Sheet, Sheets};
use super::Ended;
use crate::cli::exit;
use crate::config::{Config, PoolConfig, CONSOLE_DATABASES};
use crate::control::dial::Dialer;
use crate::control::messages::{OpenError, OpenKind};
use crate::control::open::{Session, UNREACHED};

/// An answer of the console takes no longer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Most rows of an answer that are kept.
const ROWS_MAX: usize = 10_000;

pub struct Console {
    runtime: Runtime,
    dialer: Dialer,
    pool: Arc<PoolConfig>,
    session: Option<Session>,
}

impl Console {
    pub fn new(config: &Config, user: &str) -> Result<Console, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start: {error}"))?;
        let pool = config
            .pool(CONSOLE_DATABASES[0], user)
            .map_err(|_| "the configuration has no server".to_owned())?;
        Ok(Console { runtime, dialer: Dialer::default(), pool, session: None })
    }

    /// Asks for what every page has, and for what this one has.
    ///
    /// # Errors
    /// Why there is no answer; what was there stays.
    pub(super) fn refresh(&mut self, sheets: &mut Sheets, page: Page) -> Result<(), Ended> {
        let Console { runtime, dialer, pool, session } = self;
        runtime.block_on(async {
            let mut open = match session.take() {
                Some(open) => open,
                None => connect(dialer, pool).await?,
            };
            let mut answers = Vec::new();
            for command in Page::COMMON.iter().copied().chain([page.command()]) {
                let answer = tokio::time::timeout(ANSWER_MAX, ask(&mut open, command)).await;
                let late = |_| Ended::failed(format!("no answer to {command} in {ANSWER_MAX:?}"));
                answers.push(answer.map_err(late)?.map_err(Ended::failed)?);
            }
            sheets.took(Instant::now(), page, answers);
            *session = Some(open);
            Ok(())
        })
    }
}

async fn connect(dialer: &Dialer, pool: &PoolConfig) -> Result<Session, Ended> {
    let name = ("application_name".to_owned(), "pondage top".to_owned());
    let kind = OpenKind::Replication { parameters: vec![name] };
    dialer.start(pool, None, &kind).await.map_err(|OpenError { code, message, hint, .. }| Ended {
        code: match code.as_str() {
            UNREACHED => exit::UNAVAILABLE,
            code if code.starts_with("28") => exit::NO_PERMISSION,
            _ => exit::FAILED,
        },
        why: match hint {
            Some(hint) => format!("{message}\n   = help: {hint}"),
            None => message,
        },
    })
}

/// The answer of one SHOW.
async fn ask(session: &mut Session, command: &str) -> Result<Sheet, String> {
    let mut out = Vec::new();
    frontend::put_query(&mut out, command);
    session.send(&out).await.map_err(|error| error.to_string())?;
    let mut sheet = Sheet::default();
    let mut refused = None;
    loop {
        let (kind, body) = session.message().await.map_err(|failure| failure.to_string())?;
        let malformed = |error: wire::pg::WireError| error.to_string();
        match kind {
            tag::ROW_DESCRIPTION => sheet.columns = reply::column_names(body).map_err(malformed)?,
            tag::DATA_ROW if sheet.rows.len() < ROWS_MAX => {
                let values = reply::data_row(body).map_err(malformed)?;
                let text = |value: Option<&[u8]>| {
                    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
                };
                sheet.rows.push(values.into_iter().map(text).collect());
            }
            tag::ERROR => refused = Some(ServerError::read(body).map_err(malformed)?),
            tag::READY_FOR_QUERY => {
                return match refused {
                    Some(error) => Err(format!("{command}: {error}")),
                    None => Ok(sheet),
                }
            }
            _ => {}
        }
    }
}
