//! Positions of nodes: groups of nodes with a placement, and positions that are drawn for each run.
//!
//! A [`Deployment`] is the description; [`Deployment::draw`] draws the positions and groups of one
//! run ([`Drawn`]). The random stream is `("deployment", "places")` of the seed and the placement.
//! The placement is the number of the run unless `placements` says otherwise.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use anabranch_core::set::Energy;

use super::emulation::HostKind;
use super::mobility::MobilityName;
use super::node::NodeKind;
use super::options::or_off;
use super::units::{Length, Span};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::Position;
use anabranch_sim::random::Stream;

/// Largest number of nodes in a scenario.
pub(super) const MAX_NODES: usize = 0xfffd;

/// A group of similar nodes.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NodesSection {
    /// Name of each node. `{i}` stands for its number, as in "n{i}". With rows, `{i}` stands for
    /// the number of the row and `{j}` for the number in the row, from 1, as in "r{i}-{j}".
    pub name: String,
    /// Number of nodes. A list gives the number of nodes in each of several rows: `[2, 2, 2]`. 0
    /// removes the nodes, and the links with this `name` as an end.
    pub count: Count,
    /// Number of the first node, or of the first row.
    #[serde(default = "one")]
    pub first: u32,
    /// Role of the nodes.
    #[serde(default = "node")]
    pub kind: NodeKind,
    /// Energy level in the gateway table of SET.
    #[serde(default)]
    pub energy: Energy,
    /// Name of the profile for distributed TCP caching: the nodes cache TCP segments that they
    /// forward. Without a profile, or with "off", they do not cache.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_off")]
    pub dtc: Option<String>,
    /// Name of the pool for the send buffers of each node's connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<String>,
    /// Whether the transport protocols of the nodes are simulated, or run in a Linux kernel behind
    /// a TUN device for each node.
    #[serde(default, skip_serializing_if = "HostKind::is_default")]
    pub host: HostKind,
    /// Network namespace of each TUN device; `{i}` stands for the number of the node. Only with
    /// `host = "tun"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// Placement of the nodes. Placed nodes are on the radio or Wi-Fi channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceName>,
    /// How each node moves. Moving nodes are on the channel even without a `place`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mobility: Option<MobilityName>,
    /// macCslPeriod of each node, in place of the period in `csl` of `[radio]`; "0 s" for nodes
    /// that never sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csl_period: Option<Span>,
}

/// Number of nodes.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "expected a number of nodes, or a list with the number of nodes in each row")]
pub enum Count {
    /// Nodes with consecutive numbers.
    Nodes(u32),
    /// Rows of nodes, with the number of nodes in each.
    Rows(Vec<u32>),
}

fn one() -> u32 {
    1
}

fn node() -> NodeKind {
    NodeKind::Node
}

/// Placement of nodes, in metres east and north of the origin.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PlaceName {
    /// Given coordinates, one pair for each node, in order.
    At(#[serde(deserialize_with = "super::node::places")] Vec<[f64; 2]>),
    /// Uniformly random in a rectangle, drawn anew for each run.
    Random {
        /// Width of the rectangle.
        width: Length,
        /// Height of the rectangle.
        height: Length,
        /// South-west corner of the rectangle.
        #[serde(default, deserialize_with = "super::node::place")]
        corner: [f64; 2],
    },
    /// On a line at equal distances.
    Line {
        /// Position of the first node.
        #[serde(default, deserialize_with = "super::node::place")]
        start: [f64; 2],
        /// Vector from each node to the next.
        #[serde(deserialize_with = "super::node::place")]
        step: [f64; 2],
    },
    /// On a grid, row by row from the south-west corner.
    Grid {
        /// Position of the first node.
        #[serde(default, deserialize_with = "super::node::place")]
        start: [f64; 2],
        /// Number of nodes in a row, at least 1.
        columns: u32,
        /// Distance between neighbours in a row, and between rows.
        spacing: Length,
    },
    /// Evenly spaced on a circle, the first node in the east.
    Star {
        /// Centre of the circle.
        #[serde(default, deserialize_with = "super::node::place")]
        centre: [f64; 2],
        /// Radius of the circle.
        radius: Length,
    },
    /// A tree around a root that is not one of these nodes. Each level is on its own circle, evenly
    /// spaced.
    Tree {
        /// Position of the root.
        #[serde(default, deserialize_with = "super::node::place")]
        root: [f64; 2],
        /// Number of children of the root and of each node, at least 1.
        children: u32,
        /// Distance between the circles of two levels.
        spacing: Length,
    },
    /// On Vogel's spiral: evenly dense in a circle.
    Sunflower {
        /// Centre of the circle.
        #[serde(default, deserialize_with = "super::node::place")]
        centre: [f64; 2],
        /// Radius of the circle, which is the distance of the last node.
        radius: Length,
    },
}

