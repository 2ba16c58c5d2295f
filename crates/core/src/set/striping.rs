//! Striping policies: which session gets the next chunk (section 4.5).
//!
//! A policy sees every session that may be written to and the state of the file, and chooses a
//! session or none. For every policy the session manager limits the chunk to what TCP would send at
//! once: min(congestion window, receive window) less the bytes in flight.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use crate::policy::Custom;
use crate::rates::{octets_in, time_of};
use crate::time::Duration;

/// Distribution of the file over the sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Striping"))]
pub enum StripingPolicy {
    /// Any session with room in its window gets the next chunk, as in the paper.
    Window,
    /// The session on which the chunk would arrive first gets it, unless that would delay the file.
    Predictive,
    /// The sessions take turns: one chunk of the size of a packet after another, at an interval
    /// that adapts such that packets do not meet. For meshes in which all paths share the channel
    /// around the node and its MAC gives up early.
    Turns,
    /// Turns while the node says that all gateways with a session share a radio channel, until a
    /// measurement refutes that. Otherwise predictive.
    Adaptive,
    /// A policy supplied by the user. Chunks are cut as for [`Window`].
    #[cfg_attr(feature = "serde", serde(skip))]
    Custom(CustomStriping),
}

/// A striping policy supplied by the user.
pub type CustomStriping = Custom<dyn Striping>;

/// The state of a session that a policy may use.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// Bytes that its TCP would send at once.
    pub room: u32,
    /// Size of the chunk that the session would get, in bytes.
    pub chunk: u64,
    /// Bytes assigned to the session and not acknowledged by the node.
    pub outstanding: u64,
    /// Delivery rate in bytes per second; `None` before the first measurement.
    pub rate: Option<u64>,
    /// Highest recent delivery rate in bytes per second; 0 before the first measurement.
    pub capacity: u64,
    /// Estimated time until the chunk would be acknowledged.
    pub time_for_chunk: Duration,
    /// Whether the session may get new chunks. A suspect session is listed, but gets none.
    pub usable: bool,
}

/// The state of the file that a policy may use.
#[derive(Clone, Copy, Debug)]
pub struct FileView {
    /// Bytes that are not assigned to a session, or were taken back from one.
    pub unassigned: u64,
    /// Size of the node's receive buffer (`B_2`) in bytes.
    pub buffer: u64,
}

/// A striping policy.
pub trait Striping: fmt::Debug + Send {
    /// Returns the index of the session that gets the next chunk, or `None` to wait. The index of a
    /// session that cannot take the chunk also means to wait.
    fn choose(&mut self, paths: &[PathView], file: &FileView) -> Option<usize>;
}

/// A policy of any kind.
#[derive(Debug)]
pub(super) enum AnyStriping {
    Window(Window),
    Predictive(Predictive),
    /// Turns depend on time, so the session manager takes them itself.
    Turns,
    Custom(Box<dyn Striping>),
}

impl AnyStriping {
    pub(super) fn new(policy: StripingPolicy) -> Self {
        match policy {
            StripingPolicy::Window => Self::Window(Window),
            StripingPolicy::Predictive | StripingPolicy::Adaptive => Self::Predictive(Predictive),
            StripingPolicy::Turns => Self::Turns,
            StripingPolicy::Custom(custom) => Self::Custom(custom.make(())),
        }
    }

    pub(super) fn choose(&mut self, paths: &[PathView], file: &FileView) -> Option<usize> {
        let choice = match self {
            Self::Window(policy) => policy.choose(paths, file),
            Self::Predictive(policy) => policy.choose(paths, file),
            Self::Turns => None,
            Self::Custom(policy) => policy.choose(paths, file),
        };
        choice.filter(|i| paths.get(*i).is_some_and(|path| path.usable && path.chunk > 0))
    }
}

/// The paper's policy: the session with the most room gets the next chunk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window;

impl Striping for Window {
    fn choose(&mut self, paths: &[PathView], _file: &FileView) -> Option<usize> {
        let open = paths.iter().enumerate().filter(|(_, p)| p.usable && p.chunk > 0);
        // `max_by_key` returns the last of equal elements. The iteration is reversed so that the
        // first session, the primary one, wins a tie.
        open.rev().max_by_key(|(_, p)| p.room).map(|(i, _)| i)
    }
}

/// Lower bound of the chunk size in bytes, if that much is left: four segments of the smallest
/// wireless connection.
pub(super) const SMALLEST_CHUNK: u64 = 324;

/// The policy of earliest arrival, with two conditions. A session gets the chunk if it would
/// deliver it before the other sessions together could deliver all remaining data. The node's
/// buffer must also have room for what faster sessions send until the chunk is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Predictive;

