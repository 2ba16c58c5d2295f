//! Results as a Markdown table, with a verdict for each cell.

use std::fmt::Write;
use std::process::Command;

use anabranch_campaign::bottleneck::{Cell, Start};
use anabranch_core::tcp::CongestionAlgorithm;
use anabranch_stats::Summary;

use super::kernel::Lag;
use super::{Measured, Plan, Reference};

/// A quantity on both sides.
type Pair = [Summary; 2];

/// A cell: the reference, then ours.
pub(super) struct Row {
    cell: Cell,
    goodput: Pair,
    again: Pair,
    timeouts: Pair,
    srtt: Pair,
    jain: Pair,
    late: bool,
}

impl Row {
    /// Creates a row; `None` if either has no run.
    pub(super) fn new(cell: Cell, theirs: &[Measured], ours: &[Start]) -> Option<Self> {
        let starts: Vec<Start> = theirs.iter().map(|run| run.start).collect();
        let pair = |of: fn(&Start) -> f64| {
            let summary = |starts: &[Start]| Summary::of(&starts.iter().map(of).collect::<Vec<_>>()).ok();
            Some([summary(&starts)?, summary(ours)?])
        };
        Some(Self {
            cell,
            goodput: pair(|start| start.goodput / 1e6)?,
            again: pair(|start| start.retransmissions)?,
            timeouts: pair(|start| start.timeouts)?,
            srtt: pair(|start| start.srtt * 1e3)?,
            jain: pair(|start| start.jain)?,
            late: theirs.iter().any(Measured::is_late),
        })
    }

    /// Our goodput divided by the reference's.
    fn ratio(&self) -> f64 {
        let [theirs, ours] = self.goodput;
        ours.mean / theirs.mean
    }

    /// Whether goodputs agree within 10 %.
    fn is_same(&self) -> bool {
        (self.ratio() - 1.0).abs() <= 0.10
    }

    /// Whether goodputs agree within 25 %.
    pub(super) fn is_near(&self) -> bool {
        (self.ratio() - 1.0).abs() <= 0.25
    }

    /// Whether retransmissions agree within a factor of 2.
    fn is_alike(&self) -> bool {
        let [theirs, ours] = self.again.map(|again| again.mean);
        theirs.max(ours) <= 2.0 * theirs.min(ours)
    }

    pub(super) fn is_late(&self) -> bool {
        self.late
    }

    fn verdict(&self) -> String {
        let goodput = match (self.is_same(), self.is_near()) {
            (true, _) => "10 %",
            (false, true) => "25 %",
            (false, false) => "**beyond 25 %**",
        };
        let again = if self.is_alike() { "" } else { ", **retransmissions**" };
        let late = if self.is_late() { ", late" } else { "" };
        format!("{goodput}{again}{late}")
    }

    fn line(&self) -> String {
        let Cell { controller, delay, queue, flows, loss, .. } = self.cell;
        format!(
            "| {} | {} | {} ms | {queue} ({}) | {flows} | {} | {} | {:.2} | {} | {} | {} | {} | {} | {} | {:.2} | {:.2} | {} |",
            name(controller),
            percent(loss),
            delay.as_millis(),
            self.cell.packets(),
            value(&self.goodput[0], 2),
            value(&self.goodput[1], 2),
            self.ratio(),
            value(&self.again[0], 0),
            value(&self.again[1], 0),
            value(&self.timeouts[0], 1),
            value(&self.timeouts[1], 1),
            value(&self.srtt[0], 0),
            value(&self.srtt[1], 0),
            self.jain[0].mean,
            self.jain[1].mean,
            self.verdict(),
        )
    }
}

fn name(controller: CongestionAlgorithm) -> &'static str {
    if controller == CongestionAlgorithm::Cubic { "CUBIC" } else { "Reno" }
}

fn percent(loss: f64) -> String {
    format!("{} %", loss * 100.0)
}

pub(super) fn value(summary: &Summary, digits: usize) -> String {
    match summary.ci95 {
        Some(half) => format!("{:.digits$} ± {half:.digits$}", summary.mean),
        None => format!("{:.digits$}", summary.mean),
    }
}

