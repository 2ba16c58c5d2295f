//! Limits on the queue at a bottleneck: the delay that a connection causes there, and what the
//! limit costs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anabranch_core::segment::Segment;
use anabranch_core::tcp::{Config, CongestionAlgorithm};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::pair::{End, Pair, Verdict};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

const CONTROLS: [CongestionAlgorithm; 3] =
    [CongestionAlgorithm::NewReno, CongestionAlgorithm::Cubic, CongestionAlgorithm::Westwood];
const DELAY: Duration = Duration::from_millis(10);
/// Longest time in the queue.
const QUEUE: Duration = Duration::from_millis(100);

/// A sender that always has data, and a bottleneck.
struct Bottleneck {
    pair: Pair,
    /// Time in the queue of each data segment that left it since the last look, and their bytes.
    waits: Rc<RefCell<Vec<Duration>>>,
    octets: Rc<Cell<u64>>,
    /// Added to the round-trip time.
    longer: Rc<Cell<Duration>>,
    /// Time for which others fill the queue.
    others: Rc<Cell<Duration>>,
    kbit_per_s: Rc<Cell<u64>>,
    /// Percentage of data segments that are lost.
    loss: Rc<Cell<u64>>,
    /// Acknowledgements wait for the next multiple of this time.
    bursts: Rc<Cell<Duration>>,
}

impl Bottleneck {
    fn new(congestion: CongestionAlgorithm, kbit_per_s: u64, rtt: Duration) -> Self {
        let (waits, octets) = (Rc::<RefCell<Vec<Duration>>>::default(), Rc::<Cell<u64>>::default());
        let (longer, others, bursts) = <[Rc<Cell<Duration>>; 3]>::default().into();
        let (loss, rate) = (Rc::<Cell<u64>>::default(), Rc::new(Cell::new(kbit_per_s)));
        let (noted, counted, added, filled) = (waits.clone(), octets.clone(), longer.clone(), others.clone());
        let (lost, speed, grain) = (loss.clone(), rate.clone(), bursts.clone());
        let (mut busy, mut random) = (Instant::ZERO, Prng::new(kbit_per_s));
        let rule = move |now: Instant, from: End, segment: &Segment| {
            if from == End::Server {
                let ready = now + added.get();
                let late = ready.as_nanos() % grain.get().as_nanos().max(1);
                return Verdict::Delay(added.get() + grain.get().saturating_sub(Duration::from_nanos(late)));
            }
            if busy > now + QUEUE || random.chance(lost.get()) {
                return Verdict::Drop;
            }
            let bits = 8 * (segment.payload.len() as u64 + 52);
            let sent = Duration::from_nanos(bits * 1_000_000 / speed.get());
            busy = busy.max(now + filled.get()) + sent;
            noted.borrow_mut().push(busy.saturating_since(now));
            counted.set(counted.get() + segment.payload.len() as u64);
            Verdict::Delay(busy.saturating_since(now))
        };
        let config = Config { congestion, send_buffer: 8 << 20, receive_buffer: 8 << 20, ..Config::modern() };
        let pair = Pair::new(config, config, rtt / 2).with_rule(rule);
        Self { pair, waits, octets, longer, others, kbit_per_s: rate, loss, bursts }
    }

    fn limit(&mut self, delay: Option<Duration>) {
        self.pair.client.connection.as_mut().expect("it is open").limit_queue(delay);
    }

