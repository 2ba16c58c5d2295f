//! Where the nodes are (section VIII-B to D): the data centre is node 0.

use anabranch_sim::radio::Position;
use anabranch_sim::random::Stream;
use serde::{Deserialize, Serialize};

use crate::places::hops;

/// A kind of deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Random in a square or rectangle, the data centre at its centre.
    Square,
    /// On Vogel's spiral in a circle of 250 m, the data centre at its centre.
    Sunflower,
    /// Random in a square, the data centre at a corner.
    Corner,
}

/// Width and height in metres. The paper gives 10 to 50 nodes at the centre, and 25 at the corner; others get the
/// density of the next larger number.
fn area(shape: Shape, nodes: usize) -> (f64, f64) {
    let scaled = |side: f64, of: usize| side * (nodes as f64 / of as f64).sqrt();
    match (shape, nodes) {
        (Shape::Square, 10) => (150.0, 150.0),
        (Shape::Square, 20) => (200.0, 250.0),
        (Shape::Square, 30) => (250.0, 300.0),
        (Shape::Square, 40) => (300.0, 350.0),
        (Shape::Square, _) => (scaled(350.0, 50), scaled(350.0, 50)),
        (Shape::Corner, _) => (scaled(250.0, 25), scaled(250.0, 25)),
        (Shape::Sunflower, _) => (scaled(500.0, 50), scaled(500.0, 50)),
    }
}

/// A deployment in which every node can reach the data centre over hops of at most `range` metres.
///
/// Random ones are drawn anew until that is so. `None` if it never is: for a sunflower at once, for the others after
/// a thousand draws.
pub fn draw(shape: Shape, nodes: usize, range: f64, random: &mut Stream) -> Option<Vec<Position>> {
    let tries = if shape == Shape::Sunflower { 1 } else { 1000 };
    (0..tries).map(|_| once(shape, nodes, random)).find(|places| is_connected(places, range))
}

fn once(shape: Shape, nodes: usize, random: &mut Stream) -> Vec<Position> {
    let (width, height) = area(shape, nodes);
    let centre = match shape {
        Shape::Square | Shape::Sunflower => Position { x: width / 2.0, y: height / 2.0 },
        Shape::Corner => Position { x: 0.0, y: 0.0 },
    };
    let place = |i: usize, random: &mut Stream| match shape {
        Shape::Square | Shape::Corner => {
            Position { x: random.uniform() * width, y: random.uniform() * height }
        }
        Shape::Sunflower => {
            // Vogel 1979: radius with the root of the number, and the golden angle from one to the next.
            let golden = std::f64::consts::PI * (3.0 - 5f64.sqrt());
            let radius = width / 2.0 * (i as f64 / (nodes - 1) as f64).sqrt();
            let angle = i as f64 * golden;
            Position { x: centre.x + radius * angle.cos(), y: centre.y + radius * angle.sin() }
        }
    };
    let mut places = vec![centre];
    places.extend((1..nodes).map(|i| place(i, random)));
    places
}

/// Every place can be reached from the first.
pub fn is_connected(places: &[Position], range: f64) -> bool {
    hops(places, range, &[0]).iter().all(Option::is_some)
}

/// The `count` places beside the first that are best given a second interface: each the one that makes the sum of all ways
/// over the radio to the next interface shortest, the ones before it given; of equals the first.
pub fn plan(places: &[Position], range: f64, count: usize) -> Vec<usize> {
    let mut ends = vec![0];
    for _ in 0..count {
        let sum = |extra: usize| {
            let ends = [&ends[..], &[extra]].concat();
            hops(places, range, &ends).iter().map(|hops| hops.unwrap_or(places.len() as u32)).sum::<u32>()
        };
        let free = (1..places.len()).filter(|place| !ends.contains(place));
        match free.min_by_key(|&place| sum(place)) {
            Some(best) => ends.push(best),
            None => break,
        }
    }
    ends.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_interface_is_where_it_shortens_most() {
        let row = |n: usize| (0..n).map(|i| Position { x: 100.0 * i as f64, y: 0.0 }).collect::<Vec<_>>();
        // With 4 the sum is 7, with 5 too.
        assert_eq!(plan(&row(7), 100.0, 1), [4]);
        assert_eq!(hops(&row(7), 100.0, &[0, 4]), [0, 1, 2, 1, 0, 1, 2].map(Some));
        assert_eq!(plan(&row(7), 100.0, 2), [4, 1]);
        assert_eq!(plan(&row(3), 100.0, 9), [1, 2]);
        assert_eq!(hops(&row(3), 50.0, &[0]), [Some(0), None, None]);
    }

    #[test]
    fn deployments_are_where_they_belong() {
        for (shape, nodes, corner) in [(Shape::Square, 30, 300.0), (Shape::Corner, 25, 250.0)] {
            let places = draw(shape, nodes, 120.0, &mut Stream::new(1, 0, "deployment", "places"));
            let places = places.expect("dense enough");
            assert_eq!(places.len(), nodes);
            assert!(places.iter().all(|p| p.x >= 0.0 && p.x <= 250.0 && p.y >= 0.0 && p.y <= corner));
            assert!(is_connected(&places, 120.0));
        }
        let sunflower =
            draw(Shape::Sunflower, 50, 120.0, &mut Stream::new(1, 0, "deployment", "places")).unwrap();
        let furthest = sunflower.iter().map(|p| p.distance(sunflower[0])).fold(0.0, f64::max);
        assert!((furthest - 250.0).abs() < 1e-9);
        let none = draw(Shape::Square, 50, 5.0, &mut Stream::new(1, 0, "deployment", "places"));
        assert!(none.is_none());
    }
}
