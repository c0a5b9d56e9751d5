//! How a table is written: its separator, its heading, its rows. Found from the heading and the first lines, and then
//! kept.

use super::super::TraceError;
use super::heading::Meaning;
use super::numbers::Marks;
use super::times::Clock;

/// What stands between the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// `;`
    Semicolon,
    /// A tab.
    Tab,
    /// `,`
    Comma,
    /// One or more blanks.
    Blanks,
    /// Nothing: there is one column.
    None,
}

/// In the order in which they are tried: a comma may be a decimal one, and blanks may stand next to any of them.
const SEPARATORS: [Separator; 4] = [Separator::Semicolon, Separator::Tab, Separator::Comma, Separator::Blanks];

/// More columns no table has.
pub(super) const MOST_COLUMNS: usize = 9999;

/// Lines that the separator is found from.
const SAMPLE: usize = 16;

impl Separator {
    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Separator::Semicolon => "semicolon",
            Separator::Tab => "tab",
            Separator::Comma => "comma",
            Separator::Blanks => "blanks",
            Separator::None => "none",
        }
    }

    fn is(self, character: char) -> bool {
        match self {
            Separator::Semicolon => character == ';',
            Separator::Tab => character == '\t',
            Separator::Comma => character == ',',
            Separator::Blanks => matches!(character, ' ' | '\t'),
            Separator::None => false,
        }
    }

    /// The fields of a line. A separator in quotes separates nothing.
    fn fields(self, line: &str) -> Vec<&str> {
        let blanks = self == Separator::Blanks;
        let line = if blanks { line.trim() } else { line };
        let (mut fields, mut start, mut quoted) = (Vec::new(), 0, false);
        for (at, character) in line.char_indices() {
            quoted ^= character == '"';
            if !quoted && self.is(character) {
                // A line of nothing but separators must not fill the memory.
                if fields.len() == MOST_COLUMNS {
                    break;
                }
                // A run of blanks is one separator.
                if !(blanks && at == start) {
                    fields.push(bare(&line[start..at]));
                }
                start = at + character.len_utf8();
            }
        }
        fields.push(bare(&line[start..]));
        fields
    }

    /// The separator with which these lines have the same number of fields, or the first one fewer, as R writes it.
    fn of(lines: &[&str]) -> Self {
        let counts =
            |separator: &Separator| -> Vec<usize> { lines.iter().map(|line| separator.fields(line).len()).collect() };
        // A tab at the beginning or at the end of a line stands next to an empty field, so tabs are no mere blanks.
        let tabs = lines.iter().any(|line| line.starts_with('\t') || line.ends_with('\t'));
        let agree = |separator: &Separator| match counts(separator).split_first() {
            _ if tabs && *separator == Separator::Blanks => false,
            Some((first, [])) => *first > 1,
            Some((first, [second, rest @ ..])) => {
                *first > 1 && (first == second || first + 1 == *second) && rest.iter().all(|count| count == second)
            }
            None => false,
        };
        // `0 20,5` is two numbers, of which the second has a decimal comma.
        let commas_are_decimal = || {
            let blank_inside = |field: &str| field.split_ascii_whitespace().filter(|part| is_value(part)).count() > 1;
            agree(&Separator::Blanks)
                && lines.last().is_some_and(|line| {
                    Separator::Comma.fields(line).iter().any(|field| Clock::of(field).is_none() && blank_inside(field))
                })
        };
        let agreed =
            SEPARATORS.into_iter().filter(agree).find(|found| *found != Separator::Comma || !commas_are_decimal());
        // Where lines differ, the reader will report the first one that does.
        let several = |separator: &Separator| {
            let fields = separator.fields(lines.first().copied().unwrap_or_default());
            // The words of a heading of one column are not fields.
            let row = is_value(fields[0]) || lines.get(1).is_some_and(|line| separator.fields(line).len() > 1);
            fields.len() > 1 && row
        };
        agreed.or_else(|| SEPARATORS.into_iter().find(several)).unwrap_or(Separator::None)
    }
}

/// A field without blanks and quotes around it.
fn bare(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map_or(field, str::trim)
}

/// Whether a field of a first line can be a value: a number, a date, or what stands for a missing one.
pub(in super::super) fn is_value(field: &str) -> bool {
    let number = field.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ','))
        && field.contains(|c: char| c.is_ascii_digit())
        && !field.contains(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E'));
    number || field.parse::<f64>().is_ok() || Clock::of(field).is_some()
}

