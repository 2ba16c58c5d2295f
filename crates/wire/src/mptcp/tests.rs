use alloc::vec;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::*;
use crate::tcp::Segment;

fn octets(options: &Mptcp) -> Vec<u8> {
    let mut out = vec![0; options.bare_len()];
    options.emit(&mut out);
    out
}

fn read_all(mut octets: &[u8]) -> Option<Mptcp> {
    let mut read = Mptcp::NONE;
    while !octets.is_empty() {
        let (option, rest) = octets.split_at(usize::from(octets[1]));
        assert_eq!(option[0], KIND);
        if !read.read(&option[2..]) {
            return None;
        }
        octets = rest;
    }
    Some(read)
}

#[test]
fn a_segment_grows_by_little() {
    assert!(size_of::<Mptcp>() <= 32, "{}", size_of::<Mptcp>());
    assert_eq!(Segment::default().wire_len(), 20);
}

/// The layouts of figures 4 to 16 of RFC 8684, byte by byte.
#[test]
fn layouts_are_those_of_the_figures() {
    let capable = |form| {
        MptcpOption::MpCapable(MpCapable {
            version: 1,
            checksum_required: false,
            extended: false,
            no_joins_here: false,
            hmac_sha256: true,
            form,
        })
    };
    let (sender, receiver) = (Key(0x0102_0304_0506_0708), Key(0x1112_1314_1516_1718));
    let keys = [1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
    let check = |option: MptcpOption, expected: &[u8]| {
        let options = Mptcp::only(option);
        assert_eq!(octets(&options), expected);
        assert_eq!(read_all(expected), Some(options));
    };
    check(capable(CapableForm::Syn), &[30, 4, 0x01, 0x01]);
    check(capable(CapableForm::SynAck { sender }), &[&[30, 12, 0x01, 0x01], &keys[..8]].concat());
    check(capable(CapableForm::Ack { sender, receiver }), &[&[30, 20, 0x01, 0x01], &keys[..]].concat());
    let data = |checksum| capable(CapableForm::Data { sender, receiver, len: 0x0105, checksum });
    check(data(None), &[&[30, 22, 0x01, 0x01], &keys[..], &[1, 5]].concat());
    check(data(Some(0xabcd)), &[&[30, 24, 0x01, 0x01], &keys[..], &[1, 5, 0xab, 0xcd]].concat());
    check(
        MptcpOption::MpJoin(MpJoin::Syn {
            backup: true,
            address: AddressId(9),
            token: Token(0x0a0b_0c0d),
            nonce: 0x0102_0304,
        }),
        &[30, 12, 0x11, 9, 0xa, 0xb, 0xc, 0xd, 1, 2, 3, 4],
    );
    check(
        MptcpOption::MpJoin(MpJoin::SynAck {
            backup: false,
            address: AddressId(9),
            hmac: 0x0102_0304_0506_0708,
            nonce: 7,
        }),
        &[30, 16, 0x10, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 7],
    );
    check(MptcpOption::MpJoin(MpJoin::Ack { hmac: [5; 20] }), &[&[30, 24, 0x10, 0], &[5; 20][..]].concat());
    let add = AddAddr { id: AddressId(2), address: [10, 0, 0, 1].into(), port: None, hmac: Some(3) };
    check(MptcpOption::AddAddr(add), &[30, 16, 0x30, 2, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3]);
    let echo = AddAddr { port: Some(80), hmac: None, ..add };
    check(MptcpOption::AddAddr(echo), &[30, 10, 0x31, 2, 10, 0, 0, 1, 0, 80]);
    check(MptcpOption::RemoveAddr(vec![AddressId(4), AddressId(5)]), &[30, 5, 0x40, 4, 5]);
    check(MptcpOption::MpPrio { backup: true }, &[30, 3, 0x51]);
    check(MptcpOption::MpFail { dsn: DataSeqNumber(6) }, &[30, 12, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 6]);
    check(MptcpOption::MpFastclose { receiver: Key(6) }, &[30, 12, 0x70, 0, 0, 0, 0, 0, 0, 0, 0, 6]);
    let reset = MpTcpRst { transient: true, reason: ResetReason::MIDDLEBOX };
    check(MptcpOption::MpTcpRst(reset), &[30, 4, 0x81, 6]);
}

#[test]
fn a_dss_is_as_long_as_what_it_says() {
    let short = Mapping { dsn: WireDsn::Short(7), subflow_seq: 1, len: 100, checksum: None };
    let long =
        Mapping { dsn: WireDsn::Long(DataSeqNumber(7)), subflow_seq: 1, len: 100, checksum: Some(0xff) };
    let ack = Dss::default().with_data_ack(WireDsn::Short(0x0102_0304));
    for (dss, expected) in [
        (ack, vec![30, 8, 0x20, 0x01, 1, 2, 3, 4]),
        (ack.with_mapping(short), vec![30, 18, 0x20, 0x05, 1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 1, 0, 100]),
        (
            Dss::default().with_mapping(long).with_data_fin(),
            vec![30, 20, 0x20, 0x1c, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 100, 0, 0xff],
        ),
    ] {
        assert_eq!(octets(&Mptcp::dss_only(dss)), expected);
        assert_eq!(read_all(&expected), Some(Mptcp::dss_only(dss)));
    }
}

#[test]
fn halves_are_completed_by_what_is_near() {
    let near = DataSeqNumber(0x5_ffff_fff0);
    assert_eq!(WireDsn::Short(0x10).expand(near), DataSeqNumber(0x6_0000_0010));
    assert_eq!(WireDsn::Short(0xffff_ff00).expand(near), DataSeqNumber(0x5_ffff_ff00));
    let least = WireDsn::Short(0xffff_fffe).expand(DataSeqNumber(1));
    assert_eq!(least, DataSeqNumber(0xffff_ffff_ffff_fffe));
}

fn any_dsn() -> impl Strategy<Value = WireDsn> {
    prop_oneof![
        any::<u32>().prop_map(WireDsn::Short),
        any::<u64>().prop_map(|n| WireDsn::Long(DataSeqNumber(n)))
    ]
}

prop_compose! {
    fn any_dss()(
        ack in proptest::option::of(any_dsn()),
        mapping in proptest::option::of((any_dsn(), any::<u32>(), any::<u16>(), any::<Option<u16>>())),
        fin: bool,
    ) -> Dss {
        let mut dss = Dss::default();
        if let Some(ack) = ack {
            dss = dss.with_data_ack(ack);
        }
        if let Some((dsn, subflow_seq, len, checksum)) = mapping {
            dss = dss.with_mapping(Mapping { dsn, subflow_seq, len, checksum });
            if fin {
                dss = dss.with_data_fin();
            }
        }
        dss
    }
}

fn any_option() -> impl Strategy<Value = MptcpOption> {
    let form = (any::<(u64, u64)>(), any::<u16>(), any::<Option<u16>>(), 0..4).prop_map(
        |((a, b), len, checksum, kind)| match kind {
            0 => CapableForm::Syn,
            1 => CapableForm::SynAck { sender: Key(a) },
            2 => CapableForm::Ack { sender: Key(a), receiver: Key(b) },
            _ => CapableForm::Data { sender: Key(a), receiver: Key(b), len, checksum },
        },
    );
    let capable = (0..16_u8, any::<[bool; 4]>(), form).prop_map(|(version, [a, b, c, h], form)| {
        MptcpOption::MpCapable(MpCapable {
            version,
            checksum_required: a,
            extended: b,
            no_joins_here: c,
            hmac_sha256: h,
            form,
        })
    });
    let join =
        any::<(bool, u8, u64, u32, [u8; 20], u8)>().prop_map(|(backup, id, hmac, nonce, full, kind)| {
            let address = AddressId(id);
            MptcpOption::MpJoin(match kind % 3 {
                0 => MpJoin::Syn { backup, address, token: Token(hmac as u32), nonce },
                1 => MpJoin::SynAck { backup, address, hmac, nonce },
                _ => MpJoin::Ack { hmac: full },
            })
        });
    let address =
        prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)];
    let add = (any::<u8>(), address, any::<Option<u16>>(), any::<Option<u64>>()).prop_map(
        |(id, address, port, hmac)| MptcpOption::AddAddr(AddAddr { id: AddressId(id), address, port, hmac }),
    );
    prop_oneof![
        capable,
        join,
        add,
        proptest::collection::vec(any::<u8>(), 1..=MAX_REMOVED)
            .prop_map(|ids| MptcpOption::RemoveAddr(ids.into_iter().map(AddressId).collect())),
        any::<bool>().prop_map(|backup| MptcpOption::MpPrio { backup }),
        any::<u64>().prop_map(|n| MptcpOption::MpFail { dsn: DataSeqNumber(n) }),
        any::<u64>().prop_map(|n| MptcpOption::MpFastclose { receiver: Key(n) }),
        any::<(bool, u8)>().prop_map(|(transient, reason)| {
            MptcpOption::MpTcpRst(MpTcpRst { transient, reason: ResetReason(reason) })
        }),
    ]
}

