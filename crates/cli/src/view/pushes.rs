//! Reads reports of `anabranch push --json`, whose phases a page shows beside simulated ones.

use std::fs;
use std::path::Path;

use anabranch_core::set::TransferPhase;
use anabranch_deploy::error::Error;
use anabranch_view::replay::Transfer;
use serde::Deserialize;

/// The part of a report that is read.
#[derive(Debug, Deserialize)]
struct Pushed {
    network: String,
    phases: Vec<Phase>,
}

#[derive(Debug, Deserialize)]
struct Phase {
    name: String,
    start_s: f64,
    end_s: f64,
}

/// Longest time of a transfer in seconds: what a page shows exactly, 2^53 ns.
const LONGEST: f64 = 9e6;
/// Largest gap in seconds between two phases, which other programs may have rounded.
const ROUNDING: f64 = 1e-3;

/// Reads the phases of a report.
pub(super) fn read(path: &Path) -> Result<Transfer, Error> {
    let text = fs::read(path).map_err(|error| Error::unreadable(path, &error))?;
    let (network, phases) = parse(&text).map_err(|why| {
        Error::input(format!("{}: {why}", path.display()))
            .with_hint("give the output of `anabranch push FILE --to NODE --json`")
    })?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Transfer { name: format!("{file}: {network}"), start: None, phases })
}

/// Name of the node or network, and durations of the phases in nanoseconds.
fn parse(text: &[u8]) -> Result<(String, Vec<u64>), String> {
    let Pushed { network, phases } =
        serde_json::from_slice(text).map_err(|error| format!("not a report of a push: {error}"))?;
    if phases.is_empty() {
        return Err("phases: there are none, since the node did not answer".to_owned());
    }
    let mut before = 0.0;
    let mut lengths = Vec::new();
    for (i, Phase { name, start_s, end_s }) in phases.iter().enumerate() {
        let Some(expected) = TransferPhase::ALL.get(i).map(|phase| phase.name()) else {
            return Err(format!("phases[{i}]: more phases than a transfer has"));
        };
        if name != expected {
            return Err(format!("phases[{i}].name: `{name}` is not `{expected}`"));
        }
        if (start_s - before).abs() > ROUNDING {
            return Err(format!("phases[{i}].start_s: {start_s} is not {before}, where the last phase ends"));
        }
        if !(before..=LONGEST).contains(end_s) {
            return Err(format!("phases[{i}].end_s: {end_s} is not within {before} and {LONGEST}"));
        }
        lengths.push(((end_s - before) * 1e9).round() as u64);
        before = *end_s;
    }
    Ok((network, lengths))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(phases: &str) -> String {
        format!(r#"{{"network": "n", "bytes": 3, "phases": [{phases}]}}"#)
    }

    #[test]
    fn phases_become_durations() {
        let request = r#"{"name": "request", "start_s": 0.0, "end_s": 0.25}"#;
        let handshakes = r#"{"name": "handshakes", "start_s": 0.25, "end_s": 0.25}"#;
        let text = report(&format!("{request}, {handshakes}"));
        assert_eq!(parse(text.as_bytes()), Ok(("n".to_owned(), vec![250_000_000, 0])));
    }

    #[test]
    fn nonsense_is_named_with_its_place() {
        let phase = |name: &str, start: f64, end: f64| {
            format!(r#"{{"name": "{name}", "start_s": {start}, "end_s": {end}}}"#)
        };
        let first = phase("request", 0.0, 1.0);
        for (text, part) in [
            ("{".to_owned(), "line 1 column 1"),
            (r#"{"network": "n"}"#.to_owned(), "missing field `phases`"),
            (report(""), "phases: there are none"),
            (report(&phase("tail", 0.0, 1.0)), "phases[0].name: `tail` is not `request`"),
            (report(&format!("{first},{}", phase("handshakes", 2.0, 3.0))), "phases[1].start_s: 2 is not 1"),
            (report(&format!("{first},{}", phase("handshakes", 1.0, 0.5))), "phases[1].end_s: 0.5"),
            (report(&phase("request", 0.0, 1e9)), "phases[0].end_s: 1000000000"),
        ] {
            let error = parse(text.as_bytes()).expect_err(&text);
            assert!(error.contains(part), "{error}");
        }
    }
}
