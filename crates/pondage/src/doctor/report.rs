//! An examination for people, and for programs.

use std::fmt::Write;

use serde_json::{json, Value};

use super::finding::{Examination, Examined, Finding, Weight};
use crate::cli::exit;

/// The exit code of all examinations together: the worst of them counts.
pub fn code(all: &[Examination]) -> u8 {
    let of = |one: &Examination| match &one.checks {
        Err(unreached) if unreached.refused() => exit::NO_PERMISSION,
        Err(_) => exit::UNAVAILABLE,
        Ok(checks) => match checks.iter().filter_map(Examined::worst).max() {
            Some(Weight::Warning | Weight::Problem) => exit::FAILED,
            Some(Weight::Note) | None => exit::FINE,
        },
    };
    all.iter().map(of).max().unwrap_or(exit::FINE)
}

/// For a terminal.
pub fn text(all: &[Examination]) -> String {
    let mut out = String::new();
    for one in all {
        put_examination(&mut out, one);
    }
    out
}

// Strings take all that is written to them.
fn put_examination(out: &mut String, one: &Examination) {
    let Examination { database, user, server, checks } = one;
    let _ = writeln!(out, "database \"{database}\" as \"{user}\" at {server}\n");
    let checks = match checks {
        Err(unreached) => {
            let _ = writeln!(out, "  problem  connection    {}", unreached.message);
            if let Some(hint) = &unreached.hint {
                let _ = writeln!(out, "{:25}hint: {hint}", "");
            }
            out.push('\n');
            return;
        }
        Ok(checks) => checks,
    };
    for examined in checks {
        put_examined(out, examined);
    }
    let count = |weight| {
        let findings = checks.iter().flat_map(|examined| &examined.findings);
        findings.filter(|finding| finding.weight == weight).count()
    };
    let unseen = checks.iter().filter(|examined| examined.standing.is_err()).count();
    let _ = writeln!(
        out,
        "\n{}, {}, {}; {} examined{}\n",
        counted(count(Weight::Problem), "problem"),
        counted(count(Weight::Warning), "warning"),
        counted(count(Weight::Note), "note"),
        counted(checks.len() - unseen, "thing"),
        match unseen {
            0 => String::new(),
            unseen => format!(", {unseen} could not be"),
        }
    );
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

fn put_examined(out: &mut String, examined: &Examined) {
    let Examined { check, standing, findings } = examined;
    match standing {
        Err(why) => {
            let _ = writeln!(out, "  unseen   {check:<14}{why}");
        }
        Ok(standing) if findings.is_empty() => {
            let _ = writeln!(out, "  ok       {check:<14}{standing}");
        }
        Ok(_) => {}
    }
    for finding in findings {
        put_finding(out, check, finding);
    }
}

fn put_finding(out: &mut String, check: &str, finding: &Finding) {
    let Finding { weight, what, effect, fix, verify } = finding;
    let _ = writeln!(out, "  {:<9}{check:<14}{what}", weight.word());
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(out, "{:17}{name:<8}{text}", "");
        }
    };
    line("effect", effect);
    for (at, text) in fix.iter().enumerate() {
        line(if at == 0 { "run" } else { "" }, text);
    }
    line("then", verify);
}

/// For programs: all of it, with the exit code.
pub fn json(all: &[Examination]) -> String {
    let examinations: Vec<Value> = all.iter().map(examination).collect();
    let whole = json!({ "exit_code": code(all), "databases": examinations });
    let mut text = serde_json::to_string_pretty(&whole).unwrap_or_default();
    text.push('\n');
    text
}

fn examination(one: &Examination) -> Value {
    let Examination { database, user, server, checks } = one;
    let mut told = json!({ "database": database, "user": user, "server": server });
    match checks {
        Ok(checks) => told["checks"] = checks.iter().map(examined).collect(),
        Err(unreached) => {
            told["error"] = json!({
                "sqlstate": unreached.code, "message": unreached.message, "hint": unreached.hint,
            });
        }
    }
    told
}

fn examined(examined: &Examined) -> Value {
    let Examined { check, standing, findings } = examined;
    let state = match (standing, examined.worst()) {
        (Err(_), _) => "unseen",
        (Ok(_), None) => "ok",
        (Ok(_), Some(weight)) => weight.word(),
    };
    let (Ok(standing) | Err(standing)) = standing;
    let findings: Vec<Value> = findings
        .iter()
        .map(|Finding { weight, what, effect, fix, verify }| {
            json!({
                "weight": weight.word(), "what": what, "effect": effect, "run": fix, "then": verify,
            })
        })
        .collect();
    json!({ "check": check, "state": state, "standing": standing, "findings": findings })
}
