//! Sorted sets: what Redis replies.

use crate::check;

#[test]
fn members_are_added_by_the_options() {
    let table = [
        ("ZADD z 1 a 2 b", "2"),
        ("ZADD z CH 3 a 2 b 1 c", "2"),
        ("ZADD z NX 9 a 9 d", "1"),
        ("ZADD z XX 9 none 4 d", "0"),
        ("ZADD z GT CH 1 a 9 b", "1"),
        ("ZADD z LT CH 1 a 99 b 5 e", "2"),
        ("ZADD z XX LT CH 0 none 0 a", "1"),
        ("ZADD z INCR 1.5 a", ",1.5"),
        ("ZADD z NX INCR 1.5 a", "(nil)"),
        ("ZADD z XX INCR 1.5 none", "(nil)"),
        ("ZADD z GT INCR -1 a", "(nil)"),
        ("ZADD z LT INCR -1 a", ",0.5"),
        ("ZADD none XX 1 a", "0"),
        ("ZADD none XX INCR 1 a", "(nil)"),
        ("ZADD z nx xx 1 a", "!ERR XX and NX options at the same time are not compatible"),
        ("ZADD z NX GT 1 a", "!ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z LT GT 1 a", "!ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z NX LT 1 a", "!ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z INCR 1 a 2 b", "!ERR INCR option supports a single increment-element pair"),
        ("ZADD z 1", "!ERR wrong number of arguments for 'zadd' command"),
        ("ZADD z 1 a 2", "!ERR syntax error"),
        ("ZADD z NX CH", "!ERR syntax error"),
        ("ZADD z x a", "!ERR value is not a valid float"),
        ("ZADD z nan a", "!ERR value is not a valid float"),
        ("ZADD z 1 a x b", "!ERR value is not a valid float"),
        ("ZADD z inf i -inf j", "2"),
        ("ZINCRBY z -inf i", "!ERR resulting score is not a number (NaN)"),
        ("ZINCRBY z 1 i", ",inf"),
        ("ZINCRBY z 2 new", ",2"),
        ("ZINCRBY z x new", "!ERR value is not a valid float"),
        ("ZINCRBY z nan new", "!ERR value is not a valid float"),
        ("ZINCRBY z LT new", "!ERR syntax error"),
        ("ZINCRBY z NX XX", "!ERR syntax error"),
        ("ZINCRBY none inf n", ",inf"),
        ("ZADD z INCR +inf j", "!ERR resulting score is not a number (NaN)"),
        (
            "ZRANGE z 0 -1 WITHSCORES",
            r#"["j" ,-inf "a" ,0.5 "c" ,1 "new" ,2 "d" ,4 "e" ,5 "b" ,9 "i" ,inf]"#,
        ),
        ("ZCARD z", "8"),
        ("ZCARD none", "1"),
        ("ZREM z a b b none", "2"),
        ("ZREM none a", "0"),
        ("ZSCORE z c", ",1"),
        ("ZSCORE z none", "(nil)"),
        ("ZSCORE none c", "(nil)"),
        ("ZMSCORE z c none i", "[,1 (nil) ,inf]"),
        ("ZMSCORE none a b", "[(nil) (nil)]"),
        ("ZREM z c d e i j new", "6"),
        ("ZCARD z", "0"),
    ];
    check(2, &table);
}

