//! The section of a paper.

use super::badge;
use super::html::{commands, escaped, prose, table};
use crate::errata::Erratum;
use crate::reproduction::{Figure, ParameterRow, Reproduction, Table};
use crate::verdict::{Figure as Number, Holds, Verdict, number, tally};

pub(super) fn section(reproduction: &Reproduction) -> String {
    let Reproduction { paper, options, notes, tables, figures, verdicts, parameters, errata } = reproduction;
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
    let parts = [
        ("verdicts", "Verdicts"),
        ("figures", "Figures"),
        ("tables", "Tables"),
        ("parameters", "Parameters"),
        ("errata", "Errata"),
    ];
    let links = parts.map(|(part, title)| format!("<li><a href=\"#{id}-{part}\">{title}</a></li>"));
    text += &format!("<ul class=\"parts\">{}</ul>\n", links.concat());
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

fn verdict_table(verdicts: &[Verdict]) -> String {
    let mut text = "<div class=\"scroll\" tabindex=\"0\">\n<table class=\"verdicts\">\n<thead><tr><th scope=\"col\">claim</th>\
                    <th scope=\"col\">verdict</th><th scope=\"col\" class=\"number\">printed</th>\
                    <th scope=\"col\" class=\"number\">ours</th><th scope=\"col\" class=\"number\">difference</th>\
                    <th scope=\"col\" class=\"number\">ratio</th><th scope=\"col\">where</th><th scope=\"col\">remarks</th>\
                    </tr></thead>\n<tbody>\n"
        .to_owned();
    for verdict in verdicts {
        text += &row(verdict);
    }
    text + "</tbody>\n</table>\n</div>\n"
}

fn row(verdict: &Verdict) -> String {
    let unit = escaped(&verdict.unit);
    // As it is printed, with all its digits.
    let printed = verdict.printed.map_or("–".to_owned(), |value| format!("{value} {unit}"));
    let runs = |ours: &Number| match ours.runs {
        0 => "computed".to_owned(),
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    };
    let ours = verdict.judged.ours.map_or("–".to_owned(), |ours| {
        format!("{} {unit}<br><span class=\"small\">{}</span>", ours.text(), runs(&ours))
    });
    let off = verdict.off().unwrap_or("–".to_owned());
    let ratio = verdict.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
    let mut judged = badge(verdict.holds);
    if verdict.holds == Holds::Contradicted {
        judged += &format!("<br><span class=\"small\">by our reading: {}</span>", verdict.reading.word());
    }
    format!(
        "<tr id=\"{id}\"><th scope=\"row\"><code>{id}</code>{claim}</th><td>{judged}</td><td class=\"number\">{printed}</td>\
         <td class=\"number\">{ours}</td><td class=\"number\">{}</td><td class=\"number\">{ratio}</td><td>{}</td><td>{}</td></tr>\n",
        escaped(&off),
        escaped(&verdict.section),
        remarks(verdict),
        id = escaped(&verdict.id),
        claim =
            if verdict.claim.is_empty() { String::new() } else { format!("<br>{}", escaped(&verdict.claim)) },
    )
}

fn remarks(verdict: &Verdict) -> String {
    let judged = &verdict.judged;
    let mut all = Vec::new();
    if !judged.measured.is_empty() {
        all.push(prose(&judged.measured));
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
    if let Some(rule) = &judged.rule {
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

fn picture(paper: &str, figure: &Figure) -> String {
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
    text += &table("words", &heads(&["parameter", "printed", "ours", "where"]), &rows);
    text += "<h4>The experiment's parameters with their defaults</h4>\n";
    let rows: Vec<_> = own.iter().map(|p| cells(p, false)).collect();
    text + &table("words", &heads(&["parameter", "default", "what it is"]), &rows)
}

fn errata_list(errata: &[Erratum]) -> String {
    let mut text = "<dl class=\"errata\">\n".to_owned();
    for Erratum { id, kind, place, text: said, .. } in errata {
        text += &format!(
            "<dt id=\"erratum-{0}\">{0} <span class=\"small\">{1}</span> {2}</dt><dd>{3}</dd>\n",
            escaped(id),
            kind.word(),
            prose(place),
            prose(said)
        );
    }
    text + "</dl>\n"
}
