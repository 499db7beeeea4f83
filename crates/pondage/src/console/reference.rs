//! What the console says of itself: SHOW HELP, and the page `docs/console.md`.

use std::fmt::Write;

use super::command::{COMMANDS_MAX, IGNORED};
use super::shows::{Show, Subject};
use super::table::Column;
use super::verbs::Verb;
use super::{columns, keys, settings, AHEAD_BYTES_MAX, AHEAD_MESSAGES_MAX};
use super::{MESSAGE_BYTES_MAX, SESSIONS_MAX};
use crate::session::cache_commands::is_command;

/// The column in which SHOW HELP explains what stands before it.
const HELP_COLUMN: usize = 24;

/// The detail of SHOW HELP's notice.
pub fn help() -> String {
    let mut lines = Vec::new();
    let mut line = |usage: &str, brief: &str| {
        if usage.len() < HELP_COLUMN {
            lines.push(format!("\t{usage:HELP_COLUMN$}{brief}"));
        } else {
            lines.push(format!("\t{usage}\n\t{:HELP_COLUMN$}{brief}", ""));
        }
    };
    for subject in Subject::ALL {
        for show in of(subject) {
            line(&format!("SHOW {}", show.word()), show.brief());
        }
    }
    for verb in Verb::ALL {
        line(verb.usage(), verb.brief());
    }
    format!("\n{}", lines.join("\n"))
}

fn of(subject: Subject) -> impl Iterator<Item = Show> {
    Show::ALL.iter().copied().filter(move |show| show.subject() == subject)
}

/// The page `docs/console.md`.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    let link = |text: &str| format!("[{text}](#{})", text.to_lowercase().replace(' ', "-"));
    page.push_str("\n| | |\n|---|---|\n");
    for subject in Subject::ALL {
        let shows: Vec<String> =
            of(subject).map(|show| link(&format!("SHOW {}", show.word()))).collect();
        put(&mut page, format_args!("| {} | {} |\n", subject.title(), shows.join(", ")));
    }
    let verbs: Vec<String> = Verb::ALL.iter().map(|verb| link(verb.words())).collect();
    put(&mut page, format_args!("| Commands | {} |\n", verbs.join(", ")));
    for subject in Subject::ALL {
        put(&mut page, format_args!("\n## {}\n", subject.title()));
        for show in of(subject) {
            show_section(&mut page, show);
        }
    }
    page.push_str(COMMANDS);
    for verb in Verb::ALL {
        verb_section(&mut page, *verb);
    }
    sql(&mut page);
    errors(&mut page);
    page
}

/// Writing to a String can't fail.
fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = page.write_fmt(text);
}

fn show_section(page: &mut String, show: Show) {
    put(page, format_args!("\n### SHOW {}\n\n", show.word()));
    let mut sentences = vec![show.brief().to_owned()];
    sentences.extend(Some(show.about().to_owned()).filter(|about| !about.is_empty()));
    let aliases = show.aliases().iter().map(|alias| format!("Also `SHOW {alias}`."));
    sentences.extend(aliases);
    if let Some(text) = on_connections(show) {
        sentences.push(format!(
            "`{text}` works on [ordinary connections](#on-ordinary-connections), \
                                too."
        ));
    }
    put(page, format_args!("{}\n", sentences.join(" ")));
    let Some(columns) = columns::of_show(show) else { return };
    let before = Show::ALL.iter().take_while(|other| **other != show);
    let mut same = before.filter(|other| columns::of_show(**other) == Some(columns));
    match same.next() {
        Some(same) => {
            let word = same.word();
            let anchor = word.to_lowercase();
            put(page, format_args!("\nIts columns are those of [SHOW {word}](#show-{anchor}).\n"));
        }
        None => column_table(page, columns),
    }
    let keys = keys::of_show(show);
    if let [first, ..] = columns.get(..1).filter(|_| !keys.is_empty()).unwrap_or_default() {
        put(page, format_args!("\n| {} | unit | meaning |\n|---|---|---|\n", first.name));
        for key in keys {
            let (name, unit, about) = (key.name, key.unit.word(), cell(key.about));
            put(page, format_args!("| `{name}` | {unit} | {about} |\n"));
        }
    }
}

