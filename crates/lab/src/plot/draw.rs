//! The picture itself.

use super::axis::{Placed, label};
use super::{Chart, Point, Series};
use std::fmt::Write as _;

/// Series that can be told apart.
pub(super) const MARKERS: usize = 7;

/// The palette of Okabe and Ito (2008), darkest first, without its yellow, which a light ground swallows.
const COLOURS: [&str; MARKERS] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00"];

/// Dashes, for print without colour.
const DASHES: [&str; MARKERS] = ["", "7 3", "2 3", "9 3 2 3", "4 4", "1 4", "8 2 2 2 2 2"];

/// The plot's own size in pixels; labels and legend stand around it.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 58.0;
const FONT: f64 = 12.0;
/// About how wide a character is: enough for digits and lower-case letters, not exact.
const CHARACTER: f64 = 0.6 * FONT;
/// The legend's line with its marker.
const SAMPLE: f64 = 34.0;

/// The chart's document. The chart has been checked.
pub(super) fn svg(chart: &Chart) -> String {
    Picture::new(chart).drawn()
}

struct Picture<'a> {
    chart: &'a Chart,
    x: Placed,
    y: Placed,
    /// Where the plot begins from the left: tick labels of any width have room.
    left: f64,
    text: String,
}

impl<'a> Picture<'a> {
    fn new(chart: &'a Chart) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let xs: Vec<f64> = points().map(|point| point.x).collect();
        let mut ys: Vec<f64> = points().map(|point| point.y).collect();
        // A bar that reaches past zero on a logarithmic axis is cut at the axis.
        let log = chart.y.scale == super::Scale::Log;
        let ends = points().flat_map(|p| p.ci95.map(|half| [p.y - half, p.y + half]).into_iter().flatten());
        ys.extend(ends.filter(|&end| !log || end > 0.0));
        let x = Placed::new(chart.x.scale, &xs, &chart.x.ticks);
        let y = Placed::new(chart.y.scale, &ys, &chart.y.ticks);
        let widest = y.ticks().iter().map(|&tick| label(tick).chars().count()).max().unwrap_or(1);
        let left = 46.0 + widest as f64 * CHARACTER;
        Self { chart, x, y, left, text: String::new() }
    }

