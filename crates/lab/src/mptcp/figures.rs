//! Figures 2 to 11. The paper prints them without numbers.
//!
//! Maps and curves over time show the first run, as the paper's show one run; distributions cover
//! all runs. Dashed curves are C-MPTCP, as in the paper.

use super::tables::{Cell, DEPLOYMENTS, Tables, Way};
use super::{Map, Outcome};
use crate::plot::map::{self, Group, Lines, Place, Stroke};
use crate::plot::{Axis, Chart, ChartError, Dash, Look, Point, Scale, Series};

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    /// `2` to `11`.
    pub id: &'static str,
    /// Content of the figure.
    pub picture: Picture,
}

/// Content of a figure.
#[derive(Clone, PartialEq, Debug)]
pub enum Picture {
    /// Curves.
    Chart(Chart),
    /// Nodes and paths.
    Map(map::Map),
}

impl Picture {
    /// Title above the figure.
    pub fn title(&self) -> &str {
        match self {
            Self::Chart(chart) => &chart.title,
            Self::Map(map) => &map.title,
        }
    }

    /// The figure as an SVG document.
    ///
    /// # Errors
    ///
    /// As [`Chart::svg`] and [`map::Map::svg`].
    pub fn svg(&self) -> Result<String, ChartError> {
        match self {
            Self::Chart(chart) => chart.svg(),
            Self::Map(map) => map.svg(),
        }
    }

    /// The figure as CSV.
    pub fn csv(&self) -> String {
        match self {
            Self::Chart(chart) => chart.csv(),
            Self::Map(map) => map.csv(),
        }
    }
}

/// Draws all figures, in the paper's order.
pub fn draw(tables: &Tables) -> Vec<Drawn> {
    const SQUARES: &[&str] = &["n10", "n20", "n30", "n40", "n50"];
    const OTHERS: &[&str] = &["circle50", "corner25", "corner25ml"];
    let map = |id, place, title| {
        let map = &tables.cell(place, Way::Printed).first.map;
        Drawn { id, picture: Picture::Map(deployment(map, &format!("Figure {id}: {title}"))) }
    };
    let chart = |id, chart: Chart| {
        let title = format!("Figure {id}: {}", chart.title);
        Drawn { id, picture: Picture::Chart(Chart { title, ..chart }) }
    };
    vec![
        map("2", "n50", "50 nodes in a square, the data centre in the middle"),
        chart("3", transmissions(tables, SQUARES)),
        chart("4", delivery(tables, SQUARES)),
        chart("5", latency(tables, SQUARES)),
        map("6", "circle50", "50 nodes in a sunflower, the data centre in the middle"),
        chart("7", transmissions(tables, OTHERS)),
        chart("8", delivery(tables, OTHERS)),
        chart("9", latency(tables, OTHERS)),
        map("10", "corner25", "25 nodes, the data centre at a corner"),
        map("11", "corner25ml", "25 nodes and one multi-link node"),
    ]
}

/// Number of points of a curve over time.
const STEPS: usize = 200;

/// Three curves for each deployment, in one colour.
fn curves(tables: &Tables, places: &[&str], points: impl Fn(&str, Way, &Cell) -> Vec<Point>) -> Vec<Series> {
    let mut all = Vec::new();
    for (colour, &id) in places.iter().enumerate() {
        let title = DEPLOYMENTS.iter().find(|d| d.id == id).map_or(id, |d| d.title);
        for (way, word, dash) in [
            (Way::Conventional, "C-MPTCP", Dash::Dashed),
            (Way::Printed, "P-MPTCP", Dash::Solid),
            (Way::Ours, "ours", Dash::Dotted),
        ] {
            all.push(Series {
                name: format!("{word}, {title}"),
                points: points(id, way, tables.cell(id, way)),
                look: Look::Line { colour, dash },
            });
        }
    }
    all
}

/// Equidistant times of a run from the start until the last packet was delivered, in seconds.
fn moments(outcome: &Outcome) -> impl Iterator<Item = f64> {
    let last = outcome.arrivals.last().copied().unwrap_or(0.0);
    (0..=STEPS).map(move |i| last * i as f64 / STEPS as f64)
}

fn time_axis() -> Axis {
    Axis::new("Time since the sources began", "s").scaled(Scale::FromZero)
}

fn transmissions(tables: &Tables, places: &[&str]) -> Chart {
    let points = |_: &str, _: Way, cell: &Cell| {
        let activity = &cell.first.activity;
        let point = |at| Point { x: at, y: activity.transmissions(at) as f64, ci95: None };
        moments(&cell.first).map(point).collect()
    };
    Chart {
        title: "transmissions so far, first run".to_owned(),
        x: time_axis(),
        y: Axis::new("Data segments and acknowledgements", "packets").scaled(Scale::FromZero),
        series: curves(tables, places, points),
    }
}

