//! The resource manager (Figure 5, errata B1 to B3, B7, B17).

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::config::{Allocation, PidConfig, SetPoint};
use super::monitor::{Agent, weight};
use super::pid::Controller;
use super::policy::{Host, Policy};
use super::share::{divide, fit};
use super::view::{Connection, ConnectionId, Kind};

/// The paper's policy. Each striped connection has its own controller; they take unused memory in
/// the order of their ids.
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

    /// `SetThresholdPID`, line 2 of Figure 6, in bytes (erratum B9). `None` if the demand is
    /// unknown.
    fn set_point(&self, connection: &Connection) -> Option<f64> {
        let product = match self.config.set_point {
            SetPoint::PerFlow => connection.product()?,
            SetPoint::Slowest => connection.rate()? * connection.slowest()?.as_secs_f64() / 8.0,
        };
        Some(self.config.products * product)
    }

    /// `AggSpace`: memory left unused by the other connections (erratum B6). The slack of striped
    /// connections does not count (erratum B7).
    fn unused(&mut self, host: &Host<'_>) -> f64 {
        let mut unused = 0.0;
        for connection in host.connections {
            let slack = self.agent.observe(connection, &self.config);
            match connection.kind {
                Kind::Single => unused += slack,
                Kind::Striped => {}
            }
        }
        unused
    }

    /// The controller's size for a connection, within a range; `None` if its demand is unknown.
    fn control(&mut self, connection: &Connection, size: u64, range: RangeInclusive<f64>) -> Option<f64> {
        let set_point = self.set_point(connection)?;
        let first = Controller::new(self.config.gains);
        let controller = self.controllers.entry(connection.id).or_insert(first);
        Some(controller.next(set_point, size as f64, range))
    }

    /// Figure 5 as its text describes it.
    fn corrected(&mut self, host: &Host<'_>) -> Vec<u64> {
        let mut sizes: Vec<u64> = host.connections.iter().map(|c| c.target).collect();
        // Unassigned memory is unused, too.
        let mut available = self.unused(host) + host.threshold.saturating_sub(sizes.iter().sum()) as f64;
        // Memory reserved for each connection: one segment, and its guaranteed part of the pool.
        let least: Vec<u64> = host.connections.iter().map(|c| u64::from(c.mss)).collect();
        let part = self.config.guarantee * host.threshold as f64 / sizes.len().max(1) as f64;
        let floors = fit(&vec![part as u64; sizes.len()], &least, host.threshold);
        let (single, striped): (Vec<usize>, Vec<usize>) =
            (0..sizes.len()).partition(|i| host.connections[*i].kind == Kind::Single);
        let kept: u64 = single.iter().map(|i| floors[*i]).sum();
        for i in &striped {
            let connection = &host.connections[*i];
            let others =
                striped.iter().filter(|other| *other != i).map(|other| sizes[*other].max(floors[*other]));
            let size = sizes[*i] as f64;
            // min(output, AvailableSpace). It also shrinks a buffer that is too large (errata B1,
            // B17).
            let most = host.threshold.saturating_sub(kept + others.sum::<u64>()) as f64;
            let range = least[*i] as f64..=most.min((size + available).max(floors[*i] as f64));
            let Some(next) = self.control(connection, sizes[*i], range) else { continue };
            available -= (next - size).max(0.0);
            sizes[*i] = (next + 0.5) as u64;
        }
        // Line 10 with the new size of the striped connection (erratum B2).
        let rest = host.threshold.saturating_sub(striped.iter().map(|i| sizes[*i]).sum());
        let floors: Vec<u64> = single.iter().map(|i| floors[*i]).collect();
        let weights: Vec<f64> =
            single.iter().map(|i| weight(&host.connections[*i], self.config.excess)).collect();
        for (i, size) in single.iter().zip(divide(rest.max(kept), &weights, &floors)) {
            sizes[*i] = size;
        }
        sizes
    }

    /// Figure 5 to the letter, with the indices of erratum B3. Values that are no size (below 0, or
    /// above 64 bits) become the nearest size.
    fn printed(&mut self, host: &Host<'_>) -> Vec<u64> {
        let available = self.unused(host);
        let weigh = |c: &Connection| weight(c, self.config.excess);
        let total: f64 = host.connections.iter().map(weigh).sum();
        let proportions: Vec<f64> =
            host.connections.iter().map(|c| if total > 0.0 { weigh(c) / total } else { 0.0 }).collect();
        let mut sizes = Vec::with_capacity(host.connections.len());
        for (connection, proportion) in host.connections.iter().zip(proportions) {
            let size = connection.target as f64;
            let next = match connection.kind {
                Kind::Striped => {
                    let all = f64::NEG_INFINITY..=f64::INFINITY;
                    // Lines 4 to 8: the larger of the two, whatever it is.
                    let wanted = self.control(connection, connection.target, all);
                    wanted.map_or(size, |wanted| size + (wanted - size).max(available))
                }
                Kind::Single => (host.threshold as f64 - size) * proportion,
            };
            sizes.push((next + 0.5) as u64);
        }
        sizes
    }
}

impl Policy for Manager {
    fn sizes(&mut self, host: &Host<'_>) -> Vec<u64> {
        match self.config.allocation {
            Allocation::Corrected => self.corrected(host),
            Allocation::Printed => self.printed(host),
        }
    }

    fn closed(&mut self, id: ConnectionId) {
        self.agent.closed(id);
        self.controllers.remove(&id);
    }
}
