//! One stream of a machine, with its socket.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_core::set::{Leg, StreamClose, StreamStatus};
use anabranch_core::time::{Duration, Instant};
use anabranch_secure::{Guard, OVERHEAD};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use rustix::net::Shutdown;
use rustix::net::sockopt::set_tcp_congestion;
use tokio::net::{TcpSocket, TcpStream};

use super::options::SocketOptions;
use super::pace::intake::Seat;
use super::security::{HungUp, refused};
use super::window::{self, Clamp};
use crate::buffers;
use crate::tcp_info::TcpInfo;

/// Upper limit of one read, in bytes.
pub(super) const READ: usize = 64 << 10;
/// Smaller reads are copied, so that a few retained bytes do not keep a large buffer alive.
const COPIED: usize = READ / 4;
/// Upper limit of sealed bytes prepared in advance.
const FILLED: usize = READ / 2;
/// Upper limit of buffers in one write.
const PIECES: usize = 64;
/// Interval at which a connection that is not being read is checked.
const BLOCKED: Duration = Duration::from_secs(1);
/// Interval at which a stream with data in flight is checked: a quarter of its round-trip time,
/// within these bounds.
const LOOK: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(20));

/// Result of polling a line.
#[derive(Debug)]
pub(super) enum Moved {
    /// The outgoing connection is established.
    Opened,
    /// Data has arrived.
    Data(Bytes),
    /// The peer will send no more data.
    Ended,
    /// The stream is closed.
    Closed(StreamClose),
    /// Progress that does not concern the machine: bytes were written, or the guard has bytes to
    /// write.
    Stirred,
}

/// How much may be read.
pub(super) enum Reading<'a> {
    /// Nothing.
    No,
    /// As much as the machine accepts.
    Free,
    /// At most this many bytes per read.
    AtMost(usize),
    /// As much as this seat grants.
    InTurn(&'a mut Seat),
}

type Call = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

enum Socket {
    Calling { call: Call, deadline: Instant },
    Open(Arc<TcpStream>),
}

/// One stream.
pub(super) struct Line {
    socket: Socket,
    /// The remote address.
    pub(super) peer: SocketAddr,
    /// The leg of an outgoing connection; `None` for an incoming one.
    pub(super) leg: Option<Leg>,
    /// Encryption between the socket and the machine.
    guard: Guard,
    /// Bytes from the guard that the socket has not accepted yet.
    queue: VecDeque<Bytes>,
    queued: usize,
    /// When the line was dialled or accepted.
    pub(super) since: Instant,
    /// True if the peer has sent bytes for the machine.
    spoken: bool,
    /// The machine will write no more.
    closing: bool,
    /// The write side of the socket is shut down.
    shut: bool,
    /// The peer has closed its side.
    ended: bool,
    /// A write failed. Remaining input is still read, then the line closes with this reason.
    broken: Option<StreamClose>,
    clamp: Clamp,
    /// The line must be flushed and checked.
    pub(super) dirty: bool,
    /// Time of the last progress, here or in the kernel.
    pub(super) moved: Instant,
    /// Time of the last check, and the status then.
    looked: Instant,
    status: StreamStatus,
    /// Number of retransmitted segments.
    pub(super) retransmissions: u32,
    /// The kernel's error, if one occurred.
    pub(super) error: Option<io::Error>,
    unsent: u32,
}

impl Line {
    /// Dials `to`.
    pub(super) fn dial(
        now: Instant,
        to: SocketAddr,
        leg: Leg,
        guard: Guard,
        options: &SocketOptions,
    ) -> Self {
        let options = *options;
        let call = Box::pin(async move {
            let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            // Before `connect`, since the SYN carries the window scale, which depends on the
            // buffer.
            window::bound(&socket, options.receive_buffer)?;
            if let Some(name) = options.congestion {
                set_tcp_congestion(&socket, name)?;
            }
            let stream = socket.connect(to).await?;
            prepare(&stream, &options)?;
            Ok(stream)
        });
        let socket = Socket::Calling { call, deadline: now + options.dial_timeout };
        Self::new(now, socket, (to, Some(leg)), guard, &options)
    }

    /// Takes an accepted connection.
    pub(super) fn accepted(
        now: Instant,
        stream: Arc<TcpStream>,
        peer: SocketAddr,
        guard: Guard,
        options: &SocketOptions,
    ) -> io::Result<Self> {
        prepare(&stream, options)?;
        Ok(Self::new(now, Socket::Open(stream), (peer, None), guard, options))
    }

