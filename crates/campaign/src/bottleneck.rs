//! Bulk TCP flows over one drop-tail bottleneck: utilisation, time-outs, retransmissions and
//! fairness of each congestion control, over rates, delays, queues and numbers of flows.
//!
//! Expected values follow from the sawtooth of the window between two losses ([`Sawtooth`]). It is
//! computed from the rules of each algorithm, not taken from a simulation.

use std::cmp::Reverse;

use anabranch_core::tcp::{self, CongestionAlgorithm};
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::event::AppId;
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::loss::LossModel;
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::{Builder, Simulation};
use rayon::prelude::*;

use anabranch_stats::jain;

/// Size of a full packet in bytes.
const PACKET: f64 = 1500.0;
/// Packets in flight that a fast retransmit needs: the lost packet and three behind it.
const FEWEST: f64 = 4.0;
/// Limit on the seconds over which flows must be fair.
const FAIR: f64 = 100.0;

/// A bottleneck and the flows that share it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Congestion control of all flows.
    pub controller: CongestionAlgorithm,
    /// Bit rate in bit/s.
    pub rate: u64,
    /// One-way delay from end to end.
    pub delay: Duration,
    /// Queue in bandwidth-delay products; it holds at least 4 packets.
    pub queue: f64,
    /// Number of flows, which start 10 ms apart.
    pub flows: u16,
    /// Probability of a random loss, towards the receiver.
    pub loss: f64,
}

/// The window between two losses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sawtooth {
    /// Utilisation of the link, 0 to 1.
    pub utilisation: f64,
    /// Time from loss to loss in seconds.
    pub period: f64,
    /// Share of packets lost.
    pub loss: f64,
}

/// Measured results. Slow start and the first sawteeth are excluded, except from `timeouts`.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Share of the time in which the link transmitted.
    pub utilisation: f64,
    /// Retransmission time-outs per 100 s of the flow with the most, measured from the start.
    pub timeouts: f64,
    /// Retransmitted bytes as a share of all bytes sent.
    pub retransmitted: f64,
    /// Jain's index of the bytes acknowledged in the last 100 s; 0 if there are none.
    pub jain: f64,
    /// Acknowledged bits per second of all flows.
    pub goodput: f64,
    /// Round-trip time in seconds at the end, mean over the flows.
    pub rtt: f64,
}

/// Results of the flows of a cell from the first connection attempt on, including slow start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Start {
    /// Acknowledged bits per second of all flows.
    pub goodput: f64,
    /// Retransmitted segments of all flows.
    pub retransmissions: f64,
    /// Retransmission time-outs of all flows.
    pub timeouts: f64,
    /// Smoothed round-trip time in seconds: mean over the flows and over samples 100 ms apart.
    pub srtt: f64,
    /// Jain's index of the acknowledged bytes; 0 if there are none.
    pub jain: f64,
}

/// A cell, its sawtooth, the results, and the limits that they miss.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The cell.
    pub cell: Cell,
    /// Expected values.
    pub sawtooth: Sawtooth,
    /// Measured values.
    pub outcome: Outcome,
    /// Names of the missed limits.
    pub faults: Vec<&'static str>,
}

/// Congestion controls with a known sawtooth.
pub const CONTROLLERS: [CongestionAlgorithm; 4] = [
    CongestionAlgorithm::NewReno,
    CongestionAlgorithm::Cubic,
    CongestionAlgorithm::Westwood,
    CongestionAlgorithm::Bbr,
];

/// Values that a grid combines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Grid<'a> {
    /// Congestion controls.
    pub controllers: &'a [CongestionAlgorithm],
    /// Bit rates in bit/s.
    pub rates: &'a [u64],
    /// Probabilities of a random loss.
    pub losses: &'a [f64],
    /// One-way delays from end to end, in milliseconds.
    pub delays: &'a [u64],
    /// Queues in bandwidth-delay products.
    pub queues: &'a [f64],
    /// Numbers of flows.
    pub flows: &'a [u16],
}

impl Default for Grid<'_> {
    /// All [`CONTROLLERS`] at 10 Mbit/s without random loss: delays {1, 5, 20, 60, 150} ms, queues
    /// {0.25, 0.5, 1, 2, 5} bandwidth-delay products, {1, 2, 8} flows.
    fn default() -> Self {
        Self {
            controllers: &CONTROLLERS,
            rates: &[10_000_000],
            losses: &[0.0],
            delays: &[1, 5, 20, 60, 150],
            queues: &[0.25, 0.5, 1.0, 2.0, 5.0],
            flows: &[1, 2, 8],
        }
    }
}

