mod changes;
mod courses;

use anabranch_units::{Probability, Span};

use super::*;
use crate::link::QueueLimit;
use crate::link::discipline::codel::CodelConfig;
use crate::link::discipline::pie::PieConfig;
use crate::link::discipline::red::RedConfig;
use crate::link::discipline::tests::packets;
use crate::link::discipline::{DisciplineConfig, Fifo};

const MS: Duration = Duration::from_millis(1);

/// 1000 bytes take 1 ms; 10 ms of delay; room for two packets.
fn config() -> LinkConfig {
    LinkConfig { queue: QueueLimit::Packets(2), ..LinkConfig::new(8_000_000, MS * 10) }
}

fn link(config: LinkConfig) -> Cable {
    Cable::new(config, |purpose: &str| Stream::new(1, 0, "test", purpose))
}

fn handles(n: usize) -> Vec<PacketHandle> {
    packets(n, Ecn::NotEct)
}

fn of_length(mut handle: PacketHandle, octets: u32) -> PacketHandle {
    handle.wire_len = octets;
    handle
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + MS * ms
}

#[test]
fn transmissions_keep_their_distance() {
    let mut link = link(LinkConfig { spacing: MS * 5, ..config() });
    let h = handles(3);
    assert_eq!(link.offer(at(0), h[0], Flow::default), Offer::AcceptedFirst(at(11)));
    assert_eq!(link.offer(at(0), h[1], Flow::default), Offer::Accepted);
    assert_eq!(link.arrive(at(11)).next, Some(at(16)));
    assert_eq!(link.arrive(at(16)).next, None);
    // The least distance between transmissions has long passed.
    assert_eq!(link.offer(at(20), h[2], Flow::default), Offer::AcceptedFirst(at(31)));
}

#[test]
fn packets_queue_behind_each_other_and_the_last_is_refused() {
    let mut link = link(config());
    let h = handles(4);
    assert_eq!(link.offer(at(0), h[0], Flow::default), Offer::AcceptedFirst(at(11)));
    assert_eq!(link.offer(at(0), h[1], Flow::default), Offer::Accepted);
    assert_eq!(link.offer(at(0), h[2], Flow::default), Offer::Accepted);
    assert_eq!(link.offer(at(0), h[3], Flow::default), Offer::Refused(LinkDrop::QueueFull));
    assert_eq!(link.queued(at(0)), (2, 2000));
    // The first wait ends with the first transmission.
    assert_eq!(link.queued(at(1)), (1, 1000));
    assert_eq!(link.offer(at(1), h[3], Flow::default), Offer::Accepted);
    let mut due = Some(at(11));
    let mut arrivals = Vec::new();
    while let Some(now) = due {
        let arrival = link.arrive(now);
        arrivals.push((now, arrival.handle));
        due = arrival.next;
    }
    assert_eq!(arrivals, [(at(11), h[0]), (at(12), h[1]), (at(13), h[2]), (at(14), h[3])]);
    let m = link.metrics();
    assert_eq!((m.enqueued, m.delivered, m.dropped_full, m.peak_packets, m.busy), (4, 4, 1, 2, MS * 4));
}

/// RFC 3168 section 5: a packet that waits behind more than the threshold is marked if its
/// transport supports ECN; nothing else about it changes.
#[test]
fn packets_are_marked_above_the_threshold() {
    for threshold in [QueueLimit::Packets(2), QueueLimit::Bytes(2500)] {
        let queue = QueueLimit::Packets(10);
        let config = LinkConfig { queue, ecn_threshold: Some(threshold), ..config() };
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            let mut link = link(config);
            let mut due = None;
            for mut handle in handles(6) {
                handle.ecn = ecn;
                if let Offer::AcceptedFirst(at) = link.offer(at(0), handle, Flow::default) {
                    due = Some(at);
                }
            }
            let mut seen = Vec::new();
            while let Some(now) = due {
                let arrival = link.arrive(now);
                seen.push(arrival.handle.ecn);
                due = arrival.next;
            }
            let marked = if ecn.is_capable() { Ecn::Ce } else { ecn };
            assert_eq!(seen, [ecn, ecn, ecn, marked, marked, marked], "{threshold:?}");
            let new = ecn.is_capable() && ecn != Ecn::Ce;
            assert_eq!(link.metrics().marked, if new { 3 } else { 0 });
        }
    }
}

