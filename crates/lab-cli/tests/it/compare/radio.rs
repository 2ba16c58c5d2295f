//! Compares our radios with those of ns-3: IEEE 802.15.4, 802.11b, and AODV over 802.11b with fixed
//! or moving nodes.
//!
//! Both simulate the same cell: the same positions, powers, frames and constants, with five runs
//! each. `radio.cc` is the program for ns-3.

use std::env;
use std::fmt::{self, Write};
use std::fs;

use anabranch_core::aodv;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::air::motion::{Area, Motion, Mover, RandomWaypoint, trace};
use anabranch_sim::apps::cbr::{CbrConfig, CbrSink, CbrSource};
use anabranch_sim::network::{AdhocConfig, Forwarding, NetworkConfig};
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_sim::radio::{CcaMode, LogDistance, Modulation, PhyConfig, RadioConfig};
use anabranch_sim::random::Stream;
use anabranch_sim::sim::{Builder, Simulation};
use anabranch_sim::wifi::{self, PathLoss, Position, Rate, Station, Thresholds, WifiConfig};
use anabranch_stats::Summary;
use serde_json::Value;

use super::ns3::{self, Program};
use super::table::{origin, value};
use super::{number, publish, side_by_side};

#[path = "../../../../sim/benches/support/air.rs"]
mod air;
#[path = "../../../../sim/benches/support/dcf.rs"]
mod dcf;

use air::{Air, after, star};
use dcf::Dcf;

/// Noise of ns-3's LrWpanPhy in dBm: 290 K in its five bands of 1 MHz.
const NOISE_DBM: f64 = -106.986_6;
/// SINR in dB above which LrWpanPhy locks on a frame.
const LOCK_DB: f64 = -5.0;
/// Threshold of LrWpanPhy's energy detection: 10 dB above its sensitivity of -106.58 dBm.
const ENERGY_DBM: f64 = -96.58;
/// Path loss at 1 m in dB, in all cells of 802.15.4.
const REFERENCE_LOSS_DB: f64 = 40.2;
/// Size of an 802.11 data frame in bytes: 992 payload, 36 headers and FCS.
const MPDU: u16 = 1028;
/// Size of an IP packet of the chains in bytes, with 512 bytes of UDP payload.
const PACKET: u16 = 540;
/// Seconds for a chain to find its route, which do not count.
const WARMUP: u64 = 5;
/// Distance between nodes of a chain in metres.
const SPACING: f64 = 80.0;
/// Number of nodes in a field with movement.
const MOVERS: u32 = 50;
/// The field of Broch et al. 1998, in metres.
const FIELD: Area = Area { corner: Position::new(0.0, 0.0), width: 1500.0, height: 300.0 };
/// Packets per second of each source in that field.
const MOVERS_RATE: u32 = 4;

/// Cells that share a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Group {
    Hop,
    Star,
    Hidden,
    Prr,
    Dcf,
    DcfHidden,
    Aodv,
    Mobility,
}

impl Group {
    const ALL: [Self; 8] = [
        Self::Hop,
        Self::Star,
        Self::Hidden,
        Self::Prr,
        Self::Dcf,
        Self::DcfHidden,
        Self::Aodv,
        Self::Mobility,
    ];

    /// Name for `--only`.
    fn name(self) -> &'static str {
        match self {
            Self::Hop => "hop",
            Self::Star => "star",
            Self::Hidden => "hidden",
            Self::Prr => "prr",
            Self::Dcf => "dcf",
            Self::DcfHidden => "dcf-hidden",
            Self::Aodv => "aodv",
            Self::Mobility => "mobility",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Hop => "802.15.4, one sender, acknowledged",
            Self::Star => "802.15.4, saturated senders around one receiver, 127 bytes, acknowledged",
            Self::Hidden => "802.15.4, two hidden senders, 127 bytes, acknowledged",
            Self::Prr => "802.15.4, share of frames received over a distance",
            Self::Dcf => "802.11b, saturated senders around one receiver, 1028 bytes, 11 Mbit/s",
            Self::DcfHidden => "802.11b, two hidden senders, 1028 bytes, 2 Mbit/s",
            Self::Aodv => "AODV, a chain of nodes, 540-byte packets, 2 Mbit/s",
            Self::Mobility => "AODV, 50 nodes that move in 1500 m by 300 m, 540-byte packets, 2 Mbit/s",
        }
    }

    /// Simulated seconds of a run that count.
    fn seconds(self) -> u64 {
        match self {
            Self::Hop | Self::Star | Self::Aodv => 60,
            Self::Hidden => 120,
            Self::Prr | Self::Mobility => 200,
            Self::Dcf => 20,
            Self::DcfHidden => 100,
        }
    }

    /// Limit on the difference between the simulators: a share, or for [`Group::Prr`] an absolute
    /// difference.
    fn limit(self) -> f64 {
        match self {
            Self::Prr => 0.02,
            Self::Mobility => 0.1,
            Self::Hop | Self::Star | Self::Hidden | Self::Dcf | Self::DcfHidden | Self::Aodv => 0.05,
        }
    }
}

