//! A parsed script.

use anabranch_core::segment::{self, Flags, SackBlock};
use anabranch_core::time::{Duration, Instant};

/// A whole script.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// `--name=value` lines.
    pub options: Vec<Setting>,
    /// The shell command before the first event.
    pub init: Option<Shell>,
    /// The events in order.
    pub events: Vec<Event>,
}

/// An option of packetdrill.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// Line of the script.
    pub line: usize,
    /// Name without the dashes.
    pub name: String,
    /// Text after `=`.
    pub value: Option<String>,
}

/// A shell command.
#[derive(Clone, PartialEq, Debug)]
pub struct Shell {
    /// Line of the script.
    pub line: usize,
    /// The command, possibly several lines.
    pub text: String,
}

/// One event.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Line of the script.
    pub line: usize,
    /// When the event happens.
    pub time: Time,
    /// What happens.
    pub action: Action,
}

/// Time of an event; relative times count from the previous event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// At this time.
    Absolute(Instant),
    /// After this span.
    Relative(Duration),
    /// Between two times.
    AbsoluteRange(Instant, Instant),
    /// Between two spans.
    RelativeRange(Duration, Duration),
    /// At any time.
    Any,
}

/// Action of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A segment arrives.
    Inbound(Packet),
    /// A segment must leave.
    Outbound(Packet),
    /// A system call.
    Call(Call),
    /// A shell command.
    Shell(Shell),
    /// A Python snippet.
    Code(String),
}

/// A TCP segment of a script.
#[derive(Clone, PartialEq, Debug)]
pub struct Packet {
    /// The ECN field of the IP header; `None` is not checked.
    pub ecn: Option<Ecn>,
    /// Control bits.
    pub flags: Flags,
    /// First sequence number, relative to the initial one unless SYN is set.
    pub seq: u32,
    /// Bytes of payload.
    pub len: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The window field, not scaled; `None` is not checked.
    pub window: Option<u16>,
    /// Options in order; `None` is not checked.
    pub options: Option<Vec<TcpOption>>,
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// Names of the source and destination address.
    pub addresses: [Option<String>; 2],
}

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ecn {
    /// Not capable of ECN: `[noecn]`.
    NotEct,
    /// `[ect0]`
    Ect0,
    /// `[ect1]`
    Ect1,
    /// `[ect01]`: either of the two.
    Ect,
    /// Congestion experienced: `[ce]`.
    Ce,
}

impl Ecn {
    /// The codepoint with which a packet of the script arrives.
    pub(crate) fn codepoint(self) -> segment::Ecn {
        match self {
            Self::NotEct => segment::Ecn::NotEct,
            Self::Ect0 | Self::Ect => segment::Ecn::Ect0,
            Self::Ect1 => segment::Ecn::Ect1,
            Self::Ce => segment::Ecn::Ce,
        }
    }

    /// True if a packet that leaves may have this codepoint.
    pub(crate) fn admits(self, ecn: segment::Ecn) -> bool {
        self.codepoint() == ecn || (self == Self::Ect && ecn == segment::Ecn::Ect1)
    }
}

/// A TCP option of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// No operation, or the end of the list.
    Padding,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    WindowScale(u8),
    /// SACK-permitted.
    SackPermitted,
    /// SACK blocks, relative to the initial sequence number.
    Sack(Vec<SackBlock>),
    /// TSval and TSecr.
    Timestamps(u32, u32),
    /// An option of Multipath TCP (RFC 8684).
    Multipath(Multipath),
}

/// An MPTCP option of a script. Data sequence numbers are relative to the initial one of their
/// direction. `None` is computed by the runner, and not compared in a packet that leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Multipath {
    /// MP_CAPABLE; the number of keys and `len` select its form.
    Capable {
        /// Protocol version.
        version: u8,
        /// Flags A to H, from the most significant bit on.
        flags: u8,
        /// Key of the sender and key of the receiver.
        keys: Vec<KeyName>,
        /// Data-level length.
        len: Option<u16>,
    },
    /// MP_JOIN in a SYN.
    JoinSyn {
        /// Flag B.
        backup: bool,
        /// Id of the sender's address.
        address: Option<u8>,
        /// Token of the receiver.
        token: Token,
        /// The sender's nonce.
        nonce: Option<u32>,
    },
    /// MP_JOIN in a SYN/ACK.
    JoinSynAck {
        /// Flag B.
        backup: bool,
        /// Id of the sender's address.
        address: Option<u8>,
        /// The sender's nonce.
        nonce: Option<u32>,
    },
    /// MP_JOIN in the third segment.
    JoinAck,
    /// Data sequence signal. Of each number, whether it has 8 bytes, and its value.
    Dss {
        /// DATA_ACK.
        ack: Option<(bool, u64)>,
        /// Data sequence number of a mapping.
        dsn: Option<(bool, u64)>,
        /// Relative subflow sequence number.
        ssn: Option<u32>,
        /// Data-level length.
        len: Option<u16>,
        /// Checksum of the mapping.
        checksum: Checksum,
        /// DATA_FIN.
        fin: bool,
    },
    /// ADD_ADDR.
    AddAddress {
        /// Id of the address.
        id: Option<u8>,
        /// The address.
        address: Named<std::net::IpAddr>,
        /// The port.
        port: Option<u16>,
        /// Flag E: an echo, without an HMAC.
        echo: bool,
        /// The truncated HMAC.
        hmac: Option<u64>,
    },
    /// REMOVE_ADDR with its ids.
    RemoveAddress(Vec<u8>),
    /// MP_PRIO; with an address only in version 0.
    Prio {
        /// Flag B.
        backup: bool,
        /// Id of an address.
        address: Option<u8>,
    },
    /// MP_FAIL.
    Fail {
        /// Data sequence number.
        dsn: u32,
    },
    /// MP_FASTCLOSE; without a key with the right one.
    Fastclose {
        /// Key of the receiver.
        key: Option<KeyName>,
    },
    /// MP_TCPRST.
    Reset {
        /// Reason code.
        reason: u8,
        /// Flag T.
        transient: bool,
    },
}

/// A variable of a script, with the value that it gets here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named<T> {
    /// Name of the variable.
    pub name: String,
    /// Its value, if the script defines it here.
    pub value: Option<T>,
}

/// A key by its name.
pub type KeyName = Named<u64>;

/// A token of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Token {
    /// That of the receiver's key.
    Right,
    /// That of the key with this name.
    Of(String),
    /// A number.
    Value(u32),
}

/// The checksum of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// No checksum: `nocs`.
    None,
    /// The right one.
    Right,
    /// A number.
    Value(u16),
}

/// A system call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// When a blocking call returns, relative as in [`Time`].
    pub end: Option<Duration>,
    /// Name.
    pub name: String,
    /// Arguments.
    pub args: Vec<Value>,
    /// Expected result.
    pub result: Value,
    /// Name of the expected error.
    pub errno: Option<String>,
}

/// An argument or result of a system call.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `...`
    Any,
    /// A number.
    Int(i64),
    /// A constant.
    Word(String),
    /// A string.
    Text(String),
    /// A list in brackets.
    List(Vec<Value>),
    /// A structure in braces: named or unnamed fields.
    Fields(Vec<(Option<String>, Value)>),
    /// Constants joined by `|`.
    Or(Vec<Value>),
    /// A function call.
    Apply(String, Vec<Value>),
}
