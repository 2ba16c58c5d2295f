//! Tests of how claims are judged, with few runs.

use super::*;
use crate::completeness::Once;
use crate::rdca::TARGETS;
use crate::rdca::figures;
use crate::rdca::sweeps::Grid;
use crate::targets;

/// Two short runs of the fewest cells, with the number of runs that were reported.
pub(crate) fn measured() -> &'static (Sweeps, usize) {
    static MEASURED: Once<Sweeps> = Once::new();
    MEASURED.get(|work| Sweeps::run(Grid::Quick, work))
}

pub(crate) fn sweeps() -> &'static Sweeps {
    &measured().0
}

#[test]
fn every_value_and_trend_has_a_verdict() {
    let verdicts = verdicts(sweeps());
    let wanted = targets::claims(TARGETS).map(|t| t.id);
    assert_eq!(verdicts.iter().map(|v| v.id.clone()).collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    for v in &verdicts {
        let text = &v.judged.measured;
        assert!(!text.contains("nothing measures") && !text.contains("NaN"), "{}: {text}", v.id);
        assert!(v.judged.found().is_some() || v.printed.is_none(), "{}", v.id);
    }
}

#[test]
fn a_claim_that_nothing_measures_does_not_hold() {
    let judge = Judge { sweeps: sweeps() };
    for name in ["energy.mean.proposed.s1", "delay.mean.cubic.s1", "delay.mode.elfn.s1", "delay.mean.elfn.x"]
    {
        let parts: Vec<&str> = name.split('.').collect();
        let judged = judge.cell(name, parts[0], (parts[1], parts[2], parts[3]));
        assert_eq!(judged, Judged::unknown(name));
    }
    assert_eq!(judge.value("rate.fairness"), Judged::unknown("rate.fairness"));
    assert_eq!(judge.trend("trend.12"), Judged::unknown("trend.12"));
}

/// The proposed protocol is the printed one; ours is another.
#[test]
fn what_is_judged_is_the_printed_protocol() {
    let verdicts = verdicts(sweeps());
    let row = verdicts.iter().find(|v| v.id == "rdca.delay.mean.proposed.s7").expect("a row");
    let load = Load { senders: 7, rate: SWEEP_RATE };
    let of = |protocol| sweeps().summary(load, protocol, Quantity::Delay).map(Figure::from);
    assert_eq!(row.judged.found(), of(Protocol::RdcaPaper));
    assert_eq!(row.judged.ours.map(|ours| ours.figure), of(Protocol::Rdca));
    assert_ne!(of(Protocol::RdcaPaper), of(Protocol::Rdca));
}

/// Erratum H2: the printed extremes lie whole multiples of the standard deviation from the mean.
#[test]
fn h2_printed_extremes_are_multiples_of_the_deviation() {
    for senders in [1, 3, 5, 7] {
        let of = |statistic: &str| {
            printed(&format!("rdca.throughput.{statistic}.proposed.s{senders}")).expect("it is printed")
        };
        let below = (of("mean") - of("min")) / of("std");
        assert!((below - 4.0 * f64::from(senders)).abs() < 0.05, "{senders}: {below}");
    }
}

#[test]
fn every_figure_can_be_drawn() {
    let drawn = figures::draw(sweeps());
    let ids: Vec<&str> = drawn.iter().map(|d| d.id).collect();
    assert_eq!(ids, ["4a", "4b", "4c", "4d", "4e", "5a", "5b", "5c", "5d", "5e"]);
    for figure in drawn {
        assert!(figure.chart.svg().is_ok_and(|svg| svg.contains("NewReno")), "{}", figure.id);
        assert!(figure.chart.csv().lines().count() > 20, "{}", figure.id);
    }
}
