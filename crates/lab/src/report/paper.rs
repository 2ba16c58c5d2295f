//! The section of a paper.

use super::html::{commands, escaped, prose, table};
use super::{badge, marked};
use crate::errata::Erratum;
use crate::reproduction::{Figure, ParameterRow, Reproduction, Table};
use crate::targets::is_percent;
use crate::verdict::{self, Figure as Number, Holds, Verdict, number, tally};

/// Parts of the section, by the suffix of their identifiers.
pub(super) const PARTS: [(&str, &str); 5] = [
    ("verdicts", "Verdicts"),
    ("figures", "Figures"),
    ("tables", "Tables"),
    ("parameters", "Parameters"),
    ("errata", "Errata"),
];

pub(super) fn section(reproduction: &Reproduction) -> String {
    let Reproduction { paper, options, notes, tables, figures, verdicts, parameters, errata, .. } =
        reproduction;
    let id = paper.id;
    let mut text = format!(
        "<section id=\"{id}\" class=\"paper\">\n<h2>{}</h2>\n<p class=\"citation\">{}</p>\n<p>{}</p>\n",
        escaped(paper.title),
        escaped(paper.citation),
        escaped(paper.about)
    );
    text += &format!(
        "<p>{} runs of every random point, seed {}. What the paper leaves open and how we read it is in <code>{}</code>.</p>\n",
        options.runs_of(paper),
        options.seed,
        escaped(paper.page)
    );
    text += &commands(&[options.command(paper)]);
    for note in notes {
        text += &format!("<p>{}</p>\n", prose(note));
    }
    text += &format!("<h3 id=\"{id}-verdicts\">Verdicts</h3>\n<p class=\"counts\">");
    for (holds, count) in Holds::ALL.into_iter().zip(tally(verdicts)) {
        text += &format!("<span>{} {count}</span> ", badge(holds));
    }
    text += "</p>\n";
    text += &verdict_table(verdicts);
    text += &format!("<h3 id=\"{id}-figures\">Figures</h3>\n<div class=\"figures\">\n");
    text += &figures.iter().map(|figure| picture(id, figure)).collect::<String>();
    text += &format!("</div>\n<h3 id=\"{id}-tables\">Tables</h3>\n");
    text += &tables.iter().map(|table| numbers(id, table)).collect::<String>();
    text += &format!("<h3 id=\"{id}-parameters\">Parameters</h3>\n");
    text += &parameter_tables(parameters);
    text += &format!("<h3 id=\"{id}-errata\">Errata</h3>\n");
    text += &errata_list(errata);
    text + "</section>\n"
}

/// Claims in words need width, numbers need columns: each kind has its own table.
fn verdict_table(verdicts: &[Verdict]) -> String {
    let (numbers, words): (Vec<&Verdict>, Vec<&Verdict>) = verdicts.iter().partition(|v| v.printed.is_some());
    let mut text = String::new();
    if !words.is_empty() {
        text += &judged("claims", &["claim", "verdict", "parts"], &words, in_words);
    }
    if !numbers.is_empty() {
        let head = [
            "number",
            "verdict",
            "printed",
            "the paper's protocol",
            "difference",
            "ours",
            "ours above it",
            "remarks",
        ];
        text += &judged("verdicts", &head, &numbers, in_numbers);
    }
    text
}

fn judged(class: &str, head: &[&str], verdicts: &[&Verdict], row: fn(&Verdict) -> String) -> String {
    let mut text = format!("<div class=\"scroll\" tabindex=\"0\">\n<table class=\"{class}\">\n<thead><tr>");
    for title in head {
        let number =
            ["printed", "the paper's protocol", "difference", "ours", "ours above it"].contains(title);
        let class = if number { " class=\"number\"" } else { "" };
        text += &format!("<th scope=\"col\"{class}>{title}</th>");
    }
    text += "</tr></thead>\n<tbody>\n";
    text += &verdicts.iter().map(|verdict| row(verdict)).collect::<String>();
    text + "</tbody>\n</table>\n</div>\n"
}

/// Start of a row, with the verdict's cell.
fn begun(verdict: &Verdict) -> String {
    let mut said = marked(verdict.holds, &verdict.text());
    if verdict.contradicted {
        said += "<br><span class=\"small\">the paper contradicts itself here; judged by our reading</span>";
    }
    let claim =
        if verdict.claim.is_empty() { String::new() } else { format!("<br>{}", escaped(&verdict.claim)) };
    format!(
        "<tr id=\"{id}\"><th scope=\"row\"><code>{id}</code>{claim}<br><span class=\"small\">{}</span></th><td>{said}</td>",
        escaped(&verdict.section),
        id = escaped(&verdict.id),
    )
}

fn in_words(verdict: &Verdict) -> String {
    format!("{}<td>{}</td></tr>\n", begun(verdict), remarks(verdict))
}

