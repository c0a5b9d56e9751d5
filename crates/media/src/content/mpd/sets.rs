//! Adaptation sets: what they say of themselves, which of them a player may use, and which make one ladder.
//!
//! As dash.js 5 does it: a set or a representation with an EssentialProperty that the player does not know is skipped
//! (`CapabilitiesFilter`, with the default of `supportedEssentialProperties`); of the others those with the highest
//! `selectionPriority` count, then those with the role "main". Of these we take the one with the highest bitrate.
//! dash.js 5 prefers the least bits per pixel among the codecs that its browser can decode, which an MPD does not tell.

use super::xml::{Element, Fault};
use super::{AdaptationSet, MediaKind};

/// A descriptor: scheme and value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Descriptor {
    scheme: String,
    value: String,
}

/// What a set says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Traits {
    id: Option<String>,
    /// What all sets of one ladder share.
    content: Shared,
    /// Of its essential properties the first that dash.js does not know.
    unknown: Option<String>,
    /// Sets of these `id`s can be switched to.
    switching: Vec<String>,
    priority: u64,
    main: bool,
}

/// Sets that have this in common show the same, in one format.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shared {
    container: String,
    codec: String,
    language: String,
    roles: Vec<Descriptor>,
    /// Viewpoint, accessibility, colours: other pictures.
    pictures: Vec<Descriptor>,
}

const TRICK_MODE: &str = "http://dashif.org/guidelines/trickmode";
const THUMBNAILS: [&str; 2] = ["http://dashif.org/thumbnail_tile", "http://dashif.org/guidelines/thumbnail_tile"];
const SWITCHING: &str = "urn:mpeg:dash:adaptation-set-switching:2016";
const ROLE: &str = "urn:mpeg:dash:role:2011";
const COLOURS: [&str; 2] = ["urn:mpeg:mpegB:cicp:ColourPrimaries", "urn:mpeg:mpegB:cicp:TransferCharacteristics"];

/// Descriptors of one kind within an element, in order.
fn descriptors<'a>(element: &Element<'a>, name: &'a str) -> impl Iterator<Item = Descriptor> + use<'a> {
    let text = |e: &Element<'_>, attribute| e.text(attribute).unwrap_or_default().trim().to_string();
    element.children(name).map(move |e| Descriptor { scheme: text(&e, "schemeIdUri"), value: text(&e, "value") })
}

/// The scheme of the first essential property that dash.js 5 does not know.
pub(super) fn unknown_property(element: &Element<'_>) -> Option<String> {
    descriptors(element, "EssentialProperty").find(|property| !is_known(property)).map(|property| property.scheme)
}

/// Whether a representation is a grid of thumbnails.
pub(super) fn is_thumbnails(element: &Element<'_>) -> bool {
    descriptors(element, "EssentialProperty").any(|property| THUMBNAILS.contains(&property.scheme.as_str()))
}

/// The expressions of dash.js are not anchored: "16" has a 1, so it is known.
fn is_known(property: &Descriptor) -> bool {
    let has = |digits: &str| property.value.chars().any(|c| digits.contains(c));
    match property.scheme.as_str() {
        "urn:mpeg:mpegB:cicp:ColourPrimaries" => has("1567"),
        "urn:mpeg:mpegB:cicp:MatrixCoefficients" => has("0156"),
        "urn:mpeg:mpegB:cicp:TransferCharacteristics" => has("16"),
        "urn:dvb:dash:fontdownload:2014"
        | "urn:mpeg:dash:urlparam:2014"
        | "urn:mpeg:dash:urlparam:2016"
        | "urn:mpeg:dash:ssr:2023" => true,
        other => THUMBNAILS.contains(&other),
    }
}

