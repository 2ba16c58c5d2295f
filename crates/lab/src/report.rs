//! Reproductions as one HTML page without scripts and external resources; equal reproductions give
//! equal bytes.
//!
//! Code map: `html` escapes text, `paper` writes the section of a paper; this file writes the page
//! around them, with the rules of the verdicts. Figures come from [`crate::plot`]; the style sheet
//! replaces their colours on a dark background.

mod html;
mod paper;

use crate::plot;
use crate::reproduction::{Extent, Options, Reproduction};
use crate::verdict::{Holds, Verdict, tally};
use html::escaped;

/// The page.
pub fn page(reproductions: &[Reproduction]) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Anabranch: the papers, reproduced</title>\n<style>\n{}{}</style>\n</head>\n<body>\n",
        include_str!("report/style.css"),
        colours()
    );
    text += &header(reproductions);
    text += &contents(reproductions);
    text += "<main>\n";
    text += &maps(reproductions);
    text += &rules(reproductions);
    for reproduction in reproductions {
        text += &paper::section(reproduction);
    }
    text + "</main>\n</body>\n</html>\n"
}

/// CSS rules that map the colours in figures to the page's own colours.
fn colours() -> String {
    let each = plot::COLOURS.iter().enumerate().map(|(i, colour)| {
        format!(
            ".picture [stroke=\"{colour}\"] {{ stroke: var(--series-{i}); }}\n\
             .picture [fill=\"{colour}\"] {{ fill: var(--series-{i}); }}\n"
        )
    });
    each.collect()
}

/// Table of contents, beside the page if there is space.
fn contents(reproductions: &[Reproduction]) -> String {
    let mut text = "<nav class=\"contents\" aria-label=\"Contents\">\n<ul>\n".to_owned();
    if reproductions.iter().any(|reproduction| reproduction.map.is_some()) {
        text += "<li><a href=\"#robustness\">Robustness</a></li>\n";
    }
    text += "<li><a href=\"#rules\">How to read it</a></li>\n";
    for Reproduction { paper, .. } in reproductions {
        let part =
            |(part, title): (&str, &str)| format!("<li><a href=\"#{}-{part}\">{title}</a></li>", paper.id);
        let parts = paper::PARTS.map(part).concat();
        text += &format!("<li><a href=\"#{0}\">{0}</a>\n<ul>{parts}</ul></li>\n", paper.id);
    }
    text + "</ul>\n</nav>\n"
}

/// Share of settings in which the claims hold: a figure for each paper for which it was measured.
fn maps(reproductions: &[Reproduction]) -> String {
    let one = |Reproduction { paper, map, .. }: &Reproduction| {
        let map = map.as_ref()?;
        Some(format!(
            "<details>\n<summary>{}</summary>\n{}</details>\n",
            escaped(paper.title),
            paper::picture(paper.id, map)
        ))
    };
    let all: Vec<String> = reproductions.iter().filter_map(one).collect();
    if all.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"robustness\">\n<h2>In how many settings the claims hold</h2>\n<p>Parameters that a paper leaves open were drawn many times. Each \
         bar is a claim: the share of the settings in which it is reproduced, with its 95 % interval, and the shares in which it holds in trend, and in \
         which it does not hold. Behind it are the parameters that affect its number most, with their shares of the variance.</p>\n{}</section>\n",
        all.concat()
    )
}

fn header(reproductions: &[Reproduction]) -> String {
    let mut text = "<header>\n<h1>Anabranch: the papers, reproduced</h1>\n".to_owned();
    if let Some(first) = reproductions.first() {
        let extent = match first.options.extent {
            Extent::Full => "every point of the papers",
            Extent::Quick => "a quick look: few points and short runs, so that many intervals are wide",
        };
        text += &format!(
            "<p>Every published table and figure beside ours, with a verdict for every value and claim. Version {}, seed {}, {extent}. \
             The verdicts are about the protocol as printed. Our own version stands beside it and changes no verdict. Each section \
             states its number of runs. Intervals are two-sided, at 95 %.</p>\n",
            env!("CARGO_PKG_VERSION"),
            first.options.seed
        );
    }
    text += "<ul class=\"sentences\">\n";
    for reproduction in reproductions {
        text += &format!("<li>{}</li>\n", sentence(reproduction));
    }
    text += "</ul>\n<div class=\"scroll\">\n<table class=\"tally\">\n<thead><tr><th scope=\"col\">paper</th>\
             <th scope=\"col\" class=\"number\">claims</th>";
    for holds in Holds::ALL {
        text += &format!("<th scope=\"col\" class=\"number\">{}</th>", badge(holds));
    }
    text += "<th scope=\"col\" class=\"number\">of these contradicted in print</th>";
    text += "</tr></thead>\n<tbody>\n";
    for reproduction in reproductions {
        let paper = reproduction.paper;
        text += &format!(
            "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th>{}</tr>\n",
            paper.id,
            escaped(paper.title),
            counts(&reproduction.verdicts)
        );
    }
    let all: Vec<Verdict> = reproductions.iter().flat_map(|r| r.verdicts.clone()).collect();
    text += &format!("</tbody>\n<tfoot><tr><th scope=\"row\">all</th>{}</tr></tfoot>\n", counts(&all));
    text + "</table>\n</div>\n</header>\n"
}

