use super::*;
use crate::PAPERS;
use crate::experiment::{Settings, outcomes};
use crate::open::Range;
use crate::reproduction::Extent;

/// Both ends and the middle of every range are valid, and names of parameters are unique.
#[test]
fn open_parameters_are_those_of_the_experiment_and_their_ranges_can_be() {
    for paper in PAPERS {
        let errata: Vec<String> = paper.errata().into_iter().map(|erratum| erratum.id).collect();
        let names: Vec<&str> = paper.open.iter().map(|open| open.parameter).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "{names:?}");
        for Open { parameter, erratum, range } in paper.open {
            assert!(errata.iter().any(|id| id == erratum), "{}: {parameter}: {erratum}", paper.id);
            for u in [0.0, 0.3, 0.5, 0.7, 1.0_f64.next_down()] {
                let settings = Settings::defaults(paper.experiment).with(parameter, range.text(u));
                let point = paper.experiment.point(&settings);
                assert!(point.is_ok(), "{}: {parameter}={}: {:?}", paper.id, range.text(u), point.err());
            }
        }
    }
}

/// A parameter without influence is not open. Each is tested where it should have an effect.
#[test]
fn every_open_parameter_changes_results() {
    let small: [(&str, &[&[&str]]); 5] = [
        ("set", &[&["scheme=split", "file=60kB"]]),
        ("dtc", &[&["mode=tcp", "segments=100"], &["mode=dtc-paper", "segments=100"]]),
        ("mptcp", &[&["nodes=20", "packets=10"], &["scheme=conventional", "nodes=10", "packets=10"]]),
        ("rdca", &[&["protocol=newreno", "senders=2", "rate=40kB/s", "duration=20s"]]),
        ("sockbuf", &[&["duration=20s", "bandwidth_step=5s", "connections=6"]]),
    ];
    for (paper, bases) in small {
        let paper = crate::paper(paper).expect("a paper");
        for Open { parameter, range, .. } in paper.open {
            let at = |base: &[&str], u: f64| {
                let own = format!("{parameter}={}", range.text(u));
                let others = base.iter().filter(|set| set.split('=').next() != Some(parameter));
                let all: Vec<&str> = others.copied().chain([own.as_str()]).collect();
                outcomes(paper.experiment, &all, 1, 3).remove(0).metrics
            };
            let changes = bases.iter().any(|base| {
                [0.34, 0.67, 1.0_f64.next_down()].into_iter().any(|u| at(base, u) != at(base, 0.0))
            });
            assert!(changes, "{}: {parameter} changes nothing from {} on", paper.id, range.text(0.0));
        }
    }
}

#[test]
fn settings_are_drawn_from_the_whole_range_after_the_defaults() {
    let open = [
        Open { parameter: "a", erratum: "", range: Range::Even(10.0, 30.0, "m") },
        Open { parameter: "b", erratum: "", range: Range::OneOf(&["on", "off"]) },
        Open { parameter: "c", erratum: "", range: Range::Whole(0, 4, "packets") },
        Open { parameter: "d", erratum: "", range: Range::Log(0.01, 100.0, "s") },
    ];
    let drawn = draw(&open, Vec::new(), 100, 7);
    assert_eq!(drawn.len(), 101);
    assert_eq!((drawn[0].number, drawn[0].values.len()), (0, 0));
    let of = |i: usize| drawn[1..].iter().map(|setting| setting.values[i].1.clone()).collect::<Vec<_>>();
    assert_eq!(of(1).iter().filter(|word| *word == "on").count(), 50);
    let packets = of(2);
    assert!((0..=4).all(|n| packets.iter().filter(|word| **word == format!("{n}packets")).count() == 20));
    let metres: Vec<f64> =
        of(0).iter().map(|text| text.strip_suffix('m').expect("m").parse().expect("a number")).collect();
    let mean = metres.iter().sum::<f64>() / 100.0;
    assert!(metres.iter().all(|m| (10.0..=30.0).contains(m)) && (mean - 20.0).abs() < 0.2, "{mean}");
    let seconds: Vec<f64> =
        of(3).iter().map(|text| text.strip_suffix('s').expect("s").parse().expect("a number")).collect();
    assert_eq!(seconds.iter().filter(|s| **s < 1.0).count(), 50);
    assert_eq!(draw(&open, Vec::new(), 100, 7), drawn);
    assert_ne!(draw(&open, Vec::new(), 100, 8), drawn);
}

fn study(settings: u32) -> Study {
    let paper = crate::paper("dtc").expect("a paper");
    Study { paper, settings, options: Options { extent: Extent::Quick, runs: Some(1), seed: 1 } }
}

