//! A connection with checks of everything that must hold whatever the peer does.

use anabranch_core::segment::{Ecn, Flags, Segment, SeqNumber};
use anabranch_core::tcp::{
    CloseReason, Config, CongestionAlgorithm, Connection, Event, Info, KeepAlive, RecoveryStage, State,
};
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;

use crate::probe::Probe;
use crate::targets::stream::{octet, survives_the_wire};

/// A connection under test.
#[derive(Debug)]
pub(super) struct Checked {
    name: &'static str,
    connection: Connection,
    config: Config,
    /// Rcv.Wind.Shift after the handshake.
    shift: u8,
    /// Right edge of the last advertised window.
    edge: Option<SeqNumber>,
    /// Largest receive buffer so far.
    buffer: u32,
    /// Largest send buffer so far.
    most_unacknowledged: u32,
    iss: SeqNumber,
    /// Initial sequence number of the peer, after its SYN was accepted.
    irs: Option<SeqNumber>,
    /// Offset in [`octet`]'s sequence at which the peer's stream begins; `None` if it follows the
    /// sequence numbers.
    incoming: Option<u32>,
    /// SND.MAX: one past the highest sequence number sent.
    pub(super) sent_to: SeqNumber,
    /// Last acknowledgement number sent.
    pub(super) acked: SeqNumber,
    /// Number of bytes that `write` accepted.
    pub(super) written: u64,
    /// Number of bytes that `read` returned.
    pub(super) read: u64,
    user_timeout: Option<Duration>,
    /// Number of calls of `handle_timeout` since the peer was last heard.
    silent_timeouts: u32,
    /// Whether `release` was called.
    pub(super) released: bool,
    aborted: bool,
    /// Whether the owner leaves the buffers to the connection.
    tunes: bool,
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
            most_unacknowledged: config.send_buffer.max(config.auto_tune.map_or(0, |most| most.send)),
            iss,
            irs: None,
            incoming: None,
            sent_to: iss,
            acked: SeqNumber(0),
            written: 0,
            read: 0,
            user_timeout: None,
            silent_timeouts: 0,
            released: false,
            aborted: false,
            tunes: true,
            was_established: false,
            peer_closed: false,
            closed: None,
        }
    }

    /// Marks the connection as created by the peer's SYN.
    pub(super) fn accepted(mut self, syn: &Segment) -> Self {
        self.irs = Some(syn.seq);
        self
    }

    /// The peer's stream is [`octet`]'s sequence from its start. Otherwise the byte at sequence
    /// number `n` is `octet(n)`.
    pub(super) fn receiving_stream(mut self) -> Self {
        self.incoming = Some(0);
        self
    }

    /// Lower bound of SND.UNA.
    pub(super) fn una(&self) -> SeqNumber {
        let syn = u32::from(!matches!(self.state(), State::SynSent | State::SynReceived));
        (self.iss + (self.info().bytes_acked as u32) + syn).min(self.sent_to)
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
        let (before, flags, seq) = (self.state(), segment.flags, segment.seq);
        let (info, right) = (self.info(), self.una() + self.info().peer_window);
        let reports = segment.options.sack.as_slice().iter().any(|block| block.left.lt(segment.ack));
        self.silent_timeouts = 0;
        self.connection.handle_segment(now, segment);
        if self.info().undone > info.undone {
            let in_loss = info.recovery == RecoveryStage::Loss && !self.config.timestamps && !reports;
            probe.reach(if in_loss { "undo by F-RTO" } else { "undo by timestamps or D-SACK" });
        }
        let after = self.state();
        if before == State::SynSent && after != State::SynSent && after != State::Closed {
            self.irs = Some(seq);
            if after == State::SynReceived {
                probe.reach("simultaneous open");
            }
        } else if (self.una() + self.info().peer_window).lt(right) {
            probe.reach("peer's window shrinks");
        }
        probe.feature((before as u8, after as u8, flags));
        self.check(probe);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: time-out", self.name));
        self.silent_timeouts += 1;
        let before = self.info();
        self.connection.handle_timeout(now);
        if self.info().fast_retransmits > before.fast_retransmits {
            probe.reach("reordering timer");
        }
        if before.state == State::FinWait2
            && self.state() == State::Closed
            && self.config.keep_alive.is_none()
        {
            assert!(self.released, "{}: FIN-WAIT-2 ends", self.name);
            probe.reach("FIN-WAIT-2 ends after a release");
        }
        self.check(probe);
    }

    pub(super) fn handle_route_failure(&mut self, now: Instant, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: route failure", self.name));
        let before = self.next_timeout();
        self.connection.handle_route_failure(now);
        let probe_at = self.config.elfn.map(|interval| now + interval.max(Duration::from_millis(1)));
        if probe_at.is_some() && probe_at == self.next_timeout() && probe_at != before {
            probe.reach("stand-by without a route");
        }
        self.check(probe);
    }

    /// Writes the next bytes of [`octet`]'s sequence.
    pub(super) fn write(&mut self, len: usize, probe: &mut Probe) {
        let octets: Bytes = (0..len).map(|i| octet(self.written as u32 + i as u32)).collect();
        let mut rest = octets.clone();
        let result = self.connection.write(&mut rest);
        probe.say(|| format!("{}: write {len} -> {result:?}", self.name));
        let taken = result.unwrap_or(0);
        assert_eq!(rest, octets.slice(taken..), "write takes from the front what it says");
        self.written += taken as u64;
        self.check(probe);
    }

    /// Reads at most `max` bytes with one call, and returns their number.
    pub(super) fn read(&mut self, max: usize, probe: &mut Probe) -> Option<usize> {
        let octets = self.connection.read(max);
        let len = octets.as_ref().map(Bytes::len);
        probe.say(|| format!("{}: read {max} -> {len:?}", self.name));
        assert!(len.is_none_or(|len| (1..=max).contains(&len)), "read {max} gave {len:?}");
        if let Some(octets) = &octets {
            let from = self.incoming.or(self.irs.map(|irs| (irs + 1).0)).expect("data follows a SYN");
            for got in octets {
                let expected = octet(from.wrapping_add(self.read as u32));
                assert_eq!(*got, expected, "{}: octet {} of the stream", self.name, self.read);
                self.read += 1;
            }
        }
        self.check(probe);
        len
    }

    pub(super) fn close(&mut self, now: Instant, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: close", self.name));
        self.connection.close(now);
        self.check(probe);
    }

    pub(super) fn abort(&mut self, now: Instant, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: abort", self.name));
        self.aborted = true;
        self.connection.abort(now);
        self.check(probe);
    }

    pub(super) fn set_receive_buffer(&mut self, octets: u32, probe: &mut Probe) {
        probe.say(|| format!("{}: receive buffer {octets}", self.name));
        self.connection.set_receive_buffer(octets);
        self.buffer = self.buffer.max(octets);
        self.tunes = false;
        self.check(probe);
    }

    pub(super) fn set_send_buffer(&mut self, octets: u32, probe: &mut Probe) {
        probe.say(|| format!("{}: send buffer {octets}", self.name));
        self.connection.set_send_buffer(octets);
        self.most_unacknowledged = self.most_unacknowledged.max(octets);
        self.tunes = false;
        self.check(probe);
    }

    pub(super) fn set_user_timeout(&mut self, now: Instant, after: Option<Duration>, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: user timeout {after:?}", self.name));
        self.connection.set_user_timeout(now, after);
        self.user_timeout = after;
        self.check(probe);
    }

    pub(super) fn set_keep_alive(&mut self, now: Instant, keep: Option<KeepAlive>, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: keep-alive {keep:?}", self.name));
        self.connection.set_keep_alive(now, keep);
        self.config.keep_alive = keep;
        self.check(probe);
    }

    pub(super) fn release(&mut self, now: Instant, probe: &mut Probe) {
        probe.say(|| format!("{now} {}: release", self.name));
        self.released = true;
        self.connection.release(now);
        probe.reach("release");
        self.check(probe);
    }

    /// Like [`Connection::give_way`]; checks that it never gives way to a duplicate of the SYN that
    /// began the connection.
    pub(super) fn give_way(&mut self, now: Instant, syn: &Segment, probe: &mut Probe) -> Option<SeqNumber> {
        let least = self.connection.give_way(now, syn)?;
        probe.say(|| format!("{now} {}: gives way to {}, least {least}", self.name, line(syn)));
        probe.reach("TIME-WAIT reuse");
        assert_eq!(self.state(), State::Closed, "{}: gives way and stays", self.name);
        assert!(self.config.time_wait_reuse, "{}: gives way without the option", self.name);
        assert_ne!(Some(syn.seq), self.irs, "{}: gives way to its own SYN", self.name);
        assert!(least.gt(self.sent_to), "{}: a new connection at {least} repeats numbers", self.name);
        self.check(probe);
        Some(least)
    }

    /// Polls until nothing is left, as the contract requires, and returns the segments.
    pub(super) fn poll(&mut self, now: Instant, probe: &mut Probe) -> Vec<Segment> {
        let segments = self.transmit(now, probe);
        while let Some(event) = self.connection.poll_event() {
            probe.say(|| format!("{now} {}: {event:?}", self.name));
            probe.feature((self.state() as u8, format!("{event:?}")));
            self.event(event, probe);
        }
        // Handling a due timer must make it not due, or a driver would loop.
        let mut more = Vec::new();
        for round in 0.. {
            let Some(due) = self.next_timeout().filter(|at| *at <= now) else { break };
            assert!(round < 4, "{}: still due at {due} after {round} answers at {now}", self.name);
            self.handle_timeout(now, probe);
            more.extend(self.transmit(now, probe));
            while let Some(event) = self.connection.poll_event() {
                self.event(event, probe);
            }
        }
        [segments, more].concat()
    }

    fn transmit(&mut self, now: Instant, probe: &mut Probe) -> Vec<Segment> {
        let mut segments = Vec::new();
        let most = self.most_unacknowledged as usize * 2 + 100;
        while let Some(segment) = self.connection.poll_transmit(now) {
            probe.say(|| format!("{now} {}: sends {}", self.name, line(&segment)));
            self.sent(now, &segment, probe);
            segments.push(segment);
            assert!(segments.len() <= most, "{}: transmits without end", self.name);
            self.check(probe);
        }
        self.polled(probe);
        segments
    }

    fn event(&mut self, event: Event, probe: &mut Probe) {
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
            Event::Closed(reason) => {
                self.closed = Some(reason);
                if reason == CloseReason::TimedOut {
                    self.timed_out(probe);
                }
            }
            Event::Readable | Event::Writable => {}
        }
    }

    /// Reports which timer ended the connection.
    fn timed_out(&self, probe: &mut Probe) {
        let retries = self.config.syn_retries.min(self.config.data_retries);
        let few = self.silent_timeouts <= u32::from(retries);
        match (self.user_timeout, self.config.keep_alive) {
            // Each retry costs a time-out, so there were too few time-outs for the retry limit.
            (Some(_), None) if few && !self.released => probe.reach("user timeout"),
            (None, Some(_)) if few && !self.released => probe.reach("keep-alive gives up"),
            (None, None) if !few && !self.released => probe.reach("retries are exhausted"),
            _ => {}
        }
    }

    fn sent(&mut self, now: Instant, segment: &Segment, probe: &mut Probe) {
        survives_the_wire(segment);
        let info = self.info();
        assert!(segment.payload.len() <= usize::from(info.mss), "{}: above the MSS", self.name);
        probe.feature(("sent", segment.flags, segment.options.sack.as_slice().len()));
        if segment.flags.contains(Flags::RST) {
            return;
        }
        assert_ne!(info.state, State::Closed, "{}: sends {} after the end", self.name, line(segment));
        if let Some(stamps) = segment.options.timestamps {
            assert_eq!(stamps.value, timestamp(now), "{}: TSval", self.name);
        }
        self.sent_data(segment, &info, probe);
        self.sent_to = self.sent_to.max(segment.seq_end());
        if segment.flags.contains(Flags::ACK) {
            self.sent_ack(segment, &info, probe);
        }
    }

    /// Checks sequence numbers and payload.
    fn sent_data(&self, segment: &Segment, info: &Info, probe: &mut Probe) {
        let Self { name, iss, sent_to, written, .. } = *self;
        let una = self.una();
        let (seq, end, is_syn) = (segment.seq, segment.seq_end(), segment.flags.contains(Flags::SYN));
        assert!(seq.ge(una - 1) && seq.le(sent_to), "{name}: sends {seq}, SND.UNA {una}, SND.MAX {sent_to}");
        let is_new = end.gt(sent_to);
        if is_new && !is_syn {
            // A closed window is probed with one byte.
            let right = una + info.peer_window.max(1);
            assert!(end.le(right), "{name}: sends {seq} to {end} past the window, which ends at {right}");
        }
        let at = seq.distance(iss + 1);
        let data_end = at + segment.payload.len() as i32;
        assert!(segment.payload.is_empty() || data_end <= written as i32, "{name}: more than was written");
        for (i, sent) in segment.payload.iter().enumerate() {
            assert_eq!(*sent, octet(at as u32 + i as u32), "{name}: octet {at} + {i} of what was written");
        }
        assert_ne!(segment.ecn, Ecn::Ce, "{name}: marks by itself");
        // RFC 3168, sections 6.1.4 to 6.1.6.
        let may_be_ect = info.ecn && !segment.payload.is_empty() && seq.ge(sent_to);
        assert!(segment.ecn == Ecn::NotEct || may_be_ect, "{name}: ECT on {}", line(segment));
        let is_idle = matches!(info.state, State::Established | State::FinWait2 | State::CloseWait)
            && info.buffered == 0;
        if is_idle && segment.seq_len() == 0 && seq + 1 == sent_to {
            assert!(self.config.keep_alive.is_some(), "{name}: a probe without the option");
            probe.reach("keep-alive probe");
        }
        let outstanding = sent_to.distance(una) as u32;
        let repeats_last = segment.seq_len() > 0 && end == sent_to && info.peer_window > outstanding;
        let is_open = matches!(info.recovery, RecoveryStage::Open | RecoveryStage::Disorder);
        if repeats_last && !is_syn && is_open && self.config.rack_tlp && info.route_failures == 0 {
            probe.reach("tail probe");
        }
        if segment.seq_len() > 0 && !is_syn && info.peer_window == 0 {
            probe.reach("window probe");
        }
    }

    /// Checks an acknowledgement.
    fn sent_ack(&mut self, segment: &Segment, info: &Info, probe: &mut Probe) {
        let Self { name, shift, .. } = *self;
        let irs = self.irs.expect("an acknowledgement needs a SYN");
        let has_fin =
            matches!(info.state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait);
        let received = info.bytes_received + u64::from(has_fin);
        assert_eq!(segment.ack.distance(irs + 1) as u64, received, "{name}: acknowledges what has arrived");
        self.acked = segment.ack;
        let is_syn = segment.flags.contains(Flags::SYN);
        let unit = if is_syn { 0 } else { shift };
        // A SYN cannot advertise more, whatever was advertised before it was retransmitted.
        let says_all_it_can = is_syn && segment.window == u16::MAX;
        let edge = segment.ack + (u32::from(segment.window) << unit);
        if let Some(last) = self.edge.filter(|_| !says_all_it_can) {
            let retreat = last.distance(edge);
            // Rounding to the unit of the scale may lose less than one unit (RFC 7323, section
            // 2.4).
            let excused = if shift == 0 { 0 } else { (1 << shift) - 1 };
            assert!(retreat <= excused, "{name}: right edge back by {retreat}, shift {shift}");
        }
        if self.tunes && edge.distance(segment.ack) > (self.config.receive_buffer + (1 << shift)) as i32 {
            probe.reach("receive buffer grows");
        }
        let edge = self.edge.map_or(edge, |last| last.max(edge));
        self.edge = Some(edge);
        if !segment.payload.is_empty() && !segment.options.sack.is_empty() {
            probe.reach("SACK beside data");
        }
        for (i, block) in segment.options.sack.as_slice().iter().enumerate() {
            // RFC 2883, section 4: the first block may report a duplicate.
            let duplicate = i == 0 && self.config.dsack;
            let held = block.left.gt(segment.ack) && block.right.le(edge);
            assert!(block.left.lt(block.right) && (held || duplicate), "{name}: SACK in {}", line(segment));
            if !held {
                probe.reach("D-SACK sent");
            }
        }
    }

    /// Checks invariants that hold between any two calls.
    fn check(&mut self, probe: &mut Probe) {
        let info = self.info();
        let name = self.name;
        // Rounding up to the unit of the scale may advertise one unit too much.
        let room = self.buffer.saturating_add(if self.shift == 0 { 0 } else { 1 << self.shift });
        assert!(info.readable <= room, "{name}: {} readable of {room}", info.readable);
        let held = u64::from(info.in_flight) + u64::from(info.unsent);
        // SYN and FIN are in flight too.
        let most = u64::from(self.most_unacknowledged) + 2;
        assert!(held <= most, "{name}: {held} octets in a send buffer of {most}");
        assert!(info.mss > 0 && info.cwnd > 0, "{name}: {info:?}");
        assert!(info.rto <= self.config.rto.max.max(self.config.rto.min), "{name}: {info:?}");
        assert!(info.bytes_acked <= self.written, "{name}: {info:?}");
        let limit = self.config.window_limit.unwrap_or(u32::MAX).max(1).saturating_mul(info.mss.into());
        assert!(info.cwnd <= limit || info.recovery == RecoveryStage::Recovery, "{name}: {info:?}");
        if info.state == State::Closed {
            assert_eq!(self.next_timeout(), None, "{name}: a timer after the end");
        } else {
            let outstanding = self.sent_to.distance(self.una());
            let known = i64::from(info.in_flight.max(info.sacked));
            assert!(known <= outstanding.into(), "{name}: {outstanding} outstanding: {info:?}");
            assert_eq!(u64::from(info.buffered), self.written - info.bytes_acked, "{name}: {info:?}");
            let lost = self.aborted || self.released;
            assert!(lost || self.read + u64::from(info.readable) == info.bytes_received, "{name}: {info:?}");
        }
        probe.feature(("timeouts", info.timeouts.min(8), "fast", info.fast_retransmits.min(4)));
        probe.feature(("cwnd", (info.cwnd / u32::from(info.mss)).min(40), info.state as u8));
        probe.feature(("dropped", info.segments_dropped.min(8), info.state as u8));
        self.landmarks(&info, probe);
    }

    fn landmarks(&self, info: &Info, probe: &mut Probe) {
        let config = &self.config;
        let by_samples = config.congestion == CongestionAlgorithm::Bbr;
        let congested = info.timeouts + info.fast_retransmits + info.mark_reductions > 0;
        let slow_start_ends = config.hystart && config.initial_ssthresh.is_none() && !by_samples;
        for (landmark, reached) in [
            ("CE received", info.marks_received > 0),
            ("reduction for a mark", info.mark_reductions > 0),
            ("SACK report", info.sacked > 0),
            ("fast retransmit", info.fast_retransmits > 0),
            (
                "PRR recovery",
                config.prr && !by_samples && info.sacked > 0 && info.recovery == RecoveryStage::Recovery,
            ),
            ("end of slow start by HyStart++", slow_start_ends && !congested && info.ssthresh != u32::MAX),
            ("send buffer grows", self.tunes && info.send_buffer > config.send_buffer),
        ] {
            if reached {
                probe.reach(landmark);
            }
        }
    }

    /// Checks what must hold when nothing more is sent.
    fn polled(&self, probe: &mut Probe) {
        let (info, config) = (self.info(), &self.config);
        let by_samples = config.congestion == CongestionAlgorithm::Bbr;
        let (mss, window) = (u32::from(info.mss), info.cwnd.min(info.peer_window));
        let outstanding = self.sent_to.distance(self.una()) as u32;
        let full = info.unsent >= mss && outstanding + mss <= window;
        // Segments that were sent twice count twice against the window.
        let counted = info.retransmissions == 0 || outstanding == 0;
        let is_opening = matches!(info.state, State::SynSent | State::SynReceived);
        let stands_by = config.elfn.is_some() && info.route_failures > 0;
        if full && counted && info.recovery == RecoveryStage::Open && !is_opening && !stands_by {
            assert!(config.pacing || by_samples, "{}: sends nothing: {info:?}", self.name);
            probe.reach("wait for pacing");
        }
        // Only the debug text shows it; the text is long unless few bytes are held.
        let few = info.buffered + info.readable < 500;
        if by_samples && few && probe.looks_for("ProbeRTT") {
            let text = format!("{:?}", self.connection);
            if text.contains("state: ProbeRtt") {
                probe.reach("ProbeRTT");
            }
        }
    }
}

/// Timestamp clock of a connection.
pub(super) fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

fn line(segment: &Segment) -> String {
    let Segment { seq, ack, flags, window, options, payload, .. } = segment;
    format!("{flags:?} seq {seq} len {} ack {ack} win {window} {options:?}", payload.len())
}