/// Summary of a paper in a sentence: results for its baselines, for its own protocol, and for its
/// claims in words.
fn sentence(reproduction: &Reproduction) -> String {
    let Reproduction { paper, verdicts, .. } = reproduction;
    let of = |is_of: &dyn Fn(&Verdict) -> bool, what: &str| {
        let all: Vec<&Verdict> = verdicts.iter().filter(|verdict| is_of(verdict)).collect();
        let yes = all.iter().filter(|verdict| verdict.holds == Holds::Yes).count();
        (!all.is_empty()).then(|| format!("{yes} of {} {what}", all.len()))
    };
    let is_baseline = |verdict: &Verdict| (paper.is_baseline)(&verdict.id);
    let baselines = of(&|v| v.printed.is_some() && is_baseline(v), "numbers of the baselines");
    let numbers = if baselines.is_some() { "other numbers" } else { "numbers" };
    let parts = [
        baselines,
        of(&|v| v.printed.is_some() && !is_baseline(v), numbers),
        of(&|v| v.printed.is_none(), "claims in words"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("<a href=\"#{0}\">{0}</a>: {1} are reproduced.", paper.id, parts.join(", "))
}

fn counts(verdicts: &[Verdict]) -> String {
    let cell = |n: usize| format!("<td class=\"number\">{n}</td>");
    let contradicted = verdicts.iter().filter(|v| v.contradicted).count();
    cell(verdicts.len()) + &tally(verdicts).map(cell).concat() + &cell(contradicted)
}

/// A verdict's word with its symbol, which distinguishes verdicts without colour.
fn badge(holds: Holds) -> String {
    marked(holds, holds.word())
}

/// A text with the symbol of a verdict.
fn marked(holds: Holds, text: &str) -> String {
    let (class, sign) = match holds {
        Holds::Yes => ("yes", "✓"),
        Holds::Trend => ("trend", "◐"),
        Holds::No => ("no", "✗"),
        Holds::Open => ("open", "?"),
    };
    format!("<span class=\"badge {class}\"><span aria-hidden=\"true\">{sign}</span> {}</span>", escaped(text))
}

/// Each kind of verdict with its rule.
const KINDS: [(Holds, &str); 4] = [
    (
        Holds::Yes,
        "The measured mean is within the row's tolerance of the printed number, and half its interval is at most the tolerance. For a \
         bound, the whole interval is on the right side of it. For a claim in words, every part holds. A gain that is above the printed \
         one by more than the tolerance is marked exceeded, and counts only if the row of its baseline is reproduced.",
    ),
    (
        Holds::Trend,
        "The number differs, but the proposed protocol is significantly better than the paper's baseline. For a claim in words, at \
         least half of the parts hold; their number is given.",
    ),
    (
        Holds::No,
        "The whole interval is outside the tolerance or beyond the bound. For a claim in words, fewer than half of the parts would hold \
         even if all open ones did. The reason is given if we know it.",
    ),
    (
        Holds::Open,
        "None of the others: the interval is too wide, or the mean is outside the tolerance and the interval reaches into it; or there \
         is one run or none that ended, or nothing measures the value. With few runs most rows are here.",
    ),
];

fn rules(reproductions: &[Reproduction]) -> String {
    let mut text = "<section id=\"rules\">\n<h2>How to read it</h2>\n<dl>\n".to_owned();
    for (holds, rule) in KINDS {
        text += &format!("<dt>{}</dt><dd>{}</dd>\n", badge(holds), escaped(rule));
    }
    text += "</dl>\n<p>With few exceptions, the tolerances are the same: a tenth of a printed mean; a quarter of a standard deviation, a \
             difference or a quotient of two numbers; one percentage point of a delivery ratio. A claim in words is split into parts: \
             ✓ holds, ✗ does not, ? is open. For a random part, a one-sided paired t-test over the runs shows whether a difference is above 0. \
             Holm&#39;s correction keeps the probability of any false success among all tests of a paper at 5 % or below. If \
             the test does not succeed, the part does not hold where its interval excludes a difference of 5 %, or the difference that \
             it states, and is open otherwise. Where a paper contradicts itself, the row is judged by the reading that the erratum \
             gives. These rows are counted too.</p>\n\
             <p>A mean is given as mean ± half its interval, by Student&#39;s t over the runs. Ratios of two schemes are paired by run. \
             Deviations and other statistics have the interval of the jackknife. A number without ± is computed, comes from one run, or \
             is the same in all runs.</p>\n";
    if !reproductions.is_empty() {
        text += "<p>The folder of this page has a folder for each paper, with the pictures as SVG, their data and all tables as CSV, and \
                 the verdicts as <code>verdicts.csv</code>. This command makes the same files again, byte for byte:</p>\n";
        text += &html::commands(&[command(reproductions)]);
    }
    text + "</section>\n"
}

/// The command that makes this page.
fn command(reproductions: &[Reproduction]) -> String {
    let mut text = "anabranch lab reproduce".to_owned();
    for reproduction in reproductions {
        text += &format!(" {}", reproduction.paper.id);
    }
    if reproductions.iter().any(|reproduction| reproduction.map.is_some()) {
        text += " --robustness DIR";
    }
    if let Some(Options { extent, runs, seed }) = reproductions.first().map(|r| r.options) {
        text += if extent == Extent::Quick { " --quick" } else { "" };
        text += &runs.map(|runs| format!(" --runs {runs}")).unwrap_or_default();
        text += &format!(" --seed {seed}");
    }
    text
}

#[cfg(test)]
mod tests;
