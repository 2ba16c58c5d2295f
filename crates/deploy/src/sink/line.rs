//! One item as a JSON object on a line, and back.

use anabranch_net::rdca::{Item, Source, What, Why};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::calendar::rfc3339;

/// Keys of a line. Which of them are present depends on the item.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Line<'a> {
    sender: &'a str,
    /// Fingerprint of the sender's key; absent with `--insecure`.
    #[serde(skip_serializing_if = "str::is_empty", default)]
    key: &'a str,
    run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    /// Numbers of the first and the last lost record.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u64>,
    /// Number of the record that would have followed an ended run.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// Time of creation by the sender's clock; absent if the sender has none.
    #[serde(skip_serializing_if = "Option::is_none", default, skip_deserializing)]
    sent: Option<String>,
    #[serde(skip_deserializing)]
    received: String,
    /// The payload, if it is UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none", default, skip_deserializing)]
    payload: Option<&'a str>,
    /// The payload otherwise.
    #[serde(skip_serializing_if = "Option::is_none", default, skip_deserializing)]
    base64: Option<String>,
}

fn time(millis: u64) -> String {
    format!("{}.{:03}Z", rfc3339(millis / 1000), millis % 1000)
}

/// The word for the end of a run.
const fn word(why: Why) -> &'static str {
    match why {
        Why::Complete => "complete",
        Why::Incomplete => "incomplete",
        Why::Restarted => "restarted",
        Why::Aborted => "aborted",
        Why::Silent => "silent",
    }
}

/// Whether an incomplete line may be one of ours.
pub(super) fn is_begun(line: &[u8]) -> bool {
    let begin = b"{\"sender\":";
    line.starts_with(begin) || begin.starts_with(line)
}

/// Appends the line of an item.
pub(super) fn write(item: &Item, out: &mut Vec<u8>) {
    let mut line = Line {
        sender: item.source.name.as_str(),
        key: &item.source.key,
        run: format!("{:016x}", item.run),
        received: time(item.received),
        ..Line::default()
    };
    match &item.what {
        What::Record { created, payload } => {
            line.number = Some(item.next - 1);
            line.sent = (*created > 0).then(|| time(*created));
            match std::str::from_utf8(payload) {
                Ok(text) => line.payload = Some(text),
                Err(_) => line.base64 = Some(STANDARD.encode(payload)),
            }
        }
        What::Lost { from } => {
            (line.event, line.first, line.last) = (Some("lost"), Some(*from), Some(item.next - 1));
        }
        What::Ended(why) => (line.event, line.next) = (Some(word(*why)), Some(item.next)),
    }
    serde_json::to_writer(&mut *out, &line).expect("a vector takes everything, and our lines are plain data");
    out.push(b'\n');
}

/// The sender, the run, the number of the next record, and whether the run has ended, as a line
/// says.
pub(super) fn read(line: &str) -> Option<(Source, u64, u64, bool)> {
    let line: Line<'_> = serde_json::from_str(line).ok()?;
    let source = Source { name: line.sender.parse().ok()?, key: line.key.into() };
    let next = match (line.number, line.last, line.next) {
        (Some(last), ..) | (_, Some(last), _) => last.checked_add(1)?,
        (_, _, Some(next)) => next,
        _ => return None,
    };
    let is_over = line.next.is_some() && line.event != Some(word(Why::Silent));
    Some((source, u64::from_str_radix(&line.run, 16).ok()?, next, is_over))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_line_says_what_the_ledger_needs() {
        let source = Source { name: "probe-1".parse().unwrap(), key: "0123456789abcdef".into() };
        let item = |next, what| Item { source: source.clone(), run: 0xab, next, received: 1_500, what };
        let line = |item: &Item| {
            let mut out = Vec::new();
            write(item, &mut out);
            String::from_utf8(out).unwrap()
        };
        let text = What::Record { created: 0, payload: Bytes::from_static("21.5 \u{b0}C\n\"".as_bytes()) };
        let octets = What::Record { created: 86_400_001, payload: Bytes::from_static(&[0xff, 0]) };
        let head = r#"{"sender":"probe-1","key":"0123456789abcdef","run":"00000000000000ab""#;
        let received = r#""received":"1970-01-01T00:00:01.500Z""#;
        for (item, rest, next, is_over) in [
            (item(8, text), format!(r#","number":7,{received},"payload":"21.5 °C\n\""}}"#), 8, false),
            (
                item(9, octets),
                format!(r#","number":8,"sent":"1970-01-02T00:00:00.001Z",{received},"base64":"/wA="}}"#),
                9,
                false,
            ),
            (
                item(12, What::Lost { from: 9 }),
                format!(r#","event":"lost","first":9,"last":11,{received}}}"#),
                12,
                false,
            ),
            (
                item(12, What::Ended(Why::Complete)),
                format!(r#","event":"complete","next":12,{received}}}"#),
                12,
                true,
            ),
            (
                item(12, What::Ended(Why::Silent)),
                format!(r#","event":"silent","next":12,{received}}}"#),
                12,
                false,
            ),
        ] {
            let line = line(&item);
            assert_eq!(line, format!("{head}{rest}\n"));
            assert_eq!(read(&line), Some((source.clone(), 0xab, next, is_over)));
        }
        assert_eq!(read(r#"{"sender":"x"}"#), None);
    }
}
