//! Tests: the errata's numbers, simulations of the rules, and invalid input.

mod errata;
mod properties;
mod refusals;
mod simulated;

use super::csma::{Busy, Csma};
use super::rtt::{CellularLink, CsmaLink, Link, Route, Sizes, Transmitter};

/// Passes if `value` rounds to `printed` at that number of decimals.
#[track_caller]
fn rounds_to(value: f64, printed: &str) {
    let decimals = printed.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    assert_eq!(format!("{value:.decimals$}"), printed, "the value is {value}");
}

/// The channel of M6: busy with probability 0.9 in the first twenty periods, then 0.1.
fn calming() -> Busy {
    Busy::from_fn(&Csma::default(), |period| if period <= 20 { 0.9 } else { 0.1 })
}

/// A node of section VIII with `arrivals` packets per second on a channel with busy probability
/// `busy`.
fn node(arrivals: f64, busy: f64) -> Transmitter {
    let link = Link::Csma(CsmaLink::fsk100(Busy::Constant(busy)));
    Transmitter { link, arrivals, capacity: None }
}

/// A multi-link node of section VIII.
fn multi_link(arrivals: f64) -> Transmitter {
    Transmitter { link: Link::Cellular(CellularLink::lte()), arrivals, capacity: None }
}

/// A path of section VIII.
fn route(forward: Vec<Transmitter>) -> Route {
    Route { forward, reverse: Vec::new(), sizes: Sizes::of_payload(100) }
}
