//! Figures 4 and 5. The paper prints them without numbers.

use super::sweeps::{CONTENDERS, Load, Quantity, SWEEP_RATE, Sweeps};
use crate::plot::{Axis, Chart, Look, Point, Scale, Series};

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    /// `4a` to `5e`.
    pub id: &'static str,
    /// The chart.
    pub chart: Chart,
}

/// A panel: name, quantity, title, unit.
type Panel = (&'static str, Quantity, &'static str, &'static str);

const BY_SENDERS: [Panel; 5] = [
    ("4a", Quantity::Throughput, "Throughput", "kB/s"),
    ("4b", Quantity::DeliveryRatio, "Data packets that came to the sink", "%"),
    ("4c", Quantity::Delay, "Mean delay", "s"),
    ("4d", Quantity::Energy, "Energy per 1000 packets", "J"),
    ("4e", Quantity::Control, "Control packets per data packet", "1"),
];
const BY_RATE: [Panel; 5] = [
    ("5a", Quantity::Throughput, "Throughput", "kB/s"),
    ("5b", Quantity::Lost, "Data packets lost", "packets"),
    ("5c", Quantity::Delay, "Mean delay", "s"),
    ("5d", Quantity::Energy, "Energy per 1000 packets", "J"),
    ("5e", Quantity::Control, "Control packets per data packet", "1"),
];

/// Draws all panels, in the paper's order.
pub fn draw(sweeps: &Sweeps) -> Vec<Drawn> {
    let senders = Sweep {
        about: format!("senders at {} kB/s", SWEEP_RATE / 1000),
        x: Axis::new("Senders", "nodes"),
        loads: sweeps.by_senders(),
        place: |load| load.senders as f64,
    };
    let rate = Sweep {
        about: "one sender".to_owned(),
        x: Axis::new("Offered", "kB/s"),
        loads: sweeps.by_rate(),
        place: |load| load.rate as f64 / 1e3,
    };
    let first = BY_SENDERS.into_iter().map(|panel| senders.draw(sweeps, panel));
    first.chain(BY_RATE.into_iter().map(|panel| rate.draw(sweeps, panel))).collect()
}

struct Sweep {
    about: String,
    x: Axis,
    loads: Vec<Load>,
    place: fn(&Load) -> f64,
}

impl Sweep {
    fn draw(&self, sweeps: &Sweeps, (id, quantity, label, unit): Panel) -> Drawn {
        let point = |load: &Load, found: crate::stats::Summary| Point {
            x: (self.place)(load),
            y: found.mean,
            ci95: found.ci95,
        };
        let mut series: Vec<Series> = CONTENDERS
            .iter()
            .map(|contender| Series {
                name: contender.title.to_owned(),
                points: self
                    .loads
                    .iter()
                    .filter_map(|load| {
                        Some(point(load, sweeps.summary(*load, contender.protocol, quantity)?))
                    })
                    .collect(),
                look: Look::Marked,
            })
            .collect();
        if quantity == Quantity::Throughput {
            series.push(Series {
                name: "capacity, datagrams".to_owned(),
                points: self.loads.iter().map(|load| point(load, sweeps.capacity(load.senders))).collect(),
                look: Look::Marked,
            });
        }
        // Delivery ratios differ only near 100 %; delays differ by powers of ten.
        let scale = match quantity {
            Quantity::DeliveryRatio => Scale::Linear,
            Quantity::Delay => Scale::Log,
            _ => Scale::FromZero,
        };
        let ticks = self.loads.iter().map(self.place).collect();
        let chart = Chart {
            title: format!("Figure {id}: {}", self.about),
            x: Axis { ticks, ..self.x.clone() },
            y: Axis::new(label, unit).scaled(scale),
            series,
        };
        Drawn { id, chart }
    }
}
