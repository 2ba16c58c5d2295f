//! Links that follow trace files.

use super::*;
use crate::identity::Files;
use crate::record::Metrics;
use anabranch_sim::link::course::RateCourse;

/// Two nodes and a link with `keys`; `more` is appended.
fn pair(keys: &str, more: &str) -> String {
    format!(
        r#"
        stop = "20 s"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        name = "radio"
        from = "a"
        to = "b"
        {keys}
        {more}
        "#
    )
}

const TRANSFER: &str = "[[transfer]]\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n";

/// 12 Mbit/s for a second and 1.2 Mbit/s for another; opportunities of 1500 bytes every 1 ms and 10
/// ms.
const RATES: &str = "time,rate\n0,12 Mbit/s\n1,1.2 Mbit/s\n2,0\n";

fn opportunities() -> String {
    (1..=1000).chain((1010..=2000).step_by(10)).map(|ms| format!("{ms}\n")).collect()
}

fn file(name: &str) -> Result<String, String> {
    let content = match name {
        "cell.up" => opportunities(),
        "cell.csv" => RATES.to_owned(),
        "delays.csv" => "0,10 ms\n1,30 ms\n2,0\n".to_owned(),
        "bad.up" => "1\n2\nthree\n".to_owned(),
        "empty.csv" => String::new(),
        _ => return Err("no such file".to_owned()),
    };
    Ok(content)
}

fn source(keys: &str, more: &str) -> Source {
    Source::new("cell.toml", pair(keys, more)).with_texts(file)
}

fn files(scenario: &Scenario) -> Files {
    let content = |name: &str| (name.to_owned(), file(name).expect("it is there").into());
    scenario.files().map(content).collect()
}

fn run(source: &Source) -> Metrics {
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    scenario.run(1, 0, &files(&scenario)).unwrap().1
}

fn of(metrics: &Metrics, name: &str) -> f64 {
    metrics[name].value.unwrap_or_else(|| panic!("{name} has no value"))
}

#[test]
fn a_link_follows_its_files_there_and_back() {
    let scenario = |keys: &str| source(keys, "").scenario().unwrap_or_else(|error| panic!("{error}"));
    let links = |keys: &str| scenario(keys).links;
    let both = links("trace = { mahimahi = \"cell.up\" }\ndelay = \"5 ms\"");
    assert_eq!(both[0].config, both[1].config);
    assert_eq!(both[0].course, both[1].course);
    // 1100 opportunities in 2 s.
    assert_eq!(both[0].config.rate, 1100 * 12_000 / 2);
    let own = links(
        "trace = { rate = \"cell.csv\", repeat = true }\ndelay = \"5 ms\"\nback.trace.mahimahi = \"cell.up\"",
    );
    assert!(matches!(own[0].course.rate, Some(RateCourse::Steps(_))));
    assert!(matches!(own[1].course.rate, Some(RateCourse::Opportunities(_))));
    assert_eq!(own[0].config.rate, 6_600_000);
    // A value in `back` replaces the trace of the other direction.
    let steady = links(
        "trace = { mahimahi = \"cell.up\", delay = \"delays.csv\", repeat = true }\nback.rate = \"1 Mbit/s\"",
    );
    assert_eq!(steady[1].config.rate, 1_000_000);
    assert_eq!((steady[1].course.rate.clone(), &steady[1].course.delay), (None, &steady[0].course.delay));
    assert_eq!(steady[0].config.delay, Duration::from_millis(20));
    let taken_for = links("trace = { mahimahi = \"cell.up\" }\nrate = \"9 Mbit/s\"\ndelay = \"5 ms\"");
    assert_eq!(taken_for[0].config.rate, 9_000_000);
    let names: Vec<String> = scenario(
        "delay = \"1 ms\"\ntrace.rate = \"cell.csv\"\ntrace.repeat = true\nback.trace.mahimahi = \"cell.up\"",
    )
    .files()
    .map(str::to_owned)
    .collect();
    assert_eq!(names, ["cell.csv", "cell.up"]);
}

#[test]
fn what_is_written_follows_the_same_files() {
    let keys =
        "trace = { rate = \"cell.csv\", delay = \"delays.csv\", repeat = true }\nback.delay = \"1 ms\"";
    let scenario = source(keys, TRANSFER).scenario().unwrap();
    let again = Source::new("again", scenario.to_toml()).with_texts(file).scenario().unwrap();
    assert_eq!(again.links, scenario.links);
    assert_eq!(again.hash(), scenario.hash());
    // The content is part of a run's identity, too.
    let mut other = files(&scenario);
    let id = |files: &Files| scenario.root(files).run(1, 0);
    let before = id(&other);
    other.insert("cell.csv".to_owned(), "0,1\n".into());
    assert_ne!(id(&other), before);
}

