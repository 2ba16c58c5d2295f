//! Movement files of ns-2, as written by `setdest` and BonnMotion.
//!
//! ```text
//! $node_(0) set X_ 83.36
//! $node_(0) set Y_ 239.43
//! $ns_ at 2.0 "$node_(0) setdest 90.44 44.89 1.37"
//! ```
//!
//! A node moves straight to the destination, at the speed in metres per second, and stays there. A
//! later line moves it on from its position at that time. A speed of 0 stops it. Lines of `$god_`
//! and comments are ignored.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_core::time::{Duration, Instant};

use super::Leg;
use crate::air::position::Position;

/// The legs of all nodes of a file, by node number.
pub type Traces = BTreeMap<u32, Arc<[Leg]>>;

/// An error in a file, with its position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct TraceError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the error.
    pub message: String,
    /// Hint for the user.
    pub hint: Option<&'static str>,
}

/// The statements of a file about one node.
#[derive(Default)]
struct Said {
    /// Line of the first statement.
    line: usize,
    x: Option<f64>,
    y: Option<f64>,
    /// Time, destination and speed, in the order of the file.
    ways: Vec<(Instant, Position, f64)>,
}

/// Reads a file.
///
/// # Errors
///
/// The first line that is not one of these, has an invalid number, or is about a node without a
/// position.
pub fn read(text: &str) -> Result<Traces, TraceError> {
    let mut nodes: BTreeMap<u32, Said> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let fault = |(message, hint)| TraceError { line: number, message, hint };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("$god_") {
            continue;
        }
        let Some((node, said)) = statement(line).map_err(fault)? else { continue };
        let of = nodes.entry(node).or_insert_with(|| Said { line: number, ..Said::default() });
        match said {
            Statement::X(x) => of.x = Some(x),
            Statement::Y(y) => of.y = Some(y),
            Statement::Way(at, to, speed) => of.ways.push((at, to, speed)),
        }
    }
    nodes.into_iter().map(|(node, said)| Ok((node, said.legs(node)?.into()))).collect()
}

/// A statement about a node.
enum Statement {
    X(f64),
    Y(f64),
    Way(Instant, Position, f64),
}

type Fault = (String, Option<&'static str>);

/// The statement of a line and its node; `None` if the line is ignored.
fn statement(line: &str) -> Result<Option<(u32, Statement)>, Fault> {
    let hint = Some("expected `$node_(3) set X_ 12.0` or `$ns_ at 2.0 \"$node_(3) setdest 90.0 44.9 1.37\"`");
    let unknown = || (format!("`{}` is no movement", shortened(line)), hint);
    let plain = line.replace('"', " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    match *words {
        [name, "set", axis @ ("X_" | "Y_" | "Z_"), value] => {
            let (node, value) = (node_of(name).ok_or_else(unknown)?, number(value)?);
            match axis {
                "X_" => Ok(Some((node, Statement::X(on_map(value)?)))),
                "Y_" => Ok(Some((node, Statement::Y(on_map(value)?)))),
                _ if value == 0.0 => Ok(None),
                _ => Err((
                    format!("a height of {value} m"),
                    Some("nodes move in a plane: remove the line, or set 0"),
                )),
            }
        }
        ["$ns_", "at", _, god, ..] if god.starts_with("$god_") => Ok(None),
        ["$ns_", "at", at, name, "setdest", x, y, speed] => {
            let node = node_of(name).ok_or_else(unknown)?;
            let (at, speed) = (number(at)?, number(speed)?);
            if !(0.0..=1e9).contains(&at) {
                return Err((format!("{at} s is no time of a run"), Some("times are seconds from 0 on")));
            }
            if speed < 0.0 {
                return Err((
                    format!("a speed of {speed} m/s"),
                    Some("speeds are 0, which stops a node, and more"),
                ));
            }
            let to = Position::new(on_map(number(x)?)?, on_map(number(y)?)?);
            let at = Instant::ZERO + Duration::from_secs_f64(at);
            Ok(Some((node, Statement::Way(at, to, speed))))
        }
        _ => Err(unknown()),
    }
}

/// The number in `$node_(3)`.
fn node_of(name: &str) -> Option<u32> {
    name.strip_prefix("$node_(")?.strip_suffix(')')?.trim().parse().ok()
}

fn number(text: &str) -> Result<f64, Fault> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| (format!("`{text}` is not a number"), None))
}

fn on_map(metres: f64) -> Result<f64, Fault> {
    if metres.abs() <= 1e7 {
        return Ok(metres);
    }
    Err((format!("{metres} m is farther than 10,000 km from the origin"), None))
}

fn shortened(line: &str) -> String {
    let mut start: String = line.chars().take(60).collect();
    if start.len() < line.len() {
        start.push_str("...");
    }
    start
}

impl Said {
    fn legs(mut self, node: u32) -> Result<Vec<Leg>, TraceError> {
        let (Some(x), Some(y)) = (self.x, self.y) else {
            return Err(TraceError {
                line: self.line,
                message: format!("`$node_({node})` has no place to start from"),
                hint: Some("add `$node_(N) set X_ ...` and `$node_(N) set Y_ ...`"),
            });
        };
        // Of several lines with the same time the last one applies, as in ns-2.
        self.ways.sort_by_key(|(at, ..)| *at);
        let start = Position::new(x, y);
        let mut legs = vec![Leg::rest(start, Instant::ZERO, Instant::ZERO)];
        for (at, to, speed) in self.ways {
            let last = legs.last_mut().expect("there is a first one");
            let from = last.place(at);
            if at < last.end {
                (last.end, last.to) = (at, from);
            }
            let leg = match speed > 0.0 {
                true => Leg::at_speed(from, to, at, speed),
                false => Leg::rest(from, at, at),
            };
            legs.push(leg);
        }
        Ok(legs)
    }
}

/// Writes the legs of movers up to a time, with nodes numbered from 0 in order. Reading the file
/// gives the same legs within a millimetre and a microsecond.
pub fn write(movers: &mut [super::Mover], until: Instant) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for (node, mover) in movers.iter_mut().enumerate() {
        let mut leg = mover.leg_at(Instant::ZERO);
        let Position { x, y } = leg.place(Instant::ZERO);
        let _ = writeln!(
            text,
            "$node_({node}) set X_ {x:.6}\n$node_({node}) set Y_ {y:.6}\n$node_({node}) set Z_ 0.0"
        );
        loop {
            if leg.from != leg.to && leg.end > leg.begin {
                let (at, Position { x, y }) = (leg.begin.as_secs_f64(), leg.to);
                let speed = leg.speed();
                let _ = writeln!(text, "$ns_ at {at:.9} \"$node_({node}) setdest {x:.6} {y:.6} {speed:.9}\"");
            }
            if leg.end >= until {
                break;
            }
            let next = mover.leg_at(leg.end);
            if next == leg {
                break;
            }
            leg = next;
        }
    }
    text
}
