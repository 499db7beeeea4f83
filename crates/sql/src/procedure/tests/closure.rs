//! Through functions, views and triggers.

use std::collections::BTreeMap;

use super::*;

/// What the catalogues have.
#[derive(Default)]
struct Catalogue {
    routines: BTreeMap<Name, Vec<Definition>>,
    relations: BTreeMap<Name, Relation>,
}

impl Catalogue {
    fn with(mut self, definition: Definition) -> Catalogue {
        self.routines.entry(name(&definition.name)).or_default().push(definition);
        self
    }

    fn relation(mut self, of: &str, relation: Relation) -> Catalogue {
        self.relations.insert(name(of), relation);
        self
    }

    /// Drives a closure to its end; how many names were asked for.
    fn drive(&self, root: &Definition) -> (Closure, usize) {
        let mut closure = Closure::new(root.clone(), analysed(root));
        let mut asked = 0;
        loop {
            let wanted = closure.next_wanted();
            if wanted.is_empty() {
                return (closure, asked);
            }
            asked += wanted.len();
            for one in wanted {
                match one {
                    Wanted::Routine(name) => {
                        let found = self.routines.get(&name).cloned().unwrap_or_default();
                        let read = |definition: Definition| {
                            let bytes = parsed(&definition);
                            let analysis = bytes.and_then(|bytes| read(&definition, &bytes));
                            (definition, analysis)
                        };
                        closure.give_routine(&name, found.into_iter().map(read).collect());
                    }
                    Wanted::Relation(name) => {
                        closure.give_relation(&name, self.relations.get(&name).cloned());
                    }
                }
            }
        }
    }
}

fn told(summary: &Summary) -> Vec<String> {
    summary.hazards.iter().map(Hazard::to_string).collect()
}

#[test]
fn hazards_are_found_through_functions_views_and_triggers() {
    let root = procedure("p int", "PERFORM g(p);\nUPDATE t SET x = 1;\nPERFORM 1 FROM v;");
    let lock = "BEGIN\nPERFORM pg_advisory_lock(1);\nRETURN NEW;\nEND";
    let mut t = table("a x", "a");
    t.triggers = vec![name("fired")];
    let mut read = table("b", "b");
    read.triggers = vec![name("not_fired")];
    let view = Relation {
        kind: RelationKind::View,
        view: Some("SELECT k(b) FROM read".to_owned()),
        ..Relation::default()
    };
    let catalogue = Catalogue::default()
        .with(function("g", "p int", "void", "BEGIN\n\nPERFORM h(p);\nEND"))
        .with(function("h", "p int", "void", "BEGIN\nLISTEN x;\nPERFORM g(1);\nEND"))
        .with(function("fired", "", "trigger", lock))
        .with(function("not_fired", "", "trigger", lock))
        .with(function("k", "p int", "void", "BEGIN PERFORM pg_sleep(1); END"))
        .relation("t", t)
        .relation("read", read)
        .relation("v", view);
    let (closure, _) = catalogue.drive(&root);
    let summary = closure.summary();
    let mut hazards = told(&summary);
    hazards.sort();
    assert_eq!(
        hazards,
        [
            "fired: line 2: pg_advisory_lock() takes or frees a lock of the session",
            "g: h: line 2: LISTEN: changes what the session listens to",
            "v: k: line 1: pg_sleep() sleeps; all that ride behind it wait",
        ]
    );
    assert_eq!(summary.ride(), Ride::Never);
}

#[test]
fn footprints_are_found_through_calls() {
    // A CALL may write to what it is passed, so nothing is known of what is passed on elsewhere.
    let root = procedure("x int, y int", "CALL g(3, x);\nPERFORM g(x, y);\nPERFORM g(y, x);");
    let inner = function("g", "a int, b int", "", "BEGIN\nUPDATE t SET x = 1 WHERE k = b;\nEND");
    let catalogue = Catalogue::default().with(inner).relation("t", table("k x", "k"));
    let (closure, _) = catalogue.drive(&root);
    let found = footprints(&closure.summary().touches, closure.facts());
    let columns: Vec<_> = found.iter().map(|one| (one.line, one.columns.clone())).collect();
    let expected = |place| vec![("k".to_owned(), Operand::Argument(place))];
    assert_eq!(columns, [(3, expected(0)), (4, expected(1))]);
}

#[test]
fn the_definition_says_what_a_call_writes_to() {
    let source = "CALL g(p);\nUPDATE t SET x = 1 WHERE k = p;";
    let root = procedure("p int", source);
    for (arguments, found) in [("a int", 1), ("INOUT a int", 0), ("OUT a int", 0), ("", 0)] {
        let inner = function("g", arguments, "", "BEGIN NULL; END");
        let catalogue = Catalogue::default().with(inner).relation("t", table("k x", "k"));
        let (closure, _) = catalogue.drive(&root);
        let touches = closure.summary().touches;
        assert_eq!(footprints(&touches, closure.facts()).len(), found, "{arguments}");
        // Who does not ask does not know.
        let own = analysed(&root).touches;
        assert_eq!(footprints(&own, closure.facts()), []);
    }
}

