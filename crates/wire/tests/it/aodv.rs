//! Tests of AODV messages: byte layouts, round trips, and a parser that never panics.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::Ipv4Addr;

use anabranch_wire::aodv::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(3561), failure_persistence: None, ..Config::default() }
}

const ORIGINATOR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

const REQUEST: RouteRequest = RouteRequest {
    join: false,
    repair: false,
    gratuitous: true,
    destination_only: false,
    hop_count: 3,
    id: 0x0102_0304,
    destination: DESTINATION,
    destination_sequence: None,
    originator: ORIGINATOR,
    originator_sequence: SequenceNumber(7),
};

const REPLY: RouteReply = RouteReply {
    repair: false,
    acknowledge: true,
    prefix_size: 0,
    hop_count: 2,
    destination: DESTINATION,
    destination_sequence: SequenceNumber(0xffff_fffe),
    originator: ORIGINATOR,
    lifetime: 6000,
    hello_interval: None,
};

/// Encodes the message, and checks that parsing returns it unchanged.
fn written(message: &Message) -> Vec<u8> {
    let mut out = b"before".to_vec();
    emit(message, &mut out).unwrap();
    let octets = out.split_off(6);
    assert_eq!(parse(&octets), Ok(Parsed { message: message.clone(), unknown_extensions: 0 }));
    octets
}

#[test]
fn every_message_is_these_octets() {
    let request = [1, 0x28, 0, 3, 1, 2, 3, 4, 10, 0, 0, 9, 0, 0, 0, 0, 10, 0, 0, 1, 0, 0, 0, 7];
    assert_eq!(written(&Message::Request(REQUEST)), request);
    let known = RouteRequest {
        destination_sequence: Some(SequenceNumber(5)),
        destination_only: true,
        gratuitous: false,
        ..REQUEST
    };
    assert_eq!(written(&Message::Request(known))[1], 0x10);
    let multicast = RouteRequest { join: true, repair: true, ..REQUEST };
    assert_eq!(written(&Message::Request(multicast))[1], 0xe8);
    let reply = [2, 0x40, 0, 2, 10, 0, 0, 9, 255, 255, 255, 254, 10, 0, 0, 1, 0, 0, 0x17, 0x70];
    assert_eq!(written(&Message::Reply(REPLY)), reply);
    let hello = RouteReply { hello_interval: Some(1000), ..REPLY };
    assert_eq!(written(&Message::Reply(hello))[20..], [1, 4, 0, 0, 3, 0xe8]);
    let unreachable = vec![Unreachable { destination: DESTINATION, sequence: SequenceNumber(258) }];
    let error = Message::Error(RouteError { no_delete: true, unreachable });
    assert_eq!(written(&error), [3, 0x80, 0, 1, 10, 0, 0, 9, 0, 0, 1, 2]);
    assert_eq!(written(&Message::ReplyAck), [4, 0]);
}

/// RFC 3561 section 9: unknown extensions up to type 127 are skipped, those above are refused.
#[test]
fn unknown_extensions_are_skipped_unless_they_may_not_be() {
    let mut octets = written(&Message::Reply(REPLY));
    octets.extend([2, 3, 0, 0, 0, 127, 0]);
    assert_eq!(parse(&octets), Ok(Parsed { message: Message::Reply(REPLY), unknown_extensions: 2 }));
    octets.extend([128, 0]);
    assert_eq!(parse(&octets), Err(ParseError { field: Field::Extension, offset: 27 }));
    let mut request = written(&Message::Request(REQUEST));
    request.extend([9, 0]);
    assert_eq!(parse(&request), Ok(Parsed { message: Message::Request(REQUEST), unknown_extensions: 1 }));
    request.push(9);
    assert_eq!(parse(&request), Err(ParseError { field: Field::Extension, offset: 26 }));
}

