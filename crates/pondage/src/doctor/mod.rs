//! `pondage doctor`: looks at databases as Pondage would use them, and says what to fix, as SQL.
//!
//! ```text
//! cli -> Options -> Subject (a pool of the configuration) -> Patient (a session, and what the
//! server says of itself) -> checks -> Examination -> report
//! ```
//! Nothing is changed: beside reading, it commits some empty messages to time that.

mod checks;
mod finding;
mod patient;
mod report;
mod subject;

use std::process::ExitCode;

use crate::cli::exit;
use crate::config::Config;
use crate::control::dial::Dialer;
use finding::{Examination, Examined};
use patient::Patient;
use subject::Subject;

/// What is to be examined.
#[derive(Debug)]
pub struct Options {
    pub config: Box<Config>,
    /// None: all that the configuration names.
    pub database: Option<String>,
    /// None: as whom the configuration can log in.
    pub user: Option<String>,
    /// For programs.
    pub json: bool,
}

/// Examines, reports on standard output, and gives the exit code.
pub fn run(options: &Options) -> ExitCode {
    let Options { config, database, user, json } = options;
    let found = subject::of(config, database.as_deref(), user.as_deref());
    let subjects = match found {
        Ok(subjects) => subjects,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(exit::USAGE);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::from(exit::FAILED);
        }
    };
    let all = runtime.block_on(examine(config, &subjects));
    let told = if *json { report::json(&all) } else { report::text(&all) };
    print!("{told}");
    ExitCode::from(report::code(&all))
}

async fn examine(config: &Config, subjects: &[Subject]) -> Vec<Examination> {
    let dialer = Dialer::default();
    let mut all = Vec::new();
    for Subject { pool } in subjects {
        let (server, checks) = match Patient::meet(&dialer, config, pool).await {
            Err((server, unreached)) => (server, Err(unreached)),
            Ok(mut patient) => {
                let mut examined: Vec<Examined> = Vec::new();
                for check in checks::ALL {
                    examined.push(check.run(&mut patient).await);
                }
                (patient.server(), Ok(examined))
            }
        };
        all.push(Examination {
            database: pool.database.clone(),
            user: pool.upstream.user.clone(),
            server,
            checks,
        });
    }
    all
}
