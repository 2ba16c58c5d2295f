//! A connection and the state of its sockets.

use std::collections::VecDeque;

use anabranch_core::mptcp::SubflowId;
use anabranch_core::segment::{Segment, SeqNumber};
use anabranch_core::tcp::CloseReason;
use anabranch_core::time::{Duration, Instant};

use super::errors::Stamping;
use super::{START, Transport};

/// A connection and the state of its sockets.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: Transport,
    pub(crate) iss: SeqNumber,
    /// Local and remote port.
    pub(super) ports: (u16, u16),
    /// The listening socket that accepted it.
    pub(super) listener: Option<usize>,
    pub(super) established: bool,
    pub(super) peer_closed: bool,
    pub(super) closed: Option<CloseReason>,
    /// The error that the next call reports, once.
    pub(super) error: Option<&'static str>,
    /// `shutdown(SHUT_RD)`.
    pub(super) read_shut: bool,
    /// `shutdown(SHUT_WR)`.
    pub(super) write_shut: bool,
    /// Number of bytes accepted from the program and passed to the connection.
    pub(super) written: u64,
    /// Number of bytes that wait for a full segment: `TCP_CORK`, `MSG_MORE`.
    pub(super) held: usize,
    /// When these bytes are sent anyway.
    pub(super) held_until: Option<Instant>,
    /// True if they wait because of `MSG_MORE`: an acknowledgement releases them.
    pub(super) held_for_more: bool,
    /// Bytes written after a `MSG_EOR`, which must not share a segment with earlier bytes: one
    /// entry for each record.
    pub(super) later: VecDeque<usize>,
    /// The last write had `MSG_EOR`.
    pub(super) record_ended: bool,
    pub(crate) spent: Spent,
    /// The error queue.
    pub(super) stamping: Stamping,
    /// The segment size that our end advertises.
    pub(crate) advertised_mss: u16,
    /// Length of the largest segment received, at least 536 bytes.
    pub(crate) largest_received: u32,
    /// When data last arrived, or the handshake completed.
    pub(crate) last_data: Instant,
    /// True if a write found too little room.
    pub(super) no_space: bool,
    /// Number of wake-ups, for edge-triggered epoll.
    pub(super) wakeups: u64,
    /// `TCP_NOTSENT_LOWAT`.
    pub(super) lowat: u32,
    /// `SO_SNDBUF`, in bytes of Linux's memory.
    pub(super) send_buffer: u32,
    /// Limit up to which `send_buffer` grows with the window; `None` once the program has set the
    /// size.
    pub(super) most_buffer: Option<u32>,
    /// The largest window that the peer has advertised.
    pub(super) largest_window: u32,
    /// `TCP_NODELAY`.
    pub(super) nodelay: bool,
}

impl Link {
    pub(super) fn new(connection: Transport, iss: SeqNumber, ports: (u16, u16)) -> Self {
        Self {
            connection,
            iss,
            ports,
            listener: None,
            established: false,
            peer_closed: false,
            closed: None,
            error: None,
            read_shut: false,
            write_shut: false,
            written: 0,
            held: 0,
            held_until: None,
            later: VecDeque::new(),
            record_ended: false,
            spent: Spent::default(),
            stamping: Stamping::default(),
            held_for_more: false,
            advertised_mss: 0,
            largest_received: 536,
            last_data: START,
            no_space: false,
            wakeups: 0,
            lowat: u32::MAX,
            send_buffer: 0,
            most_buffer: None,
            largest_window: 0,
            nodelay: false,
        }
    }

    /// Accounts for time in which nothing changes.
    pub(super) fn spend(&mut self, time: Duration) {
        let info = self.connection.info();
        if info.buffered > 0 {
            self.spent.busy += time;
        }
        let next = info.unsent.min(u32::from(info.mss));
        let wanted = info.in_flight.saturating_add(next);
        // Linux checks the congestion window first.
        if info.unsent > 0 && wanted <= info.cwnd && wanted > info.peer_window {
            self.spent.window_limited += time;
        }
        if info.buffered > 0 && info.unsent == 0 && self.no_space {
            self.spent.buffer_limited += time;
        }
    }

