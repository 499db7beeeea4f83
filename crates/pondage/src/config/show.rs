//! A configuration as people read it: the output of `pondage check`, `SHOW CONFIG`, what a reload
//! could not change, and the reference page.

use std::fmt::Write;

use super::options::{self, Row, Section};
use super::report::Code;
use super::settings::Scope;
use super::value::{Kind, Value};
use super::Config;

/// The effective configuration as TOML: every option that applies to all, and whatever was said
/// about databases and users. Values that were given have their origin behind them. Secrets are
/// `"***"`.
pub fn effective(config: &Config) -> String {
    let mut out = String::new();
    let fixed = Section::ALL.into_iter().filter(|section| !section.has_name());
    let mut scopes: Vec<Scope> = fixed.map(Scope::fixed).collect();
    let named = config.settings.scopes().map(|(scope, _)| scope);
    scopes.extend(named.filter(|scope| scope.section.has_name()).cloned());
    scopes.sort();
    for scope in scopes {
        let lines: Vec<String> =
            options::rows(scope.section).filter_map(|row| line(config, &scope, row)).collect();
        if lines.is_empty() && !scope.section.has_name() {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("[{}]\n", scope.path()));
        out.extend(lines);
    }
    out
}

fn line(config: &Config, scope: &Scope, row: &Row) -> Option<String> {
    let name = row.name;
    if name == "password" && config.settings.get(scope, "password_file").is_some() {
        return None;
    }
    match config.settings.get(scope, name) {
        Some(given) => Some(format!("{name} = {}  # {}\n", given.value.to_toml(), given.place)),
        None if scope.section.has_name() => None,
        None => row.default_value().map(|value| format!("{name} = {}\n", value.to_toml())),
    }
}

/// A row of SHOW CONFIG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigRow {
    pub key: String,
    pub value: String,
    pub default: String,
    /// RELOAD puts a new value into force.
    pub changeable: bool,
}

/// The options that apply to all, by our names; then, for programs that look for them, those that
/// PgBouncer has with the same meaning, by its names and in its units.
pub fn show_config(config: &Config) -> Vec<ConfigRow> {
    let shown = |value: Option<Value>| value.map(|value| value.shown()).unwrap_or_default();
    let pgbouncer = |value: Option<Value>| value.map(|value| value.pgbouncer()).unwrap_or_default();
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for (section, row) in global_rows() {
        let value = current(config, section, row);
        let default = row.default_value();
        if let Some(name) = same_in_pgbouncer(row) {
            theirs.push(ConfigRow {
                key: name.to_owned(),
                value: pgbouncer(value.clone()),
                default: pgbouncer(default.clone()),
                changeable: row.reloadable,
            });
        }
        ours.push(ConfigRow {
            key: format!("{}.{}", section.path(), row.name),
            value: shown(value),
            default: shown(default),
            changeable: row.reloadable,
        });
    }
    ours.extend(procedure_rows(config));
    ours.extend(theirs);
    ours
}

/// What is said of procedures, which holds for all databases: `procedures."public.payment".key`.
fn procedure_rows(config: &Config) -> impl Iterator<Item = ConfigRow> + '_ {
    config.settings.of(Section::Procedure).flat_map(|(scope, _)| {
        let said = |row: &'static Row| Some((row, config.settings.value(scope, row.name)?));
        options::rows(Section::Procedure).filter_map(said).map(|(row, value)| ConfigRow {
            key: format!("{}.{}", scope.path(), row.name),
            value: value.shown(),
            default: row.default_value().map(|value| value.shown()).unwrap_or_default(),
            changeable: row.reloadable,
        })
    })
}

fn global_rows() -> impl Iterator<Item = (Section, &'static Row)> {
    Section::ALL
        .into_iter()
        .filter(|section| !section.has_name())
        .flat_map(|section| options::rows(section).map(move |row| (section, row)))
}

fn current(config: &Config, section: Section, row: &Row) -> Option<Value> {
    config.settings.value(&Scope::fixed(section), row.name).cloned().or_else(|| row.default_value())
}

/// PgBouncer's name of an option whose values mean the same there.
fn same_in_pgbouncer(row: &Row) -> Option<&'static str> {
    let same = match row.kind {
        Kind::Flag | Kind::Count { .. } | Kind::Duration { .. } | Kind::Text => true,
        Kind::Permissions | Kind::Path => true,
        Kind::Choice(_) => row.name == "mode" && row.sections.contains(&Section::Pool),
        _ => false,
    };
    match (same, row.pgbouncer) {
        (true, [name]) => Some(name),
        _ => None,
    }
}

/// An option that differs between two configurations but waits for a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// `listen.postgres`
    pub key: String,
    /// In force until the restart; empty for none.
    pub old: String,
    pub new: String,
}

