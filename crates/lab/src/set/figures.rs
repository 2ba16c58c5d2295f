//! Figures 10 to 15 of section 6, panel by panel, as points of the experiment. The paper prints the
//! curves without numbers and leaves much open (errata S20); the titles of the panels and the
//! report state our choices.

use anabranch_core::time::Duration;
use anabranch_scenario::units::{Rate, Size, Span};

use super::{Scheme, Set};
use crate::experiment::values::plain;
use crate::experiment::{self, RunError, Settings};
use crate::plot::{Axis, Chart, Look, Point, Scale, Series};
use crate::work::Work;

/// Number of points on each curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grid {
    /// Enough for a curve.
    Full,
    /// Few.
    Quick,
}

/// The paper's files in bytes, with the letters of their panels.
pub const FILES: [(&str, u64); 3] = [("a", 5_000), ("b", 42_000), ("c", 129_000)];

/// Gateway buffer of section 6.2.
const LARGE_BUFFER: &str = "640kB";

/// A panel to draw.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Name, as in `10a`.
    pub id: String,
    title: String,
    axis: Axis,
    curves: Vec<Curve>,
}

#[derive(Clone, PartialEq, Debug)]
struct Curve {
    name: String,
    points: Vec<(f64, Settings)>,
}

/// A panel with its measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    /// Name, as in `10a`.
    pub id: String,
    /// Latency over the varied parameter; points that did not end are left out.
    pub chart: Chart,
}

impl Drawn {
    /// The curve of this name, as (x, mean latency).
    ///
    /// # Panics
    ///
    /// There is no such curve.
    pub fn curve(&self, name: &str) -> Vec<(f64, f64)> {
        let series = self.chart.series.iter().find(|s| s.name == name).expect("a curve of this panel");
        series.points.iter().map(|p| (p.x, p.y)).collect()
    }
}

/// Name of the baseline's curve.
pub const SPLIT: &str = "split TCP, 1 gateway";

/// Name of the curve of SET as printed over `n` gateways, by which the claims are judged.
pub fn printed_curve(n: usize) -> String {
    format!("SET as printed, {n} {}", if n == 1 { "gateway" } else { "gateways" })
}

/// Name of the curve of our SET over `n` gateways.
pub fn set_curve(n: usize) -> String {
    format!("ours, {n} {}", if n == 1 { "gateway" } else { "gateways" })
}

/// Settings for SET as printed: sessions are opened one after another, and shares follow the bytes
/// that each session has accepted.
pub fn printed(settings: Settings) -> Settings {
    settings.with("open", "one-by-one").with("striping", "window")
}

impl Panel {
    /// Settings of all points.
    pub fn points(&self) -> impl Iterator<Item = &Settings> {
        self.curves.iter().flat_map(|curve| curve.points.iter().map(|(_, settings)| settings))
    }

    /// Runs all points.
    ///
    /// # Errors
    ///
    /// The first failed run.
    pub fn run(self, work: &Work<'_>) -> Result<Drawn, RunError> {
        let mut series = Vec::new();
        for curve in self.curves {
            let (places, settings): (Vec<f64>, Vec<Settings>) = curve.points.into_iter().unzip();
            let outcomes = experiment::run_all(&Set, &settings, work)?;
            let measured = places.iter().zip(&outcomes).filter_map(|(&x, outcome)| {
                let summary = outcome.metric("latency_s").summary?;
                Some(Point { x, y: summary.mean, ci95: summary.ci95 })
            });
            series.push(Series { name: curve.name, points: measured.collect(), look: Look::Marked });
        }
        let y = Axis::new("Latency", "s").scaled(Scale::FromZero);
        Ok(Drawn { id: self.id, chart: Chart { title: self.title, x: self.axis, y, series } })
    }
}

/// All panels, in the paper's order.
pub fn panels(grid: Grid) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (letter, octets) in FILES {
        panels.push(node_buffer(letter, octets, grid));
    }
    for (figure, rate) in [(11, 256_000), (12, 1_200_000)] {
        for (letter, octets) in FILES {
            panels.push(wireless_delay(figure, rate, letter, octets, grid));
        }
    }
    for (letter, octets) in FILES {
        panels.push(bandwidth(letter, octets));
    }
    for (letter, octets) in [FILES[0], ("b", FILES[2].1)] {
        panels.push(background(letter, octets, grid));
    }
    panels.push(hops(grid));
    panels
}