#[test]
fn a_limit_in_octets_counts_octets() {
    let mut link = link(LinkConfig { queue: QueueLimit::Bytes(1500), ..config() });
    let h = handles(1)[0];
    let offers: Vec<_> =
        [1000, 1000, 501, 500].iter().map(|n| link.offer(at(0), of_length(h, *n), Flow::default)).collect();
    assert_eq!(offers[2], Offer::Refused(LinkDrop::QueueFull));
    assert_eq!(offers[3], Offer::Accepted);
    assert_eq!(link.metrics().peak_bytes, 1500);
}

#[test]
fn going_down_cuts_what_has_not_left() {
    let mut link = link(config());
    let h = handles(3);
    for handle in &h {
        link.offer(at(0), *handle, Flow::default);
    }
    let mut cut = Vec::new();
    let next = link.take_down(at(1), |handle| cut.push(handle));
    assert_eq!((next, cut), (Some(at(11)), vec![h[1], h[2]]));
    assert_eq!(link.generation(), 1);
    assert_eq!(link.offer(at(2), h[1], Flow::default), Offer::Refused(LinkDrop::Down));
    link.bring_up();
    assert_eq!(link.offer(at(3), h[1], Flow::default), Offer::Accepted);
    assert_eq!(link.arrive(at(11)).next, Some(at(14)));
    assert_eq!((link.metrics().cut, link.metrics().busy), (2, MS * 2));
}

#[test]
fn a_new_rate_holds_from_the_next_transmission() {
    let mut link = link(config());
    let h = handles(3);
    for handle in &h {
        link.offer(at(0), *handle, Flow::default);
    }
    // The first is in transmission; the other two are ten times as slow.
    assert_eq!(link.set_rate(Instant::from_nanos(500_000), 800_000), Some(at(11)));
    assert_eq!(link.arrive(at(11)).next, Some(at(21)));
    assert_eq!(link.arrive(at(21)).next, Some(at(31)));
    assert_eq!(link.metrics().busy, MS * 21);
}

/// Deterministic arrivals at 0.9 of the rate never wait; at 1.1 of it the n-th packet waits n (T -
/// A).
#[test]
fn waiting_has_its_closed_form() {
    for (gap_us, expected_us) in [(1111, 0), (900, 99 * 100)] {
        let mut link = link(LinkConfig { queue: QueueLimit::Packets(1000), ..config() });
        let h = handles(1)[0];
        for n in 0..100 {
            link.offer(Instant::ZERO + Duration::from_micros(gap_us * n), h, Flow::default);
        }
        let last = link.flights.back().unwrap();
        let offered = Instant::ZERO + Duration::from_micros(gap_us * 99);
        assert_eq!(last.start.saturating_since(offered), Duration::from_micros(expected_us));
    }
}

/// M/D/1: the mean wait is rho T / (2 (1 - rho)) (Pollaczek-Khinchine).
#[test]
fn poisson_arrivals_wait_as_pollaczek_and_khinchine_say() {
    let mut link =
        link(LinkConfig { queue: QueueLimit::Packets(u32::MAX), delay: Duration::ZERO, ..config() });
    let mut stream = Stream::new(2, 0, "test", "arrivals");
    let h = handles(1)[0];
    let (mut now, mut waited, n, rho) = (Instant::ZERO, 0.0, 400_000, 0.8);
    for _ in 0..n {
        now += Duration::from_secs_f64(stream.exponential() * 1e-3 / rho);
        while link.flights.front().is_some_and(|f| f.arrival <= now) {
            let due = link.flights[0].arrival;
            link.arrive(due);
        }
        link.offer(now, h, Flow::default);
        waited += link.flights.back().unwrap().start.saturating_since(now).as_secs_f64();
    }
    let expected = rho * 1e-3 / (2.0 * (1.0 - rho));
    let mean = waited / f64::from(n);
    assert!((mean / expected - 1.0).abs() < 0.02, "{mean} instead of {expected}");
}

/// A drop-tail queue as a discipline, which is asked for every packet.
#[derive(Debug)]
struct Tail(Fifo);

impl Discipline for Tail {
    fn pass(&mut self, _: Instant, _: &mut PacketHandle, _: Flow, _: &mut Verdicts) -> bool {
        true
    }

    fn enqueue(&mut self, now: Instant, packet: PacketHandle, _: Flow, verdicts: &mut Verdicts) {
        self.0.push(now, packet, verdicts);
    }

    fn dequeue(&mut self, _: Instant, _: &mut Verdicts) -> Option<PacketHandle> {
        self.0.pop().map(|(packet, _)| packet)
    }

    fn queued(&self) -> (usize, u64) {
        self.0.queued()
    }

