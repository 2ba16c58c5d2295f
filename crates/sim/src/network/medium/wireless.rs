//! Packets over IEEE 802.15.4: the queue and frames of a node, and the packets that neighbours
//! receive.
//!
//! 6LoWPAN is between IP and the frame (RFC 4944, RFC 6282): a packet is compressed and, if it does
//! not fit into a frame, fragmented. Every hop reassembles it before forwarding (route-over, RFC
//! 6606 section 1.2), or forwards fragments one by one ([`FragmentForwarding`]). If the link layer
//! gives up a frame, the rest of its packet is dropped too.
//!
//! A packet stays with its sender until its last frame is settled. A receiver that has all frames
//! makes a copy. So a packet that the sender considers lost may have arrived, as on real radios.

mod forwarding;
mod sight;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_core::dtc::LinkEvent;
use anabranch_core::time::{Duration, Instant};

use super::stations::Stations;
use super::{Figures, LinkNews, Medium, View};
use crate::frames::{self, Cut};
use crate::link::{Link, LinkConfig, LinkDrop};
use crate::network::Network;
use crate::network::forwarding::Past;
use crate::packet::{LinkId, MediumId, NodeId, PacketHandle};
use crate::radio::{Effect, EnergyUse, Outcome, Outgoing, Radio, Station};
use crate::routing::hop_over_air;
use crate::trace::{NodeDrop, Observer, Point};

use forwarding::Datagram;
pub use forwarding::{FragmentForwarding, VirtualReassembly};
use sight::Sight;

/// Event besides those of the radio: a station may send the next fragment of a packet, or drop an
/// incomplete one.
const FRAGMENT: u32 = u32::MAX;

/// Options of every node on the channel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WirelessConfig {
    /// Capacity of a node's queue in packets, including broadcasts, without the packet in
    /// transmission.
    pub queue: u32,
    /// Number of fragmented packets that a node reassembles at the same time. A small node has
    /// memory for one or two.
    pub reassemblies: usize,
    /// Time for which a node waits for the remaining fragments of a packet (RFC 4944 section 5.3:
    /// at most 60 s).
    pub reassembly_timeout: Duration,
    /// How a node forwards a fragmented packet.
    pub forwarding: FragmentForwarding,
    /// Number of times that a frame is handed to the MAC again after it found no free channel; each
    /// time CSMA-CA starts anew. After the last failure the packet is dropped. IEEE Std
    /// 802.15.4-2020 leaves such repetitions to the next higher layer.
    pub access_retries: u8,
    /// Number of successive unacknowledged packets after which a neighbour is considered lost, if
    /// [`silent_for`](Self::silent_for) has passed as well. Packets dropped for lack of a free
    /// channel do not count, since they say nothing about the link.
    pub lost_after: u32,
    /// Time since the last frame of a neighbour before it can be considered lost.
    pub silent_for: Duration,
}

impl Default for WirelessConfig {
    fn default() -> Self {
        Self {
            queue: 32,
            reassemblies: 4,
            reassembly_timeout: Duration::from_secs(60),
            forwarding: FragmentForwarding::Reassembly,
            access_retries: 0,
            lost_after: 4,
            silent_for: Duration::from_secs(20),
        }
    }
}

impl WirelessConfig {
    /// Time for which fragments wait for the rest of their packet.
    fn patience(&self) -> Duration {
        match self.forwarding {
            FragmentForwarding::Reassembly => self.reassembly_timeout,
            FragmentForwarding::Fragments(how) => how.timeout,
        }
    }
}

/// Counters of a node's adaptation layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WirelessMetrics {
    /// Packets reassembled.
    pub joined: u64,
    /// Packets of which fragments were missing at the time-out.
    pub timed_out: u64,
    /// Fragments dropped because there was no room to reassemble.
    pub no_room: u64,
    /// Routing messages passed to the radio.
    pub routing: u64,
    /// Broadcast packets sent.
    pub broadcasts: u64,
    /// Broadcast packets dropped because the queue was full.
    pub broadcasts_dropped: u64,
    /// Fragments forwarded one by one for other nodes.
    pub fragments_forwarded: u64,
    /// Packets of other nodes refused for lack of room in the virtual reassembly buffer or the
    /// queue.
    pub entries_refused: u64,
    /// Peak number of entries in the virtual reassembly buffer.
    pub entries_peak: u64,
    /// Packets of other nodes of which fragments were missing at the time-out.
    pub entries_timed_out: u64,
    /// Fragments for other nodes that belong to no entry.
    pub strays: u64,
}

