//! Random schedules of gateway failures: some leave one gateway alive, some leave none.

use std::collections::BTreeMap;

use anabranch_core::set::Outcome;
use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::Plan;
use anabranch_scenario::units::Size;
use anabranch_sim::apps::pattern;
use anabranch_sim::apps::set::{SetNode, SetSender};
use anabranch_sim::random::Stream;
use anabranch_sim::world::Failure;
use rayon::prelude::*;

use super::networks::network;
use anabranch_lab::experiment::{RunError, plain};
use anabranch_lab::set::{Failing, TEMPLATE, simulate};

/// Gateways that stay alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// One: the transfer must be delivered.
    One,
    /// None: the transfer must be reported as failed.
    None,
}

/// Result of a schedule.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Number of the case.
    pub number: u64,
    /// Gateways that stay alive.
    pub left: Left,
    /// Number of gateways in the network.
    pub gateways: usize,
    /// Failing gateways with time and kind of each failure.
    pub deaths: Vec<Failing>,
    /// Length of the file in bytes.
    pub octets: u64,
    /// Duration of the transfer without failures, in seconds.
    pub undisturbed: Option<f64>,
    /// Number of bytes delivered by the node.
    pub delivered: u64,
    /// Whether the delivered bytes are a prefix of the file.
    pub exact: bool,
    /// Outcome that the sender reported; `None` if it reported none.
    pub outcome: Option<Outcome>,
    /// Simulated seconds until that report.
    pub took: f64,
}

impl Case {
    /// Whether the transfer ended as required.
    pub fn fine(&self) -> bool {
        let complete = self.exact && self.delivered == self.octets;
        match self.left {
            Left::One => complete && self.outcome == Some(Outcome::Delivered),
            // The last gateway may fail after the transfer is complete.
            Left::None if complete => self.outcome.is_some(),
            Left::None => self.exact && matches!(self.outcome, Some(Outcome::Failed(_))),
        }
    }
}

/// Runs the schedules `0..count` in parallel, and passes each finished case to `tell`.
///
/// # Errors
///
/// The simulator refuses a network.
pub fn campaign(
    seed: u64,
    count: u64,
    left: Left,
    tell: impl Fn(&Case) + Sync,
) -> Result<Vec<Case>, RunError> {
    (0..count)
        .into_par_iter()
        .map(|number| {
            let case = case(seed, number, left)?;
            tell(&case);
            Ok(case)
        })
        .collect()
}

fn case(seed: u64, number: u64, left: Left) -> Result<Case, RunError> {
    let mut random = Stream::new(seed, number, "campaign set-faults", "schedule");
    let octets = random.range(1..=60_000);
    let settings = network(seed, number).with("file", plain(&Size(octets)));
    let gateways = settings.text("gateways").parse().expect("it is a number");
    let undisturbed = TEMPLATE.point(&settings)?.scenario;
    let undisturbed = simulate(&undisturbed, seed, number)?.latency.map(|d| d.as_secs_f64());
    let deaths = schedule(&mut random, gateways, undisturbed.unwrap_or(60.0), left);
    let scenario = TEMPLATE.point(&settings.with("fail", Failing::text_of_all(&deaths)))?.scenario;

    let Plan { builder, planned } = scenario.plan(seed, number, &BTreeMap::new())?;
    let mut sim = builder.build();
    let first = planned.sets.first().expect("the experiment's transfer is one with a request");
    let bound = Instant::ZERO + LONGEST;
    while sim.app::<SetSender>(first.sender).outcome().is_none() && sim.now() < bound && sim.step() {}
    let delivered = &sim.app::<SetNode>(first.node).delivered;
    Ok(Case {
        number,
        left,
        gateways,
        deaths,
        octets,
        undisturbed,
        delivered: delivered.len() as u64,
        exact: delivered.iter().eq(pattern().iter().cycle().take(delivered.len())),
        outcome: sim.app::<SetSender>(first.sender).outcome(),
        took: sim.now().as_secs_f64(),
    })
}

/// Draws the failures of all gateways, or of all but one: each at any time of an undisturbed
/// transfer, with or without resets.
fn schedule(random: &mut Stream, gateways: usize, span: f64, left: Left) -> Vec<Failing> {
    let spared = match left {
        Left::One => Some(random.range(0..=gateways as u64 - 1) as usize),
        Left::None => None,
    };
    let mut deaths = Vec::new();
    for gateway in (0..gateways).filter(|g| Some(*g) != spared) {
        let at = Duration::from_secs_f64(random.uniform() * span);
        let how = if random.bernoulli(0.5) { Failure::Silent } else { Failure::Reset };
        deaths.push(Failing { gateway, at, how });
    }
    deaths
}

/// Simulated time after which a transfer counts as hanging.
const LONGEST: Duration = Duration::from_secs(3 * 3600);
