//! The machines over a socket. Each driver is one task and owns nothing: its owner keeps the
//! machine in a `RefCell`, for reports and reloads.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_core::rdca::{Outcome, WriteError};
use anabranch_core::time::{Duration, Instant};
use anabranch_secure::datagram::Proof;
use bytes::Bytes;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::collector::{Collector, Item, Mark, Taken, What};
use super::{Sense, SenseEvent};
use crate::clock::{Clock, unix_time};
use crate::os;
use crate::timer::Timer;

/// Datagrams of one direction in a row, so that neither direction starves the other.
const ROUND: usize = 64;
/// Receive buffer that a socket asks the kernel for, in bytes. The kernel grants at most
/// `net.core.rmem_max`.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Length of the longest datagram.
const LONGEST: usize = 1 << 16;
/// Longest time for which a datagram waits for a sink that is not stopped.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// A larger change of the host's clock against the monotonic one, in nanoseconds, is a step.
/// Reading both clocks takes less time, unless the process loses its processor between them.
const STEP: u128 = 1_000_000;

/// Binds the socket of a sink or a sender.
///
/// # Errors
/// The address is not available.
pub async fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address).await?;
    // Without the larger buffer, bursts are lost and requested again.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER);
    // Before the first event of a socket, tokio takes it for full, and a datagram would be lost.
    socket.writable().await?;
    Ok(socket)
}

/// A record to send: its time of creation in milliseconds since 1970, and its payload.
pub type Created = (u64, Bytes);

/// Runs a sender until its stream is closed. Records come from `records`, whose end closes the
/// stream. `tell` gets the events. The sink's address in `to` may change at any time.
///
/// # Errors
/// The kernel provides no timer, or the socket cannot be read.
pub async fn run_sense<P: Proof>(
    (socket, to): (&UdpSocket, &Cell<SocketAddr>),
    clock: &Clock,
    sense: &RefCell<Sense<P>>,
    records: &mut Receiver<Created>,
    mut tell: impl FnMut(SenseEvent),
) -> io::Result<Outcome> {
    let timer = Timer::new()?;
    let mut buffer = vec![0; LONGEST];
    let mut feed = Feed { waiting: None, is_full: false, out: Vec::new() };
    let mut is_closing = false;
    sense.borrow_mut().open(clock.now());
    loop {
        let turn = feed.turn(clock.now(), &mut sense.borrow_mut(), (socket, to.get()), &mut tell);
        let next = match turn {
            Turn::Until(next) => next,
            Turn::Ended(outcome) => return Ok(outcome),
        };
        tokio::select! {
            biased;
            ready = socket.readable() => {
                ready?;
                for _ in 0..ROUND {
                    match socket.try_recv_from(&mut buffer) {
                        Ok((n, from)) if is_same(from, to.get()) => {
                            sense.borrow_mut().handle_datagram(clock.now(), &buffer[..n]);
                        }
                        // Of another host.
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        // A report of an earlier send.
                        Err(_) => {}
                    }
                }
            }
            record = records.recv(), if feed.waiting.is_none() && !is_closing => match record {
                Some(record) => feed.waiting = Some(record),
                None => {
                    is_closing = true;
                    sense.borrow_mut().close(clock.now());
                }
            },
            () = timer.until(next, clock) => {}
        }
    }
}

/// The record on its way from the application to the sender.
struct Feed {
    waiting: Option<Created>,
    /// Whether the record has found the queue full and waits for `Writable`.
    is_full: bool,
    out: Vec<u8>,
}

/// What follows a turn of the sender.
enum Turn {
    Until(Option<Instant>),
    Ended(Outcome),
}

