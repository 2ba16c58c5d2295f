//! Reproductions as one HTML page: no script, nothing that is loaded, the same octets for the same reproductions.
//!
//! Code map: `html` escapes, `paper` writes the section of a paper; this file is the page around them and says by which rules it
//! judges. Pictures are those of [`crate::plot`], whose colours the style sheet replaces on a dark ground.

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
    text += "<main>\n";
    text += &rules(reproductions);
    for reproduction in reproductions {
        text += &paper::section(reproduction);
    }
    text + "</main>\n</body>\n</html>\n"
}

/// The series' colours, which pictures have as attributes, by the page's own names for them.
fn colours() -> String {
    let each = plot::COLOURS.iter().enumerate().map(|(i, colour)| {
        format!(
            ".picture [stroke=\"{colour}\"] {{ stroke: var(--series-{i}); }}\n\
             .picture [fill=\"{colour}\"] {{ fill: var(--series-{i}); }}\n"
        )
    });
    each.collect()
}

fn header(reproductions: &[Reproduction]) -> String {
    let mut text = "<header>\n<h1>Anabranch: the papers, reproduced</h1>\n".to_owned();
    if let Some(first) = reproductions.first() {
        let extent = match first.options.extent {
            Extent::Full => "every point of the papers",
            Extent::Quick => "a quick look: few points and short runs, so that many intervals are wide",
        };
        text += &format!(
            "<p>Every published table and figure beside ours, and a verdict for every value and claim. Version {}, seed {}, {extent}. \
             Each paper says how many runs; intervals are two-sided, at 95 %.</p>\n",
            env!("CARGO_PKG_VERSION"),
            first.options.seed
        );
    }
    text += "<nav aria-label=\"Papers\">\n<div class=\"scroll\">\n<table class=\"tally\">\n<thead><tr><th scope=\"col\">paper</th>\
             <th scope=\"col\" class=\"number\">claims</th>";
    for holds in Holds::ALL {
        text += &format!("<th scope=\"col\" class=\"number\">{}</th>", badge(holds));
    }
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
    text + "</table>\n</div>\n</nav>\n</header>\n"
}

fn counts(verdicts: &[Verdict]) -> String {
    let cell = |n: usize| format!("<td class=\"number\">{n}</td>");
    cell(verdicts.len()) + &tally(verdicts).map(cell).concat()
}

/// The word with its sign, which tells kinds apart without colour.
fn badge(holds: Holds) -> String {
    let (class, sign) = match holds {
        Holds::Yes => ("yes", "✓"),
        Holds::Better => ("better", "▲"),
        Holds::Partly => ("partly", "◐"),
        Holds::No => ("no", "✗"),
        Holds::Contradicted => ("contradicted", "⚑"),
    };
    format!("<span class=\"badge {class}\"><span aria-hidden=\"true\">{sign}</span> {}</span>", holds.word())
}

/// Each kind of verdict with its rule.
const KINDS: [(Holds, &str); 5] = [
    (
        Holds::Yes,
        "Ours is within the tolerance of the printed number that the row names, or on its better side by no more than that or than \
         its own interval. Twice the tolerance does if the 95 % interval holds the printed number. A gain (by how much one scheme \
         is better than another) is confirmed if its interval reaches what is printed; a bound if ours keeps it; a claim in words if \
         everything that it says is so.",
    ),
    (
        Holds::Better,
        "Ours is better than printed in the direction that is better, by more than the tolerance and than its interval; of a gain: its \
         whole interval lies above. The numbers of protocols that a paper only compares with know no better side.",
    ),
    (
        Holds::Partly,
        "Off by up to twice the tolerance; a gain that is less than printed, but one beyond doubt; a claim of which a part is so.",
    ),
    (Holds::No, "Everything else, with the reason as far as we know it; and what cannot be measured."),
    (
        Holds::Contradicted,
        "The number or claim contradicts what else the paper prints; the erratum says how. Such a row also says what would become of \
         it by the reading that we take.",
    ),
];

fn rules(reproductions: &[Reproduction]) -> String {
    let mut text = "<section id=\"rules\">\n<h2>How to read it</h2>\n<dl>\n".to_owned();
    for (holds, rule) in KINDS {
        text += &format!("<dt>{}</dt><dd>{}</dd>\n", badge(holds), escaped(rule));
    }
    text += "</dl>\n<p>Tolerances are 10 % of the printed number unless a row says otherwise, which never are less than half a unit \
             of the last digit printed. A mean stands as mean ± half its interval, by Student's t over the runs; ratios of two schemes \
             are paired by run; deviations and other statistics that are no means have the jackknife's interval. A number without ± is \
             computed, or comes of one run, or is the same in all. In the column of differences, ours is set against the printed \
             number in per cent of it, or in points where it is per cent itself.</p>\n";
    if !reproductions.is_empty() {
        text += "<p>Beside this page lie, in a folder for each paper, the pictures as SVG, their data and all tables as CSV, and the \
                 verdicts as <code>verdicts.csv</code>. All of it again, octet by octet:</p>\n";
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
    if let Some(Options { extent, runs, seed }) = reproductions.first().map(|r| r.options) {
        text += if extent == Extent::Quick { " --quick" } else { "" };
        text += &runs.map(|runs| format!(" --runs {runs}")).unwrap_or_default();
        text += &format!(" --seed {seed}");
    }
    text
}

#[cfg(test)]
mod tests;
