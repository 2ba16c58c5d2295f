//! One Multipath TCP connection.
//!
//! * [`handshake`]: opening, joining, fallback (RFC 8684 sections 3.1, 3.2, 3.7).
//! * [`input`]: processing of segments on the data level (sections 3.3 and 3.4).
//! * [`output`]: assignment of data to subflows, and re-injection (section 3.3.6).
//! * [`life`]: time-outs, the end of subflows and of the connection (sections 3.3.3, 3.5, 3.6).

mod handshake;
mod input;
mod life;
mod output;

pub use handshake::{Secrets, join_token};

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;

use super::config::Config;
use super::info::{Event, Info, PathFacts, PathId, SubflowId, SubflowInfo};
use super::keys::Identity;
use super::receive::DataReceiver;
use super::scheduler::AnyScheduler;
use super::send::DataSender;
use super::subflow::Subflow;
use crate::segment::{AddAddr, MpJoin, MptcpOption, Segment, Token};
use crate::tcp::{CloseReason, WriteError};
use crate::time::{Duration, Instant};

/// One Multipath TCP connection.
///
/// It is used like [`crate::tcp::Connection`]: any number of `handle_*` and commands, then
/// [`Connection::poll_transmit`] and [`Connection::poll_event`] until `None`, then
/// [`Connection::next_timeout`]. Each segment is passed together with its subflow; the owner maps
/// subflows to addresses and paths.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    mode: Mode,
    local: Identity,
    remote: Option<Identity>,
    /// Whether the peer is known to have our key.
    confirmed: bool,
    /// Whether mappings carry checksums.
    checksums: bool,
    /// Whether MP_FAIL was sent on the only subflow: checksums do not count any more.
    failed: bool,
    /// Whether MP_FAIL has arrived on the only subflow: the next data ends MPTCP.
    leaving: bool,
    /// Whether the bytes of the first subflow need not be those of the data: data was sent twice,
    /// or another subflow was ready.
    diverged: bool,
    /// Whether the last segment had no MPTCP option.
    mute: bool,
    /// Whether the peer accepts subflows to the address and port of the first one.
    joins_here: bool,
    /// Our announced addresses that the peer has not echoed.
    announced: Vec<Announced>,
    /// In the order of opening. Closed subflows keep their place, which a later one may get.
    subflows: Vec<Subflow>,
    tx: DataSender,
    rx: DataReceiver,
    scheduler: AnyScheduler,
    /// The subflow that last received a segment: window updates are sent there.
    last_heard: usize,
    /// The subflow to poll first.
    turn: usize,
    /// Resets that belong to no connection state.
    resets: VecDeque<(SubflowId, Segment)>,
    events: VecDeque<Event>,
    /// When data without progress is checked.
    stall_at: Option<Instant>,
    stalls: u32,
    over: Option<CloseReason>,
    dropped: u64,
}

/// An ADD_ADDR that waits for its echo.
#[derive(Debug)]
struct Announced {
    add: AddAddr,
    at: Instant,
    tries: u32,
}

/// Result of the negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// We have offered MPTCP, or answered an offer.
    Offered,
    /// MPTCP: data has its own sequence numbers.
    Multipath,
    /// Plain TCP on the first subflow.
    Plain,
}

impl Connection {
    /// Queues data, up to the free space of the send buffer, without copying. Removes the accepted
    /// bytes from the front of `data` and returns their number. Allowed before the handshake is
    /// complete.
    pub fn write(&mut self, data: &mut Bytes) -> Result<usize, WriteError> {
        if self.over.is_some() {
            return Err(WriteError::Closed);
        }
        if self.tx.is_closed() {
            return Err(WriteError::Closing);
        }
        match (self.mode, self.subflows.first_mut()) {
            (Mode::Plain, Some(first)) => first.tcp.write(data),
            (Mode::Offered | Mode::Multipath | Mode::Plain, _) => Ok(self.tx.write(data)),
        }
    }

