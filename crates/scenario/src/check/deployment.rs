//! Checks groups of nodes and random deployments.

use super::super::deployment::{
    Choice, Count, Deployment, Drawn, GroupName, MAX_NODES, NodesSection, PlaceName, Site,
};
use super::super::file::{FileConfig, NodeSection};
use super::super::radio::Channel;
use super::super::units::Length;
use super::super::{did_you_mean, units};
use super::radio::places;
use super::{Checked, Checker, Step, at};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::Position;

/// Largest coordinate, east or north of the origin in metres.
const FARTHEST: f64 = 1e7;

impl Checker<'_> {
    /// Appends the nodes of `[[nodes]]` to the single nodes, and returns the sites of those with a
    /// placement.
    pub(super) fn expand(&self, file: &mut FileConfig) -> Checked<Vec<(usize, Site)>> {
        let mut sites = Vec::new();
        for (i, group) in file.nodes.iter().enumerate() {
            let count = group.count.total();
            self.numbered(i, group)?;
            if file.node.len() + count as usize > MAX_NODES {
                let message = format!("a scenario has at most {MAX_NODES} nodes");
                return self.fault(at!["nodes", i, "count"], message, None);
            }
            self.place(i, group)?;
            for (k, name) in (0..).zip(group.names()) {
                let site = group.place.as_ref().map(|place| place.site(k, count));
                sites.extend(site.map(|site| (file.node.len(), site)));
                file.node.push(NodeSection {
                    energy: group.energy,
                    dtc: group.dtc.clone(),
                    buffers: group.buffers.clone(),
                    host: group.host,
                    netns: group
                        .netns
                        .as_ref()
                        .map(|netns| netns.replace("{i}", &group.number(k).to_string())),
                    mobility: group.mobility.as_ref().map(|mobility| mobility.of_member(k)),
                    csl_period: group.csl_period,
                    ..NodeSection::new(name, group.kind)
                });
            }
        }
        Ok(sites)
    }

    /// Checks that the name contains the numbers that make the nodes' names unique.
    fn numbered(&self, i: usize, group: &NodesSection) -> Checked<()> {
        let (needed, wanted) = match &group.count {
            Count::Nodes(count) => (*count > 1, "{i}"),
            Count::Rows(_) => (true, "{i}-{j}"),
        };
        let has = |number: &str| group.name.contains(number);
        let told = has("{i}") && (wanted == "{i}" || has("{j}"));
        if needed && !told {
            let message = match wanted {
                "{i}" => format!("{} nodes of one name: `{}`", group.count.total(), group.name),
                _ => format!("rows of nodes need `{{i}}` and `{{j}}` in their name, found `{}`", group.name),
            };
            let name = group.name.replace("{i}", "").replace("{j}", "");
            let hint = format!("set `name = \"{name}{wanted}\"`");
            return self.fault(at!["nodes", i, "name"], message, Some(&hint));
        }
        if wanted == "{i}" && has("{j}") {
            let hint = Some("set `count = [2, 2]` for two rows of two nodes each, or remove `{j}`");
            return self.fault(
                at!["nodes", i, "name"],
                "`{j}` numbers the nodes of a row, and there are no rows",
                hint,
            );
        }
        Ok(())
    }

    /// Checks that the sizes of a placement are valid.
    fn place(&self, i: usize, group: &NodesSection) -> Checked<()> {
        let Some(place) = &group.place else { return Ok(()) };
        let count = group.count.total();
        if let PlaceName::At(places) = place
            && places.len() != count as usize
        {
            let message = format!("{} places for {count} nodes", places.len());
            return self.fault(at!["nodes", i, "place", "at"], message, Some("give one place for each node"));
        }
        let short = |Length(metres): Length| !(metres > 0.0 && metres <= 1e7);
        let still = |[east, north]: [f64; 2]| count > 1 && east == 0.0 && north == 0.0;
        let checks = match *place {
            PlaceName::At(_) => Vec::new(),
            PlaceName::Random { width, height, .. } => {
                vec![("random", "width", short(width)), ("random", "height", short(height))]
            }
            PlaceName::Line { step, .. } => vec![("line", "step", still(step))],
            PlaceName::Grid { columns, spacing, .. } => {
                vec![("grid", "columns", columns == 0), ("grid", "spacing", short(spacing))]
            }
            PlaceName::Star { radius, .. } => vec![("star", "radius", short(radius))],
            PlaceName::Tree { children, spacing, .. } => {
                vec![("tree", "children", children == 0), ("tree", "spacing", short(spacing))]
            }
            PlaceName::Sunflower { radius, .. } => vec![("sunflower", "radius", short(radius))],
        };
        let within = |x: f64, y: f64| x.abs() <= FARTHEST && y.abs() <= FARTHEST;
        let inside = |site: Site| match site {
            Site::At(Position { x, y }) => within(x, y),
            Site::Within(Position { x, y }, width, height) => within(x, y) && within(x + width, y + height),
        };
        match checks.into_iter().find(|(.., wrong)| *wrong) {
            None if (0..count).all(|k| inside(place.site(k, count))) => Ok(()),
            None => {
                let message = "its places are not within 10,000 km of the origin";
                self.fault(at!["nodes", i, "place"], message, None)
            }
            Some((generator, key, _)) => {
                let message = match key {
                    "columns" | "children" => "expected at least 1",
                    "step" => "the nodes would be in one place",
                    _ => "expected more than 0 m, up to 10,000 km",
                };
                self.fault(at!["nodes", i, "place", generator, key], message, None)
            }
        }
    }

    /// The description of what is drawn for each run, and the draw of the scenario's first run,
    /// whose positions are filled in.
    pub(super) fn deployment(
        &self,
        generated: Vec<(usize, Site)>,
        channel: Option<&Channel>,
        file: &mut FileConfig,
    ) -> Checked<Option<(Deployment, Drawn)>> {
        let drawn = generated.iter().any(|(_, site)| matches!(site, Site::Within(..)));
        if !drawn && file.group.is_empty() {
            if file.deployment.is_some() {
                let hint = Some("remove `[deployment]`, or add `[[nodes]]` with `place = { random = ... }`");
                return self.fault(at!["deployment"], "nothing is drawn", hint);
            }
            for (node, site) in generated {
                if let Site::At(place) = site {
                    file.node[node].position = Some([place.x, place.y]);
                }
            }
            return Ok(None);
        }
        let section = *file.deployment.get_or_insert_default();
        if !(1..=1_000_000).contains(&section.tries) {
            return self.fault(at!["deployment", "tries"], "expected 1 to 1,000,000", None);
        }
        let Some(channel) = channel else {
            let hint = Some("add `[radio]` or `[wifi]` with a `range`");
            return self.fault(at!["nodes"], "places are drawn, and there is no radio", hint);
        };
        let Some(range) = channel.range().or((!section.connected && file.group.is_empty()).then_some(0.0))
        else {
            let message = "under `log_distance` there is no range within which nodes are connected";
            let hint = Some("set `connected = false` and remove `[group]`, or give the radio a `range`");
            return self.fault(at!["deployment"], message, hint);
        };
        let mut sites: Vec<(usize, Site)> =
            places(&file.node).map(|(i, place)| (i, Site::At(place))).chain(generated).collect();
        sites.sort_by_key(|(node, _)| *node);
        let sites: Vec<(NodeId, Site)> =
            sites.into_iter().map(|(i, site)| (NodeId(i as u32), site)).collect();
        let moves = |(node, _): &(NodeId, Site)| file.node[node.index()].mobility.is_some();
        let mobile = sites.iter().filter(|site| moves(site)).map(|(node, _)| *node).collect();
        let mut deployment = Deployment { section, range, sites, mobile, groups: Vec::new() };
        for (name, group) in &file.group {
            let taken = self.nodes.contains_key(name) || file.nodes.iter().any(|nodes| nodes.name == *name);
            // The random stream of positions is called "places".
            if taken || name.contains('*') || name == "places" {
                let message = format!("`{name}` cannot be the name of a group");
                let hint = Some("choose a name that no nodes have, without `*`, and not \"places\"");
                return self.fault(at!["group", name.as_str()], message, hint);
            }
            let choice = self.choice(name, group, &deployment)?;
            deployment.groups.push((name.clone(), choice));
        }
        match deployment.draw(file.seed, 0) {
            Ok(drawn) => {
                for (node, place) in &drawn.places {
                    file.node[node.index()].position = Some([place.x, place.y]);
                }
                Ok(Some((deployment, drawn)))
            }
            Err(undrawable) => {
                let section: &[Step] =
                    if file.nodes.is_empty() { at!["group"] } else { at!["nodes", 0, "place"] };
                self.fault(section, undrawable.to_string(), Some(undrawable.hint()))
            }
        }
    }

    fn choice(&self, name: &str, group: &GroupName, deployment: &Deployment) -> Checked<Choice> {
        let site = |kind: &str, key: &str, node: &str| {
            let path = at!["group", name, kind, key];
            let node_id = self.node(path, node)?;
            match deployment.sites.iter().position(|(site, _)| *site == node_id) {
                Some(site) => Ok(site),
                None => {
                    let hint = Some("give it a `position = [x, y]` in metres");
                    self.fault(path, format!("`{node}` is not on the air"), hint)
                }
            }
        };
        let others = deployment.sites.len().saturating_sub(1);
        let count = |kind: &str, count: u32, (least, most)| match (least..=most).contains(&(count as usize)) {
            true => Ok(count as usize),
            false => {
                let message = match most {
                    0 => "no node is left that can be chosen".to_owned(),
                    _ => format!("expected {least} to {most}, the nodes that can be chosen, found {count}"),
                };
                self.fault(at!["group", name, kind, "count"], message, None)
            }
        };
        match group {
            GroupName::Nearest { count: n, hops, of } => {
                if *hops == 0 {
                    let path = at!["group", name, "nearest", "hops"];
                    return self.fault(path, "the event is at least one hop away", None);
                }
                let of = site("nearest", "of", of)?;
                Ok(Choice::Nearest { count: count("nearest", *n, (1, others))?, hops: *hops, of })
            }
            GroupName::ShortenPaths { count: n, to } => {
                let to = site("shorten-paths", "to", to)?;
                Ok(Choice::ShortenPaths { count: count("shorten-paths", *n, (0, others))?, to })
            }
            GroupName::Random { count: n, except } => {
                let except = except.as_ref().map(|node| site("random", "except", node)).transpose()?;
                let most = deployment.sites.len() - usize::from(except.is_some());
                Ok(Choice::Random { count: count("random", *n, (0, most))?, except })
            }
        }
    }

    /// The nodes that names and patterns stand for, each once; or the group, if a single name
    /// stands for one.
    pub(super) fn nodes_named(&self, path: &[Step], names: &[String], file: &FileConfig) -> Checked<Named> {
        let mut found: Vec<NodeId> = Vec::new();
        for name in names {
            if let Some(group) = file.group.keys().position(|group| group == name) {
                if names.len() == 1 {
                    return Ok(Named::Group(group));
                }
                let hint = Some("a group cannot be combined with other names: add a second entry for them");
                return self.fault(
                    path,
                    format!("the group `{name}` is listed together with other names"),
                    hint,
                );
            }
            if let Some(nodes) = file.nodes.iter().find(|nodes| nodes.name == *name) {
                let names = nodes.names();
                let members = names.iter().filter_map(|name| self.nodes.get(name).copied());
                found.extend(members.filter(|node| !found.contains(node)).collect::<Vec<_>>());
                continue;
            }
            if !name.contains('*') && !self.nodes.contains_key(name) {
                let known = self.nodes.keys().chain(file.group.keys()).map(String::as_str);
                let hint = did_you_mean(name, known)
                    .unwrap_or_else(|| format!("the nodes are {}", units::quoted(self.nodes.keys())));
                return self.fault(path, format!("there is no node and no group `{name}`"), Some(&hint));
            }
            let mut meant: Vec<NodeId> =
                self.nodes.iter().filter(|(node, _)| super::matches(name, node)).map(|(_, id)| *id).collect();
            if meant.is_empty() {
                let hint = format!("the nodes are {}", units::quoted(self.nodes.keys()));
                return self.fault(path, format!("no node's name is like `{name}`"), Some(&hint));
            }
            meant.sort();
            meant.retain(|node| !found.contains(node));
            found.extend(meant);
        }
        Ok(Named::Nodes(found))
    }
}

/// Meaning of a list of names.
#[derive(Debug)]
pub(super) enum Named {
    /// These nodes.
    Nodes(Vec<NodeId>),
    /// The group with this index.
    Group(usize),
}