impl Traits {
    pub fn read(set: &Element<'_>, representations: &[Element<'_>]) -> Result<Self, Fault> {
        let inherited = |name: &str| {
            let mut found: Vec<_> = representations.iter().filter_map(|r| r.text(name).or(set.text(name))).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        let mut codecs: Vec<_> = inherited("codecs").into_iter().map(video_codec).collect();
        codecs.sort_unstable();
        codecs.dedup();
        let container = inherited("mimeType").first().map_or("", |mime| mime.split(';').next().unwrap_or_default());
        let language = set.text("lang").unwrap_or_default().trim().to_ascii_lowercase();
        let mut roles: Vec<_> = descriptors(set, "Role").collect();
        roles.sort_unstable();
        let colours = ["SupplementalProperty", "EssentialProperty"].into_iter().flat_map(|name| descriptors(set, name));
        let colours = colours.filter(|property| COLOURS.contains(&property.scheme.as_str()));
        let others = ["Viewpoint", "Accessibility"].into_iter().flat_map(|name| descriptors(set, name));
        let mut pictures: Vec<_> = colours.chain(others).collect();
        pictures.sort_unstable();
        let switching = descriptors(set, "SupplementalProperty").find(|property| property.scheme == SWITCHING);
        let switching = switching.map_or_else(Vec::new, |of| of.value.split(',').map(|id| id.trim().into()).collect());
        Ok(Traits {
            id: set.text("id").map(str::to_string),
            unknown: unknown_property(set),
            switching,
            // dash.js's default.
            priority: set.number("selectionPriority", "a whole number")?.unwrap_or(1),
            main: roles.iter().any(|role| role.scheme == ROLE && role.value == "main"),
            content: Shared {
                container: container.trim().to_ascii_lowercase(),
                codec: codecs.join("+"),
                // Undetermined, in ISO 639-2.
                language: if language == "und" { String::new() } else { language },
                roles,
                pictures,
            },
        })
    }

    /// Of its essential properties the first that dash.js does not know.
    pub fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// What distinguishes it from another set, in words.
    fn difference(&self, other: &Traits) -> &'static str {
        let (a, b) = (&self.content, &other.content);
        match () {
            () if a.codec != b.codec => "another codec",
            () if a.container != b.container => "another container",
            () if a.language != b.language => "another language",
            () if a.roles != b.roles => "another role",
            () if self.priority != other.priority => "a lower selectionPriority",
            () if a.codec.is_empty() => "no `codecs`",
            () => "other pictures",
        }
    }

    /// Whether one of the two lists the other as one to switch to.
    fn switches_with(&self, other: &Traits) -> bool {
        let lists = |from: &Traits, to: &Traits| to.id.as_ref().is_some_and(|id| from.switching.contains(id));
        lists(self, other) || lists(other, self)
    }
}

/// The codec of the video without profile and level: of "avc1.64001f,mp4a.40.2" it is H.264.
fn video_codec(codecs: &str) -> String {
    let names = codecs.split(',').map(|codec| codec.trim().split('.').next().unwrap_or_default().to_ascii_lowercase());
    let names: Vec<_> = names.collect();
    let family = |name: &String| match name.as_str() {
        "avc1" | "avc2" | "avc3" | "avc4" => Some("H.264"),
        "hvc1" | "hev1" => Some("H.265"),
        "vvc1" | "vvi1" => Some("H.266"),
        "dvh1" | "dvhe" | "dvav" | "dva1" | "dav1" => Some("Dolby Vision"),
        "vp8" | "vp08" => Some("VP8"),
        "vp9" | "vp09" => Some("VP9"),
        "av01" => Some("AV1"),
        _ => None,
    };
    names.iter().find_map(family).map_or_else(|| names.first().cloned().unwrap_or_default(), str::to_string)
}

/// The sets of a period that are used.
#[derive(Debug)]
pub(super) struct UsedSets {
    /// Positions, the first one is what dash.js would play; the others have the same content.
    pub sets: Vec<usize>,
    /// What is not used, or used although dash.js would not.
    pub remarks: Vec<(usize, String)>,
}

/// Why no set of a period is used.
pub(super) enum NoVideo {
    /// A set that would be chosen is faulty.
    Fault(Fault),
    /// There is none.
    None,
    /// There is one that is skipped, for this reason.
    Skipped(String),
}

