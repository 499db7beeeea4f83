//! PgBouncer's own command line, for a binary that is called by its name: units, scripts and tests
//! that start `pgbouncer` start Pondage.
//!
//! Source: pgbouncer(1), "Command line switches".

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Parser};
use nix::unistd::{geteuid, User};

use super::{exit, usage, Action, FileFlag, OptionFlags, Outcome};
use crate::config::Environment;

#[derive(Parser)]
#[command(
    name = "Pondage",
    version,
    about = "Pondage in PgBouncer's place: runs a pgbouncer.ini as it is",
    disable_version_flag = true
)]
struct CommandLine {
    /// pgbouncer.ini
    ini: PathBuf,
    /// Refused: run it under a service manager
    #[arg(short, long)]
    daemon: bool,
    /// Take over from the process that runs
    #[arg(short = 'R', long, visible_alias = "takeover")]
    reboot: bool,
    /// More messages; may be repeated
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// No effect
    #[arg(short, long)]
    quiet: bool,
    /// Must be who runs it
    #[arg(short, long, value_name = "NAME")]
    user: Option<String>,
    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: (),
}

/// Whether the program was called by PgBouncer's name.
pub(super) fn is_called(args: &[OsString]) -> bool {
    let name = args.first().and_then(|program| Path::new(program).file_name());
    name.is_some_and(|name| name == "pgbouncer")
}

pub(super) fn decide(args: &[OsString], environment: Environment) -> Action {
    let line = match CommandLine::try_parse_from(args) {
        Ok(line) => line,
        Err(error) => return Action::Done(usage(&error, args)),
    };
    if line.daemon {
        return refused(
            "--daemon",
            "Pondage stays in the foreground: let a service manager run it",
        );
    }
    let runs_as = User::from_uid(geteuid()).ok().flatten().map(|user| user.name);
    if line.user.is_some_and(|user| runs_as.as_ref() != Some(&user)) {
        return refused("--user", "Pondage does not change its user: start it as that one");
    }
    let level = match line.verbose {
        0 => None,
        1 => Some("debug".to_owned()),
        _ => Some("trace".to_owned()),
    };
    let source = FileFlag { config: None, pgbouncer_ini: Some(line.ini) };
    let options = OptionFlags { log_level: level, ..OptionFlags::default() };
    match source.load(environment, options) {
        Ok(config) if line.reboot => Action::TakeOver(Box::new(config)),
        Ok(config) => Action::Serve(Box::new(config)),
        Err(report) => Action::Done(Outcome::refused(&report)),
    }
}

fn refused(switch: &str, why: &str) -> Action {
    let errors = format!("error: `{switch}` can't be done: {why}\n");
    Action::Done(Outcome { code: exit::USAGE, output: String::new(), errors })
}

#[cfg(test)]
mod tests {
    use super::super::{decide, exit, Action, Outcome};
    use crate::config::Environment;

    fn decided(args: &[&str]) -> Action {
        let args = ["/usr/sbin/pgbouncer"].iter().chain(args).map(Into::into);
        decide(args, Environment::default())
    }

    fn done(args: &[&str]) -> Outcome {
        match decided(args) {
            Action::Done(outcome) => outcome,
            action => panic!("{action:?}"),
        }
    }

    #[test]
    fn called_by_pgbouncers_name_it_has_its_switches() {
        let version = format!("Pondage {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(done(&["-V"]).output, version);
        assert_eq!(done(&["--version"]).output, version);
        assert!(done(&["--help"]).output.contains("--reboot"));
        assert_eq!(done(&[]).code, exit::USAGE);
        for switch in [&["-d"][..], &["--daemon"], &["-u", "no such user"]] {
            let refused = done(&[switch, &["pgbouncer.ini"]].concat());
            assert_eq!(refused.code, exit::USAGE);
            assert!(refused.errors.contains("can't be done"), "{}", refused.errors);
        }
        let missing = done(&["-q", "-v", "/nowhere/pgbouncer.ini"]);
        assert_eq!(missing.code, exit::BAD_CONFIGURATION);
        let directory = std::env::temp_dir().join(format!("pondage-cli-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let ini = directory.join("pgbouncer.ini");
        std::fs::write(&ini, "[databases]\n* =\n[pgbouncer]\n").expect("a file");
        let ini = ini.display().to_string();
        let served = decided(&["-q", "-v", "-v", &ini]);
        let taking_over = decided(&["-R", "-q", &ini]);
        std::fs::remove_dir_all(&directory).expect("removed");
        match (served, taking_over) {
            (Action::Serve(config), Action::TakeOver(_)) => {
                assert_eq!(config.telemetry.log_level, "trace");
            }
            other => panic!("{other:?}"),
        }
    }
}
