//! Tests of the dispatch: every call of the sender reaches the algorithm.

use std::vec::Vec;

use super::*;

/// Names of the functions in the block of `source` that begins with `from`.
fn functions(source: &'static str, from: &str) -> Vec<&'static str> {
    let begin = source.find(from).expect("the block");
    let block = &source[begin..];
    let end = block.find("\n}\n").expect("its end");
    let name = |line: &'static str| line.trim_start().strip_prefix("fn ")?.split('(').next();
    block[..end].lines().filter_map(name).collect()
}

/// The test below must call all methods, because a missing forward to a default method has no
/// visible effect.
#[test]
fn the_spy_has_every_method() {
    let mut asked = functions(include_str!("../congestion.rs"), "pub trait Controller");
    let mut spied = functions(include_str!("tests.rs"), "\nimpl Controller for Spy");
    asked.sort_unstable();
    spied.sort_unstable();
    assert!(asked.len() > 12);
    assert_eq!(asked, spied);
}

/// Counts the calls.
#[derive(Debug)]
struct Spy(u32);

impl Controller for Spy {
    fn cwnd(&self) -> u32 {
        self.0
    }

    fn ssthresh(&self) -> u32 {
        7
    }

    fn on_ack(&mut self, _: Instant, _: &View, _: u32) {
        self.0 += 1;
    }

    fn on_delivery(&mut self, _: Instant, _: u32, _: u32) {
        self.0 += 1;
    }

    fn on_rtt(&mut self, _: Instant, _: &View, _: Duration) {
        self.0 += 1;
    }

    fn on_slow_start_end(&mut self, _: Instant, _: &View) {
        self.0 += 1;
    }

    fn on_loss(&mut self, _: Instant, _: &View) {
        self.0 += 1;
    }

    fn on_mark(&mut self, _: Instant, _: &View) {
        self.0 += 1;
    }

    fn on_recovered(&mut self, _: Instant, _: &View) {
        self.0 += 1;
    }

    fn on_timeout(&mut self, _: Instant, _: &View) {
        self.0 += 1;
    }

    fn on_spurious(&mut self, _: Instant, _: &View, _: Windows) {
        self.0 += 1;
    }

    fn on_idle(&mut self, _: Instant, _: &View) {
        self.0 += 1;
    }

    fn answers_marks(&self) -> bool {
        false
    }

    fn wants_samples(&self) -> bool {
        true
    }

    fn on_sample(&mut self, _: Instant, _: &View, _: &RateSample) {
        self.0 += 1;
    }

    fn on_lost(&mut self, _: Instant, _: &View, _: &LostSegment) {
        self.0 += 1;
    }

    fn on_restart(&mut self, _: Instant, _: &View) {
        self.0 += 1;
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(9)
    }

    fn limits_itself(&self) -> bool {
        true
    }
}

#[test]
fn a_custom_controller_hears_of_everything() {
    let algorithm = CongestionAlgorithm::Custom(CustomCongestion::new("spy", |_| Box::new(Spy(100))));
    let mut any = AnyController::new(algorithm, Start { cwnd: 1, ssthresh: 1, mss: 1, seed: 1 });
    let (now, view) = (Instant::ZERO, View::of(1, Repair::Sack));
    any.on_ack(now, &view, 1);
    any.on_delivery(now, 1, 1);
    any.on_rtt(now, &view, Duration::ZERO);
    any.on_slow_start_end(now, &view);
    any.on_loss(now, &view);
    any.on_mark(now, &view);
    any.on_recovered(now, &view);
    any.on_timeout(now, &view);
    any.on_spurious(now, &view, Windows { cwnd: 1, ssthresh: 1 });
    any.on_idle(now, &view);
    any.on_sample(now, &view, &RateSample::default());
    any.on_lost(now, &view, &LostSegment::default());
    any.on_restart(now, &view);
    assert_eq!((any.cwnd(), any.ssthresh(), any.pacing_rate()), (113, 7, Some(9)));
    assert!(any.wants_samples() && any.limits_itself() && !any.answers_marks());
}
