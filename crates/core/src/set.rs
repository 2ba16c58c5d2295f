//! SET: one file striped over several split-TCP sessions through several gateways (paper: `set`,
//! section 4).
//!
//! Three machines exchange the messages of [`anabranch_wire::set`]:
//!
//! * [`Sender`] is the session manager of the correspondent node. It sends the request to the node,
//!   chooses gateways, opens one [`tcp_manager`] session after another and stripes the file over
//!   them.
//! * [`Relay`] is the gateway. It joins two independent TCP connections and reports the node's
//!   receive window to the sender, converted to the units of the wired side.
//! * [`Receiver`] is the session manager of the node. It puts chunks in order and divides its
//!   buffer among the sessions by their measured quality.
//!
//! The machines use streams, not TCP itself. A driver reports stream events ([`StreamEvent`]) and
//! stream state ([`StreamStatus`]) to a machine and carries out its [`Effect`]s. Drivers exist for
//! simulated TCP, kernel sockets and a node's event loop. Order of calls: any `handle_*`, then
//! `poll_effect` until `None`, then `next_timeout`.
//!
//! Extensions beyond the paper:
//!
//! * acknowledgements on the session layer, which make recovery exact
//! * predictive striping
//! * re-injection of the last chunks on a faster path
//! * detection of silent gateways
//! * data before the SETACK
//!
//! Each extension is an option of [`SenderConfig`]; [`SenderConfig::paper`] is the protocol as
//! printed.

pub mod buffers;
mod file;
pub mod gateways;
mod machine;
mod path;
mod ranges;
mod receiver;
mod relay;
mod session_manager;
pub mod stream;
pub mod striping;
pub mod tcp_manager;

pub use anabranch_wire::set::{
    Energy, FileIdentity, Gateway, Layout, MAX_GATEWAYS, MAX_MANIFEST, MAX_NODE_HEADER, Neighbour, Plan,
    RefuseReason, Request, SetAckStatus, TransferId, transfer_of_request,
};
pub use file::File;
pub use machine::Machine;
pub use ranges::RangeSet;
pub use receiver::{
    Grant, Holding, Receiver, ReceiverConfig, ReceiverCounters, SenderId, Striping as NodeStriping,
};
pub use relay::{OpenWait, Relay, RelayConfig, RelayCounters, WindowUnits};
pub use session_manager::{
    Failure, MAX_SESSIONS, Moments, OpenWhen, Outcome, PhaseSpan, Recovery, Reinjection, Sender,
    SenderConfig, SessionReport, Start, StripingChoice, StripingDecision, StripingReason, TransferPhase,
};
pub use stream::{Effect, Leg, StreamClose, StreamEvent, StreamId, StreamStatus};
pub use striping::{CustomStriping, StripingPolicy};