#[test]
fn ranks_and_ranges_by_rank() {
    let table = [
        ("ZADD z 1 a 2 b 2 c 3 d", "4"),
        ("ZRANK z c", "2"),
        ("ZREVRANK z c", "1"),
        ("ZRANK z none", "(nil)"),
        ("ZRANK none a", "(nil)"),
        ("ZREVRANGE z 0 1", r#"["d" "c"]"#),
        ("ZREVRANGE z 1 -1 WITHSCORES", r#"["c" ,2 "b" ,2 "a" ,1]"#),
        ("ZRANGE z 1 2", r#"["b" "c"]"#),
        ("ZRANGE z -2 -1 REV", r#"["b" "a"]"#),
        ("ZRANGE z 5 9", "[]"),
        ("ZRANGE z 0 -9", "[]"),
        ("ZRANGE z x 1", "!ERR value is not an integer or out of range"),
        ("ZRANGE z 0 1 LIMIT 0 1", "!ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"),
        ("ZRANGE z 0 1 LIMIT 0 -1", r#"["a" "b"]"#),
        ("ZRANGE z 0 1 SIDEWAYS", "!ERR syntax error"),
        ("ZRANGE z 0 1 LIMIT 0", "!ERR syntax error"),
        ("ZREVRANGE z 0 1 REV", "!ERR syntax error"),
        ("ZREVRANGE z 0 1 BYSCORE", "!ERR syntax error"),
        ("ZREMRANGEBYRANK z 1 -2", "2"),
        ("ZREMRANGEBYRANK z 5 9", "0"),
        ("ZREMRANGEBYRANK z x 9", "!ERR value is not an integer or out of range"),
        ("ZREMRANGEBYRANK none 0 1", "0"),
        ("ZRANGE z 0 -1 WITHSCORES", r#"["a" ,1 "d" ,3]"#),
        ("ZREMRANGEBYRANK z -9 9", "2"),
        ("ZCARD z", "0"),
    ];
    check(2, &table);
}

#[test]
fn ranges_by_score() {
    let table = [
        ("ZADD z -inf m 1 a 2 b 2.5 c 3 d inf p", "6"),
        ("ZRANGEBYSCORE z 1 2.5", r#"["a" "b" "c"]"#),
        (r#"ZRANGEBYSCORE z "(1\x00x" "2\x00""#, r#"["b"]"#),
        (r#"ZCOUNT z "\x00x" 1"#, "1"),
        ("ZRANGEBYSCORE z (1 (3 WITHSCORES", r#"["b" ,2 "c" ,2.5]"#),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1 2", r#"["a" "b"]"#),
        ("ZRANGEBYSCORE z -inf inf LIMIT 1 -1", r#"["a" "b" "c" "d" "p"]"#),
        ("ZRANGEBYSCORE z -inf inf LIMIT -1 2", "[]"),
        ("ZRANGEBYSCORE z -inf inf LIMIT 9 2", "[]"),
        ("ZRANGEBYSCORE z (inf inf", "[]"),
        ("ZRANGEBYSCORE z 3 1", "[]"),
        (r#"ZRANGEBYSCORE z "" 2"#, r#"["a" "b"]"#),
        ("ZRANGEBYSCORE z ( 2", r#"["a" "b"]"#),
        ("ZRANGEBYSCORE z x 2", "!ERR min or max is not a float"),
        ("ZRANGEBYSCORE z 1 nan", "!ERR min or max is not a float"),
        ("ZREVRANGEBYSCORE z +inf (2 WITHSCORES", r#"["p" ,inf "d" ,3 "c" ,2.5]"#),
        ("ZREVRANGEBYSCORE z 3 1 LIMIT 1 1", r#"["c"]"#),
        ("ZREVRANGEBYSCORE z 1 3", "[]"),
        ("ZRANGE z (1 2.5 BYSCORE", r#"["b" "c"]"#),
        ("ZRANGE z 2.5 (1 BYSCORE REV LIMIT 0 1 WITHSCORES", r#"["c" ,2.5]"#),
        ("ZCOUNT z 1 (3", "3"),
        ("ZCOUNT z x 1", "!ERR min or max is not a float"),
        ("ZCOUNT none 1 2", "0"),
        ("ZREMRANGEBYSCORE z (1 2.5", "2"),
        ("ZREMRANGEBYSCORE z x 2.5", "!ERR min or max is not a float"),
        ("ZRANGE z 0 -1", r#"["m" "a" "d" "p"]"#),
    ];
    check(2, &table);
}

#[test]
fn ranges_by_name() {
    let table = [
        ("ZADD z 0 a 0 b 0 ba 0 c 0 d", "5"),
        ("ZRANGEBYLEX z - +", r#"["a" "b" "ba" "c" "d"]"#),
        ("ZRANGEBYLEX z [b (c", r#"["b" "ba"]"#),
        ("ZRANGEBYLEX z (b +", r#"["ba" "c" "d"]"#),
        ("ZRANGEBYLEX z + -", "[]"),
        ("ZRANGEBYLEX z [ [b LIMIT 1 9", r#"["b"]"#),
        ("ZRANGEBYLEX z a b", "!ERR min or max not valid string range item"),
        ("ZRANGEBYLEX z [a b", "!ERR min or max not valid string range item"),
        (
            "ZRANGEBYLEX z - + WITHSCORES",
            "!ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
        ("ZREVRANGEBYLEX z + (b LIMIT 0 2", r#"["d" "c"]"#),
        ("ZREVRANGEBYLEX z (b [b", "[]"),
        ("ZRANGE z [a [b BYLEX", r#"["a" "b"]"#),
        ("ZRANGE z (c - BYLEX REV", r#"["ba" "b" "a"]"#),
        (
            "ZRANGE z - + BYLEX WITHSCORES",
            "!ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
        ("ZLEXCOUNT z - +", "5"),
        ("ZLEXCOUNT z [b [c", "3"),
        ("ZLEXCOUNT z ++ +", "!ERR min or max not valid string range item"),
        ("ZLEXCOUNT none - +", "0"),
        ("ZREMRANGEBYLEX z [b (c", "2"),
        ("ZREMRANGEBYLEX z x y", "!ERR min or max not valid string range item"),
        ("ZRANGE z 0 -1", r#"["a" "c" "d"]"#),
    ];
    check(2, &table);
}

/// Names are in no order where scores differ: what Redis finds is what a walk over a small set
/// does.
#[test]
fn ranges_by_name_where_scores_differ() {
    let table = [
        ("ZADD w 1 m3 2 m1 3 m5 4 m2", "4"),
        ("ZRANGEBYLEX w [m1 +", r#"["m3" "m1" "m5" "m2"]"#),
        ("ZRANGEBYLEX w [m1 (m5", r#"["m3" "m1"]"#),
        ("ZRANGEBYLEX w [m2 [m5", r#"["m3" "m1" "m5" "m2"]"#),
        ("ZRANGEBYLEX w - (m3", "[]"),
        ("ZRANGEBYLEX w [m2 [m5 LIMIT 2 9", r#"["m5" "m2"]"#),
        ("ZRANGEBYLEX w [m2 [m5 LIMIT 1 9", r#"["m1" "m5" "m2"]"#),
        ("ZRANGEBYLEX w - + LIMIT 4 9", "[]"),
        ("ZRANGEBYLEX w - + LIMIT 9 1", "[]"),
        ("ZREVRANGEBYLEX w (m5 -", r#"["m2" "m5" "m1" "m3"]"#),
        ("ZREVRANGEBYLEX w [m5 [m2", r#"["m2" "m5"]"#),
        ("ZREVRANGEBYLEX w [m5 [m2 LIMIT 1 9", r#"["m5"]"#),
        ("ZREVRANGEBYLEX w [m5 [m2 LIMIT 2 1", "[]"),
        ("ZREVRANGEBYLEX w + - LIMIT 9 1", "[]"),
        ("ZLEXCOUNT w [m1 (m5", "2"),
        ("ZLEXCOUNT w [m4 +", "0"),
        ("ZLEXCOUNT w - -", "0"),
        ("ZLEXCOUNT w + -", "0"),
        ("ZLEXCOUNT w (m3 [m3", "0"),
        ("ZREMRANGEBYLEX w [m1 [m3", "2"),
        ("ZRANGE w 0 -1", r#"["m5" "m2"]"#),
    ];
    check(2, &table);
}

#[test]
fn ranges_are_stored() {
    let table = [
        ("ZADD z 1 a 2 b 3 c", "3"),
        ("SET s x", "OK"),
        ("ZRANGESTORE s z 0 1", "2"),
        ("ZRANGE s 0 -1 WITHSCORES", r#"["a" ,1 "b" ,2]"#),
        ("ZRANGESTORE z z 2 (1 BYSCORE REV", "1"),
        ("ZRANGE z 0 -1", r#"["b"]"#),
        ("ZRANGESTORE z none 0 -1", "0"),
        ("ZCARD z", "0"),
        ("ZRANGESTORE s s 0 -1 WITHSCORES", "!ERR syntax error"),
        ("SET s x", "OK"),
        (
            "ZRANGESTORE t s 0 -1",
            "!WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ];
    check(2, &table);
}

#[test]
fn the_least_and_greatest_are_taken() {
    let table = [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f", "6"),
        ("ZPOPMIN z", r#"["a" ,1]"#),
        ("ZPOPMAX z 2", r#"["f" ,6 "e" ,5]"#),
        ("ZPOPMIN z 0", "[]"),
        ("ZPOPMIN none", "[]"),
        ("ZPOPMIN none 2", "[]"),
        ("ZPOPMIN z -1", "!ERR value is out of range, must be positive"),
        ("ZPOPMIN z x", "!ERR value is out of range, must be positive"),
        ("ZPOPMIN z 1 2", "!ERR syntax error"),
        ("ZMPOP 2 none z MIN", r#"["z" [["b" ,2]]]"#),
        ("ZMPOP 1 z MAX COUNT 9", r#"["z" [["d" ,4] ["c" ,3]]]"#),
        ("ZMPOP 1 z MAX", "(nil array)"),
        ("ZMPOP 0 z MAX", "!ERR numkeys should be greater than 0"),
        ("ZMPOP 1 z UP", "!ERR syntax error"),
        ("ZMPOP 5 z MAX", "!ERR syntax error"),
        ("ZMPOP 1 z MAX COUNT 0", "!ERR count should be greater than 0"),
        ("ZMPOP 1 z MAX COUNT x", "!ERR count should be greater than 0"),
        ("ZMPOP 1 z MAX LIMIT 1", "!ERR syntax error"),
    ];
    check(2, &table);
}

#[test]
fn unions_intersections_differences() {
    let table = [
        ("ZADD a 1 x 2 y 3 z", "3"),
        ("ZADD b 10 y 20 z 30 w", "3"),
        ("ZUNION 2 a b", r#"["x" "y" "z" "w"]"#),
        ("ZUNION 2 a b WITHSCORES", r#"["x" ,1 "y" ,12 "z" ,23 "w" ,30]"#),
        ("ZUNION 2 a b WEIGHTS 2 0.5 WITHSCORES", r#"["x" ,2 "y" ,9 "w" ,15 "z" ,16]"#),
        ("ZUNION 2 a b AGGREGATE MAX WITHSCORES", r#"["x" ,1 "y" ,10 "z" ,20 "w" ,30]"#),
        ("ZINTER 2 a b WITHSCORES", r#"["y" ,12 "z" ,23]"#),
        ("ZINTER 2 a b WEIGHTS 1 -1 AGGREGATE MIN WITHSCORES", r#"["z" ,-20 "y" ,-10]"#),
        ("ZINTER 3 a b none", "[]"),
        ("ZDIFF 2 a b WITHSCORES", r#"["x" ,1]"#),
        ("ZDIFF 1 none", "[]"),
        ("ZDIFF 2 a a", "[]"),
        ("ZUNIONSTORE c 2 a b", "4"),
        ("ZINTERSTORE a 2 a b WEIGHTS 2 3", "2"),
        ("ZRANGE a 0 -1 WITHSCORES", r#"["y" ,34 "z" ,66]"#),
        ("ZDIFFSTORE c 2 b a", "1"),
        ("ZRANGE c 0 -1 WITHSCORES", r#"["w" ,30]"#),
        ("ZDIFFSTORE c 2 b b", "0"),
        ("ZCARD c", "0"),
        ("ZINTERCARD 2 a b", "2"),
        ("ZINTERCARD 2 a b LIMIT 1", "1"),
        ("ZINTERCARD 2 a b LIMIT 0", "2"),
        ("ZINTERCARD 2 a b LIMIT -1", "!ERR LIMIT can't be negative"),
        ("ZINTERCARD 2 a b LIMIT", "!ERR syntax error"),
        ("ZINTERCARD 0 a", "!ERR at least 1 input key is needed for 'zintercard' command"),
        ("ZADD i inf x", "1"),
        ("ZADD j -inf x", "1"),
        ("ZUNION 2 i j WITHSCORES", r#"["x" ,0]"#),
        ("ZINTER 2 i j WEIGHTS 0 1 WITHSCORES", r#"["x" ,-inf]"#),
        ("ZUNION 0 a", "!ERR at least 1 input key is needed for 'zunion' command"),
        ("ZUNION x a", "!ERR value is not an integer or out of range"),
        ("ZUNION 3 a b", "!ERR syntax error"),
        ("ZUNIONSTORE c 0 a", "!ERR at least 1 input key is needed for 'zunionstore' command"),
        ("ZINTERSTORE c 2 a b WITHSCORES", "!ERR syntax error"),
        ("ZDIFF 2 a b WEIGHTS 1 1", "!ERR syntax error"),
        ("ZUNION 2 a b WEIGHTS 1", "!ERR syntax error"),
        ("ZUNION 2 a b WEIGHTS 1 x", "!ERR weight value is not a float"),
        ("ZUNION 2 a b AGGREGATE AVG", "!ERR syntax error"),
        ("SET s x", "OK"),
        ("ZUNION 2 a s", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        (
            "ZINTERCARD 2 s a LIMIT x",
            "!WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ];
    check(2, &table);
}

#[test]
fn sorted_sets_in_resp3() {
    let table = [
        ("ZADD z 1 a 2.5 b -inf c", "3"),
        ("ZSCORE z b", ",2.5"),
        ("ZMSCORE z b none", "[,2.5 (nil)]"),
        ("ZINCRBY z 1 a", ",2"),
        ("ZADD z XX INCR 1 none", "(nil)"),
        ("ZRANGE z 0 -1 WITHSCORES", r#"[["c" ,-inf] ["a" ,2] ["b" ,2.5]]"#),
        ("ZRANGE z 0 -1", r#"["c" "a" "b"]"#),
        ("ZREVRANGEBYSCORE z inf -inf WITHSCORES LIMIT 0 2", r#"[["b" ,2.5] ["a" ,2]]"#),
        ("ZUNION 1 z WITHSCORES", r#"[["c" ,-inf] ["a" ,2] ["b" ,2.5]]"#),
        ("ZPOPMAX z", r#"["b" ,2.5]"#),
        ("ZPOPMAX z 1", r#"[["a" ,2]]"#),
        ("ZMPOP 1 none MIN", "(nil array)"),
        ("ZPOPMIN z 9", r#"[["c" ,-inf]]"#),
    ];
    check(3, &table);
}

#[test]
fn another_type_is_no_sorted_set() {
    let table = [
        ("SET s x", "OK"),
        ("ZADD s 1 a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZADD s x a", "!ERR value is not a valid float"),
        ("ZINCRBY s 1 a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZREM s a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZCARD s", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZSCORE s a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZMSCORE s a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZRANK s a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZRANGE s 0 1", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZCOUNT s 0 1", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZLEXCOUNT s - +", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        (
            "ZREMRANGEBYRANK s 0 1",
            "!WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("ZPOPMIN s", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        (
            "ZMPOP 2 none s MIN",
            "!WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("ZSCAN s 0", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZSCAN s x", "!ERR invalid cursor"),
        ("ZRANDMEMBER s", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZRANDMEMBER s 1", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
    ];
    check(2, &table);
}

#[test]
fn scanning_and_choosing() {
    let table = [
        ("ZADD z 1 a 2.25 b", "2"),
        ("ZSCAN z 0", r#"["0" ["a" "1" "b" "2.25"]]"#),
        ("ZSCAN z 7 COUNT 1", r#"["0" ["a" "1" "b" "2.25"]]"#),
        ("ZSCAN z 0 MATCH a*", r#"["0" ["a" "1"]]"#),
        ("ZSCAN none 0 COUNT x", r#"["0" []]"#),
        ("ZSCAN z 0 COUNT 0", "!ERR syntax error"),
        ("ZSCAN z 0 COUNT x", "!ERR value is not an integer or out of range"),
        ("ZSCAN z 0 MATCH", "!ERR syntax error"),
        ("ZSCAN z x", "!ERR invalid cursor"),
        ("ZSCAN z -1", r#"["0" ["a" "1" "b" "2.25"]]"#),
        ("ZRANDMEMBER none", "(nil)"),
        ("ZRANDMEMBER none 5", "[]"),
        ("ZRANDMEMBER z 0", "[]"),
        ("ZRANDMEMBER z x", "!ERR value is not an integer or out of range"),
        ("ZRANDMEMBER z 1 SCORES", "!ERR syntax error"),
        ("ZRANDMEMBER z 1 WITHSCORES x", "!ERR syntax error"),
        ("ZRANDMEMBER z -9223372036854775807 WITHSCORES", "!ERR value is out of range"),
        ("ZREM z a", "1"),
        ("ZRANDMEMBER z", r#""b""#),
        ("ZRANDMEMBER z -3", r#"["b" "b" "b"]"#),
        ("ZRANDMEMBER z 3 WITHSCORES", r#"["b" ,2.25]"#),
    ];
    check(2, &table);
}

#[test]
fn a_rank_comes_with_its_score() {
    let table = [
        ("ZADD z 1 a 2.5 b", "2"),
        ("ZRANK z b WITHSCORE", "[1 ,2.5]"),
        ("ZREVRANK z b withscore", "[0 ,2.5]"),
        ("ZRANK z none WITHSCORE", "(nil array)"),
        ("ZRANK none b WITHSCORE", "(nil array)"),
        ("ZRANK z b WITHSCORES", "!ERR syntax error"),
        ("ZRANK z b WITHSCORE x", "!ERR wrong number of arguments for 'zrank' command"),
    ];
    check(2, &table);
}

#[test]
fn a_large_set_is_scanned_in_pieces() {
    let mut rig = crate::rig::Rig::new();
    for from in (0..1000).step_by(100) {
        let members: Vec<String> = (from..from + 100).map(|n| format!("{n}.5 m{n}")).collect();
        rig.run(&format!("ZADD z {}", members.join(" ")));
    }
    let (mut cursor, mut seen, mut rounds) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = rig.run(&format!("ZSCAN z {cursor} COUNT 50"));
        let words: Vec<&str> = reply.split('"').skip(1).step_by(2).collect();
        seen.extend(words[1..].chunks(2).map(|pair| pair.join(" ")));
        cursor = words[0].to_owned();
        rounds += 1;
        if rounds % 3 == 0 {
            rig.forget();
        }
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(rounds, 20);
    seen.sort();
    let mut expected: Vec<String> = (0..1000).map(|n| format!("m{n} {n}.5")).collect();
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn sets_take_part_with_score_one() {
    let table = [
        ("SADD s a b 7", "3"),
        ("ZADD z 5 a 6 7 8 c", "3"),
        ("ZUNION 2 s z WITHSCORES", r#"["b" ,1 "a" ,6 "7" ,7 "c" ,8]"#),
        ("ZINTER 2 s z WEIGHTS 10 1 WITHSCORES", r#"["a" ,15 "7" ,16]"#),
        ("ZDIFF 2 s z", r#"["b"]"#),
        ("ZDIFF 2 z s WITHSCORES", r#"["c" ,8]"#),
        ("ZINTERCARD 2 s z", "2"),
        ("ZINTERSTORE s 2 s z", "2"),
        ("ZRANGE s 0 -1 WITHSCORES", r#"["a" ,6 "7" ,7]"#),
    ];
    check(2, &table);
}
