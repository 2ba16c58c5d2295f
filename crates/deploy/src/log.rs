//! Log lines on standard error: with a level, as text or as JSON objects.
//!
//! Before [`Logging::start`] is called, all levels are written as text.

mod aside;
mod limit;

use std::sync::OnceLock;
use std::time::Duration;

use anabranch_net::set::unix_time;
use serde_json::{Map, Value};

pub(crate) use self::aside::finish;
pub(crate) use self::limit::{Class, Limiter, REPORT_EVERY};
use crate::calendar::rfc3339;
use crate::error::Error;
use crate::say;

/// Severity of a log line, most severe first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub enum Level {
    /// The program ends, or a transfer has failed.
    Error,
    /// The program works, but needs attention.
    Warning,
    /// Normal operation.
    Info,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Options of the log.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Logging {
    /// Format of log lines: text, or one JSON object per line with `time`, `level`, `event` and
    /// `message`
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    log_format: Format,
    /// Log only lines of this level and more severe ones
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Level::Info)]
    log_level: Level,
}

struct Started {
    program: &'static str,
    logging: Logging,
}

static STARTED: OnceLock<Started> = OnceLock::new();

impl Logging {
    /// Sets the format and level for this process, whose lines carry the name `program`. A thread
    /// of their own writes the lines, since the work must not wait for the reader of the log. Of
    /// more than 1024 lines that wait, the later ones are dropped and counted.
    pub fn start(self, program: &'static str) {
        // A process is one program, so only the first call takes effect.
        if STARTED.set(Started { program, logging: self }).is_err() {
            return;
        }
        aside::start(|dropped| {
            let text =
                format!("{dropped} lines of the log were dropped, because standard error was not read");
            Entry::warning("log", text).with("dropped", dropped).line().filter(|_| dropped > 0)
        });
    }
}

/// A log line.
#[derive(Clone, Debug)]
pub struct Entry {
    level: Level,
    event: &'static str,
    message: String,
    hint: Option<String>,
    fields: Map<String, Value>,
}

impl Entry {
    /// Creates a line of this level. `event` names its kind in one or two words.
    pub fn new(level: Level, event: &'static str, message: impl Into<String>) -> Self {
        Self { level, event, message: message.into(), hint: None, fields: Map::new() }
    }

    /// Creates a line of level `info`.
    pub fn info(event: &'static str, message: impl Into<String>) -> Self {
        Self::new(Level::Info, event, message)
    }

    /// Creates a line of level `warning`.
    pub fn warning(event: &'static str, message: impl Into<String>) -> Self {
        Self::new(Level::Warning, event, message)
    }

    /// Adds a field to the JSON object. In text format the message already contains it.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a hint: a field of the JSON object, or a second line of text.
    pub fn hinted(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

    pub(crate) fn event(&self) -> &'static str {
        self.event
    }

    /// The line without its line end; `None` if its level is not logged.
    pub(crate) fn line(&self) -> Option<String> {
        let Some(Started { program, logging }) = STARTED.get() else {
            return Some(self.text(None));
        };
        (self.level <= logging.log_level).then(|| match logging.log_format {
            Format::Text => self.text(Some(program)),
            Format::Json => self.json(program, unix_time()),
        })
    }

    /// The line as a JSON object for standard output, whatever its level; `None` in text format.
    pub(crate) fn result(&self) -> Option<String> {
        let Started { program, logging } = STARTED.get()?;
        (logging.log_format == Format::Json).then(|| self.json(program, unix_time()) + "\n")
    }

    /// Writes the line to standard error, if its level is logged.
    pub fn write(&self) {
        self.line().into_iter().for_each(put);
    }

    fn text(&self, program: Option<&str>) -> String {
        let line = match (self.level, program) {
            (Level::Warning, _) => format!("warning: {}", self.message),
            (_, Some(program)) => format!("{program}: {}", self.message),
            (_, None) => self.message.clone(),
        };
        self.hint.iter().fold(line, |line, hint| line + "\n  hint: " + hint)
    }

    fn json(&self, program: &str, now: Duration) -> String {
        let mut object = Map::new();
        let message: Value = self.message.as_str().into();
        let own = [
            ("time", format!("{}.{:03}Z", rfc3339(now.as_secs()), now.subsec_millis()).into()),
            ("level", self.level.name().into()),
            ("program", program.into()),
            ("event", self.event.into()),
            ("message", message),
        ];
        object.extend(own.map(|(name, value): (_, Value)| (name.to_owned(), value)));
        object.extend(self.hint.iter().map(|hint| ("hint".to_owned(), hint.as_str().into())));
        object.extend(self.fields.clone());
        Value::Object(object).to_string()
    }
}

/// Writes the error that ends the program, in the format of the log.
pub(crate) fn ended(error: &Error) {
    match STARTED.get() {
        Some(Started { program, logging }) if logging.log_format == Format::Json => {
            let (message, hint) = error.parts();
            let entry = Entry::new(Level::Error, "ended", message);
            let entry = hint.into_iter().fold(entry, Entry::hinted);
            put(entry.json(program, unix_time()));
        }
        _ => put(error.to_string()),
    }
}

fn put(line: String) {
    if let Some(line) = aside::put(line) {
        say!("{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_json_holds_whatever_a_peer_says() {
        let entry = Entry::warning("refused", "says \"x\"\n\u{1b}[2J").with("octets", 7);
        let object: Value = serde_json::from_str(&entry.json("node", Duration::from_millis(1_500))).unwrap();
        assert_eq!(object["time"], "1970-01-01T00:00:01.500Z");
        assert_eq!(object["level"], "warning");
        assert_eq!(object["program"], "node");
        assert_eq!(object["event"], "refused");
        assert_eq!(object["message"], "says \"x\"\n\u{1b}[2J");
        assert_eq!(object["octets"], 7);
        assert_eq!(entry.json("node", Duration::ZERO).lines().count(), 1);
    }
}
