//! Tests of each message, each time-out and each way to end a stream.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_core::rdca::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::rdca::{Link, Source, Way, World};
use anabranch_wire::rdca::{Data, Probe, Ranges, Reply, Report, Request, Snack, TimeStamp, encode};
use bytes::Bytes;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(n: u64) -> Instant {
    Instant::ZERO + ms(n)
}

fn packet(n: u8) -> Bytes {
    Bytes::from(vec![n; 20])
}

fn drain<T>(next: impl FnMut() -> Option<T>) -> Vec<T> {
    std::iter::from_fn(next).collect()
}

fn sends(sender: &mut Sender, now: Instant) -> Vec<Message> {
    drain(|| sender.poll_transmit(now))
}

fn events(sender: &mut Sender) -> Vec<SenderEvent> {
    drain(|| sender.poll_event())
}

/// An open sender with a round-trip time of 100 ms, at 100 ms.
fn open(config: SenderConfig) -> Sender {
    let mut sender = Sender::new(config, Incarnation(9), Seq(0));
    sender.open(at(0));
    assert!(matches!(sends(&mut sender, at(0))[..], [Message::Request(_)]));
    let reply = Reply { incarnation: Incarnation(9), stream: STREAM, echo: TimeStamp(0), rtt: 100_000 };
    sender.handle_message(at(100), &Message::Reply(reply));
    assert_eq!(events(&mut sender), [SenderEvent::Opened]);
    sender
}

const STREAM: StreamId = StreamId(77);

fn report(next: u32, now: Instant) -> Report {
    let echo = TimeStamp((now.as_nanos() / 1000) as u32 - 100_000);
    Report {
        stream: STREAM,
        next: Seq(next),
        echo,
        interval: 50_000,
        rtt: 100_000,
        share: 0,
        delayed: false,
        complete: false,
    }
}

fn snack(next: u32, missing: &[(u32, u32)], now: Instant) -> Message {
    let mut ranges = Ranges::EMPTY;
    for (start, end) in missing {
        assert!(ranges.push(Range { start: Seq(*start), end: Seq(*end) }));
    }
    Message::Snack(Snack { report: report(next, now), missing: ranges })
}

fn data(messages: &[Message]) -> Vec<&Data> {
    messages
        .iter()
        .filter_map(|message| if let Message::Data(data) = message { Some(data) } else { None })
        .collect()
}

fn numbers(messages: &[Message]) -> Vec<u32> {
    data(messages).iter().map(|data| data.seq.0).collect()
}

/// Runs a single sender until `end` and returns its messages with their times.
fn run(sender: &mut Sender, from: Instant, end: Instant) -> Vec<(u64, Message)> {
    let mut sent = Vec::new();
    let mut now = from;
    for _ in 0..20_000 {
        sent.extend(sends(sender, now).into_iter().map(|message| (now.as_nanos() / 1_000_000, message)));
        match sender.next_timeout() {
            Some(next) if next <= end => {
                now = now.max(next);
                sender.handle_timeout(now);
            }
            _ => return sent,
        }
    }
    panic!("a timer that was answered is still due");
}

/// A configuration without requests for confirmation.
fn patient(config: SenderConfig) -> SenderConfig {
    SenderConfig { tail_after: Duration::from_secs(3600), confirm_every: None, ..config }
}

#[test]
fn memory_is_what_the_documentation_says() {
    // The sizes are those of a 64-bit machine.
    if size_of::<usize>() != 8 {
        return;
    }
    let queue = usize::from(Config::default().sender.queue_packets) * (Sender::PER_PACKET + 300);
    assert!(size_of::<Sender>() <= 688, "{}", size_of::<Sender>());
    assert!(size_of::<Sender>() + 8 * 24 + queue < 10_000, "{}", size_of::<Sender>() + queue);
    assert_eq!((Sender::PER_PACKET, Sink::PER_HELD), (48, 64));
    let per_sender = Sink::PER_SENDER;
    assert!(per_sender <= 576, "{per_sender}");
}

#[test]
fn a_request_is_repeated_with_growing_waits_and_given_up() {
    let config = SenderConfig { request_tries: 4, ..SenderConfig::default() };
    let mut sender = Sender::new(config, Incarnation(9), Seq(5));
    // Section 3.1: the application's first packet opens the stream.
    assert_eq!(sender.write(at(0), packet(1)), Ok(Seq(5)));
    let sent = run(&mut sender, at(0), at(60_000));
    let times: Vec<u64> = sent.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 1000, 3000, 7000]);
    for (at, message) in &sent {
        let time = TimeStamp(*at as u32 * 1000);
        let (incarnation, first) = (Incarnation(9), Seq(5));
        assert_eq!(
            *message,
            Message::Request(Request { version: 1, incarnation, first, time, datagram: 300 })
        );
    }
    let (none, unsent) = (Range { start: Seq(5), end: Seq(5) }, Range { start: Seq(5), end: Seq(6) });
    let closed = SenderEvent::Closed { outcome: Outcome::NoAnswer, unknown: none, unsent };
    assert_eq!(events(&mut sender), [closed]);
    assert_eq!(sender.write(at(60_000), packet(1)), Err(WriteError::Closed));
}

#[test]
fn h17_the_round_trip_is_that_of_the_request_which_was_answered() {
    for (handshake, rtt) in [(HandshakeRtt::Own, 200), (HandshakeRtt::Sink, 64)] {
        let mut sender =
            Sender::new(SenderConfig { handshake, ..SenderConfig::default() }, Incarnation(9), Seq(0));
        sender.open(at(0));
        run(&mut sender, at(0), at(1500));
        let reply =
            |echo| Reply { incarnation: Incarnation(9), stream: STREAM, echo: TimeStamp(echo), rtt: 64_000 };
        sender.handle_message(at(1600), &Message::Reply(Reply { incarnation: Incarnation(8), ..reply(0) }));
        assert_eq!(events(&mut sender), []);
        sender.handle_message(at(1600), &Message::Reply(reply(1_400_000)));
        assert_eq!(sender.info().rtt, ms(rtt));
    }
}

