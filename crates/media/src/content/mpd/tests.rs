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
        "a.mpd:3:10: 1 video representations, where an earlier period has 2: choose one `period` (<AdaptationSet>)"
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
    assert_eq!(rate(Some(4)), Err("a.mpd:2:1: period 1 has no adaptation set 4: it has 3 (<Period>)".to_string()));
    assert_eq!(rate(Some(0)), Err("a.mpd:2:1: period 1 has no adaptation set 0: it has 3 (<Period>)".to_string()));
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
        "a.mpd:3:18: media=\"v.m4s\" has neither $Number$ nor $Time$: write one of them where segments differ (<SegmentTemplate>)"
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
    assert_eq!(message("", ""), "a.mpd:1:1: the MPD has no Period: it describes nothing to play (<MPD>)");
    assert_eq!(
        message(TEN_SECONDS, "<Period/>"),
        "a.mpd:2:1: period 1 has no video: period 1 is empty: it has no AdaptationSet, and is skipped; nothing is left to play: \
         name an MPD or a `period` that has video (<Period>)"
    );
    assert!(message("mediaPresentationDuration=\"10\"", "<Period/>").contains("is not a duration"));
    assert_eq!(
        Mpd::parse("a.xml", "<SMIL/>").unwrap_err().to_string(),
        "a.xml:1:1: the document is a `SMIL`, not an MPD: name a file whose root is <MPD> (<SMIL>)"
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
        "a.mpd:4:9: 5 media segments, where representation `a` has 2: they are not aligned; take one of them out (<Representation id=\"b\">)"
    );
}

#[test]
fn broken_xml_is_reported_with_its_place() {
    let broken = Mpd::parse("a.mpd", "<MPD>\n  <Period\n</MPD>").unwrap_err().to_string();
    assert!(broken.starts_with("a.mpd:3:1: not well-formed XML: "), "{broken}");
    let cut_off = Mpd::parse("a.mpd", "<MPD>\n").unwrap_err().to_string();
    assert!(cut_off.contains("not well-formed XML"), "{cut_off}");
}

/// The video with its warnings, each without its place.
fn warned(attributes: &str, periods: &str) -> (DashVideo, Vec<String>) {
    let (video, warnings) = mpd(attributes, periods).unwrap().video_with_warnings(&MpdSelection::default()).unwrap();
    (video, warnings.into_iter().map(|warning| warning.message).collect())
}

/// A set of segments of five seconds, with these attributes, first children and rates.
fn set(attributes: &str, inside: &str, rates: &[u32]) -> String {
    let representations: String = rates.iter().map(|rate| format!("<Representation bandwidth=\"{rate}\"/>")).collect();
    format!(
        "<AdaptationSet mimeType=\"video/mp4\" {attributes}>{inside}<SegmentTemplate media=\"$Number$\" duration=\"5\"/>\
         {representations}</AdaptationSet>\n"
    )
}

fn rates(video: &DashVideo) -> Vec<u64> {
    video.representations().iter().map(|r| r.bitrate).collect()
}

#[test]
fn a_hole_is_jumped_over_and_named() {
    let timeline = |s: &str| {
        format!(
            "<Period><AdaptationSet contentType=\"video\"><SegmentTemplate media=\"$Time$\"><SegmentTimeline>{s}\
             </SegmentTimeline></SegmentTemplate><Representation bandwidth=\"8\"/></AdaptationSet></Period>"
        )
    };
    let (video, warnings) = warned(TEN_SECONDS, &timeline("<S t=\"0\" d=\"2\"/><S t=\"4\" d=\"2\" r=\"2\"/>"));
    assert_eq!(millis(&video), [2_000; 4]);
    assert_eq!(warnings, ["period 1 has a hole of 2 s at 2 s: the player jumps over it, as dash.js does"]);
    let (_, warnings) = warned(TEN_SECONDS, &timeline("<S t=\"0\" d=\"2\" r=\"3\"/><S t=\"6\" d=\"2\" r=\"1\"/>"));
    let back = "period 1 has media segments that begin up to 2 s before the end of the one before: they are played one after \
        the other";
    assert_eq!(warnings, [back]);
    let nothing = message(TEN_SECONDS, &timeline("<S t=\"90\" d=\"2\"/>"));
    assert!(nothing.contains("no media segment lies between its begin and its end") && nothing.contains("<Period>"));
}