/// The heading of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) line: usize,
    /// The name of each column of the rows; empty where it has none.
    pub(super) names: Vec<String>,
    /// Whether the rows have one field more than the heading in front: the names of rows that R writes.
    pub(super) row_names: bool,
}

/// How a table is written.
#[derive(Clone, Debug)]
pub(super) struct Dialect {
    pub(super) separator: Separator,
    pub(super) heading: Option<Heading>,
    pub(super) marks: Marks,
    /// Fields of each row.
    pub(super) width: usize,
    /// Where the rows begin: the offset and the line.
    first_row: (usize, usize),
}

/// A line of the sample, of which a field in quotes may span several.
struct Line<'a> {
    number: usize,
    offset: usize,
    text: &'a str,
}

impl Line<'_> {
    fn is_comment(&self) -> bool {
        self.text.trim_start().starts_with('#')
    }

    fn after(&self) -> (usize, usize) {
        (self.offset + self.text.len(), self.number + self.text.matches('\n').count().max(1))
    }
}

/// The lines of a text; those that a quote keeps together are one.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let (mut offset, mut number) = (0, 1);
    std::iter::from_fn(move || {
        let rest = &text[offset..];
        if rest.is_empty() {
            return None;
        }
        let mut quotes = 0;
        let mut end = 0;
        for part in rest.split_inclusive('\n') {
            quotes += part.matches('"').count();
            end += part.len();
            if quotes % 2 == 0 || part.trim_start().starts_with('#') {
                break;
            }
        }
        let line = Line { number, offset, text: &rest[..end] };
        (offset, number) = line.after();
        Some(line)
    })
}

impl Dialect {
    /// Finds how a table is written.
    ///
    /// Errors: there is no line with content.
    pub(super) fn of(text: &str) -> Result<Self, TraceError> {
        let mut comment = None;
        let mut sample: Vec<Line<'_>> = Vec::new();
        for line in lines(text).filter(|line| !line.text.trim().is_empty()) {
            match (line.is_comment(), sample.is_empty()) {
                (true, true) => comment = Some(line),
                (true, false) => {}
                (false, _) => sample.push(line),
            }
            if sample.len() == SAMPLE {
                break;
            }
        }
        let Some(first) = sample.first() else {
            return Err(TraceError::whole("no line holds numbers").expecting("a time and a rate on each line"));
        };
        let texts: Vec<&str> = sample.iter().map(|line| line.text.trim_end_matches('\n')).collect();
        let separator = Separator::of(&texts);
        let names = separator.fields(texts[0]);
        let headed = !is_value(names[0]);
        let width = texts.get(1).filter(|_| headed).map_or(names.len(), |row| {
            let width = separator.fields(row).len();
            if width == names.len() + 1 { width } else { names.len() }
        });
        if width > MOST_COLUMNS {
            let problem = format!("the line has more than {MOST_COLUMNS} fields");
            return Err(TraceError::at(first.number, problem).expecting("a time and a rate on each line"));
        }
        let heading = if headed {
            Some(Heading::new(first.number, &names, width))
        } else {
            comment.and_then(|line| Heading::in_comment(&line, separator, width))
        };
        // Of one column alone, a comma could as well separate two.
        let mut marks = Marks::new(matches!(separator, Separator::Comma | Separator::None));
        for row in &texts[usize::from(headed)..] {
            for field in separator.fields(row) {
                marks.learn(field, row.contains(&format!("\"{field}\"")));
            }
        }
        let first_row = if headed { first.after() } else { (first.offset, first.number) };
        Ok(Dialect { separator, heading, marks, width, first_row })
    }

    /// The rows.
    pub(super) fn rows<'a>(&self, text: &'a str) -> Rows<'a> {
        let (at, line) = self.first_row;
        let delimiter = match self.separator {
            Separator::Semicolon => Some(b';'),
            Separator::Tab => Some(b'\t'),
            Separator::Comma => Some(b','),
            Separator::Blanks | Separator::None => None,
        };
        let reader = delimiter.map(|delimiter| {
            csv::ReaderBuilder::new()
                .delimiter(delimiter)
                .has_headers(false)
                .flexible(true)
                .comment(Some(b'#'))
                .from_reader(&text.as_bytes()[at..])
        });
        let names_of_rows = self.heading.as_ref().is_some_and(|heading| heading.row_names).then_some(1);
        let (separator, width) = (self.separator, self.width);
        Rows {
            text,
            start: at,
            at,
            line,
            separator,
            width,
            reader,
            names_of_rows,
            fields: csv::StringRecord::new(),
            raw: "",
        }
    }
}

