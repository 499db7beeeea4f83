//! The command line: what to do, decided without doing it.

mod pages;
mod pgbouncer;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::config::{self, Config, Environment, Flags, Report};
use crate::control::bodies;
use crate::{doctor, top};

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

/// The load of the demo, when somebody looks on.
const DEMO_LOAD_SECONDS: u64 = 45;

/// What the process is to do.
#[derive(Debug)]
pub enum Action {
    Serve(Box<Config>),
    /// Serve in place of the process that runs.
    TakeOver(Box<Config>),
    /// Have the process that runs start a new one, which takes over.
    Upgrade(Box<Config>),
    Demo(DemoOptions),
    /// Examine databases.
    Doctor(doctor::Options),
    /// Show what a process that runs does.
    Top(top::Options),
    /// Parse the body of a function for the process that started this one.
    ParseBody,
    Done(Outcome),
}

/// A private PostgreSQL in front of which a configuration is made with [`Config::from_url`].
#[derive(Debug, Clone)]
pub struct DemoOptions {
    pub environment: Environment,
    pub flags: Flags,
    /// How long the load of the first minute lasts; zero: there is none.
    pub load: Duration,
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
    /// A pgbouncer.ini, run as it is: its options, and PgBouncer's defaults
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pgbouncer_ini: Option<PathBuf>,
    #[command(flatten)]
    takeover: TakeoverFlag,
    #[command(flatten)]
    options: OptionFlags,
}

/// In place of a process that runs.
#[derive(Args)]
struct TakeoverFlag {
    /// Take over from the process that runs: its sockets now, its clients as they leave
    #[arg(short = 'R', long, visible_alias = "reboot")]
    takeover: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Serve what a configuration file, or the environment, describes
    Serve {
        #[command(flatten)]
        source: FileFlag,
        #[command(flatten)]
        takeover: TakeoverFlag,
        #[command(flatten)]
        options: OptionFlags,
    },
    /// Have the process that runs start the new binary, which takes over from it
    Upgrade {
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
    /// Write an ini file of PgBouncer as TOML, and to standard error whatever will be otherwise
    Import {
        /// pgbouncer.ini
        ini: PathBuf,
        /// A userlist.txt to take instead of the `auth_file` that the ini names
        users: Option<PathBuf>,
    },
    /// Examine a database, or all of a configuration: what to fix there, as SQL
    #[command(after_help = "Exit codes: 0 nothing to fix, 1 warnings or problems, 2 usage, \
                            69 server unreachable, 77 log-in refused, 78 bad configuration.")]
    Doctor {
        /// postgres://user:password@host:port/dbname; without it, what --config says
        #[arg(conflicts_with_all = ["config", "pgbouncer_ini"])]
        url: Option<String>,
        #[command(flatten)]
        source: FileFlag,
        /// This database only; one that the configuration takes by `*` has to be named
        #[arg(long, value_name = "NAME")]
        database: Option<String>,
        /// As this user
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// For programs
        #[arg(long)]
        json: bool,
    },
    /// Show live what a running Pondage does, by its console
    #[command(after_help = "Exit codes: 0 ended by q, 1 failed, 2 usage, 69 not reachable, \
                            77 log-in refused, 78 bad configuration.")]
    Top {
        /// Of Pondage: postgres://admin:password@host:6432; without it, what --config says
        #[arg(conflicts_with_all = ["config", "pgbouncer_ini"])]
        url: Option<String>,
        #[command(flatten)]
        source: FileFlag,
        /// Between two looks, in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
        interval: f64,
        /// The first page: pools, queries, clients, servers, blockers, caches, redis, procedures
        /// or hosts
        #[arg(long, value_name = "NAME")]
        page: Option<String>,
        /// Print the page as text, after one interval, and end
        #[arg(long)]
        once: bool,
    },
    /// Start a private PostgreSQL with sample data and serve it
    Demo {
        /// How long to compare PostgreSQL with and without Pondage under load; without it, 45 in a
        /// terminal and not at all elsewhere
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=3600))]
        load: Option<u64>,
        /// Leave the load out
        #[arg(long, conflicts_with = "load")]
        no_load: bool,
        #[command(flatten)]
        options: OptionFlags,
    },
    /// Print the manual page, for man(1)
    Manual {
        /// That of the configuration file, pondage.toml(5), instead
        #[arg(long)]
        configuration: bool,
    },
    /// Print what completes command lines in a shell
    Completions { shell: clap_complete::Shell },
    #[command(name = bodies::SUBCOMMAND, hide = true)]
    ParseBody,
}

