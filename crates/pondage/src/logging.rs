//! The log: one line for each event, on standard error and, if wished, in a file.
//!
//! ```text
//! text    2026-11-20T14:00:00.123Z  WARN cannot connect ...  event=server_open_failed db=app
//! logfmt  ts=2026-11-20T14:00:00.123Z level=warn event=server_open_failed db=app msg="..."
//! json    {"ts":"2026-11-20T14:00:00.123Z","level":"warn","event":"server_open_failed",...}
//! ```
//! The fourth, PgBouncer's, is in [`pgbouncer`].
//!
//! Times are UTC. Keys that tools may rely on: event, client_id, server_id, db, user, app,
//! sqlstate, duration_ms.
//!
//! A worker never waits for whoever reads the log: lines go through a queue to a thread that
//! writes them. A line that finds it full is counted and told later, as `lost`. A place in the
//! code that says more than [`LINES_PER_SECOND_MAX`] is silenced for the rest of the second; its
//! next line says how often, as `suppressed`.
//!
//! RELOAD and HUP open the file anew, so that it may be renamed before.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, IsTerminal, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{reload, Layer, Registry};

use crate::config::{LogFormat, Telemetry};

mod pgbouncer;
mod recent;

pub use recent::Happening;
use recent::Recent;

/// Lines that wait to be written.
const QUEUE_LINES_MAX: usize = 8192;

/// Lines of one place in the code in one second.
const LINES_PER_SECOND_MAX: u64 = 100;

/// Bytes of one value; what is longer is cut.
const VALUE_BYTES_MAX: usize = 4096;

/// The key of PgBouncer's own words, where an event has others.
const THEIRS: &str = "theirs";

/// What goes to the thread that writes.
enum Entry {
    Line(String),
    /// Lines go there, too, from now on.
    File(Option<File>),
    /// The global log keeps a sender for ever.
    End,
}

/// The log of the process, to be changed while it runs.
struct Controls {
    queue: SyncSender<Entry>,
    level: reload::Handle<LevelFilter, Registry>,
}

static CONTROLS: OnceLock<Controls> = OnceLock::new();

/// What has been logged lately.
static RECENT: LazyLock<Recent> = LazyLock::new(Recent::default);

/// Writes what is queued and ends when dropped.
pub struct Logging {
    queue: Option<SyncSender<Entry>>,
    writer: Option<JoinHandle<()>>,
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Text,
    Logfmt,
    Json,
    Pgbouncer,
}

impl Style {
    fn of(format: LogFormat) -> Style {
        match format {
            LogFormat::Text => Style::Text,
            LogFormat::Logfmt => Style::Logfmt,
            LogFormat::Json => Style::Json,
            LogFormat::Pgbouncer => Style::Pgbouncer,
            LogFormat::Auto if io::stderr().is_terminal() => Style::Text,
            LogFormat::Auto => Style::Logfmt,
        }
    }
}

/// Starts the log of this process; a second start changes nothing.
///
/// # Errors
/// When its thread can't be started, or its file can't be opened.
pub fn start(telemetry: &Telemetry) -> io::Result<Logging> {
    let file = open(telemetry)?;
    let (queue, entries) = sync_channel(QUEUE_LINES_MAX);
    let named = std::thread::Builder::new().name("log".to_owned());
    let writer = named.spawn(|| write(entries, file))?;
    let style = Style::of(telemetry.log_format);
    let lost = Arc::new(AtomicU64::new(0));
    let layer = LogLayer { queue: queue.clone(), style, lost, said: Mutex::default() };
    let (filter, level) = reload::Layer::new(level_of(telemetry));
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    // In tests another log may be in place.
    if tracing::subscriber::set_global_default(subscriber).is_ok() {
        let _ = CONTROLS.set(Controls { queue: queue.clone(), level });
    }
    Ok(Logging { queue: Some(queue), writer: Some(writer), style })
}

/// Puts level and file into force, the file opened anew.
///
/// # Errors
/// The file can't be opened; lines go where they went.
pub fn configure(telemetry: &Telemetry) -> io::Result<()> {
    let Some(controls) = CONTROLS.get() else { return Ok(()) };
    let file = open(telemetry)?;
    // Both fail when the log is gone, which is the process's end.
    let _ = controls.level.reload(level_of(telemetry));
    let _ = controls.queue.send(Entry::File(file));
    Ok(())
}

/// What has been logged lately, the last one first.
pub fn recent() -> Vec<Happening> {
    RECENT.all()
}

fn level_of(telemetry: &Telemetry) -> LevelFilter {
    // The configuration lets nothing but a level through.
    telemetry.log_level.parse().unwrap_or(LevelFilter::INFO)
}

