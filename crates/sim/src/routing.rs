//! Static shortest-path routing with global knowledge. A change takes effect when routes are
//! computed again; the delay of this is the convergence time of the network.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::packet::{LinkId, NodeId};
use crate::radio::{Radio, Station};

/// Metric that static routing minimises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Metric {
    /// The number of links; a link over the air counts as its expected number of transmissions.
    #[default]
    Hops,
    /// The sum of the propagation delays of the links.
    Delay,
}

/// A link as routing sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Its id.
    pub link: LinkId,
    /// Node at which the link begins.
    pub from: NodeId,
    /// Node at which the link ends.
    pub to: NodeId,
    /// Length: in units of 1/[`HOP`] for [`Metric::Hops`], in nanoseconds for [`Metric::Delay`].
    pub weight: u64,
}

/// Length of a cable for [`Metric::Hops`]. Hops over the air can be longer by fractions. ETX has
/// the same resolution in RFC 6551 (section 4.3.2).
pub const HOP: u64 = 128;

/// Length of a link over the air: the expected number of transmissions (ETX) of a frame of 127
/// bytes, or of the longest frame if that is shorter, on an otherwise idle channel. With a length
/// of one for every link, a single hop with almost certain loss would be shorter than two good
/// hops.
pub fn hop_over_air(radio: &Radio, from: Station, to: Station) -> u64 {
    let etx = radio.expected_transmissions(from, to, radio.phy().max_psdu.min(127));
    // Saturates at the length of a hop on which nothing arrives, which is the last resort.
    (HOP as f64 * etx).round().min(f64::from(u32::MAX)) as u64
}

/// The next link from every node to every other. The row of a destination is computed when it is
/// first asked for: a table for all pairs of 6,400 nodes would take 160 MB, and nodes with their
/// own routers never ask.
#[derive(Debug, Default)]
pub struct Routes {
    /// All edges, sorted by the node at which they end.
    edges: Vec<Edge>,
    /// Index of the first edge into each node; the last entry is the number of edges.
    starts: Vec<u32>,
    forwards: Vec<bool>,
    /// By destination: the link to take at each node.
    rows: Vec<OnceCell<Box<[u32]>>>,
}

/// No route.
const NONE: u32 = u32::MAX;

impl Routes {
    /// Computes shortest paths over `edges`, through nodes for which `forwards` is true. Of paths
    /// of equal length, the one over the lowest link id is taken.
    ///
    /// Cost: links * log(nodes) for each destination that is asked for.
    pub fn compute(nodes: usize, edges: &[Edge], forwards: impl Fn(NodeId) -> bool) -> Self {
        let mut edges = edges.to_vec();
        edges.sort_by_key(|edge| edge.to);
        let mut starts = vec![0; nodes + 1];
        edges.iter().for_each(|edge| starts[edge.to.index() + 1] += 1);
        (0..nodes).for_each(|node| starts[node + 1] += starts[node]);
        let forwards = (0..nodes).map(|node| forwards(NodeId(node as u32))).collect();
        Self { edges, starts, forwards, rows: vec![OnceCell::new(); nodes] }
    }

    fn row(&self, destination: usize) -> Box<[u32]> {
        let nodes = self.forwards.len();
        let mut row = vec![NONE; nodes];
        let mut distance = vec![u64::MAX; nodes];
        distance[destination] = 0;
        let mut heap = BinaryHeap::from([Reverse((0, destination))]);
        while let Some(Reverse((so_far, node))) = heap.pop() {
            let passable = node == destination || self.forwards[node];
            if so_far > distance[node] || !passable {
                continue;
            }
            for edge in &self.edges[self.starts[node] as usize..self.starts[node + 1] as usize] {
                let from = edge.from.index();
                let length = so_far.saturating_add(edge.weight.max(1));
                if length < distance[from] {
                    distance[from] = length;
                    row[from] = edge.link.0;
                    heap.push(Reverse((length, from)));
                } else if length == distance[from] && from != destination {
                    row[from] = row[from].min(edge.link.0);
                }
            }
        }
        row.into_boxed_slice()
    }

    /// The link to take at `at` towards `to`.
    #[inline]
    pub fn next(&self, at: NodeId, to: NodeId) -> Option<LinkId> {
        let row = self.rows.get(to.index())?.get_or_init(|| self.row(to.index()));
        let link = *row.get(at.index())?;
        (link != NONE).then_some(LinkId(link))
    }

    /// Makes `at` send packets for `to` over `link`, whatever path is shortest.
    pub fn set(&mut self, at: NodeId, to: NodeId, link: LinkId) {
        let mut row = self.rows[to.index()].take().unwrap_or_else(|| self.row(to.index()));
        row[at.index()] = link.0;
        self.rows[to.index()] = row.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cable(edges: &mut Vec<Edge>, a: u32, b: u32, weight: u64) {
        for (from, to) in [(a, b), (b, a)] {
            let link = LinkId(edges.len() as u32);
            edges.push(Edge { link, from: NodeId(from), to: NodeId(to), weight });
        }
    }

    #[test]
    fn equal_ways_go_over_the_lowest_link() {
        // A ring of four nodes: 0-1-2-3-0.
        let mut edges = Vec::new();
        for (a, b) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
            cable(&mut edges, a, b, 1);
        }
        let routes = Routes::compute(4, &edges, |_| true);
        assert_eq!(routes.next(NodeId(0), NodeId(2)), Some(LinkId(0)));
        assert_eq!(routes.next(NodeId(2), NodeId(0)), Some(LinkId(3)));
        assert_eq!(routes.next(NodeId(0), NodeId(0)), None);
    }

    #[test]
    fn weights_count_and_hosts_do_not_forward() {
        let mut edges = Vec::new();
        cable(&mut edges, 0, 1, 10);
        cable(&mut edges, 1, 3, 10);
        cable(&mut edges, 0, 2, 1);
        cable(&mut edges, 2, 3, 1);
        let routes = Routes::compute(4, &edges, |_| true);
        assert_eq!(routes.next(NodeId(0), NodeId(3)), Some(LinkId(4)));
        let routes = Routes::compute(4, &edges, |n| n != NodeId(2));
        assert_eq!(routes.next(NodeId(0), NodeId(3)), Some(LinkId(0)));
        assert_eq!(routes.next(NodeId(0), NodeId(2)), Some(LinkId(4)));
    }
}
