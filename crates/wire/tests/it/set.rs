//! Tests of SET messages: round trips however the stream is cut, and a decoder that never panics.

use std::net::{IpAddr, SocketAddr};

use anabranch_wire::set::*;
use bytes::Bytes;
use proptest::prelude::*;

fn address() -> impl Strategy<Value = SocketAddr> {
    prop_oneof![
        (any::<[u8; 4]>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(IpAddr::from(ip), port)),
        (any::<[u8; 16]>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(IpAddr::from(ip), port)),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    prop_oneof![Just(Plan::Stripe), Just(Plan::EndToEnd), Just(Plan::Split)]
}

fn energy() -> impl Strategy<Value = Energy> {
    prop_oneof![Just(Energy::High), Just(Energy::Low)]
}

fn gateway() -> impl Strategy<Value = Gateway> {
    let neighbour = (any::<u16>(), energy()).prop_map(|(id, energy)| Neighbour { id, energy });
    let neighbours = proptest::collection::vec(neighbour, 0..=MAX_NEIGHBOURS);
    let key = any::<Option<[u8; 32]>>();
    (any::<u16>(), address(), key, energy(), 1u8.., any::<bool>(), neighbours).prop_map(
        |(id, address, key, energy, hops, shared_channel, neighbours)| Gateway {
            id,
            address,
            key,
            energy,
            hops,
            shared_channel,
            neighbours,
        },
    )
}

fn join() -> impl Strategy<Value = Join> {
    (any::<u64>(), 0u8..254, 1u8..=255, plan()).prop_map(|(transfer, session, sessions, plan)| Join {
        transfer: TransferId(transfer),
        session,
        sessions: sessions.max(session + 1),
        plan,
    })
}

fn ack() -> impl Strategy<Value = Ack> {
    let steps = proptest::collection::vec((1u64..1 << 30, 1u64..1 << 30), 0..=MAX_RANGES);
    (0u64..1 << 40, 0u64..1 << 62, steps).prop_map(|(delivered, received, steps)| {
        let mut at = delivered;
        let held = steps.into_iter().map(|(gap, length)| {
            let start = at + gap;
            at = start + length;
            Range { start, end: at }
        });
        Ack { delivered, received, held: held.collect() }
    })
}

fn identity() -> impl Strategy<Value = FileIdentity> {
    let signature = any::<[[u8; 32]; 2]>().prop_map(|halves| {
        let mut signature = [0; 64];
        signature.copy_from_slice(halves.as_flattened());
        signature
    });
    (any::<[u8; 32]>(), proptest::option::of(signature), any::<bool>())
        .prop_map(|(digest, signature, discard)| FileIdentity { digest, signature, discard })
}

fn manifest() -> impl Strategy<Value = Option<Bytes>> {
    proptest::option::of(proptest::collection::vec(any::<u8>(), 1..=MAX_MANIFEST).prop_map(Bytes::from))
}

fn message() -> impl Strategy<Value = Message> {
    let size = 0u64..1 << 62;
    let reason = proptest::sample::select(vec![
        RefuseReason::NoStriping,
        RefuseReason::Busy,
        RefuseReason::Version,
        RefuseReason::Unfinished,
        RefuseReason::Unwanted,
        RefuseReason::TooLarge,
        RefuseReason::NoRoom,
        RefuseReason::Digest,
        RefuseReason::Signature,
        RefuseReason::Failed,
        RefuseReason::Rollback,
        RefuseReason::WrongDevice,
        RefuseReason::Expired,
        RefuseReason::Image,
        RefuseReason::LongManifest,
    ]);
    let status = prop_oneof![
        Just(SetAckStatus::Open),
        Just(SetAckStatus::Unreachable),
        Just(SetAckStatus::Forbidden),
        Just(SetAckStatus::Congested)
    ];
    prop_oneof![
        (any::<(u8, u64, bool)>(), size.clone(), plan(), proptest::option::of(identity()), manifest())
            .prop_map(|((version, id, small), length, plan, file, manifest)| {
                let copy = small && plan == Plan::Stripe;
                let length = if copy { length % (MAX_COPY + 1) } else { length };
                Message::Request(Request {
                    version,
                    transfer: TransferId(id),
                    length,
                    plan,
                    file,
                    copy,
                    manifest,
                })
            }),
        (size.clone(), proptest::collection::vec(gateway(), 0..=MAX_GATEWAYS))
            .prop_map(|(buffer, gateways)| Message::Accept(Accept { buffer, gateways })),
        (reason, size).prop_map(|(reason, delivered)| {
            Message::Refuse(Refuse { reason, delivered: if reason.is_final() { 0 } else { delivered } })
        }),
        (join(), address()).prop_map(|(join, destination)| Message::SetSyn(SetSyn { join, destination })),
        join().prop_map(Message::Join),
        (any::<u8>(), status).prop_map(|(session, status)| Message::SetAck(SetAck { session, status })),
        ack().prop_map(Message::Ack),
        Just(Message::Cancel),
    ]
}

/// Any content of a stream in either direction.
#[derive(Clone, Debug)]
enum Said {
    Message(Message),
    Chunk { layout: Layout, offset: u64, octets: Vec<u8> },
}

fn said() -> impl Strategy<Value = Said> {
    let layout = prop_oneof![Just(Layout::Compact), Just(Layout::Paper)];
    prop_oneof![
        message().prop_map(Said::Message),
        (layout, 0u64..1 << 31, proptest::collection::vec(any::<u8>(), 0..300))
            .prop_map(|(layout, offset, octets)| Said::Chunk { layout, offset, octets }),
    ]
}

fn addresses() -> PaperAddresses {
    PaperAddresses {
        intermediate: "[fd00::1]:7".parse().expect("an address"),
        last: "[fd00::2]:8".parse().expect("an address"),
    }
}

/// Feeds `octets` in pieces. Returns the messages, and each byte of the file with its position.
fn read_all(octets: &[u8], cuts: &[usize]) -> (Vec<Message>, Vec<(u64, u8)>) {
    let mut decoder = Decoder::new();
    let (mut messages, mut data) = (Vec::new(), Vec::new());
    let mut at = 0;
    for cut in cuts.iter().copied().chain([octets.len()]) {
        let to = (at + cut).min(octets.len());
        decoder.push(Bytes::copy_from_slice(&octets[at..to]));
        at = to;
        while let Some(item) = decoder.next_item().expect("what we wrote is well-formed") {
            match item {
                Item::Message(message) => messages.push(message),
                Item::Data { offset, octets } => data.extend((offset..).zip(octets)),
                Item::LongManifest(_) => unreachable!("this decoder has room for every manifest"),
            }
        }
    }
    assert!(decoder.is_between_messages());
    (messages, data)
}

proptest! {
    #[test]
    fn what_is_written_is_read_however_the_stream_is_cut(
        all in proptest::collection::vec(said(), 0..12),
        cuts in proptest::collection::vec(0usize..40, 0..200),
    ) {
        let mut stream = Vec::new();
        let (mut messages, mut data) = (Vec::new(), Vec::new());
        let mut expected = 0;
        for said in all {
            match said {
                Said::Message(message) => {
                    encode(&message, &mut stream);
                    messages.push(message);
                }
                Said::Chunk { layout, offset, octets } => {
                    data_header(layout, &addresses(), offset, expected, octets.len() as u64, &mut stream);
                    stream.extend_from_slice(&octets);
                    expected = offset + octets.len() as u64;
                    data.extend((offset..).zip(octets));
                }
            }
        }
        prop_assert_eq!(read_all(&stream, &cuts), (messages, data));
    }

    #[test]
    fn no_octets_make_the_decoder_panic_or_grow(octets in proptest::collection::vec(any::<u8>(), 0..600), cut in 1usize..50) {
        let mut decoder = Decoder::new();
        let mut out = 0;
        'stream: for piece in octets.chunks(cut) {
            decoder.push(Bytes::copy_from_slice(piece));
            loop {
                match decoder.next_item() {
                    Ok(Some(Item::Data { octets, .. })) => out += octets.len(),
                    Ok(Some(Item::Message(_) | Item::LongManifest(_))) => {}
                    Ok(None) => break,
                    Err(error) => {
                        prop_assert!(error.offset <= octets.len() as u64);
                        break 'stream;
                    }
                }
            }
        }
        prop_assert!(out <= octets.len());
    }
}

