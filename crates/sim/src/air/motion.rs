//! Motion of stations: consecutive legs at a constant speed.
//!
//! A [`Motion`] is the description, a [`Mover`] one station that follows it from time zero. A mover
//! is asked for its position at times that do not decrease. It draws its legs one after another
//! from its own stream, so its position does not depend on how often it is asked.
//!
//! Sources: Camp, Boleng, Davies, "A survey of mobility models for ad hoc network research" (2002),
//! for random waypoint, and for Gauss-Markov with its edges; Liang, Haas, "Predictive
//! distance-based mobility management for PCS networks" (1999); Navidi, Camp, "Stationary
//! distributions for the random waypoint mobility model" (2004), for the start. [`trace`] reads the
//! output of ns-2's `setdest`.

pub mod trace;

use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use anabranch_core::time::{Duration, Instant};

use super::position::Position;
use crate::math::{exp, ln, sin_cos};
use crate::random::Stream;

/// A rectangle, in metres, with sides longer than 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Area {
    /// South-west corner.
    pub corner: Position,
    /// Extent from west to east.
    pub width: f64,
    /// Extent from south to north.
    pub height: f64,
}

/// Motion of a station.
#[derive(Clone, PartialEq, Debug)]
pub enum Motion {
    /// Moves to a uniformly random point of a rectangle, pauses, and moves to the next.
    RandomWaypoint(RandomWaypoint),
    /// Speed and direction change gradually from step to step.
    GaussMarkov(GaussMarkov),
    /// Legs from a file, in order of time.
    Trace(Arc<[Leg]>),
}

/// Random waypoint model. The speed of each leg is drawn from a uniform distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RandomWaypoint {
    /// Rectangle of the motion.
    pub area: Area,
    /// Lowest speed in m/s, at least 0 and at most `fastest`. With 0 there is no stationary
    /// distribution: the mean speed falls as the run goes on (Yoon, Liu, Noble, "Random waypoint
    /// considered harmful", 2003).
    pub slowest: f64,
    /// Highest speed in m/s, more than 0.
    pub fastest: f64,
    /// Pause at each point.
    pub pause: Duration,
}

/// Gauss-Markov model. Speed and direction are autoregressive: with memory a, mean m and deviation
/// s, the next value is a times the present one, plus (1 - a) m, plus the square root of 1 - a^2
/// times s times a normal deviate.
///
/// Within a tenth of the shorter side from an edge, the mean direction turns away from the edge. A
/// step that would lead out of the rectangle is mirrored.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GaussMarkov {
    /// Rectangle of the motion.
    pub area: Area,
    /// Mean speed in m/s, more than 0.
    pub speed: f64,
    /// Standard deviation of the speed in m/s. A negative speed moves backwards.
    pub deviation: f64,
    /// Standard deviation of the direction in radians.
    pub turn: f64,
    /// Memory: from 0, a random walk, to 1, straight on for ever.
    pub memory: f64,
    /// Time between two steps, more than 0.
    pub interval: Duration,
}

/// Motion between two positions at a constant speed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Leg {
    /// Start time.
    pub begin: Instant,
    /// End time; not before the start.
    pub end: Instant,
    /// Position at the start.
    pub from: Position,
    /// Position at the end.
    pub to: Position,
}

/// A moving station.
#[derive(Clone, PartialEq, Debug)]
pub struct Mover {
    leg: Leg,
    course: Course,
}

#[derive(Clone, PartialEq, Debug)]
enum Course {
    RandomWaypoint { plan: RandomWaypoint, moving: bool, random: Stream },
    GaussMarkov { plan: GaussMarkov, speed: f64, direction: f64, mean: f64, random: Stream },
    Trace { legs: Arc<[Leg]>, next: usize },
}

impl Leg {
    /// A leg without motion until `end`.
    pub(super) fn rest(at: Position, begin: Instant, end: Instant) -> Self {
        Self { begin, end, from: at, to: at }
    }

    /// A leg at `speed` metres per second, more than 0.
    pub(super) fn at_speed(from: Position, to: Position, begin: Instant, speed: f64) -> Self {
        let time = Duration::from_secs_f64(from.distance(to) / speed);
        Self { begin, end: begin + time, from, to }
    }

    /// Position on the leg at a time.
    pub fn place(&self, now: Instant) -> Position {
        if now >= self.end {
            return self.to;
        }
        let whole = self.end.saturating_since(self.begin).as_secs_f64();
        let share = now.saturating_since(self.begin).as_secs_f64() / whole;
        let part = |from: f64, to: f64| from + (to - from) * share;
        Position::new(part(self.from.x, self.to.x), part(self.from.y, self.to.y))
    }

