//! Markdown, and the parts of a document that a program writes.

use crate::rows::{Measured, Target};
use crate::statistics::Mean;
use std::path::Path;
use std::{fs, io};

/// Replaces the text between the lines `<!-- begin NAME -->` and `<!-- end NAME -->` of a document.
///
/// # Errors
/// If the file cannot be read or written, or the markers are missing.
pub fn replace_part(file: &Path, name: &str, content: &str) -> io::Result<()> {
    let text = fs::read_to_string(file)?;
    let new = with_part(&text, name, content)
        .ok_or_else(|| io::Error::other(format!("{} has no markers of \"{name}\"", file.display())))?;
    fs::write(file, new)
}

fn with_part(text: &str, name: &str, content: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let from = text.find(&begin)? + begin.len();
    let to = from + text[from..].find(&end)?;
    Some(format!("{}\n{}\n\n{}", &text[..from], content.trim_matches('\n'), &text[to..]))
}

/// Replaces the rows of a document's table that begin with the same numbers as rows of another table of this kind.
///
/// # Errors
/// If the file cannot be read or written, or the markers are missing.
pub fn replace_rows(file: &Path, name: &str, table: &str) -> io::Result<()> {
    let text = fs::read_to_string(file)?;
    let (begin, end) = (format!("<!-- begin {name} -->"), format!("<!-- end {name} -->"));
    let old = text.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end)).map_or("", |(part, _)| part);
    replace_part(file, name, &with_rows(old.trim_matches('\n'), table))
}

fn with_rows(old: &str, new: &str) -> String {
    let number = |line: &str| line.trim_start_matches("| ").split(' ').next().and_then(|n| n.parse::<u32>().ok());
    let (head, rows): (Vec<&str>, Vec<&str>) = old.lines().partition(|line| number(line).is_none());
    let fresh: Vec<&str> = new.lines().filter(|line| number(line).is_some()).collect();
    let replaced = |line: &&str| fresh.iter().any(|other| number(other) == number(line));
    let mut rows: Vec<&str> = rows.into_iter().filter(|line| !replaced(line)).chain(fresh.iter().copied()).collect();
    rows.sort_by_key(|line| number(line));
    [head, rows].concat().join("\n")
}

/// A table; texts must not contain `|`.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |texts: &[String]| format!("| {} |\n", texts.join(" | "));
    let mut text = line(&head.iter().map(ToString::to_string).collect::<Vec<_>>());
    text.push_str(&line(&vec!["---".to_string(); head.len()]));
    text.extend(rows.iter().map(|row| line(row)));
    text
}

/// A number with three significant digits or more.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A mean with its interval.
pub fn interval(mean: &Mean) -> String {
    match mean.count {
        1 => number(mean.mean),
        _ => {
            // Both with the decimals that the interval deserves, but no more than four digits of the mean.
            let places = match mean.half.max(mean.mean.abs() / 1e3) {
                h if h >= 10.0 => 0,
                h if h >= 1.0 => 1,
                h if h >= 0.1 => 2,
                _ => 3,
            };
            format!("{:.places$} ± {:.places$}", mean.mean, mean.half)
        }
    }
}

/// The table of the rows.
pub fn rows_table(rows: &[Measured]) -> String {
    let mut lines = Vec::new();
    for measured in rows {
        for (check, mean) in measured.results() {
            let target = match check.target {
                Target::Near { value, tolerance } => format!("{} ± {:.0} %", number(value), tolerance * 100.0),
                Target::AtMost(bound) => format!("≤ {}", number(bound)),
                Target::AtLeast(bound) => format!("≥ {}", number(bound)),
            };
            let off = match check.target {
                Target::Near { value, .. } => format!("{:+.1} %", (mean.mean / value - 1.0) * 100.0),
                _ => String::new(),
            };
            let verdict = match (check.target.is_met(mean.mean), check.deviation) {
                (true, None) => "holds".to_string(),
                (true, Some(_)) => "holds (not asserted)".to_string(),
                (false, None) => "**fails**".to_string(),
                (false, Some(cause)) => format!("deviates: {cause}"),
            };
            lines.push(vec![
                measured.row.number.to_string(),
                measured.row.network.clone(),
                format!("{} ({})", check.what, check.formula),
                target,
                interval(&mean),
                off,
                mean.count.to_string(),
                verdict,
            ]);
        }
    }
    table(
        &["row", "network", "quantity (source)", "target", "measured, 95 % interval", "off", "seeds", "verdict"],
        &lines,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_between_its_markers_changes() {
        let text = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n<!-- begin y -->\n<!-- end y -->\n";
        let new = with_part(text, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- begin x -->\n\nnew\n\n<!-- end x -->\nb\n<!-- begin y -->\n<!-- end y -->\n");
        assert_eq!(with_part(&new, "x", "new").unwrap(), new, "writing twice changes nothing");
        assert!(with_part(text, "z", "").is_none());
    }

    #[test]
    fn measured_rows_take_the_places_of_those_with_their_number() {
        let old = "| row | x |\n| --- | --- |\n| 1 | a |\n| 2 | b |\n| 2 | c |\n| 10 | d |";
        let new = "| row | x |\n| --- | --- |\n| 2 | new |\n";
        assert_eq!(with_rows(old, new), "| row | x |\n| --- | --- |\n| 1 | a |\n| 2 | new |\n| 10 | d |");
    }

    #[test]
    fn a_mean_and_its_interval_have_the_same_decimals() {
        let of = |mean, half| interval(&Mean { mean, half, count: 10 });
        assert_eq!([of(612.3, 131.2), of(612.3, 1.3), of(0.8, 0.123)], ["612 ± 131", "612.3 ± 1.3", "0.80 ± 0.12"]);
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!([0.0, 0.7391, 1.2345, 12.34, 5926.4].map(number), ["0", "0.739", "1.23", "12.3", "5926"]);
    }
}