    fn new(
        now: Instant,
        socket: Socket,
        (peer, leg): (SocketAddr, Option<Leg>),
        guard: Guard,
        options: &SocketOptions,
    ) -> Self {
        Self {
            socket,
            peer,
            leg,
            guard,
            queue: VecDeque::new(),
            queued: 0,
            since: now,
            spoken: false,
            closing: false,
            shut: false,
            ended: false,
            broken: None,
            clamp: Clamp::new(now, options.receive_buffer),
            dirty: true,
            moved: now,
            looked: now,
            status: StreamStatus::default(),
            retransmissions: 0,
            error: None,
            unsent: options.unsent,
        }
    }

    /// Number of bytes that wait here for the kernel.
    pub(super) fn queued(&self) -> usize {
        self.queued + self.guard.waiting()
    }

    /// True if the peer has authenticated, where keys are used, and has sent a message.
    pub(super) fn is_proven(&self) -> bool {
        self.spoken && self.guard.is_proven()
    }

    /// True if the peer began as a known peer does; it may still be a replay.
    pub(super) fn is_introduced(&self) -> bool {
        self.spoken || self.guard.is_introduced()
    }

    /// True if the kernel holds bytes that the next [`Line::poll`] reads.
    pub(super) fn has_unread(&self) -> bool {
        match &self.socket {
            Socket::Open(stream) => self.clamp.wanted() > 0 && has_unread(stream),
            Socket::Calling { .. } => false,
        }
    }

    /// Queues bytes to write.
    pub(super) fn write(&mut self, octets: Bytes) {
        if self.broken.is_none()
            && !octets.is_empty()
            && let Err(why) = self.guard.write(octets)
        {
            self.broken = Some(note(&mut self.error, refused(why)));
        }
        self.dirty = true;
    }

    /// Takes bytes from the guard once nothing else is queued: bytes that wait in the guard longer
    /// share a record.
    fn fill(&mut self) {
        while (self.queue.is_empty() || self.guard.is_passing() || self.queued < FILLED)
            && let Some(octets) = self.guard.poll_transmit()
        {
            self.queued += octets.len();
            self.queue.push_back(octets);
        }
    }

