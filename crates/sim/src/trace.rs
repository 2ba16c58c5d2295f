//! Observation of a run: the [`Observer`] trait, which packet captures implement, and
//! [`TextTrace`].

pub mod line;

use std::any::Any;
use std::fmt;
use std::io;

use anabranch_core::segment::Segment;
use anabranch_core::set::Moments;
use anabranch_core::tcp;
use anabranch_core::time::Instant;

use crate::frames::{AirFrame, Content, Reception};
use crate::link::{LinkConfig, LinkDrop};
use crate::packet::{LinkId, NodeId, Packet, Payload};
use crate::stream::{ConnId, StreamEvent};
use crate::wifi;

/// Stage of a packet at a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// The link has accepted it. A capture at the sending interface sees this.
    Sent,
    /// It has arrived at the far end. A capture at the receiving interface sees this.
    Received,
    /// The link has dropped it.
    Dropped(LinkDrop),
}

/// Reason why a node dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeDrop {
    /// The node has no route to the destination.
    NoRoute,
    /// The hop limit is used up.
    HopLimit,
    /// The packet exceeds the MTU of the next link and must not, or cannot, be fragmented.
    TooBig,
    /// The node is down.
    Down,
    /// The node caches segments and holds this one back itself.
    Held,
    /// It waited for a route for too long, or made room for another packet.
    WaitedInVain,
}

/// An IEEE 802.11 frame whose transmission has ended.
#[derive(Clone, Copy, Debug)]
pub struct WifiFrame<'a> {
    /// The frame of the channel.
    pub frame: wifi::AirFrame,
    /// Sender.
    pub from: NodeId,
    /// Destination; `None` for a broadcast.
    pub to: Option<NodeId>,
    /// The packet in it, if it is data.
    pub packet: Option<&'a Packet>,
}

/// A TCP connection, or a subflow of a Multipath TCP connection, after an operation.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionView<'a> {
    /// Node of the connection.
    pub node: NodeId,
    /// The connection.
    pub id: ConnId,
    /// Number of the subflow; `None` for TCP.
    pub subflow: Option<u16>,
    /// Peer.
    pub peer: NodeId,
    /// Local port, and port of the peer.
    pub ports: (u16, u16),
    /// State of the connection.
    pub info: &'a tcp::Info,
}

/// A part of a file that an application has written to a connection, for protocols that identify
/// the part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkView {
    /// Node that has written it.
    pub node: NodeId,
    /// Peer.
    pub peer: NodeId,
    /// Local port of the connection, and port of the peer.
    pub ports: (u16, u16),
    /// Position in the application's data on the connection, counted from its first byte.
    pub written_at: u64,
    /// Position in the file.
    pub offset: u64,
    /// Length in bytes, at least 1.
    pub len: u32,
}

/// A failure, a recovery or a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incident {
    /// A node has gone down.
    NodeDown(NodeId),
    /// A node has come up.
    NodeUp(NodeId),
    /// One direction of a link is down.
    LinkDown(LinkId),
    /// One direction of a link is up.
    LinkUp(LinkId),
    /// One direction of a link has a new rate, in bit/s.
    Rate(LinkId, u64),
}

