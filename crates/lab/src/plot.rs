//! Line charts, maps and bars of shares as SVG, and the numbers behind them as CSV: small, for
//! print and screen, the same bytes for the same data. No interaction, no other kind of picture.
//!
//! Series can be told apart without colour (markers and dashes differ) and with a colour-blind eye
//! (the palette is that of Okabe and Ito). Error bars are 95 % confidence intervals.
//!
//! Code map: this file is what a chart is, [`map`] what a map is, [`shares`] bars; `axis` places
//! numbers and ticks, `draw` writes the chart's picture, `canvas` is what both draw with, [`csv`]
//! the table.

mod axis;
mod canvas;
pub mod csv;
mod draw;
pub mod map;
pub mod shares;

use thiserror::Error;

/// The colours of series, in which everything is drawn that is not text, ground or frame; for who
/// shows pictures on another ground.
pub const COLOURS: [&str; canvas::MARKERS] = canvas::COLOURS;

/// A chart: series over one pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Stands above it.
    pub title: String,
    /// Below.
    pub x: Axis,
    /// To the left.
    pub y: Axis,
    /// In the order of the legend; at most [`Chart::MAX_SERIES`] if any has markers.
    pub series: Vec<Series>,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is measured: `Latency`.
    pub label: String,
    /// In which unit: `s`; empty for a pure number.
    pub unit: String,
    /// How numbers are placed.
    pub scale: Scale,
    /// Where ticks stand; empty for round numbers that the chart picks itself.
    pub ticks: Vec<f64>,
}

/// How an axis places numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Evenly, over the range of the data.
    #[default]
    Linear,
    /// Evenly, zero included, so that heights can be compared.
    FromZero,
    /// By powers of ten; all values must be above zero.
    Log,
}

/// One line of the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, joined in this order.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub look: Look,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Look {
    /// With a marker at each point; colour, dashes and marker by its place among the series.
    #[default]
    Marked,
    /// A line without markers, for many points.
    Line {
        /// Number of its colour, counted from 0; after [`Chart::MAX_SERIES`] they begin again.
        colour: usize,
        /// Its dashes.
        dash: Dash,
    },
}

/// The dashes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    /// None.
    Solid,
    /// Dashes of equal length.
    Dashed,
    /// Points.
    Dotted,
}

/// One point with its certainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Where it stands.
    pub x: f64,
    /// The mean.
    pub y: f64,
    /// Half the width of the mean's 95 % confidence interval; `None` draws no error bar.
    pub ci95: Option<f64>,
}

/// Why a chart cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChartError {
    /// No series has a point.
    #[error("the chart `{title}` has no point to draw")]
    Empty {
        /// The chart's title.
        title: String,
    },
    /// More series than there are markers.
    #[error("the chart `{title}` has {series} series, more than can be told apart")]
    TooManySeries {
        /// The chart's title.
        title: String,
        /// How many it has.
        series: usize,
    },
    /// A coordinate is infinite or no number, or not above zero on a logarithmic axis.
    #[error("the series `{series}` has a point that cannot be placed: its number {point}")]
    Unplaceable {
        /// The series' name.
        series: String,
        /// The point, from 0.
        point: usize,
    },
}

impl Axis {
    /// A linear axis over the range of the data.
    pub fn new(label: &str, unit: &str) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Linear, ticks: Vec::new() }
    }

    /// The same axis on another scale.
    #[must_use]
    pub fn scaled(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }

    /// The label with its unit: `Latency (s)`.
    pub fn caption(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

impl Chart {
    /// As many series as there are markers and colours.
    pub const MAX_SERIES: usize = canvas::MARKERS;

    /// The chart as an SVG document.
    ///
    /// # Errors
    /// Nothing to draw, more series than [`Chart::MAX_SERIES`], or a coordinate that has no place.
    pub fn svg(&self) -> Result<String, ChartError> {
        self.check()?;
        Ok(draw::svg(self))
    }

    /// The points as CSV with a header: `series`, the axes' captions, `ci95`; one line a point.
    pub fn csv(&self) -> String {
        let header = ["series".to_owned(), self.x.caption(), self.y.caption(), "ci95".to_owned()];
        let mut text = csv::record(&header);
        for series in &self.series {
            for point in &series.points {
                let ci95 = point.ci95.map(|half| half.to_string()).unwrap_or_default();
                text += &csv::record(&[series.name.clone(), point.x.to_string(), point.y.to_string(), ci95]);
            }
        }
        text
    }

    fn check(&self) -> Result<(), ChartError> {
        let title = || self.title.clone();
        if self.series.iter().all(|series| series.points.is_empty()) {
            return Err(ChartError::Empty { title: title() });
        }
        let marked = self.series.iter().filter(|series| series.look == Look::Marked).count();
        if marked > 0 && self.series.len() > Self::MAX_SERIES {
            return Err(ChartError::TooManySeries { title: title(), series: self.series.len() });
        }
        let fits = |axis: &Axis, value: f64| value.is_finite() && (axis.scale != Scale::Log || value > 0.0);
        for series in &self.series {
            let placed = |point: &Point| {
                let sure = point.ci95.is_none_or(|half| half.is_finite() && half >= 0.0);
                fits(&self.x, point.x) && fits(&self.y, point.y) && sure
            };
            if let Some(point) = series.points.iter().position(|point| !placed(point)) {
                return Err(ChartError::Unplaceable { series: series.name.clone(), point });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
