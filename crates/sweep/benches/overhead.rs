//! Overhead of a sweep of 10,000 short runs: processor time of the whole process, from the spec to
//! the written tables, compared with that of the threads during the runs.
//!
//! Prints a table. Other programs on the machine affect wall-clock time, but hardly processor time.

use std::path::Path;
use std::time::Duration;

use anabranch_scenario::Source;
use anabranch_sweep::{Options, Spec, Store, Sweep, Table, Watch, execute};
use rustix::time::{ClockId, clock_gettime};

/// An update of 20 kB through three gateways.
const GATEWAYS: &str = include_str!("../../../scenarios/three-gateways.toml");
/// A transfer of 60 kB over one lossy cable, which is about as short as a run can be.
const CABLE: &str = r#"
stop = "5 min"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "radio1", from = "a", to = "b", rate = "1 Mbit/s", delay = "5 ms", loss = 0.05 }]
transfer = [{ name = "update", kind = "tcp", from = "a", to = "b", bytes = "60 kB" }]
"#;

fn main() {
    println!("10,000 runs                 each     runs' own     whole   beside   busy  points  tables");
    for (name, network) in [("three gateways", GATEWAYS), ("cable", CABLE)] {
        for (points, runs) in [(100, 100), (1_000, 10), (10_000, 1)] {
            measure(name, network, points, runs);
        }
    }
}

fn measure(name: &str, network: &str, points: u32, runs: u32) {
    let text = format!(
        "runs = {runs}\nset = {{ \"transfer.update.bytes\" = \"20 kB\" }}\n[[sample]]\ncount = {points}\n[sample.axes]\n\
         \"link.radio1.loss\" = {{ uniform = [0.0, 0.05] }}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let began = processor();
    let spec = Spec::parse_for("spec.toml", &text, Source::new("network.toml", network), Path::new(""));
    let sweep = Sweep::new(spec.expect("a good spec")).expect("a good sweep");
    let made = sweep.all_points().expect("good points");
    let making = processor().saturating_sub(began).as_secs_f64();
    let mut store = Store::open(folder.path()).expect("a store");
    let outcome = execute(&sweep, &made, &mut store, Options::default(), &Watch::default()).expect("it runs");
    let ran = processor();
    let table = Table::new(&sweep, &made, &store).expect("a table");
    let (mut csv, mut parquet) = (Vec::new(), Vec::new());
    table.write_csv(&mut csv).expect("memory takes it");
    table.write_parquet(&mut parquet).expect("memory takes it");
    let tables = processor().saturating_sub(ran).as_secs_f64();
    let whole = processor().saturating_sub(began).as_secs_f64();
    let own = outcome.runs.as_secs_f64();
    println!(
        "{name:15} {points:6} x {runs:<3} {:6.1} us {own:9.3} s {whole:8.3} s {:6.1} % {:5.1} % {making:6.3}  {tables:6.3}   while they run: {:.1} % beside",
        own * 1e6 / outcome.made as f64,
        (whole / own - 1.0) * 100.0,
        outcome.busy() * 100.0,
        outcome.overhead() * 100.0,
    );
}

fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
