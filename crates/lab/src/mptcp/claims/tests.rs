//! Tests of how claims are judged, with few runs.

use super::*;
use crate::completeness::Once;
use crate::mptcp::TARGETS;
use crate::mptcp::figures::{self, Picture};
use crate::targets;

/// Two runs of every cell, with the number of runs that were reported.
pub(crate) fn measured() -> &'static (Tables, usize) {
    static MEASURED: Once<Tables> = Once::new();
    MEASURED.get(|work| Tables::run(&work.with_values(&reference())))
}

fn reference() -> Vec<(&'static str, String)> {
    crate::mptcp::reproduction::PAPER.reference()
}

fn tables() -> &'static Tables {
    &measured().0
}

#[test]
fn every_value_and_trend_has_a_verdict() {
    let verdicts = verdicts(tables());
    let wanted = targets::claims(TARGETS).map(|t| t.id);
    assert_eq!(verdicts.iter().map(|v| v.id.clone()).collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    for v in &verdicts {
        let text = &v.judged.measured;
        assert!(!text.contains("nothing measures") && !text.contains("NaN"), "{}: {text}", v.id);
        assert!(v.judged.found().is_some() || v.printed.is_none(), "{}", v.id);
        // Wherever the proposed scheme is judged, ours is listed beside it.
        let proposed = !v.id.ends_with(".C") && !v.id.ends_with(".min") && v.printed.is_some();
        assert_eq!(v.judged.ours.is_some(), proposed, "{}", v.id);
    }
}

#[test]
fn a_claim_that_nothing_measures_does_not_hold() {
    let judge = Judge { tables: tables() };
    for name in ["n60.transmissions.C", "n10.energy.C", "n10.transmissions.X", "n10.transmissions", "trend.9"]
    {
        let judged = if name.starts_with("trend") { judge.trend(name) } else { judge.value(name) };
        assert_eq!(judged, Judged::unknown(name));
    }
}

/// The rows of the proposed scheme are those of its variant with several paths: with one path the
/// scheduler, which the rows are about, has no choice.
#[test]
fn the_proposed_scheme_is_judged_with_all_its_paths() {
    let verdicts = verdicts(tables());
    let found =
        |id: &str| verdicts.iter().find(|v| v.id == id).and_then(|v| v.judged.found()).expect("a number");
    let cell = |way| tables().summary("n30", way, Quantity::Transmissions).expect("runs");
    assert_eq!(found("mptcp.n30.transmissions.P"), cell(Way::Printed).into());
    assert_ne!(cell(Way::Printed).mean, cell(Way::Ours).mean);
}

/// Errata M24, M25, M26: the corrected numbers follow from other printed numbers.
#[test]
fn corrected_numbers_follow_from_the_printed_ones() {
    let all = targets::read(TARGETS);
    let number = |id: &str| {
        let target = all.iter().find(|t| t.id == format!("mptcp.{id}")).expect("a target");
        let value = target.value.as_ref().expect("a number");
        value.as_float().or(value.as_integer().map(|n| n as f64)).expect("a number")
    };
    let time = |place: &str, scheme: &str| number(&format!("{place}.delivery_time.{scheme}"));
    for (name, follows, _) in CORRECTED {
        let (place, rest) = name.split_once('.').expect("a place");
        let packets = if place == "n40" { 3900.0 } else { 2400.0 };
        let exact = match (rest, place) {
            ("throughput.P", _) => packets * 800.0 / time(place, "P") / 1e3,
            ("throughput.gain", "n40") => 100.0 * (time(place, "C") / time(place, "P") - 1.0),
            ("throughput.gain", _) => {
                let of = |scheme| number(&format!("{place}.throughput.{scheme}"));
                100.0 * (of("P") / of("C") - 1.0)
            }
            _ => 100.0 * (1.0 - time(place, "P") / time(place, "C")),
        };
        assert!((exact - follows).abs() < 0.06, "{name}: {exact:.2}");
        assert!((number(name) - follows).abs() > 0.5, "{name}: the printed number is no other");
    }
}

/// Figures 2 to 11: every figure can be drawn, with three curves per deployment, and the base
/// station where there is one.
#[test]
fn every_figure_is_drawn() {
    let drawn = figures::draw(tables());
    let ids: Vec<&str> = drawn.iter().map(|d| d.id).collect();
    assert_eq!(ids, ["2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]);
    for figure in &drawn {
        let svg = figure.picture.svg().expect("a picture");
        assert!(svg.contains(&format!("Figure {}:", figure.id)) && !svg.contains("NaN"));
        match &figure.picture {
            Picture::Chart(chart) => {
                let deployments = if ["3", "4", "5"].contains(&figure.id) { 5 } else { 3 };
                assert_eq!(chart.series.len(), 3 * deployments);
                // Numbers of transmissions and shares of packets never decrease.
                let grows = |s: &crate::plot::Series| {
                    s.points.windows(2).all(|w| w[0].y <= w[1].y && w[0].x <= w[1].x)
                };
                assert!(["4", "8"].contains(&figure.id) || chart.series.iter().all(grows), "{}", figure.id);
            }
            Picture::Map(map) => {
                let nodes: usize = map.groups.iter().map(|g| g.places.len()).sum();
                let expected = match figure.id {
                    "10" => 25,
                    "11" => 26,
                    _ => 50,
                };
                assert_eq!(nodes, expected);
                let cellular = map.lines.iter().find(|l| l.name == "cellular link").map(|l| l.ends.len());
                assert_eq!(cellular, (figure.id == "11").then_some(2), "the data centre's and the node's");
            }
        }
    }
}

/// The numbers of the tables equal those of `lab run mptcp`.
#[test]
fn numbers_are_those_of_the_experiment() {
    let network = reference().into_iter().map(|(key, value)| format!("{key}={value}"));
    let set: Vec<String> = network.chain(["nodes=20".to_owned()]).collect();
    let found = &crate::experiment::outcomes(&crate::mptcp::Mptcp, &set, 2, 1)[0];
    let ours = |quantity| tables().summary("n20", Way::Printed, quantity).map(|s| s.mean);
    assert_eq!(ours(Quantity::Transmissions), found.mean("transmissions"));
    assert_eq!(ours(Quantity::DeliveryTime), found.mean("delivered_all_s"));
    let lines = tables().csv();
    assert_eq!(lines.lines().count(), 1 + 4 * 8 * 3);
    assert!(lines.contains("transmissions,n50,conventional,18421,"), "{lines}");
    let page = &tables().pages("")[0];
    let sunflower = page.rows.iter().find(|row| row[0] == "sunflower 50").expect("a row");
    assert_eq!((sunflower[1].as_str(), sunflower[3].as_str()), ("21862", "15915"));
}
