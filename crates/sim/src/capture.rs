//! [`Capture`] writes the packets of a run as pcapng with true bytes, for Wireshark.
//!
//! Every cable is an interface named after its ends, such as `cn-gw1`; what goes from the first end to the
//! second is outbound. A packet is there once for every link that accepted it, at the instant at which the
//! link took it into its queue: the view of a capture at the sending end. What the link then lost bears a
//! comment that begins with `lost:`. What a full queue or a dead link refused was never sent, and is not there.
//!
//! A packet is written once its fate is known, so a capture holds what is under way in memory; the file is in
//! order of time all the same.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::Write;

use anabranch_core::time::Instant;

use crate::link::LinkDrop;
use crate::octets;
use crate::packet::{IpVersion, LinkId, NodeId, Packet};
use crate::pcapng::{CaptureError, CaptureWriter, Direction, InterfaceInfo, LinkType};
use crate::trace::{Observer, Point};

/// An observer that writes a capture. The first error ends the capture and is kept for [`Capture::finish`].
#[derive(Debug)]
pub struct Capture<W: Write> {
    ip: IpVersion,
    output: Output<W>,
    /// The interface of each link, and which way it leads there.
    links: Vec<(usize, Direction)>,
    /// Packets in order of time; the first is one whose fate is not known.
    waiting: VecDeque<Waiting>,
    /// How many have left the front of `waiting`.
    written: u64,
    /// The places of those whose fate is not known, counted from the first packet of the run.
    under_way: BTreeMap<(LinkId, u64), u64>,
}

enum Output<W: Write> {
    /// The interfaces are not known yet.
    Unopened(W),
    Open(CaptureWriter<W>),
    Failed(CaptureError),
    /// Only within a change from one of the others to the next.
    Nowhere,
}

#[derive(Debug)]
struct Waiting {
    sent: Instant,
    link: LinkId,
    octets: Vec<u8>,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Unknown,
    Arrived,
    Lost(LinkDrop),
}

impl<W: Write + Send + 'static> Capture<W> {
    /// A capture of a network that speaks `ip`, written to `out`.
    pub fn new(out: W, ip: IpVersion) -> Self {
        Self {
            ip,
            output: Output::Unopened(out),
            links: Vec::new(),
            waiting: VecDeque::new(),
            written: 0,
            under_way: BTreeMap::new(),
        }
    }

    /// Ends the capture, with the packets that are still under way; the writer, flushed, or what went wrong.
    pub fn finish(mut self) -> Result<W, CaptureError> {
        while let Some(packet) = self.waiting.pop_front() {
            self.write(&packet);
        }
        match self.output {
            Output::Unopened(out) => CaptureWriter::new(out, &[])?.finish(),
            Output::Open(writer) => writer.finish(),
            Output::Failed(error) => Err(error),
            Output::Nowhere => unreachable!("an output is put back where it was taken"),
        }
    }

    fn sent(&mut self, now: Instant, link: LinkId, packet: &Packet) {
        match octets::write(self.ip, packet) {
            Ok(octets) => {
                let place = self.written + self.waiting.len() as u64;
                self.under_way.insert((link, packet.id), place);
                self.waiting.push_back(Waiting { sent: now, link, octets, fate: Fate::Unknown });
            }
            Err(error) => self.output = Output::Failed(error.into()),
        }
    }

    fn settled(&mut self, link: LinkId, packet: &Packet, fate: Fate) {
        // One that the link refused, or took before the capture began, is unknown here.
        let Some(place) = self.under_way.remove(&(link, packet.id)) else { return };
        self.waiting[(place - self.written) as usize].fate = fate;
        while self.waiting.front().is_some_and(|p| p.fate != Fate::Unknown) {
            let Some(packet) = self.waiting.pop_front() else { return };
            self.written += 1;
            self.write(&packet);
        }
    }

    fn write(&mut self, packet: &Waiting) {
        let Output::Open(writer) = &mut self.output else { return };
        let (interface, direction) = self.links[packet.link.index()];
        let comment = match packet.fate {
            Fate::Unknown | Fate::Arrived => None,
            Fate::Lost(LinkDrop::Loss) => Some("lost: by the channel"),
            Fate::Lost(LinkDrop::Down) => Some("lost: the link went down"),
            Fate::Lost(LinkDrop::QueueFull) => Some("lost: the queue was full"),
        };
        if let Err(error) = writer.packet(interface, packet.sent, direction, &packet.octets, comment) {
            self.output = Output::Failed(error);
        }
    }
}

impl<W: Write + Send + 'static> Observer for Capture<W> {
    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        let (interfaces, of_links) = interfaces(nodes, links);
        self.links = of_links;
        self.output = match std::mem::replace(&mut self.output, Output::Nowhere) {
            Output::Unopened(out) => {
                CaptureWriter::new(out, &interfaces).map_or_else(Output::Failed, Output::Open)
            }
            opened => opened,
        };
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        // After an error nothing is kept any more.
        if !matches!(self.output, Output::Open(_)) {
            return;
        }
        match point {
            Point::Sent => self.sent(now, link, packet),
            Point::Received => self.settled(link, packet, Fate::Arrived),
            Point::Dropped(why) => self.settled(link, packet, Fate::Lost(why)),
        }
    }
}

impl<W: Write> fmt::Debug for Output<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unopened(_) => f.write_str("Unopened"),
            Self::Open(_) => f.write_str("Open"),
            Self::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
            Self::Nowhere => f.write_str("Nowhere"),
        }
    }
}

/// One interface for a link and the next link back that has none; a second cable between the same nodes bears
/// a number.
fn interfaces(nodes: &[&str], links: &[(NodeId, NodeId)]) -> (Vec<InterfaceInfo>, Vec<(usize, Direction)>) {
    let mut interfaces: Vec<InterfaceInfo> = Vec::new();
    let mut of_links = Vec::with_capacity(links.len());
    let mut one_way: BTreeMap<(NodeId, NodeId), VecDeque<usize>> = BTreeMap::new();
    let mut cables: BTreeMap<(NodeId, NodeId), u32> = BTreeMap::new();
    for &(from, to) in links {
        if let Some(interface) = one_way.get_mut(&(to, from)).and_then(VecDeque::pop_front) {
            of_links.push((interface, Direction::Inbound));
            continue;
        }
        let count = cables.entry((from.min(to), from.max(to))).or_default();
        *count += 1;
        let [a, b] = [nodes[from.index()], nodes[to.index()]];
        let name = if *count == 1 { format!("{a}-{b}") } else { format!("{a}-{b}-{count}") };
        one_way.entry((from, to)).or_default().push_back(interfaces.len());
        of_links.push((interfaces.len(), Direction::Outbound));
        let description = format!("outbound is from {a} to {b}");
        interfaces.push(InterfaceInfo { name, description, link_type: LinkType::RAW_IP });
    }
    (interfaces, of_links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cable_is_one_interface_and_has_two_ways() {
        let [a, b, c] = [0, 1, 2].map(NodeId);
        let (interfaces, of_links) =
            interfaces(&["a", "b", "c"], &[(a, b), (b, a), (b, c), (a, b), (b, a), (c, b), (c, a)]);
        let names: Vec<_> = interfaces.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["a-b", "b-c", "a-b-2", "c-a"]);
        use Direction::{Inbound, Outbound};
        let expected = [
            (0, Outbound),
            (0, Inbound),
            (1, Outbound),
            (2, Outbound),
            (2, Inbound),
            (1, Inbound),
            (3, Outbound),
        ];
        assert_eq!(of_links, expected);
    }
}