#[derive(Args)]
struct FileFlag {
    /// The configuration file; without it, the environment says everything
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A pgbouncer.ini, run as it is: its options, and PgBouncer's defaults
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pgbouncer_ini: Option<PathBuf>,
}

impl FileFlag {
    fn load(self, environment: Environment, options: OptionFlags) -> Result<Config, Report> {
        match self.pgbouncer_ini {
            Some(ini) => Config::from_ini(&ini, environment, options.into()),
            None => Config::load(self.config.as_deref(), environment, options.into()),
        }
    }
}

/// Stronger than environment and file.
#[derive(Args, Default)]
struct OptionFlags {
    /// Address for PostgreSQL clients, may be repeated: 0.0.0.0:6432, unix:/run/pondage
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Address for Redis clients, or off: 127.0.0.1:6379
    #[arg(long, value_name = "ADDRESS")]
    redis: Option<String>,
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
        let OptionFlags { listen, redis, http, workers, log_level, log_format } = options;
        Flags { listen, redis, http, workers, log_level, log_format }
    }
}

/// Reads the command line and whatever configuration it names.
pub fn decide(args: impl IntoIterator<Item = OsString>, environment: Environment) -> Action {
    let args: Vec<OsString> = args.into_iter().collect();
    if pgbouncer::is_called(&args) {
        return pgbouncer::decide(&args, environment);
    }
    let CommandLine { command, url, pgbouncer_ini, takeover, options } =
        match CommandLine::try_parse_from(&args) {
            Ok(command_line) => command_line,
            Err(error) => return Action::Done(usage(&error, &args)),
        };
    let mut serve: fn(Box<Config>) -> Action = Action::Serve;
    if takeover.takeover {
        serve = Action::TakeOver;
    }
    let config = match (command, url) {
        (Some(Command::Demo { load, no_load, options }), _) => {
            let load = Duration::from_secs(match (no_load, load) {
                (true, _) => 0,
                (false, Some(seconds)) => seconds,
                // Programs and tests that start a demo want it for themselves.
                (false, None) if std::io::stderr().is_terminal() => DEMO_LOAD_SECONDS,
                (false, None) => 0,
            });
            return Action::Demo(DemoOptions { environment, flags: options.into(), load });
        }
        (Some(Command::ParseBody), _) => return Action::ParseBody,
        (Some(Command::Manual { configuration }), _) => {
            return Action::Done(match configuration {
                true => pages::configuration(),
                false => pages::manual(),
            })
        }
        (Some(Command::Completions { shell }), _) => {
            return Action::Done(pages::completions(shell))
        }
        (Some(Command::Check { source, options }), _) => {
            return Action::Done(check(source.load(environment, options)));
        }
        (Some(Command::Import { ini, users }), _) => {
            return Action::Done(import(&ini, users.as_deref()))
        }
        (Some(Command::Serve { source, takeover, options }), _) => {
            if takeover.takeover {
                serve = Action::TakeOver;
            }
            source.load(environment, options)
        }
        (Some(Command::Doctor { url, source, database, user, json }), _) => {
            let options = OptionFlags::default();
            let config = match url {
                Some(url) if config::is_postgres_url(&url) => {
                    Config::from_url(&url, environment, options.into())
                }
                Some(_) => return Action::Done(no_url("doctor")),
                None => source.load(environment, options),
            };
            return match config {
                Ok(config) => {
                    let config = Box::new(config);
                    Action::Doctor(doctor::Options { config, database, user, json })
                }
                Err(report) => Action::Done(Outcome::refused(&report)),
            };
        }
        (Some(Command::Top { url, source, interval, page, once }), _) => {
            let interval = Duration::from_secs_f64(interval);
            let shown = |config, user| {
                let config = Box::new(config);
                Action::Top(top::Options { config, user, interval, page, once })
            };
            return top(url.as_deref(), source, environment, shown);
        }
        (Some(Command::Upgrade { source, options }), _) => {
            serve = Action::Upgrade;
            source.load(environment, options)
        }
        (None, None) if pgbouncer_ini.is_some() => {
            FileFlag { config: None, pgbouncer_ini }.load(environment, options)
        }
        (None, Some(url)) if config::is_postgres_url(&url) => {
            Config::from_url(&url, environment, options.into())
        }
        (None, Some(word)) => return Action::Done(neither_command_nor_url(&word)),
        (None, None) if environment.has_database_url() => {
            Config::load(None, environment, options.into())
        }
        (None, None) => return Action::Done(help()),
    };
    match config {
        Ok(config) => serve(Box::new(config)),
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

/// The TOML on standard output, whatever is not as it was on standard error. What the TOML itself
/// would be refused for is told beside it: files may be missing where it is only translated.
fn import(ini: &Path, users: Option<&Path>) -> Outcome {
    let imported = match config::import(ini, users) {
        Ok(imported) => imported,
        Err(report) => return Outcome::refused(&report),
    };
    let notes = imported.notes.iter().map(|note| format!("{note}\n"));
    let mut errors: String = notes.collect();
    let code = match Config::from_text(&imported.toml) {
        Ok(_) => exit::FINE,
        Err(report) => {
            errors.push_str(&report.to_string());
            exit::BAD_CONFIGURATION
        }
    };
    Outcome { code, output: imported.toml, errors }
}

/// `--help` and `--version` end well; everything else that clap reports is a wrong command line.
/// A URL in it is not repeated: it may hold a password.
fn usage(error: &clap::Error, args: &[OsString]) -> Outcome {
    let urls = args.iter().filter_map(|arg| arg.to_str()).filter(|arg| arg.contains("://"));
    let text = urls.fold(error.render().to_string(), |text, url| text.replace(url, "URL"));
    match error.use_stderr() {
        true => Outcome { code: exit::USAGE, output: String::new(), errors: text },
        false => Outcome { code: exit::FINE, output: text, errors: String::new() },
    }
}

/// The console of a URL, or of the process that a configuration is of.
fn top(
    url: Option<&str>,
    source: FileFlag,
    environment: Environment,
    shown: impl FnOnce(Config, String) -> Action,
) -> Action {
    let options = OptionFlags::default();
    let config = match url {
        Some(url) if config::is_postgres_url(url) => {
            Config::from_url(url, environment, options.into())
        }
        Some(_) => return Action::Done(no_url("top")),
        None => source.load(environment, options),
    };
    let config = match config {
        Ok(config) => config,
        Err(report) => return Action::Done(Outcome::refused(&report)),
    };
    if url.is_some() {
        let server = config.databases.get("*").and_then(|all| all.upstream.user.clone());
        return shown(config, server.unwrap_or_else(|| top::place::OWNER.to_owned()));
    }
    match top::place::of(&config) {
        Ok((config, user)) => shown(config, user),
        Err(why) => {
            let errors = format!("error: {why}\n");
            Action::Done(Outcome { code: exit::USAGE, output: String::new(), errors })
        }
    }
}

/// A pause that can be waited for.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600".to_owned()),
    }
}

