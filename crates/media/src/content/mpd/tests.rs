use super::*;
use crate::content::DashVideo;

fn mpd(attributes: &str, periods: &str) -> Result<Mpd, ContentError> {
    let namespace = "xmlns=\"urn:mpeg:dash:schema:mpd:2011\"";
    Mpd::parse("a.mpd", &format!("<MPD {namespace} {attributes}>\n{periods}\n</MPD>"))
}

fn video(attributes: &str, periods: &str) -> Result<DashVideo, ContentError> {
    mpd(attributes, periods)?.video(&MpdSelection::default())
}

fn message(attributes: &str, periods: &str) -> String {
    video(attributes, periods).unwrap_err().to_string()
}

fn millis(video: &DashVideo) -> Vec<u64> {
    (0..video.segments()).map(|k| video.duration_of(k).as_millis()).collect()
}

const TEN_SECONDS: &str = "mediaPresentationDuration=\"PT10S\"";

#[test]
fn a_template_by_number_divides_the_period() {
    let video = video(
        TEN_SECONDS,
        r#"<Period><AdaptationSet mimeType="video/mp4" height="720">
            <SegmentTemplate media="v/$Number%05d$.m4s" timescale="1000" duration="4000" startNumber="1"/>
            <Representation id="hi" bandwidth="2000000" width="1280"/>
            <Representation id="lo" bandwidth="500000" width="320" height="240"/>
            </AdaptationSet><AdaptationSet mimeType="audio/mp4"><Representation bandwidth="9000000"/></AdaptationSet></Period>"#,
    )
    .unwrap();
    assert_eq!(millis(&video), [4_000, 4_000, 2_000]);
    let seen: Vec<_> = video.representations().iter().map(|r| (r.bitrate, r.resolution.unwrap().height)).collect();
    assert_eq!(seen, [(500_000, 240), (2_000_000, 720)], "sorted; the height is the set's where none is given");
    assert_eq!((video.bytes(0, 0), video.bytes(1, 2)), (250_000, 500_000));
    assert!(!video.ladder().is_live());
}

#[test]
fn a_timeline_repeats_and_inner_attributes_win() {
    let video = video(
        TEN_SECONDS,
        r#"<Period><SegmentTemplate timescale="10"/><AdaptationSet contentType="video">
            <SegmentTemplate media="$Time$.m4s" timescale="1000"><SegmentTimeline>
              <S t="0" d="3000" r="1"/><S d="4000"/></SegmentTimeline></SegmentTemplate>
            <Representation bandwidth="800000"/></AdaptationSet></Period>"#,
    )
    .unwrap();
    assert_eq!(millis(&video), [3_000, 3_000, 4_000]);
}

#[test]
fn a_list_states_sizes_by_range() {
    let video = video(
        TEN_SECONDS,
        r#"<Period><AdaptationSet><ContentComponent contentType="video"/><ContentComponent contentType="audio"/>
            <Representation bandwidth="800000"><SegmentList timescale="1" duration="5">
              <Initialization range="0-1391"/><SegmentURL mediaRange="1392-2391"/><SegmentURL media="b.mp4"/>
            </SegmentList></Representation></AdaptationSet></Period>"#,
    )
    .unwrap();
    assert_eq!(millis(&video), [5_000, 5_000]);
    assert_eq!((video.bytes(0, 0), video.bytes(0, 1)), (1_000, 500_000), "the second one has no range");
    assert_eq!(video.init_bytes(), 1_392);
}

#[test]
fn astreams_sizes_are_taken() {
    let video = video(
        TEN_SECONDS,
        r#"<Period><AdaptationSet mimeType="video/mp4"><Representation bandwidth="8000">
            <SegmentTemplate media="$Number$" timescale="96" duration="480"/>
            <SegmentSize id="a" size="40.0" scale="Kbits"/><SegmentSize id="b" size="1000.0" scale="Bytes"/>
            </Representation></AdaptationSet></Period>"#,
    )
    .unwrap();
    assert_eq!((video.bytes(0, 0), video.bytes(0, 1)), (5_120, 1_000));
}

