//! One machine and all of its sockets, in one task: effects out, events in, the first of all timers.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time;

use anabranch_core::set::{Effect, Leg, StreamClose, StreamEvent, StreamId};
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

use super::line::{Line, Moved};
use super::machine::{Held, OverSockets};
use super::options::SocketOptions;
use super::security::{RefusedCounters, Security};
use crate::clock::Clock;

/// After an error of the listener (too many descriptors), it is left alone for so long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who may be dialled.
pub(super) type Permit = Box<dyn Fn(SocketAddr) -> bool + Send>;

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

/// A machine over sockets.
pub(super) struct Driver<M> {
    pub(super) machine: M,
    clock: Clock,
    options: SocketOptions,
    listener: Option<TcpListener>,
    accept_after: Instant,
    permit: Permit,
    security: Security,
    /// Boxed: a map has room for eleven at least.
    lines: BTreeMap<StreamId, Box<Line>>,
    /// Whose turn it is: the line after the last that moved.
    turn: StreamId,
    timer: Pin<Box<Sleep>>,
    armed: Instant,
    /// Lines that are over, and segments that their TCP had sent again.
    past: Vec<(StreamId, u32)>,
    /// The last error.
    pub(super) error: Option<LineError>,
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
            permit: Box::new(|_| true),
            security: Security::None,
            lines: BTreeMap::new(),
            turn: StreamId(0),
            timer: Box::pin(sleep(time::Duration::ZERO)),
            armed: Instant::ZERO,
            past: Vec::new(),
            error: None,
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

    /// Somebody has called. Where there are as many as there may be, whoever has waited longest without having shown who it is
    /// makes way.
    pub(super) fn accept(&mut self, stream: TcpStream, peer: SocketAddr) {
        let now = self.now();
        let line = Line::accepted(now, stream, peer, self.security.accepted(), &self.options);
        let Ok(line) = line else { return };
        let callers = || self.lines.iter().filter(|(_, line)| line.leg.is_none());
        if callers().count() >= self.options.connections {
            self.refused.surplus += 1;
            let idler = callers().filter(|(_, line)| !line.is_proven()).min_by_key(|(_, line)| line.since);
            let Some((&idler, _)) = idler else { return line.abort() };
            self.handle(now, idler, Moved::Closed(StreamClose::TimedOut));
        }
        if let Some(stream) = self.machine.handle_accepted(now) {
            self.lines.insert(stream, Box::new(line));
        }
    }

    /// Forgets all streams without a word to the machine, which is about to go.
    pub(super) fn abort_all(&mut self) {
        std::mem::take(&mut self.lines).into_values().for_each(|line| line.abort());
    }

    /// Carries out what the machine wants until it wants nothing more, or has octets for its owner.
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

    /// Carries out one effect; octets for the owner come back.
    pub(super) fn act(&mut self, effect: Effect) -> Option<Bytes> {
        let now = self.now();
        match effect {
            Effect::Dial { stream, to, leg } => {
                // An IPv4 address in IPv6's clothes is an IPv4 address, to whoever permits it and to the kernel.
                let to = SocketAddr::new(to.ip().to_canonical(), to.port());
                match self.security.dialled(&self.machine, stream, leg) {
                    Ok(guard) if (self.permit)(to) => {
                        let line = Line::dial(now, to, leg, guard, &self.options);
                        self.lines.insert(stream, Box::new(line));
                    }
                    guarded => {
                        if let Err(error) = guarded {
                            self.error = Some(LineError { peer: to, leg: Some(leg), error });
                        }
                        self.machine.handle_stream(now, stream, StreamEvent::Closed(StreamClose::Forbidden));
                    }
                }
            }
            Effect::Write { stream, octets } => self.with(stream, |line| line.write(octets)),
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

    /// Writes what has gathered, and tells the machine how those streams stand; false if there was none.
    pub(super) fn flush(&mut self) -> bool {
        let now = self.clock.now();
        let mut any = false;
        for (stream, line) in self.lines.iter_mut().filter(|(_, line)| line.dirty) {
            any = true;
            line.dirty = false;
            line.flush(now);
            if let Some(status) = line.look(now) {
                self.machine.handle_status(now, *stream, status);
            }
        }
        any
    }

    /// Waits until something has happened, and tells the machine. To be called when all effects are carried out.
    pub(super) async fn next(&mut self) {
        self.arm();
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.now();
        let fired = self.timer.as_mut().poll(cx).is_ready();
        if fired {
            self.handle_times(now);
        }
        if self.poll_accept(cx, now) || self.poll_lines(cx, now) || fired {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let Some(listener) = &self.listener else { return false };
        if now < self.accept_after {
            return false;
        }
        match listener.poll_accept(cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok((stream, peer))) => self.accept(stream, peer),
            Poll::Ready(Err(_)) => self.accept_after = now + ACCEPT_PAUSE,
        }
        true
    }

    /// One line that has moved, in turn.
    fn poll_lines(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let limit = self.options.queue as usize;
        let held: usize = self.lines.values().map(|line| line.queued()).sum();
        let mut poll = |(stream, line): (&StreamId, &mut Box<Line>)| {
            let reading = match M::HELD {
                Held::Own => line.queued() <= limit,
                Held::All => held <= limit,
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
            Moved::Data(octets) => self.machine.handle_stream(now, stream, StreamEvent::Data(octets)),
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

    /// Timers: the machine's, those of lines, and idleness.
    fn handle_times(&mut self, now: Instant) {
        if self.machine.next_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
        for line in self.lines.values_mut() {
            line.dirty |= line.is_due(now);
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
        let due = times.chain([self.machine.next_timeout(), accept]).flatten().min();
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
        if line.leg.is_some() {
            self.past.push((stream, line.retransmissions));
        }
        if let Some(error) = line.error.take() {
            self.refused.count(&error);
            self.error = Some(LineError { peer: line.peer, leg: line.leg, error });
        }
        Some(line)
    }
}
