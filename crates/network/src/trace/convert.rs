//! Writes recordings: as Mahimahi's opportunities, tables and JSON lists.
//!
//! A table becomes opportunities by counting: one for every 1500 bytes that the table has moved, rounded up to a
//! millisecond; the last one closes the trace, so at any time both have moved the same up to one packet. Opportunities
//! become a table by counting them in buckets. Conversion between tables and JSON lists is exact, except that tables
//! have no latency.

use super::steps::check_entries;
use super::{AtEnd, OPPORTUNITY_BYTES, Opportunities, RecordedNetwork, RecordedRate, Steps, TraceError, TraceKind};
use anabranch_units::{Bandwidth, Duration};
use std::fmt::Write;

/// Capacity of one opportunity, in 10^-9 bits.
const OPPORTUNITY_NANOBITS: u128 = OPPORTUNITY_BYTES as u128 * 8 * NANOS_PER_S;

const NANOS_PER_S: u128 = 1_000_000_000;

impl RecordedNetwork {
    /// The text of a file of this kind. `bucket` is the length of a step where opportunities become a table.
    ///
    /// Errors: a rate of zero throughout has no opportunities; too many entries; a bucket of length zero.
    pub fn write(&self, kind: TraceKind, bucket: Duration) -> Result<String, TraceError> {
        match kind {
            TraceKind::Mahimahi => self.opportunities().map(|trace| write_opportunities(&trace)),
            TraceKind::Columns => self.table(bucket).map(|steps| write_columns(&steps)),
            TraceKind::Json => self.table(bucket).map(|steps| write_json(&steps, self.latency.as_ref())),
        }
    }

    /// The rate as a table; opportunities are counted in buckets of this length.
    ///
    /// Errors: a bucket of length zero; too many buckets.
    pub fn table(&self, bucket: Duration) -> Result<Steps<Bandwidth>, TraceError> {
        match &self.rate {
            RecordedRate::Table(steps) => Ok(steps.clone()),
            RecordedRate::Opportunities(trace) => trace.counted(bucket),
        }
    }

    /// The rate as opportunities.
    ///
    /// Errors: a rate of zero throughout; too many opportunities.
    pub fn opportunities(&self) -> Result<Opportunities, TraceError> {
        match &self.rate {
            RecordedRate::Table(steps) => steps.opportunities(),
            RecordedRate::Opportunities(trace) => Ok(trace.clone()),
        }
    }
}

impl Opportunities {
    /// The rate in buckets of this length; the last one may be shorter. An opportunity at the boundary of two buckets
    /// belongs to the later one, the one that closes the trace to the last.
    fn counted(&self, bucket: Duration) -> Result<Steps<Bandwidth>, TraceError> {
        if bucket.is_zero() {
            return Err(TraceError::whole("the buckets have no length").expecting("a time above zero"));
        }
        let period = self.period().as_nanos();
        let buckets = usize::try_from(period.div_ceil(bucket.as_nanos())).unwrap_or(usize::MAX);
        check_entries(buckets)?;
        let mut packets = vec![0u64; buckets];
        for time in self.times() {
            packets[((time / bucket.as_nanos()) as usize).min(buckets - 1)] += 1;
        }
        let rate = |(index, packets): (usize, u64)| {
            let length = bucket.as_nanos().min(period - index as u64 * bucket.as_nanos());
            let nanobits = u128::from(packets) * OPPORTUNITY_NANOBITS;
            let bps = (nanobits + u128::from(length) / 2) / u128::from(length);
            (Duration::from_nanos(length), Bandwidth::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)))
        };
        Steps::new(packets.into_iter().enumerate().map(rate), AtEnd::Loop)
    }
}

impl Steps<Bandwidth> {
    /// An opportunity whenever another 1500 bytes have been moved, and one at the end.
    fn opportunities(&self) -> Result<Opportunities, TraceError> {
        let total = self.iter().map(|(length, rate)| moved(length, rate)).sum::<u128>();
        if total == 0 {
            return Err(TraceError::whole("the rate is zero all the time").expecting("a rate that moves packets"));
        }
        check_entries(usize::try_from(total / OPPORTUNITY_NANOBITS).unwrap_or(usize::MAX))?;
        let mut times = Vec::new();
        let (mut began, mut waiting) = (Duration::ZERO, 0);
        for (length, rate) in self.iter() {
            let here = moved(length, rate);
            let mut needed = OPPORTUNITY_NANOBITS - waiting;
            while needed <= here {
                let after = needed.div_ceil(u128::from(rate.as_bps())) as u64;
                times.push(whole_ms(began + Duration::from_nanos(after)));
                needed += OPPORTUNITY_NANOBITS;
            }
            waiting = here + OPPORTUNITY_NANOBITS - needed;
            began += length;
        }
        let end = whole_ms(self.period());
        if times.last() != Some(&end) {
            times.push(end);
        }
        Opportunities::with_period(times, Duration::from_nanos(end))
    }
}

/// The bytes moved at a rate in this time, in 10^-9 bits.
fn moved(length: Duration, rate: Bandwidth) -> u128 {
    u128::from(length.as_nanos()) * u128::from(rate.as_bps())
}

