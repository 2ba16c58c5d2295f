//! Links that change, retransmit, or delay packets at random.

use super::*;
use crate::record::Metrics;

/// Two nodes and a link of 12 Mbit/s and 10 ms with `keys`, and a packet of 1500 bytes every 10 ms
/// for 20 s; `more` is appended.
fn pair(keys: &str, more: &str) -> Source {
    let text = format!(
        r#"
        stop = "30 s"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[traffic]]
        name = "d"
        kind = "cbr"
        from = "a"
        to = "b"
        payload = "1452 B"
        interval = "10 ms"
        stop = "20 s"
        [[link]]
        name = "radio"
        from = "a"
        to = "b"
        rate = "12 Mbit/s"
        delay = "10 ms"
        {keys}
        {more}
        "#
    );
    Source::new("pair.toml", text)
}

fn run(keys: &str, more: &str) -> Metrics {
    let scenario = pair(keys, more).scenario().unwrap_or_else(|error| panic!("{error}"));
    let again = Source::new("again", scenario.to_toml()).scenario().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (again.hash(), &again.links, &again.faults),
        (scenario.hash(), &scenario.links, &scenario.faults)
    );
    scenario.run(1, 0, &BTreeMap::new()).unwrap().1
}

fn of(metrics: &Metrics, name: &str) -> f64 {
    metrics
        .get(name)
        .and_then(|metric| metric.value)
        .unwrap_or_else(|| panic!("{name}: {:?}", metrics.keys()))
}

fn event(at: &str, action: &str, key: &str) -> String {
    format!("[[event]]\nat = \"{at}\"\naction = \"{action}\"\nfrom = \"a\"\nto = \"b\"\n{key}\n")
}

#[test]
fn delays_and_losses_change_when_events_say_so() {
    let events =
        event("5 s", "set-delay", "delay = \"60 ms\"") + &event("15 s", "set-delay", "delay = \"20 ms\"");
    let metrics = run("", &events);
    // 1 ms of transmission; 5 s with 10 ms, 10 s with 60 ms and 5 s with 20 ms. About four packets
    // arrive together with the last one of the long delay.
    let mean = of(&metrics, "traffic.d.delay_mean_s");
    assert!((mean - (0.001 + (5.0 * 0.010 + 10.0 * 0.060 + 5.0 * 0.020) / 20.0)).abs() < 0.0001, "{mean}");
    assert_eq!(of(&metrics, "link.a>b.dropped_loss"), 0.0);

    let events = event("5 s", "set-loss", "loss = 0.2") + &event("15 s", "set-loss", "loss = 0");
    let metrics = run("", &events);
    let lost = of(&metrics, "link.a>b.dropped_loss");
    assert!((lost - 200.0).abs() < 4.0 * (1000.0f64 * 0.2 * 0.8).sqrt(), "{lost}");
    // One at 0 s and one at 20 s.
    assert_eq!(lost + of(&metrics, "link.a>b.packets"), 2001.0);

    // 2 s of bad states in each 10 s.
    let table = "loss = { mean_good = \"80 ms\", mean_bad = \"20 ms\" }";
    let lost = of(&run("", &event("0 s", "set-loss", table)), "link.a>b.dropped_loss") / 2000.0;
    let from_start = of(&run(table, ""), "link.a>b.dropped_loss") / 2000.0;
    // Bad states are correlated over 16 ms, so 2000 packets are worth about 1,000 independent ones.
    assert!((lost - 0.2).abs() < 0.05 && (from_start - 0.2).abs() < 0.05, "{lost}, {from_start}");
}

