//! The control loop of the paper `sockbuf` (section 3.2, Figure 6): a controller that steers the
//! send buffer of a striped connection to twice its bandwidth-delay product. Is it stable, how far
//! does it overshoot, how long does it take?
//!
//! The size of the next cycle is the present one plus the controller's output (Figure 5 line 7), so
//! the loop has one integrator more than the controller (erratum B8):
//!
//! * [`characteristic`], [`roots`], [`stable`], [`margin`]: the linear loop, as long as no end of
//!   the range is met;
//! * [`Plant`]: what the buffer is to be follows the path with a lag of its own; [`step`] runs the
//!   loop of [`Controller`], the very one of [`anabranch_core::sockbuf`], against it, within a
//!   range;
//! * [`Response::overshoot`], [`Response::settling`]: what a step response shows.
//!
//! Sizes may be in any unit; time is in cycles, of half a second by default. Not modelled: what
//! other connections leave unused, and buffers that cannot shrink before they have drained. The
//! first is another upper end of the range, the second is outside the loop, since the controller
//! goes by what it has decided.

mod error;
mod response;
mod roots;

pub use anabranch_core::sockbuf::{Controller, Gains};
pub use error::ModelError;
pub use response::{Begin, Plant, Response, step};
pub use roots::{Complex, characteristic, margin, roots, stable};

#[cfg(test)]
mod tests;
