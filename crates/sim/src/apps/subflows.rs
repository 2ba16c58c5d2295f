//! The subflows of a multipath connection: one on each of the node's paths, which appear and
//! disappear.

use anabranch_core::mptcp::prediction::Adaptation;
use anabranch_core::mptcp::{self, SubflowId};
use anabranch_core::tcp::{self, AdaptiveNewReno, CongestionAlgorithm, RtoConfig};
use anabranch_core::time::Duration;

use crate::app::Ctx;
use crate::host::ConnectError;
use crate::packet::NodeId;
use crate::stream::ConnId;
use crate::transport::TransportConfig;

/// Use of the node's paths by a multipath connection. TCP ignores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathUse {
    /// Largest number of subflows, at least 1, one on each of the best paths. Other paths replace a
    /// lost one.
    pub subflows: usize,
    /// Bytes of payload in a segment, for which the facts about a path are computed.
    pub payload: u16,
    /// Interfaces to use if nodes do not build paths.
    pub interfaces: Interfaces,
    /// Derivation of windows and time-outs from the length of the path; `None` keeps the configured
    /// values.
    pub adaptation: Option<Adaptation>,
}

/// Numbers of paths, each of which begins at an interface of the node
/// ([`crate::sim::Builder::pin_path`]). A connection is opened on the first; TCP stays there, and a
/// multipath connection has a subflow on each. If empty, routing selects the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interfaces {
    paths: [u8; MOST],
    count: u8,
}

/// Largest number of interfaces of a connection, which is the largest number of subflows.
const MOST: usize = 8;

impl Interfaces {
    /// These interfaces, in order; at most the first 8.
    pub fn new(paths: &[u8]) -> Self {
        let mut this = Self::default();
        for (slot, path) in this.paths.iter_mut().zip(paths) {
            *slot = *path;
            this.count += 1;
        }
        this
    }

    /// This interface only.
    pub fn only(path: u8) -> Self {
        Self::new(&[path])
    }

    /// All interfaces.
    pub fn paths(&self) -> &[u8] {
        &self.paths[..self.count.into()]
    }

    /// The path on which the connection is opened; 0 if routing selects it.
    fn first(&self) -> u8 {
        self.paths[0]
    }
}

impl PathUse {
    /// TCP configuration for a path with this number of links, if it depends on it.
    fn tcp(&self, base: tcp::Config, hops: u32) -> Option<tcp::Config> {
        let adaptation = self.adaptation?;
        let limits = adaptation.limits(hops);
        let segments = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
        let congestion = CongestionAlgorithm::AdaptiveNewReno(AdaptiveNewReno {
            w_min: segments(limits.w_min),
            w_max: segments(limits.w_max),
            update_every: segments(limits.update_every),
            phases: limits.phases,
        });
        let rto = RtoConfig { initial: limits.rto, min: limits.rto, max: limits.rto, ..base.rto };
        Some(tcp::Config { congestion, rto, ..base })
    }

    /// Transport of a connection that is opened on a path with this number of links.
    fn transport(&self, transport: TransportConfig, hops: u32) -> TransportConfig {
        match transport {
            TransportConfig::Multipath(config) => {
                let tcp = self.tcp(config.tcp, hops).unwrap_or(config.tcp);
                mptcp::Config { tcp, ..config }.into()
            }
            TransportConfig::Tcp(_) => transport,
        }
    }
}

/// The subflows of one connection, and the paths on which they were opened.
#[derive(Debug)]
pub(super) struct Subflows {
    paths: PathUse,
    /// TCP configuration of a subflow before adaptation; set when the connection is opened.
    tcp: Option<tcp::Config>,
    open: Vec<(SubflowId, u8)>,
}

impl Subflows {
    pub(super) fn new(paths: PathUse) -> Self {
        Self { paths, tcp: None, open: Vec::new() }
    }

    /// Handles an acknowledgement. With the first one it is known whether the peer supports
    /// Multipath TCP, so a single subflow can be followed by others. If there are several subflows,
    /// they receive the current facts about their paths.
    pub(super) fn on_writable(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        if self.open.len() == 1 {
            self.follow_paths(ctx, id);
        } else if ctx.has_paths() {
            self.tell_facts(ctx, id);
        }
    }