/// The radio and its stations.
#[derive(Debug)]
pub(in crate::network) struct Wireless {
    config: WirelessConfig,
    radio: Radio,
    stations: Stations,
    interfaces: Vec<Interface>,
    next_number: u32,
}

/// The interface of a node.
#[derive(Debug, Default)]
struct Interface {
    waiting: VecDeque<Outbound>,
    current: Option<Current>,
    partials: Vec<Partial>,
    /// Packets whose fragments are sent one by one.
    datagrams: Vec<Datagram>,
    neighbours: Vec<Neighbour>,
    metrics: WirelessMetrics,
    sight: Sight,
}

#[derive(Clone, Copy, Debug)]
struct Outbound {
    /// `None` for a broadcast.
    link: Option<LinkId>,
    handle: PacketHandle,
    /// The datagram of which this is the next fragment; `None` for a whole packet.
    datagram: Option<u32>,
}

/// The packet whose frames are being sent.
#[derive(Clone, Copy, Debug)]
struct Current {
    outbound: Outbound,
    number: u32,
    cut: Cut,
    /// Index of the frame in transmission.
    piece: u32,
    /// Index of the last frame that is sent in this turn.
    last: u32,
    /// Number of times that the frame has found no free channel.
    refused: u8,
    arrived: bool,
}

/// A packet of which some fragments have arrived.
#[derive(Clone, Copy, Debug)]
struct Partial {
    from: u32,
    number: u32,
    since: Instant,
    here: u32,
}

/// The link layer's record of a neighbour.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    station: u32,
    link: LinkId,
    heard: Instant,
    failures: u32,
}

/// The tag of a frame: number of the packet at its sender, and index of the fragment.
fn tag(number: u32, piece: u32) -> u64 {
    u64::from(number) << 32 | u64::from(piece)
}

impl Wireless {
    fn new(config: WirelessConfig, radio: Radio, nodes: Vec<NodeId>, count: usize) -> Self {
        let interface = |station| {
            let neighbours = Vec::with_capacity(radio.reachable(station).count());
            Interface { neighbours, ..Interface::default() }
        };
        let interfaces = (0..nodes.len()).map(|i| interface(Station(i as u32))).collect();
        let stations = Stations::new(nodes, count);
        Self { config, radio, stations, interfaces, next_number: 0 }
    }

    fn station(&self, node: NodeId) -> Option<u32> {
        self.stations.of(node)
    }

    fn interface(&mut self, station: u32) -> &mut Interface {
        &mut self.interfaces[station as usize]
    }

    /// Whether the queue of a station is full.
    fn is_full(&self, station: u32) -> bool {
        self.interfaces[station as usize].waiting.len() >= self.config.queue as usize
    }

    /// A number that identifies a packet on one hop. Its lower half is the datagram tag.
    fn next_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        number
    }
}

impl Interface {
    fn neighbour(&mut self, station: u32) -> Option<&mut Neighbour> {
        let at = self.neighbours.binary_search_by_key(&station, |n| n.station).ok()?;
        self.neighbours.get_mut(at)
    }

    /// Handles a fragment. Returns true if it was the last one missing.
    fn join(
        &mut self,
        now: Instant,
        config: &WirelessConfig,
        (from, number): (u32, u32),
        (piece, of): (u32, u32),
    ) -> bool {
        let before = self.partials.len();
        self.partials.retain(|p| now.saturating_since(p.since) < config.patience());
        self.metrics.timed_out += (before - self.partials.len()) as u64;
        // A neighbour that does not forward fragments sends one packet at a time, so its earlier
        // packet will never be complete.
        if config.forwarding == FragmentForwarding::Reassembly {
            self.partials.retain(|p| p.from != from || p.number == number);
        }
        let at = match self.partials.iter().position(|p| (p.from, p.number) == (from, number)) {
            Some(at) => at,
            None if self.partials.len() >= config.reassemblies => {
                self.metrics.no_room += 1;
                return false;
            }
            None => {
                self.partials.push(Partial { from, number, since: now, here: 0 });
                self.partials.len() - 1
            }
        };
        self.partials[at].here |= 1 << piece;
        if self.partials[at].here.count_ones() < of {
            return false;
        }
        self.partials.swap_remove(at);
        self.metrics.joined += 1;
        true
    }
}