/// A change of one side's defaults that shows the cause of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    Default,
    /// ns-3's clear channel assessment observes its whole duration.
    WholeCca,
    /// Routes stay although the MAC gives up packets.
    FixedRoutes,
    /// Our AODV keeps no blacklist.
    NoBlacklist,
    /// Both sides send Hello messages.
    Hello,
    /// ns-3's AODV is told of all packets that the MAC gives up, and does not remove a neighbour
    /// that is only silent.
    Feedback,
    /// Like `Feedback`, and on both sides only destinations answer requests.
    DestinationOnly,
}

/// A cell.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Scene {
    /// Saturated senders on a circle of 10 m.
    Star { senders: u32, psdu: u16, rule: Rule },
    /// Senders at 18 m and `other` metres on both sides of the receiver, with `rate` frames per
    /// second each.
    Hidden { other: f64, rate: f64 },
    /// One sender of broadcasts.
    Prr { distance: f64, psdu: u16 },
    /// Saturated senders on a circle of 20 m.
    Dcf { senders: u32, rts: bool },
    /// Senders at 90 m on both sides of the receiver, with `rate` frames per second each.
    DcfHidden { rate: f64, rts: bool },
    /// A flow of `rate` packets per second from one end of a chain to the other.
    Aodv { hops: u32, rate: u32, rule: Rule },
    /// Flows among nodes that move by random waypoint, at a tenth of `speed` m/s to `speed`.
    Mobility { speed: u32, sources: u32, rule: Rule },
}

/// Result of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Figures {
    /// Delivered frames or packets per second; for [`Group::Prr`] and [`Group::Mobility`] the
    /// delivered share.
    delivered: f64,
    /// Data frames per second on the air. For [`Group::Mobility`], AODV messages sent or forwarded
    /// per delivered packet, without Hello messages.
    on_air: f64,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = |rts: bool| if rts { "RTS/CTS" } else { "basic" };
        let by = |rule: Rule| match rule {
            Rule::Default => "",
            Rule::WholeCca => "; ns-3 with a whole CCA",
            Rule::FixedRoutes => "; routes that stay",
            Rule::NoBlacklist => "; ours without the blacklist",
            Rule::Hello => "; Hello messages",
            Rule::Feedback => "; ns-3 told of all lost frames",
            Rule::DestinationOnly => "; ns-3 told of all lost frames, destinations alone reply",
        };
        let plural = |n: u32| if n == 1 { "" } else { "s" };
        match *self {
            Self::Star { senders: 1, psdu, .. } => write!(f, "{psdu} bytes"),
            Self::Star { senders, rule, .. } => write!(f, "{senders} senders{}", by(rule)),
            Self::Hidden { other, rate } => write!(f, "18 m and {other} m, {rate} frames/s each"),
            Self::Prr { distance, psdu } => write!(f, "{distance} m, {psdu} bytes"),
            Self::Dcf { senders, rts } => {
                write!(f, "{}, {senders} sender{}", access(rts), plural(senders))
            }
            Self::DcfHidden { rate, rts } => write!(f, "{}, {rate} frames/s each", access(rts)),
            Self::Aodv { hops, rate, rule } => {
                write!(f, "{hops} hop{}, {rate} packets/s{}", plural(hops), by(rule))
            }
            Self::Mobility { speed, sources, rule } => {
                write!(f, "{speed} m/s, {sources} source{}{}", plural(sources), by(rule))
            }
        }
    }
}

impl Scene {
    fn group(&self) -> Group {
        match self {
            Self::Star { senders: 1, .. } => Group::Hop,
            Self::Star { .. } => Group::Star,
            Self::Hidden { .. } => Group::Hidden,
            Self::Prr { .. } => Group::Prr,
            Self::Dcf { .. } => Group::Dcf,
            Self::DcfHidden { .. } => Group::DcfHidden,
            Self::Aodv { .. } => Group::Aodv,
            Self::Mobility { .. } => Group::Mobility,
        }
    }

    /// Options of `radio.cc` for this cell.
    fn options(&self) -> Vec<(&'static str, String)> {
        let scene =
            |name: &str, stations: u32| vec![("scene", name.to_owned()), ("stations", stations.to_string())];
        let mut options = Vec::new();
        let mut say = |name, value: String| options.push((name, value));
        let mut all = match *self {
            Self::Star { senders, psdu, rule } => {
                say("bytes", psdu.to_string());
                say("distance", "10".into());
                say("exponent", "4".into());
                say("whole-cca", (rule == Rule::WholeCca).to_string());
                scene("star", senders)
            }
            Self::Hidden { other, rate } => {
                say("distance", "18".into());
                say("other-distance", other.to_string());
                say("exponent", "5".into());
                say("rate", rate.to_string());
                scene("hidden", 2)
            }
            Self::Prr { distance, psdu } => {
                say("bytes", psdu.to_string());
                say("distance", distance.to_string());
                say("exponent", "3".into());
                say("rate", PRR_RATE.to_string());
                scene("prr", 1)
            }
            Self::Dcf { senders, rts, .. } => {
                say("bytes", MPDU.to_string());
                say("distance", "20".into());
                say("mode", "DsssRate11Mbps".into());
                say("rts", rts.to_string());
                scene("dcf", senders)
            }
            Self::DcfHidden { rate, rts } => {
                say("bytes", MPDU.to_string());
                say("distance", "90".into());
                say("rate", rate.to_string());
                say("rts", rts.to_string());
                scene("dcf", 2)
            }
            Self::Aodv { hops, rate, rule } => {
                say("bytes", PACKET.to_string());
                say("distance", SPACING.to_string());
                say("sensed", "220".into());
                say("rate", rate.to_string());
                say("warmup", WARMUP.to_string());
                say("fixed-routes", (rule == Rule::FixedRoutes).to_string());
                scene("aodv", hops)
            }
            Self::Mobility { sources, rule, .. } => {
                say("bytes", PACKET.to_string());
                say("range", "250".into());
                say("sensed", "550".into());
                say("rate", MOVERS_RATE.to_string());
                say("sources", sources.to_string());
                say("hello", (rule == Rule::Hello).to_string());
                let told = [Rule::Feedback, Rule::DestinationOnly].contains(&rule);
                say("feedback", told.to_string());
                let alone = rule == Rule::DestinationOnly;
                say("ns3::aodv::RoutingProtocol::DestinationOnly", alone.to_string());
                scene("mobility", MOVERS)
            }
        };
        all.append(&mut options);
        all
    }

