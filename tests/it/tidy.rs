//! The house in order: what the compiler does not check, each rule with its reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::place::workspace;

/// Which room may import which, as in ARCHITECTURE.md. Development dependencies are free.
const IMPORTS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("sql", &[]),
    ("backend", &["wire"]),
    ("cache", &["wire", "sql", "backend"]),
    ("redis", &["wire", "backend"]),
    ("pondage", &["wire", "sql", "backend", "cache", "redis"]),
    ("tests", &[]),
];

/// Crates that do IO, read clocks, log or draw random numbers, and the rooms that must do without
/// them, directly or through others.
const PURE_ROOMS: &[&str] = &["wire", "sql", "backend", "cache", "redis"];
const IMPURE_CRATES: &[&str] =
    &["mio", "tokio", "socket2", "rustls", "tracing", "log", "rand", "getrandom", "libc"];
/// Rooms that may have one of them nevertheless: the bridge to Lua needs its types and its lock.
const EXEMPT: &[(&str, &str)] = &[("redis", "libc")];

/// Files that work on bytes and events only: time is an argument, a socket somebody else's.
/// `std::time::SystemTime` as a value is fine; asking for the current one is not.
const PURE_PATHS: &[&str] = &[
    "crates/wire/src",
    "crates/sql/src",
    "crates/backend/src",
    "crates/cache/src",
    "crates/pondage/src/session",
    "crates/pondage/src/worker/plane",
    "crates/pondage/src/worker/redis",
];
const IMPURE_NAMES: &[&str] = &[
    "std::net",
    "std::os::unix::net",
    "Instant",
    "SystemTime::now",
    "mio::",
    "tokio::net",
    "tokio::time",
];

/// Beyond this a file holds more than one subject.
const LINES_MAX: usize = 900;

const SOURCE: &[&str] = &["rs", "py", "js", "go", "java", "sh", "toml", "md"];
const NOT_OURS: &[&str] = &["target", "node_modules", "corpus", "artifacts", "out", "results"];

/// Every file below `directory` with one of these endings, but for what tools put there.
fn files(directory: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = fs::read_dir(&directory);
        for entry in entries.unwrap_or_else(|e| panic!("{}: {e}", directory.display())) {
            let path = entry.expect("a directory entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && !NOT_OURS.contains(&name.as_str()) {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "no files in {}", directory.display());
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(workspace()).unwrap_or(path).display().to_string()
}

/// The names that `cargo tree` prints.
fn tree(arguments: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(workspace())
        .args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}"])
        .args(arguments)
        .output()
        .expect("cargo");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree {arguments:?}: {errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[track_caller]
fn expect_none(rule: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

#[test]
fn rooms_import_only_what_the_architecture_allows() {
    let members: BTreeSet<String> = tree(&["--workspace", "--depth", "0"])
        .into_iter()
        .filter(|name| !name.is_empty())
        .collect();
    let known: BTreeSet<String> = IMPORTS.iter().map(|(room, _)| room.to_string()).collect();
    assert_eq!(members, known, "the table of imports names every room, and no other");
    for (room, allowed) in IMPORTS {
        let direct = tree(&["-p", room, "--edges", "normal,build", "--depth", "1"]);
        let offenders: Vec<String> = direct
            .into_iter()
            .filter(|name| members.contains(name) && name != room)
            .filter(|name| !allowed.contains(&name.as_str()))
            .collect();
        expect_none(&format!("{room} must not import"), &offenders);
    }
}

#[test]
fn pure_rooms_pull_in_no_io_clock_log_or_chance() {
    for room in PURE_ROOMS {
        let all = tree(&["-p", room, "--edges", "normal"]);
        let offenders: Vec<String> = all
            .into_iter()
            .filter(|name| IMPURE_CRATES.contains(&name.as_str()))
            .filter(|name| !EXEMPT.contains(&(*room, name.as_str())))
            .collect();
        expect_none(&format!("{room} must not depend on"), &offenders);
    }
}

#[test]
fn codec_and_logic_name_no_socket_and_no_clock() {
    let mut offenders = Vec::new();
    for directory in PURE_PATHS {
        for path in files(&workspace().join(directory), &["rs"]) {
            for (number, line) in read(&path).lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                for name in IMPURE_NAMES.iter().filter(|name| names(code, name)) {
                    offenders.push(format!("{}:{}: {name}", shown(&path), number + 1));
                }
            }
        }
    }
    expect_none("state machines get bytes and time as arguments, and must not name", &offenders);
}

/// Whether `code` holds `name` as a whole word, not as a part of a longer one.
fn names(code: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(word);
        let after = !name.ends_with(':') && code[at + name.len()..].starts_with(word);
        !before && !after
    })
}

#[test]
fn no_file_has_more_than_nine_hundred_lines() {
    let offenders: Vec<String> = files(workspace(), &["rs", "py", "js", "go", "java", "sh"])
        .iter()
        .map(|path| (read(path).lines().count(), path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .map(|(lines, path)| format!("{}: {lines}", shown(path)))
        .collect();
    expect_none("split into subjects", &offenders);
}

#[test]
fn nothing_is_left_for_later() {
    // Spelled apart, because this file is searched as well.
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("todo", "!("),
        concat!("unimpl", "emented!("),
    ];
    let mut offenders = Vec::new();
    for path in files(workspace(), SOURCE) {
        for (number, line) in read(&path).lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                offenders.push(format!("{}:{}", shown(&path), number + 1));
            }
        }
    }
    expect_none("do it, or make it an issue", &offenders);
}

