//! Reads course files: lines of milliseconds, or rows of a time and a value.

use std::str::FromStr;

use anabranch_units::Rate;

use super::{Opportunities, Steps};
use crate::csv::{self, FileError, Row, lines, plain, shown, wrong};

impl Opportunities {
    /// Reads a file in mahimahi format. Empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    ///
    /// If a line is not a whole number of milliseconds or is less than the one before it, or if the
    /// file has no opportunity later than 0.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let mut millis: Vec<u32> = Vec::new();
        for (number, line) in lines(text) {
            let Ok(time) = u32::from_str(line) else {
                let message = format!("expected a whole number of milliseconds, found {}", shown(line));
                let hint = "a line of a mahimahi trace is the time of one packet of 1500 bytes";
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
            return wrong(
                None,
                message,
                "the time on the last line is the period after which the trace repeats",
            );
        }
        millis.shrink_to_fit();
        Ok(Self { millis })
    }
}

/// Quantity of a file's values.
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

    /// Parses a value in bit/s or nanoseconds.
    fn value(self, text: &str) -> Result<u64, String> {
        let text = &*plain(text);
        match self {
            Self::Delay => csv::span(text),
            // A rate of 0 is valid: a link may be silent for a while.
            Self::Rate if is_zero(text.strip_suffix("bit/s").unwrap_or(text).trim_end()) => Ok(0),
            Self::Rate if csv::is_number(text) => {
                Rate::from_str(&format!("{text} bit/s")).map(|rate| rate.0).map_err(|e| e.to_string())
            }
            Self::Rate => Rate::from_str(text).map(|rate| rate.0).map_err(|e| e.to_string()),
        }
    }
}

fn is_zero(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|octet| matches!(octet, b'0' | b'.')) && text.contains('0')
}

impl Steps {
    /// Reads rows `time,rate`: seconds or a time with a unit, and bit/s or a rate with a unit; 0
    /// sends nothing. The last rate holds, or the course `repeats` from the last time on.
    ///
    /// # Errors
    ///
    /// If a row is invalid, if times do not begin at 0 or do not increase, or if a packet would
    /// never leave.
    pub fn rates(text: &str, repeats: bool) -> Result<Self, FileError> {
        let steps = Self::parse(text, Quantity::Rate, repeats)?;
        match steps.values() {
            values if values.iter().all(|rate| *rate == 0) => {
                wrong(None, "no packet can ever leave: all rates are 0", "set a rate above 0")
            }
            [.., 0] if !repeats => {
                let hint = "set `repeat = true`, or let the last rate be above 0; an event \"link-down\" ends a link";
                wrong(None, "no packet can leave after the last row: the last rate stays, and it is 0", hint)
            }
            _ => Ok(steps),
        }
    }

    /// Reads rows `time,delay`: seconds, or times with a unit. The last delay holds, or the course
    /// `repeats` from the last time on.
    ///
    /// # Errors
    ///
    /// If a row is invalid, or if times do not begin at 0 or do not increase.
    pub fn delays(text: &str, repeats: bool) -> Result<Self, FileError> {
        Self::parse(text, Quantity::Delay, repeats)
    }

    fn parse(text: &str, what: Quantity, repeats: bool) -> Result<Self, FileError> {
        let name = what.name();
        let hint = match what {
            Quantity::Rate => "a row is as `0.5,2000000` or `500 ms,2 Mbit/s`",
            Quantity::Delay => "a row is as `0.5,0.02` or `500 ms,20 ms`",
        };
        let rows = csv::timed_rows(text, name, hint, |text| match what.value(text)? {
            nanos if what == Quantity::Delay && nanos > csv::MOST_NANOS => {
                Err(format!("the delay {} is too long", csv::shown(text)))
            }
            value => Ok(value),
        })?;
        let mut steps: Vec<(u64, u64)> = Vec::with_capacity(rows.len());
        for Row { line, time, value } in rows {
            match steps.last() {
                None if time.1 != 0 => {
                    let message = format!("the first row is at {}, and a run begins at 0", time.0);
                    return wrong(Some(line), message, "subtract the time of the first row from all");
                }
                Some((last, _)) if *last >= time.1 => {
                    let message = format!("{} is not later than the time of the row before", time.0);
                    return wrong(Some(line), message, "sort the file by time, with one row for each time");
                }
                _ => steps.push((time.1, value)),
            }
        }
        match steps.len() {
            0 => wrong(None, format!("the file has no row with a time and a {name}"), hint),
            1 if repeats => {
                let hint =
                    "add a row: the trace repeats at the time of the last row, whose value has no effect";
                wrong(None, "one row cannot repeat", hint)
            }
            _ => Ok(Self::new(steps, repeats)),
        }
    }
}