    /// Runs ns-3.
    fn refer(&self, program: &Program, run: u64, seconds: u64) -> Result<Figures, String> {
        let mut options = self.options();
        options.extend([("run", run.to_string()), ("seconds", seconds.to_string())]);
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        if let Self::Mobility { speed, .. } = *self {
            let file = folder.path().join("movements.tcl");
            fs::write(&file, movements(speed, run, seconds)).map_err(|error| error.to_string())?;
            options.push(("movements", file.display().to_string()));
        }
        let report = program.run(&options)?;
        let figure = |name: &str| report[name].as_f64();
        let figures = if self.group() == Group::Mobility {
            let count = |name: &str| report[name].as_u64();
            let all = || Some([count("offered")?, count("delivered")?, count("routing")?, count("hellos")?]);
            all().and_then(Figures::of_messages)
        } else {
            self.figures(figure("delivered"), figure("on_air"), seconds)
        };
        figures.ok_or_else(|| format!("cannot read {report}"))
    }

    fn figures(&self, delivered: Option<f64>, on_air: Option<f64>, seconds: u64) -> Option<Figures> {
        let (delivered, on_air) = (delivered?, on_air?);
        let whole = if self.group() == Group::Prr { on_air } else { seconds as f64 };
        Some(Figures { delivered: delivered / whole, on_air: on_air / seconds as f64 })
    }

    /// Runs our simulator.
    fn simulate(&self, run: u64, seconds: u64) -> Figures {
        let (received, on_air) = match *self {
            Self::Star { senders, psdu, .. } => {
                let mut air = Air::new(o_qpsk(4.0), &star(senders as usize, 10.0), run);
                let senders: Vec<u32> = (1..=senders).collect();
                air.saturate(&senders, 0, psdu, after(Duration::from_secs(seconds)));
                counted(&air)
            }
            Self::Hidden { other, rate } => {
                let mut air = Air::new(o_qpsk(5.0), &[(0.0, 0.0), (-18.0, 0.0), (other, 0.0)], run);
                let flow = |from| air::Flow { from, to: Some(0), psdu_len: 127, rate };
                air.poisson(&[flow(1), flow(2)], run, after(Duration::from_secs(seconds)), |_| {});
                counted(&air)
            }
            Self::Prr { distance, psdu } => {
                let mut air = Air::new(o_qpsk(3.0), &[(0.0, 0.0), (distance, 0.0)], run);
                let flow = air::Flow { from: 1, to: None, psdu_len: psdu, rate: PRR_RATE };
                air.poisson(&[flow], run, after(Duration::from_secs(seconds)), |_| {});
                counted(&air)
            }
            Self::Dcf { senders, rts } => {
                let mut dcf =
                    Dcf::new(dsss(Rate::Mbps11, 100.0, rts), &dcf::star(senders as usize, 20.0), run);
                let senders: Vec<u32> = (1..=senders).collect();
                dcf.saturate(&senders, 0, MPDU, after(Duration::from_secs(seconds)));
                heard(&dcf)
            }
            Self::DcfHidden { rate, rts } => {
                let places = [(0.0, 0.0), (-90.0, 0.0), (90.0, 0.0)];
                let mut dcf = Dcf::new(dsss(Rate::Mbps2, 100.0, rts), &places, run);
                let flow = |from| dcf::Flow { from, to: Some(0), mpdu_len: MPDU, rate };
                let mut traffic = dcf::Traffic::new(&mut dcf, &[flow(1), flow(2)], run);
                traffic.run(&mut dcf, after(Duration::from_secs(seconds)), |_| {});
                heard(&dcf)
            }
            Self::Aodv { hops, rate, rule } => chain(hops, rate, rule, run, seconds),
            Self::Mobility { speed, sources, rule } => {
                let text = movements(speed, run, seconds);
                let counts = field(&text, sources, rule, run, seconds);
                return Figures::of_messages(counts).expect("packets are sent");
            }
        };
        self.figures(Some(received as f64), Some(on_air as f64), seconds).expect("both are there")
    }

