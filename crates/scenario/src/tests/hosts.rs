//! Hosts with several interfaces, pools of send buffers, repeated transfers, random events.

use std::collections::BTreeSet;

use super::random::RandomFault;
use super::*;
use anabranch_sim::apps::Sink;
use anabranch_sim::sim::Fault;

const PAPER: &str = include_str!("../../../../scenarios/papers/sockbuf.toml");

fn paper() -> Source {
    Source::new("sockbuf.toml", PAPER).set("stop=30 s")
}

fn run(source: &Source) -> record::Metrics {
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn but events").1
}

#[track_caller]
fn figure(metrics: &record::Metrics, name: &str) -> f64 {
    metrics.get(name).unwrap_or_else(|| panic!("no {name}")).value.unwrap_or_else(|| panic!("{name} is null"))
}

/// `a` has two routes to `b`: over `x` with the links "fast", and over `y` and `z` with "slow".
const TWO_WAYS: &str = r#"
stop = "20 s"
[[node]]
name = "a"
interfaces = ["fast", "slow"]
[[node]]
name = "b"
[[nodes]]
name = "{i}"
first = 1
count = 3
kind = "router"
[[link]]
name = "fast"
from = "a"
to = "1"
rate = "4 Mbit/s"
delay = "5 ms"
[[link]]
name = "last"
from = "1"
to = "b"
rate = "4 Mbit/s"
delay = "5 ms"
[[link]]
name = "slow"
from = "2"
to = "a"
rate = "1 Mbit/s"
delay = "5 ms"
[[link]]
from = "2"
to = "3"
rate = "4 Mbit/s"
delay = "5 ms"
[[link]]
from = "3"
to = "b"
rate = "4 Mbit/s"
delay = "5 ms"
[[link]]
from = "2"
to = "1"
rate = "4 Mbit/s"
delay = "5 ms"
"#;

fn two_ways(rest: &str) -> Source {
    Source::new("two.toml", format!("{TWO_WAYS}{rest}"))
}

const TCP: &str = "[[transfer]]\nname = \"t\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n";

#[test]
fn a_pool_is_respected_whoever_divides_it() {
    for policy in ["pid", "atbt", "atbt-original", "drs", "product", "fixed"] {
        let source = paper().set(format!("buffers.host.policy={policy}")).set("buffers.host.memory=300 kB");
        let metrics = run(&source.set("transfer.single*.count=5"));
        let of = |name: &str| figure(&metrics, &format!("buffers.mh.{name}"));
        assert_eq!(of("memory_bytes"), 300_000.0);
        assert!(of("peak_limits_bytes") <= 300_000.0, "{policy}");
        assert!(of("peak_held_bytes") <= of("peak_limits_bytes") && of("peak_held_bytes") > 0.0, "{policy}");
        assert!(of("striped_limit_mean_bytes") > 0.0 && of("single_limit_mean_bytes") > 0.0, "{policy}");
        assert_eq!((of("overfull"), of("connections_refused")), (0.0, 0.0), "{policy}");
        assert!(of("decisions") >= 58.0, "{policy}: one in each half second");
        assert_eq!(metrics["buffers.mh.held_bytes"].unit, "B");
        let paths: Vec<f64> =
            (0..3).map(|n| figure(&metrics, &format!("transfer.striped.subflow.{n}.path"))).collect();
        assert_eq!(paths, [1.0, 2.0, 3.0], "{policy}");
        for transfer in ["striped", "single 1", "single 5", "background 1"] {
            assert!(figure(&metrics, &format!("transfer.{transfer}.delivered_bytes")) > 10_000.0, "{policy}");
        }
    }
    let no_pool = run(&paper().set("buffers.host.memory=2 MB").set("node.mh.buffers=host"));
    assert!(no_pool.keys().all(|name| !name.starts_with("buffers.fh")));
}

