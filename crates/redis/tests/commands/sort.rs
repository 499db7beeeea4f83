//! SORT.

use crate::rig::Rig;
use crate::transcript;

#[test]
fn sort_replies_as_redis_does() {
    transcript::check(include_str!("transcripts/sort.txt"));
}

#[test]
fn lists_and_sorted_sets_are_sorted_and_left_as_they_are() {
    transcript::check(include_str!("transcripts/collections.txt"));
}

#[test]
fn nothing_is_written_before_all_keys_of_patterns_are_known() {
    let mut rig = Rig::new();
    rig.check("SADD s 1 2 3", "3");
    for n in 1..=3 {
        rig.run(&format!("SET w{n} {}", 4 - n));
        rig.run(&format!("HSET h{n} f value{n}"));
    }
    rig.check("MULTI", "OK");
    rig.check("SADD s 4", "QUEUED");
    rig.check("SORT s BY w* GET # GET h*->f STORE d", "QUEUED");
    rig.check("SORT_RO d BY nosort", "QUEUED");
    rig.check("EXEC", "[1 8 [\"4\" \"\" \"3\" \"value3\" \"2\" \"value2\" \"1\" \"value1\"]]");
    rig.forget();
    let loads = rig.tables.lock().loads;
    rig.check("SORT s BY w* GET h*->f LIMIT 1 9", "[\"value3\" \"value2\" \"value1\"]");
    assert_eq!(rig.tables.lock().loads - loads, 3, "the set, weights together, hashes together");
}
