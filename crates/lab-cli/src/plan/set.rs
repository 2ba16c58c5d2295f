//! `anabranch plan set`: latency of a SET transfer for each number of gateways.

use anabranch_deploy::error::Error;
use anabranch_deploy::output;
use anabranch_lab::experiment;
use anabranch_lab::plan::set::{self, Answer, Refusal};
use anabranch_lab::set::{Equations, Set};

use crate::lab::unfit;

/// Options of `plan set`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Set a parameter of the experiment `set`; may be repeated.
    ///
    /// `anabranch lab list set` lists the parameters; `key=v1,v2` computes a plan for each value.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Use the paper's equations as printed, with their errata and without headers and request
    #[arg(long)]
    printed: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let equations = if arguments.printed { Equations::Printed } else { Equations::Protocol };
    let settings = experiment::settings(&Set, &arguments.set).map_err(unfit)?;
    let answers = settings.iter().map(|settings| set::answer(settings, equations).map_err(refused));
    for answer in answers.collect::<Result<Vec<Answer>, Error>>()? {
        if arguments.json {
            output::json(&answer.object())?;
        } else {
            output::text(&table(&answer))?;
        }
    }
    Ok(())
}

fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Parameter(error) => unfit(error),
        Refusal::NotSet(_) => Error::input(format!("--set {refusal}"))
            .with_hint("omit `scheme`; `lab run set` simulates baselines"),
        other => Error::input(other.to_string()),
    }
}

fn table(answer: &Answer) -> String {
    let best = &answer.best;
    let words: Vec<String> = answer
        .texts()
        .into_iter()
        .filter(|(name, _)| !UNMODELLED.contains(name))
        .map(|(name, text)| format!("{name}={text}"))
        .collect();
    let mut text = format!("{}\n\n", words.join(" "));
    let heads = [
        "gateways", "latency", "request", "set-up", "first", "transmit", "stall", "wired", "last", "segments",
    ];
    text += &heads.map(|h| format!("{h:>9}")).join("");
    text.push('\n');
    for option in &best.options {
        let p = &option.parts;
        let spans = [
            option.total,
            option.request,
            option.establishment,
            p.first_segment,
            p.transmission,
            p.stall,
            p.wired_limit,
            p.last_segment,
        ];
        let shares: Vec<String> =
            option.paths.iter().map(|path| path.wireless_segments.to_string()).collect();
        text += &format!("{:9}", option.gateways);
        text += &spans.map(|s| format!("{s:9.3}")).join("");
        text += &format!("  {}\n", shares.join("+"));
    }
    text + &format!(
        "\nbest: {} gateways, {:.3} s (times in seconds, those of the path that ends last)\n\n",
        best.gateways,
        best.latency().total
    )
}

/// Parameters that the closed form does not model.
const UNMODELLED: [&str; 6] = ["scheme", "wireless_loss", "gateway_buffer", "fail", "layout", "striping"];