impl Network {
    /// Puts nodes on the channel: `nodes` are the stations of `radio`, in order.
    /// [`Network::add_wireless_link`] adds links between them.
    pub(crate) fn set_wireless(&mut self, config: WirelessConfig, mut radio: Radio, nodes: Vec<NodeId>) {
        radio.start(&mut self.events);
        let wireless = Wireless::new(config, radio, nodes, self.graph.node_count());
        self.media.wireless = Some(Box::new(wireless));
    }

    /// Adds a link over the air: `to` receives from `from`.
    pub(crate) fn add_wireless_link(&mut self, from: NodeId, to: NodeId, config: &Arc<LinkConfig>) {
        let link = self.graph.add_link_over_air((from, to), Wireless::ID, config);
        let Some(wireless) = &mut self.media.wireless else { return };
        let (Some(a), Some(b)) = (wireless.station(from), wireless.station(to)) else { return };
        let neighbours = &mut wireless.interfaces[a as usize].neighbours;
        let at = neighbours.partition_point(|n| n.station < b);
        neighbours.insert(at, Neighbour { station: b, link, heard: Instant::ZERO, failures: 0 });
    }

    /// The radio, for metrics.
    pub fn radio(&self) -> Option<&Radio> {
        self.media.wireless.as_ref().map(|w| &w.radio)
    }

    /// The station of a node on the channel.
    pub fn station(&self, node: NodeId) -> Option<u32> {
        self.media.wireless.as_ref()?.station(node)
    }

    /// Counters of a node's adaptation layer.
    pub fn wireless_metrics(&self, node: NodeId) -> Option<&WirelessMetrics> {
        let wireless = self.media.wireless.as_ref()?;
        Some(&wireless.interfaces[wireless.station(node)? as usize].metrics)
    }
}

impl Medium for Wireless {
    const ID: MediumId = crate::radio::MEDIUM;

    fn transmit(net: &mut Network, now: Instant, link: LinkId, _: Past, handle: PacketHandle) {
        let this = net.graph.link(link);
        let (from, up) = (this.from(), this.is_up());
        let wireless = net.media.wireless.as_ref();
        let full = wireless.is_none_or(|w| w.station(from).is_none_or(|s| w.is_full(s)));
        let refusal = if !up {
            Some(LinkDrop::Down)
        } else if full {
            Some(LinkDrop::QueueFull)
        } else {
            None
        };
        net.graph.link_mut(link).count_offer(refusal);
        match refusal {
            Some(why) => {
                net.watch(now, link, Point::Dropped(why), handle);
                net.packets.remove(handle);
            }
            None => {
                net.watch(now, link, Point::Sent, handle);
                Self::enqueue(net, now, from, Outbound { link: Some(link), handle, datagram: None });
            }
        }
    }

    /// A broadcast is dropped if the queue is full.
    fn broadcast(net: &mut Network, now: Instant, from: NodeId, handle: PacketHandle) {
        if let Some(wireless) = &mut net.media.wireless
            && let Some(station) = wireless.station(from)
            && wireless.is_full(station)
        {
            wireless.interface(station).metrics.broadcasts_dropped += 1;
            net.packets.remove(handle);
            return;
        }
        Self::enqueue(net, now, from, Outbound { link: None, handle, datagram: None });
    }

    fn has_node(net: &Network, node: NodeId) -> bool {
        net.station(node).is_some()
    }

    fn handle_event(net: &mut Network, now: Instant, station: u32, what: u32, generation: u32) {
        if what == FRAGMENT {
            return Self::handle_fragments(net, now, station);
        }
        if let Some(wireless) = &mut net.media.wireless {
            wireless.radio.handle_event(now, station, what, generation, &mut net.events);
        }
        Self::settle_radio(net, now);
    }

    fn energy_use(net: &Network, now: Instant, node: NodeId) -> Option<EnergyUse> {
        let station = net.station(node)?;
        Some(net.radio()?.energy_use(now, Station(station)))
    }

    fn routing(net: &Network, node: NodeId) -> u64 {
        net.wireless_metrics(node).map_or(0, |metrics| metrics.routing)
    }