#[test]
fn a_pool_of_a_host_with_one_link_hears_of_its_rate() {
    let text = "node = [{ name = \"a\", buffers = \"b\" }, { name = \"b\" }]\n\
                stop = \"20 s\"\nlink = [{ from = \"a\", to = \"b\", rate = \"8 Mbit/s\", delay = \"50 ms\" }]\n\
                buffers = { b = { policy = \"product\" } }\n";
    let mean = |source: Source| figure(&run(&source), "buffers.a.single_limit_mean_bytes");
    let source = Source::new("one", format!("{text}{TCP}"));
    // Twice 8 Mbit/s times a round trip of 100 ms or more.
    let (told, untold) = (mean(source.clone()), mean(source.set("buffers.b.reports=off")));
    assert!((200_000.0..260_000.0).contains(&told) && told != untold, "{told} and {untold}");
}

#[test]
fn connections_keep_to_the_interfaces_that_they_name() {
    let carried =
        |metrics: &record::Metrics, link: &str| figure(metrics, &format!("link.{link}.bytes")) > 100_000.0;
    let forth = ["a>1", "1>b", "a>2", "2>3", "3>b", "2>1"];
    let used = |rest: &str| {
        let metrics = run(&two_ways(rest));
        forth.into_iter().filter(|link| carried(&metrics, link)).collect::<Vec<_>>()
    };
    assert_eq!(used(TCP), ["a>1", "1>b"], "the shortest way");
    assert_eq!(used(&format!("{TCP}interfaces = [\"fast\"]\n")), ["a>1", "1>b"]);
    let slow = format!("{TCP}interfaces = [\"slow\"]\n");
    assert_eq!(used(&slow), ["a>2", "2>3", "3>b"], "of equal ways the one over the first link");
    let bent = "[[route]]\nat = \"2\"\nto = \"b\"\nvia = \"1\"\ninterface = \"slow\"\n";
    assert_eq!(used(&format!("{slow}{bent}")), ["1>b", "a>2", "2>1"]);
    assert_eq!(used(&format!("{TCP}{bent}")), ["a>1", "1>b"], "others are as before");
    let both = TCP.replace("\"tcp\"", "\"mptcp\"");
    assert_eq!(used(&both), forth[..5], "a subflow on each");
    assert_eq!(used(&format!("{both}interfaces = [\"slow\"]\n")), ["a>2", "2>3", "3>b"]);
    // Packets in the reverse direction keep to the interface, too.
    let metrics = run(&two_ways(&format!("{slow}{bent}")));
    assert_eq!(figure(&metrics, "link.1>a.packets"), 0.0);
    assert!(figure(&metrics, "link.2>a.packets") > 100.0 && figure(&metrics, "link.1>2.packets") > 100.0);
    // There is no detour while the interface is down.
    let down = "[[event]]\nat = \"1 s\"\naction = \"link-down\"\nfrom = \"a\"\nto = \"2\"\n";
    let metrics = run(&two_ways(&format!("{slow}{down}")));
    assert_eq!(figure(&metrics, "link.a>1.packets"), 0.0);
}

#[test]
fn paths_of_two_hosts_have_numbers_of_their_own() {
    let scenario = two_ways(&format!("{TCP}interfaces = [\"slow\"]\n")).set("node.b.interfaces=[\"last\"]");
    let scenario = scenario.scenario().unwrap();
    let paths: Vec<u8> = scenario.nodes.iter().flat_map(|node| &node.interfaces).map(|i| i.path).collect();
    assert_eq!(paths, [1, 2, 3]);
    assert!(scenario.ways.iter().all(|way| way.path == 2));
}

#[test]
fn transfers_that_are_alike_are_said_once() {
    let rest = format!(
        "{}count = 5\ninterfaces = [\"fast\", \"slow\"]\nport = 80\n",
        TCP.replace("\"t\"", "\"flow {i}\"")
    );
    let scenario = two_ways(&rest).scenario().unwrap();
    let seen: Vec<_> =
        scenario.transfers.iter().map(|t| (t.name.as_str(), t.port, t.interfaces.paths()[0])).collect();
    assert_eq!(
        seen,
        [("flow 1", 80, 1), ("flow 2", 81, 2), ("flow 3", 82, 1), ("flow 4", 83, 2), ("flow 5", 84, 1)]
    );
    let metrics = run(&two_ways(&rest));
    assert!((1..=5).all(|i| figure(&metrics, &format!("transfer.flow {i}.delivered_bytes")) > 10_000.0));
    assert!(two_ways(&rest).set("transfer.flow*.count=0").scenario().unwrap().transfers.is_empty());
}