/// Options for positions that are drawn at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DeploymentSection {
    /// Number of different placements, which runs use in turn. 0 draws a new placement for each
    /// run.
    pub placements: u64,
    /// Whether positions are drawn again until all stationary nodes on the channel are connected
    /// over hops within radio range.
    pub connected: bool,
    /// Number of draws after which a run fails, 1 to 1,000,000.
    pub tries: u32,
}

impl Default for DeploymentSection {
    fn default() -> Self {
        Self { placements: 0, connected: true, tries: 1000 }
    }
}

/// A group of nodes that are chosen after all positions are known.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum GroupName {
    /// The nodes nearest to an event, nearest first. The event takes place at a node that is drawn
    /// anew for each run.
    Nearest {
        /// Number of nodes, at least 1.
        count: u32,
        /// Number of hops between the event's node and `of`, at least 1. A deployment without such
        /// a node is drawn again.
        hops: u32,
        /// Node from which hops are counted. It is never chosen.
        of: String,
    },
    /// Nodes at which a second interface shortens the paths of all nodes most, chosen one after the
    /// other.
    ShortenPaths {
        /// Number of nodes; 0 makes an empty group.
        count: u32,
        /// Destination of all paths. It is never chosen.
        to: String,
    },
    /// Random nodes, drawn anew for each run.
    Random {
        /// Number of nodes; 0 makes an empty group.
        count: u32,
        /// Node that is never chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        except: Option<String>,
    },
}

/// Description of positions and groups, from which each run draws its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Deployment {
    /// Options of the draws.
    pub section: DeploymentSection,
    /// Radio range in metres.
    pub range: f64,
    /// The nodes on the channel, in order.
    pub sites: Vec<(NodeId, Site)>,
    /// The moving nodes, in order. The positions drawn need not connect them.
    pub mobile: Vec<NodeId>,
    /// The groups by name. Nodes are indices into `sites`.
    pub groups: Vec<(String, Choice)>,
}

/// Position of a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Site {
    /// Fixed in all runs.
    At(Position),
    /// Uniformly random in a rectangle, given by its south-west corner, width and height in metres.
    Within(Position, f64, f64),
}

/// Rule by which the nodes of a group are chosen. Nodes are indices into [`Deployment::sites`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// See [`GroupName::Nearest`].
    Nearest {
        /// Number of nodes.
        count: usize,
        /// Number of hops between the event and `of`.
        hops: u32,
        /// Node from which hops are counted.
        of: usize,
    },
    /// See [`GroupName::ShortenPaths`].
    ShortenPaths {
        /// Number of nodes.
        count: usize,
        /// Destination of the paths.
        to: usize,
    },
    /// See [`GroupName::Random`].
    Random {
        /// Number of nodes.
        count: usize,
        /// Node that is never chosen.
        except: Option<usize>,
    },
}

impl Choice {
    /// Number of nodes.
    pub fn count(&self) -> usize {
        match *self {
            Self::Nearest { count, .. } | Self::ShortenPaths { count, .. } | Self::Random { count, .. } => {
                count
            }
        }
    }
}