impl Heading {
    fn new(line: usize, names: &[&str], width: usize) -> Self {
        let row_names = width > names.len();
        // A spreadsheet's heading may have several lines.
        let words = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ");
        let names = row_names.then_some("").into_iter().chain(names.iter().copied()).map(words).collect();
        Heading { line, names, row_names }
    }

    /// The heading in a comment above the first row, as numpy writes it. Another comment has not as many words as there
    /// are columns, or none that means times or rates.
    fn in_comment(line: &Line<'_>, separator: Separator, width: usize) -> Option<Self> {
        let text = line.text.trim().trim_start_matches('#').trim_start();
        let names = separator.fields(text);
        let known = |name: &&str| !matches!(Meaning::of(name), Meaning::Unknown);
        let is_heading = names.len() == width && names.iter().all(|name| !is_value(name)) && names.iter().any(known);
        is_heading.then(|| Heading::new(line.number, &names, width))
    }
}

/// The rows of a table, one after the other.
pub(super) struct Rows<'a> {
    text: &'a str,
    start: usize,
    at: usize,
    line: usize,
    separator: Separator,
    width: usize,
    reader: Option<csv::Reader<&'a [u8]>>,
    /// The name that the next row must have, where R wrote names of rows.
    names_of_rows: Option<u64>,
    fields: csv::StringRecord,
    raw: &'a str,
}

impl<'a> Rows<'a> {
    /// Goes to the next row, and returns its line; `None` after the last.
    ///
    /// Errors: a row with another count of fields; a quote without an end.
    pub(super) fn next(&mut self) -> Result<Option<usize>, TraceError> {
        loop {
            if !self.read_record()? {
                return Ok(None);
            }
            // Empty lines and comments before a record are read with it.
            while let Some((first, rest)) = self.raw.split_once('\n')
                && !rest.is_empty()
                && (first.trim().is_empty() || first.starts_with('#'))
            {
                self.raw = rest;
                self.line += 1;
            }
            let line = self.line;
            self.line += self.raw.matches('\n').count();
            if self.raw.trim().is_empty() || self.raw.trim_start().starts_with('#') {
                continue;
            }
            self.check(line)?;
            return Ok(Some(line));
        }
    }

    fn read_record(&mut self) -> Result<bool, TraceError> {
        let begin = self.at;
        if let Some(reader) = &mut self.reader {
            let more = reader.read_record(&mut self.fields);
            let more = more.map_err(|error| TraceError::at(self.line, error.to_string()))?;
            self.at = self.start + usize::try_from(reader.position().byte()).unwrap_or(usize::MAX);
            self.raw = &self.text[begin..self.at];
            return Ok(more);
        }
        let Some(line) = self.text[begin..].split_inclusive('\n').next() else { return Ok(false) };
        self.at += line.len();
        self.raw = line;
        self.fields = csv::StringRecord::from(self.separator.fields(line));
        Ok(true)
    }

    fn check(&mut self, line: usize) -> Result<(), TraceError> {
        if self.at == self.text.len() && self.raw.matches('"').count() % 2 == 1 {
            let problem = "a quote is opened and never closed";
            return Err(TraceError::at(line, problem).expecting("a quote at the beginning and at the end of a field"));
        }
        let (found, width) = (self.fields.len(), self.width);
        if found != width {
            let problem = format!("the line has {found} fields, where others have {width}");
            let expected = format!("the same number of fields in every line (separator: {})", self.separator.name());
            return Err(TraceError::at(line, problem).expecting(expected));
        }
        if let Some(name) = &mut self.names_of_rows {
            if bare(&self.fields[0]) != name.to_string() {
                let problem = format!("the line has {width} fields, where the heading has {}", width - 1);
                return Err(TraceError::at(line, problem)
                    .expecting("the same number of fields, or rows that are numbered from 1, as R writes them"));
            }
            *name += 1;
        }
        Ok(())
    }

    /// The field of a column.
    pub(super) fn field(&self, column: usize) -> &str {
        bare(&self.fields[column])
    }

