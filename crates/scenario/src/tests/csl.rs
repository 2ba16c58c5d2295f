//! Scenarios in which nodes sleep between samples of the channel.

use super::*;
use anabranch_sim::radio::Station;

/// A sleeping sensor next to a router that always listens and has a cable to the rest.
const HOME: &str = r#"
stop = "100 s"

[radio]
range = 50
csl = { period = "125 ms" }

[[node]]
name = "cloud"

[[node]]
name = "router"
kind = "router"
position = [0, 0]
csl_period = "0 s"

[[node]]
name = "sensor"
kind = "node"
position = [30, 0]

[[link]]
from = "cloud"
to = "router"
rate = "10 Mbit/s"
delay = "10 ms"

[[traffic]]
name = "commands"
kind = "poisson"
over = "udp"
from = "cloud"
to = "sensor"
interval = "10 s"
payload = "40 B"
start = "1 s"
"#;

fn home() -> Source {
    Source::new("home.toml", HOME)
}

fn run(source: Source) -> (anabranch_sim::sim::Simulation, record::Metrics) {
    source.scenario().unwrap().run(1, 0, &BTreeMap::new()).expect("nothing is drawn")
}

fn error(source: Source) -> String {
    source.scenario().unwrap_err().to_string()
}

#[test]
fn a_sleepy_node_is_woken_for_what_it_is_sent() {
    let (sim, metrics) = run(home());
    let figure = |name: &str| metrics[name].value.unwrap();
    assert_eq!(figure("traffic.commands.delivery_ratio"), 1.0);
    // The router listens all the time. For the sensor, 128 of 124,960 µs are 0.1 %, plus ten
    // packets of at most about 10 ms.
    assert_eq!(figure("radio.router.duty_cycle"), 1.0);
    let duty_cycle = figure("radio.sensor.duty_cycle");
    assert!((0.001..0.0025).contains(&duty_cycle), "{duty_cycle}");
    // One complete sequence, and short ones.
    let wakeups = figure("radio.router.wakeups");
    assert!((217.0..217.0 + 90.0).contains(&wakeups), "{wakeups}");
    let radio = sim.world().network.radio().unwrap();
    assert!(radio.sleeps(Station(1)) && !radio.sleeps(Station(0)));
    assert_eq!(run(home()).1, metrics);
}

#[test]
fn what_is_resolved_means_the_same() {
    let scenario = home().scenario().unwrap();
    let text = scenario.to_toml();
    // 781 units of 160 µs.
    assert!(text.contains("period = \"124.96 ms\"") || text.contains("124960 us"), "{text}");
    let again = Source::new("resolved.toml", text).scenario().unwrap();
    assert_eq!(again, scenario);
}

#[test]
fn keys_of_sleep_are_in_the_metrics_of_energy_only_where_nodes_sleep() {
    let probe = "\n[probe.energy]\nkind = \"energy\"\nnodes = [\"sensor\"]\n";
    let text = format!("{HOME}{probe}");
    let (_, metrics) = run(Source::new("home.toml", text.clone()));
    let figure = |name: &str| metrics[&format!("probe.energy.{name}")].value.unwrap();
    let all: f64 = ["transmit_s", "receive_s", "listen_s", "off_s", "sleep_s"].map(&figure).iter().sum();
    assert!((all - 100.0).abs() < 1e-6, "{all}");
    assert!(figure("sleep_s") > 99.0);
    let awake = text.replace("csl = { period = \"125 ms\" }", "").replace("csl_period = \"0 s\"", "");
    let (_, metrics) = run(Source::new("awake.toml", awake));
    assert!(metrics.contains_key("probe.energy.off_s"));
    assert!(!metrics.contains_key("probe.energy.sleep_s"));
    assert!(
        !metrics.contains_key("radio.sensor.wakeups") && !metrics.contains_key("radio.sensor.duty_cycle")
    );
}

