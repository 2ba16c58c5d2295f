//! Line charts, maps and share bars as SVG, and their numbers as CSV. Pictures are small, suitable
//! for print and screen, and identical for identical data; there is no interaction and no other
//! kind of picture.
//!
//! Series are distinguishable without colour (by markers and dashes) and by colour-blind readers
//! (with the palette of Okabe and Ito). Error bars are 95 % confidence intervals.
//!
//! Code map: this file defines charts, [`map`] maps, [`shares`] bars; `axis` computes positions and
//! ticks, `draw` writes a chart's picture, `canvas` has the shared drawing primitives, [`csv`]
//! writes tables.

mod axis;
mod canvas;
pub mod csv;
mod draw;
pub mod map;
pub mod shares;

use thiserror::Error;

/// Colours of the series; everything except text, background and frame is drawn in them. A page
/// with another background can replace them.
pub const COLOURS: [&str; canvas::MARKERS] = canvas::COLOURS;

/// A chart: series over one pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Title above the chart.
    pub title: String,
    /// Axis below the chart.
    pub x: Axis,
    /// Axis to the left.
    pub y: Axis,
    /// Series in the order of the legend; at most [`Chart::MAX_SERIES`] if any has markers.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Measured quantity, as in `Latency`.
    pub label: String,
    /// Unit, as in `s`; empty for a pure number.
    pub unit: String,
    /// Scale.
    pub scale: Scale,
    /// Positions of ticks; if empty, the chart chooses round numbers.
    pub ticks: Vec<f64>,
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Linear, over the range of the data.
    #[default]
    Linear,
    /// Linear, including zero, so that heights are comparable.
    FromZero,
    /// Logarithmic; all values must be above zero.
    Log,
}

/// A line of the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, joined in this order.
    pub points: Vec<Point>,
    /// Style of the line.
    pub look: Look,
}

/// Style of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Look {
    /// A marker at each point; colour, dashes and marker follow from the position among the series.
    #[default]
    Marked,
    /// A line without markers, for many points.
    Line {
        /// Number of the colour, from 0; colours repeat after [`Chart::MAX_SERIES`].
        colour: usize,
        /// Dashes.
        dash: Dash,
    },
}

/// Dashes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    /// Solid.
    Solid,
    /// Dashes of equal length.
    Dashed,
    /// Dots.
    Dotted,
}

/// A point with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Position on the x axis.
    pub x: f64,
    /// Mean value.
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
        /// Title of the chart.
        title: String,
    },
    /// The chart has more series than there are markers.
    #[error("the chart `{title}` has {series} series, more than can be told apart")]
    TooManySeries {
        /// Title of the chart.
        title: String,
        /// Number of series.
        series: usize,
    },
    /// A coordinate is not finite, or not positive on a logarithmic axis.
    #[error("the series `{series}` has a point that cannot be placed: its number {point}")]
    Unplaceable {
        /// Name of the series.
        series: String,
        /// Index of the point, from 0.
        point: usize,
    },
}

impl Axis {
    /// A linear axis over the range of the data.
    pub fn new(label: &str, unit: &str) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Linear, ticks: Vec::new() }
    }

    /// The axis with another scale.
    #[must_use]
    pub fn scaled(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }

    /// Label with unit: `Latency (s)`.
    pub fn caption(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

impl Chart {
    /// Number of distinguishable series with markers.
    pub const MAX_SERIES: usize = canvas::MARKERS;

    /// The chart as an SVG document.
    ///
    /// # Errors
    ///
    /// The chart is empty, has more series than [`Chart::MAX_SERIES`], or has a coordinate that
    /// cannot be placed.
    pub fn svg(&self) -> Result<String, ChartError> {
        self.check()?;
        Ok(draw::svg(self))
    }

    /// The points as CSV with the header `series`, the captions of the axes, `ci95`; one line per
    /// point.
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
