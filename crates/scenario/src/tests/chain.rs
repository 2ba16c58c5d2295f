//! Chains of links, rows of nodes, and settings of single links.

use super::*;
use anabranch_sim::radio::Position;

const PAPER: &str = include_str!("../../../../scenarios/papers/dtc.toml");

/// Relays in a row, a hub, gateways around it with rows of relays behind them, and a node at the
/// end of all rows.
const NODES: &str = r#"
[[node]]
name = "hub"
kind = "router"
[[nodes]]
name = "gw{i}"
count = 3
kind = "gateway"
[[nodes]]
name = "r{i}-{j}"
count = [2, 0, 1]
[[nodes]]
name = "m{i}"
count = 3
[[node]]
name = "end"
"#;

fn source(links: &str) -> Source {
    Source::new("chain.toml", format!("{NODES}{links}"))
}

/// A table `[[link]]` with these keys, and the rate and delay common to all.
fn link(keys: &str) -> String {
    format!("[[link]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{keys}\n")
}

/// Links to the nodes that are not part of a test.
fn rest(without: &str) -> String {
    let others = ["gw{i}", "r{i}-{j}", "m{i}", "end"].into_iter().filter(|name| !without.contains(name));
    others.map(|name| link(&format!("from = \"hub\"\nto = \"{name}\""))).collect()
}

#[track_caller]
fn read(source: &Source) -> Scenario {
    source.scenario().unwrap_or_else(|error| panic!("{error}"))
}

/// Names of the links with their ends, without links that have no name.
fn links(scenario: &Scenario) -> Vec<String> {
    let links = scenario.resolved().link.iter();
    links.filter_map(|link| Some(format!("{}: {}-{}", link.name.as_ref()?, link.from, link.to))).collect()
}

#[test]
fn a_chain_has_a_link_between_each_two_neighbours() {
    for (keys, expected) in [
        ("via = \"m{i}\"", &["c1: hub-m1", "c2: m1-m2", "c3: m2-m3", "c4: m3-end"][..]),
        ("via = [\"m{i}\"]", &["c1: hub-m1", "c2: m1-m2", "c3: m2-m3", "c4: m3-end"]),
        ("via = [\"m2\", \"gw1\"]", &["c1: hub-m2", "c2: m2-gw1", "c3: gw1-end"]),
        ("via = []", &["c1: hub-end"]),
    ] {
        let chain = link(&format!("name = \"c{{i}}\"\nfrom = \"hub\"\nto = \"end\"\n{keys}"));
        let others = match keys {
            "via = []" => rest("end"),
            "via = [\"m2\", \"gw1\"]" => [
                link("from = \"m*\"\nto = \"m2\""),
                link("from = \"gw*\"\nto = \"gw1\""),
                rest("m{i} gw{i} end"),
            ]
            .concat(),
            _ => rest("m{i} end"),
        };
        let scenario = read(&source(&format!("{chain}{others}")));
        assert_eq!(links(&scenario), expected, "{keys}");
        let again = Source::new("again.toml", scenario.to_toml());
        assert_eq!(read(&again), scenario);
    }
}

#[test]
fn an_end_with_a_number_makes_a_chain_for_each_node() {
    let star = link("name = \"wired{i}\"\nfrom = \"hub\"\nto = \"gw{i}\"");
    let chains = link("name = \"radio{i}-{j}\"\nfrom = \"gw{i}\"\nvia = \"r{i}-{j}\"\nto = \"end\"");
    let others = rest("gw{i} r{i}-{j} end");
    let expected = [
        "wired1: hub-gw1",
        "wired2: hub-gw2",
        "wired3: hub-gw3",
        "radio1-1: gw1-r1-1",
        "radio1-2: r1-1-r1-2",
        "radio1-3: r1-2-end",
        "radio2-1: gw2-end",
        "radio3-1: gw3-r3-1",
        "radio3-2: r3-1-end",
    ];
    let star_of_chains = source(&format!("{star}{chains}{others}"));
    assert_eq!(links(&read(&star_of_chains)), expected);
    // One row of nodes has one number: pairs.
    let pairs = link("name = \"pair{i}\"\nfrom = \"gw{i}\"\nvia = \"m{i}\"\nto = \"hub\"");
    let refused = source(&pairs).scenario().unwrap_err();
    assert!(refused.to_string().contains("set `name = \"pair{i}-{j}\"`"), "{refused}");
    let pairs = pairs.replace("{i}\"\nfrom", "{i}-{j}\"\nfrom");
    let scenario = read(&source(&format!("{pairs}{}", rest("gw{i} m{i}"))));
    let expected =
        ["pair1-1: gw1-m1", "pair1-2: m1-hub", "pair2-1: gw2-m2", "pair2-2: m2-hub", "pair3-1: gw3-m3"];
    assert_eq!(links(&scenario)[..5], expected);
    // Without nodes there is no chain.
    let none = star_of_chains.set("nodes.gw*.count=0").set("nodes.r*.count=[]").scenario().unwrap_err();
    assert!(none.message.contains("no link leads from `hub` to `end`"), "{none}");
}

