//! Limits what a gateway reads from its senders: seats for each node, and buckets for each node and
//! for the mesh of all nodes.
//!
//! A seat with input waits in the queue of its node's bucket. The first of each node then waits in
//! the queue of the mesh's bucket. A node that waits for its own limit therefore delays no other
//! node, and no seat reads twice while another waits.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_core::time::{Duration, Instant};

use super::Bucket;

/// Limits set by the gateway's operator. Rates in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Caps {
    /// Rate to all nodes together.
    pub(crate) mesh: Option<u64>,
    /// Rate to each node.
    pub(crate) node: Option<u64>,
    /// Number of simultaneous sessions per node.
    pub(crate) per_node: usize,
}

/// The seats and buckets of one gateway.
#[derive(Clone, Debug)]
pub(crate) struct Intake(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    caps: Caps,
    mesh: Option<Queue>,
    nodes: BTreeMap<IpAddr, Node>,
    next: u64,
}

#[derive(Debug)]
struct Node {
    sessions: usize,
    queue: Option<Queue>,
}

/// A bucket and the seats that wait for it, in order of arrival.
#[derive(Debug)]
struct Queue {
    bucket: Bucket,
    waiting: VecDeque<u64>,
}

impl Queue {
    fn new(now: Instant, rate: u64) -> Self {
        Self { bucket: Bucket::new(now, rate), waiting: VecDeque::new() }
    }

    /// True if more seats wait than are served in ten seconds.
    fn is_congested(&self) -> bool {
        let turns = self.bucket.rate.saturating_mul(PATIENCE) / 8 / self.bucket.quantum();
        self.waiting.len() as u64 > turns
    }

    /// Number of seats that wait before `ticket`. Appends `ticket` if it did not wait yet.
    fn before(&mut self, ticket: u64) -> u64 {
        let found = self.waiting.iter().position(|waiting| *waiting == ticket);
        found.unwrap_or_else(|| {
            self.waiting.push_back(ticket);
            self.waiting.len() - 1
        }) as u64
    }

    /// When `ticket` may read `octets`; `None`: now.
    fn wait(&mut self, now: Instant, ticket: u64, octets: u64) -> Option<Instant> {
        let before = self.before(ticket);
        let at = self.bucket.when(now, octets * (before + 1));
        // Seats ahead may read soon, or may be gone, so check again before the computed time.
        let wait = at.saturating_since(now);
        let at = if before > 0 { now + wait.min((wait / 2).max(GONE)).max(SOON) } else { at };
        (at > now).then_some(at)
    }

    fn leave(&mut self, ticket: u64) {
        self.waiting.retain(|waiting| *waiting != ticket);
    }
}

