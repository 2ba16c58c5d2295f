//! Gateways, relays and node on one radio channel: positions and parameters of the channel.

use std::f64::consts::TAU;

use crate::experiment::Settings;
use crate::experiment::template::Assignment;

/// Distance of adjacent gateways from the node in metres, at which they hear each other.
const NEAR: f64 = 40.0;
/// Distance between hops in rows of relays, in metres. At this distance from the node, the last
/// relays of the maximum number of rows do not hear each other.
const SPACE: f64 = 90.0;
/// Distance of other receivers from the node, in metres.
const BESIDE: f64 = 5.0;

/// One IEEE 802.15.4 channel. It carries packets of 1280 bytes, headers included, since some arrive
/// over wires with that size.
const CHANNEL: [&str; 5] = [
    "link.radio*.enabled=false",
    "link.here*.enabled=false",
    "tcp.default.mss=1215",
    r#"radio={ phy = "oqpsk-250k", range = "100 m" }"#,
    "nodes.sn.place={ at = [[0, 0]] }",
];

/// Assignments for the channel and the positions on it.
pub(super) fn channel(settings: &Settings, hops: &[usize], background: usize) -> Vec<Assignment> {
    let rows = hops.iter().any(|hops| *hops > 1);
    // In rows of relays, stations are hidden from each other; without a random delay they would
    // retransmit into the same collision again and again.
    let retry_delay = if rows { "20 ms" } else { "0 s" };
    // Rows extend from the node like spokes.
    let gateways = hops.len();
    let place = |i: usize, hops: usize| {
        let radius = if rows { SPACE * hops as f64 } else { NEAR };
        on_circle(radius, i, gateways)
    };
    let relays = (0..).zip(hops).flat_map(|(i, &hops)| (1..hops).rev().map(move |left| place(i, left)));
    let places = [
        ("gateways", "gw{i}", (0..).zip(hops).map(|(i, &hops)| place(i, hops)).collect::<Vec<_>>()),
        ("hops", "r{i}-{j}", relays.collect()),
        ("background", "sn{i}", (0..background).map(|j| on_circle(BESIDE, j, background)).collect()),
    ];
    let placed = places.into_iter().filter(|(.., places)| !places.is_empty());
    let placed = placed.map(|(key, nodes, at)| (key, format!("nodes.{nodes}.place={{ at = {at:?} }}")));
    let of_channel = [
        ("wireless_loss", format!("radio.loss={}", settings.text("wireless_loss"))),
        ("gateway_buffer", format!("radio.queue={}", settings.text("gateway_buffer"))),
        ("retries", format!("radio.max_frame_retries={}", settings.text("retries"))),
        ("hops", format!("radio.retry_delay={retry_delay}")),
    ];
    CHANNEL.map(|set| ("medium", set.to_owned())).into_iter().chain(of_channel).chain(placed).collect()
}

/// Position `i` of `n` on a circle around the node, in whole millimetres, so that it is equal
/// wherever it is computed.
fn on_circle(radius: f64, i: usize, n: usize) -> [f64; 2] {
    let angle = TAU * i as f64 / n as f64;
    let whole = |metres: f64| (metres * 1000.0).round() / 1000.0;
    [whole(radius * angle.cos()), whole(radius * angle.sin())]
}
