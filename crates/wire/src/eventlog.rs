//! The event log format, versions 1 to 4: constants for writers and readers of logs, and records as
//! they are written. The byte layout is in `docs/reference/replay.md`.

mod record;

pub use record::Record;

/// The first bytes of a log.
pub const MAGIC: [u8; 5] = *b"ABLOG";
/// The version byte after [`MAGIC`], for a log in which no node moves or sleeps.
pub const VERSION: u8 = 1;
/// The version byte of a log that may contain movements of nodes ([`tag::LEG`]) and wake-up frames
/// ([`frame::WAKEUP`]).
pub const VERSION_2: u8 = 2;
/// The version byte of a log that may also contain phases of SET transfers ([`tag::PHASES`]).
pub const VERSION_3: u8 = 3;
/// The version byte of a log that may also contain limits of send buffers ([`tag::BUFFER`]).
pub const VERSION_4: u8 = 4;

/// Largest number of phases of a SET transfer: request, handshakes, first byte, striping, tail and
/// confirmation, in this order.
pub const PHASES: usize = 6;

/// The latest time and the longest span, 2^53 ns = 104 days. As a packet's waiting time it means
/// that the transmitter does not know yet when it will begin to send the packet.
pub const LONGEST: u64 = 1 << 53;

/// The first byte of a record: its type.
pub mod tag {
    /// Parameters of the run.
    pub const RUN: u8 = 1;
    /// Declares the next node.
    pub const NODE: u8 = 2;
    /// Declares the next link.
    pub const LINK: u8 = 3;
    /// Declares the next flow.
    pub const FLOW: u8 = 4;
    /// Declares a flow as a subflow of a connection.
    pub const SUBFLOW: u8 = 5;
    /// Describes a packet.
    pub const PACKET: u8 = 6;
    /// The first of the tags whose records have a time.
    pub const FIRST_EVENT: u8 = SENT;
    /// A link accepted a packet.
    pub const SENT: u8 = 16;
    /// A packet arrived at the end of a link.
    pub const RECEIVED: u8 = 17;
    /// A link lost a packet.
    pub const LOST: u8 = 18;
    /// A node discarded a packet.
    pub const DISCARDED: u8 = 19;
    /// Tells when the transmitter of a cable will begin to send a packet.
    pub const WAITS: u8 = 20;
    /// The radio transmission of a frame ended.
    pub const FRAME: u8 = 21;
    /// Statistics of a connection.
    pub const STATE: u8 = 22;
    /// A connection event reported to the application.
    pub const STREAM: u8 = 23;
    /// The application wrote a part of a file to a connection.
    pub const CHUNK: u8 = 24;
    /// A fault, a repair or another change of the network.
    pub const INCIDENT: u8 = 25;
    /// A line of text.
    pub const NOTE: u8 = 26;
    /// A node begins to move in a straight line to a place. Version 2.
    pub const LEG: u8 = 27;
    /// A SET transfer is over: the durations of its phases. Version 3.
    pub const PHASES: u8 = 28;
    /// The limit of a connection's send buffer changed. Version 4.
    pub const BUFFER: u8 = 29;
    /// End of the log.
    pub const END: u8 = 31;
}

/// The medium of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// A cable.
    Cable = 0,
    /// IEEE 802.15.4.
    Ieee802154 = 1,
    /// IEEE 802.11.
    Ieee80211 = 2,
}

impl Medium {
    /// The medium with this number.
    pub fn of(number: u8) -> Option<Self> {
        [Self::Cable, Self::Ieee802154, Self::Ieee80211].get(usize::from(number)).copied()
    }
}

