//! The live report: what each path carries, as JSON, as lines for a person, and as metrics.
//!
//! The thread of the engine never waits for a reader of the report.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IsTerminal;

use anabranch_core::mptcp::PathId;
use anabranch_core::time::{Duration, Instant};
use anabranch_deploy::metrics::{Kind, Page};
use anabranch_deploy::{output, say};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::engine::Engine;
use super::stack::PathReport;

/// Reports of an engine, with rates since the last one.
pub(super) struct Reports<'a> {
    engine: &'a Engine,
    /// Names of the interfaces.
    names: &'a RefCell<BTreeMap<PathId, String>>,
    last: RefCell<(Instant, BTreeMap<PathId, PathReport>)>,
    output: output::Reports,
}

/// A path in a report.
struct Row {
    name: String,
    now: PathReport,
    /// Bits per second since the last report.
    sent: f64,
    received: f64,
    /// Fraction of all bytes since the last report that were on this path.
    share: f64,
    /// Fraction of the segments that were sent again, since the last report.
    loss: f64,
}

impl<'a> Reports<'a> {
    pub(super) fn new(engine: &'a Engine, names: &'a RefCell<BTreeMap<PathId, String>>) -> Self {
        let last = RefCell::new((engine.now(), BTreeMap::new()));
        Self { engine, names, last, output: output::Reports::default() }
    }

    /// Reports each second, forever: JSON to standard output, or a line to a terminal. A reader
    /// that is slow misses reports.
    pub(super) async fn each_second(&self, as_json: bool) {
        if as_json {
            return self.output.each_second(|| self.report()).await;
        }
        let mut second = interval(std::time::Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Skip);
        second.tick().await;
        let seen = std::io::stderr().is_terminal();
        loop {
            second.tick().await;
            if seen {
                let line = self.line();
                let _ = spawn_blocking(move || say!("{line}")).await;
            }
        }
    }

    /// Prints the last JSON object.
    pub(super) async fn finish(&self, last: Value) {
        self.output.finish(last).await;
    }

    /// A JSON object, with rates since the last one.
    pub(super) fn report(&self) -> Value {
        let engine = self.engine;
        let (counters, connections) = engine.stack(|stack| (stack.counters(), stack.len()));
        let paths: Vec<Value> = self.rows().iter().map(Row::json).collect();
        json!({
            "seconds": engine.now().as_secs_f64(),
            "connections": connections,
            "opened": counters.opened,
            "accepted": counters.accepted,
            "fallbacks": counters.fallbacks,
            "failed": counters.failed,
            "refused_segments": counters.refused,
            "dropped_packets": counters.dropped,
            "unsent_packets": engine.unsent.get(),
            "paths": paths,
        })
    }

    fn line(&self) -> String {
        let connections = self.engine.stack(|stack| stack.len());
        let rows: Vec<String> = self.rows().iter().map(Row::text).collect();
        format!("{connections} connections  {}", rows.join("  |  "))
    }

    fn rows(&self) -> Vec<Row> {
        let now = self.engine.now();
        let reports: BTreeMap<_, _> = self.engine.stack(|stack| stack.paths().collect());
        let (before, old) = self.last.replace((now, reports.clone()));
        let seconds = now.saturating_since(before).max(Duration::from_millis(1)).as_secs_f64();
        let was = |id: &PathId| old.get(id).copied().unwrap_or_default();
        let carried = |report: &PathReport| report.bytes_sent + report.bytes_received;
        let total: u64 = reports.iter().map(|(id, now)| carried(now) - carried(&was(id))).sum();
        let names = self.names.borrow();
        let row = |(id, now): (&PathId, &PathReport)| {
            let was = was(id);
            let rate = |now: u64, was: u64| (now - was) as f64 * 8.0 / seconds;
            let segments = (now.segments_sent - was.segments_sent).max(1) as f64;
            Row {
                name: names.get(id).cloned().unwrap_or_default(),
                now: *now,
                sent: rate(now.bytes_sent, was.bytes_sent),
                received: rate(now.bytes_received, was.bytes_received),
                share: (carried(now) - carried(&was)) as f64 / total.max(1) as f64,
                loss: now.retransmissions.saturating_sub(was.retransmissions) as f64 / segments,
            }
        };
        reports.iter().map(row).collect()
    }

    /// The page of `--metrics`.
    pub(super) fn page(&self) -> Page {
        let mut page = Page::of_process();
        let (counters, connections, paths) =
            self.engine.stack(|stack| (stack.counters(), stack.len(), stack.paths().collect::<Vec<_>>()));
        let mut value = |name: &str, kind, help: &str, value: u64| {
            page.value(&format!("{PREFIX}{name}"), kind, help, value)
        };
        value("connections", Kind::Gauge, "Connections of the stack.", connections as u64);
        value("opened_total", Kind::Counter, "Connections opened.", counters.opened);
        value("accepted_total", Kind::Counter, "Connections accepted.", counters.accepted);
        value("fallbacks_total", Kind::Counter, "Connections that fell back to TCP.", counters.fallbacks);
        value("failed_total", Kind::Counter, "Open connections that failed.", counters.failed);
        value("dropped_total", Kind::Counter, "Packets dropped.", counters.dropped);
        let names = self.names.borrow();
        type Figure = (&'static str, Kind, &'static str, fn(&PathReport) -> f64);
        let figures: [Figure; 7] = [
            ("path_up", Kind::Gauge, "1 if the path is in use.", |path| f64::from(u8::from(path.up))),
            ("path_subflows", Kind::Gauge, "Working subflows.", |path| path.subflows as f64),
            ("path_rtt_seconds", Kind::Gauge, "Round-trip time.", |path| {
                path.rtt.map_or(0.0, Duration::as_secs_f64)
            }),
            ("path_sent_bytes_total", Kind::Counter, "TCP payload sent in bytes.", |path| {
                path.bytes_sent as f64
            }),
            ("path_received_bytes_total", Kind::Counter, "TCP payload received in bytes.", |path| {
                path.bytes_received as f64
            }),
            ("path_segments_total", Kind::Counter, "Segments with payload sent.", |path| {
                path.segments_sent as f64
            }),
            ("path_retransmissions_total", Kind::Counter, "Segments sent again.", |path| {
                path.retransmissions as f64
            }),
        ];
        for (name, kind, help, figure) in figures {
            page.family(&format!("{PREFIX}{name}"), kind, help);
            for (id, path) in &paths {
                let interface = names.get(id).map_or("", String::as_str);
                page.sample(&format!("{PREFIX}{name}"), &[("interface", interface)], figure(path));
            }
        }
        page
    }
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "interface": self.name,
            "up": self.now.up,
            "backup": self.now.backup,
            "subflows": self.now.subflows,
            "sent_bytes": self.now.bytes_sent,
            "received_bytes": self.now.bytes_received,
            "send_rate": self.sent,
            "receive_rate": self.received,
            "share": self.share,
            "loss": self.loss,
            "retransmissions": self.now.retransmissions,
            "rtt_ms": self.now.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
        })
    }

    fn text(&self) -> String {
        if !self.now.up {
            return format!("{} down", self.name);
        }
        let rtt = self.now.rtt.map_or_else(|| "-".to_owned(), |rtt| format!("{} ms", rtt.as_millis()));
        format!(
            "{} {:.1} up {:.1} down Mbit/s, {:.0} %, loss {:.1} %, {rtt}",
            self.name,
            self.sent / 1e6,
            self.received / 1e6,
            self.share * 100.0,
            self.loss * 100.0,
        )
    }
}

const PREFIX: &str = "anabranch_multipath_";
