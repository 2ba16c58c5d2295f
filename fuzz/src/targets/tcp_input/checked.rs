//! A connection with everything checked that must hold whatever the peer does.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_core::segment::{Flags, Segment, SeqNumber};
use anabranch_core::tcp::{CloseReason, Config, Connection, Event, Info, State};
use anabranch_core::time::Instant;
use anabranch_wire::ip::{self, Header, Protocol};
use bytes::Bytes;

use crate::probe::Probe;

/// A connection under watch.
#[derive(Debug)]
pub(super) struct Checked {
    name: &'static str,
    connection: Connection,
    config: Config,
    /// Rcv.Wind.Shift, should the handshake be done.
    shift: u8,
    /// The right edge of the window last seen on the wire.
    edge: Option<SeqNumber>,
    /// The largest receive buffer so far.
    buffer: u32,
    /// What to acknowledge, and the highest sequence number sent.
    pub(super) sent_to: SeqNumber,
    /// What the connection last acknowledged.
    pub(super) acked: SeqNumber,
    was_established: bool,
    pub(super) peer_closed: bool,
    pub(super) closed: Option<CloseReason>,
}

impl Checked {
    /// `peer_scales`: every SYN of the peer offers window scaling, or none does.
    pub(super) fn new(
        name: &'static str,
        connection: Connection,
        config: Config,
        iss: SeqNumber,
        peer_scales: bool,
    ) -> Self {
        Self {
            name,
            connection,
            config,
            shift: config.window_scale.filter(|_| peer_scales).unwrap_or(0),
            edge: None,
            buffer: config.receive_buffer.max(config.auto_tune.map_or(0, |most| most.receive)),
            sent_to: iss,
            acked: SeqNumber(0),
            was_established: false,
            peer_closed: false,
            closed: None,
        }
    }

    pub(super) fn state(&self) -> State {
        self.connection.state()
    }

    pub(super) fn info(&self) -> Info {
        self.connection.info()
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.connection.next_timeout()
    }

    pub(super) fn handle_segment(&mut self, now: Instant, segment: Segment, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: gets {}", self.name, line(&segment)));
        let (before, flags) = (self.state(), segment.flags);
        self.connection.handle_segment(now, segment);
        probe.feature((before as u8, self.state() as u8, flags));
        self.check(probe);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: time-out", self.name));
        self.connection.handle_timeout(now);
        self.check(probe);
    }

    /// Returns how many octets were taken.
    pub(super) fn write(&mut self, octets: Bytes, probe: &mut Probe) -> usize {
        let mut rest = octets.clone();
        let result = self.connection.write(&mut rest);
        probe.say(|| format!("{}: write {} -> {result:?}", self.name, octets.len()));
        let taken = result.unwrap_or(0);
        assert_eq!(rest, octets.slice(taken..), "write takes from the front what it says");
        self.check(probe);
        taken
    }

    pub(super) fn read(&mut self, max: usize, probe: &mut Probe) -> Option<Bytes> {
        let octets = self.connection.read(max);
        let len = octets.as_ref().map(Bytes::len);
        probe.say(|| format!("{}: read {max} -> {len:?}", self.name));
        assert!(len.is_none_or(|len| (1..=max).contains(&len)), "read {max} gave {len:?}");
        self.check(probe);
        octets
    }

    pub(super) fn close(&mut self, now: Instant, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: close", self.name));
        self.connection.close(now);
        self.check(probe);
    }

    pub(super) fn abort(&mut self, now: Instant, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: abort", self.name));
        self.connection.abort(now);
        self.check(probe);
    }

    pub(super) fn set_receive_buffer(&mut self, octets: u32, probe: &mut Probe) {
        probe.say(|| format!("{}: receive buffer {octets}", self.name));
        self.connection.set_receive_buffer(octets);
        self.buffer = self.buffer.max(octets);
        self.check(probe);
    }

    /// Polls until there is nothing, as the contract wants it; what was to be sent.
    pub(super) fn poll(&mut self, now: Instant, probe: &mut Probe) -> Vec<Segment> {
        let segments = self.transmit(now, probe);
        while let Some(event) = self.connection.poll_event() {
            probe.say(|| format!("{now} {}: {event:?}", self.name));
            probe.feature((self.state() as u8, format!("{event:?}")));
            self.event(event);
        }
        // What is due must be done by answering, or a driver would spin.
        let mut more = Vec::new();
        for round in 0.. {
            let Some(due) = self.next_timeout().filter(|at| *at <= now) else { break };
            assert!(round < 4, "{}: still due at {due} after {round} answers at {now}", self.name);
            self.handle_timeout(now, probe);
            more.extend(self.transmit(now, probe));
            while let Some(event) = self.connection.poll_event() {
                self.event(event);
            }
        }
        [segments, more].concat()
    }

