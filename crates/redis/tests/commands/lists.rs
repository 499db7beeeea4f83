//! Lists: what Redis replies.

use crate::check;

#[test]
fn elements_go_in_and_out_at_both_ends() {
    let table = [
        ("LPUSH l a b c", "3"),
        ("RPUSH l d e", "5"),
        ("LRANGE l 0 -1", r#"["c" "b" "a" "d" "e"]"#),
        ("LRANGE l -100 1", r#"["c" "b"]"#),
        ("LRANGE l 2 100", r#"["a" "d" "e"]"#),
        ("LRANGE l 3 1", "[]"),
        ("LRANGE none 0 -1", "[]"),
        ("LPUSHX none x", "0"),
        ("RPUSHX none x y", "0"),
        ("LPUSHX l z", "6"),
        ("RPUSHX l w v", "8"),
        ("LLEN l", "8"),
        ("LLEN none", "0"),
        ("LPOP l", r#""z""#),
        ("RPOP l", r#""v""#),
        ("LPOP l 2", r#"["c" "b"]"#),
        ("RPOP l 3", r#"["w" "e" "d"]"#),
        ("LPOP l 0", "[]"),
        ("LPOP l 100", r#"["a"]"#),
        ("LPOP l", "(nil)"),
        ("LPOP l 1", "(nil array)"),
        ("LPOP l -1", "!ERR value is out of range, must be positive"),
        ("LPOP l x", "!ERR value is out of range, must be positive"),
        ("LPOP l 1 2", "!ERR wrong number of arguments for 'lpop' command"),
        ("RPOP", "!ERR wrong number of arguments for 'rpop' command"),
        ("LPUSH l", "!ERR wrong number of arguments for 'lpush' command"),
        ("RPUSH l 1", "1"),
    ];
    check(2, &table);
}

#[test]
fn elements_are_found_and_set_by_index() {
    let table = [
        ("RPUSH l a b c b a", "5"),
        ("LINDEX l 0", r#""a""#),
        ("LINDEX l -1", r#""a""#),
        ("LINDEX l 5", "(nil)"),
        ("LINDEX l -6", "(nil)"),
        ("LINDEX l x", "!ERR value is not an integer or out of range"),
        ("LINDEX none x", "(nil)"),
        ("LSET l 1 B", "OK"),
        ("LSET l -1 A", "OK"),
        ("LSET l 5 x", "!ERR index out of range"),
        ("LSET l -6 x", "!ERR index out of range"),
        ("LSET l x x", "!ERR value is not an integer or out of range"),
        ("LSET none 0 x", "!ERR no such key"),
        ("LRANGE l 0 -1", r#"["a" "B" "c" "b" "A"]"#),
        ("LPOS l b", "3"),
        ("LPOS l b COUNT 0", "[3]"),
        ("LPOS l a RANK -1", "0"),
        ("LPOS l z", "(nil)"),
        ("LPOS l z COUNT 1", "[]"),
        ("LPOS none z COUNT 1", "[]"),
        ("LPOS none z", "(nil)"),
        ("LPOS l b MAXLEN 3", "(nil)"),
        ("LPOS l a COUNT 0 MAXLEN 1", "[0]"),
        ("LPOS l a RANK 0", "!ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list"),
        ("LPOS l a COUNT -1", "!ERR COUNT can't be negative"),
        ("LPOS l a COUNT x", "!ERR COUNT can't be negative"),
        ("LPOS l a MAXLEN -1", "!ERR MAXLEN can't be negative"),
        ("LPOS l a RANK x", "!ERR value is not an integer or out of range"),
        ("LPOS l a RANK", "!ERR syntax error"),
        ("LPOS l a SORT 1", "!ERR syntax error"),
    ];
    check(2, &table);
}

#[test]
fn elements_go_into_the_middle_and_out_of_it() {
    let table = [
        ("RPUSH l a b c b a", "5"),
        ("LINSERT l BEFORE b x", "6"),
        ("LINSERT l after a y", "7"),
        ("LINSERT l AFTER none y", "-1"),
        ("LINSERT none AFTER a y", "0"),
        ("LINSERT l MIDDLE a y", "!ERR syntax error"),
        ("LRANGE l 0 -1", r#"["a" "y" "x" "b" "c" "b" "a"]"#),
        ("LREM l 1 b", "1"),
        ("LREM l -1 a", "1"),
        ("LREM l 0 none", "0"),
        ("LREM l x a", "!ERR value is not an integer or out of range"),
        ("LREM none 0 a", "0"),
        ("LRANGE l 0 -1", r#"["a" "y" "x" "c" "b"]"#),
        ("LREM l 0 a", "1"),
        ("LTRIM l 1 -2", "OK"),
        ("LRANGE l 0 -1", r#"["x" "c"]"#),
        ("LTRIM l x 1", "!ERR value is not an integer or out of range"),
        ("LTRIM none 0 1", "OK"),
        ("LTRIM l 5 9", "OK"),
        ("LLEN l", "0"),
        ("RPUSH l 1 2 3 4 5 6 7 8 9", "9"),
        ("LTRIM l -4 -2", "OK"),
        ("LRANGE l 0 -1", r#"["6" "7" "8"]"#),
        ("LREM l -5 7", "1"),
        ("LRANGE l 0 -1", r#"["6" "8"]"#),
        ("LTRIM l 1 0", "OK"),
        ("LLEN l", "0"),
    ];
    check(2, &table);
}

#[test]
fn elements_move_between_lists() {
    let table = [
        ("RPUSH a 1 2 3", "3"),
        ("RPOPLPUSH a b", r#""3""#),
        ("LMOVE a b LEFT RIGHT", r#""1""#),
        ("LMOVE a b left up", "!ERR syntax error"),
        ("LMOVE a b up left", "!ERR syntax error"),
        ("LMOVE none b LEFT LEFT", "(nil)"),
        ("RPOPLPUSH b b", r#""1""#),
        ("LRANGE b 0 -1", r#"["1" "3"]"#),
        ("RPOPLPUSH a a", r#""2""#),
        ("LMOVE a b RIGHT LEFT", r#""2""#),
        ("LLEN a", "0"),
        ("LRANGE b 0 -1", r#"["2" "1" "3"]"#),
        ("LMPOP 2 a b LEFT", r#"["b" ["2"]]"#),
        ("LMPOP 2 a b RIGHT COUNT 5", r#"["b" ["3" "1"]]"#),
        ("LMPOP 2 a b RIGHT COUNT 5", "(nil array)"),
        ("LMPOP 0 a LEFT", "!ERR numkeys should be greater than 0"),
        ("LMPOP x a LEFT", "!ERR numkeys should be greater than 0"),
        ("LMPOP 3 a LEFT", "!ERR syntax error"),
        ("LMPOP 1 a UP", "!ERR syntax error"),
        ("LMPOP 1 a LEFT COUNT 0", "!ERR count should be greater than 0"),
        ("LMPOP 1 a LEFT COUNT", "!ERR syntax error"),
        ("LMPOP 1 a LEFT COUNT 1 COUNT 2", "!ERR syntax error"),
    ];
    check(2, &table);
}

#[test]
fn lists_in_resp3() {
    let table = [
        ("LPOP none", "(nil)"),
        ("LPOP none 1", "(nil array)"),
        ("RPUSH l a b", "2"),
        ("LPOP l 1", r#"["a"]"#),
        ("LMPOP 1 none LEFT", "(nil array)"),
        ("LINDEX l 9", "(nil)"),
        ("RPOPLPUSH none l", "(nil)"),
    ];
    check(3, &table);
}

#[test]
fn another_type_is_refused() {
    let table = [
        ("SET s x", "OK"),
        ("LPUSH s a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LPUSHX s a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LPOP s", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LPOP s 0", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LLEN s", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LINDEX s x", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LSET s x x", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        (
            "LINSERT s BEFORE a b",
            "!WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("LRANGE s 0 -1", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LREM s 0 a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LTRIM s 0 1", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LPOS s a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("RPUSH l 1", "1"),
        ("RPOPLPUSH s l", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("RPOPLPUSH l s", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        (
            "LMPOP 2 none s LEFT",
            "!WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("LRANGE l 0 -1", r#"["1"]"#),
    ];
    check(2, &table);
}