    /// Returns up to `max` bytes in order, or `None` if there are none. Reading opens the window.
    /// Received data stays readable after the connection has closed, unless [`Connection::abort`]
    /// closed it.
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        if let (Mode::Plain, Some(first)) = (self.mode, self.subflows.first_mut()) {
            // What arrived before the fallback comes first.
            return self.rx.read(max).or_else(|| first.tcp.read(max));
        }
        let data = self.rx.read(max)?;
        self.maybe_update_window();
        Some(data)
    }

    /// Sets the size of the receive buffer in bytes, for all subflows together.
    pub fn set_receive_buffer(&mut self, octets: u32) {
        if let (Mode::Plain, Some(first)) = (self.mode, self.subflows.first_mut()) {
            return first.tcp.set_receive_buffer(octets);
        }
        self.rx.set_buffer(octets);
        self.maybe_update_window();
    }

    /// As [`crate::tcp::Connection::set_send_buffer`], for all subflows together.
    pub fn set_send_buffer(&mut self, octets: u32) {
        if let Some(first) = self.subflows.first_mut() {
            // The value applies if the connection falls back to plain TCP.
            first.tcp.set_send_buffer(octets);
        }
        let grown = self.tx.set_buffer(octets);
        match (self.mode, self.subflows.first_mut()) {
            (Mode::Plain, Some(first)) => {
                let info = first.tcp.info();
                if info.buffered < info.send_buffer {
                    self.raise(Event::Writable);
                }
            }
            (Mode::Offered | Mode::Multipath | Mode::Plain, _) if grown => self.raise(Event::Writable),
            (Mode::Offered | Mode::Multipath | Mode::Plain, _) => {}
        }
    }

    /// Returns the next event for the owner, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Sets the owner's knowledge about the path of a subflow.
    pub fn set_path(&mut self, subflow: SubflowId, facts: PathFacts) {
        if let Some(subflow) = self.subflows.get_mut(subflow.index()) {
            subflow.facts = facts;
            subflow.pace.tell(facts.service_time);
        }
    }

    /// As [`crate::tcp::Connection::limit_queue`], for the path of a subflow.
    pub fn limit_queue(&mut self, subflow: SubflowId, delay: Option<Duration>) {
        if let Some(subflow) = self.subflows.get_mut(subflow.index()) {
            subflow.tcp.limit_queue(delay);
        }
    }

    /// Sets whether a subflow is a backup, used only while no other works; the peer is told
    /// (MP_PRIO, RFC 8684 section 3.3.8). If the peer has declared it one, it stays one.
    pub fn set_backup(&mut self, subflow: SubflowId, backup: bool) {
        let Some(subflow) = self.subflows.get_mut(subflow.index()) else { return };
        subflow.backup_here = backup;
        if let Some(multipath) = subflow.tcp.multipath() {
            // A SYN that is still to be sent says so too: a peer with data does not wait.
            if let MptcpOption::MpJoin(MpJoin::Syn { backup: said, .. }) = &mut multipath.syn {
                *said = backup;
            }
            // RFC 8684 section 3.3.8: MP_PRIO applies to the subflow on which it is sent.
            multipath.say(MptcpOption::MpPrio { backup });
        }
    }

    /// The token that the peer sends in MP_JOIN.
    pub fn token(&self) -> Token {
        self.local.token
    }

    /// Whether the peer supports MPTCP.
    pub fn is_multipath(&self) -> bool {
        self.mode == Mode::Multipath
    }

    /// Whether the connection is over: every subflow is closed.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether further subflows can be opened.
    pub fn can_join(&self) -> bool {
        self.refuses_join().is_none()
    }

    /// Whether the peer accepts further subflows to the address and port of the first one; without,
    /// only to addresses that it announces (flag C of MP_CAPABLE, RFC 8684 section 3.1).
    pub fn joins_here(&self) -> bool {
        self.joins_here
    }

    /// All open subflows with their paths.
    pub fn subflows(&self) -> impl Iterator<Item = (SubflowId, PathId)> {
        self.subflows.iter().filter(|s| s.is_alive()).map(|s| (s.id, s.path))
    }

    /// Bytes written and not yet sent, without the cost of [`Connection::info`].
    pub fn unsent(&self) -> u64 {
        match (self.mode, self.subflows.first()) {
            (Mode::Plain, Some(first)) => first.tcp.info().unsent.into(),
            _ => self.tx.unsent(),
        }
    }

    /// Statistics of the connection.
    pub fn info(&self) -> Info {
        let ready = self.subflows.iter().filter(|s| s.is_ready()).count() as u16;
        if let (Mode::Plain, Some(first)) = (self.mode, self.subflows.first()) {
            let tcp = first.tcp.info();
            return Info {
                subflows: ready,
                unsent: tcp.unsent.into(),
                in_flight: tcp.in_flight.into(),
                buffered: tcp.buffered.into(),
                send_buffer: tcp.send_buffer,
                peer_window: tcp.peer_window.into(),
                readable: u64::from(self.rx.readable()) + u64::from(tcp.readable),
                bytes_acked: tcp.bytes_acked,
                bytes_received: tcp.bytes_received,
                dropped: self.dropped,
                ..Info::default()
            };
        }
        Info {
            multipath: self.is_multipath(),
            subflows: ready,
            unsent: self.tx.unsent(),
            in_flight: self.tx.in_flight(),
            buffered: self.tx.buffered(),
            send_buffer: self.tx.buffer(),
            peer_window: self.tx.peer_window(),
            readable: self.rx.readable().into(),
            out_of_order: self.rx.out_of_order(),
            bytes_acked: self.tx.acked,
            bytes_received: self.rx.received,
            bytes_duplicate: self.rx.duplicate,
            reinjections: self.tx.reinjections,
            dropped: self.dropped,
        }
    }

    /// The path of a subflow, even if it is closed.
    pub fn path(&self, subflow: SubflowId) -> Option<PathId> {
        self.subflows.get(subflow.index()).map(|subflow| subflow.path)
    }

    /// Statistics of a subflow, even if it is closed.
    pub fn subflow_info(&self, subflow: SubflowId) -> Option<SubflowInfo> {
        let subflow = self.subflows.get(subflow.index())?;
        Some(SubflowInfo {
            id: subflow.id,
            path: subflow.path,
            ready: subflow.is_ready(),
            backup: subflow.is_backup(),
            backup_here: subflow.backup_here,
            reset: subflow.reset,
            bytes_assigned: subflow.bytes_assigned,
            tcp: subflow.tcp.info(),
        })
    }

    /// Queues an event, unless the connection is over. An event that is already queued is not
    /// repeated, and one that is out of date is dropped. A peer can therefore not make the queue
    /// grow.
    fn raise(&mut self, event: Event) {
        let late = self.over.is_some() && !matches!(event, Event::Closed(_));
        if !late && !self.events.contains(&event) {
            self.events.retain(|earlier| !event.replaces(earlier));
            self.events.push_back(event);
        }
    }

    /// Sends a window update on the subflow that last received a segment, because the peer is
    /// reachable there. After a closed window it is sent on all: each subflow of a peer such as
    /// Linux keeps its own window, and probes a closed one ever more rarely.
    fn maybe_update_window(&mut self) {
        let (wanted, closed) = (self.rx.wants_update(), self.rx.is_closed());
        self.refresh();
        if !wanted {
            return;
        }
        if closed {
            return self.subflows.iter_mut().filter(|s| s.is_ready()).for_each(|s| s.tcp.acknowledge());
        }
        let last = self.last_heard;
        let heard = self.subflows.get(last).filter(|s| s.is_ready()).map(|_| last);
        let index = heard.or_else(|| self.subflows.iter().position(Subflow::is_ready));
        if let Some(subflow) = index.and_then(|index| self.subflows.get_mut(index)) {
            subflow.tcp.acknowledge();
        }
    }

    /// Sets the same DATA_ACK, window and end for all subflows (RFC 8684 sections 3.3.2 to 3.3.5).
    fn refresh(&mut self) {
        if self.mode != Mode::Multipath {
            return;
        }
        let (ack, window) = (self.rx.acknowledges(), self.rx.offer());
        let end = self.tx.is_closed().then(|| self.tx.end());
        for subflow in self.subflows.iter_mut().filter(|s| s.is_alive()) {
            subflow.tcp.set_shared_window(window);
            if let Some(multipath) = subflow.tcp.multipath() {
                multipath.data_ack = Some(ack);
                multipath.data_end = end;
            }
        }
    }
}
