//! Comma-separated values as RFC 4180 has them, with a line feed at the end of each record.

/// One record: fields with a comma, a quote or a line break are quoted.
pub fn record<S: AsRef<str>>(fields: &[S]) -> String {
    let quoted: Vec<String> = fields.iter().map(|field| quoted(field.as_ref())).collect();
    quoted.join(",") + "\n"
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