    /// Delivered share of frames by the closed form.
    fn closed_form(&self) -> Option<f64> {
        let Self::Prr { distance, psdu } = *self else { return None };
        let snr_db = -REFERENCE_LOSS_DB - 30.0 * distance.log10() - NOISE_DBM;
        let right = 1.0 - Modulation::OQpsk.bit_error_rate(10f64.powf(snr_db / 10.0));
        let bits = 8.0 * f64::from(PhyConfig::o_qpsk().header + psdu);
        Some(if snr_db > LOCK_DB { right.powf(bits) } else { 0.0 })
    }
}

impl Figures {
    /// From the numbers of packets offered and delivered, of AODV messages, and of Hello messages
    /// among these.
    fn of_messages([offered, delivered, routing, hellos]: [u64; 4]) -> Option<Self> {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let on_air = share(routing.checked_sub(hellos)?, delivered).unwrap_or(f64::INFINITY);
        Some(Self { delivered: share(delivered, offered)?, on_air })
    }
}

/// Rate of the frames whose reception is counted, per second.
const PRR_RATE: f64 = 20.0;

/// O-QPSK with the levels of LrWpanPhy, without shadowing.
fn o_qpsk(exponent: f64) -> RadioConfig {
    RadioConfig::o_qpsk(1.0).with_log_distance(LogDistance {
        exponent,
        reference_loss_db: REFERENCE_LOSS_DB,
        shadowing_db: 0.0,
        tx_power_dbm: 0.0,
        noise_floor_dbm: NOISE_DBM,
        sensitivity_dbm: NOISE_DBM + LOCK_DB,
        preamble_sinr_db: LOCK_DB,
        cca_threshold_dbm: ENERGY_DBM,
        cca_mode: CcaMode::EnergyOrCarrier,
        capture_sinr_db: None,
        weakest_dbm: -125.0,
        ..LogDistance::default()
    })
}

/// All frames have one rate. Frames are received up to 100 m and sensed up to `sensed` metres;
/// reception needs ten times the power of all other signals.
fn dsss(rate: Rate, sensed: f64, rts: bool) -> WifiConfig {
    let base = WifiConfig::dsss(100.0).with_data_rate(rate).with_rts_threshold(if rts { 0 } else { 2347 });
    WifiConfig {
        phy: wifi::PhyConfig { basic_rate: rate, ..base.phy },
        propagation: Thresholds {
            path_loss: PathLoss::FreeSpace,
            carrier_sense_range: sensed,
            capture: 10.0,
            ..Thresholds::channel_1(100.0)
        },
        ..base
    }
}

/// Number of frames received by station 0, and sent by the others.
fn counted(air: &Air) -> (u64, u64) {
    let senders = (1..air.radio.station_count() as u32).map(Station);
    let sent = senders.map(|station| air.radio.metrics(station).transmissions).sum();
    (air.radio.metrics(Station(0)).received, sent)
}

fn heard(dcf: &Dcf) -> (u64, u64) {
    let senders = (1..dcf.wifi.station_count() as u32).map(Station);
    let sent = senders.map(|station| dcf.wifi.metrics(station).transmissions).sum();
    (dcf.wifi.metrics(Station(0)).received, sent)
}

fn chain(hops: u32, rate: u32, rule: Rule, run: u64, seconds: u64) -> (u64, u64) {
    let config = NetworkConfig { ip: IpVersion::V4, ..NetworkConfig::default() };
    let mut builder = Builder::new(config, run, 0);
    let places: Vec<(NodeId, Position)> = (0..=hops)
        .map(|i| {
            let node = builder.node(&format!("n{i}"), Forwarding::On);
            (node, Position::new(SPACING * f64::from(i), 0.0))
        })
        .collect();
    let wifi = dsss(Rate::Mbps2, 220.0, false);
    builder.wifi(wifi, AdhocConfig { queue: 50, ..AdhocConfig::default() }, &places).expect("a radio");
    // Without AODV, fixed shortest routes are used.
    let default = aodv::Config::default();
    let blacklist_timeout =
        if rule == Rule::NoBlacklist { Duration::ZERO } else { default.blacklist_timeout };
    for (node, _) in places.iter().filter(|_| rule != Rule::FixedRoutes) {
        builder.aodv(*node, aodv::Config { blacklist_timeout, ..default }).expect("IPv4 on the air");
    }
    let (from, to) = (places[0].0, places[hops as usize].0);
    let sink = builder.app(to, after(Duration::ZERO), CbrSink::new(700));
    let interval = Duration::from_nanos(1_000_000_000 / u64::from(rate));
    let packets = (WARMUP + seconds + 1) as u32 * rate;
    let config = CbrConfig { to, port: 700, from_port: 701, packets, payload: PACKET - 28, interval };
    builder.app(from, after(Duration::ZERO), CbrSource::new(config));
    let mut sim = builder.build();
    let counts = |sim: &Simulation| {
        let air = sim.world().network.wifi().expect("it has a radio");
        // Routing messages are much shorter, and nearly all are broadcasts of the initial search.
        let sent = (0..=hops).map(|i| air.metrics(Station(i)).transmissions).sum::<u64>();
        (sim.app::<CbrSink>(sink).arrived.len() as u64, sent)
    };
    sim.run_until(after(Duration::from_secs(WARMUP)));
    let before = counts(&sim);
    sim.run_until(after(Duration::from_secs(WARMUP + seconds)));
    let end = counts(&sim);
    (end.0 - before.0, end.1 - before.1)
}

