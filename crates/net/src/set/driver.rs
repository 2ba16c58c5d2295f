//! Runs one machine and all of its sockets in one task: carries out effects, feeds events, and
//! keeps the timer.

use std::collections::BTreeMap;
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time;

use anabranch_core::set::{Effect, Leg, StreamClose, StreamEvent, StreamId, TransferId};
use anabranch_core::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

use super::crowd::{self, Caller, Host, Hosts, Idler};
use super::line::{Line, Moved, Reading};
use super::machine::{Held, OverSockets};
use super::options::SocketOptions;
use super::pace::intake::Seat;
use super::pace::outflow::Outflow;
use super::security::{RefusedCounters, Security};
use crate::clock::Clock;

/// Pause of the listener after an error, such as too many open descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Read size, in bytes, for a sender that has not named its destination: no bucket accounts for
/// these bytes.
const GREETING: usize = 64;

/// Read size, in bytes, for a peer that has not proved its key: larger than a greeting, and small
/// enough that noise costs little to copy.
const UNPROVEN: usize = 1 << 10;

/// Decides which addresses may be dialled.
pub(super) type Permit = Box<dyn Fn(Instant, SocketAddr) -> Permission + Send>;

/// Decision about an outgoing connection.
pub(super) enum Permission {
    /// Permitted. The incoming connection that caused it gets this seat, if there are seats.
    Granted(Option<Seat>),
    /// The destination is not permitted.
    Forbidden,
    /// The destination has no capacity now.
    Congested,
}

/// Where a new connection finds room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    /// The number of connections is below the limit.
    Free,
    /// In place of this connection, whose peer has not proved its key and has no unread bytes.
    Of(StreamId),
    /// In place of a connection whose bytes must be read first: they may be a valid greeting.
    Later,
    /// No room: all peers have proved their keys.
    None,
}

/// How incoming connections are read.
enum Intake {
    /// Without a limit.
    Free,
    /// In small pieces, until the destination is known.
    Greeting,
    /// In turn, as the seat allows.
    Paced,
}

/// A connection that failed, for reports.
#[derive(Debug)]
pub struct LineError {
    /// The remote address.
    pub peer: SocketAddr,
    /// The leg of the path; `None` for an incoming connection.
    pub leg: Option<Leg>,
    /// The kernel's error.
    pub error: io::Error,
}

/// Number of peers whose last error is kept; reports name at most this many.
const MAX_ERRORS: usize = 16;

/// A machine over sockets.
pub(super) struct Driver<M> {
    pub(super) machine: M,
    clock: Clock,
    options: SocketOptions,
    listener: Option<TcpListener>,
    accept_after: Instant,
    permit: Permit,
    security: Security,
    /// Value last passed to `security`: see [`OverSockets::live`].
    live: [Option<TransferId>; 2],
    intake: Intake,
    /// Seat of the incoming connection.
    seat: Option<Seat>,
    /// Rate limits of outgoing connections.
    outflow: Option<Box<Outflow>>,
    /// The file to send, if the machine does not hold its bytes.
    file: Option<File>,
    /// The error if the file could not be read.
    pub(super) unread: Option<io::Error>,
    /// Streams that were reset because a chunk could not be completed from the file.
    torn: Vec<StreamId>,
    /// Boxed, since a map node has room for at least eleven values.
    lines: BTreeMap<StreamId, Box<Line>>,
    /// Start of the next round: the line after the last one that progressed.
    turn: StreamId,
    timer: Pin<Box<Sleep>>,
    armed: Instant,
    /// Closed lines and their numbers of retransmitted segments.
    past: Vec<(StreamId, u32)>,
    /// The last error of each peer, at most [`MAX_ERRORS`], in order of occurrence.
    pub(super) errors: Vec<LineError>,
    /// True if an outgoing connection failed.
    called_in_vain: bool,
    /// Hosts whose peers have proved their keys.
    hosts: Hosts,
    /// Streams that were reset because of invalid or missing input.
    pub(super) refused: RefusedCounters,
}

