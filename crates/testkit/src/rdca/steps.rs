//! Many senders behind one bottleneck whose rate and route change, with clocks that drift and jump;
//! measures utilisation and fairness.

use anabranch_core::rdca::{Config, SenderEvent};
use anabranch_core::time::{Duration, Instant};

use super::{Link, Skew, Source, World};
use crate::prng::Prng;

/// Parameters of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Time at which each sender joins, ascending.
    pub joins: Vec<Duration>,
    /// Packets per second that each application offers.
    pub offered: f64,
    /// Initial capacity of the bottleneck, in packets per second.
    pub capacity: f64,
    /// Length of its queue in packets.
    pub queue: u64,
    /// Initial minimum delay from a sender to the sink; the way back takes 20 ms.
    pub delay: Duration,
    /// Loss probability of the channel, per mille.
    pub loss: u64,
    /// Clocks of the senders.
    pub skews: Vec<Skew>,
    /// Changes, one after another, 40 s apart.
    pub changes: Vec<Change>,
}

/// A change of the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// New capacity of the bottleneck, in packets per second.
    Capacity(f64),
    /// New delay to the sink.
    Delay(Duration),
    /// The clock of every n-th sender jumps by this number of milliseconds.
    Clock(usize, i64),
}

/// Time from the last join to the first measured span: the start phase adds a packet to the window
/// in 0.4 s (section 3.3.1).
const JOIN: Duration = Duration::from_secs(40);
/// Time from a change to the start of its measured span.
const SETTLE: Duration = Duration::from_secs(10);
/// Length of a measured span.
const SPAN: Duration = Duration::from_secs(30);

/// Result of one span: 30 s that begin 10 s after a change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judged {
    /// The change before the span; `None` for the joins.
    pub change: Option<Change>,
    /// Delivered share of the bottleneck's capacity, or of the offered rate if that is less.
    pub utilisation: f64,
    /// Jain's fairness index of the senders.
    pub jain: f64,
}

/// Result of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Steps {
    /// Results in order of the spans.
    pub judged: Vec<Judged>,
    /// Number of packets that senders accepted and gave up before they arrived.
    pub gone: u64,
    /// Number of packets dropped because the bottleneck's queue was full.
    pub overflows: u64,
    /// Number of control packets of both sides per delivered packet.
    pub control: f64,
}

impl Steps {
    /// The lowest utilisation and the lowest fairness of all spans.
    pub fn worst(&self) -> (f64, f64) {
        let least = |of: fn(&Judged) -> f64| self.judged.iter().map(of).fold(f64::INFINITY, f64::min);
        (least(|judged| judged.utilisation), least(|judged| judged.jain))
    }
}

impl Case {
    /// A case with `senders` senders that join 37 ms apart, with equal clocks, a queue of 50
    /// packets and 20 ms each way.
    pub fn plain(senders: u64, offered: f64, capacity: f64, changes: Vec<Change>) -> Self {
        let joins: Vec<_> = (0..senders).map(|i| Duration::from_millis(37) * i).collect();
        let skews = vec![Skew::default(); joins.len()];
        Self {
            joins,
            offered,
            capacity,
            queue: 50,
            delay: Duration::from_millis(20),
            loss: 0,
            skews,
            changes,
        }
    }

