//! One connection to the catalogues of a database, logged in as a pool's servers are.
//!
//! Names must mean here what they mean in the pool's sessions, so the user, the credential and
//! connect_query are the pool's, and the search_path stays as it comes. All else that a user could
//! have changed is out of reach: see `catalogue.rs`.

use backend::login::{Credential, ServerError};
use backend::replication::catalogue::moment;
use wire::pg::backend::tag;
use wire::pg::frontend;

use super::{catalogue, facts, mirrored, named, routines, rows};
use crate::config::PoolConfig;
use crate::control::dial::Dialer;
use crate::control::messages::{OpenError, OpenKind};
use crate::control::open::Session;

/// Most bytes of all rows of one round trip.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// The oldest major version whose catalogues are understood.
const SERVER_VERSION_MIN: u32 = 10;

/// For messages: what the connection calls itself.
const APPLICATION_NAME: &str = "pondage";

/// What the pool's sessions begin with, as far as it matters to who shares a transaction.
const SETTINGS: &str = r"
SELECT pg_catalog.current_setting('default_transaction_isolation'),
  pg_catalog.current_setting('default_transaction_read_only'),
  pg_catalog.current_setting('default_transaction_deferrable'),
  pg_catalog.current_setting('standard_conforming_strings')";

/// Processes that wait for a heavyweight lock, with the first that blocks each.
/// Source: PostgreSQL docs, "Session Information Functions" and "pg_stat_activity".
const BLOCKED: (&str, &str) = (
    "blocked",
    r"
SELECT a.pid, (pg_catalog.pg_blocking_pids(a.pid))[1]
FROM pg_catalog.pg_stat_activity a
WHERE a.wait_event_type OPERATOR(pg_catalog.=) 'Lock'::pg_catalog.text
  AND a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
LIMIT 256::pg_catalog.int4",
);

/// By its older name, which every version knows.
const SNAPSHOT: (&str, &str) = (
    "snapshot",
    r"
SELECT pg_catalog.txid_current_snapshot()::pg_catalog.text,
  pg_catalog.encode(
    pg_catalog.timestamptz_send(pg_catalog.pg_postmaster_start_time()), 'hex'::pg_catalog.text)",
);

/// How the connection itself works: it must wait for nobody for long (a definition under change
/// is locked), write nothing and compile nothing. Not every version knows every name.
const OWN_SETTINGS: &str = r"
SELECT pg_catalog.set_config(s.name, v.value, false)
FROM (VALUES
  ('client_encoding'::pg_catalog.text, 'UTF8'::pg_catalog.text),
  ('statement_timeout', '5s'),
  ('lock_timeout', '1s'),
  ('default_transaction_isolation', 'read committed'),
  ('default_transaction_read_only', 'on'),
  ('quote_all_identifiers', 'off'),
  ('standard_conforming_strings', 'on'),
  ('plan_cache_mode', 'force_generic_plan'),
  ('jit', 'off')
) v(name, value)
JOIN pg_catalog.pg_settings s ON s.name OPERATOR(pg_catalog.=) v.name";

/// What sessions of the pool begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// `read committed`, usually.
    pub isolation: String,
    pub read_only: bool,
    pub deferrable: bool,
    /// A backslash in an ordinary string is itself.
    pub conforming_strings: bool,
}

/// A row in text format, taken from the left.
#[derive(Debug)]
pub struct Row(std::vec::IntoIter<Option<String>>);

impl Row {
    /// The next value; NULL, and one that is not there, is none.
    pub fn take(&mut self) -> Option<String> {
        self.0.next().flatten()
    }

    pub fn text(&mut self) -> String {
        self.take().unwrap_or_default()
    }

    pub fn bool(&mut self) -> bool {
        self.take().is_some_and(|value| value == "t")
    }