#[test]
fn a_table_can_be_left_out() {
    let star = link("name = \"wired{i}\"\nfrom = \"hub\"\nto = \"gw{i}\"\nenabled = false");
    let source = source(&format!("{star}{}", rest("")));
    assert_eq!(links(&read(&source)), [] as [&str; 0]);
    let twice = source.set("link.wired*.enabled=true").scenario().unwrap_err();
    assert!(twice.message.contains("there are two links between"), "{twice}");
}

/// The loss of each of the links.
fn losses(source: &Source) -> Vec<f64> {
    let loss = |link: &file::LinkSection| match link.loss {
        file::Loss::Bernoulli(p) => p.0,
        file::Loss::GilbertElliott(_) => panic!("no test has it"),
    };
    read(source).resolved().link.iter().filter(|link| link.name.is_some()).map(loss).collect()
}

#[test]
fn single_links_have_settings_of_their_own() {
    let chain = link("name = \"c{i}\"\nfrom = \"hub\"\nvia = \"m{i}\"\nto = \"end\"\nloss = 0.1");
    let only =
        "[link.only.c2]\nloss = 0.2\nback.delay = \"9 ms\"\n[link.only.\"c*4\"]\nrate = \"5 kbit/s\"\n";
    let source = source(&format!("{chain}{only}{}", rest("m{i} end")));
    assert_eq!(losses(&source), [0.1, 0.2, 0.1, 0.1]);
    let scenario = read(&source);
    let rates: Vec<u64> = scenario.links[..8].iter().step_by(2).map(|link| link.config.rate).collect();
    assert_eq!(rates, [1_000_000, 1_000_000, 1_000_000, 5_000]);
    let delays: Vec<u64> =
        scenario.links[..8].iter().skip(1).step_by(2).map(|link| link.config.delay.as_millis()).collect();
    assert_eq!(delays, [1, 9, 1, 1]);
    for (sets, expected) in [
        (&["link.c3.loss=0.5"][..], [0.1, 0.2, 0.5, 0.1]),
        (&["link.c*.loss=0.5"], [0.5; 4]),
        (&["link.c{i}.loss=0.5"], [0.5, 0.2, 0.5, 0.5]),
        (&["link.0.loss=0.5"], [0.5, 0.2, 0.5, 0.5]),
        (&["link.c*.loss=0.5", "link.c1.loss=0.4", "link.*3.loss=0.3"], [0.4, 0.5, 0.3, 0.5]),
        (&["link.c1.loss=0.4", "link.c*.loss=0.5"], [0.5; 4]),
        (&["link.c1.back={ delay = \"2 ms\" }", "link.c1.back.loss=0.5"], [0.1, 0.2, 0.1, 0.1]),
    ] {
        let set = sets.iter().fold(source.clone(), |source, set| source.set(*set));
        assert_eq!(losses(&set), expected, "{sets:?}");
    }
    // A number is a name before it is an index, and a single link takes precedence over one of a
    // table.
    let numbers =
        source.text().replace("\"c{i}\"", "\"{i}\"").replace("only.c2", "only.2").replace("c*4", "4");
    assert_eq!(losses(&Source::new("numbers.toml", numbers).set("link.1.loss=0.5")), [0.5, 0.2, 0.1, 0.1]);
    let own = link("name = \"c9\"\nfrom = \"m1\"\nto = \"m3\"");
    let own = Source::new("own.toml", format!("{}{own}", source.text())).set("link.c9.loss=0.5");
    assert_eq!(losses(&own), [0.1, 0.2, 0.1, 0.1, 0.5]);
    // The number of links may be set later, also on an axis.
    let longer = source.clone().set("link.c6.loss=0.6").set("nodes.m*.count=5");
    assert_eq!(losses(&longer), [0.1, 0.2, 0.1, 0.1, 0.1, 0.6]);
    let text =
        format!("{}\n[sweep]\n\"link.c2.loss\" = [0.3, 0.4]\n\"nodes.m*.count\" = [3, 5]\n", source.text());
    let points = Source::new("sweep.toml", text).points().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(points.iter().map(|point| point.scenario.links.len()).collect::<Vec<_>>(), [20, 24, 20, 24]);
}