/// The time in nanoseconds, rounded up to a millisecond.
fn whole_ms(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000) * 1_000_000
}

fn write_opportunities(trace: &Opportunities) -> String {
    let mut text = String::new();
    let ms = trace.times().iter().map(|time| time.div_ceil(1_000_000));
    let closing = trace.period().as_nanos().div_ceil(1_000_000);
    // The last line is the time at which the trace repeats.
    let closes = ms.clone().next_back() == Some(closing);
    for ms in ms.chain((!closes).then_some(closing)) {
        writeln!(text, "{ms}").expect("a string takes all");
    }
    text
}

/// A sample per step. A table's last sample holds as long as the one before, so the last step is written as two halves
/// unless that is so; then an odd number of nanoseconds becomes one more.
fn write_columns(steps: &Steps<Bandwidth>) -> String {
    let mut steps: Vec<(Duration, Bandwidth)> = steps.iter().collect();
    let lengths: Vec<Duration> = steps.iter().rev().take(2).map(|(length, _)| *length).collect();
    if let [last] | [last, ..] = lengths[..]
        && lengths.get(1) != Some(&last)
    {
        let (_, rate) = steps.pop().expect("there is a last one");
        let half = Duration::from_nanos(last.as_nanos().div_ceil(2));
        steps.extend([(half, rate), (last - half, rate)]);
    }
    let mut text = String::from("time_s,rate_bps\n");
    let mut at = Duration::ZERO;
    for (length, rate) in steps {
        writeln!(text, "{},{}", decimal(at.as_nanos(), 9), rate.as_bps()).expect("a string takes all");
        at += length;
    }
    text
}

fn write_json(steps: &Steps<Bandwidth>, latency: Option<&Steps<Duration>>) -> String {
    let mut text = String::from("[\n");
    let mut at = Duration::ZERO;
    let periods: Vec<(Duration, Bandwidth)> = steps.iter().collect();
    for (index, (length, rate)) in periods.iter().enumerate() {
        let (ms, kbps) = (decimal(length.as_nanos(), 6), decimal(rate.as_bps(), 3));
        write!(text, "  {{\"duration_ms\": {ms}, \"bandwidth_kbps\": {kbps}").expect("a string takes all");
        if let Some(latency) = latency {
            let ms = decimal(latency.value_at(at).as_nanos(), 6);
            write!(text, ", \"latency_ms\": {ms}").expect("a string takes all");
        }
        text.push_str(if index + 1 == periods.len() { "}\n" } else { "},\n" });
        at += *length;
    }
    text.push_str("]\n");
    text
}

/// A whole number of units of 10^-digits as a decimal number, without needless zeros.
fn decimal(n: u64, digits: usize) -> String {
    let unit = 10u64.pow(digits as u32);
    let (whole, rest) = (n / unit, n % unit);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{}", format!("{rest:0digits$}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Reading, TraceHints};

    const BUCKET: Duration = Duration::from_millis(100);

    fn recording(steps: &[(u64, u64)]) -> RecordedNetwork {
        let steps = steps.iter().map(|(ms, bps)| (Duration::from_millis(*ms), Bandwidth::from_bps(*bps)));
        let rate = RecordedRate::Table(Steps::new(steps, AtEnd::Loop).unwrap());
        RecordedNetwork { rate, latency: None }
    }

    #[test]
    fn a_table_becomes_an_opportunity_per_packet() {
        // 12 kb/s move a packet per second; then half of one per second, of which the last half closes the trace.
        let text = recording(&[(2500, 12_000), (3000, 6_000)]).write(TraceKind::Mahimahi, BUCKET).unwrap();
        assert_eq!(text, "1000\n2000\n3500\n5500\n");
        let text = recording(&[(1000, 0), (1000, 24_000), (500, 0)]).write(TraceKind::Mahimahi, BUCKET).unwrap();
        assert_eq!(text, "1500\n2000\n2500\n");
        assert!(recording(&[(1000, 0)]).write(TraceKind::Mahimahi, BUCKET).is_err());
        assert!(recording(&[(1_000_000_000, 10_000_000_000)]).write(TraceKind::Mahimahi, BUCKET).is_err());
    }

    #[test]
    fn opportunities_are_counted_in_buckets() {
        let trace = Reading::of(b"0\n50\n100\n199\n250\n", &TraceHints::default()).unwrap().recording;
        let text = trace.write(TraceKind::Columns, BUCKET).unwrap();
        assert_eq!(text, "time_s,rate_bps\n0,240000\n0.1,240000\n0.2,240000\n0.225,240000\n");
        assert!(trace.write(TraceKind::Columns, Duration::ZERO).is_err());
    }

    #[test]
    fn json_keeps_the_latency_and_every_digit() {
        let text = "[\n  {\"duration_ms\": 0.000001, \"bandwidth_kbps\": 0.001, \"latency_ms\": 20},\n  \
                    {\"duration_ms\": 1000, \"bandwidth_kbps\": 5, \"latency_ms\": 0.5}\n]\n";
        let trace = Reading::of(text.as_bytes(), &TraceHints::default()).unwrap().recording;
        assert_eq!(trace.write(TraceKind::Json, BUCKET).unwrap(), text);
    }
}