    fn clear(&mut self, _: Instant) -> Vec<PacketHandle> {
        self.0.clear()
    }
}

/// An operation on a link.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Offer(u32),
    Rate(u64),
    Cut,
    Down,
    Up,
}

fn deeds() -> impl proptest::strategy::Strategy<Value = Vec<(u64, Deed)>> {
    use proptest::prelude::*;
    let deed = prop_oneof![
        20 => (40..1500u32).prop_map(Deed::Offer),
        1 => (100_000..50_000_000u64).prop_map(Deed::Rate),
        1 => Just(Deed::Cut),
        1 => Just(Deed::Down),
        1 => Just(Deed::Up),
    ];
    proptest::collection::vec((0..2000u64, deed), 1..200)
}

/// A link driven by its two kinds of events, with the results: arrivals and drops with their times,
/// and packets that were cut.
struct Driven {
    link: Cable,
    arrival: Option<Instant>,
    departure: Option<Instant>,
    arrived: Vec<(Instant, PacketHandle, bool)>,
    dropped: Vec<(Instant, PacketHandle)>,
    gone: Vec<PacketHandle>,
}

impl Driven {
    fn new(link: Cable) -> Self {
        let (arrival, departure) = (None, None);
        Self { link, arrival, departure, arrived: Vec::new(), dropped: Vec::new(), gone: Vec::new() }
    }

    /// Runs all events until `now`; the events at `now` only with `all`.
    fn run_until(&mut self, now: Instant, all: bool) {
        loop {
            let next = [self.departure, self.arrival].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at < now || all && *at == now) else { return };
            if self.departure == Some(at) {
                self.depart(at);
            } else {
                let arrival = self.link.arrive(at);
                self.arrival = arrival.next;
                self.arrived.push((at, arrival.handle, arrival.lost));
            }
        }
    }

    fn run(&mut self, now: Instant) {
        self.run_until(now, true);
    }

    fn depart(&mut self, now: Instant) {
        let departure = self.link.depart(now);
        self.departure = departure.next;
        if let Some((_, arrival)) = departure.packet.filter(|_| departure.is_first) {
            self.arrival = Some(arrival);
        }
        self.drop_at(now);
    }

    fn drop_at(&mut self, now: Instant) {
        for (packet, _) in self.link.take_dropped() {
            self.dropped.push((now, packet));
            self.gone.push(packet);
        }
    }

    fn act(&mut self, now: Instant, deed: Deed, handle: PacketHandle) {
        match deed {
            Deed::Offer(len) => {
                let handle = of_length(handle, len);
                match self.link.offer(now, handle, || Flow(u64::from(len % 5))) {
                    Offer::DepartFirst => {
                        self.depart(now);
                        return self.act(now, deed, handle);
                    }
                    Offer::AcceptedFirst(at) => self.arrival = Some(at),
                    Offer::Accepted => {}
                    Offer::Waits(due) => self.departure = due.or(self.departure),
                    Offer::Refused(_) => self.gone.push(handle),
                }
            }
            Deed::Rate(rate) => self.arrival = self.link.set_rate(now, rate),
            Deed::Cut | Deed::Down => {
                let mut cut = Vec::new();
                let keep = |handle| cut.push(handle);
                self.arrival = match deed {
                    Deed::Cut => self.link.cut(now, keep),
                    _ => self.link.take_down(now, keep),
                };
                self.gone.extend(cut);
            }
            Deed::Up => self.link.bring_up(),
        }
        self.drop_at(now);
    }
}

/// All disciplines; those with a mean are configured to follow a short queue.
fn disciplines() -> Vec<DisciplineConfig> {
    let red = RedConfig { weight: Probability(0.2), ..Default::default() };
    let burst = Span(Duration::ZERO);
    let pie = PieConfig { burst, ..Default::default() };
    vec![
        DisciplineConfig::Codel(Default::default()),
        DisciplineConfig::FqCodel(Default::default()),
        DisciplineConfig::Pie(pie),
        DisciplineConfig::Red(red),
    ]
}

fn with(queue: Box<dyn Discipline>, config: LinkConfig) -> Cable {
    Cable { managed: Some(Cable::managed_by(queue)), is_plain: false, ..link(config) }
}

