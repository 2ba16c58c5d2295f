//! One machine and all of its sockets, in one task: effects out, events in, the first of all
//! timers.

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

/// After an error of the listener (too many descriptors), it is left alone for so long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes read at once from whoever has not said whom it wants: what comes with that is in no
/// bucket.
const GREETING: usize = 64;

/// Bytes read at once from a caller that has not proven its key: more than a greeting has, and
/// little to copy of noise.
const UNPROVEN: usize = 1 << 10;

/// Who may be dialled.
pub(super) type Permit = Box<dyn Fn(Instant, SocketAddr) -> Permission + Send>;

/// What becomes of a call that the machine wants to make.
pub(super) enum Permission {
    /// It is made, and whoever has called us for it has a seat, if there are any.
    Granted(Option<Seat>),
    /// Nobody may call there.
    Forbidden,
    /// There is no room for it now.
    Congested,
}

/// Where a new caller finds room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    /// Fewer callers are connected than the limit.
    Free,
    /// In place of this caller, which has not proven its key and has nothing waiting to be read.
    Of(StreamId),
    /// In place of a caller whose bytes have to be read first: they may be a valid greeting.
    Later,
    /// Nowhere: all callers have proven their keys.
    None,
}

/// How those who call are read.
enum Intake {
    /// At once.
    Free,
    /// Little at a time, until it is known for whom it is.
    Greeting,
    /// When it is their turn.
    Paced,
}

/// A call or a connection that failed, for whoever asks why.
#[derive(Debug)]
pub struct LineError {
    /// With whom.
    pub peer: SocketAddr,
    /// Which part of the way; `None` if the peer had called.
    pub leg: Option<Leg>,
    /// What the kernel said.
    pub error: io::Error,
}

