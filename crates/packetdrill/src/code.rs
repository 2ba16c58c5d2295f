//! The subset of Python that scripts use: assignments, `assert`, `print`, and expressions over
//! `tcpi_*`.

mod expression;
mod figures;

use std::collections::BTreeMap;

pub(crate) use self::figures::Figures;

use self::expression::{Number, Parser};
use crate::outcome::{Step, Stop};

/// The variables of a script's snippets.
#[derive(Debug, Default)]
pub(crate) struct Interpreter {
    variables: BTreeMap<String, Number>,
}

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Unsupported syntax, or an unknown name.
    Unknown(String),
    /// Invalid: a syntax error, or a division by zero.
    Wrong(String),
}

impl Interpreter {
    /// Executes `code`, which begins on `line`.
    pub(crate) fn execute(&mut self, line: usize, code: &str, figures: &Figures<'_>) -> Step {
        for (offset, statement) in statements(code) {
            let line = line + offset;
            self.statement(&statement, figures)
                .map_err(|trouble| match trouble {
                    Trouble::Unknown(what) => Stop::not_applicable(line, what),
                    Trouble::Wrong(what) => Stop::invalid(line, what),
                })?
                .map_or(Ok(()), |message| Err(Stop::failed(line, message)))?;
        }
        Ok(())
    }

    /// Executes one statement. Returns a message if an assertion fails.
    fn statement(&mut self, text: &str, figures: &Figures<'_>) -> Result<Option<String>, Trouble> {
        if text.starts_with("print") || text == "pass" || text.starts_with("import ") {
            return Ok(None);
        }
        if let Some(condition) = keyword(text, "assert") {
            let mut parser = Parser::new(condition, &self.variables, figures)?;
            let value = parser.expression()?;
            // A message may follow; it is ignored, since formatting it would need more of Python.
            if !parser.is_done() && !parser.accept(",") {
                return Err(Trouble::Wrong(format!("cannot read `{text}`")));
            }
            let names = parser.used().join(", ");
            return Ok((!value.is_true()).then(|| format!("assert {condition}: {names}")));
        }
        for keyword in ["if ", "for ", "while ", "def ", "with ", "try:", "else", "elif "] {
            if text.starts_with(keyword) {
                return Err(Trouble::Unknown(format!("the Python statement `{}`", keyword.trim())));
            }
        }
        let Some((name, op, value)) = assignment(text) else {
            return Err(Trouble::Unknown(format!("the Python statement `{text}`")));
        };
        let old = self.variables.get(name).copied();
        let mut parser = Parser::new(value, &self.variables, figures)?;
        let value = parser.expression()?;
        if !parser.is_done() {
            return Err(Trouble::Wrong(format!("cannot read `{text}`")));
        }
        let value = match (op, old) {
            (None, _) => value,
            (Some(op), Some(old)) => expression::arithmetic(op, old, value)?,
            (Some(_), None) => return Err(Trouble::Wrong(format!("`{name}` has no value yet"))),
        };
        self.variables.insert(name.to_owned(), value);
        Ok(None)
    }
}

/// The text after the keyword.
fn keyword<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    rest.starts_with(|c: char| c.is_whitespace() || c == '(').then(|| rest.trim())
}

/// `name = value` or `name += value`.
fn assignment(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (name, rest) = text.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = rest.trim_start();
    for op in ["+", "-", "*"] {
        if let Some(value) = rest.strip_prefix(op).and_then(|rest| rest.strip_prefix('=')) {
            return Some((name, Some(op), value.trim()));
        }
    }
    let value = rest.strip_prefix('=')?;
    (!value.starts_with('=')).then(|| (name, None, value.trim()))
}

/// Statements with their line offsets from the beginning.
fn statements(code: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let mut current = (0, String::new());
    let mut quote = None;
    let mut comment = false;
    let mut line = 0;
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match (quote, c) {
            (_, '\\') if chars.peek() == Some(&'\n') => {
                chars.next();
                line += 1;
                current.1.push(' ');
            }
            (None, '\n' | ';') if c == '\n' || !comment => {
                all.push(std::mem::take(&mut current));
                current.0 = line;
                comment = false;
            }
            (None, _) if comment => {}
            (None, '#') => comment = true,
            (None, '"' | '\'') => {
                quote = Some(c);
                current.1.push(c);
            }
            (open, c) => {
                quote = open.filter(|open| *open != c && c != '\n');
                current.1.push(c);
            }
        }
    }
    all.push(current);
    all.into_iter()
        .map(|(line, text)| (line, text.trim().to_owned()))
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(code: &str) -> Result<(), crate::Outcome> {
        Interpreter::default().execute(1, code, &Figures::empty()).map_err(Into::into)
    }

    #[test]
    fn statements_of_all_kinds() {
        let code = "a = 2; b = a * 3 # c\nassert b == 6 and not a > b, 'b=%d;' % b\nb += 1\nassert 5 <= b < 8; \\\n assert 0x10 | 1 == 17";
        assert_eq!(run(code), Ok(()));
    }

    #[test]
    fn what_is_wrong_or_unknown() {
        for (code, failed) in [
            ("assert 1 == 2, 3", "failed"),
            ("x = nothing", "not applicable"),
            ("assert (1", "invalid"),
            ("x = 1 // 0", "invalid"),
            ("if x: y", "not applicable"),
        ] {
            let outcome = run(code).unwrap_err().report("s");
            assert!(outcome.contains(failed), "{code}: {outcome}");
        }
    }
}