    fn figures(net: &Network, now: Instant, node: NodeId) -> Option<Figures> {
        let station = Station(net.station(node)?);
        let wireless = net.media.wireless.as_ref()?;
        let m = wireless.radio.metrics(station);
        let mut counts = vec![
            ("frames", m.transmissions),
            ("retries", m.retries),
            ("no_ack", m.no_ack),
            ("channel_access_failures", m.channel_access_failures),
            ("collisions", m.collisions),
        ];
        if wireless.config.forwarding != FragmentForwarding::Reassembly {
            let m = wireless.interfaces[station.0 as usize].metrics;
            counts.extend([
                ("fragments_forwarded", m.fragments_forwarded),
                ("entries_refused", m.entries_refused),
                ("entries_timed_out", m.entries_timed_out),
            ]);
        }
        let counts = counts.into_iter().map(|(name, count)| (name, count as f64, "1"));
        let energy = ("energy_j", wireless.radio.energy_j(now, station), "J");
        let mut figures: Vec<_> = counts.chain([energy]).collect();
        if wireless.radio.has_sleepers() {
            let times = wireless.radio.state_time(now, station);
            let awake = (times.transmit + times.receive + times.listen).as_secs_f64();
            let on = awake + times.sleep.as_secs_f64();
            let duty_cycle = if on > 0.0 { awake / on } else { 1.0 };
            figures.extend([("wakeups", m.wakeups as f64, "1"), ("duty_cycle", duty_cycle, "1")]);
        }
        Some(("radio", figures))
    }

    fn set_node(net: &mut Network, now: Instant, node: NodeId, up: bool) {
        let Some(station) = net.station(node) else { return };
        let Some(wireless) = &mut net.media.wireless else { return };
        wireless.radio.set_up(now, Station(station), up, &mut net.events);
        Self::watch_last_frame(net);
        let Some(wireless) = &mut net.media.wireless else { return };
        let interface = wireless.interface(station);
        interface.partials.clear();
        let current = interface.current.take().map(|c| c.outbound);
        // The packet of a fragment is in `datagrams`, so it is dropped once, from there.
        let whole = current.into_iter().chain(interface.waiting.drain(..)).filter(|o| o.datagram.is_none());
        let whole = whole.map(|o| (o.link, o.handle));
        let in_pieces = interface.datagrams.drain(..).map(|d| (Some(d.link), d.handle));
        let lost: Vec<(Option<LinkId>, PacketHandle)> = whole.chain(in_pieces).collect();
        for (link, handle) in lost {
            if let Some(link) = link {
                net.graph.link_mut(link).count_cut();
                net.watch(now, link, Point::Dropped(LinkDrop::Down), handle);
            }
            net.packets.remove(handle);
        }
    }

    fn jam(net: &mut Network, now: Instant, node: NodeId, begins: bool) {
        let Some(station) = net.station(node) else { return };
        if let Some(wireless) = &mut net.media.wireless {
            wireless.radio.jam(now, Station(station), begins);
        }
    }

    fn length(net: &Network, link: &Link) -> Option<u64> {
        let wireless = net.media.wireless.as_ref()?;
        let (from, to) = (wireless.station(link.from())?, wireless.station(link.to())?);
        Some(hop_over_air(&wireless.radio, Station(from), Station(to)))
    }

    fn bit_rate(net: &Network, _: LinkId) -> Option<u64> {
        Some(net.media.wireless.as_ref()?.radio.phy().bit_rate)
    }

    fn view(net: &mut Network, now: Instant, link: LinkId) -> Option<View> {
        net.media.wireless.as_mut()?.view(now, net.graph.link(link).from())
    }

    fn attach(net: &mut Network, observer: &mut dyn Observer) {
        let Some(wireless) = &mut net.media.wireless else { return };
        if observer.on_attach_radio(&net.graph.wireless_links()) {
            wireless.radio.show_frames();
        }
    }
}

impl Wireless {
    fn enqueue(net: &mut Network, now: Instant, from: NodeId, outbound: Outbound) {
        let Some(station) = net.station(from) else {
            net.packets.remove(outbound.handle);
            return;
        };
        if let Some(wireless) = &mut net.media.wireless {
            wireless.interface(station).waiting.push_back(outbound);
        }
        Self::serve(net, now, station);
        Self::settle_radio(net, now);
    }

