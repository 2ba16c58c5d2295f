//! Parameters of the experiment. Defaults come from section 4.1 and Table 1 where they give a
//! number; for the others see errata B13 to B16, with reasons in
//! `docs/evidence/sockbuf-experiments.md`.

use anabranch_core::sockbuf::Gains;
use anabranch_core::time::Duration;
use anabranch_scenario::units::{Size, Span};

use crate::experiment::template::{Assignment, Template};
use crate::experiment::values::{self, Takes, Understood, count, meant, probability, quantity, real};
use crate::experiment::{Parameter, ParameterError, Settings, parameter as p};

/// The scenario and how the parameters change it.
pub const TEMPLATE: Template = Template {
    file: "scenarios/papers/sockbuf.toml",
    text: include_str!("../../../../scenarios/papers/sockbuf.toml"),
    parameters: PARAMETERS,
    derived,
};

/// Mechanism that divides the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tuner {
    /// The paper's controller, agent and manager.
    Pid,
    /// ATBT as Figures 1 and 2 print it.
    Atbt,
    /// ATBT as its authors describe it.
    AtbtOriginal,
    /// Dynamic right-sizing.
    RightSizing,
    /// Twice the bandwidth-delay product reported by link layers.
    Product,
    /// A constant, equal share for each connection.
    Fixed,
}

impl Tuner {
    /// The value of the parameter `tuner`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::Atbt => "atbt",
            Self::AtbtOriginal => "atbt-original",
            Self::RightSizing => "drs",
            Self::Product => "product",
            Self::Fixed => "fixed",
        }
    }
}

/// Constants of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constants {
    /// Ours.
    Damped,
    /// Those of section 3.2.
    Paper,
}

impl Constants {
    /// The value of the parameter `gains`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Damped => "damped",
            Self::Paper => "paper",
        }
    }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    p(
        "tuner",
        "pid",
        "pid, atbt, atbt-original, drs, product or fixed",
        "who divides the memory: the paper's controller, ATBT as the paper prints it or as its authors do, dynamic \
         right-sizing, the reported bandwidth-delay products, or a fixed size for each",
    ).alias(),
    p(
        "connections",
        "4",
        "3 to 64",
        "flows of the mobile host; the striped connection's three count as three (erratum B14)",
    ),
    p("memory", "2MB", "a size such as 2MB", "of all send buffers together: Table 1 has 2 MB and 100 MB").alias(),
    p("duration", "400s", "a span such as 400s", "of a run; there is always something to send (erratum B13)").alias(),
    p(
        "loss",
        "0.5%",
        "a probability such as 0.005 or 0.5%",
        "of each packet on each wireless link, either way",
    ),
    p("burst", "2", "1 to 100", "packets that are lost in a row on average"),
    p(
        "bandwidth_step",
        "50s",
        "a span such as 50s, or 0s",
        "from one change of the wireless rates to the next; 0: none",
    ),
    p(
        "depth",
        "0.5",
        "0.05 to 1",
        "least share of its rate that a wireless link has after a change; it is drawn evenly between that and 1",
    ),
    p(
        "single_at",
        "10s",
        "a span such as 10s",
        "when the single flows begin, and throughput is counted from",
    ).alias(),
    p("gains", "damped", "damped or paper", "the controller's constants: ours, or section 3.2's"),
    p("gain_factor", "1", "0.01 to 100", "by which they are multiplied"),
    p(
        "set_point",
        "per-flow",
        "per-flow or slowest",
        "what the controller steers to: each flow's bandwidth times its RTT, or all bandwidth times the longest RTT",
    ).alias(),
    p("products", "2", "0.1 to 100", "by which that is multiplied (Figure 6 line 2)").alias(),
    p(
        "excess",
        "product",
        "product or bandwidth",
        "in proportion to what the single connections share the rest",
    ).alias(),
    p(
        "guarantee",
        "0",
        "0 to 1",
        "with tuner=pid, the part of an equal share of the memory that each connection can count on: the paper has none, \
         the library 0.6",
    ).alias(),
    p("period", "0.5s", "a span such as 0.5s", "between two decisions").alias(),
    p(
        "reports",
        "on",
        "on, sampled or off",
        "what link layers report of their rates: at each moment, samples as the next four say, or nothing",
    ).alias(),
    p("report_period", "100ms", "a span such as 100ms", "between two samples of a link's rate").alias(),
    p("report_delay", "100ms", "a span such as 100ms", "from a sample to its use").alias(),
    p("report_noise", "0.1", "0 to 1", "a sample is wrong by up to this share, evenly distributed").alias(),
    p("report_loss", "0.05", "0 to 1", "probability that a sample is lost").alias(),
    p(
        "fixed",
        "128kB",
        "a size such as 128kB",
        "of each buffer with tuner=fixed, and of each before the first decision",
    ).alias(),
    p(
        "scheduler",
        "fastest",
        "fastest, blest, round-robin or predictive",
        "which flow of the striped connection is next",
    ).alias(),
    p("queue", "50", "1 to 10000", "packets that wait for a wireless link: ns-2's default"),
    p(
        "background",
        "5Mbit/s",
        "a rate such as 5Mbit/s, or 0bit/s",
        "of each of the two UDP flows f11 and f12; 0: no background, no TCP either",
    ),
    p(
        "churn",
        "0s",
        "a span such as 5s",
        "single connections come and go: one is there for this long, and away for as long; 0: they stay",
    ),
    p(
        "stalled",
        "0",
        "0 to the number of single connections",
        "single connections whose peers stop reading after the first 10 s; they have receive buffers of 64 kB",
    ),
    p("handoff", "none", "none, wlan, geo or hsupa", "the interface that is gone for a while"),
    p("handoff_at", "200s", "a span such as 200s", "when it goes"),
    p("handoff_for", "10s", "a span such as 10s", "for how long"),
];

