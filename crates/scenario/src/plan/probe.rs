//! Adds probes to a plan, once their applications are known.

use anabranch_core::time::Instant;

use super::super::deployment::Drawn;
use super::super::probe::{During, ProbeSpec};
use super::super::traffic::{Carrier, Senders};
use super::{Plan, Planned, Scenario};
use anabranch_sim::event::AppId;
use anabranch_sim::probe::{Probe, Window};

impl Scenario {
    pub(super) fn plan_probes(&self, plan: &mut Plan, drawn: &Drawn) {
        for spec in &self.probes {
            let (nodes, is_drawn) = match &spec.nodes {
                Senders::Nodes(nodes) => (nodes, false),
                Senders::Group(group) => (&drawn.groups[*group], true),
            };
            let rdca = self.traffic.iter().filter_map(|traffic| match &traffic.carrier {
                Carrier::Rdca(options) => Some((traffic.to, traffic.port, options.config.sink.header)),
                _ => None,
            });
            let measure = spec.measure(nodes.clone(), is_drawn, rdca.collect());
            let window = self.window(spec, &plan.planned);
            plan.builder.probe(Probe::new(&spec.name, window, measure));
        }
    }

    fn window(&self, spec: &ProbeSpec, planned: &Planned) -> Window {
        let (transfers, traffic) = match &spec.during {
            During::Moments(from, until) => {
                return Window { from: *from, until: *until, closed: false, apps: Vec::new() };
            }
            During::These(transfers, traffic) => (transfers, traffic),
        };
        // A packet that is generated at the time of `stop` is part of the traffic.
        let mut window =
            Window { from: Instant::FAR_FUTURE, until: Instant::ZERO, closed: true, apps: Vec::new() };
        for &transfer in transfers {
            let begin = self.transfers[transfer].connections(self.stop)[0].0;
            window.from = window.from.min(begin);
            let bulk = planned.transfers.iter().filter(|planned| planned.index == transfer);
            window.apps.extend(bulk.flat_map(|planned| planned.all_senders()));
            let coaps = planned.coaps.iter().filter(|planned| planned.index == transfer);
            window.apps.extend(coaps.map(|planned| planned.client));
            let sets = planned.sets.iter().filter(|planned| planned.index == transfer);
            window.apps.extend(sets.map(|planned| planned.sender));
        }
        for &index in traffic {
            let spec = &self.traffic[index];
            window.from = window.from.min(spec.start);
            // The window ends at `stop` for every transport, so that energies are comparable.
            if spec.stop < self.stop {
                window.until = window.until.max(spec.stop);
            } else {
                let sources = planned.traffic.iter().filter(|planned| planned.index == index);
                window
                    .apps
                    .extend(sources.flat_map(|planned| &planned.sources).map(|(_, app): &(_, AppId)| *app));
            }
        }
        window
    }
}
