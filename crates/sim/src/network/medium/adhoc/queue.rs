//! The interface queue: ns-2's `Queue/DropTail/PriQueue`.
//!
//! Routing messages have priority over data. A full queue drops from its tail: data to make room
//! for a routing message, otherwise the new packet. Routing messages keep their order, whereas ns-2
//! puts each one at the very front.

use std::collections::VecDeque;

use crate::network::medium::Outbound;
use crate::packet::LinkId;

/// The packet that a full queue has dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// The new packet.
    New,
    /// The last one of the queued packets.
    PushedOut(Outbound),
}

/// Priority class of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Priority {
    Routing,
    Data,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    routing: VecDeque<Outbound>,
    data: VecDeque<Outbound>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.routing.len() + self.data.len()
    }

    /// Adds a packet to a queue with a capacity of `limit` packets.
    pub(super) fn push(&mut self, packet: Outbound, priority: Priority, limit: usize) -> Option<Refused> {
        let full = self.len() >= limit;
        if priority == Priority::Data {
            if full {
                return Some(Refused::New);
            }
            self.data.push_back(packet);
            return None;
        }
        let last = if full { self.data.pop_back() } else { None };
        if full && last.is_none() {
            return Some(Refused::New);
        }
        self.routing.push_back(packet);
        last.map(Refused::PushedOut)
    }

    /// Takes the next packet.
    pub(super) fn pop(&mut self) -> Option<(Outbound, Priority)> {
        let routing = self.routing.pop_front().map(|packet| (packet, Priority::Routing));
        routing.or_else(|| Some((self.data.pop_front()?, Priority::Data)))
    }

    /// Takes out the data packets for a neighbour, in order.
    pub(super) fn take_back(&mut self, link: LinkId) -> Vec<Outbound> {
        let mut back = Vec::new();
        self.data.retain(|packet| {
            let stays = packet.link != Some(link);
            if !stays {
                back.push(*packet);
            }
            stays
        });
        back
    }

    /// Takes out all packets.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Outbound> {
        self.routing.drain(..).chain(self.data.drain(..))
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::segment::Segment;

    use super::Priority::{Data, Routing};
    use super::*;
    use crate::network::forwarding::Past;
    use crate::packet::{NodeId, Packet, PacketSlab, Payload};

    fn packets<const N: usize>() -> [Outbound; N] {
        let mut slab = PacketSlab::default();
        std::array::from_fn(|i| {
            let packet = Packet {
                id: i as u64,
                src: NodeId(0),
                dst: NodeId(1),
                wire_len: 40 + i as u32,
                identification: 0,
                hop_limit: 64,
                traffic_class: 0,
                path: 0,
                outer: None,
                payload: Payload::Tcp(Segment::default()),
            };
            Outbound { link: Some(LinkId(i as u32 % 2)), handle: slab.insert(packet), past: Past::NONE }
        })
    }

    #[test]
    fn routing_messages_go_first_and_in_order() {
        let [a, b, c, d] = packets();
        let mut queue = Queue::default();
        for (packet, priority) in [(a, Data), (b, Routing), (c, Data), (d, Routing)] {
            assert_eq!(queue.push(packet, priority, 4), None);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(b, Routing), (d, Routing), (a, Data), (c, Data)]);
    }

    #[test]
    fn a_full_queue_drops_from_its_tail() {
        let [a, b, c, d, e] = packets();
        let mut queue = Queue::default();
        assert_eq!(queue.push(a, Data, 2), None);
        assert_eq!(queue.push(b, Data, 2), None);
        assert_eq!(queue.push(c, Data, 2), Some(Refused::New));
        assert_eq!(queue.push(c, Routing, 2), Some(Refused::PushedOut(b)));
        assert_eq!(queue.push(d, Routing, 2), Some(Refused::PushedOut(a)));
        assert_eq!(queue.push(e, Routing, 2), Some(Refused::New));
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn what_waits_for_a_neighbour_is_taken_back_and_routing_messages_are_not() {
        let [a, b, c, d] = packets();
        let mut queue = Queue::default();
        for (packet, priority) in [(a, Data), (b, Data), (c, Data), (d, Routing)] {
            queue.push(packet, priority, 9);
        }
        assert_eq!(queue.take_back(LinkId(0)), [a, c]);
        assert_eq!(queue.take_back(LinkId(1)), [b]);
        assert_eq!(queue.drain().collect::<Vec<_>>(), [d]);
    }
}