/// Movements of a run, which both simulators read; only positions if the speed is 0.
fn movements(speed: u32, run: u64, seconds: u64) -> String {
    let random = |i: u32| Stream::new(run, 0, &format!("node {i}"), "mobility");
    let fastest = f64::from(speed);
    let mover = |i: u32| {
        let plan = RandomWaypoint {
            area: FIELD,
            slowest: fastest.max(1.0) / 10.0,
            fastest: fastest.max(1.0),
            pause: Duration::ZERO,
        };
        let mut random = random(i);
        let start = (speed == 0).then(|| FIELD.draw(&mut random));
        Mover::new(&Motion::RandomWaypoint(plan), start, random)
    };
    let mut movers: Vec<Mover> = (0..MOVERS).map(mover).collect();
    let until = if speed == 0 { Instant::ZERO } else { after(Duration::from_secs(seconds + 2)) };
    let text = trace::write(&mut movers, until);
    match speed {
        // The nodes have started, but do not move.
        0 => text
            .lines()
            .filter(|line| !line.contains("setdest"))
            .fold(String::new(), |all, line| all + line + "\n"),
        _ => text,
    }
}

/// Number of packets offered and delivered, of AODV messages, and of Hello messages among these.
fn field(movements: &str, sources: u32, rule: Rule, run: u64, seconds: u64) -> [u64; 4] {
    let config = NetworkConfig { ip: IpVersion::V4, ..NetworkConfig::default() };
    let mut builder = Builder::new(config, run, 0);
    let traces = trace::read(movements).expect("our own movements");
    let places: Vec<(NodeId, Position)> = traces
        .iter()
        .map(|(i, legs)| {
            let node = builder.node(&format!("n{i}"), Forwarding::On);
            let random = Stream::new(run, 0, &format!("node {i}"), "trace");
            builder.mobile(node, Mover::new(&Motion::Trace(legs.clone()), None, random));
            (node, Position::default())
        })
        .collect();
    let base = dsss(Rate::Mbps2, 550.0, false);
    let wifi = WifiConfig { propagation: Thresholds { range: 250.0, ..base.propagation }, ..base };
    // Packets that the MAC gives up are lost, as in ns-3.
    let reroutes = 0;
    builder
        .wifi(wifi, AdhocConfig { queue: 50, reroutes, ..AdhocConfig::default() }, &places)
        .expect("a radio");
    let hello = if rule == Rule::Hello { aodv::Hello::On } else { aodv::Hello::Off };
    let intermediate_replies = match rule {
        Rule::DestinationOnly => aodv::IntermediateReplies::Refused,
        _ => aodv::IntermediateReplies::Accepted,
    };
    let router = aodv::Config { hello, intermediate_replies, ..aodv::Config::default() };
    for (node, _) in &places {
        builder.aodv(*node, router).expect("IPv4 on the air");
    }
    let end = BEGIN + Duration::from_secs(seconds);
    let interval = Duration::from_nanos(1_000_000_000 / u64::from(MOVERS_RATE));
    let flow = |i: u32| {
        let (from, to) = (places[i as usize].0, places[(i + MOVERS / 2) as usize].0);
        let sink = builder.app(to, after(Duration::ZERO), CbrSink::new(700));
        let begin = BEGIN + Duration::from_millis(23 * u64::from(i));
        let packets = ((end - begin).as_nanos() / interval.as_nanos()) as u32 + 1;
        let config = CbrConfig { to, port: 700, from_port: 701, packets, payload: PACKET - 28, interval };
        (builder.app(from, after(begin), CbrSource::new(config)), sink)
    };
    let flows: Vec<_> = (0..sources).map(flow).collect();
    let mut sim = builder.build();
    sim.run_until(after(end));
    let sum = |of: &dyn Fn(NodeId) -> u64| places.iter().map(|(node, _)| of(*node)).sum::<u64>();
    let network = &sim.world().network;
    [
        flows.iter().map(|(source, _)| u64::from(sim.app::<CbrSource>(*source).sent)).sum(),
        flows.iter().map(|(_, sink)| sim.app::<CbrSink>(*sink).arrived.len() as u64).sum(),
        sum(&|node| network.routing_messages(node)),
        sum(&|node| network.aodv(node).map_or(0, |router| router.counters().hellos)),
    ]
}

/// Start of the first flow in a field.
const BEGIN: Duration = Duration::from_secs(1);

/// All cells, table by table.
fn whole() -> Vec<Scene> {
    let mut cells = Vec::new();
    cells.extend([20, 40, 60, 80, 100, 127].map(|psdu| Scene::Star {
        senders: 1,
        psdu,
        rule: Rule::Default,
    }));
    for rule in [Rule::Default, Rule::WholeCca] {
        cells.extend([2, 5, 10, 15, 20].map(|senders| Scene::Star { senders, psdu: 127, rule }));
    }
    for other in [18.0, 15.0] {
        cells.extend([5.0, 10.0, 20.0, 30.0, 40.0].map(|rate| Scene::Hidden { other, rate }));
    }
    for psdu in [20, 60, 127] {
        cells.extend(
            [150.0, 160.0, 170.0, 180.0, 190.0, 200.0, 210.0].map(|distance| Scene::Prr { distance, psdu }),
        );
    }
    for rts in [false, true] {
        cells.extend([1, 2, 5, 10, 20].map(|senders| Scene::Dcf { senders, rts }));
    }
    for rts in [false, true] {
        cells.extend([10.0, 20.0, 40.0, 60.0].map(|rate| Scene::DcfHidden { rate, rts }));
    }
    for (rate, rule, from) in [
        (20, Rule::Default, 1),
        (400, Rule::Default, 1),
        (400, Rule::FixedRoutes, 3),
        (400, Rule::NoBlacklist, 3),
    ] {
        cells.extend((from..=8).map(|hops| Scene::Aodv { hops, rate, rule }));
    }
    for rule in [Rule::Default, Rule::Feedback, Rule::DestinationOnly] {
        cells.extend([0, 1, 5, 10, 20].map(|speed| Scene::Mobility { speed, sources: 10, rule }));
    }
    cells.extend([0, 20].map(|speed| Scene::Mobility { speed, sources: 10, rule: Rule::Hello }));
    cells
}

