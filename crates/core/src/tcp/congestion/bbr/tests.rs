//! The test cases of the draft over a path of one link and one queue, and the arithmetic at its
//! limits.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::segment::SeqNumber;
use crate::tcp::rate::Rate;

const MSS: u32 = 1000;

/// A sender over a link with a queue. It always has data unless `app` limits it. Each segment is
/// acknowledged; the acknowledgement of a later segment shows the loss of earlier ones.
struct Path {
    bbr: Bbr,
    rate: Rate,
    now: Instant,
    /// Bytes per second.
    link: u64,
    /// Round-trip time without queueing and without transmission time.
    rtt: Duration,
    /// Capacity of the queue in bytes.
    queue: u64,
    mss: u32,
    /// Every n-th segment is lost in addition.
    drop_every: u64,
    /// Bytes per second that the application writes, if that is the limit.
    app: Option<u64>,
    written_at: Instant,
    free: Instant,
    next_send: Instant,
    max: SeqNumber,
    sent: u64,
    out: VecDeque<(Instant, SeqNumber, SeqNumber)>,
    acks: BTreeMap<(Instant, u64), SeqNumber>,
    in_flight: u32,
    /// A recovery covers the losses before its first one, and ends when data sent after the last
    /// loss is acknowledged.
    recover: Option<(SeqNumber, SeqNumber)>,
    least: Option<Duration>,
    lost: u64,
    /// States in their order, with the time of entry.
    states: Vec<(State, Instant)>,
}

impl Path {
    fn new(link: u64, rtt: u64, queue: u64) -> Self {
        Self::with_mss(link, rtt, queue, MSS)
    }

    fn with_mss(link: u64, rtt: u64, queue: u64, mss: u32) -> Self {
        let start = Start { cwnd: 10 * mss, ssthresh: u32::MAX, mss, seed: 1 };
        let mut this = Self {
            bbr: Bbr::new(start),
            rate: Rate::default(),
            now: Instant::ZERO + Duration::from_secs(1),
            link,
            rtt: Duration::from_millis(rtt),
            queue,
            mss,
            drop_every: 0,
            app: None,
            written_at: Instant::ZERO,
            free: Instant::ZERO,
            next_send: Instant::ZERO,
            max: SeqNumber(u32::MAX - 5000),
            sent: 0,
            out: VecDeque::new(),
            acks: BTreeMap::new(),
            in_flight: 0,
            recover: None,
            least: None,
            lost: 0,
            states: Vec::new(),
        };
        let view = View { srtt: Some(this.rtt), initial_window: 10 * mss, ..View::of(mss, Repair::Sack) };
        this.bbr.on_rtt(this.now, &view, this.rtt);
        this.states.push((State::Startup, this.now));
        this
    }

    fn view(&self) -> View {
        let initial_window = 10 * self.mss;
        View { srtt: Some(self.rtt), min_rtt: self.least, initial_window, ..View::of(self.mss, Repair::Sack) }
    }

    fn bdp(&self) -> u32 {
        (u128::from(self.link) * u128::from(self.rtt.as_nanos()) / 1_000_000_000) as u32 + self.mss
    }

    /// Bytes delivered.
    fn delivered(&self) -> u64 {
        self.bbr.delivered
    }

    /// When the next segment may be sent, if the window has room and the application has data.
    fn departure(&mut self) -> Option<Instant> {
        if self.in_flight + self.mss > self.bbr.cwnd() {
            return None;
        }
        let written = match self.app {
            None => self.now,
            Some(0) => Instant::FAR_FUTURE,
            Some(app) => self.written_at + Duration::from_nanos(u64::from(self.mss) * 1_000_000_000 / app),
        };
        if written > self.now {
            self.rate.limit(self.in_flight);
        }
        Some(self.next_send.max(self.now).max(written)).filter(|at| *at != Instant::FAR_FUTURE)
    }

