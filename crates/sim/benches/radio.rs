//! What a transmission costs: with 50 stations, with 1,000 at the same density, and with 50 among
//! 950 that nobody hears; and building the lists of neighbours.

use anabranch_core::time::Duration;
use anabranch_sim::radio::{LogDistance, MacConfig, RadioConfig, Station};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

#[path = "support/air.rs"]
mod air;

use air::{Air, Flow, Traffic, scattered};

/// Metres; a station has some ten neighbours where there is one for each 1,000 square metres.
const RANGE: f64 = 60.0;

/// A side of a square with so many stations, in metres.
fn side(stations: usize) -> f64 {
    (stations as f64 * 1000.0).sqrt()
}

/// The first `active` stations, which are together in their square, send to a neighbour each.
fn busy(config: RadioConfig, active: usize, idle: usize) -> (Air, Traffic) {
    let mut places = scattered(active, side(active), 1);
    places.extend(scattered(idle, side(idle), 2).iter().map(|&(x, y)| (x + 10_000.0, y)));
    let mut air = Air::new(config, &places, 1);
    let flow = |from: u32| Flow {
        from,
        to: air.radio.neighbours(Station(from)).next().map(|to| to.0),
        psdu_len: 80,
        rate: 4.0,
    };
    let flows: Vec<Flow> = (0..active as u32).map(flow).collect();
    let traffic = Traffic::new(&mut air, &flows, 1);
    (air, traffic)
}

fn transmission(c: &mut Criterion) {
    let mut group = c.benchmark_group("radio transmission");
    group.sample_size(20);
    let disk = RadioConfig::o_qpsk(RANGE);
    let mac = MacConfig { max_frame_retries: 7, ..disk.mac };
    let powers = LogDistance { shadowing_db: 0.0, ..LogDistance::default() };
    // Without the transitional region: a neighbour is one that receives nearly all, so that rounds
    // are of as many frames.
    let reliable = LogDistance { sensitivity_dbm: -95.0, preamble_sinr_db: 0.0, ..powers };
    let cases = [
        ("unit disk", disk, 50, 0),
        ("unit disk", RadioConfig { mac, ..disk }, 1000, 0),
        ("unit disk, the rest out of range", disk, 50, 950),
        ("log distance", disk.with_log_distance(reliable), 50, 0),
        ("log distance, bad links", disk.with_log_distance(powers), 50, 0),
    ];
    for (name, config, active, idle) in cases {
        let (mut air, mut traffic) = busy(config, active, idle);
        // One simulated second of 50 stations, less of more, so that each round is of some 400
        // frames.
        let step = Duration::from_millis(50_000 / active as u64);
        let mut stop = air.now + Duration::from_secs(10);
        traffic.run(&mut air, stop, |_| {});
        let before = air.transmissions();
        let mut rounds = 0;
        // Throughput is of the mean round; a round of its own differs.
        let mut round = |air: &mut Air| {
            stop += step;
            traffic.run(air, stop, |_| {});
        };
        while rounds < 200 {
            round(&mut air);
            rounds += 1;
        }
        let mean = (air.transmissions() - before) / rounds;
        let hearers = (0..active as u32).map(|s| air.radio.neighbours(Station(s)).count()).sum::<usize>();
        println!(
            "{name}, {}: {mean} frames and acknowledgements a round, {:.1} neighbours",
            active + idle,
            hearers as f64 / active as f64
        );
        group.throughput(Throughput::Elements(mean));
        group.bench_function(BenchmarkId::new(name, active + idle), |b| b.iter(|| round(&mut air)));
    }
    group.finish();
}

fn building(c: &mut Criterion) {
    let mut group = c.benchmark_group("radio building");
    group.sample_size(10);
    let places = scattered(1000, side(1000), 1);
    let disk = RadioConfig::o_qpsk(RANGE);
    for (name, config) in
        [("unit disk", disk), ("log distance", disk.with_log_distance(LogDistance::default()))]
    {
        group.bench_function(BenchmarkId::new(name, 1000), |b| b.iter(|| Air::new(config, &places, 1)));
    }
    group.finish();
}

criterion_group!(benches, transmission, building);
criterion_main!(benches);