    /// 0 for what is none.
    pub fn number(&mut self) -> u32 {
        self.take().and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// The value of a `"char"`.
    pub fn byte(&mut self) -> u8 {
        self.take().and_then(|value| value.bytes().next()).unwrap_or(0)
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The server refused; the connection can be asked again.
    Refused(ServerError),
    /// The connection is of no more use.
    Lost(String),
}

/// What PostgreSQL says of a statement that it has prepared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described {
    /// Types of its parameters.
    pub parameters: Vec<u32>,
    /// Types of the columns of its result.
    pub columns: Vec<u32>,
    /// The body of its RowDescription.
    pub row_description: Vec<u8>,
}

/// Why there is no connection.
pub struct Unreached {
    /// One line: what, where, why.
    pub why: String,
    /// A new try would end the same way.
    pub permanent: bool,
}

impl Unreached {
    fn for_good(why: String) -> Unreached {
        Unreached { why, permanent: true }
    }
}

pub struct Connection {
    session: Session,
    pub settings: Settings,
    described: Described,
}

impl Connection {
    /// Logs in and prepares what will be asked.
    ///
    /// # Errors
    /// The server can't be reached, or is not one that can be asked.
    pub async fn open(
        dialer: &Dialer,
        config: &PoolConfig,
        proven: Option<Credential>,
    ) -> Result<Connection, Unreached> {
        let mut config = config.clone();
        config.upstream.application_name = Some(APPLICATION_NAME.to_owned());
        let opened = dialer.start(&config, proven, &OpenKind::Pooled).await;
        let session = opened.map_err(|error| {
            let OpenError { message: why, permanent, .. } = error;
            Unreached { why, permanent }
        })?;
        let mut connection =
            Connection { session, settings: Settings::default(), described: Described::default() };
        connection.check_version().map_err(Unreached::for_good)?;
        connection.set_up().await.map_err(|failure| {
            let at = &connection.session.at;
            match failure {
                Failure::Refused(error) => {
                    let why = format!("the catalogues at {at} are not readable: {error}");
                    Unreached::for_good(why)
                }
                Failure::Lost(why) => Unreached {
                    why: format!("the connection to the catalogues at {at}: {why}"),
                    permanent: false,
                },
            }
        })?;
        Ok(connection)
    }

    fn check_version(&self) -> Result<(), String> {
        let reported = &self.session.logged_in.parameters;
        let version = reported.iter().find(|(name, _)| name == "server_version");
        let version = version.map_or("", |(_, version)| version.as_str());
        let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
        match version[..end].parse::<u32>() {
            Ok(major) if major >= SERVER_VERSION_MIN => Ok(()),
            _ => Err(format!(
                "the server at {} is \"{version}\", not PostgreSQL {SERVER_VERSION_MIN} or later",
                self.session.at
            )),
        }
    }

    async fn set_up(&mut self) -> Result<(), Failure> {
        let mut out = Vec::new();
        // What the pool's sessions begin with is read before it is changed here.
        for text in [SETTINGS, OWN_SETTINGS] {
            frontend::put_parse(&mut out, b"", text.as_bytes(), b"");
            frontend::put_bind(&mut out, b"", b"", &[]);
            frontend::put_execute(&mut out, b"", 0);
        }
        let statements = catalogue::STATEMENTS.into_iter().chain(facts::STATEMENTS);
        let others = routines::STATEMENTS.into_iter().chain(mirrored::tables::STATEMENTS);
        let single = [BLOCKED, SNAPSHOT, rows::STATEMENT, named::STATEMENT];
        for (name, text) in statements.chain(others).chain(single) {
            frontend::put_parse(&mut out, name.as_bytes(), text.as_bytes(), b"");
        }
        frontend::put_sync(&mut out);
        let answers = self.exchange(&out).await?;
        if let Some(row) = answers.into_iter().flatten().next().as_mut() {
            self.settings = Settings {
                isolation: row.text(),
                read_only: row.text() == "on",
                deferrable: row.text() == "on",
                conforming_strings: row.text() == "on",
            };
        }
        Ok(())
    }

    /// Runs prepared statements, by name, with their values; gives the rows of each.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn ask(&mut self, asks: &[(&str, &[String])]) -> Result<Vec<Vec<Row>>, Failure> {
        let mut out = Vec::new();
        for (name, values) in asks {
            let values: Vec<_> = values.iter().map(|value| Some(value.as_bytes())).collect();
            frontend::put_bind(&mut out, b"", name.as_bytes(), &values);
            frontend::put_execute(&mut out, b"", 0);
        }
        frontend::put_sync(&mut out);
        self.exchange(&out).await
    }