#[test]
fn the_start_phase_sends_a_window_each_round_trip_and_grows() {
    // Section 3.3.1, as printed: two packets in a burst, and the window grows by one every 0.4 s.
    let mut sender = open(SenderConfig::paper());
    let mut now = at(100);
    let mut counts = Vec::new();
    for _ in 0..10 {
        while sender.write(now, packet(0)).is_ok() {}
        let sent = run(&mut sender, now, now + ms(99));
        counts.push(sent.len());
        now += ms(100);
    }
    assert_eq!(counts, [2, 2, 2, 2, 3, 3, 3, 3, 4, 4]);
    // Our configuration: the same number of packets, paced.
    let mut sender = open(SenderConfig::default());
    while sender.write(at(100), packet(0)).is_ok() {}
    let sent = run(&mut sender, at(100), at(299));
    assert_eq!(sent.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [100, 150, 200, 250]);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for (config, window) in [(SenderConfig::default(), 2), (SenderConfig::paper(), 12)] {
        let mut sender = open(patient(config));
        for i in 0..20 {
            sender.write(at(100 + 200 * i), packet(0)).unwrap();
            run(&mut sender, at(100 + 200 * i), at(100 + 200 * i));
        }
        sender.write(at(4_100), packet(0)).unwrap();
        run(&mut sender, at(4_100), at(4_100));
        assert_eq!(sender.info().window, window);
    }
}

#[test]
fn h13_the_first_snack_begins_the_controlled_phase_at_w_by_rtt() {
    let mut sender = open(SenderConfig::paper());
    for i in 0..2 {
        sender.write(at(100), packet(i)).unwrap();
    }
    run(&mut sender, at(100), at(150));
    assert_eq!(sender.info().phase, Phase::Start);
    sender.handle_message(at(200), &snack(0, &[(0, 1)], at(200)));
    let info = sender.info();
    // 2 packets of 300 bytes in 100 ms, not the reported 6000 bytes per second.
    assert_eq!((info.phase, info.rate, info.window), (Phase::Controlled, 6000, 2));
}

#[test]
fn h7_h8_a_notification_sets_rate_and_window_and_the_window_follows() {
    let mut sender = open(patient(SenderConfig::paper()));
    sender.write(at(100), packet(0)).unwrap();
    run(&mut sender, at(100), at(100));
    let congestion = Report { interval: 10_000, rtt: 200_000, ..report(0, at(200)) };
    sender.handle_message(at(200), &Message::Congestion(congestion));
    let info = sender.info();
    assert_eq!((info.phase, info.rate, info.window, info.rtt), (Phase::Controlled, 30_000, 20, ms(200)));
    // H9: the rate rises by one byte per second every 10 ms: 33,000 after 30 s, and the window is
    // recomputed.
    for i in 1..=30 {
        sender.write(at(200 + 1000 * i), packet(0)).unwrap();
        run(&mut sender, at(200 + 1000 * i), at(200 + 1000 * i));
    }
    assert_eq!((sender.info().rate, sender.info().window), (33_000, 22));
    // H8: the window is never below two.
    sender.handle_message(at(31_000), &Message::Congestion(Report { interval: 900_000, ..congestion }));
    assert_eq!((sender.info().rate, sender.info().window), (333, 2));
    // H16: a report without a rate does not change the rate.
    sender.handle_message(at(32_000), &Message::Congestion(Report { interval: 0, ..congestion }));
    assert_eq!(sender.info().rate, 433);
}

#[test]
fn a_modest_application_is_not_cut_to_what_it_offers() {
    let mut sender = open(patient(SenderConfig::default()));
    let offer = |sender: &mut Sender, from: u64, n: u64| {
        for i in 0..n {
            sender.write(at(from + 100 * i), packet(0)).unwrap();
            run(sender, at(from + 100 * i), at(from + 100 * i));
        }
    };
    offer(&mut sender, 200, 20);
    let congestion = Report { interval: 100_000, ..report(0, at(2300)) };
    sender.handle_message(at(2300), &Message::Congestion(congestion));
    // The receive rate is 3000, equal to the application's own rate.
    assert_eq!(sender.info().rate, 3750);
}

#[test]
fn a_reported_loss_withholds_the_rise() {
    // Section 3.3.2: the increase at the end of that interval is skipped.
    let mut sender = open(patient(SenderConfig::paper()));
    sender.handle_message(at(200), &snack(0, &[], at(200)));
    let rate = sender.info().rate;
    while sender.write(at(200), packet(0)).is_ok() {}
    run(&mut sender, at(200), at(215));
    sender.handle_message(
        at(215),
        &Message::Snack(Snack {
            report: Report { interval: 0, ..report(0, at(215)) },
            missing: Ranges::EMPTY,
        }),
    );
    run(&mut sender, at(215), at(999));
    sender.write(at(1_000), packet(0)).unwrap();
    run(&mut sender, at(1_000), at(1_000));
    let risen = sender.info().rate - rate;
    assert!((75..79).contains(&risen), "{risen} of 80");
}

#[test]
fn the_rise_accelerates_while_nothing_speaks_against_it() {
    let acceleration = Some(Acceleration { after: Duration::from_secs(4), doublings: 2, part: None });
    let mut sender =
        open(SenderConfig { acceleration, growth: Growth::Always, ..patient(SenderConfig::default()) });
    sender.handle_message(at(1_000), &Message::Congestion(report(0, at(1_000))));
    sender.write(at(1_000), packet(0)).unwrap();
    run(&mut sender, at(1_000), at(1_000));
    let rate = sender.info().rate;
    // 4 s at 100, 4 s at 200, 12 s at 400.
    sender.write(at(21_500), packet(0)).unwrap();
    run(&mut sender, at(21_500), at(21_500));
    let risen = sender.info().rate - rate;
    assert!((5_990..=6_210).contains(&risen), "{risen}");
}

#[test]
fn the_loss_list_goes_first() {
    let mut sender = open(SenderConfig::paper());
    for i in 0..8 {
        sender.write(at(100), packet(i)).unwrap();
    }
    assert_eq!(
        numbers(&run(&mut sender, at(100), at(299)).into_iter().map(|(_, m)| m).collect::<Vec<_>>()),
        [0, 1, 2, 3]
    );
    sender.handle_message(at(320), &snack(1, &[(1, 3)], at(320)));
    let sent: Vec<Message> = run(&mut sender, at(320), at(2_000)).into_iter().map(|(_, m)| m).collect();
    assert_eq!(numbers(&sent)[..4], [1, 2, 4, 5]);
    let repeated: Vec<bool> = data(&sent).iter().map(|data| data.repeated).collect();
    assert_eq!(repeated[..4], [true, true, false, false]);
    // Requested before the retransmission can have arrived, so it is still in transit.
    sender.handle_message(at(2_000), &snack(1, &[(7, 8)], at(2_000)));
    assert_eq!(sender.info().counters.repeated, 2);
}

