//! Bodies that are none must be refused, and nothing may panic, whatever they hold.

use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;
use sql::procedure::{parse, read, Argument, Closure, Definition, Mode};

const BODIES: [&str; 6] = [
    include_str!("corpus/procedures/tpcc_payment.sql"),
    include_str!("corpus/procedures/tpcc_neworder.sql"),
    include_str!("corpus/procedures/tpcc_neworder_refused.sql"),
    include_str!("corpus/procedures/control.sql"),
    include_str!("corpus/procedures/cursors.sql"),
    include_str!("corpus/procedures/declarations.sql"),
];

const WORDS: [&str; 48] = [
    "BEGIN",
    "END",
    "DECLARE",
    "IF",
    "THEN",
    "ELSE",
    "LOOP",
    "FOR",
    "IN",
    "INTO",
    "STRICT",
    "EXECUTE",
    "USING",
    "RETURN",
    "QUERY",
    "CURSOR",
    "OPEN",
    "FETCH",
    "$1",
    "$99",
    "p_w",
    "receipt",
    "receipt.x",
    "%TYPE",
    "%ROWTYPE",
    "[",
    "]",
    "<<a>>",
    "::",
    "(",
    ")",
    ";",
    ",",
    ":=",
    "=",
    "ALIAS",
    "#variable_conflict",
    "EXCEPTION",
    "WHEN",
    "CASE",
    "\"x",
    "'y",
    "..",
    "$$",
    "é",
    "--",
    "/*",
    "CALL",
];

fn definition(body: usize, source: String, language: &str) -> Definition {
    let argument = |name: &str, type_name: &str, mode| Argument {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        mode,
    };
    let is_procedure = !BODIES[body].contains("RETURN ");
    let mut arguments = vec![argument("p_w", "integer", Mode::In)];
    if is_procedure {
        arguments.push(argument("p_d", "integer", Mode::InOut));
        arguments.push(argument("receipt", "payment_receipt", Mode::Out));
    }
    Definition {
        schema: "public".to_owned(),
        name: "f".to_owned(),
        language: language.to_owned(),
        source,
        arguments,
        returns: if is_procedure { String::new() } else { "text".to_owned() },
        is_procedure,
    }
}

/// The parser moves the process's standard error about while it works, so one at a time.
static PARSER: Mutex<()> = Mutex::new(());

fn parsed(definition: &Definition) -> Result<Vec<u8>, String> {
    let _alone = PARSER.lock().unwrap_or_else(PoisonError::into_inner);
    parse(definition)
}

/// One change of a text: a piece goes, a word comes, or a piece comes twice.
#[derive(Debug, Clone)]
struct Change {
    at: prop::sample::Index,
    length: usize,
    what: u8,
    word: usize,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let one = (any::<prop::sample::Index>(), 1..40usize, 0..3u8, 0..WORDS.len())
        .prop_map(|(at, length, what, word)| Change { at, length, what, word });
    prop::collection::vec(one, 0..6)
}

fn mangled(text: &str, changes: &[Change]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for change in changes {
        let from = change.at.index(letters.len() + 1);
        let to = (from + change.length).min(letters.len());
        let piece: Vec<char> = letters[from..to].to_vec();
        match change.what {
            0 => drop(letters.drain(from..to)),
            1 => drop(letters.splice(from..from, format!(" {} ", WORDS[change.word]).chars())),
            _ => drop(letters.splice(from..from, piece)),
        }
    }
    letters.into_iter().collect()
}

#[test]
fn the_corpus_is_understood() {
    for (number, source) in BODIES.iter().enumerate() {
        let definition = definition(number, (*source).to_owned(), "plpgsql");
        let bytes = parsed(&definition).unwrap_or_else(|e| panic!("body {number}: {e}"));
        let analysis = read(&definition, &bytes).unwrap_or_else(|e| panic!("body {number}: {e}"));
        assert!(!analysis.touches.is_empty(), "body {number}");
        assert!(analysis.hazards.iter().all(|hazard| !hazard.words.contains("not understood")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn mangled_bodies_are_refused_or_understood(
        body in 0..BODIES.len(),
        changes in changes(),
        language in prop::sample::select(vec!["plpgsql", "plpgsql", "plpgsql", "sql"]),
    ) {
        let source = mangled(BODIES[body], &changes);
        let definition = definition(body, source, language);
        if let Ok(bytes) = parsed(&definition) {
            if let Ok(analysis) = read(&definition, &bytes) {
                let _ = Closure::new(definition, analysis).summary();
            }
        }
    }

    #[test]
    fn damaged_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let definition = definition(0, String::new(), "plpgsql");
        prop_assert!(read(&definition, &bytes).is_err());
    }
}
