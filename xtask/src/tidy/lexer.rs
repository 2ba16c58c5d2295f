//! Splits Rust source into identifiers and punctuation. Comments, strings, characters and numbers
//! are dropped, so that a rule about code never applies to prose.

/// A token with its line, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) line: usize,
}

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// An identifier or keyword; `r#name` is `name`.
    Ident(&'a str),
    /// `::`.
    PathSep,
    /// Any other punctuation character.
    Punct(char),
}

/// Tokens of `source`. Never fails: text that is not Rust yields tokens that no rule matches.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { source, at: 0, line: 1 };
    std::iter::from_fn(|| lexer.next()).collect()
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = self.rest();
            let first = rest.chars().next()?;
            if rest.starts_with("//") {
                self.advance(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                self.advance(block_comment(rest));
            } else if let Some(length) = string(rest) {
                self.advance(length);
            } else if first == '\'' {
                self.advance(character_or_lifetime(rest));
            } else if is_ident_start(first) {
                return Some(self.ident(rest.strip_prefix("r#").unwrap_or(rest)));
            } else if first.is_ascii_digit() {
                self.advance(rest.find(|c| !is_ident(c)).unwrap_or(rest.len()));
            } else if first.is_whitespace() {
                self.advance(first.len_utf8());
            } else {
                return Some(self.punctuation(first));
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn advance(&mut self, length: usize) {
        self.line += self.rest()[..length].matches('\n').count();
        self.at += length;
    }

    fn ident(&mut self, text: &'a str) -> Token<'a> {
        let name = &text[..text.find(|c| !is_ident(c)).unwrap_or(text.len())];
        self.advance(self.rest().len() - text.len() + name.len());
        Token { kind: Kind::Ident(name), line: self.line }
    }

    fn punctuation(&mut self, first: char) -> Token<'a> {
        let line = self.line;
        if self.rest().starts_with("::") {
            self.advance(2);
            return Token { kind: Kind::PathSep, line };
        }
        self.advance(first.len_utf8());
        Token { kind: Kind::Punct(first), line }
    }
}

fn is_ident_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn is_ident(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Length of the block comment (possibly nested) at the start of `text`.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Length of the string literal at the start of `text`: plain, byte, C or raw; `None` if there is
/// none.
fn string(text: &str) -> Option<usize> {
    let begins = |prefix: &&str| {
        text.strip_prefix(*prefix).is_some_and(|rest| {
            let bare = if prefix.ends_with('r') { rest.trim_start_matches('#') } else { rest };
            bare.starts_with('"')
        })
    };
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(begins)?;
    let rest = &text[prefix.len()..];
    if !prefix.ends_with('r') {
        return Some(prefix.len() + quoted(rest, '"'));
    }
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let end = format!("\"{}", "#".repeat(hashes));
    let body = &rest[hashes + 1..];
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(prefix.len() + hashes + 1 + length)
}

/// Length of the text between two `quote` characters, both included, with backslash escapes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// Length of the character literal or lifetime at the start of `text`.
fn character_or_lifetime(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(text, '\''),
        _ => 1 + text[1..].find(|c| !is_ident(c)).unwrap_or(text.len() - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(source: &str) -> Vec<String> {
        let word = |token: Token| match token.kind {
            Kind::Ident(name) => name.to_owned(),
            Kind::PathSep => "::".to_owned(),
            Kind::Punct(c) => c.to_string(),
        };
        tokens(source).into_iter().map(word).collect()
    }

    #[test]
    fn code_remains_and_prose_goes() {
        assert_eq!(said("use a::b; // c\n/* d /* e */ f */ g"), ["use", "a", "::", "b", ";", "g"]);
        assert_eq!(said(r##"x("a\"b", r#"c"d"#, b"e", 'f', '\'', 1.5e3) y"##), {
            ["x", "(", ",", ",", ",", ",", ",", ".", ")", "y"]
        });
    }

    #[test]
    fn lifetimes_and_raw_names() {
        assert_eq!(said("fn f<'a>(x: &'a r#type, r: u8)"), {
            ["fn", "f", "<", ">", "(", "x", ":", "&", "type", ",", "r", ":", "u8", ")"]
        });
        assert_eq!(said("b'x' b'\\'' c"), ["b", "b", "c"]);
    }

    #[test]
    fn lines_count_through_strings_and_comments() {
        let last = tokens("a\n\"two\nlines\"\n/*\n*/ b").pop().map(|token| token.line);
        assert_eq!(last, Some(5));
    }

    #[test]
    fn broken_source_ends() {
        for source in ["\"", "'", "r#\"", "/*", "r#", "b", "'\\", "é'"] {
            let _ = tokens(source);
        }
    }
}