impl Striping for Predictive {
    fn choose(&mut self, paths: &[PathView], file: &FileView) -> Option<usize> {
        let team = team(paths, file);
        let open = team.iter().filter(|i| paths[**i].chunk > 0);
        open.filter(|i| helps(**i, &team, paths, file)).min_by_key(|i| paths[**i].time_for_chunk).copied()
    }
}

/// Selects the sessions that carry the file: the fastest, and then, from fast to slow, each session
/// whose chunk leaves room in the node's buffer for what faster sessions send until it is
/// acknowledged. If a slow session blocks the buffer, the fast ones lose more than its chunk gains.
fn team(paths: &[PathView], file: &FileView) -> Vec<usize> {
    // A session with nothing in flight that takes no data is no competitor: its gateway may be
    // dead.
    let rival = |p: &PathView| p.usable && (p.outstanding > 0 || p.chunk > 0);
    let mut team: Vec<usize> = (0..paths.len()).filter(|i| rival(&paths[*i])).collect();
    team.sort_by_key(|i| Reverse(paths[*i].rate));
    // A session needs a second chunk in flight while the first is acknowledged, so a small buffer
    // supports few sessions. Unmeasured sessions are tested with one chunk each.
    let most = (file.buffer / (2 * SMALLEST_CHUNK)).max(1);
    let (mut faster, mut members) = (0, 0);
    team.retain(|i| {
        let path = &paths[*i];
        let probes = path.rate.is_none() && path.outstanding == 0;
        let fits = (members < most || probes) && fits(path.chunk, path.time_for_chunk, faster, file);
        faster += if fits { path.capacity } else { 0 };
        members += u64::from(fits && !probes);
        fits
    });
    team
}

/// Whether the node's buffer has room for a chunk and for the data that sessions with a total rate
/// of `faster` bytes per second send after it until it is acknowledged.
pub(super) fn fits(chunk: u64, time_for_chunk: Duration, faster: u64, file: &FileView) -> bool {
    let behind = octets_in(faster, time_for_chunk).min(file.unassigned);
    behind == 0 || chunk + behind <= file.buffer
}

fn helps(index: usize, team: &[usize], paths: &[PathView], file: &FileView) -> bool {
    let (mut rate, mut outstanding, mut earliest) = (0u64, 0u64, Duration::MAX);
    for other in team.iter().filter(|i| **i != index).map(|i| &paths[*i]) {
        let Some(r) = other.rate else { continue };
        rate += r;
        outstanding += other.outstanding;
        earliest = earliest.min(other.time_for_chunk);
    }
    // Without a measured competitor, the session sends.
    rate == 0 || paths[index].time_for_chunk <= time_of(file.unassigned + outstanding, rate).max(earliest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(room: u32, rate: Option<u64>, ms: u64, outstanding: u64) -> PathView {
        PathView {
            room,
            chunk: u64::from(room.min(1000)),
            outstanding,
            rate,
            capacity: rate.unwrap_or(0),
            time_for_chunk: Duration::from_millis(ms),
            usable: true,
        }
    }

    const LARGE: FileView = FileView { unassigned: 1_000_000, buffer: 64_000 };

    #[test]
    fn the_papers_policy_fills_windows() {
        let paths = [path(1000, None, 0, 0), path(3000, None, 0, 0), path(3000, None, 0, 0)];
        assert_eq!(Window.choose(&paths, &LARGE), Some(1));
        assert_eq!(Window.choose(&[path(0, None, 0, 0)], &LARGE), None);
    }

    #[test]
    fn the_earliest_arrival_wins() {
        let paths = [path(1000, Some(30_000), 200, 3000), path(1000, Some(20_000), 100, 1000)];
        assert_eq!(Predictive.choose(&paths, &LARGE), Some(1));
    }

    #[test]
    fn a_slow_session_is_left_alone_at_the_end() {
        let paths = [path(0, Some(100_000), 50, 5000), path(1000, Some(2_000), 900, 0)];
        assert_eq!(Predictive.choose(&paths, &FileView { unassigned: 5000, ..LARGE }), None);
        assert_eq!(Predictive.choose(&paths, &FileView { unassigned: 500_000, buffer: 1 << 20 }), Some(1));
    }

    #[test]
    fn a_slow_session_may_not_fill_the_nodes_buffer_with_the_others_octets() {
        let paths = [path(0, Some(100_000), 50, 5000), path(1000, Some(2_000), 900, 0)];
        assert_eq!(Predictive.choose(&paths, &LARGE), None);
    }

    #[test]
    fn without_a_measured_rival_everyone_helps() {
        let paths = [path(1000, None, 500, 0), path(0, None, 1, 0)];
        assert_eq!(Predictive.choose(&paths, &LARGE), Some(0));
    }
}
