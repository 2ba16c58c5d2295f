//! Connects a SET state machine to the TCP connections of its node.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::set::{Effect, Leg, Machine, StreamClose, StreamEvent, StreamId, StreamStatus};
use anabranch_core::tcp::{CloseReason, Config, Info};
use anabranch_core::time::Duration;
use anabranch_wire::set::{Decoder, Item};
use bytes::{Bytes, BytesMut};

use crate::address::node_at;
use crate::app::Ctx;
use crate::packet::NodeId;
use crate::stream::{self, ConnId};
use crate::world::World;

/// Largest number of bytes in one read.
const READ: usize = 64 * 1024;

/// TCP configurations by leg.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profiles {
    pub(super) control: Config,
    pub(super) wired: Config,
    pub(super) wireless: Config,
}

impl Profiles {
    pub(super) fn all(config: Config) -> Self {
        Self { control: config, wired: config, wireless: config }
    }

    fn of(&self, leg: Leg) -> Config {
        match leg {
            Leg::Control => self.control,
            Leg::Wired => self.wired,
            Leg::Wireless => self.wireless,
        }
    }
}

/// TCP totals of one stream or several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LegTotals {
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Bytes that the peer acknowledged.
    pub bytes_acked: u64,
    /// Smoothed round-trip time of the last stream that has one.
    pub srtt: Option<Duration>,
}

impl LegTotals {
    fn add(&mut self, info: &Info) {
        self.retransmissions += info.retransmissions;
        self.timeouts += info.timeouts;
        self.bytes_acked += info.bytes_acked;
        self.srtt = info.srtt.or(self.srtt);
    }
}

#[derive(Debug)]
enum Origin {
    Dialled,
    Accepted,
}

/// A stream and its connection. It remains after the end, for its statistics.
#[derive(Debug)]
struct Line {
    conn: Option<ConnId>,
    origin: Origin,
    /// Data for which the connection's send buffer has no room.
    queue: VecDeque<Bytes>,
    queued: u32,
    closing: bool,
    info: Option<Info>,
    /// Number of bytes that the machine has written.
    written: u64,
    /// Decodes the data that is written, while an observer wants chunks.
    chunks: Option<Box<Decoder>>,
}

impl Line {
    fn new(conn: ConnId, origin: Origin) -> Self {
        Self {
            conn: Some(conn),
            origin,
            queue: VecDeque::new(),
            queued: 0,
            closing: false,
            info: None,
            written: 0,
            chunks: None,
        }
    }

    /// Shows the chunks in data that is about to be written to observers.
    #[cold]
    fn show_chunks(&mut self, ctx: &mut Ctx<'_>, octets: &Bytes) {
        // A decoder that starts in the middle of a stream does not know the message boundaries, and
        // the stream of a baseline has no messages.
        if self.written == 0 {
            self.chunks = Some(Box::default());
        }
        let (Some(conn), Some(decoder)) = (self.conn, &mut self.chunks) else { return };
        decoder.push(octets.clone());
        loop {
            match decoder.next_item() {
                Ok(Some(Item::Data { offset, octets })) => {
                    let len = octets.len() as u32;
                    let written_at = decoder.consumed() - u64::from(len);
                    ctx.show_chunk(conn, written_at, offset, len);
                }
                Ok(Some(Item::Message(_) | Item::LongManifest(_))) => {}
                Ok(None) => return,
                Err(_) => return self.chunks = None,
            }
        }
    }
}

/// One state machine on one node.
#[derive(Debug)]
pub(super) struct Driver<M> {
    pub(super) machine: M,
    profiles: Profiles,
    lines: BTreeMap<StreamId, Line>,
    streams: BTreeMap<ConnId, StreamId>,
    delivered: Vec<Bytes>,
    past: LegTotals,
}

impl<M: Machine> Driver<M> {
    pub(super) fn new(machine: M, profiles: Profiles) -> Self {
        Self {
            machine,
            profiles,
            lines: BTreeMap::new(),
            streams: BTreeMap::new(),
            delivered: Vec::new(),
            past: LegTotals::default(),
        }
    }

