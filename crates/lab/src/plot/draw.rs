//! Draws a chart.

use std::fmt::Write as _;

use super::axis::{Placed, label};
use super::canvas::{CHARACTER, COLOURS, Canvas, MARKERS, pixel};
use super::{Chart, Dash, Look, Point, Scale, Series};

/// Dashes, for print without colour.
const DASHES: [&str; MARKERS] = ["", "7 3", "2 3", "9 3 2 3", "4 4", "1 4", "8 2 2 2 2 2"];

/// Size of the plot area in pixels; labels and legend are outside of it.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 58.0;
/// Length of the line sample in the legend.
const SAMPLE: f64 = 34.0;

/// The document of a checked chart.
pub(super) fn svg(chart: &Chart) -> String {
    Picture::new(chart).drawn()
}

struct Picture<'a> {
    chart: &'a Chart,
    x: Placed,
    y: Placed,
    /// Left edge of the plot area, which leaves space for the tick labels.
    left: f64,
    canvas: Canvas,
}

impl<'a> Picture<'a> {
    fn new(chart: &'a Chart) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let xs: Vec<f64> = points().map(|point| point.x).collect();
        let mut ys: Vec<f64> = points().map(|point| point.y).collect();
        // An error bar that would pass zero is cut off on a logarithmic axis, and on an axis from
        // zero if all values are positive.
        let from = match chart.y.scale {
            Scale::Log => f64::MIN_POSITIVE,
            Scale::FromZero if ys.iter().all(|&y| y >= 0.0) => 0.0,
            Scale::FromZero | Scale::Linear => f64::NEG_INFINITY,
        };
        let ends = points().flat_map(|p| p.ci95.map(|half| [p.y - half, p.y + half]).into_iter().flatten());
        ys.extend(ends.filter(|&end| end >= from));
        let x = Placed::new(chart.x.scale, &xs, &chart.x.ticks);
        let y = Placed::new(chart.y.scale, &ys, &chart.y.ticks);
        let widest = y.ticks().iter().map(|&tick| label(tick).chars().count()).max().unwrap_or(1);
        let left = 46.0 + widest as f64 * CHARACTER;
        let names = chart.series.iter().map(|series| series.name.chars().count());
        let legend = SAMPLE + 30.0 + names.max().unwrap_or(0) as f64 * CHARACTER;
        let size = (left + WIDTH + legend, TOP + HEIGHT + BOTTOM);
        let canvas = Canvas::new(size, left + WIDTH / 2.0, &chart.title);
        Self { chart, x, y, left, canvas }
    }

    fn drawn(mut self) -> String {
        self.axes();
        for (i, series) in self.chart.series.iter().enumerate() {
            self.series(i, series);
        }
        self.legend();
        self.canvas.finished()
    }

    fn at_x(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * WIDTH
    }

    fn at_y(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.place(value)) * HEIGHT
    }

    fn axes(&mut self) {
        const GRID: &str = r##"stroke="#e2e2e2""##;
        const FRAME: &str = r##"stroke="#444444""##;
        let (left, right, bottom) = (self.left, self.left + WIDTH, TOP + HEIGHT);
        for tick in self.y.ticks().to_vec() {
            let y = self.at_y(tick);
            self.canvas.stroke((left, y), (right, y), GRID);
            self.canvas.stroke((left - 5.0, y), (left, y), FRAME);
            self.canvas.words(left - 9.0, y + 4.0, r#"text-anchor="end""#, &label(tick));
        }
        for tick in self.x.ticks().to_vec() {
            let x = self.at_x(tick);
            self.canvas.stroke((x, TOP), (x, bottom), GRID);
            self.canvas.stroke((x, bottom), (x, bottom + 5.0), FRAME);
            self.canvas.words(x, bottom + 19.0, r#"text-anchor="middle""#, &label(tick));
        }
        self.canvas.stroke((left, TOP), (left, bottom), FRAME);
        self.canvas.stroke((left, bottom), (right, bottom), FRAME);
        self.canvas.words(
            left + WIDTH / 2.0,
            bottom + 44.0,
            r#"text-anchor="middle""#,
            &self.chart.x.caption(),
        );
        let middle = TOP + HEIGHT / 2.0;
        let turned = format!(r#"text-anchor="middle" transform="rotate(-90 18 {})""#, pixel(middle));
        self.canvas.words(18.0, middle, &turned, &self.chart.y.caption());
    }

    fn series(&mut self, i: usize, series: &Series) {
        let (colour, dash) = strokes(i, series);
        let mut path = String::new();
        for point in &series.points {
            let command = if path.is_empty() { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{command}{} {}", pixel(self.at_x(point.x)), pixel(self.at_y(point.y)));
        }
        let dashes = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
        self.canvas.line(&format!(
            r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-linejoin="round"{dashes}/>"#
        ));
        for point in &series.points {
            self.error_bar(point, colour);
        }
        if series.look == Look::Marked {
            for point in &series.points {
                self.canvas.marker(i, self.at_x(point.x), self.at_y(point.y));
            }
        }
    }

    fn error_bar(&mut self, point: &Point, colour: &str) {
        let Some(half) = point.ci95 else { return };
        let (x, low, high) = (self.at_x(point.x), self.at_y(point.y - half), self.at_y(point.y + half));
        // An error bar shorter than the marker would not be visible.
        if low - high < 1.0 {
            return;
        }
        let style = format!(r#"stroke="{colour}" stroke-width="1.2""#);
        self.canvas.stroke((x, low), (x, high), &style);
        for end in [low, high] {
            self.canvas.stroke((x - 4.0, end), (x + 4.0, end), &style);
        }
    }

    fn legend(&mut self) {
        let left = self.left + WIDTH + 14.0;
        for (i, series) in self.chart.series.iter().enumerate() {
            let y = TOP + 10.0 + i as f64 * 20.0;
            let style = match strokes(i, series) {
                (colour, "") => format!(r#"stroke="{colour}" stroke-width="1.6""#),
                (colour, dash) => {
                    format!(r#"stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dash}""#)
                }
            };
            self.canvas.stroke((left, y), (left + SAMPLE - 6.0, y), &style);
            if series.look == Look::Marked {
                self.canvas.marker(i, left + (SAMPLE - 6.0) / 2.0, y);
            }
            self.canvas.words(left + SAMPLE, y + 4.0, "", &series.name);
        }
    }
}

/// Colour and dashes of the series at index `i`.
fn strokes(i: usize, series: &Series) -> (&'static str, &'static str) {
    match series.look {
        Look::Marked => (COLOURS[i], DASHES[i]),
        Look::Line { colour, dash } => {
            let dash = match dash {
                Dash::Solid => "",
                Dash::Dashed => "7 3",
                Dash::Dotted => "1.5 3",
            };
            (COLOURS[colour % MARKERS], dash)
        }
    }
}
