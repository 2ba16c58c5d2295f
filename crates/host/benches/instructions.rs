//! Instructions of one forwarded segment in the node of a router. Needs valgrind and the program
//! gungraun-runner; `cargo xtask bench` fetches both.

#![allow(missing_docs, reason = "the macros write what has none")]

mod support;

use anabranch_core::dtc::Node;
use anabranch_testkit::instructions;
use gungraun::{library_benchmark, library_benchmark_group};

use support::{Forwarded, busy, forward};

fn ready(connections: u32) -> (Node, Vec<Forwarded>) {
    let (node, _, next) = busy(connections, 1000);
    (node, next)
}

// 1,000 segments with data and 1,000 acknowledgements; what they free is part of it.
#[library_benchmark]
#[bench::connections_1(ready(1))]
#[bench::connections_100(ready(100))]
#[bench::connections_4000(ready(4_000))]
fn segments((mut node, next): (Node, Vec<Forwarded>)) -> (Node, Vec<Forwarded>) {
    forward(&mut node, &next);
    (node, next)
}

library_benchmark_group!(name = cache; benchmarks = segments);

mod harness {
    use super::cache;

    gungraun::main!(library_benchmark_groups = cache);

    pub(super) fn run() {
        main();
    }
}

fn main() {
    if instructions::are_counted() {
        harness::run();
    }
}
