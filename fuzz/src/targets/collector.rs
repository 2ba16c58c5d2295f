//! The sink of deployed RDCA: senders that have a key and say anything, a slow output, restarts of
//! senders and of the sink, and strangers.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use anabranch_core::rdca::{Incarnation, SinkConfig, StreamId};
use anabranch_core::time::{Duration, Instant};
use anabranch_net::rdca::{Collector, Ledger, Mark, RECORD_HEADER, Source, What};
use anabranch_secure::SharedKey;
use anabranch_secure::datagram::{Accepts, Initiator, Shared};
use anabranch_wire::rdca::{Message, Reply, Seq, TimeStamp, decode, encode};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::rdca_machines::messages::{self, Seen};
use crate::entropy::{self, entropy};
use crate::probe::Probe;

pub(super) fn run(input: &[u8], probe: &mut Probe) {
    entropy::restart();
    // A run ends when the input is used up.
    let _ = steps(&mut Unstructured::new(input), probe);
}

fn since_start(now: Instant) -> std::time::Duration {
    std::time::Duration::from_nanos(now.as_nanos())
}

/// A process with a key.
struct Stranger {
    address: SocketAddr,
    initiator: Initiator<Shared>,
    run: u64,
    seen: Seen,
}

impl Stranger {
    fn new(name: &str, run: u64, port: u16) -> Self {
        let shared = Shared(SharedKey::from_octets([5; 32]));
        let initiator = Initiator::new(shared, &name.parse().expect("a name"), run, entropy);
        let seen = Seen { incarnation: Incarnation(1), stream: StreamId(0), seq: Seq(0), time: TimeStamp(0) };
        Self { address: ([192, 0, 2, 1], port).into(), initiator, run, seen }
    }
}

struct Checked {
    now: Instant,
    collector: Collector,
    strangers: Vec<Stranger>,
    /// Marks of what the output has not stored.
    unstored: VecDeque<Mark>,
    /// Numbers of the next records, by run.
    next: BTreeMap<(Source, u64), u64>,
    out: Vec<u8>,
}

/// Few senders and little memory, so that all limits are met.
fn collector(now: Instant, ledger: Ledger) -> Collector {
    let accepts = Accepts { shared: vec![SharedKey::from_octets([5; 32])], ..Accepts::default() };
    let config = SinkConfig { reorder_packets: 20, ..SinkConfig::deployed(SENDERS, 1 << 14) };
    Collector::new(now, config, accepts, ledger, entropy).expect("there is entropy")
}

fn steps(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let now = Instant::ZERO;
    let strangers = [("a", 1), ("b", 2), ("c", 3)];
    let mut checked = Checked {
        now,
        collector: collector(now, Ledger::new(4)),
        strangers: strangers.map(|(name, port)| Stranger::new(name, 1, port)).into(),
        unstored: VecDeque::new(),
        next: BTreeMap::new(),
        out: Vec::new(),
    };
    for _ in 0..MAX_STEPS {
        checked.step(octets, probe)?;
        checked.settle(probe);
    }
    Ok(())
}

impl Checked {
    fn step(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let at = octets.choose_index(self.strangers.len())?;
        match octets.int_in_range(0..=19)? {
            0 => self.now += Duration::from_micros(octets.int_in_range(0..=500_000)?),
            1 => self.now += Duration::from_millis(octets.int_in_range(0..=400_000)?),
            2 => self.now = self.collector.next_timeout().unwrap_or(self.now).max(self.now),
            3 => self.collector.set_full(octets.ratio(1, 4)?),
            4..=6 => {
                if let Some(mark) = self.unstored.pop_front() {
                    self.collector.stored(self.now, mark);
                }
            }
            7 if octets.ratio(1, 8)? => {
                // Of the ledger, only what the output has stored survives; here, all.
                self.collector = collector(self.now, self.collector.ledger().clone());
                self.unstored.clear();
                probe.reach("a restart of the sink");
            }
            8 if octets.ratio(1, 4)? => {
                let name = *octets.choose(&["a", "b", "c", "d", "e"])?;
                let run = octets.int_in_range(1..=3)?;
                let port = octets.int_in_range(1..=5)?;
                self.strangers[at] = Stranger::new(name, run, port);
            }
            9 => {
                let datagram = octets.bytes(octets.len().min(60))?;
                self.collector.handle_datagram(self.now, self.strangers[at].address, datagram);
            }
            _ => self.speak(at, octets, probe)?,
        }
        Ok(())
    }

