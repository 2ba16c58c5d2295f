//! Packets over IEEE 802.11: the interface queue and frames of a node, and the packets that
//! neighbours receive.
//!
//! A packet is one data frame with LLC and SNAP (RFC 1042); the MTU of the links excludes longer
//! packets. The queue is ns-2's `Queue/DropTail/PriQueue`: routing messages have priority over
//! data, and a full queue drops from its tail.
//!
//! A packet stays with its sender until its frame is settled, and a receiver makes a copy. So a
//! packet that the sender considers lost may have arrived, if only acknowledgements were lost.

mod queue;
mod watch;

use std::sync::Arc;

use anabranch_core::dtc::LinkEvent;
use anabranch_core::time::Instant;
use anabranch_wire::ieee80211::data_len;

use super::stations::Stations;
use super::{Figures, GivenBack, Medium, Outbound};
use crate::link::{LinkConfig, LinkDrop};
use crate::network::Network;
use crate::network::forwarding::Past;
use crate::packet::{LinkId, MediumId, NodeId, PacketHandle, Payload, is_of_aodv};
use crate::trace::{NodeDrop, Observer, Point};
use crate::wifi::{Effect, EnergyUse, Outcome, Outgoing, Station, Wifi};

use queue::{Priority, Queue, Refused};

/// Options of every node of an ad hoc network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdhocConfig {
    /// Capacity of a node's queue in packets, without the packet at the MAC: 50, the usual `ifqlen`
    /// in ns-2. ns-2 itself refuses the packet that would be the 50th.
    pub queue: usize,
    /// Largest IP packet in bytes, IP header included: 1500, as for Ethernet. A larger value is
    /// reduced to the room in the longest MPDU.
    pub mtu: u32,
    /// Number of times that a packet whose next hop does not answer is given to AODV again, which
    /// may know or find another route; the packets queued for this next hop go with it. 1 by
    /// default; with 0 all of them are dropped, as in ns-2.
    pub reroutes: u8,
}

impl Default for AdhocConfig {
    fn default() -> Self {
        Self { queue: 50, mtu: 1500, reroutes: 1 }
    }
}

impl AdhocConfig {
    /// The values of ns-2.35, which differ in one option: no packet gets another route.
    pub fn ns2() -> Self {
        Self { reroutes: 0, ..Self::default() }
    }
}

/// Counters of a node's interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AdhocMetrics {
    /// Packets passed to the MAC, including routing messages.
    pub packets: u64,
    /// Routing messages among them.
    pub routing: u64,
    /// Broadcasts among them.
    pub broadcasts: u64,
    /// Packets that a full queue refused, or replaced by a routing message.
    pub queue_drops: u64,
    /// Peak number of waiting packets.
    pub queue_peak: usize,
    /// Packets that the MAC gave up.
    pub failures: u64,
    /// Packets taken back from the queue because their next hop did not answer, without those that
    /// the MAC gave up.
    pub taken_back: u64,
    /// Packets, given up or taken back, that got another route or wait for one.
    pub rerouted: u64,
    /// Packets too long for a frame.
    pub too_long: u64,
}

/// The channel and its stations.
#[derive(Debug)]
pub(in crate::network) struct Adhoc {
    config: AdhocConfig,
    wifi: Wifi,
    /// Loss probability of a link that is up.
    loss: f64,
    stations: Stations,
    interfaces: Vec<Interface>,
    next_tag: u64,
}

#[derive(Debug, Default)]
struct Interface {
    queue: Queue,
    current: Option<Current>,
    metrics: AdhocMetrics,
    out_of_energy: bool,
}

/// The packet at the MAC.
#[derive(Clone, Copy, Debug)]
struct Current {
    outbound: Outbound,
    tag: u64,
    /// Whether the neighbour has received it.
    arrived: bool,
}

impl Network {
    /// Puts nodes on an IEEE 802.11 channel: `nodes` are the stations of `wifi`, in order; `loss`
    /// is the loss probability of its links. [`Network::add_adhoc_link`] adds links between them.
    pub(crate) fn set_adhoc(&mut self, config: AdhocConfig, wifi: Wifi, loss: f64, nodes: Vec<NodeId>) {
        let stations = Stations::new(nodes, self.graph.node_count());
        let interfaces = (0..stations.count()).map(|_| Interface::default()).collect();
        let adhoc = Adhoc { config, wifi, loss, stations, interfaces, next_tag: 0 };
        self.media.adhoc = Some(Box::new(adhoc));
    }

    /// Adds a link over the channel: `to` receives from `from`.
    pub(crate) fn add_adhoc_link(&mut self, from: NodeId, to: NodeId, config: &Arc<LinkConfig>) {
        self.graph.add_link_over_air((from, to), Adhoc::ID, config);
    }

