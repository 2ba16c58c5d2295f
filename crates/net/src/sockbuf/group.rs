//! The sockets of one connection, and the division of its memory among them.

use anabranch_core::sockbuf::{FlowView, divide};

use super::flow::Flow;

#[derive(Debug)]
pub(super) struct Group {
    pub flows: Vec<Flow>,
    /// Number of the next socket.
    pub next: u32,
}

impl Group {
    /// Smallest amount of the pool that all of its sockets together need.
    pub(super) fn floor(&self) -> u64 {
        self.flows.iter().map(Flow::segment).sum()
    }

    pub(super) fn views(&self) -> Vec<FlowView> {
        let floor = self.floor();
        self.flows.iter().map(|flow| flow.view(floor)).collect()
    }

    /// Divides the connection's memory among its sockets in proportion to bandwidth times RTT. A
    /// socket for which that is unknown counts as the mean of the others.
    pub(super) fn divide(&self, size: u64) -> Vec<u64> {
        let number = self.flows.len() as u64;
        if size < number {
            return vec![0; self.flows.len()];
        }
        let known: Vec<f64> = self.flows.iter().filter_map(Flow::product).collect();
        let mean = known.iter().sum::<f64>() / (known.len() as f64).max(1.0);
        let weights: Vec<f64> = self.flows.iter().map(|flow| flow.product().unwrap_or(mean)).collect();
        let least: Vec<u64> = self.flows.iter().map(|flow| flow.segment().min(size / number)).collect();
        divide(size, &weights, &least)
    }
}