impl Grid<'_> {
    /// All combinations. The first field changes slowest, the last fastest.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &controller in self.controllers {
            for &rate in self.rates {
                for &loss in self.losses {
                    for delay in self.delays.iter().copied().map(Duration::from_millis) {
                        for &queue in self.queues {
                            cells.extend(self.flows.iter().map(|&flows| Cell {
                                controller,
                                rate,
                                delay,
                                queue,
                                flows,
                                loss,
                            }));
                        }
                    }
                }
            }
        }
        cells
    }
}

/// Runs cells in parallel with this TCP configuration, the longest first. Calls `seen` for each
/// finished case.
pub fn run(cells: &[Cell], tcp: tcp::Config, seen: impl Fn(&Case) + Sync) -> Vec<Case> {
    let mut cells = cells.to_vec();
    cells.sort_by_cached_key(|cell| Reverse(cell.work()));
    let one = |cell: Cell| {
        let case = cell.case(tcp);
        seen(&case);
        case
    };
    cells.into_iter().par_bridge().map(one).collect()
}

impl Cell {
    /// Bandwidth-delay product in packets, without the queue.
    pub fn bdp(&self) -> f64 {
        self.rate as f64 * 2.0 * self.delay.as_secs_f64() / 8.0 / PACKET + 1.0
    }

    /// Length of the queue in packets.
    pub fn packets(&self) -> u32 {
        (self.queue * self.bdp()).round().max(4.0) as u32
    }

    /// The sawtooth of one flow if all flows lose a packet at the same time, which is the worst
    /// case.
    pub fn sawtooth(&self) -> Sawtooth {
        let flows = f64::from(self.flows);
        let rtt = self.bdp() * PACKET * 8.0 / self.rate as f64;
        if self.controller == CongestionAlgorithm::Bbr {
            return Sawtooth::bbr(self.bdp() / flows, rtt);
        }
        Sawtooth::new(self.controller, self.bdp() / flows, f64::from(self.packets()) / flows, rtt)
    }

    /// Whether time-outs are to be expected: after a loss, the window of a flow is so small that a
    /// further loss causes fewer than three duplicate acknowledgements.
    pub fn is_crowded(&self) -> bool {
        (self.bdp() + f64::from(self.packets())) / f64::from(self.flows) < 2.0 * FEWEST
    }

    /// Minimum number of sawteeth of `period` seconds in the measurement, and of losses of each
    /// flow before it: 2. A sawtooth of more than a million packets is measured from its first loss
    /// to the second.
    fn teeth(&self, period: f64) -> u64 {
        let packets = self.rate as f64 / 8.0 / PACKET * period;
        if packets < 1e6 { 2 } else { 1 }
    }

    /// Minimum seconds before the measurement, and its length: whole sawteeth, at least 100 s.
    pub fn seconds(&self) -> (f64, f64) {
        let period = self.sawtooth().period;
        let teeth = self.teeth(period) as f64;
        (((teeth - 1.0) * period).max(10.0), (teeth * period).max(FAIR))
    }

    /// Approximate number of simulated bits.
    fn work(&self) -> u64 {
        let (warm, span) = self.seconds();
        ((warm + span) * self.rate as f64) as u64
    }

    fn case(&self, tcp: tcp::Config) -> Case {
        let (warm, span) = self.seconds();
        let (sawtooth, outcome) = (self.sawtooth(), self.measure(tcp, 1, warm, span));
        Case { cell: *self, sawtooth, faults: self.faults(&sawtooth, &outcome), outcome }
    }