#[test]
fn periods_may_leave_a_gap_or_overlap() {
    let both = period("start=\"PT0S\" duration=\"PT4S\"", 2, &[8]) + &period("start=\"PT6S\"", 2, &[8]);
    let (video, warnings) = warned(TEN_SECONDS, &both);
    assert_eq!((millis(&video), warnings.len()), (vec![2_000; 4], 1));
    assert!(warnings[0].starts_with("nothing is played for 2 s before period 2"), "{warnings:?}");
    let both = period("start=\"PT0S\" duration=\"PT8S\"", 2, &[8]) + &period("start=\"PT6S\"", 2, &[8]);
    let (video, warnings) = warned(TEN_SECONDS, &both);
    assert_eq!((millis(&video), warnings.len()), (vec![2_000; 5], 1));
    assert!(warnings[0].starts_with("the next period begins 2 s before the end of period 1"), "{warnings:?}");
}

#[test]
fn what_is_remote_is_skipped_or_its_place_holder_is_played() {
    let xlink = "xmlns:xlink=\"http://www.w3.org/1999/xlink\"";
    let attributes = format!("{xlink} {TEN_SECONDS}");
    let main = period("id=\"main\" start=\"PT0S\" duration=\"PT4S\"", 2, &[8]);
    let (video, warnings) = warned(&attributes, &format!("<Period id=\"ad\" xlink:href=\"ad.xml\"/>{main}"));
    assert_eq!(millis(&video), [2_000; 2]);
    assert!(warnings[0].starts_with("period ad is remote (xlink:href=\"ad.xml\")"), "{warnings:?}");
    let gone = period("duration=\"PT4S\" xlink:href=\"urn:mpeg:dash:resolve-to-zero:2013\"", 2, &[8]);
    let (video, warnings) = warned(&attributes, &(gone + &main));
    assert_eq!((video.segments(), warnings.len()), (2, 1), "{warnings:?}");
    let held = period("id=\"ad\" duration=\"PT4S\" xlink:href=\"ad.xml\"", 2, &[8]);
    let (video, warnings) = warned(&attributes, &(held + &period("", 2, &[8])));
    assert_eq!((video.segments(), warnings.len()), (5, 1), "{warnings:?}");
    let only = message(&attributes, "<Period id=\"ad\" xlink:href=\"ad.xml\"/>");
    assert!(
        only.contains("period 1 has no video: period ad is remote") && only.contains("(<Period id=\"ad\">)"),
        "{only}"
    );
    let set = "<AdaptationSet xlink:href=\"set.xml\"/>".to_string() + &set("", "", &[8]);
    let (_, warnings) = warned(&attributes, &format!("<Period>{set}</Period>"));
    assert!(warnings[0].contains("AdaptationSet 1 is in another file"), "{warnings:?}");
}

