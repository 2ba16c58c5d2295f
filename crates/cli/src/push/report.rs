//! The report of a simulated push.

use anabranch_core::set::SessionReport;
use anabranch_deploy::output::hex;
use anabranch_deploy::push::report::{Compared, DecisionLine, GatewayLine, PhaseLine, Report, state_name};
use anabranch_scenario::Scenario;
use anabranch_sim::apps::set::LegTotals;
use sha2::{Digest, Sha256};

use super::Push;

/// The report of a simulated transfer. It can compare the bytes that the node received with the
/// file.
pub(super) fn of_simulated(push: &Push, scenario: &Scenario, file: &[u8], compare: Vec<Compared>) -> Report {
    let figures = push.figures();
    let delivered = push.delivered();
    let sessions = push.sender().sessions();
    Report {
        bytes: file.len() as u64,
        sha256: sha256(file),
        delivered_bytes: delivered.len() as u64,
        delivered_sha256: Some(sha256(delivered)),
        resumed_from: 0,
        verified: Some(delivered == file && figures.latency.is_some()),
        network: scenario.name.clone(),
        latency_s: figures.latency.map(|d| d.as_secs_f64()),
        establishment_s: figures.establishment.map(|d| d.as_secs_f64()),
        phases: push.sender().moments().map(PhaseLine::of).unwrap_or_default(),
        decisions: push
            .sender()
            .started
            .map(|started| DecisionLine::of(started, push.sender().decisions()))
            .unwrap_or_default(),
        goodput_bit_per_s: figures.goodput(),
        gateways: sessions.iter().map(|s| gateway_line(push, scenario, s)).collect(),
        compare,
    }
}

fn gateway_line(
    push: &Push,
    scenario: &Scenario,
    (session, wired): &(SessionReport, LegTotals),
) -> GatewayLine {
    let node = usize::from(session.gateway);
    GatewayLine {
        name: scenario.nodes.get(node).map_or_else(|| format!("#{node}"), |n| n.name.clone()),
        state: state_name(session.state),
        bytes: session.written,
        srtt_s: session.latency.map(|d| d.as_secs_f64()),
        retransmissions: wired.retransmissions + push.wireless_retransmissions(session.gateway),
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