    /// Closes the write side after the queued bytes.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.dirty = true;
    }

    /// Sets the machine's receive limit.
    pub(super) fn limit(&mut self, now: Instant, octets: u32) {
        self.clamp.set(octets);
        self.look_at_window(now);
    }

    pub(super) fn look_at_window(&mut self, now: Instant) {
        if let (Socket::Open(stream), Some(octets)) = (&self.socket, self.clamp.look(now)) {
            Clamp::apply(stream, octets);
        }
    }

    /// True while an outgoing connection is in progress.
    pub(super) fn is_calling(&self) -> bool {
        matches!(self.socket, Socket::Calling { .. })
    }

    /// Resets the connection immediately.
    pub(super) fn abort(self) {
        if let Socket::Open(stream) = &self.socket {
            // If this fails, the socket closes with a FIN, and the peer notices when it writes.
            let _ = stream.set_zero_linger();
        }
    }

    /// When the line must be polled even without an event of the socket.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self.socket {
            Socket::Calling { deadline, .. } => Some(deadline),
            Socket::Open(_) => {
                let on_its_way = self.status.in_flight > 0 || self.status.unsent > 0;
                let look = on_its_way.then(|| self.look_due());
                let blocked = self.is_blocked().then(|| self.looked + BLOCKED);
                [look, blocked, self.clamp.next_look()].into_iter().flatten().min()
            }
        }
    }

    /// True if the status must be checked now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        matches!(self.socket, Socket::Open(_)) && self.next_timeout().is_some_and(|at| at <= now)
    }

    fn look_due(&self) -> Instant {
        self.looked + self.status.srtt.map_or(LOOK.1, |srtt| (srtt / 4).clamp(LOOK.0, LOOK.1))
    }

    /// Returns what has happened, if anything. Reads at most what `reading` permits.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        mut reading: Reading<'_>,
    ) -> Option<Moved> {
        if let Socket::Calling { call, deadline } = &mut self.socket {
            return match call.as_mut().poll(cx) {
                Poll::Pending => (now >= *deadline).then_some(Moved::Closed(StreamClose::TimedOut)),
                Poll::Ready(Ok(stream)) => {
                    self.socket = Socket::Open(Arc::new(stream));
                    self.moved = now;
                    Some(Moved::Opened)
                }
                Poll::Ready(Err(error)) => Some(Moved::Closed(self.fail(error))),
            };
        }
        // Both directions are closed.
        if self.shut && self.ended {
            return Some(Moved::Closed(StreamClose::Graceful));
        }
        loop {
            self.fill();
            let Socket::Open(stream) = &self.socket else { break };
            if self.queue.is_empty() || self.broken.is_some() {
                break;
            }
            let Poll::Ready(ready) = stream.poll_write_ready(cx) else { break };
            let before = self.queued;
            match ready {
                Ok(()) => write_queue(stream, &mut self.queue, &mut self.queued)
                    .unwrap_or_else(|error| self.broken = Some(note(&mut self.error, error))),
                Err(error) => self.broken = Some(note(&mut self.error, error)),
            }
            if self.queued < before {
                self.moved = now;
                return Some(Moved::Stirred);
            }
        }
        if self.clamp.wanted() == 0 || self.ended {
            if let Reading::InTurn(seat) = &mut reading {
                seat.leave();
            }
            reading = Reading::No;
        }
        let may_read = !matches!(reading, Reading::No);
        if let Some(why) = self.broken
            && !may_read
        {
            return Some(Moved::Closed(why));
        }
        if may_read { self.poll_read(cx, now, reading) } else { None }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, now: Instant, mut reading: Reading<'_>) -> Option<Moved> {
        let wanted = usize::try_from(self.clamp.wanted()).unwrap_or(READ).min(READ);
        let Socket::Open(stream) = &self.socket else { return None };
        loop {
            let Poll::Ready(ready) = stream.poll_read_ready(cx) else {
                if let Reading::InTurn(seat) = &mut reading {
                    seat.leave();
                }
                return None;
            };
            let at_most = match &mut reading {
                Reading::No | Reading::Free => wanted,
                Reading::AtMost(most) => wanted.min(*most),
                Reading::InTurn(seat) => match seat.ask(now, wanted as u64) {
                    0 => return None,
                    granted => granted as usize,
                },
            };
            let result = ready.and_then(|()| read(stream, at_most));
            if let Reading::InTurn(seat) = &mut reading {
                // The grant was taken from the buckets in advance.
                let used = result.as_ref().ok().and_then(Option::as_ref).map_or(0, Bytes::len);
                seat.give_back((at_most - used) as u64);
            }
            match result {
                Ok(Some(octets)) => {
                    self.moved = now;
                    return Some(match self.guard.read(octets) {
                        Ok(Some(octets)) => {
                            self.spoken = true;
                            Moved::Data(octets)
                        }
                        Ok(None) => Moved::Stirred,
                        Err(why) => Moved::Closed(self.fail(refused(why))),
                    });
                }
                Ok(None) => {
                    self.ended = true;
                    if self.is_greeting() {
                        return Some(Moved::Closed(self.fail(hung_up())));
                    }
                    if let Err(why) = self.guard.end() {
                        return Some(Moved::Closed(self.fail(refused(why))));
                    }
                    return Some(self.broken.map_or(Moved::Ended, Moved::Closed));
                }
                // `read` cleared the readiness, so the next `poll_read_ready` registers the waker.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) if self.is_greeting() => return Some(Moved::Closed(self.fail(hung_up()))),
                Err(error) => return Some(Moved::Closed(self.fail(error))),
            }
        }
    }

    /// True if our greeting is sent and not yet answered.
    fn is_greeting(&self) -> bool {
        self.leg.is_some() && !self.guard.is_proven()
    }

    /// Writes what the kernel accepts, and closes the write side after the last byte.
    pub(super) fn flush(&mut self, now: Instant) {
        let before = self.queued();
        let Socket::Open(_) = &self.socket else { return };
        loop {
            self.fill();
            let Socket::Open(stream) = &self.socket else { return };
            if self.queue.is_empty() || self.broken.is_some() {
                break;
            }
            if let Err(error) = write_queue(stream, &mut self.queue, &mut self.queued) {
                self.broken = Some(note(&mut self.error, error));
            }
            if !self.queue.is_empty() {
                break;
            }
        }
        if self.broken.is_some() {
            self.queue.clear();
            self.queued = 0;
        } else if self.queued() < before {
            self.moved = now;
        }
        let Socket::Open(stream) = &self.socket else { return };
        if self.closing && !self.shut && self.queued() == 0 {
            // A connection that is already closed reports that when it is read.
            let _ = rustix::net::shutdown(stream, Shutdown::Write);
            self.shut = true;
        }
    }

    /// True if an incoming connection is not being read. Then no socket event would report a reset.
    fn is_blocked(&self) -> bool {
        self.leg.is_none() && self.clamp.wanted() == 0 && self.broken.is_none()
    }

    /// Reads the current status from the kernel.
    pub(super) fn look(&mut self, now: Instant) -> Option<StreamStatus> {
        self.look_at_window(now);
        let is_blocked = self.is_blocked();
        let Socket::Open(stream) = &self.socket else { return None };
        self.looked = now;
        if is_blocked && let Ok(Some(error)) = stream.take_error() {
            self.broken = Some(note(&mut self.error, error));
        }
        let info = TcpInfo::read(stream).ok()?;
        self.retransmissions = info.total_retrans;
        let octets = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let mut unsent = octets(self.queued() as u64).saturating_add(info.notsent_bytes.unwrap_or(0));
        if self.leg == Some(Leg::Wired) {
            // This much unsent data stays in the kernel so that the next acknowledgement finds data
            // to send. It does not count as waiting.
            unsent = unsent.saturating_sub(self.unsent.saturating_add(2 * info.snd_mss));
        }
        // A chunk of one segment must fit into the segment together with its record overhead.
        let record = OVERHEAD as u32;
        let status = StreamStatus {
            cwnd: octets(info.window()),
            // Older kernels do not report the peer's window; then only the congestion window
            // limits.
            peer_window: info.snd_wnd.unwrap_or(u32::MAX),
            in_flight: octets(u64::from(info.in_flight()) * u64::from(info.snd_mss)),
            unsent,
            mss: if self.guard.is_passing() { info.snd_mss } else { info.snd_mss.saturating_sub(record) },
            srtt: info.rtt,
        };
        let waits = |s: &StreamStatus| (s.in_flight, s.unsent);
        if waits(&status) != waits(&self.status) {
            self.moved = now;
        }
        self.status = status;
        Some(status)
    }

    fn fail(&mut self, error: io::Error) -> StreamClose {
        note(&mut self.error, error)
    }
}

