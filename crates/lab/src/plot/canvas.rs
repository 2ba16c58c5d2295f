//! Drawing primitives of all pictures: lines, text and markers as SVG.

/// Number of distinguishable series.
pub(super) const MARKERS: usize = 7;

/// Palette of Okabe and Ito (2008), darkest first, without yellow, which is hardly visible on a
/// light background.
pub(super) const COLOURS: [&str; MARKERS] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00"];

pub(super) const FONT: f64 = 12.0;
/// Font size of the title.
const TITLE: f64 = 15.0;
/// Approximate width of a character, sufficient for digits and lower-case letters.
pub(super) const CHARACTER: f64 = 0.6 * FONT;

/// A document in progress.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    text: String,
}

impl Canvas {
    /// Creates a white page of this size with a title centred at `middle` pixels from the left. A
    /// title without enough space moves to the right, and the page becomes as wide as the title.
    pub(super) fn new((width, height): (f64, f64), middle: f64, title: &str) -> Self {
        const MARGIN: f64 = 8.0;
        let half = title.chars().count() as f64 * CHARACTER * TITLE / FONT / 2.0;
        let (width, middle) = (width.max(2.0 * (half + MARGIN)), middle.max(half + MARGIN));
        let middle = middle.min(width - half - MARGIN);
        let mut this = Self::default();
        this.line(&format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="{FONT}" fill="#222222">"##
        ));
        this.line(&format!("<title>{}</title>", escaped(title)));
        this.line(r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
        this.words(middle, 26.0, &format!(r#"text-anchor="middle" font-size="{TITLE}""#), title);
        this
    }

    /// The complete document.
    pub(super) fn finished(mut self) -> String {
        self.line("</svg>");
        self.text
    }

    pub(super) fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    pub(super) fn words(&mut self, x: f64, y: f64, attributes: &str, words: &str) {
        let (x, y, words) = (pixel(x), pixel(y), escaped(words));
        self.line(&format!(r#"<text x="{x}" y="{y}" {attributes}>{words}</text>"#));
    }

    /// Draws a straight line in this style.
    pub(super) fn stroke(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let (x1, y1, x2, y2) = (pixel(from.0), pixel(from.1), pixel(to.0), pixel(to.1));
        self.line(&format!(r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>"#));
    }

    /// Draws marker `i` in its colour.
    pub(super) fn marker(&mut self, i: usize, x: f64, y: f64) {
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
}

/// Formats a coordinate to a tenth of a pixel, without a sign for zero.
pub(super) fn pixel(value: f64) -> String {
    let text = format!("{value:.1}");
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

/// Escapes text for XML; characters that XML cannot represent are dropped.
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
