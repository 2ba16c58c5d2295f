//! Positions in the plane.

/// A position in the plane, in metres.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Position {
    /// East of the origin.
    pub x: f64,
    /// North of the origin.
    pub y: f64,
}

impl Position {
    /// A position east and north of the origin.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    /// Distance to another position in metres.
    pub fn distance(self, other: Self) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }
}
