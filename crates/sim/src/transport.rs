//! A connection of a host: TCP, or Multipath TCP over several subflows.

use anabranch_core::mptcp::{self, PathId, SubflowId};
use anabranch_core::segment::{Segment, SeqNumber};
use anabranch_core::tcp::{self, CloseReason, State, WriteError};
use anabranch_core::time::Instant;
use bytes::Bytes;

use crate::packet::IpVersion;

/// Configuration of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransportConfig {
    /// TCP.
    Tcp(tcp::Config),
    /// Multipath TCP.
    Multipath(mptcp::Config),
}

impl TransportConfig {
    /// The configuration for a version of IP.
    pub(crate) fn over(mut self, ip: IpVersion) -> Self {
        let tcp = match &mut self {
            Self::Tcp(config) => config,
            Self::Multipath(config) => &mut config.tcp,
        };
        tcp.default_mss = ip.default_mss();
        self
    }
}

impl From<tcp::Config> for TransportConfig {
    fn from(config: tcp::Config) -> Self {
        Self::Tcp(config)
    }
}

impl From<mptcp::Config> for TransportConfig {
    fn from(config: mptcp::Config) -> Self {
        Self::Multipath(config)
    }
}

/// A connection. TCP is not boxed, since most connections are TCP: each segment would follow one
/// more pointer.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the common one")]
pub(crate) enum Transport {
    Tcp(tcp::Connection),
    Multipath(Box<mptcp::Connection>),
}

/// An event of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransportEvent {
    Established,
    Readable,
    Writable,
    PeerClosed,
    Closed(CloseReason),
    /// An event of a subflow or an address, which no module uses.
    Aside,
}

impl Transport {
    #[inline]
    pub(crate) fn handle_segment(&mut self, now: Instant, subflow: SubflowId, segment: Segment) {
        match self {
            Self::Tcp(connection) => connection.handle_segment(now, segment),
            Self::Multipath(connection) => connection.handle_segment(now, subflow, segment),
        }
    }

