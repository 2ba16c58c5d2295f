//! Where the nodes are (section VIII-B to D): the data centre is node 0.

use anabranch_sim::radio::Position;
use anabranch_sim::random::Stream;

/// A kind of deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    let mut reached = vec![false; places.len()];
    let mut edge = vec![0];
    reached[0] = true;
    while let Some(at) = edge.pop() {
        for (to, place) in places.iter().enumerate() {
            if !reached[to] && place.distance(places[at]) <= range {
                reached[to] = true;
                edge.push(to);
            }
        }
    }
    reached.into_iter().all(|r| r)
}

#[cfg(test)]
mod tests {
    use super::*;

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
