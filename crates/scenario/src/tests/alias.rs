//! Aliases: short names for settings.

use super::*;
use anabranch_sim::link::QueueLimit;

const FILE: &str = r#"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "radio1"
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "10 ms"
[[transfer]]
kind = "tcp"
from = "a"
to = "b"
bytes = "10 kB"
tcp = "slow"
[tcp.slow]
base = "standard"
[alias]
loss = "link.radio*.loss"
"loss everywhere" = ["link.radio1.loss", "link.*.back.loss"]
[alias.host]
old = { "tcp.slow.base" = "paper", "tcp.slow.sack" = "off" }
new = { "tcp.slow.base" = "modern", "link.radio1.queue" = "7 packets" }
"#;

fn scenario(set: &[&str]) -> Scenario {
    let source = set.iter().fold(Source::new("alias.toml", FILE), |source, set| source.set(*set));
    source.scenario().unwrap_or_else(|error| panic!("{set:?}: {error}"))
}

#[test]
fn an_alias_stands_for_its_paths() {
    assert_eq!(scenario(&["loss=2 %"]), scenario(&["link.radio1.loss=2 %"]));
    let both = ["link.radio1.loss=0.03", "link.radio1.back.loss=0.03"];
    assert_eq!(scenario(&["loss everywhere=0.03"]), scenario(&both));
    assert_ne!(scenario(&["loss=2 %"]), scenario(&[]));
}

#[test]
fn what_follows_an_alias_follows_its_paths() {
    let set = |set: &str| Source::new("alias.toml", FILE).set("alias.cable=link.radio1").set(set).scenario();
    assert_eq!(
        set("cable.queue=9 packets").unwrap().links,
        set("link.radio1.queue=9 packets").unwrap().links
    );
    let error = set("host.old=7").unwrap_err().to_string();
    assert!(error.contains("an alias of words has nothing inside"), "{error}");
    let error = set("lost.queue=9 packets").unwrap_err().to_string();
    assert!(error.contains("unknown key `lost`"), "{error}");
}

#[test]
fn a_word_stands_for_its_settings() {
    let modern = scenario(&["host=new"]);
    assert_eq!(modern, scenario(&["tcp.slow.base=modern", "link.radio1.queue=7 packets"]));
    // Later settings win, as with paths.
    assert_eq!(
        scenario(&["host=new", "link.radio1.queue=9 packets"]).links[0].config.queue,
        QueueLimit::Packets(9)
    );
    assert_eq!(scenario(&["link.radio1.queue=9 packets", "host=new"]), modern);
}

#[test]
fn an_alias_is_an_axis() {
    let text = format!("{FILE}[sweep]\nhost = [\"old\", \"new\"]\nloss = [0, \"5 %\"]\n");
    let points = Source::new("alias.toml", text).points().expect("it is a sweep");
    assert_eq!(points.len(), 4);
    assert_eq!(points[3].axes["host"], "new");
    assert_eq!(points[3].scenario, scenario(&["host=new", "loss=5 %"]));
    assert!(!points[3].scenario.canonical_json().contains("alias"), "what was meant is what is resolved");
}

#[test]
fn what_an_alias_cannot_be_is_refused() {
    let error = |set: &str| Source::new("alias.toml", FILE).set(set).scenario().expect_err(set);
    let wrong = [
        ("host=odl", "`host` has no value `odl`, expected one of `new`, `old`", Some("did you mean `old`?")),
        ("loss=2 %%", "`2 %%`", None),
        ("los=2 %", "unknown key `los`", Some("did you mean `loss`?")),
        ("host=[1]", "expected a word, found an array", None),
        ("alias.loss=7", "expected a path, a list of paths, or a table of words", None),
        ("alias.loss=link.satellite.loss", "", None),
        (
            "alias.stop=link.radio1.loss",
            "`stop` is a key of scenario files",
            Some("choose another name for the alias"),
        ),
        (
            "alias.random-event=link.radio1.loss",
            "`random-event` is a key",
            Some("choose another name for the alias"),
        ),
    ];
    let error_in_a_section = error("link.radio1.los=2 %");
    assert_eq!(error_in_a_section.hint.as_deref(), Some("did you mean `loss`?"), "the key, not the alias");
    for (set, message, hint) in wrong {
        if message.is_empty() {
            // An invalid alias that is not used does no harm; an error of a used one names the path
            // to which it leads.
            let source = Source::new("alias.toml", FILE).set(set).set("loss=1 %");
            let error = source.scenario().expect_err(set);
            assert!(error.message.contains("no entry `satellite`"), "{error}");
            continue;
        }
        let error = error(set);
        assert!(error.to_string().starts_with(&format!("--set {set}: ")), "{error}");
        assert!(error.message.contains(message), "{set}: {error}");
        if hint.is_some() {
            assert_eq!(error.hint.as_deref(), hint, "{set}: {error}");
        }
    }
}
