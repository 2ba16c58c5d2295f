//! Fragment forwarding (RFC 8930): each fragment is forwarded as soon as it arrives.
//!
//! The first fragment of a packet has its header. The node looks up the route and stores in its
//! *virtual reassembly buffer* the tag of the incoming and of the outgoing fragments. It stores no
//! packet: a fragment waits in the queue like a packet, and is removed when it has been sent. If a
//! fragment is lost, the rest of its packet is lost on this hop; nodes further on, up to the
//! destination, wait for it until their time-out. Recovery as in RFC 8931 is not implemented.
//!
//! A packet that continues over a cable is reassembled, and so is a packet at a node that caches
//! segments. So is a packet whose first fragment has no room for its new header; a node that
//! fragments a packet leaves this room.

use anabranch_core::time::{Duration, Instant};

use super::{Current, FRAGMENT, Interface, Medium, Outbound, Wireless};
use crate::event::{Agenda, Event};
use crate::frames::{self, Cut};
use crate::link::LinkDrop;
use crate::network::forwarding::{Past, Way};
use crate::network::{Forwarding, Network};
use crate::packet::{LinkId, NodeId, PacketHandle};
use crate::trace::{NodeDrop, Point};

/// How a node forwards a fragmented packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FragmentForwarding {
    /// Reassembles the packet before forwarding it (RFC 4944).
    #[default]
    Reassembly,
    /// Forwards each fragment as soon as it arrives (RFC 8930).
    Fragments(VirtualReassembly),
}

/// Options of fragment forwarding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualReassembly {
    /// Number of forwarded packets that a node tracks at the same time (RFC 8930 section 7 asks for
    /// a bound). An entry takes about twenty bytes, a packet 1280.
    pub entries: usize,
    /// Time for which the last fragment of a packet is awaited after the first, in an entry or in a
    /// reassembly; replaces [`super::WirelessConfig::reassembly_timeout`]. A neighbour that
    /// forwards fragments has several packets in flight, so a new packet does not show that the
    /// rest of an old one is lost. With the longer time an incomplete packet would occupy its place
    /// for a minute.
    pub timeout: Duration,
    /// Least time from the end of a fragment's transmission to the next fragment of the same
    /// packet. RFC 8930 section 5 asks for a gap that lets the first fragment travel out of range
    /// of the next. There is no gap before the destination of the packet.
    pub gap: Duration,
}

impl Default for VirtualReassembly {
    /// 16 entries; 2 s, many times the transmission time of the longest packet; a gap of 12 ms,
    /// about the time of a full O-QPSK frame over two further hops (`docs/reference/radio.md`).
    fn default() -> Self {
        Self { entries: 16, timeout: Duration::from_secs(2), gap: Duration::from_millis(12) }
    }
}

/// State of the next fragment of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It has not arrived yet.
    Awaited,
    /// It waits for the radio.
    Queued,
    /// It is being sent.
    OnAir,
    /// It must not be sent before this time.
    Held(Instant),
}

/// A packet whose fragments are sent one by one: a packet of the node itself, or an entry of its
/// virtual reassembly buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram {
    /// Number of the packet on its outgoing hop.
    number: u32,
    /// The neighbour from which the packet comes, and its number there; `None` for a packet of the
    /// node itself.
    from: Option<(u32, u32)>,
    pub(super) link: LinkId,
    pub(super) handle: PacketHandle,
    cut: Cut,
    since: Instant,
    /// One bit for each fragment that has arrived.
    here: u32,
    /// Index of the next fragment to send.
    next: u32,
    stage: Stage,
}

impl Datagram {
    /// A packet of the node itself, which has all fragments.
    pub(super) fn own(number: u32, (link, handle): (LinkId, PacketHandle), cut: Cut, since: Instant) -> Self {
        let (here, stage) = (u32::MAX, Stage::Queued);
        Self { number, from: None, link, handle, cut, since, here, next: 0, stage }
    }

    pub(super) fn is_own(&self) -> bool {
        self.from.is_none()
    }

    /// Whether it is an entry whose time has run out.
    fn expired(&self, now: Instant, timeout: Duration) -> bool {
        !self.is_own() && now.saturating_since(self.since) >= timeout
    }

    fn outbound(&self) -> Outbound {
        Outbound { link: Some(self.link), handle: self.handle, datagram: Some(self.number) }
    }
}

impl Interface {
    fn datagram(&mut self, number: u32) -> Option<&mut Datagram> {
        self.datagrams.iter_mut().find(|d| d.number == number)
    }

    /// Queues the next fragment of a datagram, if it has arrived and may be sent.
    fn queue_fragment(&mut self, number: u32) {
        let Some(datagram) = self.datagram(number) else { return };
        if datagram.stage == Stage::Awaited && datagram.here & 1 << datagram.next != 0 {
            datagram.stage = Stage::Queued;
            let outbound = datagram.outbound();
            self.waiting.push_back(outbound);
        }
    }

