//! Peers and strangers that mean harm.

use anabranch_core::segment::{Flags, Options, Segment, SeqNumber, Timestamps};
use anabranch_core::tcp::{Config, Connection, State};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::script::plain;
use bytes::Bytes;

const ISS: SeqNumber = SeqNumber(1000);
const THEIRS: SeqNumber = SeqNumber(4_000_000_000);

/// ESTABLISHED at time 0, with a peer that has offered these options.
fn established(config: Config, options: Options) -> Connection {
    let mut connection = Connection::connect(Instant::ZERO, config, 1, 2, ISS);
    let syn = connection.poll_transmit(Instant::ZERO).expect("a SYN");
    let flags = Flags::SYN.with(Flags::ACK);
    let answer = Segment { seq: THEIRS, ack: syn.seq + 1, flags, options, ..from_peer() };
    connection.handle_segment(Instant::ZERO, answer);
    while connection.poll_transmit(Instant::ZERO).is_some() {}
    assert_eq!(connection.state(), State::Established);
    connection
}

fn from_peer() -> Segment {
    Segment { src_port: 2, dst_port: 1, flags: Flags::ACK, window: 8000, ..Segment::default() }
}

fn stamped(value: u32) -> Options {
    let timestamps = Some(Timestamps { value, echo: 0 });
    Options { mss: Some(1000), timestamps, ..Options::default() }
}

/// Whoever does not know which numbers are in the window cannot set TS.Recent, and PAWS takes the peer's next segment
/// (RFC 5961 section 5, RFC 7323 section 5.3).
#[test]
fn blind_segments_do_not_stop_a_connection() {
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let config = Config { timestamps: true, ..plain() };
    let text = |seq, octets, value| Segment {
        seq,
        ack: ISS + 1,
        options: stamped(value),
        payload: Bytes::from(vec![0; octets]),
        ..from_peer()
    };
    let mut tried = 0;
    let seqs: Vec<_> = (0..64).map(|i| SeqNumber(i << 26)).chain([0, 1, 101].map(|n| THEIRS + n)).collect();
    let acks: Vec<_> = (0..16).map(|i| SeqNumber(i << 28)).chain([ISS + 1]).collect();
    for (flags, octets) in
        [(Flags::ACK, 0), (Flags::ACK, 1), (Flags::ACK, 100), (Flags(0), 100), (Flags::SYN, 0)]
    {
        for (seq, ack) in seqs.iter().flat_map(|seq| acks.iter().map(move |ack| (*seq, *ack))) {
            let in_window = seq.ge(THEIRS + 1 + 200) && seq.lt(THEIRS + 1 + 200 + 8000);
            for value in [10_000, 1 << 20, 1 << 30, 0x7fff_ffff].into_iter().filter(|_| !in_window) {
                let mut connection = established(config, stamped(100));
                connection.handle_segment(at(10), text(THEIRS + 1, 200, 110));
                assert_eq!(connection.info().bytes_received, 200);
                connection.handle_segment(at(20), Segment { ack, flags, ..text(seq, octets, value) });
                while connection.poll_transmit(at(20)).is_some() {}
                connection.handle_segment(at(30), text(THEIRS + 1 + 200, 100, 130));
                let received = connection.info().bytes_received;
                assert_eq!(received, 300, "{seq:?} {ack:?} {flags:?} {octets} {value}");
                tried += 1;
            }
        }
    }
    assert!(tried > 20_000, "{tried}");
}

/// What we send to a peer that says `mss` in its SYN, without and with timestamps.
fn send_mss(ours: u16, mss: Option<u16>) -> [u16; 2] {
    [false, true].map(|timestamps| {
        let options = Options { mss, ..if timestamps { stamped(1) } else { Options::default() } };
        established(Config { mss: ours, timestamps, ..plain() }, options).info().mss
    })
}

/// A floor for what a peer can ask for: segments of one octet are 40 octets of header (CVE-2019-11479).
#[test]
fn peers_mss_has_a_floor() {
    assert_eq!([0, 1, 12, 47, 48].map(|mss| send_mss(1440, Some(mss))), [[48, 36]; 5]);
    assert_eq!(send_mss(1440, Some(100)), [100, 88]);
    assert_eq!(send_mss(20, Some(1)), [20, 8], "our own configuration may be smaller");
}

/// RFC 9293 MUST-15.
#[test]
fn peers_mss_has_a_default_by_family() {
    assert_eq!(send_mss(1440, None), [536, 524]);
    let ipv6 = Config { mss: 1440, default_mss: 1220, ..plain() };
    assert_eq!(established(ipv6, Options::default()).info().mss, 1220);
}