    fn drawn(mut self) -> String {
        let names = self.chart.series.iter().map(|series| series.name.chars().count());
        let legend = SAMPLE + 30.0 + names.max().unwrap_or(0) as f64 * CHARACTER;
        let width = self.left + WIDTH + legend;
        let height = TOP + HEIGHT + BOTTOM;
        self.line(&format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="{FONT}" fill="#222222">"##
        ));
        self.line(&format!("<title>{}</title>", escaped(&self.chart.title)));
        self.line(r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
        self.words(
            self.left + WIDTH / 2.0,
            26.0,
            r#"text-anchor="middle" font-size="15""#,
            &self.chart.title,
        );
        self.axes();
        for (i, series) in self.chart.series.iter().enumerate() {
            self.series(i, series);
        }
        self.legend();
        self.line("</svg>");
        self.text
    }

    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    fn words(&mut self, x: f64, y: f64, attributes: &str, words: &str) {
        let (x, y, words) = (pixel(x), pixel(y), escaped(words));
        self.line(&format!(r#"<text x="{x}" y="{y}" {attributes}>{words}</text>"#));
    }

    /// A straight stroke in the given style.
    fn stroke(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let (x1, y1, x2, y2) = (pixel(from.0), pixel(from.1), pixel(to.0), pixel(to.1));
        self.line(&format!(r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>"#));
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
            self.stroke((left, y), (right, y), GRID);
            self.stroke((left - 5.0, y), (left, y), FRAME);
            self.words(left - 9.0, y + 4.0, r#"text-anchor="end""#, &label(tick));
        }
        for tick in self.x.ticks().to_vec() {
            let x = self.at_x(tick);
            self.stroke((x, TOP), (x, bottom), GRID);
            self.stroke((x, bottom), (x, bottom + 5.0), FRAME);
            self.words(x, bottom + 19.0, r#"text-anchor="middle""#, &label(tick));
        }
        self.stroke((left, TOP), (left, bottom), FRAME);
        self.stroke((left, bottom), (right, bottom), FRAME);
        self.words(left + WIDTH / 2.0, bottom + 44.0, r#"text-anchor="middle""#, &self.chart.x.caption());
        let middle = TOP + HEIGHT / 2.0;
        let turned = format!(r#"text-anchor="middle" transform="rotate(-90 18 {})""#, pixel(middle));
        self.words(18.0, middle, &turned, &self.chart.y.caption());
    }

    fn series(&mut self, i: usize, series: &Series) {
        let (colour, dash) = (COLOURS[i], DASHES[i]);
        let mut path = String::new();
        for point in &series.points {
            let command = if path.is_empty() { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{command}{} {}", pixel(self.at_x(point.x)), pixel(self.at_y(point.y)));
        }
        let dashes = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
        self.line(&format!(
            r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-linejoin="round"{dashes}/>"#
        ));
        for point in &series.points {
            self.error_bar(point, colour);
        }
        for point in &series.points {
            let (x, y) = (self.at_x(point.x), self.at_y(point.y));
            self.marker(i, x, y);
        }
    }

    fn error_bar(&mut self, point: &Point, colour: &str) {
        let Some(half) = point.ci95 else { return };
        let (x, low, high) = (self.at_x(point.x), self.at_y(point.y - half), self.at_y(point.y + half));
        // Shorter than a marker is tall: nothing to see, only dirt.
        if low - high < 1.0 {
            return;
        }
        let style = format!(r#"stroke="{colour}" stroke-width="1.2""#);
        self.stroke((x, low), (x, high), &style);
        for end in [low, high] {
            self.stroke((x - 4.0, end), (x + 4.0, end), &style);
        }
    }

    fn marker(&mut self, i: usize, x: f64, y: f64) {
        let colour = COLOURS[i];
        let shape: &[(f64, f64)] = match i {
            0 => {
                let (x, y) = (pixel(x), pixel(y));
                return self.line(&format!(r#"<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>"#));
            }
            1 => &[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)],
            2 => &[(0.0, -5.0), (4.6, 3.4), (-4.6, 3.4)],
            3 => &[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)],
            4 => &[(0.0, 5.0), (4.6, -3.4), (-4.6, -3.4)],
            5 => &[
                (-1.4, -5.0),
                (1.4, -5.0),
                (1.4, -1.4),
                (5.0, -1.4),
                (5.0, 1.4),
                (1.4, 1.4),
                (1.4, 5.0),
                (-1.4, 5.0),
                (-1.4, 1.4),
                (-5.0, 1.4),
                (-5.0, -1.4),
                (-1.4, -1.4),
            ],
            _ => &[(-2.2, -5.0), (2.2, -5.0), (5.0, 0.0), (2.2, 5.0), (-2.2, 5.0), (-5.0, 0.0)],
        };
        let corners: Vec<String> =
            shape.iter().map(|(dx, dy)| format!("{},{}", pixel(x + dx), pixel(y + dy))).collect();
        self.line(&format!(r#"<polygon points="{}" fill="{colour}"/>"#, corners.join(" ")));
    }

    fn legend(&mut self) {
        let left = self.left + WIDTH + 14.0;
        for (i, series) in self.chart.series.iter().enumerate() {
            let y = TOP + 10.0 + i as f64 * 20.0;
            let style = match DASHES[i] {
                "" => format!(r#"stroke="{}" stroke-width="1.6""#, COLOURS[i]),
                dash => format!(r#"stroke="{}" stroke-width="1.6" stroke-dasharray="{dash}""#, COLOURS[i]),
            };
            self.stroke((left, y), (left + SAMPLE - 6.0, y), &style);
            self.marker(i, left + (SAMPLE - 6.0) / 2.0, y);
            self.words(left + SAMPLE, y + 4.0, "", &series.name);
        }
    }
}

/// A coordinate to a tenth of a pixel, without a minus before nothing.
fn pixel(value: f64) -> String {
    let text = format!("{value:.1}");
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

/// Text as XML wants it; what XML cannot hold at all is left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
