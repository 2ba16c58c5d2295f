//! Transfers by Multipath TCP.

use anabranch_core::mptcp::{Reinjection, SchedulerKind};
use anabranch_core::tcp::{AdaptivePhases, CongestionAlgorithm, DsnWidth};

use super::*;
use anabranch_sim::apps::BulkSender;

const SHIPPED: &str = include_str!("../../../../scenarios/diamond-mptcp.toml");

fn shipped() -> Source {
    Source::new("diamond-mptcp.toml", SHIPPED)
}

#[test]
fn every_choice_reaches_the_connection() {
    let chosen = shipped()
        .set("transfer.log.mptcp.scheduler=predictive")
        .set("transfer.log.mptcp.reinjection=on-failure")
        .set("transfer.log.mptcp.congestion=adaptive")
        .set("transfer.log.mptcp.subflows=2")
        .set("transfer.log.mptcp.dsn_width=8")
        .set("tcp.default.congestion=cubic");
    let scenario = chosen.scenario().expect("it is legal");
    let Scheme::Mptcp(spec) = &scenario.transfers[0].scheme else { panic!("its kind is mptcp") };
    assert_eq!(spec.config.scheduler, SchedulerKind::Predictive);
    assert_eq!(spec.config.reinjection, Reinjection::OnFailure);
    assert_eq!(spec.config.dsn_width, DsnWidth::Eight);
    assert_eq!((spec.subflows, spec.adaptation.is_some()), (2, true));
    assert_eq!((spec.config.tcp.mss, spec.config.tcp.congestion), (300, CongestionAlgorithm::Cubic));

    let printed = shipped()
        .set("transfer.log.mptcp.scheduler=section-vii")
        .set("transfer.log.mptcp.congestion=adaptive-explore-hold");
    let scenario = printed.scenario().expect("it is legal");
    let Scheme::Mptcp(spec) = &scenario.transfers[0].scheme else { panic!("its kind is mptcp") };
    assert_eq!(spec.config.scheduler, SchedulerKind::SectionVii);
    let limits = |hops| spec.adaptation.expect("it follows from the path").limits(hops).phases;
    assert_eq!((limits(1), limits(2)), (AdaptivePhases::Grow, AdaptivePhases::ExploreHold));

    let coupled = shipped().scenario().expect("it is legal");
    let Scheme::Mptcp(spec) = &coupled.transfers[0].scheme else { panic!("its kind is mptcp") };
    assert_eq!((spec.config.tcp.congestion, spec.adaptation), (CongestionAlgorithm::Coupled, None));
}

#[test]
fn subflows_are_as_many_as_asked_for() {
    for (most, expected) in [("1", 1), ("2", 2), ("8", 2)] {
        let source =
            shipped().set("transfer.log.bytes=5 kB").set(format!("transfer.log.mptcp.subflows={most}"));
        let scenario = source.scenario().expect("it is legal");
        let (_, metrics) = scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
        assert_eq!(metrics["transfer.log.subflows"].value, Some(expected.into()), "{most}");
        assert_eq!(metrics["transfer.log.delivered"].value, Some(1.0));
    }
}

#[test]
fn a_transfer_waits_for_a_path_and_takes_the_static_route_where_there_are_none() {
    let early = shipped().set("transfer.log.start=0 s").set("transfer.log.bytes=5 kB");
    let (_, metrics) =
        early.scenario().expect("it is legal").run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    assert_eq!(metrics["transfer.log.delivered"].value, Some(1.0));
    assert!(metrics["transfer.log.establishment_s"].value > Some(0.1), "paths take a while");

    let routed = SHIPPED.replace("[paths]\nroot = \"border\"\n", "").replace("1 MB", "5 kB");
    let scenario = Source::new("routed.toml", routed).scenario().expect("it is legal");
    let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    let mut sim = builder.build();
    sim.run_until(scenario.stop);
    let multipath = sim.app::<BulkSender>(planned.transfers[0].sender).multipath.as_ref().expect("it spoke");
    assert_eq!((multipath.subflows.len(), multipath.connection.bytes_acked), (1, 5_000));
    assert!(multipath.connection.multipath);
}
