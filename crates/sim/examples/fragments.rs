//! Reassembly at each hop compared with fragment forwarding, for `docs/reference/radio.md`:
//! `cargo run --release -p anabranch-sim --example fragments -- full`. Without `full`, the same
//! rows from short runs.

use std::io::{self, Write};

use anabranch_core::time::Duration;
use anabranch_sim::network::{FragmentForwarding, VirtualReassembly};

#[path = "../benches/support/hops.rs"]
mod hops;
#[path = "../benches/support/length.rs"]
mod length;

use hops::{Row, tuned};
use length::Length;

const GAPS: [u64; 5] = [0, 6, 12, 18, 24];

fn main() -> io::Result<()> {
    let out = &mut io::stdout().lock();
    // Runs for each latency, and runs and simulated seconds for each throughput.
    let (single, runs, seconds) = Length::from_command_line()?.pick((3, 1, 1), (200, 3, 100));
    table(out, "one segment, ms", |row| row.latency(single) * 1e3, 1)?;
    table(out, "window of 1, kbit/s", |row| row.measure(runs, seconds).goodput / 1e3, 1)?;
    table(out, "window of 4, kbit/s", |row| row.measure(runs, seconds).goodput / 1e3, 4)
}

fn table(out: &mut impl Write, what: &str, measure: impl Fn(&Row) -> f64, window: u32) -> io::Result<()> {
    let gaps: Vec<String> = GAPS.iter().map(|gap| format!("gap of {gap} ms")).collect();
    writeln!(out, "\n| {what} | hops | reassembly | {} |", gaps.join(" | "))?;
    writeln!(out, "| --- | --- | --- | {}", "--- | ".repeat(GAPS.len()).trim_end())?;
    for frames in [3, 5] {
        for hops in 1..=5 {
            let with =
                |forwarding| measure(&Row { hops, frames, window, mac: tuned(), ack_every: 2, forwarding });
            write!(out, "| {frames} frames | {hops} | {:.1} |", with(FragmentForwarding::Reassembly))?;
            for gap in GAPS {
                let how =
                    VirtualReassembly { gap: Duration::from_millis(gap), ..VirtualReassembly::default() };
                write!(out, " {:.1} |", with(FragmentForwarding::Fragments(how)))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
