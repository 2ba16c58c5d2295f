//! Flow Queue CoDel (RFC 8290): each flow has its own [CoDel](super::codel) queue, queues take
//! turns, and a flow that has sent little has priority.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::time::Instant;
use anabranch_units::{Size, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codel::{Codel, CodelConfig};
use super::{Discipline, Verdicts};
use crate::link::QueueLimit;
use crate::packet::{Flow, PacketHandle, mix};

/// Options of FQ-CoDel.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct FqCodelConfig {
    /// Acceptable standing queueing delay of a flow, TARGET of RFC 8289. Less than `interval`.
    pub target: Span,
    /// Time for which a longer delay is tolerated, INTERVAL of RFC 8289.
    pub interval: Span,
    /// Number of queues to which flows are assigned by a hash, 1 to 65,536 (RFC 8290 section
    /// 5.2.4).
    pub flows: u32,
    /// Bytes that a queue may send in one turn; the link's `mtu` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Size>,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        let CodelConfig { target, interval } = CodelConfig::default();
        Self { target, interval, flows: 1024, quantum: None }
    }
}

impl FqCodelConfig {
    fn codel(&self) -> CodelConfig {
        CodelConfig { target: self.target, interval: self.interval }
    }

    pub(super) fn check(&self) -> Result<(), [&'static str; 3]> {
        self.codel().check()?;
        if !(1..=65_536).contains(&self.flows) {
            return Err(["flows", "expected 1 to 65,536", "1024 is usual"]);
        }
        match self.quantum {
            None | Some(Size(1..=1_000_000)) => Ok(()),
            Some(_) => Err(["quantum", "expected 1 B to 1 MB", "the MTU is usual"]),
        }
    }
}

/// Largest number of packets that are dropped at once from the longest queue when the capacity is
/// used up (section 4.1).
const BATCH: usize = 64;

/// The queues of one link.
#[derive(Debug)]
pub struct FqCodel {
    config: FqCodelConfig,
    quantum: i64,
    limit: QueueLimit,
    /// Input of the hash, so that the flows that share a queue differ between runs.
    perturbation: u64,
    /// The queues that have ever been used.
    queues: BTreeMap<u32, FlowQueue>,
    /// Queues in the order of their turns: new flows, and other flows.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: usize,
    octets: u64,
}

#[derive(Debug)]
struct FlowQueue {
    codel: Codel,
    /// Bytes left in the queue's turn; negative if it has sent more.
    credit: i64,
    /// Whether the queue is in one of the lists.
    is_listed: bool,
}

impl FqCodel {
    /// Empty queues with a common limit, for a link with this MTU.
    pub fn new(config: FqCodelConfig, limit: QueueLimit, mtu: u32, perturbation: u64) -> Self {
        Self {
            config,
            quantum: config.quantum.map_or(i64::from(mtu), |quantum| quantum.0 as i64),
            limit,
            perturbation,
            queues: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            octets: 0,
        }
    }

    fn push(&mut self, now: Instant, packet: PacketHandle, flow: Flow) {
        let at = (mix(flow.0 ^ self.perturbation) % u64::from(self.config.flows)) as u32;
        let fresh = || FlowQueue {
            codel: Codel::new(self.config.codel(), QueueLimit::Packets(u32::MAX)),
            credit: 0,
            is_listed: false,
        };
        let queue = self.queues.entry(at).or_insert_with(fresh);
        queue.codel.enqueue(now, packet, flow, &mut Verdicts::default());
        self.packets += 1;
        self.octets += u64::from(packet.wire_len);
        if !queue.is_listed {
            (queue.is_listed, queue.credit) = (true, self.quantum);
            self.new.push_back(at);
        }
    }

    fn forget(&mut self, packet: &PacketHandle) {
        self.packets -= 1;
        self.octets -= u64::from(packet.wire_len);
    }

    /// Drops half of the longest queue from its head, at most [`BATCH`] packets.
    fn shed(&mut self, verdicts: &mut Verdicts) {
        let longest = self.queues.values_mut().max_by_key(|queue| queue.codel.queued().1);
        let Some(FlowQueue { codel, .. }) = longest else { return };
        let most = codel.queued().0.div_ceil(2).min(BATCH);
        let shed: Vec<PacketHandle> = std::iter::from_fn(|| codel.shed()).take(most).collect();
        for packet in shed {
            self.forget(&packet);
            verdicts.refuse(packet);
        }
    }
}

impl Discipline for FqCodel {
    fn pass(&mut self, now: Instant, packet: &mut PacketHandle, flow: Flow, verdicts: &mut Verdicts) -> bool {
        self.push(now, *packet, flow);
        let next = self.dequeue(now, verdicts);
        // CoDel does not drop a packet that has not waited.
        *packet = next.expect("nothing else waits");
        true
    }

    fn enqueue(&mut self, now: Instant, packet: PacketHandle, flow: Flow, verdicts: &mut Verdicts) {
        self.push(now, packet, flow);
        while self.limit.is_exceeded(self.packets, self.octets) {
            self.shed(verdicts);
        }
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Option<PacketHandle> {
        loop {
            let (is_new, at) = match self.new.front() {
                Some(at) => (true, *at),
                None => (false, *self.old.front()?),
            };
            let queue = self.queues.get_mut(&at).expect("what is listed is there");
            let list = if is_new { &mut self.new } else { &mut self.old };
            if queue.credit <= 0 {
                queue.credit += self.quantum;
                list.pop_front();
                self.old.push_back(at);
                continue;
            }
            let before = verdicts.dropped.len();
            let packet = queue.codel.dequeue(now, verdicts);
            for (dropped, _) in &verdicts.dropped[before..] {
                self.packets -= 1;
                self.octets -= u64::from(dropped.wire_len);
            }
            let Some(packet) = packet else {
                list.pop_front();
                // An empty new queue moves to the old queues; otherwise it would have priority
                // again with each packet (section 4.2).
                if is_new {
                    self.old.push_back(at);
                } else {
                    queue.is_listed = false;
                }
                continue;
            };
            queue.credit -= i64::from(packet.wire_len);
            self.forget(&packet);
            return Some(packet);
        }
    }

    fn queued(&self) -> (usize, u64) {
        (self.packets, self.octets)
    }

    fn clear(&mut self, now: Instant) -> Vec<PacketHandle> {
        (self.packets, self.octets) = (0, 0);
        self.new.clear();
        self.old.clear();
        let queues = self.queues.values_mut();
        queues
            .flat_map(|queue| {
                queue.is_listed = false;
                queue.codel.clear(now)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