    /// The IEEE 802.11 channel, for metrics.
    pub fn wifi(&self) -> Option<&Wifi> {
        self.media.adhoc.as_ref().map(|a| &a.wifi)
    }

    /// The IEEE 802.11 station of a node that has one.
    pub fn wifi_station(&self, node: NodeId) -> Option<Station> {
        self.media.adhoc.as_ref()?.stations.of(node).map(Station)
    }

    fn adhoc_interface(&self, node: NodeId) -> Option<&Interface> {
        let station = self.wifi_station(node)?;
        Some(&self.media.adhoc.as_ref()?.interfaces[station.0 as usize])
    }

    /// Counters of a node's interface to the IEEE 802.11 channel.
    pub fn adhoc_metrics(&self, node: NodeId) -> Option<&AdhocMetrics> {
        Some(&self.adhoc_interface(node)?.metrics)
    }

    /// Number of packets that wait for the MAC at a node.
    pub fn adhoc_queue(&self, node: NodeId) -> usize {
        self.adhoc_interface(node).map_or(0, |interface| interface.queue.len())
    }

    /// Whether a node's radio has used up its energy.
    pub(crate) fn is_exhausted(&self, node: NodeId) -> bool {
        self.adhoc_interface(node).is_some_and(|interface| interface.out_of_energy)
    }
}

impl Medium for Adhoc {
    const ID: MediumId = crate::wifi::MEDIUM;

    /// The interface does not know whether the link is down: the MAC finds out.
    fn transmit(net: &mut Network, now: Instant, link: LinkId, past: Past, handle: PacketHandle) {
        let from = net.graph.link(link).from();
        Self::enqueue(net, now, from, Outbound { link: Some(link), handle, past });
    }

    fn broadcast(net: &mut Network, now: Instant, from: NodeId, handle: PacketHandle) {
        Self::enqueue(net, now, from, Outbound { link: None, handle, past: Past::NONE });
    }

    fn has_node(net: &Network, node: NodeId) -> bool {
        net.wifi_station(node).is_some()
    }

    fn handle_event(net: &mut Network, now: Instant, station: u32, what: u32, generation: u32) {
        if let Some(adhoc) = &mut net.media.adhoc {
            adhoc.wifi.handle_event(now, station, what, generation, &mut net.events);
        }
        Self::settle(net, now);
    }

    fn energy_use(net: &Network, now: Instant, node: NodeId) -> Option<EnergyUse> {
        let station = net.wifi_station(node)?;
        Some(net.wifi()?.energy_use(now, station))
    }

    fn routing(net: &Network, node: NodeId) -> u64 {
        net.adhoc_metrics(node).map_or(0, |metrics| metrics.routing)
    }

    fn figures(net: &Network, now: Instant, node: NodeId) -> Option<Figures> {
        let station = net.wifi_station(node)?;
        let (wifi, interface) = (net.wifi()?, net.adhoc_metrics(node)?);
        let m = wifi.metrics(station);
        let counts = [
            ("frames", m.transmissions),
            ("retries", m.retries),
            ("no_ack", m.no_ack),
            ("collisions", m.collisions),
            ("routing_packets", interface.routing),
            ("dropped_queue_full", interface.queue_drops),
        ];
        let counts = counts.into_iter().map(|(name, count)| (name, count as f64, "1"));
        Some(("wifi", counts.chain([("energy_j", wifi.energy_j(now, station), "J")]).collect()))
    }

    fn set_node(net: &mut Network, now: Instant, node: NodeId, up: bool) {
        let Some(adhoc) = &mut net.media.adhoc else { return };
        let Some(station) = adhoc.stations.of(node) else { return };
        adhoc.wifi.set_up(now, Station(station), up, &mut net.events);
        Self::settle(net, now);
        // Settled first, so that the cut frame is reported before the packets of the station.
        let Some(adhoc) = net.media.adhoc.as_mut().filter(|_| !up) else { return };
        let interface = adhoc.interface(station);
        let mut lost: Vec<Outbound> = interface.current.take().map(|c| c.outbound).into_iter().collect();
        lost.extend(interface.queue.drain());
        for outbound in lost {
            Self::abandon(net, now, outbound, LinkDrop::Down);
        }
    }

    fn jam(net: &mut Network, now: Instant, node: NodeId, begins: bool) {
        let Some(adhoc) = &mut net.media.adhoc else { return };
        let Some(station) = adhoc.stations.of(node) else { return };
        adhoc.wifi.jam(now, Station(station), begins, &mut net.events);
        Self::settle(net, now);
    }

