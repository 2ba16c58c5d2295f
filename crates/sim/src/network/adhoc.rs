//! Packets over IEEE 802.11: a node's interface queue, its frames, and what comes out of them at the neighbours.
//!
//! A packet is one data frame with LLC and SNAP (RFC 1042); the MTU of the links keeps longer ones out. The queue is
//! ns-2's `Queue/DropTail/PriQueue`: routing messages go before data, and a full queue drops from its tail.
//!
//! A packet stays with its sender until its frame is settled, and a receiver makes a copy. So a packet can have arrived
//! that its sender takes for lost, when only acknowledgements were.

mod queue;
mod watch;

use std::collections::VecDeque;

use anabranch_core::aodv;
use anabranch_core::dtc::LinkEvent;
use anabranch_core::time::Instant;
use anabranch_wire::ieee80211::data_len;

use super::Network;
use super::stations::Stations;
use crate::link::LinkDrop;
use crate::packet::{LinkId, NodeId, PacketHandle, Payload};
use crate::trace::{NodeDrop, Point};
use crate::wifi::{Effect, Outcome, Outgoing, Station, Wifi};

pub(super) use queue::{Outbound, Past};
use queue::{Priority, Queue, Refused};

/// What holds for every node of an ad hoc network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdhocConfig {
    /// Packets that wait at a node for the MAC, beside the one that it has: 50, as ns-2's users set `ifqlen`. ns-2 itself
    /// refuses the packet that would be the 50th.
    pub queue: usize,
    /// Octets of the longest packet, IP header included: 1500, as of Ethernet. More than fits into the longest MPDU is
    /// taken for that.
    pub mtu: u32,
    /// How often a packet whose next hop does not answer is given to AODV again, which may know or find another; those
    /// that are queued for this next hop go with it. 1; with 0 all of them are dropped, as in ns-2.
    pub reroutes: u8,
}

impl Default for AdhocConfig {
    fn default() -> Self {
        Self { queue: 50, mtu: 1500, reroutes: 1 }
    }
}

impl AdhocConfig {
    /// What differs in ns-2.35: no packet is given another route.
    pub fn ns2() -> Self {
        Self { reroutes: 0, ..Self::default() }
    }
}

/// What the interface of a node has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AdhocMetrics {
    /// Packets given to the MAC, routing messages included.
    pub packets: u64,
    /// Routing messages among them.
    pub routing: u64,
    /// Broadcasts among them.
    pub broadcasts: u64,
    /// Packets that a full queue refused, or pushed out for a routing message.
    pub queue_drops: u64,
    /// The most packets that waited.
    pub queue_peak: usize,
    /// Packets that the MAC gave up.
    pub failures: u64,
    /// Packets that were taken back from the queue since their next hop did not answer, those given up not counted.
    pub taken_back: u64,
    /// Packets, given up or taken back, that were given another route or wait for one.
    pub rerouted: u64,
    /// Packets too long for a frame.
    pub too_long: u64,
}

/// The channel and those on it.
#[derive(Debug)]
pub(super) struct Adhoc {
    config: AdhocConfig,
    wifi: Wifi,
    /// What a link loses that is up.
    loss: f64,
    stations: Stations,
    interfaces: Vec<Interface>,
    next_tag: u64,
    /// Nodes whose energy is used up, for the world.
    exhausted: VecDeque<NodeId>,
}

#[derive(Debug, Default)]
struct Interface {
    queue: Queue,
    current: Option<Current>,
    /// Those that hear the node, by station, and the links there.
    neighbours: Vec<(u32, LinkId)>,
    metrics: AdhocMetrics,
    out_of_energy: bool,
}

/// The packet that the MAC has.
#[derive(Clone, Copy, Debug)]
struct Current {
    outbound: Outbound,
    tag: u64,
    /// The neighbour has it.
    arrived: bool,
}

impl Adhoc {
    fn interface(&mut self, station: u32) -> &mut Interface {
        &mut self.interfaces[station as usize]
    }
}

impl Network {
    /// Puts nodes on an 802.11 channel: `nodes` are the stations of `wifi`, in order; `loss` is what its links lose by
    /// themselves. Links between them are added with [`Network::add_adhoc_link`].
    pub(crate) fn set_adhoc(&mut self, config: AdhocConfig, wifi: Wifi, loss: f64, nodes: Vec<NodeId>) {
        let stations = Stations::new(nodes, self.nodes.len());
        let interfaces = (0..stations.count()).map(|_| Interface::default()).collect();
        let exhausted = VecDeque::new();
        let adhoc = Adhoc { config, wifi, loss, stations, interfaces, next_tag: 0, exhausted };
        self.adhoc = Some(Box::new(adhoc));
    }