    /// Removes and returns the entries whose time has run out, except those with a fragment in
    /// transmission.
    fn expire(&mut self, now: Instant, timeout: Duration) -> Vec<Datagram> {
        let late = |d: &Datagram| d.stage != Stage::OnAir && d.expired(now, timeout);
        let expired: Vec<Datagram> = self.datagrams.iter().copied().filter(late).collect();
        self.datagrams.retain(|d| !late(d));
        self.waiting.retain(|o| !expired.iter().any(|d| o.datagram == Some(d.number)));
        self.metrics.entries_timed_out += expired.len() as u64;
        expired
    }
}

impl Wireless {
    /// Handles a fragment from a neighbour. Returns true if it is forwarded or discarded here,
    /// false if the node is to reassemble its packet.
    pub(super) fn pass_on_fragment(
        net: &mut Network,
        now: Instant,
        at: u32,
        from: u32,
        current: &Current,
        piece: u32,
    ) -> bool {
        let Some(wireless) = &mut net.media.wireless else { return false };
        let (FragmentForwarding::Fragments(_), Some(link)) =
            (wireless.config.forwarding, current.outbound.link)
        else {
            return false;
        };
        let came_as = (from, current.number);
        let interface = wireless.interface(at);
        if interface.datagrams.iter().any(|d| d.from == Some(came_as)) {
            Self::fragment_follows(net, now, at, (link, came_as), current, piece);
            return true;
        }
        // A packet of which this node has begun to reassemble fragments is reassembled to the end.
        if interface.partials.iter().any(|p| (p.from, p.number) == came_as)
            || !Self::passes_on(net, link, current.outbound.handle)
        {
            return false;
        }
        // Only the first fragment has the IPv6 header, from which the next hop follows.
        if piece == 0 {
            return Self::begin_entry(net, now, at, (link, came_as), current);
        }
        if let Some(wireless) = &mut net.media.wireless {
            wireless.interface(at).metrics.strays += 1;
        }
        true
    }

    /// Whether the node at the end of a link forwards a packet without reading its payload.
    fn passes_on(net: &Network, link: LinkId, handle: PacketHandle) -> bool {
        let at = net.graph.link(link).to();
        let node = net.graph.nodes[at.index()];
        let for_others = handle.dst != at && handle.dst != NodeId::ALL_RPL_NODES;
        let forwards = node.up && node.forwarding == Forwarding::On && !net.looks_inside(at);
        for_others && forwards && handle.hop_limit > 1
    }

    /// Handles the first fragment of a packet for another node. Returns false if the packet is to
    /// be reassembled.
    fn begin_entry(
        net: &mut Network,
        now: Instant,
        at: u32,
        (link, came_as): (LinkId, (u32, u32)),
        current: &Current,
    ) -> bool {
        let (neighbour, node) = (net.graph.link(link).from(), net.graph.link(link).to());
        let mut copy = net.packets.peek(current.outbound.handle).clone();
        copy.hop_limit -= 1;
        let handle = net.packets.insert(copy);
        let past = Past::from(neighbour);
        let next = match net.next_link(now, node, past, handle) {
            Way::Link(next) => next,
            Way::Nowhere => {
                net.drop_at(now, node, NodeDrop::NoRoute, handle);
                return true;
            }
            Way::Taken => return true,
        };
        let hop = (node, Some(net.graph.link(next).to()));
        let cut = frames::cut_again(net.config.ip, net.packets.peek(handle), hop, &current.cut);
        let (Some(cut), true) = (cut, net.graph.link(next).medium() == Wireless::ID) else {
            net.packets.remove(handle);
            return false;
        };
        let Some(wireless) = &mut net.media.wireless else { return false };
        let FragmentForwarding::Fragments(config) = wireless.config.forwarding else { return false };
        let (limit, timeout) = (wireless.config.queue as usize, config.timeout);
        let interface = wireless.interface(at);
        let entries = interface.datagrams.iter().filter(|d| !d.is_own()).count();
        let full = entries >= config.entries || interface.waiting.len() >= limit;
        interface.metrics.entries_refused += u64::from(full);
        let refusal = match net.graph.link(next).is_up() {
            false => Some(LinkDrop::Down),
            true => full.then_some(LinkDrop::QueueFull),
        };
        net.graph.link_mut(next).count_offer(refusal);
        if let Some(why) = refusal {
            net.watch(now, next, Point::Dropped(why), handle);
            net.packets.remove(handle);
            return true;
        }
        let number = wireless.next_number();
        let interface = wireless.interface(at);
        interface.datagrams.push(Datagram {
            number,
            from: Some(came_as),
            link: next,
            handle,
            cut,
            since: now,
            here: 1,
            next: 0,
            stage: Stage::Awaited,
        });
        interface.metrics.entries_peak = interface.metrics.entries_peak.max(entries as u64 + 1);
        interface.queue_fragment(number);
        come_back(&mut net.events, now + timeout, at);
        net.watch(now, next, Point::Sent, handle);
        Self::serve(net, now, at);
        true
    }

