//! Step responses of the loop, cycle by cycle.

use super::{Controller, Gains, ModelError};

/// What is steered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plant {
    /// Time constant, in cycles, with which the size that the connection needs follows twice its
    /// bandwidth-delay product: how long link layers and RTTs take to tell. 0 up; 0 is at once.
    pub lag: f64,
    /// The least size: one MSS.
    pub least: f64,
    /// The greatest: the pool, less one MSS for each other connection.
    pub most: f64,
}

impl Plant {
    /// No lag and no ends: the linear loop.
    pub const FREE: Self = Self { lag: 0.0, least: f64::NEG_INFINITY, most: f64::INFINITY };
}

/// When a step comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// With a new controller, which has no last error: the beginning of a connection.
    New,
    /// With a controller at rest, to which all of the step is a difference.
    Running,
}

/// Sizes after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The size after each cycle; first that of the beginning.
    pub sizes: Vec<f64>,
    from: f64,
    to: f64,
}

/// Runs the loop for so many cycles after what is needed has stepped from one size to another.
///
/// # Errors
/// A gain or a lag that is negative or not finite; a step of nothing, or one that the range does
/// not hold.
pub fn step(
    gains: Gains,
    plant: Plant,
    begin: Begin,
    (from, to): (f64, f64),
    cycles: usize,
) -> Result<Response, ModelError> {
    super::characteristic(gains)?;
    let Plant { lag, least, most } = plant;
    if !lag.is_finite() || lag < 0.0 {
        return Err(ModelError::Lag { cycles: lag });
    }
    let within = |size: f64| size.is_finite() && size >= least && size <= most;
    if !within(from) || !within(to) || from == to {
        return Err(ModelError::Range { from, to, least, most });
    }
    let mut controller = Controller::new(gains);
    if begin == Begin::Running {
        controller.next(from, from, least..=most);
    }
    let stays = if lag == 0.0 { 0.0 } else { (-1.0 / lag).exp() };
    let (mut size, mut needed) = (from, from);
    let mut sizes = vec![from];
    for _ in 0..cycles {
        needed = to + stays * (needed - to);
        size = controller.next(needed, size, least..=most);
        sizes.push(size);
    }
    Ok(Response { sizes, from, to })
}

impl Response {
    /// How far the size goes past the new one, as a part of the step; 0 if it does not.
    pub fn overshoot(&self) -> f64 {
        let past = |size: &f64| (size - self.to) / (self.to - self.from);
        self.sizes.iter().map(past).fold(0.0, f64::max)
    }

    /// The cycles for which the size is still off by more than `band`, a part of the step: erratum
    /// B8's are those for 0.02. `None` if it is at the end.
    pub fn settling(&self, band: f64) -> Option<usize> {
        let off = |size: &f64| (size - self.to).abs() > band * (self.to - self.from).abs();
        match self.sizes.iter().rposition(off) {
            Some(last) if last + 1 == self.sizes.len() => None,
            last => Some(last.unwrap_or(0)),
        }
    }

    /// The first cycle after which nine tenths of the step are done; `None` if there is none.
    pub fn rise(&self) -> Option<usize> {
        self.sizes.iter().position(|size| (size - self.from) / (self.to - self.from) >= 0.9)
    }
}
