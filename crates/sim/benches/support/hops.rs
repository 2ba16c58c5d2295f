//! One TCP connection over a row of nodes in which only neighbours hear each other, for the test
//! and the example of `docs/reference/radio.md`.

#![allow(dead_code, unreachable_pub, reason = "each user uses its part")]

use anabranch_core::tcp::{self, DelayedAck, InitialWindow, RtoConfig};
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::network::{Forwarding, FragmentForwarding, NetworkConfig, WirelessConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{MacConfig, PhyConfig, Position, RadioConfig, Station};
use anabranch_sim::sim::Builder;

/// Parameters of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Hops from the sender to the receiver.
    pub hops: usize,
    /// Number of frames of a full segment.
    pub frames: u16,
    /// Number of segments that fit into the buffers of both ends.
    pub window: u32,
    /// MAC options of every node.
    pub mac: MacConfig,
    /// Number of segments for each acknowledgement.
    pub ack_every: u8,
    /// How relays forward fragments.
    pub forwarding: FragmentForwarding,
}

/// Results of a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Rate at which TCP payload could be read by the receiver, in bit/s.
    pub goodput: f64,
    /// Fraction of transmissions without an acknowledgement.
    pub frames_lost: f64,
    /// Packets per minute that the link layer gave up.
    pub packets_lost: f64,
    /// TCP time-outs per minute.
    pub timeouts: f64,
}

/// Bytes of MAC header and FCS (9 and 2), of TCP without options, and of uncompressed IPv6.
const MAC: u16 = 11;
const TCP: u16 = 20;
const IPV6: u16 = 40;
/// Bytes of compressed IPv6 headers: two of LOWPAN_IPHC plus the next header; at a relay also the
/// hop limit and both addresses.
const IPHC: u16 = 3;
const IPHC_RELAYED: u16 = 8;
/// Bytes of the fragment header of the first fragment and of later ones (RFC 4944 section 5.3).
const FRAG1: u16 = 4;
const FRAGN: u16 = 5;
/// Simulated time before the measurement.
const WARM_UP: Duration = Duration::from_secs(10);

/// Largest payload in bytes with which a segment fits into this number of frames on every hop.
pub fn mss(frames: u16) -> u16 {
    let room = PhyConfig::o_qpsk().max_psdu - MAC;
    if frames == 1 {
        return room - IPHC_RELAYED - TCP;
    }
    // Fragments end at multiples of 8 bytes of the uncompressed packet.
    let first = (room - FRAG1 + IPV6 - IPHC_RELAYED) / 8 * 8;
    let other = (room - FRAGN) / 8 * 8;
    first + (frames - 1) * other - IPV6 - TCP
}

/// The PSDUs of a full segment over one hop, in bytes.
pub fn psdus(frames: u16) -> Vec<u16> {
    let room = PhyConfig::o_qpsk().max_psdu - MAC;
    let all = IPHC + TCP + mss(frames);
    if frames == 1 {
        return vec![MAC + all];
    }
    let first = (room - FRAG1 + IPV6 - IPHC) / 8 * 8 - (IPV6 - IPHC);
    let other = (room - FRAGN) / 8 * 8;
    let rest = (1..frames).map(|i| other.min(all - first - (i - 1) * other));
    std::iter::once(MAC + FRAG1 + first).chain(rest.map(|n| MAC + FRAGN + n)).collect()
}

/// Time from one frame to the next for a single saturated sender: mean backoff, CCA, turnaround,
/// frame, turnaround, acknowledgement, interframe space.
pub fn cycle(psdu: u16) -> Duration {
    let phy = PhyConfig::o_qpsk();
    let access = phy.backoff_period * 7 / 2 + phy.cca + phy.turnaround;
    access + phy.airtime(psdu) + phy.turnaround + phy.airtime(phy.ack_psdu) + phy.interframe_space(psdu)
}

/// TCP payload rate of a saturated sender over one hop in bit/s, if no other station sends. With
/// `ack_every`, the receiver's acknowledgements take their time, one for this number of segments,
/// but never collide.
pub fn bound(frames: u16, ack_every: Option<u8>) -> f64 {
    let data: Duration = psdus(frames).into_iter().map(cycle).fold(Duration::ZERO, |sum, t| sum + t);
    let ack = ack_every.map_or(0.0, |n| cycle(MAC + IPHC + TCP).as_secs_f64() / f64::from(n));
    f64::from(mss(frames)) * 8.0 / (data.as_secs_f64() + ack)
}

/// Backoffs that are long enough to outlast a neighbour's packet of five frames, and delayed
/// retries that avoid each other. All values are within the ranges of the standard, except the
/// delay, which the standard does not have.
pub fn tuned() -> MacConfig {
    MacConfig {
        max_be: 7,
        max_csma_backoffs: 5,
        max_frame_retries: 7,
        retry_delay: Duration::from_millis(10),
        ..MacConfig::default()
    }
}

