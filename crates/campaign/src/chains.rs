//! Random chains with many kinds of faults, with and without distributed TCP caching, to show that
//! caching does no harm.

use std::fmt::Write;

use anabranch_core::segment::{Flags, SeqNumber};
use anabranch_core::tcp::{self, InitialWindow, Recovery, RtoConfig, SackRole};
use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::{Scenario, Source};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink, pattern};
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::random::Stream;
use anabranch_sim::trace::{Observer, Point};
use rayon::prelude::*;

use anabranch_lab::experiment::RunError;

/// Number of bytes sent: twenty segments.
const OCTETS: u64 = 2_000;
/// Segment size in bytes.
const MSS: u16 = 100;
/// Latest end of a run.
const STOP: Duration = Duration::from_secs(1_800);
/// Longest retransmission time-out of the end points.
const RTO_MAX: Duration = Duration::from_secs(16);
/// Port of the receiver.
const PORT: u16 = 5_000;
/// Limit on the runs of plain TCP from which the longest stall is taken.
const PLAIN_RUNS: u64 = 20;
/// Number of the first additional run.
const OTHER_RUNS: u64 = 1 << 32;

/// Result of one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transfer {
    /// Number of bytes that arrived.
    pub delivered: u64,
    /// Whether they are a prefix of the sent bytes, in order and without duplicates.
    pub exact: bool,
    /// Longest time without progress at the sender, until all bytes were acknowledged.
    pub stall: Duration,
    /// Time until all bytes were acknowledged; `None` if they were not.
    pub took: Option<Duration>,
}

/// Result of a chain.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Number of the case.
    pub number: u64,
    /// Number of links.
    pub hops: u64,
    /// Loss probability of each link.
    pub loss: f64,
    /// Plain TCP.
    pub plain: Transfer,
    /// With the paper's algorithm in every node.
    pub paper: Transfer,
    /// With our algorithm in every node.
    pub ours: Transfer,
    /// Longest stall of plain TCP: of the first run if that suffices, else of several runs, since
    /// the longest stall of a single run depends on chance. [`Duration::MAX`] if one of them did
    /// not deliver everything.
    pub plain_stall: Duration,
}

impl Case {
    /// Whether nothing arrived out of order or twice, everything arrived that plain TCP delivers,
    /// and our algorithm never made the sender wait longer than plain TCP by more than one
    /// time-out. For the paper's algorithm see [`Case::paper_stalls`].
    pub fn fine(&self) -> bool {
        let safe = |t: &Transfer| t.exact && (t.took.is_some() || self.plain.took.is_none());
        let patient = no_longer(&self.ours, self.plain_stall);
        self.plain.exact && safe(&self.paper) && safe(&self.ours) && patient
    }

    /// Whether the paper's algorithm makes the sender wait longer than plain TCP by more than one
    /// time-out.
    pub fn paper_stalls(&self) -> bool {
        !no_longer(&self.paper, self.plain_stall)
    }
}

fn no_longer(transfer: &Transfer, plain: Duration) -> bool {
    transfer.stall.as_nanos() <= plain.as_nanos().saturating_add(RTO_MAX.as_nanos())
}

/// Runs the chains `0..count` in parallel, and passes each finished case to `tell`.
///
/// # Errors
///
/// The simulator refuses a chain.
pub fn campaign(seed: u64, count: u64, tell: impl Fn(&Case) + Sync) -> Result<Vec<Case>, RunError> {
    (0..count)
        .into_par_iter()
        .map(|number| {
            let case = case(seed, number)?;
            tell(&case);
            Ok(case)
        })
        .collect()
}

