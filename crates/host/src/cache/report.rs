//! What the cache has done, as JSON objects and as metrics.

use anabranch_deploy::metrics::{Kind, Page};
use serde_json::{Map, Value};

use super::serve::Serving;

/// A figure with its name in JSON, to which metrics add `anabranch_cache_` and, if it is a counter,
/// `_total`.
struct Figure(&'static str, Kind, u64, &'static str);

fn figures(serving: &Serving) -> Vec<Figure> {
    use Kind::{Counter, Gauge};
    let cache = serving.cache.borrow();
    let (segments, packets, (cached, octets)) = (cache.segments(), cache.packets(), cache.cached());
    vec![
        Figure("connections", Gauge, cache.connections() as u64, "Connections with state."),
        Figure("cached_segments", Gauge, cached as u64, "Cached segments."),
        Figure("cached_bytes", Gauge, octets as u64, "Payload of the cached segments in bytes."),
        Figure("segments", Counter, segments.segments, "TCP segments read."),
        Figure("local_repairs", Counter, segments.local_retransmissions, "Segments sent again by the cache."),
        Figure(
            "retransmissions_avoided",
            Counter,
            segments.repaired,
            "Segments that the receiver acknowledged after a local repair, before the sender sent them again.",
        ),
        Figure("local_timeouts", Counter, segments.local_timeouts, "Local repairs caused by a time-out."),
        Figure(
            "given_up",
            Counter,
            segments.given_up,
            "Segments left to their senders after too many repairs.",
        ),
        Figure(
            "held_segments",
            Counter,
            segments.data_held,
            "Segments not forwarded because the cache had just sent them.",
        ),
        Figure(
            "answered_segments",
            Counter,
            segments.data_answered,
            "Segments not forwarded because the receiver had acknowledged them.",
        ),
        Figure(
            "held_acks",
            Counter,
            segments.acks_held,
            "Acknowledgements not forwarded because the cache repairs the gaps that they show.",
        ),
        Figure("repeated_acks", Counter, segments.acks_repeated, "Acknowledgements sent again by the cache."),
        Figure(
            "not_cached",
            Counter,
            segments.not_cached,
            "Segments forwarded without a place in the cache.",
        ),
        Figure(
            "unacceptable",
            Counter,
            segments.unacceptable,
            "Segments whose numbers do not fit their connection.",
        ),
        Figure("packets", Counter, packets.read, "Packets read."),
        Figure("gso_packets", Counter, packets.gso, "Packets read that a device cuts into segments."),
        Figure("not_tcp", Counter, packets.not_tcp, "Packets passed unread: not TCP."),
        Figure(
            "not_plain",
            Counter,
            packets.not_plain,
            "Packets passed unread: fragments and extension headers.",
        ),
        Figure("unknown", Counter, packets.unknown, "Segments passed unread: unknown options or flags."),
        Figure("malformed", Counter, packets.malformed, "Segments passed unread: wrong length or checksum."),
        Figure(
            "unsent",
            Counter,
            serving.counters.unsent.get(),
            "Packets of the cache that the kernel refused.",
        ),
        Figure(
            "overruns",
            Counter,
            serving.counters.overruns.get(),
            "Times that packets passed a full queue unread.",
        ),
        Figure("reports", Counter, serving.counters.reports.get(), "Reports of the link layer."),
    ]
}

/// All counters.
pub(super) fn report(serving: &Serving) -> Map<String, Value> {
    let seconds = ("seconds".to_owned(), Value::from(serving.seconds()));
    let figures = figures(serving).into_iter().map(|figure| (figure.0.to_owned(), Value::from(figure.2)));
    std::iter::once(seconds).chain(figures).collect()
}

/// The page of `--metrics`.
pub(super) fn page(serving: &Serving) -> Page {
    let mut page = Page::of_process();
    for Figure(name, kind, value, help) in figures(serving) {
        let total = if matches!(kind, Kind::Counter) { "_total" } else { "" };
        page.value(&format!("anabranch_cache_{name}{total}"), kind, help, value);
    }
    page
}
