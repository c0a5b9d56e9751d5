//! What the heading of a column means. Only headings that are known mean something; all others are left to the user,
//! who names a column.

use super::units::{RateUnit, TimeUnit, UnitIn, words};

/// The meaning of a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Times, and their unit where the heading says it.
    Time(Option<TimeUnit>),
    /// Rates, and their unit where the heading says it.
    Rate(Option<RateUnit>),
    /// Bits or bytes, of which nothing says in which time.
    Amount,
    /// None that is known.
    Unknown,
}

/// Words of which one makes a heading one of times.
const TIME: [&str; 26] = [
    "t",
    "time",
    "times",
    "timestamp",
    "timestamps",
    "ts",
    "epoch",
    "elapsed",
    "clock",
    "date",
    "datetime",
    "unixtime",
    "utc",
    "start",
    "begin",
    "end",
    "zeit",
    "zeitstempel",
    "uhrzeit",
    "datum",
    "temps",
    "heure",
    "tiempo",
    "hora",
    "stamp",
    "walltime",
];

/// Words that may stand with them.
const WITH_TIME: [&str; 24] = [
    "since",
    "in",
    "of",
    "from",
    "the",
    "unix",
    "posix",
    "gmt",
    "local",
    "relative",
    "rel",
    "absolute",
    "abs",
    "wall",
    "system",
    "frame",
    "test",
    "trace",
    "log",
    "1970",
    "iso",
    "8601",
    "seit",
    "monotonic",
];

/// Words of which one makes a heading one of rates, if all others are of `WITH_RATE`.
const RATE: [&str; 17] = [
    "rate",
    "rates",
    "throughput",
    "bandwidth",
    "bw",
    "bitrate",
    "goodput",
    "capacity",
    "datarate",
    "thrpt",
    "tput",
    "thpt",
    "durchsatz",
    "datenrate",
    "bandbreite",
    "bitrates",
    "debit",
];

/// Words that may stand with them: directions, networks, statistics.
const WITH_RATE: [&str; 40] = [
    "data",
    "bit",
    "link",
    "net",
    "network",
    "dl",
    "ul",
    "downlink",
    "uplink",
    "download",
    "upload",
    "down",
    "up",
    "mean",
    "avg",
    "average",
    "measured",
    "available",
    "tcp",
    "udp",
    "iperf",
    "iperf3",
    "rx",
    "tx",
    "in",
    "out",
    "wifi",
    "wlan",
    "lte",
    "cellular",
    "mobile",
    "starlink",
    "ethernet",
    "dsl",
    "3g",
    "4g",
    "5g",
    "path",
    "total",
    "the",
];

/// Headings of amounts.
const AMOUNT: [&str; 10] =
    ["bytes", "byte", "bits", "octets", "transfer", "transferred", "volume", "rx", "tx", "received"];

impl Meaning {
    /// What this heading means.
    pub(super) fn of(heading: &str) -> Self {
        match UnitIn::heading(heading) {
            UnitIn::One(unit) => return Meaning::Rate(Some(unit)),
            UnitIn::Unclear => return Meaning::Rate(None),
            UnitIn::None => {}
        }
        let words: Vec<String> = words(heading).into_iter().filter(|word| *word != "/").flat_map(camel_case).collect();
        let is = |word: &String, list: &[&str]| list.contains(&word.as_str());
        let unit = words.iter().find_map(|word| TimeUnit::of_word(word));
        let timely = |word: &String| TimeUnit::of_word(word).is_some() || is(word, &TIME) || is(word, &WITH_TIME);
        let about_time = words.len() == 1 || words.iter().any(|word| is(word, &TIME) || word.starts_with("sec"));
        if !words.is_empty()
            && words.iter().all(timely)
            && about_time
            && (unit.is_some() || words.iter().any(|w| is(w, &TIME)))
        {
            return Meaning::Time(unit);
        }
        if words.iter().any(|word| is(word, &RATE)) && words.iter().all(|w| is(w, &RATE) || is(w, &WITH_RATE)) {
            return Meaning::Rate(None);
        }
        if words.iter().any(|word| is(word, &AMOUNT)) && words.iter().all(|w| is(w, &AMOUNT) || is(w, &WITH_RATE)) {
            return Meaning::Amount;
        }
        Meaning::Unknown
    }
}

/// Units of times that are not read.
const FOREIGN_TIMES: [&str; 15] = [
    "min", "mins", "minute", "minutes", "minuten", "h", "hr", "hrs", "hour", "hours", "stunden", "d", "day", "days",
    "tage",
];

/// The unit of times that a heading names, whatever else it means.
///
/// Errors: a unit that is not read, or several.
pub(super) fn time_unit(heading: &str) -> Result<Option<TimeUnit>, String> {
    let words: Vec<String> = words(heading).into_iter().flat_map(camel_case).collect();
    if let Some(word) = words.iter().find(|word| FOREIGN_TIMES.contains(&word.as_str())) {
        return Err(format!("times in `{word}` are not read"));
    }
    let mut units = words.iter().filter_map(|word| TimeUnit::of_word(word));
    let first = units.next();
    match units.find(|unit| Some(*unit) != first) {
        Some(_) => Err(format!("`{heading}` names several units of times")),
        None => Ok(first),
    }
}

/// The words of a word in camel case, in small letters.
fn camel_case(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut small = false;
    for character in word.chars() {
        if small && character.is_uppercase() {
            parts.push(String::new());
        }
        small = character.is_lowercase();
        parts.last_mut().expect("there is one").extend(character.to_lowercase());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_times_are_known() {
        let unit = |heading| match Meaning::of(heading) {
            Meaning::Time(unit) => unit.map_or("?", TimeUnit::name),
            _ => "no",
        };
        for (expected, headings) in [
            (
                "s",
                "t_s|time (s)|Time [sec]|seconds|s|Zeit (s)|t/s|timestamp_s|second|Seconds since start|Zeit in Sekunden",
            ),
            ("ms", "time_ms|ms|Timestamp(ms)|timeMs|unix time (ms)|epoch_ms|TIME_MS"),
            ("us", "ts_us|time (µs)|timestamp [usec]"),
            ("ns", "time_ns|t (ns)|time since epoch (ns)"),
            ("?", "t|time|Time|timestamp|timeStamp|TimeStamp|Datum/Uhrzeit|date|@timestamp|frame.time_epoch|_time|ts"),
            ("no", "rtt_ms|latency|x|index|duration_ms|step|round_trip_time|||#|mbps|time_min|interval|jitter_ms"),
        ] {
            for heading in headings.split('|') {
                assert_eq!(unit(heading), expected, "{heading}");
            }
        }
    }

    #[test]
    fn headings_of_rates_are_known() {
        for heading in ["rate", "DL_bitrate", "Throughput", "wifi bandwidth", "MBPS", "Datenrate", "downlinkThroughput"]
        {
            assert_eq!(Meaning::of(heading), Meaning::Rate(None), "{heading}");
        }
        for heading in ["wifi", "loss_rate", "frame rate", "Speed", "cwnd", "retransmits", "rsrp", ""] {
            assert_eq!(Meaning::of(heading), Meaning::Unknown, "{heading}");
        }
        assert_eq!(Meaning::of("rate_mbps"), Meaning::Rate(Some(RateUnit::MEGABITS_PER_SECOND)));
        assert_eq!(Meaning::of("rx_bytes"), Meaning::Amount);
    }
}
