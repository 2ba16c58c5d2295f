//! Watching a run: the [`Observer`] hook, which packet captures implement, and [`TextTrace`].

pub(crate) mod line;

use std::any::Any;
use std::fmt;
use std::io;

use anabranch_core::segment::Segment;
use anabranch_core::tcp;
use anabranch_core::time::Instant;

use crate::frames::{AirFrame, Content, Reception};
use crate::link::{LinkConfig, LinkDrop};
use crate::packet::{LinkId, NodeId, Packet, Payload};
use crate::stream::{ConnId, StreamEvent};
use crate::wifi;

/// What happens to a packet at a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// The link has accepted it: what a capture at the sending interface sees.
    Sent,
    /// It has arrived at the far end: what a capture at the receiving interface sees.
    Received,
    /// The link has lost it.
    Dropped(LinkDrop),
}

/// Why a node dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeDrop {
    /// It knows no way to the destination.
    NoRoute,
    /// The hop limit is used up.
    HopLimit,
    /// It is too big for the next link and may not, or cannot, be cut.
    TooBig,
    /// The node is dead.
    Down,
    /// It caches segments for others, and looks after this one itself.
    Held,
    /// It waited for a route, for too long or in the way of others.
    WaitedInVain,
}

/// A frame of 802.11 that has left the air.
#[derive(Clone, Copy, Debug)]
pub struct WifiFrame<'a> {
    /// As the radio has it.
    pub frame: wifi::AirFrame,
    /// Its sender.
    pub from: NodeId,
    /// For whom; `None` for all.
    pub to: Option<NodeId>,
    /// The packet in it, if it is data.
    pub packet: Option<&'a Packet>,
}

/// A TCP connection, or a subflow of a Multipath TCP connection, after something was done with it.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionView<'a> {
    /// Its node.
    pub node: NodeId,
    /// The connection.
    pub id: ConnId,
    /// Which of its subflows; `None` if it is TCP.
    pub subflow: Option<u16>,
    /// The peer.
    pub peer: NodeId,
    /// Our port, and that of the peer.
    pub ports: (u16, u16),
    /// How it stands.
    pub info: &'a tcp::Info,
}

/// A part of a file that an application has written to a connection, for a protocol that says which
/// part it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkView {
    /// The node that has written it.
    pub node: NodeId,
    /// To whom.
    pub peer: NodeId,
    /// The connection's ports, ours and that of the peer.
    pub ports: (u16, u16),
    /// Where in what the application has written to the connection, counted from its first octet.
    pub written_at: u64,
    /// Where in the file.
    pub offset: u64,
    /// Octets, at least 1.
    pub len: u32,
}

/// Something that breaks, heals or changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incident {
    /// A node has died.
    NodeDown(NodeId),
    /// A node lives again.
    NodeUp(NodeId),
    /// One direction of a link is down.
    LinkDown(LinkId),
    /// One direction of a link is up.
    LinkUp(LinkId),
    /// One direction of a link has this rate, in bit/s.
    Rate(LinkId, u64),
}

/// Watches a run. It cannot change anything. All methods do nothing by default.
///
/// With no observer a run pays one branch per packet and hop.
pub trait Observer: Any + Send {
    /// Called once, before all others but [`Observer::on_attach_radio`]: the names of all nodes,
    /// and from where to where each link leads.
    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        let _ = (nodes, links);
    }

    /// Called for each link before [`Observer::on_attach`], in the order of their ids: how it is
    /// configured. Of a link over the air, rate and MTU are the radio's.
    fn on_attach_link(&mut self, link: LinkId, config: &LinkConfig) {
        let _ = (link, config);
    }

    /// True if [`Observer::on_connection`] and [`Observer::on_chunk`] are to be called; asked once.
    /// While nobody wants them, they are not.
    fn wants_connections(&self) -> bool {
        false
    }

    /// Called once if nodes share a radio, before all others: the links that lead over it. True if
    /// [`Observer::on_frame`] is to be called: while nobody wants frames, none is shown.
    fn on_attach_radio(&mut self, links: &[LinkId]) -> bool {
        let _ = links;
        false
    }

    /// A frame has left the air: `now` is its end. What comes of it, a packet that arrives or an
    /// acknowledgement, is told afterwards. Also called if only another observer wants frames.
    fn on_frame(&mut self, now: Instant, frame: &AirFrame<'_>) {
        let _ = (now, frame);
    }

    /// As [`Observer::on_attach_radio`] where nodes share an 802.11 channel: true if
    /// [`Observer::on_wifi_frame`] is to be called.
    fn on_attach_wifi(&mut self, links: &[LinkId], phy: &wifi::PhyConfig) -> bool {
        let _ = (links, phy);
        false
    }

    /// As [`Observer::on_frame`] for a frame of 802.11, those of RTS, CTS and acknowledgements
    /// included.
    fn on_wifi_frame(&mut self, now: Instant, frame: &WifiFrame<'_>) {
        let _ = (now, frame);
    }

    /// Something has happened to a packet at a link.
    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        let _ = (now, link, point, packet);
    }

    /// A cable's transmitter will begin at `start` with a packet that has to wait: told when the
    /// packet was accepted, and again if that changes. Behind a queue with a discipline of its own
    /// the start is not known when the packet is accepted, and `start` is [`Instant::FAR_FUTURE`];
    /// it is told again when the transmitter begins with the packet, unless that is dropped before.
    fn on_departure(&mut self, now: Instant, link: LinkId, packet: u64, start: Instant) {
        let _ = (now, link, packet, start);
    }

    /// A node has dropped a packet.
    fn on_node_drop(&mut self, now: Instant, node: NodeId, reason: NodeDrop, packet: &Packet) {
        let _ = (now, node, reason, packet);
    }

    /// An application is about to learn something of a connection.
    fn on_stream(&mut self, now: Instant, node: NodeId, connection: ConnId, event: StreamEvent) {
        let _ = (now, node, connection, event);
    }

    /// Something was done with a connection, all that it wanted to send was sent, and this is how
    /// it stands. Also called if only another observer wants connections.
    fn on_connection(&mut self, now: Instant, seen: &ConnectionView<'_>) {
        let _ = (now, seen);
    }

    /// An application has written a part of a file to a connection. Called as
    /// [`Observer::on_connection`] is.
    fn on_chunk(&mut self, now: Instant, chunk: &ChunkView) {
        let _ = (now, chunk);
    }

    /// Something breaks, heals or changes.
    fn on_incident(&mut self, now: Instant, what: Incident) {
        let _ = (now, what);
    }

    /// Something else worth a line: a fault, new routes, a note of an application at `node`.
    fn on_note(&mut self, now: Instant, node: Option<NodeId>, text: fmt::Arguments<'_>) {
        let _ = (now, node, text);
    }
}

/// Writes one line for everything that happens. Same seed and run, same bytes.
///
/// `time place mark what`: `+` sent, `r` received, `d` dropped, `~` a frame that has left the air,
/// `=` stream event, `!` note. The first error of the writer ends the trace and is kept.
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

    /// The writer, or what it failed with.
    pub fn finish(mut self) -> Result<W, io::Error> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// What was written so far.
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

/// A packet in tcpdump's manner.
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