/// The panel of this name.
///
/// # Panics
///
/// There is no such panel.
pub fn panel(id: &str, grid: Grid) -> Panel {
    panels(grid).into_iter().find(|p| p.id == id).expect("a panel of section 6")
}

fn file(octets: u64) -> Settings {
    Settings::defaults(&Set).with("file", plain(&Size(octets)))
}

/// Curves of the baseline and of SET, as printed and ours, over 1, 2 and 3 gateways, at each x.
fn curves(places: &[f64], at: impl Fn(f64) -> Settings) -> Vec<Curve> {
    let curve = |name, scheme: Scheme, gateways: usize, change: fn(Settings) -> Settings| {
        let of = |x| change(at(x).with("scheme", scheme.word()).with("gateways", gateways));
        Curve { name, points: places.iter().map(|&x| (x, of(x))).collect() }
    };
    let split = curve(SPLIT.to_owned(), Scheme::Split, 1, |settings| settings);
    let as_printed = (1..=3).map(|n| curve(printed_curve(n), Scheme::Set, n, printed));
    let ours = (1..=3).map(|n| curve(set_curve(n), Scheme::Set, n, |settings| settings));
    [split].into_iter().chain(as_printed).chain(ours).collect()
}

fn places(grid: Grid, full: &[f64], quick: &[f64]) -> Vec<f64> {
    match grid {
        Grid::Full => full.to_vec(),
        Grid::Quick => quick.to_vec(),
    }
}

fn node_buffer(letter: &str, octets: u64, grid: Grid) -> Panel {
    let kilo = places(
        grid,
        &[0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0],
        &[0.25, 1.0, 4.0, 16.0, 64.0],
    );
    Panel {
        id: format!("10{letter}"),
        title: format!("Figure 10({letter}): {} kB, 256 kbit/s, 25 ms", octets / 1000),
        axis: Axis::new("Node's receive buffer", "kB").scaled(Scale::Log),
        curves: curves(&kilo, |x| file(octets).with("node_buffer", plain(&Size((x * 1000.0) as u64)))),
    }
}

fn wireless_delay(figure: u32, rate: u64, letter: &str, octets: u64, grid: Grid) -> Panel {
    let ms = places(grid, &[5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 150.0, 200.0], &[5.0, 50.0, 200.0]);
    Panel {
        id: format!("{figure}{letter}"),
        title: format!("Figure {figure}({letter}): {} kB, {} kbit/s", octets / 1000, rate / 1000),
        axis: Axis::new("Wireless delay, one way", "ms"),
        curves: curves(&ms, |x| {
            let delay = Span(Duration::from_micros((x * 1000.0) as u64));
            let settings = file(octets).with("wireless_rate", plain(&Rate(rate)));
            settings.with("wireless_delay", plain(&delay)).with("gateway_buffer", LARGE_BUFFER)
        }),
    }
}

fn bandwidth(letter: &str, octets: u64) -> Panel {
    let kilobit = [56.0, 128.0, 256.0];
    Panel {
        id: format!("13{letter}"),
        title: format!("Figure 13({letter}): {} kB, 25 ms", octets / 1000),
        axis: Axis { ticks: kilobit.to_vec(), ..Axis::new("Wireless rate", "kbit/s") },
        curves: curves(&kilobit, |x| file(octets).with("wireless_rate", plain(&Rate((x * 1000.0) as u64)))),
    }
}

fn background(letter: &str, octets: u64, grid: Grid) -> Panel {
    let others = places(grid, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[0.0, 2.0, 4.0]);
    Panel {
        id: format!("14{letter}"),
        title: format!("Figure 14({letter}): {} kB to every node, 256 kbit/s, 25 ms", octets / 1000),
        axis: Axis { ticks: others.clone(), ..Axis::new("Other transfers", "number") },
        // Section 6.4 does not state the gateway's buffer. With the 100 packets of 6.1 the gateway
        // would drop packets from the second transfer on, and the curve would show TCP's time-outs;
        // so this is the buffer of section 6.2.
        curves: curves(&others, |x| file(octets).with("background", x).with("gateway_buffer", LARGE_BUFFER)),
    }
}

fn hops(grid: Grid) -> Panel {
    let hops = places(grid, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0], &[1.0, 3.0, 6.0]);
    Panel {
        id: "15".to_owned(),
        title: "Figure 15: 129 kB, 256 kbit/s and 25 ms each hop".to_owned(),
        axis: Axis { ticks: hops.clone(), ..Axis::new("Wireless hops", "number") },
        curves: curves(&hops, |x| file(129_000).with("hops", x)),
    }
}