#[test]
fn h11_a_packet_is_kept_for_two_round_trips_and_two_intervals() {
    let config =
        SenderConfig { queue_packets: 2, unsent_packets: 2, unsent_time: None, ..SenderConfig::paper() };
    let mut sender = open(config);
    for i in 0..2 {
        sender.write(at(100), packet(i)).unwrap();
    }
    run(&mut sender, at(100), at(110));
    // W/RTT is one packet each 50 ms: 2 * 100 + 2 * 50 after its transmission.
    assert_eq!(sender.write(at(399), packet(2)), Err(WriteError::Full));
    assert_eq!(sender.next_timeout(), Some(at(400)));
    assert!(!sender.is_writable(at(399)) && sender.is_writable(at(400)));
    sender.handle_timeout(at(400));
    assert_eq!(events(&mut sender), [SenderEvent::Writable]);
    assert_eq!(sender.write(at(400), packet(2)), Ok(Seq(2)));
    assert_eq!(sender.info().counters.presumed, 1);
    // Requested after all: the packet is lost and reported to the sink and the application, to the
    // latter once.
    for now in [450, 500] {
        sender.handle_message(at(now), &snack(0, &[(0, 1)], at(now)));
        let gone = sends(&mut sender, at(now));
        assert!(
            matches!(&gone[0], Message::Gone(gone) if gone.ranges.as_slice() == [Range { start: Seq(0), end: Seq(1) }])
        );
    }
    assert_eq!(events(&mut sender), [SenderEvent::Gone(Range { start: Seq(0), end: Seq(1) })]);
    // A requested packet is kept until it was retransmitted.
    sender.handle_message(at(900), &snack(0, &[(1, 2)], at(900)));
    assert!(!sender.is_writable(at(900)));
}

#[test]
fn a_datagram_is_no_longer_than_configured() {
    let mut sender = open(SenderConfig::default());
    assert_eq!(sender.max_payload(), 283);
    sender.write(at(100), Bytes::from(vec![0; 283])).unwrap();
    for message in sends(&mut sender, at(100)) {
        let mut octets = Vec::new();
        encode(&message, &mut octets);
        assert_eq!(octets.len(), 300);
    }
}

/// Section 3.2.1: longer data is split into consecutive packets.
#[test]
fn longer_data_is_cut_and_what_exceeds_half_of_the_queue_is_refused() {
    let mut sender = open(SenderConfig::paper());
    let most = 12 * 283;
    assert_eq!(sender.longest(), most);
    let error = sender.write(at(100), Bytes::from(vec![0; most + 1])).unwrap_err();
    assert_eq!(error, WriteError::TooLong { octets: most + 1, most });
    let written: Bytes = (0..600).map(|i| i as u8).collect();
    assert_eq!(sender.write(at(100), written.clone()), Ok(Seq(0)));
    assert_eq!(sender.write(at(100), packet(1)), Ok(Seq(3)));
    let sent: Vec<Message> = run(&mut sender, at(100), at(400)).into_iter().map(|(_, m)| m).collect();
    let pieces: Vec<Piece> = data(&sent).iter().map(|data| data.piece).collect();
    assert_eq!(pieces, [Piece::First, Piece::Middle, Piece::Last, Piece::Whole]);
    let octets: Vec<u8> = data(&sent)[..3].iter().flat_map(|data| data.payload.clone()).collect();
    assert_eq!(octets, written);
}

/// All data is accepted, or none; the sender reports when there is space for all.
#[test]
fn data_of_several_packets_waits_until_there_is_room_for_all() {
    for release in [Release::Presumed, Release::Confirmed] {
        let config = Config { sender: SenderConfig { release, ..SenderConfig::paper() }, ..Config::paper() };
        let mut world = World::new(config, vec![Source::new(ms(200), 60)], Link::new(20), Link::new(20), 5);
        world.sources[0].octets = 12 * 283;
        world.up.loss = 20;
        world.run(at(600_000), World::all_closed);
        let written = &world.sources[0].accepted;
        assert!(written.len() > 20 && world.sources[0].refused > 0, "{}", written.len());
        let delivered = world.delivered(0);
        assert_eq!(delivered.len(), written.len(), "{release:?}");
        for ((seq, octets), (number, payload, _)) in written.iter().zip(&delivered) {
            assert_eq!((seq, octets), (number, payload));
        }
        // The waits do not end by time-outs of a second each.
        assert!(world.now < at(60_000), "{:?}", world.now);
    }
}

fn printed() -> Config {
    let Config { sender, sink } = Config::paper();
    Config {
        sender: SenderConfig { header: Header::Printed, ..sender },
        sink: SinkConfig { header: Header::Printed, ..sink },
    }
}

/// 13-bit packet numbers and time stamps of 67 s wrap several times.
#[test]
fn h15_the_printed_header_carries_a_long_stream_over_losses() {
    let mut world = World::new(printed(), vec![Source::new(ms(10), 20_000)], Link::new(5), Link::new(5), 5);
    world.sources[0].octets = 296;
    (world.up.loss, world.down.loss) = (10, 10);
    world.run(at(400_000), World::all_closed);
    assert!(matches!(world.told[0].last(), Some(SenderEvent::Closed { outcome: Outcome::Complete, .. })));
    let (written, delivered) = (&world.sources[0].accepted, world.delivered(0));
    let gone: u32 =
        world.told[0].iter().map(|e| if let SenderEvent::Gone(range) = e { range.len() } else { 0 }).sum();
    assert!(written.len() > 19_000 && gone < 20, "{} {gone}", written.len());
    assert_eq!(delivered.len() + gone as usize, written.len());
    let mut written = written.iter();
    for (seq, octets, _) in delivered {
        assert!(written.any(|(number, payload)| (*number, payload) == (seq, &octets)), "{seq:?}");
    }
    // Each packet of 300 bytes has 296 bytes of application data.
    let packet = world.sent.iter().find(|(.., message)| matches!(message, Message::Data(_))).unwrap();
    let mut datagram = Vec::new();
    Header::Printed.encode(&packet.2, &mut datagram);
    assert_eq!(datagram.len(), 300);
    let again =
        world.sent.iter().filter(|(.., message)| matches!(message, Message::Data(data) if data.repeated));
    assert!((100..1_000).contains(&again.count()));
}

