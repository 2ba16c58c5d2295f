//! SET: one file striped over several split-TCP sessions through several gateways (paper: `set`,
//! section 4).
//!
//! Three machines speak the messages of [`anabranch_wire::set`]:
//!
//! * [`Sender`], the session manager of the correspondent node: asks the node, chooses gateways,
//!   opens one [`tcp_manager`] session after another and stripes the file over them;
//! * [`Relay`], the gateway: joins two independent TCP connections and carries the node's receive
//!   window back to the sender in the wired side's units;
//! * [`Receiver`], the session manager of the node: puts the chunks in order and shares its buffer
//!   among the sessions by measured quality.
//!
//! They speak to streams, not to TCP. A driver tells a machine what its streams did
//! ([`StreamEvent`]) and how they stand ([`StreamStatus`]) and carries out its [`Effect`]s: over
//! simulated TCP, over kernel sockets, in a node's loop. Order of calls: any `handle_*`, then
//! `poll_effect` until `None`, then `next_timeout`.
//!
//! Beyond the paper: acknowledgements of the session layer (recovery is exact), predictive
//! striping, the last chunks re-injected on a faster path, silent gateways found out, data before
//! the SETACK. Each is an option of [`SenderConfig`]; [`SenderConfig::paper`] is the protocol as
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
    Failure, MAX_SESSIONS, OpenWhen, Outcome, Recovery, Reinjection, Sender, SenderConfig, SessionReport,
    Start,
};
pub use stream::{Effect, Leg, StreamClose, StreamEvent, StreamId, StreamStatus};
pub use striping::{CustomStriping, StripingPolicy};
