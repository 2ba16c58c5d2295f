//! Tests of RPL messages: byte layouts, round trips, and a parser that never panics.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::Ipv6Addr;

use anabranch_wire::icmpv6::{self, Header, Kind};
use anabranch_wire::rpl::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(6550), failure_persistence: None, ..Config::default() }
}

const NODE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 7);
const ENDS: [Ipv6Addr; 2] = [NODE, ALL_RPL_NODES];
const ROOT: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

/// The bytes of [`ROOT`].
const ROOT_OCTETS: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Encodes the message, and checks that parsing returns it unchanged. Returns code and body.
fn written(message: &Message) -> (u8, Vec<u8>) {
    let mut out = b"before".to_vec();
    emit(message, ENDS, &mut out).unwrap();
    let octets = out.split_off(6);
    assert_eq!(parse(&octets, ENDS), Ok(Parsed { message: message.clone(), unknown_options: 0 }));
    let (header, body) = icmpv6::parse(&octets, ENDS).unwrap();
    assert_eq!(header.kind, Kind::RPL);
    (header.code, octets[body].to_vec())
}

/// Parses a message with this code and body.
fn read(code: u8, body: &[u8]) -> Result<Parsed, ParseError> {
    let mut octets = Vec::new();
    icmpv6::emit(&Header { kind: Kind::RPL, code }, body, ENDS, &mut octets);
    parse(&octets, ENDS)
}

fn dio(options: Vec<ControlOption>) -> Message {
    Message::Dio(Dio {
        instance: 0,
        version: 240,
        rank: 512,
        grounded: true,
        mode: ModeOfOperation::STORING,
        preference: 3,
        dtsn: 7,
        dodag: ROOT,
        options,
    })
}

#[test]
fn every_base_object_is_these_octets() {
    assert_eq!(written(&Message::Dis(Dis::default())), (0, vec![0, 0]));
    let head = [0, 240, 2, 0, 0x93, 7, 0, 0];
    assert_eq!(written(&dio(vec![])), (1, [&head[..], &ROOT_OCTETS].concat()));
    let dao = Dao { instance: 0x80, ack_request: true, sequence: 9, dodag: Some(ROOT), options: vec![] };
    assert_eq!(written(&Message::Dao(dao.clone())), (2, [&[0x80, 0xc0, 0, 9][..], &ROOT_OCTETS].concat()));
    let dao = Dao { instance: 0, ack_request: false, dodag: None, ..dao };
    assert_eq!(written(&Message::Dao(dao)), (2, vec![0, 0, 0, 9]));
    let ack = DaoAck { instance: 0x80, sequence: 9, status: 130, dodag: Some(ROOT), options: vec![] };
    assert_eq!(
        written(&Message::DaoAck(ack.clone())),
        (3, [&[0x80, 0x80, 9, 130][..], &ROOT_OCTETS].concat())
    );
    assert_eq!(written(&Message::DaoAck(DaoAck { dodag: None, ..ack })), (3, vec![0x80, 0, 9, 130]));
}