/// The positions and groups of one run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Drawn {
    /// The nodes on the channel and their positions, in order.
    pub places: Vec<(NodeId, Position)>,
    /// The nodes of each group, in the order of [`Deployment::groups`].
    pub groups: Vec<Vec<NodeId>>,
}

/// No draw fulfils the conditions of the scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Undrawable {
    nodes: usize,
    tries: u32,
    range: f64,
    /// The group that lacks nodes in every connected draw.
    group: Option<String>,
}

impl Undrawable {
    /// Advice for the user.
    pub fn hint(&self) -> &'static str {
        match self.group {
            None => {
                "raise the `range` of the radio, take more nodes or a smaller rectangle, or set `connected = false` in `[deployment]`"
            }
            Some(_) => "take fewer `hops`, more nodes, or a shorter `range` of the radio",
        }
    }
}

impl fmt::Display for Undrawable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, tries, range, group } = self;
        match group {
            None if *tries == 1 => {
                write!(f, "the deployment of {nodes} nodes is not connected with a range of {range} m")
            }
            None => write!(
                f,
                "none of {tries} deployments of {nodes} nodes is connected with a range of {range} m"
            ),
            Some(name) => write!(
                f,
                "none of {tries} deployments of {nodes} nodes has the nodes of `group.{name}` with a range of {range} m"
            ),
        }
    }
}

impl std::error::Error for Undrawable {}

impl Deployment {
    /// Draws the positions and groups of a run.
    ///
    /// # Errors
    ///
    /// If no draw fulfils the conditions of the scenario.
    pub fn draw(&self, seed: u64, run: u64) -> Result<Drawn, Undrawable> {
        // 0 placements: every run has its own.
        let placement = run.checked_rem(self.section.placements).unwrap_or(run);
        let mut random = Stream::new(seed, placement, "deployment", "places");
        let tries = if self.is_fixed() { 1 } else { self.section.tries };
        let mut lacking = None;
        for _ in 0..tries {
            let places: Vec<Position> = self.sites.iter().map(|(_, site)| site.draw(&mut random)).collect();
            if self.section.connected && !self.is_connected(&places) {
                continue;
            }
            match self.choose(&places, &mut random, (seed, placement)) {
                Ok(groups) => {
                    let nodes = self.sites.iter().map(|(node, _)| *node);
                    let named = |group: Vec<usize>| group.into_iter().map(|i| self.sites[i].0).collect();
                    return Ok(Drawn {
                        places: nodes.zip(places).collect(),
                        groups: groups.into_iter().map(named).collect(),
                    });
                }
                Err(group) => lacking = Some(group.to_owned()),
            }
        }
        Err(Undrawable { nodes: self.sites.len(), tries, range: self.range, group: lacking })
    }

    /// Whether every draw has the same positions, so that a further one cannot help.
    fn is_fixed(&self) -> bool {
        self.sites.iter().all(|(_, site)| matches!(site, Site::At(_)))
    }

    /// Whether all stationary nodes are connected.
    fn is_connected(&self, places: &[Position]) -> bool {
        if self.mobile.is_empty() {
            return is_connected(places, self.range);
        }
        // Moving nodes do not count, since they do not stay where they are.
        let stays = |node: &NodeId| self.mobile.binary_search(node).is_err();
        let still = self.sites.iter().zip(places).filter(|((node, _), _)| stays(node));
        is_connected(&still.map(|(_, place)| *place).collect::<Vec<_>>(), self.range)
    }