impl Feed {
    fn turn<P: Proof>(
        &mut self,
        now: Instant,
        machine: &mut Sense<P>,
        (socket, to): (&UdpSocket, SocketAddr),
        tell: &mut impl FnMut(SenseEvent),
    ) -> Turn {
        if machine.next_timeout().is_some_and(|at| at <= now) {
            machine.handle_timeout(now);
        }
        if !self.is_full
            && machine.next_write() <= now
            && let Some((created, payload)) = self.waiting.take()
        {
            self.is_full = machine.write(now, created, &payload) == Err(WriteError::Full);
            self.waiting = self.is_full.then_some((created, payload));
        }
        for _ in 0..ROUND {
            if !machine.poll_transmit(now, &mut self.out) {
                break;
            }
            // A full socket buffer or a missing route is a loss, which RDCA repairs.
            let _ = socket.try_send_to(&self.out, to);
        }
        let mut outcome = None;
        while let Some(event) = machine.poll_event() {
            match &event {
                SenseEvent::Writable => self.is_full = false,
                SenseEvent::Closed { outcome: how, .. } => outcome = Some(*how),
                SenseEvent::Connected | SenseEvent::Confirmed { .. } => {}
            }
            tell(event);
        }
        if let Some(outcome) = outcome {
            // After an abort, the last message is a reset.
            while machine.poll_transmit(now, &mut self.out) {
                let _ = socket.try_send_to(&self.out, to);
            }
            return Turn::Ended(outcome);
        }
        let may_write = (self.waiting.is_some() && !self.is_full).then(|| machine.next_write());
        Turn::Until(machine.next_timeout().into_iter().chain(may_write).min())
    }
}

/// The time of day in milliseconds since 1970.
pub fn unix_millis() -> u64 {
    u64::try_from(unix_time().as_millis()).unwrap_or(u64::MAX)
}

/// Arrival times by the monotonic clock, from those of the kernel by the host's clock, which may be
/// set at any time.
#[derive(Debug, Default)]
struct Arrivals {
    /// The host's clock less the monotonic one, in nanoseconds, when the last datagram was read.
    offset: u128,
    last: Instant,
}

impl Arrivals {
    /// When a datagram has arrived that is read at `now`, or at `unix` by the host's clock. No
    /// datagram is earlier than the one before it.
    fn of(
        &mut self,
        arrived: Option<std::time::Duration>,
        unix: std::time::Duration,
        now: Instant,
    ) -> Instant {
        let offset = unix.as_nanos().saturating_sub(now.as_nanos().into());
        let is_set = std::mem::replace(&mut self.offset, offset).abs_diff(offset) > STEP;
        let waited = arrived.filter(|_| !is_set).map_or(0, |at| unix.saturating_sub(at).as_nanos());
        let waited = u64::try_from(waited).ok().filter(|waited| *waited <= LONGEST_WAIT.as_nanos());
        let at = Instant::from_nanos(now.as_nanos().saturating_sub(waited.unwrap_or(0)));
        self.last = self.last.max(at);
        self.last
    }

    /// Receives a datagram: its length, its source, and its arrival at the kernel. A process that
    /// waits for a processor reads datagrams late and in bursts, which would look like a queue on
    /// the path.
    fn receive(
        &mut self,
        socket: &UdpSocket,
        clock: &Clock,
        buffer: &mut [u8],
    ) -> io::Result<(usize, SocketAddr, Instant)> {
        let (n, from, arrived) =
            socket.try_io(Interest::READABLE, || os::receive(socket.as_fd(), &mut buffer[..]))?;
        Ok((n, from, self.of(arrived, unix_time(), clock.now())))
    }
}

/// Whether two addresses are of the same host and port.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

/// The sink's end of the way to the output.
#[derive(Debug)]
pub struct Outlet {
    taken: UnboundedSender<Taken>,
    stored: UnboundedReceiver<Vec<Mark>>,
    backlog: Arc<AtomicUsize>,
    limit: usize,
}

/// The output's end of the way from the sink.
#[derive(Debug)]
pub struct Intake {
    taken: UnboundedReceiver<Taken>,
    stored: UnboundedSender<Vec<Mark>>,
    backlog: Arc<AtomicUsize>,
}

/// Connects a sink and an output. While more than `limit` bytes wait for the output, the sink takes
/// no packets.
pub fn outlet(limit: usize) -> (Outlet, Intake) {
    let ((taken, from_sink), (stored, from_output)) = (unbounded_channel(), unbounded_channel());
    let backlog = Arc::new(AtomicUsize::new(0));
    let intake = Intake { taken: from_sink, stored, backlog: Arc::clone(&backlog) };
    (Outlet { taken, stored: from_output, backlog, limit }, intake)
}

impl Intake {
    /// Waits for items, and returns all that have arrived, up to about a mebibyte. `None` when the
    /// sink has ended. Call it from a thread of its own.
    pub fn take(&mut self) -> Option<Taken> {
        let first = self.taken.blocking_recv()?;
        Some(self.more(first))
    }

    /// As [`Intake::take`], for a task.
    pub async fn next(&mut self) -> Option<Taken> {
        let first = self.taken.recv().await?;
        Some(self.more(first))
    }

