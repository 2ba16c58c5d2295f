//! The numbers behind the figures, and the paired comparison with ATBT, as pages.

use super::config::Config;
use super::settings::{
    BUFFER, CONTENDERS, Contender, Measured, Name, PEAK, RECEIVED, SENT, SETTINGS, SINGLE, Setting, gain,
};
use crate::plot::csv;
use crate::stats::Summary;

/// Metrics of the pages: what is shown, and its unit's factor.
const SHOWN: [(Name, &str, f64); 8] = [
    (SENT, "Striped, sent, Mbit/s", 1e-6),
    (RECEIVED, "Striped, received, Mbit/s", 1e-6),
    (SINGLE, "Singles, Mbit/s", 1e-6),
    (BUFFER, "Striped buffer, kB", 1e-3),
    (PEAK, "Peak of the pool, kB", 1e-3),
    ("pool_peak_held_bytes", "Peak held, kB", 1e-3),
    ("fairness", "Jain's index", 1.0),
    ("settling_time_s", "Settling, s", 1.0),
];

/// Every number as CSV.
pub fn csv(measured: &Measured) -> String {
    let mut text =
        csv::record(&["memory_byte", "connections", "tuner", "metric", "mean", "ci95", "min", "max"]);
    for setting in SETTINGS {
        for contender in CONTENDERS {
            for metric in &measured.outcome(setting, contender).metrics {
                let Some(s) = metric.summary else { continue };
                text += &csv::record(&[
                    setting.memory.to_string(),
                    setting.connections.to_string(),
                    contender.title().to_owned(),
                    metric.metric.name.to_owned(),
                    s.mean.to_string(),
                    s.ci95.map(|sure| sure.to_string()).unwrap_or_default(),
                    s.min.to_string(),
                    s.max.to_string(),
                ]);
            }
        }
    }
    text
}

/// Every number, and the comparison, as a page.
pub fn markdown(measured: &Measured, runs: usize, seed: u64) -> String {
    let mut text = format!(
        "# Section 4.2's settings measured\n\n`anabranch lab reproduce sockbuf`, {runs} runs, seed {seed}. Written by the \
         program. Means with 95 % intervals; throughput is counted from when the single flows begin.\n"
    );
    for setting in SETTINGS {
        text += &format!("\n## {}\n\n| |", setting.title());
        for (_, title, _) in SHOWN {
            text += &format!(" {title} |");
        }
        text += &format!("\n|---|{}\n", "---|".repeat(SHOWN.len()));
        for contender in CONTENDERS {
            text += &format!("| {} |", contender.title());
            for (name, _, scale) in SHOWN {
                let found = measured.summary(setting, contender, name);
                text += &format!(" {} |", found.map_or("–".to_owned(), |s| shown(&s, scale)));
            }
            text.push('\n');
        }
    }
    text += "\n## Against ATBT as printed, paired by run\n\n\
             | setting | who | sent | received | striped gains, Mbit/s | singles lose, Mbit/s | peak within the memory |\n\
             |---|---|---|---|---|---|---|\n";
    for setting in SETTINGS {
        for contender in [Contender::Ours, Contender::Paper, Contender::AtbtOriginal] {
            text += &against(measured, setting, contender);
        }
    }
    text += &format!(
        "\n## By loss\n\nFour connections, 2 MB; losses come {} in a row on average. Received by the striped connection, \
         Mbit/s, its buffer, kB, and the gain over ATBT as printed.\n\n\
         | loss |",
        Config::default().burst
    );
    for contender in CONTENDERS {
        text += &format!(" {} | buffer |", contender.title());
    }
    text += &format!(" ours gains |\n|---|{}---|\n", "---|".repeat(2 * CONTENDERS.len()));
    for loss in measured.losses() {
        text += &format!("| {} % |", rounded(100.0 * loss));
        for contender in CONTENDERS {
            let outcome = measured.with_loss(loss, contender);
            for (name, scale) in [(RECEIVED, 1e-6), (BUFFER, 1e-3)] {
                let found = outcome.metric(name).summary;
                text += &format!(" {} |", found.map_or("–".to_owned(), |s| shown(&s, scale)));
            }
        }
        let [ours, atbt] = [Contender::Ours, Contender::Atbt].map(|c| measured.with_loss(loss, c));
        text += &format!(" {} |\n", percent(gain(ours, atbt, RECEIVED)));
    }
    text
}

fn against(measured: &Measured, setting: Setting, contender: Contender) -> String {
    let pair = (contender, Contender::Atbt);
    let mega = |name| {
        let found = measured.difference(setting, pair, name);
        found.map_or("–".to_owned(), |s| shown(&s, 1e-6))
    };
    let lost = measured.difference(setting, (pair.1, pair.0), SINGLE);
    let peak = measured.summary(setting, contender, PEAK);
    let within = peak.is_some_and(|s| s.max <= setting.memory as f64);
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        setting.title(),
        contender.title(),
        percent(measured.gain(setting, pair, SENT)),
        percent(measured.gain(setting, pair, RECEIVED)),
        mega(RECEIVED),
        lost.map_or("–".to_owned(), |s| shown(&s, 1e-6)),
        if within { "yes" } else { "no" }
    )
}

/// A number with as many digits as its size asks for.
pub(super) fn rounded(value: f64) -> String {
    format!("{value:.*}", digits(value))
}

fn digits(value: f64) -> usize {
    match value.abs() {
        large if large >= 100.0 => 0,
        large if large >= 10.0 => 1,
        large if large >= 1.0 => 2,
        _ => 3,
    }
}

/// A mean with its interval, in a unit.
pub(super) fn shown(summary: &Summary, scale: f64) -> String {
    let mean = summary.mean * scale;
    let digits = digits(mean);
    match summary.ci95 {
        Some(sure) => format!("{mean:.digits$} ± {:.digits$}", sure * scale),
        None => format!("{mean:.digits$}"),
    }
}

/// A share in per cent with its interval.
pub(super) fn percent(share: Option<Summary>) -> String {
    let Some(share) = share else { return "–".to_owned() };
    match share.ci95 {
        Some(sure) => format!("{:+.1} ± {:.1} %", 100.0 * share.mean, 100.0 * sure),
        None => format!("{:+.1} %", 100.0 * share.mean),
    }
}