    /// The nodes of each group, or the name of the group that lacks nodes.
    fn choose(
        &self,
        places: &[Position],
        random: &mut Stream,
        (seed, placement): (u64, u64),
    ) -> Result<Vec<Vec<usize>>, &str> {
        let mut choose = |(name, choice): &'_ (String, Choice)| match *choice {
            Choice::Nearest { count, hops, of } => {
                nearest(places, self.range, (count, hops, of), random).ok_or(())
            }
            Choice::ShortenPaths { count, to } => Ok(shorten_paths(places, self.range, count, to)),
            Choice::Random { count, except } => {
                // Its own stream, so that a group does not change the positions or the other
                // groups.
                let mut random = Stream::new(seed, placement, "deployment", name);
                let mut rest: Vec<usize> = (0..places.len()).filter(|i| Some(*i) != except).collect();
                let mut draw = || rest.swap_remove(random.range(0..=rest.len() as u64 - 1) as usize);
                let mut chosen: Vec<usize> = (0..count).map(|_| draw()).collect();
                chosen.sort_unstable();
                Ok(chosen)
            }
        };
        self.groups.iter().map(|group| choose(group).map_err(|()| group.0.as_str())).collect()
    }
}

impl Site {
    fn draw(&self, random: &mut Stream) -> Position {
        match *self {
            Self::At(place) => place,
            Self::Within(corner, width, height) => {
                let (east, north) = (random.uniform() * width, random.uniform() * height);
                Position { x: corner.x + east, y: corner.y + north }
            }
        }
    }
}

impl PlaceName {
    /// Position of node `k` of `count`, counted from 0.
    pub(super) fn site(&self, k: u32, count: u32) -> Site {
        let at = |x: f64, y: f64| Site::At(Position::new(x, y));
        let around = |[x, y]: [f64; 2], radius: f64, angle: f64| {
            at(x + radius * angle.cos(), y + radius * angle.sin())
        };
        let turn = |part: u32, of: u32| std::f64::consts::TAU * f64::from(part) / f64::from(of);
        match *self {
            Self::At(ref places) => {
                let [x, y] = places.get(k as usize).copied().unwrap_or_default();
                at(x, y)
            }
            Self::Random { width, height, corner: [x, y] } => {
                Site::Within(Position::new(x, y), width.0, height.0)
            }
            Self::Line { start: [x, y], step: [east, north] } => {
                at(x + east * f64::from(k), y + north * f64::from(k))
            }
            Self::Grid { start: [x, y], columns, spacing } => {
                let (row, column) = (k / columns.max(1), k % columns.max(1));
                at(x + spacing.0 * f64::from(column), y + spacing.0 * f64::from(row))
            }
            Self::Star { centre, radius } => around(centre, radius.0, turn(k, count)),
            Self::Tree { root, children, spacing } => {
                let (mut level, mut place, mut width) = (1, k, u64::from(children.max(1)));
                while u64::from(place) >= width {
                    place -= width as u32;
                    width = width.saturating_mul(children.max(1).into());
                    level += 1;
                }
                let angle = std::f64::consts::TAU * f64::from(place) / width as f64;
                around(root, spacing.0 * f64::from(level), angle)
            }
            Self::Sunflower { centre, radius } => {
                // Vogel 1979: the radius grows with the square root of the number, and consecutive
                // nodes are the golden angle apart.
                let golden = std::f64::consts::PI * (3.0 - 5f64.sqrt());
                let number = f64::from(k + 1);
                around(centre, radius.0 * (number / f64::from(count)).sqrt(), number * golden)
            }
        }
    }
}

/// Number of hops of at most `range` metres from each place to the nearest of `ends`; `None` if
/// there is no path.
pub fn hops(places: &[Position], range: f64, ends: &[usize]) -> Vec<Option<u32>> {
    let mut hops = vec![None; places.len()];
    let mut edge: VecDeque<(usize, u32)> = ends.iter().map(|&end| (end, 0)).collect();
    for &end in ends {
        hops[end] = Some(0);
    }
    while let Some((at, far)) = edge.pop_front() {
        for (to, place) in places.iter().enumerate() {
            if hops[to].is_none() && place.distance(places[at]) <= range {
                hops[to] = Some(far + 1);
                edge.push_back((to, far + 1));
            }
        }
    }
    hops
}