/// Rows in which `of` computes each claim from the positions of the setting in the ranges of the
/// parameters.
fn made_up(study: Study, of: impl Fn(&str, &[f64]) -> Found) -> Vec<Row> {
    let claims: Vec<Target> = targets::claims(study.paper.targets).collect();
    let row = |setting: Setting| Row {
        setting: setting.number,
        parameters: setting.values.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect(),
        impossible: None,
        claims: claims
            .iter()
            .map(|target| {
                let places = if setting.number == 0 {
                    vec![0.5; study.paper.open.len()]
                } else {
                    setting.places.clone()
                };
                (target.id.clone(), of(&target.id, &places))
            })
            .collect(),
    };
    study.drawn().into_iter().map(row).collect()
}

#[test]
fn a_map_says_how_often_a_claim_holds_and_on_what_that_depends() {
    let study = study(400);
    let place = |name: &str| study.paper.open.iter().position(|open| open.parameter == name).expect("open");
    let (least, delay) = (place("rto_min"), place("hop_delay"));
    // The claim holds if the delay is in the upper quarter of its range; the number depends on two
    // independent parameters with variances 4 to 1.
    let mut rows = made_up(study, |_, places| Found {
        holds: if places[delay] >= 0.75 { Holds::Yes } else { Holds::Trend },
        measure: Some((2.0 * places[delay] + places[least]).exp()),
        ours: Some(0.5 * (2.0 * places[delay] + places[least]).exp()),
    });
    rows.reverse();
    let map = study.map(rows.clone());
    let robust = &map.robust()[0];
    assert_eq!((robust.counts, robust.in_reference), ([100, 300, 0, 0], Some(Holds::Trend)));
    assert!(robust.ours.is_some_and(|ours| (ours + 50.0).abs() < 1e-9), "{:?}", robust.ours);
    let share = robust.reproduced.expect("400 settings");
    let wilson = stats::wilson(100, 400).expect("a share");
    assert_eq!((share.share, share.low, share.high), (0.25, wilson.low, wilson.high));
    assert_eq!(robust.in_trend.expect("400 settings").share, 1.0);
    let [(first, most), (second, less)] = robust.deciding[..] else { panic!("{:?}", robust.deciding) };
    assert_eq!((first, second), ("hop_delay", "rto_min"));
    assert!((most - 0.8).abs() < 0.1 && (less - 0.2).abs() < 0.1, "{most} {less}");
    // Rows of another draw and duplicates are ignored.
    let mut more = rows.clone();
    more.push(rows[3].clone());
    more.push(Row { setting: 5, parameters: BTreeMap::new(), ..rows[7].clone() });
    more.retain(|row| row.setting != 9);
    let map = study.map(more);
    assert_eq!((map.missing(), map.robust()[0].counts.iter().sum::<u64>()), (1, 399));
    // A tenth of the settings have no valid network.
    for row in rows.iter_mut().filter(|row| row.setting % 10 == 1) {
        *row = Row { impossible: Some("no".to_owned()), claims: BTreeMap::new(), ..row.clone() };
    }
    let map = study.map(rows);
    assert_eq!(map.robust()[0].counts.iter().sum::<u64>(), 360);
    assert!(map.page().contains("40 settings could not be run and do not count: no."), "{}", map.page());
    assert_eq!(map.csv().lines().count(), 1 + map.claims.len());
    assert_eq!(map.svg().matches("text-anchor=\"end\"").count(), map.claims.len());
}

/// A claim that is open in some settings is judged by the others. A claim that is open in all is
/// not reported as refuted.
#[test]
fn what_cannot_be_judged_is_no_failure() {
    let study = study(20);
    let rows = made_up(study, |id, places| {
        let holds = if id == "dtc.trend.1" || places[0] < 0.5 { Holds::Open } else { Holds::Yes };
        Found { holds, measure: None, ours: None }
    });
    let map = study.map(rows);
    let robust = map.robust();
    let of = |id: &str| robust.iter().find(|robust| robust.id == id).expect("a claim");
    assert_eq!(of("dtc.trend.1").reproduced, None);
    let other = of("dtc.trend.2");
    assert_eq!((other.counts, other.reproduced.map(|share| share.share)), ([10, 0, 0, 10], Some(1.0)));
    assert!(
        map.page().lines().any(|line| line.starts_with("| dtc.trend.1 |") && line.contains("| - | - | - |"))
    );
}

