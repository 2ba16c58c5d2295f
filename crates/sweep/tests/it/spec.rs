//! Tests of valid spec files, and of the errors of invalid ones.

use std::path::Path;

use anabranch_scenario::Source;
use anabranch_sweep::spec::{Method, Runs};
use anabranch_sweep::{Error, Spec, Sweep};
use expect_test::{Expect, expect};

const NETWORK: &str = r#"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "cable", from = "a", to = "b", rate = "1 Mbit/s", delay = "5 ms" }]
transfer = [{ name = "file", kind = "tcp", from = "a", to = "b", bytes = "1 kB" }]
"#;

const GOOD: &str = r#"seed = 5
seeds = "1..=3"
runs = 2
[set]
"transfer.file.bytes" = "2 kB"
[grid]
"link.cable.loss" = [0.0, "1 %"]
[[sample]]
method = "random"
count = 4
[sample.axes]
"link.cable.delay" = { uniform = ["1 ms", "2 ms"] }
"#;

fn read(text: &str) -> Result<Sweep, Error> {
    Sweep::new(Spec::parse_for("s.toml", text, Source::new("n.toml", NETWORK), Path::new(""))?)
}

/// The error of a spec, wherever it is detected.
#[track_caller]
fn refused(text: &str, expected: Expect) {
    let error = read(text).and_then(|sweep| sweep.all_points()).map(drop).expect_err("it is wrong");
    assert!(error.is_input());
    let hint = error.hint().map_or_else(String::new, |hint| format!("\n  hint: {hint}"));
    expected.assert_eq(&format!("{error}{hint}"));
}

/// Replaces the only occurrence of `from`.
#[track_caller]
fn check(from: &str, to: &str, expected: Expect) {
    assert_eq!(GOOD.matches(from).count(), 1, "`{from}` must stand for one place");
    refused(&GOOD.replace(from, to), expected);
}

#[test]
fn a_good_one_is_understood() {
    let sweep = read(GOOD).unwrap();
    let spec = sweep.spec();
    assert_eq!((spec.name.as_str(), spec.seed, &spec.runs), ("s", 5, &Runs::Fixed(2)));
    assert_eq!((sweep.points(), sweep.seeds()), (8, &[1, 2, 3][..]));
    assert_eq!((spec.samples[0].method, spec.samples[0].count), (Method::Random, 4));
    let names: Vec<&str> = sweep.names().collect();
    assert_eq!(names, ["link.cable.delay", "link.cable.loss", "transfer.file.bytes"]);
    let losses: Vec<String> = (0..8).map(|i| sweep.parameters(i)["link.cable.loss"].to_string()).collect();
    assert_eq!(losses, ["0.0", "0.0", "0.0", "0.0", "\"1 %\"", "\"1 %\"", "\"1 %\"", "\"1 %\""]);
    assert_eq!(sweep.all_points().unwrap().len(), 8);
}

#[test]
fn an_empty_one_is_one_run_of_the_scenario() {
    let sweep = read("").unwrap();
    assert_eq!((sweep.points(), sweep.seeds(), &sweep.spec().runs), (1, &[1][..], &Runs::Fixed(1)));
}