    fn send(&mut self) {
        let (now, view) = (self.now, self.view());
        if self.in_flight == 0 && self.rate.is_limited() {
            self.bbr.on_restart(now, &view);
        }
        let (seq, end) = (self.max, self.max + self.mss);
        let before = self.in_flight;
        self.in_flight += self.mss;
        self.rate.sent(now, (seq, end), (before, self.in_flight), false);
        if self.in_flight + self.mss > self.bbr.cwnd() {
            self.rate.filled(end);
        }
        self.max = end;
        self.sent += 1;
        self.written_at = now;
        let pace = self.bbr.pacing_rate().expect("a rate").max(1);
        self.next_send = now + Duration::from_nanos(u64::from(self.mss) * 1_000_000_000 / pace);
        self.out.push_back((now, seq, end));
        let per_second = |bytes: u64| Duration::from_nanos(bytes * 1_000_000_000 / self.link);
        let waits = self.free.saturating_since(now);
        let dropped = self.drop_every > 0 && self.sent.is_multiple_of(self.drop_every);
        if waits > per_second(self.queue) || dropped {
            return;
        }
        self.free = self.free.max(now) + per_second(self.mss.into());
        self.acks.insert((self.free + self.rtt, self.sent), end);
    }

    fn acknowledge(&mut self, end: SeqNumber) {
        let (now, view) = (self.now, self.view());
        if self.out.iter().all(|(_, _, last)| *last != end) {
            // Declared lost.
            return;
        }
        if self.recover.is_some_and(|(_, repaired)| end.gt(repaired)) {
            self.recover = None;
            self.bbr.on_recovered(now, &view);
        }
        let mut lost = Vec::new();
        while let Some((at, seq, last)) = self.out.pop_front() {
            self.in_flight -= self.mss;
            if last == end {
                self.rate.arrived(at, seq, last);
                let rtt = now.saturating_since(at);
                self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
                break;
            }
            lost.push((at, seq, last));
        }
        for (at, seq, last) in lost {
            self.lost += 1;
            if self.recover.is_none() {
                self.recover = Some((self.max, self.max));
                self.bbr.on_loss(now, &view);
            }
            if let Some((before, repaired)) = &mut self.recover
                && seq.lt(*before)
            {
                *repaired = self.max;
            }
            self.rate.lost(at, seq, last);
        }
        self.rate.acknowledged(end);
        let mut i = 0;
        while let Some(loss) = self.rate.next_loss(i, self.in_flight) {
            self.bbr.on_lost(now, &view, &loss);
            i += 1;
        }
        let Some(mut sample) = self.rate.sample(now, self.least) else { return };
        sample.in_flight = self.in_flight;
        (sample.selective, sample.recovering) = (true, self.recover.is_some());
        self.bbr.on_sample(now, &self.view(), &sample);
        if self.bbr.limits_itself() {
            self.rate.limit(self.in_flight);
        }
        if self.states.last().is_none_or(|(state, _)| *state != self.bbr.state) {
            self.states.push((self.bbr.state, now));
        }
    }

    /// Runs until the condition holds; false if it does not within `seconds`.
    fn run(&mut self, seconds: f64, until: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + Duration::from_secs_f64(seconds);
        while !until(self) {
            let departure = self.departure();
            let ack = self.acks.first_key_value().map(|((at, _), end)| (*at, *end));
            let next = departure.into_iter().chain(ack.map(|(at, _)| at)).min().unwrap_or(end);
            if next >= end {
                self.now = end;
                return until(self);
            }
            self.now = next;
            if let Some((at, end)) = ack.filter(|(at, _)| *at <= next) {
                self.acks.retain(|(due, _), last| (*due, *last) != (at, end));
                self.acknowledge(end);
            } else {
                self.send();
            }
        }
        true
    }

    fn wait_for(&mut self, state: State) {
        assert!(self.run(60.0, |path| path.bbr.state == state), "no {state:?} after {:?}", self.states);
    }

    /// Utilisation of the link over that many seconds.
    fn utilisation(&mut self, seconds: f64) -> f64 {
        let before = self.delivered();
        self.run(seconds, |_| false);
        (self.delivered() - before) as f64 / (self.link as f64 * seconds)
    }
}

/// 10 Mbit/s and 40 ms with a long queue.
fn path() -> Path {
    Path::new(1_250_000, 40, 500_000)
}

#[test]
fn startup_ends_when_the_rate_grows_no_more() {
    let mut path = path();
    path.wait_for(State::Drain);
    assert!(path.bbr.full.reached && path.bbr.full.now);
    let max_bw = path.bbr.max_bw.value();
    assert!((1_225_000..=1_275_000).contains(&max_bw), "{max_bw}");
    // log2(50 / 10) round trips to fill the pipe, and three without growth.
    assert!(path.bbr.round.count <= 9, "{:?}", path.bbr.round);
    assert_eq!(path.bbr.pacing_gain(), 50);
    // The queue is empty, so DOWN ends at once.
    path.wait_for(State::Cruise);
    assert!(path.bbr.in_flight <= path.bbr.inflight(path.bbr.bw));
}

