//! What stands in for a fuzzer where no nightly compiler is at hand: every input of the corpus, then random changes of
//! them.

use std::path::Path;

/// SplitMix64 (Steele, Lea, Flood 2014), so that runs are repeatable.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// The inputs that are kept for a target, in the order of their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("the file can be read")).collect()
}

/// One of the changes that fuzzers make.
fn change(input: &mut Vec<u8>, others: &[Vec<u8>], draw: &mut Draw) {
    let (at, to) = (draw.below(input.len()), draw.below(input.len()));
    match draw.below(6) {
        0 if !input.is_empty() => input[at] = draw.next() as u8,
        1 if !input.is_empty() => input[at] ^= 1 << draw.below(8),
        2 => drop(input.drain(at.min(to)..at.max(to))),
        3 => input.insert(at, draw.next() as u8),
        4 => {
            let part = input[at.min(to)..at.max(to)].to_vec();
            input.extend(part);
        }
        _ => {
            let other = &others[draw.below(others.len())];
            input.truncate(at);
            input.extend(&other[draw.below(other.len())..]);
        }
    }
}

/// Runs the corpus of a target, and so many inputs made from it.
pub fn replay(target: &str, changed: u64, run: impl Fn(&[u8])) {
    /// libFuzzer's own limit.
    const LONGEST: usize = 4_096;
    let corpus = corpus(target);
    assert!(!corpus.is_empty(), "no corpus of {target}");
    corpus.iter().for_each(|input| run(input));
    for case in 0..changed {
        let mut draw = Draw(case);
        let mut input = corpus[draw.below(corpus.len())].clone();
        (0..=draw.below(4)).for_each(|_| change(&mut input, &corpus, &mut draw));
        input.truncate(LONGEST);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&input)));
        if let Err(panic) = outcome {
            eprintln!("input {case} made from the corpus of {target}: {input:?}");
            std::panic::resume_unwind(panic);
        }
    }
}
