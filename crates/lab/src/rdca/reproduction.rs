//! Section 4 in the report.

use super::Rdca;
use super::claims;
use super::figures;
use super::sweeps::{Grid, SWEEP_RATE, Sweeps, TRIED};
use super::tables::{self, TABLES};
use crate::reproduction::{self, Extent, Figure, Options, Paper, ReproduceError, Reproduction};
use crate::work::Work;

/// The paper.
pub const PAPER: Paper = Paper {
    id: "rdca",
    title: "Supporting High Data Rate Sensing Applications in Internet of Things (IoT)",
    citation: "R. Khan, A. N. Mian, 2018.",
    about: "Section 4: nodes near an event send packets at a constant rate to one sink over IEEE 802.11 and AODV, by the \
            proposed sink-driven rate control and by three TCPs.",
    page: "docs/evidence/rdca-experiments.md",
    runs: 10,
    quick_runs: 2,
    cost: 240_000,
    open: super::open::OPEN,
    reference: super::open::REFERENCE,
    is_baseline: super::open::is_baseline,
    experiment: &Rdca,
    targets: super::TARGETS,
    errata: include_str!("errata.toml"),
    planned,
    reproduce,
};

fn grid(options: &Options) -> Grid {
    match options.extent {
        Extent::Full => Grid::Full,
        Extent::Quick => Grid::Quick,
    }
}

/// Number of runs that [`reproduce`] makes.
pub fn planned(options: &Options) -> usize {
    Sweeps::planned(grid(options), options.runs_of(&PAPER))
}

/// Makes both sweeps and judges every claim.
///
/// # Errors
///
/// A run failed, or a figure could not be drawn.
pub fn reproduce(options: Options, work: &Work<'_>) -> Result<Reproduction, ReproduceError> {
    written(options, &Sweeps::run(grid(&options), work)?)
}

/// Arranges the measurements for the report.
pub(crate) fn written(options: Options, sweeps: &Sweeps) -> Result<Reproduction, ReproduceError> {
    let joined = |numbers: Vec<String>| numbers.join(",");
    let senders = joined(sweeps.by_senders().iter().map(|load| load.senders.to_string()).collect());
    let rates = joined(sweeps.by_rate().iter().map(|load| format!("{}kB/s", load.rate / 1000)).collect());
    let commands = [("senders", senders), ("rate", rates)].map(|(name, values)| {
        let mut assignments =
            vec!["protocol=rdca,rdca-paper,newreno,westwood,elfn".to_owned(), format!("{name}={values}")];
        if options.extent == Extent::Quick {
            assignments.push("duration=40s".to_owned());
        }
        options.run_command(&PAPER, options.runs_of(&PAPER), &assignments)
    });
    let figures = figures::draw(sweeps).into_iter().map(|figure| {
        let command = if figure.id.starts_with('4') { &commands[0] } else { &commands[1] };
        Ok(Figure {
            name: format!("figure-{}", figure.id),
            caption: figure.chart.title.clone(),
            svg: figure.chart.svg()?,
            csv: figure.chart.csv(),
            command: command.clone(),
        })
    });
    let figures = figures.collect::<Result<_, ReproduceError>>()?;
    let mut pages: Vec<_> = TABLES.iter().map(|table| table.page(sweeps, commands[0].clone())).collect();
    pages.extend(tables::pages(sweeps, [&commands[0], &commands[1]]));
    Ok(Reproduction {
        paper: &PAPER,
        options,
        notes: notes(),
        tables: pages,
        figures,
        verdicts: claims::verdicts(sweeps),
        parameters: reproduction::parameters(&Rdca, &PAPER.targets(), ours),
        errata: PAPER.errata(),
        map: None,
    })
}

fn notes() -> Vec<String> {
    vec![
        "The proposed protocol is `protocol=rdca-paper`, ours is `protocol=rdca`. Run n has placement n modulo 5, so that runs of one \
         placement are alike, and intervals narrower than those of independent runs."
            .to_owned(),
        "What the paper leaves open (H20, H20b) is what comes nearest to its numbers of the TCPs, of 200 settings: `lab robustness rdca`."
            .to_owned(),
        "Table 2 is in kB/s (H1). The printed extremes of Tables 2 and 3 are the mean and whole multiples of the standard deviation \
         (H2): they contradict themselves, and are read by those two."
            .to_owned(),
        format!(
            "The capacity is the throughput of datagrams without rate control at the best of up to {} rising constant rates, one run of \
             each placement. The sweep by senders is at {} kB/s of each (H20). The paper prints its figures without numbers.",
            TRIED.len(),
            SWEEP_RATE / 1000
        ),
    ]
}

/// The parameter's value in our experiment.
fn ours(name: &str) -> &'static str {
    match name {
        "nodes" => "100: nodes",
        "packet" => "300B: packet",
        "queue" => "50: queue",
        "energy_init" => "1000 J, which no node uses up",
        "tx_power" | "rx_power" => "0.2818 W",
        "range" => "100m: range",
        "sim_time" => "100s: duration",
        "repetitions" => "10 unless told otherwise",
        "topologies" => "5: topologies",
        "runs_per_topology" => "2 unless told otherwise",
        "area" => "450mx200m: area",
        "rates" => "the same",
        "senders" => "the same",
        _ => "see docs/reference/rdca-protocol.md",
    }
}
