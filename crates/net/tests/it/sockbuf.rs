//! Tests of the kernel's send buffers under a memory budget.

mod links;
mod nonsense;
mod program;
mod random;
mod stripe;

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use anabranch_core::sockbuf::{self, PolicyConfig};
use anabranch_core::time::Instant;
use anabranch_net::sockbuf::{Config, Tuner};

/// Reserve for the last packets of each socket.
const OVERRUN: u64 = 132 << 10;

/// A connection over the loopback device; the second end is never read.
fn connected() -> (Arc<TcpStream>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("a way there");
    near.set_nonblocking(true).expect("a socket");
    (Arc::new(near), listener.accept().expect("somebody").0)
}

fn tuner(budget: u64, policy: PolicyConfig) -> Tuner {
    assert_eq!(u64::from(Config::default().overrun), OVERRUN);
    let pool = sockbuf::Config { threshold: budget, policy, ..sockbuf::Config::default() };
    Tuner::new(Instant::ZERO, Config::new(pool)).expect("a legal configuration")
}
