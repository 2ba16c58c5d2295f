//! The network of a push: a scenario whose first SET transfer carries the file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anabranch_core::set::Plan;
use anabranch_deploy::error::Error;
use anabranch_deploy::push::Wanted;
use anabranch_sim::scenario::{ContentSpec, Gateways, NodeKind, Scenario, Source, nearest};
use bytes::Bytes;

use super::faults::GatewayFault;

/// The network that needs no file.
const BUILT_IN: &str = include_str!("../../../../scenarios/three-gateways.toml");
const BUILT_IN_NAME: &str = "three-gateways";
/// What the transfer's content is called in the plan.
const CONTENT: &str = "the file";

/// A network's text.
pub(super) struct Network {
    name: String,
    text: String,
}

/// What carries the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scheme {
    /// TCP from end to end; one gateway routes and fragments.
    EndToEnd,
    /// Split TCP through one gateway.
    Split,
    /// SET.
    Set,
}

impl Scheme {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::EndToEnd => "end-to-end",
            Self::Split => "split",
            Self::Set => "set",
        }
    }

    fn plan(self) -> Plan {
        match self {
            Self::EndToEnd => Plan::EndToEnd,
            Self::Split => Plan::Split,
            Self::Set => Plan::Stripe,
        }
    }
}

pub(super) fn load(path: Option<&Path>) -> Result<Network, Error> {
    match path {
        None => Ok(Network { name: BUILT_IN_NAME.into(), text: BUILT_IN.into() }),
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|e| Error::unreadable(path, &e))?;
            Ok(Network { name: path.display().to_string(), text })
        }
    }
}

/// The scenario with the file in the place of its transfer's octets.
pub(super) fn scenario(network: &Network, gateways: Option<Wanted>) -> Result<Scenario, Error> {
    let mut scenario = Source::new(network.name.clone(), network.text.clone()).scenario()?;
    let Some(first) = scenario.transfers.iter().position(|t| spec(t).is_some_and(|s| s.plan == Plan::Stripe))
    else {
        return Err(Error::input(format!("{}: no transfer of kind \"set\"", network.name))
            .with_hint("add a `[[transfer]]` with kind = \"set\", from and to: it says who sends to whom"));
    };
    // The file's transfer comes first, whatever else goes on.
    scenario.transfers.swap(0, first);
    if scenario.name.is_empty() {
        scenario.name.clone_from(&network.name);
    }
    let there = gateway_count(&scenario);
    if let Some(Wanted::AtMost(wanted)) = gateways {
        if wanted > there {
            return Err(Error::input(format!("--gateways {wanted}: the network has {there}"))
                .with_hint("ask for fewer, or give another network with --network"));
        }
        scenario.limit_gateways(0, wanted);
    }
    scenario.transfers[0].content = ContentSpec::File(CONTENT.into());
    Ok(scenario)
}

/// The same network with another scheme for the file.
pub(super) fn with_scheme(network: &Network, scheme: Scheme, gateways: u32) -> Result<Scenario, Error> {
    let mut scenario = scenario(network, None)?;
    scenario.limit_gateways(0, gateways);
    if let Some(spec) = spec_mut(&mut scenario) {
        spec.plan = scheme.plan();
    }
    Ok(scenario)
}

fn spec(transfer: &anabranch_sim::scenario::TransferSpec) -> Option<&anabranch_sim::scenario::SetSpec> {
    match &transfer.scheme {
        anabranch_sim::scenario::Scheme::Set(spec) => Some(spec),
        anabranch_sim::scenario::Scheme::Tcp | anabranch_sim::scenario::Scheme::Mptcp(_) => None,
    }
}

fn spec_mut(scenario: &mut Scenario) -> Option<&mut anabranch_sim::scenario::SetSpec> {
    match &mut scenario.transfers[0].scheme {
        anabranch_sim::scenario::Scheme::Set(spec) => Some(spec),
        anabranch_sim::scenario::Scheme::Tcp | anabranch_sim::scenario::Scheme::Mptcp(_) => None,
    }
}

/// How many gateways the transfer may use.
pub(super) fn gateway_count(scenario: &Scenario) -> u32 {
    let all = scenario.nodes_of(NodeKind::Gateway).count() as u32;
    match spec(&scenario.transfers[0]).map(|s| &s.gateways) {
        Some(Gateways::These(names)) => names.len() as u32,
        Some(Gateways::AtMost(n)) => all.min(*n),
        Some(Gateways::All | Gateways::Best) | None => all,
    }
}

/// Every gateway that shall fail is one.
pub(super) fn check_faults(scenario: &Scenario, faults: &[GatewayFault]) -> Result<(), Error> {
    let names: Vec<&str> =
        scenario.nodes_of(NodeKind::Gateway).map(|n| scenario.nodes[n.index()].name.as_str()).collect();
    for fault in faults {
        if !names.contains(&fault.gateway.as_str()) {
            let hint = match nearest(&fault.gateway, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the gateways are {}", names.join(", ")),
            };
            return Err(Error::input(format!("--fail: the network has no gateway `{}`", fault.gateway))
                .with_hint(hint));
        }
    }
    Ok(())
}

/// The contents of the scenario's files: ours, and what the network's own background transfers carry.
pub(super) fn contents(scenario: &Scenario, file: &Bytes) -> BTreeMap<String, Bytes> {
    scenario
        .files()
        .map(|name| (name.to_owned(), if name == CONTENT { file.clone() } else { Bytes::new() }))
        .collect()
}