    /// Resets the driver when the node starts again: streams are lost, statistics remain.
    pub(super) fn reset(&mut self, machine: M) {
        self.past = self.totals_of_dialled();
        self.machine = machine;
        self.lines.clear();
        self.streams.clear();
    }

    pub(super) fn totals_of(&self, stream: StreamId) -> LegTotals {
        let mut totals = LegTotals::default();
        if let Some(info) = self.lines.get(&stream).and_then(|l| l.info.as_ref()) {
            totals.add(info);
        }
        totals
    }

    pub(super) fn totals_of_dialled(&self) -> LegTotals {
        self.totals_by(|line| line.info)
    }

    /// [`Driver::totals_of_dialled`] at this moment, for a machine on `node`: live connections are
    /// queried, since their last report may be old.
    pub(super) fn current_totals_of_dialled(&self, world: &World, node: NodeId) -> LegTotals {
        self.totals_by(|line| line.conn.and_then(|conn| world.info(node, conn)).or(line.info))
    }

    /// Totals of the connections that the machine opened; `info` gives the statistics of each.
    fn totals_by(&self, info: impl Fn(&Line) -> Option<Info>) -> LegTotals {
        let mut totals = self.past;
        let dialled = self.lines.values().filter(|line| matches!(line.origin, Origin::Dialled));
        dialled.filter_map(info).for_each(|info| totals.add(&info));
        totals
    }

    /// Moves the data that the machine has delivered to `out`.
    pub(super) fn take_delivered(&mut self, out: &mut BytesMut) {
        self.delivered.drain(..).for_each(|octets| out.extend_from_slice(&octets));
    }

    pub(super) fn handle(&mut self, ctx: &mut Ctx<'_>, conn: ConnId, event: stream::StreamEvent) {
        let now = ctx.now();
        if let stream::StreamEvent::Accepted { .. } = event {
            match self.machine.handle_accepted(now) {
                Some(stream) => self.insert(stream, conn, Origin::Accepted),
                None => ctx.abort(conn),
            }
            return self.pump(ctx);
        }
        let Some(&stream) = self.streams.get(&conn) else { return };
        match event {
            stream::StreamEvent::Accepted { .. } => {}
            stream::StreamEvent::Opened => {
                self.machine.handle_stream(now, stream, StreamEvent::Opened);
                if let Some(rtt) = ctx.info(conn).and_then(|i| i.srtt) {
                    self.machine.handle_round_trip(now, stream, rtt);
                }
            }
            stream::StreamEvent::Readable => self.read(ctx, stream, conn),
            stream::StreamEvent::Writable => self.flush(ctx, stream),
            stream::StreamEvent::PeerClosed => {
                self.read(ctx, stream, conn);
                self.machine.handle_stream(now, stream, StreamEvent::Ended);
            }
            stream::StreamEvent::Closed(reason) => {
                self.read(ctx, stream, conn);
                self.report(ctx, stream);
                self.forget(stream);
                self.machine.handle_stream(now, stream, StreamEvent::Closed(close_of(reason)));
            }
        }
        self.report(ctx, stream);
        self.pump(ctx);
    }

    pub(super) fn handle_timeout(&mut self, ctx: &mut Ctx<'_>) {
        self.machine.handle_timeout(ctx.now());
        self.pump(ctx);
    }

    /// Carries out the effects of the machine and sets the timer.
    pub(super) fn pump(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(effect) = self.machine.poll_effect(ctx.now()) {
            self.act(ctx, effect);
        }
        ctx.set_timer(self.machine.next_timeout());
    }

    fn insert(&mut self, stream: StreamId, conn: ConnId, origin: Origin) {
        self.lines.insert(stream, Line::new(conn, origin));
        self.streams.insert(conn, stream);
    }