/// The worked example of `docs/reference/set-protocol.md`, byte by byte.
#[test]
fn the_documented_examples_hold() {
    let mut out = Vec::new();
    encode(
        &Message::Request(Request {
            version: 1,
            transfer: TransferId(0x0102_0304_0506_0708),
            length: 129_000,
            plan: Plan::Stripe,
            file: None,
            copy: false,
            manifest: None,
        }),
        &mut out,
    );
    assert_eq!(out, [0x10, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x01, 0xf7, 0xe8]);

    out.clear();
    // SHA-256 of the three bytes "abc", the first example of FIPS 180-4.
    let digest = [
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0,
        0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
    ];
    let transfer = TransferId(0x0102_0304_0506_0708);
    let file = Some(FileIdentity { digest, signature: None, discard: true });
    let request =
        Request { version: 1, transfer, length: 3, plan: Plan::Stripe, file, copy: false, manifest: None };
    encode(&Message::Request(request.clone()), &mut out);
    assert_eq!(out[..12], [0x14, 1, 1, 2, 3, 4, 5, 6, 7, 8, 3, 2]);
    assert_eq!(out[12..], digest);
    out.clear();
    let file = Some(FileIdentity { digest, signature: Some([7; 64]), discard: false });
    encode(&Message::Request(Request { file, ..request.clone() }), &mut out);
    assert_eq!(out[..12], [0x14, 1, 1, 2, 3, 4, 5, 6, 7, 8, 3, 1]);
    assert_eq!((&out[12..44], &out[44..]), (&digest[..], &[7; 64][..]));
    out.clear();
    let manifest = Some(Bytes::from_static(&[9; 300]));
    encode(&Message::Request(Request { manifest, ..request }), &mut out);
    assert_eq!(out[..12], [0x1c, 1, 1, 2, 3, 4, 5, 6, 7, 8, 3, 2]);
    assert_eq!((&out[44..46], &out[46..]), (&[0x41, 0x2c][..], &[9; 300][..]));

    out.clear();
    encode(&Message::Refuse(Refuse { reason: RefuseReason::Unfinished, delivered: 100 }), &mut out);
    assert_eq!(out, [0x33, 0x40, 0x64]);

    out.clear();
    data_header(Layout::Compact, &addresses(), 1296, 1296, 1272, &mut out);
    assert_eq!(out, [0x70, 0x44, 0xf8]);
    out.clear();
    data_header(Layout::Compact, &addresses(), 5000, 1296, 60, &mut out);
    assert_eq!(out, [0x71, 0x53, 0x88, 60]);
    ask_at_once(&mut out);
    assert_eq!(out, [0x73, 0x53, 0x88, 60]);
    out.clear();
    data_header(Layout::Paper, &addresses(), 5000, 1296, 60, &mut out);
    assert_eq!(out.len(), 3 + 20);
    ask_at_once(&mut out);
    assert_eq!(out[..7], [0xa0, 0, 60, 0, 0, 0x13, 0x88]);

    out.clear();
    let held = vec![Range { start: 3000, end: 3100 }];
    encode(&Message::Ack(Ack { delivered: 2544, received: 60, held }), &mut out);
    assert_eq!(out, [0x81, 0x49, 0xf0, 60, 0x41, 0xc8, 0x40, 0x64]);
}

