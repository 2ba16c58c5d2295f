//! The receiver with bounded memory.

use core::iter;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use alloc::boxed::Box;
use alloc::vec::Vec;
use anabranch_core::set::{
    Effect, Energy, FileIdentity, Gateway, Receiver, RefuseReason, Request, StreamClose, StreamEvent,
    StreamId,
};
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::api::{self, MAX_CONNECTIONS, abort};
use crate::device::Admission;
use crate::guards::Keys;
use crate::sizes::Sizes;

/// Options of a [`Node`].
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Memory bounds; `sizes.gateways` is the length of `gateways`.
    pub sizes: Sizes,
    /// A transfer without progress for this time gives way to another.
    pub idle: Duration,
    /// The gateways that the node announces to senders.
    pub gateways: &'static [api::Gateway],
    /// X25519 public keys of the gateways; empty unless the sizes have `senders`.
    pub gateway_keys: &'static [[u8; 32]],
}

/// Why a call was refused. A refused call changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The effects of the last call must be polled first.
    Poll,
    /// The stream does not exist or was reset.
    Stream,
    /// The limit of connections is reached; refuse the connection.
    Full,
    /// No file is offered or in transfer, or it is shorter than the given bytes.
    Offer,
}

/// The next action of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An effect on a connection. Never [`Effect::Deliver`].
    Stream(Effect),
    /// A sender offers a file: see [`Node::offer`]. Always the last event of a call.
    Begin,
    /// Bytes of the file; each byte is delivered exactly once and in order.
    Deliver {
        /// Position in the file.
        at: u64,
        /// The bytes.
        octets: Bytes,
    },
    /// All bytes have arrived and match the announced SHA-256. The events after this one tell the
    /// sender.
    End {
        /// Length of the file in bytes.
        length: u64,
    },
    /// The transfer has ended without the file, for one of the reasons in [`abort`].
    Abort(u8),
}

/// State of the program with respect to the current file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// No transfer, or the last one was aborted.
    Nothing,
    /// A file was accepted and is arriving.
    Coming,
    /// The file is complete: [`Event::End`] was polled.
    Ended,
    /// All events about the end were polled, so it is too late to abort.
    Published,
}

/// One connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Free,
    Open(StreamId),
    /// Reset by the node; the program does not know it yet.
    Condemned(StreamId),
}

/// A receiver that never holds more than its [`Sizes`] allow.
#[derive(Debug)]
pub struct Node {
    config: Config,
    receiver: Receiver,
    keys: Option<Box<Keys>>,
    admission: Option<Box<Admission>>,
    slots: [Slot; MAX_CONNECTIONS as usize],
    /// True if all events of the last call have been polled.
    settled: bool,
    now: Instant,
    progress: Progress,
    /// True if [`Event::Begin`] was polled for the current offer.
    told: bool,
    /// The reason of an [`Event::Abort`] that is polled first.
    aborted: Option<u8>,
    /// Hash and number of the bytes that the program has of the current or offered file.
    sha256: Sha256,
    taken: u64,
    /// Counters of discarded receivers, and counters of this node.
    counters: api::Counters,
}

impl Node {
    /// Creates a node without a transfer; `None` if its sizes are impossible.
    pub fn new(config: Config) -> Option<Self> {
        let fits = usize::from(config.sizes.gateways) == config.gateways.len();
        let rows = config.gateways.iter().all(|row| row.hops > 0 && row.ipv6 <= 1 && row.shared_channel <= 1);
        let keys = match config.gateway_keys.len() {
            0 => true,
            n => n == config.gateways.len() && config.sizes.senders.is_some(),
        };
        (config.sizes.are_possible() && fits && rows && keys).then(|| Self {
            receiver: receiver(&config),
            keys: None,
            admission: None,
            config,
            slots: [Slot::Free; MAX_CONNECTIONS as usize],
            settled: true,
            now: Instant::ZERO,
            progress: Progress::Nothing,
            told: false,
            aborted: None,
            sha256: Sha256::new(),
            taken: 0,
            counters: api::Counters::default(),
        })
    }