    fn more(&mut self, mut all: Taken) -> Taken {
        let mut octets = weight(&all);
        while octets < BATCH
            && let Ok(more) = self.taken.try_recv()
        {
            octets += weight(&more);
            all.items.extend(more.items);
            all.marks.extend(more.marks);
        }
        all
    }

    /// Reports that the output has all items of `taken`, and the state their numbers.
    pub fn stored(&self, taken: Taken) {
        self.backlog.fetch_sub(weight(&taken), Ordering::Relaxed);
        // A sink that has ended confirms nothing any more; the sender repeats.
        let _ = self.stored.send(taken.marks);
    }
}

/// Bytes that the output handles at once.
const BATCH: usize = 1 << 20;

/// Bytes that items and marks occupy, roughly.
fn weight(taken: &Taken) -> usize {
    let of = |item: &Item| match &item.what {
        What::Record { payload, .. } => payload.len(),
        What::Lost { .. } | What::Ended(_) => 0,
    };
    let items = taken.items.iter().map(|item| size_of::<Item>() + of(item)).sum::<usize>();
    items + taken.marks.len() * size_of::<Mark>()
}

/// Runs a sink until its output ends. `each` is called after each round, for reports.
///
/// # Errors
/// The kernel provides no timer, or the socket cannot be read.
pub async fn run_sink(
    socket: &UdpSocket,
    clock: &Clock,
    collector: &RefCell<Collector>,
    mut outlet: Outlet,
    mut each: impl FnMut(Instant, &mut Collector),
) -> io::Result<()> {
    let timer = Timer::new()?;
    let (mut buffer, mut out, mut arrivals) = (vec![0; LONGEST], Vec::new(), Arrivals::default());
    // Without it, datagrams arrive when they are read.
    let _ = os::write_int(socket.as_fd(), os::ARRIVALS, 1);
    loop {
        let now = clock.now();
        let next = {
            let mut machine = collector.borrow_mut();
            if machine.next_timeout().is_some_and(|at| at <= now) {
                machine.handle_timeout(now);
            }
            while let Some(to) = machine.poll_transmit(now, &mut out) {
                let _ = socket.try_send_to(&out, to);
            }
            if let Some(taken) = machine.take(unix_millis()) {
                outlet.backlog.fetch_add(weight(&taken), Ordering::Relaxed);
                if outlet.taken.send(taken).is_err() {
                    return Ok(());
                }
            }
            machine.set_full(outlet.backlog.load(Ordering::Relaxed) > outlet.limit);
            each(now, &mut machine);
            machine.next_timeout()
        };
        tokio::select! {
            biased;
            stored = outlet.stored.recv() => {
                let Some(mut marks) = stored else { return Ok(()) };
                while let Ok(more) = outlet.stored.try_recv() {
                    marks.extend(more);
                }
                let mut machine = collector.borrow_mut();
                marks.into_iter().for_each(|mark| machine.stored(now, mark));
            }
            ready = socket.readable() => {
                ready?;
                let mut machine = collector.borrow_mut();
                for _ in 0..ROUND {
                    match arrivals.receive(socket, clock, &mut buffer) {
                        Ok((n, from, at)) => machine.handle_datagram(at, from, &buffer[..n]),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(_) => {}
                    }
                }
            }
            () = timer.until(next, clock) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_do_not_go_back_when_the_host_s_clock_is_set() {
        let at = |micros: i64| std::time::Duration::from_micros(1_000_000_000 + micros as u64);
        let now = |micros: u64| Instant::from_nanos(1_000_000 * 1_000 + micros * 1_000);
        let mut arrivals = Arrivals::default();
        // The first offset is unknown.
        assert_eq!(arrivals.of(Some(at(0)), at(0), now(0)), now(0));
        assert_eq!(arrivals.of(Some(at(4_000)), at(5_000), now(5_000)), now(4_000));
        // The clock is set 0.5 s forward, and back, while a datagram waits.
        assert_eq!(arrivals.of(Some(at(6_000)), at(506_500), now(6_500)), now(6_500));
        assert_eq!(arrivals.of(Some(at(507_000)), at(508_000), now(8_000)), now(7_000));
        assert_eq!(arrivals.of(Some(at(509_000)), at(9_500), now(9_500)), now(9_500));
        // The order of reading is that of arriving.
        assert_eq!(arrivals.of(Some(at(9_000)), at(9_600), now(9_600)), now(9_500));
        assert_eq!(arrivals.of(None, at(9_700), now(9_700)), now(9_700));
    }
}