    /// One neighbour hears another.
    pub(crate) fn add_adhoc_link(&mut self, from: NodeId, to: NodeId, link: LinkId) {
        let Some(adhoc) = &mut self.adhoc else { return };
        self.links[link.index()].set_wireless();
        let (Some(a), Some(b)) = (adhoc.stations.of(from), adhoc.stations.of(to)) else { return };
        let neighbours = &mut adhoc.interfaces[a as usize].neighbours;
        let at = neighbours.partition_point(|n| n.0 < b);
        neighbours.insert(at, (b, link));
    }

    /// The 802.11 channel, for its figures.
    pub fn wifi(&self) -> Option<&Wifi> {
        self.adhoc.as_ref().map(|a| &a.wifi)
    }

    /// The 802.11 station of a node that has one.
    pub fn wifi_station(&self, node: NodeId) -> Option<Station> {
        self.adhoc.as_ref()?.stations.of(node).map(Station)
    }

    /// What a node's interface to the 802.11 channel has done.
    pub fn adhoc_metrics(&self, node: NodeId) -> Option<&AdhocMetrics> {
        let station = self.wifi_station(node)?;
        Some(&self.adhoc.as_ref()?.interfaces[station.0 as usize].metrics)
    }

    /// Packets that wait at a node for the MAC.
    pub fn adhoc_queue(&self, node: NodeId) -> usize {
        let interface = self.wifi_station(node).zip(self.adhoc.as_ref());
        interface.map_or(0, |(station, adhoc)| adhoc.interfaces[station.0 as usize].queue.len())
    }

    /// A node's radio has no energy left.
    pub(crate) fn is_exhausted(&self, node: NodeId) -> bool {
        let interface = self.wifi_station(node).zip(self.adhoc.as_ref());
        interface.is_some_and(|(station, adhoc)| adhoc.interfaces[station.0 as usize].out_of_energy)
    }

    /// A node whose radio has used up its energy, once for each.
    #[inline]
    pub(crate) fn take_exhausted(&mut self) -> Option<NodeId> {
        self.adhoc.as_mut()?.exhausted.pop_front()
    }

    /// How often packets are given another route.
    pub(super) fn reroutes(&self) -> u8 {
        self.adhoc.as_ref().map_or(0, |a| a.config.reroutes)
    }

    /// The link to a neighbour of a node.
    pub(super) fn adhoc_link(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        let adhoc = self.adhoc.as_ref()?;
        let (from, to) = (adhoc.stations.of(from)?, adhoc.stations.of(to)?);
        let neighbours = &adhoc.interfaces[from as usize].neighbours;
        let at = neighbours.binary_search_by_key(&to, |n| n.0).ok()?;
        Some(neighbours[at].1)
    }

    /// A packet is to go over the air, by whichever radio, to the neighbour at the end of `link`.
    pub(super) fn transmit_on_air(&mut self, now: Instant, link: LinkId, handle: PacketHandle) {
        if self.adhoc.is_some() {
            self.transmit_adhoc(now, link, handle, Past::default());
        } else {
            self.transmit_wireless(now, link, handle);
        }
    }

    /// A packet is to go to the neighbour at the end of `link`. That the link is down is not known here: the MAC finds out.
    pub(super) fn transmit_adhoc(&mut self, now: Instant, link: LinkId, handle: PacketHandle, past: Past) {
        let from = self.links[link.index()].from();
        self.enqueue_adhoc(now, from, Outbound { link: Some(link), handle, past });
    }

    /// A packet is to go to everybody in reach.
    pub(super) fn broadcast_adhoc(&mut self, now: Instant, from: NodeId, handle: PacketHandle) {
        self.enqueue_adhoc(now, from, Outbound { link: None, handle, past: Past::default() });
    }

    fn enqueue_adhoc(&mut self, now: Instant, from: NodeId, outbound: Outbound) {
        let priority = self.priority(outbound.handle);
        let Some(adhoc) = &mut self.adhoc else { return };
        let Some(station) = adhoc.stations.of(from) else { return };
        let limit = adhoc.config.queue;
        let interface = adhoc.interface(station);
        let refused = interface.queue.push(outbound, priority, limit);
        interface.metrics.queue_peak = interface.metrics.queue_peak.max(interface.queue.len());
        interface.metrics.queue_drops += u64::from(refused.is_some());
        match refused {
            Some(Refused::New) => self.refuse(now, outbound),
            Some(Refused::PushedOut(last)) => {
                self.take_in_queue(now, outbound);
                self.abandon(now, last, LinkDrop::QueueFull);
            }
            None => self.take_in_queue(now, outbound),
        }
        self.serve_adhoc(now, station);
    }