    /// Requires encryption with these keys. The sizes must have `senders`.
    pub fn secured(self, keys: Box<Keys>) -> Self {
        Self { keys: Some(keys), ..self }
    }

    /// Requires a manifest for a device. The sizes must have `manifest`.
    pub fn for_device(self, admission: Box<Admission>) -> Self {
        Self { admission: Some(admission), ..self }
    }

    /// The verified manifest of the offered file, and its sequence number.
    pub fn manifest(&self) -> Option<(&[u8], u64)> {
        self.offer()?;
        self.admission.as_ref().map(|admission| admission.offered())
    }

    /// The highest accepted sequence number and the SHA-256 of its file. From [`Event::End`] on,
    /// these are the values of the completed file. Store them before the file is used and before
    /// the next event is polled.
    pub fn highest(&self) -> Option<(u64, [u8; 32])> {
        self.admission.as_ref()?.highest()
    }

    /// The public key of the sender of the offered file, if it has authenticated with one.
    pub fn sender(&self) -> Option<[u8; 32]> {
        self.keys.as_ref()?.sender(self.offer()?.transfer)
    }

    /// Heap bytes that must be free, in one piece, before any call except [`Node::poll`].
    pub fn needs(&self) -> usize {
        self.config.sizes.needs()
    }

    /// Reports an accepted connection.
    pub fn accepted(&mut self, now: Instant) -> Result<StreamId, Error> {
        let now = self.begin(now)?;
        let most = usize::from(self.config.sizes.connections);
        let Some(slot) = self.slots[..most].iter().position(|slot| *slot == Slot::Free) else {
            self.counters.refused += 1;
            return Err(Error::Full);
        };
        let stream = self.receiver.handle_accepted(now);
        self.slots[slot] = Slot::Open(stream);
        self.settled = false;
        Ok(stream)
    }

    /// Reports received bytes, in order. Takes as many as the limit allows, with keys at most one
    /// record, and returns their number. Pass the remaining bytes again.
    pub fn data(&mut self, now: Instant, stream: StreamId, octets: &[u8]) -> Result<usize, Error> {
        let n = octets.len().min(usize::from(self.config.sizes.read));
        let octets = &octets[..n];
        if self.keys.is_none() {
            return self
                .event(now, stream, |_| StreamEvent::Data(Bytes::copy_from_slice(octets)))
                .map(|()| n);
        }
        self.begin(now)?;
        let slot = self.slot(stream).ok_or(Error::Stream)?;
        let live = [self.receiver.present(), self.receiver.asked()].map(|request| Some(request?.transfer));
        match self.keys.as_mut().map(|keys| keys.read(slot, stream, octets, live)) {
            Some(Ok((taken, plain))) => {
                // An answer to a greeting may still be pending.
                self.settled = false;
                if !plain.is_empty() {
                    self.settled = true;
                    self.event(now, stream, |_| StreamEvent::Data(plain))?;
                }
                Ok(taken)
            }
            Some(Err(_)) | None => self.reject(now, slot, stream).map(|()| n),
        }
    }

    /// Resets a stream whose input violates the encryption protocol.
    fn reject(&mut self, now: Instant, slot: usize, stream: StreamId) -> Result<(), Error> {
        self.counters.rejected += 1;
        self.event(now, stream, |_| StreamEvent::Closed(StreamClose::Graceful))?;
        // The receiver has already dropped the stream. The program learns it from an effect, which
        // is polled first.
        self.slots[slot] = Slot::Condemned(stream);
        Ok(())
    }

    fn slot(&self, stream: StreamId) -> Option<usize> {
        self.slots.iter().position(|slot| *slot == Slot::Open(stream))
    }

