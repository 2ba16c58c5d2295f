//! The numbers behind the figures, and the paired comparison with ATBT, as tables of the report.

use super::Sockbuf;
use super::settings::{
    BUFFER, CONTENDERS, Contender, Measured, Name, PEAK, RECEIVED, SENT, SETTINGS, SINGLE, Setting, gain,
};
use crate::experiment::Settings;
use crate::plot::csv;
use crate::reproduction;
use crate::stats::Summary;

/// Metrics of the tables: name, title, and factor of the unit.
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

/// All numbers as CSV.
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

/// Tables of each setting, of the comparison, and of the losses.
pub fn pages(measured: &Measured, command: impl Fn(&[&str]) -> String) -> Vec<reproduction::Table> {
    let mut pages: Vec<reproduction::Table> =
        SETTINGS.iter().map(|setting| numbers(measured, *setting, &command)).collect();
    pages.push(comparison(measured, command(&["memory=2MB,100MB", "connections=4,8"])));
    let losses: Vec<String> = measured.losses().iter().map(ToString::to_string).collect();
    let losses = format!("loss={}", losses.join(","));
    pages.push(by_loss(measured, command(&["memory=2MB", "connections=4", &losses])));
    pages
}

fn table(
    name: String,
    title: String,
    note: &str,
    (head, rows): (Vec<String>, Vec<Vec<String>>),
    command: String,
) -> reproduction::Table {
    let csv = [&head].into_iter().chain(&rows).map(|row| csv::record(row)).collect();
    reproduction::Table { name, title, note: note.to_owned(), head, rows, csv, command }
}

fn numbers(
    measured: &Measured,
    setting: Setting,
    command: &impl Fn(&[&str]) -> String,
) -> reproduction::Table {
    let head =
        ["who"].into_iter().chain(SHOWN.iter().map(|(_, title, _)| *title)).map(str::to_owned).collect();
    let row = |contender: Contender| {
        let of = |(name, _, scale): (Name, &str, f64)| {
            let found = measured.summary(setting, contender, name);
            found.map_or("–".to_owned(), |s| shown(&s, scale))
        };
        [contender.title().to_owned()].into_iter().chain(SHOWN.into_iter().map(of)).collect()
    };
    let megabytes = setting.memory / 1_000_000;
    let place = [format!("memory={megabytes}MB"), format!("connections={}", setting.connections)];
    table(
        format!("table-{}-connections-{megabytes}-MB", setting.connections),
        setting.title(),
        "Throughput is counted from when the single flows begin.",
        (head, CONTENDERS.map(row).to_vec()),
        command(&place.each_ref().map(String::as_str)),
    )
}

fn comparison(measured: &Measured, command: String) -> reproduction::Table {
    let head = [
        "setting",
        "who",
        "sent",
        "received",
        "striped gains, Mbit/s",
        "singles lose, Mbit/s",
        "peak within the memory",
    ];
    let contenders = [Contender::Ours, Contender::Paper, Contender::AtbtOriginal];
    let rows = SETTINGS.iter().flat_map(|s| contenders.map(|c| against(measured, *s, c))).collect();
    table(
        "table-against-atbt".to_owned(),
        "Against ATBT as printed, paired by run".to_owned(),
        "",
        (head.map(str::to_owned).to_vec(), rows),
        command,
    )
}

fn by_loss(measured: &Measured, command: String) -> reproduction::Table {
    let mut head = vec!["loss".to_owned()];
    for contender in CONTENDERS {
        head.extend(["received, Mbit/s", "buffer, kB"].map(|what| format!("{}: {what}", contender.title())));
    }
    head.push("ours gains on ATBT".to_owned());
    let row = |loss: f64| {
        let mut cells = vec![format!("{} %", rounded(100.0 * loss))];
        for contender in CONTENDERS {
            let outcome = measured.with_loss(loss, contender);
            for (name, scale) in [(RECEIVED, 1e-6), (BUFFER, 1e-3)] {
                let found = outcome.metric(name).summary;
                cells.push(found.map_or("–".to_owned(), |s| shown(&s, scale)));
            }
        }
        let [ours, atbt] = [Contender::Ours, Contender::Atbt].map(|c| measured.with_loss(loss, c));
        cells.push(percent(gain(ours, atbt, RECEIVED)));
        cells
    };
    let defaults = Settings::defaults(&Sockbuf);
    let note = format!("Losses come {} in a row on average.", defaults.text("burst"));
    table(
        "table-by-loss".to_owned(),
        "By loss: four connections, 2 MB".to_owned(),
        &note,
        (head, measured.losses().into_iter().map(row).collect()),
        command,
    )
}

fn against(measured: &Measured, setting: Setting, contender: Contender) -> Vec<String> {
    let pair = (contender, Contender::Atbt);
    let mega = |found: Option<Summary>| found.map_or("–".to_owned(), |s| shown(&s, 1e-6));
    let peak = measured.summary(setting, contender, PEAK);
    let within = peak.is_some_and(|s| s.max <= setting.memory as f64);
    vec![
        setting.title(),
        contender.title().to_owned(),
        percent(measured.gain(setting, pair, SENT)),
        percent(measured.gain(setting, pair, RECEIVED)),
        mega(measured.difference(setting, pair, RECEIVED)),
        mega(measured.difference(setting, (pair.1, pair.0), SINGLE)),
        if within { "yes" } else { "no" }.to_owned(),
    ]
}

/// A number with digits that suit its size.
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
