//! Inputs that the models must refuse.

use super::super::csma::{Csma, access, periods_at_constant};
use super::super::queue::{Queue, occupied};
use super::super::rtt::{CellularLink, Link, Sizes, Transmitter, travel};
use super::super::*;
use super::{Busy, node, route};

#[track_caller]
fn names<T: std::fmt::Debug>(answer: Result<T, ModelError>, what: &str) {
    let error = answer.expect_err(what).to_string();
    assert!(error.contains(what), "{error}");
}

#[test]
fn channel_access_outside_the_standard() {
    let of = |min_be, max_be, max_backoffs| {
        access(&Csma { min_be, max_be, max_backoffs }, &Busy::Constant(0.5), Reading::default())
    };
    names(of(3, 9, 4), "max_be must lie between 3 and 8, not 9");
    names(of(3, 2, 4), "max_be");
    names(of(6, 5, 4), "min_be must lie between 0 and 5, not 6");
    names(of(3, 5, 6), "max_backoffs must lie between 0 and 5, not 6");
    names(of(u32::MAX, u32::MAX, u32::MAX), "max_be");
}

#[test]
fn what_is_no_probability() {
    let of = |busy: Busy| access(&Csma::default(), &busy, Reading::default());
    for p in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        names(of(Busy::Constant(p)), "busy must lie between 0 and 1");
        names(of(Busy::ByPeriod(vec![0.5, p])), "busy");
        names(periods_at_constant(&Csma::default(), p), "busy");
    }
    names(of(Busy::ByPeriod(Vec::new())), "busy must not be empty");
}

#[test]
fn queues_that_are_none() {
    let of =
        |arrivals, service, capacity| occupied(&Queue { arrivals, service, capacity }, Reading::default());
    names(of(-1.0, 1.0, None), "arrivals");
    names(of(f64::NAN, 1.0, None), "arrivals");
    names(of(1.0, 0.0, Some(1)), "service");
    names(of(1.0, f64::INFINITY, None), "service");
    names(of(1.0, 2.0, Some(0)), "capacity must lie between 1 and 1000000, not 0");
    names(of(2.0, 2.0, None), "utilisation must be below 1");
    assert!(of(2.0, 2.0, Some(3)).is_ok());
    assert!(Queue { arrivals: 3.0, service: 2.0, capacity: None }.probability(0).is_err());
}

#[test]
fn routes_name_the_hop() {
    names(travel(&route(Vec::new()), Reading::default()), "forward must not be empty");
    let mut bad = route(vec![node(1.0, 0.1), node(1.0, 1.5)]);
    names(travel(&bad, Reading::default()), "forward hop 2: busy must lie between 0 and 1, not 1.5");
    bad.forward.pop();
    bad.reverse = vec![node(1000.0, 0.1)];
    names(travel(&bad, Reading::default()), "reverse hop 1: utilisation");
    bad.reverse.clear();
    bad.sizes.header = 0;
    names(travel(&bad, Reading::default()), "header");
    let sizes = Sizes { payload: 70_000, ..Sizes::of_payload(0) };
    names(travel(&rtt::Route { sizes, ..route(vec![node(1.0, 0.1)]) }, Reading::default()), "payload");
    let link = CellularLink { delay: -1.0, ..CellularLink::lte() };
    let cellular = Transmitter { link: Link::Cellular(link), arrivals: 0.0, capacity: None };
    names(travel(&route(vec![cellular]), Reading::default()), "forward hop 1: delay");
}

#[test]
fn a_channel_that_is_never_clear_has_no_time_of_success() {
    let won = Reading { access: AccessTime::Won, ..Reading::default() };
    names(travel(&route(vec![node(0.0, 1.0)]), won), "never gained");
    let chain = access(&Csma::default(), &Busy::Constant(1.0), Reading::default()).expect("legal");
    assert_eq!((chain.won, chain.lost, chain.periods_if_won), (0.0, 1.0, None));
    assert!(chain.won_at.is_empty());
    let clear = access(&Csma::default(), &Busy::Constant(0.0), Reading::default()).expect("legal");
    assert_eq!((clear.lost, clear.periods, clear.periods_if_lost), (0.0, 4.5, None));
}