    fn free(&mut self, slot: usize) {
        self.slots[slot] = Slot::Free;
        if let Some(keys) = &mut self.keys {
            keys.reset(slot);
        }
    }

    /// Reports that the peer will send no more.
    pub fn ended(&mut self, now: Instant, stream: StreamId) -> Result<(), Error> {
        let keys = self.keys.as_deref();
        let is_cut = |slot: &usize| keys.is_some_and(|keys| !keys.is_between_records(*slot));
        match self.slot(stream).filter(is_cut).filter(|_| self.settled) {
            Some(slot) => self.reject(now, slot, stream),
            None => self.event(now, stream, |_| StreamEvent::Ended),
        }
    }

    /// Reports that a connection is closed, normally or not.
    pub fn closed(&mut self, now: Instant, stream: StreamId) -> Result<(), Error> {
        let slot = self.slot(stream);
        self.event(now, stream, |_| StreamEvent::Closed(StreamClose::Graceful))?;
        if let Some(slot) = slot {
            self.free(slot);
        }
        Ok(())
    }

    /// Reports that a timeout has expired.
    pub fn timeout(&mut self, now: Instant) -> Result<(), Error> {
        let now = self.begin(now)?;
        if self.receiver.lost_at().is_some_and(|due| due <= now) {
            self.receiver.forget(now);
            self.end(abort::LOST);
        }
        if self.receiver.next_timeout().is_some_and(|due| due <= now) {
            self.receiver.handle_timeout(now);
            self.settled = false;
        }
        Ok(())
    }

