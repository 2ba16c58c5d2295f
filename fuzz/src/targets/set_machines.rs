//! State machines of SET: each against a driver and peers that send anything, mostly nearly valid
//! messages.

mod checked;
mod messages;
mod receiver;
mod relay;
mod sender;

use arbitrary::{Result, Unstructured};

use anabranch_core::set::StreamClose;
use anabranch_core::time::{Duration, Instant};

use crate::probe::Probe;

/// The first byte selects the test. An input that ends in the middle of a step ends the run there.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let mut octets = Unstructured::new(rest);
    // A run ends when the input is used up.
    let _ = match choice % 3 {
        0 => sender::run(&mut octets, probe),
        1 => relay::run(&mut octets, probe),
        _ => receiver::run(&mut octets, probe),
    };
}

fn close(octets: &mut Unstructured<'_>) -> Result<StreamClose> {
    Ok(*octets.choose(&[
        StreamClose::Graceful,
        StreamClose::Reset,
        StreamClose::Refused,
        StreamClose::TimedOut,
        StreamClose::Forbidden,
        StreamClose::Congested,
    ])?)
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

/// Handles timers until none is due, and performs effects in between. A machine that always wants
/// another call at this instant would hang its driver.
fn answer_timers<M>(
    machine: &mut M,
    now: Instant,
    next: impl Fn(&M) -> Option<Instant>,
    mut answer: impl FnMut(&mut M),
) {
    let mut tries = 0;
    while next(machine).is_some_and(|at| at <= now) {
        tries += 1;
        assert!(tries < 100, "a timer that was answered is still due");
        answer(machine);
    }
}

/// Limit on the steps of a run.
const MAX_STEPS: usize = 300;