#[test]
fn what_cannot_be_is_refused_where_it_is_written() {
    let chain = link("name = \"c{i}\"\nfrom = \"hub\"\nvia = \"m{i}\"\nto = \"end\"");
    let file = |keys: &str| format!("{NODES}{}", link(keys));
    let faults = [
        (
            file("from = \"hub\"\nvia = \"n{i}\"\nto = \"end\""),
            21,
            "there are no `[[nodes]]` of the name `n{i}`",
        ),
        (file("from = \"hub\"\nvia = \"n1\"\nto = \"end\""), 21, "there is no node `n1`"),
        (file("from = \"hub\"\nvia = 7\nto = \"end\""), 21, "expected the name of a node or of `[[nodes]]`"),
        (
            file("from = \"hub\"\nvia = [\"m1\", 7]\nto = \"end\""),
            21,
            "expected the name of a node or of `[[nodes]]`",
        ),
        (
            file("from = \"hub\"\nvia = \"r{i}-{j}\"\nto = \"end\""),
            21,
            "several rows, and there is one chain",
        ),
        (file("from = \"r{i}-{j}\"\nvia = \"m{i}\"\nto = \"end\""), 20, "a chain has one node at each end"),
        (
            file("name = \"c\"\nfrom = \"hub\"\nvia = \"m{i}\"\nto = \"end\""),
            20,
            "several links of the name `c`",
        ),
        (
            file("name = \"c{i}\"\nfrom = \"gw{i}\"\nvia = \"m{i}\"\nto = \"end\""),
            20,
            "several links of the name `c1`",
        ),
        (file("from = \"hub\"\nvia = \"hub\"\nto = \"end\""), 21, "a link joins two different nodes"),
        (
            file("name = \"c{i}-{j}\"\nfrom = \"gw{i}\"\nvia = \"r{i}-{n}\"\nto = \"end\""),
            22,
            "`r{i}-{n}` is the last node of a row, and `via` has all of them",
        ),
        (
            file("name = \"c{i}\"\nfrom = \"hub\"\nto = \"m*\""),
            20,
            "the links to all of `m*` have one name, without a number",
        ),
        (file("name = \"c\"\nfrom = \"hub\"\nto = \"end\"\nenabled = 1"), 23, "invalid type"),
        (
            format!("{NODES}{chain}[link.only.c9]\nloss = 0.1\n"),
            24,
            "no link of this table has the name `c9`",
        ),
        (format!("{NODES}{chain}[link.only.c1]\nfrom = \"m2\"\n"), 25, "`from` is a key of the whole table"),
        (format!("{NODES}{chain}[link.only.c1]\nlos = 0.1\n"), 25, "unknown key `los`"),
        (format!("{NODES}{chain}[link.only.c1]\nloss = 7\n"), 25, "7 is not a probability"),
        (format!("{NODES}{chain}[link.only]\nc1 = 7\n"), 25, "expected a table of keys"),
        (format!("{NODES}{chain}only = 7\n"), 24, "invalid type"),
        (file("from = \"hub\"\nto = \"end\"\nonly = { c = { loss = 0 } }"), 22, "give the table a `name`"),
        (NODES.replace("[2, 0, 1]", "[2, -1]"), 11, "expected a number of nodes, or a list"),
        (NODES.replace("r{i}-{j}", "r{i}"), 10, "rows of nodes need `{i}` and `{j}`"),
        (NODES.replace("m{i}", "m{i}-{j}"), 13, "there are no rows"),
        (
            NODES.replace("count = 3\n[[node]]\n", "count = 3\nplace = { at = [[0, 0]] }\n[[node]]\n"),
            15,
            "1 places for 3 nodes",
        ),
        (
            NODES.replace("count = 3\n[[node]]\n", "count = 3\nplace = { at = [[0]] }\n[[node]]\n"),
            15,
            "expected two numbers",
        ),
    ];
    for (text, line, message) in faults {
        let error = Source::new("bad.toml", text.as_str()).scenario().expect_err(message).to_string();
        assert!(error.contains(message), "{message}: {error}");
        assert!(error.starts_with(&format!("bad.toml:{line}:")), "line {line}: {error}");
    }
    let short =
        source(&link("from = \"gw{i}\"\nvia = \"r{i}-{j}\"\nto = \"end\"")).set("nodes.r*.count=[1, 1]");
    let error = short.scenario().unwrap_err();
    assert!(error.message.contains("`r{i}-{j}` has no number 3"), "{error}");
    for (set, message) in [
        ("link.c9.loss=0.1", "no link of this table has the name `c9`"),
        ("link.x1.loss=0.1", "there is no entry `x1` in that list"),
        ("link.c2=7", "there is no entry `c2` in that list"),
        ("link.c2.los=0.1", "unknown key `los`"),
        ("nodes.m*.count=70000", "at most 65533 nodes"),
        ("nodes.r*.count=[4000000000, 4000000000]", "at most 65533 nodes"),
    ] {
        let error = source(&chain).set(set).scenario().expect_err(set).to_string();
        assert!(error.contains(message) && error.contains("--set"), "{set}: {error}");
    }
}

