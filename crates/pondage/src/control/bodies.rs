//! Bodies of functions are parsed in a process of their own: this program, started again with a
//! word that `--help` does not tell.
//!
//! ```text
//! Parser::parse --Definition, JSON--> stdin  parse-body
//!               <---tag, length, ---- stdout   limits itself, parses once, ends
//!                   bytes or words
//! ```
//!
//! PostgreSQL's PL/pgSQL parser runs out of its habitat there: without a catalogue, and with
//! assertions that end the process. A child that ends, hangs or answers too much costs its body
//! an analysis and nobody anything else.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{setrlimit, Resource, Rlimit};
use sql::procedure::{self, Definition};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The word on the command line.
pub const SUBCOMMAND: &str = "parse-body";

/// Children at one time; more bodies wait.
pub const CHILDREN_MAX: usize = 2;

/// How long a child may take.
pub const TIME_MAX: Duration = Duration::from_secs(2);

/// The answer of a child, in bytes; more is not read.
pub const ANSWER_MAX: usize = 4 << 20;

/// Address space of a child, in bytes: this program needs some 100 MB of it before it does
/// anything.
const MEMORY_MAX: u64 = 1 << 30;

/// The definition that a child reads, in bytes: a body that needs an escape for each of its bytes,
/// and the rest.
const QUESTION_MAX: u64 = 8 << 20;

/// Tag and length in front of every answer.
const HEADER: usize = 5;

const UNDERSTOOD: u8 = b'y';
const REFUSED: u8 = b'n';

/// Starts children.
#[derive(Debug)]
pub struct Parser {
    program: PathBuf,
    arguments: Vec<String>,
    children: Semaphore,
}

impl Default for Parser {
    /// The program that runs, also if its file has been replaced since.
    fn default() -> Parser {
        let same = PathBuf::from("/proc/self/exe");
        let program = if same.exists() { Ok(same) } else { std::env::current_exe() };
        Parser::of(program.unwrap_or_else(|_| PathBuf::from("pondage")), &[SUBCOMMAND])
    }
}

impl Parser {
    /// Of another program that answers like this one.
    pub fn of(program: impl Into<PathBuf>, arguments: &[&str]) -> Parser {
        Parser {
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            children: Semaphore::new(CHILDREN_MAX),
        }
    }

    /// What [`procedure::parse`] makes of this definition.
    ///
    /// # Errors
    ///
    /// Why there is nothing, in words for people.
    ///
    /// # Cancel safety
    ///
    /// The child is killed.
    pub async fn parse(&self, definition: &Definition) -> Result<Vec<u8>, String> {
        let question = serde_json::to_vec(definition).map_err(|error| error.to_string())?;
        let Ok(_place) = self.children.acquire().await else {
            return Err("no more bodies are parsed".to_owned());
        };
        let mut running = self.start().map_err(|e| format!("the parser did not start: {e}"))?;
        let pipes = (running.0.stdin.take(), running.0.stdout.take());
        let (Some(stdin), Some(stdout)) = pipes else { return Err(NOT_UNDERSTOOD.to_owned()) };
        let exchange = tokio::task::spawn_blocking(move || exchange(&question, stdin, stdout));
        match timeout(TIME_MAX, exchange).await {
            Err(_) => Err(format!("the parser took more than {} s", TIME_MAX.as_secs())),
            Ok(Ok(Ok(answer))) => opened(answer),
            Ok(_) => Err(NOT_UNDERSTOOD.to_owned()),
        }
    }

    fn start(&self) -> io::Result<Running> {
        let child = Command::new(&self.program)
            .args(&self.arguments)
            // It needs nothing of ours, passwords least of all.
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Running(child))
    }
}

/// What is known of a body whose parser ended without an answer.
pub const NOT_UNDERSTOOD: &str = "the parser does not understand this body";

/// A child that does not outlive its question.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, or ends now: the wait is short.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One question, one answer. Ends when the child does.
fn exchange(question: &[u8], mut stdin: impl Write, stdout: impl Read) -> io::Result<Vec<u8>> {
    stdin.write_all(question)?;
    drop(stdin);
    let mut answer = Vec::new();
    let limit = ANSWER_MAX + HEADER + 1;
    stdout.take(limit as u64).read_to_end(&mut answer)?;
    Ok(answer)
}

