//! Scenario files: text to a network, or an error with a line.

use std::str;

use crate::probe::Probe;

/// Octets that are text are read as a scenario. Until there is a scenario reader this only looks at UTF-8;
/// its call belongs where the comment is.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Ok(text) = str::from_utf8(input) else { return };
    probe.say(|| format!("{text:?}"));
    probe.feature(text.lines().count().min(20));
    // The hook: parse `text`; what is read must be written and read again as the same scenario; an error
    // must name a line of the text. Call `probe.feature` with the kind of error.
}
