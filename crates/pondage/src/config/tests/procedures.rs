//! `[procedures."schema.name"]`: what may be said of calls, and what is refused.

use super::super::{changed_unreloadable, effective, show_config, Calls, Config};
use super::super::{DurableAck, ProcedureMode, ProcedureOptions};

fn valid(text: &str) -> Config {
    Config::from_text(text).unwrap_or_else(|report| panic!("refused:\n{text}\n{report}"))
}

fn refused_with(text: &str, variables: &[(&str, &str)], expected: &[&str]) {
    let variables = super::environment(variables);
    let result = Config::from_text_and(text, variables, Default::default());
    let report = result.err().unwrap_or_else(|| panic!("not refused:\n{text}")).to_string();
    for part in expected {
        assert!(report.contains(part), "{part}:\n{report}");
    }
}

/// Of a section with these lines.
fn refused(lines: &str, expected: &[&str]) {
    let text = format!("[databases.app]\n[procedures.\"public.payment\"]\n{lines}\n");
    refused_with(&text, &[], expected);
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const PAYMENT: &str = "[databases.app]\n[procedures.\"public.payment\"]\nkey = [\"p_w\"]\n\
    also = [\"p_cw\"]\nmode = \"train\"\ndurable_ack = \"each\"\nmax_train = 16\nretry = 0\n";

#[test]
fn everything_may_be_said_of_a_procedure_and_nothing_has_to_be() {
    let config = valid(&format!("{PAYMENT}[procedures.\"shop.order\"]\n"));
    let payment = ProcedureOptions {
        key: names(&["p_w"]),
        also: names(&["p_cw"]),
        mode: Some(ProcedureMode::Train),
        durable_ack: Some(DurableAck::Each),
        max_train: Some(16),
        retry: Some(0),
    };
    assert_eq!(config.procedures["public.payment"], payment);
    assert_eq!(config.procedures["shop.order"], ProcedureOptions::default());
    assert_eq!(config.procedures.len(), 2);
}

#[test]
fn a_database_or_a_user_says_which_calls_travel() {
    let config = valid(
        "[pool]\nprocedures = \"auto\"\n[databases.app]\n[databases.web]\nprocedures = \"off\"\n\
         [databases.app.users.report]\nprocedures = \"declared\"\n",
    );
    let calls = |database, user| config.pool(database, user).expect("known").procedures;
    assert_eq!(calls("app", "a"), Calls::Auto);
    assert_eq!(calls("web", "a"), Calls::Off);
    assert_eq!(calls("app", "report"), Calls::Declared);
    let default = valid("[databases.app]\n").pool("app", "a").expect("known").procedures;
    assert_eq!(default, Calls::Declared);
}

#[test]
fn what_is_shown_is_what_was_said() {
    let config = valid(PAYMENT);
    let rows = show_config(&config);
    let row = |key: &str| {
        let row = rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("no {key}"));
        (row.value.as_str(), row.default.as_str(), row.changeable)
    };
    assert_eq!(row("procedures.\"public.payment\".key"), ("p_w", "", true));
    assert_eq!(row("procedures.\"public.payment\".max_train"), ("16", "64", true));
    assert_eq!(row("procedures.\"public.payment\".mode"), ("train", "train", true));
    assert_eq!(row("pool.procedures"), ("declared", "declared", true));
    let printed = effective(&config);
    assert!(printed.contains("[procedures.\"public.payment\"]\n"), "{printed}");
    assert_eq!(valid(&printed).procedures, config.procedures);
    assert!(changed_unreloadable(&valid("[databases.app]\n"), &config).is_empty());
}

#[test]
fn a_name_has_a_schema() {
    let section = |name: &str| format!("[databases.app]\n[procedures.\"{name}\"]\n");
    let help = "write `[procedures.\"public.payment\"]`";
    for (name, why) in [
        ("payment", "the procedure \"payment\" has no schema"),
        ("public.", "\"public.\" can't be the name of a procedure"),
        (".payment", "\".payment\" can't be the name of a procedure"),
        (&format!("public.{}", "x".repeat(64)), "can't be the name of a procedure"),
    ] {
        refused_with(&section(name), &[], &["P0115", ":2:13", why, help]);
    }
}