fn in_numbers(verdict: &Verdict) -> String {
    let unit = escaped(&verdict.unit);
    let runs = |figure: &Number| match figure.runs {
        0 => "computed".to_owned(),
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    };
    let shown = |figure: Option<Number>| {
        figure.map_or("–".to_owned(), |figure| {
            format!("{} {unit}<br><span class=\"small\">{}</span>", figure.text(), runs(&figure))
        })
    };
    let ours = verdict.judged.ours;
    // Differences of percentages are in points.
    let points = if is_percent(&verdict.unit) { "points" } else { "%" };
    let above = ours.and_then(|ours| ours.change).map_or("–".to_owned(), |change| {
        let sign = if change.mean > 0.0 { "+" } else { "" };
        format!("{sign}{} {points}", change.text())
    });
    // The printed number with all its digits.
    let printed = verdict.printed.map_or("–".to_owned(), |value| format!("{value} {unit}"));
    let read = |by| format!("{printed}<br><span class=\"small\">read as {}</span>", number(by));
    let printed = verdict.judged.instead.map_or(printed.clone(), read);
    let cells = [
        printed,
        shown(verdict.judged.found()),
        escaped(&verdict.off().unwrap_or("–".to_owned())),
        shown(ours.map(|ours| ours.figure)),
        escaped(&above),
    ];
    let cells = cells.map(|cell| format!("<td class=\"number\">{cell}</td>")).concat();
    format!("{}{cells}<td>{}</td></tr>\n", begun(verdict), remarks(verdict))
}

fn remarks(verdict: &Verdict) -> String {
    let judged = &verdict.judged;
    let mut all = Vec::new();
    if !judged.measured.is_empty() {
        // The parts of a claim in words, one per line.
        all.push(judged.measured.split(verdict::PARTS).map(prose).collect::<Vec<_>>().join("<br>"));
    }
    match (judged.instead, judged.erratum) {
        (Some(instead), Some(erratum)) => {
            all.push(format!(
                "judged by {}, which follows from what else is printed ({})",
                number(instead),
                link(erratum)
            ));
        }
        (None, Some(erratum)) => all.push(link(erratum)),
        (_, None) => {}
    }
    if let Some(rule) = &verdict.rule {
        all.push(format!("<span class=\"small\">rule: {}</span>", escaped(rule)));
    }
    if let Some(why) = judged.why {
        all.push(format!("<strong>Why:</strong> {}", prose(why)));
    }
    all.join("<br>")
}

fn link(erratum: &str) -> String {
    format!("<a href=\"#erratum-{0}\">{0}</a>", escaped(erratum))
}

pub(super) fn picture(paper: &str, figure: &Figure) -> String {
    format!(
        "<figure id=\"{paper}-{name}\">\n<div class=\"scroll picture\" tabindex=\"0\">{}</div>\n<figcaption>{}. \
         <span class=\"small\"><code>{paper}/{name}.svg</code>, <code>{paper}/{name}.csv</code></span></figcaption>\n{}</figure>\n",
        figure.svg,
        escaped(&figure.caption),
        commands(std::slice::from_ref(&figure.command)),
        name = escaped(&figure.name),
    )
}

fn numbers(paper: &str, numbers: &Table) -> String {
    let Table { name, title, note, head, rows, command, .. } = numbers;
    let mut text = format!("<h4 id=\"{paper}-{0}\">{1}</h4>\n", escaped(name), escaped(title));
    if !note.is_empty() {
        text += &format!("<p>{}</p>\n", prose(note));
    }
    if !head.is_empty() {
        text += &table("numbers", head, rows);
    }
    text += &format!("<p class=\"small\"><code>{paper}/{}.csv</code></p>\n", escaped(name));
    text + &commands(std::slice::from_ref(command))
}

fn parameter_tables(parameters: &[ParameterRow]) -> String {
    let (printed, own): (Vec<_>, Vec<_>) = parameters.iter().partition(|p| !p.printed.is_empty());
    let cells = |p: &ParameterRow, is_printed: bool| {
        let mut row = vec![format!("`{}`", p.name)];
        row.extend(is_printed.then(|| p.printed.clone()));
        row.extend([p.ours.clone(), p.about.clone()]);
        row
    };
    let heads = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let mut text = "<h4>What the paper prints</h4>\n".to_owned();
    let rows: Vec<_> = printed.iter().map(|p| cells(p, true)).collect();
    text += &table("words", &heads(&["parameter", "printed", "what we take", "where"]), &rows);
    text += "<h4>The experiment's parameters with their defaults</h4>\n";
    let rows: Vec<_> = own.iter().map(|p| cells(p, false)).collect();
    text + &table("words", &heads(&["parameter", "default", "what it is"]), &rows)
}

fn errata_list(errata: &[Erratum]) -> String {
    let mut text = format!("<details>\n<summary>{} errata</summary>\n<dl class=\"errata\">\n", errata.len());
    for Erratum { id, kind, place, text: said, .. } in errata {
        text += &format!(
            "<dt id=\"erratum-{0}\">{0} <span class=\"small\">{1}</span> {2}</dt><dd>{3}</dd>\n",
            escaped(id),
            kind.word(),
            prose(place),
            prose(said)
        );
    }
    text + "</dl>\n</details>\n"
}