/// It is not repeated: it may hold a password.
fn no_url(command: &str) -> Outcome {
    let errors = format!(
        "error: the argument is no URL that starts with postgres://\n\n\
         For more information, try 'pondage {command} --help'.\n"
    );
    Outcome { code: exit::USAGE, output: String::new(), errors }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(args: &[&str], variables: &[(&str, &str)]) -> Action {
        let args = ["pondage"].iter().chain(args).map(OsString::from);
        decide(args, Environment::new(variables.iter().copied()))
    }

    fn done(args: &[&str]) -> Outcome {
        match decided(args, &[]) {
            Action::Done(outcome) => outcome,
            action => panic!("{action:?}"),
        }
    }

    fn served(args: &[&str], variables: &[(&str, &str)]) -> Config {
        match decided(args, variables) {
            Action::Serve(config) => *config,
            action => panic!("{action:?}"),
        }
    }

    #[test]
    fn version_and_help_end_well_on_standard_output() {
        let version = done(&["--version"]);
        assert_eq!(version.output, format!("pondage {}\n", env!("CARGO_PKG_VERSION")));
        assert_eq!((version.code, version.errors.as_str()), (exit::FINE, ""));
        let help = done(&["--help"]);
        assert_eq!((help.code, help.errors.as_str()), (exit::FINE, ""));
        for word in [
            "serve",
            "check",
            "import",
            "doctor",
            "top",
            "demo",
            "upgrade",
            "--takeover",
            "--pgbouncer-ini",
            "--listen",
            "--log-format",
            "78 bad configuration",
        ] {
            assert!(help.output.contains(word), "no {word} in:\n{}", help.output);
        }
    }

    #[test]
    fn wrong_command_lines_end_with_2_and_repeat_no_password() {
        for args in [
            &[][..],
            &["serv"],
            &["--what"],
            &["serve", "--config"],
            &["check", "-c", "a", "-c", "b"],
            &["postgresq://app:hunter2@db/app"],
            &["postgres://app:hunter2@db/app", "postgres://app:hunter2@db/app"],
            &["postgres://app:hunter2@db/app", "serve"],
        ] {
            let outcome = done(args);
            assert_eq!(outcome.code, exit::USAGE, "{args:?}");
            assert_eq!(outcome.output, "");
            assert!(!outcome.errors.is_empty());
            assert!(!outcome.errors.contains("hunter2"), "{}", outcome.errors);
        }
        assert!(done(&["serv"]).errors.starts_with("error: 'serv' is neither a command nor a URL"));
    }

    #[test]
    fn configuration_errors_end_with_78() {
        let outcome = done(&["serve", "-c", "/nowhere/pondage.toml"]);
        assert_eq!(outcome.code, exit::BAD_CONFIGURATION);
        assert!(outcome.errors.starts_with("error[P0100]: "), "{}", outcome.errors);
        for args in [&["serve"][..], &["check"], &["check", "-c", "/nowhere/pondage.toml"]] {
            assert_eq!(done(args).code, exit::BAD_CONFIGURATION, "{args:?}");
        }
    }

    #[test]
    fn a_url_is_served_with_the_flags_around_it() {
        let url = "postgres://app:sesame@db/shop";
        let flags = ["--listen", "127.0.0.1:7000", url, "--workers", "3", "--http", "off"];
        let config = served(&flags, &[]);
        assert_eq!((config.runtime.workers, config.listen.http), (3, None));
        assert!(config.pool("shop", "app").is_ok());
        let config = served(&[], &[("DATABASE_URL", url)]);
        assert!(config.pool("shop", "app").is_ok());
    }

    #[test]
    fn serve_takes_its_flags_and_check_prints_what_it_would_serve() {
        let variables = [("PONDAGE_DATABASES__APP__HOST", "db.example")];
        let config = served(&["serve", "--workers", "3"], &variables);
        assert_eq!(config.runtime.workers, 3);
        match decided(&["check", "--log-level", "debug"], &variables) {
            Action::Done(Outcome { code, output, errors }) => {
                assert_eq!((code, errors.as_str()), (exit::FINE, ""));
                assert!(output.contains("log_level = \"debug\"  # flag --log-level\n"), "{output}");
            }
            action => panic!("{action:?}"),
        }
    }

    #[test]
    fn a_process_may_be_taken_over_from_by_each_way_to_serve() {
        let variables = [("PONDAGE_DATABASES__APP__HOST", "db.example")];
        let url = "postgres://app:sesame@db/shop";
        for args in
            [&["serve", "-R"][..], &["serve", "--takeover"], &["-R", url], &[url, "--reboot"]]
        {
            assert!(matches!(decided(args, &variables), Action::TakeOver(_)), "{args:?}");
        }
        assert!(matches!(decided(&["upgrade"], &variables), Action::Upgrade(_)));
        assert_eq!(done(&["check", "-R"]).code, exit::USAGE);
    }

    #[test]
    fn demo_hands_on_flags_and_environment() {
        let variables = [("PONDAGE_POOL__POOL_SIZE", "3")];
        let Action::Demo(options) = decided(&["demo", "--http", "off"], &variables) else {
            panic!("no demo");
        };
        let config = Config::from_url("postgres://demo@db", options.environment, options.flags)
            .expect("valid");
        assert_eq!(config.listen.http, None);
        assert_eq!(config.pool("demo", "demo").expect("known").pool_size, 3);
    }
}
