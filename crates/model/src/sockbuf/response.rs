//! Step responses of the loop, cycle by cycle.

use super::{Controller, Gains, ModelError};

/// The controlled system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plant {
    /// Time constant, in cycles, with which the required size follows twice the bandwidth-delay
    /// product: the time until link layers and RTTs show a change. At least 0; 0 means immediately.
    pub lag: f64,
    /// Lower limit of the size: one MSS.
    pub least: f64,
    /// Upper limit of the size: the pool minus one MSS for each other connection.
    pub most: f64,
}

impl Plant {
    /// No lag and no limits: the linear loop.
    pub const FREE: Self = Self { lag: 0.0, least: f64::NEG_INFINITY, most: f64::INFINITY };
}

/// State of the controller when the step occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// A new controller without a last error: the beginning of a connection.
    New,
    /// A controller at rest, for which the whole step is a change of the error.
    Running,
}

/// Sizes after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The size after each cycle; the first entry is the initial size.
    pub sizes: Vec<f64>,
    from: f64,
    to: f64,
}

/// Runs the loop for `cycles` cycles after a step of the required size.
///
/// # Errors
/// A gain or lag is negative or not finite, the step is empty, or it leaves the range.
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
    /// Overshoot as a fraction of the step; 0 if there is none.
    pub fn overshoot(&self) -> f64 {
        let past = |size: &f64| (size - self.to) / (self.to - self.from);
        self.sizes.iter().map(past).fold(0.0, f64::max)
    }

    /// Number of cycles during which the size deviates by more than `band`, a fraction of the step;
    /// erratum B8 uses 0.02. `None` if it still deviates at the end.
    pub fn settling(&self, band: f64) -> Option<usize> {
        let off = |size: &f64| (size - self.to).abs() > band * (self.to - self.from).abs();
        match self.sizes.iter().rposition(off) {
            Some(last) if last + 1 == self.sizes.len() => None,
            last => Some(last.unwrap_or(0)),
        }
    }

    /// The first cycle after which 90 % of the step are done; `None` if there is none.
    pub fn rise(&self) -> Option<usize> {
        self.sizes.iter().position(|size| (size - self.from) / (self.to - self.from) >= 0.9)
    }
}