impl<M: OverSockets> Driver<M> {
    pub(super) fn new(clock: Clock, machine: M, options: SocketOptions) -> Self {
        Self {
            machine,
            clock,
            options,
            listener: None,
            accept_after: Instant::ZERO,
            permit: Box::new(|_, _| Permission::Granted(None)),
            security: Security::None,
            live: [None; 2],
            intake: Intake::Free,
            seat: None,
            outflow: None,
            file: None,
            unread: None,
            torn: Vec::new(),
            lines: BTreeMap::new(),
            turn: StreamId(0),
            timer: Box::pin(sleep(time::Duration::ZERO)),
            armed: Instant::ZERO,
            past: Vec::new(),
            errors: Vec::new(),
            called_in_vain: false,
            hosts: Hosts::default(),
            refused: RefusedCounters::default(),
        }
    }

    /// Accepts connections from this listener.
    pub(super) fn listening(self, listener: TcpListener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// Limits outgoing connections by `permit`.
    pub(super) fn permitting(self, permit: Permit) -> Self {
        Self { permit, ..self }
    }

    /// Reads incoming connections in turn, each by the seat that `permit` returns.
    pub(super) fn pacing(self) -> Self {
        Self { intake: Intake::Greeting, ..self }
    }

    /// Limits the rate of outgoing connections.
    pub(super) fn bounded(self, outflow: Option<Outflow>) -> Self {
        Self { outflow: outflow.map(Box::new), ..self }
    }

    /// Sets the file that the machine sends.
    pub(super) fn reading(self, file: Option<File>) -> Self {
        Self { file, ..self }
    }

    /// Sets the encryption of the streams.
    pub(super) fn secured(self, security: Security) -> Self {
        Self { security, ..self }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// True if there is no connection, open or in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.lines.is_empty()
    }

    /// True if an outgoing connection exists, open or in progress.
    pub(super) fn has_dialled(&self) -> bool {
        self.lines.values().any(|line| line.leg.is_some())
    }

    /// Number of segments that TCP has retransmitted on a stream.
    pub(super) fn retransmissions(&self, stream: StreamId) -> u32 {
        let past = || self.past.iter().find(|(id, _)| *id == stream).map(|(_, n)| *n);
        self.lines.get(&stream).map(|line| line.retransmissions).or_else(past).unwrap_or(0)
    }

    /// True if the number of incoming connections has reached the limit.
    fn is_full(&self) -> bool {
        self.lines.values().filter(|line| line.leg.is_none()).count() >= self.options.connections
    }

    /// Adds the only incoming connection of a driver without a listener.
    pub(super) fn accept(&mut self, stream: Arc<TcpStream>, peer: SocketAddr) {
        self.take(Room::Free, stream, peer);
    }

    /// Where the next connection finds room: see [`crowd::idler`].
    fn room(&self) -> Room {
        if !self.is_full() {
            return Room::Free;
        }
        let unproven = self.lines.iter().filter(|(_, line)| line.leg.is_none() && !line.is_proven());
        let unproven: Vec<(StreamId, &Line)> = unproven.map(|(stream, line)| (*stream, &**line)).collect();
        let callers: Vec<Caller> = unproven.iter().map(|(_, line)| self.caller(line)).collect();
        match crowd::idler(&callers, |index| unproven[index].1.has_unread()) {
            Idler::At(index) => Room::Of(unproven[index].0),
            Idler::Later => Room::Later,
            Idler::None => Room::None,
        }
    }

    fn caller(&self, line: &Line) -> Caller {
        let host = Host::of(line.peer);
        Caller {
            host,
            is_known: self.hosts.has(host),
            is_introduced: line.is_introduced(),
            since: line.since,
        }
    }

    /// Adds an incoming connection if there is room.
    fn take(&mut self, room: Room, stream: Arc<TcpStream>, peer: SocketAddr) {
        let now = self.now();
        let line = Line::accepted(now, stream, peer, self.security.accepted(), &self.options);
        let Ok(line) = line else { return };
        self.refused.surplus += u64::from(room != Room::Free);
        match room {
            Room::Free => {}
            Room::Of(idler) => self.handle(now, idler, Moved::Closed(StreamClose::TimedOut)),
            Room::Later | Room::None => return line.abort(),
        }
        if let Some(stream) = self.machine.handle_accepted(now) {
            self.lines.insert(stream, Box::new(line));
        }
    }

    /// Resets all streams without telling the machine, which is about to be dropped.
    pub(super) fn abort_all(&mut self) {
        std::mem::take(&mut self.lines).into_values().for_each(|line| line.abort());
    }

    /// Carries out effects of the machine until there are none, or returns bytes for the owner.
    pub(super) fn pump(&mut self) -> Option<Bytes> {
        loop {
            while let Some(effect) = self.poll_effect() {
                if let Some(octets) = self.act(effect) {
                    return Some(octets);
                }
            }
            if !self.flush() {
                return None;
            }
        }
    }

    /// The next effect of the machine.
    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        self.machine.poll_effect(self.clock.now())
    }

