//! Cost of an IEEE 802.11 transmission among 100 stations, by the number of stations that hear it,
//! and among many that do not.

use anabranch_core::time::Duration;
use anabranch_sim::wifi::{Rate, Station, WifiConfig};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

#[path = "support/dcf.rs"]
mod dcf;

use dcf::{Dcf, Flow, Traffic, scattered};

/// Each of the first stations sends to a neighbour, 60 frames of 300 bytes per second in total.
fn busy(config: WifiConfig, places: &[(f64, f64)], active: u32) -> (Dcf, Traffic) {
    let mut dcf = Dcf::new(config, places, 1);
    let flow = |from: u32| Flow {
        from,
        to: dcf.wifi.neighbours(Station(from)).next().map(|to| to.0),
        mpdu_len: 300,
        rate: 60.0 / f64::from(active),
    };
    let flows: Vec<Flow> = (0..active).map(flow).collect();
    let traffic = Traffic::new(&mut dcf, &flows, 1);
    (dcf, traffic)
}

/// 100 stations in 450 m x 200 m with a range of 100 m and a carrier sense range of 220 m.
fn hundred() -> Vec<(f64, f64)> {
    scattered(100, 450.0, 200.0, 1)
}

fn transmission(c: &mut Criterion) {
    let mut group = c.benchmark_group("wifi transmission");
    group.sample_size(20);
    let basic = WifiConfig::dsss(100.0);
    let mut far = hundred();
    far.extend(scattered(900, 4500.0, 200.0, 2).iter().map(|&(x, y)| (x + 10_000.0, y)));
    let sparse = scattered(100, 4500.0, 2000.0, 1);
    let cases = [
        ("basic access", basic, hundred()),
        ("RTS and CTS", basic.with_rts_threshold(0), hundred()),
        ("11 Mbit/s", basic.with_data_rate(Rate::Mbps11), hundred()),
        ("ns-2", WifiConfig::ns2(100.0), hundred()),
        ("the rest out of range", basic, far),
        ("a hundredth of the density", basic, sparse),
    ];
    for (name, config, places) in cases {
        let (mut dcf, mut traffic) = busy(config, &places, 100);
        let step = Duration::from_secs(1);
        let mut stop = dcf.now + Duration::from_secs(10);
        traffic.run(&mut dcf, stop, |_| {});
        let mut round = |dcf: &mut Dcf| {
            stop += step;
            traffic.run(dcf, stop, |_| {});
        };
        // Throughput is that of the mean round; single rounds differ.
        let (frames, events) = (dcf.transmissions(), dcf.agenda.scheduled());
        (0..200).for_each(|_| round(&mut dcf));
        let frames = dcf.transmissions() - frames;
        let events = (dcf.agenda.scheduled() - events) as f64 / frames as f64;
        let hearers = (0..100).map(|s| dcf.wifi.hearer_count(Station(s))).sum::<usize>() as f64 / 100.0;
        println!("{name}: {} frames a second, {hearers:.1} hearers, {events:.1} events each", frames / 200);
        group.throughput(Throughput::Elements(frames / 200));
        group.bench_function(BenchmarkId::new(name, places.len()), |b| b.iter(|| round(&mut dcf)));
    }
    group.finish();
}

/// 100 s of 100 stations, from the beginning.
fn whole_runs(c: &mut Criterion) {
    let mut group = c.benchmark_group("wifi 100 s");
    group.sample_size(10);
    let places = hundred();
    let basic = WifiConfig::dsss(100.0);
    for (name, config) in [("basic access", basic), ("ns-2", WifiConfig::ns2(100.0))] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let (mut dcf, mut traffic) = busy(config, &places, 100);
                traffic.run(&mut dcf, dcf::after(Duration::from_secs(100)), |_| {});
                dcf.transmissions()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, transmission, whole_runs);
criterion_main!(benches);
