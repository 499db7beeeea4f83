//! Reads the command line and hands over to what it asks for.

use std::io::Write;
use std::process::ExitCode;

use pondage::cli::{self, Action};
use pondage::config::Environment;
use pondage::control::bodies;
use pondage::{demo, doctor, process, top};

fn main() -> ExitCode {
    match cli::decide(std::env::args_os(), Environment::new(std::env::vars_os())) {
        Action::Serve(config) => process::serve(*config),
        Action::TakeOver(config) => process::take_over(*config),
        Action::Upgrade(config) => process::upgrade(&config),
        Action::Demo(options) => demo::run(options),
        Action::Doctor(options) => doctor::run(&options),
        Action::Top(options) => top::run(&options),
        Action::ParseBody => bodies::answer(),
        Action::Done(outcome) => {
            // Nobody may be listening any more, as in `pondage --help | head -1`.
            let _ = std::io::stdout().write_all(outcome.output.as_bytes());
            let _ = std::io::stderr().write_all(outcome.errors.as_bytes());
            ExitCode::from(outcome.code)
        }
    }
}