impl Row {
    fn tcp(&self) -> tcp::Config {
        let mss = mss(self.frames);
        let buffer = self.window * u32::from(mss);
        tcp::Config {
            mss,
            // Timestamps would take 12 bytes of every segment.
            timestamps: false,
            window_scale: None,
            initial_window: InitialWindow::Segments(2),
            rto: RtoConfig { min: Duration::from_secs(1), ..tcp::Config::default().rto },
            delayed_ack: DelayedAck::Every { segments: self.ack_every, timeout: Duration::from_millis(100) },
            send_buffer: buffer,
            receive_buffer: buffer,
            ..tcp::Config::default()
        }
    }

    /// The mean of `runs` runs of `seconds` each.
    pub fn measure(&self, runs: u64, seconds: u64) -> Measured {
        let all: Vec<Measured> = (0..runs).map(|run| self.once(run, seconds)).collect();
        let mean = |f: fn(&Measured) -> f64| all.iter().map(f).sum::<f64>() / runs as f64;
        Measured {
            goodput: mean(|m| m.goodput),
            frames_lost: mean(|m| m.frames_lost),
            packets_lost: mean(|m| m.packets_lost),
            timeouts: mean(|m| m.timeouts),
        }
    }

    /// Mean latency of a single segment over `runs` runs, in seconds: from the end of the handshake
    /// at the sender until the data can be read.
    pub fn latency(&self, runs: u64) -> f64 {
        let one = |run| {
            let (mut builder, ids) = self.network(run);
            let (tcp, from, to) = (self.tcp(), ids[self.hops], ids[0]);
            let sink = builder.app(to, Instant::ZERO, Sink::new(80, tcp));
            let config = BulkSenderConfig::new(to, 80, Content::Pattern(tcp.mss.into()), tcp);
            let source = builder.app(from, Instant::ZERO, BulkSender::new(config));
            let mut sim = builder.build();
            sim.run_until(Instant::ZERO + Duration::from_secs(60));
            let opened = sim.app::<BulkSender>(source).opened.expect("nobody else sends");
            sim.app::<Sink>(sink).transfers[0].last.saturating_since(opened).as_secs_f64()
        };
        (0..runs).map(one).sum::<f64>() / runs as f64
    }

    fn network(&self, run: u64) -> (Builder, Vec<NodeId>) {
        let mut builder = Builder::new(NetworkConfig::default(), 1, run);
        let ids: Vec<NodeId> =
            (0..=self.hops).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
        let place = |(i, &node): (usize, &NodeId)| (node, Position::new(80.0 * i as f64, 0.0));
        let places: Vec<_> = ids.iter().enumerate().map(place).collect();
        let radio = RadioConfig { mac: self.mac, ..RadioConfig::o_qpsk(100.0) };
        let wireless = WirelessConfig { forwarding: self.forwarding, ..WirelessConfig::default() };
        builder.radio(radio, wireless, &places).expect("the radio can be");
        (builder, ids)
    }

    fn once(&self, run: u64, seconds: u64) -> Measured {
        let (mut builder, ids) = self.network(run);
        let tcp = self.tcp();
        let (from, to) = (ids[self.hops], ids[0]);
        let sink = builder.app(to, Instant::ZERO, Sink::new(80, tcp));
        let config = BulkSenderConfig::new(to, 80, Content::Endless, tcp);
        let source = builder.app(from, Instant::ZERO, BulkSender::new(config));
        let mut sim = builder.build();
        let begin = Instant::ZERO + WARM_UP;
        sim.run_until(begin);
        let before = sim.app::<Sink>(sink).bytes();
        sim.run_until(begin + Duration::from_secs(seconds));
        let octets = sim.app::<Sink>(sink).bytes() - before;
        let network = &sim.world().network;
        let radio = network.radio().expect("there is one");
        let stations = (0..=self.hops as u32).map(|i| radio.metrics(Station(i)));
        let (sent, acknowledged) =
            stations.fold((0, 0), |(s, a), m| (s + m.transmissions, a + m.acknowledged));
        let lost: u64 = network.links().iter().map(|l| l.metrics().dropped_loss).sum();
        let all = (WARM_UP + Duration::from_secs(seconds)).as_secs_f64();
        let timeouts = sim.app::<BulkSender>(source).info.map_or(0, |info| info.timeouts);
        Measured {
            goodput: octets as f64 * 8.0 / seconds as f64,
            frames_lost: 1.0 - acknowledged as f64 / sent as f64,
            packets_lost: lost as f64 * 60.0 / all,
            timeouts: timeouts as f64 * 60.0 / all,
        }
    }
}