fn is_connected(places: &[Position], range: f64) -> bool {
    places.is_empty() || hops(places, range, &[0]).iter().all(Option::is_some)
}

/// The places nearest to one that is drawn among those at the given number of hops; `None` if there
/// is none.
fn nearest(
    places: &[Position],
    range: f64,
    (count, far, of): (usize, u32, usize),
    random: &mut Stream,
) -> Option<Vec<usize>> {
    let hops = hops(places, range, &[of]);
    let others = || (0..places.len()).filter(|&i| i != of);
    let candidates: Vec<usize> = others().filter(|&i| hops[i] == Some(far)).collect();
    let event = *candidates.get(random.range(0..=candidates.len().checked_sub(1)? as u64) as usize)?;
    let mut nearest: Vec<usize> = others().collect();
    nearest.sort_by(|&a, &b| {
        let distance = |i: usize| places[i].distance(places[event]);
        distance(a).total_cmp(&distance(b)).then(a.cmp(&b))
    });
    nearest.truncate(count);
    Some(nearest)
}

/// The `count` places that gain most from a second interface. The choice is greedy: each place
/// minimises the sum of all path lengths to the nearest interface, given the places chosen before.
/// The first of equal places is taken.
fn shorten_paths(places: &[Position], range: f64, count: usize, to: usize) -> Vec<usize> {
    let mut ends = vec![to];
    for _ in 0..count {
        let sum = |extra: usize| {
            let ends = [&ends[..], &[extra]].concat();
            hops(places, range, &ends).iter().map(|hops| hops.unwrap_or(places.len() as u32)).sum::<u32>()
        };
        let free = (0..places.len()).filter(|place| !ends.contains(place));
        match free.min_by_key(|&place| sum(place)) {
            Some(best) => ends.push(best),
            None => break,
        }
    }
    let mut chosen = ends.split_off(1);
    chosen.sort_unstable();
    chosen
}

impl NodesSection {
    /// The names of all nodes, in order.
    pub(super) fn names(&self) -> Vec<String> {
        let named = |i: u32| self.name.replace("{i}", &self.number(i).to_string());
        match &self.count {
            Count::Nodes(count) => (0..*count).map(named).collect(),
            Count::Rows(rows) => (0..).zip(rows).flat_map(|(i, &count)| in_row(&named(i), count)).collect(),
        }
    }

    /// The names of the nodes in the row of this number, or of the single node; `None` if there is
    /// no such row or node.
    pub(super) fn names_in(&self, number: u64) -> Option<Vec<String>> {
        let named = self.name.replace("{i}", &number.to_string());
        let k = usize::try_from(number.checked_sub(self.first.into())?).ok()?;
        match &self.count {
            Count::Nodes(count) => (k < *count as usize).then(|| vec![named]),
            Count::Rows(rows) => rows.get(k).map(|&count| in_row(&named, count)),
        }
    }

    /// The numbers of the nodes, or of the rows.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let count = match &self.count {
            Count::Nodes(count) => *count,
            Count::Rows(rows) => rows.len() as u32,
        };
        (0..count).map(|k| self.number(k)).collect()
    }

    /// The number of the node or row at index `k`, from 0.
    pub(super) fn number(&self, k: u32) -> u64 {
        u64::from(self.first) + u64::from(k)
    }
}

fn in_row(name: &str, count: u32) -> Vec<String> {
    (1..=count).map(|j| name.replace("{j}", &j.to_string())).collect()
}

impl Count {
    /// Number of all nodes.
    pub fn total(&self) -> u32 {
        match self {
            Self::Nodes(count) => *count,
            Self::Rows(rows) => rows.iter().fold(0, |sum, count| sum.saturating_add(*count)),
        }
    }
}

/// Groups by name.
pub type GroupsSection = BTreeMap<String, GroupName>;
