//! How good a link is, as the node at its beginning sees it: what routers tell each other (RFC 6551), and what a
//! connection is told of its paths. Of a radio it is sections V and VI of "Multipath TCP Over Multi-Hop Heterogeneous
//! Wireless IoT Networks", with the channel's busy time and the arrivals as the node has measured them.

use anabranch_core::mptcp::PathFacts;
use anabranch_core::mptcp::travel::Reading;
use anabranch_core::mptcp::travel::csma::{Busy, Csma};
use anabranch_core::mptcp::travel::rtt::{CsmaLink, Link, Route, Sizes, Transmitter, travel};
use anabranch_core::paths::{Metrics, OwnPath, ShortAddress};
use anabranch_core::time::{Duration, Instant};

use super::Network;
use crate::frames::short_address;
use crate::packet::{LinkId, NodeId};
use crate::radio::Station;

/// Octets of a segment without payload: in an IPv6 packet, and in a frame (IPHC, RFC 6282).
const HEADERS: u32 = 60;
const COMPRESSED: u16 = 50;

/// What a station has seen of its channel and its queue of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sight {
    since: Instant,
    busy_time: Duration,
    /// Frames given to the radio, and their octets, since the beginning.
    pub(super) frames: u64,
    pub(super) octets: u64,
    frames_before: u64,
    /// p_b: share of the time in which others kept the channel busy.
    busy: f64,
    /// lambda: frames per second.
    arrivals: f64,
}

impl Sight {
    /// Looks again, not too often: half of the estimate is the newest window.
    fn look(&mut self, now: Instant, busy_time: Duration) {
        let window = now.saturating_since(self.since).as_secs_f64();
        if window < WINDOW {
            return;
        }
        let busy = busy_time.saturating_sub(self.busy_time).as_secs_f64() / window;
        let arrivals = (self.frames - self.frames_before) as f64 / window;
        // The first window began with the epoch, when there was nothing to see.
        let weight = if self.since == Instant::ZERO { 1.0 } else { 0.5 };
        self.busy += weight * (busy.min(1.0) - self.busy);
        self.arrivals += weight * (arrivals - self.arrivals);
        (self.since, self.busy_time, self.frames_before) = (now, busy_time, self.frames);
    }
}

/// K of the model at most: a longer queue would take minutes to fill.
const LONGEST_QUEUE: u32 = 1000;

/// Seconds between two looks.
const WINDOW: f64 = 2.0;

/// A link, as its beginning sees it.
#[derive(Clone, Copy, Debug)]
struct View {
    metrics: Metrics,
    /// From one packet without payload to the next.
    spacing: Duration,
}

impl Network {
    /// What is known of one of a node's own paths; nothing, if the path is not known.
    pub(crate) fn path_facts(&mut self, now: Instant, node: NodeId, path: u8, payload: u32) -> PathFacts {
        let Some(own) = self.own_path(node, path) else { return PathFacts::default() };
        let (hops, first) = (Some(own.hops() as u16), own.nodes.get(1).copied());
        let own_link = first.and_then(|first| self.look_at_link(now, node, first));
        let metrics = self.router(node).and_then(|router| router.metrics(self.own_path(node, path)?));
        let Some(metrics) = metrics else { return PathFacts { hops, ..PathFacts::default() } };
        let octets = |count: u32| Duration::from_secs_f64(f64::from(count) / f64::from(metrics.throughput));
        // T_e(D) + PS/B on the first link (M13), and no faster than the slowest.
        let spacing = own_link.map_or(Duration::ZERO, |view| view.spacing + octets(payload));
        PathFacts {
            hops,
            // M15: the way back takes as long.
            rtt: Some(metrics.latency * 2),
            service_time: Some(spacing.max(octets(payload + HEADERS))),
            loss: None,
        }
    }

    fn own_path(&self, node: NodeId, path: u8) -> Option<&OwnPath> {
        self.own_paths(node).iter().find(|own| own.id == path)
    }

    /// Tells a router how good the links are that its paths begin with.
    pub(super) fn look_at_links(&mut self, now: Instant, node: NodeId) {
        let Some(router) = self.router(node) else { return };
        // Paths are few, and most begin with different links.
        let firsts: Vec<_> = router.paths().iter().filter_map(|path| path.nodes.get(1).copied()).collect();
        for first in firsts {
            self.look_at_link(now, node, first);
        }
    }

    /// Tells a router how good the link to a neighbour is.
    fn look_at_link(&mut self, now: Instant, node: NodeId, neighbour: ShortAddress) -> Option<View> {
        let link = self.link_towards(node, neighbour)?;
        let view = self.view(now, link)?;
        self.tell_router(node, neighbour, view.metrics);
        Some(view)
    }

    fn view(&mut self, now: Instant, link: LinkId) -> Option<View> {
        if self.links[link.index()].is_wireless() {
            return self.view_of_air(now, self.links[link.index()].from());
        }
        let config = self.links[link.index()].config();
        let spacing = crate::link::transmission_time(HEADERS, config.rate);
        let throughput = u32::try_from(config.rate / 8).unwrap_or(u32::MAX).max(1);
        Some(View { metrics: Metrics { latency: spacing + config.delay, throughput }, spacing })
    }

    /// Equation (8) for a node on the air.
    fn view_of_air(&mut self, now: Instant, node: NodeId) -> Option<View> {
        let station = self.station(node)?;
        let wireless = self.wireless.as_mut()?;
        let busy_time = wireless.radio.busy_time(now, Station(station));
        let sight = wireless.sight(station);
        sight.look(now, busy_time);
        let &mut Sight { busy, arrivals, frames, octets, .. } = sight;
        let capacity = Some(wireless.queue().clamp(1, LONGEST_QUEUE));
        let (phy, mac) = (*wireless.radio.phy(), *wireless.radio.mac());
        let on_air = |psdu: u16| u32::from(psdu) + u32::from(phy.header);
        let header = on_air(COMPRESSED);
        let queued = octets.checked_div(frames).map_or(header, |mean| on_air(mean as u16));
        let route = Route {
            forward: vec![Transmitter {
                link: Link::Csma(CsmaLink {
                    bandwidth: phy.bit_rate as f64,
                    backoff_period: phy.backoff_period.as_secs_f64(),
                    turnaround: phy.turnaround.as_secs_f64(),
                    mac_ack: (phy.turnaround + phy.airtime(phy.ack_psdu)).as_secs_f64(),
                    csma: Csma {
                        min_be: mac.min_be.into(),
                        max_be: mac.max_be.into(),
                        max_backoffs: mac.max_csma_backoffs.into(),
                    },
                    busy: Busy::Constant(busy),
                }),
                arrivals,
                capacity,
            }],
            reverse: Vec::new(),
            sizes: Sizes { header, payload: 0, queued },
        };
        let travel = travel(&route, Reading::default()).ok()?;
        let metrics = Metrics {
            latency: Duration::from_secs_f64(travel.syn),
            throughput: u32::try_from(phy.bit_rate / 8).unwrap_or(u32::MAX).max(1),
        };
        Some(View { metrics, spacing: Duration::from_secs_f64(travel.t_next) })
    }

    fn link_towards(&self, node: NodeId, neighbour: ShortAddress) -> Option<LinkId> {
        let links = self.paths.as_ref()?.links_of(node)?;
        let at = links.binary_search_by_key(&neighbour, |(to, _)| short_address(*to)).ok()?;
        Some(links[at].1)
    }
}
