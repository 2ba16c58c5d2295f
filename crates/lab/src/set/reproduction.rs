//! Section 6 in the report.

use super::claims;
use super::figures::{self, Grid, Panel};
use super::{Set, TEMPLATE, canonical};
use crate::experiment::{ParameterError, RunError};
use crate::plot::csv;
use crate::reproduction::{self, Extent, Figure, Options, Paper, ReproduceError, Reproduction, Table};
use crate::verdict::number;
use crate::work::Work;

/// The paper.
pub const PAPER: Paper = Paper {
    id: "set",
    title: "SET: Session Layer-Assisted Efficient TCP Management Architecture for 6LoWPAN with Multiple Gateways",
    citation: "S. Zafar, A. H. Akbar, S. Jabbar, N. M. Sheikh, 2010.",
    about: "Section 6: a file to one node through one, two and three gateways, by SET and by split TCP, over what the node's \
            buffer, the wireless delay and rate, other transfers and the number of hops are.",
    page: "docs/evidence/set-experiments.md",
    runs: 10,
    quick_runs: 2,
    cost: 1_000,
    open: super::open::OPEN,
    reference: &[],
    is_baseline: |_| false,
    experiment: &Set,
    targets: super::TARGETS,
    errata: include_str!("errata.toml"),
    planned,
    reproduce,
};

fn panels(options: &Options) -> Vec<Panel> {
    figures::panels(match options.extent {
        Extent::Full => Grid::Full,
        Extent::Quick => Grid::Quick,
    })
}

/// Number of runs that [`reproduce`] makes.
pub fn planned(options: &Options) -> usize {
    (panels(options).iter().flat_map(Panel::points).count() + claims::RUNS) * options.runs_of(&PAPER)
}

/// Draws all panels and judges every claim.
///
/// # Errors
///
/// A run failed, or a figure could not be drawn.
pub fn reproduce(options: Options, work: &Work<'_>) -> Result<Reproduction, ReproduceError> {
    let (mut drawn, mut made, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    for panel in panels(&options) {
        let settings = texts(&panel).map_err(RunError::from)?;
        let assignments = reproduction::assignments(&Set, &settings);
        let command = options.run_command(&PAPER, work.runs, &assignments);
        let panel = panel.run(work)?;
        tables.push(table(&panel, command.clone()));
        made.push(Figure {
            name: format!("figure-{}", panel.id),
            caption: panel.chart.title.clone(),
            svg: panel.chart.svg()?,
            csv: panel.chart.csv(),
            command,
        });
        drawn.push(panel);
    }
    Ok(Reproduction {
        paper: &PAPER,
        options,
        notes: NOTES.map(str::to_owned).to_vec(),
        tables,
        figures: made,
        verdicts: claims::verdicts(&drawn, work)?,
        parameters: reproduction::parameters(&Set, &PAPER.targets(), ours),
        errata: PAPER.errata(),
        map: None,
    })
}

/// Settings of all points of a panel, in canonical form.
fn texts(panel: &Panel) -> Result<Vec<Vec<(&'static str, String)>>, ParameterError> {
    panel.points().map(|settings| Ok(TEMPLATE.texts(&canonical(settings)?))).collect()
}

/// Numbers of a panel, with its curves as columns.
fn table(panel: &figures::Drawn, command: String) -> Table {
    let series = &panel.chart.series;
    let head: Vec<String> =
        [panel.chart.x.caption()].into_iter().chain(series.iter().map(|s| s.name.clone() + ", s")).collect();
    let places: Vec<f64> =
        series.iter().flat_map(|s| s.points.iter().map(|p| p.x)).fold(Vec::new(), |mut all, x| {
            if !all.contains(&x) {
                all.push(x);
            }
            all
        });
    let rows: Vec<Vec<String>> = places
        .iter()
        .map(|x| {
            let of = |s: &crate::plot::Series| {
                let point = s.points.iter().find(|p| p.x == *x);
                point.map_or("none".to_owned(), |p| format!("{:.3}", p.y))
            };
            [number(*x)].into_iter().chain(series.iter().map(of)).collect()
        })
        .collect();
    let csv = [&head].into_iter().chain(&rows).map(|row| csv::record(row)).collect();
    Table {
        name: format!("numbers-{}", panel.id),
        title: format!("Latency, {}", panel.chart.title),
        note: String::new(),
        head,
        rows,
        csv,
        command,
    }
}

const NOTES: [&str; 3] = [
    "The paper's figures carry no numbers: its claims in words are judged, and the four coefficients of its model. Nothing is \
     random here, since the paper says of no loss: all runs are alike, one is simulated for all, and every confidence interval is \
     zero.",
    "The paper leaves open (S20): loss (ours: none), windows (first window of one segment, no more than 64, an acknowledgement for \
     every second segment), segments (1296 octets wired, 81 wireless, IPv6 headers counted), what latency includes (from the \
     request on, so all of the set-up), the node's buffers of Figure 10 (0.25 to 128 kB beside 100 packets of 141 octets at a \
     gateway), the number of other transfers (up to 8), of hops (up to 8), and what \"queuing delay\" is (the link's delay).",
    "SET as printed opens sessions one by one and shares the file by windows (`open=one-by-one`, `striping=window`): these curves are judged. \
     Ours opens them staggered and shares by prediction (`open=staggered`, `striping=predictive`).",
];

/// The parameter's value in our experiment.
fn ours(name: &str) -> &'static str {
    match name {
        "t2.blink" | "t2.oscilloscope" | "t2.multihop" => "the same: file",
        "t2.sensor" | "t2.count" => "not run: no figure shows it",
        "mtu_wireless" => "141 octets with headers, 81 of payload (S14)",
        "mtu_wired" => "1296 octets of payload (S14)",
        "fragments_per_wired_segment" => "16: 1296 / 81",
        "wired_bw" => "100Mbit/s: wired_rate",
        "wireless_bw_default" => "256kbit/s: wireless_rate",
        "queue_delay_wired" => "10ms one way: wired_delay",
        "queue_delay_wireless" => "25ms one way: wireless_delay",
        "gw_buffer" => "100packets: gateway_buffer",
        "gw_buffer_6_2" => "640 kB in Figures 11, 12 and 14",
        "sn_buffer_6_2" => "64kB: node_buffer",
        "wireless_bw_fig12" => "1.2 Mbit/s in Figure 12",
        "file_sizes" | "wireless_bw" | "gateways" => "the same",
        _ => "see docs/reference/set-protocol.md",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::grid;

    /// The command shown with a figure runs all points of the figure.
    #[test]
    fn a_figure_s_command_runs_its_points() {
        let options = Options { extent: Extent::Full, runs: None, seed: 1 };
        for panel in panels(&options) {
            let settings = texts(&panel).expect("good settings");
            let points =
                grid(&Set, &reproduction::assignments(&Set, &settings)).expect("what `lab run` takes");
            let run: Vec<_> = points.iter().map(|point| point.parameters()).collect();
            assert!(settings.iter().all(|wanted| run.contains(wanted)), "{}", panel.id);
        }
    }
}