/// How it is written on an ordinary connection, if it is understood there.
fn on_connections(show: Show) -> Option<String> {
    let names = show.aliases().iter().copied().chain([show.word()]);
    names.map(|name| format!("SHOW {name}")).find(|text| is_command(text.as_bytes()))
}

fn column_table(page: &mut String, columns: &[Column]) {
    page.push_str("\n| column | type | unit | meaning |\n|---|---|---|---|\n");
    for column in columns {
        let (kind, unit, about) = (column.kind.word(), column.unit.word(), cell(column.about));
        put(page, format_args!("| `{}` | {kind} | {unit} | {about} |\n", column.name));
    }
}

fn verb_section(page: &mut String, verb: Verb) {
    put(page, format_args!("\n### {}\n\n```text\n{}\n```\n\n", verb.words(), verb.usage()));
    let mut sentences = vec![verb.brief()];
    sentences.extend(Some(verb.about()).filter(|about| !about.is_empty()));
    if is_command(verb.words().as_bytes()) {
        sentences.push("It works on [ordinary connections](#on-ordinary-connections), too.");
    }
    put(page, format_args!("{}\n", sentences.join(" ")));
    if !verb.errors().is_empty() {
        page.push_str("\n| SQLSTATE | when |\n|---|---|\n");
    }
    for (code, when) in verb.errors() {
        put(page, format_args!("| {code} | {} |\n", cell(when)));
    }
}

/// What drivers send unasked.
fn sql(page: &mut String) {
    let words: Vec<String> = IGNORED.iter().map(|(word, ..)| format!("`{word}`")).collect();
    let shown: Vec<String> = settings::shown()
        .iter()
        .map(|setting| format!("`{}` ({})", setting.name, setting.value))
        .collect();
    put(
        page,
        format_args!(
            "\n## SQL that is understood\n\nStatements that drivers send unasked are taken and have \
             no effect, whatever follows their first word: {}. `SET` of a setting of PostgreSQL is \
             ignored, with a notice. `SELECT` answers constants, `version()`, `current_database()`, \
             `current_user` and `session_user`, so `SELECT 1` can be used as a probe; `SELECT pools` \
             is `SHOW POOLS`. `SHOW` answers these settings, each with a value that never changes: \
             {}.\n",
            words.join(", "),
            shown.join(", ")
        ),
    );
}

fn errors(page: &mut String) {
    page.push_str(ERRORS);
    let kib = |bytes: usize| bytes >> 10;
    put(
        page,
        format_args!(
            "\n## Limits\n\n| limit | value |\n|---|---|\n| clients of the console | {SESSIONS_MAX} |\n\
             | a message | {} KiB |\n| commands in a message | {COMMANDS_MAX} |\n\
             | sent ahead while a command runs | {AHEAD_MESSAGES_MAX} messages, {} KiB |\n",
            kib(MESSAGE_BYTES_MAX),
            kib(AHEAD_BYTES_MAX)
        ),
    );
}

/// A bar would end the cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const INTRODUCTION: &str = "\
# The console

<!-- Generated from the tables in crates/pondage/src/console: shows.rs, columns/, keys.rs and
verbs.rs. To change this page, change a table and run
`UPDATE_DOCS=1 cargo test -p pondage reference_page`. -->

The databases `pondage`, `pgbouncer` and `admin` on the PostgreSQL door are the console: whatever
speaks to PostgreSQL can ask what Pondage does, and tell it what to do.

```sh
psql -h 127.0.0.1 -p 6432 -U admin pondage -c 'show pools'
```

