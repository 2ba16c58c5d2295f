//! Entropy of a run, for programs that draw it from their host.

use std::cell::Cell;

use anabranch_secure::NoEntropy;

thread_local! {
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Begins a run: it draws the same bytes in each repetition.
pub(crate) fn restart() {
    DRAWN.set(0);
}

/// Bytes that differ in each call.
pub(crate) fn entropy(octets: &mut [u8]) -> Result<(), NoEntropy> {
    for part in octets.chunks_mut(8) {
        DRAWN.set(DRAWN.get() + 1);
        let bits = DRAWN.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        part.copy_from_slice(&bits.to_be_bytes()[..part.len()]);
    }
    Ok(())
}