/// One or two cells of each table.
fn quick() -> Vec<Scene> {
    let rule = Rule::Default;
    vec![
        Scene::Star { senders: 1, psdu: 127, rule },
        Scene::Star { senders: 5, psdu: 127, rule },
        Scene::Hidden { other: 18.0, rate: 10.0 },
        Scene::Prr { distance: 170.0, psdu: 127 },
        Scene::Dcf { senders: 5, rts: false },
        Scene::Dcf { senders: 5, rts: true },
        Scene::DcfHidden { rate: 20.0, rts: false },
        Scene::Aodv { hops: 3, rate: 20, rule },
        Scene::Mobility { speed: 10, sources: 5, rule: Rule::DestinationOnly },
    ]
}

/// Cells, duration, and number of runs.
#[derive(Debug)]
struct Plan {
    cells: Vec<Scene>,
    /// Duration, instead of each table's default.
    seconds: Option<u64>,
    runs: u64,
    at_once: usize,
}

impl Plan {
    /// `size` and `only` are the values that `cargo xtask compare` sets.
    fn new(size: Option<&str>, only: Option<&str>) -> Self {
        let (mut cells, seconds, runs) = match size {
            Some("whole") => (whole(), None, 5),
            Some("quick") => (quick(), Some(20), 3),
            _ => (quick(), Some(5), 1),
        };
        if let Some(name) = only {
            let known: Vec<_> = Group::ALL.iter().map(|group| group.name()).collect();
            assert!(known.contains(&name), "no cells are called {name:?}: there are {}", known.join(", "));
            cells.retain(|cell| cell.group().name() == name);
        }
        Self { cells, seconds, runs, at_once: 1 }
    }

    fn from_environment() -> Self {
        let text = |name: &str| env::var(name).ok();
        let plan = Self::new(text("ANABRANCH_COMPARE").as_deref(), text("ANABRANCH_COMPARE_ONLY").as_deref());
        Self {
            seconds: number("SECONDS").or(plan.seconds),
            runs: number("RUNS").unwrap_or(plan.runs),
            at_once: number("AT_ONCE").map_or(plan.at_once, |n| n as usize),
            ..plan
        }
    }

    fn seconds(&self, group: Group) -> u64 {
        self.seconds.unwrap_or_else(|| group.seconds())
    }
}

/// Results of a cell: ns-3's, then ours.
struct Row {
    cell: Scene,
    delivered: [Summary; 2],
    on_air: [Summary; 2],
}

impl Row {
    /// Creates a row; `None` if either has no run.
    fn new(cell: Scene, theirs: &[Figures], ours: &[Figures]) -> Option<Self> {
        let pair = |of: fn(&Figures) -> f64| {
            let summary = |runs: &[Figures]| Summary::of(&runs.iter().map(of).collect::<Vec<_>>()).ok();
            Some([summary(theirs)?, summary(ours)?])
        };
        Some(Self { cell, delivered: pair(|run| run.delivered)?, on_air: pair(|run| run.on_air)? })
    }

    /// Difference of ours from ns-3's: relative, for [`Group::Prr`] absolute, for
    /// [`Group::Mobility`] the larger of both relative differences.
    fn difference(&self) -> f64 {
        let beyond = |pair: &[Summary; 2]| match [pair[0].mean, pair[1].mean] {
            [theirs, ours] if theirs == ours => 0.0,
            [theirs, ours] if self.cell.group() == Group::Prr => ours - theirs,
            [theirs, ours] => ours / theirs - 1.0,
        };
        let (delivered, on_air) = (beyond(&self.delivered), beyond(&self.on_air));
        match self.cell.group() {
            Group::Mobility if on_air.abs() > delivered.abs() => on_air,
            _ => delivered,
        }
    }

    /// Like [`Row::is_within`] for a short run with few messages: for moving nodes only deliveries
    /// count.
    fn is_nearly_within(&self, times: f64) -> bool {
        let [theirs, ours] = [&self.delivered[0], &self.delivered[1]].map(|delivered| delivered.mean);
        match self.cell.group() {
            Group::Mobility => (ours / theirs - 1.0).abs() <= times * self.cell.group().limit(),
            _ => self.is_within(times),
        }
    }

    /// Whether the difference is within `times` the limit.
    fn is_within(&self, times: f64) -> bool {
        self.difference().abs() <= times * self.cell.group().limit()
    }

