use alloc::vec;
use alloc::vec::Vec;

use super::*;

const OCTETS: u32 = 65_536;
const MSS: u32 = 1440;

/// A receiver whose first byte is 1, with room for `OCTETS`.
fn receiver() -> Receiver {
    receiver_from(MSS)
}

/// As [`receiver`], for a peer with this segment size.
fn receiver_from(peer: u32) -> Receiver {
    let mut receiver =
        Receiver::new(&Config { receive_buffer: 2 * OCTETS, mss: MSS as u16, ..Config::default() });
    receiver.synchronise(SeqNumber(0), 7);
    receiver.set_mss(peer);
    receiver.offer();
    receiver
}

fn octet(receiver: &mut Receiver, at: u32) {
    receiver.receive(Instant::ZERO, SeqNumber(1 + at), Bytes::from(vec![at as u8]), false, 0);
}

/// Number of chunks in order, and out of order.
fn chunks(receiver: &Receiver) -> (usize, usize) {
    (receiver.ready.len(), receiver.reassembly.chunks())
}

/// Checks that all bytes can be read and equal the sent ones, however they are divided into chunks.
fn drained(receiver: &mut Receiver) -> usize {
    let chunks: Vec<Bytes> = core::iter::from_fn(|| receiver.read(usize::MAX)).collect();
    let all = chunks.concat();
    assert_eq!(all.len() as u32, OCTETS);
    assert!(all.iter().zip(0_u32..).all(|(got, at)| *got == at as u8));
    chunks.len()
}

/// Twice the number of chunks that fill `OCTETS`.
const FEW: usize = 2 * OCTETS as usize / small(MSS);

#[test]
fn octets_in_order_fill_chunks() {
    let mut receiver = receiver();
    (0..OCTETS).for_each(|at| octet(&mut receiver, at));
    assert!(chunks(&receiver).0 <= FEW, "{:?}", chunks(&receiver));
    assert!(drained(&mut receiver) <= FEW);
}

#[test]
fn octets_in_reverse_fill_chunks() {
    let mut receiver = receiver();
    for at in (0..OCTETS).rev() {
        octet(&mut receiver, at);
        assert!(chunks(&receiver).1 <= FEW);
    }
    assert!(drained(&mut receiver) <= FEW);
}

#[test]
fn every_second_octet_first_fills_chunks() {
    let mut receiver = receiver();
    for at in (0..OCTETS).filter(|at| at % 2 == 1) {
        octet(&mut receiver, at);
    }
    assert!(chunks(&receiver).1 <= 4096, "{:?}", chunks(&receiver));
    // The chunks without room are sent again.
    (0..OCTETS).for_each(|at| octet(&mut receiver, at));
    assert!(drained(&mut receiver) <= FEW);
}

#[test]
fn gaps_that_are_filled_backwards_leave_few_chunks() {
    let mut receiver = receiver();
    let (odd, even) = (|at: &u32| at % 2 == 1, |at: &u32| at.is_multiple_of(2) && *at > 0);
    (0..8000).filter(odd).for_each(|at| octet(&mut receiver, at));
    (0..8000).rev().filter(even).for_each(|at| octet(&mut receiver, at));
    let few = 2 * 8000 / small(MSS) + 1;
    assert!(chunks(&receiver).1 <= few, "{:?}", chunks(&receiver));
}

/// A peer that advertises an MSS of 48, with timestamps.
#[test]
fn a_peer_does_not_choose_what_is_small() {
    for backwards in [false, true] {
        let mut receiver = receiver_from(36);
        let full = OCTETS / 18 * 18;
        let segments = (0..full).step_by(18);
        let mut send = |at: u32| {
            let octets: Vec<u8> = (at..at + 18).map(|at| at as u8).collect();
            receiver.receive(Instant::ZERO, SeqNumber(1 + at), octets.into(), false, 0);
            let (ready, held) = chunks(&receiver);
            assert!(ready + held <= FEW, "{ready} and {held}");
        };
        if backwards {
            segments.rev().for_each(&mut send)
        } else {
            segments.for_each(&mut send)
        }
        (full..OCTETS).for_each(|at| octet(&mut receiver, at));
        assert!(drained(&mut receiver) <= FEW);
    }
}

#[test]
fn full_segments_are_not_copied() {
    let mut receiver = receiver();
    let segments: Vec<Bytes> = (0..4).map(|i| vec![i; MSS as usize].into()).collect();
    for i in [0, 2, 3, 1] {
        let seq = SeqNumber(1 + i * MSS);
        receiver.receive(Instant::ZERO, seq, segments[i as usize].clone(), false, 0);
    }
    let read: Vec<_> = core::iter::from_fn(|| receiver.read(usize::MAX)).collect();
    let places = |chunks: &[Bytes]| chunks.iter().map(|chunk| chunk.as_ptr()).collect::<Vec<_>>();
    assert_eq!(places(&read), places(&segments));
}