    /// Whether this field is in quotes.
    pub(super) fn is_quoted(&self, field: &str) -> bool {
        self.raw.match_indices(field).any(|(at, _)| {
            self.raw[..at].trim_end().ends_with('"') && self.raw[at + field.len()..].trim_start().starts_with('"')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
        let dialect = Dialect::of(text).map_err(|error| error.to_string())?;
        let mut rows = dialect.rows(text);
        let mut found = Vec::new();
        while let Some(line) = rows.next().map_err(|error| error.to_string())? {
            found.push((line, (0..dialect.width).map(|column| rows.field(column).to_string()).collect()));
        }
        Ok(found)
    }

    fn separator(text: &str) -> &'static str {
        Dialect::of(text).unwrap().separator.name()
    }

    #[test]
    fn the_separator_is_what_divides_all_lines_alike() {
        for (expected, text) in [
            ("comma", "t,mbps\n0,1\n"),
            ("comma", "3, 10\n4, 20\n"),
            ("comma", "t,Rate (Mbit/s)\n0,1\n1,2\n"),
            ("comma", "t,mbps\n2026-01-01 00:00:00,1\n2026-01-01 00:00:01,2\n"),
            ("semicolon", "t;mbps\n0;20,5\n1;22,7\n"),
            ("semicolon", "0,5;20,5\n1,5;22\n"),
            ("semicolon", "\"a;b\";\"c,d\"\n0;1\n"),
            ("tab", "Time (s)\tRate (Mbit/s)\n0\t1\n"),
            ("blanks", "t mbps\n0 20,5\n1 22,7\n"),
            ("blanks", "0 20,5\n1 22,7\n"),
            ("blanks", "t\t\tmbps\n0\t1\n10\t\t2\n"),
            ("blanks", "\"t\" \"mbps\"\n\"1\" 0 20\n\"2\" 1 22\n"),
            ("none", "Rate (Mbit/s)\n1\n2\n"),
            ("none", "5\n6\n"),
            ("semicolon", "t;mbps;note\n0;0,1;\n1;0,2\n2;0,3;x\n"),
            ("tab", "\tt_s\tmbps\tnote\n0\t0\t1\t\n1\t1\t2\n"),
        ] {
            assert_eq!(separator(text), expected, "{text}");
        }
    }

    #[test]
    fn rows_know_their_lines() {
        let text = "# a\n\nt,mbps\n\n0,1\n# b\n\n1,\"2\"\n  # c\n   \n2,\"\n3\"\n4,5";
        let found = rows(text).unwrap();
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [5, 8, 11, 13]);
        assert_eq!(found[1].1, ["1", "2"]);
        let blanks = rows("t mbps\n\n 0   1 \n# x\n1\t2\n").unwrap();
        assert_eq!(blanks, [(3, vec!["0".to_string(), "1".into()]), (5, vec!["1".into(), "2".into()])]);
    }

    #[test]
    fn empty_fields_stay_empty() {
        assert_eq!(rows("t,a,b\n0,,3\n1,2,\n").unwrap()[0].1, ["0", "", "3"]);
        assert_eq!(rows("t;a;b\n0;;3\n1;2;\n").unwrap()[1].1, ["1", "2", ""]);
    }

    #[test]
    fn a_line_with_another_count_of_fields_is_refused() {
        assert!(rows("t,a\n0,1\n1\n").unwrap_err().starts_with("line 3: the line has 1 fields, where others have 2"));
        assert!(rows("t,a\n0,1\n\n1,2,3\n").unwrap_err().starts_with("line 4: the line has 3 fields"));
        assert!(
            rows("t,a\n0,1,2\n1,2,3\n").unwrap_err().starts_with("line 2: the line has 3 fields, where the heading")
        );
        assert!(rows("0 1\n1\n").unwrap_err().starts_with("line 2: the line has 1 fields"));
        assert!(rows("t,a,n\n0,1,\"x\n1,2,y\n").unwrap_err().starts_with("line 2: a quote is opened"));
    }

    #[test]
    fn headings_stand_in_the_first_line_or_in_a_comment() {
        let heading = |text: &str| {
            let heading = Dialect::of(text).unwrap().heading?;
            Some((heading.line, heading.names.join("|"), heading.row_names))
        };
        let some = |line, names: &str, row_names| Some((line, names.to_string(), row_names));
        assert_eq!(heading("t,mbps\n0,1\n"), some(1, "t|mbps", false));
        assert_eq!(heading(",t,mbps\n0,0,1\n"), some(1, "|t|mbps", false));
        assert_eq!(heading("\"\",\"t\"\n\"1\",0\n"), some(1, "|t", false));
        assert_eq!(heading("\"t\" \"mbps\"\n\"1\" 0 20\n\"2\" 1 22\n"), some(1, "|t|mbps", true));
        assert_eq!(heading("# phone\n# time_ms rate_kbps\n0 1\n"), some(2, "time_ms|rate_kbps", false));
        assert_eq!(
            [heading("# wifi trace\n0 1\n"), heading("0,1\n1,2\n"), heading("2026-01-01,5\n")],
            [None, None, None]
        );
    }
}