fn case(seed: u64, number: u64) -> Result<Case, RunError> {
    let mut random = Stream::new(seed, number, "campaign dtc-chains", "chain");
    let chain = Chain::draw(&mut random);
    let one = |relay, run| -> Result<Transfer, RunError> {
        // A chain of one hop has no node that uses the profile, which the scenario would otherwise
        // refuse.
        let source = Source::new("chain", chain.scenario(relay)).selecting();
        let scenario = source.scenario().map_err(|e| RunError::Scenario(e.to_string()))?;
        transfer(&scenario, &chain.tcp, seed, run, chain.hops)
    };
    let plain = one("", number)?;
    let (paper, ours) = (one("dtc = \"paper\"", number)?, one("dtc = \"ours\"", number)?);
    let stall_of = |plain: &Transfer| plain.took.map_or(Duration::MAX, |_| plain.stall);
    let mut plain_stall = stall_of(&plain);
    for again in 1..PLAIN_RUNS {
        if no_longer(&paper, plain_stall) && no_longer(&ours, plain_stall) {
            break;
        }
        plain_stall = plain_stall.max(stall_of(&one("", number + again * OTHER_RUNS)?));
    }
    let (hops, loss) = (chain.hops, chain.loss);
    Ok(Case { number, hops, loss, plain, paper, ours, plain_stall })
}

struct Chain {
    hops: u64,
    loss: f64,
    reordering: f64,
    duplication: f64,
    /// Failing nodes: node, time of the failure, duration.
    reboots: Vec<(u64, f64, f64)>,
    /// A detour around this node, used from this time on.
    detour: Option<(u64, f64)>,
    tcp: tcp::Config,
}

impl Chain {
    /// Draws a chain: 1 to 15 hops, 0 to 40 % loss; half of the chains also have delayed and
    /// duplicated packets, a node that restarts, and a route change.
    fn draw(random: &mut Stream) -> Self {
        let hops = random.range(1..=15);
        let loss = random.uniform() * 0.4;
        let mut sometimes = |most: f64| if random.bernoulli(0.5) { random.uniform() * most } else { 0.0 };
        let (reordering, duplication) = (sometimes(0.2), sometimes(0.2));
        let mut reboots = Vec::new();
        let mut detour = None;
        if hops > 1 {
            if random.bernoulli(0.5) {
                let node = random.range(1..=hops - 1);
                reboots.push((node, random.uniform() * 20.0, 0.05 + random.uniform() * 3.0));
            }
            if random.bernoulli(0.5) {
                detour = Some((random.range(1..=hops - 1), random.uniform() * 20.0));
            }
        }
        let sack = if random.bernoulli(0.5) { SackRole::Both } else { SackRole::Receiver };
        let modern = tcp::Config {
            mss: MSS,
            window_limit: Some(random.range(1..=8) as u32),
            rto: RtoConfig { max: RTO_MAX, ..tcp::Config::default().rto },
            timestamps: random.bernoulli(0.3),
            sack,
            data_retries: u8::MAX,
            syn_retries: u8::MAX,
            ..tcp::Config::default()
        };
        let paper = tcp::Config {
            initial_window: InitialWindow::Segments(1),
            recovery: Recovery::RenoGoBackN,
            rto: RtoConfig {
                initial: Duration::from_secs(6),
                min: Duration::from_secs(1),
                max: RTO_MAX,
                granularity: Duration::ZERO,
                ..modern.rto
            },
            ..modern
        };
        let tcp = if random.bernoulli(0.5) { modern } else { paper };
        Self { hops, loss, reordering, duplication, reboots, detour, tcp }
    }