    fn priority(&mut self, handle: PacketHandle) -> Priority {
        match &self.packets.peek(handle).payload {
            Payload::Udp(datagram) if datagram.dst_port == aodv::PORT => Priority::Routing,
            Payload::Udp(_) | Payload::Tcp(_) | Payload::Opaque(_) | Payload::Fragment(_) => Priority::Data,
        }
    }

    fn take_in_queue(&mut self, now: Instant, Outbound { link, handle, .. }: Outbound) {
        if let Some(link) = link {
            self.links[link.index()].count_offer(None);
            self.watch(now, link, Point::Sent, handle);
        }
    }

    #[cold]
    fn refuse(&mut self, now: Instant, Outbound { link, handle, .. }: Outbound) {
        if let Some(link) = link {
            self.links[link.index()].count_offer(Some(LinkDrop::QueueFull));
            self.watch(now, link, Point::Dropped(LinkDrop::QueueFull), handle);
        }
        self.packets.remove(handle);
    }

    /// A packet that a link had accepted is thrown away.
    #[cold]
    pub(super) fn abandon(&mut self, now: Instant, outbound: Outbound, why: LinkDrop) {
        self.withdraw(now, outbound, why);
        self.packets.remove(outbound.handle);
    }

    /// A link no longer has a packet that it had accepted; what becomes of that is another matter.
    #[cold]
    fn withdraw(&mut self, now: Instant, Outbound { link, handle, .. }: Outbound, why: LinkDrop) {
        if let Some(link) = link {
            self.links[link.index()].count_cut();
            self.watch(now, link, Point::Dropped(why), handle);
        }
    }

    /// The next packet of an idle station begins.
    fn serve_adhoc(&mut self, now: Instant, station: u32) {
        let Some(adhoc) = &mut self.adhoc else { return };
        let interface = &mut adhoc.interfaces[station as usize];
        // A station without energy is down before its node is.
        if interface.current.is_some() || !adhoc.wifi.is_up(Station(station)) {
            return;
        }
        let Some((outbound, priority)) = interface.queue.pop() else { return };
        let to = outbound.link.map(|link| self.links[link.index()].to());
        let mpdu_len = data_len(outbound.handle.wire_len as usize);
        let mpdu_len = u16::try_from(mpdu_len).ok().filter(|len| *len <= adhoc.wifi.phy().max_mpdu);
        let Some(mpdu_len) = mpdu_len else { return self.too_long_for_a_frame(now, station, outbound) };
        let tag = adhoc.next_tag;
        adhoc.next_tag += 1;
        interface.metrics.packets += 1;
        interface.metrics.routing += u64::from(priority == Priority::Routing);
        interface.metrics.broadcasts += u64::from(to.is_none());
        interface.current = Some(Current { outbound, tag, arrived: false });
        let to = to.and_then(|node| adhoc.stations.of(node)).map(Station);
        let sent = adhoc.wifi.send(now, Station(station), Outgoing { to, mpdu_len, tag }, &mut self.events);
        debug_assert_eq!(sent, Ok(()), "a packet fits, and the station is up and has nothing else under way");
    }

    /// It does not go over the air at all, and the next one has its turn.
    #[cold]
    fn too_long_for_a_frame(&mut self, now: Instant, station: u32, outbound: Outbound) {
        if let Some(link) = outbound.link {
            self.links[link.index()].count_too_big();
        }
        if let Some(adhoc) = &mut self.adhoc {
            adhoc.interface(station).metrics.too_long += 1;
            let node = adhoc.stations.node(station);
            self.drop_at(now, node, NodeDrop::TooBig, outbound.handle);
        }
        self.serve_adhoc(now, station);
    }

    /// The radio, whichever there is, has something to do.
    pub(crate) fn handle_air(&mut self, now: Instant, station: u32, what: u32, generation: u32) {
        let Some(adhoc) = &mut self.adhoc else {
            return self.handle_radio(now, station, what, generation);
        };
        adhoc.wifi.handle_event(now, station, what, generation, &mut self.events);
        self.settle_adhoc(now);
    }

    /// What the radio has done leads to packets that arrive, and to further frames.
    fn settle_adhoc(&mut self, now: Instant) {
        while let Some(effect) = self.adhoc.as_mut().and_then(|a| a.wifi.poll_effect()) {
            match effect {
                Effect::Received { at, from, tag, .. } => self.frame_received(now, at.0, from.0, tag),
                Effect::Done { station, outcome, tag, .. } => self.frame_done(now, station.0, tag, outcome),
                Effect::Frame(frame) => self.watch_wifi_frame(&frame),
                Effect::Exhausted { station } => {
                    if let Some(adhoc) = &mut self.adhoc {
                        adhoc.interface(station.0).out_of_energy = true;
                        adhoc.exhausted.push_back(adhoc.stations.node(station.0));
                    }
                }
                Effect::Overheard { .. } => {}
            }
        }
    }