#[test]
fn startup_ends_with_many_losses_in_a_round_trip() {
    let mut path = Path::new(1_250_000, 40, 10_000);
    path.wait_for(State::Drain);
    let longterm = path.bbr.bounds.inflight_longterm;
    let bdp = path.bdp();
    assert!(path.bbr.full.reached && (bdp * 8 / 10..bdp * 2).contains(&longterm), "{longterm} of {bdp}");
}

#[test]
fn losses_end_startup_when_the_application_is_the_limit() {
    let mut path = path();
    (path.app, path.drop_every) = (Some(600_000), 3);
    path.wait_for(State::Drain);
    assert!(path.bbr.full.reached);
}

#[test]
fn startup_goes_on_while_the_application_is_the_limit() {
    let mut path = path();
    path.app = Some(200_000);
    assert!(!path.run(4.0, |path| path.bbr.state != State::Startup));
    path.app = None;
    path.wait_for(State::Drain);
}

#[test]
fn drain_ends_after_three_round_trips_at_the_latest() {
    let mut path = path();
    path.wait_for(State::Drain);
    // The rate was overestimated, and the queue does not drain.
    path.bbr.in_flight = 1_000_000;
    path.bbr.round.count = path.bbr.drain_start_round + 3;
    path.bbr.check_drain_done(path.now);
    assert_eq!(path.bbr.state, State::Drain);
    path.bbr.round.count += 1;
    path.bbr.check_drain_done(path.now);
    assert_eq!(path.bbr.state, State::Down);
}

/// A cycle of ProbeBW in order, two to three seconds between probes.
#[test]
fn probing_goes_round() {
    use State::{Cruise, Down, Refill, Up};
    // A Reno flow would need more than three seconds.
    let mut path = Path::new(12_500_000, 60, 5_000_000);
    path.wait_for(Cruise);
    path.states.clear();
    path.run(30.0, |_| false);
    for pair in path.states.windows(2) {
        let [(from, began), (to, ended)] = [pair[0], pair[1]];
        let next = match from {
            Cruise => Refill,
            Refill => Up,
            Up => Down,
            Down | State::ProbeRtt | State::Startup | State::Drain => Cruise,
        };
        assert!(to == next || to == State::ProbeRtt, "{:?}", path.states);
        let spent = ended.saturating_since(began).as_secs_f64();
        assert!(from != Cruise || spent < 3.1, "{spent} s");
    }
    let probes: Vec<Instant> = path.states.iter().filter(|(s, _)| *s == Up).map(|(_, at)| *at).collect();
    assert!(probes.len() >= 5, "{:?}", path.states);
    for pair in probes.windows(2) {
        let apart = pair[1].saturating_since(pair[0]).as_secs_f64();
        // ProbeRTT starts a new wait.
        assert!((2.0..7.0).contains(&apart), "{apart} s");
    }
    assert_eq!(path.lost, 0);
}

#[test]
fn up_ends_when_the_rate_grows_no_more() {
    let mut path = path();
    path.wait_for(State::Up);
    let round = path.bbr.round.count;
    assert_eq!((path.bbr.pacing_gain(), path.bbr.cwnd_gain()), (125, 225));
    path.wait_for(State::Down);
    assert!(path.bbr.full.now && path.bbr.round.count >= round + 3);
    assert_eq!(path.bbr.pacing_gain(), 90);
    path.wait_for(State::Cruise);
    assert!(path.bbr.in_flight <= path.bbr.inflight(path.bbr.max_bw.value()));
}

/// Down to half of the bandwidth-delay product, for 200 ms and one round trip, five seconds after
/// the last lower round-trip time.
#[test]
fn probe_rtt_comes_every_five_seconds() {
    let mut path = path();
    path.wait_for(State::ProbeRtt);
    let entered = path.now;
    path.run(0.2, |_| false);
    assert_eq!(path.bbr.state, State::ProbeRtt);
    let half = path.bbr.bdp_multiple(path.bbr.bw, 50);
    assert!(path.bbr.cwnd() == half && path.in_flight <= half, "{} of {half}", path.bbr.cwnd());
    path.wait_for(State::Cruise);
    let spent = path.now.saturating_since(entered).as_secs_f64();
    assert!((0.2..0.5).contains(&spent), "{spent} s");
    let min_rtt = path.bbr.min_rtt.value().expect("a round trip").as_millis();
    assert!((40..=41).contains(&min_rtt), "{min_rtt} ms");
    let left = path.now;
    path.wait_for(State::ProbeRtt);
    let apart = path.now.saturating_since(left).as_secs_f64();
    assert!((5.0..5.2).contains(&apart), "{apart} s");
    assert!(path.utilisation(60.0) > 0.95);
}

