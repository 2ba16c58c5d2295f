//! TCP connections: one against a peer that sends anything, or two over a network that loses,
//! duplicates and reorders.

mod checked;
mod options;
mod pair;
mod single;

use arbitrary::Unstructured;

use crate::probe::Probe;

/// The first byte selects the test. An input that ends in the middle of a step ends the run there.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let mut octets = Unstructured::new(rest);
    // A run ends when the input is used up.
    let _ = if choice % 2 == 0 { single::run(&mut octets, probe) } else { pair::run(&mut octets, probe) };
}

/// Limit on the steps of a run.
const MAX_STEPS: usize = 400;
