//! Figures 8 to 16. The paper prints them without numbers.

use super::Sockbuf;
use super::meter::{BUFFER_LOOK, LOOK};
use super::response::Response;
use super::settings::{CONTENDERS, Contender, Measured, RECEIVED, SETTINGS, Setting};
use crate::experiment::Outcome;
use crate::experiment::Settings;
use crate::plot::{Axis, Chart, Dash, Look, Point, Scale, Series};

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    /// `8` to `16`, `15-buffer`, `loss`, `step`.
    pub id: &'static str,
    /// The chart.
    pub chart: Chart,
}

/// A quantity over time.
#[derive(Clone, Copy)]
enum Quantity {
    Received,
    Sent,
    Buffer,
}

impl Quantity {
    fn array(self) -> &'static str {
        match self {
            Self::Received => "striped_received_series_bit_per_s",
            Self::Sent => "striped_sent_series_bit_per_s",
            Self::Buffer => "striped_buffer_series_bytes",
        }
    }
}

/// The paper's figures by their captions. The caption of Figure 15 says throughput, the text cites
/// it as buffer (erratum B15): both are drawn.
const FIGURES: [(&str, Quantity, Setting); 10] = [
    ("8", Quantity::Received, SETTINGS[0]),
    ("9", Quantity::Sent, SETTINGS[0]),
    ("10", Quantity::Received, SETTINGS[1]),
    ("11", Quantity::Sent, SETTINGS[1]),
    ("12", Quantity::Buffer, SETTINGS[1]),
    ("13", Quantity::Received, SETTINGS[2]),
    ("14", Quantity::Sent, SETTINGS[2]),
    ("15", Quantity::Received, SETTINGS[3]),
    ("15-buffer", Quantity::Buffer, SETTINGS[2]),
    ("16", Quantity::Buffer, SETTINGS[3]),
];

/// Draws all figures, then the throughput by loss and one step of the loop.
pub fn draw(measured: &Measured, responses: &[Response]) -> Vec<Drawn> {
    let mut drawn: Vec<Drawn> = FIGURES
        .into_iter()
        .map(|(id, quantity, setting)| over_time(measured, id, quantity, setting))
        .collect();
    drawn.push(by_loss(measured));
    drawn.extend(step(responses));
    drawn
}

fn over_time(measured: &Measured, id: &'static str, quantity: Quantity, setting: Setting) -> Drawn {
    let (label, unit, scale, look) = match quantity {
        Quantity::Received => ("Received by the striped connection", "Mbit/s", 1e-6, LOOK),
        Quantity::Sent => ("Sent by the striped connection", "Mbit/s", 1e-6, LOOK),
        Quantity::Buffer => ("Buffer of the striped connection", "kB", 1e-3, BUFFER_LOOK),
    };
    let series = CONTENDERS.map(|contender| Series {
        name: contender.title().to_owned(),
        points: points(measured.outcome(setting, contender), quantity.array(), look.as_secs_f64(), scale),
        look: Look::Marked,
    });
    let chart = Chart {
        title: format!("Figure {id}: {}", setting.title()),
        x: Axis::new("Time", "s").scaled(Scale::FromZero),
        y: Axis::new(label, unit).scaled(Scale::FromZero),
        series: series.into(),
    };
    Drawn { id, chart }
}

fn points(outcome: &Outcome, array: &str, every: f64, scale: f64) -> Vec<Point> {
    let elements = outcome.array(array).elements.iter().enumerate();
    let point = |(i, s): (usize, &crate::stats::Summary)| Point {
        x: (i + 1) as f64 * every,
        y: s.mean * scale,
        ci95: s.ci95.map(|sure| sure * scale),
    };
    elements.map(point).collect()
}

fn by_loss(measured: &Measured) -> Drawn {
    let place = |loss: f64, contender: Contender| {
        let s = measured.with_loss(loss, contender).metric(RECEIVED).summary?;
        Some(Point { x: loss * 100.0, y: s.mean * 1e-6, ci95: s.ci95.map(|sure| sure * 1e-6) })
    };
    let series = CONTENDERS.map(|contender| Series {
        name: contender.title().to_owned(),
        points: measured.losses().into_iter().filter_map(|loss| place(loss, contender)).collect(),
        look: Look::Marked,
    });
    let defaults = Settings::defaults(&Sockbuf);
    let burst = defaults.text("burst");
    let chart = Chart {
        title: format!("{}: by loss, {burst} in a row on average", SETTINGS[2].title()),
        x: Axis::new("Packets lost", "%").scaled(Scale::FromZero),
        y: Axis::new("Received by the striped connection", "Mbit/s").scaled(Scale::FromZero),
        series: series.into(),
    };
    Drawn { id: "loss", chart }
}

/// The first step of both sets of constants, unscaled.
fn step(responses: &[Response]) -> Option<Drawn> {
    let mut series = Vec::new();
    for (colour, response) in responses.iter().filter(|r| r.factor == 1.0).enumerate() {
        let first = response.steps.first()?;
        let line = |name: String, of: fn(&(f64, f64, f64)) -> f64, dash| Series {
            name,
            points: first
                .course
                .iter()
                .filter(|(after, ..)| *after <= SHOWN)
                .map(|at| Point { x: at.0, y: of(at) * 1e-3, ci95: None })
                .collect(),
            look: Look::Line { colour, dash },
        };
        let name = response.name();
        series.push(line(format!("{name}: size"), |at| at.1, Dash::Solid));
        series.push(line(format!("{name}: set-point"), |at| at.2, Dash::Dashed));
    }
    let chart = Chart {
        title: "The striped buffer after a change of all rates".to_owned(),
        x: Axis::new("Time after the change", "s").scaled(Scale::FromZero),
        y: Axis::new("Octets", "kB"),
        series,
    };
    Some(Drawn { id: "step", chart })
}

/// Seconds of the step that are drawn.
const SHOWN: f64 = 150.0;
