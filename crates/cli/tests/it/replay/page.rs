//! Tests of pages in a browser, each with desktop and phone sizes, light and dark.

use std::path::PathBuf;

use anabranch_testkit::browser::{Browser, Scheme, View};
use anabranch_view::page;
use anabranch_view::replay::{Repair, Replay, Transfer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::replay::million::{MILLION, grid};
use crate::replay::world::*;

const VIEWS: [((u32, u32), Scheme); 4] = [
    ((1280, 900), Scheme::Light),
    ((1280, 900), Scheme::Dark),
    ((390, 844), Scheme::Light),
    ((390, 844), Scheme::Dark),
];

fn written(replay: &Replay) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("page.html");
    std::fs::write(&file, page::html(replay)).expect("a page");
    (folder, file)
}

fn repairs(replay: &Replay) -> Value {
    let mut counts = [0; 9];
    for loss in &replay.losses {
        counts[match loss.repair {
            Repair::None => 0,
            Repair::EndToEnd { .. } => 1,
            Repair::LocalCache { .. } => 2,
            Repair::OtherSubflow { .. } => 3,
            Repair::Session { .. } => 4,
            Repair::LinkLayer { .. } => 5,
            Repair::NotMissing => 6,
            Repair::NotNeeded => 7,
            Repair::GivenUp => 8,
        }] += 1;
    }
    json!(counts)
}

/// Checks that the page contains the replay's data, shows and plays it, and fits the window.
#[track_caller]
fn check(replay: &Replay, times: &[f64], views: &[((u32, u32), Scheme)]) {
    let Some(browser) = Browser::find() else { return };
    let (_folder, file) = written(replay);
    let listed = times.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    for &(size, scheme) in views {
        let view = View { file: &file, fragment: &format!("selftest={listed}"), size, scheme };
        let answer = browser.answer(&view);
        let said: Value = serde_json::from_str(&answer.json).expect("JSON");
        let where_ = format!("{} at {size:?} {scheme:?}: {said}", replay.run.name);
        assert_eq!(said["errors"], json!([]), "{where_}");
        assert_eq!(answer.console, [""; 0], "{where_}");
        let rows = json!({
            "packet": replay.packets.len(),
            "flight": replay.flights.len(),
            "frame": replay.frames.len(),
            "state": replay.states.len(),
            "chunk": replay.chunks.len(),
            "change": replay.changes.len(),
            "leg": replay.legs.len(),
            "loss": replay.losses.len(),
        });
        assert_eq!(said["rows"], rows, "{where_}");
        assert_eq!(said["repairs"], repairs(replay), "{where_}");
        for (time, shown) in times.iter().zip(said["moments"].as_array().expect("moments")) {
            let moment = replay.at(nanos(*time));
            assert_eq!(shown["queued"], json!(moment.queued), "{where_}");
            assert_eq!(shown["under_way"], json!(moment.under_way), "{where_}");
            // A few links are enough, and each takes a walk over all packets.
            let links = 0..replay.links.len().min(8) as u32;
            let busy: Vec<u64> = links.map(|link| replay.busy(link, nanos(*time))).collect();
            assert_eq!(shown["busy"], json!(busy), "{where_}");
            let sum = |counts: &[u32]| counts.iter().sum::<u32>();
            let counters = json!([
                sum(&moment.queued),
                sum(&moment.under_way),
                moment.on_air,
                moment.arrived,
                moment.lost
            ]);
            assert_eq!(shown["shown"], counters, "{where_}");
        }
        assert!(said["played"].as_f64().is_some_and(|nanos| nanos > 0.0), "{where_}");
        assert_eq!((&said["paused"], &said["at_end"]), (&json!(true), &json!(true)), "{where_}");
        assert_eq!(said["overlaps"], json!([]), "{where_}");
        assert_eq!(said["collisions"], json!([]), "{where_}");
        assert_eq!(said["window"], json!(size.0), "{where_}");
        assert!(said["wide"].as_u64() <= Some(size.0.into()), "{where_}");
        assert_eq!(said["dark"], json!(scheme == Scheme::Dark), "{where_}");
        assert!(said["drawn"].as_u64() > Some(1000), "{where_}");
        assert_eq!(said["tables"].as_u64() > Some(0), !replay.losses.is_empty(), "{where_}");
    }
}

/// What a page says of itself at a time, in a window on a desk.
fn said_at(browser: &Browser, replay: &Replay, time: f64) -> Value {
    let (_folder, file) = written(replay);
    let fragment = &format!("selftest={time}");
    let answer = browser.answer(&View { file: &file, fragment, size: (1280, 900), scheme: Scheme::Light });
    serde_json::from_str(&answer.json).expect("JSON")
}

