//! The fuzz target `manifest` on a stable compiler: its corpus, and random changes of it.

#[path = "../../../fuzz/src/manifest.rs"]
mod manifest;
#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;

#[test]
fn the_corpus_and_what_is_made_from_it_do_no_harm() {
    mutate::replay("manifest", 20_000, manifest::run);
}

#[test]
#[ignore = "slow suite: half a minute of changed inputs"]
fn many_inputs_made_from_the_corpus_do_no_harm() {
    mutate::replay("manifest", 800_000, manifest::run);
}

#[test]
fn bytes_without_sense_are_refused() {
    let mut state = 1_u64;
    for length in 0..2_000 {
        let mut byte = || {
            // Numerical Recipes' generator: these bytes need no quality.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        manifest::run(&(0..length % 300).map(|_| byte()).collect::<Vec<_>>());
    }
}

#[test]
fn deep_and_wide_documents_take_little_time() {
    let begin = std::time::Instant::now();
    manifest::run("<MPD><Period>".repeat(200_000).as_bytes());
    let sets = "<AdaptationSet mimeType='video/mp4'><Representation bandwidth='8'/></AdaptationSet>".repeat(20_000);
    let timeline = format!(
        "<SegmentTemplate media='$Time$'><SegmentTimeline>{}</SegmentTimeline></SegmentTemplate>",
        "<S d='1'/>".repeat(500)
    );
    manifest::run(format!("<MPD><Period>{timeline}{sets}</Period></MPD>").as_bytes());
    manifest::run(format!("<MPD>{}</MPD>", "<Period/>".repeat(200_000)).as_bytes());
    let bomb: String = (1..20).map(|n| format!("<!ENTITY e{n} '{}'>", format!("&e{};", n - 1).repeat(10))).collect();
    manifest::run(format!("<!DOCTYPE MPD [<!ENTITY e0 'x'>{bomb}]><MPD>&e19;</MPD>").as_bytes());
    // A tenth of it on a machine that does nothing else; each was minutes when it was quadratic.
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}
