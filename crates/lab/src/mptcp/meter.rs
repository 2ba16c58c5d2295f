//! What moves over the air, counted by an omniscient observer.

use anabranch_core::segment::Flags;
use anabranch_core::time::Instant;
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::trace::{Observer, Point};

/// What one run has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    /// Data segments given to the radio of a node.
    pub(super) data: u64,
    /// Those that reached the next.
    pub(super) data_arrived: u64,
    /// Acknowledgements given to the radio of a node.
    pub(super) acks: u64,
}

/// The observer.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// The base station, whose links are not of the radio.
    station: Option<NodeId>,
    cables: Vec<bool>,
    pub(super) counts: Counts,
}

impl Observer for Meter {
    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        self.station = nodes.iter().position(|n| *n == "bs").map(|i| NodeId(i as u32));
        let touches = |end: NodeId| Some(end) == self.station;
        self.cables = links.iter().map(|&(from, to)| touches(from) || touches(to)).collect();
    }

    fn on_packet(&mut self, _: Instant, link: LinkId, point: Point, packet: &Packet) {
        let Payload::Tcp(segment) = &packet.payload else { return };
        if self.cables[link.index()] {
            return;
        }
        let data = !segment.payload.is_empty();
        match point {
            Point::Sent if data => self.counts.data += 1,
            Point::Sent if segment.flags == Flags::ACK => self.counts.acks += 1,
            Point::Received if data => self.counts.data_arrived += 1,
            Point::Sent | Point::Received | Point::Dropped(_) => {}
        }
    }
}
