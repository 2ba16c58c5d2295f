//! One Multipath TCP connection.
//!
//! * [`handshake`]: opening, joining, falling back (RFC 8684 sections 3.1, 3.2, 3.7).
//! * [`input`]: what a segment means on the level of data (sections 3.3 and 3.4).
//! * [`output`]: assigning data to subflows, and again to others (section 3.3.6).
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
use crate::segment::{MptcpOption, Segment, Token};
use crate::tcp::{CloseReason, WriteError};
use crate::time::Instant;

/// One Multipath TCP connection.
///
/// Used as [`crate::tcp::Connection`] is: any number of `handle_*` and commands, then
/// [`Connection::poll_transmit`] and [`Connection::poll_event`] until `None`, then
/// [`Connection::next_timeout`]. Segments go in and out with the subflow that they belong to; which
/// addresses and paths that means is the owner's affair.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    mode: Mode,
    local: Identity,
    remote: Option<Identity>,
    /// The peer is known to have our key.
    confirmed: bool,
    /// In the order of opening; those that are over keep their place.
    subflows: Vec<Subflow>,
    tx: DataSender,
    rx: DataReceiver,
    scheduler: AnyScheduler,
    /// The subflow on which something last arrived: a window that opens is told there.
    last_heard: usize,
    /// Whose segments are polled first.
    turn: usize,
    /// Resets that belong to no state.
    resets: VecDeque<(SubflowId, Segment)>,
    events: VecDeque<Event>,
    /// When data that nobody acknowledges is looked after.
    stall_at: Option<Instant>,
    stalls: u32,
    over: Option<CloseReason>,
    dropped: u64,
}

/// What both ends have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// We have offered MPTCP, or answered an offer.
    Offered,
    /// Data has a numbering of its own.
    Multipath,
    /// Plain TCP on the first subflow.
    Plain,
}

impl Connection {
    /// Queues as much from the front of `data` as the send buffer has room for, without a copy, and
    /// takes it off `data`; returns how many bytes that was. Allowed at once.
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

    /// Takes up to `max` bytes in order; `None` when there are none. Opens the window. What has
    /// arrived stays readable after the end, unless the end was our [`Connection::abort`].
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        if let (Mode::Plain, Some(first)) = (self.mode, self.subflows.first_mut()) {
            return first.tcp.read(max);
        }
        let data = self.rx.read(max)?;
        self.maybe_update_window();
        Some(data)
    }

    /// Changes how many bytes are held for the application, over all subflows.
    pub fn set_receive_buffer(&mut self, octets: u32) {
        if let (Mode::Plain, Some(first)) = (self.mode, self.subflows.first_mut()) {
            return first.tcp.set_receive_buffer(octets);
        }
        self.rx.set_buffer(octets);
        self.maybe_update_window();
    }

    /// As [`crate::tcp::Connection::set_send_buffer`], over all subflows.
    pub fn set_send_buffer(&mut self, octets: u32) {
        if let Some(first) = self.subflows.first_mut() {
            // It counts if this turns out to be plain TCP.
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

    /// The next thing that the owner should know, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What the owner knows of the path of a subflow.
    pub fn set_path(&mut self, subflow: SubflowId, facts: PathFacts) {
        if let Some(subflow) = self.subflows.get_mut(subflow.index()) {
            subflow.facts = facts;
            subflow.pace.tell(facts.service_time);
        }
    }

    /// Whether a subflow is to be used only while no other works; the peer is told (MP_PRIO, RFC
    /// 8684 section 3.3.8).
    pub fn set_backup(&mut self, subflow: SubflowId, backup: bool) {
        let Some(subflow) = self.subflows.get_mut(subflow.index()) else { return };
        subflow.backup = backup;
        if let Some(multipath) = subflow.tcp.multipath() {
            multipath.once.push_back(MptcpOption::MpPrio { backup });
        }
    }

    /// The token that our peer's MP_JOIN bears.
    pub fn token(&self) -> Token {
        self.local.token
    }

    /// The peer speaks MPTCP.
    pub fn is_multipath(&self) -> bool {
        self.mode == Mode::Multipath
    }

    /// Nothing is left of it: every subflow is over.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Further subflows can be opened.
    pub fn can_join(&self) -> bool {
        self.refuses_join().is_none()
    }

    /// All subflows that are not over, with their paths.
    pub fn subflows(&self) -> impl Iterator<Item = (SubflowId, PathId)> {
        self.subflows.iter().filter(|s| s.is_alive()).map(|s| (s.id, s.path))
    }

    /// The figures of the connection.
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
                readable: tcp.readable.into(),
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

    /// The path of a subflow, those that are over included.
    pub fn path(&self, subflow: SubflowId) -> Option<PathId> {
        self.subflows.get(subflow.index()).map(|subflow| subflow.path)
    }

    /// The figures of a subflow, those that are over included.
    pub fn subflow_info(&self, subflow: SubflowId) -> Option<SubflowInfo> {
        let subflow = self.subflows.get(subflow.index())?;
        Some(SubflowInfo {
            id: subflow.id,
            path: subflow.path,
            ready: subflow.is_ready(),
            backup: subflow.backup,
            bytes_assigned: subflow.bytes_assigned,
            tcp: subflow.tcp.info(),
        })
    }

    /// What happens twice before it is polled is told once.
    fn raise(&mut self, event: Event) {
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    /// The window has opened: said where something last arrived, since there the peer is.
    fn maybe_update_window(&mut self) {
        let wanted = self.rx.wants_update();
        self.refresh();
        if !wanted {
            return;
        }
        let last = self.last_heard;
        let heard = self.subflows.get(last).filter(|s| s.is_ready()).map(|_| last);
        let index = heard.or_else(|| self.subflows.iter().position(Subflow::is_ready));
        if let Some(subflow) = index.and_then(|index| self.subflows.get_mut(index)) {
            subflow.tcp.acknowledge();
        }
    }

    /// Every subflow says the same DATA_ACK, window and end (RFC 8684 sections 3.3.2 to 3.3.5).
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
