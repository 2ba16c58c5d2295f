//! TCP over 6LoWPAN: one hop compared with the calculated bound, two and three with a half and a
//! third of it. The sweep is in `docs/reference/radio.md`.

use anabranch_sim::network::FragmentForwarding;
use anabranch_sim::radio::MacConfig;

use crate::row_of_nodes::{Row, bound, mss, psdus, tuned};

/// Goodput as a fraction of the bound for this number of hops.
fn share(hops: usize, window: u32) -> f64 {
    let goodput = Row {
        hops,
        frames: 5,
        window,
        mac: tuned(),
        ack_every: 2,
        forwarding: FragmentForwarding::Reassembly,
    }
    .measure(2, 40)
    .goodput;
    goodput / (bound(5, None) / hops as f64)
}

#[test]
fn the_bound_is_that_of_the_sum_by_hand() {
    assert_eq!([1, 2, 3, 4, 5].map(mss), [88, 188, 292, 396, 500]);
    assert_eq!(psdus(1), [122]);
    assert_eq!(psdus(5), [122, 120, 120, 120, 120]);
    // 500 bytes in 6720 + 4 · 6656 µs; an acknowledgement of 34 bytes takes 3904 µs.
    assert!((bound(5, None) * 33_344e-6 - 4000.0).abs() < 1e-6);
    assert!((bound(5, Some(2)) * 35_296e-6 - 4000.0).abs() < 1e-6);
}

#[test]
fn one_to_three_hops_are_near_their_part_of_the_bound() {
    for window in [1, 8] {
        for hops in 1..=3 {
            let share = share(hops, window);
            println!("{hops} hops, window {window}: {share:.3}");
            assert!((0.75..1.0).contains(&share), "{hops} hops, window {window}: {share}");
        }
    }
}

#[test]
fn stop_and_wait_loses_nothing_and_halves_with_the_second_hop() {
    let one = share(1, 1);
    for hops in 2..=3 {
        // The fraction is relative to the bound for its hops, so it is constant.
        assert!((share(hops, 1) / one - 1.0).abs() < 0.01, "{hops}");
    }
}

#[test]
fn longer_backoffs_outlast_a_packet_of_the_neighbour() {
    let row = |mac| {
        Row { hops: 2, frames: 5, window: 4, mac, ack_every: 2, forwarding: FragmentForwarding::Reassembly }
            .measure(2, 40)
    };
    let (short, long) = (row(MacConfig { max_be: 5, max_csma_backoffs: 4, ..tuned() }), row(tuned()));
    assert!(long.timeouts < short.timeouts / 3.0, "{short:?} {long:?}");
    assert!(long.goodput > 1.3 * short.goodput, "{short:?} {long:?}");
}
