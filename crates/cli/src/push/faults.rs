//! `--fail gw2@1.5s+gw3@2s:reset`.

use anabranch_core::time::Duration;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::scenario::units::Span;
use anabranch_sim::sim::Fault;
use anabranch_sim::world::Failure;

/// A gateway that fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GatewayFault {
    /// Its name in the network.
    pub(crate) gateway: String,
    /// After the request.
    pub(crate) at: Duration,
    failure: Failure,
}

/// All of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Faults(pub(crate) Vec<GatewayFault>);

impl GatewayFault {
    /// The simulator's fault, for a gateway that exists.
    pub(crate) fn bound(&self, scenario: &Scenario) -> Fault {
        let node = scenario.find_node(&self.gateway).expect("the gateway has been looked up before");
        Fault::NodeFails(node, self.failure)
    }
}

pub(crate) fn parse(text: &str) -> Result<Faults, String> {
    text.split('+').map(parse_one).collect::<Result<_, _>>().map(Faults)
}

fn parse_one(text: &str) -> Result<GatewayFault, String> {
    let (gateway, rest) =
        text.split_once('@').ok_or_else(|| format!("`{text}` is not of the form `gw2@1.5s`"))?;
    let (time, failure) = match rest.split_once(':') {
        None | Some((_, "silent")) => (rest.split(':').next().unwrap_or(rest), Failure::Silent),
        Some((time, "reset")) => (time, Failure::Reset),
        Some((_, how)) => return Err(format!("`{how}` is neither `silent` nor `reset`")),
    };
    let at: Span = time.parse().map_err(|e| format!("`{time}` is no time: {e}"))?;
    Ok(GatewayFault { gateway: gateway.to_owned(), at: at.0, failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_joined_by_plus() {
        let Faults(faults) = parse("gw2@1.5s+gw1@20 ms:reset").unwrap();
        let expected = [
            GatewayFault { gateway: "gw2".into(), at: Duration::from_millis(1500), failure: Failure::Silent },
            GatewayFault { gateway: "gw1".into(), at: Duration::from_millis(20), failure: Failure::Reset },
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn nonsense_is_named() {
        for (text, part) in [("gw2", "form"), ("gw2@soon", "no time"), ("gw2@1s:loud", "neither")] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
