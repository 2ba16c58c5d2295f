//! Cables: point-to-point links, each with its own queue ([`crate::link`]).

use anabranch_core::paths::Metrics;
use anabranch_core::time::Instant;

use super::{Medium, View};
use crate::event::Event;
use crate::link::{self, LinkDrop, Offer};
use crate::loss::Fate;
use crate::network::Network;
use crate::network::forwarding::{Delivery, Past};
use crate::numbered::Numbered;
use crate::packet::{LinkId, MediumId, PacketHandle};
use crate::trace::Point;

/// Bytes of the IPv6 and TCP headers of a segment without options.
const HEADERS: u32 = 60;

/// State of cables besides their queues.
#[derive(Debug, Default)]
pub(in crate::network) struct Cable {
    /// Late packets (reordering or duplication), and the link from which each will arrive.
    late: Numbered<(LinkId, PacketHandle)>,
}

impl Medium for Cable {
    const ID: MediumId = MediumId::CABLE;

    #[inline(always)]
    fn transmit(net: &mut Network, now: Instant, link: LinkId, past: Past, handle: PacketHandle) {
        let Some(cable) = net.graph.link_mut(link).cable_mut() else { return };
        let packets = &mut net.packets;
        match cable.offer(now, handle, || packets.peek(handle).flow()) {
            Offer::AcceptedFirst(arrival) => {
                let generation = cable.generation();
                net.events.push(arrival, Event::Arrival { link, generation });
            }
            Offer::Accepted => {}
            Offer::Waits(due) => return net.wait(now, link, handle, due),
            Offer::DepartFirst => {
                // The packet that is due for departure makes room, whichever of the two events
                // comes first.
                net.handle_departure(now, link);
                return net.transmit(now, link, past, handle);
            }
            Offer::Refused(why) => {
                net.watch(now, link, Point::Dropped(why), handle);
                net.packets.remove(handle);
                return;
            }
        }
        if !net.observers.is_empty() {
            net.watch_accepted(now, link, handle);
        }
    }

    fn bit_rate(net: &Network, link: LinkId) -> Option<u64> {
        Some(net.graph.link(link).config().rate)
    }

    fn view(net: &mut Network, _: Instant, link: LinkId) -> Option<View> {
        let config = net.graph.link(link).config();
        let spacing = link::transmission_time(HEADERS, config.rate);
        let throughput = u32::try_from(config.rate / 8).unwrap_or(u32::MAX).max(1);
        Some(View { metrics: Metrics { latency: spacing + config.delay, throughput }, spacing })
    }
}

impl Network {
    /// The first packet in a cable's list arrives, unless the event is void. Returns a segment if
    /// the packet was for the node at the far end and completes one.
    pub fn handle_arrival(&mut self, now: Instant, link: LinkId, generation: u32) -> Option<Delivery> {
        let this = self.graph.link_mut(link);
        let (from, to) = (this.from(), this.to());
        let cable = this.cable_mut().filter(|cable| cable.generation() == generation)?;
        let arrival = cable.arrive(now);
        let hop = (link, from, to);
        self.schedule_arrival(link, arrival.next);
        let handle = arrival.handle;
        if let Some(event) = arrival.report {
            self.tell_of_outcome(now, link, handle, event);
        }
        if arrival.lost {
            self.watch(now, link, Point::Dropped(LinkDrop::Loss), handle);
            self.packets.remove(handle);
            return None;
        }
        match arrival.fate {
            Fate::Plain => self.arrive_at(now, hop, handle),
            Fate::Late(by) => {
                self.delay(now + by, link, handle);
                None
            }
            Fate::Twice(by) => {
                let copy = self.packets.peek(handle).clone();
                let copy = self.packets.insert(copy);
                self.delay(now + by, link, copy);
                if by.is_zero() {
                    return self.arrive_at(now, hop, handle);
                }
                self.delay(now + by, link, handle);
                None
            }
        }
    }

    /// Handles a packet that a queue with its own discipline has taken. The discipline may have
    /// dropped this packet or another one.
    #[cold]
    fn wait(&mut self, now: Instant, link: LinkId, handle: PacketHandle, due: Option<Instant>) {
        if let Some(due) = due {
            self.events.push(due, Event::Departure(link));
        }
        let Some(cable) = self.graph.link_mut(link).cable_mut() else { return };
        let dropped = cable.take_dropped();
        // Observers consider a packet that is dropped at once as never sent.
        if !dropped.iter().any(|(refused, _)| refused.is_of(handle)) {
            self.watch(now, link, Point::Sent, handle);
            self.watch_departure(now, link, handle, Instant::FAR_FUTURE);
        }
        self.forget(now, link, dropped);
    }

    /// The transmitter of a cable may be free.
    pub(crate) fn handle_departure(&mut self, now: Instant, link: LinkId) {
        let Some(cable) = self.graph.link_mut(link).cable_mut() else { return };
        let departure = cable.depart(now);
        let (dropped, generation) = (cable.take_dropped(), cable.generation());
        self.forget(now, link, dropped);
        if let Some(next) = departure.next {
            self.events.push(next, Event::Departure(link));
        }
        let Some((handle, arrival)) = departure.packet else { return };
        if departure.is_first {
            self.events.push(arrival, Event::Arrival { link, generation });
        }
        self.watch_departure(now, link, handle, now);
    }

    /// Drops packets that the discipline of a cable's queue has discarded.
    fn forget(&mut self, now: Instant, link: LinkId, dropped: Vec<(PacketHandle, LinkDrop)>) {
        for (handle, why) in dropped {
            self.watch(now, link, Point::Dropped(why), handle);
            self.packets.remove(handle);
        }
    }

    /// A late packet arrives.
    pub(crate) fn handle_late(&mut self, now: Instant, slot: u32) -> Option<Delivery> {
        let (link, handle) = self.media.cable.late.remove(slot);
        self.arrive(now, link, handle)
    }

    #[cold]
    fn delay(&mut self, until: Instant, link: LinkId, handle: PacketHandle) {
        let slot = self.media.cable.late.insert((link, handle));
        self.events.push(until, Event::Late(slot));
    }

    /// Schedules the next arrival of a cable.
    #[inline]
    pub(in crate::network) fn schedule_arrival(&mut self, link: LinkId, next: Option<Instant>) {
        if let (Some(next), Some(cable)) = (next, self.graph.link(link).cable()) {
            let generation = cable.generation();
            self.events.push(next, Event::Arrival { link, generation });
        }
    }

    /// Informs the observers of a packet that a cable has accepted.
    #[cold]
    fn watch_accepted(&mut self, now: Instant, link: LinkId, handle: PacketHandle) {
        let Some(cable) = self.graph.link(link).cable() else { return };
        // As queued, with the ECN mark if it got one.
        let (handle, start) = (cable.last().unwrap_or(handle), cable.last_start().unwrap_or(now));
        self.watch(now, link, Point::Sent, handle);
        if start > now {
            self.watch_departure(now, link, handle, start);
        }
    }
}
