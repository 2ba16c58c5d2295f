//! What radios of any kind share: the channel between stations.
//!
//! `medium` says who hears what at a moment and which frames that spoils, [`geometry`] who hears
//! whom at all, [`position`] and [`motion`] where stations are, [`propagation`] how strongly they
//! are heard, [`modulation`] what it costs in bit errors, `meter` how long a radio did what,
//! [`error`] what is refused. A radio makes its medium of a model of propagation and of rules for
//! frames that overlap, and is told as a witness what happens.

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

/// Makes the random stream of a station for a purpose.
pub(crate) type StreamFactory<'a> = dyn Fn(Station, &str) -> Stream + 'a;