    fn transmit(&mut self, now: Instant, probe: &mut Probe) -> Vec<Segment> {
        let mut segments = Vec::new();
        let most = self.send_buffer() as usize * 2 + 100;
        while let Some(segment) = self.connection.poll_transmit(now) {
            probe.say(|| format!("{now} {}: sends {}", self.name, line(&segment)));
            self.sent(&segment, probe);
            segments.push(segment);
            assert!(segments.len() <= most, "{}: transmits without end", self.name);
            self.check(probe);
        }
        segments
    }

    fn event(&mut self, event: Event) {
        assert_eq!(self.closed, None, "{}: {event:?} after the end", self.name);
        match event {
            Event::Established => {
                assert!(!self.was_established, "{}: established twice", self.name);
                self.was_established = true;
            }
            Event::PeerClosed => {
                assert!(!self.peer_closed, "{}: the peer closes twice", self.name);
                self.peer_closed = true;
            }
            Event::Closed(reason) => self.closed = Some(reason),
            Event::Readable | Event::Writable => {}
        }
    }

    fn sent(&mut self, segment: &Segment, probe: &mut Probe) {
        survives_the_wire(segment);
        assert!(segment.payload.len() <= usize::from(self.config.mss), "{}: above the MSS", self.name);
        probe.feature(("sent", segment.flags, segment.options.sack.as_slice().len()));
        self.sent_to = self.sent_to.max(segment.seq_end());
        if !segment.flags.contains(Flags::ACK) || segment.flags.contains(Flags::RST) {
            return;
        }
        self.acked = segment.ack;
        let is_syn = segment.flags.contains(Flags::SYN);
        let shift = if is_syn { 0 } else { self.shift };
        // A SYN cannot say more than that, whatever was said before it was repeated.
        let says_all_it_can = is_syn && segment.window == u16::MAX;
        let edge = segment.ack + (u32::from(segment.window) << shift);
        if let Some(last) = self.edge.filter(|_| !says_all_it_can) {
            let retreat = last.distance(edge);
            // Rounding to the unit of the scale may cost less than one unit (RFC 7323 section 2.4).
            let excused = if self.shift == 0 { 0 } else { (1 << self.shift) - 1 };
            assert!(retreat <= excused, "{}: right edge back by {retreat}, shift {}", self.name, self.shift);
        }
        self.edge = Some(self.edge.map_or(edge, |last| last.max(edge)));
    }

    /// How far the send buffer may grow.
    fn send_buffer(&self) -> u32 {
        self.config.send_buffer.max(self.config.auto_tune.map_or(0, |most| most.send))
    }

    /// What holds between any two calls.
    fn check(&mut self, probe: &mut Probe) {
        let info = self.info();
        // Rounding up to the unit of the scale may promise one unit too much.
        let room = self.buffer.saturating_add(if self.shift == 0 { 0 } else { 1 << self.shift });
        assert!(info.readable <= room, "{}: {} readable of {room}", self.name, info.readable);
        let held = u64::from(info.in_flight) + u64::from(info.unsent);
        // SYN and FIN are in flight too.
        let most = u64::from(self.send_buffer()) + 2;
        assert!(held <= most, "{}: {held} octets in a send buffer of {most}", self.name);
        assert!(info.mss > 0 && info.cwnd > 0, "{}: {info:?}", self.name);
        assert!(info.rto <= self.config.rto.max.max(self.config.rto.min), "{}: {info:?}", self.name);
        if info.state == State::Closed {
            assert_eq!(self.next_timeout(), None, "{}: a timer after the end", self.name);
        }
        probe.feature(("timeouts", info.timeouts.min(8), "fast", info.fast_retransmits.min(4)));
        probe.feature(("cwnd", (info.cwnd / u32::from(info.mss)).min(40), info.state as u8));
        probe.feature(("dropped", info.segments_dropped.min(8), info.state as u8));
    }
}

/// Everything that we send can be said in bytes, and says the same.
fn survives_the_wire(segment: &Segment) {
    let header = Header::new(IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), Protocol::TCP);
    let mut packet = Vec::new();
    ip::emit_tcp(&header, segment, &mut packet).expect("a segment that fits into a packet");
    let (header, range) = ip::parse(&packet).expect("we wrote it");
    let read = ip::parse_tcp(&header, Bytes::from(packet).slice(range));
    assert_eq!(read.as_ref(), Ok(segment));
}

fn line(segment: &Segment) -> String {
    let Segment { seq, ack, flags, window, options, payload, .. } = segment;
    format!("{flags:?} seq {seq} len {} ack {ack} win {window} {options:?}", payload.len())
}
