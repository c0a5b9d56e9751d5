//! The rules of the literature against programs that were published, on the same throughput sequences: the same
//! representation in every request, and the same stalls.
//!
//! The rows below are the output of those programs, run on the networks of [`sequence`] with sixty media segments of
//! constant size and no latency:
//! - BOLA: Sabre, its authors' simulator (UMass-LIDS/sabre, 09b03bb, `src/sabre.py -v -a bola -ab -ma sliding -ws 1`,
//!   with `-ao` for BOLA-O, and with `-noa` where nothing may be abandoned). Changed there: `-ab`, which keeps V
//!   constant, no longer forbids to abandon; the representation after an abandoned request is kept (it is assigned to a
//!   misspelt name); BOLA-O's pause ends where figure 6 of the paper ends it (Sabre has that line as a comment).
//! - RobustMPC: Pensieve (hongzimao/pensieve, `test/mpc.py` over `test/fixed_env.py`) under Python 3 with 3.0 for a
//!   second of stall, without its round trip and its share of headers. Changed there: of equally good plans it takes
//!   the one that begins lowest, as ours does, and not the last one; the papers leave that open.
//!
//! Ten-second media segments are outside of BOLA's domain with a buffer of 25 s, and Sabre stalls as ours does.

mod common;

use anabranch_media::abr::{AbrOptions, BolaCap, Ladder, REGISTRY};
use anabranch_units::Duration;
use common::fluid::{Fluid, Outcome, Period, sequence};

const BITRATES: [u64; 6] = [311_000, 747_000, 1_193_000, 1_861_000, 2_843_000, 4_337_000];
const SEGMENTS: u64 = 60;

/// A session of a published program.
struct Reference {
    network: fn() -> Vec<Period>,
    segment_seconds: u64,
    /// The representation of each request, a digit each.
    requested: &'static str,
    abandoned: usize,
    stalled: f64,
}

/// From 300 to 6000 kbit/s.
fn wide() -> Vec<Period> {
    sequence(7, 300, 6_000)
}

/// From 400 to 1500 kbit/s.
fn slow() -> Vec<Period> {
    sequence(11, 400, 1_500)
}

const fn reference(
    network: fn() -> Vec<Period>,
    segment_seconds: u64,
    requested: &'static str,
    abandoned: usize,
    stalled: f64,
) -> Reference {
    Reference { network, segment_seconds, requested, abandoned, stalled }
}

const BOLA_U: [Reference; 4] = [
    reference(wide, 4, "000025554500111103555555455455555555400114332122322300000134", 0, 0.0),
    reference(wide, 10, "015515554555141311253513451515155555513554344515515554555141", 0, 135.770),
    reference(slow, 4, "000001121211313131232311232320100110110102230101010013221022", 0, 0.0),
    reference(slow, 10, "012123132231112212312131231212312123121231313311131131313123", 0, 155.627),
];

const BOLA_O: [Reference; 4] = [
    reference(wide, 4, "000024444401111112555555444444555555500113332212222200000034", 0, 0.0),
    reference(wide, 10, "014413555355112312114441223514151155555512552334414411555445", 0, 80.410),
    reference(slow, 4, "000001111111222222222222222222000000000001221100000002221112", 0, 0.0),
    reference(slow, 10, "001112222221111111121211211211111111112211122222221111111212", 0, 82.659),
];

const BOLA_U_ABANDONING: [Reference; 4] = [
    reference(wide, 4, "0000255545212111112555555455455555555542112134312223223100101034", 4, 0.0),
    reference(
        wide,
        10,
        "01515202210125151525055054321022421230301010252525313033145320352023532030255255051224203552404045252022515432102",
        53,
        0.401,
    ),
    reference(slow, 4, "00000112121131313123231123232010101101110110113210110010112320122", 5, 0.0),
    reference(
        slow,
        10,
        "01202231310332123031010110102310110130123102231011310122101202310231012231020122030303030230301011011",
        41,
        2.081,
    ),
];

const ROBUST_MPC: [Reference; 4] = [
    reference(wide, 4, "145555200000000001222235555555555555555521111155333000000022", 0, 5.593),
    reference(wide, 2, "155555555520000000033320000001112345555555555555555555555555", 0, 3.293),
    reference(slow, 4, "100001112222222222233322222300000001111111111111110000023333", 0, 0.0),
    reference(slow, 2, "100000111112222222222222222333332222222111112222333330000000", 0, 0.0),
];

fn stream(rule: &str, options: AbrOptions, of: &Reference, first: usize) -> Outcome {
    let ladder = Ladder::new(BITRATES.to_vec(), Duration::from_secs(of.segment_seconds), SEGMENTS).unwrap();
    // Pensieve's player; BOLA never has as much.
    let fluid = Fluid { ladder, periods: (of.network)(), first, sleeps_above: Some(60.0) };
    fluid.stream(&mut *(REGISTRY.find(rule).unwrap().create)(&options).unwrap())
}

fn digits(representations: &[usize]) -> String {
    representations.iter().map(usize::to_string).collect()
}

fn bola_agrees(cap: BolaCap, abandon: bool, references: &[Reference]) {
    for of in references {
        let options =
            AbrOptions { finite: Some(false), cap: Some(cap), abandon: Some(abandon), ..AbrOptions::default() };
        let ours = stream("bola", options, of, 0);
        assert_eq!(digits(&ours.requested), of.requested);
        assert_eq!(ours.abandoned, of.abandoned);
        assert!((ours.stalled - of.stalled).abs() < 0.001, "{} s, not {} s", ours.stalled, of.stalled);
    }
}

#[test]
fn bola_u_decides_and_stalls_as_in_sabre() {
    bola_agrees(BolaCap::BolaU, false, &BOLA_U);
}

#[test]
fn bola_o_decides_and_stalls_as_in_sabre() {
    bola_agrees(BolaCap::BolaO, false, &BOLA_O);
}

#[test]
fn bola_abandons_as_in_sabre() {
    bola_agrees(BolaCap::BolaU, true, &BOLA_U_ABANDONING);
}

#[test]
fn robust_mpc_decides_and_stalls_as_in_pensieve() {
    for of in &ROBUST_MPC {
        // Pensieve's plans know no limit of the buffer.
        let options = AbrOptions { capacity: Some(Duration::from_secs(1_000)), ..AbrOptions::default() };
        let ours = stream("robust-mpc", options, of, 1);
        assert_eq!(digits(&ours.requested), of.requested);
        assert!((ours.stalled - of.stalled).abs() < 0.001, "{} s, not {} s", ours.stalled, of.stalled);
    }
}
