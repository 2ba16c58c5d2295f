//! Places of nodes on the map: those of the scenario, or a drawing of the topology.
//!
//! A drawing treats each connected part of the network by its shape:
//!
//! * a chain stands in a row; with leaves at its two ends it is a dumbbell, whose ends stand
//!   opposite each other; leaves of nodes in between stand above and below them;
//! * a star is a circle around its hub;
//! * a tree has its root at the left, and each parent in the middle of its children;
//! * everything else has layers by the number of links from the first node that sends.
//!
//! Traffic runs from left to right, and the order of declaration decides wherever the topology
//! leaves a choice, so that nodes stand in the order in which the scenario names them.

use std::collections::VecDeque;
use std::f64::consts::TAU;

use crate::replay::Replay;

/// Sweeps that order the nodes of layers. The order with the fewest crossings is kept, so that
/// more sweeps cost time only.
const SWEEPS: usize = 8;
/// Width of a layer for each unit of height at least, so that names beside each other have room.
const STEP: f64 = 1.6;
/// How far the middle of a bowed layer stands out, as a share of the width of a layer.
const BOW: f64 = 0.35;

/// A place for each node, in units of the scenario's own, north upward. No two nodes share one
/// unless the scenario says so.
pub(crate) fn places(replay: &Replay) -> Vec<(f64, f64)> {
    let said: Vec<(f64, f64)> = replay.nodes.iter().filter_map(|node| node.position).collect();
    if said.len() == replay.nodes.len() && !said.is_empty() {
        return said;
    }
    if said.is_empty() {
        return Graph::of(replay).draw();
    }
    beside(replay, &said)
}

/// Nodes without a position stand in a column beside the others, the first on top.
fn beside(replay: &Replay, said: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        let values = said.iter().map(of);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let ((left, right), (bottom, top)) = (bounds(|p| p.0), bounds(|p| p.1));
    let size = (right - left).max(top - bottom).max(1.0);
    let without = replay.nodes.len() - said.len();
    let mut next = 0;
    let place = |node: &crate::log::Node| {
        node.position.unwrap_or_else(|| {
            next += 1;
            let down = (next as f64 - 0.5) / without as f64;
            (left - size / 3.0, (top + bottom) / 2.0 + size / 2.0 - down * size)
        })
    };
    replay.nodes.iter().map(place).collect()
}

/// Places of the nodes of one connected part: node, column, and height downward around 0. Columns
/// count from 0 and need not be whole.
type Part = Vec<(usize, f64, f64)>;

/// Which nodes are connected, either way.
struct Graph {
    /// Neighbours of each node, in order of declaration.
    neighbours: Vec<Vec<usize>>,
    /// Source and destination of the first flow between two nodes. Traffic to all nodes in reach,
    /// such as that of routing protocols, tells nothing of the direction of the transfers.
    ends: Option<(usize, usize)>,
}

impl Graph {
    fn of(replay: &Replay) -> Self {
        let mut neighbours = vec![Vec::new(); replay.nodes.len()];
        for link in replay.links.iter().filter(|link| link.from != link.to) {
            neighbours[link.from as usize].push(link.to as usize);
            neighbours[link.to as usize].push(link.from as usize);
        }
        for all in &mut neighbours {
            all.sort_unstable();
            all.dedup();
        }
        let ends = |flow: &crate::log::Flow| Some((flow.source as usize, flow.destination? as usize));
        Self { neighbours, ends: replay.flows.iter().find_map(ends) }
    }

    fn degree(&self, node: usize) -> usize {
        self.neighbours[node].len()
    }

    fn leaves(&self, node: usize) -> impl Iterator<Item = usize> {
        self.neighbours[node].iter().copied().filter(|next| self.degree(*next) == 1)
    }

