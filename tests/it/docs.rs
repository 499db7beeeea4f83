//! The manual against the code: what can be checked by reading both.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::kit::{cluster, Gateway};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below `folder` whose name ends so.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.map(|entry| entry.expect("a readable folder").path()) {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found
}

/// The pages of the manual and those in the root.
fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs"), ".md");
    let at_root = fs::read_dir(root()).expect("a readable folder");
    pages.extend(at_root.map(|entry| entry.expect("an entry").path()).filter(|path| {
        path.is_file() && path.extension().is_some_and(|extension| extension == "md")
    }));
    pages
}

/// `P0` and three digits, wherever they stand.
fn codes(text: &str) -> BTreeSet<String> {
    let is_code = |word: &[u8]| word.starts_with(b"P0") && word[2..].iter().all(u8::is_ascii_digit);
    text.as_bytes()
        .windows(5)
        .filter(|word| is_code(word))
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

#[test]
fn every_file_that_architecture_names_exists() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let tops = ["crates/", "tests/", "fuzz/", "bench/", "docs/", "packaging/"];
    let named: Vec<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| tops.iter().any(|top| name.starts_with(top)) && !name.contains(' '))
        .collect();
    assert!(named.len() > 100, "only {} file names are found", named.len());
    let missing: Vec<_> = named.iter().filter(|name| !root().join(name).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that are gone: {missing:?}");
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = read(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            let outside = link.contains("://") || file.is_empty();
            if !outside && !page.with_file_name("").join(file).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// As GitHub and mdBook make it of a heading: letters, digits, underscores, and hyphens for blanks.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut code = false;
    let headings = text.lines().filter(|line| {
        code ^= line.starts_with("```");
        !code && line.starts_with('#')
    });
    headings.map(anchor).collect()
}

#[test]
fn every_link_to_a_heading_finds_it() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = read(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((file, wanted)) = link.split_once('#') else { continue };
            let there = match file {
                "" => page.clone(),
                file => page.with_file_name("").join(file),
            };
            if link.contains("://") || !there.is_file() {
                continue;
            }
            if !anchors(&read(&there)).contains(wanted) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The site has each page of the manual once.
#[test]
fn the_summary_names_every_page_once() {
    let docs = root().join("docs");
    let text = read(&docs.join("SUMMARY.md"));
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let mut named: Vec<String> = links.map(str::to_owned).collect();
    let relative = |path: PathBuf| {
        let path = path.strip_prefix(&docs).expect("below it").to_owned();
        path.display().to_string()
    };
    let mut there: Vec<String> = files(&docs, ".md").into_iter().map(relative).collect();
    there.retain(|page| page != "SUMMARY.md");
    named.sort();
    there.sort();
    assert_eq!(named, there);
}

#[test]
fn every_code_is_explained_and_every_explained_code_exists() {
    let crates = root().join("crates");
    let mut source = files(&crates, ".rs");
    // The SQLSTATE P0001, which a simulated server raises, is none of ours.
    source.retain(|path| {
        let inside = path.strip_prefix(&crates).expect("a file in crates");
        !inside.components().any(|part| part.as_os_str() == "tests")
    });
    let known: BTreeSet<String> = source.iter().flat_map(|path| codes(&read(path))).collect();
    let manual = ["docs/errors.md", "docs/configuration.md"];
    let explained: BTreeSet<String> = manual
        .iter()
        .flat_map(|page| {
            let text = read(&root().join(page));
            text.lines().filter(|line| line.starts_with("| P0")).flat_map(codes).collect::<Vec<_>>()
        })
        .collect();
    assert!(known.len() > 40, "only {} codes are found", known.len());
    let missing: Vec<_> = known.difference(&explained).collect();
    assert!(missing.is_empty(), "docs/errors.md has to explain {missing:?}");
    let gone: Vec<_> = explained.difference(&known).collect();
    assert!(gone.is_empty(), "docs/errors.md explains what no code says: {gone:?}");
}

/// What the program logs: `event = "…"` of tracing, and its first line, which is made by hand.
fn events(source: &str) -> BTreeSet<String> {
    let shipped = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    ["event = \"", "(\"event\", \""]
        .iter()
        .flat_map(|before| shipped.split(before).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_event_of_the_log_is_explained_and_every_explained_event_is_logged() {
    let crates = root().join("crates");
    let mut source = files(&crates, ".rs");
    source.retain(|path| {
        let inside = path.strip_prefix(&crates).expect("a file in crates");
        let of_tests = |part: std::path::Component| part.as_os_str() == "tests";
        !inside.components().any(of_tests) && !path.to_string_lossy().ends_with("tests.rs")
    });
    let logged: BTreeSet<String> = source.iter().flat_map(|path| events(&read(path))).collect();
    let manual = read(&root().join("docs/log.md"));
    let rows = manual.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let explained: BTreeSet<String> = rows
        .flat_map(|cell| cell.split(['`', ',', ' ']).filter(|word| !word.is_empty()))
        .map(str::to_owned)
        .collect();
    assert!(logged.len() > 80, "only {} events are found", logged.len());
    let missing: Vec<_> = logged.difference(&explained).collect();
    assert!(missing.is_empty(), "docs/log.md has to explain {missing:?}");
    let gone: Vec<_> = explained.difference(&logged).collect();
    assert!(gone.is_empty(), "docs/log.md explains what nobody logs: {gone:?}");
}

/// Workers name their kinds of memory themselves; the tables of the console can't know them.
#[test]
fn every_row_of_show_mem_is_explained() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    let manual = read(&root().join("docs/console.md"));
    let section = manual.split("### SHOW MEM").nth(1).and_then(|rest| rest.split("\n#").next());
    let section = section.expect("a section about it");
    let rows = gateway.show("mem");
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        let name = &row["name"];
        assert!(section.contains(&format!("| `{name}` |")), "{name} in:\n{section}");
    }
}
