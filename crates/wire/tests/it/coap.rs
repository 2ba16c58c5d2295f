//! Tests of CoAP messages: byte layouts of the RFCs, round trips, and a parser that never panics.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use anabranch_wire::coap::*;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(7252), failure_persistence: None, ..Config::default() }
}

fn token(octets: &[u8]) -> Token {
    Token::new(octets).unwrap()
}

/// Encodes the message, and checks that parsing returns it unchanged.
fn written(message: &Message) -> Vec<u8> {
    let mut out = b"before".to_vec();
    message.encode(&mut out);
    let octets = out.split_off(6);
    assert_eq!(decode(&octets.clone().into()).as_ref(), Ok(message));
    octets
}

fn read(octets: &[u8]) -> Result<Message, DecodeError> {
    decode(&Bytes::copy_from_slice(octets))
}

/// RFC 7252 appendix A, figures 16 and 18: the messages in full.
#[test]
fn the_messages_of_the_rfc_are_these_octets() {
    let request = Message::new(Type::Confirmable, Code::GET, 0x7d34, Token::default())
        .with(option::URI_PATH, &b"temperature"[..]);
    assert_eq!(written(&request), [&[0x40, 0x01, 0x7d, 0x34, 0xbb][..], b"temperature"].concat());
    let answer = Message::new(Type::Acknowledgement, Code::CONTENT, 0x7d34, Token::default())
        .with_payload(&b"22.3 C"[..]);
    assert_eq!(written(&answer), [&[0x60, 0x45, 0x7d, 0x34, 0xff][..], b"22.3 C"].concat());
    let with_token = Message::new(Type::Confirmable, Code::GET, 0x7d35, token(&[0x20]))
        .with(option::URI_PATH, &b"temperature"[..]);
    assert_eq!(written(&with_token), [&[0x41, 0x01, 0x7d, 0x35, 0x20, 0xbb][..], b"temperature"].concat());
    assert_eq!(written(&Message::empty(Type::Reset, 0x1234)), [0x70, 0, 0x12, 0x34]);
}

/// Deltas and lengths of RFC 7252 section 3.1: 12 is the last in a nibble, 268 the last in one
/// extended byte.
#[test]
fn deltas_and_lengths_extend_where_the_rfc_says() {
    let cases: [(u16, usize, &[u8]); 6] = [
        (12, 12, &[0xcc]),
        (13, 13, &[0xdd, 0, 0]),
        (268, 268, &[0xdd, 255, 255]),
        (269, 269, &[0xee, 0, 0, 0, 0]),
        (292, 1, &[0xe1, 0, 23]),
        (65_535, 0, &[0xe0, 0xfe, 0xf2]),
    ];
    for (number, len, head) in cases {
        let message = Message::new(Type::NonConfirmable, Code::PUT, 1, Token::default());
        let octets = written(&message.with(number, vec![7; len]));
        assert_eq!(&octets[4..4 + head.len()], head, "option {number} of {len}");
        assert_eq!(octets.len(), 4 + head.len() + len);
    }
}

/// RFC 7959 section 2.2: `NUM << 4 | M << 3 | SZX` in as few bytes as possible, none for 0.
#[test]
fn blocks_are_integers_of_zero_to_three_octets() {
    let block = |num, more, szx| Block { num, more, szx };
    let cases: [(Block, &[u8]); 5] = [
        (block(0, false, 0), &[]),
        (block(0, true, 6), &[0x0e]),
        (block(15, false, 6), &[0xf6]),
        (block(16, true, 2), &[0x01, 0x0a]),
        (block(0xf_ffff, true, 6), &[0xff, 0xff, 0xfe]),
    ];
    for (block, octets) in cases {
        let message = Message::new(Type::Confirmable, Code::PUT, 1, Token::default());
        let message = message.with_block(option::BLOCK1, block);
        assert_eq!(message.values(option::BLOCK1).next().unwrap(), octets);
        assert_eq!(message.block(option::BLOCK1), Some(block));
    }
    let with = |octets: &'static [u8]| {
        let message = Message::new(Type::Confirmable, Code::PUT, 1, Token::default());
        message.with(option::BLOCK1, octets).block(option::BLOCK1)
    };
    // SZX 7 is reserved, 21 bits are no number, and leading zeros are allowed.
    assert_eq!(with(&[0x0f]), None);
    assert_eq!(with(&[1, 0, 0, 0]), None);
    assert_eq!(with(&[0, 0, 0x1e]), Some(block(1, true, 6)));
    let sizes = [16, 32, 64, 128, 256, 512, 1024];
    assert_eq!(sizes.map(Block::szx_of), [0, 1, 2, 3, 4, 5, 6].map(Some));
    assert_eq!([0, 8, 100, 2048].map(Block::szx_of), [None; 4]);
    assert_eq!(
        sizes.map(|size| Block { num: 3, more: false, szx: Block::szx_of(size).unwrap() }.offset()),
        sizes.map(|size| 3 * usize::from(size))
    );
}