    /// Connected parts one below the other, the one with the first flow on top, and nodes without
    /// links in rows at the bottom.
    fn draw(&self) -> Vec<(f64, f64)> {
        let count = self.neighbours.len();
        let mut seen = vec![false; count];
        let (mut parts, mut alone) = (Vec::new(), Vec::new());
        for start in self.ends.map(|(source, _)| source).into_iter().chain(0..count) {
            if seen[start] {
                continue;
            }
            let mut nodes: Vec<usize> = self.distances(start).into_iter().map(|(node, _)| node).collect();
            nodes.sort_unstable();
            nodes.iter().for_each(|node| seen[*node] = true);
            if nodes.len() == 1 {
                alone.extend(nodes);
            } else {
                parts.push(self.draw_part(&nodes));
            }
        }
        let row = (alone.len() as f64).sqrt().ceil().max(4.0) as usize;
        for nodes in alone.chunks(row) {
            parts.push(nodes.iter().enumerate().map(|(i, node)| (*node, i as f64, 0.0)).collect());
        }
        let width = |part: &Part| part.iter().map(|(_, x, _)| *x).fold(0.0, f64::max);
        let height = |part: &Part| part.iter().map(|(_, _, y)| y.abs()).fold(0.5, f64::max) * 2.0;
        let widest = parts.iter().map(width).fold(0.0, f64::max);
        let high = parts.iter().map(height).sum::<f64>();
        let step = (high / (widest + 1.0)).max(1.0) * STEP;
        let mut places = vec![(0.0, 0.0); count];
        let mut top = 0.0;
        for part in &parts {
            let (inset, half) = ((widest - width(part)) / 2.0, height(part) / 2.0);
            for &(node, x, y) in part {
                places[node] = ((inset + x) * step, -(top + half + y));
            }
            top += 2.0 * half;
        }
        places
    }

    /// Nodes that are connected to `start`, with their distance from it in links, nearest first.
    fn distances(&self, start: usize) -> Vec<(usize, usize)> {
        let mut far = vec![usize::MAX; self.neighbours.len()];
        far[start] = 0;
        let mut queue = VecDeque::from([start]);
        let mut reached = Vec::new();
        while let Some(node) = queue.pop_front() {
            reached.push((node, far[node]));
            for &next in &self.neighbours[node] {
                if far[next] == usize::MAX {
                    far[next] = far[node] + 1;
                    queue.push_back(next);
                }
            }
        }
        reached
    }

    /// Draws the connected part that has these nodes, at least two, in order of declaration.
    fn draw_part(&self, nodes: &[usize]) -> Part {
        let ends: usize = nodes.iter().map(|node| self.degree(*node)).sum();
        if ends != 2 * (nodes.len() - 1) {
            return self.layered(nodes);
        }
        let inner: Vec<usize> = nodes.iter().copied().filter(|node| self.degree(*node) > 1).collect();
        match inner.as_slice() {
            [] => nodes.iter().zip([0.0, 1.0]).map(|(node, x)| (*node, x, 0.0)).collect(),
            [hub] if self.degree(*hub) > 2 => self.star(*hub),
            _ => match self.spine(&inner) {
                Some(spine) if nodes.len() == inner.len() + 2 || !self.ends_at(&inner) => self.along(&spine),
                Some(_) | None => self.tree(nodes),
            },
        }
    }

    /// Whether the first flow begins or ends at one of these nodes. An inner node that sends or
    /// receives is the root of its tree, also where the inner nodes form a chain.
    fn ends_at(&self, inner: &[usize]) -> bool {
        self.ends.is_some_and(|(source, destination)| inner.contains(&source) || inner.contains(&destination))
    }

    /// A hub in the middle of a circle of its neighbours. The first node that sends is at the left.
    fn star(&self, hub: usize) -> Part {
        let mut around = self.neighbours[hub].clone();
        let first = self.ends.and_then(|(source, _)| around.iter().position(|node| *node == source));
        around.rotate_left(first.unwrap_or(0));
        let count = around.len() as f64;
        // Neighbours on the circle keep about a unit between them.
        let radius = (count / TAU).max(1.0);
        let mut part = vec![(hub, 1.0, 0.0)];
        for (i, node) in around.into_iter().enumerate() {
            let (sin, cos) = (i as f64 / count * TAU).sin_cos();
            part.push((node, 1.0 - cos, -sin * radius));
        }
        part
    }

    /// The inner nodes of a tree in a row, if they are a chain.
    fn spine(&self, inner: &[usize]) -> Option<Vec<usize>> {
        let next = |node: usize| self.neighbours[node].iter().copied().filter(|next| self.degree(*next) > 1);
        if inner.iter().any(|node| next(*node).count() > 2) {
            return None;
        }
        let mut node = inner.iter().copied().find(|node| next(*node).count() < 2)?;
        let mut spine = vec![node];
        while let Some(other) = next(node).find(|other| !spine.contains(other)) {
            spine.push(other);
            node = other;
        }
        Some(spine)
    }

