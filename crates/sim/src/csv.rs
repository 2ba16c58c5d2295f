//! Comma-separated values: fields as in RFC 4180, and rows that begin with a time.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use anabranch_units::Span;

/// A text as a field, quoted if it has a comma, a quote or a line break.
pub fn field(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}

/// An error in a file, with its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileError {
    /// Line number, from 1; `None` for the file as a whole.
    pub line: Option<usize>,
    /// Description of the error, and the expected content.
    pub message: String,
    /// Hint for the user.
    pub hint: &'static str,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for FileError {}

pub(crate) fn wrong<T>(
    line: Option<usize>,
    message: impl Into<String>,
    hint: &'static str,
) -> Result<T, FileError> {
    Err(FileError { line, message: message.into(), hint })
}

/// Lines that are neither empty nor comments, with their numbers from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.trim_start_matches('\u{feff}').lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Content of a file for an error message, shortened to a readable length.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let start: String = text.chars().take(MOST).collect();
    format!("`{start}{}`", if text.chars().nth(MOST).is_some() { "…" } else { "" })
}

pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.')
}

/// Expands a number with an exponent, as programs write small and large numbers, to nine decimals.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let has_exponent =
        text.contains(['e', 'E']) && text.bytes().all(|o| o.is_ascii_digit() || b".eE+-".contains(&o));
    match text.parse::<f64>() {
        Ok(number) if has_exponent && (0.0..1e15).contains(&number) => {
            format!("{number:.9}").trim_end_matches('0').trim_end_matches('.').to_owned().into()
        }
        _ => text.into(),
    }
}

/// Parses a time in nanoseconds; a number without a unit is in seconds.
pub(crate) fn span(text: &str) -> Result<u64, String> {
    let text = &*plain(text);
    let with_unit = if is_number(text) { format!("{text} s") } else { text.to_owned() };
    Span::from_str(&with_unit).map(|span| span.0.as_nanos()).map_err(|error| error.to_string())
}

/// Largest time and delay in nanoseconds: more than a year.
pub(crate) const MOST_NANOS: u64 = 1 << 55;

/// A row with a time and a value.
pub(crate) struct Row<'t, T> {
    /// Line number, from 1.
    pub(crate) line: usize,
    /// The time as written, and in nanoseconds.
    pub(crate) time: (&'t str, u64),
    /// The value.
    pub(crate) value: T,
}

/// Reads rows `time,NAME` in the order of the file; the first row may have the names of the
/// columns. Times are in seconds or have a unit.
pub(crate) fn timed_rows<'t, T>(
    text: &'t str,
    name: &str,
    hint: &'static str,
    value: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<Row<'t, T>>, FileError> {
    let mut rows = Vec::new();
    for (i, (line, said)) in lines(text).enumerate() {
        let cells: Vec<&str> = said.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
        let [time, rest] = cells[..] else {
            let message = format!("expected `time,{name}`, found {}", shown(said));
            return wrong(Some(line), message, hint);
        };
        // The names of the columns.
        if i == 0 && [time, rest] == ["time", name] {
            continue;
        }
        let at = |message: String| wrong(Some(line), message, hint);
        let nanos = match span(time) {
            Ok(nanos) if nanos <= MOST_NANOS => nanos,
            Ok(_) => return at(format!("the time {} is too late", shown(time))),
            Err(error) => return at(error),
        };
        match value(rest) {
            Ok(value) => rows.push(Row { line, time: (time, nanos), value }),
            Err(error) => return at(error),
        }
    }
    Ok(rows)
}