    /// When to call [`Node::timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.receiver.next_timeout().into_iter().chain(self.receiver.lost_at()).min()
    }

    /// The offered file, from [`Event::Begin`] until it is accepted or refused. Meanwhile the node
    /// tells all other senders that it is busy. A sender without an answer gives up after half a
    /// minute.
    pub fn offer(&self) -> Option<&Request> {
        self.receiver.asked().filter(|_| self.told)
    }

    /// Passes bytes of the offered file that the program already has; they follow those of the last
    /// call.
    pub fn have(&mut self, octets: &[u8]) -> Result<(), Error> {
        let length = self.offer().ok_or(Error::Offer)?.length;
        self.taken =
            self.taken.checked_add(octets.len() as u64).filter(|n| *n <= length).ok_or(Error::Offer)?;
        self.sha256.update(octets);
        Ok(())
    }

    /// Accepts the offered file, starting at the first byte that the program does not have.
    pub fn accept(&mut self, now: Instant) -> Result<(), Error> {
        let now = self.begin(now)?;
        let transfer = self.offer().ok_or(Error::Offer)?.transfer;
        self.receiver.grant(now, transfer, self.taken);
        self.progress = Progress::Coming;
        self.withdraw();
        self.settled = false;
        Ok(())
    }

    /// Refuses the offered file. `delivered` is the number of bytes of an unfinished file, for
    /// [`RefuseReason::Unfinished`].
    pub fn refuse(&mut self, now: Instant, reason: RefuseReason, delivered: u64) -> Result<(), Error> {
        let now = self.begin(now)?;
        let transfer = self.offer().ok_or(Error::Offer)?.transfer;
        self.receiver.decline(now, transfer, reason, delivered);
        self.withdraw();
        self.settled = false;
        Ok(())
    }

    /// Aborts the current transfer because the program could not store bytes or publish the file.
    /// It may be called between events. All connections are reset, so that the sender does not
    /// assume success. Once all events about the end of a file were polled, it is too late.
    pub fn abort(&mut self, now: Instant) -> Result<(), Error> {
        match self.progress {
            Progress::Coming => {}
            // END was polled, but effects that tell the sender are still pending.
            Progress::Ended => self.progress = Progress::Coming,
            Progress::Nothing | Progress::Published => return Err(Error::Offer),
        }
        self.now = self.now.max(now);
        self.fail(abort::PROGRAM);
        Ok(())
    }

    /// Returns the next event. Other calls are refused until this returns `None`.
    pub fn poll(&mut self) -> Option<Event> {
        if let Some(reason) = self.aborted.take() {
            return Some(Event::Abort(reason));
        }
        for slot in 0..self.slots.len() {
            if let Slot::Condemned(stream) = self.slots[slot] {
                self.free(slot);
                return Some(Event::Stream(Effect::Abort { stream }));
            }
        }
        if let Some((stream, octets)) = self.keys.as_mut().and_then(|keys| keys.take_answer()) {
            return Some(Event::Stream(Effect::Write { stream, octets }));
        }
        loop {
            // Deliver bytes before any effect that refers to them: the answer that completes the
            // file has not been sent yet.
            if let Some(file) = self.complete() {
                let digest: [u8; 32] = self.sha256.finalize_reset().into();
                if file.digest == digest {
                    if let Some(admission) = &mut self.admission {
                        // The manifest was checked when the file was offered; it may have expired
                        // since.
                        if admission.has_expired() {
                            self.fail(abort::EXPIRED);
                            return self.poll();
                        }
                        admission.raise(digest);
                    }
                    self.progress = Progress::Ended;
                    return Some(Event::End { length: self.taken });
                }
                self.fail(abort::DIGEST);
                return self.poll();
            }
            let Some(effect) = self.receiver.poll_effect() else { break };
            match effect {
                Effect::Deliver { octets } => {
                    // The transfer of these bytes has ended meanwhile, so they are dropped.
                    if self.progress != Progress::Coming {
                        continue;
                    }
                    let at = self.taken;
                    self.taken += octets.len() as u64;
                    self.sha256.update(&octets);
                    return Some(Event::Deliver { at, octets });
                }
                Effect::Abort { stream } => {
                    if let Some(slot) = self.slot(stream) {
                        self.free(slot);
                    }
                    return Some(Event::Stream(effect));
                }
                Effect::Write { stream, octets } if self.keys.is_some() => {
                    let slot = self.slot(stream);
                    let sealed = slot.zip(self.keys.as_mut()).map(|(slot, keys)| keys.seal(slot, &octets));
                    // The peer has disconnected or is not authenticated, so it gets no answer.
                    let Some(Ok(octets)) = sealed else { continue };
                    return Some(Event::Stream(Effect::Write { stream, octets }));
                }
                effect => return Some(Event::Stream(effect)),
            }
        }
        self.settled = true;
        // The effects that tell the sender have now been polled.
        if self.progress == Progress::Ended {
            self.progress = Progress::Published;
        }
        self.tell()
    }

    /// Announces an offer that the program does not know yet. An offer without a file identity
    /// cannot be verified, so it is refused.
    fn tell(&mut self) -> Option<Event> {
        // A sender that repeats its request sends the manifest again; the first one was checked.
        let manifest = self.receiver.take_manifest();
        let Some(request) = self.receiver.asked() else {
            self.withdraw();
            return None;
        };
        if self.told {
            return None;
        }
        let admitted = match &mut self.admission {
            _ if request.file.is_none() => Err(RefuseReason::Unwanted),
            Some(admission) => admission.admit(request, manifest),
            None => Ok(()),
        };
        if let Err(reason) = admitted {
            let transfer = request.transfer;
            self.receiver.decline(self.now, transfer, reason, 0);
            self.settled = false;
            return self.poll();
        }
        self.told = true;
        self.sha256.reset();
        self.taken = 0;
        Some(Event::Begin)
    }

    /// Withdraws the offer.
    fn withdraw(&mut self) {
        self.told = false;
        if let Some(admission) = &mut self.admission {
            admission.forget_offered();
        }
    }

    /// The file of the current transfer if the program has all of its bytes and [`Event::End`] is
    /// due.
    fn complete(&self) -> Option<FileIdentity> {
        let request = self.receiver.present().filter(|_| self.progress == Progress::Coming)?;
        request.file.filter(|_| self.taken == request.length)
    }

    /// Ends the current transfer.
    fn end(&mut self, reason: u8) {
        if core::mem::replace(&mut self.progress, Progress::Nothing) == Progress::Coming {
            self.aborted = Some(reason);
        }
        self.settled = false;
    }

    fn fail(&mut self, reason: u8) {
        self.receiver.reset(self.now);
        self.withdraw();
        self.end(reason);
    }

    /// True if all events of the last call have been polled.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Number of bytes of the current transfer received in order; 0 without a transfer. Once all
    /// events are polled, the program has the same number of bytes.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered().map_or(0, |(_, octets)| octets)
    }

    /// True if [`Event::End`] and all later events of the current transfer were polled.
    pub fn is_complete(&self) -> bool {
        self.progress == Progress::Published
    }

    /// Event counters.
    pub fn counters(&self) -> api::Counters {
        let (old, new) = (self.counters, self.receiver.counters());
        api::Counters {
            duplicate_octets: old.duplicate_octets + new.duplicate_octets,
            held_peak: old.held_peak.max(new.held_peak),
            rejected: old.rejected + new.rejected,
            ..old
        }
    }

    /// Restarts the node because memory ran out. All memory is freed, the transfer is lost and all
    /// streams are reset.
    pub fn restart(&mut self) {
        self.counters = self.counters();
        self.counters.restarts += 1;
        for slot in &mut self.slots {
            if let Slot::Open(stream) = *slot {
                *slot = Slot::Condemned(stream);
            }
        }
        let _ = self.keys.as_mut().and_then(|keys| keys.take_answer());
        // The old receiver must be freed before the new one is allocated.
        self.receiver =
            Receiver::new(Sizes { buffer: 0, ..self.config.sizes }.receiver(self.config.idle, Vec::new()));
        self.withdraw();
        self.receiver = receiver(&self.config);
        self.end(abort::MEMORY);
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
        if self.receiver.present().is_none() {
            // The receiver lets another transfer in only if this one had no progress for too long.
            let asked = self.receiver.asked().is_some();
            self.end(if asked { abort::MADE_WAY } else { abort::CANCELLED });
        }
        Ok(())
    }

    /// Checks that a call may begin. Returns its time; a clock that goes backwards counts as
    /// stopped.
    fn begin(&mut self, now: Instant) -> Result<Instant, Error> {
        if !self.settled {
            return Err(Error::Poll);
        }
        self.now = self.now.max(now);
        Ok(self.now)
    }
}

