//! Arbitrary segments and commands in arbitrary states: no panic, and all invariants hold.

use anabranch_core::segment::{Flags, Options, SackBlock, SackBlocks, Segment, SeqNumber, Timestamps};
use anabranch_core::tcp::{
    ByteCounting, Config, CongestionAlgorithm, DelayedAck, Event, InitialWindow, Nagle, Recovery, SackRole,
    State, reset_for,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use anabranch_testkit::script::{Scene, plain};
use bytes::Bytes;
use proptest::prelude::*;

/// One operation of the fuzzer. Sequence numbers are offsets from the correct value.
#[derive(Clone, Debug)]
enum Op {
    Segment { seq: i32, ack: i32, flags: u8, window: u16, len: u16, options: u8, odd: u32 },
    Write(u16),
    Read(u16),
    Buffer(u32),
    Close,
    Abort,
    Wait(u32),
    Timer,
    RouteFailure,
}

fn any_op() -> impl Strategy<Value = Op> {
    let offset = prop_oneof![
        4 => Just(0_i32),
        4 => -3000..3000_i32,
        1 => any::<i32>(),
    ];
    let flags = prop_oneof![6 => Just(0x10_u8), 2 => Just(0x11_u8), 1 => Just(0x14_u8), 2 => any::<u8>()];
    let segment = (offset.clone(), offset, flags, any::<u16>(), 0..3000_u16, any::<u8>(), any::<u32>());
    prop_oneof![
        10 => segment.prop_map(|(seq, ack, flags, window, len, options, odd)| {
            Op::Segment { seq, ack, flags, window, len, options, odd }
        }),
        3 => any::<u16>().prop_map(Op::Write),
        2 => any::<u16>().prop_map(Op::Read),
        1 => any::<u32>().prop_map(Op::Buffer),
        1 => (0..3_000_000_u32).prop_map(Op::Wait),
        3 => Just(Op::Timer),
        1 => Just(Op::RouteFailure),
        1 => Just(Op::Close),
    ]
}

/// Drives one connection and checks its invariants.
struct Harness {
    scene: Scene,
    now: Instant,
    /// The next byte not yet acknowledged to the peer, and the right edge offered to it.
    expects: SeqNumber,
    edge: Option<SeqNumber>,
    shift: u8,
    /// The highest sequence number that the connection has sent.
    sent: SeqNumber,
    closed: bool,
}

impl Harness {
    fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let config = any_config(&mut prng);
        let scenes = [
            Scene::syn_sent,
            Scene::syn_received,
            Scene::established,
            Scene::fin_wait_1,
            Scene::fin_wait_2,
            Scene::close_wait,
            Scene::closing,
            Scene::last_ack,
            Scene::time_wait,
        ];
        let scene = prng.pick(&scenes)(config);
        let shift =
            if scene.connection.state() == State::SynSent { 14 } else { config.window_scale.unwrap_or(0) };
        let (expects, sent) = (SeqNumber(501), SeqNumber(1001));
        Self { scene, now: Instant::ZERO, expects, edge: None, shift, sent, closed: false }
    }

    fn apply(&mut self, op: &Op) {
        let connection = &mut self.scene.connection;
        match op {
            Op::Segment { .. } => {
                let segment = self.segment(op);
                // `reset_for` must also handle every segment.
                let _ = reset_for(&segment);
                self.scene.connection.handle_segment(self.now, segment);
            }
            Op::Write(n) => {
                let mut data = Bytes::from(vec![0; usize::from(*n)]);
                let _ = connection.write(&mut data);
            }
            Op::Read(n) => {
                if let Some(data) = connection.read(usize::from(*n)) {
                    assert!(!data.is_empty() && data.len() <= usize::from(*n));
                }
            }
            Op::Buffer(n) => connection.set_receive_buffer(*n),
            Op::Close => connection.close(self.now),
            Op::Abort => connection.abort(self.now),
            Op::RouteFailure => connection.handle_route_failure(self.now),
            Op::Wait(micros) => {
                self.now += Duration::from_micros(u64::from(*micros));
                connection.handle_timeout(self.now);
            }
            Op::Timer => {
                if let Some(at) = connection.next_timeout() {
                    self.now = self.now.max(at);
                    connection.handle_timeout(self.now);
                }
            }
        }
        self.drain();
    }

    fn segment(&self, op: &Op) -> Segment {
        let Op::Segment { seq, ack, flags, window, len, options, odd } = *op else {
            panic!("only called for segments")
        };
        let near = |base: SeqNumber, offset: i32| SeqNumber(base.0.wrapping_add(offset as u32));
        let bit = |n: u8| options & (1 << n) != 0;
        let block =
            |left: u32, n: u32| SackBlock { left: SeqNumber(left), right: SeqNumber(left.wrapping_add(n)) };
        let una = self.sent.0.wrapping_sub(odd % 9000);
        let blocks = [block(una, 1000), block(una.wrapping_add(2000), 1), block(odd, odd.rotate_left(7))];
        Segment {
            src_port: 80,
            dst_port: 49_152,
            seq: near(self.expects, seq),
            ack: near(self.sent, ack),
            flags: Flags(flags),
            window: if bit(0) { window } else { window % 3 },
            options: Options {
                mss: bit(1).then_some(odd as u16),
                window_scale: bit(2).then_some(odd as u8),
                sack_permitted: bit(3),
                timestamps: bit(4).then_some(Timestamps { value: odd % 5000, echo: odd % 3000 }),
                sack: if bit(5) { SackBlocks::from_iter(blocks) } else { SackBlocks::EMPTY },
            },
            payload: Bytes::from(vec![0; if bit(6) { usize::from(len) } else { 0 }]),
            ..Segment::default()
        }
    }

    fn drain(&mut self) {
        let mut polled = 0;
        while let Some(segment) = self.scene.connection.poll_transmit(self.now) {
            polled += 1;
            assert!(polled < 5_000, "it never stops sending");
            assert!(segment.payload.len() <= usize::from(u16::MAX));
            self.watch_edge(&segment);
            self.sent = self.sent.max(segment.seq_end());
        }
        while let Some(event) = self.scene.connection.poll_event() {
            assert!(!self.closed, "{event:?} after the end");
            self.closed = matches!(event, Event::Closed(_));
        }
        let info = self.scene.connection.info();
        assert_eq!(self.closed, info.state == State::Closed);
        assert!(info.cwnd >= u32::from(info.mss) && info.mss > 0);
        assert!(info.in_flight < 1 << 31 && info.unsent < 1 << 31 && info.readable <= 1 << 31);
        assert!(!self.closed || self.scene.connection.next_timeout().is_none());
    }

    /// Checks that the right edge of the window moves left by at most the rounding of the scale.
    fn watch_edge(&mut self, segment: &Segment) {
        let plain = !segment.flags.contains(Flags::SYN) && segment.flags.contains(Flags::ACK);
        if !plain || segment.flags.contains(Flags::RST) {
            return;
        }
        self.expects = segment.ack;
        let edge = segment.ack + (u32::from(segment.window) << self.shift.min(14));
        if let Some(before) = self.edge {
            let slack = (1_i32 << self.shift.min(14)) - 1;
            assert!(edge.distance(before) >= -slack, "{edge} after {before}");
        }
        if self.shift == 0 {
            self.edge = Some(edge);
        }
    }
}

