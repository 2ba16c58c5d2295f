//! TOML text whose values carry their position, so that errors can name line and column.

mod reader;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use reader::{ReadError, read, read_tree};

/// An error in a file or in an override of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    /// Position of the error.
    pub place: Place,
    /// What is wrong, and what was expected.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// Position of an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A position in a file.
    File {
        /// Name of the file.
        name: String,
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// Byte range in the file.
        span: Range<usize>,
    },
    /// In an override.
    Override(String),
    /// A file as a whole.
    Whole {
        /// Name of the file.
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

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TextError {}

/// A parsed text.
pub type Tree<'s> = Spanned<DeTable<'s>>;
/// A value in a [`Tree`].
pub type Node<'s> = Spanned<DeValue<'s>>;

/// A TOML text and its name in error messages.
#[derive(Clone, Debug)]
pub struct Text {
    name: String,
    // Shared by the many sources of a sweep.
    text: Arc<str>,
}

impl Text {
    /// Creates a text. `name` is usually the path of the file.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into().into() }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Parses the text. The caller interprets the keys.
    ///
    /// # Errors
    /// The position at which the text is not valid TOML.
    pub fn tree(&self) -> Result<Tree<'_>, TextError> {
        DeTable::parse(&self.text).map_err(|error| TextError {
            place: error.span().map_or_else(|| self.whole(), |span| self.place(span)),
            message: error.message().trim_end().to_owned(),
            hint: None,
        })
    }

    /// The position of a byte range.
    pub fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Place::File { name: self.name.clone(), line, column, span }
    }

    /// The text as a whole, as a position.
    pub fn whole(&self) -> Place {
        Place::Whole { name: self.name.clone() }
    }
}
