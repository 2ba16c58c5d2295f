//! Knowledge of a node about the links and paths that begin at it, for messages between routers
//! (RFC 6551) and for connections. Media give the quality of their links.

use anabranch_core::mptcp::PathFacts;
use anabranch_core::paths::{OwnPath, ShortAddress};
use anabranch_core::time::{Duration, Instant};

use super::{link_to, node_of};
use crate::network::Network;
use crate::network::medium::View;
use crate::packet::NodeId;

/// Bytes of the IPv6 and TCP headers of a segment without options.
const HEADERS: u32 = 60;

impl Network {
    /// Facts about one of a node's own paths; empty if the path is not known.
    pub(crate) fn path_facts(&mut self, now: Instant, node: NodeId, path: u8, payload: u32) -> PathFacts {
        let Some(own) = self.own_path(node, path) else { return PathFacts::default() };
        let (hops, first) = (Some(own.hops() as u16), own.nodes.get(1).copied());
        let own_link = first.and_then(|first| self.look_at_link(now, node, first));
        let metrics = self.router(node).and_then(|router| router.metrics(self.own_path(node, path)?));
        let Some(metrics) = metrics else { return PathFacts { hops, ..PathFacts::default() } };
        let octets = |count: u32| Duration::from_secs_f64(f64::from(count) / f64::from(metrics.throughput));
        let payload_time = self.octet_time(node, path).map(|octet| octet * u64::from(payload));
        // T_e(D) + PS/B on the first link (M13), but no faster than the slowest link.
        let spacing = own_link.map_or(Duration::ZERO, |view| view.spacing + octets(payload));
        PathFacts {
            hops,
            // The reverse path takes as long (M15).
            rtt: Some(metrics.latency * 2),
            service_time: Some(spacing.max(octets(payload + HEADERS))),
            payload_time,
            loss: None,
        }
    }

    fn own_path(&self, node: NodeId, path: u8) -> Option<&OwnPath> {
        self.own_paths(node).iter().find(|own| own.id == path)
    }

    /// Sum of the times of one byte on all links of a path, as far as their rates are known.
    fn octet_time(&self, node: NodeId, path: u8) -> Option<Duration> {
        let own = self.own_path(node, path)?;
        let hops = own.nodes.windows(2).map(|hop| (node_of(hop[0]), node_of(hop[1])));
        let mut nanos = 0;
        for (from, to) in hops {
            nanos += 8 * 1_000_000_000 / self.bit_rate(self.graph.find_link(from, to)?)?.max(1);
        }
        Some(Duration::from_nanos(nanos))
    }

    /// Tells a router the quality of the first links of its paths.
    pub(super) fn look_at_links(&mut self, now: Instant, node: NodeId) {
        let Some(router) = self.router(node) else { return };
        // No deduplication: there are few paths, and most begin with different links.
        let firsts: Vec<_> = router.paths().iter().filter_map(|path| path.nodes.get(1).copied()).collect();
        for first in firsts {
            self.look_at_link(now, node, first);
        }
    }

    /// Tells a router the quality of the link to a neighbour.
    fn look_at_link(&mut self, now: Instant, node: NodeId, neighbour: ShortAddress) -> Option<View> {
        let link = link_to(&self.graph, &self.relays, node, node_of(neighbour))?;
        let view = self.view(now, link)?;
        self.hooks.paths.sites.get_mut(node)?.router.set_link(neighbour, view.metrics);
        Some(view)
    }
}