proptest! {
    #![proptest_config(Config {
        cases: 1000, rng_seed: RngSeed::Fixed(8684), failure_persistence: None, ..Config::default()
    })]

    #[test]
    fn options_survive_their_octets(
        dss in proptest::option::of(any_dss()),
        others in proptest::collection::vec(any_option(), 0..3),
    ) {
        let mut options = Mptcp::NONE;
        others.into_iter().for_each(|option| options.push(option));
        dss.into_iter().for_each(|dss| options.set_dss(dss));
        let written = octets(&options);
        prop_assert_eq!(read_all(&written), Some(options));
    }

    #[test]
    fn whatever_is_read_says_the_same_when_written(octets_in in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut options = Mptcp::NONE;
        if options.read(&octets_in) {
            let written = octets(&options);
            prop_assert_eq!(written.len(), octets_in.len() + 2);
            prop_assert_eq!(read_all(&written), Some(options));
        } else {
            prop_assert!(options.is_empty());
        }
    }

    #[test]
    fn a_shorter_option_is_skipped_or_another_one(option in any_option(), cut in 1_usize..30) {
        let whole = octets(&Mptcp::only(option));
        let end = whole.len().saturating_sub(cut).max(2);
        let mut read = Mptcp::NONE;
        let taken = read.read(&whole[2..end]);
        prop_assert_eq!(taken, !read.is_empty());
    }
}
