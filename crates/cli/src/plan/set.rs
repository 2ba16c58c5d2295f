//! `anabranch plan set`: the latency of a SET transfer by number of gateways.

use anabranch_lab::experiment;
use anabranch_lab::set::{Config, Equations, Scheme, Set};
use anabranch_model::set::{Best, Latency, best_gateways};
use serde_json::{Value, json};

use crate::error::Error;
use crate::output;

/// Options of `plan set`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A parameter of the experiment `set` (see `anabranch lab list set`); `key=v1,v2` plans for each
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// The paper's equations to the letter: errata kept, no headers, no request
    #[arg(long)]
    printed: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let equations = if arguments.printed { Equations::Printed } else { Equations::Protocol };
    let settings = experiment::settings(&Set, &arguments.set)?;
    let configs = settings.iter().map(Config::understand).collect::<Result<Vec<_>, _>>()?;
    if let Some(other) = configs.iter().find(|c| c.scheme != Scheme::Set) {
        let word = other.texts().into_iter().find(|(name, _)| *name == "scheme").map(|(_, text)| text);
        let message = format!("--set scheme={}: the model is of SET", word.unwrap_or_default());
        return Err(Error::input(message).with_hint("leave `scheme` out; `lab run set` simulates baselines"));
    }
    let planned = configs.iter().map(|config| {
        let best = best_gateways(&config.model(equations)).map_err(|e| Error::input(e.to_string()))?;
        Ok((config, best))
    });
    let planned: Vec<(&Config, Best)> = planned.collect::<Result<_, Error>>()?;
    for (config, best) in &planned {
        if arguments.json {
            output::json(&object(config, best, equations))?;
        } else {
            output::text(&table(config, best))?;
        }
    }
    Ok(())
}

fn object(config: &Config, best: &Best, equations: Equations) -> Value {
    let parameters: serde_json::Map<String, Value> =
        config.texts().into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
    json!({
        "model": "set",
        "equations": match equations {
            Equations::Protocol => "protocol",
            Equations::Printed => "printed",
        },
        "params": parameters,
        "best_gateways": best.gateways,
        "latency_s": best.latency().total,
        "options": best.options.iter().map(option).collect::<Vec<_>>(),
    })
}

fn option(latency: &Latency) -> Value {
    let paths = latency.paths.iter().map(|path| {
        json!({
            "start_s": path.start,
            "finish_s": path.finish,
            "wired_segments": path.wired_segments,
            "wireless_segments": path.wireless_segments,
            "wired_windows": path.wired_windows,
            "wireless_windows": path.wireless_windows,
        })
    });
    json!({
        "gateways": latency.gateways,
        "latency_s": latency.total,
        "request_s": latency.request,
        "establishment_s": latency.establishment,
        "first_segment_s": latency.parts.first_segment,
        "transmission_s": latency.parts.transmission,
        "stall_s": latency.parts.stall,
        "wired_limit_s": latency.parts.wired_limit,
        "last_segment_s": latency.parts.last_segment,
        "paths": paths.collect::<Vec<_>>(),
    })
}

fn table(config: &Config, best: &Best) -> String {
    let words: Vec<String> = config
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

/// Parameters that the closed form does not know.
const UNMODELLED: [&str; 6] = ["scheme", "wireless_loss", "gateway_buffer", "fail", "layout", "striping"];