fn opened(answer: Vec<u8>) -> Result<Vec<u8>, String> {
    if answer.len() > ANSWER_MAX + HEADER {
        return Err(format!("the parsed body has more than {ANSWER_MAX} bytes"));
    }
    let Some((header, rest)) = answer.split_first_chunk::<HEADER>() else {
        return Err(NOT_UNDERSTOOD.to_owned());
    };
    let [tag, length @ ..] = *header;
    match tag {
        // A child that ended half-way has told another length.
        _ if u32::from_be_bytes(length) as usize != rest.len() => Err(NOT_UNDERSTOOD.to_owned()),
        UNDERSTOOD => Ok(rest.to_owned()),
        REFUSED => Err(String::from_utf8_lossy(rest).into_owned()),
        _ => Err(NOT_UNDERSTOOD.to_owned()),
    }
}

/// The child's side: reads a definition, answers and ends.
pub fn answer() -> ExitCode {
    answer_to(io::stdout().lock())
}

pub(super) fn answer_to(mut out: impl Write) -> ExitCode {
    limit();
    let mut question = Vec::new();
    if io::stdin().lock().take(QUESTION_MAX).read_to_end(&mut question).is_err() {
        return ExitCode::FAILURE;
    }
    let parsed = match serde_json::from_slice::<Definition>(&question) {
        Ok(definition) => procedure::parse(&definition),
        Err(error) => Err(format!("the definition is damaged: {error}")),
    };
    let (tag, bytes) = match parsed {
        Ok(bytes) => (UNDERSTOOD, bytes),
        Err(words) => (REFUSED, words.into_bytes()),
    };
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
    let written = out
        .write_all(&[tag])
        .and_then(|()| out.write_all(&length))
        .and_then(|()| out.write_all(&bytes))
        .and_then(|()| out.flush());
    if written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Where a limit can't be set, the time that the parent waits is one.
fn limit() {
    let at_most = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    let _ = setrlimit(Resource::As, at_most(MEMORY_MAX));
    let _ = setrlimit(Resource::Cpu, at_most(TIME_MAX.as_secs() + 1));
    let _ = setrlimit(Resource::Core, at_most(0));
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn definition(source: &str) -> Definition {
        Definition {
            name: "f".to_owned(),
            language: "plpgsql".to_owned(),
            source: source.to_owned(),
            is_procedure: true,
            ..Definition::default()
        }
    }

    /// What a child that is this shell script comes to.
    async fn outcome(script: &str) -> Result<Vec<u8>, String> {
        let body = definition("BEGIN NULL; END");
        Parser::of("/bin/sh", &["-c", script]).parse(&body).await
    }

    #[tokio::test]
    async fn a_parser_that_ends_early_does_not_understand() {
        for script in [
            "kill -ABRT $$",
            "kill -SEGV $$",
            "cat > /dev/null; kill -KILL $$",
            "exit 0",
            "cat > /dev/null",
            "cat > /dev/null; printf y",
            "cat > /dev/null; printf 'y\\000\\000\\000\\002a'",
            "cat > /dev/null; printf 'x\\000\\000\\000\\001a'",
        ] {
            assert_eq!(outcome(script).await, Err(NOT_UNDERSTOOD.to_owned()), "{script}");
        }
        let fine = outcome("cat > /dev/null; printf 'y\\000\\000\\000\\002ab'").await;
        assert_eq!(fine, Ok(b"ab".to_vec()));
        let refused = outcome("cat > /dev/null; printf 'n\\000\\000\\000\\002no'").await;
        assert_eq!(refused, Err("no".to_owned()));
    }

    #[tokio::test]
    async fn a_parser_that_hangs_or_talks_too_much_is_killed() {
        let begun = Instant::now();
        let outcomes =
            (outcome("exec sleep 60").await, outcome("cat > /dev/null; exec cat /dev/zero").await);
        assert_eq!(outcomes.0, Err("the parser took more than 2 s".to_owned()));
        let words = format!("the parsed body has more than {ANSWER_MAX} bytes");
        assert_eq!(outcomes.1, Err(words));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_parser_that_is_not_there_is_told() {
        let missing = Parser::of("/nowhere/pondage", &[]);
        let words = missing.parse(&definition("")).await.expect_err("no such program");
        assert!(words.starts_with("the parser did not start: "), "{words}");
    }
}