/// Peers whose last error is kept: as many as a report names at most.
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
    /// What `security` was told last: see [`OverSockets::live`].
    live: [Option<TransferId>; 2],
    intake: Intake,
    /// The seat of whoever has called.
    seat: Option<Seat>,
    /// What bounds those whom we have called.
    outflow: Option<Box<Outflow>>,
    /// The file that the machine sends, where the machine has not its bytes.
    file: Option<File>,
    /// The file could not be read.
    pub(super) unread: Option<io::Error>,
    /// Streams that were reset because a part of the file is missing in the middle of what was
    /// written.
    torn: Vec<StreamId>,
    /// Boxed: a map has room for eleven at least.
    lines: BTreeMap<StreamId, Box<Line>>,
    /// Whose turn it is: the line after the last that moved.
    turn: StreamId,
    timer: Pin<Box<Sleep>>,
    armed: Instant,
    /// Lines that are over, and segments that their TCP had sent again.
    past: Vec<(StreamId, u32)>,
    /// The last error of each peer, at most [`MAX_ERRORS`], in the order in which they happened.
    pub(super) errors: Vec<LineError>,
    /// A call has failed.
    called_in_vain: bool,
    /// Hosts of callers that have proven their keys.
    hosts: Hosts,
    /// Streams that were reset because of what came on them, or did not come.
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

    /// With somebody who calls here.
    pub(super) fn listening(self, listener: TcpListener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// With calls only to those whom `permit` says.
    pub(super) fn permitting(self, permit: Permit) -> Self {
        Self { permit, ..self }
    }

    /// With callers who are read in turn, each by the seat that `permit` gives.
    pub(super) fn pacing(self) -> Self {
        Self { intake: Intake::Greeting, ..self }
    }

    /// With so much at most for those whom it calls.
    pub(super) fn bounded(self, outflow: Option<Outflow>) -> Self {
        Self { outflow: outflow.map(Box::new), ..self }
    }

    /// With the file that the machine sends.
    pub(super) fn reading(self, file: Option<File>) -> Self {
        Self { file, ..self }
    }

    /// With streams that are guarded so.
    pub(super) fn secured(self, security: Security) -> Self {
        Self { security, ..self }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Nobody is connected, or being called.
    pub(super) fn is_idle(&self) -> bool {
        self.lines.is_empty()
    }

    /// Somebody was called, and the call is not over.
    pub(super) fn has_dialled(&self) -> bool {
        self.lines.values().any(|line| line.leg.is_some())
    }

    /// Segments of a stream that TCP has sent again.
    pub(super) fn retransmissions(&self, stream: StreamId) -> u32 {
        let past = || self.past.iter().find(|(id, _)| *id == stream).map(|(_, n)| *n);
        self.lines.get(&stream).map(|line| line.retransmissions).or_else(past).unwrap_or(0)
    }

    /// As many callers are connected as may be.
    fn is_full(&self) -> bool {
        self.lines.values().filter(|line| line.leg.is_none()).count() >= self.options.connections
    }

    /// Takes the one caller of a driver without a listener.
    pub(super) fn accept(&mut self, stream: Arc<TcpStream>, peer: SocketAddr) {
        self.take(Room::Free, stream, peer);
    }

    /// Where the next caller finds room: see [`crowd::idler`].
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

    /// Takes a caller where there is room for it.
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

    /// Forgets all streams without a word to the machine, which is about to go.
    pub(super) fn abort_all(&mut self) {
        std::mem::take(&mut self.lines).into_values().for_each(|line| line.abort());
    }

    /// Carries out what the machine wants until it wants nothing more, or has bytes for its owner.
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

    /// What the machine wants next.
    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        self.machine.poll_effect(self.clock.now())
    }

    /// Carries out one effect; bytes for the owner come back.
    pub(super) fn act(&mut self, effect: Effect) -> Option<Bytes> {
        let now = self.now();
        match effect {
            Effect::Dial { stream, to, leg } => {
                // An IPv4 address in IPv6's clothes is an IPv4 address, to whoever permits it and
                // to the kernel.
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
                    // The header of the chunk is written: what follows on this stream would be
                    // taken for the file. The machine learns of it when its owner has given the
                    // transfer up, so that it tries no other way: see [`Driver::tell_torn`].
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

    /// Tells the machine which streams are gone because the file could not be read.
    pub(super) fn tell_torn(&mut self) {
        let now = self.now();
        for stream in std::mem::take(&mut self.torn) {
            self.machine.handle_stream(now, stream, StreamEvent::Closed(StreamClose::TimedOut));
        }
    }

    /// Bytes of the file that the machine sends.
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

    /// Writes what has gathered, and tells the machine how those streams stand; false if there was
    /// none.
    pub(super) fn flush(&mut self) -> bool {
        let now = self.clock.now();
        let mut any = false;
        let wired = |line: &Line| line.leg == Some(Leg::Wired);
        let sessions = self.outflow.as_ref().map_or(0, |_| self.lines.values().filter(|l| wired(l)).count());
        let mut index = 0;
        for (stream, line) in &mut self.lines {
            let place = (index, sessions);
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

    /// Whoever has called is read by this seat from now on.
    fn seat(&mut self, seat: Option<Seat>) {
        if let (Intake::Greeting, Some(_)) = (&self.intake, &seat) {
            self.intake = Intake::Paced;
        }
        self.seat = seat.or(self.seat.take());
    }

    /// Waits until something has happened, and tells the machine. To be called when all effects are
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
        // At the limit, callers that have not proven their keys are read before further ones are
        // taken: their number is bounded, and so is what each may say.
        let is_full = self.listener.is_some() && self.is_full();
        if is_full && self.poll_lines(cx, now, |line| line.leg.is_none() && !line.is_proven()) {
            return Poll::Ready(());
        }
        if self.poll_accept(cx, now) || self.poll_lines(cx, now, |_| true) || fired {
            return Poll::Ready(());
        }
        if self.seat.as_ref().and_then(Seat::due).is_some_and(|due| due < self.armed) {
            // A line has just been told to wait.
            self.arm();
            if self.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Connections, called and calling.
    pub(super) fn connections(&self) -> usize {
        self.lines.len()
    }

    /// The last connection could not be accepted.
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
            // The bytes that wait wake this task.
            return false;
        }
        match listener.poll_accept(cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok((stream, peer))) => self.take(room, Arc::new(stream), peer),
            Poll::Ready(Err(_)) => self.accept_after = now + ACCEPT_PAUSE,
        }
        true
    }

    /// One line of these that has moved, in turn.
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
        // Without keys no caller is proven.
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
        // Before the next stream is read: its request might evict the keys of the transfer that
        // this one has begun.
        self.pin();
    }

    /// Tells [`Security`] which transfers keep their keys.
    fn pin(&mut self) {
        let live = self.machine.live();
        if live != self.live {
            self.live = live;
            self.security.set_live(live);
        }
    }

    /// Timers: the machine's, those of lines, and idleness.
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

    /// When a line has had enough time.
    fn patience(&self, line: &Line) -> Option<Instant> {
        let idle = self.options.idle.map(|idle| line.moved + idle);
        let silent = line.leg.is_none() && !line.is_proven();
        let greeting = silent.then(|| line.since + self.options.greeting_timeout);
        [idle, greeting].into_iter().flatten().min()
    }

    /// Sets the timer to the first of all times.
    fn arm(&mut self) {
        let now = self.now();
        let lines = self.lines.values();
        let times = lines.flat_map(|line| [line.next_timeout(), self.patience(line)]);
        let accept = (now < self.accept_after).then_some(self.accept_after);
        let seat = self.seat.as_ref().and_then(Seat::due);
        let outflow = self.outflow.as_ref().and_then(|outflow| outflow.due());
        let due = times.chain([self.machine.next_timeout(), accept, seat, outflow]).flatten().min();
        let due = due.unwrap_or(now + Duration::from_secs(3600));
        // One that fires too early does no harm, and setting it costs something.
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
            self.past.push((stream, line.retransmissions));
        }
        if let Some(error) = line.error.take() {
            self.refused.count(&error);
            // The reason of a failed call says more than how the caller that it was made for then
            // hangs up.
            if line.leg.is_some() || !self.called_in_vain {
                self.note(LineError { peer: line.peer, leg: line.leg, error });
            }
            self.called_in_vain |= line.is_calling();
        }
        Some(line)
    }

    /// Keeps the last error of a peer for reports.
    fn note(&mut self, error: LineError) {
        self.errors.retain(|earlier| earlier.peer != error.peer);
        if self.errors.len() == MAX_ERRORS {
            self.errors.remove(0);
        }
        self.errors.push(error);
    }
}
