use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use super::*;

mod alias;
mod chain;
mod coap;
mod csl;
mod disciplines;
mod endings;
mod figures;
mod flows;
mod hosts;
mod jam;
mod malformed;
mod mesh;
mod messages;
mod mobility;
mod mptcp;
mod names;
mod packet_traces;
mod packets;
mod policies;
mod probes;
mod radio;
mod star;
mod topology;
mod traces;
mod traffic;
mod varying;

const GOOD: &str = r#"
name = "three hops"

[network]
ip = 6

[tcp.slow]
base = "paper"
mss = 1000

[[node]]
name = "cn"

[[node]]
name = "gw1"
kind = "gateway"

[[node]]
name = "gw2"
kind = "gateway"
energy = "low"

[[node]]
name = "sn"
kind = "node"

[[link]]
name = "wired1"
from = "cn"
to = "gw1"
rate = "100 Mbit/s"
delay = "10 ms"

[[link]]
from = "cn"
to = "gw2"
rate = "100 Mbit/s"
delay = "10 ms"

[[link]]
name = "radio1"
from = "gw1"
to = "sn"
rate = "256 kbit/s"
delay = "25 ms"
queue = "64 kB"
loss = "1 %"
back = { rate = "128 kbit/s", loss = { good_to_bad = 0.01, bad_to_good = 0.2 } }

[[link]]
from = "gw2"
to = "sn"
rate = "256 kbit/s"
delay = "25 ms"

[[transfer]]
kind = "tcp"
from = "cn"
to = "sn"
bytes = "129 kB"
tcp = "slow"

[[transfer]]
name = "update"
kind = "set"
from = "cn"
to = "sn"
bytes = "5 kB"
gateways = ["gw2", "gw1"]
default_gateway = "gw1"

[[event]]
at = "60 s"
action = "fail-node"
node = "gw2"
how = "reset"
"#;

fn good() -> Source {
    Source::new("good.toml", GOOD)
}

/// Replaces the only occurrence of `from` and shows the error.
fn check(from: &str, to: &str, expected: Expect) {
    assert_eq!(GOOD.matches(from).count(), 1, "`{from}` must stand for one place");
    let error = Source::new("bad.toml", GOOD.replace(from, to)).scenario().unwrap_err();
    expected.assert_eq(&error.to_string());
}

fn check_set(assignment: &str, expected: Expect) {
    expected.assert_eq(&good().set(assignment).scenario().unwrap_err().to_string());
}

