//! Transfers through the number of gateways that the latency model finds best.

use std::collections::BTreeMap;

use anabranch_deploy::error::Error;
use anabranch_model::set::Best;
use anabranch_sim::scenario::{Scenario, advice};
use bytes::Bytes;

/// Lets the transfer of that index, which carries `octets`, use the best number of those gateways that it may
/// use.
pub(crate) fn choose(scenario: &mut Scenario, transfer: usize, octets: u64) -> Result<Best, Error> {
    let best = advice::number(scenario, transfer, octets).map_err(unknown)?;
    scenario.limit_gateways(transfer, best.gateways as u32);
    Ok(best)
}

/// The same for every transfer that asks for it; `files` are those that transfers carry, by name.
pub(crate) fn choose_asked(scenario: &mut Scenario, files: &BTreeMap<String, Bytes>) -> Result<(), Error> {
    for (transfer, at_most) in advice::limits(scenario, files).map_err(unknown)? {
        scenario.limit_gateways(transfer, at_most);
    }
    Ok(())
}

fn unknown(why: String) -> Error {
    Error::input(why).with_hint("say how many gateways to use, or which")
}