    fn faults(&self, sawtooth: &Sawtooth, outcome: &Outcome) -> Vec<&'static str> {
        let most = match self.controller {
            CongestionAlgorithm::Bbr => 0.05,
            _ if self.queue < 0.5 => 0.04,
            _ => 0.02,
        };
        let all = [
            (outcome.utilisation < 0.97 * sawtooth.utilisation, "utilisation"),
            (outcome.timeouts > 1.0 && !self.is_crowded(), "time-outs"),
            // Where windows are small, a sawtooth is short, and one loss per sawtooth exceeds the
            // general limit.
            (
                outcome.retransmitted > f64::max(most, 2.5 * sawtooth.loss) && !self.is_crowded(),
                "retransmissions",
            ),
            (outcome.jain < 0.9, "fairness"),
        ];
        all.into_iter().filter_map(|(missed, what)| missed.then_some(what)).collect()
    }

    /// Runs the cell for at least `warm` seconds until slow start is over, then measures for `span`
    /// seconds.
    pub fn measure(&self, tcp: tcp::Config, seed: u64, warm: f64, span: f64) -> Outcome {
        let at = |seconds| Instant::ZERO + Duration::from_secs_f64(seconds);
        let mut run = Run::new(self, tcp, seed);
        let mut warm = warm;
        run.sim.run_until(at(warm));
        // Slow start may leave a window far below the sawtooth. It does so with Westwood+, whose
        // estimate lags behind the window.
        let least = if self.controller == CongestionAlgorithm::Westwood { 2 } else { 1 };
        let losses = self.teeth(self.sawtooth().period).max(least);
        let latest = warm + (self.bdp() + f64::from(self.packets())) * 4.0 * self.delay.as_secs_f64();
        while self.controller != CongestionAlgorithm::Bbr && !run.has_lost(losses) && warm < latest {
            warm += 1.0;
            run.sim.run_until(at(warm));
        }
        let before = run.counts();
        run.sim.run_until(at(warm + span - span.min(FAIR)));
        let last = run.counts();
        run.sim.run_until(at(warm + span));
        let after = run.counts();
        let most = after.timeouts.iter().max().copied().unwrap_or(0);
        Outcome {
            utilisation: (after.busy - before.busy) / span,
            timeouts: most as f64 * 100.0 / (warm + span),
            retransmitted: (after.again - before.again) as f64 / (after.sent - before.sent).max(1) as f64,
            jain: jain(&after.acked_since(&last)).unwrap_or(0.0),
            goodput: after.acked_since(&before).iter().sum::<f64>() * 8.0 / span,
            rtt: after.rtt,
        }
    }

    /// Runs the cell for `span` seconds and measures all of it.
    pub fn measure_start(&self, tcp: tcp::Config, seed: u64, span: f64) -> Start {
        let mut run = Run::new(self, tcp, seed);
        let (mut sum, mut samples) = (0.0, 0_u32);
        for tick in 1..=(span * 10.0).round() as u64 {
            run.sim.run_until(Instant::ZERO + Duration::from_millis(100) * tick);
            for info in run.infos() {
                sum += info.srtt.map_or(0.0, Duration::as_secs_f64);
                samples += 1;
            }
        }
        let infos: Vec<tcp::Info> = run.infos().collect();
        let shares: Vec<f64> = infos.iter().map(|info| info.bytes_acked as f64).collect();
        Start {
            goodput: shares.iter().sum::<f64>() * 8.0 / span,
            retransmissions: infos.iter().map(|info| info.retransmissions as f64).sum(),
            timeouts: infos.iter().map(|info| info.timeouts as f64).sum(),
            srtt: sum / f64::from(samples.max(1)),
            jain: jain(&shares).unwrap_or(0.0),
        }
    }
}

impl Sawtooth {
    /// The cycle of BBR, which has no sawtooth: it sends 1 % less than the path delivers
    /// (BBR.PacingMarginPercent).
    ///
    /// The queue built by UP keeps the link busy through DOWN. After losses, CRUISE leaves 85 % of
    /// what link and queue hold together in flight, which is more than the link alone holds for the
    /// queues used here. Every 5 s ProbeRTT halves the data in flight, for 200 ms that begin when
    /// the half is reached, one round trip later, and end with a round trip; in the worst case all
    /// flows do so at once. A flow keeps four packets in flight (BBR.MinPipeCwnd). `bdp` is a
    /// flow's share in packets.
    fn bbr(bdp: f64, rtt: f64) -> Self {
        let (margin, interval, probe) = (0.99, 5.0, 0.2 + rtt);
        let share = (FEWEST / bdp).clamp(0.5, 1.0);
        let utilisation = margin * (interval + probe * share) / (interval + probe);
        Self { utilisation, period: interval, loss: 0.0 }
    }

