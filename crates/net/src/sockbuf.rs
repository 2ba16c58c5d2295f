//! Manages the send buffers of several TCP sockets under one memory budget, with the policies of
//! [`anabranch_core::sockbuf`]: those of this process ([`Tuner`]), or of running programs that know
//! nothing of it ([`ProgramTuner`]).
//!
//! Add sockets to a [`Tuner`]: single ones, or several that carry one striped connection and share
//! its memory. Each [`Tuner::step`] reads the state of all sockets (TCP_INFO, SO_MEMINFO,
//! SIOCOUTQ), runs the policy if it is due, and sets the sizes with SO_SNDBUF. [`run`] calls it
//! periodically on tokio; a program with its own event loop calls [`Tuner::step`] itself.
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
//! // A connection striped over two sockets, and a connection of one socket.
//! let striped = [connect()?, connect()?];
//! let single = connect()?;
//! let mut held = tuner.lock().unwrap();
//! let id = held.add_striped(&striped)?;
//! held.add(&single)?;
//! // The bandwidth of the first socket's interface, if known.
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
//! The budget limits the kernel memory of send queues: payload with overhead, `sk_wmem_queued`,
//! which SO_SNDBUF limits. Each socket counts with its limit plus [`Config::overrun`], because the
//! kernel compares before it accepts a packet, so the last packet may exceed the limit. If more
//! than that is in a queue, the actual amount counts.
//!
//! The sum exceeds the budget only if sockets are added with full queues, or while the queues of
//! others are full. It is within the budget again as soon as those have drained
//! ([`Counters::early`]).
//!
//! Not counted: received bytes; copies between queue and wire, which share the payload
//! (`sk_wmem_alloc`); memory that the kernel reserves for a socket in advance, less than a page;
//! and unsent bytes of a closed socket.
//!
//! # Sizes
//!
//! * Policies count kernel memory too. Payload quantities (bandwidth, window, acknowledged bytes)
//!   are multiplied by the overhead of that socket, `sk_wmem_queued` divided by SIOCOUTQ: 1.0 to 2.
//! * Each socket gets the kernel's smallest buffer, 4608 bytes, and its overrun. The pool that
//!   policies divide is the rest of the budget.
//! * The share of a striped connection is divided among its sockets in proportion to bandwidth
//!   times RTT.
//! * A limit is set to the decided size even if more is in the queue: the kernel then accepts
//!   nothing until the queue has drained below the limit. Until then, the queued bytes count, and
//!   no other socket gets them. Shrinking limits are set first, then queues are read again, and
//!   growing limits get at most what is actually free.
//!
//! # Bandwidth and RTT
//!
//! The bandwidth is the value passed to [`Tuner::report`]. Without reports it is the largest amount
//! acknowledged in one of the last ten periods in which the socket was busy, because an idle socket
//! has not become slower. Before the first such period it is the kernel's delivery rate. The RTT is
//! the kernel's `min_rtt`, the minimum over five minutes: a smoothed RTT grows with the queue that
//! the buffer itself creates.
//!
//! # Closed sockets and invalid reports
//!
//! A socket is removed and counted if its owner has dropped it, its connection is closed, or it
//! cannot be read (EBADF, ENOTSOCK); its memory becomes free. A tuner holds only weak references,
//! so it keeps no connection open. Reports that are negative, above 10^15 bit/s or not a number are
//! ignored and counted.

mod driver;
mod flow;
mod group;
mod place;
mod process;
mod program;
mod tuner;

use std::io;

use anabranch_core::sockbuf;
use anabranch_core::time::Duration;
use thiserror::Error;

pub use anabranch_core::sockbuf::ConnectionId;
pub use driver::run;
pub use place::Socket;
pub use process::{Process, Settings, started};
pub use program::{Population, ProgramConfig, ProgramTuner, Restored, Saved, SocketState, restore};
pub use tuner::{Counters, FlowState, Totals, Tuner};

/// Configuration of a [`Tuner`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Budget ([`sockbuf::Config::threshold`], bytes of kernel memory), period and policy.
    pub pool: sockbuf::Config,
    /// Bytes by which a queue may exceed its limit: 132 KiB, two packets of 64 KiB with overhead.
    /// One packet is the normal case. A program that writes although the socket is not writable can
    /// add to a packet that is partially sent; 123 kB were observed. Use less if devices accept
    /// only smaller packets, more if `gso_max_size` was raised. Any excess is withheld from other
    /// sockets and counted ([`sockbuf::Counters::overfull`]).
    pub overrun: u32,
    /// Interval at which sockets are read between two decisions, to pass on drained memory: 50 ms
    /// by default, at least 1 ms.
    pub look: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self::new(sockbuf::Config::default())
    }
}

impl Config {
    /// A configuration with this pool and default values for the rest.
    pub const fn new(pool: sockbuf::Config) -> Self {
        Self { pool, overrun: 132 << 10, look: Duration::from_millis(50) }
    }
}

/// Why a socket cannot be added.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AddError {
    /// The connection has no sockets.
    #[error("no sockets given")]
    NoSocket,
    /// The socket was added before, or is passed twice.
    #[error("the socket is already managed")]
    Held,
    /// The connection does not exist, or no longer.
    #[error("unknown connection {}", .0.0)]
    Unknown(ConnectionId),
    /// The budget has no room for the smallest buffer, the overrun and one segment of each socket.
    #[error("the sockets need at least {needed} bytes, more than the budget of {budget} bytes")]
    Full {
        /// Bytes that all sockets need at least.
        needed: u64,
        /// The budget in bytes.
        budget: u64,
    },
    /// The descriptor is not a TCP socket, or the kernel refused a request.
    #[error("the socket cannot be read or set: {0}")]
    Socket(#[from] io::Error),
}