    /// On a link that is down nothing is received, but stations continue to send.
    fn set_link(net: &mut Network, link: LinkId, up: bool) {
        let Some(adhoc) = &mut net.media.adhoc else { return };
        let link = net.graph.link(link);
        if let (Some(from), Some(to)) = (adhoc.stations.of(link.from()), adhoc.stations.of(link.to())) {
            // The sender is not told: its MAC detects the failure by missing acknowledgements.
            let loss = if up { adhoc.loss } else { 1.0 };
            adhoc.wifi.set_loss(Station(from), Station(to), loss);
        }
    }

    fn attach(net: &mut Network, observer: &mut dyn Observer) {
        let Some(adhoc) = &mut net.media.adhoc else { return };
        if observer.on_attach_wifi(&net.graph.wireless_links(), adhoc.wifi.phy()) {
            adhoc.wifi.show_frames();
        }
    }
}

impl Adhoc {
    fn interface(&mut self, station: u32) -> &mut Interface {
        &mut self.interfaces[station as usize]
    }

    fn enqueue(net: &mut Network, now: Instant, from: NodeId, outbound: Outbound) {
        let priority = Self::priority(net, outbound.handle);
        let Some(adhoc) = &mut net.media.adhoc else { return };
        let Some(station) = adhoc.stations.of(from) else { return };
        let limit = adhoc.config.queue;
        let interface = adhoc.interface(station);
        let refused = interface.queue.push(outbound, priority, limit);
        interface.metrics.queue_peak = interface.metrics.queue_peak.max(interface.queue.len());
        interface.metrics.queue_drops += u64::from(refused.is_some());
        match refused {
            Some(Refused::New) => Self::refuse(net, now, outbound),
            Some(Refused::PushedOut(last)) => {
                Self::take_in_queue(net, now, outbound);
                Self::abandon(net, now, last, LinkDrop::QueueFull);
            }
            None => Self::take_in_queue(net, now, outbound),
        }
        Self::serve(net, now, station);
    }

    fn priority(net: &mut Network, handle: PacketHandle) -> Priority {
        match &net.packets.peek(handle).payload {
            Payload::Udp(datagram) if is_of_aodv(datagram) => Priority::Routing,
            Payload::Udp(_) | Payload::Tcp(_) | Payload::Opaque(_) | Payload::Fragment(_) => Priority::Data,
        }
    }

    fn take_in_queue(net: &mut Network, now: Instant, Outbound { link, handle, .. }: Outbound) {
        if let Some(link) = link {
            net.graph.link_mut(link).count_offer(None);
            net.watch(now, link, Point::Sent, handle);
        }
    }

    #[cold]
    fn refuse(net: &mut Network, now: Instant, Outbound { link, handle, .. }: Outbound) {
        if let Some(link) = link {
            net.graph.link_mut(link).count_offer(Some(LinkDrop::QueueFull));
            net.watch(now, link, Point::Dropped(LinkDrop::QueueFull), handle);
        }
        net.packets.remove(handle);
    }

    /// Drops a packet that a link had accepted.
    #[cold]
    fn abandon(net: &mut Network, now: Instant, outbound: Outbound, why: LinkDrop) {
        Self::withdraw(net, now, outbound, why);
        net.packets.remove(outbound.handle);
    }

    /// Removes a packet from the counts of a link that had accepted it; its caller decides what
    /// happens to it.
    #[cold]
    fn withdraw(net: &mut Network, now: Instant, Outbound { link, handle, .. }: Outbound, why: LinkDrop) {
        if let Some(link) = link {
            net.graph.link_mut(link).count_cut();
            net.watch(now, link, Point::Dropped(why), handle);
        }
    }

    /// Begins with the next packet of an idle station.
    fn serve(net: &mut Network, now: Instant, station: u32) {
        let Some(adhoc) = &mut net.media.adhoc else { return };
        let interface = &mut adhoc.interfaces[station as usize];
        // A station without energy goes down before its node does.
        if interface.current.is_some() || !adhoc.wifi.is_up(Station(station)) {
            return;
        }
        let Some((outbound, priority)) = interface.queue.pop() else { return };
        let to = outbound.link.map(|link| net.graph.link(link).to());
        let mpdu_len = data_len(outbound.handle.wire_len as usize);
        let mpdu_len = u16::try_from(mpdu_len).ok().filter(|len| *len <= adhoc.wifi.phy().max_mpdu);
        let Some(mpdu_len) = mpdu_len else {
            return Self::too_long_for_a_frame(net, now, station, outbound);
        };
        let tag = adhoc.next_tag;
        adhoc.next_tag += 1;
        interface.metrics.packets += 1;
        interface.metrics.routing += u64::from(priority == Priority::Routing);
        interface.metrics.broadcasts += u64::from(to.is_none());
        interface.current = Some(Current { outbound, tag, arrived: false });
        let to = to.and_then(|node| adhoc.stations.of(node)).map(Station);
        let sent = adhoc.wifi.send(now, Station(station), Outgoing { to, mpdu_len, tag }, &mut net.events);
        debug_assert_eq!(sent, Ok(()), "a packet fits, and the station is up and has nothing else under way");
    }

