//! One TCP connection: the states of RFC 9293 section 3.3.2 and the transitions between them.

mod ecn;
mod events;
mod handshake;
mod input;
mod linger;
mod output;
mod stamps;
mod subflow;
mod tuning;
mod types;
mod user_timeout;

pub use types::{CloseReason, Event, Info, State, WriteError};

use alloc::boxed::Box;

use bytes::Bytes;

use self::ecn::Notification;
use self::events::{Events, Pending};
use self::input::AnswerLimit;
use self::linger::Watch;
use self::stamps::Stamps;
use self::tuning::Tuning;
use self::user_timeout::UserTimeout;
use super::Config;
use super::multipath::Multipath;
use super::receiver::Receiver;
use super::sender::{Expired, Sender};
use crate::segment::{Ecn, Flags, Mptcp, Options, Segment, SeqNumber};
use crate::time::{Duration, Instant};

/// One TCP connection.
///
/// Call any number of `handle_*` and commands, then [`Connection::poll_transmit`] and
/// [`Connection::poll_event`] until `None`, then [`Connection::next_timeout`]. Answers, window
/// updates and FINs are only returned by the next `poll_transmit`.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    state: State,
    opening: Opening,
    local_port: u16,
    remote_port: u16,
    tx: Sender,
    rx: Receiver,
    /// Snd.Wind.Shift (RFC 7323 section 2.2).
    send_shift: u8,
    /// Whether the peer has offered window scaling.
    peer_scales: bool,
    /// Timestamps, once both sides have offered them.
    stamps: Option<Stamps>,
    /// Whether to send SACK blocks: the peer has sent SACK-permitted and our role allows it.
    sends_sack: bool,
    ecn: Notification,
    /// Whether a SYN or SYN-ACK is to be sent.
    syn_due: bool,
    /// Whether [`Connection::close`] was called.
    closing: bool,
    /// A reset to be sent, even after the connection has closed.
    reset: Option<Segment>,
    /// When TIME-WAIT ends or, after [`Connection::release`], when the wait for the peer ends.
    lingers_until: Option<Instant>,
    /// Whether [`Connection::release`] was called.
    released: bool,
    watch: Option<Watch>,
    challenges: AnswerLimit,
    probe_answers: AnswerLimit,
    events: Events,
    dropped: u64,
    route_failures: u64,
    /// Multipath TCP state, if this is a subflow.
    multipath: Option<Box<Multipath>>,
    tuning: Option<Tuning>,
    user_timeout: Option<UserTimeout>,
}

/// Which side opened the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Opening {
    Active,
    Passive,
}

impl Connection {
    /// Opens a connection actively (SYN-SENT). [`Connection::poll_transmit`] returns the SYN first.
    /// `iss` should be unpredictable (RFC 9293 section 3.4.1).
    pub fn connect(now: Instant, config: Config, local_port: u16, remote_port: u16, iss: SeqNumber) -> Self {
        Self::new(now, config, Opening::Active, (local_port, remote_port), iss)
    }

    /// Opens a connection passively: answers a SYN received in LISTEN and enters SYN-RECEIVED.
    /// `None` if the segment is not an acceptable SYN (RFC 9293 section 3.10.7.2); the caller then
    /// answers with [`reset_for`].
    ///
    /// Data and FIN in the SYN are not accepted; the peer retransmits them.
    pub fn accept(now: Instant, config: Config, syn: &Segment, iss: SeqNumber) -> Option<Self> {
        let has = |flag| syn.flags.contains(flag);
        if !has(Flags::SYN) || has(Flags::ACK) || has(Flags::RST) {
            return None;
        }
        let mut this = Self::new(now, config, Opening::Passive, (syn.dst_port, syn.src_port), iss);
        this.state = State::SynReceived;
        this.take_syn(now, syn);
        Some(this)
    }

