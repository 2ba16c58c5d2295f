//! Positions of stations, and for each station the list of those that hear it.
//!
//! If all stations are stationary, the lists are made once. If some move, the list of a station has
//! all other stations; those that do not hear it have no marks. The list is updated from the exact
//! positions when the station begins to send, and stays unchanged until the end of the frame: in
//! the 12 ms of the longest frame at 1 Mbit/s, a station at 20 m/s moves 0.25 m.

use std::collections::BTreeMap;

use anabranch_core::time::Instant;

use super::error::ConfigError;
use super::motion::Mover;
pub use super::position::Position;
use super::propagation::{DECODABLE, Propagate, Strength};
use super::{Station, StreamFactory};

/// A station that hears another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hearer {
    /// Index of the station.
    pub(crate) station: u32,
    /// Effects of the signal at this station.
    pub(crate) marks: u8,
    /// Milliwatts; for a unit disk the inverse of the distance.
    pub(crate) power: f64,
}

impl Hearer {
    fn strength(&self) -> Strength {
        Strength { power: self.power, marks: self.marks }
    }
}

/// Counters of one direction between two stations. Only unicast frames count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkMetrics {
    /// Transmissions, including retransmissions.
    pub sent: u64,
    /// Acknowledged transmissions.
    pub acknowledged: u64,
    /// Transmissions whose acknowledgement did not arrive.
    pub lost: u64,
}

/// State of one direction between two stations that is not needed for every frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Loss probability besides collisions and bit errors.
    pub(crate) loss: f64,
    /// Number of the frame received last, in the sender's count; 0 before the first.
    pub(crate) last_serial: u32,
    pub(crate) metrics: LinkMetrics,
}

/// The hearers of each station, sorted by number; all in one list.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// Index of the first hearer of each station; the last entry is the number of hearers.
    starts: Vec<u32>,
    pub(crate) hearers: Vec<Hearer>,
    pub(crate) links: Vec<Link>,
    moving: Option<Box<Moving>>,
}

/// State to update the hearers of a station.
#[derive(Debug)]
struct Moving {
    propagation: Box<dyn Propagate>,
    /// Positions of the stations; of moving stations at the time `located`.
    positions: Vec<Position>,
    /// The moving stations, in order.
    movers: Vec<(u32, Mover)>,
    /// By station: whether it moves.
    moves: Vec<bool>,
    /// Normal deviates of the shadowing. That of a pair is in the row of its lower station; empty
    /// without shadowing.
    deviates: Vec<Vec<f64>>,
    located: Instant,
}

impl Moving {
    /// Updates all positions.
    fn locate(&mut self, now: Instant) {
        if now != self.located {
            self.located = now;
            for (station, mover) in &mut self.movers {
                self.positions[*station as usize] = mover.place(now);
            }
        }
    }

    /// Signal of one station at another now.
    fn signal(&self, from: u32, to: u32) -> Option<Strength> {
        let distance = self.positions[from as usize].distance(self.positions[to as usize]);
        let (low, high) = (from.min(to) as usize, from.max(to) as usize);
        self.propagation.signal(distance, &mut || self.deviates[low][high - low - 1])
    }
}