Users in `auth.admin_users` may do everything. Users in `auth.stats_users` may use every SHOW and no
command. Their secrets have to be in the configuration or the users file, or
[in a database that is named for it](tls-and-authentication.md#databases-with-their-own-users). At a
Unix socket the users `pondage` and `pgbouncer` need no secret and may do everything, if they run as
the system user that runs Pondage, who could end it anyway.

Words, columns, their order and types are PgBouncer 1.25's where PgBouncer has them, so its exporters
and scripts work; columns that have no meaning here are there all the same. Words may be in any case,
a name with unusual letters is put in double quotes, and `;` stands between commands. Both query
protocols are understood. `SHOW HELP` lists all in short. The [dashboard](dashboard.md) and
[`pondage top`](operating.md#in-a-terminal-pondage-top) show the same figures.
";

const COMMANDS: &str = "
## Commands

For users in `auth.admin_users`. They take effect at once; there are no transactions. `db` is optional
where it stands in brackets: without it all databases are meant.
";

const ERRORS: &str = "
## On ordinary connections

What is about the read cache is understood on the ordinary connections of these users, too: outside of
transactions, as a simple query or all at once in the extended protocol. It is about the database of
the connection; to name another one is an error (0A000). The console is in no database, so there a
command says `IN DATABASE`.

## Errors

Of every command and SHOW:

| SQLSTATE | when |
|---|---|
| 42501 | a command of somebody who is not in `auth.admin_users` |
| 42601 | it is not understood; the hint has the nearest word, or how it is written |
| 22021 | it is not valid UTF-8 |
| 54000 | one of the [limits](#limits) |
| 53300 | there are too many clients of the console |
| 58000 | a worker does not answer |

One command that is not understood keeps the whole message from running. With
`listen.errors = \"pgbouncer\"` messages and SQLSTATE are PgBouncer's where it has some.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_page_of_the_console_matches_its_tables() {
        crate::written::expect("console.md", &page());
    }

    /// They stand in a notice, where Markdown is noise.
    #[test]
    fn what_is_said_in_short_is_one_plain_sentence() {
        let shows = Show::ALL.iter().map(|show| (show.word(), show.brief()));
        for (word, brief) in shows.chain(Verb::ALL.iter().map(|verb| (verb.words(), verb.brief())))
        {
            assert!(brief.ends_with('.') && !brief.contains(". "), "{word}: {brief}");
            assert!(!brief.contains(['`', '[', '\n']) && brief.len() <= 90, "{word}: {brief}");
        }
    }

    #[test]
    fn the_help_has_every_show_and_every_command_with_its_sentence() {
        let help = help();
        for show in Show::ALL {
            let line =
                help.lines().find(|line| line.split_whitespace().take(2).eq(["SHOW", show.word()]));
            let line = line.unwrap_or_else(|| panic!("{} is missing", show.word()));
            assert!(line.ends_with(show.brief()), "{line}");
        }
        for verb in Verb::ALL {
            let at = help.find(&format!("\t{}", verb.usage()));
            let rest = &help[at.unwrap_or_else(|| panic!("{} is missing", verb.words()))..];
            let lines: Vec<&str> = rest.lines().take(2).collect();
            assert!(lines.join(" ").contains(verb.brief()), "{lines:?}");
        }
    }

    #[test]
    fn codes_of_errors_are_sqlstates_and_each_command_has_each_once() {
        for verb in Verb::ALL {
            let codes: Vec<&str> = verb.errors().iter().map(|(code, _)| *code).collect();
            let is_state = |code: &&str| {
                code.len() == 5
                    && code.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
            };
            assert!(codes.iter().all(is_state), "{verb:?}: {codes:?}");
            let mut distinct = codes.clone();
            distinct.dedup();
            assert_eq!(codes, distinct, "{verb:?}");
            assert!(verb.usage().starts_with(verb.words()), "{verb:?}: {}", verb.usage());
        }
    }
}
