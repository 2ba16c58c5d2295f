//! Compares the measured round-trip time with the prediction of section VI.
//!
//! On both sides, a round trip consists of a data segment's way over a path to the data centre and
//! an acknowledgement's way back over the same path. An omniscient observer measures from the queue
//! of the first node to the arrival at the last. TCP's own samples would include the wait for the
//! rest of the window, which the model does not know (erratum M28).

use std::collections::BTreeMap;

use anabranch_core::time::Instant;
use anabranch_model::mptcp::csma::{Busy, Csma};
use anabranch_model::mptcp::rtt::{CellularLink, CsmaLink, Link, Route, Sizes, Transmitter, travel};
use anabranch_model::mptcp::{ModelError, Reading};
use anabranch_sim::frames;
use anabranch_sim::link::{LinkConfig, LinkDrop};
use anabranch_sim::packet::{IpVersion, LinkId, NodeId, Packet, Payload};
use anabranch_sim::radio::{PhyConfig, RadioConfig};
use anabranch_sim::trace::{Observer, Point};

/// Kind of a packet in the model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Data,
    Ack,
}

/// A running mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// A packet on its way.
#[derive(Clone, Debug)]
struct Journey {
    begun: Instant,
    nodes: Vec<NodeId>,
}

/// Packets that a node was given to send.
#[derive(Clone, Copy, Debug)]
struct Load {
    packets: u64,
    last: Instant,
}

/// Observes packets over their whole way.
#[derive(Debug)]
pub(super) struct Watch {
    begin: Instant,
    phy: PhyConfig,
    ends: Vec<(NodeId, NodeId)>,
    on_air: Vec<bool>,
    /// Packets on their way, by number. A lost packet stays here.
    under_way: BTreeMap<u64, Journey>,
    /// Durations in seconds of packets that arrived, by kind and path.
    arrived: BTreeMap<(Kind, Vec<NodeId>), Mean>,
    loads: Vec<Load>,
    /// Length on the air in bytes: of data segments, of acknowledgements, and of all packets.
    data: Mean,
    ack: Mean,
    any: Mean,
}

/// Round-trip times over the nodes' first paths, as means over all nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RoundTrip {
    /// Measured time in seconds.
    pub measured: f64,
    /// Predicted time divided by the measured time.
    pub ratio: f64,
}

impl Watch {
    /// Creates the observer; packets before `begin` do not count.
    pub(super) fn new(begin: Instant, phy: PhyConfig) -> Self {
        Self {
            begin,
            phy,
            ends: Vec::new(),
            on_air: Vec::new(),
            under_way: BTreeMap::new(),
            arrived: BTreeMap::new(),
            loads: Vec::new(),
            data: Mean::default(),
            ack: Mean::default(),
            any: Mean::default(),
        }
    }

    /// Mean over those of `paths` (from the node to the data centre) on which data and
    /// acknowledgements arrived; `None` if there are none.
    ///
    /// `busy` is each node's share of assessments that found the channel busy. The radio's queue
    /// holds the packets of a node except the one in transmission. `cellular` describes a link of
    /// the base station, if there is one.
    ///
    /// # Errors
    ///
    /// The model refuses the measured values.
    pub(super) fn round_trip(
        &self,
        paths: &[Vec<NodeId>],
        busy: &[f64],
        radio: (&RadioConfig, u32),
        cellular: Option<LinkConfig>,
    ) -> Result<Option<RoundTrip>, ModelError> {
        let (mut measured, mut ratio) = (Mean::default(), Mean::default());
        for path in paths {
            let back: Vec<NodeId> = path.iter().rev().copied().collect();
            let Some(there) = self.mean(Kind::Data, path) else { continue };
            let Some(seconds) = self.mean(Kind::Ack, &back).map(|back| there + back) else { continue };
            let transmitters = |path: &[NodeId]| -> Vec<Transmitter> {
                path.windows(2).map(|hop| self.transmitter((hop[0], hop[1]), busy, radio, cellular)).collect()
            };
            let route =
                Route { forward: transmitters(path), reverse: transmitters(&back), sizes: self.sizes() };
            let predicted = travel(&route, Reading::default())?;
            measured.add(seconds);
            ratio.add((predicted.t_first + predicted.ack) / seconds);
        }
        let both = measured.value().zip(ratio.value());
        Ok(both.map(|(measured, ratio)| RoundTrip { measured, ratio }))
    }

    fn mean(&self, kind: Kind, way: &[NodeId]) -> Option<f64> {
        self.arrived.get(&(kind, way.to_vec()))?.value()
    }

