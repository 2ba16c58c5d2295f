//! Maps: places and lines in the plane, with the same scale in both directions.

use super::axis::{Placed, label};
use super::canvas::{CHARACTER, Canvas, MARKERS, pixel};
use super::{Axis, ChartError, Scale, csv};

/// A map.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// Title above the map.
    pub title: String,
    /// Axis below the map; scale and ticks are ignored.
    pub x: Axis,
    /// Axis to the left.
    pub y: Axis,
    /// Lines below the places; the first is drawn first.
    pub lines: Vec<Lines>,
    /// Groups of places, at most [`Chart::MAX_SERIES`](super::Chart::MAX_SERIES); the last is drawn
    /// on top.
    pub groups: Vec<Group>,
}

/// Places of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Name in the legend.
    pub name: String,
    /// The places.
    pub places: Vec<Place>,
}

/// A place.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Name, shown beside the place if there is space, and in the table.
    pub name: String,
    /// Position to the right.
    pub x: f64,
    /// Position upwards.
    pub y: f64,
}

/// Lines of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// Name in the legend.
    pub name: String,
    /// Style.
    pub stroke: Stroke,
    /// End points of each line.
    pub ends: Vec<[(f64, f64); 2]>,
}

/// Style of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// Dark.
    Strong,
    /// Light and thin.
    Faint,
    /// Dashed and coloured.
    Dashed,
}

impl Map {
    /// The map as an SVG document.
    ///
    /// # Errors
    ///
    /// The map has no place or more groups than there are markers, or a coordinate is not finite.
    pub fn svg(&self) -> Result<String, ChartError> {
        self.check()?;
        Ok(Sheet::new(self).drawn())
    }

    /// Places and lines as CSV with a header: kind, name, position, and end of the line.
    pub fn csv(&self) -> String {
        let (x, y) = (self.x.caption(), self.y.caption());
        let header = [
            "kind".to_owned(),
            "name".to_owned(),
            x.clone(),
            y.clone(),
            format!("to {x}"),
            format!("to {y}"),
        ];
        let mut text = csv::record(&header);
        let empty = String::new;
        for group in &self.groups {
            for Place { name, x, y } in &group.places {
                let fields =
                    [group.name.clone(), name.clone(), x.to_string(), y.to_string(), empty(), empty()];
                text += &csv::record(&fields);
            }
        }
        for lines in &self.lines {
            for [from, to] in &lines.ends {
                let numbers = [from.0, from.1, to.0, to.1].map(|n| n.to_string());
                let fields = [vec![lines.name.clone(), empty()], numbers.to_vec()].concat();
                text += &csv::record(&fields);
            }
        }
        text
    }

    fn check(&self) -> Result<(), ChartError> {
        if self.groups.iter().all(|group| group.places.is_empty()) {
            return Err(ChartError::Empty { title: self.title.clone() });
        }
        if self.groups.len() > MARKERS {
            return Err(ChartError::TooManySeries { title: self.title.clone(), series: self.groups.len() });
        }
        for group in &self.groups {
            if let Some(point) = group.places.iter().position(|p| !(p.x.is_finite() && p.y.is_finite())) {
                return Err(ChartError::Unplaceable { series: group.name.clone(), point });
            }
        }
        for lines in &self.lines {
            let finite = |end: &(f64, f64)| end.0.is_finite() && end.1.is_finite();
            if let Some(point) = lines.ends.iter().position(|ends| !ends.iter().all(finite)) {
                return Err(ChartError::Unplaceable { series: lines.name.clone(), point });
            }
        }
        Ok(())
    }
}

/// Length of the longer side in pixels, and margins.
const LONGER: f64 = 520.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 58.0;
const SAMPLE: f64 = 34.0;
/// Font size of the names of places.
const SMALL: f64 = 9.0;

struct Sheet<'a> {
    map: &'a Map,
    x: Placed,
    y: Placed,
    left: f64,
    width: f64,
    height: f64,
    canvas: Canvas,
}

/// A rectangle: left, top, right, bottom.
type Frame = [f64; 4];

fn overlap(a: &Frame, b: &Frame) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// Whether a line segment touches the rectangle.
fn crosses([from, to]: &[(f64, f64); 2], frame: &Frame) -> bool {
    // Part of the segment that is inside of all sides checked so far, as shares of its length.
    let (mut begin, mut end) = (0.0, 1.0);
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    for (step, room) in
        [(-dx, from.0 - frame[0]), (dx, frame[2] - from.0), (-dy, from.1 - frame[1]), (dy, frame[3] - from.1)]
    {
        if step == 0.0 {
            if room < 0.0 {
                return false;
            }
        } else if step < 0.0 {
            begin = f64::max(begin, room / step);
        } else {
            end = f64::min(end, room / step);
        }
    }
    begin <= end
}

