//! Buffers that grow with the throughput of a connection, from 32 KiB to 8 MiB.

use anabranch_core::mptcp::SubflowId;
use anabranch_core::time::{Duration, Instant};

use super::{Entry, Stack};

/// The buffers of one connection.
#[derive(Debug)]
pub(super) struct Buffers {
    send: u32,
    receive: u32,
    /// Beginning of the round trip that is measured.
    since: Instant,
    /// Bytes read since then.
    read: u64,
    /// When the send buffer was last compared with the throughput.
    compared: Instant,
}

impl Buffers {
    pub(super) fn new(now: Instant) -> Self {
        Self { send: FIRST_BUFFER, receive: FIRST_BUFFER, since: now, read: 0, compared: now }
    }

    /// Bytes by which the buffers have grown.
    pub(super) fn grown(&self) -> u64 {
        u64::from(self.send - FIRST_BUFFER) + u64::from(self.receive - FIRST_BUFFER)
    }
}

impl Stack {
    /// Notes that `len` bytes were read. The receive buffer holds the bytes of four round trips of
    /// the longest path: the sender may double its window, and data waits for slower paths. Round
    /// trips are often measured only by the handshake, before queues have filled, so they count as
    /// at least 250 ms. With 50 ms, downloads from Linux over 50, 20 and 5 Mbit/s were slower.
    pub(super) fn grow_receive(&mut self, now: Instant, slot: u32, len: usize) {
        let memory = self.memory;
        let Some(entry) = self.entry(slot) else { return };
        let buffers = &mut entry.buffers;
        buffers.read += len as u64;
        let (elapsed, read) = (now.saturating_since(buffers.since), buffers.read);
        if elapsed < LEAST_INTERVAL {
            return;
        }
        let (rtt, _) = longest(entry);
        if elapsed < rtt {
            return;
        }
        let rate = read as f64 / elapsed.as_secs_f64();
        let wanted = (rate * (rtt * 4).max(HORIZON).as_secs_f64()) as u64 + u64::from(FIRST_BUFFER);
        let buffers = &mut entry.buffers;
        (buffers.since, buffers.read) = (now, 0);
        if let Some(size) = grown(buffers.receive, wanted, memory) {
            let more = size - std::mem::replace(&mut buffers.receive, size);
            entry.connection.set_receive_buffer(size);
            self.memory -= u64::from(more);
        }
    }

    /// Lets a full send buffer hold twice what all paths together carry in the longest round trip.
    pub(super) fn grow_send(&mut self, now: Instant, slot: u32) {
        let memory = self.memory;
        let Some(entry) = self.entry(slot) else { return };
        if now.saturating_since(entry.buffers.compared) < LEAST_INTERVAL {
            return;
        }
        let info = entry.connection.info();
        if info.buffered * 4 < u64::from(info.send_buffer) * 3 {
            return;
        }
        let (rtt, rate) = longest(entry);
        let wanted = (2.0 * rate * rtt.as_secs_f64()) as u64 + u64::from(FIRST_BUFFER);
        let buffers = &mut entry.buffers;
        buffers.compared = now;
        if let Some(size) = grown(buffers.send, wanted, memory) {
            let more = size - std::mem::replace(&mut buffers.send, size);
            entry.connection.set_send_buffer(size);
            self.memory -= u64::from(more);
        }
    }
}

/// A larger size, if at least a quarter more is wanted and there is memory for it. One step takes
/// at most half of the memory, so that something remains for others.
fn grown(size: u32, wanted: u64, memory: u64) -> Option<u32> {
    let wanted = wanted.min(u64::from(LARGEST_BUFFER)).min(u64::from(size) + memory / 2) as u32;
    (wanted > size + size / 4).then_some(wanted)
}

/// The longest round trip of all working subflows, and the bytes per second that their windows
/// allow.
fn longest(entry: &Entry) -> (Duration, f64) {
    let mut found = (Duration::ZERO, 0.0);
    for id in 0..entry.flows.len() as u16 {
        let Some(info) = entry.connection.subflow_info(SubflowId(id)).filter(|info| info.ready) else {
            continue;
        };
        let Some(rtt) = info.tcp.srtt.filter(|rtt| !rtt.is_zero()) else { continue };
        found.0 = found.0.max(rtt);
        found.1 += f64::from(info.tcp.cwnd) / rtt.as_secs_f64();
    }
    found
}

/// Size of a new connection's buffers in bytes.
pub(super) const FIRST_BUFFER: u32 = 32 << 10;
/// Largest size of a buffer in bytes, which the window scale of the core's default can express.
const LARGEST_BUFFER: u32 = 8 << 20;
/// Time whose bytes the receive buffer holds at least.
const HORIZON: Duration = Duration::from_secs(1);
/// Shortest interval between two adjustments.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);