#[test]
fn every_option_is_these_octets() {
    let of = |option| {
        let (_, body) = written(&Message::Dis(Dis { options: vec![option] }));
        body[2..].to_vec()
    };
    let objects = vec![7, 0, 0, 2, 0, 128];
    assert_eq!(of(ControlOption::DagMetricContainer(objects)), [2, 6, 7, 0, 0, 2, 0, 128]);
    let configuration = DodagConfiguration {
        authenticated: true,
        path_control_size: 5,
        interval_doublings: 8,
        interval_min: 12,
        redundancy: 10,
        max_rank_increase: 0x0102,
        min_hop_rank_increase: 256,
        objective_code_point: 1,
        default_lifetime: 30,
        lifetime_unit: 60,
    };
    let octets = [4, 14, 0x0d, 8, 12, 10, 1, 2, 1, 0, 0, 1, 0, 30, 0, 60];
    assert_eq!(of(ControlOption::DodagConfiguration(configuration)), octets);
    let target = |prefix_len| of(ControlOption::Target(Target { prefix_len, prefix: ROOT }));
    assert_eq!(target(128), [&[5, 18, 0, 128][..], &ROOT_OCTETS].concat());
    let short = Target { prefix_len: 9, prefix: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0) };
    assert_eq!(of(ControlOption::Target(short)), [5, 4, 0, 9, 0xfd, 0]);
    let transit = TransitInformation {
        external: true,
        path_control: 0xc0,
        path_sequence: 2,
        path_lifetime: 255,
        parent: None,
    };
    assert_eq!(of(ControlOption::TransitInformation(transit)), [6, 4, 0x80, 0xc0, 2, 255]);
    let transit = TransitInformation { external: false, parent: Some(ROOT), ..transit };
    let octets = [&[6, 20, 0, 0xc0, 2, 255][..], &ROOT_OCTETS].concat();
    assert_eq!(of(ControlOption::TransitInformation(transit)), octets);
    let solicited = SolicitedInformation { instance: Some(3), dodag: Some(ROOT), version: Some(9) };
    let octets = [&[7, 19, 3, 0xe0][..], &ROOT_OCTETS, &[9]].concat();
    assert_eq!(of(ControlOption::SolicitedInformation(solicited)), octets);
    let nobody = [&[7, 19][..], &[0; 19]].concat();
    assert_eq!(of(ControlOption::SolicitedInformation(SolicitedInformation::default())), nobody);
    let prefix = PrefixInformation {
        prefix_len: 64,
        on_link: false,
        autonomous: true,
        router_address: true,
        valid_lifetime: u32::MAX,
        preferred_lifetime: 0x0102_0304,
        prefix: ROOT,
    };
    let head = [8, 30, 64, 0x60, 255, 255, 255, 255, 1, 2, 3, 4, 0, 0, 0, 0];
    assert_eq!(of(ControlOption::PrefixInformation(prefix)), [&head[..], &ROOT_OCTETS].concat());
}

/// The extension of section III of the paper, in this project's encoding.
#[test]
fn paths_are_these_octets() {
    let traversed = PathTraversed { node_type: NodeType::MultiLink, multi_link: 2, path: vec![1, 2, 0x0304] };
    let (_, body) = written(&dio(vec![ControlOption::PathTraversed(traversed)]));
    assert_eq!(body[24..], [0xf0, 7, 0x21, 0, 1, 0, 2, 3, 4]);
    let built = PathBuilt { id: 9, path: vec![5, 0x0304, 1] };
    let options = vec![ControlOption::PathBuilt(built)];
    let dao = Dao { instance: 0, ack_request: false, sequence: 0, dodag: None, options };
    let (_, body) = written(&Message::Dao(dao));
    assert_eq!(body[4..], [0xf1, 7, 9, 0, 5, 3, 4, 0, 1]);
}

#[test]
fn padding_is_nothing_and_the_unknown_is_counted() {
    let body = [0xff, 0xff, 0, 1, 2, 9, 9, 0x77, 0, 0, 3, 1, 9, 6, 4, 0, 1, 2, 3, 1, 0];
    let parsed = read(0, &body).unwrap();
    assert_eq!(parsed.unknown_options, 2);
    assert!(matches!(parsed.message.options(), [ControlOption::TransitInformation(_)]));
}

