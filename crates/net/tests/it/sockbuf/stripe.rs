//! A minimal stream over several TCP connections: the first writable socket takes the next chunk,
//! and the receiver reorders. SET does more; these tests concern the buffers below.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Size of a chunk in bytes.
const CHUNK: usize = 8192;
/// Each chunk begins with its position in the stream.
const HEADER: usize = 8;
/// Period of the stream's content in bytes; not a multiple of the chunk size.
const CYCLE: usize = 65_521;

/// The sending end.
#[derive(Debug, Default)]
pub(crate) struct Source {
    next: AtomicU64,
    stopped: AtomicBool,
}

/// The receiving end.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    arrived: AtomicU64,
    in_order: AtomicU64,
    early: Mutex<BTreeMap<u64, u64>>,
}

/// Content of the stream.
pub(crate) fn pattern() -> Arc<[u8]> {
    (0..CYCLE + CHUNK).map(|i| (((i % CYCLE) * 2_654_435_761) >> 11) as u8).collect()
}

fn chunk(pattern: &[u8], at: u64) -> &[u8] {
    let start = (at % CYCLE as u64) as usize;
    &pattern[start..start + CHUNK]
}

impl Source {
    /// Stops beginning new chunks.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Number of bytes passed to sockets.
    pub(crate) fn sent(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Sends chunks on one socket until stopped.
    pub(crate) async fn send(&self, socket: Arc<TcpStream>, pattern: Arc<[u8]>) -> io::Result<()> {
        let mut octets = [0; HEADER + CHUNK];
        while !self.stopped.load(Ordering::Relaxed) {
            // The chunk is taken only when the socket has room, so that a slow path does not hold a
            // chunk that a fast one could have sent.
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
    /// Number of bytes received in order.
    pub(crate) fn in_order(&self) -> u64 {
        self.in_order.load(Ordering::Relaxed)
    }

    /// Number of bytes received.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Receives from one socket until its end.
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
