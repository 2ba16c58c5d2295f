//! The connection behind a socket: TCP, or Multipath TCP.

use std::net::IpAddr;

use anabranch_core::mptcp::{self, SubflowId};
use anabranch_core::segment::{Key, Segment, SeqNumber};
use anabranch_core::tcp::{self, Event, Info, KeepAlive, WriteError};
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;

/// A connection.
#[derive(Debug)]
pub(crate) enum Transport {
    Single(Box<tcp::Connection>),
    Multi(Box<Multi>),
}

/// A Multipath TCP connection with its keys.
#[derive(Debug)]
pub(crate) struct Multi {
    pub(crate) connection: mptcp::Connection,
    pub(crate) key: Key,
    /// The key that the script gives to the peer.
    pub(crate) peer_key: Option<Key>,
    /// Whether the next bare acknowledgement only confirms the third segment of the handshake.
    pub(super) confirms: bool,
}

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    Tcp(Event),
    /// The peer has announced an address and perhaps a port.
    Address(IpAddr, Option<u16>),
    /// Nothing that a socket shows.
    Other,
}

impl Transport {
    pub(crate) fn multi(&self) -> Option<&Multi> {
        match self {
            Self::Single(_) => None,
            Self::Multi(multi) => Some(multi),
        }
    }

    pub(crate) fn multi_mut(&mut self) -> Option<&mut Multi> {
        match self {
            Self::Single(_) => None,
            Self::Multi(multi) => Some(multi),
        }
    }

    pub(crate) fn info(&self) -> Info {
        let connection = match self {
            Self::Single(connection) => return connection.info(),
            Self::Multi(multi) => &multi.connection,
        };
        let all = connection.info();
        let first = connection.subflow_info(SubflowId(0)).expect("the first subflow keeps its place").tcp;
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Info {
            unsent: small(all.unsent),
            in_flight: small(all.in_flight),
            buffered: small(all.buffered),
            send_buffer: all.send_buffer,
            peer_window: small(all.peer_window),
            readable: small(all.readable),
            bytes_acked: all.bytes_acked,
            bytes_received: all.bytes_received,
            ..first
        }
    }

    pub(super) fn handle_segment(&mut self, now: Instant, subflow: SubflowId, segment: Segment) {
        match self {
            Self::Single(connection) => connection.handle_segment(now, segment),
            Self::Multi(multi) => multi.connection.handle_segment(now, subflow, segment),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Single(connection) => connection.handle_timeout(now),
            Self::Multi(multi) => multi.connection.handle_timeout(now),
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self {
            Self::Single(connection) => connection.next_timeout(),
            Self::Multi(multi) => multi.connection.next_timeout(),
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<(SubflowId, Segment)> {
        match self {
            Self::Single(connection) => Some((SubflowId(0), connection.poll_transmit(now)?)),
            Self::Multi(multi) => loop {
                let (id, segment) = multi.connection.poll_transmit(now)?;
                let bare = segment.payload.is_empty() && segment.mptcp.options().is_empty();
                if !(bare && std::mem::take(&mut multi.confirms)) {
                    return Some((id, segment));
                }
            },
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<Happening> {
        let multi = match self {
            Self::Single(connection) => return connection.poll_event().map(Happening::Tcp),
            Self::Multi(multi) => multi,
        };
        Some(match multi.connection.poll_event()? {
            mptcp::Event::Established => Happening::Tcp(Event::Established),
            mptcp::Event::Readable => Happening::Tcp(Event::Readable),
            mptcp::Event::Writable => Happening::Tcp(Event::Writable),
            mptcp::Event::PeerClosed => Happening::Tcp(Event::PeerClosed),
            mptcp::Event::Closed(reason) => Happening::Tcp(Event::Closed(reason)),
            mptcp::Event::AddressAdded { address, port, .. } => Happening::Address(address, port),
            mptcp::Event::FellBack
            | mptcp::Event::SubflowEstablished(_)
            | mptcp::Event::SubflowClosed(..)
            | mptcp::Event::AddressRemoved(_)
            | mptcp::Event::Priority(..) => Happening::Other,
        })
    }

    pub(super) fn give_way(&mut self, now: Instant, syn: &Segment) -> Option<SeqNumber> {
        match self {
            Self::Single(connection) => connection.give_way(now, syn),
            Self::Multi(_) => None,
        }
    }

    pub(super) fn write(&mut self, data: &mut Bytes) -> Result<usize, WriteError> {
        match self {
            Self::Single(connection) => connection.write(data),
            Self::Multi(multi) => multi.connection.write(data),
        }
    }

    pub(super) fn read(&mut self, max: usize) -> Option<Bytes> {
        match self {
            Self::Single(connection) => connection.read(max),
            Self::Multi(multi) => multi.connection.read(max),
        }
    }

    pub(super) fn close(&mut self, now: Instant) {
        match self {
            Self::Single(connection) => connection.close(now),
            Self::Multi(multi) => multi.connection.close(now),
        }
    }

    pub(super) fn release(&mut self, now: Instant) {
        match self {
            Self::Single(connection) => connection.release(now),
            Self::Multi(multi) => multi.connection.close(now),
        }
    }

    pub(super) fn abort(&mut self, now: Instant) {
        match self {
            Self::Single(connection) => connection.abort(now),
            Self::Multi(multi) => multi.connection.abort(now),
        }
    }

    pub(super) fn set_send_buffer(&mut self, size: u32) {
        match self {
            Self::Single(connection) => connection.set_send_buffer(size),
            Self::Multi(multi) => multi.connection.set_send_buffer(size),
        }
    }

    pub(super) fn set_receive_buffer(&mut self, size: u32) {
        match self {
            Self::Single(connection) => connection.set_receive_buffer(size),
            Self::Multi(multi) => multi.connection.set_receive_buffer(size),
        }
    }

    /// No effect on a Multipath TCP connection.
    pub(super) fn set_keep_alive(&mut self, now: Instant, keep: Option<KeepAlive>) {
        if let Self::Single(connection) = self {
            connection.set_keep_alive(now, keep);
        }
    }

    /// No effect on a Multipath TCP connection.
    pub(super) fn set_user_timeout(&mut self, now: Instant, after: Option<Duration>) {
        if let Self::Single(connection) = self {
            connection.set_user_timeout(now, after);
        }
    }
}