    /// Opens the connection on the best path for this number of segments. `None` while the node
    /// builds paths and none is ready.
    pub(super) fn connect(
        &mut self,
        ctx: &mut Ctx<'_>,
        (to, port): (NodeId, u16),
        transport: TransportConfig,
        segments: u64,
    ) -> Option<Result<ConnId, ConnectError>> {
        let (path, hops) = match transport {
            TransportConfig::Multipath(_) if ctx.has_paths() => self.fastest(ctx, segments)?,
            TransportConfig::Multipath(_) | TransportConfig::Tcp(_) => (self.paths.interfaces.first(), 0),
        };
        if let TransportConfig::Multipath(config) = transport {
            self.tcp = Some(config.tcp);
        }
        let connected = ctx.connect_on(path, to, port, self.paths.transport(transport, hops));
        self.open = vec![(SubflowId(0), path)];
        if let Ok(id) = connected {
            self.tell_facts(ctx, id);
        }
        Some(connected)
    }

    /// The path, among those to be used, on which this number of segments is expected to arrive
    /// first, and its length. Data on another path could move to it only one or two round trips
    /// later.
    fn fastest(&self, ctx: &mut Ctx<'_>, segments: u64) -> Option<(u8, u32)> {
        let candidates: Vec<(u8, u32)> =
            ctx.paths().take(self.paths.subflows.max(1)).map(|path| (path.id, path.hops())).collect();
        // Of equal paths, and of paths without facts, the first: candidates are sorted, best first.
        let mut best: Option<((u8, u32), Option<Duration>)> = None;
        for candidate in candidates {
            let time = ctx.path_facts(candidate.0, self.paths.payload).delivery_time(segments);
            let better = match (&best, time) {
                (None, _) => true,
                (Some((_, Some(known))), Some(time)) => time < *known,
                (Some((_, None)), _) | (Some((_, Some(_))), None) => false,
            };
            if better {
                best = Some((candidate, time));
            }
        }
        best.map(|(path, _)| path)
    }

    /// Opens a subflow on each path without one, and closes those of paths that no longer exist.
    pub(super) fn follow_paths(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        let Some(connection) = ctx.multipath(id) else { return };
        if !connection.can_join() {
            return;
        }
        if !ctx.has_paths() {
            return self.join_interfaces(ctx, id);
        }
        let alive: Vec<SubflowId> = connection.subflows().map(|s| s.0).collect();
        self.open.retain(|(subflow, _)| alive.contains(subflow));
        let paths: Vec<(u8, u32)> =
            ctx.paths().map(|p| (p.id, p.hops())).take(self.paths.subflows.max(1)).collect();
        for (path, hops) in &paths {
            let tcp = self.tcp.and_then(|base| self.paths.tcp(base, *hops));
            if !self.open.iter().any(|(_, p)| p == path)
                && let Ok(subflow) = ctx.join(id, *path, tcp)
            {
                self.open.push((subflow, *path));
            }
        }
        for (subflow, _) in self.open.iter().filter(|(_, path)| !paths.iter().any(|(p, _)| p == path)) {
            ctx.close_subflow(id, *subflow);
        }
        self.tell_facts(ctx, id);
    }

    /// Opens a subflow on each interface without one.
    fn join_interfaces(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        for path in self.paths.interfaces.paths() {
            if !self.open.iter().any(|(_, p)| p == path)
                && let Ok(subflow) = ctx.join(id, *path, None)
            {
                self.open.push((subflow, *path));
            }
        }
    }

    fn tell_facts(&self, ctx: &mut Ctx<'_>, id: ConnId) {
        for (subflow, path) in &self.open {
            let facts = ctx.path_facts(*path, self.paths.payload);
            ctx.set_path(id, *subflow, facts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_and_time_outs_follow_from_the_length_of_each_path() {
        let adaptation = Some(Adaptation::default());
        let paths = PathUse { subflows: 2, payload: 100, interfaces: Interfaces::default(), adaptation };
        let base = tcp::Config::default();
        let at = |hops| paths.tcp(base, hops).expect("it follows from the length");
        let bounds = [1, 2, 5].map(|hops| at(hops).window_bounds());
        assert_eq!(bounds, [(1, 20), (2, 18), (5, 10)]);
        let rto = [1, 2, 5].map(|hops| at(hops).rto);
        assert_eq!(rto.map(|rto| rto.initial), [20, 40, 80].map(Duration::from_secs));
        assert!(rto.iter().all(|rto| rto.min == rto.initial && rto.max == rto.initial));
        assert_eq!(PathUse { adaptation: None, ..paths }.tcp(base, 2), None);
    }
}