/// Nodes in rows have their positions in order.
#[test]
fn a_list_of_places_is_for_all_rows() {
    let text = "radio = { range = \"50 m\" }\n[[nodes]]\nname = \"r{i}-{j}\"\ncount = [1, 2]\nfirst = 4\n\
                place = { at = [[0, 0], [40, 0], [80, 0.5]] }\n";
    let scenario = read(&Source::new("rows.toml", text));
    let radio = scenario.radio.as_ref().expect("it has one");
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["r4-1", "r5-1", "r5-2"]);
    let places = [Position::new(0.0, 0.0), Position::new(40.0, 0.0), Position::new(80.0, 0.5)];
    assert!(radio.places.iter().map(|(_, place)| *place).eq(places));
    assert_eq!(radio.links.len(), 4);
}

#[test]
fn the_papers_chain_can_be_changed_from_outside() {
    let paper = || Source::new("dtc.toml", PAPER);
    let default = read(&paper());
    assert_eq!(default.links.len(), 12);
    let first = &default.links[0].config;
    assert_eq!((first.spacing.as_millis(), default.links[2].config.spacing.as_millis()), (77, 0));
    assert_eq!(default.links[1].config.loss, anabranch_sim::loss::LossModel::None);
    assert!(default.nodes[1..6].iter().all(|node| node.dtc.is_some()));
    let longer = read(&paper().set("nodes.r*.count=10").set("loss=0.2").set("mode=tcp"));
    assert_eq!((longer.nodes.len(), longer.links.len()), (12, 22));
    assert!(longer.nodes.iter().all(|node| node.dtc.is_none()) && !longer.has_unheard_link_acks());
    let channel = [
        "link.hop*.enabled=false",
        "nodes.s.place={ at = [[0, 0]] }",
        "nodes.r*.place={ line = { start = [80, 0], step = [80, 0] } }",
        "nodes.d.place={ at = [[480, 0]] }",
        "radio={ range = \"100 m\" }",
    ];
    let radio = read(&channel.into_iter().fold(paper(), Source::set));
    // A word undoes the settings of another word.
    let again = paper().set("mode=tcp").set("mode=dtc-paper");
    assert_eq!(read(&again), read(&paper().set("mode=dtc-paper")));
    assert_eq!(radio.links.len(), 0);
    assert_eq!(radio.radio.as_ref().map(|radio| radio.links.len()), Some(12));
    for scenario in [default, longer, radio] {
        assert_eq!(read(&Source::new("again.toml", scenario.to_toml())), scenario);
    }
    let ends =
        ["nodes.s.host=tun", "nodes.s.netns=near", "nodes.d.host=tun", "nodes.d.netns=far", "transfer=[]"];
    let real = read(&ends.into_iter().fold(paper(), Source::set));
    let tun: Vec<_> = real.nodes.iter().filter_map(|node| node.tun.as_ref()?.netns.as_deref()).collect();
    assert_eq!(tun, ["near", "far"]);
    let error = paper().set("nodes.r*.netns=x{i}").scenario().unwrap_err();
    assert!(error.message.contains("`netns` has no meaning for a simulated node"), "{error}");
    let error = paper().set("nodes.s.host=tun").scenario().unwrap_err();
    assert!(error.message.contains("the kernel plays this node"), "{error}");
    let answers = paper().set("duplicate_acks=on");
    let repeats = |node: &NodeSpec| node.dtc.map(|dtc| dtc.duplicate_acks);
    assert_eq!(repeats(&read(&answers).nodes[1]), Some(anabranch_core::dtc::DuplicateAcks::Repeat));
    let open = paper().set("displacement=by-lower").set("local_rto=2.25").set("guard=0");
    let config = read(&open).nodes[1].dtc.expect("it caches");
    assert_eq!(config.displacement, anabranch_core::dtc::Displacement::ByLower);
    assert_eq!(
        [config.local_rto, config.guard].map(|ratio| (ratio.num, ratio.den)),
        [(2250, 1000), (0, 1000)]
    );
    for (set, why) in
        [("local_rto=0", "expected 0.1 to 60, found 0"), ("guard=61", "expected 0 to 60, found 61")]
    {
        let error = paper().set(set).scenario().unwrap_err();
        assert!(error.message.contains(why), "{error}");
    }
}

