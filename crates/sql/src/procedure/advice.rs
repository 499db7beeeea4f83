//! Words for people: what was found, and what to move.

use std::collections::BTreeSet;

use super::footprints::Footprint;
use super::hazards::Ride;
use super::lanes::{Derived, Procedure};
use super::{Definition, Operand, Step, TouchKind};

impl Derived {
    /// For EXPLAIN PROCEDURE, a line each.
    pub fn lines(&self, procedure: &Procedure) -> Vec<String> {
        let definition = procedure.definition;
        let mut lines: Vec<String> =
            self.footprints.iter().map(|footprint| footprint.told(definition)).collect();
        lines.push(match self.key.is_empty() {
            true => format!("no key: {}", self.why),
            false => {
                let mut line = format!("key {}", arguments(definition, &self.key));
                for also in &self.also {
                    line.push_str(&format!(" also {}", arguments(definition, also)));
                }
                format!("{line}: {}", self.why)
            }
        });
        let summary = procedure.summary;
        for hazard in &summary.hazards {
            lines.push(format!("{hazard} ({})", consequence(hazard.kind.ride())));
        }
        if summary.catches_lock_timeout {
            lines.push(
                "an exception handler may catch the error of a lock_timeout: only calls of one \
                 key share a train"
                    .to_owned(),
            );
        } else if summary.handles_errors {
            lines.push("it has an exception handler".to_owned());
        }
        lines.extend(self.advice.clone());
        lines
    }
}

fn consequence(ride: Ride) -> &'static str {
    match ride {
        Ride::Shared => "may ride",
        Ride::Train => "may ride in a train, not in a shared transaction",
        Ride::Last => "rides last or alone",
        Ride::Never => "never rides",
    }
}

/// `(p_w, p_d)`.
pub(super) fn arguments(definition: &Definition, places: &[usize]) -> String {
    let names: Vec<String> = places.iter().map(|place| definition.argument_name(*place)).collect();
    format!("({})", names.join(", "))
}

fn verb(kind: TouchKind) -> &'static str {
    match kind {
        TouchKind::Read => "SELECT",
        TouchKind::Lock => "SELECT FOR UPDATE",
        TouchKind::Insert => "INSERT",
        TouchKind::Update => "UPDATE",
        TouchKind::Delete => "DELETE",
        TouchKind::Merge => "MERGE",
        TouchKind::Truncate => "TRUNCATE",
        TouchKind::LockTable => "LOCK",
        TouchKind::Ddl => "DDL",
        TouchKind::Call => "CALL",
        TouchKind::Dynamic => "EXECUTE",
    }
}

impl Footprint {
    /// `line 7: UPDATE public.warehouse: w_id = p_w; one row`, of this definition.
    pub fn told(&self, definition: &Definition) -> String {
        let equal = |(column, operand): &(String, Operand)| match operand {
            Operand::Argument(place) => format!("{column} = {}", definition.argument_name(*place)),
            Operand::Constant(value) => format!("{column} = {value}"),
        };
        let columns: Vec<String> = self.columns.iter().map(equal).collect();
        format!(
            "line {}: {} {}: {}{}{}{}",
            self.line,
            verb(self.kind),
            self.table,
            columns.join(", "),
            if self.complete { "; one row" } else { "; the first columns of a key" },
            if self.in_loop { "; in a loop" } else { "" },
            if self.in_branch { "; under a condition" } else { "" },
        )
    }
}

/// The statement that holds the hottest row, if it can stand further down: `move UPDATE warehouse
/// (line 8) last`.
pub(super) fn reorder(procedure: &Procedure, footprints: &[Footprint]) -> Option<String> {
    let steps = &procedure.analysis.steps;
    // The fewer columns name one row, the more calls want it.
    let hot = footprints
        .iter()
        .filter(|one| one.complete && !one.in_loop && !one.in_branch)
        .filter(|one| [TouchKind::Update, TouchKind::Delete].contains(&one.kind))
        .min_by_key(|one| (one.columns.len(), one.order))?;
    let touches = &procedure.analysis.touches;
    let holds = |step: &Step| {
        let mut own = step.touches.iter().filter_map(|place| touches.get(*place));
        step.plain && own.any(|touch| touch.order == hot.order && touch.kind == hot.kind)
    };
    let from = steps.iter().position(holds)?;
    let moved = &steps[from];
    // What a later row depends on, or a change of it, stays in its order.
    let tables = |step: &Step| -> BTreeSet<String> {
        let own = step.touches.iter().filter_map(|place| touches.get(*place));
        let own = own.filter(|touch| touch.kind != TouchKind::Call);
        own.map(|touch| touch.name.name.clone()).collect()
    };
    let own = tables(moved);
    let mut to = from;
    let mut stopped = None;
    for (place, step) in steps.iter().enumerate().skip(from + 1) {
        let reads_found = step.uses.contains("found") && !works(step, touches);
        let tied = step.leaves
            || reads_found
            || meets(&step.uses, &moved.assigns)
            || meets(&moved.uses, &step.assigns)
            || meets(&step.assigns, &moved.assigns)
            || !tables(step).is_disjoint(&own)
            || tables(step).contains("");
        if tied {
            stopped = Some(step);
            break;
        }
        to = place;
    }
    // Only what waits for locks or reads rows is worth standing in front.
    let passed = &steps[from + 1..=to];
    let gained = passed.iter().filter(|step| works(step, touches)).count();
    if gained == 0 {
        return None;
    }
    let what = format!("{} {} (line {})", verb(hot.kind), hot.table.name, hot.line);
    let held = format!("its row is then held for {gained} fewer statement{}", plural(gained));
    Some(match stopped {
        None => format!("move {what} last: {held}"),
        Some(step) if step.plain && step.leaves => format!("move {what} last: {held}"),
        Some(step) => {
            let line = step.line;
            format!("move {what} to just before line {line}, which depends on it: {held}")
        }
    })
}

fn plural(count: usize) -> &'static str {
    if count == 1 {
        ""
    } else {
        "s"
    }
}

/// It runs SQL on a table.
fn works(step: &Step, touches: &[super::Touch]) -> bool {
    let mut own = step.touches.iter().filter_map(|place| touches.get(*place));
    own.any(|touch| touch.kind != TouchKind::Call)
}

/// Whether two sets of names have a variable in common, a field being a part of its record.
fn meets(names: &BTreeSet<String>, others: &BTreeSet<String>) -> bool {
    let same = |one: &str, other: &str| {
        let (record, parent) = (one.split('.').next(), other.split('.').next());
        one == other || (record == parent && (!one.contains('.') || !other.contains('.')))
    };
    others.iter().any(|other| names.iter().any(|name| same(name, other)))
}