    /// The chain as a scenario; `relay` is inserted into every forwarding node.
    fn scenario(&self, relay: &str) -> String {
        let mut text = "[network]\nconvergence = \"200 ms\"\n".to_owned();
        for profile in ["[dtc.paper]\nalgorithm = \"paper\"\n", "[dtc.ours]\n"] {
            let name = profile.trim_start_matches("[dtc.").split(']').next().unwrap_or_default();
            text += if relay.contains(name) { profile } else { "" };
        }
        let mut say = |line: std::fmt::Arguments<'_>| text.write_fmt(line).expect("a string takes all");
        for i in 0..=self.hops {
            match i == 0 || i == self.hops {
                true => say(format_args!("[[node]]\nname = \"n{i}\"\n")),
                false => say(format_args!("[[node]]\nname = \"n{i}\"\nkind = \"node\"\n{relay}\n")),
            }
        }
        let mut links: Vec<(String, String)> =
            (0..self.hops).map(|i| (format!("n{i}"), format!("n{}", i + 1))).collect();
        if let Some((around, at)) = self.detour {
            let (before, after) = (format!("n{}", around - 1), format!("n{}", around + 1));
            say(format_args!("[[node]]\nname = \"by\"\nkind = \"node\"\n{relay}\n"));
            links.push((before.clone(), "by".to_owned()));
            links.push(("by".to_owned(), after));
            say(format_args!(
                "[[event]]\nat = \"{at:.3} s\"\naction = \"link-down\"\nfrom = \"{before}\"\nto = \"n{around}\"\n"
            ));
        }
        for (from, to) in links {
            say(format_args!(
                "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nloss = {:.4}\n\
                 loss_factors = {{ ack = 0.5, link_ack = 0.25 }}\nlink_ack_timeout = \"3 ms\"\n\
                 reordering = {:.4}\nduplication = {:.4}\n",
                self.loss, self.reordering, self.duplication
            ));
        }
        for (node, at, pause) in &self.reboots {
            say(format_args!(
                "[[event]]\nat = \"{at:.3} s\"\naction = \"fail-node\"\nnode = \"n{node}\"\n\
                 [[event]]\nat = \"{:.3} s\"\naction = \"recover-node\"\nnode = \"n{node}\"\n",
                at + pause
            ));
        }
        text
    }
}

fn transfer(
    scenario: &Scenario,
    tcp: &tcp::Config,
    seed: u64,
    run: u64,
    hops: u64,
) -> Result<Transfer, RunError> {
    let mut builder = scenario.builder(seed, run)?;
    let (from, to) = (NodeId(0), NodeId(hops as u32));
    let receiver = tcp::Config { sack: SackRole::Both, ..*tcp };
    let sink = builder.app(to, Instant::ZERO, Sink::keeping(PORT, receiver));
    let content = Content::Pattern(OCTETS);
    builder.app(from, Instant::ZERO, BulkSender::new(BulkSenderConfig::new(to, PORT, content, *tcp)));
    let mut sim = builder.build();
    sim.observe(Progress {
        sender: from,
        last: Instant::ZERO,
        stall: Duration::ZERO,
        first: None,
        upto: None,
    });
    sim.run_until(Instant::ZERO + STOP);
    let progress: Progress = sim.take_observer().expect("it was put in");
    let kept: Vec<u8> = sim.app::<Sink>(sink).transfers.iter().flat_map(|t| t.kept.iter().copied()).collect();
    let took = progress.is_complete().then(|| progress.last.saturating_since(Instant::ZERO));
    // A transfer that never completes stalls until the end of the run.
    let rest = match took {
        Some(_) => Duration::ZERO,
        None => (Instant::ZERO + STOP).saturating_since(progress.last),
    };
    Ok(Transfer {
        delivered: kept.len() as u64,
        exact: kept.len() as u64 <= OCTETS && pattern()[..kept.len()] == kept[..],
        stall: progress.stall.max(rest),
        took,
    })
}

/// Observes what the sender learns.
struct Progress {
    sender: NodeId,
    last: Instant,
    stall: Duration,
    first: Option<SeqNumber>,
    upto: Option<SeqNumber>,
}

impl Progress {
    /// Whether the SYN and all bytes are acknowledged.
    fn is_complete(&self) -> bool {
        let (Some(first), Some(upto)) = (self.first, self.upto) else { return false };
        upto.distance(first) >= OCTETS as i32
    }
}

impl Observer for Progress {
    fn on_packet(&mut self, now: Instant, _link: LinkId, point: Point, packet: &Packet) {
        let Payload::Tcp(segment) = &packet.payload else { return };
        if point != Point::Received || packet.dst != self.sender || !segment.flags.contains(Flags::ACK) {
            return;
        }
        let news = self.upto.is_none_or(|upto| segment.ack.distance(upto) > 0);
        if news && !self.is_complete() {
            self.first = self.first.or(Some(segment.ack));
            self.upto = Some(segment.ack);
            self.stall = self.stall.max(now.saturating_since(self.last));
            self.last = now;
        }
    }
}