/// RFC 8949 appendix A has these encodings of unsigned integers.
#[test]
fn missing_blocks_are_a_sequence_of_cbor_integers() {
    let octets =
        [0x00, 0x01, 0x0a, 0x17, 0x18, 0x18, 0x18, 0x64, 0x19, 0x03, 0xe8, 0x1a, 0x00, 0x0f, 0x42, 0x40];
    let blocks = [0, 1, 10, 23, 24, 100, 1000, 1_000_000];
    assert_eq!(missing::encode(blocks, 100), (octets.to_vec(), 8));
    assert_eq!(missing::decode(&octets), Some(blocks.to_vec()));
    // What does not fit is left out.
    assert_eq!(missing::encode(blocks, 7), (octets[..6].to_vec(), 5));
    // Longer encodings are read; a text, a negative number, 2^32, a repetition and a cut are not.
    assert_eq!(missing::decode(&[0x1b, 0, 0, 0, 0, 0, 0, 0, 5]), Some(vec![5]));
    for bad in [
        &[][..],
        &[0x61, 0x61],
        &[0x20],
        &[0x1b, 0, 0, 0, 1, 0, 0, 0, 0],
        &[4, 4],
        &[5, 4],
        &[0x19, 1],
        &[0x1f],
    ] {
        assert_eq!(missing::decode(bad), None, "{bad:?}");
    }
}

#[test]
fn what_is_no_message_has_its_error() {
    use DecodeError::*;
    let cases: [(&[u8], DecodeError); 12] = [
        (&[], Truncated("the header")),
        (&[0x40, 1, 0], Truncated("the header")),
        (&[0x00, 1, 0, 1], Version(0)),
        (&[0x80, 1, 0, 1], Version(2)),
        (&[0x49, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], Token(9)),
        (&[0x42, 1, 0, 1, 7], Truncated("the token")),
        (&[0x40, 0, 0, 1, 0xff, 1], NotEmpty),
        (&[0x41, 0, 0, 1, 9], NotEmpty),
        (&[0x40, 1, 0, 1, 0xff], NoPayload),
        (&[0x40, 1, 0, 1, 0xf1, 1], Reserved),
        (&[0x40, 1, 0, 1, 0xe0, 0xff, 0xff], Number),
        (&[0x40, 1, 0, 1, 0xb3, 1, 2], Truncated("an option")),
    ];
    for (octets, error) in cases {
        assert_eq!(read(octets), Err(error), "{octets:?}");
    }
}

fn message() -> impl Strategy<Value = Message> {
    const KINDS: [Type; 4] = [Type::Confirmable, Type::NonConfirmable, Type::Acknowledgement, Type::Reset];
    let head = (proptest::sample::select(&KINDS[..]), 1..=255u8, any::<u16>(), vec(any::<u8>(), 0..=8));
    let options = vec((prop_oneof![0..40u16, any::<u16>()], vec(any::<u8>(), 0..300)), 0..6);
    (head, options, vec(any::<u8>(), 0..100)).prop_map(|((kind, code, id, token), options, payload)| {
        let message = Message::new(kind, Code(code), id, Token::new(&token).unwrap()).with_payload(payload);
        options.into_iter().fold(message, |message, (number, value)| message.with(number, value))
    })
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn every_message_survives_the_wire(message in message()) {
        written(&message);
    }

    /// A cut or changed datagram is read or refused; what is read can be written and read again.
    #[test]
    fn no_input_panics(message in message(), cut in 0..1000usize, changes in vec((0..1000usize, any::<u8>()), 0..5)) {
        let mut octets = written(&message);
        octets.truncate(octets.len() - cut % octets.len());
        for (place, octet) in changes {
            let len = octets.len();
            octets[place % len] = octet;
        }
        if let Ok(message) = read(&octets) {
            written(&message);
            for (number, _) in message.options() {
                let _ = (message.uint(*number), message.block(*number));
            }
            let _ = missing::decode(&message.payload);
        }
    }

    #[test]
    fn no_octets_panic(octets in vec(any::<u8>(), 0..200)) {
        let _ = (read(&octets), missing::decode(&octets));
    }

    #[test]
    fn lists_of_missing_blocks_survive(blocks in proptest::collection::btree_set(any::<u32>(), 1..50)) {
        let (octets, count) = missing::encode(blocks.iter().copied(), 1000);
        prop_assert_eq!(count, blocks.len());
        prop_assert_eq!(missing::decode(&octets), Some(blocks.into_iter().collect()));
    }
}