#[test]
fn essential_properties_are_skipped_as_dash_js_skips_them() {
    let essential = |scheme: &str| format!("<EssentialProperty schemeIdUri=\"{scheme}\" value=\"1\"/>");
    let main = set("codecs=\"avc1.4d401f\"", "", &[100, 200]);
    let with = |other: &str| warned(TEN_SECONDS, &format!("<Period>{main}{other}</Period>"));
    let trick = set("codecs=\"avc1.4d401f\"", &essential("http://dashif.org/guidelines/trickmode"), &[900]);
    let (video, warnings) = with(&trick);
    assert_eq!((rates(&video), warnings), (vec![100, 200], vec![]));
    let (video, warnings) = with(&set("codecs=\"avc1.4d401f\"", &essential("urn:mpeg:dash:srd:2014"), &[900]));
    assert_eq!(rates(&video), [100, 200]);
    assert!(warnings[0].contains("AdaptationSet 2 has the EssentialProperty urn:mpeg:dash:srd:2014"), "{warnings:?}");
    let known = set("codecs=\"avc1.4d401f\"", &essential("urn:mpeg:dash:urlparam:2014"), &[900]);
    assert_eq!(rates(&with(&known).0), [100, 200, 900]);
    let supplemental = known.replace("EssentialProperty", "SupplementalProperty").replace("urlparam", "anything");
    assert_eq!(rates(&with(&supplemental).0), [100, 200, 900], "a player may ignore it");
    let only = message(TEN_SECONDS, &format!("<Period>{}</Period>", set("", &essential("urn:x"), &[900])));
    assert!(
        only.contains("period 1 has no video that dash.js plays") && only.contains("`adaptation_set = 1`"),
        "{only}"
    );
    let one = format!("<Representation bandwidth=\"300\">{}</Representation>", essential("urn:x"));
    let (video, _) =
        warned(TEN_SECONDS, &format!("<Period>{}</Period>", main.replace("</Adap", &format!("{one}</Adap"))));
    assert_eq!(rates(&video), [100, 200], "of a representation");
}

#[test]
fn sets_of_one_content_are_one_ladder_and_others_are_named() {
    let with = |sets: &[String]| warned(TEN_SECONDS, &format!("<Period>{}</Period>", sets.concat()));
    let avc = |id: u32, rate| set(&format!("id=\"{id}\" codecs=\"avc1.4d401f\" lang=\"und\""), "", &[rate]);
    let switching =
        "<SupplementalProperty schemeIdUri=\"urn:mpeg:dash:adaptation-set-switching:2016\" value=\"1, 2\"/>";
    let declared = [avc(1, 100).replace("<SegmentT", &format!("{switching}<SegmentT")), avc(2, 200)];
    let (video, warnings) = with(&declared);
    assert_eq!((rates(&video), warnings), (vec![100, 200], vec![]), "as the descriptor says");
    let other = |attributes: &str, inside: &str| with(&[avc(1, 100), set(attributes, inside, &[50])]);
    let role = |value: &str| format!("<Role schemeIdUri=\"urn:mpeg:dash:role:2011\" value=\"{value}\"/>");
    for (attributes, inside, why) in [
        ("codecs=\"hvc1.1.6.L93.90\"", String::new(), "another codec"),
        ("codecs=\"avc3.640028\" lang=\"de\"", String::new(), "another language"),
        ("codecs=\"avc3.640028\"", role("sign"), "another role"),
        ("codecs=\"avc3.640028\" selectionPriority=\"0\"", String::new(), "a lower selectionPriority"),
        ("codecs=\"avc3.640028\"", "<Viewpoint schemeIdUri=\"urn:x\" value=\"2\"/>".into(), "other pictures"),
    ] {
        let (video, warnings) = other(attributes, &inside);
        assert_eq!(rates(&video), [100], "{why}");
        assert!(warnings.len() == 1 && warnings[0].contains(&format!("because it has {why}")), "{warnings:?}");
        assert!(warnings[0].contains("1 representation up to 50 b/s"), "{warnings:?}");
    }
    assert_eq!(rates(&other("codecs=\"avc3.640028\"", "").0), [50, 100], "profile and level do not matter");
    let main = set("codecs=\"avc1.4d401f\"", &role("main"), &[10]);
    assert_eq!(rates(&with(&[avc(1, 100), main]).0), [10], "the main role before a higher bitrate");
    let shorter = avc(2, 50).replace("duration=\"5\"", "duration=\"2\"");
    let (video, warnings) = with(&[avc(1, 100), shorter]);
    assert_eq!(rates(&video), [100]);
    assert!(warnings[0].contains("because it has other media segments"), "{warnings:?}");
}