/// What a link can do and how busy it is: on its label, and in the pointer's explanation.
#[test]
fn links_have_rate_delay_and_utilisation() {
    let Some(browser) = Browser::find() else { return };
    let said = said_at(&browser, &replay(&logged(&scenario(&codel("off", ""))).1), 0.8);
    let bottleneck = json!(["5 Mbit/s, 19 ms", "95 % →  4 % ←"]);
    assert_eq!(said["moments"][0]["labels"][1], bottleneck, "{said}");
    // The rate at the end of the run is another.
    let tip = "r → b\ncable, 2 Mbit/s, 19 ms\ntransmits 77 % of the last second\n0 packets wait";
    assert_eq!(said["tips"][1], json!(tip), "{said}");
}

/// Transfers one after another across a dumbbell, at these times in seconds.
fn transfers(times: &[u32]) -> String {
    let mut text = String::from("name = \"transfers, \\\"later\\\"\"\nstop = \"10 min\"\n");
    for (name, kind) in [("a", "host"), ("r", "router"), ("b", "host")] {
        text += &format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    }
    for ends in ["ar", "rb"] {
        let (from, to) = ends.split_at(1);
        text +=
            &format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n");
    }
    for (i, time) in times.iter().enumerate() {
        text += &format!(
            "[[transfer]]\nname = \"t{i}\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"{} kB\"\nstart = \"{time} s\"\n",
            40 - i
        );
    }
    text
}

/// Twelve flows have lines of their own, the others are grey; each chart can be saved.
#[test]
fn charts_show_the_goodput_of_all_flows_and_can_be_saved() {
    let Some(browser) = Browser::find() else { return };
    let said = said_at(&browser, &replay(&logged(&scenario(&transfers(&[0; 15]))).1), 1.0);
    let charts = said["charts"].as_array().expect("charts");
    let goodput = &charts[0];
    let names = goodput["names"].as_array().expect("names");
    assert_eq!((goodput["lines"].as_u64(), names.len()), (Some(15), 13), "{goodput}");
    assert_eq!((&names[0], &names[12]), (&json!("a → b, TCP 49152→25000"), &json!("3 more")), "{goodput}");
    assert_eq!(charts.len(), 5, "{said}");
    for (chart, kind) in charts.iter().zip(["goodput", "bytes", "windows", "round-trip", "queue"]) {
        let files =
            ["svg", "csv"].map(|ending| [format!("transfers-later-{kind}.{ending}"), "blob:".to_owned()]);
        assert_eq!(chart["saved"], json!(files.concat()), "{chart}");
        assert_eq!((&chart["svg"], &chart["visible"]), (&json!("svg"), &json!(true)), "{chart}");
        // Background, axes, and each line twice: in the plot and in the legend.
        assert!(chart["paths"].as_u64() >= Some(5) && chart["rows"].as_u64() > Some(5), "{chart}");
        let head = format!("time (s),series,{}", chart["unit"].as_str().expect("a unit"));
        assert_eq!(chart["csv"][0], json!(head), "{chart}");
    }
    assert!(
        goodput["csv"][1].as_str().is_some_and(|row| row.contains(",\"a → b, TCP 49152→25000\",")),
        "{goodput}"
    );
}

/// A deployed push stands below the simulated one, takes longer, and has a long name.
#[test]
fn phases_are_bars_on_one_axis() {
    let mut replay = replay(&logged(&scenario(THREE_GATEWAYS)).1);
    let name = "a report, with a long name that no phone has room for.json: [fd00::4]:47200".to_owned();
    replay.transfers.push(Transfer { name, start: None, phases: vec![1_000_000_000, 0, 1_500_000_000] });
    check(&replay, &[1.0], &VIEWS);
    let Some(browser) = Browser::find() else { return };
    let said = said_at(&browser, &replay, 1.0);
    let chart = &said["charts"][0];
    assert_eq!(chart["title"], json!("Phases of SET transfers"), "{said}");
    let names = ["request", "handshakes", "first byte", "striping", "tail", "confirmation"];
    assert_eq!(chart["names"], json!(names), "{chart}");
    let request = replay.transfers[0].phases[0] as f64 / 1e9;
    let rows = ["transfer,phase,start (s),end (s)".to_owned(), {
        format!("\"cn → sn, simulated\",request,0.000000000,{request:.9}")
    }];
    assert_eq!((&chart["csv"], &chart["rows"]), (&json!(rows), &json!(9)), "{chart}");
    assert_eq!((&chart["svg"], &chart["visible"]), (&json!("svg"), &json!(true)), "{chart}");
    // A bar for each phase, and a square for each entry of the legend.
    assert!(chart["paths"].as_u64() >= Some(9 + 6), "{chart}");
    assert_eq!(chart["saved"][0], json!("three-gateways-phases.svg"), "{chart}");
    // Of many transfers the first ones have bars, and all have rows in the file.
    let one = replay.transfers[0].clone();
    replay.transfers.extend(std::iter::repeat_n(one, 49));
    let said = said_at(&browser, &replay, 1.0);
    let chart = &said["charts"][0];
    assert_eq!(chart["title"], json!("Phases of SET transfers, the first 40 of 50"), "{chart}");
    assert_eq!(chart["rows"], json!(50 * 6 + 3), "{chart}");
}

