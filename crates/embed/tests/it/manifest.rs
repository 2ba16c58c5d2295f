//! Tests of a node with a device: which files it accepts, and the order of its checks.

use anabranch_core::set::{Effect, FileIdentity, RefuseReason, StreamId};
use anabranch_core::time::{Duration, Instant};
use anabranch_node::api::abort;
use anabranch_node::device::{Admission, Device};
use anabranch_node::node::{Config, Event, Node};
use anabranch_node::sizes::Sizes;
use anabranch_secure::manifest::{Highest, Manifest};
use anabranch_secure::{FileDigest, SigningKey};
use anabranch_testkit::counting::{in_use, octets};
use anabranch_testkit::prng::Prng;
use anabranch_wire::set::{self as wire, Message, Plan, Refuse, Request, TransferId, VERSION};
use sha2::{Digest, Sha256};

const NOW: Instant = Instant::ZERO;
const NOON: u64 = 1_800_000_000;
const FILE: [u8; 60] = [0x55; 60];
/// Two sessions of transfer 7.
const JOIN: &[u8] = &[0x50, 0, 0, 0, 0, 0, 0, 0, 7, 0, 2];

fn signer() -> SigningKey {
    SigningKey::from_octets([5; 32])
}

fn sizes() -> Sizes {
    Sizes { connections: 4, gateways: 0, manifest: Some(384), ..Sizes::default() }
}

extern "C" fn noon() -> u64 {
    NOON
}

/// A device of vendor 1 and class 2 with this clock, which last accepted `highest`.
fn node(unix_time: Option<extern "C" fn() -> u64>, highest: Option<(u64, [u8; 32])>) -> Node {
    let signers = vec![[0xee; 32], signer().verifying().octets()];
    let device = Device {
        vendor: &[1; 16],
        class: &[2; 16],
        component: b"firmware",
        signers: signers.leak(),
        unix_time,
    };
    let highest = highest.map(|(sequence, sha256)| Highest { sequence, sha256 });
    let config = Config { sizes: sizes(), idle: Duration::from_secs(60), gateways: &[], gateway_keys: &[] };
    Node::new(config).expect("these are possible").for_device(Admission::new(device, highest))
}

fn digest(file: &[u8]) -> [u8; 32] {
    Sha256::digest(file).into()
}

/// The manifest of the file with sequence number 3, for the device.
fn manifest() -> Manifest<'static> {
    let file = FileDigest { length: FILE.len() as u64, sha256: digest(&FILE) };
    let use_before = Some(NOON + 1);
    Manifest { sequence: 3, vendor: [1; 16], class: [2; 16], component: b"firmware", file, use_before }
}

/// The request of a transfer of the file.
fn request(transfer: u64, manifest: Option<Vec<u8>>) -> Vec<u8> {
    let file = Some(FileIdentity { digest: digest(&FILE), signature: Some([9; 64]), discard: false });
    let manifest = manifest.map(Into::into);
    let (transfer, length, plan) = (TransferId(transfer), FILE.len() as u64, Plan::Stripe);
    let mut octets = Vec::new();
    let request = Request { version: VERSION, transfer, length, plan, file, copy: false, manifest };
    wire::encode(&Message::Request(request), &mut octets);
    octets
}

fn events(node: &mut Node) -> Vec<Event> {
    std::iter::from_fn(|| node.poll()).collect()
}

/// A peer connects and sends bytes in pieces. Returns the events of all calls.
fn say(node: &mut Node, says: &[u8]) -> (StreamId, Vec<Event>) {
    let stream = node.accepted(NOW).expect("there is a place");
    let mut all = events(node);
    for piece in says.chunks(100) {
        if node.data(NOW, stream, piece).is_ok() {
            all.extend(events(node));
        }
    }
    (stream, all)
}

