//! The receiver with bounds.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use alloc::vec::Vec;
use anabranch_core::set::{Effect, Energy, Gateway, Receiver, StreamClose, StreamEvent, StreamId};
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;

use crate::api;
use crate::sizes::{MAX_CONNECTIONS, Sizes};

/// Options of a [`Node`].
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Its bounds; the number of gateways is that of `gateways`.
    pub sizes: Sizes,
    /// A transfer without news for so long makes way for another.
    pub idle: Duration,
    /// The gateways that senders are told of.
    pub gateways: &'static [api::Gateway],
}

/// Why a call did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// There are effects: they are to be polled first.
    Poll,
    /// No such stream, or it has been reset.
    Stream,
    /// As many connections as there may be: refuse it.
    Full,
}

/// One connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Free,
    Open(StreamId),
    /// Reset by us, and the program does not know yet.
    Condemned(StreamId),
}

/// A receiver that never holds more than its [`Sizes`] say.
#[derive(Debug)]
pub struct Node {
    config: Config,
    receiver: Receiver,
    slots: [Slot; MAX_CONNECTIONS as usize],
    /// All effects of the last call have been polled.
    settled: bool,
    now: Instant,
    /// Of receivers that have made way, and our own.
    counters: api::Counters,
}

impl Node {
    /// A node without a transfer; `None` if its sizes are impossible.
    pub fn new(config: Config) -> Option<Self> {
        let fits = usize::from(config.sizes.gateways) == config.gateways.len();
        let rows = config.gateways.iter().all(|row| row.hops > 0 && row.ipv6 <= 1);
        (config.sizes.are_possible() && fits && rows).then(|| Self {
            receiver: receiver(&config),
            config,
            slots: [Slot::Free; MAX_CONNECTIONS as usize],
            settled: true,
            now: Instant::ZERO,
            counters: api::Counters::default(),
        })
    }

    /// Octets of heap that must be free, in one piece, whenever anything but [`Node::poll`] is called.
    pub fn needs(&self) -> usize {
        self.config.sizes.needs()
    }

    /// Somebody has connected.
    pub fn accepted(&mut self, now: Instant) -> Result<StreamId, Error> {
        let now = self.begin(now)?;
        let most = usize::from(self.config.sizes.connections);
        let Some(slot) = self.slots[..most].iter_mut().find(|slot| **slot == Slot::Free) else {
            self.counters.refused += 1;
            return Err(Error::Full);
        };
        let stream = self.receiver.handle_accepted(now);
        *slot = Slot::Open(stream);
        self.settled = false;
        Ok(stream)
    }

    /// Octets have come, in order. Takes as many as it may at once and returns how many: the rest is to be handed in again.
    pub fn data(&mut self, now: Instant, stream: StreamId, octets: &[u8]) -> Result<usize, Error> {
        let n = octets.len().min(usize::from(self.config.sizes.read));
        self.event(now, stream, |_| StreamEvent::Data(Bytes::copy_from_slice(&octets[..n])))?;
        Ok(n)
    }

    /// The other side will send no more.
    pub fn ended(&mut self, now: Instant, stream: StreamId) -> Result<(), Error> {
        self.event(now, stream, |_| StreamEvent::Ended)
    }

    /// The connection is gone, however it went.
    pub fn closed(&mut self, now: Instant, stream: StreamId) -> Result<(), Error> {
        self.event(now, stream, |slot| {
            *slot = Slot::Free;
            StreamEvent::Closed(StreamClose::Graceful)
        })
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Instant) -> Result<(), Error> {
        let now = self.begin(now)?;
        if self.receiver.next_timeout().is_some_and(|due| due <= now) {
            self.receiver.handle_timeout(now);
            self.settled = false;
        }
        Ok(())
    }

    /// When [`Node::timeout`] is to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.receiver.next_timeout()
    }

    /// What to do next. Until it is `None` no other call does anything.
    pub fn poll(&mut self) -> Option<Effect> {
        for slot in &mut self.slots {
            if let Slot::Condemned(stream) = *slot {
                *slot = Slot::Free;
                return Some(Effect::Abort { stream });
            }
        }
        let effect = self.receiver.poll_effect();
        match effect {
            None => self.settled = true,
            Some(Effect::Abort { stream }) => {
                if let Some(slot) = self.slots.iter_mut().find(|slot| **slot == Slot::Open(stream)) {
                    *slot = Slot::Free;
                }
            }
            Some(_) => {}
        }
        effect
    }

    /// All effects of the last call have been polled.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Octets of the present transfer that have come in order; 0 without one.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered().map_or(0, |(_, octets)| octets)
    }

    /// The present transfer is complete, and everything about it has been polled.
    pub fn is_complete(&self) -> bool {
        self.settled && self.receiver.is_complete()
    }

    /// What has happened so far.
    pub fn counters(&self) -> api::Counters {
        let (old, new) = (self.counters, self.receiver.counters());
        api::Counters {
            duplicate_octets: old.duplicate_octets + new.duplicate_octets,
            held_peak: old.held_peak.max(new.held_peak),
            rejected: old.rejected + new.rejected,
            ..old
        }
    }

    /// Memory is short: everything is given back, and the node begins anew. Its transfer is lost and its streams are reset.
    pub fn restart(&mut self) {
        self.counters = self.counters();
        self.counters.restarts += 1;
        for slot in &mut self.slots {
            if let Slot::Open(stream) = *slot {
                *slot = Slot::Condemned(stream);
            }
        }
        // All of the old one goes before any of the new one comes.
        self.receiver =
            Receiver::new(Sizes { buffer: 0, ..self.config.sizes }.receiver(self.config.idle, Vec::new()));
        self.receiver = receiver(&self.config);
        self.settled = false;
    }

    fn event(
        &mut self,
        now: Instant,
        stream: StreamId,
        event: impl FnOnce(&mut Slot) -> StreamEvent,
    ) -> Result<(), Error> {
        let now = self.begin(now)?;
        let slot = self.slots.iter_mut().find(|slot| **slot == Slot::Open(stream)).ok_or(Error::Stream)?;
        let event = event(slot);
        self.receiver.handle_stream(now, stream, event);
        self.settled = false;
        Ok(())
    }

    /// Whether a call may begin, and when it is: a clock that goes backwards stands.
    fn begin(&mut self, now: Instant) -> Result<Instant, Error> {
        if !self.settled {
            return Err(Error::Poll);
        }
        self.now = self.now.max(now);
        Ok(self.now)
    }
}

/// A receiver whose queue and table of streams have grown already as far as they ever will.
fn receiver(config: &Config) -> Receiver {
    let gateways = config.gateways.iter().map(row).collect();
    let mut receiver = Receiver::new(config.sizes.receiver(config.idle, gateways));
    let some = 0..config.sizes.effects() / 2;
    let streams: Vec<StreamId> = some.map(|_| receiver.handle_accepted(Instant::ZERO)).collect();
    for event in [StreamEvent::Ended, StreamEvent::Closed(StreamClose::Graceful)] {
        streams.iter().for_each(|stream| receiver.handle_stream(Instant::ZERO, *stream, event.clone()));
    }
    while receiver.poll_effect().is_some() {}
    receiver
}

fn row(row: &api::Gateway) -> Gateway {
    let [a, b, c, d, ..] = row.address;
    let ip = if row.ipv6 == 1 {
        IpAddr::V6(Ipv6Addr::from(row.address))
    } else {
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    Gateway {
        key: None,
        id: row.id,
        address: SocketAddr::new(ip, row.port),
        energy: Energy::High,
        hops: row.hops,
        neighbours: Vec::new(),
    }
}
