//! Positions of nodes on the map: those of the scenario, or layers by the number of links from the
//! first sender.

use std::collections::VecDeque;

use crate::replay::Replay;

/// Number of passes that order the layers.
const SWEEPS: usize = 8;

/// A position for every node, in the scenario's units, with north upward. Two nodes share a
/// position only if the scenario says so.
pub(crate) fn places(replay: &Replay) -> Vec<(f64, f64)> {
    let said: Vec<(f64, f64)> = replay.nodes.iter().filter_map(|node| node.position).collect();
    if said.len() == replay.nodes.len() && !said.is_empty() {
        return said;
    }
    if said.is_empty() {
        return layers(replay);
    }
    beside(replay, &said)
}

/// Places nodes without a position in a column beside the others, the first on top.
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

/// Layers from left to right by distance from the first sender; within a layer, neighbours are near
/// each other.
fn layers(replay: &Replay) -> Vec<(f64, f64)> {
    let count = replay.nodes.len();
    let mut neighbours = vec![Vec::new(); count];
    for link in &replay.links {
        neighbours[link.from as usize].push(link.to as usize);
        neighbours[link.to as usize].push(link.from as usize);
    }
    let mut layer = vec![usize::MAX; count];
    let first = replay.flows.first().map_or(0, |flow| flow.source as usize);
    let mut layers: Vec<Vec<usize>> = Vec::new();
    // Nodes without a connection to the first sender start rows of their own, also at the left.
    for start in std::iter::once(first).chain(0..count).filter(|start| *start < count) {
        if layer[start] != usize::MAX {
            continue;
        }
        layer[start] = 0;
        let mut reached = VecDeque::from([start]);
        while let Some(node) = reached.pop_front() {
            if layers.len() <= layer[node] {
                layers.push(Vec::new());
            }
            layers[layer[node]].push(node);
            for &next in &neighbours[node] {
                if layer[next] == usize::MAX {
                    layer[next] = layer[node] + 1;
                    reached.push_back(next);
                }
            }
        }
    }
    let height = layers.iter().map(Vec::len).max().unwrap_or(1).max(1) as f64;
    let mut y = vec![0.0; count];
    let spread = |layer: &[usize], y: &mut [f64]| {
        for (i, &node) in layer.iter().enumerate() {
            y[node] = height * ((i as f64 + 0.5) / layer.len() as f64 - 0.5);
        }
    };
    layers.iter().for_each(|layer| spread(layer, &mut y));
    // Barycentre heuristic: each node moves to the mean height of its neighbours, forwards and
    // backwards in turn, so that few links cross. Ties are broken by the node's number: equal logs
    // give equal pages.
    for sweep in 0..SWEEPS {
        let order: Vec<usize> =
            if sweep % 2 == 0 { (0..layers.len()).collect() } else { (0..layers.len()).rev().collect() };
        for i in order {
            let mean = |node: usize| {
                let all = &neighbours[node];
                if all.is_empty() {
                    y[node]
                } else {
                    all.iter().map(|n| y[*n]).sum::<f64>() / all.len() as f64
                }
            };
            let mut keyed: Vec<(f64, usize)> = layers[i].iter().map(|&node| (mean(node), node)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            layers[i] = keyed.into_iter().map(|(_, node)| node).collect();
            spread(&layers[i], &mut y);
        }
    }
    // The map is at least as wide as high, so that names side by side have room.
    let step = (height / layers.len() as f64).max(1.0) * 1.6;
    (0..count).map(|node| (layer[node] as f64 * step, -y[node])).collect()
}
