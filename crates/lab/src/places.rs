//! Places and the ways between them, for deployments of nodes with radios.

use std::collections::VecDeque;

use anabranch_sim::radio::Position;

/// Hops of at most `range` metres from each place to the nearest of `ends`, if there is a way.
pub(crate) fn hops(places: &[Position], range: f64, ends: &[usize]) -> Vec<Option<u32>> {
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
