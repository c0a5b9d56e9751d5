//! Which columns hold the times and the rates, and in which units.

use super::super::{TraceError, excerpt};
use super::dialect::{Dialect, Heading};
use super::heading::{Meaning, time_unit};
use super::units::{EXPECTED_UNIT, RateUnit, TimeUnit};
use super::{ColumnName, TableHints};
use anabranch_units::{Duration, nearest};

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Counted from zero.
    pub number: usize,
    /// Its heading; empty where it has none.
    pub heading: String,
}

impl Column {
    /// Its heading, or the beginning of a long one, or its number where it has none.
    pub fn name(&self) -> String {
        if self.heading.is_empty() { self.number.to_string() } else { excerpt(&self.heading) }
    }
}

/// Where the times of rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimesFrom {
    /// A column, and its unit where something says it.
    Column(Column, Option<TimeUnit>),
    /// Each row is as long.
    Interval(Duration),
}

/// The columns that are read.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) times: TimesFrom,
    pub(super) rates: Column,
    pub(super) unit: RateUnit,
    /// What was said that is not what the headings say.
    pub(super) warnings: Vec<String>,
}

impl Columns {
    /// Finds the columns by what is said, and else by headings that are known.
    ///
    /// Errors: no column is known, or several are; nothing says the unit of the rates.
    pub(super) fn of(dialect: &Dialect, hints: &TableHints) -> Result<Self, TraceError> {
        let headings = Headings { heading: dialect.heading.as_ref(), width: dialect.width };
        let mut rates = hints.rate_column.as_ref().map(|name| headings.named(name, "rate_column")).transpose()?;
        let times = match (&hints.time_column, hints.interval) {
            (Some(_), Some(_)) => {
                let problem = "both `time_column` and `interval` are given";
                return Err(TraceError::whole(problem).expecting("one of them"));
            }
            (Some(name), None) => TimesFrom::Column(headings.named(name, "time_column")?, hints.time_unit),
            (None, Some(interval)) if interval.is_zero() => {
                return Err(TraceError::whole("`interval` is zero").expecting("a time above zero"));
            }
            (None, Some(interval)) => TimesFrom::Interval(interval),
            (None, None) => TimesFrom::Column(headings.times(rates.as_ref())?, hints.time_unit),
        };
        if rates.is_none() {
            rates = Some(headings.rates(&times, hints)?);
        }
        let rates = rates.expect("it was found");
        let mut warnings = Vec::new();
        let times = with_unit(times, &mut warnings)?;
        if matches!(&times, TimesFrom::Column(column, _) if column.number == rates.number) {
            let problem = format!("column {} is taken for the times and for the rates", rates.name());
            return Err(TraceError::whole(problem).expecting("two different columns"));
        }
        let unit = unit_of(&rates, hints.unit, &mut warnings)?;
        Ok(Columns { times, rates, unit, warnings })
    }
}

/// The unit of the rates.
fn unit_of(rates: &Column, said: Option<RateUnit>, warnings: &mut Vec<String>) -> Result<RateUnit, TraceError> {
    let Meaning::Rate(Some(written)) = Meaning::of(&rates.heading) else {
        let problem = match rates.heading.as_str() {
            "" => "nothing says in which unit the table's rates are".to_string(),
            heading => format!(
                "nothing says in which unit the rates are: the heading `{heading}` does not, or not for certain"
            ),
        };
        return said.ok_or_else(|| TraceError::whole(problem).expecting(format!("`unit` (--unit), {EXPECTED_UNIT}")));
    };
    if let Some(said) = said.filter(|said| *said != written) {
        warnings.push(format!("column {} is read in {said}, as `unit` says, not in {written}", rates.name()));
    }
    Ok(said.unwrap_or(written))
}

/// The headings of a table, if it has any.
struct Headings<'a> {
    heading: Option<&'a Heading>,
    width: usize,
}

