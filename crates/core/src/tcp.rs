//! TCP (RFC 9293) as a sans-IO state machine.
//!
//! Implemented:
//!
//! * RFC 9293 with keep-alive and the user timeout, and the resets and challenge ACKs of RFC 5961
//! * RFC 6191 reuse of connections in TIME-WAIT
//! * RFC 5681, 6582 and 6675 congestion control and loss recovery, RFC 3042 limited transmit, RFC
//!   3465 byte counting
//! * RFC 6298 retransmission time-out, RFC 7323 timestamps, window scaling and PAWS
//! * RFC 8985 RACK-TLP, RFC 9937 PRR, RFC 2883 D-SACK
//! * RFC 3522, 4015 and 5682 detection and undo of spurious time-outs
//! * RFC 3168 ECN with RFC 8511 ABE
//! * RFC 9438 CUBIC, RFC 9406 HyStart++, Westwood+, BBR version 3 (draft-ietf-ccwg-bbr)
//! * pacing, buffers that grow with the path, explicit link failure notification (ELFN)
//!
//! Not implemented: urgent data (RFC 6093; ignored on receipt), the user timeout option (RFC 5482),
//! path MTU discovery, TCP Fast Open.
//!
//! A connection may be a subflow of a [`crate::mptcp::Connection`]: see the modules `multipath` and
//! `connection::subflow`.
//!
//! A [`Connection`] has two layers. The sending half (`sender`) and the receiving half (`receiver`)
//! manage windows and know nothing of connection states. The state machine above them knows nothing
//! of windows.

mod config;
pub mod congestion;
mod connection;
mod flight;
mod multipath;
mod rate;
mod receiver;
mod rtt;
mod sack;
mod sender;

pub use config::{
    AutoTune, Backoff, Config, DelayedAck, EcnMode, InitialWindow, KeepAlive, Nagle, Push, Recovery,
    RtoConfig, SackRole,
};
pub use congestion::{AdaptiveNewReno, AdaptivePhases, ByteCounting, CongestionAlgorithm, CustomCongestion};
pub use connection::{CloseReason, Connection, Event, Info, State, WriteError, reset_for};
pub use multipath::DsnWidth;
pub use sender::RecoveryStage;

pub(crate) use congestion::Coupling;
pub(crate) use multipath::{Incoming, Keys, Multipath, TIGHTER};
pub(crate) use receiver::{Reassembly, push_joined, small};
pub(crate) use sender::SendQueue;