    fn line(&self) -> String {
        let [theirs, ours] = &self.delivered;
        let verdict = if self.is_within(1.0) { "yes" } else { "**no**" };
        if let Some(closed) = self.cell.closed_form() {
            let points = self.difference() * 100.0;
            let (theirs, ours) = (value(theirs, 3), value(ours, 3));
            return format!("| {} | {theirs} | {ours} | {closed:.3} | {points:+.1} | {verdict} |", self.cell);
        }
        let [theirs_on_air, ours_on_air] = &self.on_air;
        if self.cell.group() == Group::Mobility {
            let ratio = |pair: &[Summary; 2]| pair[1].mean / pair[0].mean;
            return format!(
                "| {} | {} | {} | {:.3} | {} | {} | {:.3} | {verdict} |",
                self.cell,
                value(theirs, 3),
                value(ours, 3),
                ratio(&self.delivered),
                value(theirs_on_air, 2),
                value(ours_on_air, 2),
                ratio(&self.on_air),
            );
        }
        format!(
            "| {} | {} | {} | {:.3} | {verdict} | {:.1} | {:.1} |",
            self.cell,
            value(theirs, 1),
            value(ours, 1),
            self.difference() + 1.0,
            theirs_on_air.mean,
            ours_on_air.mean,
        )
    }
}

/// The whole report.
fn page(rows: &[Row], plan: &Plan, version: &str) -> String {
    let mut text = format!(
        "{} {} cells, {} run{} of each.\n\n",
        origin("ns-3", version),
        rows.len(),
        plan.runs,
        if plan.runs == 1 { "" } else { "s" },
    );
    text.push_str("| table | cells | within the limit | largest difference |\n| --- | --- | --- | --- |\n");
    let tables = || {
        Group::ALL.into_iter().filter_map(|group| {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.cell.group() == group).collect();
            (!rows.is_empty()).then_some((group, rows))
        })
    };
    for (group, rows) in tables() {
        let within = rows.iter().filter(|row| row.is_within(1.0)).count();
        let differences = rows.iter().map(|row| row.difference() * 100.0);
        let largest = differences.fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        let unit = if group == Group::Prr { "points" } else { "%" };
        let _ = writeln!(text, "| {} | {} | {within} | {largest:+.1} {unit} |", group.title(), rows.len());
    }
    for (group, rows) in tables() {
        let head: &[&str] = match group {
            Group::Prr => &["cell", "ns-3", "ours", "(1 - BER)^n", "difference, points", "within 2 points"],
            Group::Mobility => &[
                "cell",
                "delivered: ns-3",
                "ours",
                "ratio",
                "messages per packet: ns-3",
                "ours",
                "ratio",
                "both within 10 %",
            ],
            _ => &[
                "cell",
                "delivered/s: ns-3",
                "ours",
                "ratio",
                "within 5 %",
                "data frames on air/s: ns-3",
                "ours",
            ],
        };
        let _ = writeln!(text, "\n{} (`{}`), {} s:\n", group.title(), group.name(), plan.seconds(group));
        let _ = writeln!(text, "| {} |\n|{}", head.join(" | "), " --- |".repeat(head.len()));
        for row in rows {
            let _ = writeln!(text, "{}", row.line());
        }
    }
    text
}

fn compare(program: &Program) {
    let plan = Plan::from_environment();
    let runs = |cell: usize| (1..=plan.runs).map(move |run| (cell, run));
    let work: Vec<_> = (0..plan.cells.len()).flat_map(runs).collect();
    // Both simulators run one after the other, since each uses a core.
    let results = side_by_side(work.len(), plan.at_once, |job, _| {
        let (cell, run) = work[job];
        let scene = &plan.cells[cell];
        let seconds = plan.seconds(scene.group());
        let theirs = scene.refer(program, run, seconds);
        let theirs = theirs.inspect_err(|why| eprintln!("{scene}, run {run}: {why}")).ok();
        (theirs, scene.simulate(run, seconds))
    });
    let of_cell = |cell: usize| work.iter().zip(&results).filter(move |(job, _)| job.0 == cell);
    let rows: Vec<Row> = (0..plan.cells.len())
        .filter_map(|cell| {
            let theirs: Vec<_> = of_cell(cell).filter_map(|(_, result)| result.0).collect();
            let ours: Vec<_> = of_cell(cell).map(|(_, result)| result.1).collect();
            Row::new(plan.cells[cell], &theirs, &ours)
        })
        .collect();
    let text = page(&rows, &plan, &ns3::version());
    publish(&text);
    assert_eq!(rows.len(), plan.cells.len(), "some cells have no run: see above");
    if env::var_os("ANABRANCH_COMPARE").is_none() {
        // With one short run, some per cent are chance.
        assert!(rows.iter().all(|row| row.is_nearly_within(3.0)), "{text}");
    }
}

// `cargo xtask compare` selects this test by its name.
#[test]
fn our_radio_does_as_ns3_does() {
    const MODULES: [&str; 10] = [
        "aodv",
        "lr-wpan",
        "wifi",
        "internet",
        "traffic-control",
        "spectrum",
        "propagation",
        "mobility",
        "network",
        "core",
    ];
    if let Some(program) = Program::compile("radio.cc", &MODULES) {
        compare(&program);
    }
}

