//! The schedule of section VII of "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT
//! Networks" (Guo et al.): the number of packets that a path delivers before the next slower path
//! delivers its first. Also the model of section IV for a window of packets.
//!
//! * [`packets`] and [`schedule`] compute the recursion of section VII with all cases and
//!   sub-cases.
//! * [`transitions`] computes the probabilities of section IV: how a round ends.
//! * [`Adaptation`] is A-NewReno: windows, time-out and update period by the number of hops.
//!
//! The paper's tree of rounds grows exponentially with the time (M22). This implementation merges
//! rounds that begin with the same window and threshold at nearly the same time. The remaining time
//! is divided into [`SLICES`] slices, which are processed from the last to the first; a state holds
//! the total probability of all ways that lead to it. There is no recursion, and [`MAX_STATES`]
//! bounds the work: enough for about forty rounds with any losses to within 1 %. States beyond that
//! limit continue at the mean rate of the processed ones. The error is 1 to 6 % for several hundred
//! rounds, and up to 20 % for thousands.
//!
//! Not modelled: external limits of a path (receive window, send buffer), and losses of
//! acknowledgements. A packet counts when it is scheduled, in every case, as in the paper.
//!
//! If the paper contradicts itself, [`Reading`] selects the interpretation. The erratum numbers
//! (M3, M13, ...) refer to the project's errata page. Times are seconds as real numbers, because
//! they are expected values.

mod adaptation;
mod reading;
mod rounds;
mod window;

pub use adaptation::{Adaptation, Limits};
pub use reading::{
    Binomial, CaseTwo, FastRetransmit, Growth, Halving, Reading, Recovery, RoundTime, TimeoutCase, TimeoutSum,
};
pub(crate) use window::power;
pub use window::{Transitions, losses, transitions};

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use thiserror::Error;

/// Number of slices of a schedule's time. States within a slice are merged, so a round is misplaced
/// by at most this part of the time.
pub const SLICES: usize = 64;

/// Largest number of processed states. Others continue at the mean rate of the processed ones.
pub const MAX_STATES: usize = 2048;

/// Largest window in packets, and largest [`Path::w_max`].
pub const MAX_WINDOW: u32 = 4096;

/// Longest accepted time in seconds.
pub const MAX_TIME: f64 = 1e9;

/// A path in the model of section VII.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// RTT_i in seconds, for packets without payload; above 0.
    pub rtt: f64,
    /// T_i^1 in seconds: time until the first data packet has arrived; above 0.
    pub t_first: f64,
    /// Additional seconds for each further packet of a round: `T_e(D) + PS/B_i` (M13); at least 0.
    pub t_next: f64,
    /// RTO_i in seconds; above 0.
    pub rto: f64,
    /// l, the probability that a packet is lost; 0 up to, not including, 1.
    pub loss: f64,
    /// w_i(1) in packets; 1..=[`MAX_WINDOW`].
    pub cwnd: u32,
    /// sst_i(1) in packets; any value.
    pub ssthresh: u32,
    /// Window after a time-out in packets; at least 1, at most `w_max`.
    pub w_min: u32,
    /// Largest window of a round in packets; at most [`MAX_WINDOW`].
    pub w_max: u32,
}

/// Number of packets for a path.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Packets {
    /// The expected value.
    pub expected: f64,
    /// The expected value rounded down; at least 1 if there is time for one packet (M22).
    pub count: u32,
}

/// Why a schedule cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A quantity lies outside its range.
    #[error("{what} must lie between {low} and {high}, not {value}")]
    OutOfRange {
        /// The name of its field.
        what: &'static str,
        /// The rejected value.
        value: f64,
        /// The smallest legal value.
        low: f64,
        /// The largest legal value.
        high: f64,
    },
    /// The loss is no probability, or no packet ever arrives.
    #[error("loss must lie from 0 up to, not including, 1, not {value}")]
    Loss {
        /// The rejected value.
        value: f64,
    },
    /// The paths are not in ascending order of round-trip times.
    #[error("path {path} has a shorter round-trip time than the one before it")]
    Order {
        /// The offending path, counted from 1.
        path: usize,
    },
}

impl Path {
    fn check(&self) -> Result<(), ScheduleError> {
        seconds("rtt", self.rtt, SHORTEST)?;
        seconds("t_first", self.t_first, SHORTEST)?;
        seconds("t_next", self.t_next, 0.0)?;
        seconds("rto", self.rto, SHORTEST)?;
        check_loss(self.loss)?;
        window("cwnd", self.cwnd, 1, MAX_WINDOW)?;
        window("w_max", self.w_max, 1, MAX_WINDOW)?;
        window("w_min", self.w_min, 1, self.w_max)
    }
}

/// Number of packets for `path` within `time` seconds: the cases of section VII with T_i(1) =
/// `time`.
///
/// # Errors
/// A quantity is outside the range of its field, or the time is not a number in 0..=[`MAX_TIME`].
pub fn packets(path: &Path, time: f64, reading: Reading) -> Result<Packets, ScheduleError> {
    path.check()?;
    seconds("time", time, 0.0)?;
    let expected = rounds::expected(path, time, reading);
    // `as` rounds down and saturates. The sum over many states may miss a whole packet by rounding
    // errors, hence the small addend.
    let floor = (expected + 1e-9) as u32;
    Ok(Packets { expected, count: if time >= path.t_first { floor.max(1) } else { 0 } })
}

/// Number of packets for each of `paths`, which must be in ascending order of round-trip times: the
/// packets that it delivers in half of the next path's round-trip time; for the last path its
/// window.
///
/// # Errors
/// As for [`packets`], or the paths are out of order.
pub fn schedule(paths: &[Path], reading: Reading) -> Result<Vec<Packets>, ScheduleError> {
    let mut planned = Vec::with_capacity(paths.len());
    for (i, path) in paths.iter().enumerate() {
        path.check()?;
        planned.push(match paths.get(i + 1) {
            Some(next) if next.rtt < path.rtt => return Err(ScheduleError::Order { path: i + 2 }),
            Some(next) => {
                next.check()?;
                packets(path, next.rtt / 2.0, reading)?
            }
            None => Packets { expected: f64::from(path.cwnd), count: path.cwnd },
        });
    }
    Ok(planned)
}

/// Smaller times are rejected, because a division by them would not yield a number.
const SHORTEST: f64 = 1e-9;

fn seconds(what: &'static str, value: f64, low: f64) -> Result<(), ScheduleError> {
    within(what, value, low, MAX_TIME)
}

fn window(what: &'static str, value: u32, low: u32, high: u32) -> Result<(), ScheduleError> {
    within(what, f64::from(value), f64::from(low), f64::from(high))
}

fn within(what: &'static str, value: f64, low: f64, high: f64) -> Result<(), ScheduleError> {
    // A range contains no NaN.
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(ScheduleError::OutOfRange { what, value, low, high })
    }
}

fn check_loss(value: f64) -> Result<(), ScheduleError> {
    if (0.0..1.0).contains(&value) { Ok(()) } else { Err(ScheduleError::Loss { value }) }
}