fn any_config(prng: &mut Prng) -> Config {
    Config {
        mss: prng.pick(&[1, 40, 1000, 1440, 65_495]),
        initial_window: prng.pick(&[InitialWindow::Segments(0), InitialWindow::Rfc6928]),
        initial_ssthresh: prng.pick(&[None, Some(0), Some(5_000)]),
        window_limit: prng.pick(&[None, Some(0), Some(3)]),
        delayed_ack: prng.pick(&[
            DelayedAck::Off,
            DelayedAck::Every { segments: 0, timeout: Duration::ZERO },
            DelayedAck::Every { segments: 3, timeout: Duration::from_millis(200) },
        ]),
        sack: prng.pick(&[SackRole::Off, SackRole::Both]),
        timestamps: prng.chance(30),
        window_scale: prng.pick(&[None, Some(0), Some(14)]),
        nagle: prng.pick(&[Nagle::On, Nagle::Off]),
        limited_transmit: prng.chance(50),
        recovery: prng.pick(&[Recovery::NewReno, Recovery::RenoGoBackN]),
        dsack: prng.chance(50),
        sack_on_data: prng.chance(50),
        rack_tlp: prng.chance(50),
        prr: prng.chance(50),
        undo: prng.chance(50),
        pacing: prng.chance(50),
        congestion: prng.pick(&[
            CongestionAlgorithm::NewReno,
            CongestionAlgorithm::Cubic,
            CongestionAlgorithm::Westwood,
            CongestionAlgorithm::Bbr,
        ]),
        elfn: prng.pick(&[None, Some(Duration::ZERO), Some(Duration::from_secs(2))]),
        byte_counting: prng.pick(&[ByteCounting::Off, ByteCounting::On { limit: 0 }]),
        send_buffer: prng.pick(&[0, 2_000, u32::MAX]),
        receive_buffer: prng.pick(&[0, 1, 1_000, 65_535, u32::MAX]),
        ..plain()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_state_any_input_holds(seed in any::<u64>(), ops in prop::collection::vec(any_op(), 1..60)) {
        let mut harness = Harness::new(seed);
        for op in &ops {
            harness.apply(op);
        }
        harness.apply(&Op::Abort);
        prop_assert!(harness.closed);
    }
}
