//! Golden traces of the congestion window, in whole segments, one line per round trip.
//!
//! In a round, the sender sends all segments that the window permits. They are acknowledged 100 ms
//! later, one acknowledgement for `s` segments. In a round with a loss, SACK reports the first
//! segment as missing, and it is recovered in the same round.

use anabranch_core::segment::{Flags, Options, SackBlock, SackBlocks, Segment, SeqNumber};
use anabranch_core::tcp::{ByteCounting, Config, CongestionAlgorithm, Connection, InitialWindow, SackRole};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::script::plain;
use bytes::Bytes;
use expect_test::expect;

struct Rounds {
    connection: Connection,
    now: Instant,
    una: SeqNumber,
    s: u32,
}

impl Rounds {
    fn new(config: Config, s: u32) -> Self {
        let config = Config { send_buffer: 1 << 28, sack: SackRole::Both, window_scale: Some(7), ..config };
        let now = Instant::ZERO;
        let mut connection = Connection::connect(now, config, 1, 2, SeqNumber(0));
        connection.poll_transmit(now).expect("the SYN");
        let options =
            Options { mss: Some(1000), sack_permitted: true, window_scale: Some(14), ..Options::default() };
        let flags = Flags::SYN.with(Flags::ACK);
        let ack = SeqNumber(1);
        let answer =
            Segment { src_port: 2, dst_port: 1, ack, flags, window: 65_535, options, ..Segment::default() };
        let now = now + Duration::from_millis(100);
        connection.handle_segment(now, answer);
        let mut data = Bytes::from(vec![0; 20_000_000]);
        connection.write(&mut data).expect("the connection is open");
        Self { connection, now, una: ack, s }
    }

    fn cwnd(&self) -> u32 {
        self.connection.info().cwnd / 1000
    }

    /// Sends all permitted segments and returns the number of data segments.
    fn send(&mut self) -> u32 {
        let mut n = 0;
        while let Some(segment) = self.connection.poll_transmit(self.now) {
            n += u32::from(!segment.payload.is_empty());
        }
        n
    }

    fn acknowledge(&mut self, ack: SeqNumber, sack: SackBlocks) {
        let segment = Segment {
            src_port: 2,
            dst_port: 1,
            seq: SeqNumber(1),
            ack,
            flags: Flags::ACK,
            window: 65_535,
            options: Options { sack, ..Options::default() },
            ..Segment::default()
        };
        self.connection.handle_segment(self.now, segment);
    }

    fn round(&mut self) {
        let sent = self.send();
        self.now += Duration::from_millis(100);
        let end = self.una + sent * 1000;
        while self.una.lt(end) {
            self.una = (self.una + self.s * 1000).min(end);
            self.acknowledge(self.una, SackBlocks::EMPTY);
        }
    }

    fn lossy_round(&mut self) {
        let sent = self.send();
        self.now += Duration::from_millis(100);
        let (left, right) = (self.una + 1000, self.una + sent * 1000);
        for i in 2..=sent {
            let block = SackBlock { left, right: self.una + i * 1000 };
            self.acknowledge(self.una, SackBlocks::from_iter([block]));
        }
        self.una = right;
        self.acknowledge(right, SackBlocks::EMPTY);
    }

    fn silent_round(&mut self) {
        self.send();
        self.now = self.connection.next_timeout().expect("data is out");
        self.connection.handle_timeout(self.now);
    }
}

/// `a` for an acknowledged round, `l` for a lossy one, `t` for a time-out.
fn trace(config: Config, s: u32, rounds: &str) -> String {
    let mut run = Rounds::new(config, s);
    let mut out = vec![run.cwnd().to_string()];
    for round in rounds.chars() {
        match round {
            'a' => run.round(),
            'l' => run.lossy_round(),
            't' => run.silent_round(),
            other => panic!("{other} is no round"),
        }
        let mark = if round == 'a' { String::new() } else { round.to_string() };
        out.push(format!("{mark}{}", run.cwnd()));
    }
    out.join(" ")
}

fn newreno() -> Config {
    Config { congestion: CongestionAlgorithm::NewReno, ..plain() }
}

fn cubic() -> Config {
    Config { congestion: CongestionAlgorithm::Cubic, ..plain() }
}

#[test]
fn slow_start_doubles_with_an_acknowledgement_per_segment() {
    expect!["1 2 4 8 16 32 64 128 256"].assert_eq(&trace(newreno(), 1, "aaaaaaaa"));
}

#[test]
fn slow_start_doubles_with_delayed_acknowledgements_and_byte_counting() {
    expect!["1 2 4 8 16 32 64 128 256"].assert_eq(&trace(newreno(), 2, "aaaaaaaa"));
}

