//! Tests of RDCA datagrams: round trips, and parsers that never panic.

use anabranch_wire::rdca::*;
use bytes::Bytes;
use proptest::prelude::*;

fn report() -> impl Strategy<Value = Report> {
    (any::<[u32; 6]>(), any::<[bool; 2]>()).prop_map(
        |([stream, next, echo, interval, rtt, share], [delayed, complete])| Report {
            stream: StreamId(stream),
            next: Seq(next),
            echo: TimeStamp(echo),
            interval,
            rtt,
            share,
            delayed,
            complete,
        },
    )
}

fn ranges() -> impl Strategy<Value = Ranges> {
    (any::<u32>(), proptest::collection::vec((1u32..=65_535, 1u32..=65_535), 0..=MAX_RANGES)).prop_map(
        |(first, steps)| {
            let mut ranges = Ranges::EMPTY;
            let mut at = Seq(first);
            for (gap, length) in steps {
                let start = at + gap;
                at = start + length;
                assert!(ranges.push(Range { start, end: at }));
            }
            ranges
        },
    )
}

fn data() -> impl Strategy<Value = Data> {
    let payload = proptest::collection::vec(any::<u8>(), 0..300);
    (any::<[u32; 3]>(), any::<[bool; 3]>(), any::<Option<u32>>(), (0usize..3, 1usize..=3), payload).prop_map(
        |([stream, seq, time], [last, confirm, repeated], rtt, (at, of), payload)| Data {
            stream: StreamId(stream),
            seq: Seq(seq),
            time: TimeStamp(time),
            last,
            confirm,
            repeated,
            rtt,
            piece: Piece::of(at, of),
            payload: payload.into(),
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let reason = prop_oneof![
        Just(RefuseReason::UnknownStream),
        Just(RefuseReason::NoRoom),
        Just(RefuseReason::Version)
    ];
    prop_oneof![
        (0u8..16, any::<[u32; 3]>(), any::<u16>()).prop_map(
            |(version, [incarnation, first, time], datagram)| {
                let (incarnation, first, time) = (Incarnation(incarnation), Seq(first), TimeStamp(time));
                Message::Request(Request { version, incarnation, first, time, datagram })
            }
        ),
        any::<[u32; 4]>().prop_map(|[incarnation, stream, echo, rtt]| {
            let (incarnation, stream) = (Incarnation(incarnation), StreamId(stream));
            Message::Reply(Reply { incarnation, stream, echo: TimeStamp(echo), rtt })
        }),
        data().prop_map(Message::Data),
        (report(), ranges()).prop_map(|(report, missing)| Message::Snack(Snack { report, missing })),
        report().prop_map(Message::Congestion),
        report().prop_map(Message::Confirm),
        (any::<[u32; 3]>(), any::<bool>()).prop_map(|([stream, end, time], last)| {
            Message::Probe(Probe { stream: StreamId(stream), end: Seq(end), time: TimeStamp(time), last })
        }),
        (any::<u32>(), ranges())
            .prop_map(|(stream, ranges)| Message::Gone(Gone { stream: StreamId(stream), ranges })),
        (reason, any::<u32>()).prop_map(|(reason, answers)| Message::Refuse(Refuse { reason, answers })),
        any::<u32>().prop_map(|stream| Message::Reset(StreamId(stream))),
    ]
}

fn written(message: &Message) -> Bytes {
    let mut octets = Vec::new();
    encode(message, &mut octets);
    octets.into()
}

fn printed(message: &Message) -> Bytes {
    let mut octets = Vec::new();
    Header::Printed.encode(message, &mut octets);
    octets.into()
}

/// The part of a message that survives the printed header, for a receiver with nearly right
/// expectations.
fn left(message: &Message) -> Message {
    let cut = |ranges: Ranges| {
        let mut left = Ranges::EMPTY;
        let mut room = 132;
        for range in ranges.as_slice() {
            let len = range.len().min(room);
            left.push(Range { start: range.start, end: range.start + len });
            room -= len;
        }
        left
    };
    match message.clone() {
        Message::Data(m) => {
            let time = TimeStamp(m.time.0 & !1023);
            let Data { stream, seq, piece, payload, .. } = m;
            Message::Data(Data { stream, seq, time, piece, payload, ..Data::default() })
        }
        Message::Snack(m) => Message::Snack(Snack { missing: cut(m.missing), ..m }),
        Message::Gone(m) => Message::Gone(Gone { ranges: cut(m.ranges), ..m }),
        other => other,
    }
}

proptest! {
    #[test]
    fn the_printed_header_keeps_what_it_has_room_for(
        message in message(),
        ahead in -4000i32..4000,
        late in -30_000_000i32..30_000_000,
    ) {
        let mut expected = Expected::default();
        if let Message::Data(data) = &message {
            let seq = Seq(data.seq.0.wrapping_add_signed(ahead));
            expected = Expected { stream: data.stream, seq, time: TimeStamp(data.time.0.wrapping_add_signed(late)) };
        }
        prop_assert_eq!(Header::Printed.decode(&printed(&message), expected), Ok(left(&message)));
    }

    #[test]
    fn nothing_in_the_printed_header_panics(octets in proptest::collection::vec(any::<u8>(), 0..120)) {
        let octets = Bytes::from(octets);
        match Header::Printed.decode(&octets, Expected { stream: StreamId(1), ..Expected::default() }) {
            // A refusal of stream 0 is read as one of the expected stream.
            Ok(Message::Refuse(_)) => {}
            Ok(message) => prop_assert_eq!(printed(&message), octets),
            Err(error) => prop_assert!(error.offset <= octets.len()),
        }
    }

    #[test]
    fn what_is_written_is_read(message in message()) {
        prop_assert_eq!(decode(&written(&message)), Ok(message));
    }

    #[test]
    fn nothing_panics_and_what_is_read_is_written_the_same(octets in proptest::collection::vec(any::<u8>(), 0..120)) {
        let octets = Bytes::from(octets);
        match decode(&octets) {
            Ok(message) => prop_assert_eq!(written(&message), octets),
            Err(error) => prop_assert!(error.offset <= octets.len()),
        }
    }

    #[test]
    fn a_message_that_is_cut_or_longer_is_refused(message in message(), cut in any::<prop::sample::Index>()) {
        let whole = written(&message);
        if !matches!(message, Message::Data(_)) {
            prop_assert!(decode(&whole.slice(..cut.index(whole.len()))).is_err());
            let longer: Bytes = whole.iter().copied().chain([0]).collect();
            prop_assert!(decode(&longer).is_err());
        }
    }
}

#[test]
fn octets_are_those_of_the_documentation() {
    let data = Data {
        stream: StreamId(0x0102_0304),
        seq: Seq(5),
        time: TimeStamp(6),
        last: false,
        confirm: true,
        repeated: false,
        rtt: Some(7),
        piece: Piece::Whole,
        payload: Bytes::from_static(b"x"),
    };
    for (at, first) in [b'\xba', b'\xca', b'\xda'].into_iter().enumerate() {
        assert_eq!(written(&Message::Data(Data { piece: Piece::of(at, 3), ..data.clone() }))[0], first);
    }
    assert_eq!(written(&Message::Data(data))[..], *b"\x3a\x01\x02\x03\x04\0\0\0\x05\0\0\0\x06\0\0\0\x07x");
    let mut missing = Ranges::EMPTY;
    assert!(missing.push(Range { start: Seq(u32::MAX), end: Seq(1) }));
    assert!(missing.push(Range { start: Seq(4), end: Seq(5) }));
    assert!(!missing.push(Range { start: Seq(5), end: Seq(6) }), "it touches the last one");
    let report = Report { next: Seq(u32::MAX), share: 9, delayed: true, ..Report::default() };
    let snack = written(&Message::Snack(Snack { report, missing }));
    assert_eq!(snack[..9], *b"\x41\0\0\0\0\xff\xff\xff\xff");
    assert_eq!(snack[21..25], *b"\0\0\0\x09");
    assert_eq!(snack[25..], *b"\x02\xff\xff\xff\xff\0\x02\0\x03\0\x01");
}

#[test]
fn printed_lengths_are_those_of_section_3_2() {
    let mut missing = Ranges::EMPTY;
    assert!(missing.push(Range { start: Seq(7), end: Seq(9) }));
    let time = TimeStamp(3 << 10);
    let data =
        Data { seq: Seq(0x2005), time, piece: Piece::First, payload: vec![9; 296].into(), ..Data::default() };
    let request = Request { version: 1, incarnation: Incarnation(2), first: Seq(3), time, datagram: 300 };
    let reply = Reply { incarnation: Incarnation(2), stream: StreamId(3), echo: time, rtt: 4 };
    let report = Report::default();
    let lengths = [
        (Message::Request(request), 24),
        (Message::Reply(reply), 24),
        (Message::Congestion(report), 32),
        (Message::Snack(Snack { report, missing }), 36),
        (Message::Data(data.clone()), 300),
    ];
    for (message, length) in lengths {
        assert_eq!(printed(&message).len(), length, "{message:?}");
    }
    // 13 bits of the packet number, 16 bits of the time stamp.
    assert_eq!(printed(&Message::Data(data))[..5], *b"\x20\x05\0\x03\x09");
    assert_eq!(printed(&Message::Congestion(report))[..4], *b"\xe0\0\0\0");
}

#[test]
fn sequence_numbers_and_time_stamps_wrap() {
    assert!(Seq(u32::MAX).lt(Seq(0)) && Seq(0).le(Seq(0)) && !Seq(3).lt(Seq(u32::MAX)));
    assert_eq!(Seq(u32::MAX).max(Seq(1)), Seq(1));
    assert_eq!(Seq(u32::MAX).min(Seq(1)), Seq(u32::MAX));
    assert_eq!(TimeStamp(1).since(TimeStamp(u32::MAX)), 2);
}

/// The ends of an arbitrary range may lie where the order of packet numbers is reversed.
#[test]
fn a_range_within_another_lies_in_it() {
    let range = |start: u32, len: u32| Range { start: Seq(start), end: Seq(start.wrapping_add(len)) };
    for base in [0, 77, u32::MAX - 2] {
        let other = range(base, 5);
        for from in [0, 1, 4, 5, 6, i32::MAX as u32, 1 << 31, u32::MAX - 3, u32::MAX] {
            for len in [0, 1, 2, 9, 60_000, i32::MAX as u32] {
                let both = range(base.wrapping_add(from), len).within(other);
                let inside = |i: u32| other.start + i;
                assert!(
                    other.start.le(both.start) && both.end.le(other.end),
                    "{base} {from} {len}: {both:?}"
                );
                // Each of the five numbers, without using the order of packet numbers.
                for i in 0..5 {
                    let wanted = inside(i).0.wrapping_sub(base.wrapping_add(from)) < len;
                    let got = inside(i).0.wrapping_sub(both.start.0) < both.len();
                    assert_eq!(got, wanted, "{base} {from} {len} {i}: {both:?}");
                }
            }
        }
    }
}

#[test]
fn errors_name_the_field_and_its_place() {
    let error = |octets: &'static [u8]| decode(&Bytes::from_static(octets)).unwrap_err();
    assert_eq!(error(b""), DecodeError { field: "type", offset: 0 });
    assert_eq!(error(b"\xf0"), DecodeError { field: "type", offset: 0 });
    assert_eq!(error(b"\xa1\0\0\0\0"), DecodeError { field: "flags", offset: 0 });
    assert_eq!(error(b"\x30\0\0\0\0\0\0"), DecodeError { field: "sequence number", offset: 5 });
    assert_eq!(error(b"\xa0\0\0\0\0\0"), DecodeError { field: "end of the datagram", offset: 5 });
    assert_eq!(error(b"\x93\0\0\0\0"), DecodeError { field: "reason", offset: 0 });
    assert_eq!(error(b"\x80\0\0\0\0\x01\0\0\0\0\0\0").field, "range");
    assert!(error(b"\x80\0\0\0\0\x11").to_string().contains("first missing packet"));
}
