//! Invalid input is refused with the name of the quantity.

use super::super::background::{Queue, processing_time, queued_per_gateway, queueing_time, utilisation};
use super::super::*;
use super::paper;

/// The error of a paper transfer with one change.
fn refusal(change: impl FnOnce(&mut Transfer)) -> String {
    let mut transfer = paper(5000, 2);
    change(&mut transfer);
    match best_gateways(&transfer) {
        Err(error) => error.to_string(),
        Ok(answer) => panic!("accepted: {answer:?}"),
    }
}

#[test]
fn a_transfer_without_gateways_or_with_too_few() {
    assert_eq!(refusal(|t| t.gateways.clear()), "a transfer needs at least one gateway");
    assert_eq!(latency(&paper(1, 2), 0), Err(ModelError::NoGateways));
    assert_eq!(latency(&paper(1, 2), 3), Err(ModelError::TooManyGateways { asked: 3, present: 2 }));
}

#[test]
fn rates_sizes_and_times() {
    assert_eq!(refusal(|t| t.gateways[1].wired_rate = 0.0), "the wired rate must be above zero, not 0");
    assert_eq!(
        refusal(|t| t.gateways[0].wireless_rate = -1.0),
        "the wireless rate must be above zero, not -1"
    );
    assert_eq!(
        refusal(|t| t.gateways[0].wireless_rate = f64::NAN),
        "the wireless rate must be above zero, not NaN"
    );
    assert_eq!(
        refusal(|t| t.gateways[0].wired_rate = f64::INFINITY),
        "the wired rate must be above zero, not inf"
    );
    assert_eq!(refusal(|t| t.gateways[0].wired_mss = 0), "the wired segment size must be above zero, not 0");
    assert_eq!(
        refusal(|t| t.gateways[0].wireless_mss = 0),
        "the wireless segment size must be above zero, not 0"
    );
    let at_least = "must be a number of at least zero, not";
    assert_eq!(
        refusal(|t| t.gateways[0].wired_rtt = -0.1),
        format!("the wired round-trip time {at_least} -0.1")
    );
    assert_eq!(
        refusal(|t| t.gateways[0].wireless_rtt = f64::NAN),
        format!("the wireless round-trip time {at_least} NaN")
    );
    assert_eq!(refusal(|t| t.gateways[0].processing = -1.0), format!("the processing delay {at_least} -1"));
    assert_eq!(refusal(|t| t.request = f64::INFINITY), format!("the request time {at_least} inf"));
    assert_eq!(
        refusal(|t| t.gateways[0].handshake.set_timeout = -3.0),
        format!("the SETACK time-out {at_least} -3")
    );
}

#[test]
fn windows_and_buffers() {
    assert!(
        refusal(|t| t.window.initial = 0.5)
            .starts_with("the initial window (segments) must lie between 1 and 64")
    );
    assert!(refusal(|t| t.window.initial = 65.0).ends_with("not 65"));
    assert!(refusal(|t| t.window.ssthresh = 0.0).starts_with("the slow-start threshold (segments)"));
    assert!(refusal(|t| t.window.ssthresh = f64::NAN).starts_with("the slow-start threshold (segments)"));
    assert!(refusal(|t| t.window.max = f64::INFINITY).starts_with("the largest window (segments)"));
    assert!(refusal(|t| t.window.segments_per_ack = 0).starts_with("the number of segments per ACK"));
    assert!(refusal(|t| t.node_buffer = Some(0.0)).starts_with("the node's buffer"));
    assert!(refusal(|t| t.disorder = 1.5).starts_with("the out-of-order factor must lie between 0 and 1"));
}

#[test]
fn losses_beyond_any_finite_time() {
    let error = refusal(|t| t.gateways[1].handshake.losses.wired_syn = 5000);
    assert_eq!(error, "the time-outs of gateway 2's handshake double beyond any finite time");
}

#[test]
fn background_traffic() {
    assert!(processing_time(-1.0, 0.0).is_err());
    assert!(utilisation(&[1.0, -1.0], 0.1).is_err());
    assert!(queueing_time(1.0, &[]).is_err());
    assert!(queueing_time(f64::NAN, &[1.0]).is_err());
    assert_eq!(queued_per_gateway(&[1.0], 1.0, 0), Err(ModelError::NoGateways));
    let queue = Queue { packets: 1, readily: 0.5, time: 1.0 };
    assert!(queue.waits_at_most(-1.0, QueueLaw::ErlangMixture).is_err());
    assert!(queue.waits_at_most(f64::NAN, QueueLaw::ErlangMixture).is_err());
    assert!(Queue { readily: 1.1, ..queue }.waits_at_most(1.0, QueueLaw::Printed).is_err());
    assert!(Queue { time: 0.0, ..queue }.waits_at_most(1.0, QueueLaw::Printed).is_err());
}