const INDEXED: &str = r#"<Period><AdaptationSet mimeType="video/mp4"><Representation bandwidth="8000">
    <BaseURL>a.mp4</BaseURL><SegmentBase indexRange="672-979"><Initialization range="0-671"/></SegmentBase>
    </Representation></AdaptationSet></Period>"#;

#[test]
fn an_indexed_file_needs_a_segment_duration() {
    assert!(message(TEN_SECONDS, INDEXED).contains("give a `segment_duration`"));
    let selection = MpdSelection { segment_duration: Some(Duration::from_secs(4)), ..MpdSelection::default() };
    let video = mpd(TEN_SECONDS, INDEXED).unwrap().video(&selection).unwrap();
    assert_eq!((millis(&video), video.init_bytes()), (vec![4_000, 4_000, 2_000], 672));
}

/// A period with one representation of each of these rates.
fn period(attributes: &str, seconds: u32, rates: &[u32]) -> String {
    let representations: String = rates.iter().map(|rate| format!("<Representation bandwidth=\"{rate}\"/>")).collect();
    format!(
        "<Period {attributes}><AdaptationSet mimeType=\"video/mp4\">\
         <SegmentTemplate media=\"$Number$\" duration=\"{seconds}\"/>{representations}</AdaptationSet></Period>\n"
    )
}

#[test]
fn periods_follow_each_other() {
    let both = period("start=\"PT0S\"", 2, &[800, 1_600]) + &period("start=\"PT4S\"", 6, &[900, 1_500]);
    let whole = video(TEN_SECONDS, &both).unwrap();
    assert_eq!(millis(&whole), [2_000, 2_000, 6_000]);
    assert_eq!((whole.bytes(0, 0), whole.bytes(0, 2)), (200, 675), "each period's own rates");
    let main: Vec<_> = whole.representations().iter().map(|r| r.bitrate).collect();
    assert_eq!(main, [900, 1_500], "the longest period's");
    let second = MpdSelection { period: Some(2), ..MpdSelection::default() };
    assert_eq!(millis(&mpd(TEN_SECONDS, &both).unwrap().video(&second).unwrap()), [6_000]);
    let third = MpdSelection { period: Some(3), ..MpdSelection::default() };
    let error = mpd(TEN_SECONDS, &both).unwrap().video(&third).unwrap_err().to_string();
    assert!(error.contains("no period 3: the MPD has 2"), "{error}");
}

#[test]
fn periods_with_different_ladders_are_refused() {
    let both = period("duration=\"PT4S\"", 2, &[800, 1_600]) + &period("", 2, &[900]);
    assert_eq!(
        message(TEN_SECONDS, &both),
        "a.mpd:3:10: 1 video representations, where an earlier period has 2: choose one `period`"
    );
}

#[test]
fn a_limit_cuts_the_end_and_ends_what_has_none() {
    let limit = MpdSelection { duration: Some(Duration::from_secs(5)), ..MpdSelection::default() };
    let cut = |attributes, text: &str| millis(&mpd(attributes, text).unwrap().video(&limit).unwrap());
    assert_eq!(cut(TEN_SECONDS, &period("", 2, &[800])), [2_000, 2_000, 1_000]);
    assert!(message("type=\"dynamic\"", &period("start=\"PT0S\"", 2, &[800])).contains("give a `duration`"));
    assert_eq!(cut("type=\"dynamic\"", &period("start=\"PT0S\"", 2, &[800])), [2_000, 2_000, 1_000]);
    let both = period("duration=\"PT5S\"", 5, &[800]) + &period("", 5, &[800]);
    assert_eq!(cut(TEN_SECONDS, &both), [5_000]);
}