/// A longer path shows in min_rtt after ten seconds, a shorter one at once.
#[test]
fn min_rtt_follows_the_path() {
    let mut path = path();
    path.run(3.0, |_| false);
    path.rtt = Duration::from_millis(80);
    path.run(5.0, |_| false);
    assert!(path.bbr.min_rtt.value().is_some_and(|rtt| rtt.as_millis() <= 41));
    path.run(16.0, |_| false);
    let min_rtt = path.bbr.min_rtt.value().expect("a round trip").as_millis();
    assert!((79..=90).contains(&min_rtt), "{min_rtt} ms");
    path.rtt = Duration::from_millis(30);
    // The data in flight fills a queue until ProbeRTT drains it.
    path.run(12.0, |_| false);
    assert!(path.bbr.min_rtt.value().is_some_and(|rtt| rtt.as_millis() <= 31));
}

#[test]
fn silence_stands_for_probe_rtt() {
    let mut path = path();
    path.wait_for(State::Cruise);
    path.app = Some(0);
    path.run(8.0, |_| false);
    assert_eq!(path.in_flight, 0);
    path.app = None;
    path.states.clear();
    path.run(2.0, |_| false);
    assert!(path.states.iter().all(|(state, _)| *state != State::ProbeRtt), "{:?}", path.states);
}

#[test]
fn probe_rtt_leads_back_to_startup() {
    let mut path = path();
    path.app = Some(100_000);
    path.run(4.0, |_| false);
    // A longer path, so that no lower round-trip time occurs.
    path.rtt = Duration::from_millis(60);
    path.wait_for(State::ProbeRtt);
    path.wait_for(State::Startup);
    assert!(!path.bbr.full.reached);
}

#[test]
fn what_the_application_limits_does_not_lower_the_rate() {
    let mut path = path();
    path.wait_for(State::Cruise);
    let bw = path.bbr.bw;
    path.app = Some(100_000);
    path.run(60.0, |_| false);
    assert!(path.bbr.bw >= bw * 98 / 100, "{} of {bw}", path.bbr.bw);
}

#[test]
fn ten_times_the_bandwidth_is_found_in_few_cycles() {
    let mut path = path();
    path.run(6.0, |_| false);
    path.link *= 10;
    let found = path.run(12.0, |path| path.bbr.bw > 11_000_000);
    assert!(found, "{} B/s", path.bbr.bw);
}

#[test]
fn a_tenth_of_the_bandwidth_is_found_in_two_cycles() {
    let mut path = Path::new(12_500_000, 40, 500_000);
    path.run(6.0, |_| false);
    path.link /= 10;
    path.queue = 50_000;
    let slowed = path.run(2.0, |path| path.bbr.bw < 3_000_000);
    assert!(slowed, "{} B/s", path.bbr.bw);
    path.run(10.0, |_| false);
    let bw = path.bbr.bw;
    assert!((1_150_000..1_350_000).contains(&bw), "{bw} B/s");
    let (before, sent) = (path.lost, path.sent);
    assert!(path.utilisation(30.0) > 0.93);
    assert!((path.lost - before) * 20 < path.sent - sent, "{} of {}", path.lost - before, path.sent - sent);
}

/// A loss in UP sets the bound and ends the probe; the next probe stops at the bound.
#[test]
fn losses_in_up_bound_what_is_in_flight() {
    let mut path = Path::new(1_250_000, 40, 15_000);
    path.wait_for(State::Cruise);
    path.bbr.bounds = Bounds::default();
    let lost = path.lost;
    path.wait_for(State::Up);
    path.wait_for(State::Down);
    let longterm = path.bbr.bounds.inflight_longterm;
    let full = path.bdp() + 15_000;
    assert!(path.bbr.probe.too_high && (full * 7 / 10..=full * 12 / 10).contains(&longterm), "{longterm}");
    path.wait_for(State::Cruise);
    let first = path.lost - lost;
    assert!(path.bbr.cwnd() <= longterm * 85 / 100 + MSS);
    let lost = path.lost;
    path.wait_for(State::Up);
    path.wait_for(State::Cruise);
    assert!(
        (path.lost - lost) * 2 <= first,
        "the probe that follows is careful: {} and {first}",
        path.lost - lost
    );
}