    fn forget(&mut self, stream: StreamId) {
        let Some(line) = self.lines.get_mut(&stream) else { return };
        line.queue.clear();
        line.queued = 0;
        if let Some(conn) = line.conn.take() {
            self.streams.remove(&conn);
        }
    }

    fn read(&mut self, ctx: &mut Ctx<'_>, stream: StreamId, conn: ConnId) {
        while let Some(octets) = ctx.read(conn, READ) {
            self.machine.handle_stream(ctx.now(), stream, StreamEvent::Data(octets));
        }
    }

    /// Reports the state of a stream to the machine.
    fn report(&mut self, ctx: &mut Ctx<'_>, stream: StreamId) {
        let Some(line) = self.lines.get_mut(&stream) else { return };
        let Some(info) = line.conn.and_then(|conn| ctx.info(conn)) else { return };
        line.info = Some(info);
        let status = StreamStatus {
            cwnd: info.cwnd,
            peer_window: info.peer_window,
            in_flight: info.in_flight,
            unsent: info.unsent.saturating_add(line.queued),
            mss: u32::from(info.mss),
            srtt: info.srtt,
        };
        self.machine.handle_status(ctx.now(), stream, status);
    }

    /// Writes queued data to the connection as far as it has room, and closes it after the end.
    fn flush(&mut self, ctx: &mut Ctx<'_>, stream: StreamId) {
        let Some(line) = self.lines.get_mut(&stream) else { return };
        let Some(conn) = line.conn else { return };
        while let Some(front) = line.queue.front_mut() {
            match ctx.write(conn, front) {
                Ok(n) => line.queued -= n as u32,
                // The connection is over; its end will be reported.
                Err(_) => return,
            }
            if !front.is_empty() {
                return;
            }
            line.queue.pop_front();
        }
        if line.closing {
            ctx.close(conn);
        }
    }

    fn act(&mut self, ctx: &mut Ctx<'_>, effect: Effect) {
        match effect {
            Effect::Dial { stream, to, leg } => {
                let target = node_at(to.ip());
                let dialled =
                    target.and_then(|node| ctx.connect(node, to.port(), self.profiles.of(leg)).ok());
                match dialled {
                    Some(conn) => self.insert(stream, conn, Origin::Dialled),
                    None => {
                        let refused = StreamEvent::Closed(StreamClose::Refused);
                        self.machine.handle_stream(ctx.now(), stream, refused);
                    }
                }
            }
            Effect::Write { stream, octets } => {
                if let Some(line) = self.lines.get_mut(&stream) {
                    if ctx.is_watched() {
                        line.show_chunks(ctx, &octets);
                    }
                    line.written += octets.len() as u64;
                    line.queued = line.queued.saturating_add(octets.len() as u32);
                    line.queue.push_back(octets);
                    self.flush(ctx, stream);
                    self.report(ctx, stream);
                }
            }
            Effect::WriteFile { .. } => debug_assert!(false, "simulated senders have their octets"),
            Effect::LimitReceive { stream, octets } => {
                if let Some(conn) = self.lines.get(&stream).and_then(|l| l.conn) {
                    ctx.set_receive_buffer(conn, octets);
                }
            }
            Effect::Shutdown { stream } => {
                if let Some(line) = self.lines.get_mut(&stream) {
                    line.closing = true;
                    self.flush(ctx, stream);
                }
            }
            Effect::Abort { stream } => {
                self.report(ctx, stream);
                if let Some(conn) = self.lines.get(&stream).and_then(|l| l.conn) {
                    ctx.abort(conn);
                }
                self.forget(stream);
            }
            Effect::Deliver { octets } => self.delivered.push(octets),
        }
    }
}

fn close_of(reason: CloseReason) -> StreamClose {
    match reason {
        CloseReason::Graceful => StreamClose::Graceful,
        CloseReason::Reset | CloseReason::Aborted => StreamClose::Reset,
        CloseReason::Refused => StreamClose::Refused,
        CloseReason::TimedOut => StreamClose::TimedOut,
    }
}
