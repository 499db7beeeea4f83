//! The command line: what to do, decided without doing it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::{self, Config, Environment, Flags, Report};

/// Exit codes.
///
/// Source: sysexits.h for 69, 77 and 78.
pub mod exit {
    pub const FINE: u8 = 0;
    /// Failed while running.
    pub const FAILED: u8 = 1;
    /// The command line is wrong.
    pub const USAGE: u8 = 2;
    /// The upstream, or a program that is needed, can't be reached.
    pub const UNAVAILABLE: u8 = 69;
    /// No permission, or an address is in use.
    pub const NO_PERMISSION: u8 = 77;
    pub const BAD_CONFIGURATION: u8 = 78;
}

/// What the process is to do.
#[derive(Debug)]
pub enum Action {
    Serve(Box<Config>),
    Demo(DemoOptions),
    Done(Outcome),
}

/// A private PostgreSQL in front of which a configuration is made with [`Config::from_url`].
#[derive(Debug, Clone)]
pub struct DemoOptions {
    pub environment: Environment,
    pub flags: Flags,
}

/// All is said and done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub code: u8,
    /// For standard output.
    pub output: String,
    /// For standard error.
    pub errors: String,
}

impl Outcome {
    fn refused(report: &Report) -> Outcome {
        let errors = report.to_string();
        Outcome { code: exit::BAD_CONFIGURATION, output: String::new(), errors }
    }
}

#[derive(Parser)]
#[command(
    name = "pondage",
    version,
    about = "One process in front of PostgreSQL that turns many connections into few",
    after_help = "Exit codes: 0 fine, 1 failed while running, 2 usage, 69 upstream unreachable, \
                  77 no permission or address in use, 78 bad configuration.",
    args_conflicts_with_subcommands = true,
    arg_required_else_help = false
)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    /// Serve this server and all its databases: postgres://user:password@host:port/dbname
    url: Option<String>,
    #[command(flatten)]
    options: OptionFlags,
}

#[derive(Subcommand)]
enum Command {
    /// Serve what a configuration file, or the environment, describes
    Serve {
        #[command(flatten)]
        source: FileFlag,
        #[command(flatten)]
        options: OptionFlags,
    },
    /// Print the effective configuration, or everything that is wrong with it
    Check {
        #[command(flatten)]
        source: FileFlag,
        #[command(flatten)]
        options: OptionFlags,
    },
    /// Start a private PostgreSQL with sample data and serve it
    Demo {
        #[command(flatten)]
        options: OptionFlags,
    },
}

#[derive(Args)]
struct FileFlag {
    /// The configuration file; without it, the environment says everything
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Stronger than environment and file.
#[derive(Args)]
struct OptionFlags {
    /// Address for PostgreSQL clients, may be repeated: 0.0.0.0:6432, unix:/run/pondage
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Address of metrics and health checks, or off
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Threads that move data, or auto
    #[arg(long, value_name = "COUNT")]
    workers: Option<String>,
    /// off, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// auto, text, logfmt or json
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

impl From<OptionFlags> for Flags {
    fn from(options: OptionFlags) -> Flags {
        let OptionFlags { listen, http, workers, log_level, log_format } = options;
        Flags { listen, http, workers, log_level, log_format }
    }
}

/// Reads the command line and whatever configuration it names.
pub fn decide(args: impl IntoIterator<Item = OsString>, environment: Environment) -> Action {
    let CommandLine { command, url, options } = match CommandLine::try_parse_from(args) {
        Ok(command_line) => command_line,
        Err(error) => return Action::Done(usage(&error)),
    };
    let flags = Flags::from(options);
    let config = match (command, url) {
        (Some(Command::Demo { options }), _) => {
            return Action::Demo(DemoOptions { environment, flags: options.into() })
        }
        (Some(Command::Check { source, options }), _) => {
            let config = Config::load(source.config.as_deref(), environment, options.into());
            return Action::Done(check(config));
        }
        (Some(Command::Serve { source, options }), _) => {
            Config::load(source.config.as_deref(), environment, options.into())
        }
        (None, Some(url)) if config::is_postgres_url(&url) => {
            Config::from_url(&url, environment, flags)
        }
        (None, Some(word)) => return Action::Done(neither_command_nor_url(&word)),
        (None, None) if environment.has_database_url() => Config::load(None, environment, flags),
        (None, None) => return Action::Done(help()),
    };
    match config {
        Ok(config) => Action::Serve(Box::new(config)),
        Err(report) => Action::Done(Outcome::refused(&report)),
    }
}

fn check(config: Result<Config, Report>) -> Outcome {
    match config {
        Err(report) => Outcome::refused(&report),
        Ok(config) => {
            let notes = config.notices.iter().map(|notice| format!("note: {notice}\n"));
            let errors = notes.collect();
            Outcome { code: exit::FINE, output: config::effective(&config), errors }
        }
    }
}

/// `--help` and `--version` end well; everything else that clap reports is a wrong command line.
fn usage(error: &clap::Error) -> Outcome {
    let text = error.render().to_string();
    match error.use_stderr() {
        true => Outcome { code: exit::USAGE, output: String::new(), errors: text },
        false => Outcome { code: exit::FINE, output: text, errors: String::new() },
    }
}

/// A word that could be a URL is not repeated: it may hold a password.
fn neither_command_nor_url(word: &str) -> Outcome {
    let named = match word.contains([':', '@']) {
        true => "the argument".to_owned(),
        false => format!("'{}'", word.escape_debug()),
    };
    let errors = format!(
        "error: {named} is neither a command nor a URL that starts with postgres://\n\n\
         For more information, try '--help'.\n"
    );
    Outcome { code: exit::USAGE, output: String::new(), errors }
}

fn help() -> Outcome {
    use clap::CommandFactory;
    let errors = CommandLine::command().render_help().to_string();
    Outcome { code: exit::USAGE, output: String::new(), errors }
}