    /// A chain from left to right. The leaves of its ends stand before and behind it; those of
    /// other nodes above and below their node.
    fn along(&self, spine: &[usize]) -> Part {
        let at = |end: usize| {
            spine.iter().position(|node| *node == end || self.leaves(*node).any(|leaf| leaf == end))
        };
        let ends = self.ends.and_then(|(source, destination)| Some((at(source)?, at(destination)?)));
        let mut spine = spine.to_vec();
        if ends.is_some_and(|(source, destination)| source > destination) {
            spine.reverse();
        }
        let mut part = Part::new();
        let last = spine.len() - 1;
        for (i, &node) in spine.iter().enumerate() {
            let x = i as f64 + 1.0;
            part.push((node, x, 0.0));
            let mut leaves: Vec<usize> = self.leaves(node).collect();
            if last == 0 {
                // Three nodes in a row.
                leaves.sort_by_key(|leaf| self.ends.is_some_and(|(source, _)| source != *leaf));
                part.extend(leaves.iter().zip([0.0, 2.0]).map(|(leaf, x)| (*leaf, x, 0.0)));
            } else if i == 0 || i == last {
                let x = if i == 0 { 0.0 } else { x + 1.0 };
                part.extend(leaves.iter().enumerate().map(|(n, leaf)| (*leaf, x, centred(n, leaves.len()))));
            } else {
                // Alternating: above, below, further above, further below.
                let place =
                    |n: usize| if n.is_multiple_of(2) { -1.0 - (n / 2) as f64 } else { 1.0 + (n / 2) as f64 };
                part.extend(leaves.iter().enumerate().map(|(n, leaf)| (*leaf, x, place(n))));
            }
        }
        let left = part.iter().map(|(_, x, _)| *x).fold(f64::INFINITY, f64::min);
        part.iter_mut().for_each(|(_, x, _)| *x -= left);
        part
    }

    /// A tree from left to right, each parent in the middle of its children.
    fn tree(&self, nodes: &[usize]) -> Part {
        // In a tree the node furthest from any node is an end of a longest path, and the distance
        // of a node to whichever end is further is its distance to the node furthest from it.
        let from_end = |start: usize| {
            let reached = self.distances(start);
            let end = reached.last().map_or(start, |(node, _)| *node);
            let mut far = vec![0; self.neighbours.len()];
            self.distances(end).iter().for_each(|(node, distance)| far[*node] = *distance);
            (end, far)
        };
        let (end, one) = from_end(nodes[0]);
        let (_, other) = from_end(end);
        let far = |node: usize| one[node].max(other[node]);
        let longest = far(end);
        // A leaf deep in the tree as its root would hide its shape: its middle is the root then.
        let ends = self.ends.into_iter().flat_map(|(source, destination)| [source, destination]);
        let mut wanted = ends.filter(|node| nodes.contains(node) && far(*node) < longest);
        let middle = || nodes.iter().copied().min_by_key(|node| far(*node));
        let root = wanted.next().or_else(middle).unwrap_or(nodes[0]);
        let depths = self.distances(root);
        let mut depth = vec![usize::MAX; self.neighbours.len()];
        depths.iter().for_each(|(node, far)| depth[*node] = *far);
        let children = |node: usize| {
            let all = self.neighbours[node].iter().copied();
            all.filter(|next| depth[*next] > depth[node]).collect::<Vec<usize>>()
        };
        let mut y = vec![0.0; self.neighbours.len()];
        let (mut slot, mut left) = (0.0, vec![root]);
        // Leaves take the next place each, in the order of a walk that takes children as declared.
        while let Some(node) = left.pop() {
            let below = children(node);
            if below.is_empty() {
                (y[node], slot) = (slot, slot + 1.0);
            }
            left.extend(below.into_iter().rev());
        }
        for &(node, _) in depths.iter().rev() {
            if let [first, .., last] | [first @ last] = children(node).as_slice() {
                y[node] = (y[*first] + y[*last]) / 2.0;
            }
        }
        let place = |(node, far): (usize, usize)| (node, far as f64, y[node] - (slot - 1.0) / 2.0);
        depths.into_iter().map(place).collect()
    }

