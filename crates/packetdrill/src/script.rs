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