/// The reason of a refusal among events, and whether the offer was announced to the program.
fn answer(events: &[Event]) -> (Option<RefuseReason>, bool) {
    let mut decoder = wire::Decoder::new();
    let mut reason = None;
    for event in events {
        if let Event::Stream(Effect::Write { octets, .. }) = event {
            decoder.push(octets.clone());
            if let Ok(Some(wire::Item::Message(Message::Refuse(Refuse { reason: why, .. })))) =
                decoder.next_item()
            {
                reason = Some(why);
            }
        }
    }
    (reason, events.contains(&Event::Begin))
}

/// The result of a request with these bytes as manifest.
fn fate(node: &mut Node, manifest: Option<Vec<u8>>) -> (Option<RefuseReason>, bool) {
    let (stream, said) = say(node, &request(7, manifest));
    if node.closed(NOW, stream).is_ok() {
        events(node);
    }
    answer(&said)
}

/// Sends the file on a session of transfer 7.
fn send(node: &mut Node) -> Vec<Event> {
    let (_, mut said) = say(node, JOIN);
    let session = node.accepted(NOW).expect("there is a place");
    said.extend(events(node));
    let chunk = [JOIN, &[0x71, 0, FILE.len() as u8], &FILE].concat();
    node.data(NOW, session, &chunk).expect("it is taken");
    said.extend(events(node));
    said
}

#[test]
fn a_file_is_offered_with_its_manifest_and_raises_the_number_at_its_end() {
    let mut node = node(Some(noon), Some((2, [9; 32])));
    let envelope = manifest().sign(&signer());
    assert_eq!(fate(&mut node, Some(envelope.clone())), (None, true));
    assert_eq!(node.manifest(), Some((&envelope[..], 3)));
    assert_eq!(node.accept(NOW), Ok(()));
    events(&mut node);
    assert_eq!((node.manifest(), node.highest()), (None, Some((2, [9; 32]))));
    let said = send(&mut node);
    let end = said.iter().position(|event| *event == Event::End { length: FILE.len() as u64 });
    assert!(end.is_some(), "{said:?}");
    assert_eq!(node.highest(), Some((3, digest(&FILE))));
    // The same number and file may be offered again, since its sender may not have received the
    // answer.
    assert_eq!(fate(&mut node, Some(manifest().sign(&signer()))).0, None);
    let older = Manifest { sequence: 2, ..manifest() }.sign(&signer());
    let (_, said) = say(&mut node, &request(9, Some(older)));
    assert_eq!(answer(&said), (Some(RefuseReason::Rollback), false));
}

/// The number is raised before END is polled, and stays raised if the program aborts after END.
#[test]
fn the_number_does_not_rise_before_the_end_nor_fall_after_it() {
    let mut node = node(Some(noon), None);
    fate(&mut node, Some(manifest().sign(&signer())));
    node.accept(NOW).expect("it is offered");
    events(&mut node);
    let session = node.accepted(NOW).expect("there is a place");
    events(&mut node);
    let chunk = [JOIN, &[0x71, 0, FILE.len() as u8], &FILE].concat();
    node.data(NOW, session, &chunk).expect("it is taken");
    while let Some(event) = node.poll() {
        if matches!(event, Event::End { .. }) {
            break;
        }
        assert_eq!(node.highest(), None, "{event:?}");
    }
    assert_eq!(node.highest(), Some((3, digest(&FILE))));
    node.abort(NOW).expect("not all about the end was polled");
    assert_eq!(events(&mut node)[0], Event::Abort(abort::PROGRAM));
    assert_eq!(node.highest(), Some((3, digest(&FILE))), "the program may have stored it");
    assert_eq!(fate(&mut node, Some(manifest().sign(&signer()))), (None, true), "the same file may come");
}

