//! Makes the page. Descriptions are embedded as JSON, large tables as packed columns of numbers.

mod columns;
mod encode;

use serde_json::{Value, json};

use crate::layout;
use crate::log::Medium;
use crate::replay::Replay;

/// The parts of the page, in the order in which they stand in it: a script knows those before it.
const SCRIPTS: [&str; 16] = [
    include_str!("../assets/decode.js"),
    include_str!("../assets/search.js"),
    include_str!("../assets/fold.js"),
    include_str!("../assets/words.js"),
    include_str!("../assets/theme.js"),
    include_str!("../assets/legs.js"),
    include_str!("../assets/room.js"),
    include_str!("../assets/map.js"),
    include_str!("../assets/export.js"),
    include_str!("../assets/axes.js"),
    include_str!("../assets/phases.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/losses.js"),
    include_str!("../assets/player.js"),
    include_str!("../assets/check.js"),
    include_str!("../assets/main.js"),
];
const STYLE: &str = include_str!("../assets/style.css");
const BODY: &str = include_str!("../assets/page.html");

/// Makes one HTML page of a replay. The page loads nothing.
pub fn html(replay: &Replay) -> String {
    let title = if replay.run.name.is_empty() { "a run" } else { &replay.run.name };
    let (columns, octets) = columns::pack(replay);
    let data = encode::base64(&miniz_oxide::deflate::compress_to_vec_zlib(&octets, LEVEL));
    // A `<` in a name must not end the script element that holds the JSON.
    let facts = facts(replay, &columns).to_string().replace('<', "\\u003c");
    let script = SCRIPTS.join("\n");
    // Each placeholder occurs once, and inserted text is not searched for placeholders.
    let parts = [("{{title}}", escape(title)), ("{{style}}", STYLE.to_owned()), ("{{facts}}", facts)];
    let parts = parts.into_iter().chain([("{{data}}", data), ("{{script}}", script)]);
    let mut page = String::new();
    let mut rest = BODY;
    for (mark, text) in parts {
        let (before, after) = rest.split_once(mark).expect("the marks are in the page, in this order");
        page += before;
        page += &text;
        rest = after;
    }
    page + rest
}

/// Compression level, a compromise between speed and size: 6 of 10.
const LEVEL: u8 = 6;

fn facts(replay: &Replay, columns: &[columns::Column]) -> Value {
    let places = layout::places(replay);
    let busy = busy(replay);
    let places_are_said = replay.nodes.iter().any(|node| node.position.is_some());
    let nodes = replay.nodes.iter().zip(&places);
    let nodes: Vec<Value> =
        nodes.map(|(n, at)| json!({ "name": n.name, "kind": n.kind, "x": at.0, "y": at.1 })).collect();
    let link = |link: &crate::log::Link| {
        let over = match link.over {
            Medium::Cable => 0,
            Medium::Ieee802154 => 1,
            Medium::Ieee80211 => 2,
        };
        json!([link.from, link.to, over, link.rate, link.delay])
    };
    let flows = replay.flows.iter().zip(&replay.subflows);
    let flows: Vec<Value> = flows
        .map(|(flow, subflow)| {
            let (group, number) = subflow.map_or((None, None), |(group, number)| (Some(group), Some(number)));
            json!([flow.source, flow.destination, flow.protocol, flow.ports.0, flow.ports.1, group, number])
        })
        .collect();
    let happenings: Vec<Value> = replay.happenings.iter().map(|h| json!([h.at, h.node, h.text])).collect();
    let transfers: Vec<Value> = replay.transfers.iter().map(|t| json!([t.name, t.start, t.phases])).collect();
    let run = &replay.run;
    json!({
        "name": run.name,
        "hash": run.hash,
        // As strings: a script represents numbers exactly only up to 53 bits.
        "seed": run.seed.to_string(),
        "run": run.run.to_string(),
        "version": run.version,
        "start": replay.start,
        "end": replay.end,
        "busy": busy,
        "idle": idle(replay, busy),
        "cut": replay.cut,
        "events": replay.events,
        "held": replay.held,
        "metres": places_are_said,
        "nodes": nodes,
        "links": replay.links.iter().map(link).collect::<Vec<_>>(),
        "flows": flows,
        "transfers": transfers,
        "happenings": happenings,
        "moreHappenings": replay.more_happenings,
        "columns": columns,
    })
}

/// Time of the last visible event; timers may keep a run going long after it.
fn busy(replay: &Replay) -> u64 {
    let flights = replay.flights.iter().map(|flight| flight.end);
    let frames = replay.frames.iter().map(|frame| frame.end);
    let changes = replay.changes.iter().map(|change| change.at);
    let all = flights.chain(frames).chain(changes).chain(replay.losses.iter().map(|loss| loss.at));
    all.max().unwrap_or(replay.end)
}

/// Spans in which nothing happens, each longer than a second and than a tenth of what is shown of
/// the run: from when and until when, in nanoseconds.
fn idle(replay: &Replay, busy: u64) -> Vec<(u64, u64)> {
    let least = (busy.saturating_sub(replay.start) / 10).max(SECOND);
    let flights = replay.flights.iter().map(|f| (f.sent, f.end));
    let frames = replay.frames.iter().map(|f| (f.start, f.end));
    let legs = replay.legs.iter().map(|l| (l.start, l.end));
    let states = replay.states.iter().map(|s| s.1);
    let moments = states.chain(replay.chunks.iter().map(|c| c.at)).chain(replay.changes.iter().map(|c| c.at));
    let moments = moments.chain(replay.losses.iter().map(|l| l.at));
    let moments = moments.chain(replay.happenings.iter().map(|h| h.at)).map(|at| (at, at));
    let mut active: Vec<(u64, u64)> = flights.chain(frames).chain(legs).chain(moments).collect();
    // Tables are in order of time already: a sort that merges ordered runs has little to do.
    active.sort();
    let (mut spans, mut until) = (Vec::new(), replay.start);
    for (from, to) in active {
        // What timers do later is not shown.
        let from = from.min(busy);
        if from.saturating_sub(until) > least {
            spans.push((until, from));
        }
        until = until.max(to);
    }
    spans
}

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Text as HTML and XML have it between tags.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
