//! The tokens of a script.

use crate::outcome::{Step, Stop};

/// A token, and the line on which it begins.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

/// Type of a token.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Kind {
    /// `--name` or `--name=value`; the value extends to the next white space.
    Option(String, Option<String>),
    /// An integer; `text` is its spelling.
    Int { value: i64, text: String },
    /// A number with a decimal point, in nanoseconds if it is a time in seconds.
    Float { nanos: i64, text: String },
    /// A name.
    Word(String),
    /// A string in double quotes.
    Text(String),
    /// A command in backticks.
    Shell(String),
    /// Code between `%{` and `}%`.
    Code(String),
    /// `...`
    Ellipsis,
    /// Any other character.
    Mark(char),
}

impl Kind {
    /// The token as shown in an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Option(name, _) => format!("`--{name}`"),
            Self::Int { text, .. } | Self::Float { text, .. } | Self::Word(text) => format!("`{text}`"),
            Self::Text(_) => "a string".to_owned(),
            Self::Shell(_) => "a shell command".to_owned(),
            Self::Code(_) => "a code snippet".to_owned(),
            Self::Ellipsis => "`...`".to_owned(),
            Self::Mark(mark) => format!("`{mark}`"),
        }
    }
}

/// All tokens of `text`.
pub(crate) fn tokens(text: &str) -> Step<Vec<Token>> {
    let mut lexer = Lexer { rest: text, line: 1 };
    let mut all = Vec::new();
    loop {
        lexer.skip_blank()?;
        let line = lexer.line;
        match lexer.next()? {
            Some(kind) => all.push(Token { line, kind }),
            None => return Ok(all),
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    /// Takes `n` bytes, which must end at a character boundary.
    fn take(&mut self, n: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(n);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let n = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        self.take(n)
    }

    /// Takes the text up to and including `end`.
    fn take_until(&mut self, open: usize, end: &str, what: &str) -> Step<&'a str> {
        let line = self.line;
        self.take(open);
        let Some(n) = self.rest.find(end) else {
            return Err(Stop::invalid(line, format_args!("{what} has no end: expected `{end}`")));
        };
        let inner = self.take(n);
        self.take(end.len());
        Ok(inner)
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Step {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.take_while(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                self.take_until(2, "*/", "the comment")?;
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Step<Option<Kind>> {
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        Ok(Some(
            if let Some(rest) = self.rest.strip_prefix("--")
                && rest.starts_with(|c: char| c.is_ascii_alphanumeric())
            {
                self.take(2);
                self.option()?
            } else if self.rest.starts_with("...") {
                self.take(3);
                Kind::Ellipsis
            } else if self.rest.starts_with("%{") {
                Kind::Code(self.take_until(2, "}%", "the code snippet")?.to_owned())
            } else if first == '`' {
                Kind::Shell(self.take_until(1, "`", "the shell command")?.to_owned())
            } else if first == '"' {
                Kind::Text(self.take_until(1, "\"", "the string")?.to_owned())
            } else if let Some(n) = number_len(self.rest) {
                self.number(n)?
            } else if first.is_ascii_alphanumeric() || first == '_' {
                Kind::Word(self.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_owned())
            } else {
                Kind::Mark(self.take(first.len_utf8()).chars().next().unwrap_or(first))
            },
        ))
    }

    fn option(&mut self) -> Step<Kind> {
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-').to_owned();
        if !self.rest.starts_with('=') {
            return Ok(Kind::Option(name, None));
        }
        self.take(1);
        let mut value = String::new();
        while let Some(c) = self.rest.chars().next().filter(|c| !c.is_whitespace()) {
            match c {
                '"' => value.push_str(self.take_until(1, "\"", "the string")?),
                '`' => value.push_str(self.take_until(1, "`", "the shell command")?),
                _ => value.push_str(self.take(c.len_utf8())),
            }
        }
        Ok(Kind::Option(name, Some(value)))
    }

    fn number(&mut self, n: usize) -> Step<Kind> {
        let line = self.line;
        let text = self.take(n).to_owned();
        let bad = || Stop::invalid(line, format_args!("the number `{text}` is out of range"));
        if let Some(digits) = text.strip_prefix("0x") {
            let value = u64::from_str_radix(digits, 16).map_err(|_| bad())? as i64;
            return Ok(Kind::Int { value, text });
        }
        if text.contains('.') {
            let nanos = nanos(&text).ok_or_else(bad)?;
            return Ok(Kind::Float { nanos, text });
        }
        let value = text.parse().map_err(|_| bad())?;
        Ok(Kind::Int { value, text })
    }
}

/// Length of the number at the beginning of `text`.
fn number_len(text: &str) -> Option<usize> {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    if let Some(hex) = text.strip_prefix("0x") {
        let n = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        return (n > 0).then_some(n + 2);
    }
    let sign = usize::from(text.starts_with('-'));
    let whole = sign + digits(sign);
    if text[whole..].starts_with('.') {
        let fraction = digits(whole + 1);
        if fraction > 0 {
            return Some(whole + 1 + fraction);
        }
    }
    // A name may begin with a digit, for example a hexadecimal blob.
    let name = text[whole..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (whole > sign && !name).then_some(whole)
}

/// Converts decimal seconds to nanoseconds.
fn nanos(text: &str) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = text.split_once('.')?;
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = &fraction[..fraction.len().min(9)];
    let fraction: i64 = format!("{fraction:0<9}").parse().ok()?;
    let nanos = whole.checked_mul(NANOS)?.checked_add(fraction)?;
    Some(if negative { -nanos } else { nanos })
}

/// Nanoseconds in a second.
pub(crate) const NANOS: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        tokens(text).unwrap().iter().map(|token| token.kind.describe()).collect()
    }

    #[test]
    fn a_blocking_call_is_not_a_float() {
        assert_eq!(kinds("+.1...0.200 read"), ["`+`", "`.1`", "`...`", "`0.200`", "`read`"]);
    }

    #[test]
    fn comments_and_lines() {
        let all = tokens("// a\n/* b\n */ x # y\n--mss=1000 z").unwrap();
        let lines: Vec<usize> = all.iter().map(|token| token.line).collect();
        assert_eq!(lines, [3, 4, 4]);
        assert_eq!(all[1].kind, Kind::Option("mss".into(), Some("1000".into())));
    }

    #[test]
    fn what_has_no_end_is_an_error() {
        for text in ["`sysctl", "%{ assert", "\"text", "/* comment", "99999999999999999999"] {
            assert!(tokens(text).is_err(), "{text}");
        }
    }
}
