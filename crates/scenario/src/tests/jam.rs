//! Events that jam the channel.

use super::*;

/// A packet every 100 ms over one hop; the jammer sends from 3 to 5 s.
const PAIR: &str = r#"
stop = "10 s"

[radio]
range = "100 m"

[[node]]
name = "a"
kind = "node"
position = [0, 0]

[[node]]
name = "b"
kind = "node"
position = [50, 0]

[[node]]
name = "c"
kind = "node"
position = [0, 50]

[[node]]
name = "wired"

[[link]]
from = "wired"
to = "c"
rate = "1 Mbit/s"
delay = "1 ms"

[[traffic]]
name = "t"
kind = "cbr"
from = "a"
to = "b"
payload = "60 B"
interval = "100 ms"
start = "50 ms"

[[event]]
at = "3 s"
action = "jam"
lasts = "2 s"
"#;

fn source(from: &str, to: &str) -> Source {
    assert!(PAIR.contains(from), "{from}");
    Source::new("jam.toml", PAIR.replace(from, to))
}

#[track_caller]
fn figures(source: &Source) -> (f64, f64, f64) {
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    let (_, metrics) = scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    let value = |name: &str| metrics[&format!("traffic.t.{name}")].value.unwrap_or_else(|| panic!("{name}"));
    (value("packets_made"), value("packets_delivered"), value("delay_p95_s"))
}

/// A packet every 100 ms: 100 in 10 s, 20 in the 2 s of the jammer. The MAC of IEEE 802.15.4 gives
/// up a packet within milliseconds.
#[test]
fn what_is_sent_beside_a_jammer_is_lost() {
    for nodes in ["", "nodes = \"a\"\n", "nodes = [\"b\", \"c\"]\n", "nodes = \"*\"\n"] {
        let nodes = if nodes.contains('*') { "nodes = [\"a\", \"b*\"]\n" } else { nodes };
        let source = source("lasts = \"2 s\"\n", &format!("lasts = \"2 s\"\n{nodes}"));
        let (made, delivered, delay) = figures(&source);
        assert_eq!((made, delivered), (100.0, 80.0), "{nodes}");
        assert!(delay < 0.05, "{delay}");
    }
    let elsewhere = source("lasts = \"2 s\"\n", "lasts = \"2 s\"\nnodes = \"c\"\n");
    assert_eq!(figures(&elsewhere).1, 100.0);
    // Two jammers that overlap: from 3 to 6 s.
    let two = format!("{PAIR}\n[[event]]\nat = \"4 s\"\naction = \"jam\"\nlasts = \"2 s\"\n");
    assert_eq!(figures(&Source::new("two.toml", two)).1, 70.0);
    // The jammer outlasts the run.
    assert_eq!(figures(&source("lasts = \"2 s\"", "lasts = \"1 h\"")).1, 30.0);
    // A node that fails and returns meanwhile is still jammed.
    let down = "[[event]]\nat = \"3.5 s\"\naction = \"fail-node\"\nnode = \"b\"\n\
                [[event]]\nat = \"4 s\"\naction = \"recover-node\"\nnode = \"b\"\n";
    assert_eq!(figures(&Source::new("down.toml", format!("{PAIR}\n{down}"))).1, 80.0);
}

/// The MAC of IEEE 802.11 waits until the channel is clear, and its queue holds 20 packets.
#[test]
fn a_station_of_ieee_802_11_waits_for_the_end_of_a_jammer() {
    let ip4 = "[network]\nip = 4\n\n[wifi]";
    for (nodes, delivered) in [("", 100.0), ("nodes = \"a\"\n", 100.0), ("nodes = \"c\"\n", 100.0)] {
        let text =
            PAIR.replace("[radio]", ip4).replace("lasts = \"2 s\"\n", &format!("lasts = \"2 s\"\n{nodes}"));
        let (made, got, delay) = figures(&Source::new("wifi.toml", text));
        assert_eq!((made, got), (100.0, delivered), "{nodes}");
        // The first packet of the 20 waits for 1.95 s, the last for 0.05 s. Of 100 packets, 5 wait
        // for 1.5 s and more.
        assert_eq!(delay > 1.4 && delay < 1.7, !nodes.contains('c'), "{nodes} {delay}");
    }
}

#[test]
fn the_faults_of_a_jammer_are_at_each_node() {
    let faults =
        source("lasts = \"2 s\"\n", "lasts = \"2 s\"\nnodes = [\"b\", \"a\"]\n").scenario().unwrap().faults;
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let (a, b) = (NodeId(0), NodeId(1));
    let expected = [(3, b, true), (3, a, true), (5, b, false), (5, a, false)];
    assert_eq!(faults, expected.map(|(s, node, begins)| (at(s), Fault::Jam(node, begins))));
}

#[test]
fn errors_of_jammers_have_a_place_and_a_hint() {
    let check = |to: &str, expected: Expect| {
        expected.assert_eq(&source("lasts = \"2 s\"\n", to).scenario().unwrap_err().to_string());
    };
    check("", expect![[r#"jam.toml:42:10: this action needs `lasts`"#]]);
    check("lasts = \"0 s\"\n", expect![[r#"jam.toml:43:9: a jammer sends for some time"#]]);
    check(
        "lasts = \"2 s\"\nnodes = \"wired\"\n",
        expect![[r#"
            jam.toml:44:9: `wired` is not on the air
              hint: name nodes that have a `position`, or remove `nodes` for all of them"#]],
    );
    check(
        "lasts = \"2 s\"\nnodes = \"xyzzy\"\n",
        expect![[r#"
            jam.toml:44:9: there is no node and no group `xyzzy`
              hint: the nodes are `a`, `b`, `c`, `wired`"#]],
    );
    check(
        "lasts = \"2 s\"\nnode = \"a\"\n",
        expect![[r#"
            jam.toml:44:8: `node` has no meaning for the action "jam"
              hint: remove it: "jam" reads `nodes`, `lasts`"#]],
    );
    let wired = "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \
                 \"1 Mbit/s\"\ndelay = \"1 ms\"\n[[transfer]]\nname = \"t\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \
                 \"b\"\nbytes = \"1 kB\"\n[[event]]\nat = \"1 s\"\naction = \"jam\"\nlasts = \"1 s\"\n";
    let error = Source::new("wired.toml", wired).scenario().unwrap_err().to_string();
    expect![[r#"
        wired.toml:18:10: there is no node on the air to jam
          hint: give nodes a `position`, and the scenario a `[radio]` or `[wifi]`"#]]
    .assert_eq(&error);
}