proptest::proptest! {
    /// For a drop-tail queue it makes no difference whether the departure of a packet is known when
    /// it is queued, or the queue is asked for each packet.
    #[test]
    fn a_discipline_that_does_nothing_changes_nothing(
        deeds in deeds(),
        packets in 0..6u32,
        octets: bool,
        // Whether events of the link at the time of an operation come before it.
        before: bool,
        // Packets and waits of such a size that some are at the same time.
        step in proptest::sample::select(vec![1, 500]),
        course in proptest::sample::select(courses::courses()),
    ) {
        let queue = if octets { QueueLimit::Bytes(u64::from(packets) * 1000) } else { QueueLimit::Packets(packets) };
        let loss = LossModel::Bernoulli { p: 0.1 };
        let config = LinkConfig { queue, loss, ..config() };
        let (mut plain, mut asked) =
            (Driven::new(link(config)), Driven::new(with(Box::new(Tail(Fifo::new(queue))), config)));
        if !course.is_none() {
            plain.link.follow(&course);
            asked.link.follow(&course);
        }
        let mut now = Instant::ZERO;
        for (handle, (wait, deed)) in handles(deeds.len()).into_iter().zip(&deeds) {
            now += Duration::from_micros(*wait / step * step);
            for driven in [&mut plain, &mut asked] {
                // A packet whose transmission begins at the time of a new rate still has the old
                // one.
                driven.run_until(now, before || matches!(deed, Deed::Rate(_)));
                let deed = match *deed {
                    Deed::Offer(len) if step > 1 => Deed::Offer(len.div_ceil(500) * 500),
                    deed => deed,
                };
                driven.act(now, deed, handle);
                driven.run(now);
            }
            proptest::prop_assert_eq!(plain.link.queued(now), asked.link.queued(now));
            proptest::prop_assert_eq!(plain.link.waiting(now), asked.link.waiting(now));
            proptest::prop_assert_eq!(plain.link.in_flight(), asked.link.in_flight());
            proptest::prop_assert_eq!(plain.link.busy(now), asked.link.busy(now));
            proptest::prop_assert!(plain.link.busy(now) <= now.saturating_since(Instant::ZERO));
        }
        for driven in [&mut plain, &mut asked] {
            driven.run(Instant::FAR_FUTURE);
        }
        // The loss of a packet is drawn when its transmission begins, so packets that were cut
        // before have drawn nothing.
        let cut = plain.link.metrics().cut > 0;
        let seen = |driven: &Driven| driven.arrived.iter().map(|(at, packet, lost)| (*at, packet.wire_len, *lost && !cut)).collect::<Vec<_>>();
        proptest::prop_assert_eq!(seen(&plain), seen(&asked));
        proptest::prop_assert_eq!(plain.gone.len(), asked.gone.len());
        let same = |metrics: &LinkMetrics| (metrics.enqueued, metrics.dropped_full, metrics.dropped_down, metrics.cut, metrics.peak_packets, metrics.peak_bytes, metrics.busy);
        proptest::prop_assert_eq!(same(plain.link.metrics()), same(asked.link.metrics()));
    }

    /// Whatever happens, each packet arrives once or is dropped once, and the counters agree.
    #[test]
    fn no_discipline_loses_count(
        deeds in deeds(),
        packets in 1..40u32,
        ecn: bool,
        discipline in proptest::sample::select(disciplines()),
        course in proptest::sample::select(courses::courses()),
    ) {
        let config = LinkConfig { queue: QueueLimit::Packets(packets), discipline, rate: 500_000, ..config() };
        let mut link = link(config);
        if !course.is_none() {
            link.follow(&course);
        }
        let mut driven = Driven::new(link);
        let (mut now, mut offered) = (Instant::ZERO, 0);
        for (mut handle, (wait, deed)) in handles(deeds.len()).into_iter().zip(&deeds) {
            now += Duration::from_micros(*wait);
            handle.ecn = if ecn { Ecn::Ect0 } else { Ecn::NotEct };
            driven.run(now);
            driven.act(now, *deed, handle);
            offered += u64::from(matches!(deed, Deed::Offer(_)));
            let m = *driven.link.metrics();
            proptest::prop_assert_eq!(m.enqueued + m.dropped_full + m.dropped_down, offered);
            let ends = m.delivered + m.dropped_loss + m.dropped_early + m.cut;
            proptest::prop_assert_eq!(m.enqueued, ends + driven.link.in_flight() as u64);
        }
        driven.run(Instant::FAR_FUTURE);
        proptest::prop_assert_eq!(driven.link.in_flight(), 0);
        proptest::prop_assert_eq!((driven.arrived.len() + driven.gone.len()) as u64, offered);
        let drops_marked = matches!(discipline, DisciplineConfig::Red(_) | DisciplineConfig::Pie(_));
        proptest::prop_assert!(!ecn || drops_marked || driven.link.metrics().dropped_early == 0);
        proptest::prop_assert!(ecn || driven.link.metrics().marked == 0);
    }
}