/// Requests with reserved bits are refused.
#[test]
fn a_request_with_bits_that_mean_nothing_yet_is_refused() {
    for (octets, field) in [
        // 1201 bytes.
        (&[0x13, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x44, 0xb1][..], "length of a copy"),
        (&[0x18, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], "length of a manifest"),
        (&[0x14, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4], "options of a file"),
    ] {
        let mut decoder = Decoder::new();
        decoder.push(Bytes::from_static(octets));
        assert_eq!(decoder.next_item().unwrap_err().field, field);
    }
}

#[test]
fn nonsense_names_its_field_and_place() {
    let mut decoder = Decoder::new();
    decoder.push(Bytes::from_static(&[0x90, 0xf0]));
    assert_eq!(decoder.next_item(), Ok(Some(Item::Message(Message::Cancel))));
    let error = decoder.next_item().unwrap_err();
    assert_eq!((error.field, error.offset), ("type of the message", 1));
    assert_eq!(error.to_string(), "octet 1 of the stream: type of the message is not valid");
}

/// A stream may end only between messages, so the reader must know when that is.
#[test]
fn a_stream_is_between_messages_only_where_nothing_is_half_read() {
    let mut refusal = Vec::new();
    encode(&Message::Refuse(Refuse { reason: RefuseReason::Busy, delivered: 100 }), &mut refusal);
    let mut chunk = Vec::new();
    data_header(Layout::Compact, &addresses(), 0, 0, 3, &mut chunk);
    chunk.extend_from_slice(b"abc");
    for whole in [refusal, chunk] {
        let mut decoder = Decoder::new();
        for (n, octet) in whole.iter().enumerate() {
            assert!(n == 0 || !decoder.is_between_messages(), "after {n} octets of {whole:?}");
            decoder.push(Bytes::copy_from_slice(&[*octet]));
            assert!(!decoder.is_between_messages(), "an octet of {whole:?} that is not read");
            while decoder.next_item().expect("well-formed").is_some() {}
        }
        assert!(decoder.is_between_messages(), "after {whole:?}");
    }
}

