//! One stream of a machine, and the socket that it is.

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

/// Bytes read at once, at most.
pub(super) const READ: usize = 64 << 10;
/// What is smaller is copied, so that a few bytes which somebody keeps do not keep a large buffer.
const COPIED: usize = READ / 4;
/// Bytes of records that are made ahead.
const FILLED: usize = READ / 2;
/// Pieces written at once, at most.
const PIECES: usize = 64;
/// How often a caller that is not read is looked at.
const BLOCKED: Duration = Duration::from_secs(1);
/// How often a stream with something on its way is looked at: every quarter of its round trip,
/// within these bounds.
const LOOK: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(20));

/// What a line did.
#[derive(Debug)]
pub(super) enum Moved {
    /// The call was answered.
    Opened,
    /// Bytes have arrived.
    Data(Bytes),
    /// The peer will send no more.
    Ended,
    /// It is gone.
    Closed(StreamClose),
    /// Something that the machine need not know: bytes were written, or a guard has its own to
    /// write.
    Stirred,
}

/// What may be read.
pub(super) enum Reading<'a> {
    /// Nothing.
    No,
    /// All that the machine wants.
    Free,
    /// So many bytes at once.
    AtMost(usize),
    /// What this seat gives.
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
    /// The other end.
    pub(super) peer: SocketAddr,
    /// Which part of the way, if we have dialled; `None` if others have.
    pub(super) leg: Option<Leg>,
    /// What stands between the socket and the machine.
    guard: Guard,
    /// What the guard has handed out for the socket.
    queue: VecDeque<Bytes>,
    queued: usize,
    /// When it was dialled or accepted.
    pub(super) since: Instant,
    /// Bytes have come that were for the machine.
    spoken: bool,
    /// No more will be written.
    closing: bool,
    /// The kernel has been told so.
    shut: bool,
    /// The peer has said so.
    ended: bool,
    /// Writing has failed: what is to be read is read, and then it is over.
    broken: Option<StreamClose>,
    clamp: Clamp,
    /// It is to be flushed and looked at.
    pub(super) dirty: bool,
    /// When something last moved, here or in the kernel.
    pub(super) moved: Instant,
    /// When it was last looked at, and how it stood.
    looked: Instant,
    status: StreamStatus,
    /// Segments that were sent again.
    pub(super) retransmissions: u32,
    /// What went wrong, as the kernel says it.
    pub(super) error: Option<io::Error>,
    unsent: u32,
}

impl Line {
    /// Calls `to`.
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

    /// Somebody has called.
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

    /// Bytes that wait here for the kernel.
    pub(super) fn queued(&self) -> usize {
        self.queued + self.guard.waiting()
    }

    /// The other end has shown who it is, where it has to, and has said something.
    pub(super) fn is_proven(&self) -> bool {
        self.spoken && self.guard.is_proven()
    }

    /// The other end has begun as a known peer does; it may still have to prove that this is no
    /// replay.
    pub(super) fn is_introduced(&self) -> bool {
        self.spoken || self.guard.is_introduced()
    }

    /// Bytes of the other end wait in the kernel, and the next [`Line::poll`] reads them.
    pub(super) fn has_unread(&self) -> bool {
        match &self.socket {
            Socket::Open(stream) => self.clamp.wanted() > 0 && has_unread(stream),
            Socket::Calling { .. } => false,
        }
    }

    /// More to write, after what was.
    pub(super) fn write(&mut self, octets: Bytes) {
        if self.broken.is_none()
            && !octets.is_empty()
            && let Err(why) = self.guard.write(octets)
        {
            self.broken = Some(note(&mut self.error, refused(why)));
        }
        self.dirty = true;
    }

    /// Takes over what the guard has, when there is nothing left to write: what waits there longer
    /// shares a record.
    fn fill(&mut self) {
        while (self.queue.is_empty() || self.guard.is_passing() || self.queued < FILLED)
            && let Some(octets) = self.guard.poll_transmit()
        {
            self.queued += octets.len();
            self.queue.push_back(octets);
        }
    }

    /// No more to write.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.dirty = true;
    }

    /// The machine's limit on what it wants to be sent.
    pub(super) fn limit(&mut self, now: Instant, octets: u32) {
        self.clamp.set(octets);
        self.look_at_window(now);
    }

    pub(super) fn look_at_window(&mut self, now: Instant) {
        if let (Socket::Open(stream), Some(octets)) = (&self.socket, self.clamp.look(now)) {
            Clamp::apply(stream, octets);
        }
    }

    /// Its call was not answered.
    pub(super) fn is_calling(&self) -> bool {
        matches!(self.socket, Socket::Calling { .. })
    }

    /// Resets it, now.
    pub(super) fn abort(self) {
        if let Socket::Open(stream) = &self.socket {
            // It is closed with a FIN if this fails, and the peer learns of it when it writes.
            let _ = stream.set_zero_linger();
        }
    }

    /// When it wants to be polled though nothing happens.
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

    /// It is time to look how it stands.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        matches!(self.socket, Socket::Open(_)) && self.next_timeout().is_some_and(|at| at <= now)
    }

    fn look_due(&self) -> Instant {
        self.looked + self.status.srtt.map_or(LOOK.1, |srtt| (srtt / 4).clamp(LOOK.0, LOOK.1))
    }

    /// What has happened, if anything. It may read as `reading` says.
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
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) if self.is_greeting() => return Some(Moved::Closed(self.fail(hung_up()))),
                Err(error) => return Some(Moved::Closed(self.fail(error))),
            }
        }
    }

    /// We have said who we are, and have no answer yet.
    fn is_greeting(&self) -> bool {
        self.leg.is_some() && !self.guard.is_proven()
    }

    /// Gives the kernel what it takes, and the end after it.
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
            // A connection that is gone already says so when it is read.
            let _ = rustix::net::shutdown(stream, Shutdown::Write);
            self.shut = true;
        }
    }

    /// A caller that is not read at present: no event of the socket would tell that it was reset.
    fn is_blocked(&self) -> bool {
        self.leg.is_none() && self.clamp.wanted() == 0 && self.broken.is_none()
    }

    /// How it stands, as the kernel says it now.
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
            // So much shall always be there for the next acknowledgement to find.
            unsent = unsent.saturating_sub(self.unsent.saturating_add(2 * info.snd_mss));
        }
        // A chunk of one segment has to fit into it with its record.
        let record = OVERHEAD as u32;
        let status = StreamStatus {
            cwnd: octets(info.window()),
            // A kernel that does not say leaves the congestion window to decide.
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

/// Keeps the error, and says what it means.
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

/// Bytes wait in the kernel to be read. An end of the stream or an error does not count.
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

/// Bytes that have come; `None` at the end.
fn read(stream: &TcpStream, at_most: usize) -> io::Result<Option<Bytes>> {
    thread_local! {
        /// One for all lines of a thread: a line on which nothing moves has no buffer.
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
