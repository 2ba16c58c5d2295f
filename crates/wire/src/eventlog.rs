//! The numbers of the event log's format, versions 1 and 2, for those who write logs and those who
//! read them; `docs/reference/replay.md` has the table of bytes.

/// The first bytes of a log.
pub const MAGIC: [u8; 5] = *b"ABLOG";
/// The byte after them, of a log in which no node moves or sleeps.
pub const VERSION: u8 = 1;
/// That of a log that may have legs of nodes that move ([`tag::LEG`]), and wake-up frames
/// ([`frame::WAKEUP`]).
pub const VERSION_2: u8 = 2;

/// The latest time and the longest span in nanoseconds, 104 days. As the wait of a packet in a
/// queue: it is not known yet when the transmitter begins with it.
pub const LONGEST: u64 = 1 << 53;

/// The first byte of a record.
pub mod tag {
    /// The run.
    pub const RUN: u8 = 1;
    /// The next node.
    pub const NODE: u8 = 2;
    /// The next link.
    pub const LINK: u8 = 3;
    /// The next flow.
    pub const FLOW: u8 = 4;
    /// A flow is a subflow of a connection.
    pub const SUBFLOW: u8 = 5;
    /// A packet.
    pub const PACKET: u8 = 6;
    /// The first of those that happen at a time.
    pub const FIRST_EVENT: u8 = SENT;
    /// A link has accepted a packet.
    pub const SENT: u8 = 16;
    /// A packet has arrived at the end of a link.
    pub const RECEIVED: u8 = 17;
    /// A link has lost a packet.
    pub const LOST: u8 = 18;
    /// A node has thrown a packet away.
    pub const DISCARDED: u8 = 19;
    /// When a cable's transmitter will begin with a packet.
    pub const WAITS: u8 = 20;
    /// A frame has left the air.
    pub const FRAME: u8 = 21;
    /// How a connection stands.
    pub const STATE: u8 = 22;
    /// What an application learns of a connection.
    pub const STREAM: u8 = 23;
    /// A part of a file was written to a connection.
    pub const CHUNK: u8 = 24;
    /// Something breaks, heals or changes.
    pub const INCIDENT: u8 = 25;
    /// A line of text.
    pub const NOTE: u8 = 26;
    /// A node begins to move, in a straight line to a place. Version 2.
    pub const LEG: u8 = 27;
    /// The end.
    pub const END: u8 = 31;
}

/// What a link leads over.
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
    /// The one of that number.
    pub fn of(number: u8) -> Option<Self> {
        [Self::Cable, Self::Ieee802154, Self::Ieee80211].get(usize::from(number)).copied()
    }
}

/// Why a packet is gone.
pub mod reason {
    /// A link's queue was full.
    pub const QUEUE_FULL: u8 = 0;
    /// A link's channel lost it, or a radio gave it up.
    pub const CHANNEL: u8 = 1;
    /// A link was down or went down.
    pub const LINK_DOWN: u8 = 2;
    /// A node knew no way.
    pub const NO_ROUTE: u8 = 3;
    /// The hop limit was used up.
    pub const HOP_LIMIT: u8 = 4;
    /// It was too big for the next link.
    pub const TOO_BIG: u8 = 5;
    /// The node was dead.
    pub const NODE_DOWN: u8 = 6;
    /// A caching node looks after it itself: it is not lost.
    pub const HELD: u8 = 7;
    /// It waited too long for a route.
    pub const WAITED_IN_VAIN: u8 = 8;
    /// The discipline of a link's queue dropped it to tell of congestion.
    pub const EARLY: u8 = 9;
}

/// Kinds and flags of frames.
pub mod frame {
    /// It carries a packet or a piece of one.
    pub const DATA: u8 = 0;
    /// It acknowledges.
    pub const ACK: u8 = 1;
    /// A request to send.
    pub const RTS: u8 = 2;
    /// A clear to send.
    pub const CTS: u8 = 3;
    /// It announces a frame to a receiver that sleeps. Version 2.
    pub const WAKEUP: u8 = 4;
    /// Flag: somebody that it was for has received it.
    pub const RECEIVED: u8 = 1;
    /// Flag: its sender went down in its midst.
    pub const BROKEN_OFF: u8 = 2;
    /// Flag: its header says that it was on air before.
    pub const AGAIN: u8 = 4;
}

/// Flags of a packet.
pub mod packet {
    /// It is a TCP segment: sequence number, length, acknowledgement and window follow.
    pub const TCP: u8 = 1;
    /// SYN.
    pub const SYN: u8 = 2;
    /// FIN.
    pub const FIN: u8 = 4;
    /// RST.
    pub const RST: u8 = 8;
    /// ACK.
    pub const ACK: u8 = 16;
    /// It says where in the data of a Multipath TCP connection its bytes belong.
    pub const MAPPED: u8 = 32;
    /// It is a piece of a packet that was cut: its offset, its length and the length of the whole
    /// follow.
    pub const FRAGMENT: u8 = 64;
    /// Another node than its source has made it; the node follows.
    pub const MADE_BY_ANOTHER: u8 = 128;
}

/// Which figures of a connection have changed.
pub mod state {
    /// Congestion window, bytes.
    pub const CWND: u8 = 1;
    /// Slow-start threshold, bytes; 0 is unbounded.
    pub const SSTHRESH: u8 = 2;
    /// Smoothed round-trip time, microseconds; 0 is not measured.
    pub const SRTT: u8 = 4;
    /// Window that the peer offers, bytes.
    pub const PEER_WINDOW: u8 = 8;
    /// Bytes sent and not acknowledged.
    pub const IN_FLIGHT: u8 = 16;
    /// Bytes written and not sent.
    pub const UNSENT: u8 = 32;
    /// Segments sent again.
    pub const RETRANSMISSIONS: u8 = 64;
    /// Retransmission time-outs.
    pub const TIMEOUTS: u8 = 128;
}

/// What an application learns of a connection.
pub mod stream {
    /// A peer's connection is open.
    pub const ACCEPTED: u8 = 0;
    /// Ours is open.
    pub const OPENED: u8 = 1;
    /// The peer has finished.
    pub const PEER_CLOSED: u8 = 2;
    /// It is over; the reason is added, 0 in good order, 1 reset by
    /// the peer, 2 given up by us, 3 refused, 4 timed out.
    pub const CLOSED: u8 = 8;
}

/// Something breaks, heals or changes.
pub mod incident {
    /// A node has died.
    pub const NODE_DOWN: u8 = 0;
    /// A node lives again.
    pub const NODE_UP: u8 = 1;
    /// A link is down.
    pub const LINK_DOWN: u8 = 2;
    /// A link is up.
    pub const LINK_UP: u8 = 3;
    /// A link has another rate, in bit/s.
    pub const RATE: u8 = 4;
}
