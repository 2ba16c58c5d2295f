use anabranch_core::segment::{Options, SackBlock, SackBlocks, SeqNumber, Timestamps};
use anabranch_wire::ecn::Ecn;

use super::*;

const MSS: usize = 1000;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn cache() -> PacketCache {
    let min_timeout = Duration::from_millis(10);
    PacketCache::new(Limits { memory: 1 << 20, connections: 16, min_timeout }.config())
}

/// Header and segment from the first or the second host.
fn header(v6: bool, forth: bool) -> Header {
    let [one, two]: [IpAddr; 2] = if v6 { ["fd00::1", "fd00::2"] } else { ["10.0.0.1", "10.0.0.2"] }
        .map(|text| text.parse().expect("an address"));
    let (src, dst) = if forth { (one, two) } else { (two, one) };
    let flow_label = if v6 { 0x12345 } else { 0 };
    Header { hop_limit: 61, traffic_class: 0xb8, flow_label, ..Header::new(src, dst, Protocol::TCP) }
}

fn packet(header: Header, segment: &Segment) -> Vec<u8> {
    let mut packet = Vec::new();
    ip::emit_tcp(&header, segment, &mut packet).expect("a legal packet");
    packet
}

fn syn(forth: bool) -> Segment {
    let options = Options { mss: Some(MSS as u16 + 12), sack_permitted: true, ..Options::default() };
    let flags = if forth { Flags::SYN } else { Flags::SYN.with(Flags::ACK) };
    let seq = SeqNumber(u32::MAX);
    let (src_port, dst_port) = if forth { (1, 2) } else { (2, 1) };
    Segment { src_port, dst_port, seq, flags, options, ..Segment::default() }
}

fn data(from: usize, len: usize) -> Segment {
    let payload: Bytes = (from..from + len).map(|at| (at / 7) as u8).collect();
    let options = Options { timestamps: Some(Timestamps { value: 5, echo: 6 }), ..Options::default() };
    let (src_port, dst_port, seq) = (1, 2, SeqNumber(from as u32));
    Segment { src_port, dst_port, seq, flags: Flags::ACK, window: 9, options, payload, ..Segment::default() }
}

fn ack(to: usize, blocks: &[(usize, usize)]) -> Segment {
    let block = |(left, right): &(usize, usize)| SackBlock {
        left: SeqNumber(*left as u32),
        right: SeqNumber(*right as u32),
    };
    let sack: SackBlocks = blocks.iter().map(block).collect();
    let options = Options { sack, ..Options::default() };
    let (src_port, dst_port, ack) = (2, 1, SeqNumber(to as u32));
    Segment { src_port, dst_port, ack, flags: Flags::ACK, window: 9, options, ..Segment::default() }
}

/// After the handshake of both hosts.
fn open(v6: bool) -> PacketCache {
    let mut cache = cache();
    for (at, forth) in [(0, true), (20, false)] {
        let packet = packet(header(v6, forth), &syn(forth));
        assert_eq!(cache.handle_packet(ms(at), &packet, Offload::default()), Ruling::Accept);
    }
    let first = packet(header(v6, true), &Segment { payload: Bytes::new(), ..data(0, 1) });
    assert_eq!(cache.handle_packet(ms(20), &first, Offload::default()), Ruling::Accept);
    cache
}

fn sent(cache: &mut PacketCache, now: Instant) -> Vec<Vec<u8>> {
    let mut packet = Vec::new();
    std::iter::from_fn(|| cache.poll_transmit(now, &mut packet).map(|_| packet.clone())).collect()
}

#[test]
fn a_repeated_segment_is_the_same_packet() {
    for v6 in [false, true] {
        let mut cache = open(v6);
        let mut original = packet(header(v6, true), &data(0, 500));
        if !v6 {
            original[6] |= 0x40;
            original[10..12].fill(0);
            let sum =
                original[..20].chunks(2).map(|o| u32::from(u16::from_be_bytes([o[0], o[1]]))).sum::<u32>();
            original[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
            ip::parse(&original).expect("the header's checksum is right");
        }
        assert_eq!(cache.handle_packet(ms(30), &original, Offload::default()), Ruling::Accept);
        cache.handle_timeout(ms(1000));
        assert_eq!(sent(&mut cache, ms(1000)), [original]);
    }
}

#[test]
fn a_mark_of_congestion_is_kept_and_an_old_echo_is_not() {
    let mut cache = open(true);
    let marked = Segment { ecn: Ecn::Ce, flags: Flags::ACK.with(Flags::CWR), ..data(0, 10) };
    cache.handle_packet(ms(30), &packet(header(true, true), &marked), Offload::default());
    cache.handle_timeout(ms(1000));
    let expected = Segment { flags: Flags::ACK, ..marked };
    assert_eq!(sent(&mut cache, ms(1000)), [packet(header(true, true), &expected)]);
}

#[test]
fn what_is_not_understood_passes_unread() {
    let plain = packet(header(false, true), &data(0, 100));
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = plain.clone();
        change(&mut packet);
        packet
    };
    let udp = {
        let mut packet = Vec::new();
        let header = Header { protocol: Protocol::UDP, ..header(false, true) };
        ip::emit(&header, &[0; 20], &mut packet).expect("a legal packet");
        packet
    };
    let piece = {
        let mut packet = Vec::new();
        let fragment = Some(ip::Fragment { offset: 0, more: true });
        ip::emit(&Header { fragment, ..header(true, true) }, &[0; 80], &mut packet).expect("a legal packet");
        packet
    };
    let mut cache = cache();
    for unread in [
        udp,
        piece,
        Vec::new(),
        vec![0x45],
        plain[..40].to_vec(),
        // A reserved bit, urgent data, a changed byte.
        with(&|packet| packet[32] |= 1),
        with(&|packet| packet[33] |= 0x20),
        with(&|packet| packet[70] ^= 1),
        // Option 29, TCP-AO (RFC 5925), in place of the timestamps.
        with(&|packet| packet[42] = 29),
    ] {
        assert_eq!(cache.handle_packet(ms(0), &unread, Offload::default()), Ruling::Accept, "{unread:02x?}");
    }
    let counters = *cache.packets();
    let PacketCounters { read, not_tcp, not_plain, unknown, malformed, .. } = counters;
    assert_eq!((read, not_tcp, not_plain, unknown, malformed), (0, 4, 1, 3, 1), "{counters:?}");
    assert_eq!((cache.cached(), cache.connections()), ((0, 0), 0));
    // The checksum of a device that is still to compute it is not judged.
    let pending = with(&|packet| packet[36] ^= 1);
    cache.handle_packet(ms(0), &pending, Offload { checksum: true, segments: false });
    assert_eq!(cache.cached(), (1, 100));
}