/// Chooses among the sets of a period.
pub(super) fn choose(sets: &[AdaptationSet]) -> Result<UsedSets, NoVideo> {
    let mut remarks = Vec::new();
    let (usable, skipped): (Vec<_>, Vec<_>) = sets.iter().enumerate().partition(|(_, set)| set.unknown().is_none());
    for (n, set) in skipped {
        let scheme = set.unknown().unwrap_or_default();
        // Trick modes are expected together with a video, and no part of it.
        if set.kind == MediaKind::Video && scheme != TRICK_MODE {
            let why = format!("has the EssentialProperty {scheme}, which dash.js does not know");
            remarks
                .push((n, format!("AdaptationSet {0} {why}: it is skipped; `adaptation_set = {0}` plays it", n + 1)));
        }
    }
    for (n, _) in usable.iter().filter(|(_, set)| set.remote) {
        let why = "is in another file (xlink:href), which is not fetched: it is skipped";
        remarks.push((*n, format!("AdaptationSet {} {why}; write its content here to play it", n + 1)));
    }
    let is_video = |set: &AdaptationSet| set.kind == MediaKind::Video && !set.remote && !set.is_empty();
    let usable: Vec<_> = usable.into_iter().filter(|(_, set)| is_video(set)).collect();
    if let Some(fault) = usable.iter().find_map(|(_, set)| set.fault.clone()) {
        return Err(NoVideo::Fault(fault));
    }
    let Some(best) = best(&usable) else {
        return Err(remarks.into_iter().next().map_or(NoVideo::None, |(_, remark)| NoVideo::Skipped(remark)));
    };
    let chosen = &sets[best];
    let mut together = vec![best];
    for (n, set) in usable.into_iter().filter(|(n, _)| *n != best) {
        let same = set.traits.content == chosen.traits.content && set.traits.priority == chosen.traits.priority;
        // Codecs that are not stated may be two.
        if same && !chosen.traits.content.codec.is_empty() {
            together.push(n);
        } else {
            remarks.push((n, unused(n, set, chosen.traits.difference(&set.traits))));
        }
    }
    Ok(UsedSets { sets: together, remarks })
}

/// The set that a player takes; the first of equals.
fn best(usable: &[(usize, &AdaptationSet)]) -> Option<usize> {
    let priority = usable.iter().map(|(_, set)| set.traits.priority).max()?;
    let first = usable.iter().filter(|(_, set)| set.traits.priority == priority);
    let any_main = first.clone().any(|(_, set)| set.traits.main);
    let ranked = first.filter(|(_, set)| !any_main || set.traits.main);
    // `max_by_key` takes the last of equals, so the list is turned round.
    ranked.rev().max_by_key(|(_, set)| set.highest()).map(|(n, _)| *n)
}

/// That a set is not used, and why.
pub(super) fn unused(n: usize, set: &AdaptationSet, why: &str) -> String {
    let (count, highest) = (set.usable().count(), set.highest());
    let codec = Some(&set.traits.content.codec).filter(|codec| !codec.is_empty());
    let codec = codec.map_or_else(String::new, |codec| format!("{codec}, "));
    let word = if count == 1 { "representation" } else { "representations" };
    let n = n + 1;
    format!(
        "AdaptationSet {n} ({codec}{count} {word} up to {highest} b/s) is not used, because it has {why}; `adaptation_set = {n}` \
         plays it"
    )
}

/// That sets were joined, unless each says itself that this is meant.
pub(super) fn joined(sets: &[AdaptationSet], together: &[usize]) -> Option<String> {
    let (first, others) = together.split_first()?;
    if others.iter().all(|n| sets[*first].traits.switches_with(&sets[*n].traits)) {
        return None;
    }
    let mut numbers: Vec<_> = together.iter().map(|n| n + 1).collect();
    numbers.sort_unstable();
    let (last, before) = numbers.split_last()?;
    let before = before.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    Some(format!(
        "AdaptationSets {before} and {last} have the same codec, language and role: their representations are one ladder; dash.js \
         plays AdaptationSet {} alone, as no {SWITCHING} joins them; `adaptation_set` chooses one",
        first + 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_and_levels_do_not_matter() {
        let same = |a: &str, b: &str| video_codec(a) == video_codec(b);
        assert!(same("avc1.64001f", "avc3.42E01E") && same("avc1.640028,mp4a.40.2", "mp4a.40.2, avc1.4D401F"));
        assert!(same("hvc1.1.6.L93.90", "hev1.2.4.L120.B0") && same("vp9", "vp09.00.10.08"));
        assert!(!same("avc1.64001f", "hvc1.1.6.L93.90") && !same("av01.0.04M.08", "vp09.00.10.08"));
        assert_eq!(video_codec("theora"), "theora");
    }

    #[test]
    fn essential_properties_are_known_as_dash_js_knows_them() {
        let known = |scheme: &str, value: &str| is_known(&Descriptor { scheme: scheme.into(), value: value.into() });
        assert!(!known(TRICK_MODE, "1") && !known("urn:mpeg:dash:srd:2014", "0,0,0,1,1") && !known("", ""));
        assert!(known("urn:mpeg:dash:urlparam:2014", "") && known(THUMBNAILS[0], "10x20"));
        assert!(known(COLOURS[0], "1") && !known(COLOURS[0], "9") && !known(COLOURS[0], ""));
        assert!(known(COLOURS[1], "16") && !known("urn:dvb:dash:hdr-dmi", "2094-10"));
    }
}