#[test]
fn h15_with_the_printed_header_a_sink_that_restarts_is_noticed() {
    let mut world = World::new(printed(), vec![Source::new(ms(50), 100)], Link::new(20), Link::new(20), 5);
    world.run(at(2_000), |_| false);
    world.sink = Sink::new(printed().sink, 0x9999);
    world.run(at(60_000), World::all_closed);
    assert!(world.told[0].iter().any(|event| matches!(event, SenderEvent::SinkLost { .. })));
    assert!(matches!(world.told[0].last(), Some(SenderEvent::Closed { outcome: Outcome::Complete, .. })));
    assert!(world.delivered(0).len() > 90);
}

#[test]
fn data_of_which_a_piece_is_gone_is_gone() {
    let config = SenderConfig { queue_packets: 6, unsent_packets: 6, ..SenderConfig::paper() };
    let mut world = World::new(
        Config { sender: config, ..Config::paper() },
        vec![Source::new(ms(400), 10)],
        Link::new(20),
        Link::new(20),
        5,
    );
    world.sources[0].octets = 3 * 283;
    // The middle packet of the third write is lost and requested too late.
    world.rule = Some(Box::new(|now, way, message| match (way, message) {
        (Way::Up(_), Message::Data(data)) => data.seq != Seq(7),
        (Way::Down(_), Message::Snack(_)) => now > at(2_500),
        _ => true,
    }));
    world.run(at(60_000), World::all_closed);
    let gone: Vec<(u32, u32)> = world
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            SinkEvent::Gone { range, .. } => Some((range.start.0, range.end.0)),
            _ => None,
        })
        .collect();
    assert_eq!(gone, [(6, 8), (8, 9)]);
    let delivered: Vec<u32> = world.delivered(0).iter().map(|(seq, ..)| seq.0).collect();
    let written: Vec<u32> = world.sources[0].accepted.iter().map(|(seq, _)| seq.0).collect();
    assert_eq!(delivered, written.into_iter().filter(|seq| *seq != 6).collect::<Vec<_>>());
    let told = SenderEvent::Gone(Range { start: Seq(7), end: Seq(8) });
    assert!(world.told[0].contains(&told), "{:?}", world.told[0]);
}

#[test]
fn h12_the_last_packet_is_confirmed_or_probed_for() {
    let mut sender = open(SenderConfig::paper());
    sender.write(at(100), packet(0)).unwrap();
    sender.close(at(100));
    let sent = run(&mut sender, at(100), at(2_000));
    assert!(matches!(&sent[0].1, Message::Data(data) if data.last && data.confirm));
    // Twice the round-trip time plus 0.2 s, then doubled each time.
    let probe = Message::Probe(Probe { stream: STREAM, end: Seq(1), time: TimeStamp(500_000), last: true });
    assert_eq!(sent[1], (500, probe));
    assert_eq!(sent[1..].iter().map(|(at, _)| *at).collect::<Vec<_>>(), [500, 900, 1700]);
    // A confirmation alone is not sufficient: the sink must know the end.
    sender.handle_message(at(2_000), &Message::Confirm(report(1, at(2_000))));
    assert_eq!(events(&mut sender), [SenderEvent::Confirmed { next: Seq(1) }]);
    sender.handle_message(at(2_100), &Message::Confirm(Report { complete: true, ..report(1, at(2_100)) }));
    let none = Range { start: Seq(1), end: Seq(1) };
    assert_eq!(
        events(&mut sender),
        [SenderEvent::Closed { outcome: Outcome::Complete, unknown: none, unsent: none }]
    );
    assert_eq!((sender.next_timeout(), sends(&mut sender, at(9_000))), (None, vec![]));
}

#[test]
fn a_sink_that_is_silent_is_given_up_and_what_is_unknown_is_told() {
    let config = SenderConfig { confirm_every: Some(4), ..SenderConfig::paper() };
    let mut sender = open(config);
    let mut sent = Vec::new();
    let mut taken = 0;
    for i in 0..2_000 {
        let now = at(100 + 75 * i);
        taken += u32::from(sender.write(now, packet(0)).is_ok());
        sent.extend(run(&mut sender, now, now + ms(74)));
    }
    // The fourth packet requests a confirmation; after three more probes no new packet is sent; the
    // twelfth probe is the last.
    let probes = sent.iter().filter(|(_, message)| matches!(message, Message::Probe(_))).count();
    let packets = numbers(&sent.into_iter().map(|(_, message)| message).collect::<Vec<_>>());
    assert_eq!(probes, 12);
    assert!(packets.len() < 60 && packets.len() as u32 <= taken, "{}", packets.len());
    let unknown = Range { start: Seq(0), end: Seq(packets.len() as u32) };
    let unsent = Range { start: unknown.end, end: Seq(taken) };
    let closed = SenderEvent::Closed { outcome: Outcome::NoAnswer, unknown, unsent };
    assert_eq!(events(&mut sender).last(), Some(&closed));
}

#[test]
fn a_lost_path_is_waited_for() {
    let mut sender = open(SenderConfig { standby: Standby::Probe, ..SenderConfig::default() });
    sender.path_lost(at(150));
    sender.write(at(150), packet(0)).unwrap();
    let sent = run(&mut sender, at(150), at(1_000));
    assert!(
        sent.iter().all(|(_, message)| matches!(message, Message::Probe(_))) && sent.len() >= 2,
        "{sent:?}"
    );
    sender.handle_message(at(1_000), &Message::Confirm(report(0, at(1_000))));
    assert_eq!(numbers(&sends(&mut sender, at(1_050))), [0]);
}

#[test]
fn a_lost_path_is_tried_with_one_packet_and_no_probe() {
    let mut sender = open(patient(SenderConfig::default()));
    sender.path_lost(at(150));
    sender.path_lost(at(160));
    for i in 0..4 {
        sender.write(at(150), packet(i)).unwrap();
    }
    // One packet after a round trip; without a message of the sink, the next follows two round
    // trips and 0.2 s later.
    let sent = |sender: &mut Sender, from, end| {
        let sent = run(sender, at(from), at(end));
        assert!(sent.iter().all(|(_, message)| matches!(message, Message::Data(_))), "{sent:?}");
        sent.iter().map(|(at, _)| *at).collect::<Vec<_>>()
    };
    assert_eq!(sent(&mut sender, 150, 640), [250]);
    let mut told = sender.clone();
    told.path_found(at(300));
    assert_eq!(sent(&mut told, 300, 310), [300]);
    assert_eq!(sent(&mut sender, 640, 650), [650]);
    // The path breaks again during the trial: the wait doubles.
    sender.path_lost(at(700));
    assert_eq!(sent(&mut sender, 700, 840), [800]);
    sender.path_lost(at(850));
    assert_eq!(sent(&mut sender, 850, 1_055), [1_050]);
    // A message of the sink ends the trial.
    sender.path_lost(at(1_060));
    sender.write(at(1_060), packet(4)).unwrap();
    sender.handle_message(at(1_100), &Message::Confirm(report(1, at(1_100))));
    assert_eq!(sent(&mut sender, 1_100, 1_150), [1_100]);
}