#[test]
fn a_transfer_comes_and_goes() {
    let repeat = "repeat = { on = \"2 s\", off = \"3 s\", offset = \"1 s\", stagger = \"4 s\" }\n";
    let rest = format!("{}count = 3\nstart = \"2 s\"\n{repeat}", TCP.replace("\"t\"", "\"t{i}\""));
    let scenario = two_ways(&rest).scenario().unwrap();
    let second = Duration::from_secs(1);
    let begins = |member: usize| {
        let connections = scenario.transfers[member].connections(scenario.stop);
        assert!(connections.iter().all(|(begin, end)| *end == Some(*begin + second * 2)));
        connections.iter().map(|(begin, _)| begin.as_secs_f64()).collect::<Vec<_>>()
    };
    assert_eq!(begins(0), [3.0, 8.0, 13.0, 18.0]);
    assert_eq!(begins(1), [2.0, 7.0, 12.0, 17.0]);
    assert_eq!(begins(2), [6.0, 11.0, 16.0]);
    let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
    let mut sim = builder.build();
    sim.run_until(scenario.stop);
    let sink = sim.app::<Sink>(planned.transfers[0].sink);
    let times: Vec<f64> = sink.transfers.iter().map(|t| t.accepted.as_secs_f64().floor()).collect();
    assert_eq!(times, [3.0, 8.0, 13.0, 18.0]);
    let metrics = scenario.metrics(&planned, &sim);
    assert_eq!(figure(&metrics, "transfer.t1.connections"), 4.0);
    let all: u64 = sink.transfers.iter().map(|t| t.bytes).sum();
    assert_eq!(figure(&metrics, "transfer.t1.delivered_bytes"), all as f64);
    let stopped = two_ways(&rest).set("transfer.t*.stop=14 s").scenario().unwrap();
    let connections = stopped.transfers[0].connections(stopped.stop);
    assert_eq!(connections.len(), 3);
    assert_eq!(connections[2].1, Some(Instant::ZERO + second * 14), "the last one is cut");
}

#[test]
fn a_transfer_without_end_stops_in_time_and_a_receiver_reads_for_a_while() {
    let bytes = |rest: &str| figure(&run(&two_ways(&format!("{TCP}{rest}"))), "transfer.t.delivered_bytes");
    let (all, half) = (bytes(""), bytes("stop = \"10 s\"\n"));
    assert!((0.4..0.6).contains(&(half / all)), "{half} of {all}");
    assert_eq!(figure(&run(&two_ways(&format!("{TCP}stop = \"10 s\"\n"))), "transfer.t.delivered"), 1.0);
    let reads = "start = \"2 s\"\nreads_for = \"3 s\"\n";
    let a_while = bytes(reads);
    assert!(a_while > 500_000.0 && a_while < 1_600_000.0, "{a_while}");
    // Data that was sent but not read waits in the receiver's buffer.
    let sent = |profile: &str| {
        let source = two_ways(&format!("{TCP}{reads}tcp_receiver = \"r\"\n{profile}"));
        figure(&run(&source), "link.1>b.bytes")
    };
    let small = sent("[tcp.r]\nreceive_buffer = \"20 kB\"\n");
    let large = sent("[tcp.r]\nreceive_buffer = \"1 MB\"\n");
    assert!(large > small + 500_000.0, "{small} and {large}");
}

#[test]
fn random_events_are_drawn_for_each_run() {
    let scenario = paper().set("random-event.wireless links.every=5 s").scenario().unwrap();
    let drawn = |run| scenario.plan(3, run, &BTreeMap::new()).unwrap().planned.random;
    assert_eq!(drawn(0), drawn(0));
    assert_ne!(drawn(0), drawn(1));
    let RandomFault::Rate { links, .. } = &scenario.random_events[0].what else { panic!("rates change") };
    let nominal: BTreeMap<_, _> = links.iter().flatten().copied().collect();
    let faults = drawn(0);
    assert_eq!(faults.len(), 5 * 6, "each 5 s three links, both ways");
    for pair in faults.chunks(2) {
        let [(at, Fault::Rate(there, one)), (_, Fault::Rate(back, other))] = pair else { panic!("{pair:?}") };
        assert_eq!((one, back.0), (other, there.0 + 1), "both ways alike");
        assert!((nominal[there] / 2..=nominal[there]).contains(one), "at {at}");
        assert_eq!(at.as_nanos() % 5_000_000_000, 0);
    }
    assert!(
        paper().set("random-event.wireless links.every=off").scenario().unwrap().random_events.is_empty()
    );
}

