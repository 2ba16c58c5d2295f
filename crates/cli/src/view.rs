//! `anabranch view`: make a page that replays a run.

mod pushes;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anabranch_deploy::error::Error;
use anabranch_deploy::files::{check_apart, check_writable, write_whole};
use anabranch_deploy::output;
use anabranch_deploy::say;
use anabranch_scenario::units::Span;
use anabranch_scenario::{Plan, Policies};
use anabranch_sim::events::EventLog;
use anabranch_view::log::LogError;
use anabranch_view::replay::{Part, Replay};
use anabranch_view::{page, picture};

use crate::events::Patience;
use crate::run;

/// Options of `view`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Event log, or a scenario file (`.toml`) to simulate first
    log: PathBuf,
    /// Write the HTML page to this file; a name ending in .svg makes an animated picture [default:
    /// the path of LOG with the extension .html]
    #[arg(long, short, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Start the replay at this simulated time, as in "2 s" [default: the start of the run]
    #[arg(long, value_name = "TIME")]
    from: Option<Span>,
    /// End the replay at this simulated time [default: the end of the run]
    #[arg(long, value_name = "TIME")]
    until: Option<Span>,
    /// Compare the phases of the run's SET transfers with those of a push, whose output with --json
    /// this file has. May be repeated
    #[arg(long, value_name = "PUSH.json")]
    push: Vec<PathBuf>,
    /// Limit on the rows of the page; a larger page is an error.
    ///
    /// Packets, packets on links, frames and connection states each count as rows.
    #[arg(long, value_name = "ROWS", default_value_t = Part::default().limit)]
    limit: u64,
    /// Duration of an animated picture, into which the run is stretched [default: 12 s]
    #[arg(long, value_name = "TIME")]
    length: Option<Span>,
}

pub(crate) fn main(arguments: &Arguments, policies: &Policies) -> Result<(), Error> {
    let out = arguments.out.clone().unwrap_or_else(|| arguments.log.with_extension("html"));
    let what = if is_scenario(&arguments.log) { "the scenario file" } else { "the event log" };
    let pushes = arguments.push.iter().map(|path| ("--push", path.as_path()));
    check_apart(pushes.chain([(what, arguments.log.as_path())]), [("--out", out.as_path())])?;
    let is_picture = is_picture(&out)?;
    check_writable(&out)?;
    if arguments.length.is_some() && !is_picture {
        return Err(Error::input("--length is for pictures").with_hint("name one with `--out FILE.svg`"));
    }
    if !arguments.push.is_empty() && is_picture {
        return Err(Error::input("--push is for pages").with_hint("name one with `--out FILE.html`"));
    }
    let pushes: Vec<_> = arguments.push.iter().map(|path| pushes::read(path)).collect::<Result<_, _>>()?;
    let nanos = |span: Option<Span>, default| span.map_or(default, |span| span.0.as_nanos());
    let part = Part {
        from: nanos(arguments.from, 0),
        until: nanos(arguments.until, u64::MAX),
        limit: arguments.limit,
    };
    if part.from > part.until {
        return Err(Error::input("--from is later than --until").with_hint("choose an --until after --from"));
    }
    let mut replay = if is_scenario(&arguments.log) {
        replay(&arguments.log, simulate(&arguments.log, &out, policies)?.as_slice(), part)?
    } else {
        let file = File::open(&arguments.log).map_err(|error| Error::unreadable(&arguments.log, &error))?;
        replay(&arguments.log, BufReader::new(file), part)?
    };
    replay.transfers.extend(pushes);
    if let Some(octets) = replay.cut {
        say!("warning: {} is truncated after {octets} bytes: the page ends there", arguments.log.display());
    }
    let page = if is_picture { picture(&replay, arguments.length)? } else { page::html(&replay) };
    write_whole(&out, page.as_bytes())?;
    let (events, losses) = (replay.events, replay.losses.len());
    output::text(&format!("{events} events, {losses} losses: {} ({} kB)\n", out.display(), page.len() / 1000))
}

/// Whether the name of the output is that of a picture. A name such as `run.png` promises what this
/// program does not write; what follows another dot, as in `run.v2`, promises nothing.
fn is_picture(out: &Path) -> Result<bool, Error> {
    match out.extension().map(|extension| extension.to_string_lossy().to_lowercase()).as_deref() {
        Some("svg") => Ok(true),
        Some(
            other @ ("png" | "apng" | "jpg" | "jpeg" | "gif" | "webp" | "pdf" | "mp4" | "webm" | "svgz"),
        ) => Err(Error::input(format!("--out {}: cannot write .{other}", out.display()))
            .with_hint("name a page .html or an animated picture .svg")),
        _ => Ok(false),
    }
}

/// An animated picture of the replay.
fn picture(replay: &Replay, length: Option<Span>) -> Result<String, Error> {
    let seconds = length.map_or(12.0, |span| span.0.as_secs_f64());
    if seconds < 0.1 {
        return Err(Error::input("--length: a picture lasts at least 0.1 s; give a longer time"));
    }
    picture::svg(replay, seconds).map_err(|why| {
        Error::input(why).with_hint("show less with --from and --until, or make a page: `--out FILE.html`")
    })
}

fn replay(path: &Path, log: impl BufRead, part: Part) -> Result<Replay, Error> {
    Replay::read(log, part).map_err(|error| {
        let hint = match error {
            LogError::Empty | LogError::Foreign => {
                "give a log that `anabranch run SCENARIO --events PATH` has written"
            }
            LogError::Version(_) => "use the version of anabranch that wrote it, or run the scenario again",
            LogError::TooMuch { .. } => {
                "show a part of it with --from and --until, or allow a larger page with --limit"
            }
            _ => "run the scenario again",
        };
        Error::input(format!("{}: {error}", path.display())).with_hint(hint)
    })
}

fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// Simulates the first run of a scenario and returns its event log. `out` is the page's path, which
/// no file of the scenario may share.
fn simulate(path: &Path, out: &Path, policies: &Policies) -> Result<Vec<u8>, Error> {
    let points = run::read(path, &[], policies)?;
    let [(point, files)] = points.as_slice() else {
        return Err(Error::input(format!(
            "{}: a sweep of {} points cannot be viewed",
            path.display(),
            points.len()
        ))
        .with_hint("run one point with `anabranch run --set ... --events PATH`, and view its log"));
    };
    run::refuse_outside(path, &points)?;
    run::refuse_overwriting(path, &points, &[("--out", &Some(out.to_owned()))])?;
    let (scenario, seed) = (&point.scenario, point.scenario.seed);
    let Plan { builder, .. } = scenario.plan(seed, 0, files).map_err(run::undrawable)?;
    let mut sim = builder.build();
    sim.observe(EventLog::new(Vec::new(), scenario.log_head(seed, 0)));
    Patience::new()?.run(&mut sim, scenario.stop, None)?;
    let log = sim.take_observer::<EventLog<Vec<u8>>>().expect("it was attached above");
    log.finish_at(sim.now()).map_err(|error| Error::job(error.to_string()))
}