#[test]
fn two_paths_share_the_axes_of_windows_and_round_trips() {
    let Some(browser) = Browser::find() else { return };
    let said = said_at(&browser, &replay(&logged(&scenario(&transfers(&[0, 0]))).1), 0.5);
    let names = said["second"].as_array().expect("names");
    let both = |figure: &str| [format!("1: {figure}"), format!("2: {figure}")];
    for figure in both("congestion window").iter().chain(&both("unacknowledged")) {
        assert!(names[0].as_array().is_some_and(|all| all.contains(&json!(figure))), "{said}");
    }
    assert_eq!(names[1], json!(both("smoothed round-trip time")), "{said}");
    // With one flow there is nothing to compare.
    let alone = said_at(&browser, &replay(&logged(&scenario(&transfers(&[0]))).1), 0.5);
    assert_eq!(alone["second"], Value::Null, "{alone}");
}

/// Axes have a break where nothing happens, and the player goes on behind it, unless the box is not
/// checked.
#[test]
fn idle_time_is_folded() {
    let Some(browser) = Browser::find() else { return };
    let said = said_at(&browser, &replay(&logged(&scenario(&transfers(&[0, 20, 45]))).1), 0.5);
    let folded = &said["folded"];
    let lengths: Vec<f64> =
        folded["lengths"].as_array().expect("two").iter().filter_map(Value::as_f64).collect();
    assert!(lengths[0] < 4.0 && lengths[1] > 45.0, "{folded}");
    assert_eq!((&folded["exact"], &folded["hidden"]), (&json!(true), &json!(false)), "{folded}");
    assert_eq!(folded["leaps"], json!([20, 45]), "{folded}");
    let busy = said_at(&browser, &replay(&logged(&scenario(&transfers(&[0]))).1), 0.5);
    assert_eq!(busy["folded"]["hidden"], json!(true), "{busy}");
}

#[test]
fn three_gateways() {
    check(&replay(&logged(&scenario(THREE_GATEWAYS)).1), &[0.3, 1.0, 2.2], &VIEWS);
}

#[test]
fn a_lost_gateway() {
    check(&replay(&logged(&scenario(&lost_gateway())).1), &[0.9, 1.0, 2.2], &VIEWS);
}

#[test]
fn a_radio() {
    check(&replay(&logged(&scenario(THREE_HOPS)).1), &[0.5, 1.0, 4.0], &VIEWS);
}

#[test]
fn a_chain_that_caches() {
    check(&replay(&logged(&scenario(&caching_chain())).1), &[0.5, 1.5, 4.0], &VIEWS);
}

#[test]
fn a_queue_with_codel() {
    check(&replay(&logged(&scenario(&codel("off", ""))).1), &[0.5, 0.95, 2.5], &VIEWS[..1]);
}

#[test]
fn several_paths() {
    check(&replay(&logged(&scenario(DIAMOND)).1), &[65.0, 75.0, 170.0], &VIEWS);
}

#[test]
fn nothing_at_all() {
    let empty = "name = \"nothing\"\nstop = \"1 s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
                 [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n";
    check(&replay(&logged(&scenario(empty)).1), &[0.0], &VIEWS[..1]);
}

#[test]
fn a_million_events() {
    let (_, log) = logged(&scenario(&grid(MILLION.0, MILLION.1, MILLION.2)));
    let replay = replay(&log);
    check(&replay, &[1.0, 4.0, 7.0], &[VIEWS[0], VIEWS[3]]);
}

#[test]
fn a_damaged_page_and_an_old_browser_say_so_in_words() {
    let Some(browser) = Browser::find() else { return };
    let replay = replay(&logged(&scenario(THREE_HOPS)).1);
    let (_folder, file) = written(&replay);
    let page = std::fs::read_to_string(&file).expect("a page");
    let said = |page: &str| {
        std::fs::write(&file, page).expect("a page");
        let view = View { file: &file, fragment: "", size: (390, 844), scheme: Scheme::Light };
        browser.probe(&view, "new Promise((done) => setTimeout(() => done(document.getElementById('warning').textContent), 500))").json
    };
    let old = page.replacen("\"use strict\";", "\"use strict\"; delete window.DecompressionStream;", 1);
    assert!(said(&old).contains("no DecompressionStream"), "{}", said(&old));
    let start = page.find("text/plain\" id=\"data\">").expect("the data") + 40;
    let damaged = format!("{}AAAA{}", &page[..start], &page[start + 4..]);
    assert!(said(&damaged).len() > 10, "{}", said(&damaged));
    assert_eq!(said(&page), "\"\"");
}
