//! `anabranch plan schedule`: the scheduling model of section VII of the multipath TCP paper.

use std::str::FromStr;

use anabranch_deploy::error::Error;
use anabranch_deploy::output;
use anabranch_lab::plan::hops::Hops;
use anabranch_lab::plan::schedule::{self, Answer, Planned, Question, Refusal, SSTHRESH, Said, Way};
use anabranch_scenario::did_you_mean;
use anabranch_scenario::units::Span;

use super::radio::{self, per_hop, phys, refused};

/// Options of `plan schedule`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A path, as in `hops=2,busy=0.3,loss=0.02`; repeat the option for each path.
    ///
    /// A path is given either by its hops or by its times. By hops: `hops`, and `phy`, `busy`,
    /// `rate` with one value for all hops or one per hop (`busy=0.3+0.1`); the model computes the
    /// times. By times: `rtt`, `first` (delivery of the first packet) and `next` (time per further
    /// packet), as in `rtt=0.5s,first=300ms,next=40ms`. In both cases: `loss`, `cwnd`, `ssthresh`,
    /// `rto`, `w_min`, `w_max`; values that are left out follow from the hops.
    #[arg(long = "path", value_name = "KEY=VALUE,...", required = true)]
    paths: Vec<String>,
    #[command(flatten)]
    packets: radio::Packets,
    /// Use the paper's equations as printed, with their errata, except for the corrected binomial
    /// coefficients
    #[arg(long)]
    printed: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Keys of a path.
const KEYS: [&str; 13] = [
    "hops", "phy", "busy", "rate", "rtt", "first", "next", "loss", "cwnd", "ssthresh", "rto", "w_min",
    "w_max",
];

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let numbered = arguments.paths.iter().enumerate();
    let paths = numbered.map(|(i, text)| Words::parse(i + 1, text)?.said());
    let paths = paths.collect::<Result<Vec<Said>, Error>>()?;
    let question = Question { paths, packets: arguments.packets.into(), printed: arguments.printed };
    let answer =
        schedule::answer(question).map_err(|Refusal { path, error }| match (path, refused(&error)) {
            (Some(number), Error::Input { message, hint }) => {
                Error::Input { message: format!("--path {number}: {message}"), hint }
            }
            (_, refused) => refused,
        })?;
    if arguments.json { output::json(&answer.object()) } else { output::text(&table(&answer)) }
}

/// Keys and values of one `--path`.
struct Words<'a> {
    number: usize,
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn parse(number: usize, text: &'a str) -> Result<Self, Error> {
        let mut words = Vec::new();
        for word in text.split(',') {
            let Some((key, value)) = word.split_once('=') else {
                return Err(Error::input(format!("--path {number}: `{word}` is not KEY=VALUE"))
                    .with_hint("as in `hops=2,busy=0.3`"));
            };
            let (key, value) = (key.trim(), value.trim());
            if !KEYS.contains(&key) {
                let hint = did_you_mean(key, KEYS).unwrap_or_else(|| format!("one of {}", KEYS.join(", ")));
                return Err(Error::input(format!("--path {number}: unknown key `{key}`")).with_hint(hint));
            }
            if words.iter().any(|(other, _)| *other == key) {
                return Err(Error::input(format!("--path {number}: `{key}` is given twice"))
                    .with_hint("for another path, give --path again"));
            }
            words.push((key, value));
        }
        Ok(Self { number, words })
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn number<T: FromStr>(&self, key: &str, default: T) -> Result<T, Error> {
        Ok(self.maybe(key)?.unwrap_or(default))
    }

    fn maybe<T: FromStr>(&self, key: &str) -> Result<Option<T>, Error> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let number = text.parse().map_err(|_| {
            Error::input(format!("--path {}: {key}=`{text}` is not a valid number", self.number))
                .with_hint("`loss` is a probability; hops and windows are whole numbers")
        })?;
        Ok(Some(number))
    }

    fn seconds(&self, key: &str) -> Result<Option<f64>, Error> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let span = text.parse::<Span>().map_err(|error| {
            let wrong = Error::input(format!("--path {}: {key}: {error}", self.number));
            wrong.with_hint(error.hint().unwrap_or_else(|| "a time, as in 300ms or 0.5s".to_owned()))
        })?;
        Ok(Some(span.0.as_secs_f64()))
    }

    fn said(&self) -> Result<Said, Error> {
        let hops: u32 = self.number("hops", 1)?;
        if !(1..=64).contains(&hops) {
            let message = format!("--path {}: hops must lie between 1 and 64, not {hops}", self.number);
            return Err(Error::input(message)
                .with_hint("count the links of the path, including the last one to the data centre"));
        }
        Ok(Said {
            hops,
            way: self.way(hops as usize)?,
            loss: self.number("loss", 0.0)?,
            cwnd: self.maybe("cwnd")?,
            ssthresh: self.number("ssthresh", SSTHRESH)?,
            rto: self.seconds("rto")?,
            w_min: self.maybe("w_min")?,
            w_max: self.maybe("w_max")?,
        })
    }

    /// RTT, T^1 and the time per further packet, or the hops from which the model computes them.
    fn way(&self, hops: usize) -> Result<Way, Error> {
        let said = (self.seconds("rtt")?, self.seconds("first")?, self.seconds("next")?);
        let computed = ["phy", "busy", "rate"].into_iter().find(|key| self.text(key).is_some());
        match (said, computed) {
            ((Some(rtt), Some(first), Some(next)), None) => return Ok(Way::Times { rtt, first, next }),
            ((None, None, None), _) => {}
            ((Some(_), Some(_), Some(_)), Some(key)) => {
                let message =
                    format!("--path {}: {key} has no effect together with rtt, first and next", self.number);
                return Err(Error::input(message).with_hint("give either the times or the hops"));
            }
            _ => {
                let message = format!("--path {}: rtt, first and next belong together", self.number);
                return Err(Error::input(message).with_hint("as in `rtt=0.5s,first=300ms,next=40ms`"));
            }
        }
        let option = |key: &str| format!("--path {}: {key}", self.number);
        Ok(Way::Hops(Hops {
            phys: phys(&option("phy"), self.text("phy").unwrap_or("fsk100"), '+', hops)?,
            busy: per_hop(&option("busy"), self.text("busy").unwrap_or("0"), '+', hops)?,
            rates: per_hop(&option("rate"), self.text("rate").unwrap_or("1"), '+', hops)?,
        }))
    }
}

fn table(answer: &Answer) -> String {
    let heads = ["path", "RTT", "first", "next", "RTO", "loss", "cwnd", "time", "expected", "packets"];
    let mut text = heads.map(|head| format!("{head:>10}")).join("");
    text.push('\n');
    for Planned { number, path, time, packets, .. } in &answer.paths {
        let time = time.map_or("-".to_owned(), |t| format!("{t:.4}"));
        text += &format!(
            "{number:10}{:10.4}{:10.4}{:10.4}{:10.1}{:10.4}{:10}{time:>10}{:10.2}{:10}\n",
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
    text + "\ntimes in seconds; packets: as many as fit into half the RTT of the next path, for the last path its window\n"
}