/// Date, commit, reference and command.
pub(super) fn origin(name: &str, version: &str) -> String {
    format!(
        "{}, commit {}, {name} {version}: `{}`.",
        first_line("date", &["-u", "+%F"]),
        first_line("git", &["rev-parse", "--short", "HEAD"]),
        std::env::var("ANABRANCH_COMPARE_COMMAND").unwrap_or_else(|_| "cargo test".into()),
    )
}

/// The whole report.
pub(super) fn page<R: Reference>(rows: &[Row], plan: &Plan, reference: &R, theirs: &[Measured]) -> String {
    let most = |of: fn(&Measured) -> f64| theirs.iter().map(of).fold(0.0, f64::max);
    let lag = |of: fn(&Lag) -> f64| theirs.iter().filter_map(|run| run.lag.as_ref()).map(of).reduce(f64::max);
    let mut text = format!(
        "{} {} cells of {} s, {} run{} of each, {} at a time.\nOf all of {}'s runs: ",
        origin(R::NAME, &reference.version()),
        rows.len(),
        plan.seconds,
        plan.runs,
        if plan.runs == 1 { "" } else { "s" },
        plan.at_once.unwrap_or(R::AT_ONCE),
        R::NAME,
    );
    let few = lag(|lag| -lag.processors).map(|most| -most);
    if let (Some(p99), Some(max), Some(few)) = (lag(|lag| lag.p99), lag(|lag| lag.max), few) {
        let _ = write!(
            text,
            "largest 99th percentile of the emulator's lag {:.3} ms, largest lag {:.1} ms, at least {few:.2} processors left by \
             other programs, ",
            p99 * 1e3,
            max * 1e3
        );
    }
    let _ = write!(
        text,
        "packets in the fullest queue at most {:.0} bytes on average, payload of a segment at most {} bytes, a buffer was the \
         limit for at most {:.1} % of the time.\n\n",
        most(|run| run.packet),
        theirs.iter().map(|run| run.mss).max().unwrap_or(0),
        most(|run| run.limited) * 100.0,
    );
    summary(rows, &mut text);
    let _ = writeln!(
        text,
        "\n| controller | loss | delay | queue, BDP (packets) | flows | goodput, Mbit/s: {0} | ours | ratio | segments sent \
         again: {0} | ours | RTOs: {0} | ours | SRTT, ms: {0} | ours | Jain: {0} | ours | within |",
        R::NAME
    );
    let _ = writeln!(text, "|{}", " --- |".repeat(17));
    for row in rows {
        let _ = writeln!(text, "{}", row.line());
    }
    text
}

/// Number of cells of each controller and loss that meet each limit.
fn summary(rows: &[Row], text: &mut String) {
    text.push_str(
        "| controller | loss | cells | goodput within 10 % | within 25 % | beyond | retransmissions alike | \
         median ratio of goodput | smallest | largest |\n",
    );
    let _ = writeln!(text, "|{}", " --- |".repeat(10));
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let alike = |row: &&Row| {
            (row.cell.controller, row.cell.loss.to_bits())
                == (first.cell.controller, first.cell.loss.to_bits())
        };
        let (group, after) = rest.split_at(rest.iter().take_while(alike).count());
        let count = |of: fn(&Row) -> bool| group.iter().filter(|row| of(row)).count();
        let mut ratios: Vec<f64> = group.iter().map(Row::ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let (same, near) = (count(Row::is_same), count(Row::is_near));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {same} | {} | {} | {} | {:.3} | {:.3} | {:.3} |",
            name(first.cell.controller),
            percent(first.cell.loss),
            group.len(),
            near - same,
            group.len() - near,
            count(Row::is_alike),
            ratios[ratios.len() / 2],
            ratios[0],
            ratios[ratios.len() - 1],
        );
        rest = after;
    }
}

/// First line of a program's output, or a question mark.
pub(super) fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|| "?".into())
}