    /// Begins with the next packet of an idle station.
    fn serve(net: &mut Network, now: Instant, station: u32) {
        let Some(wireless) = &mut net.media.wireless else { return };
        let node = wireless.stations.node(station);
        let interface = &mut wireless.interfaces[station as usize];
        if interface.current.is_some() {
            return;
        }
        // One packet of the node itself at a time; fragments of other nodes are sent between its
        // fragments.
        let busy = interface.datagrams.iter().any(Datagram::is_own);
        let next = interface.waiting.iter().position(|o| !busy || o.datagram.is_some());
        let Some(outbound) = next.and_then(|at| interface.waiting.remove(at)) else { return };
        if let Some(number) = outbound.datagram {
            return Self::send_fragment(net, now, station, outbound, number);
        }
        interface.metrics.broadcasts += u64::from(outbound.link.is_none());
        let to = outbound.link.map(|link| net.graph.link(link).to());
        let shape = wireless.radio.phy().into();
        let packet = net.packets.peek(outbound.handle);
        interface.metrics.routing += u64::from(packet.is_routing());
        let one_by_one = wireless.config.forwarding != FragmentForwarding::Reassembly && to.is_some();
        let cut = if one_by_one { frames::cut_to_pass_on } else { frames::cut };
        let Some(cut) = cut(net.config.ip, packet, (node, to), shape) else {
            return Self::too_long(net, now, station, outbound);
        };
        let number = wireless.next_number();
        if let (true, Some(link)) = (one_by_one && cut.pieces() > 1, outbound.link) {
            let own = Datagram::own(number, (link, outbound.handle), cut, now);
            wireless.interface(station).datagrams.push(own);
            return Self::send_fragment(net, now, station, outbound, number);
        }
        let last = cut.pieces() - 1;
        wireless.interfaces[station as usize].current =
            Some(Current { outbound, number, cut, piece: 0, last, refused: 0, arrived: false });
        Self::send_piece(net, now, station);
    }

    fn send_piece(net: &mut Network, now: Instant, station: u32) {
        let Some(wireless) = &mut net.media.wireless else { return };
        let interface = &mut wireless.interfaces[station as usize];
        let Some(current) = interface.current else { return };
        let psdu_len = current.cut.psdu_len(current.piece);
        let pending = Self::another_follows(interface, &current);
        interface.sight.frames += 1;
        interface.sight.octets += u64::from(psdu_len);
        let to = current.outbound.link.map(|link| net.graph.link(link).to());
        let to = to.and_then(|node| wireless.station(node));
        let tag = tag(current.number, current.piece);
        let outgoing = Outgoing { to: to.map(Station), psdu_len, tag, pending };
        let (radio, events) = (&mut wireless.radio, &mut net.events);
        // A repetition keeps the sequence number, by which receivers detect a duplicate.
        let sent = match current.refused {
            0 => radio.send(now, Station(station), outgoing, events),
            _ => radio.send_again(now, Station(station), outgoing, events),
        };
        debug_assert_eq!(sent, Ok(()), "a piece fits, and the station has nothing else under way");
    }

    /// Whether another frame to the same neighbour follows this one: of the same packet, or of the
    /// next packet.
    fn another_follows(interface: &Interface, current: &Current) -> bool {
        let next = || interface.waiting.front().is_some_and(|next| next.link == current.outbound.link);
        current.outbound.link.is_some() && (current.piece < current.last || next())
    }

    /// Drops a packet that cannot be sent over the air, and continues with the next one.
    #[cold]
    fn too_long(net: &mut Network, now: Instant, station: u32, outbound: Outbound) {
        if let Some(link) = outbound.link {
            net.graph.link_mut(link).count_too_big();
        }
        if let Some(wireless) = &net.media.wireless {
            let node = wireless.stations.node(station);
            net.drop_at(now, node, NodeDrop::TooBig, outbound.handle);
        }
        Self::serve(net, now, station);
    }

    /// Handles the effects of the radio: packets that arrive, and further frames.
    pub(super) fn settle_radio(net: &mut Network, now: Instant) {
        while let Some(effect) = net.media.wireless.as_mut().and_then(|w| w.radio.poll_effect()) {
            match effect {
                Effect::Received { at, from, tag, .. } => Self::piece_received(net, now, at.0, from.0, tag),
                Effect::Done { station, outcome, tag, attempts } => {
                    Self::piece_done(net, now, station.0, tag, outcome, attempts);
                }
                Effect::Frame { .. } => Self::watch_frame(net, effect),
            }
        }
    }

