//! Tests of the experiment's results, cell by cell of section V.

use super::tables::{HOPS, LOSSES, cell};
use super::*;
use crate::dtc::TARGETS;
use crate::experiment::{Outcome, grid, outcomes};
use crate::targets;
use crate::work::Work;

/// One seed for all tests, so that a failure can be repeated.
const SEED: u64 = 1;

fn outcome(settings: Settings, runs: usize) -> Outcome {
    crate::experiment::run(&Dtc, &settings, &Work::new(runs, SEED)).expect("runs")
}

fn printed(row: &str, hops: usize, column: &str) -> f64 {
    let id = format!("dtc.{row}.n{hops}.{column}");
    let target = targets::read(TARGETS).into_iter().find(|t| t.id == id).expect("a cell of the tables");
    let value = target.value.expect("a number");
    value.as_float().or(value.as_integer().map(|n| n as f64)).expect("a number")
}

fn cells() -> impl Iterator<Item = (usize, f64, &'static str)> {
    HOPS.into_iter().flat_map(|hops| LOSSES.map(|(loss, column)| (hops, loss, column)))
}

/// Tables I and II without caching: data transmissions within 5 % of the printed values, time-outs
/// and fast retransmits (erratum D6) within 12 %.
#[test]
fn plain_tcp_is_that_of_tables_1_and_2() {
    for (hops, loss, column) in cells() {
        let found = outcome(cell(Mode::Tcp, hops, loss), 30);
        for (metric, row, tolerance) in [
            ("data_transmissions", "nodtc_data_tx", 0.05),
            ("end_to_end_retransmissions", "nodtc_e2e_retransmissions", 0.12),
        ] {
            let (ours, published) = (found.mean(metric).expect("it ends"), printed(row, hops, column));
            println!("{hops} hops, loss {loss}: {metric} {ours:.1}, published {published}");
            assert!((ours - published).abs() <= tolerance * published, "{hops}, {loss}: {metric} {ours:.1}");
        }
    }
}

/// Tables I and II with the paper's nodes: data transmissions at most 5 % (6 hops) and 10 % (11
/// hops) above the printed values, except in the cell that contradicts the others (erratum D9), and
/// never below the omniscient bound.
///
/// Over 11 hops the standard deviation of a run is 3 % with 10 % loss and 5 % with 15 %; means of
/// very many runs are 7.7 and 9.0 % above. Without loss all runs are equal.
#[test]
fn the_papers_nodes_reach_tables_1_and_2() {
    for (hops, loss, column) in cells() {
        let runs = match (hops, column) {
            (_, "p00") => 1,
            (11, "p10") => 50,
            (11, "p15") => 300,
            _ => 30,
        };
        let found = outcome(cell(Mode::Paper, hops, loss), runs);
        let mean = |metric| found.mean(metric).expect("it ends");
        let (ours, published) = (mean("data_transmissions"), printed("dtc_data_tx", hops, column));
        println!("{hops} hops, loss {loss}: {ours:.1}, published {published}");
        assert!(ours >= mean("bound_omniscient"), "{hops}, {loss}: {ours:.1}");
        let tolerance = if hops == 6 { 1.05 } else { 1.10 };
        if (hops, column) != (11, "p05") {
            assert!(ours <= tolerance * published, "{hops}, {loss}: {ours:.1}");
        }
    }
}

/// Section V: end-to-end retransmissions fall to a tenth over 11 hops with 10 % loss.
#[test]
fn the_papers_nodes_spare_the_sender() {
    let of = |mode| outcome(cell(mode, 11, 0.1), 30).mean("end_to_end_retransmissions").expect("it ends");
    let (with, without) = (of(Mode::Paper), of(Mode::Tcp));
    assert!(with <= without / 10.0, "{with:.1} against {without:.1}");
}

/// Table III, in its lower reading (erratum D18).
#[test]
fn table_3_throughput() {
    for (hops, times) in [(6, 4.5), (11, 6.7)] {
        let of = |mode| outcome(cell(mode, hops, 0.1), 30).mean("throughput_bit_per_s").expect("it ends");
        for mode in [Mode::Paper, Mode::Improved] {
            let up = of(mode) / of(Mode::Tcp);
            assert!(up >= times, "{hops} hops, {mode:?}: {up:.1} times");
        }
    }
}

/// Table IV: flying start shortens 20 segments by at least 30 %.
#[test]
fn table_4_flying_start() {
    for hops in HOPS {
        let of = |flying_start| {
            let settings =
                cell(Mode::Paper, hops, 0.1).with("segments", 20).with("flying_start", flying_start);
            outcome(settings, 300).mean("completion_s").expect("it ends")
        };
        let (with, without) = (of("on"), of("off"));
        assert!(with <= 0.7 * without, "{hops} hops: {with:.1} s against {without:.1} s");
    }
}

/// Figure 5: without caching the load falls from the sender to the receiver. With the paper's
/// nodes, the node next to the sender sends no more than the node next to the receiver. Our nodes
/// share the load evenly.
#[test]
fn figure_5_load() {
    let of = |mode| outcome(cell(mode, 11, 0.1), 30).array("transmissions_by_node").means();
    let plain = of(Mode::Tcp);
    assert_eq!(plain.len(), 10);
    assert!(plain.windows(2).all(|w| w[0] > w[1]), "{plain:.0?}");
    let paper = of(Mode::Paper);
    assert!(paper[0] <= paper[9], "{paper:.0?}");
    let ours = of(Mode::Improved);
    assert!(ours[0] <= 1.02 * ours[9], "{ours:.0?}");
}