fn open(telemetry: &Telemetry) -> io::Result<Option<File>> {
    let Some(path) = &telemetry.log_file else { return Ok(None) };
    let file = File::options().append(true).create(true).open(path);
    file.map(Some).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot write the log to {}: {error}", path.display()))
    })
}

impl Logging {
    /// Writes a line whatever the level is: what whoever has started the process waits for.
    pub fn announce(&self, message: &str, fields: &[(&'static str, &str)]) {
        let mut line = Line::new(self.style, Level::INFO);
        for (key, value) in fields {
            line.put(key, value);
        }
        line.message = message.to_owned();
        if let Some(queue) = &self.queue {
            let _ = queue.send(Entry::Line(line.finish()));
        }
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            let _ = queue.send(Entry::End);
        }
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Writes what has gathered at once.
fn write(entries: Receiver<Entry>, mut file: Option<File>) {
    let mut lines = String::new();
    while let Ok(first) = entries.recv() {
        let mut next = Some(first);
        let mut other = None;
        while let Some(entry) = next {
            match entry {
                Entry::Line(line) => lines.push_str(&line),
                entry => {
                    other = Some(entry);
                    break;
                }
            }
            next = entries.try_recv().ok();
        }
        // Nobody is left to tell when these can't be written.
        let _ = io::stderr().write_all(lines.as_bytes());
        if let Some(file) = &mut file {
            let _ = file.write_all(lines.as_bytes());
        }
        lines.clear();
        match other {
            Some(Entry::File(new)) => file = new,
            Some(Entry::End) => return,
            Some(Entry::Line(_)) | None => {}
        }
    }
}

struct LogLayer {
    queue: SyncSender<Entry>,
    style: Style,
    /// Lines that found the queue full.
    lost: Arc<AtomicU64>,
    /// What each place in the code has said this second. Guards itself only; held for a look-up.
    said: Mutex<HashMap<Identifier, Said>>,
}

#[derive(Clone, Copy)]
struct Said {
    since: Instant,
    lines: u64,
}

impl LogLayer {
    /// Whether this place may speak, and how often it was silenced before.
    fn admit(&self, place: Identifier, now: Instant) -> Option<u64> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = said.entry(place).or_insert(Said { since: now, lines: 0 });
        let mut suppressed = 0;
        if now.duration_since(said.since) >= Duration::from_secs(1) {
            suppressed = said.lines.saturating_sub(LINES_PER_SECOND_MAX);
            *said = Said { since: now, lines: 0 };
        }
        said.lines += 1;
        (said.lines <= LINES_PER_SECOND_MAX).then_some(suppressed)
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(suppressed) = self.admit(event.metadata().callsite(), Instant::now()) else {
            return;
        };
        RECENT.note(event, suppressed, SystemTime::now());
        let mut line = Line::new(self.style, *event.metadata().level());
        event.record(&mut line);
        if suppressed > 0 {
            line.put("suppressed", &suppressed.to_string());
        }
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            line.put("lost", &lost.to_string());
        }
        if self.queue.try_send(Entry::Line(line.finish())).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

/// A line being written.
struct Line {
    style: Style,
    time: String,
    level: Level,
    message: String,
    /// `key=value` pairs, or JSON members with a comma before each.
    fields: String,
    /// The same for PgBouncer's lines, which pick what they tell.
    pairs: Vec<(&'static str, String)>,
}

impl Line {
    fn new(style: Style, level: Level) -> Line {
        let time = format!("{:.3}", jiff::Timestamp::now());
        Line {
            style,
            time,
            level,
            message: String::new(),
            fields: String::new(),
            pairs: Vec::new(),
        }
    }

    fn put(&mut self, key: &'static str, value: &str) {
        let value = cut(value);
        // What PgBouncer says of it is for its own lines.
        if key == THEIRS && self.style != Style::Pgbouncer {
            return;
        }
        match self.style {
            Style::Text | Style::Logfmt => {
                let _ = write!(self.fields, " {key}={}", Bare(value));
            }
            Style::Json => {
                let _ = write!(self.fields, ",\"{key}\":{}", Quoted(value));
            }
            Style::Pgbouncer => self.pairs.push((key, value.to_owned())),
        }
    }

    fn finish(self) -> String {
        let Line { style, time, level, message, fields, pairs } = self;
        let level_name = level.as_str().to_ascii_lowercase();
        let message = cut(&message);
        match (style, message.is_empty()) {
            (Style::Text, true) => format!("{time} {level:>5}{fields}\n"),
            (Style::Text, false) => format!("{time} {level:>5} {} {fields}\n", Shown(message)),
            (Style::Logfmt, true) => format!("ts={time} level={level_name}{fields}\n"),
            (Style::Logfmt, false) => {
                format!("ts={time} level={level_name}{fields} msg={}\n", Bare(message))
            }
            (Style::Json, _) => format!(
                "{{\"ts\":\"{time}\",\"level\":\"{level_name}\"{fields},\"msg\":{}}}\n",
                Quoted(message)
            ),
            (Style::Pgbouncer, _) => pgbouncer::line(level, message, &pairs),
        }
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.put(name, value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        self.record_str(field, &text);
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(VALUE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A message for people: it may have several lines, but can't steer their terminal.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                c if c.is_control() && c != '\n' => write!(f, "{}", c.escape_default())?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A value of logfmt: in quotes where it has to be.
struct Bare<'a>(&'a str);

impl fmt::Display for Bare<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain =
            |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '=' | '\\');
        match !self.0.is_empty() && self.0.chars().all(plain) {
            true => f.write_str(self.0),
            false => Quoted(self.0).fmt(f),
        }
    }
}

/// A JSON string; control characters can't break out of a line.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if c.is_control() => write!(f, "\\u{:04x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(style: Style, queue: usize) -> (LogLayer, Receiver<Entry>) {
        let (queue, lines) = sync_channel(queue);
        let (lost, said) = (Arc::default(), Mutex::default());
        (LogLayer { queue, style, lost, said }, lines)
    }

    fn text(entry: Entry) -> String {
        match entry {
            Entry::Line(line) => line,
            Entry::File(_) | Entry::End => panic!("no line"),
        }
    }

    fn logged(style: Style, say: impl FnOnce()) -> Vec<String> {
        let (layer, lines) = layer(style, QUEUE_LINES_MAX);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
        // The time is the one thing that differs.
        lines.try_iter().map(text).map(|line| line.replacen(char::is_numeric, "", 17)).collect()
    }

    /// The place in the code where `say` logs.
    fn place_of(say: impl FnOnce()) -> Identifier {
        struct Probe(SyncSender<Identifier>);
        impl<S: Subscriber> Layer<S> for Probe {
            fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
                let _ = self.0.send(event.metadata().callsite());
            }
        }
        let (probe, places) = sync_channel(1);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(Probe(probe)), say);
        places.recv().expect("an event")
    }

