//! Mapping between nodes and stations of a channel.

use crate::packet::NodeId;

/// The nodes of a channel's stations, in both directions.
#[derive(Debug)]
pub(super) struct Stations {
    nodes: Vec<NodeId>,
    of_nodes: Vec<Option<u32>>,
}

impl Stations {
    /// `nodes` are the stations, in order, of a network of `count` nodes.
    pub(super) fn new(nodes: Vec<NodeId>, count: usize) -> Self {
        let mut of_nodes = vec![None; count];
        for (station, node) in nodes.iter().enumerate() {
            of_nodes[node.index()] = Some(station as u32);
        }
        Self { nodes, of_nodes }
    }

    /// The station of a node that has one.
    #[inline]
    pub(super) fn of(&self, node: NodeId) -> Option<u32> {
        self.of_nodes.get(node.index()).copied().flatten()
    }

    /// The node of a station.
    #[inline]
    pub(super) fn node(&self, station: u32) -> NodeId {
        self.nodes[station as usize]
    }

    /// Number of stations.
    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }
}