    /// Handles a later fragment of a packet that has an entry.
    fn fragment_follows(
        net: &mut Network,
        now: Instant,
        at: u32,
        (link, came_as): (LinkId, (u32, u32)),
        current: &Current,
        piece: u32,
    ) {
        let Some(wireless) = &mut net.media.wireless else { return };
        let interface = wireless.interface(at);
        let Some(datagram) = interface.datagrams.iter_mut().find(|d| d.from == Some(came_as)) else { return };
        let before = datagram.here;
        datagram.here |= 1 << piece;
        let (number, here) = (datagram.number, datagram.here);
        interface.queue_fragment(number);
        // `here != before`: a repeated last fragment does not count again.
        if here != before && here.count_ones() == current.cut.pieces() {
            if let Some(sender) = &mut wireless.interface(came_as.0).current {
                sender.arrived = true;
            }
            let node = net.graph.link(link).to();
            net.relays[node.index()].metrics.forwarded += 1;
            net.graph.link_mut(link).count_delivered(current.outbound.handle.wire_len);
            net.watch(now, link, Point::Received, current.outbound.handle);
        }
        Self::serve(net, now, at);
    }

    /// Sends the next fragment of a datagram.
    pub(super) fn send_fragment(
        net: &mut Network,
        now: Instant,
        station: u32,
        outbound: Outbound,
        number: u32,
    ) {
        let Some(wireless) = &mut net.media.wireless else { return };
        let interface = wireless.interface(station);
        let Some(datagram) = interface.datagram(number) else { return };
        datagram.stage = Stage::OnAir;
        let &mut Datagram { cut, next: piece, .. } = datagram;
        let outbound = Outbound { datagram: Some(number), ..outbound };
        interface.current =
            Some(Current { outbound, number, cut, piece, last: piece, refused: 0, arrived: false });
        Self::send_piece(net, now, station);
    }

    /// Handles a settled fragment. Returns true if it was the last one of its packet to be sent.
    pub(super) fn fragment_done(
        net: &mut Network,
        now: Instant,
        station: u32,
        number: u32,
        good: bool,
    ) -> bool {
        let Some(wireless) = &mut net.media.wireless else { return false };
        let FragmentForwarding::Fragments(config) = wireless.config.forwarding else { return false };
        let timeout = config.timeout;
        let interface = wireless.interface(station);
        let Some(at) = interface.datagrams.iter().position(|d| d.number == number) else { return false };
        let datagram = &mut interface.datagrams[at];
        interface.metrics.fragments_forwarded += u64::from(good && !datagram.is_own());
        datagram.next += 1;
        if datagram.expired(now, timeout) && datagram.next < datagram.cut.pieces() {
            // The time of the entry ran out while this fragment was being sent.
            come_back(&mut net.events, now, station);
        }
        // Without one fragment the destination cannot reassemble the packet, so the rest is not
        // sent.
        if !good || datagram.next == datagram.cut.pieces() {
            interface.datagrams.remove(at);
            return true;
        }
        // The destination forwards nothing, so it cannot interfere with the next fragment.
        let at_end = net.graph.link(datagram.link).to() == datagram.handle.dst;
        if config.gap.is_zero() || at_end {
            datagram.stage = Stage::Awaited;
            interface.queue_fragment(number);
        } else {
            datagram.stage = Stage::Held(now + config.gap);
            come_back(&mut net.events, now + config.gap, station);
        }
        false
    }

    /// Handles the end of the gap after a fragment, or of the time of an entry.
    pub(super) fn handle_fragments(net: &mut Network, now: Instant, station: u32) {
        let Some(wireless) = &mut net.media.wireless else { return };
        let timeout = wireless.config.patience();
        for expired in wireless.interface(station).expire(now, timeout) {
            net.graph.link_mut(expired.link).count_lost();
            net.watch(now, expired.link, Point::Dropped(LinkDrop::Loss), expired.handle);
            net.packets.remove(expired.handle);
        }
        let Some(wireless) = &mut net.media.wireless else { return };
        let interface = wireless.interface(station);
        let over = |d: &&mut Datagram| matches!(d.stage, Stage::Held(until) if until <= now);
        let numbers: Vec<u32> = interface.datagrams.iter_mut().filter(over).map(|d| d.number).collect();
        for number in numbers {
            if let Some(datagram) = interface.datagram(number) {
                datagram.stage = Stage::Awaited;
            }
            interface.queue_fragment(number);
        }
        Self::serve(net, now, station);
        Self::settle_radio(net, now);
    }
}

/// Schedules a call of [`Wireless::handle_fragments`].
fn come_back(events: &mut Agenda, at: Instant, station: u32) {
    events.push(at, Event::Medium { medium: Wireless::ID, station, what: FRAGMENT, generation: 0 });
}