/// Why a packet was lost or discarded.
pub mod reason {
    /// The queue of a link was full.
    pub const QUEUE_FULL: u8 = 0;
    /// The channel of a link lost it, or a radio ran out of retransmissions.
    pub const CHANNEL: u8 = 1;
    /// A link was down or went down.
    pub const LINK_DOWN: u8 = 2;
    /// The node had no route.
    pub const NO_ROUTE: u8 = 3;
    /// The hop limit reached zero.
    pub const HOP_LIMIT: u8 = 4;
    /// The packet was too big for the next link.
    pub const TOO_BIG: u8 = 5;
    /// The node was down.
    pub const NODE_DOWN: u8 = 6;
    /// A caching node did not forward the packet, since it handles the recovery itself. The packet
    /// is not counted as lost.
    pub const HELD: u8 = 7;
    /// The packet waited too long for a route.
    pub const WAITED_IN_VAIN: u8 = 8;
    /// The queue discipline of a link dropped it to signal congestion.
    pub const EARLY: u8 = 9;
}

/// Kinds and flags of frames.
pub mod frame {
    /// Carries a packet or a fragment of one.
    pub const DATA: u8 = 0;
    /// Acknowledgement.
    pub const ACK: u8 = 1;
    /// Request to send.
    pub const RTS: u8 = 2;
    /// Clear to send.
    pub const CTS: u8 = 3;
    /// Announces a frame to a receiver that sleeps. Version 2.
    pub const WAKEUP: u8 = 4;
    /// Flag: at least one addressed receiver received the frame.
    pub const RECEIVED: u8 = 1;
    /// Flag: the sender went down during the transmission.
    pub const BROKEN_OFF: u8 = 2;
    /// Flag: the header marks the frame as a retransmission.
    pub const AGAIN: u8 = 4;
}

/// Flags of a packet.
pub mod packet {
    /// The packet is a TCP segment: sequence number, length, acknowledgement and window follow.
    pub const TCP: u8 = 1;
    /// SYN.
    pub const SYN: u8 = 2;
    /// FIN.
    pub const FIN: u8 = 4;
    /// RST.
    pub const RST: u8 = 8;
    /// ACK.
    pub const ACK: u8 = 16;
    /// The packet maps its bytes to data of a Multipath TCP connection.
    pub const MAPPED: u8 = 32;
    /// The packet is a fragment: offset, length and total length follow.
    pub const FRAGMENT: u8 = 64;
    /// A node other than the source created the packet; that node follows.
    pub const MADE_BY_ANOTHER: u8 = 128;
}

/// Flags for the values of a connection that changed.
pub mod state {
    /// Congestion window in bytes.
    pub const CWND: u8 = 1;
    /// Slow-start threshold in bytes; 0 is unbounded.
    pub const SSTHRESH: u8 = 2;
    /// Smoothed round-trip time in microseconds; 0 if not measured.
    pub const SRTT: u8 = 4;
    /// Window offered by the peer, in bytes.
    pub const PEER_WINDOW: u8 = 8;
    /// Bytes sent and not acknowledged.
    pub const IN_FLIGHT: u8 = 16;
    /// Bytes written and not sent.
    pub const UNSENT: u8 = 32;
    /// Number of segments retransmitted.
    pub const RETRANSMISSIONS: u8 = 64;
    /// Number of retransmission timeouts.
    pub const TIMEOUTS: u8 = 128;
}

/// Connection events reported to an application.
pub mod stream {
    /// A connection from a peer is open.
    pub const ACCEPTED: u8 = 0;
    /// An own connection is open.
    pub const OPENED: u8 = 1;
    /// The peer has closed its direction.
    pub const PEER_CLOSED: u8 = 2;
    /// The connection is closed. The reason is added: 0 closed normally, 1 reset by the peer, 2
    /// aborted locally, 3 refused, 4 timed out.
    pub const CLOSED: u8 = 8;
}

/// Faults, repairs and changes of the network.
pub mod incident {
    /// A node went down.
    pub const NODE_DOWN: u8 = 0;
    /// A node is up again.
    pub const NODE_UP: u8 = 1;
    /// A link went down.
    pub const LINK_DOWN: u8 = 2;
    /// A link is up again.
    pub const LINK_UP: u8 = 3;
    /// The rate of a link changed; the value is in bit/s.
    pub const RATE: u8 = 4;
}
