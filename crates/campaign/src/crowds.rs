//! Many connections over one chain of caching nodes with memory for only a few, to show that
//! distributed TCP caching does no harm there.

use std::fmt::Write;

use anabranch_core::tcp::{self, RtoConfig};
use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::Source;
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Outcome, Sink};
use anabranch_sim::packet::NodeId;
use anabranch_sim::random::Stream;
use anabranch_stats::jain;
use rayon::prelude::*;

use anabranch_lab::experiment::RunError;

/// Longest retransmission time-out of the senders.
const RTO_MAX: Duration = Duration::from_secs(16);
/// Latest end of a run.
const STOP: Duration = Duration::from_secs(3_600);
/// Limit on the runs without caching from which the longest completion is taken.
const PLAIN_RUNS: u64 = 5;
/// First port of the senders.
const PORT: u16 = 5_000;

/// A chain with its connections, which all start at once.
#[derive(Clone, PartialEq, Debug)]
pub struct Crowd {
    /// Number of connections.
    pub flows: u64,
    /// Number of links.
    pub hops: u64,
    /// Loss probability of data on each link; that of acknowledgements is half, that of link-layer
    /// acknowledgements a quarter.
    pub loss: f64,
    /// Bit rate of each link in kbit/s.
    pub rate: u64,
    /// Length of each link's queue in packets.
    pub queue: u64,
    /// Number of bytes of each connection.
    pub bytes: u64,
    /// Limit on the segments that a sender has in flight.
    pub window: u32,
}

/// Completion times of the connections of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Completions {
    /// Median completion in seconds; a connection that did not complete counts as infinite.
    pub median: f64,
    /// Longest completion in seconds.
    pub longest: f64,
    /// Jain's index of the throughputs.
    pub jain: f64,
}

/// Result of a crowd.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Number of the case.
    pub number: u64,
    /// The crowd.
    pub crowd: Crowd,
    /// Without caching: of several runs, that with the longest completion, unless the first run
    /// suffices.
    pub plain: Completions,
    /// With our algorithm and its default memory.
    pub ours: Completions,
}

impl Case {
    /// Whether no connection takes longer than the longest one without caching by more than one
    /// retransmission time-out.
    pub fn fine(&self) -> bool {
        no_longer(&self.ours, &self.plain)
    }
}

fn no_longer(ours: &Completions, plain: &Completions) -> bool {
    ours.longest <= plain.longest + RTO_MAX.as_secs_f64()
}

/// Runs the crowds `0..count` in parallel, and passes each finished case to `tell`.
///
/// # Errors
///
/// The simulator refuses a chain.
pub fn campaign(seed: u64, count: u64, tell: impl Fn(&Case) + Sync) -> Result<Vec<Case>, RunError> {
    (0..count)
        .into_par_iter()
        .map(|number| {
            let crowd = Crowd::draw(&mut Stream::new(seed, number, "campaign dtc-chains", "crowd"));
            let ours = crowd.run(Some(""), seed, number)?;
            let mut plain = crowd.run(None, seed, number)?;
            for again in 1..PLAIN_RUNS {
                if no_longer(&ours, &plain) {
                    break;
                }
                let other = crowd.run(None, seed, number + (again << 32))?;
                plain = if other.longest > plain.longest { other } else { plain };
            }
            let case = Case { number, crowd, plain, ours };
            tell(&case);
            Ok(case)
        })
        .collect()
}

impl Crowd {
    /// Draws a crowd: 1 to 200 connections over 2 to 8 hops, 0 to 15 % loss.
    fn draw(random: &mut Stream) -> Self {
        Self {
            flows: 200_f64.powf(random.uniform()).round() as u64,
            hops: random.range(2..=8),
            loss: random.uniform() * 0.15,
            rate: [64, 256, 1000][random.range(0..=2) as usize],
            queue: random.range(10..=100),
            bytes: random.range(1_000..=8_000),
            window: random.range(1..=8) as u32,
        }
    }

