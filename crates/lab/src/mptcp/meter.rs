//! What moves over the air, noted by an omniscient observer.

use anabranch_core::segment::Flags;
use anabranch_core::time::Instant;
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::trace::{Observer, Point};

/// When segments moved over the air, in seconds from when the sources began, in order of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Activity {
    /// Data segments given to the radio of a node.
    pub data_sent: Vec<f64>,
    /// Those that reached the next.
    pub data_arrived: Vec<f64>,
    /// Acknowledgements given to the radio of a node.
    pub acks_sent: Vec<f64>,
}

/// The observer.
#[derive(Debug)]
pub(super) struct Meter {
    begin: Instant,
    cables: Vec<bool>,
    pub(super) activity: Activity,
}

impl Meter {
    /// For sources that begin at `begin`.
    pub(super) fn new(begin: Instant) -> Self {
        Self { begin, cables: Vec::new(), activity: Activity::default() }
    }
}

impl Observer for Meter {
    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        // The base station's links are not of the radio.
        let station = nodes.iter().position(|n| *n == "bs").map(|i| NodeId(i as u32));
        let touches = |end: NodeId| Some(end) == station;
        self.cables = links.iter().map(|&(from, to)| touches(from) || touches(to)).collect();
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        let Payload::Tcp(segment) = &packet.payload else { return };
        if self.cables[link.index()] {
            return;
        }
        let data = !segment.payload.is_empty();
        let at = now.saturating_since(self.begin).as_secs_f64();
        match point {
            Point::Sent if data => self.activity.data_sent.push(at),
            Point::Sent if segment.flags == Flags::ACK => self.activity.acks_sent.push(at),
            Point::Received if data => self.activity.data_arrived.push(at),
            Point::Sent | Point::Received | Point::Dropped(_) => {}
        }
    }
}
