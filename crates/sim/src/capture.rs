//! [`Capture`] writes the packets of a run as pcapng with their real bytes, for Wireshark.
//!
//! Every cable is an interface named after its ends, such as `cn-gw1`; packets from the first end
//! to the second are outbound. A packet appears once for every link that accepted it, at the time
//! at which it entered the queue: the view of a capture at the sending end. Its bytes are those
//! that left, including an ECN mark (RFC 3168) that the queue set on departure. A packet that the
//! link then lost has a comment that begins with `lost:`. A packet that was refused by a full queue
//! or a link that is down was never sent and does not appear.
//!
//! Nodes that share a radio share the interface `radio`, with IEEE 802.15.4 frames after a TAP
//! header, including the FCS. A frame appears once for every transmission, also of
//! acknowledgements, at the time of its end. A frame that no destination received, and a frame that
//! was cut off because its sender went down, have a comment that begins with `lost:`. The latter
//! appears with all its bytes, although not all of them were sent. Packets over the radio appear
//! only in their frames. Addresses are compressed with a context that the reader has to know:
//! `fd00::/112` is number 0.
//!
//! Nodes that share an IEEE 802.11 channel share the interface `wifi` in the same way, with all
//! frames after a radiotap header.
//!
//! A packet is written once its fate is known, so a capture holds the packets in flight in memory.
//! The file is in order of time nevertheless.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::Write;

use anabranch_core::time::Instant;
use anabranch_wire::ieee80211::radiotap;
use anabranch_wire::ieee802154::tap::{self, Tap};
use anabranch_wire::ip::EmitError;

use crate::frames::{self, AirFrame, Reception};
use crate::link::LinkDrop;
use crate::octets;
use crate::packet::{IpVersion, LinkId, NodeId, Packet};
use crate::pcapng::{CaptureError, CaptureWriter, Direction, InterfaceInfo, LinkType};
use crate::trace::{Observer, Point, WifiFrame};
use crate::wifi::{self, PhyConfig, Preamble};

/// An observer that writes a capture. The first error ends the capture and is kept for
/// [`Capture::finish`].
#[derive(Debug)]
pub struct Capture<W: Write> {
    ip: IpVersion,
    output: Output<W>,
    /// The interface of each link that has one, and the direction of the link on it.
    links: Vec<Option<(usize, Direction)>>,
    /// Links over the air.
    on_air: Vec<LinkId>,
    /// The interface of the radio.
    radio: usize,
    /// The preamble, if the radio is an IEEE 802.11 channel.
    wifi: Option<Preamble>,
    /// Packets in order of time, from the first whose fate is not known.
    waiting: VecDeque<Waiting>,
    /// Number of packets taken from the front of `waiting`.
    written: u64,
    /// Positions of the packets whose fate is not known, counted from the first packet of the run,
    /// and their traffic classes.
    under_way: BTreeMap<(LinkId, u64), (u64, u8)>,
}

enum Output<W: Write> {
    /// The interfaces are not known yet.
    Unopened(W),
    Open(CaptureWriter<W>),
    Failed(CaptureError),
    /// Placeholder during a change of state.
    Nowhere,
}

#[derive(Debug)]
struct Waiting {
    time: Instant,
    interface: usize,
    direction: Direction,
    octets: Vec<u8>,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Unknown,
    /// Comment on the packet, if any.
    Known(Option<&'static str>),
}

impl<W: Write + Send + 'static> Capture<W> {
    /// A capture of a network with IP version `ip`, written to `out`.
    pub fn new(out: W, ip: IpVersion) -> Self {
        Self {
            ip,
            output: Output::Unopened(out),
            links: Vec::new(),
            on_air: Vec::new(),
            radio: 0,
            wifi: None,
            waiting: VecDeque::new(),
            written: 0,
            under_way: BTreeMap::new(),
        }
    }

    /// Ends the capture with the packets in flight. Returns the flushed writer, or the first error.
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

    fn sent(&mut self, time: Instant, link: LinkId, packet: &Packet) {
        let Some((interface, direction)) = self.links[link.index()] else { return };
        match octets::write(self.ip, packet) {
            Ok(octets) => {
                let place = self.written + self.waiting.len() as u64;
                self.under_way.insert((link, packet.id), (place, packet.traffic_class));
                self.waiting.push_back(Waiting { time, interface, direction, octets, fate: Fate::Unknown });
            }
            Err(error) => self.output = Output::Failed(error.into()),
        }
    }

