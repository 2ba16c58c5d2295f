//! Where the nodes are, which of them is the sink, and who sees the event.

use anabranch_sim::radio::Position;
use anabranch_sim::random::Stream;
use serde::{Deserialize, Serialize};

use crate::places::hops;

/// A kind of placement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Evenly at random; the sink in the middle of the left edge.
    Random,
    /// In a row, the sink first.
    Row,
}

/// A placement and what happens there. Node 0 is the sink.
#[derive(Clone, PartialEq, Debug)]
pub struct Deployment {
    /// In metres.
    pub places: Vec<Position>,
    /// Who sees the event, nearest first.
    pub senders: Vec<usize>,
    /// Hops of each node to the sink over links of at most the range, if there is a way.
    pub hops: Vec<Option<u32>>,
}

/// What is wanted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wanted {
    /// Nodes, the sink included.
    pub nodes: usize,
    /// Width and height, metres.
    pub area: (f64, f64),
    /// How far frames are received, metres.
    pub range: f64,
    /// The kind.
    pub topology: Topology,
    /// Nodes that see the event.
    pub senders: usize,
    /// Hops from the node nearest to the event to the sink.
    pub event_hops: u32,
}

/// A deployment in which every node reaches the sink, and one so many hops away sees the event. Random ones are drawn
/// anew until that is so; `None` if none of a thousand is.
pub fn draw(wanted: &Wanted, random: &mut Stream) -> Option<Deployment> {
    let tries = match wanted.topology {
        Topology::Random => 1000,
        Topology::Row => 1,
    };
    (0..tries).find_map(|_| once(wanted, random))
}

fn once(wanted: &Wanted, random: &mut Stream) -> Option<Deployment> {
    let (width, height) = wanted.area;
    let places: Vec<Position> = match wanted.topology {
        Topology::Random => {
            let sink = Position { x: 0.0, y: height / 2.0 };
            let any = |_| Position { x: random.uniform() * width, y: random.uniform() * height };
            std::iter::once(sink).chain((1..wanted.nodes).map(any)).collect()
        }
        Topology::Row => {
            (0..wanted.nodes).map(|i| Position { x: 0.8 * wanted.range * i as f64, y: 0.0 }).collect()
        }
    };
    let hops = hops(&places, wanted.range, &[0]);
    if hops.iter().any(Option::is_none) {
        return None;
    }
    let far: Vec<usize> = (1..places.len()).filter(|&i| hops[i] == Some(wanted.event_hops)).collect();
    let seen = *far.get(random.range(0..=far.len().checked_sub(1)? as u64) as usize)?;
    let mut senders: Vec<usize> = (1..places.len()).collect();
    senders.sort_by(|&a, &b| {
        let distance = |i: usize| places[i].distance(places[seen]);
        distance(a).total_cmp(&distance(b)).then(a.cmp(&b))
    });
    senders.truncate(wanted.senders);
    Some(Deployment { places, senders, hops })
}