    /// Carries out one effect. Returns bytes for the owner.
    pub(super) fn act(&mut self, effect: Effect) -> Option<Bytes> {
        let now = self.now();
        match effect {
            Effect::Dial { stream, to, leg } => {
                // IPv4-mapped IPv6 addresses are treated as IPv4, by the permit and by the kernel.
                let to = SocketAddr::new(to.ip().to_canonical(), to.port());
                let why = match self.security.dialled(&self.machine, stream, leg) {
                    Ok(guard) => match (self.permit)(now, to) {
                        Permission::Granted(seat) => {
                            let line = Line::dial(now, to, leg, guard, &self.options);
                            self.lines.insert(stream, Box::new(line));
                            self.seat(seat);
                            return None;
                        }
                        Permission::Forbidden => StreamClose::Forbidden,
                        Permission::Congested => StreamClose::Congested,
                    },
                    Err(error) => {
                        self.note(LineError { peer: to, leg: Some(leg), error });
                        StreamClose::Forbidden
                    }
                };
                self.machine.handle_stream(now, stream, StreamEvent::Closed(why));
            }
            Effect::Write { stream, octets } => {
                if let (Some(outflow), Some(line)) = (&mut self.outflow, self.lines.get(&stream))
                    && line.leg == Some(Leg::Wired)
                {
                    outflow.charge(now, line.peer, octets.len() as u64);
                }
                self.with(stream, |line| line.write(octets));
            }
            Effect::WriteFile { stream, start, end } => match self.read_file(start, end) {
                Ok(octets) => return self.act(Effect::Write { stream, octets }),
                Err(error) => {
                    // The chunk header is already written, so any later bytes on this stream would
                    // be taken for the file. The machine is told only after the owner has cancelled
                    // the transfer; otherwise it would try another path. See [`Driver::tell_torn`].
                    self.unread = Some(error);
                    if let Some(line) = self.forget(stream) {
                        line.abort();
                        self.torn.push(stream);
                    }
                }
            },
            Effect::Shutdown { stream } => self.with(stream, Line::close),
            Effect::LimitReceive { stream, octets } => self.with(stream, |line| line.limit(now, octets)),
            Effect::Abort { stream } => {
                if let Some(line) = self.forget(stream) {
                    line.abort();
                }
            }
            Effect::Deliver { octets } => return Some(octets),
        }
        None
    }

    /// Tells the machine which streams were reset because the file could not be read.
    pub(super) fn tell_torn(&mut self) {
        let now = self.now();
        for stream in std::mem::take(&mut self.torn) {
            self.machine.handle_stream(now, stream, StreamEvent::Closed(StreamClose::TimedOut));
        }
    }