#[test]
fn delays_and_losses_change_at_random() {
    let random = |rest: &str| {
        format!("[[random-event]]\nname = \"r\"\nlinks = [\"radio\"]\nevery = \"100 ms\"\n{rest}")
    };
    let delays = random("action = \"set-delay\"\ndelay_share = [0.5, 2.5]");
    let metrics = run("", &delays);
    // Uniform from 5 to 25 ms; sometimes a packet waits for the one before it.
    let mean = of(&metrics, "traffic.d.delay_mean_s");
    assert!((mean - 0.016).abs() < 0.002, "{mean}");
    let losses = random("action = \"set-loss\"\nloss_between = [0.1, 0.3]");
    let lost = of(&run("", &losses), "link.a>b.dropped_loss") / 2000.0;
    assert!((lost - 0.2).abs() < 0.04, "{lost}");
    let error = |rest: &str| pair("", &random(rest)).scenario().unwrap_err().to_string();
    expect!["pair.toml:27:15: expected two shares, the least first, from 0 on and up to 1000"]
        .assert_eq(&error("action = \"set-delay\"\ndelay_share = [2, 1]"));
    expect![[r#"
        pair.toml:27:14: `rate_share` has no meaning for the action "set-delay"
          hint: remove it: "set-delay" reads `links`, `delay_share`"#]]
    .assert_eq(&error("action = \"set-delay\"\nrate_share = [1, 2]"));
    expect!["pair.toml:27:16: expected two probabilities, the least first"]
        .assert_eq(&error("action = \"set-loss\"\nloss_between = [0.2, 0.1]"));
    expect![[r#"pair.toml:26:10: the action "set-loss" needs `loss_between`"#]]
        .assert_eq(&error("action = \"set-loss\""));
}

#[test]
fn what_is_repeated_is_counted() {
    let arq = "loss = 0.3\narq = { limit = 2, delay = \"2 ms\" }\nback = { arq = \"off\", loss = 0 }";
    let metrics = run(arq, "");
    let repeated = of(&metrics, "link.a>b.arq_retransmissions") / 2000.0;
    // p + p^2.
    assert!((repeated - 0.39).abs() < 0.05, "{repeated}");
    let lost = of(&metrics, "link.a>b.dropped_loss") / 2000.0;
    assert!((lost - 0.027).abs() < 0.015, "{lost}");
    assert!(!metrics.contains_key("link.b>a.arq_retransmissions"));
    assert!(!run("loss = 0.3", "").contains_key("link.a>b.arq_retransmissions"));
    // A wait of 2 ms and another transmission for each retransmission.
    let mean = of(&metrics, "traffic.d.delay_mean_s");
    let survivors = (0.7 * 0.0 + 0.21 * 0.003 + 0.063 * 0.006) / 0.973;
    assert!((mean - 0.011 - survivors).abs() < 0.0003, "{mean}");
}

#[test]
fn jitter_is_added_to_the_delay() {
    for (jitter, mean) in [
        ("{ uniform = \"8 ms\", overtaking = true }", 0.004),
        ("{ exponential = \"3 ms\", overtaking = true }", 0.003),
        ("{ normal = { mean = \"50 ms\", deviation = \"5 ms\" }, overtaking = true }", 0.050),
        // 2.5 / 1.5 times the shortest time.
        ("{ pareto = { least = \"3 ms\", shape = 2.5 }, overtaking = true }", 0.005),
        // Shorter than the interval between packets, so that none waits for another.
        ("{ uniform = \"8 ms\" }", 0.004),
    ] {
        let metrics = run(&format!("jitter = {jitter}"), "");
        let seen = of(&metrics, "traffic.d.delay_mean_s") - 0.011;
        assert!((seen / mean - 1.0).abs() < 0.06, "{jitter}: {seen}");
        assert_eq!(of(&metrics, "link.a>b.packets"), 2001.0);
    }
    // Duplicates have jitter, too, and losses and late packets still occur.
    let keys =
        "jitter = { uniform = \"8 ms\", overtaking = true }\nduplication = 0.5\nreordering = 0.1\nloss = 0.1";
    let metrics = run(keys, "");
    assert!(of(&metrics, "link.a>b.dropped_loss") > 100.0);
}

/// If the link retransmits, TCP loses nothing.
#[test]
fn tcp_over_a_link_that_repeats_retransmits_nothing() {
    let transfer = "[[transfer]]\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n";
    let metrics = |arq: &str| {
        run(&format!("loss = 0.05\nqueue = \"1000 packets\"\nback = {{ loss = 0 }}\n{arq}"), transfer)
    };
    let with = metrics("arq = { limit = 20, delay = \"1 ms\" }");
    let without = metrics("");
    let goodput = |metrics| of(metrics, "transfer.transfer 1.goodput_bit_per_s");
    assert_eq!(of(&with, "link.a>b.dropped_loss"), 0.0);
    assert!(goodput(&with) > 3.0 * goodput(&without), "{} {}", goodput(&with), goodput(&without));
}

#[test]
fn what_makes_no_sense_is_said() {
    let error = |keys: &str, more: &str| pair(keys, more).scenario().unwrap_err().to_string();
    expect![[r#"
        pair.toml:22:20: `link_ack_timeout` is for a link layer that repeats nothing, and `arq` for one that does
          hint: remove one of them; a caching node (`dtc`) works above either"#]].assert_eq(&error("arq = { limit = 3, delay = \"1 ms\" }\nlink_ack_timeout = \"5 ms\"", ""));
    expect!["pair.toml:21:25: expected 0 to 10000 repetitions, found 10001"]
        .assert_eq(&error("arq = { limit = 10001, delay = \"1 ms\" }", ""));
    expect![[r#"
        pair.toml:21:18: expected exactly one of `uniform`, `normal`, `exponential` and `pareto`
          hint: as in `jitter = { exponential = "5 ms" }`; "off" is none"#]]
    .assert_eq(&error("jitter = {}", ""));
    expect![[r#"
        pair.toml:21:18: expected exactly one of `uniform`, `normal`, `exponential` and `pareto`
          hint: as in `jitter = { exponential = "5 ms" }`; "off" is none"#]]
    .assert_eq(&error("jitter = { uniform = \"1 ms\", exponential = \"1 ms\" }", ""));
    expect!["pair.toml:21:55: expected more than 0 and at most 100"]
        .assert_eq(&error("jitter = { pareto = { least = \"1 ms\", shape = 0 } }", ""));
    expect!["pair.toml:21:39: expected more than 0 and less than `most`, 10 s"]
        .assert_eq(&error("jitter = { pareto = { least = \"20 s\", shape = 2 } }", ""));
    expect![[r#"
        pair.toml:21:16: a Gilbert-Elliott channel needs `good_to_bad` and `bad_to_good`, or `mean_good` and `mean_bad`
          hint: the first two are probabilities per packet, the others spans of time"#]].assert_eq(&error("loss = { good_to_bad = 0.1 }", ""));
    expect![[r#"
        pair.toml:21:16: a Gilbert-Elliott channel needs `good_to_bad` and `bad_to_good`, or `mean_good` and `mean_bad`
          hint: the first two are probabilities per packet, the others spans of time"#]].assert_eq(&error("loss = { good_to_bad = 0.1, mean_bad = \"1 s\" }", ""));
    expect!["pair.toml:21:48: expected 100 us or more"]
        .assert_eq(&error("loss = { mean_good = \"1 s\", mean_bad = \"1 us\" }", ""));
    expect![[r#"
        pair.toml:27:8: `loss` has no meaning for the action "set-delay"
          hint: remove it: "set-delay" reads `from`, `to`, `delay`"#]]
    .assert_eq(&error("", &event("1 s", "set-delay", "loss = 0.1")));
    expect!["pair.toml:24:10: this action needs `delay`"]
        .assert_eq(&error("", &event("1 s", "set-delay", "")));
    expect![[r#"
        pair.toml:27:8: a Gilbert-Elliott channel needs `good_to_bad` and `bad_to_good`, or `mean_good` and `mean_bad`
          hint: the first two are probabilities per packet, the others spans of time"#]].assert_eq(&error("", &event("1 s", "set-loss", "loss = { mean_good = \"1 s\" }")));
}
