//! RDCA: data from many senders to one sink, at a rate that the sink finds by their delays,
//! repaired by what it asks for (paper: `rdca`, section 3; errata H6 to H18).
//!
//! Two machines speak the datagrams of [`anabranch_wire::rdca`] over any datagram service:
//!
//! * [`Sender`], one stream to one sink: handshake, window and rate, a queue from which packets are
//!   sent again;
//! * [`Sink`], one for all senders: puts packets in order, asks for what is missing (SNACK), and
//!   notifies a sender whose packets take longer and longer.
//!
//! There is no acknowledgement of each packet. A packet is presumed to have arrived when it was not
//! asked for in time; it is kept longer, as long as there is room. What was let go and is asked for
//! after all is *gone*, and both applications are told. At the end of the stream all is confirmed.
//!
//! Order of calls: any `handle_*` and commands, then `poll_transmit` and `poll_event` until `None`,
//! then `next_timeout`. A driver writes what [`Sender::poll_transmit`] gives with
//! [`Header::encode`], or carries it as it stands. There is no encryption, no authentication and no
//! flow control: the sink takes what comes.
//!
//! Beyond the paper: see [`Config`], whose [`Config::paper`] is the paper as the errata read it.

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
    Acceleration, AfterNotice, Caution, Config, Drain, Growth, Guard, HandshakeRtt, Notice, ReceiveRate,
    Release, Retention, RttSource, SenderConfig, ShareReport, SinkConfig, SnackReaction, SnackRepeat,
    Standby, Standing, StartPacing, TrendTest, Withhold,
};
pub use rate::Phase;
pub use sender::{Outcome, Sender, SenderCounters, SenderEvent, SenderInfo, WriteError};
pub use sink::{PeerId, Sink, SinkCounters, SinkEvent, StreamEnd};
pub use trend::Trend;
