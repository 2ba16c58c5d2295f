//! The numbers of section V-B and of its errata.

use super::*;

const EXAMPLES: [u32; 2] = [6, 11];

/// Passes if `value` rounds to `printed`.
#[track_caller]
fn rounds_to(value: f64, printed: &str) {
    let decimals = printed.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    assert_eq!(format!("{value:.decimals$}"), printed, "the value is {value}");
}

fn ten_percent(hops: u32) -> Chain {
    Chain::new(hops, 0.1)
}

#[test]
fn section_5_b_a_the_omniscient_bound() {
    rounds_to(omniscient(&ten_percent(6)).expect("legal"), "3333");
    rounds_to(omniscient(&ten_percent(11)).expect("legal"), "6111");
    rounds_to(omniscient(&Chain::new(6, 0.05)).expect("legal"), "3158");
    // D9: table II has 5844 for this chain.
    rounds_to(omniscient(&Chain::new(11, 0.05)).expect("legal"), "5789");
}

#[test]
fn d3_what_is_12_and_27_percent_above() {
    for (hops, transmitted, above) in [(6, 3755.0, "12.65"), (11, 7795.0, "27.55")] {
        let bound = omniscient(&ten_percent(hops)).expect("legal");
        rounds_to(100.0 * (transmitted / bound - 1.0), above);
    }
}

#[test]
fn d3_section_5_b_b_states_3508_truncated_and_the_others_rounded() {
    let [six, eleven] =
        EXAMPLES.map(|hops| hop_by_hop(&ten_percent(hops), Reading::computed()).expect("legal"));
    rounds_to(six.data, "3508.8");
    rounds_to(six.acks, "3157.9");
    rounds_to(eleven.data, "6432.7");
    rounds_to(eleven.acks, "5789.5");
    rounds_to(100.0 * (1.0 - 5596.0 / eleven.acks), "3.3");
    rounds_to(100.0 * (7795.0 / eleven.data - 1.0), "21.2");
    rounds_to(100.0 * (3755.0 / six.data - 1.0), "7.0");
}

#[test]
fn d1_the_printed_sum_would_give_643() {
    let printed = hop_by_hop(&ten_percent(11), Reading::printed()).expect("legal");
    rounds_to(printed.acks, "643");
    rounds_to(printed.data, "6433");
}

#[test]
fn d2_with_the_loss_of_link_acknowledgements_there_is_less_to_repeat() {
    let corrected = hop_by_hop(&ten_percent(11), Reading::default()).expect("legal");
    rounds_to(corrected.data, "6267.8");
    rounds_to(corrected.acks, "5641.0");
}

#[test]
fn d6_the_tables_count_fewer_retransmissions_than_segments_sent_again() {
    let least = end_to_end(&Chain::new(6, 0.05)).expect("legal");
    rounds_to(least.resends, "180.2");
    assert!(159.1 < least.resends);
}

/// The rows of plain TCP in tables I and II lie above the bound for each loss and length.
#[test]
fn plain_tcp_costs_more_than_perfect_end_to_end_repetition() {
    let rows = [
        (6, [(0.05, 3819.0), (0.1, 5142.0), (0.15, 7307.0)]),
        (11, [(0.05, 8788.0), (0.1, 16109.0), (0.15, 33012.0)]),
    ];
    for (hops, row) in rows {
        for (loss, transmitted) in row {
            let least = end_to_end(&Chain::new(hops, loss)).expect("legal");
            assert!(least.data < transmitted, "{hops} hops, {loss}: {least:?}");
            assert!(least.data > omniscient(&Chain::new(hops, loss)).expect("legal"));
        }
    }
}

#[test]
fn d9_acknowledgements_that_are_forwarded_once() {
    // 500 sum 0.975^k over 11 hops: table II has 4835, which is less.
    rounds_to(end_to_end(&Chain::new(11, 0.025)).expect("legal").first_copies, "4862");
}

/// Compares every bound with a minimal simulation of the same rules.
#[test]
fn the_sums_agree_with_counting() {
    let mut state = 1_u64;
    let mut chance = |p: f64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64) < p * f64::from(1_u32 << 31)
    };
    let chain = Chain { hops: 4, segments: 50_000, loss: 0.2 };
    let (mut omni, mut data, mut acks, mut plain) = (0_u64, 0_u64, 0_u64, 0_u64);
    for _ in 0..chain.segments {
        for _ in 0..chain.hops {
            omni += 1;
            while chance(chain.loss) {
                omni += 1;
            }
            loop {
                data += 1;
                if chance(chain.loss) {
                    continue;
                }
                acks += 1;
                if !chance(chain.link_ack_loss()) {
                    break;
                }
            }
        }
        let mut done = 0;
        while done < chain.hops {
            plain += 1;
            done = if chance(chain.loss) { 0 } else { done + 1 };
        }
    }
    let close = |counted: u64, expected: f64| {
        assert!((counted as f64 / expected - 1.0).abs() < 0.01, "{counted} counted, {expected} expected");
    };
    let hops = hop_by_hop(&chain, Reading::default()).expect("legal");
    close(omni, omniscient(&chain).expect("legal"));
    close(data, hops.data);
    close(acks, hops.acks);
    close(plain, end_to_end(&chain).expect("legal").data);
}

#[test]
fn without_loss_every_scheme_costs_one_transmission_per_hop() {
    let chain = Chain::new(11, 0.0);
    let all = Transmissions { data: 5500.0, acks: 5500.0 };
    assert_eq!(omniscient(&chain), Ok(5500.0));
    assert_eq!(hop_by_hop(&chain, Reading::default()), Ok(all));
    assert_eq!(end_to_end(&chain), Ok(EndToEnd { data: 5500.0, resends: 0.0, first_copies: 5500.0 }));
}

#[test]
fn what_is_no_chain_is_refused() {
    assert_eq!(omniscient(&Chain::new(0, 0.1)), Err(ModelError::NoHops));
    for loss in [-0.1, 1.0, 1.5, f64::INFINITY] {
        assert_eq!(end_to_end(&Chain::new(6, loss)), Err(ModelError::Loss { value: loss }));
        assert!(hop_by_hop(&Chain::new(6, loss), Reading::default()).is_err());
    }
    assert!(omniscient(&Chain::new(6, f64::NAN)).is_err());
}
