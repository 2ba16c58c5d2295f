//! The receiver with bounds.

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
    /// Its bounds; the number of gateways is that of `gateways`.
    pub sizes: Sizes,
    /// A transfer without news for so long makes way for another.
    pub idle: Duration,
    /// The gateways that senders are told of.
    pub gateways: &'static [api::Gateway],
    /// Their X25519 public keys, or none, where the sizes have `senders`.
    pub gateway_keys: &'static [[u8; 32]],
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
    /// No file is offered, or none is under way, or it has fewer bytes.
    Offer,
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Something about a connection. Never [`Effect::Deliver`].
    Stream(Effect),
    /// A sender offers a file: [`Node::offer`] says which. The last event of a call.
    Begin,
    /// Bytes of the file, each exactly once and in order.
    Deliver {
        /// Where in the file.
        at: u64,
        /// The bytes.
        octets: Bytes,
    },
    /// All bytes are there and have the SHA-256 that was announced. The sender learns so by the
    /// events after this one.
    End {
        /// Bytes of the file.
        length: u64,
    },
    /// The file does not come, for one of the reasons of [`abort`].
    Abort(u8),
}

/// How far the program is with the file of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// It has none, or its last one did not come.
    Nothing,
    /// It has accepted one.
    Coming,
    /// That is complete: [`Event::End`] was polled.
    Ended,
    /// And everything about its end: it is too late to give it up.
    Published,
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
    keys: Option<Box<Keys>>,
    admission: Option<Box<Admission>>,
    slots: [Slot; MAX_CONNECTIONS as usize],
    /// All events of the last call have been polled.
    settled: bool,
    now: Instant,
    progress: Progress,
    /// [`Event::Begin`] was polled for the present offer.
    told: bool,
    /// The reason of an [`Event::Abort`] to be polled first.
    aborted: Option<u8>,
    /// Of the bytes that the program has of the present or the offered file, and their number.
    sha256: Sha256,
    taken: u64,
    /// Of receivers that have made way, and our own.
    counters: api::Counters,
}