#[test]
fn a_file_that_is_not_admitted_is_refused_with_the_reason_and_never_offered() {
    let good = manifest();
    let other_key = SigningKey::from_octets([6; 32]);
    let other_file = FileDigest { sha256: [7; 32], ..good.file };
    let longer = FileDigest { length: 61, ..good.file };
    let mut flipped = good.sign(&signer());
    flipped[50] ^= 1;
    let cut = good.sign(&signer());
    let cut = cut[..cut.len() - 1].to_vec();
    let cases = [
        ("none", None, RefuseReason::Signature),
        ("another signer", Some(good.sign(&other_key)), RefuseReason::Signature),
        ("changed", Some(flipped), RefuseReason::Signature),
        ("cut off", Some(cut), RefuseReason::Signature),
        ("garbage", Some(vec![0xff; 300]), RefuseReason::Signature),
        (
            "another file",
            Some(Manifest { file: other_file, ..good }.sign(&signer())),
            RefuseReason::Signature,
        ),
        ("another length", Some(Manifest { file: longer, ..good }.sign(&signer())), RefuseReason::Signature),
        ("vendor", Some(Manifest { vendor: [2; 16], ..good }.sign(&signer())), RefuseReason::WrongDevice),
        ("class", Some(Manifest { class: [1; 16], ..good }.sign(&signer())), RefuseReason::WrongDevice),
        (
            "component",
            Some(Manifest { component: b"radio", ..good }.sign(&signer())),
            RefuseReason::WrongDevice,
        ),
        ("lower", Some(Manifest { sequence: 1, ..good }.sign(&signer())), RefuseReason::Rollback),
        ("the same", Some(Manifest { sequence: 2, ..good }.sign(&signer())), RefuseReason::Rollback),
        ("late", Some(Manifest { use_before: Some(NOON), ..good }.sign(&signer())), RefuseReason::Expired),
        ("long", Some(vec![0xd8; 385]), RefuseReason::LongManifest),
        ("longest", Some(vec![0xd8; 1024]), RefuseReason::LongManifest),
    ];
    let mut node = node(Some(noon), Some((2, [9; 32])));
    for (what, manifest, reason) in cases {
        assert_eq!(fate(&mut node, manifest), (Some(reason), false), "{what}");
        assert_eq!((node.manifest(), node.offer().is_some()), (None, false), "{what}");
    }
    assert_eq!(node.highest(), Some((2, [9; 32])));
    assert_eq!(fate(&mut node, Some(good.sign(&signer()))), (None, true), "the good one");
}

#[test]
fn without_a_clock_no_manifest_is_taken_that_expires() {
    let lasting = Manifest { use_before: None, ..manifest() }.sign(&signer());
    let far = Manifest { use_before: Some(u64::MAX), ..manifest() }.sign(&signer());
    assert_eq!(fate(&mut node(None, None), Some(lasting)), (None, true));
    assert_eq!(fate(&mut node(None, None), Some(far)), (Some(RefuseReason::Expired), false));
}

/// A request that is repeated while its offer waits cannot replace the checked manifest.
#[test]
fn a_manifest_that_is_repeated_does_not_take_the_place_of_the_one_that_was_checked() {
    let mut node = node(Some(noon), None);
    let envelope = manifest().sign(&signer());
    let (_, said) = say(&mut node, &request(7, Some(envelope.clone())));
    assert_eq!(answer(&said), (None, true));
    for forged in [Some(vec![1; 300]), None, Some(Manifest { sequence: 99, ..manifest() }.sign(&signer()))] {
        let (_, said) = say(&mut node, &request(7, forged));
        assert_eq!(answer(&said), (None, false));
        assert_eq!(node.manifest(), Some((&envelope[..], 3)));
    }
    assert_eq!(node.accept(NOW), Ok(()));
    events(&mut node);
    send(&mut node);
    assert_eq!(node.highest(), Some((3, digest(&FILE))));
}

/// Two senders in the middle of their manifests: the first is reset, the second is served.
#[test]
fn of_two_manifests_at_once_the_later_is_read() {
    let mut node = node(Some(noon), None);
    let says = [request(7, Some(manifest().sign(&signer()))), request(8, Some(manifest().sign(&signer())))];
    let (first, said) = say(&mut node, &says[0][..250]);
    assert!(!said.contains(&Event::Stream(Effect::Abort { stream: first })));
    let (second, said) = say(&mut node, &says[1][..250]);
    assert!(said.contains(&Event::Stream(Effect::Abort { stream: first })));
    let rest = &says[1][250..];
    assert_eq!(node.data(NOW, second, rest), Ok(rest.len()));
    assert_eq!(events(&mut node).last(), Some(&Event::Begin));
    assert_eq!(node.offer().map(|request| request.transfer), Some(TransferId(8)));
}