impl<'a> Sheet<'a> {
    fn new(map: &'a Map) -> Self {
        let places = || map.groups.iter().flat_map(|group| &group.places).map(|p| (p.x, p.y));
        let all = || places().chain(map.lines.iter().flat_map(|l| l.ends.iter().flatten().copied()));
        let axis = |values: Vec<f64>| Placed::new(Scale::Linear, &values, &[]);
        let (x, y) = (axis(all().map(|p| p.0).collect()), axis(all().map(|p| p.1).collect()));
        let pixels = LONGER / x.span().max(y.span());
        let (width, height) = (x.span() * pixels, y.span() * pixels);
        let widest = y.ticks().iter().map(|&tick| label(tick).chars().count()).max().unwrap_or(1);
        let left = 46.0 + widest as f64 * CHARACTER;
        let names = map.groups.iter().map(|g| &g.name).chain(map.lines.iter().map(|l| &l.name));
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
        let legend = SAMPLE + 30.0 + longest as f64 * CHARACTER;
        let size = (left + width + legend, TOP + height + BOTTOM);
        let canvas = Canvas::new(size, left + width / 2.0, &map.title);
        Self { map, x, y, left, width, height, canvas }
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.left + self.x.place(x) * self.width, TOP + (1.0 - self.y.place(y)) * self.height)
    }

    fn drawn(mut self) -> String {
        self.axes();
        let mut strokes = Vec::new();
        for lines in &self.map.lines {
            for [from, to] in &lines.ends {
                let ends = [self.at(*from), self.at(*to)];
                self.canvas.stroke(ends[0], ends[1], lines.stroke.style());
                strokes.push(ends);
            }
        }
        let mut taken = Vec::new();
        for (i, group) in self.map.groups.iter().enumerate() {
            for place in &group.places {
                let (x, y) = self.at((place.x, place.y));
                self.canvas.marker(i, x, y);
                taken.push([x - 5.0, y - 5.0, x + 5.0, y + 5.0]);
            }
        }
        for place in self.map.groups.iter().flat_map(|group| &group.places) {
            self.name(place, &strokes, &mut taken);
        }
        self.legend();
        self.canvas.finished()
    }

    /// Writes a place's name beside it, inside the frame: at the position that covers no marker and
    /// no other name, and the fewest lines. Without such a position the name is left out.
    fn name(&mut self, place: &Place, strokes: &[[(f64, f64); 2]], taken: &mut Vec<Frame>) {
        let (x, y) = self.at((place.x, place.y));
        let (width, height) = (0.64 * SMALL * place.name.chars().count() as f64, SMALL * 0.8);
        let (aside, near) = (6.0 + width / 2.0, 4.0 + width / 2.0);
        let around = [
            (aside, 0.0),
            (-aside, 0.0),
            (0.0, -10.0),
            (0.0, 10.0),
            (near, -9.0),
            (near, 9.0),
            (-near, -9.0),
            (-near, 9.0),
        ];
        let frames = around.map(|(dx, dy)| {
            let (x, y) = (x + dx, y + dy);
            [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
        });
        let (left, right, bottom) = (self.left + 1.0, self.left + self.width - 1.0, TOP + self.height - 1.0);
        let inside = |f: &Frame| f[0] >= left && f[1] >= TOP + 1.0 && f[2] <= right && f[3] <= bottom;
        let free =
            frames.iter().filter(|frame| inside(frame) && !taken.iter().any(|other| overlap(other, frame)));
        let crossed = |frame: &&Frame| strokes.iter().filter(|ends| crosses(ends, frame)).count();
        let Some(&best) = free.min_by_key(crossed) else { return };
        taken.push(best);
        // A white outline separates letters from lines.
        let attributes = format!(
            r##"text-anchor="middle" font-size="{SMALL}" stroke="#ffffff" stroke-width="2.5" paint-order="stroke""##
        );
        self.canvas.words((best[0] + best[2]) / 2.0, best[3], &attributes, &place.name);
    }

    fn axes(&mut self) {
        const FRAME: &str = r##"stroke="#444444""##;
        let (left, right, bottom) = (self.left, self.left + self.width, TOP + self.height);
        for tick in self.y.ticks().to_vec() {
            let y = TOP + (1.0 - self.y.place(tick)) * self.height;
            self.canvas.stroke((left - 5.0, y), (left, y), FRAME);
            self.canvas.words(left - 9.0, y + 4.0, r#"text-anchor="end""#, &label(tick));
        }
        for tick in self.x.ticks().to_vec() {
            let x = left + self.x.place(tick) * self.width;
            self.canvas.stroke((x, bottom), (x, bottom + 5.0), FRAME);
            self.canvas.words(x, bottom + 19.0, r#"text-anchor="middle""#, &label(tick));
        }
        for (from, to) in [
            ((left, TOP), (left, bottom)),
            ((left, bottom), (right, bottom)),
            ((left, TOP), (right, TOP)),
            ((right, TOP), (right, bottom)),
        ] {
            self.canvas.stroke(from, to, FRAME);
        }
        let centre = r#"text-anchor="middle""#;
        self.canvas.words(left + self.width / 2.0, bottom + 44.0, centre, &self.map.x.caption());
        let middle = TOP + self.height / 2.0;
        let turned = format!(r#"{centre} transform="rotate(-90 18 {})""#, pixel(middle));
        self.canvas.words(18.0, middle, &turned, &self.map.y.caption());
    }

    fn legend(&mut self) {
        let left = self.left + self.width + 14.0;
        let mut y = TOP + 10.0;
        for (i, group) in self.map.groups.iter().enumerate() {
            self.canvas.marker(i, left + (SAMPLE - 6.0) / 2.0, y);
            self.canvas.words(left + SAMPLE, y + 4.0, "", &group.name);
            y += 20.0;
        }
        for lines in &self.map.lines {
            self.canvas.stroke((left, y), (left + SAMPLE - 6.0, y), lines.stroke.style());
            self.canvas.words(left + SAMPLE, y + 4.0, "", &lines.name);
            y += 20.0;
        }
    }
}

impl Stroke {
    fn style(self) -> &'static str {
        match self {
            Self::Strong => r##"stroke="#333333" stroke-width="1.4""##,
            Self::Faint => r##"stroke="#b4b4b4" stroke-width="0.9""##,
            Self::Dashed => r##"stroke="#d55e00" stroke-width="1.4" stroke-dasharray="6 3""##,
        }
    }
}
