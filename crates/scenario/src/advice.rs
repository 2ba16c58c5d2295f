//! The number of gateways that the closed form finds best, for `gateways = "best"`.

mod model;

use anabranch_model::set::{Best, best_gateways};

use super::Scenario;

pub use model::{REQUEST, answer, overhead, probing, reading, scenario_model};

/// The best number of gateways for a transfer of `octets` bytes. `transfer` is the index of the
/// transfer, whose gateways limit the choice.
///
/// # Errors
///
/// The transfer for which the model gives no number, and the reason.
pub fn number(scenario: &Scenario, transfer: usize, octets: u64) -> Result<Best, String> {
    let model = scenario_model(scenario, transfer, octets).ok_or_else(|| "it is plain TCP".to_owned());
    let best = model.and_then(|model| best_gateways(&model).map_err(|error| error.to_string()));
    let name = &scenario.transfers[transfer].name;
    best.map_err(|why| format!("no best number of gateways for transfer `{name}`: {why}"))
}