    /// Speed in metres per second.
    pub fn speed(&self) -> f64 {
        let time = self.end.saturating_since(self.begin).as_secs_f64();
        if time == 0.0 { 0.0 } else { self.from.distance(self.to) / time }
    }
}

impl Mover {
    /// A station that starts at `start`, or otherwise where its motion begins: for models in the
    /// stationary distribution, so that all parts of a run are alike; for a trace at its first
    /// position.
    pub fn new(motion: &Motion, start: Option<Position>, mut random: Stream) -> Self {
        match motion {
            Motion::RandomWaypoint(plan) => {
                let (leg, moving) = match start {
                    Some(at) => (plan.way(at, Instant::ZERO, &mut random), true),
                    None => plan.stationary(&mut random),
                };
                Self { leg, course: Course::RandomWaypoint { plan: *plan, moving, random } }
            }
            Motion::GaussMarkov(plan) => {
                let at = start.unwrap_or_else(|| plan.area.draw(&mut random));
                let mean = TAU * random.uniform();
                let speed = plan.speed + plan.deviation * random.normal();
                let direction = mean + plan.turn * random.normal();
                let mut walk = Walk { speed, direction, mean };
                let leg = plan.step(at, Instant::ZERO, &mut walk);
                let Walk { speed, direction, mean } = walk;
                Self { leg, course: Course::GaussMarkov { plan: *plan, speed, direction, mean, random } }
            }
            Motion::Trace(legs) => {
                let leg = legs.first().copied();
                let nowhere = Leg::rest(start.unwrap_or_default(), Instant::ZERO, Instant::FAR_FUTURE);
                let course = Course::Trace { legs: legs.clone(), next: 1 };
                Self { leg: leg.unwrap_or(nowhere), course }
            }
        }
    }

    /// Current position; `now` must not decrease from call to call.
    pub fn place(&mut self, now: Instant) -> Position {
        self.leg_at(now).place(now)
    }

    /// Current leg.
    pub fn leg_at(&mut self, now: Instant) -> Leg {
        while self.leg.end <= now && self.advance() {}
        self.leg
    }

    /// Begins the next leg; returns false if there is none.
    fn advance(&mut self) -> bool {
        let (at, now) = (self.leg.to, self.leg.end);
        match &mut self.course {
            Course::RandomWaypoint { plan, moving, random } => {
                *moving = !*moving;
                self.leg = match *moving {
                    true => plan.way(at, now, random),
                    false => Leg::rest(at, now, now + plan.pause),
                };
            }
            Course::GaussMarkov { plan, speed, direction, mean, random } => {
                let mut walk = Walk { speed: *speed, direction: *direction, mean: *mean };
                plan.turn_from_edges(at, &mut walk);
                plan.draw(&mut walk, random);
                self.leg = plan.step(at, now, &mut walk);
                (*speed, *direction, *mean) = (walk.speed, walk.direction, walk.mean);
            }
            Course::Trace { legs, next } => {
                let Some(leg) = legs.get(*next) else { return false };
                // Rests until the next leg of the file.
                if self.leg.end < leg.begin {
                    self.leg = Leg::rest(at, now, leg.begin);
                    return true;
                }
                self.leg = *leg;
                *next += 1;
            }
        }
        now < Instant::FAR_FUTURE
    }
}

impl Area {
    /// Draws a uniformly distributed position.
    pub fn draw(&self, random: &mut Stream) -> Position {
        let x = self.corner.x + self.width * random.uniform();
        Position::new(x, self.corner.y + self.height * random.uniform())
    }

    /// Mean distance of two uniformly distributed positions (Ghosh, "Random distances within a
    /// rectangle and between two rectangles", 1951).
    pub fn mean_distance(&self) -> f64 {
        let (a, b) = (self.width, self.height);
        let d = (a * a + b * b).sqrt();
        let arcosh = |x: f64| ln(x + (x * x - 1.0).max(0.0).sqrt());
        let (long, high) = (a * a / (b * b), b * b / (a * a));
        (a * long + b * high + d * (3.0 - long - high)) / 15.0
            + (b * b / a * arcosh(d / b) + a * a / b * arcosh(d / a)) / 6.0
    }
}

impl RandomWaypoint {
    fn way(&self, from: Position, begin: Instant, random: &mut Stream) -> Leg {
        let to = self.area.draw(random);
        // Never exactly the lowest speed, which may be 0.
        let speed = self.fastest - (self.fastest - self.slowest) * random.uniform();
        Leg::at_speed(from, to, begin, speed)
    }