#[test]
fn what_a_target_has_past_its_prefix_does_not_count() {
    let parsed = read(2, &[0, 0, 0, 1, 5, 5, 0, 12, 0xfd, 0xff, 0xff]).unwrap();
    let prefix = Ipv6Addr::new(0xfdf0, 0, 0, 0, 0, 0, 0, 0);
    assert_eq!(parsed.message.options(), [ControlOption::Target(Target { prefix_len: 12, prefix })]);
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    let refusal = |code, body: &[u8]| {
        let error = read(code, body).unwrap_err();
        (error.field, error.offset)
    };
    assert_eq!(refusal(0x80, &[0; 30]), (Field::Code, 1));
    for (code, len) in [(0, 1), (1, 23), (2, 3), (3, 3)] {
        assert_eq!(refusal(code, &vec![0; len]), (Field::Base, 4));
    }
    assert_eq!(refusal(2, &[0, 0x40, 0, 1, 0]), (Field::Base, 4));
    assert_eq!(refusal(0, &[0, 0, 9]), (Field::Option, 6));
    assert_eq!(refusal(0, &[0, 0, 0, 1, 3, 0, 0]), (Field::Option, 7));
    let contents: [(u8, &[u8]); 12] = [
        (4, &[0; 13]),
        (5, &[0]),
        (5, &[0, 129, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (5, &[0, 9, 0xfd]),
        (5, &[0; 19]),
        (6, &[0; 3]),
        (6, &[0; 5]),
        (7, &[0; 18]),
        (8, &[0; 31]),
        (0xf0, &[3, 0, 1]),
        (0xf0, &[]),
        (0xf1, &[0, 1]),
    ];
    for (kind, content) in contents {
        let body = [&[0, 0, kind, content.len() as u8][..], content].concat();
        assert_eq!(refusal(0, &body), (Field::OptionContent { kind }, 6), "{content:?}");
    }
    let mut octets = Vec::new();
    icmpv6::emit(&Header { kind: Kind(128), code: 0 }, &[0, 0], ENDS, &mut octets);
    assert_eq!(parse(&octets, ENDS).unwrap_err().field, Field::Kind);
    octets[5] ^= 1;
    let error = parse(&octets, ENDS).unwrap_err();
    assert_eq!(error.to_string(), "bad ICMPv6 checksum at octet 2 of an RPL message");
}

#[test]
fn what_no_message_can_say_is_refused() {
    let refused = |message: &Message| {
        let mut out = Vec::new();
        let error = emit(message, ENDS, &mut out).unwrap_err();
        assert!(out.is_empty());
        error.to_string()
    };
    let with = |option| Message::Dis(Dis { options: vec![option] });
    let path = vec![1; MAX_PATH + 1];
    let traversed = PathTraversed { node_type: NodeType::Ieee802154, multi_link: 0, path: path.clone() };
    let text = "number of nodes on a path 128 is more than 127";
    assert_eq!(refused(&with(ControlOption::PathTraversed(traversed))), text);
    assert_eq!(refused(&with(ControlOption::PathBuilt(PathBuilt { id: 1, path }))), text);
    let longest = PathBuilt { id: 1, path: vec![1; MAX_PATH] };
    written(&with(ControlOption::PathBuilt(longest)));
    refused(&with(ControlOption::DagMetricContainer(vec![0; 256])));
    refused(&with(ControlOption::Target(Target { prefix_len: 129, prefix: ROOT })));
    let Message::Dio(dio) = dio(vec![]) else { unreachable!() };
    refused(&Message::Dio(Dio { preference: 8, ..dio.clone() }));
    refused(&Message::Dio(Dio { mode: ModeOfOperation(8), ..dio }));
    let many = vec![ControlOption::DagMetricContainer(vec![0; 255]); 256];
    refused(&Message::Dis(Dis { options: many }));
}

/// RFC 6551 sections 2.1, 4.1, 4.2 and 4.3.2.
#[test]
fn metrics_are_these_octets() {
    let metrics = [Metric::Throughput(12_500), Metric::Latency(70_000), Metric::Etx(200)];
    let mut objects = Vec::new();
    emit_metrics(&metrics, &mut objects);
    let etx = [7, 0, 0, 2, 0, 200];
    assert_eq!(
        objects,
        [&[4, 0, 0x20, 4, 0, 0, 0x30, 0xd4, 5, 0, 0, 4, 0, 1, 0x11, 0x70][..], &etx].concat()
    );
    assert_eq!(parse_metrics(&objects).as_deref(), Some(&metrics[..]));
    assert_eq!(parse_metrics(&[]), Some(vec![]));
    // A hop count, a latency per link (R) and a limit of the latency (C) are not metrics of the
    // whole path.
    let others = [&[3, 0, 0, 2, 0, 1][..], &[5, 0, 0x80, 4, 0, 0, 0, 1], &[5, 2, 0, 4, 0, 0, 0, 1]].concat();
    assert_eq!(parse_metrics(&others), Some(vec![]));
    assert_eq!(parse_metrics(&[others, objects.clone()].concat()).as_deref(), Some(&metrics[..]));
    // Truncated, too short, and a throughput with additive aggregation.
    for bad in [&objects[..7], &[5, 0, 0, 3, 1, 1, 1], &[4, 0, 0, 4, 0, 0, 0, 1]] {
        assert_eq!(parse_metrics(bad), None, "{bad:?}");
    }
}

fn address() -> impl Strategy<Value = Ipv6Addr> {
    any::<[u8; 16]>().prop_map(Ipv6Addr::from)
}

prop_compose! {
    fn configuration()(
        authenticated: bool,
        path_control_size in 0u8..8,
        [interval_doublings, interval_min, redundancy, default_lifetime]: [u8; 4],
        [max_rank_increase, min_hop_rank_increase, objective_code_point, lifetime_unit]: [u16; 4],
    ) -> DodagConfiguration {
        DodagConfiguration {
            authenticated,
            path_control_size,
            interval_doublings,
            interval_min,
            redundancy,
            max_rank_increase,
            min_hop_rank_increase,
            objective_code_point,
            default_lifetime,
            lifetime_unit,
        }
    }
}

prop_compose! {
    fn target()(prefix_len in 0u8..=128, bits: u128) -> Target {
        let past = u128::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
        Target { prefix_len, prefix: Ipv6Addr::from_bits(bits & !past) }
    }
}

prop_compose! {
    fn transit()(
        external: bool,
        [path_control, path_sequence, path_lifetime]: [u8; 3],
        parent in option::of(address()),
    ) -> TransitInformation {
        TransitInformation { external, path_control, path_sequence, path_lifetime, parent }
    }
}

prop_compose! {
    fn prefix()(
        prefix_len in 0u8..=128,
        [on_link, autonomous, router_address]: [bool; 3],
        [valid_lifetime, preferred_lifetime]: [u32; 2],
        prefix in address(),
    ) -> PrefixInformation {
        PrefixInformation {
            prefix_len,
            on_link,
            autonomous,
            router_address,
            valid_lifetime,
            preferred_lifetime,
            prefix,
        }
    }
}

fn control_option() -> impl Strategy<Value = ControlOption> {
    let node_type =
        prop_oneof![Just(NodeType::Ieee802154), Just(NodeType::MultiLink), Just(NodeType::BaseStation)];
    let path = || vec(any::<u16>(), 0..=MAX_PATH);
    let solicited = (any::<Option<u8>>(), option::of(address()), any::<Option<u8>>());
    prop_oneof![
        vec(any::<u8>(), 0..=255).prop_map(ControlOption::DagMetricContainer),
        configuration().prop_map(ControlOption::DodagConfiguration),
        target().prop_map(ControlOption::Target),
        transit().prop_map(ControlOption::TransitInformation),
        solicited.prop_map(|(instance, dodag, version)| {
            ControlOption::SolicitedInformation(SolicitedInformation { instance, dodag, version })
        }),
        prefix().prop_map(ControlOption::PrefixInformation),
        (node_type, 0..16_u8, path()).prop_map(|(node_type, multi_link, path)| {
            ControlOption::PathTraversed(PathTraversed { node_type, multi_link, path })
        }),
        (any::<u8>(), path()).prop_map(|(id, path)| ControlOption::PathBuilt(PathBuilt { id, path })),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let options = || vec(control_option(), 0..6);
    let dio = (any::<[u8; 3]>(), any::<u16>(), any::<bool>(), [0u8..8, 0u8..8], address(), options());
    prop_oneof![
        options().prop_map(|options| Message::Dis(Dis { options })),
        dio.prop_map(|([instance, version, dtsn], rank, grounded, [mode, preference], dodag, options)| {
            let mode = ModeOfOperation(mode);
            Message::Dio(Dio { instance, version, rank, grounded, mode, preference, dtsn, dodag, options })
        }),
        (any::<[u8; 2]>(), any::<bool>(), option::of(address()), options()).prop_map(
            |([instance, sequence], ack_request, dodag, options)| {
                Message::Dao(Dao { instance, ack_request, sequence, dodag, options })
            }
        ),
        (any::<[u8; 3]>(), option::of(address()), options()).prop_map(
            |([instance, sequence, status], dodag, options)| {
                Message::DaoAck(DaoAck { instance, sequence, status, dodag, options })
            }
        ),
    ]
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn a_message_comes_back_as_it_was(message in message()) {
        written(&message);
    }

    #[test]
    fn no_octets_make_the_parser_panic(code in 0u8..5, body in vec(any::<u8>(), 0..120), octets in vec(any::<u8>(), 0..8)) {
        let _ = parse(&octets, ENDS);
        match read(code, &body) {
            Ok(parsed) => drop(written(&parsed.message)),
            Err(error) => prop_assert!(error.offset <= 4 + body.len()),
        }
    }

    #[test]
    fn a_message_that_is_cut_is_refused_or_shorter(message in message(), at: prop::sample::Index) {
        let (code, body) = written(&message);
        if let Ok(parsed) = read(code, &body[..at.index(body.len())]) {
            prop_assert!(message.options().starts_with(parsed.message.options()));
        }
    }
}
