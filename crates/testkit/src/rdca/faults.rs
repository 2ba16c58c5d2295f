//! One random run with all kinds of faults, which checks that nothing is lost without notice.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::rdca::{
    Config, Incarnation, Outcome, Range, Retention, Sender, SenderEvent, Seq, Sink, SinkEvent,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::rdca::Message;
use bytes::Bytes;

use super::{Link, Source, Way, World};
use crate::prng::Prng;

/// Parameters and outcome of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Number of packets that the sender accepted.
    pub accepted: usize,
    /// Number of accepted packets that arrived.
    pub delivered: usize,
    /// Number of accepted packets that were reported to the sender's application as gone or
    /// unknown.
    pub told: usize,
    /// Number of starts of the sink.
    pub sinks: u32,
    /// Whether the stream ended as complete.
    pub complete: bool,
    /// Number of data packets sent.
    pub data: usize,
    /// Number of control packets sent.
    pub control: usize,
}

/// Performs the run of `seed`.
///
/// # Errors
///
/// The violated guarantee: a packet was delivered twice, out of order or altered, or was lost
/// without a report.
pub fn fault_run(seed: u64) -> Result<Faults, String> {
    let mut prng = Prng::new(seed);
    let mut config = if prng.chance(30) { Config::paper() } else { Config::default() };
    config.sender.queue_packets = prng.pick(&[2, 8, 24, 100]);
    config.sender.unsent_packets = prng.pick(&[1, 8, 50]);
    config.sender.confirm_every = prng.pick(&[None, Some(16), Some(512)]);
    config.sender.retention = prng.pick(&[Retention::CORRECTED, Retention::CORRECTED, Retention::PRINTED]);
    config.sender.probe_tries = 30;
    config.sender.request_tries = 30;
    config.sink.reorder_packets = prng.pick(&[2, 16, 64]);
    config.sink.held_packets = prng.pick(&[4, 4096]);
    let link = |prng: &mut Prng| Link {
        loss: prng.below(201),
        duplicate: prng.pick(&[0, 20, 200]),
        jitter: Duration::from_millis(prng.pick(&[0, 5, 60, 300])),
        ..Link::new(1 + prng.below(150))
    };
    let (mut up, down) = (link(&mut prng), link(&mut prng));
    if prng.chance(30) {
        up.service = Duration::from_millis(10 + prng.below(90));
        up.queue = 2 + prng.below(20);
    }
    let mut source = Source::new(
        Duration::from_millis(prng.pick(&[2, 10, 75, 75, 400, 3000])),
        20 + prng.below(300) as u32,
    );
    source.octets = 8 + prng.below(276) as usize;
    let span = source.period * u64::from(source.left);
    let first = Seq(prng.pick(&[0, u32::MAX - 40, (1 << 31) - 9]));
    let mut world = World::new(config, vec![source], up, down, prng.bits());
    world.records = false;
    world.senders[0] = Sender::new(config.sender, Incarnation(prng.bits() as u32), first);
    let at = |prng: &mut Prng| Instant::ZERO + Duration::from_nanos(prng.below(span.as_nanos()));
    let (deaf, cut) = (at(&mut prng), at(&mut prng));
    let (deaf_for, cut_for) = (prng.pick(&[0, 0, 2, 10]), prng.pick(&[0, 0, 0, 3]));
    let mut last_to_lose = prng.below(3);
    let sent = std::rc::Rc::new(std::cell::Cell::new((0, 0)));
    let counts = sent.clone();
    world.rule = Some(Box::new(move |now, way, message| {
        let (data, control) = counts.get();
        let is_data = matches!(message, Message::Data(_));
        counts.set(if is_data { (data + 1, control) } else { (data, control + 1) });
        let within = |from: Instant, seconds| now >= from && now < from + Duration::from_secs(seconds);
        if matches!(message, Message::Data(data) if data.last) && last_to_lose > 0 {
            last_to_lose -= 1;
            return false;
        }
        !(within(cut, cut_for) || matches!(way, Way::Down(_)) && within(deaf, deaf_for))
    }));
    let mut restarts: Vec<Instant> = (0..prng.pick(&[0, 0, 1, 2])).map(|_| at(&mut prng)).collect();
    restarts.sort();
    let mut sinks = 1;
    for restart in restarts {
        world.run(restart, |world| world.all_closed());
        world.sink = Sink::new(config.sink, prng.bits() as u32);
        sinks += 1;
    }
    let end = world.now + Duration::from_secs(4 * 3600);
    world.run(end, |world| world.all_closed());
    check(&world, sinks, sent.get()).map_err(|what| {
        format!("seed {seed}: {what}\n{config:?}\n{:?}\n{:?}\n{:?}", world.up, world.down, world.told[0])
    })
}

