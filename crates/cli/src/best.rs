//! The number of gateways that the latency model finds best for a transfer.

use anabranch_lab::set::scenario_model;
use anabranch_model::set::{Best, best_gateways};
use anabranch_sim::scenario::{Gateways, Scenario, Scheme};

use crate::error::Error;

/// Whether the transfer of that index asks for the best number.
pub(crate) fn is_asked(scenario: &Scenario, transfer: usize) -> bool {
    matches!(&scenario.transfers[transfer].scheme, Scheme::Set(spec) if spec.gateways == Gateways::Best)
}

/// How many of those gateways that the transfer of that index may use are best for `octets`; why not, if nobody knows.
pub(crate) fn number(scenario: &Scenario, transfer: usize, octets: u64) -> Result<Best, String> {
    let model = scenario_model(scenario, transfer, octets).ok_or("it is plain TCP")?;
    best_gateways(&model).map_err(|error| error.to_string())
}

/// Lets the transfer of that index, which carries `octets`, use the best number of those gateways that it may
/// use.
pub(crate) fn choose(scenario: &mut Scenario, transfer: usize, octets: u64) -> Result<Best, Error> {
    let best = number(scenario, transfer, octets).map_err(|why| {
        let name = &scenario.transfers[transfer].name;
        Error::input(format!("no best number of gateways for transfer `{name}`: {why}"))
            .with_hint("say how many gateways to use, or which")
    })?;
    scenario.limit_gateways(transfer, best.gateways as u32);
    Ok(best)
}
