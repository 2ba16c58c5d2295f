//! Comma-separated values as RFC 4180 has them, with a line feed at the end of each record.

use anabranch_sim::csv::field;

/// One record: fields with a comma, a quote or a line break are quoted.
pub fn record<S: AsRef<str>>(fields: &[S]) -> String {
    let quoted: Vec<_> = fields.iter().map(|text| field(text.as_ref())).collect();
    quoted.join(",") + "\n"
}