impl Intake {
    pub(crate) fn new(now: Instant, caps: Caps) -> Self {
        let mesh = caps.mesh.map(|rate| Queue::new(now, rate));
        Self(Arc::new(Mutex::new(State { caps, mesh, nodes: BTreeMap::new(), next: 0 })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a seat for another session of this node; `None` if there is no room.
    pub(crate) fn admit(&self, now: Instant, node: IpAddr) -> Option<Seat> {
        let mut state = self.state();
        // A bucket that is not full is kept, so that a sender cannot get a full one by
        // reconnecting.
        state.nodes.retain(|_, node| {
            node.sessions > 0 || node.queue.as_mut().is_some_and(|queue| !queue.bucket.is_full(now))
        });
        if state.mesh.as_ref().is_some_and(Queue::is_congested) {
            return None;
        }
        let Caps { node: rate, per_node, .. } = state.caps;
        let new = || Node { sessions: 0, queue: rate.map(|rate| Queue::new(now, rate)) };
        let there = state.nodes.entry(node).or_insert_with(new);
        if there.sessions >= per_node || there.queue.as_ref().is_some_and(Queue::is_congested) {
            return None;
        }
        there.sessions += 1;
        let ticket = state.next;
        state.next += 1;
        drop(state);
        Some(Seat { intake: self.clone(), node, ticket, due: None })
    }
}

/// The seat of one session.
#[derive(Debug)]
pub(crate) struct Seat {
    intake: Intake,
    node: IpAddr,
    ticket: u64,
    /// Set while the seat waits: when to ask again.
    due: Option<Instant>,
}

impl Seat {
    /// Asks to read up to `most` bytes and returns the number of bytes granted. If it is 0, the
    /// seat waits for its turn until [`Seat::due`].
    pub(crate) fn ask(&mut self, now: Instant, most: u64) -> u64 {
        let mut state = self.intake.state();
        let State { mesh, nodes, .. } = &mut *state;
        let node = nodes.get_mut(&self.node).and_then(|node| node.queue.as_mut());
        let mut queues = [node, mesh.as_mut()];
        let quanta = queues.iter().flatten().map(|queue| queue.bucket.quantum());
        let octets = quanta.chain([most]).min().unwrap_or(most);
        // The mesh is asked only once the node's bucket grants, so that a seat that waits for its
        // own node does not delay others.
        self.due = queues.iter_mut().flatten().find_map(|queue| queue.wait(now, self.ticket, octets));
        if self.due.is_some() {
            return 0;
        }
        for queue in queues.into_iter().flatten() {
            let taken = queue.bucket.take(now, octets);
            debug_assert!(taken, "it was asked for");
            queue.leave(self.ticket);
        }
        octets
    }

    /// Returns granted bytes that were not read.
    pub(crate) fn give_back(&mut self, octets: u64) {
        let mut state = self.intake.state();
        let State { mesh, nodes, .. } = &mut *state;
        let node = nodes.get_mut(&self.node).and_then(|node| node.queue.as_mut());
        for queue in [node, mesh.as_mut()].into_iter().flatten() {
            queue.bucket.give_back(octets);
        }
    }

    /// Leaves the queues: there is no input, or reading is not allowed.
    pub(crate) fn leave(&mut self) {
        if self.due.take().is_some() {
            self.intake.state().leave(self.node, self.ticket);
        }
    }

    /// When to ask again.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }
}

impl State {
    fn leave(&mut self, node: IpAddr, ticket: u64) {
        let node = self.nodes.get_mut(&node).and_then(|node| node.queue.as_mut());
        for queue in [node, self.mesh.as_mut()].into_iter().flatten() {
            queue.leave(ticket);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.intake.state();
        state.leave(self.node, self.ticket);
        if let Some(node) = state.nodes.get_mut(&self.node) {
            node.sessions -= 1;
        }
    }
}

/// Longest wait for a turn, in seconds.
const PATIENCE: u64 = 10;
/// Minimum interval between checks whether the seats ahead still wait.
const GONE: Duration = Duration::from_millis(20);
/// Granularity of the timers.
const SOON: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn node(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    /// Bytes that each seat reads in `ms` if all always have input. The last seats ask first.
    fn read(seats: &mut [Seat], ms: u64) -> Vec<u64> {
        let mut sums = vec![0; seats.len()];
        for now in 0..ms {
            for (i, seat) in seats.iter_mut().enumerate().rev() {
                if seat.due().is_none_or(|due| due <= at(now)) {
                    sums[i] += seat.ask(at(now), 1 << 16);
                }
            }
        }
        sums
    }

    #[test]
    fn sessions_share_and_a_slow_node_holds_up_no_other() {
        let caps = Caps { mesh: Some(8_000_000), node: Some(1_000_000), per_node: 100 };
        let intake = Intake::new(at(0), caps);
        let mut nodes = vec![1; 10];
        nodes.extend(2..=4);
        let mut seats: Vec<_> =
            nodes.iter().map(|n| intake.admit(at(0), node(*n)).expect("a seat")).collect();
        let sums = read(&mut seats, 10_000);
        let first: u64 = sums[..10].iter().sum();
        for node in [first, sums[10], sums[11], sums[12]] {
            assert!((1_237_500..=1_256_250).contains(&node), "10 s of its own cap: {sums:?}");
        }
        assert!(sums[..10].iter().all(|sum| sum.abs_diff(first / 10) <= 2 * 1460), "{sums:?}");
    }

    #[test]
    fn nodes_share_the_mesh() {
        let intake = Intake::new(at(0), Caps { mesh: Some(80_000), node: None, per_node: 1 });
        let mut seats: Vec<_> = (0..5).map(|n| intake.admit(at(0), node(n)).expect("a seat")).collect();
        assert!(intake.admit(at(0), node(1)).is_none(), "one each");
        let sums = read(&mut seats, 60_000);
        let all: u64 = sums.iter().sum();
        assert!((594_000..=602_920).contains(&all), "{sums:?}");
        assert!(sums.iter().all(|sum| sum.abs_diff(all / 5) <= 1460), "{sums:?}");
        drop(seats);
        assert!(intake.admit(at(0), node(1)).is_some());
    }

    #[test]
    fn whoever_leaves_keeps_nobody_waiting_and_a_long_line_is_congestion() {
        let intake = Intake::new(at(0), Caps { mesh: Some(8 * 1460), node: None, per_node: 100 });
        let seat = || intake.admit(at(0), node(1));
        let mut seats: Vec<_> = (0..13).map(|_| seat().expect("a seat")).collect();
        assert_eq!(read(&mut seats, 1).iter().sum::<u64>(), 2 * 1460, "the burst");
        assert!(seat().is_none(), "eleven wait: one waits for more than ten seconds");
        for seat in &mut seats[1..] {
            seat.leave();
        }
        assert!(read(&mut seats[..1], 12_000)[0] >= 7 * 1460, "it finds out");
        assert!(seat().is_some());
    }
}
