//! Custom policies of a program.

use anabranch_core::mptcp::CustomScheduler;
use anabranch_core::mptcp::scheduler::{Demand, PathView, Pick, Scheduler};
use anabranch_core::set::CustomStriping;
use anabranch_core::set::striping::{self, FileView, Striping};
use anabranch_core::tcp::CustomCongestion;
use anabranch_core::tcp::congestion::{Controller, Start, View};
use anabranch_core::time::Instant;

use super::*;

/// Half the growth of NewReno in slow start, and never below two segments.
#[derive(Debug)]
struct Gentle {
    cwnd: u32,
    ssthresh: u32,
    mss: u32,
}

impl Controller for Gentle {
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn on_ack(&mut self, _: Instant, view: &View, acked: u32) {
        self.cwnd = (self.cwnd + acked / 2).min(view.limit);
    }

    fn on_loss(&mut self, _: Instant, view: &View) {
        self.ssthresh = (view.in_flight / 2).max(2 * self.mss);
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, now: Instant, view: &View) {
        self.on_loss(now, view);
    }
}

const GENTLE: CustomCongestion = CustomCongestion::new("gentle", |Start { cwnd, ssthresh, mss, .. }| {
    Box::new(Gentle { cwnd, ssthresh, mss })
});

/// Returns an impossible value: a window of zero.
#[derive(Debug)]
struct Closed;

impl Controller for Closed {
    fn cwnd(&self) -> u32 {
        0
    }

    fn ssthresh(&self) -> u32 {
        0
    }
}

const CLOSED: CustomCongestion = CustomCongestion::new("closed", |_| Box::new(Closed));

/// Selects the subflow that was opened last, and sometimes one that does not exist.
#[derive(Debug, Default)]
struct LastOpened(u32);

impl Scheduler for LastOpened {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        self.0 += 1;
        let open = paths.iter().rev().find(|path| path.takes(demand.unsent));
        match open {
            Some(_) if self.0.is_multiple_of(5) => Pick::Send { index: 99, skip: 0 },
            Some(path) if demand.unsent > 0 => Pick::Send { index: path.index, skip: 0 },
            _ => Pick::Wait,
        }
    }
}

const LAST: CustomScheduler = CustomScheduler::new("last-opened", |()| Box::<LastOpened>::default());

/// Selects sessions in turn, including ones that do not exist.
#[derive(Debug, Default)]
struct InTurn(usize);

impl Striping for InTurn {
    fn choose(&mut self, paths: &[striping::PathView], _: &FileView) -> Option<usize> {
        self.0 += 1;
        let open = |i: &usize| paths.get(*i).is_none_or(|path| path.usable && path.chunk > 0);
        (0..=paths.len()).map(|i| (self.0 + i) % (paths.len() + 1)).find(open)
    }
}

const IN_TURN: CustomStriping = CustomStriping::new("in-turn", |()| Box::<InTurn>::default());

fn brought() -> Policies {
    Policies::default().congestion(GENTLE).congestion(CLOSED).scheduler(LAST).striping(IN_TURN)
}

const GATEWAYS: &str = include_str!("../../../../scenarios/three-gateways.toml");
const DIAMOND: &str = include_str!("../../../../scenarios/diamond-mptcp.toml");

fn delivered(source: &Source) -> (Scenario, record::Metrics) {
    let scenario = source.scenario().expect("it is legal");
    let (_, metrics) = scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    let name = format!("transfer.{}.delivered", scenario.transfers[0].name);
    assert_eq!(metrics[&name].value, Some(1.0));
    (scenario, metrics)
}

#[test]
fn a_scenario_names_them_and_they_decide() {
    let plain = Source::new("three-gateways.toml", GATEWAYS).with_policies(brought());
    let (ours, before) = delivered(&plain);
    for assignment in [
        "tcp.wireless.congestion=gentle",
        "tcp.wireless.congestion=closed",
        "transfer.0.set.striping=in-turn",
    ] {
        let (theirs, after) = delivered(&plain.clone().set(assignment));
        assert!(before != after, "{assignment}");
        assert_ne!(ours.hash(), theirs.hash(), "{assignment}");
        // The resolved file has the same meaning for every program with the same policies.
        let again = Source::new("again.toml", theirs.to_toml()).with_policies(brought());
        assert_eq!(again.scenario().expect("it is legal").hash(), theirs.hash());
    }
    let diamond = Source::new("diamond-mptcp.toml", DIAMOND).with_policies(brought());
    let diamond = diamond.set("transfer.log.bytes=20 kB");
    let (_, before) = delivered(&diamond);
    let (_, after) = delivered(&diamond.set("transfer.log.mptcp.scheduler=last-opened"));
    assert!(before != after);
}

#[test]
fn a_digest_tells_policies_of_one_name_apart() {
    let hash = |policies: Policies, congestion: &str| {
        let source = Source::new("three-gateways.toml", GATEWAYS).with_policies(policies);
        let source = source.set(format!("tcp.wireless.congestion={congestion}"));
        source.scenario().expect("it is legal").hash()
    };
    let (one, other) = (brought().identified("gentle", "1"), brought().identified("gentle", "2"));
    assert_ne!(hash(one.clone(), "gentle"), hash(other.clone(), "gentle"));
    assert_ne!(hash(one.clone(), "gentle"), hash(brought(), "gentle"));
    assert_eq!(hash(one.clone(), "gentle"), hash(one.clone(), "gentle"));
    // A policy that is registered but not used changes nothing.
    assert_eq!(hash(one, "newreno"), hash(Policies::default(), "newreno"));
    assert_eq!(hash(other, "closed"), hash(brought(), "closed"));
}