#[test]
fn links_and_nodes_fail_at_random() {
    let section = |rest: &str| format!("{TCP}[[random-event]]\nname = \"e\"\nevery = \"2 s\"\n{rest}");
    let drawn = |rest: &str| {
        let scenario = two_ways(&section(rest)).scenario().unwrap_or_else(|error| panic!("{error}"));
        scenario.random_events[0].draw(1, 0)
    };
    let outages = drawn("action = \"link-down\"\nlinks = [\"*\"]\npick = \"one\"\nlasts = \"500 ms\"\n");
    assert_eq!(outages.len(), 9 * 4, "down and up, both ways");
    assert!(outages.chunks(4).all(|one| one[2].0 == one[0].0 + Duration::from_millis(500)));
    let deaths =
        drawn("action = \"fail-node\"\nnodes = [\"1\", \"2\"]\nlasts = \"1 s\"\nspacing = \"poisson\"\n");
    let times: BTreeSet<_> = deaths.iter().map(|(at, _)| *at).collect();
    assert!(deaths.len() % 4 == 0 && times.len() == deaths.len() / 2, "two nodes at a time");
    assert!(times.iter().any(|at| at.as_nanos() % 1_000_000_000 != 0));
    let bounded =
        drawn("action = \"fail-node\"\nnodes = [\"1\"]\nlasts = \"1 s\"\nstart = \"3 s\"\nstop = \"9 s\"\n");
    let seconds: Vec<f64> = bounded.iter().map(|(at, _)| at.as_secs_f64()).collect();
    assert_eq!(seconds, [5.0, 6.0, 7.0, 8.0]);
}

#[test]
fn a_resolved_scenario_of_hosts_says_the_same_again() {
    let repeat = "{ on = \"2 s\", off = \"3 s\", stagger = \"1 s\" }";
    let source = paper().set("transfer.stalled*.count=2").set(format!("transfer.stalled*.repeat={repeat}"));
    let scenario = source.set("buffers.host.pid.base=paper").scenario().unwrap();
    let again = Source::new("again", scenario.to_toml()).scenario().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.canonical_json(), scenario.canonical_json());
    assert_eq!(again, scenario);
    let unused = paper().set("node.mh.buffers=other").set("buffers.host.memory=1 MB");
    let text = PAPER.replace("[buffers.host]", "[buffers.other]\n\n[buffers.host]");
    assert!(unused.scenario().is_err());
    let unused = Source::new("unused", text).scenario().expect_err("no node names it").to_string();
    assert!(unused.contains("no node uses the profile `buffers.other`"), "{unused}");
}

