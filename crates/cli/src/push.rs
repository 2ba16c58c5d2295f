//! `anabranch push`: deliver a file to a node through several gateways, deployed or simulated.

mod faults;
mod network;
mod report;

use std::path::PathBuf;

use anabranch_core::set::Outcome;
use anabranch_core::time::{Duration, Instant};
use anabranch_deploy::error::Error;
use anabranch_deploy::files::{check_apart, check_writable, read, write_whole};
use anabranch_deploy::output;
use anabranch_deploy::push::report::Compared;
use anabranch_deploy::push::{self as deployed, progress};
use anabranch_model::set::Best;
use anabranch_scenario::record::SetFigures;
use anabranch_scenario::{Plan, Planned, PlannedSet, Scenario};
use anabranch_sim::apps::set::{SetNode, SetRelay, SetSender};
use anabranch_sim::capture::Capture;
use anabranch_sim::sim::{Pause, Simulation};
use bytes::Bytes;
use clap::Args;

use self::faults::GatewayFault;
use self::network::{Pushed, Scheme};
use crate::events::{self, Patience};
use crate::run;

/// Simulated time between two updates of the progress display.
const STEP: Duration = Duration::from_millis(100);

/// Options of `push`.
#[derive(Debug, Args)]
// clap derives a group for each `Args`; the flattened options already have one of this name.
#[group(skip)]
pub struct Arguments {
    #[command(flatten)]
    common: deployed::Arguments,
    /// Scenario file with the network and one SET transfer, which the file replaces [default: a
    /// built-in network with three gateways]
    #[arg(long, conflicts_with_all = deployed::DEPLOYED, value_name = "FILE.toml")]
    network: Option<PathBuf>,
    /// Write the bytes that the node received to this file
    #[arg(long, conflicts_with_all = deployed::DEPLOYED, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Also simulate end-to-end TCP, split TCP, and SET with 1, 2, ... gateways on the same network
    #[arg(long, conflicts_with_all = deployed::DEPLOYED)]
    compare: bool,
    /// Let gateways fail during the transfer, as in `gw2@1.5s`.
    ///
    /// The time counts from the request; several failures are joined by `+`. `gw2@1.5s:reset` also
    /// resets the gateway's connections, and `gw2@1.5s:back@5s` restarts it at 5 s.
    #[arg(long, conflicts_with_all = deployed::DEPLOYED, value_name = "GATEWAY@TIME", value_parser = faults::parse)]
    fail: Option<faults::Faults>,
    /// Seed of the simulation [default: the network's seed]
    #[arg(long, conflicts_with_all = deployed::DEPLOYED, value_name = "SEED")]
    seed: Option<u64>,
    /// Write every packet to this pcapng file, for Wireshark
    #[arg(long, conflicts_with_all = deployed::DEPLOYED, value_name = "PATH")]
    pcap: Option<PathBuf>,
    /// Write an event log to this file, for `anabranch view`
    #[arg(long, conflicts_with_all = deployed::DEPLOYED, value_name = "PATH")]
    events: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let deployed::Arguments { file: path, to, gateways, json, quiet, .. } = &arguments.common;
    if to.is_some() {
        return deployed::main(&arguments.common);
    }
    let network = arguments.network.as_deref().map(|network| ("the network", network));
    let outputs = [("--out", &arguments.out), ("--pcap", &arguments.pcap), ("--events", &arguments.events)];
    check_apart(std::iter::once(("the file to push,", path.as_path())).chain(network), run::given(&outputs))?;
    let file = read(path)?;
    let network = network::load(arguments.network.as_deref())?;
    let pushed = network::scenario(&network, *gateways, file.len() as u64)?;
    let Pushed { scenario, best, .. } = &pushed;
    let faults = arguments.fail.as_ref().map_or(&[][..], |f| &f.0);
    network::check_faults(scenario, faults)?;
    // Check the output paths before the simulation starts, which may take long.
    for path in [&arguments.out, &arguments.pcap].into_iter().flatten() {
        check_writable(path)?;
    }
    let seed = arguments.seed.unwrap_or(scenario.seed);
    let create = |path: &Option<PathBuf>| path.as_deref().map(events::create).transpose();
    let (capture, log) = (create(&arguments.pcap)?, create(&arguments.events)?);
    // An interrupt must reach us, so that incomplete output files are removed.
    let patience = (capture.is_some() || log.is_some()).then(Patience::new).transpose()?;

    let mut push = Push::new(&pushed, seed, &file, faults);
    if let Some(out) = capture {
        push.sim.observe(Capture::new(out, scenario.network.ip));
    }
    if let Some(log) = log {
        events::attach(&mut push.sim, log, scenario.log_head(seed, 0));
    }
    let names = scenario.nodes.iter().map(|n| n.name.clone()).collect();
    let bars = progress::Bars::new(*quiet, names, file.len() as u64);
    if let Some(best) = best {
        let Best { gateways, options } = best;
        let latency = best.latency().total;
        bars.say(&format!(
            "{gateways} of {} gateways are best by the model, which predicts {latency:.3} s",
            options.len()
        ));
    }
    push.run(scenario, &bars, patience.as_ref())?;
    if let Some(path) = &arguments.events {
        events::finish(&mut push.sim, path)?;
    }
    if let Some(path) = &arguments.pcap {
        events::finish_capture(&mut push.sim, path)?;
    }
    let compare = if arguments.compare {
        compare(&network, &pushed, seed, &file, faults, patience.as_ref())?
    } else {
        Vec::new()
    };
    let report = report::of_simulated(&push, scenario, &file, compare);
    if let (Some(path), true) = (&arguments.out, report.verified == Some(true)) {
        write_whole(path, push.delivered())?;
    }
    let printed = if *json { output::json(&report) } else { output::text(&report.to_string()) };
    // A reader that has gone does not turn a failure into a success.
    push.verdict(scenario, &report).and(printed)
}