/// Losses outside of probing lower the short-term bounds by at most 30 % per round trip; REFILL
/// resets them.
#[test]
fn losses_in_cruise_lower_the_short_term_bounds() {
    let mut path = Path::new(12_500_000, 40, 5_000_000);
    path.wait_for(State::Cruise);
    path.drop_every = 20;
    assert!(path.run(1.0, |path| path.bbr.bounds.bw_shortterm != u64::MAX));
    assert!(path.bbr.bounds.bw_shortterm >= path.bbr.max_bw.value() * 69 / 100);
    assert!(path.bbr.bw <= path.bbr.bounds.bw_shortterm);
    path.drop_every = 0;
    path.wait_for(State::Refill);
    assert_eq!(path.bbr.bounds.bw_shortterm, u64::MAX);
}

/// A spurious recovery restores the changed values, and a probe that it has ended starts again.
#[test]
fn spurious_recoveries_are_undone() {
    let mut path = Path::new(1_250_000, 40, 15_000);
    path.wait_for(State::Cruise);
    path.bbr.bounds = Bounds::default();
    path.wait_for(State::Up);
    let before = path.bbr.cwnd();
    path.wait_for(State::Down);
    assert!(path.bbr.bounds.inflight_longterm != UNBOUNDED);
    let prior = Windows { cwnd: before, ssthresh: u32::MAX };
    path.bbr.on_spurious(path.now, &path.view(), prior);
    assert_eq!((path.bbr.state, path.bbr.bounds.inflight_longterm), (State::Refill, UNBOUNDED));
    assert!(path.bbr.cwnd() >= before);
    let mut path = Path::new(1_250_000, 40, 10_000);
    path.wait_for(State::Drain);
    path.bbr.on_spurious(path.now, &path.view(), prior);
    assert!(path.bbr.state == State::Startup && !path.bbr.full.reached);
}

/// In the spirit of RFC 5681 section 3.1: one segment after a time-out, and the window returns
/// after the recovery.
#[test]
fn a_time_out_lets_one_segment_leave() {
    let mut path = path();
    path.wait_for(State::Cruise);
    let (now, view, cwnd) = (path.now, path.view(), path.bbr.cwnd());
    path.bbr.on_timeout(now, &view);
    let lost = LostSegment {
        size: MSS,
        tx_in_flight: 40 * MSS,
        lost: MSS.into(),
        in_flight: 0,
        ..Default::default()
    };
    let lost = LostSegment { delivered: path.delivered(), ..lost };
    (0..40).for_each(|_| path.bbr.on_lost(now, &view, &lost));
    assert_eq!(path.bbr.cwnd(), MSS);
    path.bbr.on_recovered(now, &view);
    assert_eq!(path.bbr.cwnd(), cwnd);
}

/// Less than one packet per round trip: four packets are in flight at the rate of the link.
#[test]
fn a_window_never_falls_below_four_segments() {
    let mut path = Path::new(125_000, 1, 20_000);
    path.run(20.0, |_| false);
    assert_eq!(path.bbr.volume_cap().min(4 * MSS), 4 * MSS);
    let used = path.utilisation(60.0);
    assert!(path.bbr.cwnd() >= 4 * MSS && used > 0.97, "{used}");
}

/// A chain over IEEE 802.15.4: 250 kbit/s, segments of 81 bytes, 0.5 s.
#[test]
fn low_power_radio_is_used() {
    let mut path = Path::with_mss(31_250, 500, 8_000, 81);
    path.run(20.0, |_| false);
    let used = path.utilisation(120.0);
    assert!(used > 0.90, "{used}");
    assert!(path.lost * 20 < path.sent, "{} of {}", path.lost, path.sent);
}

/// The same seed gives the same random choices, another seed different ones.
#[test]
fn choices_follow_from_the_seed() {
    let waits = |seed| {
        let mut bbr = Bbr::new(Start { cwnd: 10 * MSS, ssthresh: u32::MAX, mss: MSS, seed });
        (0..8).map(|_| bbr.random_below(1_000_000)).collect::<Vec<u64>>()
    };
    assert_eq!(waits(7), waits(7));
    assert_ne!(waits(7), waits(8));
}

/// One step of a connection with arbitrary input.
#[derive(Clone, Debug)]
enum Step {
    Sample(Box<RateSample>),
    Lost(LostSegment),
    Timeout,
    Loss,
    Recovered,
    Spurious,
    Restart,
}

