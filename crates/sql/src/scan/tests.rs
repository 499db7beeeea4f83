use super::*;

/// The shape with `4`, `8`, `n` and `t` in braces for the literals; None if refused.
fn shape(text: &str) -> Option<String> {
    let mut scan = Scan::new();
    scan.scan(text.as_bytes()).then(|| shown(&scan))
}

fn shown(scan: &Scan) -> String {
    let shape = String::from_utf8(scan.shape().to_vec()).expect("UTF-8");
    let shape = shape.replace('\u{1}', "{4}").replace('\u{2}', "{8}");
    shape.replace('\u{3}', "{n}").replace('\u{4}', "{t}")
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(shape(text).as_deref(), Some(*expected), "{text}");
    }
}

#[track_caller]
fn refused(texts: &[&str]) {
    for text in texts {
        assert_eq!(shape(text), None, "{text}");
    }
}

#[test]
fn literals_leave_their_kind() {
    check(&[
        ("SELECT abalance FROM t WHERE aid = 12345;", "SELECT abalance FROM t WHERE aid = {4}"),
        ("select 2147483647, 2147483648", "select {4}, {8}"),
        ("select 9223372036854775807, 9223372036854775808", "select {8}, {n}"),
        ("select 000000000000000000000012", "select {4}"),
        ("select 99999999999999999999", "select {n}"),
        ("select 1., .5, 1.5, 1e5, 1.5E-3, .5e+2", "select {n}, {n}, {n}, {n}, {n}, {n}"),
        ("select 'it''s', '', ''''", "select {t}, {t}, {t}"),
        ("select.5'a'$1", "select {n} {t} $1"),
        ("select date'2020-01-01'from t", "select date {t} from t"),
        ("select 'a\nb\u{fc}'", "select {t}"),
    ]);
}

#[test]
fn white_space_and_comments_are_one_blank_or_none() {
    check(&[
        (" \t\r\n\u{b}\u{c}select  1 ; -- done\n /* a /* b */ */ ", "select {4}"),
        ("select/**/1", "select {4}"),
        ("select a --b\n,c", "select a ,c"),
        ("select a--b\r,c", "select a ,c"),
        ("select 1/*/ a */+/**//**/2", "select {4} + {4}"),
        ("select 1 --", "select {4}"),
        ("select a -/* b */ 1", "select a - {4}"),
    ]);
}

#[test]
fn names_and_parameters_stay() {
    check(&[
        ("select \"a\"\"b;\n 'c'\", t1.x$y, $1", "select \"a\"\"b;\n 'c'\", t1.x$y, $1"),
        ("select e, b, x, n, u & 'a'", "select e, b, x, n, u & {t}"),
        ("select t.\u{fc}_1[2]::int", "select t.\u{fc}_1[{4}]::int"),
    ]);
}

#[test]
fn a_minus_is_a_sign_only_where_it_must_be() {
    check(&[
        ("select -1, (-2), a[-3]", "select {4}, ({4}), a[{4}]"),
        ("a = -1 and -.5 < b", "a = {4} and {n} < b"),
        ("a <-1 or b>=-2", "a <{4} or b>={4}"),
        ("a + -1 / -2 - -3 +-4", "a + {4} / {4} - {4} +{4}"),
        ("limit -1 offset -2", "limit {4} offset {4}"),
        // It may be a subtraction, or it is not next to the number.
        ("select a -1, 2 -1, 'a' -1", "select a -{4}, {4} -{4}, {t} -{4}"),
        ("select (a) -1, a[1] -1, \"and\" -1", "select (a) -{4}, a[{4}] -{4}, \"and\" -{4}"),
        ("select t.and -1, band -1", "select t.and -{4}, band -{4}"),
        ("select $1 -1, t.* -1", "select $1 -{4}, t.* -{4}"),
        ("select between -1", "select between -{4}"),
        ("select not between -1, a, between - 1", "select not between -{4}, a, between - {4}"),
        ("a between -1 and - 2", "a between {4} and {4}"),
        ("t.\"a\" not BETWEEN - .5 and 1", "t.\"a\" not BETWEEN {n} and {4}"),
        ("a = 1 and (b) between -1 and 2", "a = {4} and (b) between {4} and {4}"),
        ("where t.and between -1 and 2", "where t.and between {4} and {4}"),
        ("where t.between -1 = 2", "where t.between -{4} = {4}"),
        ("select a = - 1, a @-1, a *-1", "select a = {4}, a @-{4}, a *-{4}"),
        ("select a =-\n1, a = - /* - */ -- 5\n 1", "select a ={4}, a = {4}"),
        ("select -2147483648, -2147483649", "select {4}, {8}"),
        ("select -9223372036854775808, -9223372036854775809", "select {8}, {n}"),
        ("select -02147483648, - 2147483648", "select {4}, {4}"),
    ]);
    refused(&[
        "select -1::int",
        "select -1 /* a */ :: int",
        "select - 1::int",
        "select -(2147483648)",
        "select - -9223372036854775808",
        "select - -1",
        "select a = - /* b */ - - 1",
    ]);
}