    /// Mean time for one metre, in seconds. Infinite if the lowest speed is 0.
    fn mean_slowness(&self) -> f64 {
        match self.fastest - self.slowest {
            0.0 => 1.0 / self.slowest,
            range => ln(self.fastest / self.slowest) / range,
        }
    }

    /// Probability that a station is pausing at a given time (Navidi and Camp, section 4).
    pub fn pauses(&self) -> f64 {
        let (pause, way) = (self.pause.as_secs_f64(), self.area.mean_distance() * self.mean_slowness());
        pause / (pause + way)
    }

    /// A leg in the stationary distribution, and whether the station moves on it.
    fn stationary(&self, random: &mut Stream) -> (Leg, bool) {
        if random.bernoulli(self.pauses()) {
            let at = self.area.draw(random);
            let left = Duration::from_secs_f64(self.pause.as_secs_f64() * random.uniform());
            return (Leg::rest(at, Instant::ZERO, Instant::ZERO + left), false);
        }
        // Legs are met in proportion to their length, and speeds in inverse proportion to their
        // value.
        let longest = Position::new(self.area.width, self.area.height).distance(Position::default());
        let (from, to) = loop {
            let (from, to) = (self.area.draw(random), self.area.draw(random));
            if random.uniform() * longest < from.distance(to) {
                break (from, to);
            }
        };
        let share = random.uniform();
        let at = Position::new(from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share);
        let speed = self.slowest * exp(random.uniform() * ln(self.fastest / self.slowest));
        (Leg::at_speed(at, to, Instant::ZERO, speed), true)
    }
}

/// Speed in m/s, direction and mean direction in radians.
struct Walk {
    speed: f64,
    direction: f64,
    mean: f64,
}

impl GaussMarkov {
    /// Draws the next speed and direction.
    fn draw(&self, walk: &mut Walk, random: &mut Stream) {
        let (stays, new) = (self.memory, 1.0 - self.memory);
        let swing = (1.0 - self.memory * self.memory).sqrt();
        walk.speed = stays * walk.speed + new * self.speed + swing * self.deviation * random.normal();
        // Directions repeat after a full turn: the nearest equivalent of the mean is used.
        let mean = walk.mean + TAU * ((walk.direction - walk.mean) / TAU).round();
        walk.direction = stays * walk.direction + new * mean + swing * self.turn * random.normal();
        walk.direction -= TAU * (walk.direction / TAU).round();
    }

    /// Makes one step; a step that would lead out of the rectangle is mirrored.
    fn step(&self, from: Position, begin: Instant, walk: &mut Walk) -> Leg {
        let far = walk.speed * self.interval.as_secs_f64();
        let (sine, cosine) = sin_cos(walk.direction);
        let within = |at: f64, by: f64, least: f64, size: f64| (least..=least + size).contains(&(at + by));
        let Area { corner, width, height } = self.area;
        let (mut east, mut north) = (far * cosine, far * sine);
        if !within(from.x, east, corner.x, width) {
            (east, walk.direction) = (-east, PI - walk.direction);
        }
        if !within(from.y, north, corner.y, height) {
            (north, walk.direction) = (-north, -walk.direction);
        }
        // A step may be longer than the rectangle, and a station may start outside.
        let to = Position::new(
            (from.x + east).clamp(corner.x, corner.x + width),
            (from.y + north).clamp(corner.y, corner.y + height),
        );
        Leg { begin, end: begin + self.interval, from, to }
    }

    /// Near an edge, sets the mean direction to the one that leads away from it (Camp, Boleng and
    /// Davies, Figure 6).
    fn turn_from_edges(&self, at: Position, walk: &mut Walk) {
        let Area { corner, width, height } = self.area;
        let margin = width.min(height) / 10.0;
        let away = |at: f64, least: f64, size: f64| {
            i32::from(at < least + margin) - i32::from(at > least + size - margin)
        };
        walk.mean = match (away(at.x, corner.x, width), away(at.y, corner.y, height)) {
            (0, 0) => walk.mean,
            (1, 0) => 0.0,
            (1, 1) => PI / 4.0,
            (0, 1) => PI / 2.0,
            (-1, 1) => 3.0 * PI / 4.0,
            (-1, 0) => PI,
            (-1, _) => 5.0 * PI / 4.0,
            (0, _) => 3.0 * PI / 2.0,
            (..) => 7.0 * PI / 4.0,
        };
    }
}

#[cfg(test)]
mod tests;