#[test]
fn a_long_packet_is_cached_as_the_segments_of_a_device() {
    let offload = Offload { checksum: true, segments: true };
    let mut cache = open(false);
    let last = Segment { flags: Flags::ACK.with(Flags::PSH), ..data(0, 3 * MSS + 100) };
    let long = packet(header(false, true), &last);
    assert_eq!(cache.handle_packet(ms(40), &long, offload), Ruling::Accept);
    assert_eq!((cache.cached(), cache.packets().gso), ((4, 3 * MSS + 100), 1));
    let first = packet(header(false, false), &ack(MSS, &[]));
    assert_eq!(cache.handle_packet(ms(65), &first, Offload::default()), Ruling::Accept);
    // The second of them is missing.
    let gap = packet(header(false, false), &ack(MSS, &[(2 * MSS, 3 * MSS + 100)]));
    assert_eq!(cache.handle_packet(ms(70), &gap, Offload::default()), Ruling::Drop);
    assert_eq!(sent(&mut cache, ms(70)), [packet(header(false, true), &data(MSS, MSS))]);
    // The sender repeats all of it. The first is answered, the second was sent a moment ago, and
    // the others pass one by one.
    assert_eq!(cache.handle_packet(ms(71), &long, offload), Ruling::Drop);
    let passed = [(2 * MSS, MSS, Flags::ACK), (3 * MSS, 100, last.flags)]
        .map(|(from, len, flags)| packet(header(false, true), &Segment { flags, ..data(from, len) }));
    assert_eq!(sent(&mut cache, ms(71)), [&passed[..], &[first]].concat());
}

#[test]
fn nothing_is_held_back_while_the_kernel_refuses_packets() {
    let mut cache = open(false);
    let offload = Offload { checksum: true, segments: true };
    let short = packet(header(false, true), &data(0, 100));
    let long = packet(header(false, true), &data(100, 3 * MSS));
    let rulings = |cache: &mut PacketCache, at| {
        let rulings = [(&short, Offload::default()), (&long, offload)]
            .map(|(packet, offload)| cache.handle_packet(ms(at), packet, offload));
        assert_eq!(sent(cache, ms(at)), Vec::<Vec<u8>>::new());
        rulings
    };
    assert_eq!(rulings(&mut cache, 30), [Ruling::Accept; 2]);
    assert_eq!(rulings(&mut cache, 31), [Ruling::Drop; 2], "they were sent a moment ago");
    let outcomes = [false, false, true, false, false].map(|taken| cache.handle_sent(ms(31), taken));
    assert_eq!(outcomes, [false, false, false, false, true]);
    assert_eq!(rulings(&mut cache, 32), [Ruling::Accept; 2]);
    cache.handle_timeout(ms(5100));
    assert_eq!(sent(&mut cache, ms(5100)), std::slice::from_ref(&short));
    let after = cache.handle_packet(ms(5101), &short, Offload::default());
    assert_eq!(after, Ruling::Drop, "the kernel is tried again");
}

#[test]
fn parts_of_a_long_packet_own_their_bytes() {
    let long = data(0, 3 * MSS + 100);
    for part in parts(&long, MSS) {
        assert!(part.payload.is_unique(), "{} bytes", part.payload.len());
    }
}

#[test]
fn a_report_of_the_link_layer_repeats_at_once() {
    let mut cache = open(true);
    let [first, second] = [0, 100].map(|from| packet(header(true, true), &data(from, 100)));
    for packet in [&first, &second] {
        cache.handle_packet(ms(30), packet, Offload::default());
    }
    // An acknowledgement needs no payload, a loss does.
    cache.handle_report(ms(31), &second[..80], LinkEvent::Acknowledged);
    cache.handle_report(ms(31), &first[..80], LinkEvent::TimedOut);
    assert_eq!(sent(&mut cache, ms(31)), Vec::<Vec<u8>>::new());
    cache.handle_report(ms(31), &first, LinkEvent::TimedOut);
    assert_eq!(sent(&mut cache, ms(31)), [first]);
}
