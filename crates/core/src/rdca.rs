//! RDCA: reliable data collection from many senders at one sink (paper: `rdca`, section 3; errata
//! H6 to H18). The sink derives each sender's rate from the delay of its packets and requests
//! missing packets.
//!
//! Two machines exchange the datagrams of [`anabranch_wire::rdca`] over any datagram service:
//!
//! * [`Sender`] is one stream to one sink: handshake, window, rate, and a queue of packets kept for
//!   retransmission.
//! * [`Sink`] serves all senders. It puts packets in order, requests missing packets (SNACK), and
//!   notifies a sender whose packets take increasingly long.
//!
//! Packets are not acknowledged one by one. The sender presumes that a packet has arrived if the
//! sink does not request it in time, and keeps the packet longer as long as its queue has room. If
//! the sink requests a packet that the sender has already discarded, the packet is *gone*, and both
//! applications are told. At the end of the stream the sink confirms the whole stream.
//!
//! Order of calls: any `handle_*` and commands, then `poll_transmit` and `poll_event` until `None`,
//! then `next_timeout`. A driver encodes the messages of [`Sender::poll_transmit`] with
//! [`Header::encode`], or carries them unencoded. There is no encryption, no authentication and no
//! flow control: the sink accepts every packet.
//!
//! [`Config`] lists the extensions beyond the paper; [`Config::paper`] is the paper as the errata
//! read it.

mod arrivals;
mod config;
mod crowd;
mod deadlines;
mod pieces;
mod queue;
mod rate;
mod reorder;
mod sender;
mod shares;
mod sink;
mod stream;
mod told;
mod trend;
mod trip;

pub use anabranch_wire::rdca::{Header, Incarnation, Message, Piece, Range, RefuseReason, Seq, StreamId};
pub use config::{
    Acceleration, AfterNotice, Caution, Config, Confirmation, Drain, Growth, Guard, HandshakeRtt, LossCredit,
    Notice, ReceiveRate, Release, Restart, Retention, RttSource, SenderConfig, ShareReport, SinkConfig,
    SnackReaction, SnackRepeat, Standby, Standing, StartEnds, StartPacing, TrendTest, Withhold,
};
pub use rate::Phase;
pub use sender::{Outcome, Sender, SenderCounters, SenderEvent, SenderInfo, WriteError};
pub use sink::{Mark, PeerId, Sink, SinkCounters, SinkEvent, StreamEnd};
pub use trend::Trend;