    /// Goes on for this time. Returns the 95th percentile of the waiting times, and bits per
    /// second.
    fn run(&mut self, time: Duration) -> (Duration, f64) {
        let end = self.pair.now + time;
        self.waits.borrow_mut().clear();
        let before = self.octets.get();
        while self.pair.now < end {
            if self.pair.client.outbox.len() < 1 << 20 {
                self.pair.client.outbox = Bytes::from(vec![1; 2 << 20]);
            }
            assert!(self.pair.step(), "data is always there");
            self.pair.server.inbox.clear();
        }
        let mut waits = self.waits.borrow().clone();
        waits.sort_unstable();
        let high = waits.get(waits.len() * 95 / 100).copied().unwrap_or_default();
        (high, 8.0 * (self.octets.get() - before) as f64 / time.as_secs_f64())
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_queue_is_short_and_the_rate_is_kept() {
    for congestion in CONTROLS {
        for (kbit_per_s, rtt) in [(2_000, 30), (20_000, 10), (20_000, 100), (100_000, 5)] {
            let mut path = Bottleneck::new(congestion, kbit_per_s, Duration::from_millis(rtt));
            path.run(secs(4));
            let (long, unlimited) = path.run(secs(6));
            path.limit(Some(DELAY));
            path.run(secs(1));
            let (short, limited) = path.run(secs(6));
            let case = format!("{congestion:?}, {kbit_per_s} kbit/s, {rtt} ms");
            // Otherwise there would be nothing to limit.
            assert!(!fills(congestion) || long > QUEUE / 2, "{case}: {long}");
            // The spare segments of slow links take their time too.
            let segment = Duration::from_nanos(1500 * 8 * 1_000_000 / kbit_per_s);
            assert!(short < DELAY + segment * 3, "{case}: {short}");
            assert!(limited > 0.97 * unlimited, "{case}: {limited} of {unlimited} bit/s");
        }
    }
}

#[test]
fn the_queue_fills_again_when_the_limit_ends() {
    for congestion in CONTROLS.into_iter().filter(|control| fills(*control)) {
        let mut path = Bottleneck::new(congestion, 20_000, Duration::from_millis(20));
        path.limit(None);
        path.run(secs(4));
        path.limit(Some(DELAY));
        path.run(secs(4));
        path.limit(None);
        let (high, _) = path.run(secs(8));
        assert!(high > QUEUE / 2, "{congestion:?}: {high}");
    }
}

/// The measurement after the next one shows it: by then the connection has filled the queue.
#[test]
fn a_longer_path_is_noticed() {
    for congestion in CONTROLS.into_iter().filter(|control| fills(*control)) {
        let mut path = Bottleneck::new(congestion, 20_000, Duration::from_millis(20));
        path.run(secs(4));
        path.limit(Some(DELAY));
        path.run(secs(5));
        path.longer.set(Duration::from_millis(60));
        path.run(secs(18));
        let (high, rate) = path.run(secs(15));
        assert!(high < DELAY + Duration::from_millis(2), "{congestion:?}: {high}");
        assert!(rate > 0.95 * 19.3e6, "{congestion:?}: {rate} bit/s");
    }
}

/// The first measurements cost a tenth, later ones become rare. Westwood+ is left out: after a loss
/// it has the window of the shortest round-trip time ever, with or without a limit.
#[test]
fn a_queue_of_others_does_not_limit() {
    for congestion in CONTROLS.into_iter().filter(|control| *control != CongestionAlgorithm::Westwood) {
        let [without, with] = [None, Some(DELAY)].map(|limit| {
            let mut path = Bottleneck::new(congestion, 20_000, Duration::from_millis(20));
            path.run(secs(4));
            path.others.set(Duration::from_millis(70));
            path.run(secs(4));
            path.limit(limit);
            path.run(secs(20)).1
        });
        assert!(with > 0.88 * without, "{congestion:?}: {with} of {without} bit/s");
    }
}

/// Whether the algorithm fills the queue, however long it is.
fn fills(congestion: CongestionAlgorithm) -> bool {
    matches!(congestion, CongestionAlgorithm::NewReno | CongestionAlgorithm::Cubic)
}

/// The limit follows the path: it must not keep a connection at the rate that it had.
#[test]
fn a_path_that_becomes_faster_is_used() {
    for congestion in CONTROLS.into_iter().filter(|control| fills(*control)) {
        for loss in [0, 2] {
            let [without, with] = [None, Some(DELAY)].map(|limit| {
                let mut path = Bottleneck::new(congestion, 4_000, Duration::from_millis(40));
                path.loss.set(loss);
                path.run(secs(4));
                path.limit(limit);
                path.run(secs(4));
                path.kbit_per_s.set(40_000);
                path.run(secs(8));
                path.run(secs(8)).1
            });
            assert!(with > 0.9 * without, "{congestion:?}, {loss} %: {with} of {without} bit/s");
        }
    }
}

/// Acknowledgements that come in bursts do not make the path look faster.
#[test]
fn bursts_of_acknowledgements_do_not_lengthen_the_queue() {
    for congestion in CONTROLS.into_iter().filter(|control| fills(*control)) {
        let mut path = Bottleneck::new(congestion, 20_000, Duration::from_millis(10));
        path.bursts.set(Duration::from_millis(8));
        path.run(secs(4));
        path.limit(Some(DELAY));
        path.run(secs(1));
        let (high, rate) = path.run(secs(12));
        assert!(high < DELAY * 2, "{congestion:?}: {high}");
        assert!(rate > 0.95 * 19.3e6, "{congestion:?}: {rate} bit/s");
    }
}

/// BBR measures the rate of the path by itself; a limit on its start would be one on its rate.
#[test]
fn bbr_is_not_limited() {
    let [without, with] = [None, Some(DELAY)].map(|limit| {
        let mut path = Bottleneck::new(CongestionAlgorithm::Bbr, 20_000, Duration::from_millis(100));
        path.run(secs(1));
        path.limit(limit);
        path.run(secs(5))
    });
    assert_eq!(without, with);
}

/// Messages every three seconds pause the limit, and go on with what was measured.
#[test]
fn a_limit_that_comes_and_goes_costs_no_rate() {
    for congestion in CONTROLS.into_iter().filter(|control| fills(*control)) {
        let [without, with] = [None, Some(DELAY)].map(|limit| {
            let mut path = Bottleneck::new(congestion, 20_000, Duration::from_millis(60));
            path.run(secs(4));
            let rates = (0..8).map(|_| {
                path.limit(limit);
                let first = path.run(secs(2)).1;
                path.limit(None);
                first * 2.0 + path.run(secs(1)).1
            });
            rates.sum::<f64>() / 24.0
        });
        assert!(with > 0.93 * without, "{congestion:?}: {with} of {without} bit/s");
    }
}

/// Round-trip times that vary do not make the connection slow: the limit ends where it costs more
/// than a quarter of the rate.
#[test]
fn jitter_is_no_queue() {
    for congestion in CONTROLS.into_iter().filter(|control| fills(*control)) {
        let [without, with] = [None, Some(DELAY)].map(|limit| {
            let mut path = Bottleneck::new(congestion, 20_000, Duration::from_millis(20));
            path.bursts.set(Duration::from_millis(60));
            path.run(secs(4));
            path.limit(limit);
            // The first measurement shows it.
            path.run(secs(5));
            path.run(secs(12)).1
        });
        assert!(with > 0.75 * without, "{congestion:?}: {with} of {without} bit/s");
    }
}

/// After losses the congestion window makes the connection slow, and after a pause nothing does.
#[test]
fn losses_and_pauses_do_not_end_the_limit() {
    for congestion in CONTROLS.into_iter().filter(|control| fills(*control)) {
        for is_loss in [true, false] {
            let mut path = Bottleneck::new(congestion, 20_000, Duration::from_millis(10));
            path.run(secs(4));
            path.limit(Some(DELAY));
            path.run(secs(3));
            for _ in 0..6 {
                if is_loss {
                    path.loss.set(20);
                } else {
                    path.kbit_per_s.set(300);
                }
                path.run(Duration::from_millis(120));
                path.loss.set(0);
                path.kbit_per_s.set(20_000);
                path.run(Duration::from_millis(400));
                let (high, _) = path.run(Duration::from_millis(800));
                let case = format!("{congestion:?}, {}", if is_loss { "loss" } else { "pause" });
                assert!(high < DELAY + Duration::from_millis(2), "{case}: {high}");
            }
        }
    }
}

/// Also while the queue of slow start drains, in which neither rate nor window say what the path
/// holds.
#[test]
fn a_limit_may_begin_at_any_time() {
    for congestion in CONTROLS {
        for begin in (200..3000).step_by(100) {
            let mut path = Bottleneck::new(congestion, 20_000, Duration::from_millis(10));
            path.run(Duration::from_millis(begin));
            for _ in 0..15 {
                path.limit(Some(DELAY));
                path.run(Duration::from_millis(100));
            }
            let (high, rate) = path.run(secs(3));
            assert!(high < DELAY + Duration::from_millis(2), "{congestion:?}, {begin} ms: {high}");
            assert!(rate > 0.95 * 19.3e6, "{congestion:?}, {begin} ms: {rate} bit/s");
        }
    }
}
