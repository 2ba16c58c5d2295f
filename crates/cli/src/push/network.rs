//! Network of a simulated push: a scenario whose first SET transfer carries the file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anabranch_core::set::Plan;
use anabranch_deploy::error::Error;
use anabranch_deploy::push::Wanted;
use anabranch_model::set::Best;
use anabranch_scenario::file::GatewayChoice;
use anabranch_scenario::{Gateways, NodeKind, Scenario, Source, TransferSpec, advice, did_you_mean};
use bytes::Bytes;

use super::faults::GatewayFault;

/// Network that is used without `--network`.
const BUILT_IN: &str = include_str!("../../../../scenarios/three-gateways.toml");
const BUILT_IN_NAME: &str = "three-gateways";
/// Name of the transfer's content in the plan.
const CONTENT: &str = "the file";

/// Text of a network's scenario file.
pub(super) struct Network {
    name: String,
    text: String,
}

/// Transport scheme of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scheme {
    /// End-to-end TCP; one gateway routes and fragments.
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

/// A network whose first SET transfer carries the file.
pub(super) struct Pushed {
    pub(super) scenario: Scenario,
    /// Index of that transfer.
    pub(super) transfer: usize,
    /// Prediction of the latency model, if `--gateways best` was given.
    pub(super) best: Option<Best>,
}

/// A network whose transfer carries the file, before other options are applied.
struct Found {
    source: Source,
    /// The scenario as its text describes it.
    said: Scenario,
    /// Index of the transfer.
    transfer: usize,
}

impl Found {
    /// Replaces the bytes of the first SET transfer by the file, which has `length` bytes.
    ///
    /// # Errors
    /// The network has no SET transfer, or its text is invalid.
    fn new(network: &Network, length: u64) -> Result<Self, Error> {
        let folder = Path::new(&network.name).parent().unwrap_or(Path::new(""));
        let source = Source::new(network.name.clone(), network.text.clone()).with_folder(folder);
        let source = source.with_lengths(move |_| Some(length));
        let said = source.scenario()?;
        let Some(transfer) = said.transfers.iter().position(is_striped) else {
            return Err(Error::input(format!("{}: no transfer of kind \"set\"", network.name))
                .with_hint("add a `[[transfer]]` with kind = \"set\", from and to"));
        };
        let section = said.transfers[transfer].section;
        let mut source = source
            .without(format!("transfer.{section}.bytes"))
            .set(format!("transfer.{section}.file={CONTENT:?}"));
        if said.name.is_empty() {
            source = source.set(format!("name={:?}", network.name));
        }
        Ok(Self { source, said, transfer })
    }

    /// Limits the transfer to `most` of the gateways that it may use.
    fn limit(self, most: u32) -> Self {
        let advised = self.said.advised().contains_key(&self.transfer);
        let section = self.said.transfers[self.transfer].section;
        let gateways = match &self.said.resolved().transfer[section].gateways {
            Some(GatewayChoice::Names(names)) => {
                let names: Vec<_> = names.iter().take(most as usize).collect();
                format!("{names:?}")
            }
            Some(GatewayChoice::Count(count)) if !advised => most.min(*count).to_string(),
            Some(GatewayChoice::Count(_) | GatewayChoice::Best(_)) | None => most.to_string(),
        };
        self.set("gateways", &gateways)
    }

    /// Sets a key of the transfer.
    fn set(self, key: &str, value: &str) -> Self {
        let section = self.said.transfers[self.transfer].section;
        Self { source: self.source.set(format!("transfer.{section}.{key}={value}")), ..self }
    }
}

/// The scenario with the transfer's bytes replaced by the file, which has `length` bytes.
pub(super) fn scenario(network: &Network, gateways: Option<Wanted>, length: u64) -> Result<Pushed, Error> {
    let found = Found::new(network, length)?;
    let transfer = found.transfer;
    let scenario = found.source.scenario()?;
    let asked = scenario.advised().get(&transfer).cloned();
    let (most, best) = match gateways {
        None => return Ok(Pushed { scenario, transfer, best: asked }),
        Some(Wanted::AtMost(wanted)) => {
            let there = match asked {
                Some(_) => found.said.nodes_of(NodeKind::Gateway).count() as u32,
                None => gateway_count(&found.said, transfer),
            };
            if wanted > there {
                return Err(Error::input(format!("--gateways {wanted}: the network has only {there}"))
                    .with_hint("use a smaller number, or give another network with --network"));
            }
            (wanted, None)
        }
        Some(Wanted::Best) if asked.is_some() => return Ok(Pushed { scenario, transfer, best: asked }),
        Some(Wanted::Best) => {
            let best = advice::number(&scenario, transfer, length)
                .map_err(|why| Error::input(why).with_hint("give the number of gateways, or their names"))?;
            (best.gateways as u32, Some(best))
        }
    };
    Ok(Pushed { scenario: found.limit(most).source.scenario()?, transfer, best })
}

/// The network with another transport scheme for the file.
pub(super) fn with_scheme(
    network: &Network,
    scheme: Scheme,
    gateways: u32,
    length: u64,
) -> Result<Pushed, Error> {
    let found = Found::new(network, length)?;
    // End-to-end TCP has no choice of gateways.
    let found = if scheme == Scheme::EndToEnd { found } else { found.limit(gateways) };
    let found = found.set("kind", &format!("{:?}", scheme.name()));
    Ok(Pushed { scenario: found.source.scenario()?, transfer: found.transfer, best: None })
}

fn is_striped(transfer: &TransferSpec) -> bool {
    matches!(&transfer.scheme, anabranch_scenario::Scheme::Set(spec) if spec.plan == Plan::Stripe)
}

/// Number of gateways that the transfer may use.
pub(super) fn gateway_count(scenario: &Scenario, transfer: usize) -> u32 {
    let all = scenario.nodes_of(NodeKind::Gateway).count() as u32;
    let anabranch_scenario::Scheme::Set(spec) = &scenario.transfers[transfer].scheme else { return all };
    match &spec.gateways {
        Gateways::These(names) => names.len() as u32,
        Gateways::AtMost(n) => all.min(*n),
        Gateways::All => all,
    }
}

/// Checks that every failing gateway exists in the network.
pub(super) fn check_faults(scenario: &Scenario, faults: &[GatewayFault]) -> Result<(), Error> {
    let names: Vec<&str> =
        scenario.nodes_of(NodeKind::Gateway).map(|n| scenario.nodes[n.index()].name.as_str()).collect();
    for fault in faults {
        if !names.contains(&fault.gateway.as_str()) {
            let hint = did_you_mean(&fault.gateway, names.iter().copied())
                .unwrap_or_else(|| format!("the gateways are {}", names.join(", ")));
            return Err(Error::input(format!("--fail: the network has no gateway `{}`", fault.gateway))
                .with_hint(hint));
        }
    }
    Ok(())
}

/// Contents for all files that the scenario names: the pushed file, and empty content for
/// background transfers of the network.
pub(super) fn contents(scenario: &Scenario, file: &Bytes) -> BTreeMap<String, Bytes> {
    scenario
        .files()
        .map(|name| (name.to_owned(), if name == CONTENT { file.clone() } else { Bytes::new() }))
        .collect()
}