impl Neighbours {
    /// Visits only stations in the same or an adjacent cell of a grid with cells as wide as the
    /// range of signals.
    pub(crate) fn new(
        propagation: &impl Propagate,
        positions: &[Position],
        stream: &StreamFactory<'_>,
    ) -> Result<Self, ConfigError> {
        let reach = propagation.reach();
        let cell = |p: Position| ((p.x / reach).floor() as i64, (p.y / reach).floor() as i64);
        let mut grid: BTreeMap<(i64, i64), Vec<u32>> = BTreeMap::new();
        for (i, &p) in (0..).zip(positions) {
            on_map(i, p)?;
            grid.entry(cell(p)).or_default().push(i);
        }
        let loss = propagation.loss();
        let mut this = Self { starts: vec![0], hearers: Vec::new(), links: Vec::new(), moving: None };
        let mut near: Vec<u32> = Vec::new();
        for (from, &p) in (0..).zip(positions) {
            let (x, y) = cell(p);
            near.clear();
            for column in x - 1..=x + 1 {
                let rows = grid.range((column, y - 1)..=(column, y + 1));
                near.extend(rows.flat_map(|(_, stations)| stations));
            }
            // Ascending order: `find` searches the list, and the lower station of a pair comes
            // first.
            near.sort_unstable();
            for &station in near.iter().filter(|&&station| station != from) {
                // Both directions are equal. The lower station's is drawn, from its own stream.
                let strength = if from < station {
                    let mut shadowing = || deviate(stream, from, station);
                    propagation.signal(p.distance(positions[station as usize]), &mut shadowing)
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

    /// Stations of which some move: those with a mover, from its start.
    pub(crate) fn moving(
        propagation: impl Propagate + 'static,
        positions: &[Position],
        movers: Vec<(Station, Mover)>,
        stream: &StreamFactory<'_>,
    ) -> Result<Self, ConfigError> {
        let count = positions.len() as u32;
        let (mut positions, mut moves) = (positions.to_vec(), vec![false; positions.len()]);
        let mut movers: Vec<(u32, Mover)> = movers.into_iter().map(|(s, mover)| (s.0, mover)).collect();
        movers.sort_by_key(|(station, _)| *station);
        for (station, mover) in &mut movers {
            positions[*station as usize] = mover.place(Instant::ZERO);
            moves[*station as usize] = true;
        }
        (0..).zip(&positions).try_for_each(|(i, &p)| on_map(i, p))?;
        let row = |low: u32| (low + 1..count).map(|high| deviate(stream, low, high)).collect();
        let deviates = if propagation.is_shadowed() { (0..count).map(row).collect() } else { Vec::new() };
        let link = Link { loss: propagation.loss(), last_serial: 0, metrics: LinkMetrics::default() };
        let others = |from: u32| (0..count).filter(move |to| *to != from);
        // Every pair has an entry, since a moving station may come within range of any other.
        let hearers: Vec<Hearer> =
            (0..count).flat_map(others).map(|station| Hearer { station, marks: 0, power: 0.0 }).collect();
        let moving = Moving {
            propagation: Box::new(propagation),
            positions,
            movers,
            moves,
            deviates,
            located: Instant::ZERO,
        };
        let mut this = Self {
            starts: (0..=count).map(|i| i * count.saturating_sub(1)).collect(),
            links: vec![link; hearers.len()],
            hearers,
            moving: Some(Box::new(moving)),
        };
        (0..count).for_each(|from| this.hear(from, true));
        Ok(this)
    }

    /// Updates the hearers of a station that begins to send. They are valid until it begins again.
    #[inline]
    pub(crate) fn locate(&mut self, now: Instant, from: u32) {
        if let Some(moving) = &mut self.moving {
            moving.locate(now);
            self.hear(from, false);
        }
    }

    /// Updates the hearers of a station from the current positions. Pairs of stationary stations
    /// are computed only the first time.
    #[cold]
    fn hear(&mut self, from: u32, first: bool) {
        let range = self.of(from);
        let Some(moving) = &self.moving else { return };
        let all = first || moving.moves[from as usize];
        for hearer in &mut self.hearers[range] {
            if all || moving.moves[hearer.station as usize] {
                let heard = moving.signal(from, hearer.station);
                (hearer.marks, hearer.power) = heard.map_or((0, 0.0), |heard| (heard.marks, heard.power));
            }
        }
    }

    /// The stations that can receive from a station, now or, if one of the two moves, at some time.
    pub(crate) fn reachable(&self, from: u32) -> impl Iterator<Item = Station> {
        let moves = move |station: u32| {
            self.moving.as_ref().is_some_and(|m| m.moves[from as usize] || m.moves[station as usize])
        };
        let hearers = self.hearers[self.of(from)].iter();
        hearers.filter(move |h| h.marks & DECODABLE != 0 || moves(h.station)).map(|h| Station(h.station))
    }

    /// Position of a station, if any moves; `now` must not decrease from call to call.
    #[cfg(test)]
    pub(crate) fn place(&mut self, now: Instant, station: u32) -> Option<Position> {
        let moving = self.moving.as_mut()?;
        moving.locate(now);
        Some(moving.positions[station as usize])
    }

    /// Number of stations.
    pub(crate) fn station_count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Range of a station's hearers in the list.
    #[inline]
    pub(crate) fn of(&self, station: u32) -> std::ops::Range<usize> {
        self.starts[station as usize] as usize..self.starts[station as usize + 1] as usize
    }

    /// Index of the direction from one station to another in the list; `None` if nothing is heard.
    pub(crate) fn find(&self, from: u32, to: u32) -> Option<usize> {
        let range = self.of(from);
        let found = self.hearers[range.clone()].binary_search_by_key(&to, |h| h.station).ok()?;
        Some(range.start + found)
    }
}

/// Checks that a position is in range.
fn on_map(station: u32, Position { x, y }: Position) -> Result<(), ConfigError> {
    match x.abs() <= 1e7 && y.abs() <= 1e7 {
        true => Ok(()),
        false => Err(ConfigError::Position(station)),
    }
}

/// The shadowing deviate of a pair, from the stream of its lower station.
fn deviate(stream: &StreamFactory<'_>, low: u32, high: u32) -> f64 {
    stream(Station(low), &format!("shadowing {high}")).normal()
}

#[cfg(test)]
mod tests {
    use super::super::motion::{Motion, trace};
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

    /// As many movers, of which those with a number divisible by 3 do not move.
    fn moving(propagation: Propagation, positions: &[Position], text: &str) -> Neighbours {
        let traces = trace::read(text).unwrap();
        let mover = |legs: &std::sync::Arc<[_]>| {
            Mover::new(&Motion::Trace(legs.clone()), None, streams(Station(0), "trace"))
        };
        let movers = traces.iter().map(|(node, legs)| (Station(*node), mover(legs))).collect();
        Neighbours::moving(propagation, positions, movers, &streams).unwrap()
    }

    #[test]
    fn stations_that_move_are_heard_as_if_they_stood_where_they_are() {
        let positions = scattered(40, 300.0);
        for propagation in [
            Propagation::UnitDisk(UnitDisk { interference_range: 120.0, ..UnitDisk::new(80.0) }),
            Propagation::LogDistance(LogDistance::default()),
        ] {
            let mut text = String::new();
            for (i, p) in positions.iter().enumerate().filter(|(i, _)| i % 3 != 0) {
                text += &format!("$node_({i}) set X_ {}\n$node_({i}) set Y_ {}\n", p.x, p.y);
                text += &format!("$ns_ at 1.0 \"$node_({i}) setdest {} {} 10\"\n", p.y, p.x);
            }
            let mut moving = moving(propagation, &positions, &text);
            for seconds in [0, 1, 7, 12, 40] {
                let now = Instant::ZERO + anabranch_core::time::Duration::from_secs(seconds);
                let places: Vec<Position> = (0..40).map(|i| moving.place(now, i).unwrap()).collect();
                assert!(seconds < 2 || places != positions);
                let still = Neighbours::new(&propagation, &places, &streams).unwrap();
                for from in 0..40 {
                    moving.locate(now, from);
                    let heard = |n: &Neighbours| -> Vec<(u32, u8, f64)> {
                        let all = n.hearers[n.of(from)].iter().filter(|h| h.marks != 0);
                        all.map(|h| (h.station, h.marks, h.power)).collect()
                    };
                    assert_eq!(heard(&moving), heard(&still), "of {from} after {seconds} s");
                }
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
