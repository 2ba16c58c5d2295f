//! What moves over the air, noted by an omniscient observer.

use std::collections::BTreeMap;

use anabranch_core::time::Instant;
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::trace::{Observer, Point};

/// When segments were given to the radio of a node, in seconds from when the sources began, in order of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Activity {
    /// Data segments.
    pub data: Vec<f64>,
    /// Whether each of them reached the next node.
    pub arrived: Vec<bool>,
    /// Acknowledgements.
    pub acks: Vec<f64>,
}

impl Activity {
    /// Data segments and acknowledgements given to a radio until then.
    pub fn transmissions(&self, until: f64) -> usize {
        count(&self.data, until) + count(&self.acks, until)
    }

    /// Of the data segments given to a radio until then, the share that reached the next node, sooner or later; 0 if
    /// there was none.
    pub fn delivery_ratio(&self, until: f64) -> f64 {
        let sent = &self.arrived[..count(&self.data, until)];
        sent.iter().filter(|arrived| **arrived).count() as f64 / sent.len().max(1) as f64
    }
}

/// How many of the times are not later.
fn count(times: &[f64], until: f64) -> usize {
    times.partition_point(|at| *at <= until)
}

/// The observer.
#[derive(Debug)]
pub(super) struct Meter {
    begin: Instant,
    cables: Vec<bool>,
    /// Data segments under way, by packet and link: where they stand in the activity. A lost one stays.
    under_way: BTreeMap<(u64, LinkId), usize>,
    pub(super) activity: Activity,
}

impl Meter {
    /// For sources that begin at `begin`.
    pub(super) fn new(begin: Instant) -> Self {
        Self { begin, cables: Vec::new(), under_way: BTreeMap::new(), activity: Activity::default() }
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
        if now < self.begin || self.cables[link.index()] {
            return;
        }
        let data = !segment.payload.is_empty();
        let at = now.saturating_since(self.begin).as_secs_f64();
        match point {
            Point::Sent if data => {
                self.under_way.insert((packet.id, link), self.activity.data.len());
                self.activity.data.push(at);
                self.activity.arrived.push(false);
            }
            Point::Sent if segment.is_pure_ack() => self.activity.acks.push(at),
            Point::Received if data => {
                if let Some(which) = self.under_way.remove(&(packet.id, link)) {
                    self.activity.arrived[which] = true;
                }
            }
            Point::Sent | Point::Received | Point::Dropped(_) => {}
        }
    }
}
