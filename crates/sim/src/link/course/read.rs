//! Files with courses: lines of milliseconds, or rows of a time and a value.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use anabranch_units::{Rate, Span};

use super::{Opportunities, Steps};

/// What is wrong with a file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CourseError {
    /// The line, from 1; `None` for the file as a whole.
    pub line: Option<usize>,
    /// What is wrong, and what was expected.
    pub message: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl fmt::Display for CourseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for CourseError {}

fn wrong<T>(line: Option<usize>, message: impl Into<String>, hint: &'static str) -> Result<T, CourseError> {
    Err(CourseError { line, message: message.into(), hint })
}

/// Lines with something in them that is no comment, and their numbers from 1 on.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.trim_start_matches('\u{feff}').lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// What a file has, for an error: not more than can be read.
fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let start: String = text.chars().take(MOST).collect();
    format!("`{start}{}`", if text.chars().nth(MOST).is_some() { "…" } else { "" })
}

impl Opportunities {
    /// Reads a file in the format of mahimahi. Empty lines and those that begin with `#` are left aside.
    ///
    /// # Errors
    ///
    /// A line that is no whole number of milliseconds or is less than the one before it; a file without an opportunity later than 0.
    pub fn parse(text: &str) -> Result<Self, CourseError> {
        let mut millis: Vec<u32> = Vec::new();
        for (number, line) in lines(text) {
            let Ok(time) = u32::from_str(line) else {
                let message = format!("expected a whole number of milliseconds, found {}", shown(line));
                let hint = "a line of a mahimahi trace is the time of one packet of 1500 octets";
                return wrong(Some(number), message, hint);
            };
            if let Some(last) = millis.last().filter(|last| **last > time) {
                let message = format!("{time} ms is before {last} ms, the opportunity on the line before");
                return wrong(Some(number), message, "sort the file by time");
            }
            millis.push(time);
        }
        if millis.last().is_none_or(|last| *last == 0) {
            let message = "the file has no opportunity later than 0 ms";
            return wrong(None, message, "the time on the last line is that after which all begins anew");
        }
        millis.shrink_to_fit();
        Ok(Self { millis })
    }
}

/// What the values of a file are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quantity {
    Rate,
    Delay,
}

impl Quantity {
    fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Delay => "delay",
        }
    }

    /// In bit/s or nanoseconds.
    fn value(self, text: &str) -> Result<u64, String> {
        let text = &*plain(text);
        match self {
            Self::Delay => span(text),
            // A link may be silent for a while.
            Self::Rate if is_zero(text.strip_suffix("bit/s").unwrap_or(text).trim_end()) => Ok(0),
            Self::Rate if is_number(text) => {
                Rate::from_str(&format!("{text} bit/s")).map(|rate| rate.0).map_err(|e| e.to_string())
            }
            Self::Rate => Rate::from_str(text).map(|rate| rate.0).map_err(|e| e.to_string()),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.')
}

/// A number with an exponent, as programs write small and large ones, without it, to nine decimals.
fn plain(text: &str) -> Cow<'_, str> {
    let has_exponent =
        text.contains(['e', 'E']) && text.bytes().all(|o| o.is_ascii_digit() || b".eE+-".contains(&o));
    match text.parse::<f64>() {
        Ok(number) if has_exponent && (0.0..1e15).contains(&number) => {
            format!("{number:.9}").trim_end_matches('0').trim_end_matches('.').to_owned().into()
        }
        _ => text.into(),
    }
}

fn is_zero(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|octet| matches!(octet, b'0' | b'.')) && text.contains('0')
}

/// Nanoseconds; a number without a unit is in seconds.
fn span(text: &str) -> Result<u64, String> {
    let text = &*plain(text);
    let with_unit = if is_number(text) { format!("{text} s") } else { text.to_owned() };
    Span::from_str(&with_unit).map(|span| span.0.as_nanos()).map_err(|error| error.to_string())
}

/// Greatest time and delay: a year and more.
const MOST_NANOS: u64 = 1 << 55;

impl Steps {
    /// Reads rows `time,rate`: seconds or a span with its unit, and bit/s or a rate with its unit; 0 sends nothing. The last rate
    /// holds, or at the last time all `repeats`.
    ///
    /// # Errors
    ///
    /// A row that is not so; times that do not begin at 0 or do not rise; rates by which a packet would never leave.
    pub fn rates(text: &str, repeats: bool) -> Result<Self, CourseError> {
        let steps = Self::parse(text, Quantity::Rate, repeats)?;
        match steps.values() {
            values if values.iter().all(|rate| *rate == 0) => {
                wrong(None, "nothing can ever leave: all rates are 0", "say a rate above 0")
            }
            [.., 0] if !repeats => {
                let hint = "say `repeat = true`, or let the last rate be above 0; an event \"link-down\" ends a link";
                wrong(None, "nothing can leave any more: the last rate holds, and is 0", hint)
            }
            _ => Ok(steps),
        }
    }

    /// Reads rows `time,delay`: seconds, or spans with their unit. The last delay holds, or at the last time all `repeats`.
    ///
    /// # Errors
    ///
    /// A row that is not so, or times that do not begin at 0 or do not rise.
    pub fn delays(text: &str, repeats: bool) -> Result<Self, CourseError> {
        Self::parse(text, Quantity::Delay, repeats)
    }

    fn parse(text: &str, what: Quantity, repeats: bool) -> Result<Self, CourseError> {
        let name = what.name();
        let hint = match what {
            Quantity::Rate => "a row is as `0.5,2000000` or `500 ms,2 Mbit/s`",
            Quantity::Delay => "a row is as `0.5,0.02` or `500 ms,20 ms`",
        };
        let mut steps: Vec<(u64, u64)> = Vec::new();
        for (i, (number, line)) in lines(text).enumerate() {
            let cells: Vec<&str> = line.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
            let [time, value] = cells[..] else {
                let message = format!("expected a time and a {name}, found {}", shown(line));
                return wrong(Some(number), message, hint);
            };
            // The names of columns.
            if i == 0 && [time, value] == ["time", name] {
                continue;
            }
            let at = |message: String| wrong(Some(number), message, hint);
            let time = match span(time) {
                Ok(time) if time <= MOST_NANOS => time,
                Ok(_) => return at(format!("the time {} is too late", shown(time))),
                Err(error) => return at(error),
            };
            let value = match what.value(value) {
                Ok(nanos) if what == Quantity::Delay && nanos > MOST_NANOS => {
                    return at(format!("the delay {} is too long", shown(value)));
                }
                Ok(value) => value,
                Err(error) => return at(error),
            };
            match steps.last() {
                None if time != 0 => {
                    let message = format!("the first row is at {}, and a run begins at 0", cells[0]);
                    return wrong(Some(number), message, "subtract the time of the first row from all");
                }
                Some((last, _)) if *last >= time => {
                    let message = format!("{} is not later than the time of the row before", cells[0]);
                    return wrong(Some(number), message, "sort the file by time, with one row for each time");
                }
                _ => steps.push((time, value)),
            }
        }
        match steps.len() {
            0 => wrong(None, format!("the file has no row with a time and a {name}"), hint),
            1 if repeats => {
                let hint = "add a row: the time of the last one is that at which all begins anew, and its value has no effect";
                wrong(None, "one row cannot repeat", hint)
            }
            _ => Ok(Self::new(steps, repeats)),
        }
    }
}
