//! One stream of bytes over several TCP connections, as simply as that can be: whichever socket
//! has room takes the next chunk, and the other end puts them in order. SET does more; what is
//! tested here are the buffers below.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Bytes of a chunk.
const CHUNK: usize = 8192;
/// Each chunk begins with its place in the stream.
const HEADER: usize = 8;
/// Bytes of the stream come again after so many: no multiple of a chunk.
const CYCLE: usize = 65_521;

/// The sender's end.
#[derive(Debug, Default)]
pub(crate) struct Source {
    next: AtomicU64,
    stopped: AtomicBool,
}

/// The receiver's end.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    arrived: AtomicU64,
    in_order: AtomicU64,
    early: Mutex<BTreeMap<u64, u64>>,
}

/// What the stream consists of.
pub(crate) fn pattern() -> Arc<[u8]> {
    (0..CYCLE + CHUNK).map(|i| (((i % CYCLE) * 2_654_435_761) >> 11) as u8).collect()
}

fn chunk(pattern: &[u8], at: u64) -> &[u8] {
    let start = (at % CYCLE as u64) as usize;
    &pattern[start..start + CHUNK]
}

impl Source {
    /// No chunk is begun any more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Bytes that were given to sockets.
    pub(crate) fn sent(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Chunks on one socket, until stopped.
    pub(crate) async fn send(&self, socket: Arc<TcpStream>, pattern: Arc<[u8]>) -> io::Result<()> {
        let mut octets = [0; HEADER + CHUNK];
        while !self.stopped.load(Ordering::Relaxed) {
            // The chunk is taken when there is room for it: a slow path shall not hold what a fast
            // one could have sent.
            socket.writable().await?;
            let at = self.next.fetch_add(CHUNK as u64, Ordering::Relaxed);
            octets[..HEADER].copy_from_slice(&at.to_be_bytes());
            octets[HEADER..].copy_from_slice(chunk(&pattern, at));
            let mut left = &octets[..];
            while !left.is_empty() {
                socket.writable().await?;
                match socket.try_write(left) {
                    Ok(written) => left = &left[written..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
        rustix::net::shutdown(&*socket, rustix::net::Shutdown::Write)?;
        Ok(())
    }
}

impl Sink {
    /// Bytes that have come in order.
    pub(crate) fn in_order(&self) -> u64 {
        self.in_order.load(Ordering::Relaxed)
    }

    /// Bytes that have come.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// What comes by one socket, to its end.
    pub(crate) async fn receive(&self, mut socket: TcpStream, pattern: Arc<[u8]>) -> io::Result<()> {
        let mut octets = [0; HEADER + CHUNK];
        loop {
            match socket.read_exact(&mut octets).await {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
            let (header, payload) = octets.split_at(HEADER);
            let at = u64::from_be_bytes(header.try_into().expect("a header"));
            assert!(payload == chunk(&pattern, at), "the chunk at {at} is damaged");
            self.take(at);
        }
    }

    fn take(&self, at: u64) {
        self.arrived.fetch_add(CHUNK as u64, Ordering::Relaxed);
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(early.insert(at, CHUNK as u64).is_none(), "the chunk at {at} has come twice");
        let mut next = self.in_order();
        while let Some(len) = early.remove(&next) {
            next += len;
        }
        self.in_order.store(next, Ordering::Relaxed);
    }
}
