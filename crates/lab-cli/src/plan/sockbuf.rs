//! `anabranch plan sockbuf`: the control loop of section 3.2 of the send-buffer paper.

use anabranch_deploy::error::Error;
use anabranch_deploy::output;
use anabranch_lab::plan::sockbuf::{self, Answer, BAND, Question};
use anabranch_model::sockbuf::{Begin, Complex, Gains, ModelError};
use anabranch_scenario::units::{Size, Span};
use clap::ValueEnum;

/// Options of `plan sockbuf`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Set of controller gains
    #[arg(long, value_enum, default_value_t = Constants::Damped)]
    gains: Constants,
    /// Gain of the error [default: from --gains]
    #[arg(long, value_name = "GAIN", allow_negative_numbers = true)]
    kp: Option<f64>,
    /// Gain of the sum of all errors [default: from --gains]
    #[arg(long, value_name = "GAIN", allow_negative_numbers = true)]
    ki: Option<f64>,
    /// Gain of the difference to the previous error [default: from --gains]
    #[arg(long, value_name = "GAIN", allow_negative_numbers = true)]
    kd: Option<f64>,
    /// Factor for all gains
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, allow_negative_numbers = true)]
    times: f64,
    /// Buffer size before the step
    #[arg(long, value_name = "SIZE", default_value = "175 kB")]
    from: Size,
    /// Target size after the step: two bandwidth-delay products
    #[arg(long, value_name = "SIZE", default_value = "420 kB")]
    to: Size,
    /// Smallest buffer: one segment
    #[arg(long, value_name = "SIZE", default_value = "1460 B")]
    least: Size,
    /// Largest buffer: the pool
    #[arg(long, value_name = "SIZE", default_value = "2 MB")]
    pool: Size,
    /// Time constant of the demand estimate, in cycles; 0 means no delay
    #[arg(long, value_name = "CYCLES", default_value_t = 0.0, allow_negative_numbers = true)]
    lag: f64,
    /// State of the controller before the step
    #[arg(long, value_enum, default_value_t = Controller::Running)]
    controller: Controller,
    /// Number of cycles to simulate
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    cycles: u32,
    /// Time between two decisions of the controller
    #[arg(long, value_name = "TIME", default_value = "500 ms")]
    period: Span,
    /// Print one JSON object, with the buffer size after each cycle
    #[arg(long)]
    json: bool,
}

/// Sets of controller gains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Constants {
    /// kp 0.05, ki 0.01, kd 0.04: the printed values
    Paper,
    /// kp 0.25, ki 0.0003, kd 0: better damped
    Damped,
}

/// State of the controller before the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Controller {
    /// New: the controller has no previous error
    New,
    /// Running: the previous error was 0
    Running,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let answer = sockbuf::answer(question(arguments)).map_err(|error| refused(&error))?;
    if arguments.json { output::json(&answer.object()) } else { output::text(&table(&answer)) }
}

fn question(arguments: &Arguments) -> Question {
    let set = match arguments.gains {
        Constants::Paper => Gains::PAPER,
        Constants::Damped => Gains::DAMPED,
    };
    let [from, to, least, pool] =
        [arguments.from, arguments.to, arguments.least, arguments.pool].map(|size| size.0 as f64);
    Question {
        gains: sockbuf::gains(set, [arguments.kp, arguments.ki, arguments.kd], arguments.times),
        from,
        to,
        least,
        pool,
        lag: arguments.lag,
        begin: match arguments.controller {
            Controller::New => Begin::New,
            Controller::Running => Begin::Running,
        },
        cycles: arguments.cycles as usize,
        period: arguments.period.0.as_secs_f64(),
    }
}

/// Converts an error of the model, which names fields, into an error that names options.
fn refused(error: &ModelError) -> Error {
    let hint = match error {
        ModelError::Gain { .. } => "--kp, --ki, --kd, --times",
        ModelError::Lag { .. } => "--lag",
        ModelError::Range { .. } => "--from and --to differ, and lie between --least and --pool",
        _ => return Error::input(error.to_string()),
    };
    Error::input(error.to_string()).with_hint(hint)
}

fn table(answer: &Answer) -> String {
    let Answer { question, polynomial: [a2, a1, a0], roots, stable, margin, response } = answer;
    let Question { gains, period, cycles: looked_at, .. } = question;
    let mut text = format!("{:>8}{:>10}{:>12}\n", "cycle", "s", "bytes");
    let doubling = std::iter::successors(Some(1), |cycle| Some(cycle * 2));
    for cycle in std::iter::once(0).chain(doubling).take_while(|cycle| *cycle < response.sizes.len()) {
        text += &format!("{cycle:8}{:10.1}{:12.0}\n", cycle as f64 * period, response.sizes[cycle]);
    }
    let line = |what: &str, value: String| format!("{what:26}{value}\n");
    let Gains { kp, ki, kd } = gains;
    text.push('\n');
    text += &line("gains", format!("kp {kp}, ki {ki}, kd {kd}"));
    text += &line("loop", format!("z^3 {a2:+.4} z^2 {a1:+.4} z {a0:+.4} = 0"));
    text += &line("roots", roots.map(root).join(", "));
    let with = |margin: f64| format!("up to {margin:.1} times these gains");
    let stability = if *stable { "yes" } else { "no" };
    text += &line("stable", format!("{stability}; {}", margin.map_or("with none".to_owned(), with)));
    text += &line("overshoot", format!("{:.1} % of the step", response.overshoot() * 100.0));
    let time = |cycles: Option<usize>| match cycles {
        Some(cycles) => format!("{cycles} cycles, {:.1} s", cycles as f64 * period),
        None => format!("not in {looked_at} cycles"),
    };
    text += &line("90 % of the step after", time(response.rise()));
    text + &line("off by more than 2 % for", time(response.settling(BAND)))
}

fn root(Complex { re, im }: Complex) -> String {
    // A root at 0 can be computed as -0, which would print as "-0.0000".
    let re = if re == 0.0 { 0.0 } else { re };
    if im == 0.0 {
        format!("{re:.4}")
    } else {
        format!("{re:.4} {} {:.4}j", if im < 0.0 { '-' } else { '+' }, im.abs())
    }
}