    fn settled(&mut self, link: LinkId, packet: &Packet, comment: Option<&'static str>) {
        // Not found if the link refused it or accepted it before the capture began, or if it is
        // over the air.
        let Some((place, traffic_class)) = self.under_way.remove(&(link, packet.id)) else { return };
        let waiting = &mut self.waiting[(place - self.written) as usize];
        waiting.fate = Fate::Known(comment);
        // A queue may mark a packet on departure.
        if packet.traffic_class != traffic_class {
            match octets::write(self.ip, packet) {
                Ok(octets) => waiting.octets = octets,
                Err(error) => self.output = Output::Failed(error.into()),
            }
        }
        self.write_known();
    }

    /// Adds a frame whose transmission has ended.
    fn heard(&mut self, now: Instant, octets: Vec<u8>, reception: Reception) {
        let fate = Fate::Known(match reception {
            Reception::Received => None,
            Reception::Missed => Some("lost: no receiver"),
            Reception::BrokenOff => Some("lost: its sender went down"),
        });
        let (interface, direction) = (self.radio, Direction::Unknown);
        // The frame ends now, so it follows all packets in the list.
        self.waiting.push_back(Waiting { time: now, interface, direction, octets, fate });
        self.write_known();
    }

    fn wifi_octets(&self, shown: &WifiFrame<'_>) -> Result<Vec<u8>, EmitError> {
        let packet = shown.packet.map(|packet| octets::write(self.ip, packet)).transpose()?;
        let ether_type = match self.ip {
            IpVersion::V4 => 0x0800,
            IpVersion::V6 => 0x86dd,
        };
        let payload = wifi::octets::Payload { ether_type, octets: packet.as_deref().unwrap_or_default() };
        let mut octets = Vec::with_capacity(radiotap::LEN + usize::from(shown.frame.mpdu_len));
        let preamble = self.wifi.unwrap_or(Preamble::Long);
        wifi::octets::emit(&shown.frame, preamble, payload, &mut octets)
            .expect("the radio makes no frame that cannot be said");
        debug_assert_eq!(octets.len(), radiotap::LEN + usize::from(shown.frame.mpdu_len), "{shown:?}");
        Ok(octets)
    }

    fn write_known(&mut self) {
        while let Some(packet) = self.waiting.pop_front_if(|packet| packet.fate != Fate::Unknown) {
            self.written += 1;
            self.write(&packet);
        }
    }

    fn write(&mut self, packet: &Waiting) {
        let Output::Open(writer) = &mut self.output else { return };
        let &Waiting { time, interface, direction, ref octets, fate } = packet;
        let comment = match fate {
            Fate::Unknown => None,
            Fate::Known(comment) => comment,
        };
        if let Err(error) = writer.packet(interface, time, direction, octets, comment) {
            self.output = Output::Failed(error);
        }
    }
}

