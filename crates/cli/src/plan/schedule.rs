//! `anabranch plan schedule`: section VII of the paper on multipath TCP.

use std::str::FromStr;

use anabranch_model::mptcp::rtt::travel;
use anabranch_model::mptcp::schedule::{self, Adaptation, Limits, Packets, Path};
use anabranch_model::mptcp::{ModelError, Reading};
use anabranch_sim::scenario::nearest;
use anabranch_sim::scenario::units::Span;
use serde_json::{Value, json};

use super::radio::{self, equations, per_hop, phys, refused};
use crate::error::Error;
use crate::output;

/// Options of `plan schedule`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A path, as in `hops=2,busy=0.3,loss=0.02`; again for each further path.
    ///
    /// Either `hops`, and `phy`, `busy`, `rate` with one value for all hops or one for each (`busy=0.3+0.1`), from
    /// which the model has the times; or the times themselves: `rtt`, `first` (the first packet's delivery) and
    /// `next` (for each further packet), as in `rtt=0.5s,first=300ms,next=40ms`. Both: `loss`, `cwnd`,
    /// `ssthresh`, `rto`, `w_min`, `w_max`; what is not said follows from the hops.
    #[arg(long = "path", value_name = "KEY=VALUE,...", required = true)]
    paths: Vec<String>,
    #[command(flatten)]
    packets: radio::Packets,
    /// The paper's equations to the letter (with its binomial coefficients as they are meant): errata kept
    #[arg(long)]
    printed: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What a path may say.
const KEYS: [&str; 13] = [
    "hops", "phy", "busy", "rate", "rtt", "first", "next", "loss", "cwnd", "ssthresh", "rto", "w_min",
    "w_max",
];

/// sst_start of section VIII.
const SSTHRESH: u32 = 16;

/// One path, by its place on the command line.
struct Named {
    number: usize,
    hops: u32,
    path: Path,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let numbered = arguments.paths.iter().enumerate();
    let mut paths = numbered
        .map(|(i, text)| {
            let said = Said::parse(i + 1, text)?;
            said.path(arguments)
        })
        .collect::<Result<Vec<Named>, Error>>()?;
    paths.sort_by(|a, b| a.path.rtt.total_cmp(&b.path.rtt));
    let reading =
        if arguments.printed { schedule::Reading::computed() } else { schedule::Reading::default() };
    let only: Vec<Path> = paths.iter().map(|named| named.path).collect();
    let planned =
        schedule::schedule(&only, reading).map_err(|error| refused(&ModelError::Schedule(error)))?;
    if arguments.json {
        output::json(&object(arguments, &paths, &planned))
    } else {
        output::text(&table(&paths, &planned))
    }
}

