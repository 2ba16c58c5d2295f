//! The resource manager (Figure 5, errata B1 to B3, B7, B17).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::config::{PidConfig, SetPoint};
use super::monitor::{Agent, weight};
use super::pid::Controller;
use super::policy::{Host, Policy};
use super::share::divide;
use super::view::{Connection, ConnectionId, Kind};

/// The paper's policy. Several striped connections each have a controller, and take what is unused in the order of their
/// numbers.
#[derive(Clone, Debug)]
pub(super) struct Manager {
    config: PidConfig,
    agent: Agent,
    controllers: BTreeMap<ConnectionId, Controller>,
}

impl Manager {
    pub(super) fn new(config: PidConfig) -> Self {
        Self { config, agent: Agent::default(), controllers: BTreeMap::new() }
    }

    /// `SetThresholdPID`: line 2 of Figure 6, octets (erratum B9). `None` if the demand is not known.
    fn set_point(&self, connection: &Connection) -> Option<f64> {
        let product = match self.config.set_point {
            SetPoint::PerFlow => connection.product()?,
            SetPoint::Slowest => connection.rate()? * connection.slowest()?.as_secs_f64() / 8.0,
        };
        Some(self.config.products * product)
    }

    /// `AggSpace`: what the others leave unused, and what nobody has (erratum B6). A striped connection's own slack does
    /// not count (erratum B7).
    fn available(&mut self, host: &Host<'_>) -> f64 {
        let mut unused = 0.0;
        let mut assigned = 0;
        for connection in host.connections {
            let slack = self.agent.observe(connection, &self.config);
            assigned += connection.target;
            match connection.kind {
                Kind::Single => unused += slack,
                Kind::Striped => {}
            }
        }
        unused + host.threshold.saturating_sub(assigned) as f64
    }
}

impl Policy for Manager {
    fn sizes(&mut self, host: &Host<'_>) -> Vec<u64> {
        let mut available = self.available(host);
        let mut sizes: Vec<u64> = host.connections.iter().map(|c| c.target).collect();
        // What no striped connection may take: one segment for each single one, and what other striped ones have.
        let floor = |c: &Connection| u64::from(c.mss);
        let (single, striped): (Vec<usize>, Vec<usize>) =
            (0..sizes.len()).partition(|i| host.connections[*i].kind == Kind::Single);
        let floors: u64 = single.iter().map(|i| floor(&host.connections[*i])).sum();
        for i in &striped {
            let connection = &host.connections[*i];
            let Some(set_point) = self.set_point(connection) else { continue };
            let controller =
                self.controllers.entry(connection.id).or_insert(Controller::new(self.config.gains));
            let others: u64 = striped.iter().filter(|other| *other != i).map(|other| sizes[*other]).sum();
            let size = sizes[*i] as f64;
            // min(output, AvailableSpace), which is also what makes a buffer in excess smaller (errata B1, B17).
            let most = (host.threshold.saturating_sub(floors + others) as f64).min(size + available);
            let next = controller.next(set_point, size, floor(connection) as f64..=most);
            available -= (next - size).max(0.0);
            sizes[*i] = (next + 0.5) as u64;
        }
        // Line 10 with the striped connection's new size (erratum B2).
        let rest = host.threshold.saturating_sub(striped.iter().map(|i| sizes[*i]).sum());
        let least: Vec<u64> = single.iter().map(|i| floor(&host.connections[*i])).collect();
        let weights: Vec<f64> =
            single.iter().map(|i| weight(&host.connections[*i], self.config.excess)).collect();
        for (i, size) in single.iter().zip(divide(rest.max(floors), &weights, &least)) {
            sizes[*i] = size;
        }
        sizes
    }

    fn closed(&mut self, id: ConnectionId) {
        self.agent.closed(id);
        self.controllers.remove(&id);
    }
}
