//! Plain acknowledgments against all steps: two equal senders, of which one takes the straight path where it may.

use super::*;

/// Runs, and steps of each.
const RUNS: u64 = 60;
const STEPS: u32 = 150;

/// Numbers of a congruential generator (Knuth's constants).
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The packets that were acknowledged, and sent.
fn edges(bed: &Bed) -> (u64, u64) {
    let packet = |offset: u64| (offset - 1) / u64::from(PACKET);
    (packet(bed.subflow.sender.acked()), packet(bed.subflow.sender.next()))
}

/// An acknowledgment of everything before packet `next`, by the straight path if it is plain; whether it was.
fn acknowledge(bed: &mut Bed, next: u64) -> bool {
    let plain = bed.subflow.sender.is_plain(start_of(next));
    if plain {
        let views = bed.views();
        bed.subflow.sender.on_plain_ack(at(bed.now), start_of(next), Siblings::new(&views, 0));
    } else {
        bed.ack(next);
    }
    plain
}

/// One random step of both beds; whether it was a plain acknowledgment.
fn step(draw: &mut Draw, straight: &mut Bed, whole: &mut Bed) -> bool {
    let (kind, n) = (draw.below(12), draw.below(6));
    let (acked, sent) = edges(whole);
    let now = whole.now + draw.below(40);
    let mut plain = false;
    for bed in [&mut *straight, whole] {
        bed.wait_until(now);
    }
    match kind {
        0..=4 => {
            straight.send(1 + n as u32);
            whole.send(1 + n as u32);
        }
        5..=9 => {
            let next = (acked + n).min(sent);
            plain = acknowledge(straight, next);
            whole.ack(next);
        }
        10 if acked + n + 1 < sent => {
            for bed in [straight, whole] {
                bed.sack(acked, &[(acked + n + 1, acked + n + 2)]);
                bed.retransmit();
            }
        }
        _ => {
            if let Some(due) = whole.deadline().map(|due| due.max(now)) {
                for bed in [straight, whole] {
                    let views = bed.wait_until(due).views();
                    bed.subflow.sender.on_timer(at(due), Siblings::new(&views, 0));
                    bed.retransmit();
                }
            }
        }
    }
    plain
}

#[test]
fn a_plain_acknowledgment_has_the_effect_of_all_steps() {
    let mut plain = 0;
    for run in 0..RUNS {
        let control = ["newreno", "cubic", "bbr"][(run % 3) as usize];
        let (mut straight, mut whole) = (Bed::under(control, 10), Bed::under(control, 10));
        let mut draw = Draw(run);
        for _ in 0..STEPS {
            plain += u32::from(step(&mut draw, &mut straight, &mut whole));
            let shown = |bed: &Bed| format!("{:?}", bed.subflow.sender);
            assert_eq!(shown(&straight), shown(&whole), "run {run}, at {}", whole.now);
        }
    }
    assert!(plain > 500, "{plain} acknowledgments were plain");
}