    /// The random case of a seed, with at most `most` senders.
    pub fn random(seed: u64, most: u64) -> Self {
        let mut prng = Prng::new(seed);
        // Draw small numbers as often as large ones.
        let senders = prng.pick(&[1, 2, 5, 10, 20, 50, 100, 200]).min(most);
        let senders = prng.range((senders / 2).max(1)..=senders);
        let share = |prng: &mut Prng| prng.pick(&[2.5, 5.0, 10.0, 20.0, 100.0]);
        // At least 2 packets per second for each sender, since 1 is the lowest rate.
        let capacity =
            |prng: &mut Prng| (share(prng) * senders as f64).clamp(10.0, 1000.0).max(2.0 * senders as f64);
        let delay = |prng: &mut Prng| Duration::from_millis(prng.pick(&[5, 20, 60, 150, 500, 1005]));
        let apart = prng.pick(&[1, 37, 200]);
        let mut joins: Vec<_> =
            (0..senders).map(|_| Duration::from_millis(prng.below(apart * senders + 1))).collect();
        joins.sort_unstable();
        let skew =
            |prng: &mut Prng| Skew { offset: prng.below(1 << 32) as i64, ppm: prng.below(1001) as i64 - 500 };
        let change = |prng: &mut Prng| match prng.below(3) {
            0 => Change::Capacity(capacity(prng)),
            1 => Change::Delay(delay(prng)),
            _ => Change::Clock(prng.pick(&[1, 2, 5]), prng.pick(&[-1000, -150, 150, 1000])),
        };
        let first = capacity(&mut prng);
        Self {
            joins,
            offered: first.max(1000.0_f64.min(first * 4.0)) / senders as f64 * prng.pick(&[0.5, 1.2, 4.0]),
            capacity: first,
            queue: prng.pick(&[50, 50, 100]),
            delay: delay(&mut prng),
            loss: prng.pick(&[0, 0, 10, 50]),
            skews: (0..senders).map(|_| skew(&mut prng)).collect(),
            changes: (0..4).map(|_| change(&mut prng)).collect(),
        }
    }
}

/// Runs a case.
pub fn step_run(case: &Case, config: Config, seed: u64) -> Steps {
    let period = Duration::from_secs_f64(1.0 / case.offered);
    let sources = case.joins.iter().map(|join| {
        let mut source = Source::new(period, u32::MAX);
        source.next += *join;
        source
    });
    let mut up = Link { loss: case.loss, delay: case.delay, queue: case.queue, ..Link::new(0) };
    up.service = Duration::from_secs_f64(1.0 / case.capacity);
    let mut world = World::new(config, sources.collect(), up, Link::new(20), seed);
    world.skews.clone_from(&case.skews);
    world.records = false;
    let mut steps = Steps::default();
    let settled = case.joins.last().copied().unwrap_or(Duration::ZERO);
    let mut change = None;
    let mut capacity = case.capacity;
    let mut begin = Instant::ZERO + settled + JOIN;
    for next in case.changes.iter().copied().map(Some).chain([None]) {
        world.run(begin + SETTLE, |_| false);
        world.events.clear();
        begin = begin + SETTLE + SPAN;
        world.run(begin, |_| false);
        let offered = case.offered * case.joins.len() as f64;
        let counts: Vec<f64> = (0..case.joins.len()).map(|i| world.delivered(i).len() as f64).collect();
        let sum: f64 = counts.iter().sum();
        let squares: f64 = counts.iter().map(|count| count * count).sum();
        steps.judged.push(Judged {
            change,
            utilisation: sum
                / SPAN.as_secs_f64()
                / (capacity * (1.0 - case.loss as f64 / 1000.0)).min(offered),
            jain: sum * sum / (squares * counts.len() as f64),
        });
        change = next;
        match next {
            Some(Change::Capacity(rate)) => {
                capacity = rate;
                world.up.service = Duration::from_secs_f64(1.0 / rate);
            }
            Some(Change::Delay(delay)) => world.up.delay = delay,
            Some(Change::Clock(every, ms)) => {
                world.skews.iter_mut().step_by(every).for_each(|skew| skew.offset += ms * 1000);
            }
            None => {}
        }
    }
    let gone =
        |event: &SenderEvent| if let SenderEvent::Gone(range) = event { u64::from(range.len()) } else { 0 };
    steps.gone = world.told.iter().flatten().map(gone).sum();
    steps.overflows = world.up.overflows;
    let counters = world.sink.counters();
    let sent: u64 = world.senders.iter().map(|sender| u64::from(sender.info().counters.control)).sum();
    let control = counters.replies + counters.snacks + counters.congestions + counters.confirms + sent;
    steps.control = control as f64 / counters.packets.max(1) as f64;
    steps
}