/// Our nodes with 10 % loss: at most 5 % above the omniscient bound.
#[test]
fn our_nodes_come_within_5_percent_of_the_omniscient_bound() {
    for hops in HOPS {
        let found = outcome(cell(Mode::Improved, hops, 0.1), 30);
        let [data, bound] =
            ["data_transmissions", "bound_omniscient"].map(|m| found.mean(m).expect("it ends"));
        println!("{hops} hops: {:.2} % above", 100.0 * (data / bound - 1.0));
        assert!(data >= bound && data <= 1.05 * bound, "{hops} hops: {data:.1}, bound {bound:.1}");
    }
}

/// The counts of the meter agree: the sender's, the nodes' and the sum.
#[test]
fn transmissions_add_up() {
    for mode in ["tcp", "dtc-paper", "dtc"] {
        let found = &outcomes(&Dtc, &[format!("mode={mode}")], 3, SEED)[0];
        let mean = |metric| found.mean(metric).expect("it ends");
        let nodes: f64 = found.array("transmissions_by_node").means().iter().sum();
        let sender = mean("data_transmissions") - nodes;
        let first = sender - mean("segments_resent_by_sender");
        assert!((500.0..=503.0).contains(&first), "{mode}: {first} segments sent first");
        assert_eq!(mean("local_retransmissions") > 0.0, mode != "tcp", "{mode}");
        assert!(mean("unnecessary_retransmissions") <= mean("segments_resent_by_sender"), "{mode}");
    }
}

/// One 802.15.4 channel, with 10 % loss of data segments on each hop and additional collisions.
/// Without retransmissions by the MAC, caching nodes save a fifth to a quarter of plain TCP's
/// transmissions (over links: 27 %, 33 % for ours). With the maximum that the standard permits they
/// save next to nothing.
#[test]
fn caching_nodes_help_on_the_radio_as_far_as_the_mac_does_not() {
    let of = |mode, retries| {
        let found = outcome(cell(mode, 6, 0.1).with("medium", "radio").with("retries", retries), 10);
        let mean = |metric| found.mean(metric).expect("it ends");
        assert!(mean("frames") > mean("data_transmissions") + mean("ack_transmissions"));
        (mean("data_transmissions"), mean("completion_s"))
    };
    let (plain, slow) = of(Mode::Tcp, 0);
    for (mode, share) in [(Mode::Paper, 0.85), (Mode::Improved, 0.80)] {
        let (data, time) = of(mode, 0);
        println!("{mode:?}: {data:.0} against {plain:.0}, {time:.0} s against {slow:.0} s");
        assert!(data <= share * plain && time <= 0.2 * slow, "{mode:?}: {data:.0}, {plain:.0}");
    }
    let (plain, with) = (of(Mode::Tcp, 7).0, of(Mode::Improved, 7).0);
    assert!((with / plain - 1.0).abs() < 0.02, "{with:.0} against {plain:.0}");
}

/// `loss` is the loss of a data segment over a hop on either medium, whatever its number of frames.
#[test]
fn the_loss_of_a_frame_is_that_of_its_segment() {
    let of = |payload| Chain { hops: 6, segments: 500, payload, loss: 0.19 };
    assert_eq!((of(50).frames(), of(100).frames()), (1, 2));
    assert!((of(50).frame_loss() - 0.19).abs() < 1e-12);
    assert!(((1.0 - of(100).frame_loss()).powi(3) - 0.81).abs() < 1e-12);
}

/// The tables use the paper's algorithm; the default for users is the better one.
#[test]
fn our_nodes_are_the_default() {
    let point = &grid(&Dtc, &[] as &[&str]).expect("the defaults")[0];
    let texts = point.parameters();
    assert!(texts.contains(&("mode", "dtc".to_owned())), "{texts:?}");
    assert!(texts.contains(&("cache_probability", "1".to_owned())), "{texts:?}");
}

#[test]
fn every_parameter_changes_something_or_is_refused() {
    let given = [
        "hops=4",
        "loss=5%",
        "mode=dtc-paper",
        "segments=30",
        "payload=80B",
        "window=5",
        "ack_loss_factor=0.25",
        "link_ack_loss_factor=1",
        "cache_segments=2",
        "cache_probability=0.75",
        "duplicate_acks=on",
        "displacement=by-lower",
        "local_rto=2",
        "guard=0.5",
        "flying_start=off",
        "medium=radio",
        "retries=1",
        "sender_sack=off",
    ];
    let points = grid(&Dtc, &given).expect("good settings");
    let texts: Vec<String> =
        points[0].parameters().iter().map(|(name, text)| format!("{name}={text}")).collect();
    assert_eq!(grid(&Dtc, &texts).expect("the same settings")[0].parameters(), points[0].parameters());
    let found = &outcomes(&Dtc, &given, 2, SEED)[0];
    assert!(found.mean("completion_s").is_some());
    let refused = [
        "hops=1",
        "loss=1",
        "mode=sack",
        "payload=0B",
        "cache_probability=2",
        "flying_start=yes",
        "displacement=higher",
        "local_rto=0",
        "guard=61",
        "window=0",
        "medium=air",
        "retries=16",
    ];
    for bad in refused {
        assert!(grid(&Dtc, &[bad]).is_err(), "{bad}");
    }
}
