//! Fields of comma-separated values as RFC 4180 has them.

use std::borrow::Cow;

/// A text as a field: one with a comma, a quote or a line break is quoted.
pub fn field(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}