impl<W: Write + Send + 'static> Observer for Capture<W> {
    fn on_attach_radio(&mut self, links: &[LinkId]) -> bool {
        self.on_air = links.to_vec();
        true
    }

    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        let (mut interfaces, of_links) = interfaces(nodes, links, &self.on_air);
        self.links = of_links;
        if !self.on_air.is_empty() {
            self.radio = interfaces.len();
            interfaces.push(if self.wifi.is_some() { wifi_interface() } else { radio_interface() });
        }
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
            Point::Received => self.settled(link, packet, None),
            Point::Dropped(LinkDrop::Loss) => self.settled(link, packet, Some("lost: by the channel")),
            Point::Dropped(LinkDrop::Down) => self.settled(link, packet, Some("lost: the link went down")),
            Point::Dropped(LinkDrop::QueueFull) => {
                self.settled(link, packet, Some("lost: the queue was full"));
            }
            Point::Dropped(LinkDrop::Early) => {
                self.settled(link, packet, Some("lost: dropped early by the queue"));
            }
        }
    }

    fn on_frame(&mut self, now: Instant, frame: &AirFrame<'_>) {
        if !matches!(self.output, Output::Open(_)) {
            return;
        }
        let tap = Tap { fcs: frame.fcs, ..Tap::default() };
        let mut octets = Vec::with_capacity(tap.len() + usize::from(frame.psdu_len));
        tap::emit(&tap, &mut octets);
        if let Err(error) = frame.emit(&mut octets) {
            self.output = Output::Failed(error.into());
            return;
        }
        self.heard(now, octets, frame.reception);
    }

    fn on_attach_wifi(&mut self, links: &[LinkId], phy: &PhyConfig) -> bool {
        self.on_air = links.to_vec();
        self.wifi = Some(phy.preamble);
        true
    }

    fn on_wifi_frame(&mut self, now: Instant, shown: &WifiFrame<'_>) {
        if !matches!(self.output, Output::Open(_)) {
            return;
        }
        match self.wifi_octets(shown) {
            Ok(octets) => {
                let reception = match (shown.frame.cut, shown.frame.receivers) {
                    (true, _) => Reception::BrokenOff,
                    (false, 0) => Reception::Missed,
                    (false, _) => Reception::Received,
                };
                self.heard(now, octets, reception);
            }
            Err(error) => self.output = Output::Failed(error.into()),
        }
    }
}

/// The interface of all frames of an IEEE 802.11 channel.
fn wifi_interface() -> InterfaceInfo {
    InterfaceInfo {
        name: "wifi".to_owned(),
        description: "IEEE 802.11, an ad hoc network; a frame's time is its end".to_owned(),
        link_type: LinkType::IEEE802_11_RADIOTAP,
    }
}

/// The interface of all frames of the radio.
fn radio_interface() -> InterfaceInfo {
    InterfaceInfo {
        name: "radio".to_owned(),
        description: format!("IEEE 802.15.4, PAN {:#06x}; a frame's time is its end", frames::PAN),
        link_type: LinkType::IEEE802_15_4_TAP,
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

/// The interface of a link, and the direction of the link on it.
type Side = (usize, Direction);

/// Assigns one interface to a link and the next link back that has none; a second cable between the
/// same nodes gets a number in its name. Links over the air have none.
fn interfaces(
    nodes: &[&str],
    links: &[(NodeId, NodeId)],
    on_air: &[LinkId],
) -> (Vec<InterfaceInfo>, Vec<Option<Side>>) {
    let mut interfaces: Vec<InterfaceInfo> = Vec::new();
    let mut of_links = Vec::with_capacity(links.len());
    let mut one_way: BTreeMap<(NodeId, NodeId), VecDeque<usize>> = BTreeMap::new();
    let mut cables: BTreeMap<(NodeId, NodeId), u32> = BTreeMap::new();
    for (link, &(from, to)) in (0..).map(LinkId).zip(links) {
        if on_air.binary_search(&link).is_ok() {
            of_links.push(None);
            continue;
        }
        if let Some(interface) = one_way.get_mut(&(to, from)).and_then(VecDeque::pop_front) {
            of_links.push(Some((interface, Direction::Inbound)));
            continue;
        }
        let count = cables.entry((from.min(to), from.max(to))).or_default();
        *count += 1;
        let [a, b] = [nodes[from.index()], nodes[to.index()]];
        let name = if *count == 1 { format!("{a}-{b}") } else { format!("{a}-{b}-{count}") };
        one_way.entry((from, to)).or_default().push_back(interfaces.len());
        of_links.push(Some((interfaces.len(), Direction::Outbound)));
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
        let links = [(a, b), (b, a), (b, c), (a, b), (b, a), (c, b), (c, a), (a, c)];
        let (interfaces, of_links) = interfaces(&["a", "b", "c"], &links, &[LinkId(7)]);
        let names: Vec<_> = interfaces.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["a-b", "b-c", "a-b-2", "c-a"]);
        use Direction::{Inbound, Outbound};
        let expected = [
            Some((0, Outbound)),
            Some((0, Inbound)),
            Some((1, Outbound)),
            Some((2, Outbound)),
            Some((2, Inbound)),
            Some((1, Inbound)),
            Some((3, Outbound)),
            None,
        ];
        assert_eq!(of_links, expected);
    }
}