    /// Layers from left to right by distance from the first node that sends; within a layer,
    /// neighbours near each other.
    fn layered(&self, nodes: &[usize]) -> Part {
        let source = self.ends.map(|(source, _)| source).filter(|source| nodes.contains(source));
        let root = source.unwrap_or(nodes[0]);
        let mut layer = vec![usize::MAX; self.neighbours.len()];
        let reached = self.distances(root);
        reached.iter().for_each(|(node, far)| layer[*node] = *far);
        // Other hosts at the same router are no further on the way than the first node that sends.
        if let [router] = self.neighbours[root].as_slice() {
            self.leaves(*router).for_each(|leaf| layer[leaf] = 0);
        }
        let mut layers: Vec<Vec<usize>> = vec![Vec::new(); reached.last().map_or(0, |(_, far)| far + 1)];
        nodes.iter().for_each(|node| layers[layer[*node]].push(*node));
        self.untangle(&mut layers, &layer);
        let height = layers.iter().map(Vec::len).max().unwrap_or(1) as f64;
        let place = places_in(&layers, layer.len());
        let mut part = Part::new();
        for (i, nodes) in layers.iter().enumerate() {
            // A link between two nodes of a layer would run through the nodes between them.
            let through = |node: &usize| {
                let mut others = self.neighbours[*node].iter().filter(|other| layer[**other] == i);
                others.any(|other| place[*other] > place[*node] + 1)
            };
            let bow = if nodes.iter().any(through) { BOW } else { 0.0 };
            let last = nodes.len().max(2) as f64 - 1.0;
            for (n, &node) in nodes.iter().enumerate() {
                let out = 1.0 - (2.0 * n as f64 / last - 1.0).powi(2);
                let y = centred(n, nodes.len()) * height / nodes.len() as f64;
                part.push((node, i as f64 + bow * out, y));
            }
        }
        part
    }

    /// Orders the nodes of layers so that few links cross: of all orders that sweeps by the mean of
    /// the neighbours come to, the first with the fewest crossings.
    fn untangle(&self, layers: &mut Vec<Vec<usize>>, layer: &[usize]) {
        let mut y = vec![0.0; layer.len()];
        let spread = |layer: &[usize], y: &mut [f64]| {
            for (n, &node) in layer.iter().enumerate() {
                y[node] = centred(n, layer.len()) / layer.len() as f64;
            }
        };
        layers.iter().for_each(|layer| spread(layer, &mut y));
        let mut best = (self.crossings(layers, layer), layers.clone());
        for sweep in 0..SWEEPS {
            if best.0 == 0 {
                break;
            }
            for n in 0..layers.len() {
                let i = if sweep % 2 == 0 { n } else { layers.len() - 1 - n };
                let mean = |node: usize| {
                    let all = &self.neighbours[node];
                    let mean = all.iter().map(|n| y[*n]).sum::<f64>() / all.len() as f64;
                    // Sums of the same numbers in another order differ in their last bits, and
                    // would undo the order of declaration.
                    (mean * 1e9).round() as i64
                };
                layers[i].sort_by_cached_key(|node| (mean(*node), *node));
                spread(&layers[i], &mut y);
            }
            let crossings = self.crossings(layers, layer);
            if crossings < best.0 {
                best = (crossings, layers.clone());
            }
        }
        *layers = best.1;
    }

    /// How often links between adjacent layers cross.
    fn crossings(&self, layers: &[Vec<usize>], layer: &[usize]) -> u64 {
        let place = places_in(layers, layer.len());
        let mut crossings = 0;
        for (i, nodes) in layers.iter().enumerate().skip(1) {
            // A Fenwick tree of the links so far by their ends in the layer before: meshes have
            // hundreds of thousands of links, too many to compare each with each.
            let mut tree = vec![0_u64; layers[i - 1].len() + 1];
            let mut links = 0;
            for &node in nodes {
                let before = self.neighbours[node].iter().filter(|other| layer[**other] + 1 == i);
                let ends: Vec<usize> = before.map(|other| place[*other]).collect();
                for end in &ends {
                    let (mut not_beyond, mut at) = (0, end + 1);
                    while at > 0 {
                        not_beyond += tree[at];
                        at &= at - 1;
                    }
                    crossings += links - not_beyond;
                }
                for end in ends {
                    links += 1;
                    let mut at = end + 1;
                    while at < tree.len() {
                        tree[at] += 1;
                        at += at & at.wrapping_neg();
                    }
                }
            }
        }
        crossings
    }
}

/// The place of each of `count` nodes in its layer.
fn places_in(layers: &[Vec<usize>], count: usize) -> Vec<usize> {
    let mut place = vec![0; count];
    for nodes in layers {
        nodes.iter().enumerate().for_each(|(n, node)| place[*node] = n);
    }
    place
}

/// The `n`th of `count` places a unit apart around 0.
fn centred(n: usize, count: usize) -> f64 {
    n as f64 - (count - 1) as f64 / 2.0
}