#[test]
fn samples_are_the_same_today_and_tomorrow() {
    let sweep = read(GOOD).unwrap();
    let delays: Vec<String> = (0..4).map(|i| sweep.parameters(i)["link.cable.delay"].to_string()).collect();
    expect![[r#"["\"1816437 ns\"", "\"1397346 ns\"", "\"1185046 ns\"", "\"1025911 ns\""]"#]]
        .assert_eq(&format!("{delays:?}"));
}

#[test]
fn the_scenario_s_own_axes_belong_to_the_grid() {
    let scenario = Source::new("n.toml", format!("{NETWORK}\n[sweep]\n\"link.0.loss\" = [0.0, 0.1]\n"));
    let spec = Spec::parse_for("s.toml", GOOD, scenario, Path::new("")).unwrap();
    assert_eq!(Sweep::new(spec).unwrap().points(), 16);
}

/// A path in the spec replaces an axis in the scenario's own `[sweep]`, in whichever table it is.
#[test]
fn the_spec_takes_the_place_of_the_scenarios_own_axis() {
    let scenario = || Source::new("n.toml", format!("{NETWORK}\n[sweep]\n\"link.0.loss\" = [0.0, 0.1]\n"));
    let said = [
        ("", 2),
        ("[set]\n\"link.0.loss\" = 0.5\n", 1),
        ("[grid]\n\"link.0.loss\" = [0.1, 0.2, 0.3]\n", 3),
        ("[[sample]]\ncount = 4\n[sample.axes]\n\"link.0.loss\" = { uniform = [0.0, 0.5] }\n", 4),
    ];
    for (text, points) in said {
        let spec = Spec::parse_for("spec.toml", text, scenario(), Path::new("")).expect(text);
        let sweep = Sweep::new(spec).expect(text);
        assert_eq!(sweep.all_points().expect(text).len(), points, "{text}");
        assert_eq!(sweep.names().filter(|name| *name == "link.0.loss").count(), 1, "{text}");
    }
}

/// A wrong value is reported where it stands, in the spec or in the scenario.
#[test]
fn a_wrong_value_of_the_scenarios_own_axis_is_refused_in_the_scenario() {
    let text = format!("{NETWORK}\n[sweep]\n\"link.0.loss\" = [0.0, \"200 %\"]\n");
    let line = text.lines().count();
    let spec = Spec::parse_for(
        "spec.toml",
        "[set]\n\"network.ip\" = 4\n",
        Source::new("n.toml", text),
        Path::new(""),
    );
    let error = Sweep::new(spec.expect("it is one")).and_then(|sweep| sweep.all_points()).expect_err("200 %");
    let error = error.to_string();
    assert!(error.starts_with(&format!("n.toml:{line}:")), "{error}");
    assert!(error.contains("2 is not a probability"), "{error}");
}

#[test]
fn unknown_words_are_refused_with_what_was_meant() {
    check(
        "runs =",
        "rums =",
        expect![[r#"
            s.toml:3:1: unknown key `rums`, expected one of `name`, `scenario`, `experiment`, `seed`, `seeds`, `runs`, `set`, `grid`, `zip`, `point`, `sample`, `enough`
              hint: did you mean `runs`?"#]],
    );
    check(
        "[grid]",
        "[gird]",
        expect![[r#"
            s.toml:6:2: unknown key `gird`, expected one of `name`, `scenario`, `experiment`, `seed`, `seeds`, `runs`, `set`, `grid`, `zip`, `point`, `sample`, `enough`
              hint: did you mean `grid`?"#]],
    );
    check(
        "count = 4",
        "cuont = 4",
        expect![[r#"
        s.toml:10:1: unknown key `cuont`, expected one of `method`, `count`, `axes`
          hint: did you mean `count`?"#]],
    );
    check(
        "\"random\"",
        "\"latin-hypercub\"",
        expect![[r#"
        s.toml:9:10: unknown word `latin-hypercub`, expected `random` or `latin-hypercube`
          hint: did you mean `latin-hypercube`?"#]],
    );
    check(
        "uniform",
        "unifrom",
        expect![[r#"
        s.toml:12:24: unknown word `unifrom`, expected one of `uniform`, `log-uniform`, `integer`, `choice`, `normal`
          hint: did you mean `uniform`?"#]],
    );
    check(
        "[sample.axes]\n",
        "",
        expect!["s.toml:11:1: unknown key `link.cable.delay`, expected one of `method`, `count`, `axes`"],
    );
}

#[test]
fn what_a_parameter_does_to_the_scenario_is_said_where_it_was_written() {
    check(
        "\"link.cable.loss\"",
        "\"link.cabel.loss\"",
        expect![[r#"
        s.toml:7:21: there is no entry `cabel` in that list (`link.cabel.loss` = 0.0)
          hint: did you mean `cable`?"#]],
    );
    check(
        "\"1 %\"]",
        "\"1 parsec\"]",
        expect![[
            r#"s.toml:7:21: `1 parsec` is not a probability; expected one such as 0.02 or "2 %" (`link.cable.loss` = "1 parsec")"#
        ]],
    );
    check(
        "\"transfer.file.bytes\"",
        "\"transfer.file.byte\"",
        expect![[r#"
        s.toml:5:24: unknown key `byte`, expected one of `name`, `count`, `kind`, `from`, `to`, `bytes`, `file`, `start`, `stop`, `repeat`, `interfaces`, `port`, `tcp_receiver`, `reads_for`, `tcp`, `tcp_wireless`, `gateways`, `default_gateway`, `set`, `mptcp`, `coap` (`transfer.file.byte` = "2 kB")
          hint: did you mean `bytes`?"#]],
    );
    check(
        "\"2 kB\"",
        "\"2 kbit\"",
        expect![[r#"
        s.toml:5:25: unknown unit `kbit`, expected one of `B`, `kB`, `KiB`, `MB`, `MiB`, `GB`, `GiB` (`transfer.file.bytes` = "2 kbit")
          hint: did you mean `kB`?"#]],
    );
    check(
        "\"link.cable.loss\" = [0.0, \"1 %\"]",
        "\"transfer.file.to\" = [\"b\", \"a\"]",
        expect![[r#"s.toml:7:22: sender and receiver are one node (`transfer.file.to` = "a")"#]],
    );
}

#[test]
fn values_that_make_no_sense_are_refused() {
    check(
        "\"1..=3\"",
        "\"3..=1\"",
        expect![[r#"
        s.toml:2:9: `3..=1` is not a range of seeds
          hint: a range is `"1..=10"` with the last, `"1..10"` without; a list is `[1, 2, 3]`"#]],
    );
    check(
        "\"1..=3\"",
        "[1, 1]",
        expect![[r#"
        s.toml:2:9: a seed is listed twice
          hint: the same seed makes the same runs; name each once"#]],
    );
    check(
        "\"1..=3\"",
        "[]",
        expect![[r#"
        s.toml:2:9: no seeds given
          hint: remove `seeds` to take the scenario's own"#]],
    );
    check(
        "\"1..=3\"",
        "4",
        expect![[r#"s.toml:2:9: expected a list of seeds, or a range such as "1..=10""#]],
    );
    check(
        "\"1..=3\"",
        "\"0..=4000000000\"",
        expect![[r#"
        s.toml:2:9: more than 1,000,000 seeds
          hint: take fewer seeds and more `runs`"#]],
    );
    check(
        "runs = 2",
        "runs = 0",
        expect![[r#"
        s.toml:3:8: `runs` is in 1..=1000000
          hint: remove it for one run of each point"#]],
    );
    check(
        "count = 4",
        "count = 0",
        expect![[r#"
        s.toml:10:9: `count` is in 1..=1000000
          hint: remove the sample if there is to be none"#]],
    );
    check(
        "[0.0, \"1 %\"]",
        "[]",
        expect![[r#"
        s.toml:7:21: an axis needs at least one value
          hint: remove the axis, or put it into `[set]`"#]],
    );
    check(
        "[0.0, \"1 %\"]",
        "[0.0, inf]",
        expect![[r#"
        s.toml:7:21: expected a number that is finite
          hint: no parameter is infinite or `nan`"#]],
    );
    check(
        "[0.0, \"1 %\"]",
        "0.0",
        expect!["s.toml:7:21: invalid type: floating point `0.0`, expected a sequence"],
    );
    check(
        "[\"1 ms\", \"2 ms\"]",
        "[\"2 ms\", \"1 ms\"]",
        expect![[r#"
        s.toml:12:22: the first bound is not below the second
          hint: for one value only, put it into `[set]`"#]],
    );
    check(
        "[\"1 ms\", \"2 ms\"]",
        "[\"1 ms\", \"2 kB\"]",
        expect![[r#"
        s.toml:12:22: the values are not of one kind
          hint: give all of them units of one kind, or none a unit"#]],
    );
    check(
        "[\"1 ms\", \"2 ms\"]",
        "[\"1 ms\"]",
        expect!["s.toml:12:34: invalid length 1, expected an array of length 2"],
    );
    check(
        "{ uniform = [\"1 ms\", \"2 ms\"] }",
        "{ log-uniform = [0, 1] }",
        expect![[r#"
        s.toml:12:22: a logarithm needs bounds above 0
          hint: take `uniform`, or a small first bound"#]],
    );
    check(
        "{ uniform = [\"1 ms\", \"2 ms\"] }",
        "{ choice = [] }",
        expect![[r#"
        s.toml:12:22: a choice needs at least one value
          hint: list the values: `{ choice = ["a", "b"] }`"#]],
    );
    check(
        "{ uniform = [\"1 ms\", \"2 ms\"] }",
        "{ normal = { mean = 0, deviation = 1, min = 50, max = 60 } }",
        expect![[r#"
            s.toml:12:22: `min` and `max` leave nothing of the distribution
              hint: move them nearer to the mean"#]],
    );
    check(
        "\"link.cable.loss\"",
        "\"seed\"",
        expect![[r#"
        s.toml:7:1: `seed` is not a parameter
          hint: set `seeds` at the top of the spec"#]],
    );
    check(
        "\"link.cable.loss\"",
        "\"link.cable.delay\"",
        expect![[r#"
        s.toml:12:1: `link.cable.delay` is given twice
          hint: a parameter is fixed, on an axis, in the list of points or sampled, not two of these"#]],
    );
}

#[test]
fn enough_is_checked_too() {
    let enough = |text: &str| format!("[enough]\nmetric = \"transfer.file.latency_s\"\n{text}\n");
    assert!(read(&enough("width = \"5 %\"\nmax = 100")).is_ok());
    refused(
        &enough("width = \"5\"\nmax = 100"),
        expect![[r#"
        s.toml:3:9: no width of a confidence interval
          hint: half its width: `"5 %"` of the mean, or a number in the metric's own unit, above 0"#]],
    );
    refused(
        &enough("width = 0.1\nmin = 1\nmax = 100"),
        expect![[r#"
        s.toml:5:7: expected 2 <= min <= max <= 1000000, found 1 and 100
          hint: one run gives no confidence interval; set min to at least 2"#]],
    );
    refused(
        &enough("width = 0.1\nmin = 10\nmax = 5"),
        expect![[r#"
        s.toml:5:7: expected 2 <= min <= max <= 1000000, found 10 and 5
          hint: one run gives no confidence interval; set min to at least 2"#]],
    );
    refused(
        &format!("runs = 3\n{}", enough("width = 0.1\nmax = 100")),
        expect![[r#"
        s.toml:1:8: `runs` and `[enough]` both set the number of runs
          hint: give `min` and `max` in `[enough]`, or remove `[enough]`"#]],
    );
}

#[test]
fn a_sweep_of_more_than_a_million_runs_is_refused() {
    check(
        "runs = 2",
        "runs = 1000000",
        expect![[r#"
        8 points with 3 seeds and up to 1000000 runs each are 24000000 runs, more than 1000000
          hint: make several sweeps of it, or sample instead of a grid"#]],
    );
}

#[test]
fn a_scenario_that_is_not_there_is_named() {
    let folder = Path::new("no-such-folder");
    let error = Spec::parse("s.toml", "scenario = \"n.toml\"", folder, &[]).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("no-such-folder"), "{error}");
    let error = Spec::parse("s.toml", "", folder, &[]).unwrap_err();
    expect![[r#"
        s.toml:1:1: missing key `scenario` or `experiment`
          hint: name a scenario file, as in `scenario = "network.toml"`, or one of `anabranch lab list`, as in `experiment = "set"`"#]]
    .assert_eq(&error.to_string());
    for scenario in ["[[node]]\nname = \"a\"\n", "[[nodes]]\nname = \"n{i}\"\ncount = 2\n"] {
        let error = Spec::parse("s.toml", scenario, folder, &[]).unwrap_err().to_string();
        assert!(error.contains("this is a scenario") && error.contains("`anabranch run s.toml`"), "{error}");
    }
}

/// The parameters of all points, in order.
fn points(text: &str) -> Vec<String> {
    let sweep = read(text).unwrap_or_else(|error| panic!("{error}"));
    sweep.all_points().unwrap_or_else(|error| panic!("{error}"));
    let values = |index: usize| {
        let parameters = sweep.parameters(index).into_iter();
        let parameters: Vec<String> = parameters.map(|(path, value)| format!("{path}={value}")).collect();
        parameters.join(" ").replace("link.cable.", "")
    };
    (0..sweep.points()).map(values).collect()
}

/// Two zipped axes of three values each make three points, not nine; they are combined with an axis
/// of the grid.
#[test]
fn axes_that_vary_together_are_one_axis() {
    let zip = "[[zip]]\n\"link.cable.loss\" = [0.0, 0.1, 0.2]\n\"link.cable.delay\" = [\"1 ms\", \"2 ms\", \"3 ms\"]\n";
    assert_eq!(
        points(zip),
        ["delay=\"1 ms\" loss=0.0", "delay=\"2 ms\" loss=0.1", "delay=\"3 ms\" loss=0.2"]
    );
    let both = format!("[grid]\n\"network.ip\" = [4, 6]\n{zip}");
    assert_eq!(points(&both).len(), 6);
    assert_eq!(
        points(&both)[..2].join(" "),
        "delay=\"1 ms\" loss=0.0 network.ip=4 delay=\"1 ms\" loss=0.0 network.ip=6"
    );
    // The spec replaces the scenario's own axis here too.
    let own = Source::new("n.toml", format!("{NETWORK}\n[sweep]\n\"link.cable.loss\" = [0.5, 0.6]\n"));
    let spec = Spec::parse_for("s.toml", zip, own, Path::new("")).expect("it is one");
    assert_eq!(Sweep::new(spec).expect("it is one").points(), 3);
}

#[test]
fn points_are_taken_as_they_are_listed() {
    let list = "[[point]]\n\"link.cable.loss\" = 0.1\n\"link.cable.delay\" = \"1 ms\"\n\
                [[point]]\n\"link.cable.delay\" = \"9 ms\"\n\"link.cable.loss\" = 0.2\n";
    assert_eq!(points(list), ["delay=\"1 ms\" loss=0.1", "delay=\"9 ms\" loss=0.2"]);
    assert_eq!(points(&format!("{list}[grid]\n\"network.ip\" = [4, 6]\n")).len(), 4);
}

#[test]
fn axes_and_points_that_cannot_be_are_refused_where_they_stand() {
    refused(
        "[[zip]]\n\"link.cable.loss\" = [0.0, 0.1]\n\"link.cable.delay\" = [\"1 ms\"]\n",
        expect![[r#"
            s.toml:2:21: `link.cable.loss` has 2 values, and `link.cable.delay` has 1
              hint: axes of one `[[zip]]` vary together and need as many values each; for every combination use `[grid]`"#]],
    );
    refused(
        "[[zip]]\n\"link.cable.loss\" = []\n",
        expect![[r#"
            s.toml:2:21: an axis needs at least one value
              hint: remove the axis, or put it into `[set]`"#]],
    );
    refused(
        "[[zip]]\n",
        expect![[r#"
        s.toml:1:1: `zip` is empty
          hint: name axes of equal length, as in `"link.a.loss" = [0.0, 0.1]`; or remove `zip`"#]],
    );
    refused(
        "point = []\n",
        expect![[r#"
        s.toml:1:9: `point` is empty
          hint: give each point its parameters, as in `"link.a.loss" = 0.1`; or remove `point`"#]],
    );
    refused(
        "[[point]]\n\"link.cable.loss\" = 0.1\n[[point]]\n\"link.cable.delay\" = \"1 ms\"\n",
        expect![[r#"
            s.toml:3:1: the point has no `link.cable.loss`, which the first one has
              hint: every `[[point]]` has the same parameters; give this one its value in all of them"#]],
    );
    refused(
        "[grid]\n\"link.cable.loss\" = [0.1]\n[[zip]]\n\"link.cable.loss\" = [0.1]\n",
        expect![[r#"
            s.toml:4:1: `link.cable.loss` is given twice
              hint: a parameter is fixed, on an axis, in the list of points or sampled, not two of these"#]],
    );
    refused(
        "[[point]]\n\"link.cable.loss\" = 0.1\n[[point]]\n\"link.cable.loss\" = 2\n",
        expect![[r#"
            s.toml:4:21: 2 is not a probability in 0..=1 (`link.cable.loss` = 2)"#]],
    );
    refused(
        "[grid]\n\"link.radio*.loss\" = [0.1]\n",
        expect![[r#"
            s.toml:2:22: there is no entry `radio*` in that list (`link.radio*.loss` = 0.1)
              hint: the names are `cable`"#]],
    );
}
