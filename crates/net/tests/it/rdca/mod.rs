//! RDCA over sessions: senders and a sink with faults in simulated time, and both drivers over
//! loopback.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod faults;
mod loopback;
mod world;

use std::cell::Cell;

use anabranch_secure::NoEntropy;

thread_local! {
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Different bytes for each call, the same in each repetition of a run.
fn entropy(octets: &mut [u8]) -> Result<(), NoEntropy> {
    for part in octets.chunks_mut(8) {
        let next = DRAWN.get() + 1;
        DRAWN.set(next);
        let bits = anabranch_testkit::prng::Prng::new(next).bits();
        part.copy_from_slice(&bits.to_be_bytes()[..part.len()]);
    }
    Ok(())
}