#[test]
fn slow_start_grows_by_half_without_byte_counting() {
    let config = Config { byte_counting: ByteCounting::Off, ..newreno() };
    expect!["1 2 3 5 8 12 18 27 41 62 93"].assert_eq(&trace(config, 2, "aaaaaaaaaa"));
}

#[test]
fn slow_start_ends_at_the_threshold() {
    let config = Config { initial_ssthresh: Some(16_000), ..newreno() };
    expect!["1 2 4 8 16 17 18 19 20 21 22"].assert_eq(&trace(config, 1, "aaaaaaaaaa"));
}

#[test]
fn newreno_saw_tooth() {
    let config = Config { initial_window: InitialWindow::Segments(10), ..newreno() };
    let rounds = format!("aaa{0}{0}", "l".to_owned() + &"a".repeat(40));
    expect!["10 20 40 80 l40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 l40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80"].assert_eq(&trace(config, 1, &rounds));
}

#[test]
fn newreno_without_byte_counting_grows_by_one_over_s() {
    let config = Config {
        initial_ssthresh: Some(8_000),
        initial_window: InitialWindow::Segments(8),
        byte_counting: ByteCounting::Off,
        ..newreno()
    };
    expect!["8 8 8 9 9 10 10 11 11 12 12 13 13 14 14 15 15 16 16 17 17"].assert_eq(&trace(
        config,
        2,
        &"a".repeat(20),
    ));
}

#[test]
fn newreno_window_limit_stops_growth() {
    let config = Config { window_limit: Some(6), ..newreno() };
    expect!["1 2 4 6 6 6 l3 4 5 6 6 6 6"].assert_eq(&trace(config, 1, "aaaaalaaaaaa"));
}

#[test]
fn newreno_time_out_starts_again() {
    let config = Config { initial_window: InitialWindow::Segments(16), ..newreno() };
    expect!["16 32 t1"].assert_eq(&trace(config, 1, "at"));
}

#[test]
fn cubic_regains_the_window_along_the_cubic() {
    let config = Config { initial_window: InitialWindow::Segments(100), ..cubic() };
    let rounds = format!("al{0}", "a".repeat(90));
    expect!["100 130 l91 91 94 96 98 101 103 105 106 108 110 111 113 114 116 117 118 119 120 121 122 123 124 124 125 125 126 126 127 127 128 128 128 128 129 129 129 129 129 129 129 129 129 129 129 129 129 130 130 130 130 130 130 130 130 130 130 130 130 130 130 131 131 131 132 132 132 133 133 134 135 135 136 137 138 139 140 141 142 143 144 146 147 149 150 152 154 156 158 160 162"].assert_eq(&trace(config, 1, &rounds));
}

#[test]
fn cubic_converges_fast_after_a_second_loss() {
    let config = Config { initial_window: InitialWindow::Segments(100), ..cubic() };
    expect!["100 l45 46 49 52 l36 36 37 38 39 39 40 40 41 41 42 42 43 43 43 44"].assert_eq(&trace(
        config,
        1,
        "laaalaaaaaaaaaaaaaaa",
    ));
}

#[test]
fn cubic_small_windows_grow_as_reno() {
    let config = Config { initial_window: InitialWindow::Segments(10), ..cubic() };
    expect!["10 l7 7 7 8 8 9 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 24 25 26 27 28 29 30 31 32"]
        .assert_eq(&trace(config, 1, &format!("l{}", "a".repeat(30))));
}

#[test]
fn cubic_initial_slow_start_doubles() {
    expect!["1 2 4 8 16 32 64"].assert_eq(&trace(cubic(), 1, "aaaaaa"));
}

/// RFC 6356 couples the windows of several subflows; a connection without subflows is not coupled.
#[test]
fn coupled_on_a_connection_of_its_own_is_newreno() {
    for rounds in ["aaaaalaaaaaaaaaaaa", "aaaaataaaaaalaaaa"] {
        let coupled = Config { congestion: CongestionAlgorithm::Coupled, ..plain() };
        assert_eq!(trace(coupled, 1, rounds), trace(newreno(), 1, rounds));
    }
}

/// RFC 9438 sections 4.2 and 5.8: CUBIC's clock stops while there is nothing to send, even if the
/// silence is shorter than a time-out.
#[test]
fn cubic_does_not_grow_for_silences() {
    let window = |silence: u64| {
        let mut run = Rounds::new(cubic(), 1);
        (0..7).for_each(|_| run.round());
        run.lossy_round();
        let reduced = run.cwnd();
        for _ in 0..20 {
            run.now += Duration::from_millis(silence);
            run.round();
        }
        assert!(run.cwnd() > reduced, "{reduced}");
        run.cwnd()
    };
    assert_eq!(window(0), window(900));
}