fn check(world: &World, sinks: u32, (data, control): (usize, usize)) -> Result<Faults, String> {
    let delivered = in_order(world)?;
    let accepted: BTreeMap<u32, &Bytes> =
        world.sources[0].accepted.iter().map(|(seq, o)| (seq.0, o)).collect();
    for (seq, payload) in &delivered {
        if accepted.get(seq) != Some(&payload) {
            return Err(format!("packet {seq} is not what was written"));
        }
    }
    let Some(SenderEvent::Closed { outcome, .. }) = world.told[0].last() else {
        return Err(format!("it never ended: {:?}", world.senders[0].info()));
    };
    let mut told = BTreeSet::new();
    for event in &world.told[0] {
        match event {
            SenderEvent::Gone(range) => {
                if numbers(*range).any(|seq| !told.insert(seq)) {
                    return Err(format!("{range:?} was told twice"));
                }
            }
            SenderEvent::SinkLost { unknown } => told.extend(numbers(*unknown)),
            SenderEvent::Closed { unknown, unsent, .. } => {
                told.extend(numbers(*unknown));
                told.extend(numbers(*unsent));
            }
            SenderEvent::Opened | SenderEvent::Confirmed { .. } | SenderEvent::Writable => {}
        }
    }
    if let Some(lost) = accepted.keys().find(|seq| !delivered.contains_key(seq) && !told.contains(seq)) {
        return Err(format!("packet {lost} is lost, and nobody was told"));
    }
    Ok(Faults {
        accepted: accepted.len(),
        delivered: delivered.len(),
        told: told.len(),
        sinks,
        complete: *outcome == Outcome::Complete,
        data,
        control,
    })
}

/// The delivered packets, after a check that between two packets of a stream only packets reported
/// as gone are missing.
fn in_order(world: &World) -> Result<BTreeMap<u32, Bytes>, String> {
    let mut delivered = BTreeMap::new();
    let mut next = None;
    let mut last: Option<Seq> = None;
    for (at, event) in &world.events {
        let range = match event {
            SinkEvent::Opened { first, .. } => {
                next = Some(*first);
                continue;
            }
            SinkEvent::Ended { next: end, .. } => {
                if next.take() != Some(*end) {
                    return Err(format!("{event:?} at {at}: it ended elsewhere"));
                }
                continue;
            }
            SinkEvent::Packet { seq, payload, .. } => {
                if last.is_some_and(|last| !last.lt(*seq))
                    || delivered.insert(seq.0, payload.clone()).is_some()
                {
                    return Err(format!("packet {seq:?} at {at} is not after {last:?}"));
                }
                last = Some(*seq);
                Range { start: *seq, end: *seq + 1 }
            }
            SinkEvent::Gone { range, .. } => *range,
        };
        if next != Some(range.start) {
            return Err(format!("{range:?} at {at}, and {next:?} would have been next"));
        }
        next = Some(range.end);
    }
    Ok(delivered)
}

fn numbers(range: Range) -> impl Iterator<Item = u32> {
    (0..range.len()).map(move |i| (range.start + i).0)
}
