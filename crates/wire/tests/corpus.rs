//! The fuzz targets on stable Rust: the committed corpus, then a bounded walk of mutations.
//!
//! The walk's seed is printed. `WIRE_FUZZ_SEED` repeats one, `WIRE_FUZZ_ROUNDS` lengthens it.

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use std::env;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

/// Mutated inputs for each target.
const ROUNDS: u64 = 30_000;
/// Most bytes of a mutated input.
const INPUT_BYTES_MAX: usize = 4096;

/// Whole inputs are read back with `xxd -r -p`.
struct OnPanic<'a>(&'a str, &'a [u8]);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self.1.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("target {} failed on input {hex}", self.0);
        }
    }
}

fn run((name, target): targets::Target, input: &[u8]) {
    let _report = OnPanic(name, input);
    target(input);
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{} holds {} files", folder.display(), files.len());
    files.iter().map(|file| fs::read(file).expect("a readable file")).collect()
}

#[test]
fn every_input_of_the_corpus_passes_its_target() {
    for target in targets::TARGETS {
        for input in corpus(target.0) {
            run(target, &input);
        }
    }
}

#[test]
fn every_cut_of_the_corpus_passes_its_target() {
    for target in targets::TARGETS {
        for input in corpus(target.0).iter().filter(|input| input.len() <= 512) {
            for end in 0..input.len() {
                run(target, &input[..end]);
            }
        }
    }
}

#[test]
fn mutations_of_the_corpus_pass_their_target() {
    let number = |name| env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seed = number("WIRE_FUZZ_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let rounds = number("WIRE_FUZZ_ROUNDS").unwrap_or(ROUNDS);
    println!("WIRE_FUZZ_SEED={seed} WIRE_FUZZ_ROUNDS={rounds}");
    for target in targets::TARGETS {
        let corpus = corpus(target.0);
        let mut dice = Dice(seed);
        let mut input = Vec::new();
        for _ in 0..rounds {
            input.clone_from(&corpus[dice.below(corpus.len())]);
            for _ in 0..=dice.below(4) {
                mutate(&mut input, &mut dice, &corpus);
            }
            input.truncate(INPUT_BYTES_MAX);
            run(target, &input);
        }
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }
}

/// Lengths and counts that sit on an edge.
const EDGES: [i32; 12] = [0, 1, 3, 4, 5, 8, -1, i32::MIN, i32::MAX, 0xffff, 10_000, 0x4000_0000];

fn mutate(input: &mut Vec<u8>, dice: &mut Dice, corpus: &[Vec<u8>]) {
    let at = dice.below(input.len() + 1);
    let to = (at + dice.below(16)).min(input.len());
    match dice.below(8) {
        0 if at < input.len() => input[at] ^= 1 << dice.below(8),
        1 if at < input.len() => input[at] = dice.roll() as u8,
        2 => input.insert(at, [0, b',', b'=', 0xff][dice.below(4)]),
        3 => drop(input.drain(at..to)),
        4 => {
            let piece = input[at..to].to_vec();
            input.splice(at..at, piece);
        }
        5 => {
            let edge = EDGES[dice.below(EDGES.len())].to_be_bytes();
            let end = (at + 4).min(input.len());
            input[at..end].copy_from_slice(&edge[..end - at]);
        }
        6 => input.truncate(at),
        _ => {
            let other = &corpus[dice.below(corpus.len())];
            input.truncate(at);
            input.extend_from_slice(&other[dice.below(other.len() + 1)..]);
        }
    }
}