/// A sink that has answered a request; its packets arrive 20 ms after they were sent.
fn receiving(config: SinkConfig) -> (Sink, impl Fn(&mut Sink, u32, u64)) {
    let mut sink = Sink::new(config, 7);
    let request =
        Request { version: 1, incarnation: Incarnation(9), first: Seq(0), time: TimeStamp(0), datagram: 300 };
    sink.handle_message(at(20), PeerId(0), &Message::Request(request));
    let replies = drain(|| sink.poll_transmit(at(20)));
    let [(_, Message::Reply(Reply { stream, .. }))] = replies[..] else { panic!("{replies:?}") };
    let send = move |sink: &mut Sink, seq, now: u64| {
        let time = TimeStamp((now as u32 - 20) * 1000);
        let data = Data { stream, seq: Seq(seq), time, payload: packet(0), ..Data::default() };
        sink.handle_message(at(now), PeerId(0), &Message::Data(data));
    };
    (sink, send)
}

#[test]
fn gaps_are_collected_for_eight_intervals() {
    for (collect, snacks) in [(Duration::ZERO, 2), (Duration::from_secs(2), 1)] {
        let (mut sink, send) = receiving(SinkConfig { collect, ..SinkConfig::paper() });
        let mut sent = Vec::new();
        for seq in (0..40).filter(|seq| ![20, 24].contains(seq)) {
            let now = 100 + 100 * u64::from(seq);
            while let Some(next) = sink.next_timeout().filter(|next| *next <= at(now)) {
                sink.handle_timeout(next);
                sent.extend(
                    drain(|| sink.poll_transmit(next)).into_iter().map(|(_, message)| (next, message)),
                );
            }
            send(&mut sink, seq, now);
        }
        let first: Vec<_> = sent
            .iter()
            .filter_map(|(at, message)| match message {
                Message::Snack(snack) => Some((*at, snack.missing.as_slice().len())),
                _ => None,
            })
            .filter(|(now, _)| *now < at(3_100))
            .collect();
        match snacks {
            // Packet 21 arrives at 2200 ms.
            1 => assert_eq!(first[0], (at(2_200 + 800), 2)),
            _ => assert!(first.len() > 2 && first[0] == (at(2_220), 1), "{first:?}"),
        }
    }
}

#[test]
fn notifications_are_so_many_packets_apart() {
    let count = |notice_packets| {
        let sink = SinkConfig { notice_packets, ..SinkConfig::default() };
        let config = Config { sink, ..Config::default() };
        let mut world = World::new(config, vec![Source::new(ms(5), 4_000)], Link::new(20), Link::new(20), 5);
        world.up.service = ms(20);
        world.run_for(25);
        world.count(|message| matches!(message, Message::Congestion(_)))
    };
    let (all, few) = (count(0), count(400));
    assert!(all > 4 && (1..=4).contains(&few), "{all} {few}");
}

#[test]
fn a_sink_that_has_restarted_is_noticed() {
    let mut sender = open(SenderConfig::paper());
    for i in 0..5 {
        sender.write(at(100), packet(i)).unwrap();
    }
    run(&mut sender, at(100), at(150));
    let refuse = |answers| {
        Message::Refuse(anabranch_wire::rdca::Refuse { reason: RefuseReason::UnknownStream, answers })
    };
    sender.handle_message(at(160), &refuse(STREAM.0 + 1));
    assert_eq!(events(&mut sender), []);
    sender.handle_message(at(160), &refuse(STREAM.0));
    let unknown = Range { start: Seq(0), end: Seq(2) };
    assert_eq!(events(&mut sender), [SenderEvent::SinkLost { unknown }]);
    // Unsent packets continue in a new incarnation.
    let sent = sends(&mut sender, at(160));
    assert!(
        matches!(&sent[..], [Message::Request(r)] if r.first == Seq(2) && r.incarnation == Incarnation(10))
    );
    sender.close(at(170));
    let reply = Reply { incarnation: Incarnation(10), stream: StreamId(1), echo: TimeStamp(160_000), rtt: 0 };
    sender.handle_message(at(260), &Message::Reply(reply));
    assert_eq!(numbers(&sends(&mut sender, at(260))), [2, 3]);
}

#[test]
fn either_side_gives_up() {
    let mut sender = open(SenderConfig::default());
    sender.abort();
    assert_eq!(sends(&mut sender, at(200)), [Message::Reset(STREAM)]);
    assert!(matches!(events(&mut sender)[..], [SenderEvent::Closed { outcome: Outcome::Aborted, .. }]));
    let mut sender = open(SenderConfig::default());
    sender.handle_message(at(200), &Message::Reset(StreamId(1)));
    sender.handle_message(at(200), &Message::Reset(STREAM));
    assert!(matches!(events(&mut sender)[..], [SenderEvent::Closed { outcome: Outcome::Reset, .. }]));
    let mut sender = Sender::new(SenderConfig::default(), Incarnation(1), Seq(0));
    sender.close(at(0));
    assert!(matches!(events(&mut sender)[..], [SenderEvent::Closed { outcome: Outcome::Complete, .. }]));
}

fn world(packets: u32) -> World {
    World::new(Config::default(), vec![Source::new(ms(75), packets)], Link::new(20), Link::new(20), 1)
}

#[test]
fn two_senders_are_kept_apart_and_end_complete() {
    let sources = vec![Source::new(ms(75), 200), Source::new(ms(40), 300)];
    let mut world = World::new(Config::default(), sources, Link::new(20), Link::new(30), 1);
    world.run(at(60_000), World::all_closed);
    for sender in 0..2 {
        let delivered: Vec<(Seq, Bytes)> =
            world.delivered(sender).into_iter().map(|(seq, o, _)| (seq, o)).collect();
        assert_eq!(delivered, world.sources[sender].accepted);
        assert!(matches!(
            world.told[sender].last(),
            Some(SenderEvent::Closed { outcome: Outcome::Complete, .. })
        ));
    }
    assert_eq!(world.count(|message| matches!(message, Message::Snack(_) | Message::Probe(_))), 0);
    assert_eq!(world.sink.senders(), 2);
    // Their streams are remembered for a minute.
    world.run_for(61);
    assert_eq!((world.sink.senders(), world.sink.held()), (0, 0));
}

