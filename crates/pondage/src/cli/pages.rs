//! The manual page and the shells' completions, made from the command line's own definition.

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{CommandLine, Outcome};
use crate::cli::exit;

/// `pondage(1)`, in troff.
pub fn manual() -> Outcome {
    let command = CommandLine::command().name("pondage").disable_help_subcommand(true);
    let mut page = Vec::new();
    match render(command, &mut page) {
        Ok(()) => fine(&page),
        Err(error) => {
            let errors = format!("error: {error}\n");
            Outcome { code: exit::FAILED, output: String::new(), errors }
        }
    }
}

/// Everything about one program on one page: few read `pondage-top(1)`.
fn render(command: Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    let man =
        Man::new(command.clone()).date("").source(concat!("Pondage ", env!("CARGO_PKG_VERSION")));
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    for of in command.get_subcommands().filter(|of| !of.is_hide_set()) {
        let about = of.get_about().map(ToString::to_string).unwrap_or_default();
        let title = format!(".SH pondage {}\n{}\n", of.get_name(), escaped(&about));
        page.extend(title.as_bytes());
        Man::new(of.clone()).render_options_section(page)?;
    }
    page.extend(FILES.as_bytes());
    man.render_extra_section(page)
}

const FILES: &str = ".SH FILES\n\
    .TP\n/etc/pondage/pondage.toml\nThe configuration of the service. `pondage check -c FILE` says \
    what is wrong with one.\n\
    .SH SEE ALSO\npsql(1), pgbouncer(1)\n";

/// A line that begins with a dot or an apostrophe would be a request.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace("\n.", "\n\\&.").replace("\n'", "\n\\&'")
}

pub fn completions(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "pondage", &mut script);
    fine(&script)
}

fn fine(output: &[u8]) -> Outcome {
    let output = String::from_utf8_lossy(output).into_owned();
    Outcome { code: exit::FINE, output, errors: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_names_every_command_and_flag() {
        let page = manual().output;
        assert!(page.contains(".TH pondage 1"), "{page}");
        for name in ["serve", "upgrade", "check", "import", "doctor", "top", "demo"] {
            assert!(page.contains(&format!(".SH pondage {name}\n")), "{name}");
        }
        assert!(page.contains("\\-\\-takeover") && page.contains("\\-\\-json"), "{page}");
        assert!(!page.contains("parse-body"), "{page}");
    }

    #[test]
    fn every_shell_has_its_completions() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = completions(shell).output;
            assert!(script.contains("doctor") && script.contains("takeover"), "{shell}");
        }
    }
}