#[test]
fn sizes_that_are_not_stated_or_not_plausible_are_named() {
    let with = |inside: &str| {
        let text = format!(
            "<Period><AdaptationSet contentType=\"video\"><Representation id=\"a\" bandwidth=\"8000\">{inside}</Representation>\
             </AdaptationSet></Period>"
        );
        warned(TEN_SECONDS, &text)
    };
    let list = "<SegmentList duration=\"5\"><Initialization range=\"0-\"/><SegmentURL mediaRange=\"9-\"/>\
        <SegmentURL mediaRange=\"-700\"/></SegmentList>";
    let (video, warnings) = with(list);
    assert_eq!((video.bytes(0, 0), video.bytes(0, 1), video.init_bytes()), (5_000, 700, 672));
    let open = "representation `a` has 1 `mediaRange` without an end: these media segments have their nominal size";
    assert_eq!(warnings, [open]);
    let template = "<SegmentTemplate media=\"$Number$\" duration=\"5\"/>";
    let (video, warnings) = with(&format!("{template}<SegmentSize size=\"4\" scale=\"KB\"/>"));
    assert_eq!((video.bytes(0, 0), video.bytes(0, 1)), (4_096, 5_000));
    assert!(warnings[0].contains("has 1 SegmentSize for 2 media segments"), "{warnings:?}");
    let mistaken = "<SegmentSize size=\"40\" scale=\"Mbits\"/><SegmentSize size=\"40\" scale=\"Kbits\"/>";
    let (video, warnings) = with(&format!("{template}{mistaken}"));
    assert_eq!((video.bytes(0, 0), video.bytes(0, 1)), (5_120, 5_120));
    assert!(warnings[0].contains("1 SegmentSize in Mbits of a thousand times"), "{warnings:?}");
}

#[test]
fn a_fault_outside_of_the_video_does_not_matter() {
    let audio = "<AdaptationSet mimeType=\"audio/mp4\"><Representation/></AdaptationSet>";
    let text = "<AdaptationSet mimeType=\"text/vtt\"><SegmentTemplate media=\"a.vtt\" duration=\"5\"/><Representation \
        bandwidth=\"1\"/></AdaptationSet>";
    let (video, warnings) = warned(TEN_SECONDS, &format!("<Period>{audio}{text}{}</Period>", set("", "", &[8])));
    assert_eq!((video.segments(), warnings), (2, vec![]));
    let video = set("", "", &[8]).replace("bandwidth=\"8\"", "");
    assert!(message(TEN_SECONDS, &format!("<Period>{video}</Period>")).contains("(<Representation>)"));
}

#[test]
fn what_would_not_end_or_fit_is_refused() {
    let huge = u64::MAX;
    let with = |s: &str, rate: &str| {
        let text = format!(
            "<Period><AdaptationSet contentType=\"video\"><SegmentTemplate media=\"$Time$\"><SegmentTimeline>{s}\
             </SegmentTimeline></SegmentTemplate><Representation bandwidth=\"{rate}\"/></AdaptationSet></Period>"
        );
        video("", &text)
    };
    assert!(with(&format!("<S t=\"{huge}\" d=\"{huge}\" r=\"{}\"/>", i64::MAX), "8").is_err());
    assert!(with("<S t=\"0\" d=\"1\" r=\"2000000\"/>", "8").is_err());
    assert!(with("<S t=\"0\" d=\"9000000000\"/>", "8").is_err());
    assert!(
        with("<S t=\"0\" d=\"1000000\" r=\"9999\"/>", "1000000000000").unwrap_err().to_string().contains("at most")
    );
    assert!(with("<S t=\"0\" d=\"1\"/>", &huge.to_string()).unwrap_err().to_string().contains("at most 1 Tb/s"));
    let end = format!("<Period duration=\"PT9S\">{}</Period>", set("", "", &[8]));
    let end = end.replace("duration=\"5\"", &format!("duration=\"5\" startNumber=\"0\" endNumber=\"{huge}\""));
    assert_eq!(millis(&video("", &end).unwrap()), [5_000, 4_000]);
    assert!(Mpd::read("a.mpd", &vec![b' '; (64 << 20) + 1]).unwrap_err().to_string().contains("more than an MPD has"));
}

