//! Gateways, relays and node on one radio channel: who is where, and how the channel is.

use std::f64::consts::TAU;

use anabranch_core::time::Duration;
use anabranch_sim::scenario::radio::{Phy, RadioSection};
use anabranch_sim::scenario::units::{Length, Probability, Span};

use super::config::{Config, Medium};

/// How far frames are heard, and disturb others, in metres.
const RANGE: f64 = 100.0;
/// From the node to gateways that are next to it, in metres: they hear each other.
const NEAR: f64 = 40.0;
/// From one hop to the next in rows of relays, in metres. At this distance from the node the last relays of as many rows as
/// there may be do not hear each other.
const SPACE: f64 = 90.0;
/// From the node to other receivers, in metres.
const BESIDE: f64 = 5.0;
/// In rows of relays stations are hidden from each other, and would repeat into the same collision again and again.
const RETRY_DELAY: Duration = Duration::from_millis(20);

impl Config {
    /// The channel, if there is one.
    pub(super) fn radio(&self) -> Option<RadioSection> {
        (self.medium == Medium::Radio).then(|| RadioSection {
            phy: Phy::OQpsk250k,
            range: Some(Length(RANGE)),
            loss: Some(Probability(self.wireless_loss.of(0))),
            max_frame_retries: self.retries,
            retry_delay: Span(if self.has_rows() { RETRY_DELAY } else { Duration::ZERO }),
            queue: self.gateway_buffer.of(0),
            ..RadioSection::default()
        })
    }

    /// Relays stand between a gateway and the node.
    fn has_rows(&self) -> bool {
        self.hops.all().iter().any(|hops| *hops > 1)
    }

    /// Where the station is that is so many hops from the node, on the way of gateway `i`; rows go out from the node like
    /// spokes.
    pub(super) fn place(&self, i: usize, hops: usize) -> Option<[f64; 2]> {
        let radius = if self.has_rows() { SPACE * hops as f64 } else { NEAR };
        (self.medium == Medium::Radio).then(|| on_circle(radius, i, self.gateways))
    }

    /// Where receiver `j` is: the node in the middle, the others around it.
    pub(super) fn receiver_place(&self, j: usize) -> Option<[f64; 2]> {
        let place = match j.checked_sub(1) {
            None => [0.0, 0.0],
            Some(other) => on_circle(BESIDE, other, self.background),
        };
        (self.medium == Medium::Radio).then_some(place)
    }
}

/// The place of the `i`-th of `n` on a circle around the node, in whole millimetres, so that it is the same wherever it is
/// computed.
fn on_circle(radius: f64, i: usize, n: usize) -> [f64; 2] {
    let angle = TAU * i as f64 / n as f64;
    let whole = |metres: f64| (metres * 1000.0).round() / 1000.0;
    [whole(radius * angle.cos()), whole(radius * angle.sin())]
}
