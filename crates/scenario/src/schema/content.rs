//! Checks what a session transfers and who watches it, and reads the descriptions of DASH videos.

use super::checker::{Checker, Result};
use super::mistake::Mistake;
use super::tables::{Dash, Player, RATES_EXPECTED, RESOLUTIONS_EXPECTED, Session, Video};
use crate::warning::WarningKind;
use anabranch_media::abr::AbrOptionError;
use anabranch_media::content::{DashVideo, LADDERS, Mpd, MpdSelection, Representation, SegmentVariation, read_table};
use anabranch_media::{Content, Exchanges, FrameTable, PLAYERS, PlayerSetup, SetupError, outside_domain};
use anabranch_units::text::write_rate;
use anabranch_units::{Bandwidth, Duration};
use std::sync::Arc;

pub(super) fn check_video(video: &mut Video, steps: &[&str], checker: &mut Checker<'_>) -> Result<()> {
    let steps = [steps, &["video"]].concat();
    match video {
        Video::Progressive(file) => match file.check() {
            Ok(()) => Ok(()),
            Err(error) => checker.wrong(&steps, error.to_string(), "another size, rate or fps"),
        },
        Video::Dash(dash) => complete_dash(dash, &steps, checker),
        Video::Bulk(_) => Ok(()),
    }
}

/// What a video may be described by.
const SOURCES: &str = "one of `ladder`, `rates`, `mpd` and `table`, which say what there is";

/// Reads the description of the video.
fn complete_dash(dash: &mut Dash, steps: &[&str], checker: &mut Checker<'_>) -> Result<()> {
    let under = |key: &'static str| [steps, &[key]].concat();
    let sources = [
        ("ladder", dash.ladder.is_some()),
        ("rates", dash.rates.is_some()),
        ("mpd", dash.mpd.is_some()),
        ("table", dash.table.is_some()),
    ];
    let given: Vec<&str> = sources.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
    let source = match given[..] {
        [] => return Err(Mistake::missing("ladder", SOURCES).in_table("video", checker.at(steps))),
        [source] => source,
        [first, second, ..] => {
            return checker.wrong(&under(second), format!("`video` has `{first}` and `{second}`"), SOURCES);
        }
    };
    check_belonging(dash, source, steps, checker)?;
    let base = match source {
        "ladder" => ladder(dash, steps, checker)?,
        "rates" => rates(dash, steps, checker)?,
        "mpd" => mpd(dash, steps, checker)?,
        _ => sizes(dash, steps, checker)?,
    };
    if dash.scene_length.is_zero() {
        return checker.wrong(&under("scene_length"), "`scene_length` is zero", "a time above zero");
    }
    let synthetic = ["ladder", "rates"].contains(&source);
    let usual = if synthetic { SegmentVariation::default().scene } else { 0.0 };
    dash.scene_variation.get_or_insert(usual);
    dash.video = Some(Arc::new(dash.finish(base)));
    Ok(())
}

