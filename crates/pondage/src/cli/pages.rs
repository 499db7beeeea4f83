//! The manual pages and the shells' completions, made from the command line's own definition and
//! from the table of options.

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{CommandLine, Outcome};
use crate::cli::exit;
use crate::config::options::{Row, Section};
use crate::config::told;

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
    .SH SEE ALSO\npondage.toml(5), psql(1), pgbouncer(1)\n";

/// `pondage.toml(5)`, in troff.
pub fn configuration() -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(".TH pondage.toml 5 \"\" \"Pondage {version}\"\n{ABOUT_CONFIGURATION}");
    for section in Section::ALL {
        page += &format!(
            ".SH \"[{}]\"\n{}\n",
            section.written().replace('"', "\"\""),
            prose(section.about())
        );
        let rows = told(section);
        if rows.is_empty() {
            page += "Takes the keys of \\fB[pool]\\fR.\n";
        }
        rows.into_iter().for_each(|row| page += &option(row));
    }
    page += ".SH SEE ALSO\npondage(1)\n";
    fine(page.as_bytes())
}

const ABOUT_CONFIGURATION: &str = ".SH NAME\npondage.toml \\- configuration of pondage(1)\n\
    .SH DESCRIPTION\n\
    TOML. `pondage check \\-c FILE` prints what it comes to, or everything that is wrong with it. \
    An option has its value from the first of these that gives one: flag, environment variable \
    (PONDAGE_SECTION__KEY), file, default. Durations and sizes carry a unit: \"250ms\", \"5s\", \
    \"1h\", \"64KiB\". HUP and RELOAD of the console put a new file into force, or refuse it whole; \
    options that are marked \\fIrestart\\fR keep their value until then.\n";

fn option(row: &Row) -> String {
    let default = row.default_value().map(|value| format!("; default {}", value.to_toml()));
    let restart = if row.reloadable { "" } else { "; \\fIrestart\\fR" };
    let about = format!("{}{}", row.kind.expected(), default.unwrap_or_default());
    format!(".TP\n\\fB{}\\fR ({}{restart})\n{}\n", row.name, prose(&about), prose(row.help))
}

/// What Markdown says in a line: code is bold, links are their words.
fn prose(markdown: &str) -> String {
    let mut text = String::new();
    for (at, part) in markdown.split('`').enumerate() {
        let is_code = at % 2 == 1;
        let part = part.replace('\\', "\\e").replace('-', "\\-");
        match is_code {
            true => text += &format!("\\fB{part}\\fR"),
            false => text += &without_links(&part),
        }
    }
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

fn without_links(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let link =
            after.split_once("](").and_then(|(words, to)| Some((words, to.split_once(')')?.1)));
        let Some((words, behind)) = link else { break };
        left += before;
        left += words;
        rest = behind;
    }
    left + rest
}

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
    fn the_manual_of_the_configuration_has_every_option_as_plain_text() {
        let page = configuration().output;
        assert!(page.starts_with(".TH pondage.toml 5 "), "{page}");
        for section in Section::ALL {
            for row in told(section) {
                let head = format!(".TP\n\\fB{}\\fR (", row.name);
                assert!(page.contains(&head), "{}", row.name);
            }
        }
        assert!(!page.contains("](") && !page.contains("]: "), "{page}");
        let requests = [".TH ", ".SH ", ".TP"];
        let wrong = page.lines().find(|line| {
            line.starts_with(['.', '\'']) && !requests.iter().any(|one| line.starts_with(one))
        });
        assert_eq!(wrong, None);
        assert_eq!(prose("'a' of [b](c.md#d), `x-y` \\"), "\\&'a' of b, \\fBx\\-y\\fR \\e");
    }

    #[test]
    fn every_shell_has_its_completions() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = completions(shell).output;
            assert!(script.contains("doctor") && script.contains("takeover"), "{shell}");
        }
    }
}