    /// An acknowledgement consists of headers only; the rest of a data segment is payload.
    fn sizes(&self) -> Sizes {
        let octets = |mean: Mean| mean.value().unwrap_or(0.0).round() as u32;
        let header = octets(self.ack);
        Sizes { header, payload: octets(self.data).saturating_sub(header), queued: octets(self.any) }
    }

    fn transmitter(
        &self,
        (from, to): (NodeId, NodeId),
        busy: &[f64],
        (radio, queue): (&RadioConfig, u32),
        cellular: Option<LinkConfig>,
    ) -> Transmitter {
        let link = self.ends.iter().position(|ends| *ends == (from, to));
        if let Some(link) = cellular.filter(|_| link.is_some_and(|link| !self.on_air[link])) {
            let (bandwidth, delay) = (link.rate as f64, link.delay.as_secs_f64());
            return Transmitter {
                link: Link::Cellular(CellularLink { bandwidth, delay }),
                // At 10 Mbit/s the load of a few nodes is negligible.
                arrivals: 0.0,
                capacity: None,
            };
        }
        let RadioConfig { phy, mac, .. } = radio;
        Transmitter {
            link: Link::Csma(CsmaLink {
                bandwidth: phy.bit_rate as f64,
                backoff_period: phy.backoff_period.as_secs_f64(),
                turnaround: phy.turnaround.as_secs_f64(),
                mac_ack: phy.airtime(phy.ack_psdu).as_secs_f64(),
                csma: Csma {
                    min_be: mac.min_be.into(),
                    max_be: mac.max_be.into(),
                    max_backoffs: mac.max_csma_backoffs.into(),
                },
                busy: Busy::Constant(busy[from.index()]),
            }),
            arrivals: self.arrivals(from),
            capacity: Some(queue + 1),
        }
    }

    /// Packets per second that a node was given for its radio, between the start of the sources and
    /// the last packet.
    fn arrivals(&self, node: NodeId) -> f64 {
        let Load { packets, last } = self.loads[node.index()];
        let seconds = last.saturating_since(self.begin).as_secs_f64();
        if seconds > 0.0 { packets as f64 / seconds } else { 0.0 }
    }

    fn weigh(&mut self, packet: &Packet, kind: Option<Kind>, hop: (NodeId, NodeId)) {
        let Some(cut) = frames::cut(IpVersion::V6, packet, (hop.0, Some(hop.1)), (&self.phy).into()) else {
            return;
        };
        let frames = (0..cut.pieces()).map(|piece| self.phy.header + cut.psdu_len(piece));
        let octets = f64::from(frames.sum::<u16>());
        self.any.add(octets);
        match kind {
            Some(Kind::Data) => self.data.add(octets),
            Some(Kind::Ack) => self.ack.add(octets),
            None => {}
        }
    }
}

impl Observer for Watch {
    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        self.loads = vec![Load { packets: 0, last: self.begin }; nodes.len()];
        self.ends = links.to_vec();
        self.on_air.resize(links.len(), false);
    }

    fn on_attach_radio(&mut self, links: &[LinkId]) -> bool {
        // Called before the number of links is known.
        let len = links.iter().map(|link| link.index() + 1).max().unwrap_or(0);
        self.on_air = vec![false; len];
        links.iter().for_each(|link| self.on_air[link.index()] = true);
        false
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        if now < self.begin {
            return;
        }
        let (from, to) = self.ends[link.index()];
        let on_air = self.on_air[link.index()];
        let kind = match &packet.payload {
            Payload::Tcp(segment) if !segment.payload.is_empty() => Some(Kind::Data),
            Payload::Tcp(segment) if segment.is_pure_ack() => Some(Kind::Ack),
            Payload::Tcp(_) | Payload::Udp(_) | Payload::Opaque(_) | Payload::Fragment(_) => None,
        };
        match point {
            Point::Sent | Point::Dropped(LinkDrop::QueueFull) if on_air => {
                let load = &mut self.loads[from.index()];
                (load.packets, load.last) = (load.packets + 1, now);
            }
            Point::Sent | Point::Received | Point::Dropped(_) => {}
        }
        match point {
            Point::Sent => {
                if on_air {
                    self.weigh(packet, kind, (from, to));
                }
                if kind.is_some() && from == packet.src {
                    self.under_way.insert(packet.id, Journey { begun: now, nodes: vec![from] });
                }
            }
            Point::Received => {
                let Some(kind) = kind else { return };
                let Some(journey) = self.under_way.get_mut(&packet.id) else { return };
                journey.nodes.push(to);
                if to == packet.dst {
                    let Journey { begun, nodes } =
                        self.under_way.remove(&packet.id).expect("it was there a moment ago");
                    let seconds = now.saturating_since(begun).as_secs_f64();
                    self.arrived.entry((kind, nodes)).or_default().add(seconds);
                }
            }
            Point::Dropped(_) => {}
        }
    }
}
