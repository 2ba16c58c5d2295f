//! The send buffers of several TCP sockets of one process under one budget, by the policies of
//! [`anabranch_core::sockbuf`].
//!
//! A [`Tuner`] is told which sockets there are: single ones, or several that carry one striped
//! connection and share its memory. At each [`Tuner::step`] it reads how they stand (TCP_INFO,
//! SO_MEMINFO, SIOCOUTQ), lets the policy decide if that is due, and carries the sizes out with
//! SO_SNDBUF. [`run`] steps it for ever, on tokio; whoever has a loop of its own calls
//! [`Tuner::step`] there.
//!
//! ```
//! # use std::error::Error;
//! use std::net::{TcpListener, TcpStream};
//! use std::sync::{Arc, Mutex};
//!
//! use anabranch_core::sockbuf;
//! use anabranch_net::clock::Clock;
//! use anabranch_net::sockbuf::{Config, Tuner, run};
//!
//! # fn main() -> Result<(), Box<dyn Error>> {
//! let clock = Clock::start();
//! let pool = sockbuf::Config { threshold: 2_000_000, ..sockbuf::Config::default() };
//! let tuner = Arc::new(Mutex::new(Tuner::new(clock.now(), Config::new(pool))?));
//! # let listener = TcpListener::bind("127.0.0.1:0")?;
//! # let connect = || TcpStream::connect(listener.local_addr()?).map(Arc::new);
//! // One connection over two sockets, and one by itself.
//! let striped = [connect()?, connect()?];
//! let single = connect()?;
//! let mut held = tuner.lock().unwrap();
//! let id = held.add_striped(&striped)?;
//! held.add(&single)?;
//! // What the first one's interface carries, if somebody knows.
//! held.report(id, 0, 50e6);
//! assert!(held.totals().limits <= 2_000_000);
//! # drop(held);
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let task = Arc::clone(&tuner);
//! let driver = tokio::spawn(async move { run(&task, clock).await });
//! # tokio::task::yield_now().await;
//! // Later:
//! driver.abort();
//! # });
//! # Ok(())
//! # }
//! ```
//!
//! # What counts against the budget
//!
//! Kernel memory of send queues: payload with the structures around it, `sk_wmem_queued`, which
//! SO_SNDBUF limits. For each socket that is its limit, and [`Config::overrun`], since the kernel
//! compares before it takes a packet and so goes past a limit by the last one. What is in the queue
//! of a socket counts even if it is more than that. The sum is never above the budget, except where
//! sockets come that were full before, or that come while the queues of others are full to the
//! brim: then it is as soon as those have drained ([`Counters::early`]).
//!
//! Not counted: what was received; copies between queue and wire (`sk_wmem_alloc`: they share the
//! payload); memory that the kernel keeps for a socket in advance, less than a page; and what a
//! socket has left to send when it is closed.
//!
//! # Sizes
//!
//! * Policies count kernel memory too. What they know of payload (bandwidth, window, octets
//!   acknowledged) is multiplied by what the structures cost that very socket, `sk_wmem_queued` by
//!   SIOCOUTQ: 1.0 to 2.
//! * Each socket has the kernel's least buffer, 4608 octets, and its overrun by itself. The pool
//!   that is divided is the rest of the budget.
//! * A striped connection's part is divided among its sockets in proportion to bandwidth times RTT.
//! * A limit is set to the size that was decided even where more is in the queue: the kernel then
//!   takes nothing until that has drained. Until it has, it counts, and nobody else grows into it:
//!   what shrinks is set first, what was in the queues is read again, and what grows gets no more
//!   than what is really free.
//!
//! # Bandwidth and RTT
//!
//! Bandwidth is what [`Tuner::report`] was told of the interface. Without reports it is what was
//! acknowledged in one period, the most of the last ten in which the socket was busy: an idle
//! socket has not become slower. Before the first, it is the kernel's delivery rate. The RTT is the
//! kernel's `min_rtt`, the least of five minutes: a smoothed one grows with the queue that the
//! buffer itself makes.
//!
//! # Nonsense
//!
//! A socket that its owner has dropped, whose connection is over, or that cannot be read (EBADF,
//! ENOTSOCK) is dropped here too and counted, and its memory is free. A socket is only borrowed,
//! weakly: that it is here keeps no connection open. Reports that are negative, above 10^15 bit/s
//! or no number are ignored and counted.

mod driver;
mod flow;
mod group;
mod tuner;

use std::io;

use anabranch_core::sockbuf;
use anabranch_core::time::Duration;
use thiserror::Error;

pub use anabranch_core::sockbuf::ConnectionId;
pub use driver::run;
pub use flow::Socket;
pub use tuner::{Counters, FlowState, Totals, Tuner};

/// How sockets are held under a budget.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The budget ([`sockbuf::Config::threshold`], octets of kernel memory), the period and the
    /// policy.
    pub pool: sockbuf::Config,
    /// Octets by which a queue may go past its limit: 132 KiB, two packets of 64 KiB with their
    /// structures. One is the rule. Who writes on though the socket is not writable may add to a
    /// packet of which a part was sent meanwhile: 123 kB were seen. Less makes sense where devices
    /// take smaller packets, more where `gso_max_size` was raised. What goes beyond is withheld
    /// from others, and counted ([`sockbuf::Counters::overfull`]).
    pub overrun: u32,
    /// How often sockets are looked at between two decisions, to pass on what has drained: each 50
    /// ms. At least 1 ms.
    pub look: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self::new(sockbuf::Config::default())
    }
}

impl Config {
    /// This pool, and the rest as usual.
    pub const fn new(pool: sockbuf::Config) -> Self {
        Self { pool, overrun: 132 << 10, look: Duration::from_millis(50) }
    }
}

/// Why a socket cannot be held.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AddError {
    /// A connection of no sockets.
    #[error("no sockets given")]
    NoSocket,
    /// It is held already, or given twice.
    #[error("the socket is already managed")]
    Held,
    /// There is no such connection, or none any more.
    #[error("unknown connection {}", .0.0)]
    Unknown(ConnectionId),
    /// The budget has no room for the least buffer, the overrun and one segment of each socket.
    #[error("the sockets need at least {needed} bytes, more than the budget of {budget} bytes")]
    Full {
        /// Octets that all need at least.
        needed: u64,
        /// Octets that there are.
        budget: u64,
    },
    /// It is no TCP socket, or the kernel refuses.
    #[error("the socket cannot be read or set: {0}")]
    Socket(#[from] io::Error),
}
