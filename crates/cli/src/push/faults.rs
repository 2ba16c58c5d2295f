//! Parses the value of `--fail`, as in `gw2@1.5s+gw3@2s:reset:back@5s`.

use anabranch_core::time::Duration;
use anabranch_scenario::Scenario;
use anabranch_scenario::units::Span;
use anabranch_sim::sim::Fault;
use anabranch_sim::world::Failure;

/// A failure of one gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GatewayFault {
    /// Name of the gateway in the network.
    pub(crate) gateway: String,
    /// Time of the failure, after the request.
    pub(crate) at: Duration,
    failure: Failure,
    /// Time of the restart, after the request.
    back: Option<Duration>,
}

/// All failures of one `--fail`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Faults(pub(crate) Vec<GatewayFault>);

impl GatewayFault {
    /// Converts the failure into faults of the simulator.
    ///
    /// # Panics
    /// The scenario has no gateway of this name.
    pub(crate) fn bound(&self, scenario: &Scenario) -> impl Iterator<Item = (Duration, Fault)> {
        let node = scenario.find_node(&self.gateway).expect("the gateway has been looked up before");
        let back = self.back.map(|back| (back, Fault::NodeRecovers(node)));
        [(self.at, Fault::NodeFails(node, self.failure))].into_iter().chain(back)
    }
}

pub(crate) fn parse(text: &str) -> Result<Faults, String> {
    text.split('+').map(parse_one).collect::<Result<_, _>>().map(Faults)
}

fn parse_one(text: &str) -> Result<GatewayFault, String> {
    let (gateway, rest) =
        text.split_once('@').ok_or_else(|| format!("`{text}` is not of the form `gw2@1.5s`"))?;
    let span = |time: &str| -> Result<Duration, String> {
        time.parse().map(|span: Span| span.0).map_err(|e| format!("`{time}` is not a time: {e}"))
    };
    let mut parts = rest.split(':');
    let at = span(parts.next().unwrap_or_default())?;
    let (mut failure, mut back) = (Failure::Silent, None);
    for part in parts {
        match (part, part.split_once('@')) {
            ("silent", _) => failure = Failure::Silent,
            ("reset", _) => failure = Failure::Reset,
            (_, Some(("back", time))) => back = Some(span(time)?),
            (how, _) => return Err(format!("`{how}` is not `silent`, `reset` or `back@TIME`")),
        }
    }
    if back.is_some_and(|back| back <= at) {
        return Err(format!("in `{text}` the gateway is back before it fails"));
    }
    Ok(GatewayFault { gateway: gateway.to_owned(), at, failure, back })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_joined_by_plus() {
        let fault = |gateway: &str, at, failure, back: Option<u64>| GatewayFault {
            gateway: gateway.into(),
            at: Duration::from_millis(at),
            failure,
            back: back.map(Duration::from_millis),
        };
        let Faults(faults) = parse("gw2@1.5s+gw1@20 ms:reset+gw3@3s:back@5s+gw3@6s:reset:back@7s").unwrap();
        let expected = [
            fault("gw2", 1500, Failure::Silent, None),
            fault("gw1", 20, Failure::Reset, None),
            fault("gw3", 3000, Failure::Silent, Some(5000)),
            fault("gw3", 6000, Failure::Reset, Some(7000)),
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn nonsense_is_named() {
        for (text, part) in [
            ("gw2", "form"),
            ("gw2@soon", "not a time"),
            ("gw2@1s:loud", "back@TIME"),
            ("gw2@3s:back", "back@TIME"),
            ("gw2@3s:back@soon", "not a time"),
            ("gw2@3s:back@3s", "before"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
