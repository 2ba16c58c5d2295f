//! A replay as one animated SVG, for pages that run no scripts: packets move along the links of the
//! map, slowed down, again and again.
//!
//! The animation is SMIL, which browsers also play in an `<img>`. Each packet on a link is one
//! element with one `keyTimes` list over the whole length, so that all elements repeat together.

use std::fmt::Write;

use anabranch_wire::eventlog::{incident, packet as flag};

use crate::layout;
use crate::log::Medium;
use crate::page;
use crate::replay::{Fate, Flight, Replay, Seen};

/// Packets on links that a picture has at most: about 300 bytes each.
pub const MOST: usize = 4000;

/// Width in the SVG's own units.
const WIDTH: f64 = 880.0;
/// Room around the map, for names.
const MARGIN: f64 = 60.0;
/// Below the map: the clock and the bar.
const FOOT: f64 = 54.0;
/// How far each direction of a link keeps to its side.
const SIDE: f64 = 4.0;
/// Seconds that the picture stands still before it begins again, as a share of its length.
const REST: f64 = 0.08;

const STYLE: &str = "\
text{font:600 14px system-ui,sans-serif;fill:var(--ink);text-anchor:middle}\
.small{font-weight:400;font-size:13px;fill:var(--soft)}\
svg{--panel:#ffffff;--ink:#1d2733;--soft:#5d6b7a;--line:#b9c4cf;--data:#1769c4;--ack:#2e8b57;--again:#d97a00;\
--lost:#c62f2f;--node:#e8eef5}\
@media(prefers-color-scheme:dark){svg{--panel:#151b23;--ink:#e6edf3;--soft:#98a6b5;--line:#45525f;--data:#6cb1ff;\
--ack:#63c58d;--again:#ffb454;--lost:#ff7b72;--node:#26313d}}";

/// A replay as SVG that plays for `seconds` and repeats.
///
/// # Errors
/// The replay has more than [`MOST`] packets on links.
pub fn svg(replay: &Replay, seconds: f64) -> Result<String, String> {
    if replay.flights.len() > MOST {
        return Err(format!("{} packets on links, and a picture has at most {MOST}", replay.flights.len()));
    }
    let map = Map::of(replay);
    let clock = Clock::of(replay, seconds);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" \
         aria-label=\"{}: packets between {} nodes, {:.3} s slowed down {:.0} times\"><style>{STYLE}</style>\
         <rect width=\"{WIDTH}\" height=\"{}\" rx=\"12\" fill=\"var(--panel)\"/>",
        map.height,
        escape(&replay.run.name),
        replay.nodes.len(),
        clock.real(),
        seconds / clock.real().max(1e-9),
        map.height,
    );
    // Nodes that move are near each other at one time and far apart at another.
    let moves = |node: u32| replay.legs.iter().any(|leg| leg.node == node);
    let fixed = replay
        .links
        .iter()
        .filter(|link| link.over == Medium::Cable || (!moves(link.from) && !moves(link.to)));
    for link in fixed {
        let ((x0, y0), (x1, y1)) = (map.places[link.from as usize], map.places[link.to as usize]);
        let _ = write!(
            text,
            "<path d=\"M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}\" stroke=\"var(--line)\" stroke-width=\"2\"/>"
        );
    }
    for flight in replay.flights.iter().filter(|flight| flight.end >= replay.start) {
        packet(&mut text, replay, &map, &clock, flight);
    }
    for (node, &(x, y)) in replay.nodes.iter().zip(&map.places) {
        // The shapes of the page: a square is a gateway, a triangle a host, a diamond a router.
        let outline = match node.kind.as_str() {
            "gateway" => "m-10 -10h20v20h-20z",
            "host" => "m0 -13l12 22h-24z",
            "router" => "m0 -13l13 13l-13 13l-13 -13z",
            _ => "m-11 0a11 11 0 1 0 22 0a11 11 0 1 0 -22 0",
        };
        let _ = write!(
            text,
            "<path d=\"M{x:.1} {y:.1}{outline}\" fill=\"var(--node)\" stroke=\"var(--ink)\" stroke-width=\"1.5\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            y + 30.0,
            escape(&node.name),
        );
    }
    for change in replay.changes.iter().filter(|change| change.what == incident::NODE_DOWN) {
        let back = replay
            .changes
            .iter()
            .find(|back| (back.what, back.index) == (incident::NODE_UP, change.index) && back.at > change.at);
        let (x, y) = map.places[change.index as usize];
        let until = back.map_or(1.0, |back| clock.share(back.at));
        cross(&mut text, (x, y), 9.0, &clock, [clock.share(change.at), until]);
    }
    foot(&mut text, &map, &clock);
    Ok(text + "</svg>\n")
}

/// Where nodes are, in the SVG's units.
struct Map {
    places: Vec<(f64, f64)>,
    height: f64,
}

impl Map {
    fn of(replay: &Replay) -> Self {
        let said = layout::places(replay);
        let bounds = |of: fn(&(f64, f64)) -> f64| {
            let values = said.iter().map(of);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
        };
        let ((left, right), (bottom, top)) = (bounds(|p| p.0), bounds(|p| p.1));
        let (wide, high) = ((right - left).max(1e-9), (top - bottom).max(1e-9));
        let across = (WIDTH - 2.0 * MARGIN) / wide;
        // A row of nodes needs little room, and no map is higher than wide.
        let room = (high * across).clamp(if top > bottom { 160.0 } else { 0.0 }, WIDTH * 0.45);
        let place = |&(x, y): &(f64, f64)| (MARGIN + (x - left) * across, MARGIN + (top - y) / high * room);
        Self { places: said.iter().map(place).collect(), height: 2.0 * MARGIN + room + FOOT }
    }
}