pub fn changed_unreloadable(old: &Config, new: &Config) -> Vec<Change> {
    let shown = |value: Option<Value>| value.map(|value| value.shown()).unwrap_or_default();
    global_rows()
        .filter(|(_, row)| !row.reloadable)
        .map(|(section, row)| Change {
            key: format!("{}.{}", section.path(), row.name),
            old: shown(current(old, section, row)),
            new: shown(current(new, section, row)),
        })
        .filter(|change| change.old != change.new)
        .collect()
}

/// The page `docs/configuration.md`.
pub fn reference() -> String {
    let mut page = String::from(INTRODUCTION);
    for section in Section::ALL {
        page.push_str(&format!("\n### `[{}]`\n\n{}\n\n", section.written(), section.about()));
        let rows = told(section);
        if rows.is_empty() {
            page.push_str("Takes the keys of `[pool]`.\n");
            continue;
        }
        page.push_str("| key | type | default | RELOAD | PgBouncer | meaning |\n");
        page.push_str("|---|---|---|---|---|---|\n");
        for row in rows {
            reference_row(&mut page, row);
        }
    }
    page.push_str(ENVIRONMENT);
    page.push_str(
        "\n## Errors\n\nA configuration with errors is refused whole, with all of them:\n",
    );
    page.push_str("\n```text\n");
    page.push_str(EXAMPLE);
    page.push_str("```\n\n| code | meaning |\n|---|---|\n");
    for code in Code::ALL {
        page.push_str(&format!("| {} | {} |\n", code.name(), code.meaning()));
    }
    page
}

/// Options to be told of in a section: those of pools once, under `[pool]`.
pub fn told(section: Section) -> Vec<&'static Row> {
    let is_pool = |row: &&Row| row.sections.contains(&Section::Pool);
    let all = section == Section::Pool;
    options::rows(section).filter(|row| all || !is_pool(row)).collect()
}

fn reference_row(page: &mut String, row: &Row) {
    let code = |text: &str| format!("`{text}`");
    let default = row.default_value().map(|value| code(&value.to_toml())).unwrap_or_default();
    let reload = if row.reloadable { "yes" } else { "restart" };
    let pgbouncer: Vec<String> = row.pgbouncer.iter().map(|name| code(name)).collect();
    let expected = row.kind.expected().replace('|', "\\|");
    let (name, pgbouncer, help) = (row.name, pgbouncer.join(", "), row.help);
    // Writing to a String can't fail.
    let _ =
        writeln!(page, "| `{name}` | {expected} | {default} | {reload} | {pgbouncer} | {help} |");
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Generated from crates/pondage/src/config/options.rs. To change this page, change the table and
run `UPDATE_DOCS=1 cargo test -p pondage reference_page`. -->

A configuration is a TOML file: `pondage serve -c pondage.toml`. `pondage check -c pondage.toml`
prints what it comes to, or everything that is wrong with it. An option has its value from the
first of these that gives one: flag, environment variable, file, default.

Durations carry a unit: `\"250ms\"`, `\"5s\"`, `\"10m\"` (or `\"10min\"`), `\"1h\"`, `\"1d\"`. Where `0` is
allowed it means what is said beside it. Sizes carry one, too: `\"64KiB\"`, `\"256MiB\"`. Relative file names start at the directory of the
configuration file. An unknown key is an error.

HUP and the console's RELOAD read everything again and put it into force at once, or refuse it whole.
Options marked *restart* keep their old value until then.

## Sections
";

const ENVIRONMENT: &str = "
## Environment

Every option has a variable, `PONDAGE_SECTION__KEY` with two underscores between the parts:
`PONDAGE_RUNTIME__MAX_CLIENTS=500`, `PONDAGE_LISTEN__TLS__MODE=require`,
`PONDAGE_DATABASES__APP__PASSWORD=…`, `PONDAGE_DATABASES__APP__USERS__REPORT__POOL_SIZE=5`,
`PONDAGE_PROCEDURES__PUBLIC_PAYMENT__MODE=lane`. In names of databases, users and procedures, letters
are written as capitals and whatever is no letter or digit as `_`; a name that the file does not have
is taken in lower case, but for a procedure, which the file has to have. Lists are separated by commas. A variable of
a secret (`PASSWORD`, `URL`) with `_FILE` at its end names the file that holds it. A variable that
starts with `PONDAGE_` and names no option is an error, but for those that Kubernetes makes for a
Service called `pondage`.

Where no database is configured, `DATABASE_URL` (or `DATABASE_URL_FILE`) stands for a whole
configuration, as `pondage URL` does: every database of that server can be reached by its name,
clients log in with the user and password of the URL, and that user may use the console. A URL without
password lets everybody in and is only served on addresses of this machine.
";

const EXAMPLE: &str = "\
error[P0103]: unknown key `pool_sise`
  --> pondage.toml:22:1
   |
22 | pool_sise = …
   | ^^^^^^^^^
   = help: did you mean `pool_size`?
";

#[cfg(test)]
mod tests {
    #[test]
    fn reference_page_matches_the_option_table() {
        crate::written::expect("configuration.md", &super::reference());
    }
}
