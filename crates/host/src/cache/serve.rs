//! The loop between the kernel's queue and the cache.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::IpAddr;
use std::path::Path;

use anabranch_core::dtc::Config;
use anabranch_deploy::error::Error;
use anabranch_deploy::log::Entry;
use anabranch_net::clock::Clock;
use tokio::io::unix::AsyncFd;

use super::link::{self, LONGEST_REPORT, Reports};
use crate::nfqueue::{Queue, Received, Verdict};
use crate::packets::{Offload, PacketCache, Ruling};
use crate::raw::RawSender;

/// The cache and its connections with the kernel.
pub(super) struct Serving {
    pub(super) cache: RefCell<PacketCache>,
    pub(super) counters: Counters,
    queue: RefCell<AsyncFd<Queue>>,
    raw: RawSender,
    reports: Option<Reports>,
    clock: Clock,
}

/// Counters of the host's side.
#[derive(Default)]
pub(super) struct Counters {
    /// Packets of the cache that the kernel refused.
    pub(super) unsent: Cell<u64>,
    /// Whether the operator knows that.
    warned: Cell<bool>,
    /// How often packets passed without a verdict because the queue was full.
    pub(super) overruns: Cell<u64>,
    /// Reports of the link layer.
    pub(super) reports: Cell<u64>,
}

impl Serving {
    pub(super) fn new(queue: Queue, raw: RawSender, config: Config) -> Result<Self, Error> {
        #[expect(
            deprecated,
            reason = "its replacement is `unsafe`; a queue keeps its descriptor as long as it lives"
        )]
        let queue = AsyncFd::new(queue);
        let queue = queue.map_err(|e| Error::missing(format!("cannot wait for the queue: {e}")))?;
        Ok(Self {
            cache: RefCell::new(PacketCache::new(config)),
            counters: Counters::default(),
            queue: RefCell::new(queue),
            raw,
            reports: None,
            clock: Clock::start(),
        })
    }

    /// Receives reports of the link layer at a socket.
    pub(super) fn with_reports(self, path: &Path) -> Result<Self, Error> {
        Ok(Self { reports: Some(Reports::bind(path)?), ..self })
    }

    /// Seconds since the start.
    pub(super) fn seconds(&self) -> f64 {
        self.clock.now().as_secs_f64()
    }

    /// Serves the queue until it fails.
    #[expect(clippy::await_holding_refcell_ref, reason = "only this loop uses the queue")]
    pub(super) async fn run(&self) -> Error {
        let mut queue = self.queue.borrow_mut();
        let mut packet = Vec::new();
        let mut report = vec![0; LONGEST_REPORT];
        loop {
            let deadline = self.cache.borrow().next_timeout();
            let wait = deadline.map(|at| at.saturating_since(self.clock.now()));
            let alarm = async {
                match wait {
                    Some(wait) => tokio::time::sleep(std::time::Duration::from_nanos(wait.as_nanos())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ready = queue.readable_mut() => {
                    let Ok(mut ready) = ready else { continue };
                    match self.drain(ready.get_inner_mut()) {
                        Ok(Drained::All) => ready.clear_ready(),
                        Ok(Drained::Batch) => {}
                        Err(error) => return Error::job(format!("the queue failed: {error}")),
                    }
                }
                len = Reports::receive(self.reports.as_ref(), &mut report) => {
                    // A report that is lost or malformed is as none: the time-out decides.
                    if let Some((event, sent)) = len.ok().and_then(|len| link::parse(&report[..len])) {
                        self.counters.reports.set(self.counters.reports.get() + 1);
                        self.cache.borrow_mut().handle_report(self.clock.now(), sent, event);
                    }
                }
                () = alarm => {}
            }
            let mut cache = self.cache.borrow_mut();
            let now = self.clock.now();
            if cache.next_timeout().is_some_and(|at| at <= now) {
                cache.handle_timeout(now);
            }
            while let Some(destination) = cache.poll_transmit(now, &mut packet) {
                let taken = self.send(&packet, destination);
                if cache.handle_sent(now, taken) && !self.counters.warned.replace(true) {
                    Entry::warning("refused", REFUSED).write();
                }
            }
        }
    }

    /// Reads packets and decides on them, at most [`BATCH`].
    fn drain(&self, queue: &mut Queue) -> io::Result<Drained> {
        let mut cache = self.cache.borrow_mut();
        for _ in 0..BATCH {
            let queued = match queue.receive() {
                Ok(Received::Packet(queued)) => queued,
                Ok(Received::Other) => continue,
                Ok(Received::Nothing) => return queue.flush().map(|()| Drained::All),
                Err(error) if error.raw_os_error() == Some(ENOBUFS) => {
                    self.counters.overruns.set(self.counters.overruns.get() + 1);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (id, offload) =
                (queued.id, Offload { checksum: queued.checksum_pending, segments: queued.is_gso });
            match cache.handle_packet(self.clock.now(), queued.packet, offload) {
                Ruling::Accept => queue.decide(id, Verdict::Accept),
                Ruling::Drop => queue.decide(id, Verdict::Drop),
            }
            if queue.is_full() {
                break;
            }
        }
        queue.flush().map(|()| Drained::Batch)
    }

    /// Sends a packet, and returns whether the kernel has taken it.
    fn send(&self, packet: &[u8], destination: IpAddr) -> bool {
        let taken = self.raw.send(packet, destination).is_ok();
        self.counters.unsent.set(self.counters.unsent.get() + u64::from(!taken));
        taken
    }
}

enum Drained {
    /// The queue is empty.
    All,
    /// More packets may wait.
    Batch,
}

const REFUSED: &str = "the kernel refuses packets of the cache, so nothing is held back for some \
                       seconds; look for a firewall in OUTPUT, a missing route or a smaller MTU";
/// Packets per turn, after which timers and other tasks have theirs.
const BATCH: usize = 64;
/// asm-generic/errno.h
const ENOBUFS: i32 = 105;