    fn say() {
        tracing::warn!(event = "x", db = "a b", client_id = 7u64, quiet = true, "said \"{}\"", 1);
    }

    #[test]
    fn the_three_styles_carry_the_same() {
        assert_eq!(
            logged(Style::Text, say),
            ["--T::.Z  WARN said \"1\"  event=x db=\"a b\" client_id=7 quiet=true\n"]
        );
        assert_eq!(
            logged(Style::Logfmt, say),
            ["ts=--T::.Z level=warn event=x db=\"a b\" client_id=7 quiet=true msg=\"said \\\"1\\\"\"\n"]
        );
        assert_eq!(
            logged(Style::Json, say),
            ["{\"ts\":\"--T::.Z\",\"level\":\"warn\",\"event\":\"x\",\"db\":\"a b\",\
              \"client_id\":\"7\",\"quiet\":\"true\",\"msg\":\"said \\\"1\\\"\"}\n"]
        );
    }

    #[test]
    fn a_value_cannot_break_out_of_its_line() {
        let lines = logged(Style::Logfmt, || tracing::info!(user = "a\nlevel=error\u{1b}[31m"));
        assert_eq!(lines, ["ts=--T::.Z level=info user=\"a\\nlevel=error\\u001b[31m\"\n"]);
    }

    #[test]
    fn a_place_that_says_too_much_is_silenced_and_says_so_later() {
        let lines = logged(Style::Logfmt, || {
            for _ in 0..LINES_PER_SECOND_MAX + 50 {
                tracing::info!(event = "loud");
            }
        });
        assert_eq!(lines.len() as u64, LINES_PER_SECOND_MAX);

        let (layer, _lines) = layer(Style::Text, 1);
        let place = place_of(|| tracing::info!(event = "probe"));
        let begin = Instant::now();
        let silent = (0..LINES_PER_SECOND_MAX + 7)
            .filter(|_| layer.admit(place.clone(), begin).is_none())
            .count();
        assert_eq!(silent, 7);
        assert_eq!(layer.admit(place, begin + Duration::from_secs(1)), Some(7));
    }

    #[test]
    fn a_line_that_finds_the_queue_full_is_counted() {
        let (layer, lines) = layer(Style::Logfmt, 1);
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(event = "first");
            tracing::info!(event = "second");
            assert!(text(lines.recv().expect("line")).contains("first"));
            tracing::info!(event = "third");
            assert!(text(lines.recv().expect("line")).contains("event=third lost=1"));
        });
    }
}