    /// A sender with a session sends anything; one without begins one.
    fn speak(&mut self, at: usize, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let (now, stranger) = (since_start(self.now), &mut self.strangers[at]);
        if !stranger.initiator.is_open(now) {
            stranger.initiator.call(now);
        }
        while stranger.initiator.poll_transmit(now, &mut self.out) {
            self.collector.handle_datagram(self.now, stranger.address, &self.out);
        }
        let mut message = messages::up(octets, &stranger.seen)?;
        if let Message::Data(data) = &mut message {
            // A record with a number near that of the packet, whole or cut anywhere.
            let number = data.seq.0.wrapping_add(octets.int_in_range(0..=4)?).wrapping_sub(2);
            let length = octets.int_in_range(0..=RECORD_HEADER + 30)?;
            let record = [&number.to_be_bytes()[..], &[7; RECORD_HEADER + 26]].concat();
            data.payload = Bytes::from(record[..length].to_vec());
        }
        probe.say(|| format!("{:?} run {} -> {message:?}", self.now, stranger.run));
        let mut plain = Vec::new();
        encode(&message, &mut plain);
        if stranger.initiator.seal(now, &plain, &mut self.out).is_ok() {
            let times = 1 + u8::from(octets.ratio(1, 8)?);
            for _ in 0..times {
                self.collector.handle_datagram(self.now, stranger.address, &self.out);
            }
            if let Message::Data(data) = message {
                stranger.seen.seq = data.seq + 1;
            }
        }
        Ok(())
    }

    fn settle(&mut self, probe: &mut Probe) {
        for turn in 0.. {
            assert!(turn < MAX_TURNS, "a timer that was answered is still due");
            let mut sent = 0;
            while let Some(to) = self.collector.poll_transmit(self.now, &mut self.out) {
                sent += 1;
                assert!(sent < MAX_TURNS, "it does not stop sending");
                let (now, mut plain) = (since_start(self.now), Vec::new());
                for stranger in self.strangers.iter_mut().filter(|stranger| stranger.address == to) {
                    if stranger.initiator.handle(now, &self.out, &mut plain) {
                        let message = decode(&plain.clone().into()).expect("what is sent can be read");
                        probe.feature(std::mem::discriminant(&message));
                        if let Message::Reply(Reply { stream, .. }) = message {
                            stranger.seen.stream = stream;
                        }
                    }
                }
            }
            self.take(probe);
            if self.collector.next_timeout().is_none_or(|at| at > self.now) {
                break;
            }
            self.collector.handle_timeout(self.now);
        }
        while self.collector.poll_refusal().is_some() || self.collector.poll_usurper().is_some() {}
        assert!(self.collector.senders() <= SENDERS && self.collector.ledger().iter().count() <= 4);
        probe.feature((self.collector.senders(), self.collector.held().min(20)));
    }

    fn take(&mut self, probe: &mut Probe) {
        let Some(taken) = self.collector.take(1) else { return };
        for item in &taken.items {
            probe.say(|| format!("{item:?}"));
            // A ledger that has forgotten a run begins it again.
            let next = self.next.entry((item.source.clone(), item.run)).or_default();
            let is_known = item.next >= *next;
            match &item.what {
                What::Record { .. } => {
                    assert!(!is_known || item.next == *next + 1, "{item:?} after {next}");
                    probe.reach("a record");
                }
                What::Lost { from } => {
                    assert!(*from < item.next && (!is_known || from == next), "{item:?} after {next}");
                    probe.reach("a loss");
                }
                What::Ended(why) => probe.reach(match format!("{why:?}").as_str() {
                    "Complete" => "complete",
                    "Incomplete" => "incomplete",
                    "Restarted" => "restarted",
                    "Aborted" => "aborted",
                    _ => "silent",
                }),
            }
            *next = item.next;
        }
        self.unstored.extend(taken.marks);
        // A slow output has a limit.
        self.collector.set_full(self.unstored.len() > 20);
    }
}

/// Limit on senders with a session.
const SENDERS: usize = 2;
/// Limit on the steps of a run.
const MAX_STEPS: usize = 300;
/// Limit on the calls at one instant.
const MAX_TURNS: usize = 200;
