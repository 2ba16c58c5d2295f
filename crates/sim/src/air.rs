//! The channel between stations, common to all kinds of radios.
//!
//! `medium` tracks which frames stations receive and which are lost, [`geometry`] which stations
//! are in range of each other, [`position`] and [`motion`] their positions, [`propagation`] signal
//! strengths, [`modulation`] bit errors, `meter` the time in each state; [`error`] has the
//! configuration errors. A radio builds its medium from a propagation model and from rules for
//! overlapping frames, and is informed as a witness.

pub mod error;
pub mod geometry;
pub(crate) mod medium;
pub mod meter;
pub mod modulation;
pub mod motion;
pub mod position;
pub mod propagation;

use crate::random::Stream;

/// A station on the channel, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Station(pub u32);

/// Function that makes the random stream of a station for a purpose.
pub(crate) type StreamFactory<'a> = dyn Fn(Station, &str) -> Stream + 'a;