fn loss(scenario: &Scenario, name: &str) -> f64 {
    let link = scenario.resolved().link.iter().find(|link| link.name.as_deref() == Some(name));
    match link.unwrap_or_else(|| panic!("no link {name}")).loss {
        file::Loss::Bernoulli(loss) => loss.0,
        _ => panic!("another loss"),
    }
}

#[test]
fn what_is_set_later_wins_and_in_a_file_the_name_wins() {
    let chain = link("name = \"c{i}\"\nfrom = \"hub\"\nvia = \"m{i}\"\nto = \"end\"") + &rest("m{i}end");
    for (sets, expected) in [
        (&["link.c1*.loss=0.3", "link.c1.loss=0.2"][..], [0.2, 0.0]),
        (&["link.c1.loss=0.2", "link.c1*.loss=0.3"], [0.3, 0.0]),
        (&["link.c*1.loss=0.1", "link.*1.loss=0.4"], [0.4, 0.0]),
        (&["link.*1.loss=0.4", "link.c*1.loss=0.1"], [0.1, 0.0]),
        (&["link.c2.loss=0.2", "link.c*.loss=0.3"], [0.3, 0.3]),
        (&["link.c*.loss=0.3", "link.c2.loss=0.2"], [0.3, 0.2]),
    ] {
        let scenario = read(&sets.iter().fold(source(&chain), |source, set| source.set(*set)));
        assert_eq!([loss(&scenario, "c1"), loss(&scenario, "c2")], expected, "{sets:?}");
    }
    for only in
        ["c1 = { loss = 0.2 }, \"c*\" = { loss = 0.3 }", "\"*1\" = { loss = 0.3 }, c1 = { loss = 0.2 }"]
    {
        let chain = link(&format!(
            "name = \"c{{i}}\"\nfrom = \"hub\"\nvia = \"m{{i}}\"\nto = \"end\"\nonly = {{ {only} }}"
        ));
        assert_eq!(loss(&read(&source(&(chain + &rest("m{i}end")))), "c1"), 0.2, "{only}");
    }
}

/// An axis over a single link or a word's value is not overwritten by an axis with a later name
/// that covers more.
#[test]
fn axes_apply_from_the_general_to_the_particular() {
    let chain = link("name = \"c{i}\"\nfrom = \"hub\"\nvia = \"m{i}\"\nto = \"end\"") + &rest("m{i}end");
    let more = "[alias]\nz = \"link.c*.loss\"\n[alias.zz]\nlossy = { \"link.c*.loss\" = 0.5 }\n\
                [sweep]\nzz = [\"lossy\"]\nz = [0.1]\n\"link.c1.loss\" = [0.3, 0.4]\n";
    let points = source(&(chain + more)).points().expect("it is a sweep");
    let of = |point: &Point| [loss(&point.scenario, "c1"), loss(&point.scenario, "c2")];
    assert_eq!(points.iter().map(of).collect::<Vec<_>>(), [[0.3, 0.1], [0.4, 0.1]]);
}