/// A queued packet: index, arrival time and length in bytes.
type Came = (usize, Instant, u32);

/// CoDel as described in RFC 8289, for packets without ECN, with its own transmitter: a second
/// implementation, in the order and with the state of the RFC's pseudocode. The maximum packet size
/// is that of the largest packet so far.
#[derive(Default)]
struct Oracle {
    target: u64,
    interval: u64,
    rate: u64,
    queue: VecDeque<Came>,
    largest: u64,
    /// 0 stands for never, as in the pseudocode.
    first_above: u64,
    drop_next: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
    /// Time at which the transmitter finishes its packet; `None` while it is idle.
    done: Option<Instant>,
    dropped: Vec<(Instant, usize)>,
}

impl Oracle {
    fn law(&self, from: u64) -> u64 {
        from + (self.interval as f64 / (self.count as f64).sqrt()).round() as u64
    }

    /// The head, and whether it may be dropped.
    fn head(&mut self, now: u64) -> (Option<Came>, bool) {
        let Some(head) = self.queue.pop_front() else {
            self.first_above = 0;
            return (None, false);
        };
        let sojourn = now - head.1.as_nanos();
        let left: u64 = self.queue.iter().map(|(.., len)| u64::from(*len)).sum();
        if sojourn < self.target || left <= self.largest {
            self.first_above = 0;
            (Some(head), false)
        } else if self.first_above == 0 {
            self.first_above = now + self.interval;
            (Some(head), false)
        } else {
            (Some(head), now >= self.first_above)
        }
    }

    fn dequeue(&mut self, at: Instant) -> Option<Came> {
        let now = at.as_nanos();
        let (mut head, mut may_drop) = self.head(now);
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.dropped.push((at, head.expect("it may be dropped").0));
                self.count += 1;
                (head, may_drop) = self.head(now);
                if may_drop {
                    self.drop_next = self.law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            self.dropped.push((at, head.expect("it may be dropped").0));
            (head, _) = self.head(now);
            self.dropping = true;
            let delta = self.count - self.last_count;
            let recent = now < self.drop_next + 16 * self.interval;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.law(now);
            self.last_count = self.count;
        }
        head
    }

    /// The transmitter takes the next packet, if there is one.
    fn begin(&mut self, now: Instant) {
        self.done = self.dequeue(now).map(|(.., len)| now + transmission_time(len, self.rate));
    }

    fn run(&mut self, now: Instant) {
        while let Some(done) = self.done.filter(|done| *done <= now) {
            self.begin(done);
        }
    }

    fn offer(&mut self, now: Instant, who: usize, len: u32) {
        self.largest = self.largest.max(len.into());
        self.queue.push_back((who, now, len));
        if self.done.is_none() {
            self.begin(now);
        }
    }

    /// Drops all packets that wait or are in transmission.
    fn cut(&mut self, now: Instant) {
        self.queue.clear();
        self.begin(now);
    }
}

/// Packets of equal length at intervals of `gap` microseconds; optionally a cut; then a pause in
/// microseconds.
#[derive(Clone, Copy, Debug)]
struct Burst {
    packets: usize,
    gap: u64,
    len: u32,
    cut: bool,
    pause: u64,
}

fn bursts() -> impl proptest::strategy::Strategy<Value = Vec<Burst>> {
    use proptest::prelude::*;
    let (gap, cut) = (prop_oneof![0..100u64, 0..2500u64], proptest::bool::weighted(0.2));
    let burst = (1..80usize, gap, 40..1500u32, cut, 0..60_000u64);
    proptest::collection::vec(burst, 1..40).prop_map(|bursts| {
        let named = |(packets, gap, len, cut, pause)| Burst { packets, gap, len, cut, pause };
        bursts.into_iter().map(named).collect()
    })
}

