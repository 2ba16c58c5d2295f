//! The number of gateways that the latency model finds best, for transfers that ask for it (`gateways = "best"`).

use anabranch_lab::set::scenario_model;
use anabranch_model::set::best_gateways;
use anabranch_sim::scenario::{ContentSpec, Gateways, Scenario, Scheme};
use anabranch_sweep::address::{Files, Limits};

/// The limit of each transfer that asks for one.
pub(crate) fn advise(scenario: &Scenario, files: &Files) -> Result<Limits, String> {
    let asks = |scheme: &Scheme| matches!(scheme, Scheme::Set(set) if set.gateways == Gateways::Best);
    let asking = scenario.transfers.iter().enumerate().filter(|(_, transfer)| asks(&transfer.scheme));
    let limits = asking.map(|(index, transfer)| {
        let octets = match &transfer.content {
            ContentSpec::Bytes(octets) => *octets,
            ContentSpec::File(name) => files.get(name).map_or(0, |file| file.len() as u64),
            ContentSpec::Endless => 0,
        };
        let model = scenario_model(scenario, index, octets).ok_or("it is plain TCP")?;
        let best = best_gateways(&model).map_err(|error| error.to_string())?;
        Ok((index, best.gateways as u32))
    });
    limits.collect()
}
