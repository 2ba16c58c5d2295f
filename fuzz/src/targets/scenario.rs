//! Scenario files: every text becomes a network, or an error with a line.

use std::collections::BTreeMap;
use std::str;

use anabranch_scenario::{ContentSpec, Place, Scenario, ScenarioError, Source};
use bytes::Bytes;

use crate::probe::Probe;

/// The input is a scenario. A line that begins with `#--set ` is an override, and a comment in
/// TOML.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Ok(text) = str::from_utf8(input) else { return };
    let overrides = text.lines().filter_map(|line| line.strip_prefix("#--set "));
    let source = overrides.fold(Source::new("fuzz.toml", text), Source::set);
    match source.scenario() {
        Ok(scenario) => check_scenario(&scenario, probe),
        Err(error) => check_error(&error, text, probe),
    }
    if points_said(text) > MOST_POINTS {
        return;
    }
    match source.points() {
        Ok(points) => {
            probe.feature(("points", points.len()));
            points.iter().for_each(|point| check_scenario(&point.scenario, probe));
        }
        Err(error) => check_error(&error, text, probe),
    }
}

/// Checks that a parsed scenario can be written, parsed again to the same result, and planned.
fn check_scenario(scenario: &Scenario, probe: &mut Probe) {
    probe.say(|| format!("{scenario:#?}"));
    probe.feature((
        scenario.nodes.len().min(8),
        scenario.links.len().min(16),
        scenario.transfers.len().min(4),
        scenario.faults.len().min(4),
    ));
    let text = scenario.to_toml();
    let again = Source::new("again.toml", text.as_str()).scenario();
    let again = again.unwrap_or_else(|error| panic!("what was written is refused: {error}\n{text}"));
    assert_eq!(again.hash(), scenario.hash(), "what was written means something else:\n{text}");
    assert_eq!(again.to_toml(), text);
    // Planning creates the content of a transfer in memory.
    let is_small = |content: &ContentSpec| !matches!(content, ContentSpec::Bytes(n) if *n > 1 << 20);
    if scenario.transfers.iter().all(|t| is_small(&t.content)) {
        let files: BTreeMap<String, Bytes> =
            scenario.files().map(|name| (name.to_owned(), Bytes::from_static(b"content"))).collect();
        drop(scenario.plan(scenario.seed, 0, &files).map(|plan| plan.builder.build()));
    }
}

/// Checks that an error has a place in the text, or names the override.
fn check_error(error: &ScenarioError, text: &str, probe: &mut Probe) {
    probe.say(|| error);
    if let Place::File { line, span, .. } = &error.place {
        assert!((1..=text.lines().count() + 1).contains(line), "{error}");
        assert!(span.start <= span.end && span.end <= text.len(), "{error}: {span:?}");
    }
    assert!(!error.message.is_empty());
    // Text after a quotation mark is quoted from the input.
    let words = error.message.split(['`', '"', '\'']).next().unwrap_or_default();
    let plain: String = words.chars().filter(|c| c.is_alphabetic()).collect();
    probe.feature((plain, error.hint.is_some()));
}

/// Number of points that the text's sweep asks for, without overrides.
fn points_said(text: &str) -> usize {
    let Ok(table) = text.parse::<toml::Table>() else { return 0 };
    let Some(axes) = table.get("sweep").and_then(toml::Value::as_table) else { return 1 };
    axes.values().map(|values| values.as_array().map_or(1, Vec::len)).fold(1, usize::saturating_mul)
}

/// Limit on the points of a sweep, which may be large in real use but must be small for fuzzing.
const MOST_POINTS: usize = 32;