/// Number of flows of the striped connection, one over each interface.
pub(super) const FLOWS: usize = 3;
/// Payload of a segment in bytes (Table 1).
const SEGMENT: u64 = 1460;
/// Interfaces in order, with the access router behind each.
const INTERFACES: [(&str, &str); FLOWS] = [("wlan", "r0"), ("geo", "r1"), ("hsupa", "r2")];
/// Interfaces of the single connections, in turn.
const IN_TURN: [&str; FLOWS] = ["wlan", "hsupa", "geo"];

const TAKES: &[(&str, Takes)] = &[
    ("connections", Takes::Count(FLOWS, 64)),
    ("memory", Takes::Size),
    ("duration", Takes::Span),
    ("loss", Takes::Probability),
    ("burst", Takes::Real(1.0, 100.0)),
    ("bandwidth_step", Takes::Span),
    ("depth", Takes::Real(0.05, 1.0)),
    ("single_at", Takes::Span),
    ("gain_factor", Takes::Real(0.01, 100.0)),
    ("products", Takes::Real(0.1, 100.0)),
    ("guarantee", Takes::Real(0.0, 1.0)),
    ("period", Takes::Span),
    ("report_period", Takes::Span),
    ("report_delay", Takes::Span),
    ("report_noise", Takes::Real(0.0, 1.0)),
    ("report_loss", Takes::Real(0.0, 1.0)),
    ("fixed", Takes::Size),
    ("queue", Takes::Count(1, 10_000)),
    ("background", Takes::RateOrNone),
    ("churn", Takes::Span),
    ("stalled", Takes::Count(0, 64)),
    ("handoff_at", Takes::Span),
    ("handoff_for", Takes::Span),
];

/// The settings in canonical form, each value as results write it.
///
/// # Errors
///
/// The first invalid value.
pub(super) fn canonical(settings: &Settings) -> Understood<Settings> {
    let understood = values::canonical(settings, TAKES)?;
    check(&understood, settings)?;
    Ok(understood)
}

fn span(settings: &Settings, key: &'static str) -> Understood<Duration> {
    Ok(quantity::<Span>(key, settings.text(key))?.0)
}

/// Number of single connections: those beyond the striped one's flows.
fn singles(settings: &Settings) -> Understood<usize> {
    Ok(count("connections", settings.text("connections"), FLOWS, 64)? - FLOWS)
}

/// Checks that the parameters fit together; errors show them as they were given.
fn check(settings: &Settings, given: &Settings) -> Understood<()> {
    let against = |key, message: String| Err(ParameterError::bad(key, given.text(key), message, None));
    let (singles, duration) = (singles(settings)?, span(settings, "duration")?);
    let end = settings.text("duration");
    if span(settings, "single_at")? >= duration {
        return against("single_at", format!("expected before the end, {end}"));
    }
    for (key, least) in [("bandwidth_step", 1000), ("churn", 1000), ("period", 10), ("report_period", 1)] {
        let (time, least) = (span(settings, key)?, Duration::from_millis(least));
        let may_be_none = matches!(key, "bandwidth_step" | "churn");
        if time < least && !(may_be_none && time.is_zero()) {
            let or_none = if may_be_none { ", or 0s for none" } else { "" };
            return against(key, format!("expected at least {}{or_none}", Span(least)));
        }
    }
    if count("stalled", settings.text("stalled"), 0, 64)? > singles {
        let message = format!("expected at most the number of single connections, {singles}");
        return against("stalled", message);
    }
    let returns = span(settings, "handoff_at")? + span(settings, "handoff_for")?;
    if settings.text("handoff") != "none" && returns >= duration {
        return against("handoff_at", format!("expected that the interface returns before the end, {end}"));
    }
    // Each connection needs at least one segment to send anything.
    let (connections, Size(memory)) = (1 + singles, quantity("memory", settings.text("memory"))?);
    let least = connections as u64 * SEGMENT;
    if !(least..=1 << 40).contains(&memory) {
        let message = format!(
            "expected at least one segment for each connection, {least} B for {connections} of them, and at most 1 TB"
        );
        return against("memory", message);
    }
    Ok(())
}

