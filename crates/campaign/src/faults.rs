//! Gateways die: random schedules that leave one alive, and some that leave none.

use std::collections::BTreeMap;

use anabranch_core::set::Outcome;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::pattern;
use anabranch_sim::apps::set::{SetNode, SetSender};
use anabranch_sim::random::Stream;
use anabranch_sim::scenario::Plan;
use anabranch_sim::scenario::units::Size;
use anabranch_sim::world::Failure;
use rayon::prelude::*;

use super::networks::network;
use anabranch_lab::experiment::{RunError, plain};
use anabranch_lab::set::{Failing, TEMPLATE, simulate};

/// Who is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// One gateway: the transfer must be delivered.
    One,
    /// None: the transfer must be reported as failed.
    None,
}

/// What a schedule did.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Its number.
    pub number: u64,
    /// Who is left.
    pub left: Left,
    /// Gateways of the network.
    pub gateways: usize,
    /// Who died when, and how.
    pub deaths: Vec<Failing>,
    /// Octets of the file.
    pub octets: u64,
    /// Seconds that the transfer takes if nobody dies.
    pub undisturbed: Option<f64>,
    /// Octets that came out of the node's buffer.
    pub delivered: u64,
    /// What came out is the beginning of the file, bit by bit.
    pub exact: bool,
    /// How the sender says that it ended; `None` if it never said.
    pub outcome: Option<Outcome>,
    /// Simulated seconds until it said so.
    pub took: f64,
}

impl Case {
    /// It went as it must.
    pub fn fine(&self) -> bool {
        let complete = self.exact && self.delivered == self.octets;
        match self.left {
            Left::One => complete && self.outcome == Some(Outcome::Delivered),
            // Whoever dies last may do so when all is done.
            Left::None if complete => self.outcome.is_some(),
            Left::None => self.exact && matches!(self.outcome, Some(Outcome::Failed(_))),
        }
    }
}

/// Runs the schedules `0..count`, in parallel, and hands each case on as soon as it is there.
///
/// # Errors
///
/// A network that the simulator refuses.
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

/// Who dies: all, or all but one; each at any moment of a transfer that nobody disturbs, in either
/// way.
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