/// Creates a receiver whose queue and stream table are already allocated at their maximum size.
fn receiver(config: &Config) -> Receiver {
    let keys = config.gateway_keys.iter().copied().map(Some).chain(iter::repeat(None));
    let gateways = config.gateways.iter().zip(keys).map(|(row, key)| self::row(row, key)).collect();
    let mut receiver = Receiver::new(config.sizes.receiver(config.idle, gateways));
    let some = 0..config.sizes.effects() / 2;
    let streams: Vec<StreamId> = some.map(|_| receiver.handle_accepted(Instant::ZERO)).collect();
    for event in [StreamEvent::Ended, StreamEvent::Closed(StreamClose::Graceful)] {
        streams.iter().for_each(|stream| receiver.handle_stream(Instant::ZERO, *stream, event.clone()));
    }
    while receiver.poll_effect().is_some() {}
    receiver
}

fn row(row: &api::Gateway, key: Option<[u8; 32]>) -> Gateway {
    let [a, b, c, d, ..] = row.address;
    let ip = if row.ipv6 == 1 {
        IpAddr::V6(Ipv6Addr::from(row.address))
    } else {
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    Gateway {
        key,
        id: row.id,
        address: SocketAddr::new(ip, row.port),
        energy: Energy::High,
        hops: row.hops,
        shared_channel: row.shared_channel == 1,
        neighbours: Vec::new(),
    }
}