/// Observes a run without changing it. All methods do nothing by default.
///
/// Without an observer, a run pays one branch per packet and hop.
pub trait Observer: Any + Send {
    /// Called once, before all others but [`Observer::on_attach_radio`] and
    /// [`Observer::on_attach_link`], with the names of all nodes and the ends of each link.
    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        let _ = (nodes, links);
    }

    /// Called for each link before [`Observer::on_attach`], in the order of their ids, with its
    /// configuration. For a link over the air, rate and MTU are those of the radio.
    fn on_attach_link(&mut self, link: LinkId, config: &LinkConfig) {
        let _ = (link, config);
    }

    /// Whether [`Observer::on_connection`] and [`Observer::on_chunk`] are to be called; asked once.
    /// They are not called while no observer wants them.
    fn wants_connections(&self) -> bool {
        false
    }

    /// Called once, before all others, if nodes share a radio, with its links. Returns whether
    /// [`Observer::on_frame`] is to be called; frames are not reported while no observer wants
    /// them.
    fn on_attach_radio(&mut self, links: &[LinkId]) -> bool {
        let _ = links;
        false
    }

    /// The transmission of a frame has ended; `now` is its end. Its effects, such as the arrival of
    /// a packet or an acknowledgement, are reported later. Also called if only another observer
    /// wants frames.
    fn on_frame(&mut self, now: Instant, frame: &AirFrame<'_>) {
        let _ = (now, frame);
    }

    /// As [`Observer::on_attach_radio`], if nodes share an IEEE 802.11 channel. Returns whether
    /// [`Observer::on_wifi_frame`] is to be called.
    fn on_attach_wifi(&mut self, links: &[LinkId], phy: &wifi::PhyConfig) -> bool {
        let _ = (links, phy);
        false
    }

    /// As [`Observer::on_frame`] for an IEEE 802.11 frame, including RTS, CTS and acknowledgements.
    fn on_wifi_frame(&mut self, now: Instant, frame: &WifiFrame<'_>) {
        let _ = (now, frame);
    }

    /// A packet has reached a stage at a link.
    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        let _ = (now, link, point, packet);
    }

    /// The transmission of a waiting packet on a cable will begin at `start`. Called when the
    /// packet is accepted, and again if the time changes. With a queueing discipline the time is
    /// not known when the packet is accepted, and `start` is [`Instant::FAR_FUTURE`]; the method is
    /// called again when the transmission begins, unless the packet is dropped before.
    fn on_departure(&mut self, now: Instant, link: LinkId, packet: u64, start: Instant) {
        let _ = (now, link, packet, start);
    }

    /// A node has dropped a packet.
    fn on_node_drop(&mut self, now: Instant, node: NodeId, reason: NodeDrop, packet: &Packet) {
        let _ = (now, node, reason, packet);
    }

    /// An application is about to receive an event of a connection.
    fn on_stream(&mut self, now: Instant, node: NodeId, connection: ConnId, event: StreamEvent) {
        let _ = (now, node, connection, event);
    }

    /// A connection was used, and all segments that it had to send were sent; this is its state.
    /// Also called if only another observer wants connections.
    fn on_connection(&mut self, now: Instant, seen: &ConnectionView<'_>) {
        let _ = (now, seen);
    }

    /// An application has written a part of a file to a connection. Called under the same
    /// conditions as [`Observer::on_connection`].
    fn on_chunk(&mut self, now: Instant, chunk: &ChunkView) {
        let _ = (now, chunk);
    }

    /// A SET transfer is over, delivered or not: its nodes, and the moments of which its phases are
    /// made.
    fn on_phases(&mut self, now: Instant, from: NodeId, to: NodeId, moments: &Moments) {
        let _ = (now, from, to, moments);
    }

    /// A failure, a recovery or a change.
    fn on_incident(&mut self, now: Instant, what: Incident) {
        let _ = (now, what);
    }

    /// Another note: a fault, new routes, or a note of an application at `node`.
    fn on_note(&mut self, now: Instant, node: Option<NodeId>, text: fmt::Arguments<'_>) {
        let _ = (now, node, text);
    }
}

/// Writes one line for every event. The same seed and run give the same bytes.
///
/// `time place mark what`, where the mark is `+` sent, `r` received, `d` dropped, `~` a
/// transmission that has ended, `=` stream event, `!` note. The first error of the writer ends the
/// trace and is kept.
#[derive(Debug)]
pub struct TextTrace<W> {
    out: W,
    names: Vec<String>,
    links: Vec<String>,
    error: Option<io::Error>,
}

impl<W: io::Write + Send + 'static> TextTrace<W> {
    /// A trace to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self { out, names: Vec::new(), links: Vec::new(), error: None }
    }

    /// The writer, or its first error.
    pub fn finish(mut self) -> Result<W, io::Error> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// The output so far.
    pub fn get(&self) -> &W {
        &self.out
    }

    fn line(&mut self, now: Instant, place: fmt::Arguments<'_>, what: fmt::Arguments<'_>) {
        if self.error.is_none() {
            self.error = writeln!(self.out, "{now} {place} {what}").err();
        }
    }
}