    /// The next segment with its subflow. A record follows once the previous one has left.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<(SubflowId, Segment)> {
        loop {
            if let Some(segment) = self.connection.poll_transmit(now) {
                return Some(segment);
            }
            if self.connection.info().unsent > 0 {
                return None;
            }
            let bytes = self.later.pop_front()?;
            self.held += bytes;
            self.release();
        }
    }

    /// Reports sent and acknowledged bytes in the error queue.
    pub(super) fn stamp(&mut self, now: Instant) {
        let info = self.connection.info();
        self.stamping.report(now, self.written.saturating_sub(info.unsent.into()), info.bytes_acked);
    }

    /// Marks the end of a write, whose last byte gets timestamps.
    pub(super) fn mark_write(&mut self, now: Instant) {
        let waiting = self.held + self.later.iter().sum::<usize>();
        self.stamping.mark(self.written + waiting as u64);
        self.stamp(now);
    }

    /// True if the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Memory of the bytes written and not acknowledged, as Linux counts it.
    pub(super) fn memory(&self) -> usize {
        let waiting = self.held + self.later.iter().sum::<usize>();
        let bytes = self.connection.info().buffered as usize + waiting;
        bytes + bytes.div_ceil(self.unit()) * OVERHEAD
    }

    /// Bytes in one of Linux's send buffers: whole segments, at most half of the largest window.
    pub(super) fn unit(&self) -> usize {
        let mss = usize::from(self.connection.info().mss.max(1));
        let most = (self.largest_window as usize / 2).min(usize::from(u16::MAX));
        (most / mss * mss).max(mss)
    }

    /// True when Linux reports a socket as writable: a third of the buffer is free, and less than
    /// half of `TCP_NOTSENT_LOWAT` is unsent.
    pub(super) fn is_writable(&self) -> bool {
        let memory = self.memory();
        let free = (self.send_buffer as usize).saturating_sub(memory);
        !self.write_shut
            && self.established
            && free >= memory / 2
            && self.unsent() < (self.lowat as usize).div_ceil(2)
    }

    /// Grows the buffer for a program that waits for space while the congestion window is not full,
    /// as Linux does: to twice the window, in the memory that its segments need.
    pub(super) fn expand(&mut self) {
        let info = self.connection.info();
        let mss = u32::from(info.mss.max(1));
        if let Some(most) = self.most_buffer
            && self.no_space
            && info.in_flight / mss < info.cwnd / mss
        {
            let segment = (mss + HEADERS).next_power_of_two() + BUFFER_HEAD;
            let wanted = (info.cwnd / mss).max(10).saturating_mul(2 * segment).min(most);
            if wanted > self.send_buffer {
                self.set_send_buffer(wanted);
            }
        }
    }

    pub(super) fn set_send_buffer(&mut self, memory: u32) {
        self.send_buffer = memory;
        self.connection.set_send_buffer(memory.saturating_add(MARGIN));
    }

    /// True if less than `TCP_NOTSENT_LOWAT` is unsent.
    pub(super) fn is_low(&self) -> bool {
        self.unsent() < self.lowat as usize
    }

    fn unsent(&self) -> usize {
        self.connection.info().unsent as usize + self.held
    }
}

/// How long a sender has waited, as Linux accounts it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    /// Data was written and not acknowledged.
    pub(crate) busy: Duration,
    /// Data waited only because of the peer's window.
    pub(crate) window_limited: Duration,
    /// No data waited, only because the buffer had no room for it.
    pub(crate) buffer_limited: Duration,
}

/// Amount by which a connection exceeds `SO_SNDBUF`: Linux takes a whole buffer if there is any
/// room.
pub(super) const MARGIN: u32 = 1 << 17;
/// Room that Linux reserves for the headers and the descriptor of a segment.
const HEADERS: u32 = 640;
const BUFFER_HEAD: u32 = 256;
/// Memory of one of Linux's send buffers in addition to its bytes.
const OVERHEAD: usize = 1280;
