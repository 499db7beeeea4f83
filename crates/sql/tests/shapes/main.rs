//! The scanner and the analysis against PostgreSQL's parser, with PostgreSQL's regression SQL and
//! with generated statements.
//!
//! The claim to be proven: texts of one shape have the same parse tree but for constants, and
//! those have the same types. Then the shape decides whatever the parser and the catalogues decide.

mod check;
mod corpus;
mod dice;
mod generated;
mod trees;

use std::collections::HashMap;

use check::{check, Outcome};
use dice::Dice;

#[test]
fn shapes_of_postgresqls_regression_tests_decide_their_trees() {
    let mut trees = HashMap::new();
    let mut repeated = 0;
    let mut refused = 0;
    let mut unparsed = 0;
    let mut utility = 0;
    let mut plain = 0;
    let mut parameters = 0;
    let statements = corpus::statements();
    for (number, statement) in statements.iter().enumerate() {
        match check(statement, &mut Dice::new(number as u64)) {
            Outcome::Refused => refused += 1,
            Outcome::Unparsed => unparsed += 1,
            Outcome::Utility => utility += 1,
            Outcome::Plain { parameters: found, shape, tree } => {
                plain += 1;
                parameters += found;
                // Not only with values that this test made up.
                let first = trees.entry(shape).or_insert_with(|| (tree.clone(), statement));
                repeated += usize::from(first.1 != statement);
                assert!(first.0 == tree, "{}\n{statement}", first.1);
            }
        }
    }
    println!(
        "{} statements: {plain} checked, with {parameters} literals that may become parameters, \
         {repeated} with another one's shape; {utility} utility, {unparsed} unparsed, {refused} \
         refused",
        statements.len()
    );
    assert!(plain > 10_000, "{plain} were checked");
    assert!(repeated > 2_000, "{repeated} had the shape of another one");
    assert!(parameters > 5_000, "{parameters} literals may become parameters");
    assert!(utility > 2_000, "{utility} were utility statements");
    assert!(unparsed * 20 < statements.len(), "{unparsed} did not parse");
    assert!(refused * 5 < statements.len(), "{refused} were refused");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1_000))]

    #[test]
    fn shapes_of_generated_statements_decide_their_trees(seed: u64) {
        let mut dice = Dice::new(seed);
        let statement = generated::statement(&mut dice);
        check(&statement, &mut dice);
    }

    /// Nearly none of these is a statement; the scanner must not think otherwise.
    #[test]
    fn heaps_of_tokens_are_no_more_than_one_statement(seed: u64) {
        let mut dice = Dice::new(seed);
        let statement = generated::heap(&mut dice);
        check(&statement, &mut dice);
    }
}

/// So that the property test above tests something.
#[test]
fn most_generated_statements_are_checked() {
    let plain = (0..1_000)
        .filter(|seed| {
            let mut dice = Dice::new(*seed);
            let statement = generated::statement(&mut dice);
            matches!(check(&statement, &mut dice), Outcome::Plain { .. })
        })
        .count();
    assert!(plain > 500, "{plain} of 1000");
}