    fn new(now: Instant, config: Config, opening: Opening, ports: (u16, u16), iss: SeqNumber) -> Self {
        Self {
            state: State::SynSent,
            opening,
            local_port: ports.0,
            remote_port: ports.1,
            tx: Sender::new(&config, iss),
            rx: Receiver::new(&config),
            send_shift: 0,
            peer_scales: false,
            stamps: None,
            sends_sack: false,
            ecn: Notification::new(config.ecn),
            syn_due: true,
            closing: false,
            reset: None,
            lingers_until: None,
            released: false,
            watch: config.keep_alive.map(|keep| Watch::new(now, keep)),
            challenges: AnswerLimit::CHALLENGES,
            probe_answers: AnswerLimit::PROBES,
            events: Events::default(),
            dropped: 0,
            route_failures: 0,
            multipath: None,
            tuning: config.auto_tune.map(|most| Tuning::new(most, config.rto.initial)),
            user_timeout: None,
            config,
        }
    }

    /// Handles a segment for this connection.
    pub fn handle_segment(&mut self, now: Instant, segment: Segment) {
        let una = self.tx.una();
        let taken = match self.state {
            State::Closed => {
                self.dropped += 1;
                false
            }
            State::SynSent => {
                self.segment_in_syn_sent(now, segment);
                self.state != State::SynSent
            }
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => self.segment_in_window(now, segment),
        };
        // Only an accepted segment counts as a sign of life: a forged one must not keep the
        // connection open.
        if taken {
            self.note_heard(now, una);
        }
    }

    /// Notes that an accepted segment has arrived. `una` is SND.UNA before that segment.
    #[inline]
    fn note_heard(&mut self, now: Instant, una: SeqNumber) {
        if let Some(watch) = &mut self.watch {
            watch.heard(now);
        }
        if self.tx.una() != una {
            self.note_progress(now);
        }
        self.note_answer(now, una);
    }

