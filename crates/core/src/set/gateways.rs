//! Selection of gateways (sections 4.3.1 and 4.3.2, erratum S22).

use alloc::vec::Vec;

use anabranch_wire::set::{Energy, Gateway};

/// Selects the gateways to open sessions through, the primary one first. Returns at most `at_most`
/// of them, but one even if that is 0.
///
/// Gateways with fewer hops come first, among equals those with much energy, then the table's
/// order. A gateway two or more hops away needs a first hop: a neighbour that is not depleted and
/// that no earlier gateway needs. Neither the table nor a message tells which neighbour a gateway
/// routes through, so this assumes that gateways use different ones where they can. A gateway one
/// hop away, or one that lists no neighbour, needs no first hop. If no gateway qualifies, the first
/// one is selected: a poor path is better than none.
pub fn select(table: &[Gateway], at_most: usize) -> Vec<Gateway> {
    let mut by_distance: Vec<&Gateway> = table.iter().collect();
    by_distance.sort_by_key(|g| (g.hops, g.energy == Energy::Low));

    let mut first_hops: Vec<(u16, &Gateway)> = Vec::new();
    let mut chosen: Vec<Gateway> = Vec::new();
    for gateway in &by_distance {
        let needs_none = gateway.hops <= 1 || gateway.neighbours.is_empty();
        if needs_none || assign(gateway, &mut first_hops, &mut Vec::new()) {
            chosen.push((*gateway).clone());
        }
    }
    if chosen.is_empty() {
        chosen.extend(by_distance.first().map(|g| (*g).clone()));
    }
    chosen.truncate(at_most.max(1));
    chosen
}

/// Assigns `gateway` a first hop of its own. Other gateways may have to change theirs (an
/// augmenting path of the matching). Returns false if there is none. Neighbours in `seen` were
/// already tried.
fn assign<'g>(gateway: &'g Gateway, first_hops: &mut Vec<(u16, &'g Gateway)>, seen: &mut Vec<u16>) -> bool {
    for neighbour in gateway.neighbours.iter().filter(|n| n.energy == Energy::High) {
        if seen.contains(&neighbour.id) {
            continue;
        }
        seen.push(neighbour.id);
        match first_hops.iter().position(|(id, _)| *id == neighbour.id) {
            None => first_hops.push((neighbour.id, gateway)),
            Some(taken) if assign(first_hops[taken].1, first_hops, seen) => first_hops[taken].1 = gateway,
            Some(_) => continue,
        }
        return true;
    }
    false
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
            shared_channel: false,
            neighbours: neighbours.iter().map(|&(id, energy)| Neighbour { id, energy }).collect(),
        }
    }

    fn ids(chosen: &[Gateway]) -> Vec<u16> {
        chosen.iter().map(|g| g.id).collect()
    }

    #[test]
    fn the_nearest_is_primary() {
        // Table 1 of the paper: GW2 at one hop, GW1 and GWn at two.
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
    fn a_first_hop_is_left_to_a_gateway_that_has_no_other() {
        let of = |id, hops: &[u16]| {
            gateway(id, 2, &hops.iter().map(|&hop| (hop, Energy::High)).collect::<Vec<_>>())
        };
        assert_eq!(ids(&select(&[of(1, &[1, 2]), of(2, &[1])], 9)), [1, 2]);
        assert_eq!(ids(&select(&[of(1, &[1, 2]), of(2, &[1, 3]), of(3, &[1])], 9)), [1, 2, 3]);
        assert_eq!(ids(&select(&[of(1, &[1, 2]), of(2, &[1, 2]), of(3, &[2])], 9)), [1, 2]);
        // A ring of the largest table size, in which each gateway has to make way for the next.
        let ring: Vec<Gateway> = (1..=15).map(|id| of(id, &[id, id % 15 + 1])).collect();
        assert_eq!(select(&ring, 99).len(), 15);
        let chain: Vec<Gateway> = (1..=15).map(|id| of(id, &[16 - id, 17 - id])).collect();
        assert_eq!(select(&chain, 99).len(), 15);
    }

    #[test]
    fn among_equally_near_gateways_one_with_much_energy_is_primary() {
        let tired = Gateway { energy: Energy::Low, ..gateway(1, 1, &[]) };
        let table = vec![tired, gateway(2, 1, &[]), gateway(3, 2, &[(1, Energy::High)])];
        assert_eq!(ids(&select(&table, 9)), [2, 1, 3]);
    }

    #[test]
    fn a_poor_gateway_is_better_than_none() {
        let table = vec![gateway(5, 3, &[(1, Energy::Low)]), gateway(4, 4, &[(1, Energy::Low)])];
        assert_eq!(ids(&select(&table, 2)), [5]);
        assert!(select(&[], 2).is_empty());
    }
}