impl Node {
    /// A node without a transfer; `None` if its sizes are impossible.
    pub fn new(config: Config) -> Option<Self> {
        let fits = usize::from(config.sizes.gateways) == config.gateways.len();
        let rows = config.gateways.iter().all(|row| row.hops > 0 && row.ipv6 <= 1);
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

    /// Takes files from those who are known by these keys, and nothing that is not encrypted. The
    /// sizes have `senders`.
    pub fn secured(self, keys: Box<Keys>) -> Self {
        Self { keys: Some(keys), ..self }
    }

    /// Takes only files with a manifest for a device. The sizes have `manifest`.
    pub fn for_device(self, admission: Box<Admission>) -> Self {
        Self { admission: Some(admission), ..self }
    }

    /// The manifest of the offered file, which was checked, and the sequence number in it.
    pub fn manifest(&self) -> Option<(&[u8], u64)> {
        self.offer()?;
        self.admission.as_ref().map(|admission| admission.offered())
    }

    /// The highest sequence number that the node has taken, and the SHA-256 of that file. From
    /// [`Event::End`] on it is that of the file that is complete: it has to be stored before the
    /// file is used, and before the next event is polled.
    pub fn highest(&self) -> Option<(u64, [u8; 32])> {
        self.admission.as_ref()?.highest()
    }

    /// The public key of the sender whose file is offered, if it has shown one.
    pub fn sender(&self) -> Option<[u8; 32]> {
        self.keys.as_ref()?.sender(self.offer()?.transfer)
    }

    /// Bytes of heap that must be free, in one piece, whenever anything but [`Node::poll`] is
    /// called.
    pub fn needs(&self) -> usize {
        self.config.sizes.needs()
    }

    /// Somebody has connected.
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

    /// Bytes have come, in order. Takes as many as it may at once, with keys those of one record
    /// at most, and returns how many: the rest is to be handed in again.
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
                // There may be an answer to a greeting all the same.
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

    /// Resets a stream that is not as encryption wants it.
    fn reject(&mut self, now: Instant, slot: usize, stream: StreamId) -> Result<(), Error> {
        self.counters.rejected += 1;
        self.event(now, stream, |_| StreamEvent::Closed(StreamClose::Graceful))?;
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

    /// The other side will send no more.
    pub fn ended(&mut self, now: Instant, stream: StreamId) -> Result<(), Error> {
        let keys = self.keys.as_deref();
        let is_cut = |slot: &usize| keys.is_some_and(|keys| !keys.is_between_records(*slot));
        match self.slot(stream).filter(is_cut).filter(|_| self.settled) {
            Some(slot) => self.reject(now, slot, stream),
            None => self.event(now, stream, |_| StreamEvent::Ended),
        }
    }

    /// The connection is gone, however it went.
    pub fn closed(&mut self, now: Instant, stream: StreamId) -> Result<(), Error> {
        let slot = self.slot(stream);
        self.event(now, stream, |_| StreamEvent::Closed(StreamClose::Graceful))?;
        if let Some(slot) = slot {
            self.free(slot);
        }
        Ok(())
    }

    /// Time has passed.
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

    /// When [`Node::timeout`] is to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.receiver.next_timeout().into_iter().chain(self.receiver.lost_at()).min()
    }

    /// The file that a sender offers, from [`Event::Begin`] until it is accepted or refused. Until
    /// then all other senders are told that the node is busy; a sender without an answer gives up
    /// after half a minute.
    pub fn offer(&self) -> Option<&Request> {
        self.receiver.asked().filter(|_| self.told)
    }

    /// The program has these bytes of the offered file, behind those of the last call.
    pub fn have(&mut self, octets: &[u8]) -> Result<(), Error> {
        let length = self.offer().ok_or(Error::Offer)?.length;
        self.taken =
            self.taken.checked_add(octets.len() as u64).filter(|n| *n <= length).ok_or(Error::Offer)?;
        self.sha256.update(octets);
        Ok(())
    }

    /// Takes the offered file, from the first byte that the program does not have.
    pub fn accept(&mut self, now: Instant) -> Result<(), Error> {
        let now = self.begin(now)?;
        let transfer = self.offer().ok_or(Error::Offer)?.transfer;
        self.receiver.grant(now, transfer, self.taken);
        self.progress = Progress::Coming;
        self.withdraw();
        self.settled = false;
        Ok(())
    }

    /// Does not take the offered file. `delivered` is the number of bytes of an unfinished file
    /// here, for [`RefuseReason::Unfinished`].
    pub fn refuse(&mut self, now: Instant, reason: RefuseReason, delivered: u64) -> Result<(), Error> {
        let now = self.begin(now)?;
        let transfer = self.offer().ok_or(Error::Offer)?.transfer;
        self.receiver.decline(now, transfer, reason, delivered);
        self.withdraw();
        self.settled = false;
        Ok(())
    }

    /// Gives up the present transfer, also between events: the program could not keep bytes, or
    /// not publish the file. All connections are reset, so that the sender does not believe
    /// otherwise. Once everything about the end of a file was polled, it is too late.
    pub fn abort(&mut self, now: Instant) -> Result<(), Error> {
        match self.progress {
            Progress::Coming => {}
            Progress::Ended => self.progress = Progress::Coming,
            Progress::Nothing | Progress::Published => return Err(Error::Offer),
        }
        self.now = self.now.max(now);
        self.fail(abort::PROGRAM);
        Ok(())
    }

    /// What to do next. Until it is `None` no other call does anything.
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
            // Bytes come before whatever speaks of them: the answer that completes the file is not
            // out yet.
            if let Some(file) = self.complete() {
                let digest: [u8; 32] = self.sha256.finalize_reset().into();
                if file.digest == digest {
                    if let Some(admission) = &mut self.admission {
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
                    // Bytes of a transfer that has ended meanwhile have no place.
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
                    // A caller that has gone meanwhile, or has not proven its key, gets no answer.
                    let Some(Ok(octets)) = sealed else { continue };
                    return Some(Event::Stream(Effect::Write { stream, octets }));
                }
                effect => return Some(Event::Stream(effect)),
            }
        }
        self.settled = true;
        if self.progress == Progress::Ended {
            self.progress = Progress::Published;
        }
        self.tell()
    }

    /// Whether a sender offers a file that the program has not heard of. One that does not say
    /// which file it is cannot be checked, and is refused.
    fn tell(&mut self) -> Option<Event> {
        // A sender that repeats its request brings the manifest again; the first one was checked.
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

    /// Nothing is offered any more.
    fn withdraw(&mut self) {
        self.told = false;
        if let Some(admission) = &mut self.admission {
            admission.forget_offered();
        }
    }

    /// The file whose bytes the program has all, when that is not known to be so.
    fn complete(&self) -> Option<FileIdentity> {
        let request = self.receiver.present().filter(|_| self.progress == Progress::Coming)?;
        request.file.filter(|_| self.taken == request.length)
    }

    /// The present transfer is over.
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

    /// All events of the last call have been polled.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Bytes of the present transfer that have come in order; 0 without one. Those that the
    /// program has of it are as many once all events are polled.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered().map_or(0, |(_, octets)| octets)
    }

    /// [`Event::End`] was polled for the present transfer, and everything about it.
    pub fn is_complete(&self) -> bool {
        self.progress == Progress::Published
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

    /// Memory is short: everything is given back, and the node begins anew. Its transfer is lost
    /// and its streams are reset.
    pub fn restart(&mut self) {
        self.counters = self.counters();
        self.counters.restarts += 1;
        for slot in &mut self.slots {
            if let Slot::Open(stream) = *slot {
                *slot = Slot::Condemned(stream);
            }
        }
        let _ = self.keys.as_mut().and_then(|keys| keys.take_answer());
        // All of the old one goes before any of the new one comes.
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
            // Another transfer is let in only where this one had no news for too long.
            let asked = self.receiver.asked().is_some();
            self.end(if asked { abort::MADE_WAY } else { abort::CANCELLED });
        }
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
        neighbours: Vec::new(),
    }
}