#[test]
fn our_side_of_the_radio_comparison_agrees_with_sums_by_hand() {
    let rule = Rule::Default;
    // Back-off of 3.5 periods, assessment, turnaround, frame, turnaround, acknowledgement, LIFS.
    let hop = Scene::Star { senders: 1, psdu: 127, rule }.simulate(1, 60);
    let by_hand = 1e6 / (1120 + 128 + 192 + 4256 + 192 + 352 + 640) as f64;
    assert!((hop.delivered / by_hand - 1.0).abs() < 0.005, "{hop:?}");
    // DIFS, back-off of 15.5 slots, frame, SIFS, acknowledgement.
    let dcf = Scene::Dcf { senders: 1, rts: false }.simulate(1, 20);
    let by_hand = 1e6 / (50 + 310 + 192 + 748 + 10 + 192 + 11) as f64;
    assert!((dcf.delivered / by_hand - 1.0).abs() < 0.005, "{dcf:?}");
    for distance in [160.0, 180.0, 200.0] {
        let cell = Scene::Prr { distance, psdu: 60 };
        let (closed, simulated) = (cell.closed_form().unwrap(), cell.simulate(1, 500));
        assert!((simulated.delivered - closed).abs() < 0.02, "{distance} m: {closed} and {simulated:?}");
    }
    let chain = Scene::Aodv { hops: 2, rate: 20, rule }.simulate(1, 10);
    assert!(chain.delivered > 19.0 && chain.on_air >= 2.0 * chain.delivered, "{chain:?}");
    // Dense enough for routes, and slow enough for them to last.
    let field = Scene::Mobility { speed: 1, sources: 5, rule }.simulate(1, 30);
    assert!(field.delivered > 0.9 && field.delivered <= 1.0 && field.on_air > 0.0, "{field:?}");
}

#[test]
fn cells_of_the_radio_comparison_are_chosen_by_name() {
    let all = Plan::new(Some("whole"), None);
    let mut names: Vec<String> = all.cells.iter().map(|cell| format!("{:?} {cell}", cell.group())).collect();
    names.sort();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    for group in Group::ALL {
        let some = Plan::new(Some("whole"), Some(group.name())).cells;
        assert!(!some.is_empty() && some.iter().all(|cell| cell.group() == group));
        assert!(Plan::new(None, Some(group.name())).cells.len() <= some.len());
    }
    let unknown = std::panic::catch_unwind(|| Plan::new(Some("quick"), Some("token-ring")));
    assert!(unknown.is_err());
}

#[test]
fn verdicts_of_the_radio_comparison() {
    let figures = |delivered| Figures { delivered, on_air: 2.0 * delivered };
    let row = |cell, theirs: f64, ours: f64| {
        Row::new(cell, &[figures(theirs), figures(theirs)], &[figures(ours)]).unwrap()
    };
    let star = Scene::Star { senders: 5, psdu: 127, rule: Rule::Default };
    assert!(row(star, 100.0, 104.9).is_within(1.0) && !row(star, 100.0, 105.1).is_within(1.0));
    assert!(!row(star, 100.0, 94.9).is_within(1.0) && row(star, 0.0, 0.0).is_within(1.0));
    assert_eq!(
        row(star, 100.0, 110.0).line(),
        "| 5 senders | 100.0 ± 0.0 | 110.0 | 1.100 | **no** | 200.0 | 220.0 |"
    );
    let field = Scene::Mobility { speed: 20, sources: 10, rule: Rule::Hello };
    assert!(row(field, 0.8, 0.87).is_within(1.0) && !row(field, 0.8, 0.89).is_within(1.0));
    let loads = [Figures { delivered: 0.8, on_air: 1.0 }, Figures { delivered: 0.8, on_air: 0.8 }];
    let load = Row::new(field, &loads[..1], &loads[1..]).unwrap();
    assert!(!load.is_within(1.0) && load.is_within(3.0));
    assert_eq!(
        load.line(),
        "| 20 m/s, 10 sources; Hello messages | 0.800 | 0.800 | 1.000 | 1.00 | 0.80 | 0.800 | **no** |"
    );
    assert_eq!(Figures::of_messages([100, 80, 70, 30]), Some(Figures { delivered: 0.8, on_air: 0.5 }));
    let prr = Scene::Prr { distance: 170.0, psdu: 127 };
    assert!(row(prr, 0.5, 0.519).is_within(1.0) && !row(prr, 0.5, 0.521).is_within(1.0));
    assert!(row(prr, 0.5, 0.51).line().ends_with("| +1.0 | yes |"));
    let plan = Plan::new(Some("quick"), None);
    let text = page(&[row(star, 100.0, 110.0), row(prr, 0.5, 0.51)], &plan, "3.37");
    assert!(text.contains("| 1 | 0 | +10.0 % |") && text.contains("| 1 | 1 | +1.0 points |"), "{text}");
    let run = r#"{"delivered":50,"on_air":100,"offered":100}"#;
    let run: Value = serde_json::from_str(run).unwrap();
    let read = |cell: Scene| cell.figures(run["delivered"].as_f64(), run["on_air"].as_f64(), 10).unwrap();
    assert_eq!(read(star), Figures { delivered: 5.0, on_air: 10.0 });
    assert_eq!(read(prr), Figures { delivered: 0.5, on_air: 10.0 });
}