/// The words of one `--path`.
struct Said<'a> {
    number: usize,
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Said<'a> {
    fn parse(number: usize, text: &'a str) -> Result<Self, Error> {
        let mut words = Vec::new();
        for word in text.split(',') {
            let Some((key, value)) = word.split_once('=') else {
                return Err(Error::input(format!("--path {number}: `{word}` is not KEY=VALUE"))
                    .with_hint("as in `hops=2,busy=0.3`"));
            };
            let (key, value) = (key.trim(), value.trim());
            if !KEYS.contains(&key) {
                let hint = match nearest(key, KEYS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("one of {}", KEYS.join(", ")),
                };
                return Err(Error::input(format!("--path {number}: unknown key `{key}`")).with_hint(hint));
            }
            if words.iter().any(|(other, _)| *other == key) {
                return Err(Error::input(format!("--path {number}: `{key}` is said twice"))
                    .with_hint("say --path again for another path"));
            }
            words.push((key, value));
        }
        Ok(Self { number, words })
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn number<T: FromStr>(&self, key: &str, default: T) -> Result<T, Error> {
        let Some(text) = self.text(key) else { return Ok(default) };
        text.parse().map_err(|_| {
            Error::input(format!("--path {}: {key}=`{text}` is not such a number", self.number))
                .with_hint("`loss` is a probability; hops and windows are whole numbers")
        })
    }

    fn seconds(&self, key: &str) -> Result<Option<f64>, Error> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let span = text.parse::<Span>().map_err(|error| {
            let wrong = Error::input(format!("--path {}: {key}: {error}", self.number));
            wrong.with_hint(error.hint().unwrap_or_else(|| "a time, as in 300ms or 0.5s".to_owned()))
        })?;
        Ok(Some(span.0.as_secs_f64()))
    }

    fn path(&self, arguments: &Arguments) -> Result<Named, Error> {
        let hops: u32 = self.number("hops", 1)?;
        if !(1..=64).contains(&hops) {
            let message = format!("--path {}: hops must be 1 to 64, not {hops}", self.number);
            return Err(
                Error::input(message).with_hint("links on the way, the last one to the data centre included")
            );
        }
        let limits = Adaptation::default().limits(hops);
        let limits = Limits {
            w_min: self.number("w_min", limits.w_min)?,
            w_max: self.number("w_max", limits.w_max)?,
            ..limits
        };
        let (rtt, t_first, t_next) = self.times(arguments, hops as usize)?;
        let path = Path {
            rtt,
            t_first,
            t_next,
            rto: self.seconds("rto")?.unwrap_or(limits.rto.as_secs_f64()),
            loss: self.number("loss", 0.0)?,
            cwnd: self.number("cwnd", limits.w_min)?,
            ssthresh: self.number("ssthresh", SSTHRESH)?,
            w_min: limits.w_min,
            w_max: limits.w_max,
        };
        // Said here, a refusal can name the path.
        schedule::packets(&path, 0.0, schedule::Reading::default())
            .map_err(|error| self.refused(&ModelError::Schedule(error)))?;
        Ok(Named { number: self.number, hops, path })
    }

    fn refused(&self, error: &ModelError) -> Error {
        match refused(error) {
            Error::Input { message, hint } => {
                Error::Input { message: format!("--path {}: {message}", self.number), hint }
            }
            other => other,
        }
    }

    /// RTT, T^1 and the time per further packet, said or computed.
    fn times(&self, arguments: &Arguments, hops: usize) -> Result<(f64, f64, f64), Error> {
        let said = (self.seconds("rtt")?, self.seconds("first")?, self.seconds("next")?);
        let computed = ["phy", "busy", "rate"].into_iter().find(|key| self.text(key).is_some());
        match (said, computed) {
            ((Some(rtt), Some(first), Some(next)), None) => return Ok((rtt, first, next)),
            ((None, None, None), _) => {}
            ((Some(_), Some(_), Some(_)), Some(key)) => {
                let message =
                    format!("--path {}: {key} says nothing beside rtt, first and next", self.number);
                return Err(Error::input(message).with_hint("leave out either"));
            }
            _ => {
                let message = format!("--path {}: rtt, first and next belong together", self.number);
                return Err(Error::input(message).with_hint("as in `rtt=0.5s,first=300ms,next=40ms`"));
            }
        }
        let option = |key: &str| format!("--path {}: {key}", self.number);
        let phys = phys(&option("phy"), self.text("phy").unwrap_or("fsk100"), '+', hops)?;
        let busy = per_hop(&option("busy"), self.text("busy").unwrap_or("0"), '+', hops)?;
        let rates = per_hop(&option("rate"), self.text("rate").unwrap_or("1"), '+', hops)?;
        let forward = arguments.packets.transmitters(&phys, &busy, &rates);
        let reading = if arguments.printed { Reading::printed() } else { Reading::default() };
        let travelled = travel(&arguments.packets.route(forward, Vec::new()), reading)
            .map_err(|error| self.refused(&error))?;
        Ok((travelled.rtt(), travelled.t_first, travelled.t_next))
    }
}

/// T_i(1): the time that a path has, none for the last.
fn time(paths: &[Named], i: usize) -> Option<f64> {
    paths.get(i + 1).map(|next| next.path.rtt / 2.0)
}

fn object(arguments: &Arguments, paths: &[Named], planned: &[Packets]) -> Value {
    let each = paths.iter().zip(planned).enumerate().map(|(i, (named, packets))| {
        let path = &named.path;
        json!({
            "path": named.number,
            "hops": named.hops,
            "rtt_s": path.rtt,
            "first_packet_s": path.t_first,
            "next_packet_s": path.t_next,
            "rto_s": path.rto,
            "loss": path.loss,
            "cwnd": path.cwnd,
            "ssthresh": path.ssthresh,
            "w_min": path.w_min,
            "w_max": path.w_max,
            "time_s": time(paths, i),
            "expected": packets.expected,
            "packets": packets.count,
        })
    });
    json!({
        "model": "schedule",
        "equations": equations(arguments.printed),
        "params": { "payload": arguments.packets.payload, "header": arguments.packets.header },
        "packets": planned.iter().map(|packets| u64::from(packets.count)).sum::<u64>(),
        "paths": each.collect::<Vec<_>>(),
    })
}

fn table(paths: &[Named], planned: &[Packets]) -> String {
    let heads = ["path", "RTT", "first", "next", "RTO", "loss", "cwnd", "time", "expected", "packets"];
    let mut text = heads.map(|head| format!("{head:>10}")).join("");
    text.push('\n');
    for (i, (named, packets)) in paths.iter().zip(planned).enumerate() {
        let path = &named.path;
        let time = time(paths, i).map_or("-".to_owned(), |t| format!("{t:.4}"));
        text += &format!(
            "{:10}{:10.4}{:10.4}{:10.4}{:10.1}{:10.4}{:10}{time:>10}{:10.2}{:10}\n",
            named.number,
            path.rtt,
            path.t_first,
            path.t_next,
            path.rto,
            path.loss,
            path.cwnd,
            packets.expected,
            packets.count,
        );
    }
    text + "\ntimes in seconds; a path has half the next one's round trip, the last one its window\n"
}