    /// Runs the crowd without caching, or with `relay` as the options of caching nodes, in the
    /// syntax of a scenario file.
    ///
    /// # Errors
    ///
    /// The simulator refuses the chain.
    pub fn run(&self, relay: Option<&str>, seed: u64, run: u64) -> Result<Completions, RunError> {
        let source = Source::new("crowd", self.scenario(relay));
        let scenario = source.scenario().map_err(|e| RunError::Scenario(e.to_string()))?;
        let mut builder = scenario.builder(seed, run)?;
        let modern = tcp::Config::default();
        let tcp = tcp::Config {
            mss: 81,
            window_limit: Some(self.window),
            rto: RtoConfig { max: RTO_MAX, ..modern.rto },
            data_retries: u8::MAX,
            syn_retries: u8::MAX,
            ..modern
        };
        let to = NodeId(self.hops as u32);
        let mut sender = |port| {
            builder.app(to, Instant::ZERO, Sink::new(port, tcp));
            let config = BulkSenderConfig::new(to, port, Content::Pattern(self.bytes), tcp);
            builder.app(NodeId(0), Instant::ZERO, BulkSender::new(config))
        };
        let senders: Vec<_> = (0..self.flows as u16).map(|n| sender(PORT + n)).collect();
        let mut sim = builder.build();
        sim.run_until(Instant::ZERO + STOP);
        let took = |id: &_| match sim.app::<BulkSender>(*id) {
            BulkSender { outcome: Outcome::Done, finished: Some(at), .. } => at.as_secs_f64(),
            _ => f64::INFINITY,
        };
        let mut took: Vec<f64> = senders.iter().map(took).collect();
        took.sort_by(f64::total_cmp);
        let rates: Vec<f64> = took.iter().map(|took| took.recip()).collect();
        let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
        Ok(Completions { median, longest, jain: jain(&rates).unwrap_or(0.0) })
    }

    /// Mean of several runs with memory for this number of connections and segments.
    ///
    /// # Errors
    ///
    /// The simulator refuses the chain.
    pub fn with_memory(
        &self,
        connections: u32,
        segments: u32,
        seed: u64,
        runs: u64,
    ) -> Result<Completions, RunError> {
        let relay = format!("connections = {connections}\ncache_segments = {segments}");
        let each: Result<Vec<Completions>, _> =
            (0..runs).into_par_iter().map(|run| self.run(Some(&relay), seed, run)).collect();
        let each = each?;
        let mean = |of: fn(&Completions) -> f64| each.iter().map(of).sum::<f64>() / runs as f64;
        Ok(Completions { median: mean(|c| c.median), longest: mean(|c| c.longest), jain: mean(|c| c.jain) })
    }

    fn scenario(&self, relay: Option<&str>) -> String {
        let mut text = relay.map_or(String::new(), |options| format!("[dtc.relay]\n{options}\n"));
        let caching = if relay.is_some() { "dtc = \"relay\"\n" } else { "" };
        let mut say = |line: std::fmt::Arguments<'_>| text.write_fmt(line).expect("a string takes all");
        for i in 0..=self.hops {
            match i == 0 || i == self.hops {
                true => say(format_args!("[[node]]\nname = \"n{i}\"\n")),
                false => say(format_args!("[[node]]\nname = \"n{i}\"\nkind = \"node\"\n{caching}")),
            }
        }
        for i in 0..self.hops {
            say(format_args!(
                "[[link]]\nfrom = \"n{i}\"\nto = \"n{}\"\nrate = \"{} kbit/s\"\ndelay = \"5 ms\"\n\
                 queue = \"{} packets\"\nloss = {:.4}\n\
                 loss_factors = {{ ack = 0.5, link_ack = 0.25 }}\nlink_ack_timeout = \"3 ms\"\n",
                i + 1,
                self.rate,
                self.queue,
                self.loss
            ));
        }
        text
    }
}

/// Crowds by which the memory of a node is judged; `docs/explanation/dtc.md` has the result.
pub const JUDGED: [Crowd; 2] = [
    Crowd { flows: 100, hops: 6, loss: 0.1, rate: 256, queue: 100, bytes: 8_000, window: 2 },
    Crowd { flows: 200, hops: 4, loss: 0.15, rate: 1000, queue: 100, bytes: 4_000, window: 8 },
];

/// Memory of a node: numbers of connections and of segments.
pub const MEMORIES: [(u32, u32); 8] =
    [(1, 1), (16, 1), (16, 8), (128, 1), (128, 2), (128, 8), (128, 16), (128, 64)];
