mod decisions;
mod invariants;
mod refusals;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Config, ConnectionId, FlowView, Kind, PolicyConfig, Tuner, View};
use crate::time::{Duration, Instant};

const MSS: u32 = 1460;
const PERIOD: Duration = Duration::from_millis(500);

/// The owner of the buffers: carries out assignments, and checks at each step that they are
/// allowed.
struct Owner {
    tuner: Tuner,
    now: Instant,
    threshold: u64,
    limits: BTreeMap<ConnectionId, u64>,
    occupied: BTreeMap<ConnectionId, u64>,
}

impl Owner {
    fn new(threshold: u64, policy: PolicyConfig) -> Self {
        Self::with(Config { threshold, policy, ..Config::default() })
    }

    fn with(config: Config) -> Self {
        let now = Instant::from_nanos(0);
        let tuner = Tuner::new(now, config).unwrap();
        let (limits, occupied) = (BTreeMap::new(), BTreeMap::new());
        Self { tuner, now, threshold: config.threshold, limits, occupied }
    }

    fn open(&mut self, number: u32, kind: Kind, mss: u32) {
        if self.tuner.open(ConnectionId(number), kind, mss).is_ok() {
            self.limits.insert(ConnectionId(number), 0);
            self.occupied.insert(ConnectionId(number), 0);
        }
        self.obey();
    }

    fn close(&mut self, number: u32) {
        self.tuner.close(ConnectionId(number));
        self.limits.remove(&ConnectionId(number));
        self.occupied.remove(&ConnectionId(number));
        self.obey();
    }

    /// Reports one view of each connection, half a second later.
    fn cycle(&mut self, connections: &[(u32, u64, Vec<FlowView>)]) {
        self.now += PERIOD;
        let views: Vec<View<'_>> = connections
            .iter()
            .map(|(number, occupied, flows)| View {
                id: ConnectionId(*number),
                occupied: *occupied,
                acknowledged: 0,
                flows,
            })
            .collect();
        self.views(&views);
    }

    fn views(&mut self, views: &[View<'_>]) {
        for view in views {
            if let Some(occupied) = self.occupied.get_mut(&view.id) {
                *occupied = view.occupied;
            }
        }
        self.tuner.handle_views(self.now, views);
        self.obey();
    }

    fn obey(&mut self) {
        let mut answers = 0;
        while let Some(answer) = self.tuner.poll_assignment() {
            let before = self.limits.insert(answer.id, answer.limit).expect("an open connection");
            let occupied = self.occupied[&answer.id];
            assert!(answer.limit >= before.min(occupied), "octets that are in the buffer have no room");
            let sum: u64 = self.limits.values().sum();
            assert!(sum <= self.threshold, "{sum} of {}", self.threshold);
            answers += 1;
            assert!(answers <= 2 * self.limits.len(), "there is no end of answers");
        }
        let connections = self.tuner.connections();
        assert!(connections.iter().map(|c| c.target).sum::<u64>() <= self.threshold);
        for connection in connections {
            assert!(connection.target >= u64::from(connection.mss), "{connection:?}");
            assert_eq!(connection.limit, self.limits[&connection.id], "the owner knows");
        }
    }

    fn targets(&self) -> Vec<u64> {
        self.tuner.connections().iter().map(|c| c.target).collect()
    }
}

fn flow(megabits: f64, rtt_ms: u64) -> FlowView {
    let (bandwidth, rtt) = (Some(megabits * 1e6), Some(Duration::from_millis(rtt_ms)));
    FlowView { interface: rtt_ms as u32, bandwidth, rtt, window: 0, mss: MSS }
}

fn window(octets: u64) -> FlowView {
    FlowView { interface: 0, bandwidth: None, rtt: None, window: octets, mss: 1 }
}
