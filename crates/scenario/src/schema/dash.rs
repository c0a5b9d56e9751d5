//! DASH: what is streamed, what its player may be told, and what is measured of it.

use super::document::{Node, Origin, Value};
use super::reader::{Complaint, ReadQuantity, Reader, Result, wrong_kind};
use super::reference;
use super::resolved::quoted;
use crate::quantity::{read_bytes, read_rate, read_time, write_bytes, write_rate, write_time};
use anabranch_media::abr::{AbrOptions, Strategy};
use anabranch_media::content::{
    ContentError, DashVideo, LADDERS, Mpd, MpdSelection, Resolution, SegmentVariation, read_table,
};
use anabranch_media::{DashMetricsOptions, DashOptions, GiveUp, QoeWeights};
use anabranch_units::{Bandwidth, Duration};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A video in several representations.
#[derive(Clone, Debug, PartialEq)]
pub struct DashContent {
    source: Source,
    /// Play no more than this.
    duration: Option<Duration>,
    variation: SegmentVariation,
    /// Which of the made-up sequences of sizes. It does not depend on the run's seed: repetitions of an experiment play
    /// the same video.
    seed: u64,
    init: Option<u64>,
    manifest: Option<u64>,
    video: Arc<DashVideo>,
}

#[derive(Clone, Debug, PartialEq)]
enum Source {
    Ladder(&'static str),
    /// The file as it is opened: the scenario's directory is in front of a relative name.
    Mpd(PathBuf, MpdSelection),
    Table(PathBuf),
}

impl DashContent {
    /// The video as the player streams it.
    pub fn video(&self) -> &Arc<DashVideo> {
        &self.video
    }
}

/// Larger files are no descriptions of a video.
const MOST_FILE_BYTES: u64 = 1 << 28;
/// What `[video.dash]` may name.
const SOURCES: [&str; 3] = ["ladder", "mpd", "table"];
/// Keys that only choose from an MPD.
const OF_MPD: [&str; 3] = ["period", "adaptation_set", "segment_duration"];

/// Reads `video = { kind = "dash", ... }`.
pub(super) fn read_video(file: &str, node: &Node, directory: Option<&Path>) -> Result<DashContent> {
    let r = Reader::new(file, node, "video.dash", "video")?;
    let given: Vec<&str> = SOURCES.into_iter().filter(|key| r.has(key)).collect();
    let [source] = given[..] else {
        return r.missing("ladder", "one of `ladder`, `mpd` and `table`, which say what there is");
    };
    if let Some(entry) = OF_MPD.iter().find_map(|key| r.entry(key)).filter(|_| source != "mpd") {
        let complaint = Complaint::new(format!("only an MPD has `{}`", entry.key), "`mpd` instead");
        return r.fail(complaint, &entry.at);
    }
    let (name, at) = r.text(source)?.expect("it was given");
    let duration = r.quantity("duration", read_time)?;
    let (source, base) = match source {
        "ladder" => read_ladder(&r, name, at, duration)?,
        "mpd" => read_mpd(&r, name, at, duration, directory)?,
        _ => read_sizes(&r, name, at, directory)?,
    };
    let own = SegmentVariation::default();
    let usual = if matches!(source, Source::Ladder(_)) { own.scene } else { 0.0 };
    let variation = SegmentVariation {
        scene: r.number("scene_variation", 0.0..=MOST_VARIATION)?.unwrap_or(usual),
        scene_length: r.quantity_or_default("scene_length", read_time)?,
    };
    if !variation.is_valid() {
        return r.fail(Complaint::new("`scene_length` is zero", "a time above zero"), r.at);
    }
    let seed = r.integer_or_default("seed", 0..=u64::from(u32::MAX))?;
    let (init, manifest) = (r.quantity("init", read_bytes)?, r.quantity("manifest", read_bytes)?);
    let video = finish(base, &variation, seed, init, manifest);
    Ok(DashContent { source, duration, variation, seed, init, manifest, video: Arc::new(video) })
}

/// As for pictures: twice what any published video has.
const MOST_VARIATION: f64 = 10.0;

fn finish(
    base: DashVideo,
    variation: &SegmentVariation,
    seed: u64,
    init: Option<u64>,
    manifest: Option<u64>,
) -> DashVideo {
    // Sizes that shall not vary stay exactly as they are.
    let mut video =
        if variation.scene > 0.0 { base.varied(variation, &mut ChaCha8Rng::seed_from_u64(seed)) } else { base };
    if let Some(bytes) = init {
        video = video.with_init_bytes(bytes);
    }
    if let Some(bytes) = manifest {
        video = video.with_manifest_bytes(bytes);
    }
    video
}

fn read_ladder(r: &Reader<'_>, name: &str, at: &Origin, duration: Option<Duration>) -> Result<(Source, DashVideo)> {
    let Some(ladder) = LADDERS.find(name) else {
        return r.fail(Complaint::unknown("ladder", name, LADDERS.names()), at);
    };
    let video = (ladder.create)().video(duration);
    let video = video.or_else(|error| r.fail(Complaint::new(error.to_string(), "another duration"), r.at))?;
    Ok((Source::Ladder(ladder.name), video))
}

fn read_mpd(
    r: &Reader<'_>,
    name: &str,
    at: &Origin,
    duration: Option<Duration>,
    directory: Option<&Path>,
) -> Result<(Source, DashVideo)> {
    const MOST: u64 = 10_000;
    let selection = MpdSelection {
        period: r.integer("period", 1..=MOST)?.map(|n| n as usize),
        adaptation_set: r.integer("adaptation_set", 1..=MOST)?.map(|n| n as usize),
        duration,
        segment_duration: r.quantity("segment_duration", read_time)?,
    };
    if selection.segment_duration.is_some_and(|d| d.is_zero()) {
        return r.fail(Complaint::new("`segment_duration` is zero", "a time above zero"), r.at);
    }
    let (path, text) = read_text(r, name, at, directory)?;
    let video = Mpd::parse(&path.to_string_lossy(), &text).and_then(|mpd| mpd.video(&selection));
    Ok((Source::Mpd(path, selection), content(r, at, video)?))
}

fn read_sizes(r: &Reader<'_>, name: &str, at: &Origin, directory: Option<&Path>) -> Result<(Source, DashVideo)> {
    if let Some(entry) = r.entry("duration") {
        let complaint = Complaint::new("a table of sizes has its own duration", "`duration` with `ladder` or `mpd`");
        return r.fail(complaint, &entry.at);
    }
    let (path, text) = read_text(r, name, at, directory)?;
    let video = read_table(&path.to_string_lossy(), &text);
    Ok((Source::Table(path), content(r, at, video)?))
}

/// A description's own complaint names its file and line; it stands where the scenario names the file.
fn content(r: &Reader<'_>, at: &Origin, video: std::result::Result<DashVideo, ContentError>) -> Result<DashVideo> {
    video.or_else(|error| r.fail(Complaint::new(error.to_string(), ""), at))
}

fn read_text(r: &Reader<'_>, name: &str, at: &Origin, directory: Option<&Path>) -> Result<(PathBuf, String)> {
    let path = directory.map_or_else(|| PathBuf::from(name), |directory| directory.join(name));
    let wrong = |problem: String| Complaint::new(format!("`{}`: {problem}", path.display()), "").at(r.file, at);
    let size = std::fs::metadata(&path).map_err(|error| wrong(error.to_string()))?.len();
    if size > MOST_FILE_BYTES {
        return Err(wrong(format!("{size} bytes are more than a description of a video has")));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    Ok((path, text))
}

/// Writes what [`read_video`] reads.
pub(super) fn write_video(content: &DashContent) -> String {
    let path = |path: &Path| quoted(&path.to_string_lossy());
    let mut parts = vec!["kind = \"dash\"".to_string()];
    match &content.source {
        Source::Ladder(name) => parts.push(format!("ladder = {}", quoted(name))),
        Source::Table(file) => parts.push(format!("table = {}", path(file))),
        Source::Mpd(file, selection) => {
            parts.push(format!("mpd = {}", path(file)));
            parts.extend(selection.period.map(|n| format!("period = {n}")));
            parts.extend(selection.adaptation_set.map(|n| format!("adaptation_set = {n}")));
            parts.extend(selection.segment_duration.map(|d| time("segment_duration", d)));
        }
    }
    parts.extend(content.duration.map(|d| time("duration", d)));
    parts.push(format!("scene_variation = {:?}", content.variation.scene));
    parts.push(time("scene_length", content.variation.scene_length));
    parts.push(format!("seed = {}", content.seed));
    parts.extend(content.init.map(|bytes| format!("init = \"{}\"", write_bytes(bytes))));
    parts.extend(content.manifest.map(|bytes| format!("manifest = \"{}\"", write_bytes(bytes))));
    format!("{{ {} }}", parts.join(", "))
}

fn time(key: &str, time: Duration) -> String {
    format!("{key} = \"{}\"", write_time(time))
}

const GIVE_UP: [(&str, GiveUp); 3] = [("close", GiveUp::Close), ("cancel", GiveUp::Cancel), ("drain", GiveUp::Drain)];
const STRATEGIES: [(&str, Strategy); 3] =
    [("dynamic", Strategy::Dynamic), ("bola", Strategy::Bola), ("throughput", Strategy::Throughput)];
/// Ranks of representations, and numbers of media segments to look at.
const MOST_COUNT: u64 = 10_000;
/// Prices and shares; what makes sense the rule knows better.
const ANY_NUMBER: std::ops::RangeInclusive<f64> = 0.0..=1e9;

/// Reads those keys of a player that concern DASH.
pub(super) fn read_options(r: &Reader<'_>) -> Result<DashOptions> {
    let count = |key| r.integer(key, 0..=MOST_COUNT).map(|n| n.map(|n| n as usize));
    let rule = AbrOptions {
        strategy: read_choice(r, "strategy", &STRATEGIES)?,
        dropped_frames: optional_flag(r, "dropped_frames")?,
        progress_timing: optional_flag(r, "progress_timing")?,
        representation: count("representation")?,
        finite: optional_flag(r, "finite")?,
        samples: count("samples")?,
        safety: r.number("safety", ANY_NUMBER)?,
        horizon: count("horizon")?,
        stall_penalty: r.number("stall_penalty", ANY_NUMBER)?,
        switch_penalty: r.number("switch_penalty", ANY_NUMBER)?,
        // These two follow from `buffer`.
        stable_buffer: None,
        capacity: None,
    };
    Ok(DashOptions {
        rule,
        buffer: positive(r, "buffer", read_time, Duration::is_zero)?,
        buffer_at_top: positive(r, "buffer_at_top", read_time, Duration::is_zero)?,
        startup: r.quantity("startup", read_time)?,
        resume: r.quantity("resume", read_time)?,
        initial_bitrate: r.quantity("initial_bitrate", read_rate)?,
        initial_representation: count("initial_representation")?,
        max_bitrate: r.quantity("max_bitrate", read_rate)?,
        max_resolution: read_resolution(r)?,
        audio: positive(r, "audio", read_rate, |rate| rate == Bandwidth::ZERO)?,
        give_up: read_choice(r, "give_up", &GIVE_UP)?,
        fast_switch: optional_flag(r, "fast_switch")?,
    })
}

fn positive<T: Copy>(r: &Reader<'_>, key: &str, read: ReadQuantity<T>, is_zero: fn(T) -> bool) -> Result<Option<T>> {
    match r.quantity(key, read)? {
        Some(value) if is_zero(value) => {
            let at = r.node(key).map_or(r.at, |node| &node.at);
            r.fail(Complaint::new(format!("`{key}` is zero"), "more than that"), at)
        }
        other => Ok(other),
    }
}

fn optional_flag(r: &Reader<'_>, key: &str) -> Result<Option<bool>> {
    match r.node(key) {
        None => Ok(None),
        Some(Node { value: Value::Flag(flag), .. }) => Ok(Some(*flag)),
        Some(other) => r.fail(wrong_kind(key, &other.value, "true or false"), &other.at),
    }
}

/// One of the words, if any was given.
fn read_choice<T: Copy>(r: &Reader<'_>, key: &str, words: &[(&'static str, T)]) -> Result<Option<T>> {
    let Some((text, at)) = r.text(key)? else { return Ok(None) };
    match words.iter().find(|(name, _)| *name == text) {
        Some((_, choice)) => Ok(Some(*choice)),
        None => r.fail(Complaint::unknown(&format!("`{key}`:"), text, words.iter().map(|word| word.0)), at),
    }
}