#[test]
fn the_set_with_the_highest_rate_is_chosen_or_the_named_one() {
    let set = |rate: u32| {
        format!(
            "<AdaptationSet contentType=\"video\"><SegmentTemplate media=\"$Number$\" duration=\"5\"/>\
             <Representation bandwidth=\"{rate}\"/><Representation bandwidth=\"{rate}\"/></AdaptationSet>"
        )
    };
    let text = format!("<Period>{}{}{}</Period>", set(100), set(300), set(200));
    let rate = |adaptation_set| {
        let selection = MpdSelection { adaptation_set, ..MpdSelection::default() };
        let video = mpd(TEN_SECONDS, &text).unwrap().video(&selection).map_err(|e| e.to_string())?;
        Ok(video.representations().iter().map(|r| r.bitrate).collect::<Vec<_>>())
    };
    assert_eq!(rate(None), Ok(vec![300]), "equal bitrates count once");
    assert_eq!(rate(Some(3)), Ok(vec![200]));
    assert_eq!(rate(Some(4)), Err("a.mpd:2:1: period 1 has no adaptation set 4: it has 3".to_string()));
    assert_eq!(rate(Some(0)), Err("a.mpd:2:1: period 1 has no adaptation set 0: it has 3".to_string()));
}

#[test]
fn errors_give_their_position() {
    let with = |inside: &str| {
        let representation = "<Representation bandwidth=\"1\"/>";
        message(
            TEN_SECONDS,
            &format!(
                "<Period><AdaptationSet mimeType=\"video/mp4\">\n{inside}{representation}</AdaptationSet></Period>"
            ),
        )
    };
    assert_eq!(
        with("<SegmentTemplate media=\"v.m4s\" duration=\"5\"/>"),
        "a.mpd:3:18: media=\"v.m4s\" has neither $Number$ nor $Time$"
    );
    assert!(with("<SegmentTemplate duration=\"x\"/>").starts_with("a.mpd:3:18: duration=\"x\" is not a whole number"));
    assert!(with("<SegmentTemplate duration=\"0\"/>").contains("is no usable time"));
    assert!(with("<SegmentTemplate timescale=\"0\" duration=\"1\"/>").contains("counts no time"));
    assert!(
        with("<SegmentTemplate><SegmentTimeline><S/></SegmentTimeline></SegmentTemplate>").contains("duration `d`")
    );
    assert!(
        with("<SegmentList duration=\"5\"><SegmentURL mediaRange=\"9-1\"/></SegmentList>").contains("range of bytes")
    );
    assert!(with("<SegmentList><SegmentURL/><SegmentURL/></SegmentList>").contains("no durations"));
    assert!(with("<Representation bandwidth=\"0\"/><SegmentTemplate duration=\"5\"/>").contains("bandwidth is 0"));
    assert!(with("<Representation/>").contains("needs a `bandwidth`"));
    assert_eq!(message("", ""), "a.mpd:1:1: the MPD has no Period");
    assert_eq!(message(TEN_SECONDS, "<Period/>"), "a.mpd:2:1: period 1 has no video");
    assert!(message("mediaPresentationDuration=\"10\"", "<Period/>").contains("is not a duration"));
    assert_eq!(
        Mpd::parse("a.xml", "<SMIL/>").unwrap_err().to_string(),
        "a.xml:1:1: the document is a `SMIL`, not an MPD"
    );
}

#[test]
fn representations_that_are_not_aligned_are_refused() {
    let text = r#"<Period><AdaptationSet mimeType="video/mp4">
        <Representation id="a" bandwidth="1"><SegmentTemplate media="$Number$" duration="5"/></Representation>
        <Representation id="b" bandwidth="2"><SegmentTemplate media="$Number$" duration="2"/></Representation>
        </AdaptationSet></Period>"#;
    assert_eq!(
        message(TEN_SECONDS, text),
        "a.mpd:4:9: 5 media segments, where representation `a` has 2: they are not aligned"
    );
}

#[test]
fn broken_xml_is_reported_with_its_place() {
    let broken = Mpd::parse("a.mpd", "<MPD>\n  <Period\n</MPD>").unwrap_err().to_string();
    assert!(broken.starts_with("a.mpd:3:1: not well-formed XML: "), "{broken}");
    let cut_off = Mpd::parse("a.mpd", "<MPD>\n").unwrap_err().to_string();
    assert!(cut_off.contains("not well-formed XML"), "{cut_off}");
}
