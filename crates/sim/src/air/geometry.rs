//! Where stations are, and for each the list of those that hear it.

use std::collections::BTreeMap;

use super::error::ConfigError;
use super::propagation::{Propagate, Strength};
use super::{Station, StreamFactory};

/// A place in the plane, in metres.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Position {
    /// East of the origin.
    pub x: f64,
    /// North of the origin.
    pub y: f64,
}

impl Position {
    /// East and north of the origin.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    /// Metres to another place.
    pub fn distance(self, other: Self) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }
}

/// A station that hears another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hearer {
    /// Which.
    pub(crate) station: u32,
    /// What the signal is good for.
    pub(crate) marks: u8,
    /// Milliwatts; under a unit disk the inverse of the distance.
    pub(crate) power: f64,
}

impl Hearer {
    fn strength(&self) -> Strength {
        Strength { power: self.power, marks: self.marks }
    }
}

/// What one direction between two stations has carried. Only frames to one station count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkMetrics {
    /// Frames sent, each retry one more.
    pub sent: u64,
    /// Those acknowledged.
    pub acknowledged: u64,
    /// Those whose acknowledgement has not come.
    pub lost: u64,
}

/// What is known of one direction between two stations, apart from what each frame needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Probability of losing a frame, beside collisions and bit errors.
    pub(crate) loss: f64,
    /// The frame received last, of the sender's count; 0 before the first.
    pub(crate) last_serial: u32,
    pub(crate) metrics: LinkMetrics,
}

/// For each station those that hear it, by number; all in one list.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// Where the list of a station begins; one more than there are stations.
    starts: Vec<u32>,
    pub(crate) hearers: Vec<Hearer>,
    pub(crate) links: Vec<Link>,
}

impl Neighbours {
    /// Looks only at stations in the same or an adjoining cell of a grid, whose cells are as wide as anything is
    /// heard.
    pub(crate) fn new(
        propagation: &impl Propagate,
        positions: &[Position],
        stream: &StreamFactory<'_>,
    ) -> Result<Self, ConfigError> {
        let reach = propagation.reach();
        let cell = |p: Position| ((p.x / reach).floor() as i64, (p.y / reach).floor() as i64);
        let mut grid: BTreeMap<(i64, i64), Vec<u32>> = BTreeMap::new();
        for (i, &p) in (0..).zip(positions) {
            if !(p.x.abs() <= 1e7 && p.y.abs() <= 1e7) {
                return Err(ConfigError::Position(i));
            }
            grid.entry(cell(p)).or_default().push(i);
        }
        let loss = propagation.loss();
        let mut this = Self { starts: vec![0], hearers: Vec::new(), links: Vec::new() };
        let mut near: Vec<u32> = Vec::new();
        for (from, &p) in (0..).zip(positions) {
            let (x, y) = cell(p);
            near.clear();
            for column in x - 1..=x + 1 {
                let rows = grid.range((column, y - 1)..=(column, y + 1));
                near.extend(rows.flat_map(|(_, stations)| stations));
            }
            near.sort_unstable();
            for &station in near.iter().filter(|&&station| station != from) {
                // Both directions are alike. That of the first station is drawn, by a stream of its own.
                let strength = if from < station {
                    let shadowing = || stream(Station(from), &format!("shadowing {station}"));
                    propagation.signal(p.distance(positions[station as usize]), shadowing)
                } else {
                    this.find(station, from).map(|i| this.hearers[i].strength())
                };
                if let Some(Strength { power, marks }) = strength {
                    this.hearers.push(Hearer { station, marks, power });
                    this.links.push(Link { loss, last_serial: 0, metrics: LinkMetrics::default() });
                }
            }
            this.starts
                .push(u32::try_from(this.hearers.len()).expect("fewer than 2^32 pairs hear each other"));
        }
        this.hearers.shrink_to_fit();
        this.links.shrink_to_fit();
        Ok(this)
    }

    /// Number of stations.
    pub(crate) fn station_count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Where in the list those are that hear a station.
    #[inline]
    pub(crate) fn of(&self, station: u32) -> std::ops::Range<usize> {
        self.starts[station as usize] as usize..self.starts[station as usize + 1] as usize
    }

    /// Where in the list the direction from one station to another is; `None` if nothing is heard.
    pub(crate) fn find(&self, from: u32, to: u32) -> Option<usize> {
        let range = self.of(from);
        let found = self.hearers[range.clone()].binary_search_by_key(&to, |h| h.station).ok()?;
        Some(range.start + found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::propagation::{LogDistance, Propagation, UnitDisk};
    use super::*;
    use crate::random::Stream;

    fn scattered(n: usize, width: f64) -> Vec<Position> {
        let mut stream = Stream::new(6, 0, "test", "positions");
        (0..n).map(|_| Position::new(width * stream.uniform(), -width * stream.uniform())).collect()
    }

    fn streams(station: Station, purpose: &str) -> Stream {
        Stream::new(7, 0, &format!("radio {}", station.0), purpose)
    }

    #[test]
    fn the_grid_finds_whom_a_search_finds() {
        let positions = scattered(200, 1000.0);
        let propagation = Propagation::UnitDisk(UnitDisk::new(120.0));
        let found = Neighbours::new(&propagation, &positions, &streams).unwrap();
        for from in 0..200 {
            let near =
                |&to: &u32| to != from && positions[from as usize].distance(positions[to as usize]) <= 120.0;
            let expected: Vec<u32> = (0..200).filter(near).collect();
            let listed: Vec<u32> = found.hearers[found.of(from)].iter().map(|h| h.station).collect();
            assert_eq!(listed, expected, "of {from}");
        }
    }

    #[test]
    fn shadowing_is_the_same_both_ways_and_by_pair() {
        let positions = scattered(60, 300.0);
        let propagation = Propagation::LogDistance(LogDistance::default());
        let found = Neighbours::new(&propagation, &positions, &streams).unwrap();
        let fewer = Neighbours::new(&propagation, &positions[..59], &streams).unwrap();
        let power = |n: &Neighbours, a, b| n.find(a, b).map(|i| n.hearers[i].power);
        for a in 0..59 {
            for b in 0..59 {
                assert_eq!(power(&found, a, b), power(&found, b, a));
                assert_eq!(power(&found, a, b), power(&fewer, a, b), "one more station changes nothing");
            }
        }
    }

    #[test]
    fn nowhere_is_refused() {
        let propagation = Propagation::UnitDisk(UnitDisk::new(1.0));
        for x in [f64::NAN, f64::INFINITY, 2e7] {
            let positions = [Position::default(), Position::new(x, 0.0)];
            let error = Neighbours::new(&propagation, &positions, &streams).unwrap_err();
            assert_eq!(error, ConfigError::Position(1));
        }
    }
}