#[test]
fn what_is_no_message_is_refused_with_its_place() {
    let at = |field, offset| Err(ParseError { field, offset });
    assert_eq!(parse(&[]), at(Field::Kind, 0));
    assert_eq!(parse(&[5, 0, 0, 0]), at(Field::Kind, 0));
    assert_eq!(parse(&[4]), at(Field::Body, 1));
    assert_eq!(parse(&[1; 23]), at(Field::Body, 1));
    assert_eq!(parse(&[3, 0, 0, 0]), at(Field::Destinations, 3));
    assert_eq!(parse(&[3, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0]), at(Field::Destinations, 3));
    let none = Message::Error(RouteError { no_delete: false, unreachable: vec![] });
    assert_eq!(emit(&none, &mut vec![]), Err(EmitError::Destinations(0)));
    let wide = Message::Reply(RouteReply { prefix_size: 32, ..REPLY });
    assert_eq!(emit(&wide, &mut vec![]), Err(EmitError::PrefixSize(32)));
}

/// RFC 3561 section 6.1: numbers are compared as signed differences, so a number that has wrapped
/// is newer.
#[test]
fn sequence_numbers_wrap() {
    let (last, first) = (SequenceNumber(u32::MAX), SequenceNumber(0));
    assert!(first.is_newer_than(last) && !last.is_newer_than(first));
    assert!(!first.is_newer_than(first));
    assert_eq!((last.next(), first.previous()), (first, last));
    assert_eq!((last.newer(first), first.newer(last)), (first, first));
    assert!(SequenceNumber(0x7fff_ffff).is_newer_than(first));
    assert!(!SequenceNumber(0x8000_0001).is_newer_than(first));
}

fn any_message() -> impl Strategy<Value = Message> {
    let address = || any::<u32>().prop_map(Ipv4Addr::from);
    let sequence = || any::<u32>().prop_map(SequenceNumber);
    let request = (
        any::<[bool; 4]>(),
        (any::<u8>(), any::<u32>()),
        address(),
        option::of(sequence()),
        address(),
        sequence(),
    )
        .prop_map(
            |(
                [join, repair, gratuitous, destination_only],
                (hop_count, id),
                destination,
                known,
                originator,
                own,
            )| {
                Message::Request(RouteRequest {
                    join,
                    repair,
                    gratuitous,
                    destination_only,
                    hop_count,
                    id,
                    destination,
                    destination_sequence: known,
                    originator,
                    originator_sequence: own,
                })
            },
        );
    let reply = (
        any::<[bool; 2]>(),
        (0_u8..32, any::<u8>(), any::<u32>()),
        address(),
        sequence(),
        address(),
        option::of(any::<u32>()),
    )
        .prop_map(
            |(
                [repair, acknowledge],
                (prefix_size, hop_count, lifetime),
                destination,
                known,
                originator,
                hello,
            )| {
                Message::Reply(RouteReply {
                    repair,
                    acknowledge,
                    prefix_size,
                    hop_count,
                    destination,
                    destination_sequence: known,
                    originator,
                    lifetime,
                    hello_interval: hello,
                })
            },
        );
    let unreachable =
        (address(), sequence()).prop_map(|(destination, sequence)| Unreachable { destination, sequence });
    let error = (any::<bool>(), vec(unreachable, 1..256))
        .prop_map(|(no_delete, unreachable)| Message::Error(RouteError { no_delete, unreachable }));
    prop_oneof![request, reply, error, Just(Message::ReplyAck)]
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn any_message_comes_back_as_it_was(message in any_message()) {
        written(&message);
    }

    #[test]
    fn no_octets_make_the_parser_panic(octets in vec(any::<u8>(), 0..80), kind in 0_u8..6) {
        let octets = [&[kind][..], &octets].concat();
        if let Ok(parsed) = parse(&octets) {
            let mut again = Vec::new();
            emit(&parsed.message, &mut again).unwrap();
            prop_assert_eq!(parse(&again).unwrap().message, parsed.message);
        }
    }
}