#[test]
fn what_is_no_option_or_no_value_is_refused() {
    refused("kay = [\"p_w\"]", &["P0103", ":3:1", "unknown key `kay`", "did you mean `key`?"]);
    refused("mod = \"off\"", &["P0103", "did you mean `mode`?"]);
    refused(
        "mode = \"fast\"",
        &["P0105", ":3:8", "`mode` is \"fast\"; expected one of off, lane, train, batch"],
    );
    refused("durable_ack = true", &["P0104", "`durable_ack` is true"]);
    refused("durable_ack = \"no\"", &["P0105", "expected one of tail, each"]);
    refused("max_train = 0", &["P0105", "a whole number from 1 to 256"]);
    refused("max_train = 257", &["P0105", "a whole number from 1 to 256"]);
    refused("retry = -1", &["P0105", "a whole number from 0 to 100"]);
    refused("key = 5", &["P0104", "a list of names"]);
    refused("also = [\"p_cw\"]", &["P0110", ":3:8", "`also` needs a `key`"]);
    refused(
        "key = [\"a\", \"b\"]\nalso = [\"c\"]",
        &["P0110", ":4:8", "`also` needs 2 parameters, as `key` has, or a multiple"],
    );
    refused(
        "key = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\"]",
        &["P0110", ":3:7", "a key has at most 8 parameters"],
    );
    refused_with("[procedure.\"public.payment\"]\n", &[], &["P0102", "did you mean `procedures`?"]);
    refused_with(
        "[databases.app]\n[pool]\nprocedures = \"all\"\n",
        &[],
        &["P0105", "`procedures` is \"all\"; expected one of off, declared, auto"],
    );
    refused_with(
        "[databases.app]\n[pool]\ndurable_ack = \"each\"\n",
        &[],
        &["P0103", "`durable_ack` may stand in `[procedures.\"SCHEMA.NAME\"]`"],
    );
}

#[test]
fn variables_say_it_of_procedures_that_the_file_has() {
    let variables = super::environment(&[
        ("PONDAGE_PROCEDURES__PUBLIC_PAYMENT__MODE", "lane"),
        ("PONDAGE_PROCEDURES__PUBLIC_PAYMENT__KEY", "p_w,p_d"),
        ("PONDAGE_PROCEDURES__PUBLIC_PAYMENT__ALSO", "p_cw,p_cd"),
        ("PONDAGE_POOL__PROCEDURES", "auto"),
    ]);
    let config = Config::from_text_and(PAYMENT, variables, Default::default()).expect("valid");
    let payment = &config.procedures["public.payment"];
    assert_eq!(payment.mode, Some(ProcedureMode::Lane));
    assert_eq!((&payment.key, &payment.also), (&names(&["p_w", "p_d"]), &names(&["p_cw", "p_cd"])));
    assert_eq!(payment.max_train, Some(16));
    assert_eq!(config.pool("app", "a").expect("known").procedures, Calls::Auto);
    refused_with(
        PAYMENT,
        &[("PONDAGE_PROCEDURES__PUBLIC_ORDER__MODE", "lane")],
        &[
            "P0116",
            "`PUBLIC_ORDER` stands for no procedure that the configuration file has",
            "name it there: `[procedures.\"schema.name\"]`",
        ],
    );
    refused_with(
        PAYMENT,
        &[("PONDAGE_PROCEDURES__PUBLIC_PAYMENT__MOD", "lane")],
        &["names no option", "did you mean PONDAGE_PROCEDURES__PUBLIC_PAYMENT__MODE?"],
    );
    refused_with(
        "[databases.app]\n[procedures.\"a.b_c\"]\n[procedures.\"a_b.c\"]\n",
        &[("PONDAGE_PROCEDURES__A_B_C__MODE", "lane")],
        &["`A_B_C` stands for both", "set this in the configuration file"],
    );
}
