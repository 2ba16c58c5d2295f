//! State machines of RDCA: each against a peer that sends anything, mostly nearly valid messages,
//! and both together.

pub(super) mod messages;
mod pair;
mod sender;
mod sink;

use anabranch_core::rdca::{Config, Confirmation, Message, Retention, TrendTest};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::rdca::{decode, encode};
use arbitrary::{Result, Unstructured};

use crate::probe::Probe;

/// The first byte selects the test. An input that ends in the middle of a step ends the run there.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let mut octets = Unstructured::new(rest);
    // A run ends when the input is used up.
    let _ = match choice % 3 {
        0 => sender::run(&mut octets, probe),
        1 => sink::run(&mut octets, probe),
        _ => pair::run(&mut octets, probe),
    };
}

fn config(octets: &mut Unstructured<'_>) -> Result<Config> {
    let mut config = if octets.arbitrary()? { Config::default() } else { Config::paper() };
    config.sender.queue_packets = *octets.choose(&[0, 2, 5, 24])?;
    config.sender.unsent_packets = *octets.choose(&[0, 1, 8])?;
    config.sender.datagram = *octets.choose(&[0, 40, 300])?;
    config.sender.confirm_every = *octets.choose(&[None, Some(0), Some(3)])?;
    config.sender.retention = *octets.choose(&[Retention::CORRECTED, Retention::PRINTED])?;
    config.sender.probe_tries = *octets.choose(&[0, 3, 40])?;
    config.sender.start_every = Duration::from_millis(*octets.choose(&[0, 400])?);
    config.sender.raise_every = Duration::from_millis(*octets.choose(&[0, 10])?);
    config.sink.senders = *octets.choose(&[0, 1, 3])?;
    config.sink.held_packets = *octets.choose(&[0, 2, 100])?;
    config.sink.reorder_packets = *octets.choose(&[0, 1, 10])?;
    config.sink.confirmation = *octets.choose(&[Confirmation::Delivered, Confirmation::Stored])?;
    if octets.arbitrary()? {
        config.sink.trend = TrendTest::VarianceRose;
    }
    Ok(config)
}

/// Advances the time, mostly a little, sometimes much.
fn pass(octets: &mut Unstructured<'_>, now: &mut Instant) -> Result<()> {
    *now += if octets.ratio(1, 16)? {
        Duration::from_nanos(octets.int_in_range(0..=u64::MAX >> 8)?)
    } else {
        Duration::from_micros(octets.int_in_range(0..=500_000)?)
    };
    Ok(())
}

/// Checks that a message survives encoding and parsing.
fn check_message(message: &Message, probe: &mut Probe) {
    probe.say(|| format!("-> {message:?}"));
    probe.feature(std::mem::discriminant(message));
    let mut octets = Vec::new();
    encode(message, &mut octets);
    assert_eq!(decode(&octets.into()).as_ref(), Ok(message), "what is sent cannot be read");
}

/// Limit on the steps of a run.
const MAX_STEPS: usize = 300;
/// Limit on the calls at one instant. A machine that always wants another call would hang its
/// driver.
const MAX_TURNS: usize = 200;