#[test]
fn the_offer_of_a_program_that_waits_is_busy_for_others_and_may_be_deferred() {
    let mut node = node(Some(noon), None);
    let envelope = manifest().sign(&signer());
    say(&mut node, &request(7, Some(envelope.clone())));
    let (other, said) = say(&mut node, &request(8, Some(envelope.clone())));
    assert_eq!(answer(&said), (Some(RefuseReason::Busy), false));
    node.closed(NOW, other).expect("it is open");
    events(&mut node);
    assert_eq!(node.refuse(NOW, RefuseReason::Busy, 0), Ok(()));
    assert_eq!(answer(&events(&mut node)), (Some(RefuseReason::Busy), false));
    assert_eq!(node.manifest(), None);
}

/// Arbitrary input in arbitrary pieces: memory stays within its bounds, and nothing is offered that
/// was not signed for this device.
#[test]
fn hostile_manifests_stay_within_the_bounds() {
    let mut random = Prng::new(11);
    let good = manifest();
    let envelopes = [
        good.sign(&signer()),
        good.sign(&SigningKey::from_octets([6; 32])),
        Manifest { vendor: [2; 16], ..good }.sign(&signer()),
        Manifest { file: FileDigest { sha256: [7; 32], ..good.file }, ..good }.sign(&signer()),
        Manifest { sequence: 1, ..good }.sign(&signer()),
    ];
    for run in 0..40 {
        let before = in_use();
        let mut node = node(Some(noon), Some((2, [9; 32])));
        // The list of signers belongs to the program.
        let before = before + 64;
        let mut open: Vec<(StreamId, Vec<u8>, usize)> = Vec::new();
        for _ in 0..400 {
            if open.len() < 4 && random.below(4) == 0 {
                let which = random.below(envelopes.len() as u64) as usize;
                let mut says = request(7 + random.below(2), Some(envelopes[which].clone()));
                if random.below(3) == 0 {
                    let at = random.below(says.len() as u64) as usize;
                    says[at] ^= 1 << random.below(8);
                }
                if let Some(stream) = bounded(&mut node, |node| node.accepted(NOW).ok()).0 {
                    open.push((stream, says, 0));
                }
            } else if !open.is_empty() {
                let which = random.below(open.len() as u64) as usize;
                let (stream, says, at) = &mut open[which];
                let n = (random.below(200) as usize + 1).min(says.len() - *at);
                let piece = says[*at..*at + n].to_vec();
                *at += n;
                let (stream, is_whole) = (*stream, *at == says.len());
                let (taken, said) = bounded(&mut node, |node| node.data(NOW, stream, &piece).ok());
                if said.contains(&Event::Begin) {
                    let request = node.offer().expect("it was offered");
                    assert_eq!((request.length, request.file.map(|f| f.digest)), (60, Some(digest(&FILE))));
                    assert_eq!(
                        node.manifest().map(|(octets, n)| (octets.to_vec(), n)),
                        Some((envelopes[0].clone(), 3))
                    );
                    if random.below(2) == 0 {
                        bounded(&mut node, |node| node.refuse(NOW, RefuseReason::Busy, 0).ok());
                    }
                }
                if taken.is_none() || is_whole {
                    bounded(&mut node, |node| node.closed(NOW, stream).ok());
                    open.remove(which);
                }
                open.retain(|(id, ..)| !said.contains(&Event::Stream(Effect::Abort { stream: *id })));
            }
            let held: usize = open.iter().map(|(_, says, ..)| says.capacity()).sum();
            let held = (held + open.capacity() * size_of::<(StreamId, Vec<u8>, usize)>()) as i64;
            let lasts = in_use() - before - held;
            assert!(
                lasts <= sizes().lasting() as i64,
                "run {run}: {lasts} octets last, {} may",
                sizes().lasting()
            );
        }
    }
}

