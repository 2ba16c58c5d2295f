//! TCP connections: one against a peer that says anything, or two over a network that loses,
//! repeats and reorders.

mod checked;
mod options;
mod pair;
mod single;

use arbitrary::Unstructured;

use crate::probe::Probe;

/// The first octet chooses. An input that ends in the middle of a step ends the run there.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let mut octets = Unstructured::new(rest);
    // Running out of octets is how a run ends.
    let _ = if choice % 2 == 0 { single::run(&mut octets, probe) } else { pair::run(&mut octets, probe) };
}

/// A run is over after so many steps.
const MAX_STEPS: usize = 400;