/// From the run's nanoseconds to shares of the animation.
struct Clock {
    start: u64,
    end: u64,
    /// Length of the animation in seconds.
    seconds: f64,
}

impl Clock {
    fn of(replay: &Replay, seconds: f64) -> Self {
        // Timers keep a run going when there is nothing to see any more.
        let end = replay.flights.iter().map(|flight| flight.end).max().unwrap_or(replay.end);
        Self { start: replay.start, end: end.max(replay.start + 1), seconds }
    }

    /// Seconds of the run.
    fn real(&self) -> f64 {
        (self.end - self.start) as f64 / 1e9
    }

    /// Share of the animation at a time of the run, of which the rest at the end is no part.
    fn share(&self, at: u64) -> f64 {
        let share = at.saturating_sub(self.start) as f64 / (self.end - self.start) as f64;
        share.min(1.0) * (1.0 - REST)
    }
}

/// Which kind a packet is, as the page has them.
fn colour(seen: &Seen) -> &'static str {
    let packet = &seen.packet;
    if seen.again || (packet.maker.is_some() && packet.piece.is_none()) {
        "again"
    } else if packet.flags & flag::TCP == 0 || packet.len > 0 {
        "data"
    } else {
        "ack"
    }
}

fn packet(text: &mut String, replay: &Replay, map: &Map, clock: &Clock, flight: &Flight) {
    let link = &replay.links[flight.link as usize];
    let ((x0, y0), (x1, y1)) = (map.places[link.from as usize], map.places[link.to as usize]);
    let (dx, dy) = (x1 - x0, y1 - y0);
    let length = dx.hypot(dy).max(1e-9);
    // Each direction keeps to its side.
    let (x0, y0) = (x0 - dy / length * SIDE, y0 + dx / length * SIDE);
    let (leaves, end) = (clock.share(flight.leaves.min(flight.end)), clock.share(flight.end));
    let seen = &replay.packets[flight.packet as usize];
    // A packet that is lost is lost on the way: half of it is drawn, then the cross.
    let reach = if matches!(flight.fate, Fate::Lost(_)) { 0.5 } else { 1.0 };
    if end > leaves {
        let r = if seen.packet.len > 0 { 4.5 } else { 3.0 };
        let _ = write!(
            text,
            "<circle r=\"{r}\" fill=\"var(--{})\" opacity=\"0\"><animateMotion path=\"M{x0:.1} {y0:.1}l{:.1} {:.1}\" \
             keyPoints=\"0;0;{reach};{reach}\" keyTimes=\"0;{leaves:.4};{end:.4};1\" calcMode=\"linear\" {}/>{}</circle>",
            colour(seen),
            dx,
            dy,
            repeat(clock),
            shown(clock, [leaves, end]),
        );
    }
    if let Fate::Lost(_) = flight.fate {
        let at = (x0 + dx * reach, y0 + dy * reach);
        cross(text, at, 5.0, clock, [end, (end + 0.03).min(1.0)]);
    }
}

/// A cross that is there between two shares of the animation.
fn cross(text: &mut String, (x, y): (f64, f64), r: f64, clock: &Clock, [from, until]: [f64; 2]) {
    let d = 2.0 * r;
    let _ = write!(
        text,
        "<path d=\"M{:.1} {:.1}l{d} {d}m0 -{d}l-{d} {d}\" stroke=\"var(--lost)\" stroke-width=\"3\" opacity=\"0\">{}</path>",
        x - r,
        y - r,
        shown(clock, [from, until]),
    );
}

/// The animation that shows an element between two shares.
fn shown(clock: &Clock, [from, until]: [f64; 2]) -> String {
    format!(
        "<animate attributeName=\"opacity\" values=\"0;1;0\" keyTimes=\"0;{from:.4};{until:.4}\" calcMode=\"discrete\" {}/>",
        repeat(clock)
    )
}

fn repeat(clock: &Clock) -> String {
    format!("dur=\"{}s\" repeatCount=\"indefinite\"", clock.seconds)
}

/// Legend, clock and bar.
fn foot(text: &mut String, map: &Map, clock: &Clock) {
    let y = map.height - 22.0;
    let mut x = MARGIN;
    for (name, colour) in
        [("data", "data"), ("acknowledgement", "ack"), ("sent again", "again"), ("lost or failed", "lost")]
    {
        let _ = write!(
            text,
            "<circle cx=\"{x}\" cy=\"{:.1}\" r=\"4.5\" fill=\"var(--{colour})\"/>\
             <text class=\"small\" x=\"{}\" y=\"{y:.1}\" style=\"text-anchor:start\">{name}</text>",
            y - 4.5,
            x + 10.0,
        );
        x += 34.0 + 7.8 * name.len() as f64;
    }
    let (left, right) = (x + 10.0, WIDTH - MARGIN - 60.0);
    let _ = write!(
        text,
        "<rect x=\"{left}\" y=\"{0:.1}\" width=\"{1:.1}\" height=\"5\" rx=\"2.5\" fill=\"var(--line)\"/>\
         <rect x=\"{left}\" y=\"{0:.1}\" width=\"0\" height=\"5\" rx=\"2.5\" fill=\"var(--data)\">\
         <animate attributeName=\"width\" values=\"0;{1:.1};{1:.1}\" keyTimes=\"0;{2};1\" {3}/></rect>\
         <text class=\"small\" x=\"{4:.1}\" y=\"{y:.1}\" style=\"text-anchor:start\">{5:.2} s</text>",
        y - 7.0,
        right - left,
        1.0 - REST,
        repeat(clock),
        right + 10.0,
        clock.real(),
    );
}

fn escape(text: &str) -> String {
    // XML 1.0 has no way to write control characters.
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    page::escape(&text).replace('"', "&quot;")
}
