//! One sentence for each verdict: why it came out so. A sentence belongs to the verdict that it explains; if a later version of
//! the simulator judges otherwise, the sentence is not shown, and a new one has to be found.

use super::streaming;
use super::verdict::Verdict::{self, NotReproduced, Partly, Reproduced};

/// A claim, its verdict, and why.
pub(super) type Sentence = (&'static str, Verdict, &'static str);

const SENTENCES: &[Sentence] = &[
    (
        "S1",
        NotReproduced,
        "no scheduler differs from DFT for certain: the file is fetched at nine tenths of the capacity, so nearly always only one path has room, and a scheduler with one path to choose from has no choice",
    ),
    (
        "S2",
        Partly,
        "nearly always only one path has room, so TR-STY can only choose what DFT chooses; the underflows' difference is none, but known no better than to an underflow",
    ),
    ("S2", Reproduced, "nearly always only one path has room, so TR-STY can only choose what DFT chooses"),
    (
        "S3",
        NotReproduced,
        "no scheduler differs from another for certain; the weaker sentence of the conclusion, that these controls are not impacted, agrees with that",
    ),
    (
        "S3",
        Partly,
        "one comparison of twenty-four holds, about what chance gives; with OLIA the same one comes out the other way round",
    ),
    (
        "S4",
        Partly,
        "TR-STY is like DFT everywhere, but so are GR-STY and TP-STY: with every window full, data goes where the last acknowledgment made room, and the path changes at almost every second packet whatever the scheduler",
    ),
    (
        "S5",
        Reproduced,
        "four comparisons of seventy-two, hardly more than chance gives, and with no other variant of the assumptions",
    ),
    ("S5", NotReproduced, "neither switches nor quality differ between schedulers by more than chance"),
    (
        "S6",
        Partly,
        "flow 1 is favoured under DFT, by two to seven points, but no sticky scheduler moves traffic, for the reason given for S4",
    ),
    (
        "S7",
        Reproduced,
        "path 1 falls from 1.75 to 1.2 Mb/s with Cubic and Compound and to 0.35 Mb/s with LIA and OLIA, which leaves less than the video needs",
    ),
    ("S8", Partly, "LIA and OLIA are alike under all schedulers, but so are Cubic and Compound"),
    (
        "S9",
        Partly,
        "LIA and OLIA are alike under all schedulers; an improvement that could be smaller than in 3p-50 does not exist there",
    ),
    (
        "S10",
        NotReproduced,
        "an underflow follows from seconds in which the video needs more than all paths carry, not from one of some two hundred switches in each second; the discard condition knows a little, because it counts what is left of the picture",
    ),
    (
        "S11",
        NotReproduced,
        "where the paths are the bottleneck a scheduler decides little, and in these three scenarios they are",
    ),
    (
        "H1",
        Partly,
        "with LIA two videos of ten underflow: one whose second window was left at eight packets by its slow start, which neither LIA nor a video of half the paths' rate enlarges, and one in a scene that needs more than both paths had by then",
    ),
    ("H1", Reproduced, "both paths together carry more than twice what the video needs"),
    (
        "H2",
        Partly,
        "in large it is undisturbed; in limited 5.6 Mb/s of payload are left for 5.24 Mb/s on average, and scenes that need more underflow, which a constant rate or the ring of VLC 3 prevents",
    ),
    ("H3", Reproduced, "from the cut on flow 2 is alone, for more than half of the video"),
    (
        "H4",
        NotReproduced,
        "retransmissions come from the overshoot of slow start, 0.2 % of flow 1's segments; later the player and not the network limits the sender",
    ),
    ("H5", Partly, "retransmissions are as rare with GR-STY as with DFT, at most a quarter of a per cent"),
    ("H6", Reproduced, "the slower path alone is four times as fast as the video"),
    (
        "H7",
        Partly,
        "Cubic and Compound are undisturbed, but so are OLIA and LIA: LTE carries four times the video's rate, and the second that the player has cached outlasts the timeouts after the cut",
    ),
    (
        "H8",
        NotReproduced,
        "nearly all retransmissions repair slow start's overshoot on WiFi, whose rate is 433 Mb/s, in the first second",
    ),
    (
        "H9",
        Partly,
        "it holds for the three controls without HyStart, whose slow start overshoots before the cut; Cubic leaves slow start without a loss, and loses most when flow 2 carries everything",
    ),
    (
        "H10",
        Partly,
        "only OLIA under DFT in limited recovers later, by three seconds; the cut subflow carries no data any more, and its window, one packet in time-out, weighs next to nothing in the sums, but OLIA may take the dead path for its best one and grow at half the pace",
    ),
    (
        "H10",
        NotReproduced,
        "coupled controls recover no later than Cubic, in limited even earlier: the cut subflow carries no data any more and its window, one packet in time-out, weighs nothing in the sums",
    ),
];

/// The same for every claim, because it is about the number of seeds.
const UNDECIDED: &str =
    "an interval has values that meet the criterion and values that miss it; more seeds make it narrower";

/// The sentence for a claim's verdict.
pub fn of(id: &str, verdict: Verdict) -> &'static str {
    if verdict == Verdict::Undecided {
        return UNDECIDED;
    }
    let found = SENTENCES.iter().chain(streaming::explanations::SENTENCES).find(|(i, v, _)| *i == id && *v == verdict);
    found.map_or("(not yet explained)", |(.., sentence)| sentence)
}