    /// The sawtooth of one flow. `bdp` and `queue` are in packets, `rtt` is in seconds without a
    /// queue.
    fn new(controller: CongestionAlgorithm, bdp: f64, queue: f64, rtt: f64) -> Self {
        let top = bdp + queue;
        let cubic = controller == CongestionAlgorithm::Cubic;
        let bottom = match controller {
            CongestionAlgorithm::Cubic => 0.7 * top,
            // BWE RTTmin.
            CongestionAlgorithm::Westwood => bdp,
            _ => top / 2.0,
        };
        // RFC 9438, equation 2.
        let k = ((top - bottom) / 0.4).cbrt();
        let (mut window, mut friendly, mut time, mut sent) = (bottom, bottom, 0.0, 0.0);
        while window < top {
            let round = rtt * (window / bdp).max(1.0);
            let step = (round / 16.0).min(0.05);
            sent += window.min(bdp) / rtt * step;
            time += step;
            if cubic {
                // RFC 9438, equations 1 and 4.
                friendly += 9.0 / 17.0 * step / round;
                window = friendly.max(0.4 * (time - k).powi(3) + top);
            } else {
                window += step / round;
            }
        }
        let utilisation = if time > 0.0 { sent / (time * bdp / rtt) } else { 1.0 };
        Self { utilisation, period: time, loss: 1.0 / sent.max(1.0) }
    }
}

struct Run {
    sim: Simulation,
    from: NodeId,
    senders: Vec<AppId>,
}

#[derive(Default)]
struct Counts {
    /// Seconds in which the link transmitted.
    busy: f64,
    /// By flow.
    timeouts: Vec<u64>,
    /// Bytes.
    sent: u64,
    again: u64,
    /// Bytes by flow.
    acked: Vec<u64>,
    /// Seconds.
    rtt: f64,
}

impl Counts {
    /// Bytes of each flow acknowledged after `before`.
    fn acked_since(&self, before: &Self) -> Vec<f64> {
        self.acked.iter().zip(&before.acked).map(|(now, before)| (now - before) as f64).collect()
    }
}

impl Run {
    fn new(cell: &Cell, tcp: tcp::Config, seed: u64) -> Self {
        let mut builder = Builder::new(NetworkConfig::default(), seed, 0);
        let [from, to] = ["from", "to"].map(|name| builder.node(name, Forwarding::Off));
        let loss = if cell.loss > 0.0 { LossModel::Bernoulli { p: cell.loss } } else { LossModel::None };
        let queue = QueueLimit::Packets(cell.packets());
        let there = LinkConfig { queue, loss, ..LinkConfig::new(cell.rate, cell.delay) };
        builder.link(from, to, there);
        let queue = QueueLimit::Packets(100_000);
        builder.link(to, from, LinkConfig { queue, ..LinkConfig::new(cell.rate, cell.delay) });
        // Buffers are large enough that they are never the limit.
        let buffer = ((cell.bdp() + f64::from(cell.packets())) * PACKET * 4.0) as u32;
        let tcp = tcp::Config {
            congestion: cell.controller,
            send_buffer: tcp.send_buffer.max(buffer),
            receive_buffer: tcp.receive_buffer.max(buffer),
            window_scale: Some(14),
            ..tcp
        };
        let flow = |flow: u16| {
            builder.app(to, Instant::ZERO, Sink::new(80 + flow, tcp));
            let bulk = BulkSenderConfig::new(to, 80 + flow, Content::Endless, tcp);
            let start = Instant::ZERO + Duration::from_millis(10) * u64::from(flow);
            builder.app(from, start, BulkSender::new(bulk))
        };
        let senders = (0..cell.flows).map(flow).collect();
        Self { sim: builder.build(), from, senders }
    }

    /// Current state of all connections. The values that a sender keeps are as old as its last
    /// event.
    fn infos(&self) -> impl Iterator<Item = tcp::Info> {
        let world = self.sim.world();
        let connections = self.senders.iter().filter_map(|id| self.sim.app::<BulkSender>(*id).connection());
        connections.filter_map(|id| world.info(self.from, id))
    }

    /// Whether each flow has had at least `times` losses.
    fn has_lost(&self, times: u64) -> bool {
        let info = |id: &AppId| self.sim.app::<BulkSender>(*id).info;
        self.senders.iter().filter_map(info).all(|info| info.fast_retransmits + info.timeouts >= times)
    }

    fn counts(&self) -> Counts {
        let link = self.sim.world().network.links()[0].metrics();
        let mut counts = Counts { busy: link.busy.as_secs_f64(), ..Counts::default() };
        for info in self.senders.iter().filter_map(|id| self.sim.app::<BulkSender>(*id).info) {
            counts.timeouts.push(info.timeouts);
            counts.sent += info.bytes_sent;
            counts.again += info.retransmissions * u64::from(info.mss);
            counts.acked.push(info.bytes_acked);
            counts.rtt += info.srtt.map_or(0.0, Duration::as_secs_f64) / self.senders.len() as f64;
        }
        counts
    }
}