proptest::proptest! {
    /// Bursts and pauses, with occasional cuts.
    #[test]
    fn codel_drops_what_the_pseudocode_drops_and_when(
        bursts in bursts(),
        interval in 1000..30_000u64,
        share in 1..100u64,
    ) {
        let [target, interval] = [interval * share / 100, interval].map(Duration::from_micros);
        let codel = CodelConfig { target: Span(target), interval: Span(interval) };
        let queue = QueueLimit::Packets(u32::MAX);
        let config = LinkConfig { queue, discipline: DisciplineConfig::Codel(codel), ..config() };
        let mut driven = Driven::new(link(config));
        let [target, interval] = [target, interval].map(Duration::as_nanos);
        let mut oracle = Oracle { target, interval, rate: config.rate, ..Oracle::default() };
        let handles = handles(bursts.iter().map(|burst| burst.packets).sum());
        let (mut now, mut who) = (Instant::ZERO, 0);
        for Burst { packets, gap, len, cut, pause } in bursts {
            for _ in 0..packets {
                now += Duration::from_micros(gap);
                driven.run(now);
                driven.act(now, Deed::Offer(len), handles[who]);
                oracle.run(now);
                oracle.offer(now, who, len);
                who += 1;
            }
            if cut {
                driven.act(now, Deed::Cut, handles[0]);
                oracle.cut(now);
            }
            now += Duration::from_micros(pause);
        }
        driven.run(Instant::FAR_FUTURE);
        oracle.run(Instant::FAR_FUTURE);
        let expected: Vec<_> = oracle.dropped.iter().map(|&(at, who)| (at, of_length(handles[who], 0))).collect();
        let dropped: Vec<_> = driven.dropped.iter().map(|&(at, packet)| (at, of_length(packet, 0))).collect();
        proptest::prop_assert_eq!(dropped, expected);
    }
}

/// Packets of 1 ms arrive every half millisecond for `millis`. Returns the times of drops in
/// milliseconds, and the link.
fn overloaded(millis: u64, ecn: Ecn) -> (Vec<f64>, Cable) {
    let queue = QueueLimit::Packets(100_000);
    let discipline = DisciplineConfig::Codel(Default::default());
    let mut driven = Driven::new(link(LinkConfig { queue, discipline, ..config() }));
    for (i, mut handle) in (0..).zip(handles(2 * millis as usize)) {
        let now = Instant::ZERO + Duration::from_micros(500 * i);
        // The transmitter becomes free at whole milliseconds.
        driven.run(now);
        handle.ecn = ecn;
        driven.act(now, Deed::Offer(1000), handle);
    }
    let times = driven.dropped.iter().map(|(at, _)| at.as_secs_f64() * 1e3).collect();
    (times, driven.link)
}

#[test]
fn codel_drops_after_an_interval_and_then_more_and_more_often() {
    let (times, _) = overloaded(2000, Ecn::NotEct);
    // The n-th packet arrives at n / 2 ms and leaves the queue at n ms: from the tenth on, packets
    // have waited for 5 ms. This lasts for 100 ms.
    let first = 10.0 + 100.0;
    assert_eq!(times[0], first);
    // The second drop follows after 100 ms, and later ones after 100 ms divided by the square root
    // of the number of drops (section 3.3).
    let mut due = first;
    for (k, at) in (1..).zip(&times[1..]) {
        due += 100.0 / f64::from(k).sqrt();
        // The transmitter takes a packet in each millisecond.
        assert!((*at - due).abs() <= 1.0, "drop {k} at {at} ms, due at {due} ms");
    }
    assert!(times.len() > 80, "{}", times.len());
}

#[test]
fn codel_marks_what_can_be_marked_as_often_as_it_drops_what_cannot() {
    let (dropped, link) = overloaded(1000, Ecn::NotEct);
    assert_eq!((dropped.len() as u64, link.metrics().marked), (link.metrics().dropped_early, 0));
    let (none, marking) = overloaded(1000, Ecn::Ect0);
    assert_eq!((none.len(), marking.metrics().dropped_early), (0, 0));
    assert!(marking.metrics().marked.abs_diff(dropped.len() as u64) <= 1);
}

#[test]
fn codel_lets_bursts_pass() {
    // 90 packets at the same time wait for up to 90 ms; no interval has passed.
    let queue = QueueLimit::Packets(1000);
    let discipline = DisciplineConfig::Codel(Default::default());
    let mut driven = Driven::new(link(LinkConfig { queue, discipline, ..config() }));
    for handle in handles(90) {
        driven.act(at(0), Deed::Offer(1000), handle);
    }
    driven.run(at(200));
    // A queue that is never longer than a packet is no standing queue.
    for (i, handle) in (0..).zip(handles(1000)) {
        driven.run(at(1000 + i));
        driven.act(at(1000 + i), Deed::Offer(1000), handle);
    }
    driven.run(Instant::FAR_FUTURE);
    assert_eq!((driven.gone.len(), driven.arrived.len()), (0, 1090));
}