    /// As [`tcp::Connection::give_way`]. A multipath connection never gives way: its subflows end
    /// on their own.
    pub(crate) fn give_way(&mut self, now: Instant, syn: &Segment) -> Option<SeqNumber> {
        match self {
            Self::Tcp(connection) => connection.give_way(now, syn),
            Self::Multipath(_) => None,
        }
    }

    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Tcp(connection) => connection.handle_timeout(now),
            Self::Multipath(connection) => connection.handle_timeout(now),
        }
    }

    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        match self {
            Self::Tcp(connection) => connection.next_timeout(),
            Self::Multipath(connection) => connection.next_timeout(),
        }
    }

    /// The next segment, and its path; `None` is the path of the connection.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<(Option<u8>, Segment)> {
        match self {
            Self::Tcp(connection) => Some((None, connection.poll_transmit(now)?)),
            Self::Multipath(connection) => {
                let (subflow, segment) = connection.poll_transmit(now)?;
                let path = connection.path(subflow).map_or(0, |path| path.0 as u8);
                Some((Some(path), segment))
            }
        }
    }

    #[inline]
    pub(crate) fn poll_event(&mut self) -> Option<TransportEvent> {
        match self {
            Self::Tcp(connection) => Some(match connection.poll_event()? {
                tcp::Event::Established => TransportEvent::Established,
                tcp::Event::Readable => TransportEvent::Readable,
                tcp::Event::Writable => TransportEvent::Writable,
                tcp::Event::PeerClosed => TransportEvent::PeerClosed,
                tcp::Event::Closed(reason) => TransportEvent::Closed(reason),
            }),
            Self::Multipath(connection) => Some(match connection.poll_event()? {
                mptcp::Event::Established => TransportEvent::Established,
                mptcp::Event::Readable => TransportEvent::Readable,
                mptcp::Event::Writable => TransportEvent::Writable,
                mptcp::Event::PeerClosed => TransportEvent::PeerClosed,
                mptcp::Event::Closed(reason) => TransportEvent::Closed(reason),
                mptcp::Event::FellBack
                | mptcp::Event::SubflowEstablished(_)
                | mptcp::Event::SubflowClosed(..)
                | mptcp::Event::AddressAdded { .. }
                | mptcp::Event::AddressRemoved(_)
                | mptcp::Event::Priority(..) => TransportEvent::Aside,
            }),
        }
    }

    pub(crate) fn write(&mut self, data: &mut Bytes) -> Result<usize, WriteError> {
        match self {
            Self::Tcp(connection) => connection.write(data),
            Self::Multipath(connection) => connection.write(data),
        }
    }

    #[inline]
    pub(crate) fn read(&mut self, max: usize) -> Option<Bytes> {
        match self {
            Self::Tcp(connection) => connection.read(max),
            Self::Multipath(connection) => connection.read(max),
        }
    }

    pub(crate) fn close(&mut self, now: Instant) {
        match self {
            Self::Tcp(connection) => connection.close(now),
            Self::Multipath(connection) => connection.close(now),
        }
    }

    pub(crate) fn abort(&mut self, now: Instant) {
        match self {
            Self::Tcp(connection) => connection.abort(now),
            Self::Multipath(connection) => connection.abort(now),
        }
    }

    pub(crate) fn set_receive_buffer(&mut self, octets: u32) {
        match self {
            Self::Tcp(connection) => connection.set_receive_buffer(octets),
            Self::Multipath(connection) => connection.set_receive_buffer(octets),
        }
    }

    pub(crate) fn set_send_buffer(&mut self, octets: u32) {
        match self {
            Self::Tcp(connection) => connection.set_send_buffer(octets),
            Self::Multipath(connection) => connection.set_send_buffer(octets),
        }
    }

    /// Number of bytes in the send buffer.
    pub(crate) fn buffered(&self) -> u64 {
        match self {
            Self::Tcp(connection) => connection.info().buffered.into(),
            Self::Multipath(connection) => connection.info().buffered,
        }
    }

    /// Whether all data is acknowledged and no more can be written. For a multipath connection this
    /// is known only when it is over.
    pub(crate) fn has_sent_all(&self) -> bool {
        match self {
            Self::Tcp(connection) => matches!(connection.state(), State::FinWait2 | State::TimeWait),
            Self::Multipath(connection) => connection.is_over(),
        }
    }

    /// Handles a lost route to the peer. Subflows of a multipath connection ignore it: there may be
    /// other paths.
    pub(crate) fn handle_route_failure(&mut self, now: Instant) {
        match self {
            Self::Tcp(connection) => connection.handle_route_failure(now),
            Self::Multipath(_) => {}
        }
    }

    /// Whether the connection is over.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.state() == State::Closed,
            Self::Multipath(connection) => connection.is_over(),
        }
    }

    /// Statistics. For a multipath connection, window and time-outs are those of the first subflow
    /// that carries data. Byte counts are those of the data, and retransmissions those of all
    /// subflows, including closed ones.
    pub(crate) fn info(&self) -> tcp::Info {
        match self {
            Self::Tcp(connection) => connection.info(),
            Self::Multipath(connection) => {
                let info = connection.info();
                let all = || (0..).map_while(|n| connection.subflow_info(SubflowId(n)));
                let first = all().find(|s| s.ready).or_else(|| connection.subflow_info(SubflowId(0)));
                let clamp = |octets: u64| octets.min(u32::MAX.into()) as u32;
                let first = first.expect("a connection begins with a subflow");
                tcp::Info {
                    unsent: clamp(info.unsent),
                    in_flight: clamp(info.in_flight),
                    buffered: clamp(info.buffered),
                    send_buffer: info.send_buffer,
                    readable: clamp(info.readable),
                    bytes_sent: all().map(|s| s.tcp.bytes_sent).sum(),
                    bytes_acked: info.bytes_acked,
                    bytes_received: info.bytes_received,
                    retransmissions: all().map(|s| s.tcp.retransmissions).sum(),
                    timeouts: all().map(|s| s.tcp.timeouts).sum(),
                    fast_retransmits: all().map(|s| s.tcp.fast_retransmits).sum(),
                    undone: all().map(|s| s.tcp.undone).sum(),
                    ..first.tcp
                }
            }
        }
    }

    /// The connection, if it is a multipath connection.
    pub(crate) fn multipath(&self) -> Option<&mptcp::Connection> {
        match self {
            Self::Tcp(_) => None,
            Self::Multipath(connection) => Some(connection),
        }
    }

    /// The connection, if it is a multipath connection.
    pub(crate) fn multipath_mut(&mut self) -> Option<&mut mptcp::Connection> {
        match self {
            Self::Tcp(_) => None,
            Self::Multipath(connection) => Some(connection),
        }
    }
}

/// The connection's id for a path of the network.
pub(crate) fn path_id(path: u8) -> PathId {
    PathId(path.into())
}