impl<W: io::Write + Send + 'static> Observer for TextTrace<W> {
    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        self.names = nodes.iter().map(|&n| n.to_owned()).collect();
        self.links =
            links.iter().map(|(a, b)| format!("{}>{}", nodes[a.index()], nodes[b.index()])).collect();
    }

    fn on_attach_radio(&mut self, _: &[LinkId]) -> bool {
        true
    }

    fn on_frame(&mut self, now: Instant, frame: &AirFrame<'_>) {
        let name = |n: NodeId| self.names[n.index()].as_str();
        let place = format!("{}>{}", name(frame.from), frame.to.map_or("*", name));
        let what = match frame.content {
            Content::Ack(_) => "ack".to_owned(),
            Content::Wakeup { rendezvous } => format!("wake-up {rendezvous}"),
            Content::Piece { packet, cut, piece, .. } => {
                format!("#{} {}/{}", packet.id, piece + 1, cut.pieces())
            }
        };
        let fate = match frame.reception {
            Reception::Received => "",
            Reception::Missed => " missed",
            Reception::BrokenOff => " broken off",
        };
        let AirFrame { seq, psdu_len, .. } = frame;
        self.line(now, format_args!("{place}"), format_args!("~ {what} seq {seq} [{psdu_len}]{fate}"));
    }

    fn on_attach_wifi(&mut self, _: &[LinkId], _: &wifi::PhyConfig) -> bool {
        true
    }

    fn on_wifi_frame(&mut self, now: Instant, shown: &WifiFrame<'_>) {
        let name = |n: NodeId| self.names[n.index()].as_str();
        let place = format!("{}>{}", name(shown.from), shown.to.map_or("*", name));
        let &wifi::AirFrame { kind, seq, mpdu_len, .. } = &shown.frame;
        let what = shown.packet.map_or_else(|| format!("{kind:?}"), |packet| format!("#{}", packet.id));
        let retry = if shown.frame.retry { " again" } else { "" };
        let fate = match (shown.frame.cut, shown.frame.receivers) {
            (true, _) => " broken off",
            (false, 0) => " missed",
            (false, _) => "",
        };
        self.line(now, format_args!("{place}"), format_args!("~ {what} seq {seq}{retry} [{mpdu_len}]{fate}"));
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        let place = self.links[link.index()].clone();
        let shown = Show { packet, names: &self.names.clone() }.to_string();
        match point {
            Point::Sent => self.line(now, format_args!("{place}"), format_args!("+ {shown}")),
            Point::Received => self.line(now, format_args!("{place}"), format_args!("r {shown}")),
            Point::Dropped(why) => self.line(now, format_args!("{place}"), format_args!("d {shown} {why:?}")),
        }
    }

    fn on_node_drop(&mut self, now: Instant, node: NodeId, reason: NodeDrop, packet: &Packet) {
        let place = self.names[node.index()].clone();
        let shown = Show { packet, names: &self.names.clone() }.to_string();
        self.line(now, format_args!("{place}"), format_args!("d {shown} {reason:?}"));
    }

    fn on_stream(&mut self, now: Instant, node: NodeId, connection: ConnId, event: StreamEvent) {
        let place = self.names[node.index()].clone();
        self.line(now, format_args!("{place}"), format_args!("= {connection:?} {event:?}"));
    }

    fn on_note(&mut self, now: Instant, node: Option<NodeId>, text: fmt::Arguments<'_>) {
        let place = node.map_or("*", |n| &self.names[n.index()]).to_owned();
        self.line(now, format_args!("{place}"), format_args!("! {text}"));
    }
}

/// A packet in the style of tcpdump.
struct Show<'a> {
    packet: &'a Packet,
    names: &'a [String],
}

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Packet { id, src, dst, wire_len, .. } = self.packet;
        let name = |n: &NodeId| self.names.get(n.index()).map_or("*", String::as_str);
        match &self.packet.payload {
            Payload::Tcp(segment) => {
                write!(f, "#{id} {}.{} > {}.{} ", name(src), segment.src_port, name(dst), segment.dst_port)?;
                show_segment(f, segment)?;
            }
            Payload::Udp(datagram) => {
                let (from, to) = (datagram.src_port, datagram.dst_port);
                write!(f, "#{id} {}.{from} > {}.{to} UDP {}", name(src), name(dst), datagram.payload.len())?;
            }
            Payload::Opaque(opaque) => {
                write!(f, "#{id} {} > {} {:?}", name(src), name(dst), opaque.protocol)?;
            }
            Payload::Fragment(piece) => {
                let more = if piece.more() { "+" } else { "" };
                let end = piece.offset + piece.len;
                write!(f, "#{id} {} > {} ", name(src), name(dst))?;
                write!(f, "frag {} {}:{end}{more}", self.packet.identification, piece.offset)?;
            }
        }
        write!(f, " [{wire_len}]")
    }
}

fn show_segment(f: &mut fmt::Formatter<'_>, segment: &Segment) -> fmt::Result {
    write!(f, "{:?} seq {}:{} ack {}", segment.flags, segment.seq, segment.seq_end(), segment.ack)?;
    write!(f, " win {}", segment.window)?;
    if !segment.options.sack.is_empty() {
        write!(f, " sack {:?}", segment.options.sack)?;
    }
    Ok(())
}
