//! The state of all sockets, as JSON objects and as metrics.

use std::time::Duration;

use anabranch_core::time::Duration as Span;
use anabranch_net::sockbuf::{Population, SocketState};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::Tuning;
use crate::error::Error;
use crate::metrics::{Kind, Page};
use crate::output;

impl Tuning {
    /// Prints the state each second.
    pub(super) async fn each_second(&self) -> Error {
        let mut second = tokio::time::interval(Duration::from_secs(1));
        second.tick().await;
        loop {
            second.tick().await;
            if let Err(error) = output::json(&self.report()) {
                return error;
            }
        }
    }

    pub(super) fn report(&self) -> Value {
        let tuner = self.tuner.borrow();
        let (limits, queued) = tuner.memory();
        let Population { active, idle, crowded, found } = tuner.population();
        let policy = self.policy.to_possible_value().map(|value| value.get_name().to_owned());
        json!({
            "seconds": self.clock.now().as_secs_f64(),
            "policy": policy,
            "budget_bytes": tuner.budget(),
            "limit_bytes": limits,
            "queued_bytes": queued,
            "active": active,
            "idle": idle,
            "crowded": crowded,
            "found": found,
            "sockets": tuner.sockets().map(|socket| one(&socket)).collect::<Vec<_>>(),
        })
    }

    /// The page of `--metrics`.
    pub(super) fn page(&self) -> Page {
        use Kind::{Counter, Gauge};
        let tuner = self.tuner.borrow();
        let (limits, queued) = tuner.memory();
        let (population, counters) = (tuner.population(), tuner.tuner().counters());
        let mut page = Page::of_process();
        for (name, kind, help, value) in [
            ("budget_bytes", Gauge, "Budget for the send queues of all sockets in bytes.", tuner.budget()),
            ("limit_bytes", Gauge, "Upper bound of the memory of all sockets in bytes.", limits),
            ("queued_bytes", Gauge, "Memory in the send queues of the active sockets in bytes.", queued),
            ("active_sockets", Gauge, "Sockets that send.", population.active),
            ("idle_sockets", Gauge, "Sockets that have nothing to send.", population.idle),
            ("crowded_sockets", Gauge, "Sockets for whose share the budget has no room.", population.crowded),
            ("found_sockets_total", Counter, "Sockets found.", population.found),
            ("decisions_total", Counter, "Decisions of the policy.", counters.pool.decisions),
            ("withheld_total", Counter, "Limits that could not grow as decided yet.", counters.withheld),
            ("early_total", Counter, "Sockets that had data before they had a share.", counters.early),
        ] {
            page.value(&format!("anabranch_tune_{name}"), kind, help, value);
        }
        page
    }
}

/// The object of one socket.
fn one(socket: &SocketState) -> Value {
    let SocketState { pid, local, peer, striped, flow } = socket;
    let millis = |span: Span| span.as_secs_f64() * 1e3;
    json!({
        "pid": pid,
        "local": local.to_string(),
        "peer": peer.to_string(),
        "connection": flow.connection.0,
        "striped": striped,
        "limit_bytes": flow.limit,
        "queued_bytes": flow.queued,
        "bandwidth_bit_per_s": flow.bandwidth,
        "rtt_ms": flow.info.rtt.map(millis),
        "min_rtt_ms": flow.info.min_rtt.map(millis),
        "cwnd_bytes": flow.info.window(),
        "acknowledged_bytes": flow.info.bytes_acked,
        "retransmissions": flow.info.total_retrans,
    })
}