fn derived(settings: &Settings) -> Understood<Vec<Assignment>> {
    let settings = &canonical(settings)?;
    let mut all = Vec::new();
    for (key, assignments) in [
        ("connections", single_connections(settings)?),
        ("loss", wireless_links(settings)?),
        ("bandwidth_step", rate_changes(settings)?),
        ("gains", gains(settings)?),
        ("background", background(settings)),
        ("handoff", handoff(settings)?),
    ] {
        all.extend(assignments.into_iter().map(|assignment| (key, assignment)));
    }
    Ok(all)
}

/// The last connections have peers that stop reading. If connections come and go, every other one
/// begins later.
fn single_connections(settings: &Settings) -> Understood<Vec<String>> {
    let (singles, churn) = (singles(settings)?, settings.text("churn"));
    let stalled = count("stalled", settings.text("stalled"), 0, 64)?;
    let reading = singles - stalled;
    let mut in_turn = IN_TURN;
    in_turn.rotate_left(reading % FLOWS);
    let mut all = vec![
        format!("transfer.single*.count={reading}"),
        format!("transfer.stalled*.count={stalled}"),
        format!("transfer.stalled*.interfaces={in_turn:?}"),
    ];
    if !span(settings, "churn")?.is_zero() {
        for (group, first) in [("single", 0), ("stalled", reading)] {
            let offset = if first % 2 == 0 { "0s" } else { churn };
            all.push(format!(
                "transfer.{group}*.repeat={{ on = \"{churn}\", off = \"{churn}\", offset = \"{offset}\", stagger = \"{churn}\" }}"
            ));
        }
    }
    Ok(all)
}

/// Losses of the wireless links: on average `loss` of the packets, `burst` in a row.
fn wireless_links(settings: &Settings) -> Understood<Vec<String>> {
    let loss = probability("loss", settings.text("loss"))?;
    let burst = real("burst", settings.text("burst"), 1.0, 100.0)?;
    let loss = if loss == 0.0 || burst == 1.0 {
        format!("{loss:?}")
    } else {
        let bad_to_good = 1.0 / burst;
        // The stationary probability of the bad state equals the loss.
        let good_to_bad = (loss * bad_to_good / (1.0 - loss)).min(1.0);
        format!("{{ good_to_bad = {good_to_bad:?}, bad_to_good = {bad_to_good:?} }}")
    };
    let queue = settings.text("queue");
    let of = |(link, _)| [format!("link.{link}.loss={loss}"), format!("link.{link}.queue={queue} packets")];
    Ok(INTERFACES.into_iter().flat_map(of).collect())
}

fn rate_changes(settings: &Settings) -> Understood<Vec<String>> {
    let every = match span(settings, "bandwidth_step")?.is_zero() {
        true => "off",
        false => settings.text("bandwidth_step"),
    };
    let least = real("depth", settings.text("depth"), 0.05, 1.0)?;
    Ok(vec![
        format!("random-event.wireless links.every={every}"),
        format!("random-event.wireless links.rate_share=[{least:?}, 1.0]"),
    ])
}

fn gains(settings: &Settings) -> Understood<Vec<String>> {
    let known = [Constants::Damped, Constants::Paper].map(|constants| (constants.word(), constants));
    let gains = match meant("gains", settings.text("gains"), &known)? {
        Constants::Damped => Gains::DAMPED,
        Constants::Paper => Gains::PAPER,
    };
    let Gains { kp, ki, kd } = gains.times(real("gain_factor", settings.text("gain_factor"), 0.01, 100.0)?);
    Ok([("kp", kp), ("ki", ki), ("kd", kd)]
        .map(|(key, gain)| format!("buffers.host.pid.{key}={gain:?}"))
        .into())
}

fn background(settings: &Settings) -> Vec<String> {
    match settings.text("background") {
        "0bit/s" => vec!["transfer.background*.count=0".to_owned(), "traffic=[]".to_owned()],
        rate => vec![format!("traffic.background*.rate={rate}")],
    }
}

fn handoff(settings: &Settings) -> Understood<Vec<String>> {
    let known: Vec<_> =
        [("none", None)].into_iter().chain(INTERFACES.map(|(link, r)| (link, Some(r)))).collect();
    let Some(router) = meant("handoff", settings.text("handoff"), &known)? else { return Ok(Vec::new()) };
    let (at, lasts) = (span(settings, "handoff_at")?, span(settings, "handoff_for")?);
    let events = [(at, "link-down"), (at + lasts, "link-up")].map(|(at, action)| {
        format!("{{ at = \"{}\", action = \"{action}\", from = \"mh\", to = \"{router}\" }}", Span(at))
    });
    Ok(vec![format!("event=[{}]", events.join(", "))])
}