/// With a period of zero the run equals one without the key, event by event.
#[test]
fn nodes_that_never_sleep_are_as_before() {
    let awake = HOME.replace("csl = { period = \"125 ms\" }", "").replace("csl_period = \"0 s\"", "");
    let (without, before) = run(Source::new("awake.toml", awake));
    let (with, after) = run(home().set("radio.csl.period=0 s"));
    assert_eq!(before, after);
    let energy = |sim: &anabranch_sim::sim::Simulation| {
        sim.world().network.radio().unwrap().energy_j(sim.now(), Station(1)).to_bits()
    };
    assert_eq!(energy(&without), energy(&with));
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    for (change, words) in [
        ("radio.csl.sample=200 ms", "less than the period"),
        ("radio.csl.sample=100 us", "at least a CCA"),
        ("radio.csl.period=11 s", "65535 times 10 symbols"),
        ("radio.csl.max_period=11 s", "65535 times 10 symbols"),
        ("radio.csl.max_period=100 ms", "max_period"),
        ("radio.csl.frame_pending_wait=1 ms", "macLifsPeriod"),
        ("radio.csl.clock_accuracy_ppm=900", "0 to 500"),
        ("node.sensor.csl_period=1 s", "max_period"),
        ("node.cloud.csl_period=100 ms", "not on the air"),
    ] {
        let error = error(home().set(change));
        assert!(error.contains(words), "{change}: {error}");
    }
    let error_of_node = error(home().set("radio.csl.sample=20 ms").set("node.sensor.csl_period=10 ms"));
    assert!(error_of_node.contains("less than the period"), "{error_of_node}");
    let no_csl = HOME.replace("csl = { period = \"125 ms\" }", "");
    let error_of = |text: String| error(Source::new("bad.toml", text));
    assert!(error_of(no_csl).contains("no `csl`"));
    // 802.11 has another power-saving method, which is not simulated.
    let wifi = HOME.replace("[radio]", "[wifi]").replace("csl = { period = \"125 ms\" }", "");
    let message = error_of(wifi);
    assert!(message.contains("IEEE 802.15.4") && message.contains("csl_period"), "{message}");
    let wifi = HOME.replace("[radio]", "[wifi]");
    let message = error_of(wifi);
    assert!(message.contains("csl"), "{message}");
    println!("{message}");
    let cables = HOME.replace("position = [0, 0]", "").replace("position = [30, 0]", "");
    let cables = cables.replace("[radio]\nrange = 50\ncsl = { period = \"125 ms\" }", "");
    assert!(error_of(cables).contains("no radio"));
}

/// Paths are built, and a walking node keeps its path, although all nodes but the root sleep.
#[test]
fn rpl_and_mobility_work_over_sleeping_nodes() {
    let mesh = r#"
stop = "1200 s"

[radio]
range = 60
csl = { period = "100 ms" }

[paths]
root = "root"

[[node]]
name = "root"
kind = "router"
position = [0, 0]
csl_period = "0 s"

[[nodes]]
name = "r{i}"
count = 3
place = { line = { start = [45, 0], step = [45, 0] } }

[[node]]
name = "walker"
kind = "node"
mobility = { random-waypoint = { width = 150, height = 20, corner = [0, 0], speed = ["0.5 m/s", "1 m/s"], pause = "10 s" } }

[[traffic]]
name = "far"
kind = "poisson"
over = "udp"
from = "r3"
to = "root"
interval = "20 s"
payload = "40 B"
start = "300 s"

[[traffic]]
name = "moving"
kind = "poisson"
over = "udp"
from = "walker"
to = "root"
interval = "20 s"
payload = "40 B"
start = "300 s"
"#;
    let (_, metrics) = run(Source::new("mesh.toml", mesh));
    let figure = |name: &str| metrics[name].value.unwrap();
    let (far, moving) = (figure("traffic.far.delivery_ratio"), figure("traffic.moving.delivery_ratio"));
    println!("{far} {moving} {}", figure("radio.r1.duty_cycle"));
    assert!(far > 0.9, "{far}");
    assert!(moving > 0.6, "{moving}");
    assert!(figure("radio.r1.duty_cycle") < 0.2);
}