/// Loses the packets of `lost`, each as often as it occurs in the list.
fn losing(world: &mut World, lost: &[u32]) {
    let mut lost = lost.to_vec();
    world.rule = Some(Box::new(move |_, _, message| match message {
        Message::Data(data) => match lost.iter().position(|seq| *seq == data.seq.0) {
            Some(place) => {
                lost.remove(place);
                false
            }
            None => true,
        },
        _ => true,
    }));
}

fn snacks(world: &World) -> Vec<(u64, Vec<(u32, u32)>)> {
    let of = |(at, _, message): &(Instant, Way, Message)| match message {
        Message::Snack(snack) => {
            let ranges = snack.missing.as_slice().iter().map(|range| (range.start.0, range.end.0)).collect();
            Some((at.as_nanos() / 1_000_000, ranges))
        }
        _ => None,
    };
    world.sent.iter().filter_map(of).collect()
}

#[test]
fn a_snack_waits_half_a_round_trip_and_is_repeated_until_repaired() {
    let mut world = world(60);
    losing(&mut world, &[10, 11, 30, 30, 30]);
    world.run(at(60_000), World::all_closed);
    let snacks = snacks(&world);
    // Packet 12 is sent 75 * 12 ms and a round trip later than the first, and arrives after 20 ms;
    // half a round trip is 20 ms.
    assert_eq!(snacks[0], (900 + 20 + 20, vec![(10, 12)]));
    assert_eq!(snacks[1], (2325 + 40, vec![(30, 31)]));
    assert_eq!(
        snacks[2..].iter().map(|(_, ranges)| ranges.clone()).collect::<Vec<_>>(),
        vec![vec![(30, 31)]; 2]
    );
    // H12: repeated after one and a half round trips plus an interval, then after twice that time.
    let gaps: Vec<u64> = snacks[1..].windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!((100..150).contains(&gaps[0]) && gaps[1] > gaps[0] * 3 / 2, "{gaps:?}");
    assert_eq!(world.delivered(0).len(), 60);
    assert!(world.control_load() < 0.2);
}

#[test]
fn a_snack_that_is_lost_is_repeated() {
    let mut world = world(60);
    let mut lost = 2;
    world.rule = Some(Box::new(move |_, way, message| {
        let drop = matches!(message, Message::Snack(_)) && lost > 0;
        lost -= u32::from(drop);
        !(drop
            || matches!((way, message), (Way::Up(_), Message::Data(data)) if data.seq == Seq(10) && !data.repeated))
    }));
    world.run(at(60_000), World::all_closed);
    assert_eq!((world.delivered(0).len(), snacks(&world).len()), (60, 3));
    assert!(matches!(world.told[0].last(), Some(SenderEvent::Closed { outcome: Outcome::Complete, .. })));
}

#[test]
fn h12_the_paper_repeats_a_snack_after_each_round_trip() {
    let (mut sink, send) = receiving(SinkConfig::paper());
    send(&mut sink, 0, 100);
    send(&mut sink, 2, 200);
    let mut snacks = Vec::new();
    while let Some(next) = sink.next_timeout().filter(|next| *next < at(500)) {
        sink.handle_timeout(next);
        let sent = drain(|| sink.poll_transmit(next));
        assert!(matches!(sent[..], [(_, Message::Snack(_))]), "{sent:?}");
        snacks.push(next);
    }
    // Half a round trip of 40 ms after the gap was detected, then a round trip after each.
    assert_eq!(snacks, [220, 260, 300, 340, 380, 420, 460].map(at));
}

#[test]
fn reordering_within_half_a_round_trip_asks_for_nothing() {
    let mut world =
        World::new(Config::default(), vec![Source::new(ms(8), 300)], Link::new(60), Link::new(60), 3);
    world.up.jitter = ms(40);
    world.run(at(60_000), World::all_closed);
    assert_eq!(world.delivered(0).len(), world.sources[0].accepted.len());
    assert!(snacks(&world).len() < 5, "{:?}", snacks(&world));
}

#[test]
fn h12_a_pause_after_a_lost_packet_ends_in_a_probe() {
    let mut world = world(20);
    world.sources[0].left = 0;
    let now = world.now;
    world.senders[0].write(now, packet(1)).unwrap();
    world.run_for(5);
    losing(&mut world, &[2]);
    for i in 0..2 {
        let now = world.now;
        world.senders[0].write(now, packet(i)).unwrap();
    }
    world.run_for(10);
    assert_eq!(world.delivered(0).len(), 3);
    assert!(world.count(|message| matches!(message, Message::Probe(_))) >= 1);
    assert_eq!(snacks(&world).len(), 1);
}

