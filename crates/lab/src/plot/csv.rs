//! Comma-separated values (RFC 4180) with a line feed at the end of each record.

use anabranch_sim::csv::field;

/// A record; fields with a comma, a quotation mark or a line break are quoted.
pub fn record<S: AsRef<str>>(fields: &[S]) -> String {
    let quoted: Vec<_> = fields.iter().map(|text| field(text.as_ref())).collect();
    quoted.join(",") + "\n"
}