#[test]
fn operators_end_where_postgresql_ends_them() {
    check(&[
        ("a@-1", "a@-{4}"),
        ("a*-1", "a*-{4}"),
        ("a=-1", "a={4}"),
        ("a=+-1", "a=+{4}"),
        ("a->-1", "a->-{4}"),
        ("a<--b\n1", "a< {4}"),
        ("a*/*b*/1", "a* {4}"),
        ("a||'b'", "a||{t}"),
    ]);
}

#[test]
fn what_is_not_certain_is_refused() {
    refused(&[
        "",
        " -- nothing\n",
        ";",
        "select 1; select 2",
        "select 1;;",
        "select 'a",
        "select \"a",
        "select /* a",
        "select /* /* a */",
        "select E'a'",
        "select e'a'",
        "select b'1'",
        "select X'1f'",
        "select n'a'",
        "select U&'a'",
        "select u&\"a\"",
        "select $$a$$",
        "select $a$b$a$",
        "select 'a\\b'",
        "select 'a'\n'b'",
        "select 'a' 'b'",
        "select 'a' -- c\n'b'",
        "select 0x1f",
        "select 1_000",
        "select 5abc",
        "select 1.2.3",
        "select 1..2",
        "select 1e",
        "select 1e+",
        "select $1a",
        "select $",
        "select /*+ hint */ 1",
        "select 1; /*+ hint */",
        "select {",
        "select \\",
        "select \u{1}",
        "select '\u{4}'",
        "select \"\u{0}\"",
        "select /* \u{0} */ 1",
        "select 1 -- \u{0}",
        "select a::float(24)",
        "select a::FLOAT /* b */ ( 25 )",
    ]);
    assert!(shape("select a::\"float\"(24), afloat(1)").is_some());
}

#[test]
fn ceilings_hold() {
    let text = |literals: usize| format!("select {}1", "1,".repeat(literals - 1));
    assert!(shape(&text(LITERALS_MAX)).is_some());
    assert_eq!(shape(&text(LITERALS_MAX + 1)), None);
    let text = |bytes: usize| format!("select {}", "a".repeat(bytes - 7));
    assert!(shape(&text(TEXT_MAX)).is_some());
    assert_eq!(shape(&text(TEXT_MAX + 1)), None);
}

#[test]
fn literals_tell_place_and_value() {
    let text = b"select -1, 'it''s' , 1e3, - \t5, -/*-1*/1e-2";
    let mut scan = Scan::new();
    assert!(scan.scan(text));
    let literals = scan.literals();
    let values: Vec<String> = literals
        .iter()
        .map(|literal| {
            let mut value = Vec::new();
            literal.put_value(text, &mut value);
            assert_eq!(scan.shape()[literal.at as usize], literal.kind.byte());
            String::from_utf8(value).expect("UTF-8")
        })
        .collect();
    assert_eq!(values, ["-1", "it's", "1e3", "-5", "-1e-2"]);
    let places: Vec<_> = literals.iter().map(|literal| (literal.start, literal.end)).collect();
    assert_eq!(places, [(7, 9), (11, 18), (21, 24), (26, 30), (32, 43)]);
    let tokens: Vec<u32> = literals.iter().map(|literal| literal.token_start(text)).collect();
    assert_eq!(tokens, [8, 11, 21, 29, 39]);
}

#[test]
fn the_first_word_is_told() {
    for (text, expected) in [
        ("SELECT 1", FirstWord::Select),
        ("/* a */ with a as (values (1)) table a", FirstWord::With),
        ("values(1)", FirstWord::Values),
        ("Table a", FirstWord::Table),
        ("insert into a default values", FirstWord::Insert),
        ("update a set b = 1", FirstWord::Update),
        ("delete from a", FirstWord::Delete),
        ("merge into a", FirstWord::Merge),
        ("((select 1))", FirstWord::Select),
        ("selects", FirstWord::Other),
        ("begin", FirstWord::Other),
    ] {
        let mut scan = Scan::new();
        assert!(scan.scan(text.as_bytes()));
        assert_eq!(scan.first_word(), expected, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text: Vec<u8>) {
        let mut scan = Scan::new();
        scan.scan(&text);
    }

    #[test]
    fn no_text_of_tokens_makes_it_panic(text in "([-+*/<=>.;:$'\"eEuU&0-9a \\n\\\\(),]|--|/\\*|\\*/){0,40}") {
        let mut scan = Scan::new();
        if scan.scan(text.as_bytes()) {
            let mut value = Vec::new();
            for literal in scan.literals() {
                literal.put_value(text.as_bytes(), &mut value);
            }
            proptest::prop_assert!(!scan.shape().is_empty());
        }
    }
}