    fn piece_received(net: &mut Network, now: Instant, at: u32, from: u32, tag: u64) {
        let Some(wireless) = &mut net.media.wireless else { return };
        let config = wireless.config;
        // A frame whose sender has lost the packet since then, by going down, is ignored.
        let Some(current) = wireless.interfaces[from as usize].current else { return };
        let (number, piece) = ((tag >> 32) as u32, tag as u32);
        let interface = &mut wireless.interfaces[at as usize];
        if let Some(neighbour) = interface.neighbour(from) {
            // Any frame from a neighbour proves that the link works.
            neighbour.heard = now;
            neighbour.failures = 0;
        }
        if current.number != number {
            return;
        }
        let pieces = current.cut.pieces();
        if pieces > 1 && Self::pass_on_fragment(net, now, at, from, &current, piece) {
            return;
        }
        let Some(wireless) = &mut net.media.wireless else { return };
        let interface = wireless.interface(at);
        if pieces > 1 && !interface.join(now, &config, (from, number), (piece, pieces)) {
            return;
        }
        let node = wireless.stations.node(at);
        let neighbour = wireless.stations.node(from);
        if let Some(current) = &mut wireless.interfaces[from as usize].current {
            current.arrived = true;
        }
        // A copy: the sender keeps its packet until the frame is acknowledged.
        let copy = net.packets.peek(current.outbound.handle).clone();
        let handle = net.packets.insert(copy);
        match current.outbound.link {
            Some(link) => {
                net.graph.link_mut(link).count_delivered(handle.wire_len);
                if let Some(delivery) = net.arrive(now, link, handle) {
                    net.delivered.push_back(delivery);
                }
            }
            None => net.receive_from_all(now, node, neighbour, handle),
        }
    }

    fn piece_done(net: &mut Network, now: Instant, station: u32, tag: u64, outcome: Outcome, attempts: u8) {
        let Some(wireless) = &net.media.wireless else { return };
        let config = wireless.config;
        // The packets of a node that went down were dropped at that time.
        let current = wireless.interfaces[station as usize].current;
        let Some(current) = current.filter(|c| c.number == (tag >> 32) as u32) else { return };
        // Evidence about the link. A frame that was not sent, or not sent as often as allowed,
        // gives none.
        let evidence = match outcome {
            Outcome::Acknowledged | Outcome::Sent => Some(true),
            Outcome::NoAck => Some(false),
            Outcome::ChannelAccessFailure | Outcome::Down => None,
        };
        let about = current.outbound.link.zip(evidence);
        if let Some((link, good)) = about {
            net.tell_of_link(now, link, LinkNews::Transmissions { attempts, acknowledged: good });
        }
        let good = evidence == Some(true);
        let next = if outcome == Outcome::ChannelAccessFailure && current.refused < config.access_retries {
            Some(Current { refused: current.refused + 1, ..current })
        } else if good && current.piece < current.last {
            Some(Current { piece: current.piece + 1, refused: 0, ..current })
        } else {
            None
        };
        let Some(wireless) = &mut net.media.wireless else { return };
        wireless.interface(station).current = next;
        if next.is_some() {
            return Self::send_piece(net, now, station);
        }
        let gone = about.and_then(|(link, good)| wireless.note_outcome(now, station, link, good));
        let over = match current.outbound.datagram {
            Some(number) => Self::fragment_done(net, now, station, number, good),
            None => true,
        };
        if over {
            Self::packet_done(net, now, current, good);
        }
        if let Some(link) = gone {
            net.tell_of_link(now, link, LinkNews::NeighbourLost);
        }
        Self::serve(net, now, station);
    }

    /// Records whether a neighbour has acknowledged a packet. Returns the link to it if the
    /// neighbour is considered lost from now on.
    fn note_outcome(&mut self, now: Instant, station: u32, link: LinkId, good: bool) -> Option<LinkId> {
        let config = self.config;
        let neighbour = self.interface(station).neighbours.iter_mut().find(|n| n.link == link)?;
        neighbour.failures = if good { 0 } else { neighbour.failures + 1 };
        if good {
            neighbour.heard = now;
        }
        let silent = now.saturating_since(neighbour.heard) >= config.silent_for;
        if neighbour.failures < config.lost_after || !silent {
            return None;
        }
        neighbour.failures = 0;
        Some(link)
    }

    /// Finishes a packet whose last frame is settled, or which has no further frames to send.
    fn packet_done(net: &mut Network, now: Instant, current: Current, good: bool) {
        if let Some(link) = current.outbound.link {
            let event = if good { LinkEvent::Acknowledged } else { LinkEvent::TimedOut };
            net.tell_of_outcome(now, link, current.outbound.handle, event);
            if !good && !current.arrived {
                net.graph.link_mut(link).count_lost();
                net.watch(now, link, Point::Dropped(LinkDrop::Loss), current.outbound.handle);
            }
        }
        net.packets.remove(current.outbound.handle);
    }
}