    /// Reads a part of the file that the machine sends.
    fn read_file(&self, start: u64, end: u64) -> io::Result<Bytes> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let length = usize::try_from(end - start).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut octets = BytesMut::zeroed(length);
        file.read_exact_at(&mut octets, start).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "it has become shorter"),
            _ => error,
        })?;
        Ok(octets.freeze())
    }

    /// Writes queued bytes and reports the status of these streams to the machine. Returns false if
    /// there was nothing to do.
    pub(super) fn flush(&mut self) -> bool {
        let now = self.clock.now();
        let mut any = false;
        let wired = |line: &Line| line.leg == Some(Leg::Wired);
        let sessions = self.outflow.as_ref().map_or(0, |_| self.lines.values().filter(|l| wired(l)).count());
        let mut index = 0;
        for (stream, line) in &mut self.lines {
            let place = (index, sessions);
            // Every session counts, written to or not, since the index determines its turn.
            index += usize::from(wired(line));
            if !line.dirty {
                continue;
            }
            any = true;
            line.dirty = false;
            line.flush(now);
            let Some(mut status) = line.look(now) else { continue };
            if let Some(outflow) = &mut self.outflow
                && wired(line)
            {
                status = outflow.restrain(now, line.peer, place, status);
            }
            self.machine.handle_status(now, *stream, status);
        }
        any
    }

    /// Assigns a seat to the incoming connection.
    fn seat(&mut self, seat: Option<Seat>) {
        if let (Intake::Greeting, Some(_)) = (&self.intake, &seat) {
            self.intake = Intake::Paced;
        }
        self.seat = seat.or(self.seat.take());
    }

    /// Waits for the next event and reports it to the machine. Call it only after all effects are
    /// carried out.
    pub(super) async fn next(&mut self) {
        self.arm();
        self.pin();
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.now();
        let fired = self.timer.as_mut().poll(cx).is_ready();
        if fired {
            self.handle_times(now);
        }
        // At the limit, unproved connections are read before new ones are accepted: their number is
        // bounded, and so is the input of each.
        let is_full = self.listener.is_some() && self.is_full();
        if is_full && self.poll_lines(cx, now, |line| line.leg.is_none() && !line.is_proven()) {
            return Poll::Ready(());
        }
        if self.poll_accept(cx, now) || self.poll_lines(cx, now, |_| true) || fired {
            return Poll::Ready(());
        }
        if self.seat.as_ref().and_then(Seat::due).is_some_and(|due| due < self.armed) {
            // A line may just have set a timer.
            self.arm();
            if self.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Number of connections, incoming and outgoing.
    pub(super) fn connections(&self) -> usize {
        self.lines.len()
    }

    /// True if the last accept failed.
    pub(super) fn is_deaf(&self) -> bool {
        self.accept_after > self.now()
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let Some(listener) = &self.listener else { return false };
        if now < self.accept_after {
            return false;
        }
        let room = self.room();
        if room == Room::Later {
            // The waiting bytes wake this task.
            return false;
        }
        match listener.poll_accept(cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok((stream, peer))) => self.take(room, Arc::new(stream), peer),
            Poll::Ready(Err(_)) => self.accept_after = now + ACCEPT_PAUSE,
        }
        true
    }

    /// Polls the selected lines in turn until one progresses.
    fn poll_lines(&mut self, cx: &mut Context<'_>, now: Instant, which: fn(&Line) -> bool) -> bool {
        let limit = self.options.queue as usize;
        let held: usize = self.lines.values().map(|line| line.queued()).sum();
        let Self { intake, seat, .. } = self;
        let mut poll = |(stream, line): (&StreamId, &mut Box<Line>)| {
            if !which(line) {
                return None;
            }
            let reading = match M::HELD {
                Held::Own => line.queued() <= limit,
                Held::All => held <= limit,
            };
            let reading = match intake {
                _ if !reading => Reading::No,
                Intake::Greeting if line.leg.is_none() => Reading::AtMost(GREETING),
                Intake::Free if line.leg.is_none() && !line.is_proven() => Reading::AtMost(UNPROVEN),
                Intake::Paced if line.leg.is_none() => seat.as_mut().map_or(Reading::Free, Reading::InTurn),
                Intake::Free | Intake::Greeting | Intake::Paced => Reading::Free,
            };
            line.poll(cx, now, reading).map(|moved| (*stream, moved))
        };
        // Round robin, so that a busy line does not starve the others.
        let later = self.lines.range_mut(self.turn..).find_map(&mut poll);
        let found = later.or_else(|| self.lines.range_mut(..self.turn).find_map(poll));
        let Some((stream, moved)) = found else { return false };
        self.turn = StreamId(stream.0.wrapping_add(1));
        self.handle(now, stream, moved);
        true
    }

    fn handle(&mut self, now: Instant, stream: StreamId, moved: Moved) {
        self.with(stream, |line| line.dirty = true);
        match moved {
            Moved::Stirred => {}
            Moved::Data(octets) => self.hear(now, stream, octets),
            Moved::Ended => self.machine.handle_stream(now, stream, StreamEvent::Ended),
            Moved::Opened => {
                self.machine.handle_stream(now, stream, StreamEvent::Opened);
                let status = self.lines.get_mut(&stream).and_then(|line| line.look(now));
                if let Some(rtt) = status.and_then(|status| status.srtt) {
                    self.machine.handle_round_trip(now, stream, rtt);
                }
            }
            Moved::Closed(why) => {
                if let Some(line) = self.forget(stream)
                    && why != StreamClose::Graceful
                {
                    line.abort();
                }
                self.machine.handle_stream(now, stream, StreamEvent::Closed(why));
            }
        }
    }

    fn hear(&mut self, now: Instant, stream: StreamId, octets: Bytes) {
        // Without keys no peer is proven.
        let is_secured = !matches!(self.security, Security::None);
        let proven =
            self.lines.get(&stream).filter(|line| is_secured && line.leg.is_none() && line.is_proven());
        if let Some(line) = proven
            && self.listener.is_some()
        {
            self.hosts.remember(Host::of(line.peer));
        }
        if let Some(sender) = self.security.sender_of(&octets) {
            self.machine.introduce(stream, sender);
        }
        self.machine.handle_stream(now, stream, StreamEvent::Data(octets));
        // Before the next stream is read, since its request might evict the keys of the transfer
        // that this stream has begun.
        self.pin();
    }

    /// Tells [`Security`] which transfers must keep their keys.
    fn pin(&mut self) {
        let live = self.machine.live();
        if live != self.live {
            self.live = live;
            self.security.set_live(live);
        }
    }

    /// Handles expired timers: those of the machine and the lines, and idle timeouts.
    fn handle_times(&mut self, now: Instant) {
        if self.machine.next_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
        let turn = self.outflow.as_mut().is_some_and(|outflow| outflow.is_due(now));
        for line in self.lines.values_mut() {
            line.dirty |= line.is_due(now) || turn && line.leg == Some(Leg::Wired);
        }
        while let Some((stream, line)) =
            self.lines.iter().find(|(_, line)| self.patience(line).is_some_and(|at| at <= now))
        {
            self.refused.silent += u64::from(line.leg.is_none() && !line.is_proven());
            self.handle(now, *stream, Moved::Closed(StreamClose::TimedOut));
        }
    }

    /// When a line times out.
    fn patience(&self, line: &Line) -> Option<Instant> {
        let idle = self.options.idle.map(|idle| line.moved + idle);
        let silent = line.leg.is_none() && !line.is_proven();
        let greeting = silent.then(|| line.since + self.options.greeting_timeout);
        [idle, greeting].into_iter().flatten().min()
    }

    /// Sets the timer to the earliest deadline.
    fn arm(&mut self) {
        let now = self.now();
        let lines = self.lines.values();
        let times = lines.flat_map(|line| [line.next_timeout(), self.patience(line)]);
        let accept = (now < self.accept_after).then_some(self.accept_after);
        let seat = self.seat.as_ref().and_then(Seat::due);
        let outflow = self.outflow.as_ref().and_then(|outflow| outflow.due());
        let due = times.chain([self.machine.next_timeout(), accept, seat, outflow]).flatten().min();
        let due = due.unwrap_or(now + Duration::from_secs(3600));
        // Firing too early is harmless, and re-arming costs a system call.
        if due < self.armed || self.armed <= now {
            self.armed = due;
            let wait = time::Duration::from_nanos(due.saturating_since(now).as_nanos());
            self.timer.as_mut().reset(tokio::time::Instant::now() + wait);
        }
    }

    fn with(&mut self, stream: StreamId, deed: impl FnOnce(&mut Line)) {
        if let Some(line) = self.lines.get_mut(&stream) {
            deed(line);
        }
    }

    fn forget(&mut self, stream: StreamId) -> Option<Box<Line>> {
        let mut line = self.lines.remove(&stream)?;
        if let (None, Some(seat)) = (line.leg, &mut self.seat) {
            seat.leave();
        }
        if line.leg.is_some() {
            // Reports ask for retransmissions after the connection is closed.
            self.past.push((stream, line.retransmissions));
        }
        if let Some(error) = line.error.take() {
            self.refused.count(&error);
            // The error of a failed outgoing connection is more informative than the peer's hang-up
            // that follows.
            if line.leg.is_some() || !self.called_in_vain {
                self.note(LineError { peer: line.peer, leg: line.leg, error });
            }
            self.called_in_vain |= line.is_calling();
        }
        Some(line)
    }

    /// Stores the last error of a peer for reports.
    fn note(&mut self, error: LineError) {
        self.errors.retain(|earlier| earlier.peer != error.peer);
        if self.errors.len() == MAX_ERRORS {
            self.errors.remove(0);
        }
        self.errors.push(error);
    }
}