fn delivery(tables: &Tables, places: &[&str]) -> Chart {
    let points = |_: &str, _: Way, cell: &Cell| {
        let activity = &cell.first.activity;
        // The ratio of the first few transmissions is not meaningful.
        let after = moments(&cell.first).filter(|at| activity.transmissions(*at) >= 100);
        after.map(|at| Point { x: at, y: 100.0 * activity.delivery_ratio(at), ci95: None }).collect()
    };
    Chart {
        title: "delivery ratio so far, first run".to_owned(),
        x: time_axis(),
        y: Axis::new("Data segments that reached the next node", "%"),
        series: curves(tables, places, points),
    }
}

fn latency(tables: &Tables, places: &[&str]) -> Chart {
    let points = |id: &str, way: Way, _: &Cell| {
        let shares = tables.latencies(id, way).into_iter().zip(1..);
        // Without delivered packets there is no distribution.
        let known = shares.filter(|(seconds, _)| seconds.is_finite());
        known.map(|(seconds, percent)| Point { x: seconds, y: f64::from(percent), ci95: None }).collect()
    };
    Chart {
        title: "latency of packets, all runs".to_owned(),
        x: Axis::new("Latency", "s").scaled(Scale::FromZero),
        y: Axis::new("Packets that took no longer", "%").scaled(Scale::FromZero),
        series: curves(tables, places, points),
    }
}

/// Map of a deployment with its paths.
fn deployment(of: &Map, title: &str) -> map::Map {
    let mut places: Vec<(f64, f64)> = of.places.iter().map(|p| (p.x, p.y)).collect();
    let station = places.len();
    let far = places.iter().fold(0.0, |far: f64, p| far.max(p.0).max(p.1));
    if !of.multi_link.is_empty() {
        // The paper gives the base station no position; it is drawn beyond the corner opposite to
        // the data centre.
        places.push((1.08 * far, 1.08 * far));
    }
    let kind = |i: usize| match i {
        0 => 0,
        _ if i == station => 3,
        _ if of.multi_link.contains(&i) => 2,
        _ => 1,
    };
    let groups = ["data centre", "node", "multi-link node", "base station (place not to scale)"];
    let groups = groups.iter().enumerate().map(|(number, name)| Group {
        name: (*name).to_owned(),
        places: (0..places.len())
            .filter(|&i| kind(i) == number)
            .map(|i| Place { name: place_name(i, station), x: places[i].0, y: places[i].1 })
            .collect(),
    });
    let mut seen = Vec::new();
    let (mut first, mut further, mut cellular) = (Vec::new(), Vec::new(), Vec::new());
    let mut edges = |paths: &mut dyn Iterator<Item = &Vec<usize>>, into: &mut Vec<[(f64, f64); 2]>| {
        for hop in paths.flat_map(|path| path.windows(2)) {
            let ends = [hop[0].min(hop[1]), hop[0].max(hop[1])];
            if !seen.contains(&ends) {
                seen.push(ends);
                let into = if ends[1] == station { &mut cellular } else { &mut *into };
                into.push(ends.map(|i| places[i]));
            }
        }
    };
    // Paths of a node are consecutive, the best one first.
    let best = |i: &usize| *i == 0 || of.paths[*i - 1].first() != of.paths[*i].first();
    let numbers = || 0..of.paths.len();
    edges(&mut numbers().filter(best).map(|i| &of.paths[i]), &mut first);
    edges(&mut numbers().filter(|i| !best(i)).map(|i| &of.paths[i]), &mut further);
    let lines = [
        ("hop of further paths only", Stroke::Faint, further),
        ("hop of a node's best path", Stroke::Strong, first),
        ("cellular link", Stroke::Dashed, cellular),
    ];
    let lines = lines.into_iter().map(|(name, stroke, ends)| Lines { name: name.to_owned(), stroke, ends });
    map::Map {
        title: title.to_owned(),
        x: Axis::new("x", "m"),
        y: Axis::new("y", "m"),
        lines: lines.filter(|lines| !lines.ends.is_empty()).collect(),
        groups: groups.filter(|group| !group.places.is_empty()).collect(),
    }
}

fn place_name(i: usize, station: usize) -> String {
    match i {
        0 => "DC".to_owned(),
        _ if i == station => "BS".to_owned(),
        _ => i.to_string(),
    }
}