#[test]
fn a_sink_that_restarts_tells_the_sender_and_goes_on() {
    let mut world = world(100);
    world.run(at(3_000), |_| false);
    world.sink = Sink::new(Config::default().sink, 0x9999);
    world.run(at(60_000), World::all_closed);
    let lost: Vec<Range> = world.told[0]
        .iter()
        .filter_map(|e| if let SenderEvent::SinkLost { unknown } = e { Some(*unknown) } else { None })
        .collect();
    assert_eq!(lost.len(), 1);
    let delivered: Vec<u32> = world.delivered(0).iter().map(|(seq, ..)| seq.0).collect();
    let missing: Vec<u32> = (0..100).filter(|seq| !delivered.contains(seq)).collect();
    assert!(!missing.is_empty() && missing.iter().all(|seq| lost[0].start.0 <= *seq && *seq < lost[0].end.0));
    assert!(delivered.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_sender_that_restarts_ends_its_old_stream() {
    let mut world = world(100);
    world.run(at(3_000), |_| false);
    world.senders[0] = Sender::new(Config::default().sender, Incarnation(555), Seq(1000));
    world.run(at(60_000), World::all_closed);
    let kinds: Vec<(StreamEnd, Seq)> =
        world
            .events
            .iter()
            .filter_map(|(_, event)| {
                if let SinkEvent::Ended { end, next, .. } = event { Some((*end, *next)) } else { None }
            })
            .collect();
    assert_eq!(kinds[0].0, StreamEnd::Replaced);
    assert_eq!(kinds[1].0, StreamEnd::Complete);
    assert!(
        world.events.iter().any(|(_, event)| matches!(event, SinkEvent::Opened { first: Seq(1000), .. }))
    );
}

#[test]
fn an_old_request_that_comes_late_ends_nothing() {
    let late: Rc<Cell<Option<Message>>> = Rc::default();
    let keep = late.clone();
    let mut world = world(40);
    world.rule = Some(Box::new(move |_, _, message| {
        if let Message::Request(request) = message {
            keep.set(Some(Message::Request(Request { incarnation: Incarnation(0), ..*request })));
        }
        true
    }));
    world.run(at(1_000), |_| false);
    world.sink.handle_message(at(1_000), PeerId(0), &late.take().unwrap());
    world.run(at(60_000), World::all_closed);
    assert_eq!(world.delivered(0).len(), 40);
    let ends = world.events.iter().filter(|(_, event)| matches!(event, SinkEvent::Ended { .. })).count();
    assert_eq!(ends, 1);
}

#[test]
fn a_full_sink_refuses_and_a_stranger_is_refused() {
    let mut config = Config::default();
    config.sink.senders = 1;
    let mut sink = Sink::new(config.sink, 1);
    let request = |incarnation| {
        let (time, datagram) = (TimeStamp(0), 300);
        Message::Request(Request {
            version: 1,
            incarnation: Incarnation(incarnation),
            first: Seq(0),
            time,
            datagram,
        })
    };
    sink.handle_message(at(0), PeerId(1), &request(1));
    sink.handle_message(at(0), PeerId(2), &request(2));
    let strange = Probe { stream: StreamId(4), end: Seq(0), time: TimeStamp(0), last: false };
    sink.handle_message(at(0), PeerId(1), &Message::Probe(strange));
    let old = Message::Request(Request {
        version: 2,
        incarnation: Incarnation(5),
        first: Seq(0),
        time: TimeStamp(0),
        datagram: 300,
    });
    sink.handle_message(at(0), PeerId(1), &old);
    sink.handle_datagram(at(0), PeerId(1), &Bytes::from_static(b"\xff"));
    let answers = drain(|| sink.poll_transmit(at(0)));
    let reasons: Vec<_> = answers
        .iter()
        .filter_map(
            |(peer, m)| if let Message::Refuse(r) = m { Some((peer.0, r.reason, r.answers)) } else { None },
        )
        .collect();
    assert_eq!(
        reasons,
        [(2, RefuseReason::NoRoom, 2), (1, RefuseReason::UnknownStream, 4), (1, RefuseReason::Version, 5)]
    );
    assert!(answers.iter().any(|(peer, message)| peer.0 == 1 && matches!(message, Message::Reply(_))));
    assert_eq!(sink.counters().malformed, 1);
    // Without data the request is forgotten, which frees its place.
    sink.handle_timeout(at(30_000));
    assert_eq!(sink.senders(), 0);
    sink.handle_message(at(30_000), PeerId(2), &request(2));
    assert!(matches!(drain(|| sink.poll_transmit(at(30_000)))[..], [(PeerId(2), Message::Reply(_))]));
}

#[test]
fn places_are_shared_and_a_packet_in_order_needs_none() {
    let mut config = Config::default();
    config.sink.held_packets = 5;
    config.sink.reorder_packets = 3;
    let mut sink = Sink::new(config.sink, 50);
    let send = |sink: &mut Sink, peer: u64, seq: u32| {
        let stream = StreamId(50 + peer as u32);
        let (time, payload) = (TimeStamp(seq), packet(seq as u8));
        let data = Data { stream, seq: Seq(seq), time, payload, ..Data::default() };
        sink.handle_message(at(10), PeerId(peer), &Message::Data(data));
    };
    for peer in 0..2 {
        let (incarnation, first, time) = (Incarnation(1), Seq(0), TimeStamp(0));
        sink.handle_message(
            at(0),
            PeerId(peer),
            &Message::Request(Request { version: 1, incarnation, first, time, datagram: 300 }),
        );
        for seq in [2, 4, 6, 8] {
            send(&mut sink, peer, seq);
        }
    }
    assert_eq!((sink.held(), sink.counters().no_room), (5, 3));
    for seq in [0, 1] {
        send(&mut sink, 0, seq);
    }
    let delivered =
        drain(|| sink.poll_event()).into_iter().filter(|e| matches!(e, SinkEvent::Packet { .. })).count();
    assert_eq!((delivered, sink.held()), (3, 4));
    sink.abort(PeerId(0));
    sink.abort(PeerId(1));
    assert_eq!((sink.held(), sink.senders()), (0, 0));
    let resets = drain(|| sink.poll_transmit(at(20)));
    assert_eq!(resets.iter().filter(|(_, message)| matches!(message, Message::Reset(_))).count(), 2);
}

#[test]
fn h10_notifications_keep_the_guard_time() {
    for config in [Config::paper(), Config::default()] {
        let mut world = World::new(config, vec![Source::new(ms(10), 3000)], Link::new(20), Link::new(20), 1);
        world.up.service = ms(30);
        world.up.jitter = ms(2);
        world.run(at(30_000), |_| false);
        let mut last = None;
        let mut count = 0;
        for (at, _, message) in &world.sent {
            if let Message::Congestion(report) = message {
                let guard = Duration::from_micros(u64::from(report.rtt)) * 2;
                assert!(last.is_none_or(|last| at.saturating_since(last) > guard.mul_ratio(9, 10)), "{at}");
                last = Some(*at);
                count += 1;
            }
        }
        assert!(count > 3, "{count}");
    }
}

#[test]
fn a_stream_passes_the_end_of_the_numbers_and_of_the_clock() {
    let mut world = world(0);
    world.sources[0] = Source::new(ms(50), 200);
    // 71.6 minutes: the time stamp wraps during the stream.
    let begin = Instant::ZERO + Duration::from_micros((1 << 32) - 5_000_000);
    world.now = begin;
    world.sources[0].next = begin;
    world.senders[0] = Sender::new(Config::default().sender, Incarnation(3), Seq(u32::MAX - 99));
    world.up.loss = 50;
    world.run(begin + Duration::from_secs(100), World::all_closed);
    assert_eq!(world.delivered(0).len(), 200);
    assert!(world.delivered(0).iter().all(|(_, _, delay)| *delay < ms(1_500)));
    assert!(matches!(world.told[0].last(), Some(SenderEvent::Closed { outcome: Outcome::Complete, .. })));
}

#[test]
fn idle_senders_are_forgotten() {
    let mut world = world(0);
    let now = world.now;
    world.senders[0].write(now, packet(0)).unwrap();
    world.run_for(299);
    assert_eq!(world.sink.senders(), 1);
    world.run_for(10);
    let ended =
        world.events.iter().any(|(_, event)| matches!(event, SinkEvent::Ended { end: StreamEnd::Idle, .. }));
    assert!(ended && world.sink.senders() == 0);
}

/// Carries all messages between the two, without delay.
fn exchange(sender: &mut Sender, sink: &mut Sink, now: Instant) {
    loop {
        let up = sends(sender, now);
        up.iter().for_each(|message| sink.handle_message(now, PeerId(1), message));
        let down = drain(|| sink.poll_transmit(now));
        down.iter().for_each(|(_, message)| sender.handle_message(now, message));
        if up.is_empty() && down.is_empty() {
            return;
        }
    }
}

fn delivered(sink: &mut Sink) -> Vec<u32> {
    let number = |event| if let SinkEvent::Packet { seq, .. } = event { Some(seq.0) } else { None };
    drain(|| sink.poll_event()).into_iter().filter_map(number).collect()
}

/// The sink confirms nothing that its owner has not stored, and a restart between delivery and
/// storage loses nothing.
#[test]
fn what_is_not_stored_is_not_confirmed_and_comes_again_after_a_restart() {
    let config = SinkConfig { confirmation: Confirmation::Stored, ..SinkConfig::default() };
    let restart = Restart::Resend;
    let mut sender = Sender::new(
        SenderConfig { restart, release: Release::Confirmed, ..SenderConfig::default() },
        Incarnation(9),
        Seq(0),
    );
    let mut sink = Sink::new(config, 1);
    let mut now = at(0);
    for n in 0..6 {
        sender.write(now, packet(n)).unwrap();
        exchange(&mut sender, &mut sink, now);
        now += ms(500);
        sender.handle_timeout(now);
        exchange(&mut sender, &mut sink, now);
    }
    assert_eq!(delivered(&mut sink), [0, 1, 2, 3, 4, 5]);
    assert_eq!(events(&mut sender), [SenderEvent::Opened], "nothing is stored");
    assert_eq!(sender.info().queued, 6);
    // A mark of the delivered packets; the sender, which has asked, is told without asking again.
    let mark = sink.mark(PeerId(1)).unwrap();
    sender.write(now, packet(6)).unwrap();
    exchange(&mut sender, &mut sink, now);
    sink.stored(now, PeerId(1), mark);
    exchange(&mut sender, &mut sink, now);
    assert_eq!(events(&mut sender), [SenderEvent::Confirmed { next: Seq(6) }]);
    assert_eq!(delivered(&mut sink), [6]);
    // The restarted sink gets the packet that was delivered and not stored, and the end.
    let mut sink = Sink::new(config, 1000);
    sender.close(now);
    for _ in 0..20 {
        now += ms(500);
        sender.handle_timeout(now);
        exchange(&mut sender, &mut sink, now);
    }
    assert_eq!(delivered(&mut sink), [6]);
    assert!(!events(&mut sender).iter().any(|event| matches!(event, SenderEvent::Closed { .. })));
    sink.stored(now, PeerId(1), mark);
    exchange(&mut sender, &mut sink, now);
    assert_eq!(sender.info().queued, 1, "the mark is of another stream");
    let mark = sink.mark(PeerId(1)).unwrap();
    sink.stored(now, PeerId(1), mark);
    exchange(&mut sender, &mut sink, now);
    let closed = events(&mut sender).pop();
    assert!(matches!(closed, Some(SenderEvent::Closed { outcome: Outcome::Complete, .. })), "{closed:?}");
}

/// A request for a confirmation waits for the owner to store the packet, so that one message
/// answers it; but not for long, since the sender would repeat the request.
#[test]
fn one_confirmation_answers_a_request_whose_packets_are_stored_soon() {
    let config = SinkConfig { confirmation: Confirmation::Stored, ..SinkConfig::default() };
    for (stored_after, confirms) in [(5, 1), (150, 2)] {
        let mut sender = Sender::new(SenderConfig::default(), Incarnation(9), Seq(0));
        let mut sink = Sink::new(config, 1);
        // The first packet asks for a confirmation.
        sender.write(at(0), packet(0)).unwrap();
        exchange(&mut sender, &mut sink, at(0));
        assert_eq!((delivered(&mut sink), sink.counters().confirms), (vec![0], 0));
        let mark = sink.mark(PeerId(1)).unwrap();
        assert_eq!(sink.next_timeout(), Some(at(100)));
        for ms in 0..=stored_after {
            if sink.next_timeout().is_some_and(|due| due <= at(ms)) {
                sink.handle_timeout(at(ms));
            }
            exchange(&mut sender, &mut sink, at(ms));
        }
        sink.stored(at(stored_after), PeerId(1), mark);
        exchange(&mut sender, &mut sink, at(stored_after));
        assert_eq!(sink.counters().confirms, confirms, "stored after {stored_after} ms");
        let confirmed = SenderEvent::Confirmed { next: Seq(1) };
        assert_eq!(events(&mut sender), [SenderEvent::Opened, confirmed]);
        assert_eq!(sender.info().counters.control, 1, "the request alone");
    }
}

/// A steady sender asks a silent sink now and then whether it still exists.
#[test]
fn a_packet_after_a_long_silence_of_the_sink_asks_for_a_confirmation() {
    let config = SenderConfig { confirm_every: None, ..SenderConfig::deployed(300, 1000) };
    // After 30 and 60 seconds; after 45 seconds.
    for (incarnation, confirms) in [(0, 2), (128, 1)] {
        let mut sender = Sender::new(config, Incarnation(incarnation), Seq(0));
        let mut sink = Sink::new(SinkConfig::default(), 1);
        let mut now = at(0);
        for _ in 0..=620 {
            sender.write(now, packet(0)).unwrap();
            exchange(&mut sender, &mut sink, now);
            now += ms(100);
        }
        assert_eq!(sink.counters().confirms, confirms);
        assert_eq!(sender.info().counters.control, 1, "the request alone");
    }
}

/// A sender of a daemon never gives up.
#[test]
fn a_limit_of_255_tries_is_none() {
    let config = SenderConfig { probe_tries: 255, request_tries: 255, ..SenderConfig::default() };
    let mut opening = Sender::new(config, Incarnation(9), Seq(0));
    opening.write(at(0), packet(1)).unwrap();
    let day = 24 * 3600 * 1000;
    assert!(run(&mut opening, at(0), at(day)).len() > 10_000);
    let mut open = open(config);
    open.write(at(100), packet(1)).unwrap();
    assert!(run(&mut open, at(100), at(day)).len() > 10_000);
    assert_eq!(events(&mut open), []);
}