/// Refuses keys that this description of a video does not have.
fn check_belonging(dash: &Dash, source: &str, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    let keys: [(&'static str, bool, &[&str]); 4] = [
        ("period", dash.period.is_some(), &["mpd"]),
        ("adaptation_set", dash.adaptation_set.is_some(), &["mpd"]),
        ("segment_duration", dash.segment_duration.is_some(), &["rates", "mpd"]),
        ("resolutions", dash.resolutions.is_some(), &["rates"]),
    ];
    let Some((key, _, owners)) = keys.into_iter().find(|(_, given, owners)| *given && !owners.contains(&source)) else {
        return Ok(());
    };
    let owners: Vec<String> = owners.iter().map(|owner| format!("`{owner}`")).collect();
    let message = format!("only a video with {} has `{key}`", owners.join(" or "));
    checker.wrong(&[steps, &[key]].concat(), message, format!("{} in place of `{source}`", owners.join(" or ")))
}

fn ladder(dash: &Dash, steps: &[&str], checker: &Checker<'_>) -> Result<DashVideo> {
    let name = dash.ladder.as_deref().unwrap_or_default();
    let Some(ladder) = LADDERS.find(name) else {
        let at = checker.at(&[steps, &["ladder"]].concat()).clone();
        return Err(Mistake::unknown("ladder", name, LADDERS.names()).at(&at));
    };
    let ladder = (ladder.create)();
    ladder.video(dash.duration).or_else(|error| checker.wrong(steps, error.to_string(), "another duration"))
}

/// A video of these rates, with nominal sizes.
fn rates(dash: &Dash, steps: &[&str], checker: &Checker<'_>) -> Result<DashVideo> {
    let needed = |key, such| Mistake::missing(key, such).in_table("a video with `rates`", checker.at(steps));
    let segment = dash.segment_duration.ok_or_else(|| needed("segment_duration", "a time such as \"4 s\""))?;
    let duration = dash.duration.ok_or_else(|| needed("duration", "the playing time, such as \"10 min\""))?;
    check_segment_duration(segment, steps, checker)?;
    let rates = dash.rates.as_deref().unwrap_or_default();
    check_rates(rates, &[steps, &["rates"]].concat(), checker)?;
    let resolutions = dash.resolutions.as_deref();
    if let Some(given) = resolutions.filter(|given| given.len() != rates.len()) {
        let message = format!("`resolutions` has {} entries, and `rates` has {}", given.len(), rates.len());
        return checker.wrong(&[steps, &["resolutions"]].concat(), message, RESOLUTIONS_EXPECTED);
    }
    let representation = |(rank, rate): (usize, &Bandwidth)| Representation {
        bitrate: rate.as_bps(),
        resolution: resolutions.map(|resolutions| resolutions[rank]),
    };
    let representations = rates.iter().enumerate().map(representation).collect();
    let video = DashVideo::of_equal_segments(representations, segment, duration);
    video.or_else(|error| checker.wrong(steps, error.to_string(), "another duration"))
}

/// Rates must ascend, so that a rank means a quality.
fn check_rates(rates: &[Bandwidth], steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    if rates.is_empty() {
        return checker.wrong(steps, "`rates` is empty", RATES_EXPECTED);
    }
    for (rank, &rate) in rates.iter().enumerate() {
        let problem = if rate == Bandwidth::ZERO || rate == Bandwidth::INFINITE {
            format!("`rates` has `{}`", write_rate(rate))
        } else if rank > 0 && rate <= rates[rank - 1] {
            format!("`rates`: {} follows {}", write_rate(rate), write_rate(rates[rank - 1]))
        } else {
            continue;
        };
        return checker.wrong(&[steps, &[&rank.to_string()]].concat(), problem, RATES_EXPECTED);
    }
    Ok(())
}

fn check_segment_duration(duration: Duration, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    if duration.is_zero() {
        let steps = [steps, &["segment_duration"]].concat();
        return checker.wrong(&steps, "`segment_duration` is zero", "a time above zero");
    }
    Ok(())
}

fn mpd(dash: &mut Dash, steps: &[&str], checker: &mut Checker<'_>) -> Result<DashVideo> {
    if let Some(duration) = dash.segment_duration {
        check_segment_duration(duration, steps, checker)?;
    }
    let selection = MpdSelection {
        period: dash.period,
        adaptation_set: dash.adaptation_set,
        duration: dash.duration,
        segment_duration: dash.segment_duration,
    };
    let steps = [steps, &["mpd"]].concat();
    let (file, bytes) = checker.files.description(dash.mpd.as_deref().unwrap_or_default(), checker.at(&steps))?;
    let read = Mpd::read(&file, &bytes).and_then(|mpd| mpd.video_with_warnings(&selection));
    (dash.mpd, dash.content) = (Some(file), Some(bytes.into()));
    // The description's own error names its file and line; it is reported where the scenario names the file.
    let (video, warnings) = match read {
        Ok(read) => read,
        Err(error) => return checker.wrong(&steps, error.to_string(), ""),
    };
    for warning in warnings {
        checker.warn(&steps, WarningKind::Manifest, warning.to_string());
    }
    Ok(video)
}

fn sizes(dash: &mut Dash, steps: &[&str], checker: &Checker<'_>) -> Result<DashVideo> {
    if dash.duration.is_some() {
        let steps = [steps, &["duration"]].concat();
        return checker.wrong(&steps, "a table of sizes has its own duration", "`duration` with `ladder` or `mpd`");
    }
    let steps = [steps, &["table"]].concat();
    let (file, bytes) = checker.files.description(dash.table.as_deref().unwrap_or_default(), checker.at(&steps))?;
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return checker.wrong(&steps, format!("`{file}`: the table is not UTF-8"), "a JSON file in UTF-8");
    };
    let video = read_table(&file, text);
    (dash.table, dash.content) = (Some(file), Some(bytes.into()));
    video.or_else(|error| checker.wrong(&steps, error.to_string(), ""))
}