/// Stores the error and classifies it.
fn note(kept: &mut Option<io::Error>, error: io::Error) -> StreamClose {
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => StreamClose::Refused,
        io::ErrorKind::TimedOut
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown => StreamClose::TimedOut,
        _ => StreamClose::Reset,
    };
    *kept = Some(error);
    why
}

/// True if the kernel holds unread bytes. An end of the stream or an error does not count.
pub(super) fn has_unread(stream: &TcpStream) -> bool {
    buffers::unread(stream).is_ok_and(|unread| unread > 0)
}

fn hung_up() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, HungUp)
}

fn prepare(stream: &TcpStream, options: &SocketOptions) -> io::Result<()> {
    stream.set_nodelay(true)?;
    buffers::set_unsent_mark(stream, u64::from(options.unsent))
}

fn write_queue(stream: &TcpStream, queue: &mut VecDeque<Bytes>, queued: &mut usize) -> io::Result<()> {
    while !queue.is_empty() {
        let mut slices = [IoSlice::new(&[]); PIECES];
        let used = slices.iter_mut().zip(queue.iter()).map(|(slice, octets)| *slice = IoSlice::new(octets));
        let used = used.count();
        let mut written = match stream.try_write_vectored(&slices[..used]) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        *queued -= written;
        while written > 0 {
            let Some(front) = queue.front_mut() else { break };
            let n = written.min(front.len());
            front.advance(n);
            written -= n;
            if front.is_empty() {
                queue.pop_front();
            }
        }
    }
    Ok(())
}

/// Reads bytes; `None` at the end of the stream.
fn read(stream: &TcpStream, at_most: usize) -> io::Result<Option<Bytes>> {
    thread_local! {
        /// One buffer for all lines of a thread, so that an idle line has no buffer.
        static BUFFER: RefCell<BytesMut> = RefCell::new(BytesMut::new());
    }
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.capacity() < COPIED {
            buffer.reserve(READ);
        }
        let n = stream.try_read_buf(&mut (&mut *buffer).limit(at_most))?;
        Ok(match n {
            0 => None,
            n if n < COPIED => {
                let octets = Bytes::copy_from_slice(buffer);
                buffer.clear();
                Some(octets)
            }
            _ => Some(buffer.split().freeze()),
        })
    })
}
