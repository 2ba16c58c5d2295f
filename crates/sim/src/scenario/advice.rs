//! The number of gateways that the closed form finds best, for transfers that ask for it (`gateways = "best"`).

mod model;

use std::collections::BTreeMap;

use anabranch_model::set::{Best, best_gateways};
use bytes::Bytes;

use super::{ContentSpec, Gateways, Scenario, Scheme};

pub use model::{REQUEST, answer, overhead, probing, reading, scenario_model};

/// Whether the transfer of that index asks for the best number.
pub fn is_asked(scenario: &Scenario, transfer: usize) -> bool {
    matches!(&scenario.transfers[transfer].scheme, Scheme::Set(spec) if spec.gateways == Gateways::Best)
}

/// How many of those gateways that the transfer of that index may use are best for `octets`.
///
/// # Errors
///
/// Of which transfer nobody knows it, and why.
pub fn number(scenario: &Scenario, transfer: usize, octets: u64) -> Result<Best, String> {
    let model = scenario_model(scenario, transfer, octets).ok_or_else(|| "it is plain TCP".to_owned());
    let best = model.and_then(|model| best_gateways(&model).map_err(|error| error.to_string()));
    let name = &scenario.transfers[transfer].name;
    best.map_err(|why| format!("no best number of gateways for transfer `{name}`: {why}"))
}

/// The best number for each transfer that asks for it, by its index. `files` are those that transfers carry, by name.
///
/// # Errors
///
/// Of which transfer nobody knows it, and why.
pub fn limits(scenario: &Scenario, files: &BTreeMap<String, Bytes>) -> Result<BTreeMap<usize, u32>, String> {
    let asking = scenario.transfers.iter().enumerate().filter(|(index, _)| is_asked(scenario, *index));
    let limits = asking.map(|(index, transfer)| {
        let octets = match &transfer.content {
            ContentSpec::Bytes(octets) => *octets,
            ContentSpec::File(name) => files.get(name).map_or(0, |file| file.len() as u64),
            ContentSpec::Endless => 0,
        };
        Ok((index, number(scenario, index, octets)?.gateways as u32))
    });
    limits.collect()
}
