//! One sentence for each verdict of the DASH papers' claims: why it came out so. See the other papers' list for the rule.

use crate::claims::explanations::Sentence;
use crate::claims::verdict::Verdict::{NotReproduced, NotTestable, Partly, Reproduced};

pub(in crate::claims) const SENTENCES: &[Sentence] = &[
    (
        "P1",
        Partly,
        "the mechanism is real: with a deep queue a window outgrows a media segment, so min-RTT puts whole segments on one path, and on \
         the slow one whenever the round trip that it remembers of the fast one, from a full queue, is the longer; at 0.87 the pair is as \
         good as one path, not better, for the same reason",
    ),
    (
        "P2",
        Partly,
        "the total window varies more than a sawtooth, because windows decay while the player pauses and open anew; the bitrate does not \
         follow, because pauses and not windows limit it at these rates",
    ),
    (
        "P3",
        Partly,
        "it settles over 3250 and 670 kb/s; over 900 and 480 kb/s it goes on changing as the player \
         moves between representations; the faster path's is the larger throughout; note that PUD's own estimate, window over round trip, is several times the real throughput, because the windows are \
         not full",
    ),
    (
        "P4",
        Partly,
        "read as a mean over distinct bitrates it is as the paper says at every point; read as a mean over time the \
         slow path hurts above 0.6 too, by 3 to 15 %; the loss at 0.5 is no larger with 500 than with 1000 kb/s, in \
         either reading",
    ),
    (
        "P5",
        NotReproduced,
        "the player takes what MPTCP+ gains as bitrate: it chooses larger segments, whose delay stays at four fifths of a second; only at \
         equal bitrates could the delay fall",
    ),
    (
        "P5",
        Partly,
        "the player takes what MPTCP+ gains as bitrate: it chooses larger segments, whose delay stays at four fifths of a second, and where \
         PUD does not act there is nothing to gain; a point that holds lies within what seeds change",
    ),
    (
        "P6",
        Partly,
        "speed rises by up to 80 % where PUD acts, but at 1500 kb/s it does not act: traffic stays on the slow path, the fast one \
         carries nothing under way, and a path without samples cannot be compared",
    ),
    (
        "P7",
        Partly,
        "speed, bitrate and linear QoE gain 90 to 110 % at the best point and log QoE just under 40 %, by PUD alone: MCC equals LIA, because nothing \
         is lost; delay gains nothing (P5)",
    ),
    (
        "P8",
        NotReproduced,
        "with the video no window is ever in congestion avoidance, so all controls are alike; in a download MCC parks on one path after the \
         other (it is OLIA without its rebalancing) and fluctuates more",
    ),
    (
        "P9",
        Reproduced,
        "MCC is fully coupled, so it stays within RFC 6356's bounds; and from a path with four competitors PUD stays away altogether",
    ),
    ("P10", NotTestable, "simulation has no foreign client; it holds with real ones: see docs/validation/live.md"),
    (
        "P11",
        Reproduced,
        "min-RTT sends part of each segment over the 1 Mb/s path as soon as the fast path's round trip has grown past the slow one's, and \
         the segment waits for that part for 0.7 s",
    ),
    (
        "P11",
        Partly,
        "the segment waits for the part on the slow path, and stalls follow, as claimed; the next choice is lower only in some of the videos",
    ),
    (
        "D1",
        Partly,
        "BOLA of dash.js 2.9 stays at 808 kb/s or more nearly always, while the paper's player often fell below; the \
         rules of dash.js 2.2 with Cubic on each path come near for 10 s, so the paper's player may have been older, \
         and its windows uncoupled",
    ),
    (
        "D2",
        Partly,
        "with 1 s and 6 s segments it falls; with 10 s segments BOLA never goes below 720 lines at any ratio, so that nothing can fall",
    ),
    (
        "D3",
        NotReproduced,
        "BOLA hardly ever crosses a resolution here; the rules of dash.js 2.2 with Cubic do, 21 times with 10 s at 1:5, by giving up \
         requests (AbandonRequestsRule looks at the buffer from 2.6 on)",
    ),
    (
        "D4",
        Partly,
        "1 s segments have five to ten times the switches; the rise with the ratio is certain with 6 s and not with 10 s",
    ),
    (
        "D4",
        Reproduced,
        "1 s segments have five to ten times the switches, because their sizes and speeds are averaged over less; the slow path adds some \
         to the others",
    ),
    (
        "D5",
        Partly,
        "certain with 1 s, and just with 6 s; with 10 s segments the start decides whether BOLA settles at 771 or 1400 kb/s, more than the ratio does",
    ),
    ("D6", Reproduced, "a first segment of 1 Mb/s takes its size over 2 Mb/s, and slow start's round trips"),
    (
        "D7",
        Partly,
        "2000 kb/s of TCP win wherever the ratio matters, and for certain with 1 s and 6 s; 1667 kb/s win with 1 s only: over 6 and 10 s the \
         pair's larger sum outweighs the wait for the slow path",
    ),
    (
        "D8",
        Partly,
        "1 s is steadiest, but 10 s is steadier than 6 s: BOLA reaches the highest representation with 6 s, and dash.js then fills 30 s \
         instead of 12 s",
    ),
    (
        "D9",
        Partly,
        "bytes wait six to nine times as long at 1:5 as at 1:1, and the bitrate falls with the wait; with 1 s \
         segments it is 16 % of their delay, with 6 and 10 s 5 to 7 %, too little to be the cause of much",
    ),
];
