//! HyperLogLogs, byte for byte Redis's.

use crate::rig::Rig;
use crate::transcript;

#[test]
fn commands_of_hyperloglogs_reply_as_redis_does() {
    transcript::check(include_str!("transcripts/hyperloglog.txt"));
}

#[test]
fn a_large_one_becomes_dense() {
    let mut rig = Rig::new();
    for n in 0..300 {
        let elements: Vec<String> = (n * 10..n * 10 + 10).map(|n| n.to_string()).collect();
        rig.check(&format!("PFADD h {}", elements.join(" ")), "1");
    }
    rig.reads("PFDEBUG ENCODING h", "dense");
    let count: u64 = rig.run("PFCOUNT h").parse().unwrap();
    assert!((2_950..=3_050).contains(&count), "{count}");
}