#[test]
fn a_wrapper_has_the_key_of_what_it_calls() {
    let list = "p_w int, p_d int, p_c int, p_items int[], p_supply int[], p_quantity int[]";
    let body = include_str!("../../../tests/corpus/procedures/tpcc_neworder.sql");
    let inner = function("neworder", list, "order_receipt", body);
    let body = include_str!("../../../tests/corpus/procedures/tpcc_neworder_refused.sql");
    let root = function("neworder_refused", list, "text", body);
    let district = table("d_w_id d_id d_next_o_id", "d_w_id d_id");
    let catalogue = Catalogue::default().with(inner).relation("district", district);
    let (closure, _) = catalogue.drive(&root);
    let (analysis, summary) = (analysed(&root), closure.summary());
    let one = Procedure { definition: &root, analysis: &analysis, summary: &summary };
    let derived = derive(&[one], closure.facts());
    assert_eq!((&derived[0].key, summary.handles_errors), (&vec![0, 1], true));
    assert!(!summary.catches_lock_timeout);
}

#[test]
fn handlers_of_called_functions_count() {
    let body = "BEGIN NULL; EXCEPTION WHEN others THEN NULL; END";
    let catalogue = Catalogue::default().with(function("g", "", "void", body));
    let (closure, _) = catalogue.drive(&procedure("", "PERFORM g();"));
    let summary = closure.summary();
    assert!(summary.handles_errors && summary.catches_lock_timeout);
    assert_eq!(summary.ride(), Ride::Shared);
}

#[test]
fn what_is_not_understood_is_told() {
    let catalogue = Catalogue::default().with(function("g", "", "void", "BEGIN"));
    let (closure, _) = catalogue.drive(&procedure("", "PERFORM g();"));
    let summary = closure.summary();
    assert_eq!(summary.ride(), Ride::Train);
    assert!(told(&summary)[0].starts_with("g: Invalid statement"), "{:?}", told(&summary));
    let root = procedure("", "PERFORM g();");
    let unasked = Closure::new(root.clone(), analysed(&root)).summary();
    assert_eq!(told(&unasked), ["g was not looked into"]);
}

#[test]
fn what_relations_are_is_told() {
    let plain = table("a", "a");
    let cases = [
        (Relation { has_rules: true, ..plain.clone() }, "t has rules that rewrite statements"),
        (Relation { temporary: true, ..plain.clone() }, "t is a temporary table of the session"),
        (Relation { kind: RelationKind::Foreign, ..plain.clone() }, "t is on another server"),
    ];
    for (relation, words) in cases {
        let catalogue = Catalogue::default().relation("t", relation);
        let (closure, _) = catalogue.drive(&procedure("", "DELETE FROM t;\nPERFORM 1 FROM t;"));
        assert_eq!(told(&closure.summary()), [words]);
    }
}

#[test]
fn cycles_and_endless_chains_end() {
    let mut cycle = Catalogue::default();
    for (one, other) in [("g", "h"), ("h", "k"), ("k", "g"), ("k", "k")] {
        cycle = cycle.with(function(one, "", "void", &format!("BEGIN PERFORM {other}(); END")));
    }
    let (closure, asked) = cycle.drive(&procedure("", "PERFORM g(); PERFORM g();"));
    assert_eq!((asked, told(&closure.summary())), (3, Vec::new()));

    let mut chain = Catalogue::default();
    for number in 0..40 {
        let body = format!("BEGIN PERFORM g{}(); END", number + 1);
        chain = chain.with(function(&format!("g{number}"), "", "void", &body));
    }
    let (closure, asked) = chain.drive(&procedure("", "PERFORM g0();"));
    assert_eq!(asked, DEPTH_MAX);
    let hazards = told(&closure.summary());
    assert_eq!(
        hazards.last().map(String::as_str),
        Some("too many objects to look into, g16 among those left out")
    );

    let calls: Vec<String> = (0..400).map(|number| format!("PERFORM w{number}();")).collect();
    let (closure, asked) = Catalogue::default().drive(&procedure("", &calls.join("\n")));
    assert_eq!(asked, OBJECTS_MAX);
    assert_eq!(closure.summary().ride(), Ride::Train);
}

#[test]
fn one_name_may_mean_two_tables_to_two_procedures() {
    let titled = |schema: &str| {
        let title = Some(Name { schema: Some(schema.to_owned()), name: "t".to_owned() });
        Catalogue::default().relation("t", Relation { title, ..table("a x", "a") })
    };
    let root = procedure("p int", "UPDATE t SET x = 1 WHERE a = p;");
    let mut all = Facts::default();
    for schema in ["one", "other"] {
        let (summary, facts) = titled(schema).drive(&root).0.by_title();
        assert_eq!(summary.touches[0].name.to_string(), format!("{schema}.t"));
        assert!(facts.confirms(&summary.touches[0].equalities[0].provided));
        all.merge(&facts);
        let footprint = &footprints(&summary.touches, &all)[0];
        assert_eq!(footprint.table.to_string(), format!("{schema}.t"));
    }
}
