//! Cost of a transmission: with 50 stations, with 1,000 at the same density, and with 50 among 950
//! out of range; and of building the lists of neighbours.

use anabranch_core::time::Duration;
use anabranch_sim::radio::{LogDistance, MacConfig, RadioConfig, Station};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

#[path = "support/air.rs"]
mod air;

use air::{Air, Flow, Traffic, scattered};

/// Range in metres. With one station per 1,000 square metres, a station has about ten neighbours.
const RANGE: f64 = 60.0;

/// Side in metres of a square for this number of stations.
fn side(stations: usize) -> f64 {
    (stations as f64 * 1000.0).sqrt()
}

/// The first `active` stations, which are together in their own square, each send to a neighbour.
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
    // Without the transitional region: a neighbour receives nearly all frames, so that rounds have
    // equal numbers of frames.
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
        // One simulated second for 50 stations, less for more, so that each round has about 400
        // frames.
        let step = Duration::from_millis(50_000 / active as u64);
        let mut stop = air.now + Duration::from_secs(10);
        traffic.run(&mut air, stop, |_| {});
        let before = air.transmissions();
        let mut rounds = 0;
        // Throughput is that of the mean round; single rounds differ.
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