/// One call and its effects, within the bound of a call.
fn bounded<T>(node: &mut Node, call: impl FnOnce(&mut Node) -> T) -> (T, Vec<Event>) {
    let mut said = Vec::with_capacity(32);
    let before = octets();
    let done = call(node);
    let taken = octets() - before;
    let most = sizes().effect() as u64;
    assert!(taken + most <= sizes().needs() as u64, "{taken} octets in one call, and {most} in an effect");
    loop {
        let before = octets();
        let event = node.poll();
        assert!(octets() - before <= most, "{} octets in an effect", octets() - before);
        match event {
            Some(event) => said.push(event),
            None => break,
        }
    }
    (done, said)
}

/// A device without a battery-backed clock starts in 1970.
#[test]
fn a_clock_that_was_never_set_admits_no_manifest_that_expires() {
    extern "C" fn never_set() -> u64 {
        0
    }
    extern "C" fn a_second_before_2026() -> u64 {
        1_767_225_599
    }
    for clock in [never_set, a_second_before_2026] {
        let mut node = node(Some(clock), None);
        for end in [1_000_000_000, NOON, u64::MAX] {
            let expires = Manifest { use_before: Some(end), ..manifest() }.sign(&signer());
            assert_eq!(fate(&mut node, Some(expires)), (Some(RefuseReason::Expired), false));
        }
        let lasting = Manifest { use_before: None, ..manifest() }.sign(&signer());
        assert_eq!(fate(&mut node, Some(lasting)), (None, true));
    }
}

#[test]
fn a_file_whose_manifest_expires_while_it_comes_is_given_up() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static CLOCK: AtomicU64 = AtomicU64::new(NOON);
    extern "C" fn clock() -> u64 {
        CLOCK.load(Ordering::Relaxed)
    }
    // The clock at the end, whether the manifest expires, and whether the file is accepted.
    for (at_end, expires, comes) in [
        (NOON, true, true),
        (NOON + 1, true, false),
        (u64::MAX, true, false),
        (0, true, false),
        (u64::MAX, false, true),
    ] {
        CLOCK.store(NOON, Ordering::Relaxed);
        let mut node = node(Some(clock), None);
        let manifest = Manifest { use_before: expires.then_some(NOON + 1), ..manifest() };
        assert_eq!(fate(&mut node, Some(manifest.sign(&signer()))), (None, true));
        node.accept(NOW).expect("it is offered");
        events(&mut node);
        CLOCK.store(at_end, Ordering::Relaxed);
        let said = send(&mut node);
        let is_there = said.contains(&Event::End { length: FILE.len() as u64 });
        assert_eq!(is_there, comes, "{at_end}: {said:?}");
        assert_eq!(said.contains(&Event::Abort(abort::EXPIRED)), !comes, "{at_end}: {said:?}");
        assert_eq!(node.highest().is_some(), comes);
    }
}

/// The envelope sizes in docs/reference/embedded.md, from which a program chooses its limit.
#[test]
fn manifests_are_as_long_as_the_page_says() {
    let size = |component: &[u8], number: u64, use_before: Option<u64>| {
        let file = FileDigest { length: number, sha256: [7; 32] };
        let (vendor, class) = ([1; 16], [2; 16]);
        let manifest = Manifest { sequence: number, vendor, class, component, file, use_before };
        manifest.sign(&signer()).len()
    };
    let range = |component: &[u8]| (size(component, 0, None), size(component, u64::MAX, Some(u64::MAX)));
    assert_eq!(range(b"x"), (230, 258));
    assert_eq!(range(b"firmware"), (237, 265));
    assert_eq!(range(&[b'x'; 64]), (294, 322));
    let page: Vec<&str> = include_str!("../../../../docs/reference/embedded.md").split_whitespace().collect();
    let says = "makes manifests of 237 to 265 bytes with the default name of the component, and of 230 to 322 bytes with others.";
    assert!(page.join(" ").contains(says));
}