    async fn exchange(&mut self, out: &[u8]) -> Result<Vec<Vec<Row>>, Failure> {
        let lost = |error: std::io::Error| Failure::Lost(error.to_string());
        self.session.send(out).await.map_err(lost)?;
        let mut answers = Vec::new();
        let mut rows = Vec::new();
        let mut bytes = 0;
        let mut refused = None;
        loop {
            let (kind, body) = match self.session.message().await {
                Ok(message) => message,
                Err(failure) => {
                    // The server's own last words say more than that it hung up.
                    let last = refused.map(|error: ServerError| error.to_string());
                    return Err(Failure::Lost(last.unwrap_or_else(|| failure.to_string())));
                }
            };
            bytes += body.len();
            if bytes > ANSWER_BYTES_MAX {
                return Err(Failure::Lost(format!("more than {ANSWER_BYTES_MAX} bytes of answer")));
            }
            let malformed = |error: wire::pg::WireError| Failure::Lost(error.to_string());
            match kind {
                tag::DATA_ROW => {
                    let values = wire::pg::backend::data_row(body).map_err(malformed)?;
                    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                    let values: Vec<_> = values.into_iter().map(|v| v.map(text)).collect();
                    rows.push(Row(values.into_iter()));
                }
                tag::PARAMETER_DESCRIPTION => {
                    let types = wire::pg::backend::parameter_types(body).map_err(malformed)?;
                    self.described.parameters = types;
                }
                tag::ROW_DESCRIPTION => {
                    let types = wire::pg::backend::column_types(body).map_err(malformed)?;
                    self.described.columns = types;
                    self.described.row_description = body.to_vec();
                }
                tag::COMMAND_COMPLETE => answers.push(std::mem::take(&mut rows)),
                tag::ERROR => refused = Some(ServerError::read(body).map_err(malformed)?),
                tag::READY_FOR_QUERY => {
                    return match refused {
                        Some(error) => Err(Failure::Refused(error)),
                        None => Ok(answers),
                    };
                }
                tag::COPY_IN | tag::COPY_OUT | tag::COPY_BOTH => {
                    return Err(Failure::Lost("a COPY was started".to_owned()));
                }
                _ => {}
            }
        }
    }

    /// Who waits for a lock, and one of those it waits for. Whose sessions this user may not see is
    /// not told.
    pub async fn blocked(&mut self) -> Result<Vec<(u32, u32)>, Failure> {
        let rows = self.ask(&[(BLOCKED.0, &[])]).await?.into_iter().flatten();
        Ok(rows.map(|mut row| (row.number(), row.number())).collect())
    }

    /// Which transactions have ended, and when the server was started that says so.
    pub async fn snapshot(&mut self) -> Result<(String, i64), Failure> {
        let rows = self.ask(&[(SNAPSHOT.0, &[])]).await?.into_iter().flatten();
        let said = rows.map(|mut row| (row.text(), moment(&row.text()).unwrap_or_default())).next();
        Ok(said.unwrap_or_default())
    }

    /// The types of a text's parameters and of the columns of its result. `types` are the
    /// parameters' as far as they are given; 0 for those that the server shall find out.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn describe(&mut self, text: &[u8], types: &[u32]) -> Result<Described, Failure> {
        let mut given = u16::try_from(types.len()).unwrap_or(u16::MAX).to_be_bytes().to_vec();
        given.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
        let mut out = Vec::new();
        frontend::put_parse(&mut out, b"", text, &given);
        frontend::put_describe(&mut out, frontend::Target::Statement, b"");
        frontend::put_sync(&mut out);
        self.described = Described::default();
        self.exchange(&out).await?;
        Ok(std::mem::take(&mut self.described))
    }

    /// Says good-bye.
    pub async fn close(mut self) {
        let mut out = Vec::new();
        frontend::put_terminate(&mut out);
        // Nothing is lost when it does not arrive.
        let _ = self.session.send(&out).await;
    }
}
