//! `anabranch plan csma`: the channel access model of section V of the multipath TCP paper.

use std::str::FromStr;

use anabranch_deploy::error::Error;
use anabranch_deploy::output;
use anabranch_lab::plan::csma::{self, Answer, Question, Refusal};
use anabranch_lab::plan::hops::Phy;
use anabranch_model::mptcp::csma::Busy;

use super::radio::{Backoff, phy, refused};

/// Options of `plan csma`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    backoff: Backoff,
    /// Probability that the channel is busy, 0 to 1
    #[arg(long, value_name = "P", default_value_t = 0.5, allow_negative_numbers = true)]
    busy: f64,
    /// Probability that the channel is busy in period 1, 2, ...
    ///
    /// `0.9x20,0.1` means 0.9 for 20 periods, then 0.1.
    #[arg(long, value_name = "P[xN],...", conflicts_with = "busy", allow_hyphen_values = true)]
    busy_by_period: Option<ByPeriod>,
    /// Radio, which sets the duration of a back-off period
    #[arg(long, value_name = "PHY", value_parser = phy(), default_value = "fsk100")]
    phy: Phy,
    /// Use the paper's equations as printed, with their errata
    #[arg(long)]
    printed: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A list of probabilities: `P[xN],...`.
#[derive(Debug, Clone)]
struct ByPeriod(Vec<f64>);

/// Limit on the number of periods; far above the length of the longest attempt.
const PERIODS: usize = 100_000;

impl FromStr for ByPeriod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut periods = Vec::new();
        for part in text.split(',') {
            let (busy, times) = part.split_once('x').unwrap_or((part, "1"));
            let busy: f64 =
                busy.trim().parse().map_err(|_| format!("`{part}` does not begin with a number"))?;
            let times: usize = times
                .trim()
                .parse()
                .map_err(|_| format!("`{part}`: `{times}` is not a number of periods"))?;
            if periods.len().saturating_add(times) > PERIODS {
                return Err(format!("more than {PERIODS} periods"));
            }
            periods.extend(std::iter::repeat_n(busy, times));
        }
        if periods.is_empty() { Err("no period".to_owned()) } else { Ok(Self(periods)) }
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let busy = match &arguments.busy_by_period {
        Some(periods) => Busy::ByPeriod(periods.0.clone()),
        None => Busy::Constant(arguments.busy),
    };
    let csma = arguments.backoff.csma();
    let question = Question { csma, busy, phy: arguments.phy, printed: arguments.printed };
    let answer = csma::answer(question).map_err(|refusal| match refusal {
        Refusal::Model(error) => refused(&error),
        other => Error::input(format!("--phy cellular: {other}")).with_hint("oqpsk250 or fsk100"),
    })?;
    if arguments.json { output::json(&answer.object()) } else { output::text(&table(&answer)) }
}

fn table(Answer { question, access, period }: &Answer) -> String {
    let mut text = format!("{:>8}{:>8}{:>10}{:>10}\n", "back-off", "window", "reached", "busy");
    for (i, stage) in access.stages.iter().enumerate() {
        text += &format!("{i:8}{:8}{:10.5}{:10.5}\n", stage.window, stage.reached, stage.busy);
    }
    let line = |what: &str, periods: Option<f64>| {
        let value = periods.map_or("never".to_owned(), |n| {
            format!("{n:.2} periods, {:.2} ms with {}", n * period * 1e3, question.phy.name())
        });
        format!("{what:18}{value}\n")
    };
    text += &format!("\n{:18}{:.5}\n{:18}{:.5}\n", "channel gained", access.won, "never clear", access.lost);
    text += &line("an attempt takes", Some(access.periods));
    text += &line("if it succeeds", access.periods_if_won);
    text + &line("if not", access.periods_if_lost)
}
