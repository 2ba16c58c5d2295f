//! Which session gets the next chunk (section 4.5).
//!
//! A policy sees every session that may be written to and the file's state, and names a session or
//! none; the session manager cuts the chunk to what TCP would send at once, min(congestion window,
//! receive window) less what is on its way, whichever policy chose.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use super::path::{octets_in, time_of};
use crate::policy::Custom;
use crate::time::Duration;

/// How sessions share the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Striping"))]
pub enum StripingPolicy {
    /// Any session with room in its window takes the next chunk, as in the paper.
    Window,
    /// The session on which the chunk arrives first takes it, and only if that helps.
    Predictive,
    /// A user's own. Chunks are cut as for [`Window`].
    #[cfg_attr(feature = "serde", serde(skip))]
    Custom(CustomStriping),
}

/// A striping policy that is not ours.
pub type CustomStriping = Custom<dyn Striping>;

/// A session as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// Bytes that its TCP would send at once.
    pub room: u32,
    /// Bytes of the chunk that it would get.
    pub chunk: u64,
    /// Bytes given to it and not acknowledged by the node.
    pub outstanding: u64,
    /// Bytes per second that it delivers, once measured.
    pub rate: Option<u64>,
    /// Bytes per second that it has delivered at best of late; 0 before anything is measured.
    pub capacity: u64,
    /// When the chunk would be acknowledged, from now, as far as one can tell.
    pub time_for_chunk: Duration,
    /// New chunks are welcome; a session under suspicion is seen, but gets none.
    pub usable: bool,
}

/// The file as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct FileView {
    /// Bytes that no session has been given, or that were taken back.
    pub unassigned: u64,
    /// Bytes of the node's receive buffer (`B_2`).
    pub buffer: u64,
}

/// A striping policy.
pub trait Striping: fmt::Debug + Send {
    /// The index of the session that gets the next chunk; `None` to wait, as is any other that
    /// could not have it.
    fn choose(&mut self, paths: &[PathView], file: &FileView) -> Option<usize>;
}

/// One of the policies.
#[derive(Debug)]
pub(super) enum AnyStriping {
    Window(Window),
    Predictive(Predictive),
    Custom(Box<dyn Striping>),
}

impl AnyStriping {
    pub(super) fn new(policy: StripingPolicy) -> Self {
        match policy {
            StripingPolicy::Window => Self::Window(Window),
            StripingPolicy::Predictive => Self::Predictive(Predictive),
            StripingPolicy::Custom(custom) => Self::Custom(custom.make(())),
        }
    }

    pub(super) fn choose(&mut self, paths: &[PathView], file: &FileView) -> Option<usize> {
        let choice = match self {
            Self::Window(policy) => policy.choose(paths, file),
            Self::Predictive(policy) => policy.choose(paths, file),
            Self::Custom(policy) => policy.choose(paths, file),
        };
        choice.filter(|i| paths.get(*i).is_some_and(|path| path.usable && path.chunk > 0))
    }
}

/// The paper's: whoever has room gets the next chunk, the most room first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window;

impl Striping for Window {
    fn choose(&mut self, paths: &[PathView], _file: &FileView) -> Option<usize> {
        let open = paths.iter().enumerate().filter(|(_, p)| p.usable && p.chunk > 0);
        // `max_by_key` takes the last of equals; the first session is the primary and goes first.
        open.rev().max_by_key(|(_, p)| p.room).map(|(i, _)| i)
    }
}

/// The least that a chunk is cut to, bytes, if as much is left: four segments of the smallest
/// wireless connection.
pub(super) const SMALLEST_CHUNK: u64 = 324;

/// Earliest arrival, and only where it helps: a session gets the chunk if it would deliver it
/// before the others together could deliver all that is left without it, and if what faster ones
/// send until it is acknowledged fits the node's buffer behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Predictive;

impl Striping for Predictive {
    fn choose(&mut self, paths: &[PathView], file: &FileView) -> Option<usize> {
        let team = team(paths, file);
        let open = team.iter().filter(|i| paths[**i].chunk > 0);
        open.filter(|i| helps(**i, &team, paths, file)).min_by_key(|i| paths[**i].time_for_chunk).copied()
    }
}

/// The sessions that carry the file: the fastest, and of the others, from fast to slow, each whose
/// chunk leaves room in the node's buffer for what faster ones send until it is acknowledged. A
/// window that a slow session holds up costs a fast one more than the chunk brings.
fn team(paths: &[PathView], file: &FileView) -> Vec<usize> {
    // A session that has nothing on its way and takes nothing is no rival: its gateway may be dead.
    let rival = |p: &PathView| p.usable && (p.outstanding > 0 || p.chunk > 0);
    let mut team: Vec<usize> = (0..paths.len()).filter(|i| rival(&paths[*i])).collect();
    team.sort_by_key(|i| Reverse(paths[*i].rate));
    // A session needs a chunk on its way while the one before is acknowledged: a small buffer feeds
    // few. Those of which nothing is known yet show what they are with one chunk each.
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

/// Whether the node's buffer has room for a chunk and what sessions of together `faster` bytes per
/// second send behind it until it is acknowledged.
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
    // Somebody must go on: whoever is first.
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
