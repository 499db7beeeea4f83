//! What parser and catalogues would say of the statements of the simulated language.

use std::sync::Arc;

use cache::written::{Source, Written};
use pondage::procedures::{Body, Call, Known, Procedure, Procedures};
use pondage::route::{Share, Verdict, Writes};
use rand::rngs::StdRng;
use rand::Rng;
use sql::procedure::{Analysis, Argument, Definition, Facts, Mode, Summary};
use sql::{Scan, Use};

use crate::data::read::{cacheable, is_read, oid, tables};

/// A verdict that is right, though not always the best that could be given; but for what is
/// forgotten on purpose, tables and settings.
pub fn judge(
    random: &mut StdRng,
    text: &[u8],
    forgets: [bool; 3],
    catalogue: &[cache::mirror::definition::Definition],
) -> Result<Box<Verdict>, String> {
    if random.random_bool(0.03) {
        return Err("the database can't be reached".to_owned());
    }
    let mut scan = Scan::new();
    if !scan.scan(text) {
        return Err("a text without a shape was to be judged".to_owned());
    }
    let text = String::from_utf8_lossy(text);
    let share = match text.split_whitespace().next().unwrap_or("") {
        "echo" | "rows" | "big" | "show" | "sleep" | "fail" if random.random_bool(0.9) => {
            Share::Batch
        }
        "echo" | "rows" | "big" | "show" | "sleep" | "fail" | "notice" => Share::Pipeline,
        _ if is_read(&text) => Share::Batch,
        "write" | "later" | "put" | "del" => Share::Write,
        _ => Share::Alone,
    };
    // Reads with other constants in their texts share nothing.
    let stays = random.random_bool(if is_read(&text) { 0.05 } else { 0.2 });
    let mut used = |oid| match stays && random.random_bool(0.5) {
        true => Use::Fixed,
        false => Use::Parameter(oid),
    };
    let uses = scan.literals().iter().map(|literal| used(literal.kind.oid())).collect();
    let parameters = share != Share::Alone && random.random_bool(0.9);
    let cache = match is_read(&text) {
        true => Ok(cacheable(&text, forgets[0], forgets[1], catalogue)),
        false => Err("the answers depend on more than data".to_owned()),
    };
    let literals = parameters.then_some(uses);
    let writes = match share {
        Share::Batch | Share::Pipeline => Writes::Nothing,
        _ if forgets[2] => Writes::Nothing,
        // Not always the best.
        Share::Write if random.random_bool(0.9) => writes(&text),
        Share::Write | Share::Alone => Writes::Anything,
    };
    let reason = String::new();
    let call = called(random, &text);
    Ok(Box::new(Verdict { share, reason, literals, cache, writes, call, row: None }))
}

/// Some plain writes are calls of a procedure whose key is how long they wait, or what they write.
fn called(random: &mut StdRng, text: &str) -> Option<Arc<Call>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words[0] != "write" || words.len() != 3 || random.random_bool(0.3) {
        return None;
    }
    let source = |word: &str, place: u32| match word.strip_prefix('$') {
        Some(number) => number.parse().ok().map(Source::Parameter),
        None => Some(Source::Literal(place)),
    };
    let arguments = vec![source(words[1], 0), source(words[2], 1)];
    let modes = ["train", "train", "batch", "lane", "off"];
    let said = [
        "key=lock",
        "key=mark",
        "key=lock also=mark",
        "key=lock durable_ack=each",
        "key=lock max_train=2 retry=0",
        "retry=1",
    ];
    let said = said[random.random_range(0..said.len())];
    let mode = modes[random.random_range(0..modes.len())];
    let procedure = procedure(format!("@pondage {said} mode={mode}"), random.random_bool(0.8));
    Some(Arc::new(Call { procedure, arguments }))
}

/// `understood`: no handler in its body takes errors of locks.
fn procedure(comment: String, understood: bool) -> Arc<Procedure> {
    let argument = |name: &str, type_name: &str| Argument {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        mode: Mode::In,
    };
    let definition = Definition {
        schema: "public".to_owned(),
        name: "write".to_owned(),
        arguments: vec![argument("lock", "integer"), argument("mark", "text")],
        ..Definition::default()
    };
    let summary = Summary {
        touches: Vec::new(),
        hazards: Vec::new(),
        handles_errors: false,
        catches_lock_timeout: false,
    };
    let body = Body { analysis: Analysis::default(), summary, facts: Facts::default() };
    let body = if understood { Ok(body) } else { Err("written in C".to_owned()) };
    let known = Known { oid: 1, definition, types: vec![23, 25], comment: Some(comment), body };
    Procedures::default().learn("app", known).expect("there is room")
}

/// Of a plain write.
fn writes(text: &str) -> Writes {
    let words: Vec<&str> = text.split_whitespace().collect();
    if !["put", "del"].contains(&words[0]) {
        // Nothing that is looked for.
        return Writes::Nothing;
    }
    let [table] = tables(words.get(1).unwrap_or(&""))[..] else { return Writes::Anything };
    let key = words.get(2).and_then(|word| match word.strip_prefix('$') {
        Some(number) => number.parse().ok().map(Source::Parameter),
        None => word.parse::<i32>().ok().map(|_| Source::Literal(0)),
    });
    Writes::Rows(Arc::new(Written {
        table: oid(table),
        inserts: false,
        fixed: key.into_iter().map(|source| ("k".to_owned(), source)).collect(),
        // What its group was before is not said.
        assigned: vec!["g".to_owned()],
    }))
}
