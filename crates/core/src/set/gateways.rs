//! Which gateways, in which order, and how many (sections 4.3.1 and 4.3.2, errata S22).

use alloc::vec::Vec;

use anabranch_wire::set::{Energy, Gateway};

/// The gateways to open sessions through, the primary first: as many as there are, but no more than `at_most`,
/// and one even if that is 0.
///
/// Fewest hops first (ties: the lower id). A gateway is passed over if all its neighbours are depleted, and
/// if its route to the node would share a first hop with one already chosen; with one neighbour that is the
/// neighbour, with several the gateway may take any that is not yet used. A gateway one hop away needs no
/// neighbour. Where that leaves none, the nearest is taken all the same: a poor path beats no path.
pub fn select(table: &[Gateway], at_most: usize) -> Vec<Gateway> {
    let mut by_distance: Vec<&Gateway> = table.iter().collect();
    by_distance.sort_by_key(|g| (g.hops, g.id));

    let mut first_hops: Vec<u16> = Vec::new();
    let mut chosen: Vec<Gateway> = Vec::new();
    for gateway in &by_distance {
        if gateway.hops <= 1 || gateway.neighbours.is_empty() {
            chosen.push((*gateway).clone());
            continue;
        }
        let free =
            gateway.neighbours.iter().find(|n| n.energy == Energy::High && !first_hops.contains(&n.id));
        if let Some(neighbour) = free {
            first_hops.push(neighbour.id);
            chosen.push((*gateway).clone());
        }
    }
    if chosen.is_empty() {
        chosen.extend(by_distance.first().map(|g| (*g).clone()));
    }
    chosen.truncate(at_most.max(1));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use anabranch_wire::set::Neighbour;

    fn gateway(id: u16, hops: u8, neighbours: &[(u16, Energy)]) -> Gateway {
        Gateway {
            id,
            address: "10.0.0.1:7".parse().unwrap(),
            key: None,
            energy: Energy::High,
            hops,
            neighbours: neighbours.iter().map(|&(id, energy)| Neighbour { id, energy }).collect(),
        }
    }

    fn ids(chosen: &[Gateway]) -> Vec<u16> {
        chosen.iter().map(|g| g.id).collect()
    }

    #[test]
    fn the_nearest_is_primary() {
        // The paper's Table 1: GW2 at one hop, GW1 and GWn at two.
        let table = vec![
            gateway(1, 2, &[(1, Energy::High)]),
            gateway(2, 1, &[(1, Energy::Low), (2, Energy::High), (3, Energy::High)]),
            gateway(3, 2, &[(4, Energy::High), (5, Energy::Low)]),
        ];
        assert_eq!(ids(&select(&table, 9)), [2, 1, 3]);
        assert_eq!(ids(&select(&table, 2)), [2, 1]);
        assert_eq!(ids(&select(&table, 0)), [2]);
    }

    #[test]
    fn shared_first_hops_and_depleted_neighbours_are_passed_over() {
        let table = vec![
            gateway(1, 2, &[(1, Energy::High)]),
            gateway(2, 2, &[(1, Energy::High)]),
            gateway(3, 3, &[(1, Energy::High), (2, Energy::High)]),
            gateway(4, 2, &[(7, Energy::Low), (8, Energy::Low)]),
        ];
        assert_eq!(ids(&select(&table, 9)), [1, 3]);
    }

    #[test]
    fn a_poor_gateway_is_better_than_none() {
        let table = vec![gateway(5, 3, &[(1, Energy::Low)]), gateway(4, 4, &[(1, Energy::Low)])];
        assert_eq!(ids(&select(&table, 2)), [5]);
        assert!(select(&[], 2).is_empty());
    }
}
