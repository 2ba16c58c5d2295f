//! TCP over 6LoWPAN over one to three hops, for `docs/reference/radio.md`:
//! `cargo run --release -p anabranch-sim --example hops -- full`. Without `full`, the same rows
//! from short runs.

use std::io::{self, Write};

use anabranch_core::time::Duration;
use anabranch_sim::network::FragmentForwarding;
use anabranch_sim::radio::MacConfig;

#[path = "../benches/support/hops.rs"]
mod hops;
#[path = "../benches/support/length.rs"]
mod length;

use hops::{Measured, Row, bound, mss, psdus, tuned};
use length::Length;

const WINDOWS: [u32; 7] = [1, 2, 3, 4, 5, 6, 8];

fn main() -> io::Result<()> {
    let out = &mut io::stdout().lock();
    // Runs for each entry, and their simulated seconds.
    let (runs, seconds) = Length::from_command_line()?.pick((1, 1), (3, 100));
    let measure = |row: &Row| row.measure(runs, seconds);
    bounds(out)?;
    windows(out, measure)?;
    delays(out, measure)?;
    backoffs(out, measure)
}

/// Bounds from a calculation.
fn bounds(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n| frames | MSS | PSDUs | bound, kbit/s | an ACK for two segments | for each |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    for frames in 1..=5 {
        let [alone, two, one] = [None, Some(2), Some(1)].map(|every| bound(frames, every) / 1e3);
        let psdus: Vec<String> = psdus(frames).iter().map(u16::to_string).collect();
        let (mss, psdus) = (mss(frames), psdus.join(", "));
        writeln!(out, "| {frames} | {mss} | {psdus} | {alone:.1} | {two:.1} | {one:.1} |")?;
    }
    Ok(())
}

/// The sweep of window and MSS.
fn windows(out: &mut impl Write, measure: impl Fn(&Row) -> Measured) -> io::Result<()> {
    let header: Vec<String> = WINDOWS.iter().map(u32::to_string).collect();
    writeln!(out, "\n| hops | frames | {} |", header.join(" | "))?;
    writeln!(out, "| --- | --- | {}", "--- | ".repeat(WINDOWS.len()).trim_end())?;
    for hops in 1..=3 {
        for frames in 1..=5 {
            write!(out, "| {hops} | {frames} |")?;
            for window in WINDOWS {
                let row = Row {
                    hops,
                    frames,
                    window,
                    mac: tuned(),
                    ack_every: 2,
                    forwarding: FragmentForwarding::Reassembly,
                };
                write!(out, " {:.1} |", measure(&row).goodput / 1e3)?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// The sweep of the delay before retries.
fn delays(out: &mut impl Write, measure: impl Fn(&Row) -> Measured) -> io::Result<()> {
    let delays = [0, 5, 10, 20, 40, 60, 80];
    let header = delays.map(|ms| format!("{ms} ms")).join(" | ");
    writeln!(out, "\n| MAC | hops | frames | window | {header} |")?;
    writeln!(out, "| --- | --- | --- | --- | {}", "--- | ".repeat(delays.len()).trim_end())?;
    for (name, mac) in [("defaults", MacConfig::default()), ("tuned", tuned())] {
        for (frames, window) in [(1, 4), (5, 4), (5, 8)] {
            for hops in 1..=3 {
                write!(out, "| {name} | {hops} | {frames} | {window} |")?;
                for ms in delays {
                    let mac = MacConfig { retry_delay: Duration::from_millis(ms), ..mac };
                    let row = Row {
                        hops,
                        frames,
                        window,
                        mac,
                        ack_every: 2,
                        forwarding: FragmentForwarding::Reassembly,
                    };
                    write!(out, " {:.1} |", measure(&row).goodput / 1e3)?;
                }
                writeln!(out)?;
            }
        }
    }
    Ok(())
}

/// Effect of the backoffs: five frames, four segments.
fn backoffs(out: &mut impl Write, measure: impl Fn(&Row) -> Measured) -> io::Result<()> {
    writeln!(
        out,
        "\n| macMaxBE | macMaxCsmaBackoffs | hops | kbit/s | frames lost | packets given up a minute | time-outs a minute |"
    )?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- | --- |")?;
    for (max_be, max_csma_backoffs) in [(5, 4), (5, 5), (6, 5), (7, 5), (8, 5)] {
        for hops in 1..=3 {
            let mac = MacConfig { max_be, max_csma_backoffs, ..tuned() };
            let m = measure(&Row {
                hops,
                frames: 5,
                window: 4,
                mac,
                ack_every: 2,
                forwarding: FragmentForwarding::Reassembly,
            });
            writeln!(
                out,
                "| {max_be} | {max_csma_backoffs} | {hops} | {:.1} | {:.3} | {:.1} | {:.1} |",
                m.goodput / 1e3,
                m.frames_lost,
                m.packets_lost,
                m.timeouts
            )?;
        }
    }
    Ok(())
}