#[test]
fn every_source_file_is_part_of_its_crate() {
    let mut roots: Vec<PathBuf> = files(&workspace().join("crates"), &["toml"])
        .iter()
        .filter_map(|manifest| manifest.parent())
        .map(|package| package.join("src"))
        .collect();
    for tests in ["tests/it", "tests/soak", "tests/redis_diff"] {
        roots.push(workspace().join(tests));
    }
    roots.retain(|root| root.is_dir());
    let mut offenders = Vec::new();
    for root in &roots {
        for path in files(root, &["rs"]) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if !(["main", "lib"].contains(&stem.as_str()) || is_declared(&path, &stem)) {
                offenders.push(shown(&path));
            }
        }
    }
    expect_none("no `mod` declares, so nothing compiles or runs", &offenders);
}

/// Whether a file that may be the parent of module `path` declares it.
fn is_declared(path: &Path, stem: &str) -> bool {
    let directory = path.parent().expect("a file in a directory");
    let (home, module) = if stem == "mod" {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (directory.parent().expect("a module in a directory"), name)
    } else {
        (directory, stem.to_owned())
    };
    let declaration = format!("mod {module};");
    let by_path = format!("\"{module}.rs\"");
    let siblings = fs::read_dir(home).expect("a directory").flatten().map(|entry| entry.path());
    // `home.rs` beside the directory `home` may be the parent as well.
    siblings
        .chain([home.with_extension("rs")])
        .filter(|candidate| candidate.extension().is_some_and(|e| e == "rs") && candidate != path)
        .filter(|candidate| candidate.is_file())
        .any(|candidate| {
            let text = read(&candidate);
            text.lines().any(|line| line.trim_start().ends_with(&declaration))
                || text.contains(&by_path)
        })
}

#[test]
fn pages_that_a_newcomer_looks_for_are_there() {
    let missing: Vec<String> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/configuration.md",
    ]
    .into_iter()
    .filter(|page| !workspace().join(page).is_file())
    .map(str::to_owned)
    .collect();
    expect_none("missing", &missing);
}

#[test]
fn lock_files_name_no_registry_host() {
    let mut offenders = Vec::new();
    for suite in ["node", "redis-node"] {
        let lock = workspace().join("tests/drivers").join(suite).join("package-lock.json");
        let text = read(&lock);
        let resolved = text.lines().filter(|line| line.contains("\"resolved\""));
        offenders.extend(resolved.map(|line| format!("{suite}: {}", line.trim())));
    }
    expect_none("npm wrote where it downloaded from; see .npmrc beside the lock file", &offenders);
}

#[test]
fn every_skipped_test_of_a_suite_has_its_reason() {
    let mut offenders = Vec::new();
    let mut listed = 0;
    let lists = [
        "skipped-tcl.txt",
        "skipped-redis-py.txt",
        "skipped-logic.txt",
        "differences.txt",
        "differing-pgbouncer.txt",
    ];
    for list in lists {
        let text = read(&workspace().join("tests/suites").join(list));
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            listed += 1;
            let reasoned = line.split_once(" -- ").is_some_and(|(what, reason)| {
                !what.trim().is_empty() && reason.split_whitespace().count() > 1
            });
            if !reasoned {
                offenders.push(format!("{list}:{}: {line}", number + 1));
            }
        }
    }
    assert!(listed > 5, "only {listed} tests are skipped: the lists are not read");
    expect_none("write `WHAT -- REASON`", &offenders);
}
