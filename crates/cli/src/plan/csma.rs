//! `anabranch plan csma`: section V of the paper on multipath TCP.

use std::str::FromStr;

use anabranch_model::mptcp::Reading;
use anabranch_model::mptcp::csma::{Access, Busy, access};
use serde_json::{Value, json};

use super::radio::{Backoff, Phy, equations, refused};
use crate::error::Error;
use crate::output;

/// Options of `plan csma`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    backoff: Backoff,
    /// The chance that the channel is found busy
    #[arg(long, value_name = "P", default_value_t = 0.5, allow_negative_numbers = true)]
    busy: f64,
    /// The same for period 1, 2, ...: `0.9x20,0.1` is twenty times 0.9, then 0.1 for ever
    #[arg(long, value_name = "P[xN],...", conflicts_with = "busy", allow_hyphen_values = true)]
    busy_by_period: Option<ByPeriod>,
    /// The radio, whose periods the times are in
    #[arg(long, value_enum, default_value_t = Phy::Fsk100)]
    phy: Phy,
    /// The paper's equations to the letter: errata kept
    #[arg(long)]
    printed: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `P[xN],...`
#[derive(Debug, Clone)]
struct ByPeriod(Vec<f64>);

/// Many times what the longest attempt takes.
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
    let reading = if arguments.printed { Reading::printed() } else { Reading::default() };
    let busy = match &arguments.busy_by_period {
        Some(periods) => Busy::ByPeriod(periods.0.clone()),
        None => Busy::Constant(arguments.busy),
    };
    let Some(radio) = arguments.phy.radio(busy.clone()) else {
        return Err(Error::input("--phy cellular: a cellular network has no channel access of this kind")
            .with_hint("oqpsk250 or fsk100"));
    };
    let access = access(&arguments.backoff.csma(), &busy, reading).map_err(|error| refused(&error))?;
    if arguments.json {
        output::json(&object(arguments, &access, radio.backoff_period))
    } else {
        output::text(&table(arguments, &access, radio.backoff_period))
    }
}

fn object(arguments: &Arguments, access: &Access, period: f64) -> Value {
    let csma = arguments.backoff.csma();
    let stages = access
        .stages
        .iter()
        .map(|stage| json!({ "window": stage.window, "p_reached": stage.reached, "p_busy": stage.busy }));
    json!({
        "model": "csma",
        "equations": equations(arguments.printed),
        "params": {
            "min_be": csma.min_be,
            "max_be": csma.max_be,
            "backoffs": csma.max_backoffs,
            "busy": arguments.busy_by_period.as_ref().map_or(json!(arguments.busy), |each| json!(each.0)),
            "phy": arguments.phy.name(),
            "backoff_period_s": period,
        },
        "n_bp": access.periods,
        "n_bp_if_won": access.periods_if_won,
        "n_bp_if_lost": access.periods_if_lost,
        "p_won": access.won,
        "p_lost": access.lost,
        "delay_s": access.periods * period,
        "delay_if_won_s": access.periods_if_won.map(|n| n * period),
        "stages": stages.collect::<Vec<_>>(),
        "p_won_at": access.won_at,
    })
}

fn table(arguments: &Arguments, access: &Access, period: f64) -> String {
    let mut text = format!("{:>8}{:>8}{:>10}{:>10}\n", "back-off", "window", "reached", "busy");
    for (i, stage) in access.stages.iter().enumerate() {
        text += &format!("{i:8}{:8}{:10.5}{:10.5}\n", stage.window, stage.reached, stage.busy);
    }
    let line = |what: &str, periods: Option<f64>| {
        let value = periods.map_or("never".to_owned(), |n| {
            format!("{n:.2} periods, {:.2} ms with {}", n * period * 1e3, arguments.phy.name())
        });
        format!("{what:18}{value}\n")
    };
    text += &format!("\n{:18}{:.5}\n{:18}{:.5}\n", "channel gained", access.won, "never clear", access.lost);
    text += &line("an attempt takes", Some(access.periods));
    text += &line("if it is gained", access.periods_if_won);
    text + &line("if not", access.periods_if_lost)
}
