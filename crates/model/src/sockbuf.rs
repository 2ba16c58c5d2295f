//! The control loop of the paper `sockbuf` (section 3.2, Figure 6): a controller that adjusts the
//! send buffer of a striped connection to twice its bandwidth-delay product. The module computes
//! stability, overshoot and settling time.
//!
//! The size in the next cycle is the current size plus the controller's output (Figure 5 line 7),
//! so the loop has one more integrator than the controller (erratum B8):
//!
//! * [`characteristic`], [`roots`], [`stable`], [`margin`]: the linear loop, within the range
//!   limits;
//! * [`Plant`]: the required size follows the path with a lag of its own. [`step`] runs the loop of
//!   [`Controller`], which is that of [`anabranch_core::sockbuf`], against it, within a range;
//! * [`Response::overshoot`], [`Response::settling`]: properties of a step response.
//!
//! Sizes may be in any unit; time is in cycles, half a second each by default. Not modelled: memory
//! that other connections leave unused, which changes the upper limit of the range, and buffers
//! that cannot shrink before they have drained, which is outside the loop, since the controller
//! uses its own last decision.

mod error;
mod response;
mod roots;

pub use anabranch_core::sockbuf::{Controller, Gains};
pub use error::ModelError;
pub use response::{Begin, Plant, Response, step};
pub use roots::{Complex, characteristic, margin, roots, stable};

#[cfg(test)]
mod tests;