    fn frame_received(&mut self, now: Instant, at: u32, from: u32, tag: u64) {
        let Some(adhoc) = &mut self.adhoc else { return };
        let (node, neighbour) = (adhoc.stations.node(at), adhoc.stations.node(from));
        // A frame whose packet its sender has lost since, with all it had, is of no use.
        let current = adhoc.interface(from).current.as_mut().filter(|c| c.tag == tag);
        let Some(current) = current else { return };
        current.arrived = true;
        let Outbound { link, handle, .. } = current.outbound;
        let copy = self.packets.peek(handle).clone();
        let handle = self.packets.insert(copy);
        match link {
            Some(link) => {
                self.links[link.index()].count_delivered(handle.wire_len);
                if let Some(delivery) = self.arrive(now, link, handle) {
                    self.delivered.push_back(delivery);
                }
            }
            None => self.receive_from_all(now, node, neighbour, handle),
        }
    }

    fn receive_from_all(&mut self, now: Instant, at: NodeId, from: NodeId, handle: PacketHandle) {
        let packet = self.packets.remove(handle);
        if let (Payload::Udp(datagram), true) = (packet.payload, self.is_up(at)) {
            self.receive_datagram(now, at, (from, packet.src, packet.hop_limit), datagram);
        }
    }

    fn frame_done(&mut self, now: Instant, station: u32, tag: u64, outcome: Outcome) {
        let Some(adhoc) = &mut self.adhoc else { return };
        let node = adhoc.stations.node(station);
        let interface = adhoc.interface(station);
        let failed = match outcome {
            Outcome::Acknowledged | Outcome::Sent => false,
            Outcome::NoAck => true,
            // The node dies, and all that it has with it; observers may yet want to see the frame.
            Outcome::Down => return,
        };
        let Some(current) = interface.current.take_if(|c| c.tag == tag) else { return };
        interface.metrics.failures += u64::from(failed);
        let Outbound { link, handle, .. } = current.outbound;
        if let Some(link) = link {
            let event = if failed { LinkEvent::TimedOut } else { LinkEvent::Acknowledged };
            self.report(now, link, handle, event);
            if failed && !current.arrived {
                self.links[link.index()].count_lost();
                self.watch(now, link, Point::Dropped(LinkDrop::Loss), handle);
            }
        }
        match link.filter(|_| failed) {
            Some(link) if self.has_aodv(node) => self.next_hop_is_gone(now, station, link, current.outbound),
            Some(_) | None => {
                self.packets.remove(handle);
            }
        }
        self.serve_adhoc(now, station);
    }

    /// A next hop does not answer, and AODV is told. What waits for it is taken out of the queue.
    #[cold]
    fn next_hop_is_gone(&mut self, now: Instant, station: u32, link: LinkId, failed: Outbound) {
        let Some(adhoc) = &mut self.adhoc else { return };
        let node = adhoc.stations.node(station);
        let interface = adhoc.interface(station);
        let waiting = interface.queue.take_back(link);
        interface.metrics.taken_back += waiting.len() as u64;
        for outbound in &waiting {
            self.withdraw(now, *outbound, LinkDrop::Down);
        }
        let neighbour = self.links[link.index()].to();
        let rerouted = self.handle_link_break(now, node, neighbour, failed, waiting);
        if let Some(adhoc) = &mut self.adhoc {
            adhoc.interface(station).metrics.rerouted += rerouted;
        }
    }

    /// A node dies, with all that it has queued; or it lives again.
    pub(super) fn set_on_adhoc(&mut self, now: Instant, node: NodeId, up: bool) {
        let Some(adhoc) = &mut self.adhoc else { return };
        let Some(station) = adhoc.stations.of(node) else { return };
        adhoc.wifi.set_up(now, Station(station), up, &mut self.events);
        self.settle_adhoc(now);
        let Some(adhoc) = self.adhoc.as_mut().filter(|_| !up) else { return };
        let interface = adhoc.interface(station);
        let mut lost: Vec<Outbound> = interface.current.take().map(|c| c.outbound).into_iter().collect();
        lost.extend(interface.queue.drain());
        for outbound in lost {
            self.abandon(now, outbound, LinkDrop::Down);
        }
    }

    /// One direction of a link over the air goes down, or comes up: nothing is received there, whatever is sent.
    pub(super) fn set_adhoc_link(&mut self, link: LinkId, up: bool) {
        let Some(adhoc) = &mut self.adhoc else { return };
        let (from, to) = (self.links[link.index()].from(), self.links[link.index()].to());
        if let (Some(from), Some(to)) = (adhoc.stations.of(from), adhoc.stations.of(to)) {
            let loss = if up { adhoc.loss } else { 1.0 };
            adhoc.wifi.set_loss(Station(from), Station(to), loss);
        }
    }
}