#[test]
fn an_override_names_a_profile_of_the_file() {
    check_set(
        "tcp.slwo.congestion=bbr",
        expect![[r#"
            --set tcp.slwo.congestion=bbr: there is no profile `tcp.slwo`
              hint: did you mean `slow`?"#]],
    );
    for set in [
        "tcp.other.congestion=bbr",
        "tcp.other={}",
        "dtc.other.algorithm=paper",
        "dtc.*.algorithm=paper",
        "tcp.x*.mss=500",
    ] {
        let error = good().set(set).scenario().unwrap_err().to_string();
        assert!(error.contains("there is no profile"), "{error}");
    }
    let axis = format!("{GOOD}\n[sweep]\n\"tcp.slwo.mss\" = [500, 600]\n");
    let error = Source::new("bad.toml", axis).points().unwrap_err().to_string();
    assert!(error.contains("there is no profile `tcp.slwo`"), "{error}");
    for set in ["tcp.default.mss=500", "tcp.slow.mss=500"] {
        assert!(good().set(set).scenario().is_ok());
    }
    let cached =
        GOOD.replace("[[node]]\nname = \"sn\"", "[dtc.cache]\n[[node]]\ndtc = \"cache\"\nname = \"sn\"");
    assert!(Source::new("good.toml", cached.clone()).set("dtc.cache.algorithm=paper").scenario().is_ok());
    assert!(Source::new("bad.toml", cached).set("dtc.default.algorithm=paper").scenario().is_err());
}

/// A pattern has the same meaning among profiles and in lists; a pattern without a match is
/// refused.
#[test]
fn a_pattern_means_every_name_that_it_matches() {
    let tcp = |set: &str| {
        let scenario = good().set(set).scenario().unwrap_or_else(|error| panic!("{set}: {error}"));
        let profiles = scenario.resolved().tcp.iter();
        profiles.filter(|(_, tcp)| tcp.mss == Some(777)).map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    for (pattern, names) in [
        ("*", &["default", "slow"][..]),
        ("slow", &["slow"]),
        ("s*", &["slow"]),
        ("*w", &["slow"]),
        ("s*o*w", &["slow"]),
        ("*e*a*", &["default"]),
        ("**", &["default", "slow"]),
    ] {
        assert_eq!(tcp(&format!("tcp.{pattern}.mss=777")), names, "{pattern}");
    }
    let links = |set: &str| {
        let scenario = good().set(set).scenario().unwrap_or_else(|error| panic!("{set}: {error}"));
        let links = scenario.resolved().link.iter().filter(|link| link.mtu == 1401);
        links.map(|link| link.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(links("link.radio*.mtu=1401").len(), 1);
    assert_eq!(links("link.*.mtu=1401").len(), good().scenario().unwrap().resolved().link.len());
    for (set, why) in [
        (
            "link.zzz*.mtu=1401",
            "there is no entry `zzz*` in that list\n  hint: the names are `wired1`, `radio1`",
        ),
        ("link.*=5", "invalid type: integer `5`, expected a table"),
        ("tcp.*=5", "invalid type: integer `5`, expected a table"),
        ("tcp.*low*er.mss=777", "there is no profile `tcp.*low*er`"),
        ("network.*=5", "`*` means nothing here"),
        ("radio.*.loss=0", "`*` means nothing here"),
        ("route.*.via=sn", "`*` means nothing here"),
        ("*.radio1.loss=0", "`*` means nothing here"),
    ] {
        let error = good().set(set).scenario().unwrap_err().to_string();
        assert!(error.contains(why), "{set}: {error}");
    }
    let empty = good().set("event=[]").set("event.*.at=5 s").scenario().unwrap_err().to_string();
    assert!(empty.contains("the list is empty"), "{empty}");
}

/// Both kinds of profiles, from a file, an override and an axis.
#[test]
fn a_profile_without_a_user_is_an_error_unless_profiles_are_selected() {
    let text = |more: &str| format!("{GOOD}{more}");
    let error = |source: Source| source.scenario().expect_err("nothing uses it").to_string();
    let source = |more: &str| Source::new("odd.toml", text(more));
    let tcp = error(source("[tcp.slwo]\n"));
    assert!(tcp.contains("no transfer or traffic uses the profile `tcp.slwo`"), "{tcp}");
    assert!(tcp.contains("did you mean `[tcp.slow]`, which a transfer or traffic names?"), "{tcp}");
    let dtc = error(source("[dtc.cache]\n"));
    assert!(dtc.contains("no node uses the profile `dtc.cache`"), "{dtc}");
    assert!(dtc.contains("name it in `dtc` of a node, or remove it"), "{dtc}");
    assert!(error(source("[tcp.other]\n").set("tcp.other.mss=500")).contains("`tcp.other`"));
    assert!(source("[tcp.default]\n").scenario().is_ok());

    for selection in ["transfer.*.tcp=other", "transfer.0.tcp=other"] {
        let scenario = source("[tcp.other]\n").set(selection).scenario().expect(selection);
        // A profile that is not selected has no effect: it is not part of the record, and can be
        // read again.
        let again = Source::new("again.toml", scenario.to_toml()).scenario().expect("it is complete");
        assert_eq!(again.hash(), scenario.hash());
        assert!(scenario.resolved().tcp.contains_key("other"), "{selection}");
    }
    assert!(source("[tcp.other]\n").selecting().scenario().is_ok());
    let swept = source("[tcp.other]\n[sweep]\n\"transfer.0.tcp\" = [\"slow\", \"other\"]\n");
    assert!(swept.scenario().is_ok());
    assert_eq!(swept.points().expect("each uses one").len(), 2);
    let elsewhere = source("[tcp.other]\n[sweep]\n\"transfer.0.start\" = [\"1 s\"]\n");
    assert!(elsewhere.points().is_err());
}

#[test]
fn the_best_number_of_gateways_is_part_of_the_resolved_scenario() {
    let network = include_str!("../../../scenarios/three-gateways.toml");
    let source = Source::new("net.toml", network).set("transfer.0.gateways=best");
    let scenario = source.scenario().expect("it is legal");
    let best = scenario.advised()[&0].gateways as u32;
    assert_eq!(scenario.resolved().transfer[0].gateways, Some(file::GatewayChoice::Count(best)));
    let Scheme::Set(spec) = &scenario.transfers[0].scheme else { panic!("it is SET") };
    assert_eq!(spec.gateways, Gateways::AtMost(best));
    let said = Source::new("net.toml", network).set(format!("transfer.0.gateways={best}"));
    assert_eq!(said.scenario().expect("it is legal").hash(), scenario.hash());

    // Sections before it that make several transfers, or none, change its index.
    let several = |count: u32| {
        let flows = format!(
            "[[transfer]]\nname = \"flow {{i}}\"\nkind = \"tcp\"\nfrom = \"cn\"\nto = \"gw1\"\ncount = {count}\n"
        );
        let text = network.replacen("[[transfer]]", &format!("{flows}\n[[transfer]]"), 1);
        let source = Source::new("net.toml", text).set("transfer.1.gateways=best");
        source.scenario().unwrap_or_else(|error| panic!("{count}: {error}"))
    };
    for count in [0, 1, 3] {
        let scenario = several(count);
        assert_eq!(scenario.advised().keys().collect::<Vec<_>>(), [&(count as usize)], "{count}");
        assert_eq!(
            scenario.resolved().transfer[1].gateways,
            Some(file::GatewayChoice::Count(best)),
            "{count}"
        );
    }

    // The number depends on the length of a file, which the simulator does not read.
    let carried = source.clone().without("transfer.0.bytes").set("transfer.0.file=update.bin");
    let error = carried.scenario().expect_err("no length").to_string();
    assert!(error.contains("length of `update.bin`"), "{error}");
    let short = carried.clone().with_lengths(|_| Some(10)).scenario().expect("it is legal");
    let long = carried.with_lengths(|_| Some(10_000_000)).scenario().expect("it is legal");
    assert!(short.advised()[&0].gateways < long.advised()[&0].gateways);
}

/// Each pair of values is a contradiction, reported at the key that is named last; alone, or with
/// the values of the base, each is legal.
#[test]
fn what_contradicts_itself_is_refused() {
    for (legal, more, message) in [
        ("tcp.slow.sack=off", "tcp.slow.rack_tlp=true", "RACK-TLP needs the SACK blocks"),
        ("tcp.slow.sack=receiver", "tcp.slow.rack_tlp=true", "RACK-TLP needs the SACK blocks"),
        ("tcp.default.sack=off", "tcp.default.rack_tlp=true", "RACK-TLP needs the SACK blocks"),
        ("tcp.slow.sack=off", "tcp.slow.prr=true", "PRR needs the SACK blocks"),
        ("tcp.default.sack=receiver", "tcp.default.prr=true", "PRR needs the SACK blocks"),
        ("tcp.default.sack=off", "tcp.default.dsack=true", "D-SACK needs SACK blocks"),
        ("tcp.default.sack=sender", "tcp.default.sack_on_data=true", "`sack = \"sender\"` does not send"),
        ("tcp.slow.sack=off", "tcp.slow.sack_on_data=true", "`sack = \"off\"` does not send"),
        (
            "tcp.slow.congestion={ adaptive-newreno = { w_min = 8, w_max = 8, update_every = 1 } }",
            "tcp.slow.congestion={ adaptive-newreno = { w_min = 9, w_max = 8, update_every = 1 } }",
            "w_min = 9, is larger than the largest, w_max = 8",
        ),
        ("event.0.at=3599 s", "event.0.at=3600 s", "ends at 3600 s"),
        ("event.0.at=3 s", "event.0.at=1.5 h", "it happens at 5400 s"),
        ("transfer.0.bytes=1.5 kB", "transfer.0.bytes=1.5 B", "not a whole number of bytes"),
        ("link.radio1.queue=1500.0 B", "link.radio1.queue=1500.5 B", "not a whole number of bytes"),
        ("tcp.slow.delayed_ack_timeout=500 ms", "tcp.slow.delayed_ack_timeout=501 ms", "500 ms or less"),
        ("tcp.default.window_scale=off", "tcp.default.receive_buffer_max=128 kB", "window without scaling"),
        ("tcp.default.window_scale=7", "tcp.default.receive_buffer_max=8388481 B", "a window scale of 7"),
        ("tcp.default.receive_buffer_max=8 MB", "tcp.default.window_scale=6", "`window_scale = 7` or more"),
        ("link.radio1.reordering=0", "link.*.lateness=20 ms", "no packet is late"),
        ("link.radio1.reordering=0", "link.*.lateness=50 ms", "no packet is late"),
        ("link.radio1.ecn_threshold=64 kB", "link.radio1.ecn_threshold=65 kB", "no packet is ever marked"),
        (
            "link.wired1.ecn_threshold=100 packets",
            "link.wired1.ecn_threshold=101 packets",
            "holds 100 packets",
        ),
        ("link.wired1.ecn_threshold=20 packets", "link.wired1.queue=19 packets", "no packet is ever marked"),
        ("link.radio1.ecn_threshold=3 kB", "link.radio1.back.queue=2 kB", "no packet is ever marked"),
        ("link.radio1.queue=1500 B", "link.radio1.queue=1499 B", "holds no packet"),
        ("link.radio1.queue=0 B", "link.radio1.back.queue=1 kB", "holds no packet"),
        ("link.radio1.mtu=1280", "link.radio1.back.mtu=65000", "holds no packet"),
        ("link.radio1.queue=2.0 packets", "link.radio1.queue=2.5 packets", "not a whole number of packets"),
        ("transfer.update.start=3599 s", "transfer.update.start=3600 s", "ends at 3600 s"),
        ("transfer.update.start=3 s", "stop=3 s", "ends at 3 s"),
    ] {
        let source = good().set(legal);
        let scenario = source.clone().scenario().unwrap_or_else(|error| panic!("{legal}: {error}"));
        let again = Source::new("again.toml", scenario.to_toml()).scenario();
        let again = again.unwrap_or_else(|error| panic!("{legal}, written out: {error}"));
        assert_eq!(again.canonical_json(), scenario.canonical_json(), "{legal}");
        let error = source.set(more).scenario().expect_err(more).to_string();
        assert!(error.contains(message), "{legal}, {more}: {error}");
        assert!(error.contains("hint: "), "{legal}, {more}: {error}");
    }
    check_set(
        "tcp.slow.delayed_ack_timeout=2 s",
        expect![[r#"
            --set tcp.slow.delayed_ack_timeout=2 s: 2 s is longer than an acknowledgement may wait (RFC 9293 section 3.8.6.3)
              hint: set 500 ms or less, or `rfc_limits = false` to break the standard on purpose"#]],
    );
}

/// Values of the base silently give way.
#[test]
fn what_the_base_has_contradicts_nothing() {
    for set in [
        "tcp.default.sack=off",
        "tcp.default.sack=receiver",
        "tcp.default.sack=sender",
        "tcp.slow.prr=true",
        "tcp.slow.dsack=true",
        "tcp.default.window_scale=off",
        "tcp.default.window_scale=0",
        "tcp.slow.rack_tlp=true",
        "tcp.slow={ base = \"modern\", sack = \"off\", window_scale = \"off\" }",
        "link.radio1.lateness=50 ms",
    ] {
        let source = if set.contains("lateness") { good().set("link.radio1.reordering=0") } else { good() };
        let scenario = source.set(set).scenario().unwrap_or_else(|error| panic!("{set}: {error}"));
        let again = Source::new("again.toml", scenario.to_toml()).scenario();
        let again = again.unwrap_or_else(|error| panic!("{set}, written out: {error}"));
        assert_eq!(again.canonical_json(), scenario.canonical_json(), "{set}");
    }
}

#[test]
fn names_are_bound_and_defaults_filled_in() {
    let scenario = good().scenario().unwrap();
    let radio = &scenario.links[4];
    assert_eq!((radio.from, radio.to, radio.config.rate), (NodeId(1), NodeId(3), 256_000));
    assert_eq!(radio.config.queue, anabranch_sim::link::QueueLimit::Bytes(64_000));
    let back = scenario.links[5].config;
    assert_eq!((back.rate, back.queue), (128_000, radio.config.queue));
    assert!(matches!(back.loss, anabranch_sim::loss::LossModel::GilbertElliott { loss_bad: 1.0, .. }));
    assert_eq!(scenario.transfers[0].name, "transfer 1");
    assert_eq!(scenario.transfers[0].tcp.mss, 1000);
    let Scheme::Set(set) = &scenario.transfers[1].scheme else { panic!("not SET") };
    assert_eq!(set.gateways, Gateways::These(vec![NodeId(2), NodeId(1)]));
    assert_eq!(scenario.nodes[1].neighbours, [NodeId(3)]);
    let failure = Fault::NodeFails(NodeId(2), anabranch_sim::world::Failure::Reset);
    assert_eq!(scenario.faults, [(Instant::from_nanos(60_000_000_000), failure)]);
}

#[test]
fn the_resolved_scenario_is_a_scenario_and_means_the_same() {
    let scenario = good().scenario().unwrap();
    let again = Source::new("resolved.toml", scenario.to_toml()).scenario().unwrap();
    assert_eq!(again, scenario);
    assert_eq!(again.hash(), scenario.hash());
}

#[test]
fn the_hash_follows_the_meaning() {
    let hash = |source: Source| source.scenario().unwrap().hash();
    let base = hash(good());
    assert_eq!(base, hash(Source::new("other.toml", format!("# A comment.\n{GOOD}"))));
    for same in ["seed=7", "name=other", "description=what it is about"] {
        assert_eq!(base, hash(good().set(same)), "{same}");
    }
    assert_eq!(base, hash(good().set("link.wired1.rate=0.1 Gbit/s")));
    assert_ne!(base, hash(good().set("link.wired1.rate=99 Mbit/s")));
    expect!["c3615fbfbf2c5ecbfbd2bdcea35633557ee28eb4014f6312123cc1e4ac0068b5"].assert_eq(&base);
}

#[test]
fn overrides_reach_everything() {
    let source = good()
        .set("link.radio1.rate = \"56 kbit/s\"")
        .set("link.*.mtu=1280")
        .set("link.0.delay=1ms")
        .set("network.ip=4")
        .set("tcp.default.sack=off")
        .set("transfer.update.gateways=2");
    let scenario = source.scenario().unwrap();
    assert_eq!(scenario.links[4].config.rate, 56_000);
    assert!(scenario.links.iter().all(|l| l.config.mtu == 1280));
    assert_eq!(scenario.links[0].config.delay, Duration::from_millis(1));
    assert_eq!(scenario.network.ip, anabranch_sim::packet::IpVersion::V4);
    assert!(matches!(&scenario.transfers[1].scheme, Scheme::Set(set) if set.gateways == Gateways::AtMost(2)));
}

#[test]
fn more_gateways_than_a_table_has_room_for_are_refused() {
    let with = |gateways: usize| {
        let more = (3..=gateways).map(|i| {
            let link = "rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n";
            format!(
                "[[node]]\nname = \"gw{i}\"\nkind = \"gateway\"\n[[link]]\nfrom = \"cn\"\nto = \"gw{i}\"\n{link}\
                 [[link]]\nfrom = \"gw{i}\"\nto = \"sn\"\n{link}"
            )
        });
        Source::new("many.toml", format!("{GOOD}{}", more.collect::<String>()))
    };
    assert!(with(15).set("transfer.update.gateways=3").scenario().is_ok());
    assert!(with(16).scenario().is_ok(), "two of them are named");
    expect![[r#"
        --set transfer.update.gateways=3: 16 gateways: the table that the node sends has room for 15
          hint: name at most 15 of them: gateways = ["...", ...]"#]]
    .assert_eq(&with(16).set("transfer.update.gateways=3").scenario().unwrap_err().to_string());
}

#[test]
fn a_sweep_is_every_combination() {
    let text = format!("{GOOD}\n[sweep]\n\"link.*.mtu\" = [1280, 1500]\n\"network.ip\" = [4, 6]\n");
    let points = Source::new("sweep.toml", text).points().unwrap();
    let axes: Vec<_> = points.iter().map(|p| serde_json::to_string(&p.axes).unwrap()).collect();
    expect![[r#"
        {"link.*.mtu":1280,"network.ip":4}
        {"link.*.mtu":1280,"network.ip":6}
        {"link.*.mtu":1500,"network.ip":4}
        {"link.*.mtu":1500,"network.ip":6}"#]]
    .assert_eq(&axes.join("\n"));
    assert_eq!(points[1].scenario.links[0].config.mtu, 1280);
    assert_eq!(good().points().unwrap().len(), 1);
}

#[test]
fn what_is_set_is_no_axis_any_more() {
    let text = format!("{GOOD}\n[sweep]\n\"link.*.mtu\" = [1280, 1500]\n\"network.ip\" = [4, 6]\n");
    let points = Source::new("sweep.toml", text).set("network.ip = 4").points().unwrap();
    let axes: Vec<_> = points.iter().map(|point| point.axes.keys().collect::<Vec<_>>()).collect();
    assert_eq!(axes, [["link.*.mtu"], ["link.*.mtu"]]);
    assert!(points.iter().all(|point| point.scenario.network.ip == anabranch_sim::packet::IpVersion::V4));
}

#[test]
fn a_bad_sweep_is_an_error_with_its_place() {
    let points = |sweep: &str| {
        let source = Source::new("sweep.toml", format!("{GOOD}\n[sweep]\n{sweep}\n"));
        source.points().unwrap_err().to_string()
    };
    let all = [
        points("\"link.*.mtu\" = []"),
        points("\"link.*.mtu\" = 5"),
        points("\"link.*.mtu\" = [1500, \"big\"]"),
        points("\"link.radio2.mtu\" = [1500]"),
    ];
    expect![[r#"
        sweep.toml:79:16: an axis needs at least one value
          hint: an axis is `"path" = [value, value]`
        sweep.toml:79:16: expected a list of values
          hint: an axis is `"path" = [value, value]`
        sweep.toml:79:23: invalid type: string "big", expected a whole number in 0..=4294967295
        sweep.toml:79:22: there is no entry `radio2` in that list
          hint: did you mean `radio1`?"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn a_sweep_of_too_many_points_is_refused_before_it_is_made() {
    let axis =
        |values: usize| format!("[{}]", (1..=values).map(|v| v.to_string()).collect::<Vec<_>>().join(","));
    let points = |sweep: String| Source::new("big.toml", format!("{GOOD}\n[sweep]\n{sweep}\n")).points();
    let (thousand, more) = (axis(1000), axis(1001));
    let error = points(format!("seed = {thousand}\n\"link.radio1.mtu\" = {more}")).unwrap_err();
    expect![[r#"
        big.toml:78:1: the axes make 1,001,000 points, more than 20,000
          hint: remove values, or sweep some axes in runs of their own with --set"#]]
    .assert_eq(&error.to_string());
    // The number of combinations of sixteen axes with a thousand values each overflows every
    // integer type for sizes.
    let many: String = (0..16).map(|i| format!("\"axis{i}\" = {thousand}\n")).collect();
    assert!(points(many).unwrap_err().to_string().contains("more than 20,000"));
}

#[test]
fn more_tcp_transfers_than_ports_are_refused() {
    let network = "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
        [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let transfer = "[[transfer]]\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"1 B\"\n";
    let text = format!("{network}{}", transfer.repeat(22_201));
    let error = Source::new("many.toml", text).scenario().unwrap_err();
    expect![[r#"
        many.toml:111010:1: a transfer without a request is one of the first 22200 of a scenario: each has its port
          hint: carry more bytes in fewer transfers, or split the scenario"#]]
    .assert_eq(&error.to_string());
}

#[test]
fn errors_of_form_have_a_place_and_a_hint() {
    check(
        "queue = \"64 kB\"",
        "qeue = \"64 kB\"",
        expect![[r#"
            bad.toml:46:1: unknown key `qeue`, expected one of `name`, `from`, `via`, `to`, `only`, `enabled`, `rate`, `delay`, `trace`, `queue`, `discipline`, `ecn_threshold`, `mtu`, `loss`, `loss_factors`, `link_ack_timeout`, `arq`, `jitter`, `reordering`, `lateness`, `duplication`, `spacing`, `back`
              hint: did you mean `queue`?"#]],
    );
    check(
        "queue = \"64 kB\"",
        "queue = \"64 packet5\"",
        expect![[r#"
        bad.toml:46:9: unknown unit `packet5`, expected one of `packets`, `packet`, `B`, `kB`, `KiB`, `MB`, `MiB`, `GB`, `GiB`
          hint: did you mean `packets`?"#]],
    );
    check("queue = \"64 kB\"", "rate = \"1 bit/s\"", expect!["bad.toml:46:1: duplicate key"]);
    check("loss = \"1 %\"", "loss = 1.5", expect!["bad.toml:47:8: 1.5 is not a probability in 0..=1"]);
    check(
        "loss = \"1 %\"",
        "loss = { good_to_bad = 0.1 }",
        expect![[r#"
            bad.toml:47:8: a Gilbert-Elliott channel needs `good_to_bad` and `bad_to_good`, or `mean_good` and `mean_bad`
              hint: the first two are probabilities per packet, the others spans of time"#]],
    );
    check(
        "mss = 1000",
        "mss = -1",
        expect!["bad.toml:9:7: invalid value: integer `-1`, expected a whole number in 0..=65535"],
    );
    check("[network]", "[network", expect!["bad.toml:4:9: unclosed table, expected `]`"]);
    check(
        "base = \"paper\"",
        "base = \"papers\"",
        expect![[r#"
            bad.toml:8:8: unknown word `papers`, expected one of `modern`, `standard`, `paper`
              hint: did you mean `paper`?"#]],
    );
    check(
        "kind = \"tcp\"",
        "kind = \"udp\"",
        expect![[r#"
            bad.toml:57:8: unknown word `udp`, expected one of `tcp`, `mptcp`, `coap`, `end-to-end`, `split`, `set`
              hint: did you mean `tcp`?"#]],
    );
    check(
        "bytes = \"129 kB\"",
        "bytes = 129",
        expect![[r#"
            bad.toml:60:9: `129` has no unit; expected a size such as "129 kB"
              hint: add the unit, in one string with the number"#]],
    );
}

#[test]
fn a_wrong_rate_is_an_error() {
    for (rate, expected) in [
        (
            "\"-256 kbit/s\"",
            expect![[r#"
            bad.toml:44:8: `-256 kbit/s` is negative
              hint: leave out the sign: no quantity is negative"#]],
        ),
        (
            "\"0 bit/s\"",
            expect![[r#"
            bad.toml:44:8: `0 bit/s` is zero
              hint: to stop a link, take it down with an `[[event]]`"#]],
        ),
        (
            "\"256 kbps\"",
            expect![[r#"
            bad.toml:44:8: unknown unit `kbps`, expected one of `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`
              hint: did you mean `kbit/s`?"#]],
        ),
        (
            "\"256\"",
            expect![[r#"
            bad.toml:44:8: `256` has no unit; expected a rate such as "250 kbit/s"
              hint: add the unit, in one string with the number"#]],
        ),
        (
            "256",
            expect![[r#"
                bad.toml:44:8: `256` has no unit; expected a rate such as "250 kbit/s"
                  hint: add the unit, in one string with the number"#]],
        ),
    ] {
        let text = GOOD.replacen("\"256 kbit/s\"", rate, 1);
        let error = Source::new("bad.toml", text).scenario().unwrap_err();
        expected.assert_eq(&error.to_string());
    }
}

#[test]
fn errors_of_meaning_have_a_place_and_a_hint() {
    check(
        "node = \"gw2\"",
        "node = \"gw3\"",
        expect![[r#"
        bad.toml:75:8: there is no node `gw3`
          hint: did you mean `gw1`?"#]],
    );
    check(
        "name = \"gw2\"\n",
        "name = \"gw1\"\n",
        expect![[r#"
        bad.toml:19:8: there are two nodes of the name `gw1`
          hint: names must differ, since links and transfers use them"#]],
    );
    check("ip = 6", "ip = 5", expect!["bad.toml:5:6: expected 4 or 6, found 5"]);
    check(
        "queue = \"64 kB\"",
        "mtu = 0",
        expect!["bad.toml:46:7: an MTU of 0 bytes has no room for a packet; expected 68 or more"],
    );
    check("mss = 1000", "mss = 0", expect!["bad.toml:9:7: an MSS is in 1..=65495"]);
    check(
        "tcp = \"slow\"",
        "tcp = \"slwo\"",
        expect![[r#"
        bad.toml:61:7: there is no TCP profile `slwo`
          hint: did you mean `slow`?"#]],
    );
    check(
        "tcp = \"slow\"",
        "gateways = 2",
        expect!["bad.toml:61:12: `gateways` has no meaning for this kind of transfer"],
    );
    check(
        "[\"gw2\", \"gw1\"]",
        "[\"gw2\", \"sn\"]",
        expect![[r#"
        bad.toml:69:20: `sn` is not a gateway
          hint: give that node `kind = "gateway"`"#]],
    );
    check(
        "[\"gw2\", \"gw1\"]",
        "0",
        expect![[r#"
        bad.toml:69:12: SET needs at least one gateway
          hint: set 1 or more, name them, or remove `gateways` to use all"#]],
    );
    check(
        "[\"gw2\", \"gw1\"]",
        "3",
        expect![[r#"
        bad.toml:69:12: the network has 2 gateways, not 3
          hint: nodes of kind "gateway" count"#]],
    );
    check(
        "kind = \"set\"\nfrom = \"cn\"\nto = \"sn\"\nbytes = \"5 kB\"\ngateways = [\"gw2\", \"gw1\"]",
        "kind = \"split\"\nfrom = \"cn\"\nto = \"sn\"\nbytes = \"5 kB\"\ngateways = 2",
        expect![[r#"
        bad.toml:69:12: 2 gateways have no meaning for kind "split", which takes one
          hint: remove `gateways`, name gateways of which the nearest is taken, or set kind = "set""#]],
    );
    check(
        "bytes = \"5 kB\"\n",
        "",
        expect![[r#"
            bad.toml:65:8: `bytes` or `file` is missing
              hint: only kinds "tcp" and "mptcp" may go on for ever"#]],
    );
    check("node = \"gw2\"\n", "", expect!["bad.toml:74:10: this action needs `node`"]);
    check(
        "[[node]]\nname = \"sn\"",
        "[[node]]\nname = \"lost\"\n[[node]]\nname = \"sn\"",
        expect![[r#"
        bad.toml:24:8: the network is not connected: no link leads from `cn` to `lost`
          hint: add a `[[link]]` that joins `lost` to the others"#]],
    );
}

#[test]
fn the_kernel_can_stand_for_nodes() {
    let plain = good().scenario().unwrap();
    assert!(plain.nodes.iter().all(|node| node.tun.is_none()));
    let text = GOOD.replace("[[transfer]]", "[[unused]]").replace("[tcp.slow]", "[tcp.default]");
    let text = text.split("[[unused]]").next().unwrap_or_default();
    let text = text.replace("name = \"cn\"\n", "name = \"cn\"\nhost = \"tun\"\nnetns = \"left\"\n");
    let source = Source::new("hops.toml", text.replace("kind = \"node\"", "kind = \"node\"\nhost = \"tun\""));
    let scenario = source.scenario().unwrap();
    let tuns: Vec<_> = scenario.nodes.iter().map(|node| node.tun.clone()).collect();
    let tun = |device: &str, netns: Option<&str>| {
        let (device, netns) = (device.to_owned(), netns.map(str::to_owned));
        let devices = vec![emulation::DeviceSpec { name: device, carries: emulation::Carries::All }];
        Some(emulation::TunSpec { devices, netns, prefixes: Vec::new() })
    };
    assert_eq!(tuns, [tun("anabranch0", Some("left")), None, None, tun("anabranch3", None)]);
    assert_eq!(scenario.emulation, emulation::EmulationSection::default());
    let again = Source::new("hops.toml", scenario.to_toml()).scenario().unwrap();
    assert_eq!(again, scenario);
}

#[test]
fn errors_of_emulation_have_a_place_and_a_hint() {
    let cn = "name = \"cn\"\n";
    check(
        cn,
        "name = \"cn\"\nnetns = \"left\"\n",
        expect![[r#"
        bad.toml:13:9: `netns` has no meaning for a simulated node
          hint: add `host = "tun"`"#]],
    );
    check(
        cn,
        "name = \"cn\"\nhost = \"tun\"\n",
        expect![[r#"
        bad.toml:59:8: the kernel plays this node, and the simulator cannot run its transfers
          hint: begin and end transfers at simulated nodes, and use real programs here"#]],
    );
    check(
        cn,
        "name = \"cn\"\nhost = \"tap\"\n",
        expect![[r#"
        bad.toml:13:8: unknown word `tap`, expected `simulated` or `tun`
          hint: did you mean `tun`?"#]],
    );
    check(
        cn,
        "name = \"cn\"\nhost = \"tun\"\ndevice = \"a/b\"\n",
        expect![
            "bad.toml:14:10: `a/b` is no name of a network device: 1 to 15 letters, digits, `-` (not first), `_` or `.`"
        ],
    );
    check(
        cn,
        "name = \"cn\"\nhost = \"tun\"\nnetns = \"-b\"\n",
        expect![
            "bad.toml:14:9: `-b` is no name of a network namespace: letters, digits, `-` (not first), `_` or `.`"
        ],
    );
    check(
        "name = \"gw1\"\n",
        "name = \"gw1\"\nhost = \"tun\"\n",
        expect![[r#"
        bad.toml:66:8: the kernel plays gateway `gw1`, and the simulator cannot run its sessions
          hint: name simulated gateways in `gateways`, or use real programs here"#]],
    );
    check(
        cn,
        "name = \"cn\"\nhost = \"tun\"\n[[node]]\nname = \"other\"\nhost = \"tun\"\n",
        expect![[r#"
            bad.toml:16:8: the kernel would hand packets to `cn` over within the namespace, past the network
              hint: give every TUN end a `netns` of its own"#]],
    );
    for (keys, error) in [
        ("device = \"x\"\nradio_device = \"x\"", "15:16: both devices have one name"),
        ("radio_device = \"x\"", "14:16: the node is not between links and a radio"),
        (
            "prefixes = [\"2001:db8::\"]\nradio_device = \"a b\"",
            "15:16: `a b` is no name of a network device",
        ),
        ("prefixes = [\"x\"]", "14:13: `x` is not a prefix: invalid address"),
        (
            "prefixes = [\"2001:db8::/16\"]",
            "14:13: `2001:db8::/16` is not a prefix: the address has bits set",
        ),
        ("prefixes = [\"fd00::/16\"]", "14:13: `fd00::/16` has addresses of the network's own, `fd00::/64`"),
        ("prefixes = [\"2000::/3\"]", "14:13: `2000::/3` is no prefix of hosts behind a node"),
        ("prefixes = [\"ff05::/16\"]", "14:13: `ff05::/16` is no prefix of hosts behind a node"),
        ("prefixes = [\"fe80::/64\"]", "14:13: `fe80::/64` is no prefix of hosts behind a node"),
        ("prefixes = [\"10.1.0.0/16\"]", "14:13: `10.1.0.0/16` is of another version of IP"),
        (
            "prefixes = [\"fd01::/16\", \"fd01:2::/32\"]",
            "14:26: `fd01:2::/32` and `fd01::/16` have addresses in",
        ),
    ] {
        let text = GOOD.replacen(cn, &format!("{cn}host = \"tun\"\n{keys}\n"), 1);
        let text =
            text.split("[[transfer]]").next().unwrap_or_default().replace("[tcp.slow]", "[tcp.default]");
        let found = Source::new("bad.toml", text).scenario().expect_err(keys).to_string();
        assert!(found.starts_with(&format!("bad.toml:{error}")), "{keys}: {found}");
    }
    // Without a TUN end, the keys of emulation have no effect: the network is simulated.
    check(
        "[network]",
        "[emulation]\nlag_limit = \"0 ms\"\n[network]",
        expect!["bad.toml:5:13: events always come a little late"],
    );
}

#[test]
fn errors_of_overrides_name_them() {
    check_set(
        "link.0.rate=fast",
        expect![[
            r#"--set link.0.rate=fast: `fast` does not begin with a number; expected a rate such as "250 kbit/s""#
        ]],
    );
    check_set(
        "link.9.rate=1 bit/s",
        expect![[r#"
        --set link.9.rate=1 bit/s: there is no entry `9` in that list
          hint: there are 4 entries, counted from 0; `*` means all"#]],
    );
    check_set(
        "link.radio.rate=1 bit/s",
        expect![[r#"
        --set link.radio.rate=1 bit/s: there is no entry `radio` in that list
          hint: did you mean `radio1`?"#]],
    );
    check_set(
        "stpo=1 s",
        expect![[r#"
            --set stpo=1 s: unknown key `stpo`, expected one of `name`, `description`, `seed`, `stop`, `network`, `tcp`, `dtc`, `rdca`, `coap`, `buffers`, `radio`, `paths`, `wifi`, `aodv`, `node`, `nodes`, `deployment`, `group`, `link`, `topology`, `route`, `transfer`, `traffic`, `probe`, `event`, `random-event`, `emulation`, `alias`, `sweep`
              hint: did you mean `stop`?"#]],
    );
    check_set(
        "stop.x=1 s",
        expect![[r#"--set stop.x=1 s: invalid type: map, expected a span of time such as "25 ms""#]],
    );
    check_set("stop", expect!["--set stop: expected `path=value`"]);
    check_set(
        "transfer.0.to=nobody",
        expect![[r#"
        --set transfer.0.to=nobody: there is no node `nobody`
          hint: the nodes are `cn`, `gw1`, `gw2`, `sn`"#]],
    );
    check_set(
        "node.gw1.kind=host",
        expect![[r#"
        good.toml:70:19: `gw1` is not a gateway
          hint: give that node `kind = "gateway"`"#]],
    );
}

#[test]
fn a_scenario_runs_and_says_its_figures() {
    let source = good().set("link.*.loss=0").set("transfer.0.bytes=10 kB");
    let scenario = source.scenario().unwrap();
    let (sim, metrics) = scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    let value = |name: &str| metrics[name].value.unwrap();
    assert_eq!(value("transfer.transfer 1.delivered"), 1.0);
    assert_eq!(value("transfer.transfer 1.delivered_bytes"), 10_000.0);
    assert!((0.5..2.0).contains(&value("transfer.transfer 1.latency_s")));
    assert!(sim.now() <= scenario.stop);
    let (_, again) = scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    assert_eq!(metrics, again);
}
