//! Hostile peers and off-path attackers.

use anabranch_core::segment::{Flags, Options, Segment, SeqNumber, Timestamps};
use anabranch_core::tcp::{AutoTune, Config, Connection, State};
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

/// An attacker that does not know the window cannot set TS.Recent, and PAWS accepts the peer's next
/// segment (RFC 5961 section 5, RFC 7323 section 5.3).
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

/// Our segment size towards a peer with `mss` in its SYN, without and with timestamps.
fn send_mss(ours: u16, mss: Option<u16>) -> [u16; 2] {
    [false, true].map(|timestamps| {
        let options = Options { mss, ..if timestamps { stamped(1) } else { Options::default() } };
        established(Config { mss: ours, timestamps, ..plain() }, options).info().mss
    })
}

/// Lower bound of the segment size that a peer can request: with segments of one byte, 40 bytes of
/// header would be sent per byte (CVE-2019-11479).
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

/// Receives 1 MB/s for a second from a peer whose timestamp echoes have the age that `echo` returns
/// for each millisecond. Returns the largest window offered in each 100 ms; no offer takes back an
/// earlier one.
fn windows(echo: impl Fn(u32) -> u32) -> Vec<u32> {
    let config =
        Config { timestamps: true, window_scale: Some(7), auto_tune: Some(AutoTune::LINUX), ..plain() };
    let options = Options { window_scale: Some(0), ..stamped(1) };
    let mut connection = established(config, options);
    let (mut edge, mut largest) = (SeqNumber(0), Vec::new());
    for ms in 0..1000 {
        let now = Instant::ZERO + Duration::from_secs(100) + Duration::from_millis(ms.into());
        let timestamps = Some(Timestamps { value: 2 + ms, echo: 100_000 + ms - echo(ms) });
        let options = Options { timestamps, ..Options::default() };
        let (seq, payload) = (THEIRS + 1 + ms * 1000, Bytes::from(vec![0; 1000]));
        connection.handle_segment(now, Segment { seq, ack: ISS + 1, options, payload, ..from_peer() });
        while connection.read(usize::MAX).is_some() {}
        let mut window = 0;
        while let Some(ack) = connection.poll_transmit(now) {
            window = u32::from(ack.window) << 7;
            let right = ack.ack + window;
            assert!(ms == 0 || right.ge(edge), "{ms} ms: the window shrinks");
            edge = right;
        }
        if ms % 100 == 0 {
            largest.push(0);
        }
        largest.last_mut().into_iter().for_each(|largest| *largest = window.max(*largest));
    }
    largest
}

/// The receive buffer follows the data received in a round trip, and false timestamps cannot make
/// it grow at once.
#[test]
fn lies_about_round_trips_do_not_open_the_window_at_once() {
    let honest = windows(|_| 40);
    assert!((80_000..250_000).contains(&honest[9]), "{honest:?}");
    for lie in [[0, 0], [60_000, 60_000], [0, 60_000], [99_000, 1]] {
        let windows = windows(|ms| lie[ms as usize / 500]);
        for (window, tenths) in windows.iter().zip(1..) {
            // All received data counts as at most one round trip.
            assert!(*window <= tenths * 4 * 100_000 + 32_000, "{lie:?}: {windows:?}");
        }
    }
}
