//! Figures 5 to 9 of section V. The paper prints them without numbers.

use super::config::Mode;
use super::meter::Sample;
use super::tables::{self, MODES, Tables};
use super::{Dtc, DtcPoint, meter::Counts};
use crate::experiment::{RunError, Settings};
use crate::plot::{Axis, Chart, Look, Point, Scale, Series};
use crate::work::Work;

/// A figure with its measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    /// `5` to `9`.
    pub id: &'static str,
    /// The chart.
    pub chart: Chart,
}

/// Draws all figures, for 11 hops and 10 % loss: Figure 5 from the runs of the tables, the others
/// from the first run of the seed, as the paper's show a "typical run".
///
/// # Errors
///
/// A run failed.
pub fn draw(tables: &Tables, work: &Work<'_>) -> Result<Vec<Drawn>, RunError> {
    let paper = one_run(&tables::cell(Mode::Paper, 11, 0.1), work)?;
    let plain = one_run(&tables::cell(Mode::Tcp, 11, 0.1), work)?;
    let slow = one_run(&tables::cell(Mode::Paper, 11, 0.1).with("flying_start", "off"), work)?;
    let first = |most: usize, samples: &[Sample]| samples.iter().take(most).copied().collect::<Vec<_>>();
    let near_sender = paper.local_rtt.first().cloned().unwrap_or_default();
    let near_receiver = paper.local_rtt.last().cloned().unwrap_or_default();
    let off = slow.local_rtt.last().cloned().unwrap_or_default();
    let mut early = times(
        "9",
        "Local round trip at the node next to the receiver, the first segments",
        vec![
            ("with flying start", first(EARLY, &near_receiver)),
            ("without flying start", first(EARLY, &off)),
        ],
    );
    // With flying start the first sample is that of the handshake; remove it, so that both curves
    // count data segments.
    early.chart.series[0].points.iter_mut().for_each(|point| point.x -= 1.0);
    Ok(vec![
        Drawn { id: "5", chart: load(tables) },
        times(
            "6",
            "Round trips at the sender",
            vec![
                ("with the paper's nodes", first(SHOWN, &paper.rtt)),
                ("without caching", first(SHOWN, &plain.rtt)),
            ],
        ),
        times("7", "Local round trip at the node next to the sender", vec![("estimate", near_sender)]),
        times("8", "Local round trip at the node next to the receiver", vec![("estimate", near_receiver)]),
        early,
    ])
}

/// Number of samples that Figure 6 shows of each curve.
const SHOWN: usize = 500;
/// Number of samples that Figure 9 shows of each curve.
const EARLY: usize = 40;

/// Number of runs that [`draw`] makes.
pub(super) const RUNS: usize = 3;

fn one_run(settings: &Settings, work: &Work<'_>) -> Result<Counts, RunError> {
    DtcPoint::new(&work.settings(&Dtc, settings))?.sampling().counts(work.seed, 0).inspect(|_| work.ran())
}

fn load(tables: &Tables) -> Chart {
    let curve = |(mode, name): (Mode, &str)| {
        let nodes = &tables.cell(mode, 11, 0.1).array("transmissions_by_node").elements;
        let point = |(i, s): (usize, &crate::stats::Summary)| Point { x: i as f64, y: s.mean, ci95: s.ci95 };
        Series {
            name: name.to_owned(),
            points: nodes.iter().enumerate().map(point).collect(),
            look: Look::Marked,
        }
    };
    let ticks = (0..10).map(f64::from).collect();
    Chart {
        title: "Figure 5: data transmissions of each node, 11 hops, 10 % loss".to_owned(),
        x: Axis { ticks, ..Axis::new("Node, 0 next to the sender", "number") },
        y: Axis::new("Transmissions", "segments").scaled(Scale::FromZero),
        series: MODES.map(curve).to_vec(),
    }
}

/// Draws round-trip times over their number.
fn times(id: &'static str, title: &str, curves: Vec<(&str, Vec<Sample>)>) -> Drawn {
    let series = curves.into_iter().map(|(name, samples)| Series {
        name: name.to_owned(),
        points: samples
            .iter()
            .enumerate()
            .map(|(i, s)| Point { x: (i + 1) as f64, y: s.rtt, ci95: None })
            .collect(),
        look: Look::Marked,
    });
    let chart = Chart {
        title: format!("Figure {id}: {title}, 11 hops, 10 % loss"),
        x: Axis::new("Measurement", "number"),
        y: Axis::new("Round-trip time", "s").scaled(Scale::FromZero),
        series: series.collect(),
    };
    Drawn { id, chart }
}
