//! The schedule of section VII of "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT
//! Networks" (Guo et al.): how many packets a path delivers before the next slower one delivers its
//! first; and what section IV says of a window of packets.
//!
//! * [`packets`] and [`schedule`] are the recursion of section VII, all cases and sub-cases.
//! * [`transitions`] are the probabilities of section IV: how a round ends.
//! * [`Adaptation`] is A-NewReno: windows, time-out and update period by the number of hops.
//!
//! The paper's tree of rounds grows exponentially with the time (M22). Here rounds that begin with
//! the same window and threshold at nearly the same time are one: the remaining time is counted in
//! [`SLICES`] slices, the slices are walked from the last to the first, and a state holds the
//! probability of all ways that lead to it. There is no recursion, and the work is bounded by
//! [`MAX_STATES`]: enough for some forty rounds with any losses to within 1 %. What then remains
//! goes on at the mean rate of what was followed: 1 to 6 % off for several hundred rounds, up to 20
//! % for thousands.
//!
//! Not modelled: what limits a path from outside (receive window, send buffer), and losses of
//! acknowledgements. A packet counts when it is scheduled, in every case, as in the paper.
//!
//! Where the paper contradicts itself [`Reading`] chooses; the errata numbers (M3, M13, ...) are
//! those of the project's errata page. Times are seconds as real numbers: they are expectations.

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

/// Slices that the time of a schedule is counted in. States within a slice are merged, so no round
/// is misplaced by more than this part of the time.
pub const SLICES: usize = 64;

/// States that are followed at most. What is left then goes on at the mean rate of those.
pub const MAX_STATES: usize = 2048;

/// The largest window in packets, and the largest [`Path::w_max`].
pub const MAX_WINDOW: u32 = 4096;

/// The longest time in seconds that is understood.
pub const MAX_TIME: f64 = 1e9;

/// One path as section VII sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// RTT_i in seconds, of packets without payload; above 0.
    pub rtt: f64,
    /// T_i^1 in seconds: until the first data packet has arrived; above 0.
    pub t_first: f64,
    /// Seconds more for each further packet of a round: `T_e(D) + PS/B_i` (M13); at least 0.
    pub t_next: f64,
    /// RTO_i in seconds; above 0.
    pub rto: f64,
    /// l, the chance that a packet is lost on the way; 0 up to, not including, 1.
    pub loss: f64,
    /// w_i(1), packets; 1..=[`MAX_WINDOW`].
    pub cwnd: u32,
    /// sst_i(1), packets; any.
    pub ssthresh: u32,
    /// The window after a time-out, packets; at least 1, at most `w_max`.
    pub w_min: u32,
    /// The largest window that rounds grow to, packets; at most [`MAX_WINDOW`].
    pub w_max: u32,
}

/// How many packets a path may be given.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Packets {
    /// The expectation.
    pub expected: f64,
    /// The expectation rounded down; at least 1 where there is time for one packet (M22).
    pub count: u32,
}

/// What the schedule cannot be computed of.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A quantity lies outside its range.
    #[error("{what} must lie between {low} and {high}, not {value}")]
    OutOfRange {
        /// The quantity, by the name of its field.
        what: &'static str,
        /// What it was.
        value: f64,
        /// The smallest legal value.
        low: f64,
        /// The largest legal value.
        high: f64,
    },
    /// A loss that is no probability, or with which nothing ever arrives.
    #[error("loss must lie from 0 up to, not including, 1, not {value}")]
    Loss {
        /// What it was.
        value: f64,
    },
    /// The paths are not in ascending order of their round-trip times.
    #[error("path {path} has a shorter round-trip time than the one before it")]
    Order {
        /// The path, counted from 1.
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

/// Packets that `path` can be given if it has `time` seconds: the cases of section VII from T_i(1) =
/// `time`.
///
/// # Errors
/// A quantity outside the range that its field names, or a time that is not a number of
/// 0..=[`MAX_TIME`].
pub fn packets(path: &Path, time: f64, reading: Reading) -> Result<Packets, ScheduleError> {
    path.check()?;
    seconds("time", time, 0.0)?;
    let expected = rounds::expected(path, time, reading);
    // `as` rounds down and saturates; the mass of many states may fall short of a whole packet by
    // its last bits.
    let floor = (expected + 1e-9) as u32;
    Ok(Packets { expected, count: if time >= path.t_first { floor.max(1) } else { 0 } })
}

/// Packets for each of `paths`, which are in ascending order of their round-trip times: what it
/// delivers in half the next one's round trip; for the last its window.
///
/// # Errors
/// As [`packets`], and paths out of order.
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

/// Less than this is no time: a division by it would not be a number.
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