#[test]
fn what_hosts_cannot_do_is_refused_at_its_place() {
    let faults = [
        ("buffers.host.policy=pidd", "did you mean `pid`"),
        ("buffers.host.memory=0 B", "the threshold must be from 1 byte to 2^50 bytes"),
        ("buffers.host.period=0 s", "longer than 0"),
        ("buffers.host.initial=much", "does not begin with a number"),
        ("buffers.host.reports=on", "unknown word"),
        ("buffers.host.pid.base=mine", "unknown word"),
        ("buffers.host.pid.kp=-1", "the gain kp must be 0 to 1000"),
        ("buffers.host.pid.ki=1001", "the gain ki must be 0 to 1000"),
        ("buffers.host.pid.kd=nan", "the gain kd must be 0 to 1000"),
        ("buffers.host.pid.alpha=0", "the weight alpha"),
        ("buffers.host.pid.beta=2", "the weight beta"),
        ("buffers.host.pid.products=0", "the set-point must be more than 0"),
        ("buffers.host.pid.guarantee=2", "the guarantee must be 0 to 1"),
        ("buffers.host.pid.set_point=both", "unknown word"),
        ("buffers.host.pid.excess=none", "unknown word"),
        ("buffers.host.pid.deviation=some", "unknown word"),
        ("buffers.host.pid.allocation=fair", "unknown word"),
        ("buffers.host.sampling.period=0 s", "more than no time"),
        ("buffers.host.sampling.noise=1.5", "expected 0 to 1, found 1.5"),
        ("buffers.host.sampling.loss=2", "not a probability"),
        ("buffers.hots.memory=1 MB", "there is no profile `buffers.hots`"),
        ("node.mh.buffers=hos", "there is no pool `buffers.hos`"),
        ("node.mh.interfaces=[\"wlann\"]", "there is no link of the name `wlann`"),
        ("node.fh.interfaces=[\"wlan\"]", "the link `wlan` is none of `fh`"),
        ("node.mh.interfaces=[\"wlan\", \"wlan\"]", "`wlan` is named twice"),
        ("nodes.1.buffers=hos", "there is no pool"),
        ("transfer.striped.interfaces=[\"wifi\"]", "`mh` has no interface `wifi`"),
        ("transfer.striped.interfaces=[\"geo\", \"geo\"]", "`geo` is named twice"),
        ("transfer.striped.interfaces=[]", "at least one interface"),
        ("transfer.background 1.interfaces=[\"wlan\"]", "`n1` has no interface `wlan`"),
        ("transfer.striped.port=0", "expected a port in 1..=65535"),
        ("transfer.striped.port=47200", "none of SET's"),
        ("transfer.single*.port=25002", "`striped` receives on port 25002 already"),
        ("transfer.striped.stop=40 s", "and ends at 40 s"),
        ("transfer.striped.tcp_receiver=large", "there is no TCP profile `large`"),
        ("transfer.striped.repeat={ on = \"0 s\", off = \"1 s\" }", "more than no time"),
        ("transfer.striped.repeat={ on = \"1 s\", off = \"0 s\" }", "more than no time"),
        ("transfer.striped.repeat={ on = \"1 us\", off = \"1 us\" }", "at most 10000 connections"),
        ("transfer.striped.repeat={ on = \"1 s\", off = \"1 s\", offset = \"3 s\" }", "together, 2 s"),
        ("transfer.striped.repeat={ on = \"1 s\", off = \"1 s\", stagger = \"3 s\" }", "together, 2 s"),
        ("transfer.striped.count=2", "2 transfers of one name: `striped`"),
        ("random-event.0.links=[\"lan\"]", "there is no link of the name `lan`"),
        ("random-event.0.links=[]", "at least one link"),
        ("random-event.0.rate_share=[0.0, 1.0]", "expected two shares"),
        ("random-event.0.rate_share=[1.0, 0.5]", "expected two shares"),
        ("random-event.0.every=0 s", "at most 1000000 events"),
        ("random-event.0.every=1 us", "at most 1000000 events"),
        ("random-event.0.start=30 s", "it begins at 30 s"),
        ("random-event.0.stop=40 s", "and ends at 40 s"),
        ("random-event.0.lasts=1 s", "`lasts` has no meaning for the action \"set-rate\""),
        ("random-event.0.action=link-down", "`rate_share` has no meaning"),
        ("random-event.0.spacing=poison", "did you mean `poisson`"),
        ("random-event.0.pick=two", "unknown word"),
        ("random-event.0.how=loud", "unknown word"),
        ("random-event.0.how=reset", "`how` has no meaning"),
        ("random-event.0.nodes=[\"r0\"]", "`nodes` has no meaning"),
        ("random-event.0.action=explode", "unknown word"),
        ("random-event.0.name=5", "invalid type"),
        ("transfer.stalled*.reads_for=never", "does not begin with a number"),
    ];
    let mut wrong = Vec::new();
    for (set, message) in faults {
        match paper().set(set).scenario() {
            Ok(_) => wrong.push(format!("{set} is taken")),
            // A contradiction between two values is reported at one of them.
            Err(error)
                if error.to_string().contains(message)
                    && (error.to_string().contains(set) || matches!(error.place, Place::File { .. })) => {}
            Err(error) => wrong.push(error.to_string()),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let rest = [
        (
            "[[route]]\nat = \"1\"\nto = \"b\"\nvia = \"b\"\ninterface = \"quick\"\n",
            "no link of the name `quick`",
        ),
        (
            "[[random-event]]\nname = \"e\"\naction = \"fail-node\"\nnodes = [\"1\"]\nevery = \"1 s\"\n",
            "needs `lasts`",
        ),
        (
            "[[random-event]]\nname = \"e\"\naction = \"link-down\"\nlasts = \"1 s\"\nevery = \"1 s\"\n",
            "needs `links`",
        ),
        (
            "[[random-event]]\nname = \"e\"\naction = \"fail-node\"\nnodes = [\"1\"]\nevery = \"1 s\"\nlasts = \"0 s\"\n",
            "lasts some time",
        ),
        ("bytes = \"1 MB\"\nstop = \"3 s\"\n", "`stop` has no meaning"),
        ("bytes = \"1 MB\"\nrepeat = { on = \"1 s\", off = \"1 s\" }\n", "`repeat` has no meaning"),
        ("interfaces = [\"fast\", \"slow\"]\n", "keeps to one interface"),
        (
            "count = 2\n[[transfer]]\nkind = \"tcp\"\ncount = 2\nfrom = \"a\"\nto = \"b\"\n",
            "2 transfers of one name",
        ),
        (
            "interfaces = [\"slow\"]\n[[route]]\nat = \"2\"\nto = \"b\"\nvia = \"a\"\ninterface = \"slow\"\n",
            "no packet gets from `a` over `slow` to `b`",
        ),
    ];
    for (rest, message) in rest {
        let error = two_ways(&format!("{TCP}{rest}")).scenario().expect_err(rest);
        assert!(error.to_string().contains(message), "{rest}: {error}");
        assert!(matches!(error.place, Place::File { .. }), "{rest}: {error:?}");
    }
    let other = format!("{TCP}[[route]]\nat = \"1\"\nto = \"b\"\nvia = \"b\"\ninterface = \"fast\"\n");
    let error = two_ways(&other).set("node.a.interfaces=[\"slow\"]").scenario().expect_err("no interface");
    assert!(error.to_string().contains("`fast` is not an interface of any node"), "{error}");
    let several = "[[transfer]]\nkind = \"tcp\"\ncount = 2\nfrom = \"a\"\nto = \"b\"\n";
    let error = two_ways(several).scenario().expect_err("no name");
    assert!(error.to_string().contains("several transfers need a `name`"), "{error}");
    let twice = "[[random-event]]\nname = \"wireless links\"\naction = \"link-down\"\nlinks = [\"geo\"]\nlasts = \"1 s\"\nevery = \"1 s\"\n";
    let error = Source::new("twice", format!("{PAPER}{twice}")).scenario().expect_err("two of one name");
    assert!(error.to_string().contains("two random events of the name"), "{error}");
}

#[test]
fn requests_and_paths_know_no_interfaces() {
    let set = "[[node]]\nname = \"g\"\nkind = \"gateway\"\n[[link]]\nfrom = \"g\"\nto = \"1\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
               [[transfer]]\nkind = \"set\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"1 kB\"\n";
    for key in ["interfaces = [\"fast\"]", "port = 80", "tcp_receiver = \"default\"", "reads_for = \"1 s\""] {
        let error = two_ways(&format!("{set}{key}\n")).scenario().expect_err(key);
        let name = key.split(' ').next().unwrap();
        assert!(
            error.to_string().contains(&format!("`{name}` has no meaning for this kind")),
            "{key}: {error}"
        );
    }
    let pool = "[buffers.b]\n";
    let played = two_ways(pool).set("node.b.buffers=b").set("node.b.host=tun");
    let error = played.scenario().expect_err("buffers of the kernel");
    assert!(error.to_string().contains("the kernel plays this node and has its own buffers"), "{error}");
    let air = "[radio]\nrange = 50\n[paths]\nroot = \"p\"\n[[node]]\nname = \"p\"\nkind = \"node\"\nposition = [0, 0]\n\
               [[node]]\nname = \"q\"\nkind = \"node\"\nposition = [40, 0]\n";
    let error = two_ways(air).scenario().expect_err("two kinds of paths");
    assert!(error.to_string().contains("no meaning where nodes build paths"), "{error}");
}

const EMULATED: &str = include_str!("../../../../scenarios/mptcp-emulated.toml");

fn emulated() -> Source {
    Source::new("mptcp-emulated.toml", EMULATED)
}

#[test]
fn a_tun_end_has_a_device_and_an_address_for_each_interface() {
    let two_ends = || two_ways("").set("node.*.host=tun").set("node.a.netns=a").set("node.b.netns=b");
    let scenario = two_ends().set("node.b.interfaces=[\"last\"]").scenario().unwrap();
    let [a, b] = ["a", "b"].map(|name| scenario.find_node(name).unwrap());
    let names = |node: NodeId| {
        let tun = scenario.nodes[node.index()].tun.as_ref().unwrap();
        tun.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((names(a), names(b)), (vec!["fast", "slow"], vec!["last"]));
    let addresses = [(a, 0), (b, 0), (a, 1)].map(|(node, index)| scenario.address(node, index).to_string());
    assert_eq!(addresses, ["fd00::1", "fd00::2", "fd00::6"], "after those of five nodes");
    assert_eq!(scenario.address_count(), 6);
    // A pair of interfaces has a path of its own, and each path keeps to both interfaces.
    let paths: Vec<_> = scenario.crossings.iter().map(|crossing| (crossing.ends, crossing.path)).collect();
    assert_eq!(paths, [([(a, 0), (b, 0)], 4), ([(a, 1), (b, 0)], 5)]);
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    let way = |path, to: NodeId| {
        let ways = scenario.ways.iter().filter(move |way| (way.path, way.to) == (path, to));
        ways.map(|way| scenario.links[way.link.index()].to).map(|at| names[at.index()]).collect::<Vec<_>>()
    };
    assert_eq!((way(4, b), way(4, a)), (vec!["1", "b"], vec!["a", "1"]));
    assert_eq!((way(5, b), way(5, a)), (vec!["2", "1", "b"], vec!["a", "2", "1"]), "not by 3, past `last`");
    // An end without interfaces has one address, and the path is that of the other's interface.
    let scenario = two_ends().scenario().unwrap();
    assert_eq!(scenario.crossings.iter().map(|crossing| crossing.path).collect::<Vec<_>>(), [1, 2]);
    let again = Source::new("again.toml", scenario.to_toml()).scenario().unwrap();
    assert_eq!(again, scenario);
}

#[test]
fn the_radio_is_an_interface() {
    let used = |transfer: &str| {
        let set = [format!("transfer.{transfer}.count=1"), format!("transfer.{transfer}.bytes=10 kB")];
        let source = set.into_iter().fold(emulated().set("node.*.host=simulated"), Source::set);
        let metrics = run(&source);
        assert_eq!(figure(&metrics, &format!("transfer.{transfer}.delivered_bytes")), 10_000.0);
        let packets = |link: &str| figure(&metrics, &format!("link.{link}.packets"));
        (packets("node>bs") > 0.0, packets("bs>node") > 0.0, figure(&metrics, "radio.relay1.frames") > 0.0)
    };
    assert_eq!(used("cellular"), (true, true, false));
    assert_eq!(used("radio"), (false, false, true));
    assert_eq!(used("fastest"), (true, true, true));
}

#[test]
fn interfaces_that_cannot_be_emulated_are_refused_at_their_place() {
    let set = |source: Source, set: &[&str]| set.iter().fold(source, |source, set| source.set(*set));
    let tun = ["node.a.host=tun"];
    for (source, message) in [
        (set(two_ways(""), &["node.a.interfaces=[\"radio\"]"]), "the scenario has no radio"),
        (
            set(two_ways(""), &["node.a.host=tun", "node.a.device=x"]),
            "`device` has no meaning for a node with `interfaces`",
        ),
        (
            set(Source::new("x", TWO_WAYS.replace("slow", "slower than it is")), &tun),
            "`slower than it is` is no name of a network device",
        ),
        (
            set(emulated(), &["node.bs.kind=host"]),
            "no packet gets from `node` over `cellular` to another TUN end",
        ),
        (
            set(emulated(), &["link.cellular.name=radio", "node.node.interfaces=[\"radio\", \"core\"]"]),
            "the link `core` is none of `node`",
        ),
    ] {
        let error = source.scenario().expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
    let alone = EMULATED.replacen("position = [300, 0]\n", "", 1);
    let error = Source::new("x", alone).scenario().expect_err("no position").to_string();
    assert!(error.contains("`node` is not on the radio"), "{error}");
}