/// Tries the player with content of the video's kind.
pub(super) fn check_player(player: &mut Player, video: &Video, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    let steps = [steps, &["player"]].concat();
    let dash = &player.options.dash;
    let zero = [
        ("buffer", dash.buffer.is_some_and(|time| time.is_zero())),
        ("buffer_at_top", dash.buffer_at_top.is_some_and(|time| time.is_zero())),
        ("audio", dash.audio.is_some_and(|rate| rate.as_bps() == 0)),
    ];
    if let Some((key, _)) = zero.into_iter().find(|(_, zero)| *zero) {
        return checker.wrong(&[&steps[..], &[key]].concat(), format!("`{key}` is zero"), "more than that");
    }
    attach_rule(player, &steps, checker)?;
    let entry = PLAYERS.find(&player.kind).expect("the names of players were checked");
    let setup =
        PlayerSetup { content: trial_content(video), exchanges: Exchanges::new(), options: player.options.clone() };
    let Err(error) = (entry.create)(&setup) else { return Ok(()) };
    let key = match &error {
        SetupError::UnknownOption { option, .. } | SetupError::Rule(AbrOptionError::Unknown { option, .. }) => {
            option.as_str()
        }
        SetupError::Rule(AbrOptionError::OutOfRange { option, .. })
        | SetupError::NoSuchRepresentation { option, .. } => option,
        SetupError::WrongContent { .. } => "kind",
        SetupError::External(error) => {
            let steps = [&steps[..], &["rule", error.option.as_str()]].concat();
            let of_option = format!("option `{}`: ", error.option);
            let prefix = if error.option == "name" { "" } else { of_option.as_str() };
            return checker.wrong(&steps, format!("{prefix}{}", error.message), "");
        }
    };
    checker.wrong(&[&steps[..], &[key]].concat(), error.to_string(), "")
}

/// A bitrate rule from outside must be known to the caller of the reader, which is attached then.
fn attach_rule(player: &mut Player, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    let Some(rule) = &mut player.options.own.rule else { return Ok(()) };
    let rules = checker.external.map(|external| &external.rules);
    let Some(rules) = rules.filter(|rules| rules.knows(&rule.name)) else {
        let steps = [steps, &["rule", "name"]].concat();
        let message = format!("no bitrate rule of yours is called `{}`", rule.name);
        let expected = "module:Class; the built-in rules are players of the same name";
        return checker.wrong(&steps, message, expected);
    };
    rule.attach(rules.clone());
    Ok(())
}

/// Warns of a player whose rule was not made for this video.
pub(super) fn warn_of_domain(player: &Player, video: &Video, steps: &[&str], checker: &mut Checker<'_>) {
    let Video::Dash(dash) = video else { return };
    if player.options.own.rule.is_some() {
        return;
    }
    if let Some(message) = outside_domain(&player.kind, &player.options.dash, dash.video()) {
        checker.warn(&[steps, &["player"]].concat(), WarningKind::OutsideDomain, message);
    }
}

/// A real progressive video may have a million pictures; one will do to try a player.
fn trial_content(video: &Video) -> Content {
    match video {
        Video::Progressive(file) => Content::Progressive(Arc::new(FrameTable::from_sizes(file.frame_rate(), 1, [1]))),
        Video::Dash(_) | Video::Bulk(_) => video.content(),
    }
}

pub(super) fn check_statistics(session: &Session, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    let Some(statistics) = &session.statistics else { return Ok(()) };
    let steps = [steps, &["statistics"]].concat();
    if !matches!(session.video, Video::Dash(_)) {
        return checker.wrong(&steps, "`statistics` are of a DASH video", "`video` of kind \"dash\"");
    }
    match statistics.to {
        Some(to) if to <= statistics.from => checker.wrong(&steps, "`to` is not after `from`", "from < to"),
        None if !statistics.from.is_zero() => {
            let missing = Mistake::missing("to", "the end of the window, such as \"540 s\"");
            Err(missing.in_table("statistics", checker.at(&steps)))
        }
        _ => Ok(()),
    }
}
