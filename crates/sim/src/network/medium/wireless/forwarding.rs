//! Fragments that go on one by one (RFC 8930), each as soon as it is here.
//!
//! The first fragment of a packet has its header: the node looks up where it goes, and remembers in
//! its *virtual reassembly buffer* under which tag the others will come and under which they leave.
//! It holds no packet: a fragment waits in the queue, as others do, and is gone when it has been
//! sent. One that is lost takes the rest of its packet with it on this hop; nodes that have some of
//! it already, up to the one that it is for, wait in vain until their time-out. Recovery as in RFC
//! 8931 is not there.
//!
//! A packet that goes on over a cable is put together, and so is one at a node that caches
//! segments. The same holds if a fragment's new header should not fit into its frame; a node that
//! cuts a packet leaves room for that.

use anabranch_core::time::{Duration, Instant};

use super::{Current, FRAGMENT, Interface, Medium, Outbound, Wireless};
use crate::event::{Agenda, Event};
use crate::frames::{self, Cut};
use crate::link::LinkDrop;
use crate::network::forwarding::{Past, Way};
use crate::network::{Forwarding, Network};
use crate::packet::{LinkId, NodeId, PacketHandle};
use crate::trace::{NodeDrop, Point};

/// What a node does with a packet in pieces that is for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FragmentForwarding {
    /// It puts it together before it goes on (RFC 4944).
    #[default]
    Reassembly,
    /// It passes each fragment on as soon as it is here (RFC 8930).
    Fragments(VirtualReassembly),
}

/// How a node passes fragments on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualReassembly {
    /// Packets of others that a node remembers at a time (RFC 8930 section 7 asks for a bound). An
    /// entry takes some twenty octets, where a packet takes 1280.
    pub entries: usize,
    /// How long the first fragment of a packet, in an entry or where packets are put together,
    /// waits for the last; in place of [`super::WirelessConfig::reassembly_timeout`]. A neighbour
    /// that passes fragments on has several packets under way, so that a new one does not show that
    /// the rest of an old one is lost, which would hold its place for a minute.
    pub timeout: Duration,
    /// From the moment when a fragment is settled to that when the next of the same packet may be
    /// sent, at least. RFC 8930 section 5 asks for one that lets the first fragment get out of the
    /// next node's way and out of earshot. There is none towards the node that the packet is for.
    pub gap: Duration,
}

impl Default for VirtualReassembly {
    /// Sixteen entries; 2 s, many times what the longest packet needs; a gap of 12 ms, about what a
    /// full O-QPSK frame takes over two further hops (`docs/reference/radio.md`).
    fn default() -> Self {
        Self { entries: 16, timeout: Duration::from_secs(2), gap: Duration::from_millis(12) }
    }
}

/// Where the next fragment of a datagram is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It has not come yet.
    Awaited,
    /// It waits for the radio.
    Queued,
    /// It is being sent.
    OnAir,
    /// It must not be sent before that.
    Held(Instant),
}

/// A packet whose fragments are sent one by one: the node's own, or an entry of its virtual
/// reassembly buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram {
    /// Its number on the hop that it takes.
    number: u32,
    /// The neighbour that it comes from, and its number there; `None` is the node's own.
    from: Option<(u32, u32)>,
    pub(super) link: LinkId,
    pub(super) handle: PacketHandle,
    cut: Cut,
    since: Instant,
    /// A bit for each fragment that is or was here.
    here: u32,
    /// The next that is to be sent.
    next: u32,
    stage: Stage,
}

impl Datagram {
    /// A packet of the node's own, which has all of it.
    pub(super) fn own(number: u32, (link, handle): (LinkId, PacketHandle), cut: Cut, since: Instant) -> Self {
        let (here, stage) = (u32::MAX, Stage::Queued);
        Self { number, from: None, link, handle, cut, since, here, next: 0, stage }
    }

    pub(super) fn is_own(&self) -> bool {
        self.from.is_none()
    }

    /// It is an entry whose fragments should all have come.
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

    /// The next fragment of a datagram queues, if it is here and nothing keeps it.
    fn queue_fragment(&mut self, number: u32) {
        let Some(datagram) = self.datagram(number) else { return };
        if datagram.stage == Stage::Awaited && datagram.here & 1 << datagram.next != 0 {
            datagram.stage = Stage::Queued;
            let outbound = datagram.outbound();
            self.waiting.push_back(outbound);
        }
    }

    /// What has waited for too long is forgotten, and returned; not while one of its fragments is
    /// being sent.
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
    /// A fragment has come from a neighbour. True if it goes on by itself, or has come to its end;
    /// false if the node is to put its packet together.
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
        if interface.partials.iter().any(|p| (p.from, p.number) == came_as)
            || !Self::passes_on(net, link, current.outbound.handle)
        {
            return false;
        }
        if piece == 0 {
            return Self::begin_entry(net, now, at, (link, came_as), current);
        }
        if let Some(wireless) = &mut net.media.wireless {
            wireless.interface(at).metrics.strays += 1;
        }
        true
    }

    /// The node at the end of a link passes a packet on without looking into it.
    fn passes_on(net: &Network, link: LinkId, handle: PacketHandle) -> bool {
        let at = net.graph.link(link).to();
        let node = net.graph.nodes[at.index()];
        let for_others = handle.dst != at && handle.dst != NodeId::ALL_RPL_NODES;
        let forwards = node.up && node.forwarding == Forwarding::On && !net.looks_inside(at);
        for_others && forwards && handle.hop_limit > 1
    }

    /// The first fragment of a packet for others is here; false if the packet is to be put
    /// together.
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

    /// A fragment of a packet that the node remembers.
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

    /// The next fragment of a datagram has its turn.
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

    /// A fragment is settled; true if that was the last of its packet that is sent.
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
            // Its time ran out while this fragment was being sent.
            come_back(&mut net.events, now, station);
        }
        if !good || datagram.next == datagram.cut.pieces() {
            interface.datagrams.remove(at);
            return true;
        }
        // Its destination sends nothing that could get in the way of the next.
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

    /// The gap behind a fragment, or the time of an entry, may be over.
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

/// Has [`Wireless::handle_fragments`] called.
fn come_back(events: &mut Agenda, at: Instant, station: u32) {
    events.push(at, Event::Medium { medium: Wireless::ID, station, what: FRAGMENT, generation: 0 });
}