fn word<T: PartialEq>(words: &[(&'static str, T)], choice: &T) -> &'static str {
    words.iter().find(|(_, own)| own == choice).map_or("", |(name, _)| name)
}

fn read_resolution(r: &Reader<'_>) -> Result<Option<Resolution>> {
    let Some((text, at)) = r.text("max_resolution")? else { return Ok(None) };
    let sides = text.split_once('x').and_then(|(w, h)| Some((w.trim().parse().ok()?, h.trim().parse().ok()?)));
    match sides {
        Some((width, height)) if width > 0 && height > 0 => Ok(Some(Resolution { width, height })),
        _ => {
            let message = format!("`max_resolution` is `{text}`");
            r.fail(Complaint::new(message, "width and height in pixels, such as \"1280x720\""), at)
        }
    }
}

/// Writes what [`read_options`] reads.
pub(super) fn write_options(o: &DashOptions) -> Vec<String> {
    let rule = &o.rule;
    let flag = |key: &str, value: Option<bool>| value.map(|flag| format!("{key} = {flag}"));
    let count = |key: &str, value: Option<usize>| value.map(|n| format!("{key} = {n}"));
    let number = |key: &str, value: Option<f64>| value.map(|x| format!("{key} = {x:?}"));
    let length = |key: &str, value: Option<Duration>| value.map(|d| time(key, d));
    let parts = [
        length("buffer", o.buffer),
        length("buffer_at_top", o.buffer_at_top),
        length("startup", o.startup),
        length("resume", o.resume),
        o.initial_bitrate.map(|rate| format!("initial_bitrate = \"{}\"", write_rate(rate))),
        count("initial_representation", o.initial_representation),
        o.max_bitrate.map(|rate| format!("max_bitrate = \"{}\"", write_rate(rate))),
        o.max_resolution.map(|r| format!("max_resolution = \"{r}\"")),
        flag("fast_switch", o.fast_switch),
        o.audio.map(|rate| format!("audio = \"{}\"", write_rate(rate))),
        o.give_up.map(|g| format!("give_up = \"{}\"", word(&GIVE_UP, &g))),
        rule.strategy.map(|s| format!("strategy = \"{}\"", word(&STRATEGIES, &s))),
        flag("dropped_frames", rule.dropped_frames),
        flag("progress_timing", rule.progress_timing),
        count("representation", rule.representation),
        flag("finite", rule.finite),
        count("samples", rule.samples),
        number("safety", rule.safety),
        count("horizon", rule.horizon),
        number("stall_penalty", rule.stall_penalty),
        number("switch_penalty", rule.switch_penalty),
    ];
    parts.into_iter().flatten().collect()
}

/// Reads `statistics` of a session.
pub(super) fn read_statistics(session: &Reader<'_>) -> Result<DashMetricsOptions> {
    let Some(node) = session.node("statistics") else { return Ok(DashMetricsOptions::default()) };
    let r = Reader::new(session.file, node, "statistics", "statistics")?;
    let from = r.quantity_or_default("from", read_time)?;
    let window = r.quantity("to", read_time)?.map(|to| (from, to));
    if window.is_some_and(|(from, to)| to <= from) {
        return r.fail(Complaint::new("`to` is not after `from`", "from < to"), r.at);
    }
    if window.is_none() && !from.is_zero() {
        return r.missing("to", "the end of the window, such as \"540 s\"");
    }
    let weights = |prefix: &str| -> Result<QoeWeights> {
        let price = |name: &str| {
            let key = format!("{prefix}{name}_penalty");
            let default =
                || reference::default("statistics", &key).parse().expect("the reference's default is a number");
            Ok(r.number(&key, ANY_NUMBER)?.unwrap_or_else(default))
        };
        Ok(QoeWeights { switch: price("switch")?, stall: price("stall")?, startup: price("startup")? })
    };
    Ok(DashMetricsOptions { window, linear: weights("")?, log: weights("log_")? })
}

/// Writes what [`read_statistics`] reads.
pub(super) fn write_statistics(options: &DashMetricsOptions) -> String {
    let mut parts = Vec::new();
    if let Some((from, to)) = options.window {
        parts.extend([time("from", from), time("to", to)]);
    }
    for (prefix, weights) in [("", &options.linear), ("log_", &options.log)] {
        parts.push(format!("{prefix}switch_penalty = {:?}", weights.switch));
        parts.push(format!("{prefix}stall_penalty = {:?}", weights.stall));
        parts.push(format!("{prefix}startup_penalty = {:?}", weights.startup));
    }
    format!("{{ {} }}", parts.join(", "))
}

#[cfg(test)]
#[path = "dash_tests.rs"]
mod tests;
