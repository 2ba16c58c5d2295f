//! Where a scenario is wrong, what was expected, and what to do.

use std::fmt;
use std::ops::Range;

/// A fault of a scenario file or of an override.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// Where.
    pub place: Place,
    /// What is wrong, and what was expected.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Where a fault is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the file.
    File {
        /// Its name.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The octets of the file that are meant.
        span: Range<usize>,
    },
    /// In an override.
    Override(String),
    /// In the file as a whole.
    Whole {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line, column, .. } => write!(f, "{name}:{line}:{column}"),
            Self::Override(text) => write!(f, "--set {text}"),
            Self::Whole { name } => f.write_str(name),
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// The known word that is most like `word`, if one is like it at all. Of equals the first.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1) + 1;
    let scored = known.into_iter().map(|k| (distance(&word.to_lowercase(), &k.to_lowercase()), k));
    scored.filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, k)| k)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let one = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swap { one.min(table[i - 2][j - 2] + 1) } else { one }
            };
        }
    }
    table[a.len()][b.len()]
}

/// Between message and hint of an error that a deserialiser passes on.
pub(super) const HINT_MARK: &str = "; hint: ";

/// A hint from what a deserialiser says of an unknown key or value and of those that it knows.
pub(super) fn hint_from(message: &str) -> Option<String> {
    if !message.starts_with("unknown ") || message.starts_with("unknown unit") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let word = quoted.next()?;
    nearest(word, quoted).map(|near| format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_near() {
        let known = ["rate", "delay", "queue", "mtu", "loss"];
        assert_eq!(nearest("dealy", known), Some("delay"));
        assert_eq!(nearest("Rates", known), Some("rate"));
        assert_eq!(nearest("bandwidth", known), None);
    }

    #[test]
    fn a_hint_is_taken_from_the_message() {
        let hint = hint_from("unknown field `dealy`, expected one of `rate`, `delay`");
        assert_eq!(hint.as_deref(), Some("did you mean `delay`?"));
        assert_eq!(hint_from("missing field `rate`"), None);
    }
}