#[test]
fn a_file_is_read_once_for_all_points() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let text = pair(
        "trace.mahimahi = \"cell.up\"\ndelay = \"1 ms\"",
        "[sweep]\n\"link.radio.queue\" = [\"10 packets\", \"20 packets\"]\n\"link.radio.trace.mahimahi\" = [\"cell.up\", \"x.up\"]",
    );
    let source = Source::new("sweep.toml", text).with_texts(move |name| {
        counted.fetch_add(1, Ordering::Relaxed);
        file(if name == "x.up" { "cell.up" } else { name })
    });
    assert_eq!(source.points().unwrap().len(), 4);
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let error = |keys: &str, more: &str| source(keys, more).scenario().unwrap_err().to_string();
    let traced = |trace: &str| error(&format!("delay = \"1 ms\"\ntrace = {trace}"), "");
    expect![[r#"
        bad.up:3:1: expected a whole number of milliseconds, found `three`
          hint: a line of a mahimahi trace is the time of one packet of 1500 bytes"#]]
    .assert_eq(&traced("{ mahimahi = \"bad.up\" }"));
    expect![[r#"
        empty.csv: the file has no row with a time and a rate
          hint: a row is as `0.5,2000000` or `500 ms,2 Mbit/s`"#]]
    .assert_eq(&traced("{ rate = \"empty.csv\" }"));
    expect![[r#"
        cell.toml:12:22: cannot read the trace `none.up`: no such file
          hint: the name of the file is relative to the folder of the scenario"#]]
    .assert_eq(&traced("{ mahimahi = \"none.up\" }"));
    expect![[r#"
        cell.toml:12:40: `mahimahi` and `rate` both say when packets may leave
          hint: remove one of them"#]]
    .assert_eq(&traced("{ mahimahi = \"cell.up\", rate = \"cell.csv\" }"));
    expect![[r#"
        cell.toml:12:9: a trace without a file
          hint: set `mahimahi`, `rate` or `delay`, each with the name of a file"#]]
    .assert_eq(&traced("{}"));
    expect![[r#"
        cell.toml:12:42: a mahimahi trace always repeats
          hint: remove `repeat`"#]]
    .assert_eq(&traced("{ mahimahi = \"cell.up\", repeat = true }"));
    expect![[r#"
        cell.csv: no packet can leave after the last row: the last rate stays, and it is 0
          hint: set `repeat = true`, or let the last rate be above 0; an event "link-down" ends a link"#]]
    .assert_eq(&traced("{ rate = \"cell.csv\" }"));
    let keys = "delay = \"1 ms\"\ntrace.mahimahi = \"cell.up\"\n";
    expect![[r#"
        cell.toml:13:9: no packet can wait for an opportunity of the mahimahi trace
          hint: set a queue that holds a packet, or more"#]]
    .assert_eq(&error(&format!("{keys}queue = \"0 packets\""), ""));
    expect![[r#"
        cell.toml:13:11: a mahimahi trace says when packets leave, and `spacing` says another thing
          hint: remove `spacing`"#]]
    .assert_eq(&error(&format!("{keys}spacing = \"1 ms\""), ""));
    let event =
        "[[event]]\nat = \"1 s\"\naction = \"set-rate\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"";
    expect![[r#"
        cell.toml:16:10: the link's rate follows a trace
          hint: change the trace, or remove it"#]]
    .assert_eq(&error(keys, event));
    let random = "[[random-event]]\nname = \"r\"\naction = \"set-rate\"\nlinks = [\"radio\"]\nrate_share = [0.5, 1]\nevery = \"1 s\"";
    expect![[r#"
        cell.toml:17:9: the rate of a link follows a trace
          hint: change the trace, or name other links"#]]
    .assert_eq(&error(keys, random));
    expect![[r#"
        cell.toml:7:9: missing key `delay`
          hint: set it, or name a file as in `trace = { delay = "delay.csv" }`"#]]
    .assert_eq(&error("rate = \"1 Mbit/s\"", ""));
    expect![[r#"
        cell.toml:7:9: missing key `rate`
          hint: set it, or name a file as in `trace = { rate = "rate.csv" }`"#]]
    .assert_eq(&error("delay = \"1 s\"", ""));
}

/// TCP over a trace whose rate changes tenfold each second uses the whole capacity of the trace
/// with every discipline; disciplines that manage their queue keep it shorter.
#[test]
fn every_discipline_fills_a_link_that_varies() {
    let measured = |trace: &str, discipline: &str| {
        let keys = format!(
            "trace = {{ {trace} }}\ndelay = \"20 ms\"\nqueue = \"100 packets\"\ndiscipline = {discipline}\nback = {{ rate = \"10 Mbit/s\" }}"
        );
        let probe = "[probe.queue]\nkind = \"queues\"\nnodes = \"a\"\nto = \"b\"\nfrom = \"2 s\"\n";
        let metrics = run(&source(&keys, &format!("{TRANSFER}{probe}")));
        let share = of(&metrics, "link.a>b.bytes") / of(&metrics, "link.a>b.trace_bytes");
        (share, of(&metrics, "probe.queue.wait_mean_s"))
    };
    for trace in ["mahimahi = \"cell.up\"", "rate = \"cell.csv\", repeat = true"] {
        let (share, longest) = measured(trace, "\"drop-tail\"");
        assert!(share > 0.9 && share <= 1.0, "{trace}: {share}");
        for discipline in ["\"codel\"", "\"fq-codel\"", "\"pie\"", "\"red\""] {
            let (share, wait) = measured(trace, discipline);
            assert!(share > 0.4 && share <= 1.0, "{trace}, {discipline}: {share}");
            assert!(wait < 0.8 * longest, "{trace}, {discipline}: {wait} s, drop-tail {longest} s");
        }
    }
}

/// Datagrams at a constant rate wait as the trace determines: in the slow second, 2.4 Mbit/s queue
/// up in front of 1.2 Mbit/s.
#[test]
fn the_queue_grows_by_what_the_trace_does_not_take() {
    let keys = "trace = { rate = \"cell.csv\", repeat = true }\ndelay = \"0 s\"\nqueue = \"1000 packets\"";
    // A payload of 1452 bytes is a packet of 1500 bytes with IPv6 and UDP; one every 5 ms.
    let traffic = "[[traffic]]\nname = \"d\"\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\npayload = \"1452 B\"\ninterval = \"5 ms\"\n";
    let metrics = run(&source(keys, traffic));
    // In a second 200 packets arrive and 100 leave; the last one finds 99 before it.
    let peak = of(&metrics, "link.a>b.queue_peak_packets");
    assert!((98.0..=101.0).contains(&peak), "{peak}");
}