/// One simulated transfer.
struct Push {
    sim: Simulation,
    planned: Planned,
    /// Index of the transfer in the scenario.
    transfer: usize,
}

impl Push {
    fn new(pushed: &Pushed, seed: u64, file: &Bytes, faults: &[GatewayFault]) -> Self {
        let Pushed { scenario, transfer, .. } = pushed;
        let files = network::contents(scenario, file);
        let Plan { mut builder, planned } =
            scenario.plan(seed, 0, &files).expect("a push has no radio, and nothing that is drawn");
        for fault in faults {
            fault.bound(scenario).for_each(|(at, fault)| builder.fault(Instant::ZERO + at, fault));
        }
        Self { sim: builder.build(), planned, transfer: *transfer }
    }

    fn run(
        &mut self,
        scenario: &Scenario,
        bars: &progress::Bars,
        patience: Option<&Patience>,
    ) -> Result<(), Error> {
        let mut next = Instant::ZERO;
        while self.sender().outcome().is_none() && next < scenario.stop {
            patience.map_or(Ok(()), Patience::check)?;
            next += STEP;
            // Without an outcome and without a pending event the transfer can never complete.
            let idle = self.sim.run_until(next) == Pause::Idle;
            let sessions = self.sender().sessions().into_iter().map(|(session, _)| session);
            bars.update(sessions, self.sender().delivered());
            if idle && self.sender().outcome().is_none() {
                break;
            }
        }
        bars.finish();
        // Run on, so that the capture and the event log contain the end of the connections.
        self.sim.run_until(self.sim.now() + Duration::from_secs(5));
        Ok(())
    }

    fn planned_set(&self) -> &PlannedSet {
        let set = self.planned.sets.iter().find(|set| set.index == self.transfer);
        set.expect("the transfer begins with a request")
    }

    fn sender(&self) -> &SetSender {
        self.sim.app(self.planned_set().sender)
    }

    fn node(&self) -> &SetNode {
        self.sim.app(self.planned_set().node)
    }

    /// Number of segments that a gateway's TCP retransmitted to nodes.
    fn wireless_retransmissions(&self, gateway: u16) -> u64 {
        let relay = self.planned.relays.iter().find(|(node, _)| node.0 == u32::from(gateway));
        relay.map_or(0, |(_, app)| self.sim.app::<SetRelay>(*app).wireless_totals().retransmissions)
    }

    fn figures(&self) -> SetFigures {
        SetFigures::of(self.planned_set(), &self.planned, &self.sim)
    }

    /// The bytes that the node's application has read from the receive buffer.
    fn delivered(&self) -> &[u8] {
        &self.node().delivered
    }

    fn verdict(&self, scenario: &Scenario, report: &deployed::report::Report) -> Result<(), Error> {
        let got = format!("{} of {} bytes were delivered", report.delivered_bytes, report.bytes);
        match self.sender().outcome() {
            Some(Outcome::Delivered) if report.verified == Some(true) => Ok(()),
            Some(Outcome::Delivered) => Err(Error::job("the delivered bytes differ from the file")),
            Some(Outcome::Failed(failure)) => Err(Error::job(format!("not delivered: {failure}; {got}"))
                .with_hint("check --gateways, --fail and the network")),
            None => Err(Error::job(format!("not delivered within {}; {got}", text_of(scenario.stop)))
                .with_hint("raise `stop` in the network's file")),
        }
    }
}

/// Simulates every scheme with the same network, seed and faults.
fn compare(
    network: &network::Network,
    pushed: &Pushed,
    seed: u64,
    file: &Bytes,
    faults: &[GatewayFault],
    patience: Option<&Patience>,
) -> Result<Vec<Compared>, Error> {
    let most = network::gateway_count(&pushed.scenario, pushed.transfer);
    let mut schemes = vec![(Scheme::EndToEnd, 1), (Scheme::Split, 1)];
    schemes.extend((1..=most).map(|n| (Scheme::Set, n)));
    schemes
        .into_iter()
        .map(|(scheme, gateways)| {
            let pushed = network::with_scheme(network, scheme, gateways, file.len() as u64)?;
            let mut push = Push::new(&pushed, seed, file, faults);
            push.run(&pushed.scenario, &progress::Bars::none(), patience)?;
            let latency_s = push.figures().latency.map(|d| d.as_secs_f64());
            Ok(Compared { scheme: scheme.name(), gateways, latency_s })
        })
        .collect()
}

fn text_of(at: Instant) -> String {
    format!("{} s", at.as_secs_f64())
}