    /// Handles expired timers. See [`Connection::next_timeout`]; an early call has no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.state == State::Closed || self.linger_ends(now) {
            return;
        }
        if self.watch_fails(now) {
            return;
        }
        self.rx.handle_timeout(now);
        if self.user_timeout_at().is_some_and(|at| at <= now) {
            return self.give_up(now);
        }
        match self.tx.handle_timers(now, self.retry_limit()) {
            Expired::No => {}
            Expired::Retry => self.syn_due = self.is_opening(),
            Expired::GiveUp => self.give_up(now),
        }
    }

    /// Closes the connection because the peer has not answered for too long.
    fn give_up(&mut self, now: Instant) {
        // RFC 9293 section 3.10.5: in SYN-SENT no reset is sent.
        if self.state != State::SynSent {
            self.reset = Some(self.reset_segment(now));
        }
        self.finish(CloseReason::TimedOut);
    }

    /// Handles a notice that there is no route to the peer, from a router or from the node itself:
    /// an ICMP host unreachable message or its equivalent in an ad hoc network. It is a soft error
    /// and never ends the connection (RFC 1122 section 4.2.3.9).
    ///
    /// With [`Config::elfn`] and outstanding data the connection enters stand-by. It has no
    /// retransmission time-out there, and sends only the first unacknowledged segment, once per
    /// interval and without a limit. An acknowledgement ends the stand-by, and the connection
    /// continues with the previous window and time-out. A further notice during stand-by has no
    /// effect.
    pub fn handle_route_failure(&mut self, now: Instant) {
        self.route_failures += 1;
        match self.state {
            State::Established | State::FinWait1 | State::CloseWait | State::Closing | State::LastAck => {
                self.tx.stand_by(now)
            }
            State::SynSent | State::SynReceived | State::FinWait2 | State::TimeWait | State::Closed => {}
        }
    }

    /// When to call [`Connection::handle_timeout`]; may lie in the past.
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Closed => None,
            State::TimeWait => [self.linger_deadline(), self.rx.ack_deadline()].into_iter().flatten().min(),
            State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => {
                let transfer = [self.tx.next_timeout(), self.rx.ack_deadline()];
                let limits = [self.linger_deadline(), self.user_timeout_at(), self.watch_deadline()];
                transfer.into_iter().chain(limits).flatten().min()
            }
        }
    }

    /// Returns the next segment to send, until `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        // The reset comes first, since it must also leave after the connection has entered CLOSED.
        if let Some(reset) = self.reset.take() {
            return Some(reset);
        }
        let segment = match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => self.poll_handshake(now),
            State::TimeWait => self.poll_ack(now),
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => self.poll_stream(now),
        }?;
        self.note_owed(now, &segment);
        Some(segment)
    }

    /// Returns the next event for the owner, until `None`. An event that occurs twice between two
    /// calls is reported once; events come in the order of [`Event`]'s variants.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// For a subflow: sets whether the MPTCP connection has more data than it has written here, and
    /// whether this subflow may send copies of data that another subflow has sent.
    pub(crate) fn set_more(&mut self, more: bool, copies: bool) {
        self.tx.set_more(more, copies);
    }

    /// Queues data, up to the free space of the send buffer, without copying. Removes the accepted
    /// bytes from the front of `data` and returns their number. Allowed from SYN-SENT on.
    pub fn write(&mut self, data: &mut Bytes) -> Result<usize, WriteError> {
        match self.state {
            State::Closed => Err(WriteError::Closed),
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait => {
                Err(WriteError::Closing)
            }
            State::SynSent | State::SynReceived if self.closing => Err(WriteError::Closing),
            State::SynSent | State::SynReceived | State::Established | State::CloseWait => {
                Ok(self.tx.write(data))
            }
        }
    }

    /// Returns up to `max` bytes in order, or `None` if there are none. Reading opens the window.
    /// Received data stays readable after the connection has closed, unless [`Connection::abort`]
    /// closed it.
    #[inline]
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        let data = self.rx.read(max)?;
        self.maybe_update_window();
        Some(data)
    }

    /// Closes the sending direction: FIN follows the last byte. The peer may continue to send
    /// (half-close).
    ///
    /// Before the end of the handshake the FIN waits (RFC 9293 section 3.10.4). In SYN-SENT without
    /// written data the connection closes at once, without a segment.
    pub fn close(&mut self, _now: Instant) {
        if self.closing {
            return;
        }
        match self.state {
            State::SynSent if self.tx.unsent() == 0 => return self.finish(CloseReason::Aborted),
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            State::SynSent | State::SynReceived => {}
            State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => return,
        }
        self.closing = true;
        self.tx.finish();
    }

    /// Discards all data and resets the connection (RFC 9293 section 3.10.5).
    pub fn abort(&mut self, now: Instant) {
        match self.state {
            State::Closed => return,
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => self.reset = Some(self.reset_segment(now)),
            // RFC 9293 section 3.10.5: these states end without a reset.
            State::SynSent | State::Closing | State::LastAck | State::TimeWait => {}
        }
        self.rx.discard();
        self.finish(CloseReason::Aborted);
    }

    /// Sets the size of the receive buffer in bytes. The offered window follows, but its right edge
    /// never moves left (RFC 9293 section 3.8.6.2.1).
    ///
    /// [`Config::auto_tune`] no longer changes the buffer afterwards.
    pub fn set_receive_buffer(&mut self, octets: u32) {
        self.tuning.as_mut().map(Tuning::leave_receiver);
        self.rx.set_buffer(octets);
        self.maybe_update_window();
    }

    /// Sets the size of the send buffer in bytes. A larger buffer has room at once and raises
    /// [`Event::Writable`]. A smaller one drops nothing, but [`Connection::write`] accepts no data
    /// until the buffer has drained below the new size. [`Config::auto_tune`] no longer changes the
    /// buffer afterwards.
    pub fn set_send_buffer(&mut self, octets: u32) {
        self.tuning.as_mut().map(Tuning::leave_sender);
        if self.tx.set_buffer(octets) && self.state != State::Closed {
            self.events.raise(Pending::Writable);
        }
    }

    /// Limits the queueing delay that the data of this connection causes on its path, so that other
    /// traffic of the host finds a short queue; `None` ends the limit. No effect in slow start,
    /// with BBR, and on paths with a round trip of more than twelve times `delay`.
    ///
    /// At most what the path delivers in its shortest round-trip time and `delay` is in flight, and
    /// at least four segments. Every ten seconds half of that, for two round trips, measures the
    /// shortest round-trip time. Where most of the queue remains then, it is that of others, and
    /// there is no limit for the next ten seconds, and longer if that repeats.
    pub fn limit_queue(&mut self, delay: Option<Duration>) {
        self.tx.limit_queue(delay);
    }

    /// The state of RFC 9293.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Statistics of the connection.
    pub fn info(&self) -> Info {
        let (rtt, counts) = (self.tx.rtt(), self.tx.counts());
        Info {
            state: self.state,
            mss: self.tx.mss().min(u32::from(u16::MAX)) as u16,
            cwnd: self.tx.cwnd(),
            ssthresh: self.tx.ssthresh(),
            peer_window: self.tx.peer_window(),
            in_flight: self.tx.in_flight(),
            unsent: self.tx.unsent(),
            buffered: self.tx.buffered(),
            send_buffer: self.tx.buffer(),
            readable: self.rx.readable(),
            srtt: rtt.srtt(),
            rttvar: rtt.rttvar(),
            min_rtt: rtt.min_rtt(),
            recent_rtt: rtt.recent_rtt(),
            delivery_rate: self.tx.delivery_rate(),
            rto: rtt.rto(),
            retransmissions: counts.retransmissions,
            timeouts: counts.timeouts,
            fast_retransmits: counts.fast_retransmits,
            undone: counts.undone,
            ecn: self.ecn.is_agreed(),
            marks_received: self.ecn.marks(),
            mark_reductions: counts.marked,
            bytes_sent: counts.bytes_sent,
            bytes_acked: counts.bytes_acked,
            bytes_received: self.rx.received(),
            sacked: self.tx.sacked_bytes(),
            recovery: self.tx.recovery_stage(),
            segments_dropped: self.dropped,
            route_failures: self.route_failures,
        }
    }

    fn is_opening(&self) -> bool {
        match self.state {
            State::SynSent | State::SynReceived => true,
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => false,
        }
    }

    fn retry_limit(&self) -> u8 {
        if self.is_opening() { self.config.syn_retries } else { self.config.data_retries }
    }

    /// Schedules a window update if reading or a larger buffer has opened the window and the peer
    /// may still send.
    #[inline]
    fn maybe_update_window(&mut self) {
        match self.state {
            State::Established | State::FinWait1 | State::FinWait2 => {
                if self.rx.wants_update() {
                    self.rx.acknowledge_once();
                }
            }
            State::SynSent
            | State::SynReceived
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => {}
        }
    }

    /// Enters CLOSED. A reset that is due is still sent.
    fn finish(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.tx.shut();
        self.events.close(reason);
    }

    /// Enters TIME-WAIT, or restarts it (RFC 9293 section 3.6.1).
    fn wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.tx.shut();
        self.lingers_until = Some(now + self.config.time_wait);
    }

    /// Builds `<SEQ=SND.NXT><CTL=RST>` (RFC 9293 section 3.10.5). A reset should carry timestamps
    /// if the connection uses them (RFC 7323 section 3.2); it then also carries an acknowledgement,
    /// because TSecr is valid only with ACK.
    fn reset_segment(&mut self, now: Instant) -> Segment {
        let mptcp = self.multipath.as_mut().map_or(Mptcp::NONE, |multipath| multipath.of_reset());
        let bare = Segment {
            src_port: self.local_port,
            dst_port: self.remote_port,
            seq: self.tx.control_seq(),
            flags: Flags::RST,
            mptcp,
            ..Segment::default()
        };
        let ack = self.rx.nxt();
        match self.stamps.as_mut().map(|stamps| stamps.stamp(now, ack)) {
            None => bare,
            timestamps => Segment {
                ack,
                flags: Flags::RST.with(Flags::ACK),
                options: Options { timestamps, ..Options::default() },
                ..bare
            },
        }
    }
}

/// Builds the reset that answers a segment without a connection; `None` if the segment is itself a
/// reset (RFC 9293 section 3.10.7.1).
pub fn reset_for(segment: &Segment) -> Option<Segment> {
    if segment.flags.contains(Flags::RST) {
        return None;
    }
    // The reset must carry an acceptable sequence number: SEG.ACK if there is one. Otherwise it
    // acknowledges the segment, which is what makes a reset acceptable in SYN-SENT.
    let (seq, ack, flags) = if segment.flags.contains(Flags::ACK) {
        (segment.ack, SeqNumber(0), Flags::RST)
    } else {
        (SeqNumber(0), segment.seq_end(), Flags::RST.with(Flags::ACK))
    };
    Some(Segment {
        src_port: segment.dst_port,
        dst_port: segment.src_port,
        seq,
        ack,
        flags,
        window: 0,
        options: Options::default(),
        mptcp: Mptcp::NONE,
        payload: Bytes::new(),
        ecn: Ecn::NotEct,
    })
}