fn any_step() -> impl Strategy<Value = (u64, Step)> {
    let bytes = prop_oneof![0..3000_u32, any::<u32>()];
    // From 1 kbit/s to beyond 100 Gbit/s.
    let rate = prop_oneof![Just(0), 125..12_500_000_000_u64, any::<u64>()];
    let sample = (rate, bytes.clone(), bytes.clone(), any::<[bool; 4]>(), any::<u64>(), any::<u32>());
    let sample = sample.prop_map(|(delivery_rate, newly_acked, in_flight, flags, delivered, total)| {
        let [app_limited, cwnd_limited, recovering, selective] = flags;
        Step::Sample(Box::new(RateSample {
            delivery_rate,
            newly_acked,
            in_flight,
            delivered: delivered >> (total % 64),
            prior_delivered: u64::from(total),
            total_delivered: u64::from(total) + u64::from(newly_acked),
            tx_in_flight: in_flight.wrapping_add(newly_acked),
            lost: delivered >> 32,
            rtt: (total % 3 > 0).then_some(Duration::from_nanos(delivered >> (total % 64))),
            app_limited,
            cwnd_limited,
            recovering,
            selective,
            ..RateSample::default()
        }))
    });
    let lost = (bytes.clone(), bytes, any::<u64>()).prop_map(|(size, tx_in_flight, lost)| {
        Step::Lost(LostSegment { size, tx_in_flight, lost, delivered: lost >> 8, ..LostSegment::default() })
    });
    let step = prop_oneof![
        12 => sample,
        3 => lost,
        1 => Just(Step::Timeout),
        1 => Just(Step::Loss),
        1 => Just(Step::Recovered),
        1 => Just(Step::Spurious),
        1 => Just(Step::Restart),
    ];
    (prop_oneof![0..1_000_000_u64, 0..10_000_000_000_u64], step)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// No input causes a division by zero or an overflow, and the window always holds a segment.
    #[test]
    fn arithmetic_holds(mss in 1..65_495_u32, steps in prop::collection::vec(any_step(), 1..200)) {
        let mut bbr = Bbr::new(Start { cwnd: 10 * mss, ssthresh: u32::MAX, mss, seed: mss });
        let (mut now, mut view) = (Instant::ZERO, View::of(mss, Repair::Sack));
        view.srtt = Some(Duration::from_millis(1));
        for (nanos, step) in steps {
            now += Duration::from_nanos(nanos);
            match step {
                Step::Sample(sample) => bbr.on_sample(now, &view, &sample),
                Step::Lost(lost) => bbr.on_lost(now, &view, &lost),
                Step::Timeout => bbr.on_timeout(now, &view),
                Step::Loss => bbr.on_loss(now, &view),
                Step::Recovered => bbr.on_recovered(now, &view),
                Step::Spurious => bbr.on_spurious(now, &view, Windows { cwnd: mss, ssthresh: mss }),
                Step::Restart => bbr.on_restart(now, &view),
            }
            prop_assert!(bbr.cwnd() >= mss.min(MOST_IN_FLIGHT), "{bbr:?}");
        }
    }

    /// The rate of any link from 1 kbit/s to 100 Gbit/s is found. A segment takes at least 1/100 of
    /// a round trip.
    #[test]
    fn any_rate_is_found(exponent in 0..9_u32, digit in 1..10_u64, share in 1..100_u64) {
        let link = (125 * digit * 10_u64.pow(exponent)).min(12_500_000_000);
        let rtt = Duration::from_nanos((share * u64::from(MSS) * 1_000_000_000 / link).max(1));
        let mut path = Path::new(link, 1, u64::from(MSS) * 200);
        path.rtt = rtt;
        path.bbr.on_rtt(path.now, &path.view(), rtt);
        let seconds = rtt.as_secs_f64() * 40.0 + 400.0 * f64::from(MSS) / link as f64;
        path.run(seconds, |path| path.bbr.full.reached);
        let bw = path.bbr.max_bw.value();
        prop_assert!(bw <= link / 100 * 115 + 125, "{bw} of {link}: {:?}", path.states);
        // If a segment or a round trip takes seconds, ProbeRTT interrupts.
        let slow = link < 10 * u64::from(MSS) || rtt > Duration::from_secs(1);
        prop_assert!(slow || bw >= link / 100 * 90, "{bw} of {link}: {:?}", path.states);
    }
}
