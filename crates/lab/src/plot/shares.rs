//! Bars that show, for each row, the shares of a few outcomes.

use super::canvas::{CHARACTER, Canvas, FONT, pixel};

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Label in front of the bar.
    pub label: String,
    /// Share of each kind, in the order of the legend; the sum is at most 1.
    pub parts: Vec<f64>,
    /// Confidence interval of the first kind's share.
    pub interval: Option<(f64, f64)>,
    /// Note behind the bar.
    pub note: String,
}

/// Colours of the kinds, which also differ in lightness.
const FILLS: [&str; 4] = ["#0072b2", "#56b4e9", "#e69f00", "#cccccc"];
const WIDTH: f64 = 400.0;
const ROW: f64 = 18.0;
const TOP: f64 = 74.0;
const MARGIN: f64 = 12.0;

/// Draws the bars; `legend` names the kinds, at most four.
pub fn svg(title: &str, legend: &[&str], bars: &[Bar]) -> String {
    let widest = |of: fn(&Bar) -> &str| bars.iter().map(|bar| of(bar).chars().count()).max().unwrap_or(0);
    let left = MARGIN + widest(|bar| &bar.label) as f64 * CHARACTER;
    let right = left + WIDTH + MARGIN;
    let width = right + widest(|bar| &bar.note) as f64 * CHARACTER + MARGIN;
    let bottom = TOP + bars.len() as f64 * ROW;
    let mut canvas = Canvas::new((width, bottom + 2.5 * FONT), left + WIDTH / 2.0, title);
    let mut x = left;
    for (name, fill) in legend.iter().zip(FILLS) {
        rectangle(&mut canvas, (x, 40.0), (FONT, FONT), fill);
        canvas.words(x + 1.4 * FONT, 50.5, "", name);
        x += (name.chars().count() as f64 + 3.0) * CHARACTER;
    }
    for (i, bar) in bars.iter().enumerate() {
        let top = TOP + i as f64 * ROW;
        let middle = top + ROW / 2.0;
        canvas.words(left - 6.0, middle + 4.0, r#"text-anchor="end""#, &bar.label);
        let mut x = left;
        for (part, fill) in bar.parts.iter().zip(FILLS) {
            rectangle(&mut canvas, (x, top + 2.0), (part * WIDTH, ROW - 4.0), fill);
            x += part * WIDTH;
        }
        if let Some((low, high)) = bar.interval {
            let ends = [low, high].map(|share| left + share * WIDTH);
            let style = r##"stroke="#000000" stroke-width="1.2""##;
            canvas.stroke((ends[0], middle), (ends[1], middle), style);
            ends.into_iter().for_each(|x| canvas.stroke((x, middle - 3.0), (x, middle + 3.0), style));
        }
        canvas.words(right, middle + 4.0, "", &bar.note);
    }
    for percent in [0, 25, 50, 75, 100] {
        let x = left + WIDTH * f64::from(percent) / 100.0;
        canvas.stroke((x, TOP), (x, bottom), r##"stroke="#222222" stroke-opacity="0.25""##);
        canvas.words(x, bottom + 1.4 * FONT, r#"text-anchor="middle""#, &format!("{percent} %"));
    }
    canvas.finished()
}

fn rectangle(canvas: &mut Canvas, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
    let [x, y, width, height] = [x, y, width, height].map(pixel);
    canvas.line(&format!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>"#));
}
