//! Multipath TCP connections: one against a peer that knows the keys and sends anything, or two
//! over paths that lose and reorder, with an attacker who knows the token and no key.

mod hostile;
mod pair;

use anabranch_core::mptcp::{Config, Reinjection, SchedulerKind};
use anabranch_core::segment::{DataSeqNumber, Key};
use anabranch_core::tcp::{self, DsnWidth};
use anabranch_core::time::Duration;
use anabranch_packetdrill::secrets;
use arbitrary::{Result, Unstructured};

use crate::probe::Probe;

/// The first byte selects the test. An input that ends in the middle of a step ends the run there.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let mut octets = Unstructured::new(rest);
    // A run ends when the input is used up.
    let _ = if choice % 2 == 0 { hostile::run(&mut octets, probe) } else { pair::run(&mut octets, probe) };
}

/// The data sequence number of the first byte.
fn first(key: Key) -> DataSeqNumber {
    secrets::initial(key) + 1
}

fn config(octets: &mut Unstructured<'_>) -> Result<Config> {
    let base = *octets.choose(&[tcp::Config::default(), tcp::Config::modern()])?;
    let tcp = tcp::Config {
        mss: *octets.choose(&[100, 536, 1400])?,
        send_buffer: *octets.choose(&[3_000, 20_000, 100_000])?,
        receive_buffer: *octets.choose(&[3_000, 20_000, 100_000])?,
        window_scale: *octets.choose(&[None, Some(0), Some(4)])?,
        timestamps: octets.arbitrary()?,
        auto_tune: None,
        ..base
    };
    Ok(Config {
        tcp,
        scheduler: *octets.choose(&SchedulerKind::ALL)?,
        reinjection: *octets.choose(&[
            Reinjection::OnFailure,
            Reinjection::OnTimeout,
            Reinjection::Opportunistic,
        ])?,
        silence: *octets.choose(&[None, Some(Duration::ZERO), Some(Duration::from_millis(50))])?,
        dsn_width: *octets.choose(&[DsnWidth::Four, DsnWidth::Eight])?,
        max_subflows: *octets.choose(&[1, 2, 8])?,
        checksums: octets.arbitrary()?,
        repeat_keys: octets.arbitrary()?,
        capable_syns: *octets.choose(&[0, 1, 3])?,
    })
}

/// Limit on the steps of a run.
const MAX_STEPS: usize = 300;
/// Limit on the calls at one instant. A machine that always wants another call would hang its
/// driver.
const MAX_TURNS: usize = 20_000;
