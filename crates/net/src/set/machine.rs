//! What sockets need to know of a machine, beside what `core::set` has.

use anabranch_core::set::{Machine, Receiver, Relay, Sender};

/// Which streams stop reading while much waits to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// That on which it waits: what is read there is answered there.
    Own,
    /// All: what is read on one is written on another.
    All,
}

/// A machine over sockets.
pub(super) trait OverSockets: Machine {
    /// See [`Held`].
    const HELD: Held;
}

impl OverSockets for Sender {
    const HELD: Held = Held::Own;
}

impl OverSockets for Relay {
    const HELD: Held = Held::All;
}

impl OverSockets for Receiver {
    const HELD: Held = Held::Own;
}
