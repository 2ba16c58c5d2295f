use super::*;
use crate::packet::{Packet, PacketSlab, Payload};

const MS: Duration = Duration::from_millis(1);

/// 1000 octets take 1 ms; 10 ms of delay; room for two packets.
fn config() -> LinkConfig {
    LinkConfig { queue: QueueLimit::Packets(2), ..LinkConfig::new(8_000_000, MS * 10) }
}

fn link(config: LinkConfig) -> Link {
    Link::new(NodeId(0), NodeId(1), config, |purpose: &str| Stream::new(1, 0, "test", purpose))
}

fn handles(n: usize) -> Vec<PacketHandle> {
    let mut slab = PacketSlab::default();
    let packet = || Packet {
        id: 0,
        src: NodeId(0),
        dst: NodeId(1),
        wire_len: 1000,
        identification: 0,
        hop_limit: 1,
        traffic_class: 0,
        path: 0,
        payload: Payload::Tcp(Default::default()),
    };
    (0..n).map(|_| slab.insert(packet())).collect()
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
    assert_eq!(link.offer(at(0), h[0]), Offer::AcceptedFirst(at(11)));
    assert_eq!(link.offer(at(0), h[1]), Offer::Accepted);
    assert_eq!(link.arrive(at(11)).next, Some(at(16)));
    assert_eq!(link.arrive(at(16)).next, None);
    // The distance is long over.
    assert_eq!(link.offer(at(20), h[2]), Offer::AcceptedFirst(at(31)));
}

#[test]
fn packets_queue_behind_each_other_and_the_last_is_refused() {
    let mut link = link(config());
    let h = handles(4);
    assert_eq!(link.offer(at(0), h[0]), Offer::AcceptedFirst(at(11)));
    assert_eq!(link.offer(at(0), h[1]), Offer::Accepted);
    assert_eq!(link.offer(at(0), h[2]), Offer::Accepted);
    assert_eq!(link.offer(at(0), h[3]), Offer::Refused(LinkDrop::QueueFull));
    assert_eq!(link.queued(at(0)), (2, 2000));
    // The first wait ends with the first transmission.
    assert_eq!(link.queued(at(1)), (1, 1000));
    assert_eq!(link.offer(at(1), h[3]), Offer::Accepted);
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

/// RFC 3168 section 5: what waits behind more than the threshold is marked, if its transport understands that, and
/// nothing else about it changes.
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
                if let Offer::AcceptedFirst(at) = link.offer(at(0), handle) {
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
    let offers: Vec<_> = [1000, 1000, 501, 500].iter().map(|n| link.offer(at(0), of_length(h, *n))).collect();
    assert_eq!(offers[2], Offer::Refused(LinkDrop::QueueFull));
    assert_eq!(offers[3], Offer::Accepted);
    assert_eq!(link.metrics().peak_bytes, 1500);
}

#[test]
fn going_down_cuts_what_has_not_left() {
    let mut link = link(config());
    let h = handles(3);
    for handle in &h {
        link.offer(at(0), *handle);
    }
    let mut cut = Vec::new();
    let next = link.take_down(at(1), |handle| cut.push(handle));
    assert_eq!((next, cut), (Some(at(11)), vec![h[1], h[2]]));
    assert_eq!(link.generation(), 1);
    assert_eq!(link.offer(at(2), h[1]), Offer::Refused(LinkDrop::Down));
    link.bring_up();
    assert_eq!(link.offer(at(3), h[1]), Offer::Accepted);
    assert_eq!(link.arrive(at(11)).next, Some(at(14)));
    assert_eq!((link.metrics().cut, link.metrics().busy), (2, MS * 2));
}

#[test]
fn a_new_rate_holds_from_the_next_transmission() {
    let mut link = link(config());
    let h = handles(3);
    for handle in &h {
        link.offer(at(0), *handle);
    }
    // The first is on its way; the other two go ten times as slow.
    assert_eq!(link.set_rate(Instant::from_nanos(500_000), 800_000), Some(at(11)));
    assert_eq!(link.arrive(at(11)).next, Some(at(21)));
    assert_eq!(link.arrive(at(21)).next, Some(at(31)));
    assert_eq!(link.metrics().busy, MS * 21);
}

/// Deterministic arrivals at 0.9 of the rate never wait; at 1.1 of it the n-th waits n (T - A).
#[test]
fn waiting_has_its_closed_form() {
    for (gap_us, expected_us) in [(1111, 0), (900, 99 * 100)] {
        let mut link = link(LinkConfig { queue: QueueLimit::Packets(1000), ..config() });
        let h = handles(1)[0];
        for n in 0..100 {
            link.offer(Instant::ZERO + Duration::from_micros(gap_us * n), h);
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
        link.offer(now, h);
        waited += link.flights.back().unwrap().start.saturating_since(now).as_secs_f64();
    }
    let expected = rho * 1e-3 / (2.0 * (1.0 - rho));
    let mean = waited / f64::from(n);
    assert!((mean / expected - 1.0).abs() < 0.02, "{mean} instead of {expected}");
}