    /// Drops a packet that cannot be sent over the air, and continues with the next one.
    #[cold]
    fn too_long_for_a_frame(net: &mut Network, now: Instant, station: u32, outbound: Outbound) {
        if let Some(link) = outbound.link {
            net.graph.link_mut(link).count_too_big();
        }
        if let Some(adhoc) = &mut net.media.adhoc {
            adhoc.interface(station).metrics.too_long += 1;
            let node = adhoc.stations.node(station);
            net.drop_at(now, node, NodeDrop::TooBig, outbound.handle);
        }
        Self::serve(net, now, station);
    }

    /// Handles the effects of the channel: packets that arrive, and further frames.
    fn settle(net: &mut Network, now: Instant) {
        while let Some(effect) = net.media.adhoc.as_mut().and_then(|a| a.wifi.poll_effect()) {
            match effect {
                Effect::Received { at, from, tag, .. } => Self::frame_received(net, now, at.0, from.0, tag),
                Effect::Done { station, outcome, tag, .. } => {
                    Self::frame_done(net, now, station.0, tag, outcome)
                }
                Effect::Frame(frame) => Self::watch_wifi_frame(net, &frame),
                Effect::Exhausted { station } => {
                    if let Some(adhoc) = &mut net.media.adhoc {
                        adhoc.interface(station.0).out_of_energy = true;
                        net.exhausted.push_back(adhoc.stations.node(station.0));
                    }
                }
                Effect::Overheard { .. } => {}
            }
        }
    }

    fn frame_received(net: &mut Network, now: Instant, at: u32, from: u32, tag: u64) {
        let Some(adhoc) = &mut net.media.adhoc else { return };
        let (node, neighbour) = (adhoc.stations.node(at), adhoc.stations.node(from));
        // A frame whose sender has lost the packet since then, by going down, is ignored.
        let current = adhoc.interface(from).current.as_mut().filter(|c| c.tag == tag);
        let Some(current) = current else { return };
        current.arrived = true;
        let Outbound { link, handle, .. } = current.outbound;
        let copy = net.packets.peek(handle).clone();
        let handle = net.packets.insert(copy);
        match link {
            Some(link) => {
                net.graph.link_mut(link).count_delivered(handle.wire_len);
                if let Some(delivery) = net.arrive(now, link, handle) {
                    net.delivered.push_back(delivery);
                }
            }
            None => net.receive_from_all(now, node, neighbour, handle),
        }
    }

    fn frame_done(net: &mut Network, now: Instant, station: u32, tag: u64, outcome: Outcome) {
        let Some(adhoc) = &mut net.media.adhoc else { return };
        let node = adhoc.stations.node(station);
        let interface = adhoc.interface(station);
        let failed = match outcome {
            Outcome::Acknowledged | Outcome::Sent => false,
            Outcome::NoAck => true,
            // The node is going down and its packets are dropped with it, after observers have seen
            // the frame.
            Outcome::Down => return,
        };
        let Some(current) = interface.current.take_if(|c| c.tag == tag) else { return };
        interface.metrics.failures += u64::from(failed);
        let Outbound { link, handle, .. } = current.outbound;
        if let Some(link) = link {
            let event = if failed { LinkEvent::TimedOut } else { LinkEvent::Acknowledged };
            net.tell_of_outcome(now, link, handle, event);
            if failed && !current.arrived {
                net.graph.link_mut(link).count_lost();
                net.watch(now, link, Point::Dropped(LinkDrop::Loss), handle);
            }
        }
        match link.filter(|_| failed) {
            Some(link) if net.takes_back(node) => {
                Self::next_hop_is_gone(net, now, station, link, current.outbound);
            }
            Some(_) | None => {
                net.packets.remove(handle);
            }
        }
        Self::serve(net, now, station);
    }

    /// Tells the node's router that a next hop does not answer, and takes the packets that wait for
    /// it out of the queue.
    #[cold]
    fn next_hop_is_gone(net: &mut Network, now: Instant, station: u32, link: LinkId, failed: Outbound) {
        let Some(adhoc) = &mut net.media.adhoc else { return };
        let reroutes = adhoc.config.reroutes;
        let interface = adhoc.interface(station);
        let waiting = interface.queue.take_back(link);
        interface.metrics.taken_back += waiting.len() as u64;
        for outbound in &waiting {
            Self::withdraw(net, now, *outbound, LinkDrop::Down);
        }
        let rerouted = net.give_back(now, link, GivenBack { failed, waiting, reroutes });
        if let Some(adhoc) = &mut net.media.adhoc {
            adhoc.interface(station).metrics.rerouted += rerouted;
        }
    }
}