#[test]
fn what_was_not_brought_along_is_not_known() {
    let said = |policies: Policies, assignment: &str| {
        let source = Source::new("s.toml", GATEWAYS).with_policies(policies).set(assignment);
        let error = source.scenario().expect_err("nobody has brought it").to_string();
        error.strip_prefix(&format!("--set {assignment}: ")).map(str::to_owned).expect("its place")
    };
    let known = "it knows newreno, cubic, coupled, westwood, bbr, adaptive-newreno";
    let expected = format!("this program has no congestion control `gentle`: {known}");
    assert_eq!(said(Policies::default(), "tcp.default.congestion=gentle"), expected);
    for (assignment, expected) in [
        (
            "tcp.default.congestion=gentel",
            "this program has no congestion control `gentel`: did you mean `gentle`?",
        ),
        (
            "tcp.default.congestion=7",
            "invalid type: integer `7`, expected the name of a congestion control, or a table such as \
             `{ adaptive-newreno = { w_min = 2, w_max = 8, update_every = 2 } }`",
        ),
        (
            "tcp.default.congestion=adaptive-newreno",
            "`adaptive-newreno` needs numbers: \
             { adaptive-newreno = { w_min = 2, w_max = 8, update_every = 2 } }",
        ),
        ("tcp.default.congestion={ adaptive-newreno = { w_min = 2 } }", "missing key `w_max`"),
        (
            "tcp.default.congestion={ adaptive-newreno = { w_min = 2, w_max = 8, update_every = 2, w_mox = 9 } }",
            "unknown key `w_mox`, expected one of `w_min`, `w_max`, `update_every`, `phases`\n  hint: did you mean `w_max`?",
        ),
        (
            "transfer.0.set.striping=predictiv",
            "this program has no striping policy `predictiv`: did you mean `predictive`?",
        ),
    ] {
        assert_eq!(said(brought(), assignment), expected);
    }
}

/// Every key with words accepts all words of its enum, and writes the word that it has read.
#[test]
fn the_words_of_a_key_are_those_of_its_enum() {
    use anabranch_core::tcp::{Backoff, CongestionAlgorithm, EcnMode, Recovery, SackRole};
    use anabranch_core::{mptcp, set};
    use units::words_of;

    let with_set = "transfer.0.set";
    let keys = [
        ("tcp.default.rto_backoff", words_of::<Backoff>()),
        ("tcp.default.sack", words_of::<SackRole>()),
        ("tcp.default.ecn", words_of::<EcnMode>()),
        ("tcp.default.recovery", words_of::<Recovery>()),
        ("tcp.default.congestion", words_of::<CongestionAlgorithm>()),
        (&format!("{with_set}.layout"), words_of::<set::Layout>()),
        (&format!("{with_set}.start"), words_of::<set::Start>()),
        (&format!("{with_set}.open"), words_of::<set::OpenWhen>()),
        (&format!("{with_set}.open_wait"), words_of::<set::OpenWait>()),
        (&format!("{with_set}.striping"), words_of::<set::StripingPolicy>()),
        (&format!("{with_set}.reinjection"), words_of::<set::Reinjection>()),
        (&format!("{with_set}.recovery"), words_of::<set::Recovery>()),
        (&format!("{with_set}.sharing"), words_of::<set::buffers::Sharing>()),
        (&format!("{with_set}.answer"), words_of::<set::NodeStriping>()),
        ("transfer.log.mptcp.scheduler", words_of::<mptcp::SchedulerKind>()),
        ("transfer.log.mptcp.reinjection", words_of::<mptcp::Reinjection>()),
        ("transfer.log.mptcp.congestion", words_of::<CongestionAlgorithm>()),
        ("paths.objective", words_of::<anabranch_core::paths::Objective>()),
        ("network.fragmentation", words_of::<anabranch_sim::network::Fragmentation>()),
        ("network.metric", words_of::<anabranch_sim::routing::Metric>()),
    ];
    for (path, words) in keys {
        assert!(words.len() > 1, "{path}");
        let mptcp = path.contains("mptcp") || path.starts_with("paths");
        let text = if mptcp { DIAMOND } else { GATEWAYS };
        for word in words.iter().filter(|word| **word != "adaptive-newreno") {
            let assignment = format!("{path}={word}");
            // Without SACK, the options that need it must be off too.
            let source = Source::new("words.toml", text).set("tcp.default.base=standard").set(&assignment);
            let scenario = source.scenario().map_err(|error| error.to_string()).expect(&assignment);
            let value = serde_json::to_value(scenario.resolved()).expect("it is plain data");
            let place = path.replace("transfer.log", "transfer.0").replace('.', "/");
            assert_eq!(value.pointer(&format!("/{place}")), Some(&(*word).into()), "{assignment}");
        }
        let error = Source::new("words.toml", text).set(format!("{path}=nonesuch")).scenario();
        let error = error.expect_err("no word").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}
