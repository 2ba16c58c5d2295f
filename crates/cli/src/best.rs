//! A transfer through the number of gateways that the latency model finds best.

use anabranch_lab::set::advice;
use anabranch_model::set::Best;
use anabranch_sim::scenario::Scenario;

use crate::error::Error;

/// Lets the transfer of that index, which carries `octets`, use the best number of those gateways that it may
/// use.
pub(crate) fn choose(scenario: &mut Scenario, transfer: usize, octets: u64) -> Result<Best, Error> {
    let best = advice::number(scenario, transfer, octets).map_err(|why| {
        let name = &scenario.transfers[transfer].name;
        Error::input(format!("no best number of gateways for transfer `{name}`: {why}"))
            .with_hint("say how many gateways to use, or which")
    })?;
    scenario.limit_gateways(transfer, best.gateways as u32);
    Ok(best)
}