#[test]
fn a_pattern_may_mean_links_of_some_tables_only() {
    let two = link("name = \"w{i}\"\nfrom = \"hub\"\nto = \"gw{i}\"")
        + &link("name = \"c{i}-{j}\"\nfrom = \"gw{i}\"\nvia = \"r{i}-{j}\"\nto = \"end\"")
        + &rest("gw{i}r{i}-{j}end");
    let scenario = read(&source(&two).set("link.*-1.loss=0.2"));
    assert_eq!([loss(&scenario, "w1"), loss(&scenario, "c1-1"), loss(&scenario, "c1-2")], [0.0, 0.2, 0.0]);
    let error = source(&two).set("link.*-7.loss=0.2").scenario().expect_err("no link").to_string();
    assert!(error.starts_with("--set link.*-7.loss=0.2: no link"), "{error}");
}

#[test]
fn a_file_cannot_make_links_without_end() {
    let many = "[[nodes]]\nname = \"x{i}\"\ncount = 60000\n";
    let via: Vec<&str> = std::iter::repeat_n("x{i}", 100).collect();
    let chain = link(&format!("name = \"x{{i}}\"\nfrom = \"hub\"\nvia = {via:?}\nto = \"end\""));
    let error = source(&format!("{many}{chain}")).scenario().expect_err("too many").to_string();
    assert!(error.contains("the file makes more than 65535 links"), "{error}");
    let star = link("name = \"y{i}-{j}\"\nfrom = \"x{i}\"\nvia = [\"m1\", \"m2\", \"m3\"]\nto = \"end\"");
    let error = source(&format!("{many}{star}")).scenario().expect_err("too many").to_string();
    assert!(error.contains("the file makes more than 65535 links"), "{error}");
}

#[test]
fn a_chain_does_not_take_patterns() {
    let chain = link("name = \"c{i}\"\nfrom = \"hub\"\nvia = \"m*\"\nto = \"end\"") + &rest("end");
    let error = source(&chain).scenario().expect_err("a pattern").to_string();
    assert!(error.contains("`m*` is a pattern, and a chain has its nodes in order"), "{error}");
}

/// A table before the interface's link may make no link, or several.
#[test]
fn an_interface_is_the_link_of_its_name_whatever_stands_before() {
    let file = |count: u32| {
        format!(
            "[[node]]\nname = \"s\"\ninterfaces = [\"x\", \"y\"]\n[[node]]\nname = \"m\"\nkind = \"router\"\n\
             [[node]]\nname = \"m2\"\nkind = \"router\"\n[[node]]\nname = \"d\"\n\
             [[nodes]]\nname = \"n{{i}}\"\ncount = {count}\n{}{}{}{}{}\
             [[transfer]]\nname = \"t\"\nkind = \"tcp\"\nfrom = \"s\"\nto = \"d\"\nbytes = \"10 kB\"\ninterfaces = [\"x\"]\n",
            link("name = \"spokes\"\nfrom = \"n{i}\"\nto = \"m\""),
            link("name = \"x\"\nfrom = \"s\"\nto = \"m\""),
            link("name = \"y\"\nfrom = \"s\"\nto = \"m2\""),
            link("from = \"m\"\nto = \"d\""),
            link("from = \"m2\"\nto = \"d\""),
        )
    };
    for count in [0, 1, 3] {
        let scenario = read(&Source::new("interfaces.toml", file(count)));
        let (_, metrics) = scenario.run(1, 0, &BTreeMap::new()).expect("it can be drawn");
        let packets = |link: &str| metrics[&format!("link.{link}.packets")].value.unwrap();
        assert!(packets("s>m") > 5.0 && packets("s>m2") == 0.0, "{count}");
    }
    let spokes = Source::new("interfaces.toml", file(3)).set("node.m.interfaces=[\"spokes\"]");
    let error = spokes.scenario().expect_err("three links").to_string();
    assert!(error.contains("`spokes` is the name of 3 links"), "{error}");
}