impl Headings<'_> {
    fn column(&self, number: usize) -> Column {
        let heading = self.heading.map_or_else(String::new, |heading| heading.names[number].clone());
        Column { number, heading }
    }

    fn all(&self) -> impl Iterator<Item = (Column, Meaning)> {
        (0..self.width).map(|number| self.column(number)).map(|column| {
            let meaning = Meaning::of(&column.heading);
            (column, meaning)
        })
    }

    /// The headings as a list, for messages.
    fn list(&self) -> String {
        match self.heading {
            None => format!(
                "the table has {} and no heading",
                if self.width == 1 { "one column".into() } else { format!("{} columns", self.width) }
            ),
            Some(heading) => {
                const MOST: usize = 20;
                let shown =
                    |name: &String| if name.is_empty() { "(none)".into() } else { format!("`{}`", excerpt(name)) };
                let more = if heading.names.len() > MOST { ", ..." } else { "" };
                let names: Vec<String> = heading.names.iter().take(MOST).map(shown).collect();
                format!("the headings are {}{more}", names.join(", "))
            }
        }
    }

    /// The column with this name or number.
    fn named(&self, name: &ColumnName, key: &str) -> Result<Column, TraceError> {
        let names = || self.heading.into_iter().flat_map(|heading| &heading.names);
        let number = match name {
            ColumnName::Number(number) => Some(*number).filter(|number| *number < self.width),
            ColumnName::Name(name) => {
                let same: Vec<usize> = (0..self.width).filter(|at| self.column(*at).heading == *name).collect();
                if same.len() > 1 {
                    let problem = format!("{} columns are called `{name}`", same.len());
                    let expected = format!("`{key}` as a number, counted from 0");
                    return Err(TraceError::whole(problem).expecting(expected));
                }
                // A number that is written as text is the name of a column before it is a number.
                same.first().copied().or_else(|| name.parse().ok().filter(|number| *number < self.width))
            }
        };
        number.map(|number| self.column(number)).ok_or_else(|| {
            let near = match name {
                ColumnName::Name(name) => nearest(name, names().map(String::as_str)),
                ColumnName::Number(_) => None,
            };
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let expected = format!("`{key}` as a heading or as a number from 0 to {}", self.width - 1);
            TraceError::whole(format!("there is no column {name}: {}{near}", self.list())).expecting(expected)
        })
    }

    /// The column of the times: the only one whose heading means times, or the first one of a table without a heading.
    fn times(&self, rates: Option<&Column>) -> Result<Column, TraceError> {
        let mut found: Vec<Column> = match self.heading {
            None if self.width > 1 => vec![self.column(0)],
            None => Vec::new(),
            Some(_) => {
                let known = self.all().filter(|(_, meaning)| matches!(meaning, Meaning::Time(_)));
                known.map(|(column, _)| column).collect()
            }
        };
        found.retain(|column| rates.is_none_or(|rates| rates.number != column.number));
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(TraceError::whole("no time column: give an interval, or name the column of the times").expecting(
                format!("`interval` (--interval), such as \"1 s\", or `time_column` (--time); {}", self.list()),
            )),
            _ => Err(self.several("times", &found, "`time_column` (--time)")),
        }
    }

    /// The column of the rates: the only one whose heading has a unit of rates, or else the only one whose heading
    /// means rates, or else the second one of a table of two columns without a heading.
    fn rates(&self, times: &TimesFrom, hints: &TableHints) -> Result<Column, TraceError> {
        let free = |column: &Column| !matches!(times, TimesFrom::Column(times, _) if times.number == column.number);
        let with = |wanted: &dyn Fn(Meaning) -> bool| -> Vec<Column> {
            self.all().filter(|(column, meaning)| free(column) && wanted(*meaning)).map(|(column, _)| column).collect()
        };
        let per_interval = hints.unit.is_some_and(RateUnit::is_per_interval);
        let ranks: [&dyn Fn(Meaning) -> bool; 3] = [
            &|meaning| matches!(meaning, Meaning::Rate(Some(_))),
            &|meaning| matches!(meaning, Meaning::Rate(None)),
            &|meaning| per_interval && meaning == Meaning::Amount,
        ];
        let mut found = match self.heading {
            None => (0..self.width).map(|number| self.column(number)).filter(free).collect(),
            Some(_) => ranks.into_iter().map(with).find(|found| !found.is_empty()).unwrap_or_default(),
        };
        let expected = "`rate_column` (--rate)";
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => {
                let expected = format!("{expected}, and its `unit` (--unit); {}", self.list());
                Err(TraceError::whole("no column is known to hold rates").expecting(expected))
            }
            _ => Err(self.several("rates", &found, expected)),
        }
    }

    fn several(&self, what: &str, found: &[Column], expected: &str) -> TraceError {
        let names: Vec<String> = found.iter().map(Column::name).collect();
        let problem = format!("several columns may hold the {what}: {}", names.join(", "));
        TraceError::whole(problem).expecting(format!("the one that is meant, as {expected}"))
    }
}

/// The unit of times that was said, or else the heading's.
fn with_unit(times: TimesFrom, warnings: &mut Vec<String>) -> Result<TimesFrom, TraceError> {
    let TimesFrom::Column(column, said) = times else { return Ok(times) };
    let written = match (time_unit(&column.heading), said) {
        (Ok(written), _) => written,
        (Err(_), Some(_)) => None,
        (Err(problem), None) => {
            let expected = "`time_unit` (--time-unit): s, ms, us or ns";
            return Err(TraceError::whole(problem).in_column(column.name()).expecting(expected));
        }
    };
    if let (Some(said), Some(written)) = (said.filter(|said| Some(*said) != written), written) {
        let (name, said, written) = (column.name(), said.name(), written.name());
        warnings.push(format!("column {name} is read in {said}, as `time_unit` says, not in {written}"));
    }
    Ok(TimesFrom::Column(column, said.or(written)))
}