/// A gateway recognises a SETSYN by its first byte, and passes on bytes that it must not parse.
#[test]
fn a_setsyn_is_known_by_its_first_octet_and_octets_of_the_file_are_none() {
    let join = Join { transfer: TransferId(7), session: 0, sessions: 1, plan: Plan::Stripe };
    let mut stream = Vec::new();
    encode(&Message::SetSyn(SetSyn { join, destination: addresses().last }), &mut stream);
    let mut decoder = Decoder::new();
    assert_eq!(decoder.next_is_setsyn(), None);
    decoder.push(Bytes::copy_from_slice(&stream[..1]));
    assert_eq!(decoder.next_is_setsyn(), Some(true));
    assert_eq!(decoder.next_item(), Ok(None));
    assert_eq!(decoder.next_is_setsyn(), Some(true), "the octet is in the header that is not whole");

    for message in [Message::Join(join), Message::Cancel] {
        stream.clear();
        encode(&message, &mut stream);
        let mut decoder = Decoder::new();
        decoder.push(Bytes::copy_from_slice(&stream));
        assert_eq!(decoder.next_is_setsyn(), Some(false), "{message:?}");
    }

    // Within a chunk, a byte of the file that looks like a SETSYN.
    let mut decoder = Decoder::new();
    decoder.push(Bytes::from_static(&[0x70, 2, b'a']));
    assert!(matches!(decoder.next_item(), Ok(Some(Item::Data { .. }))));
    decoder.push(Bytes::from_static(&[0x40]));
    assert_eq!(decoder.next_is_setsyn(), Some(false));
}

#[test]
fn a_bounded_decoder_holds_no_more_than_its_bound() {
    let transfer = TransferId(u64::MAX);
    let file = Some(FileIdentity { digest: [7; 32], signature: Some([9; 64]), discard: true });
    let length = (1 << 62) - 1;
    let longest = Message::Request(Request {
        version: VERSION,
        transfer,
        length,
        plan: Plan::Split,
        file,
        copy: false,
        manifest: None,
    });
    let Message::Request(request) = &longest.clone() else { unreachable!("it was made above") };
    let manifest = Some(Bytes::from_static(&[7; MAX_MANIFEST]));
    let with_manifest = Message::Request(Request { manifest, ..request.clone() });
    let decoders = [Decoder::of_node(), Decoder::of_node_with(MAX_MANIFEST)];
    for (mut decoder, message) in decoders.into_iter().zip([longest, with_manifest.clone()]) {
        let mut octets = Vec::new();
        encode(&message, &mut octets);
        assert!(octets.len() <= MAX_NODE_HEADER || message == with_manifest);
        for octet in octets {
            assert_eq!(decoder.next_item(), Ok(None));
            decoder.push(Bytes::from(vec![octet]));
        }
        assert_eq!(decoder.next_item(), Ok(Some(Item::Message(message))));
    }
    // A manifest is too long as soon as its length is known; the request before it is returned.
    let mut octets = Vec::new();
    encode(&with_manifest, &mut octets);
    for most in [0, 1, MAX_MANIFEST - 1] {
        let mut decoder = Decoder::of_node_with(most);
        for octet in &octets[..octets.len() - MAX_MANIFEST - 1] {
            decoder.push(Bytes::from(vec![*octet]));
            assert_eq!(decoder.next_item(), Ok(None));
        }
        decoder.push(Bytes::from(octets[octets.len() - MAX_MANIFEST - 1..][..1].to_vec()));
        assert_eq!(decoder.next_item(), Ok(Some(Item::LongManifest(request.clone()))));
    }
    let length = octets.len() - MAX_MANIFEST - 2;
    octets[length..length + 2].copy_from_slice(&(0x4001 + MAX_MANIFEST as u16).to_be_bytes());
    let mut decoder = Decoder::of_node_with(MAX_MANIFEST);
    decoder.push(Bytes::from(octets));
    assert_eq!(decoder.next_item().unwrap_err().field, "length of a manifest");

    // Peers never send these to a node, and they would need memory.
    for octet in [0x2f, 0x30, 0x8f] {
        let mut decoder = Decoder::of_node();
        decoder.push(Bytes::from(vec![octet]));
        assert_eq!(decoder.next_item().unwrap_err().field, "type of the message");
    }
}

#[test]
fn a_chunk_asks_for_an_acknowledgement_at_once() {
    let mut decoder = Decoder::new();
    for (asks, offset) in [(false, 0), (true, 10), (false, 20)] {
        let mut stream = Vec::new();
        data_header(Layout::Compact, &addresses(), offset, offset, 10, &mut stream);
        if asks {
            ask_at_once(&mut stream);
        }
        stream.extend([7; 10]);
        decoder.push(stream.into());
        let octets = Bytes::from_static(&[7; 10]);
        assert_eq!(decoder.next_item(), Ok(Some(Item::Data { offset, octets })));
        assert_eq!(decoder.is_asked_at_once(), asks);
    }
}