/// Numbers that count as baselines, by paper.
#[test]
fn baselines_are_those_that_the_paper_compares_with() {
    let of = |paper: &str| {
        let paper = crate::paper(paper).expect("a paper");
        let ids = targets::claims(paper.targets).map(|target| target.id);
        ids.filter(|id| (paper.is_baseline)(id)).collect::<Vec<_>>()
    };
    assert_eq!(["set", "dtc", "mptcp", "rdca", "sockbuf"].map(|paper| of(paper).len()), [0, 16, 29, 31, 0]);
    assert!(of("rdca").iter().all(|id| !id.contains("proposed") && !id.contains(".std.")));
    assert!(
        of("mptcp").iter().all(|id| !id.contains(".P")) && of("dtc").iter().all(|id| id.contains("nodtc"))
    );
}

#[test]
fn a_claim_that_depends_on_nothing_says_so() {
    let study = study(200);
    let noise = |id: &str, places: &[f64]| {
        let octets = id.bytes().fold(7, |sum: u64, octet| sum.wrapping_mul(257) ^ u64::from(octet));
        let mut state = places.iter().fold(octets, |sum, u| sum.wrapping_mul(31) ^ u.to_bits());
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Found { holds: Holds::No, measure: Some((state >> 33) as f64), ours: None }
    };
    let map = study.map(made_up(study, noise));
    let told = map.robust().iter().filter(|robust| !robust.deciding.is_empty()).count();
    // One in a hundred is reported by chance.
    assert!(told <= 4, "{told} of {}", map.claims.len());
    let constant =
        study.map(made_up(study, |_, _| Found { holds: Holds::Yes, measure: Some(0.3), ours: None }));
    assert!(constant.robust().iter().all(|robust| robust.deciding.is_empty()));
}

/// Numbers printed of the proposed protocol do not influence the chosen setting.
#[test]
fn the_nearest_setting_is_that_of_the_baselines() {
    let study = study(50);
    let is_baseline = study.paper.is_baseline;
    let rows = made_up(study, |id, places| {
        let is_so = if is_baseline(id) { (0.4..0.42).contains(&places[4]) } else { places[4] > 0.9 };
        Found { holds: if is_so { Holds::Yes } else { Holds::No }, measure: Some(1.0), ours: None }
    });
    let map = study.map(rows);
    let (row, [most, all], others) = map.nearest().expect("rows of baselines");
    let setting = &study.drawn()[row.setting];
    assert!((0.4..0.42).contains(&setting.places[4]), "{setting:?}");
    assert_eq!((most, all, others), (16, 16, 0));
    assert!(map.page().contains("the reference reproduces 0."), "{}", map.page());
    let none = crate::paper("set").expect("a paper");
    assert!(Study { paper: none, ..study }.map(Vec::new()).nearest().is_none());
}

/// The runs use the settings: the number of a baseline equals that of `lab run` with the same
/// values.
#[test]
fn a_setting_is_what_lab_run_makes_of_it() {
    let study = study(1);
    let values = vec![("last_ack_loss", "on".to_owned()), ("rto_min", "0.5s".to_owned())];
    let setting = Setting { number: 1, places: vec![0.5; 5], values };
    let row = Row::measure(study.paper, study.options, &setting, &|| {}).expect("it can be");
    let id = "dtc.nodtc_data_tx.n6.p10";
    let set = ["mode=tcp", "hops=6", "loss=0.1", "last_ack_loss=on", "rto_min=0.5s"];
    let alone = outcomes(study.paper.experiment, &set, 1, 1).remove(0).mean("data_transmissions");
    assert_eq!(row.claims[id].measure, alone);
    let mptcp = crate::paper("mptcp").expect("a paper");
    let values = vec![("retries", "2".to_owned()), ("range", "130m".to_owned())];
    let of_mptcp =
        Row::measure(mptcp, study.options, &Setting { number: 1, places: vec![0.5; 7], values }, &|| {});
    for (id, scheme) in
        [("mptcp.n10.transmissions.C", "conventional"), ("mptcp.n10.transmissions.P", "proposed")]
    {
        let set = [format!("scheme={scheme}"), "nodes=10".into(), "retries=2".into(), "range=130m".into()];
        let alone = outcomes(mptcp.experiment, &set, 1, 1).remove(0).mean("transmissions");
        assert_eq!(of_mptcp.as_ref().expect("it can be").claims[id].measure, alone, "{id}");
    }
    let defaults = Row::measure(study.paper, study.options, &study.drawn()[0], &|| {}).expect("it can be");
    assert_ne!(defaults.claims[id].measure, alone);
    assert!(row.impossible.is_none() && row.claims.len() == study.map(Vec::new()).claims.len());
    let cannot = Setting { values: vec![("rto_min", "-1s".to_owned())], ..setting };
    let row = Row::measure(study.paper, study.options, &cannot, &|| {}).expect("a row");
    assert!(row.impossible.is_some_and(|why| why.contains("rto_min")) && row.claims.is_empty());
}