fn files(mpd_path: &str, attributes: &str, periods: &str) -> Vec<Vec<Option<String>>> {
    mpd(attributes, periods).unwrap().files(&MpdSelection::default(), mpd_path).unwrap()
}

#[test]
fn files_follow_from_templates_and_base_urls() {
    let periods = r#"<Period><BaseURL>one/</BaseURL><AdaptationSet mimeType="video/mp4">
        <SegmentTemplate media="$RepresentationID$-$Number%03d$.m4s" duration="5" startNumber="9"/>
        <Representation id="hi" bandwidth="2000000"><BaseURL>/top/</BaseURL></Representation>
        <Representation id="lo" bandwidth="500000"/></AdaptationSet></Period>"#;
    let found = files("/films/a/manifest.mpd", TEN_SECONDS, periods);
    let expected = |names: [&str; 2]| names.map(|name| Some(name.to_string())).to_vec();
    assert_eq!(found[0], expected(["/films/a/one/lo-009.m4s", "/films/a/one/lo-010.m4s"]));
    assert_eq!(found[1], expected(["/top/hi-009.m4s", "/top/hi-010.m4s"]));
}

#[test]
fn a_base_url_that_no_server_takes_is_not_read() {
    let first = |bytes: usize| {
        let periods = format!(
            r#"<Period><BaseURL>{}/</BaseURL><AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$Number$" duration="5"/>
            <Representation bandwidth="800000"/></AdaptationSet></Period>"#,
            "b".repeat(bytes - 1)
        );
        files("/m.mpd", TEN_SECONDS, &periods)[0][0].clone().unwrap()
    };
    assert_eq!(first(2_048).len(), 1 + 2_048 + 1);
    assert_eq!(first(2_049), "/1");
}

#[test]
fn files_by_time_begin_where_the_timeline_says() {
    let periods = r#"<Period><AdaptationSet contentType="video">
        <SegmentTemplate media="$Time$.m4s" timescale="1000" presentationTimeOffset="1000"><SegmentTimeline>
          <S t="1000" d="3000" r="1"/><S d="2000"/><S t="9500" d="1500" r="-1"/></SegmentTimeline></SegmentTemplate>
        <Representation bandwidth="800000"/></AdaptationSet></Period>"#;
    let names: Vec<_> = files("/m.mpd", TEN_SECONDS, periods)[0].iter().map(|name| name.clone().unwrap()).collect();
    assert_eq!(names, ["/1000.m4s", "/4000.m4s", "/7000.m4s", "/9500.m4s"]);
}

#[test]
fn parts_of_files_have_no_file_of_their_own() {
    let list = r#"<Period><AdaptationSet mimeType="video/mp4"><Representation bandwidth="800000"><SegmentList duration="5">
        <SegmentURL mediaRange="1392-2391" media="a.mp4"/><SegmentURL media="b.mp4"/></SegmentList></Representation>
        </AdaptationSet></Period>"#;
    assert_eq!(files("/x/m.mpd", TEN_SECONDS, list), [[None, Some("/x/b.mp4".to_string())]]);
}

#[test]
fn sizes_of_files_come_in_the_place_of_nominal_ones() {
    let periods = r#"<Period><AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$Number$" duration="5"/>
        <Representation bandwidth="800000"/></AdaptationSet></Period>"#;
    let nominal = video(TEN_SECONDS, periods).unwrap();
    let known = nominal.with_sizes_of(|_, index| [Some(123), Some(0)][index as usize]).unwrap();
    assert_eq!((known.bytes(0, 0), known.bytes(0, 1)), (123, 500_000));
    assert_eq!(known.duration(), nominal.duration());
}
