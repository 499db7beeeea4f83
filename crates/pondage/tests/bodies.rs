//! The real program parses bodies when it is started for that.

use pondage::control::bodies::{Parser, NOT_UNDERSTOOD, SUBCOMMAND};
use sql::procedure::{read, Argument, Definition, Mode};

fn definition(source: &str) -> Definition {
    let argument =
        Argument { name: "p".to_owned(), type_name: "integer".to_owned(), mode: Mode::In };
    Definition {
        schema: "public".to_owned(),
        name: "f".to_owned(),
        language: "plpgsql".to_owned(),
        source: source.to_owned(),
        arguments: vec![argument],
        returns: String::new(),
        is_procedure: true,
    }
}

fn program() -> Parser {
    Parser::of(env!("CARGO_BIN_EXE_pondage"), &[SUBCOMMAND])
}

#[tokio::test]
async fn a_body_goes_to_a_process_of_its_own_and_back() {
    let body = definition("BEGIN UPDATE t SET x = 1 WHERE a = p; END");
    let bytes = program().parse(&body).await.expect("parsed");
    let analysis = read(&body, &bytes).expect("understood");
    assert_eq!(analysis.touches.len(), 1);
    assert_eq!(analysis.touches[0].equalities.len(), 1);
}

#[tokio::test]
async fn a_body_that_is_none_is_refused_in_the_parsers_words() {
    let words = program().parse(&definition("BEGIN")).await.expect_err("no body");
    assert!(words.contains("syntax error"), "{words}");
    // As deep as bodies may be that the parser survives, and deeper.
    for depth in [200, 20_000, 100_000] {
        let source = format!("{}NULL;{}", "BEGIN ".repeat(depth), "END; ".repeat(depth));
        let words = program().parse(&definition(&source)).await.expect_err("too deep");
        assert!(!words.is_empty());
    }
}

#[tokio::test]
async fn bodies_are_parsed_side_by_side() {
    let parser = program();
    let body = definition("BEGIN DELETE FROM t WHERE a = p; END");
    let (one, two, three) =
        tokio::join!(parser.parse(&body), parser.parse(&body), parser.parse(&body));
    assert!(one.is_ok() && one == two && two == three);
}

#[tokio::test]
async fn a_program_that_knows_no_bodies_does_not_understand() {
    let other = Parser::of(env!("CARGO_BIN_EXE_pondage"), &["--version"]);
    let words = other.parse(&definition("BEGIN END")).await;
    assert_eq!(words, Err(NOT_UNDERSTOOD.to_owned()));
}
