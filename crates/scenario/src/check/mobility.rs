//! Checks the mobility of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_core::time::{Duration, Instant};

use super::super::deployment::Site;
use super::super::file::FileConfig;
use super::super::mobility::{MobileSpec, MobilityName, SetdestName};
use super::super::units::{Length, Speed};
use super::super::{Place, ScenarioError};
use super::{Checked, Checker, Step, at};
use anabranch_sim::air::motion::trace::{self, Traces};
use anabranch_sim::air::motion::{Area, GaussMarkov, Motion, RandomWaypoint};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::Position;

/// Largest number of nodes on a channel on which some move: the state for pairs of nodes grows with
/// the square.
const MOST_STATIONS: usize = 1000;
/// Largest speed in m/s.
const FASTEST: f64 = 10_000.0;
/// Largest coordinate, east or north of the origin in metres.
const FARTHEST: f64 = 1e7;

/// The moving nodes, and the names of their movement files.
pub(super) type Mobility = (Vec<MobileSpec>, Vec<String>);

impl Checker<'_> {
    /// The moving nodes. Those without a place get their position at the beginning of the first
    /// run. `generated` are the nodes with a placement.
    pub(super) fn mobility(&self, generated: &[(usize, Site)], file: &mut FileConfig) -> Checked<Mobility> {
        let mut files: BTreeMap<String, Traces> = BTreeMap::new();
        let mut mobiles = Vec::new();
        for i in 0..file.node.len() {
            let Some(said) = file.node[i].mobility.clone() else { continue };
            let placed = file.node[i].position.is_some() || generated.iter().any(|(node, _)| *node == i);
            let motion = self.motion(i, &said, placed, &mut files)?;
            self.routed(i, file)?;
            let (node, name) = (NodeId(i as u32), Arc::from(&*file.node[i].name));
            let mobile = MobileSpec { node, name, motion, placed };
            if !placed {
                let Position { x, y } = mobile.mover(None, file.seed, 0).place(Instant::ZERO);
                file.node[i].position = Some([x, y]);
            }
            mobiles.push(mobile);
        }
        let on_air = file.node.iter().filter(|node| node.position.is_some()).count() + generated.len();
        if let Some(first) = mobiles.first().filter(|_| on_air > MOST_STATIONS) {
            let message = format!(
                "a network in which nodes move has at most {MOST_STATIONS} nodes on the air, and this one {on_air}"
            );
            return self.fault(at!["node", first.node.index(), "mobility"], message, None);
        }
        Ok((mobiles, files.into_keys().collect()))
    }

    /// Moving nodes need a routing protocol: static routes would lead to former neighbours.
    fn routed(&self, i: usize, file: &FileConfig) -> Checked<()> {
        let (message, hint) = match (&file.radio, &file.wifi) {
            (None, None) => {
                ("a node that moves is on the air, and there is no radio", "add `[radio]` or `[wifi]`")
            }
            (Some(_), _) if file.paths.is_none() => {
                ("static routes do not follow a node that moves", "add `[paths]` with its `root`, for RPL")
            }
            (_, Some(_)) if file.aodv.is_none() => {
                ("static routes do not follow a node that moves", "add `[aodv]`, and `ip = 4` in `[network]`")
            }
            _ => return Ok(()),
        };
        self.fault(at!["node", i, "mobility"], message, Some(hint))
    }

    fn motion(
        &self,
        i: usize,
        said: &MobilityName,
        placed: bool,
        files: &mut BTreeMap<String, Traces>,
    ) -> Checked<Motion> {
        match *said {
            MobilityName::RandomWaypoint { width, height, corner, speed: [slowest, fastest], pause } => {
                let model: &[Step] = at!["node", i, "mobility", "random-waypoint"];
                let area = self.area(model, width, height, corner)?;
                let path = [model, at!["speed"]].concat();
                self.speed(&path, fastest)?;
                if slowest > fastest {
                    let message = format!("the least speed, {slowest}, is above the greatest, {fastest}");
                    return self.fault(&path, message, Some("give the lower speed first"));
                }
                if slowest.0 == 0 && !placed {
                    let message = "with a least speed of 0 there is no stationary distribution to start from: \
                                   the mean speed falls to 0 as time goes on";
                    let hint = "give a least speed such as \"1 m/s\", or where the nodes start by `place` or `position`";
                    return self.fault(&path, message, Some(hint));
                }
                let (slowest, fastest) = (slowest.as_m_per_s(), fastest.as_m_per_s());
                Ok(Motion::RandomWaypoint(RandomWaypoint { area, slowest, fastest, pause: pause.0 }))
            }
            MobilityName::GaussMarkov {
                width,
                height,
                corner,
                speed,
                deviation,
                turn_deg,
                memory,
                interval,
            } => {
                let model: &[Step] = at!["node", i, "mobility", "gauss-markov"];
                let area = self.area(model, width, height, corner)?;
                self.speed(&[model, at!["speed"]].concat(), speed)?;
                let wrong = [
                    ("deviation", deviation.as_m_per_s() > FASTEST, "expected at most 10,000 m/s"),
                    ("turn_deg", !(0.0..=180.0).contains(&turn_deg), "expected 0 to 180"),
                    ("memory", !(0.0..=1.0).contains(&memory), "expected 0 to 1"),
                    ("interval", interval.0 < Duration::from_millis(1), "expected 1 ms or more"),
                ];
                if let Some((key, _, message)) = wrong.into_iter().find(|(_, wrong, _)| *wrong) {
                    return self.fault(&[model, at![key]].concat(), message, None);
                }
                Ok(Motion::GaussMarkov(GaussMarkov {
                    area,
                    speed: speed.as_m_per_s(),
                    deviation: deviation.as_m_per_s(),
                    turn: turn_deg.to_radians(),
                    memory,
                    interval: interval.0,
                }))
            }
            MobilityName::Setdest(ref name) => self.trace(i, name, placed, files),
        }
    }

    fn area(&self, model: &[Step], width: Length, height: Length, corner: [f64; 2]) -> Checked<Area> {
        for (key, Length(metres)) in [("width", width), ("height", height)] {
            if !(1.0..=FARTHEST).contains(&metres) {
                let path = [model, at![key]].concat();
                return self.fault(&path, "expected 1 m to 10,000 km", None);
            }
        }
        let [x, y] = corner;
        let area = Area { corner: Position::new(x, y), width: width.0, height: height.0 };
        let within = |from: f64, size: f64| from.abs() <= FARTHEST && (from + size).abs() <= FARTHEST;
        if !within(x, area.width) || !within(y, area.height) {
            let path = [model, at!["corner"]].concat();
            return self.fault(&path, "the rectangle is not within 10,000 km of the origin", None);
        }
        Ok(area)
    }

    fn speed(&self, path: &[Step], speed: Speed) -> Checked<()> {
        if speed.0 == 0 {
            let hint = "remove `mobility` for a node that does not move";
            return self.fault(path, "a node that moves has a speed above 0", Some(hint));
        }
        if speed.as_m_per_s() > FASTEST {
            return self.fault(path, "expected at most 10,000 m/s", None);
        }
        Ok(())
    }

    fn trace(
        &self,
        i: usize,
        name: &SetdestName,
        placed: bool,
        files: &mut BTreeMap<String, Traces>,
    ) -> Checked<Motion> {
        let path = at!["node", i, "mobility", "setdest"];
        let (file, node) = name.of();
        if placed {
            let message = format!("`{file}` says where the node starts, and so does the scenario");
            return self.fault(path, message, Some("remove `position` and `place`"));
        }
        if !files.contains_key(file) {
            let text = self.text_of(path, file)?;
            let traces = trace::read(&text).map_err(|error| ScenarioError {
                place: Place::File { name: file.to_owned(), line: error.line, column: 1, span: 0..0 },
                message: error.message,
                hint: error.hint.map(str::to_owned),
            })?;
            files.insert(file.to_owned(), traces);
        }
        match files[file].get(&node) {
            Some(legs) => Ok(Motion::Trace(legs.clone())),
            None => {
                let message = format!("`{file}` has no movements of a node {node}");
                let hint = match (files[file].keys().next(), files[file].keys().next_back()) {
                    (Some(first), Some(last)) => format!("it has nodes from {first} to {last}"),
                    _ => "it has no nodes".to_owned(),
                };
                self.fault(path, message, Some(&hint))
            }
        }
    }

    /// The text of a file that the scenario names at `path`.
    pub(super) fn text_of(&self, path: &[Step], file: &str) -> Checked<String> {
        self.source.text_of(file).or_else(|why| {
            let hint = "a file's name is relative to the scenario";
            self.fault(path, format!("cannot read `{file}`: {why}"), Some(hint))
        })
    }
}
