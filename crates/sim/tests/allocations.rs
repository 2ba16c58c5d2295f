//! In steady state a TCP segment costs no allocation beyond its payload handle (DESIGN section 3).
//!
//! The allocator of this whole test program counts, so nothing else is tested here.

#![allow(unsafe_code, reason = "an allocator is unsafe to implement, and this one only passes on and counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::loss::LossModel;
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::sim::{Builder, Simulation};

/// The system's allocator, which counts what it hands out.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Those among them of a segment's payload.
static PAYLOADS: AtomicU64 = AtomicU64::new(0);

/// Payload of a full segment with timestamps.
const PAYLOAD: usize = 1428;

fn count(size: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    if size == PAYLOAD {
        PAYLOADS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, whose contract is the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps to the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` with this layout, since all of ours do.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        // SAFETY: as in `dealloc`; the caller keeps to the contract for the new size.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// An endless transfer over one hop. The sender writes 32 KiB and more at once; segments are slices of that,
/// except where one crosses from one write to the next: its payload is put together.
fn one_hop(loss: LossModel) -> Simulation {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [a, b] = ["a", "b"].map(|name| builder.node(name, Forwarding::Off));
    builder.cable(a, b, LinkConfig { loss, ..LinkConfig::new(100_000_000, Duration::from_millis(1)) });
    let tcp = tcp::Config::default();
    builder.app(b, Instant::ZERO, Sink::new(80, tcp));
    let config = BulkSenderConfig { to: b, port: 80, content: Content::Endless, tcp };
    builder.app(a, Instant::ZERO, BulkSender::new(config));
    builder.build()
}

/// What ten seconds cost after ten of warm-up.
#[derive(Debug)]
struct Cost {
    /// Data and acknowledgements that arrived.
    packets: u64,
    /// Payloads that were put together.
    payloads: u64,
    /// Allocations beyond one for each of these.
    others: u64,
}

fn measure(loss: LossModel) -> Cost {
    let mut sim = one_hop(loss);
    let count = |sim: &Simulation| {
        let packets = sim.world().network.links().iter().map(|link| link.metrics().delivered).sum::<u64>();
        [packets, PAYLOADS.load(Ordering::Relaxed), ALLOCATIONS.load(Ordering::Relaxed)]
    };
    sim.run_until(Instant::ZERO + Duration::from_secs(10));
    let before = count(&sim);
    sim.run_until(Instant::ZERO + Duration::from_secs(20));
    let after = count(&sim);
    let [packets, payloads, all] = [0, 1, 2].map(|i| after[i] - before[i]);
    Cost { packets, payloads, others: all - payloads }
}

// One test: two at once would count each other's allocations.
#[test]
fn a_segment_in_steady_state_allocates_its_payload_at_most() {
    let cost = measure(LossModel::None);
    println!("without loss: {cost:?}");
    assert!(cost.packets > 100_000, "{cost:?}");
    assert!(cost.payloads < cost.packets / 30, "segments are slices: {cost:?}");
    assert!(cost.others < 16, "nothing else is allocated: {cost:?}");

    // Losses open holes at the receiver, whose lists grow now and then.
    let cost = measure(LossModel::Bernoulli { p: 0.001 });
    println!("with 0.1 % loss: {cost:?}");
    assert!(cost.payloads < cost.packets / 30, "{cost:?}");
    assert!(cost.others < cost.packets / 1000, "{cost:?}");
}
