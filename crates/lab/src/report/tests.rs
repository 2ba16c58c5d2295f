//! Tests of the page: its contents, and that it needs no other file.

use super::html::{escaped, is_number, prose, table};
use super::*;
use crate::reproduction::{Figure, Table};
use crate::verdict::{Judged, Part, Tolerance, judge};

#[test]
fn what_html_would_understand_is_escaped() {
    assert_eq!(escaped("<b> & \"x\" 'y'\u{7}"), "&lt;b&gt; &amp; &quot;x&quot; &#39;y&#39; ");
    assert_eq!(prose("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
    assert_eq!(prose("an odd ` & one"), "an odd ` &amp; one");
    assert_eq!(prose("`x` and `y"), "<code>x</code> and `y");
    let cell = vec![vec!["<i>".to_owned(), "5 ± 2".to_owned()]];
    let html = table("numbers", &["a&b".to_owned(), "n".to_owned()], &cell);
    assert!(html.contains("<th scope=\"row\">&lt;i&gt;</th><td class=\"number\">5 ± 2</td>"), "{html}");
    assert!(html.contains("a&amp;b"), "{html}");
}

#[test]
fn numbers_stand_to_the_right() {
    for cell in ["5", "-5.2 ± 3", "+1 %", "–", ""] {
        assert!(is_number(cell), "{cell}");
    }
    for cell in ["none", "PID, ours", "yes"] {
        assert!(!is_number(cell), "{cell}");
    }
}

/// A paper with one element of each kind, and text that must be escaped.
fn reproduction() -> Reproduction {
    let target = crate::dtc::reproduction::PAPER.targets().swap_remove(3);
    let figure = |mean| crate::verdict::Figure { mean, ci95: Some(12.0), runs: 30 };
    let judged = Judged::number(Some(figure(9999.0)), Tolerance::Own(1.0)).because("another <cause>");
    let judged = judged.beside(Some(figure(8888.0)), Some(crate::verdict::Figure::computed(-11.0)));
    let words = crate::targets::Target::own("dtc.own".to_owned(), "here", "a <claim>");
    let parts = Judged::parts(vec![Part::fact("one <thing>", true), Part::fact("another", false)]);
    let chart = crate::plot::Chart {
        title: "Figure <1>".to_owned(),
        x: crate::plot::Axis::new("Loss", "%"),
        y: crate::plot::Axis::new("Transmissions", "packets"),
        series: vec![crate::plot::Series {
            name: "a & b".to_owned(),
            points: vec![crate::plot::Point { x: 1.0, y: 2.0, ci95: None }],
            look: crate::plot::Look::Marked,
        }],
    };
    let options = Options { extent: Extent::Quick, runs: Some(3), seed: 9 };
    let map = Figure {
        name: "robustness".to_owned(),
        caption: "How far the <claims> hold".to_owned(),
        svg: crate::plot::shares::svg("dtc <200>", &["reproduced"], &[]),
        csv: "id\n".to_owned(),
        command: "anabranch lab robustness dtc --settings 200".to_owned(),
    };
    Reproduction {
        paper: &crate::dtc::reproduction::PAPER,
        map: Some(map),
        options,
        notes: vec!["Beware of `<script>`.".to_owned()],
        tables: vec![Table {
            name: "table-1".to_owned(),
            title: "A <table>".to_owned(),
            note: String::new(),
            head: vec!["row".to_owned(), "ours".to_owned()],
            rows: vec![vec!["x".to_owned(), "1 ± 2".to_owned()]],
            csv: "row,ours\n".to_owned(),
            command: "anabranch lab run dtc --set hops=6".to_owned(),
        }],
        figures: vec![Figure {
            name: "figure-1".to_owned(),
            caption: chart.title.clone(),
            svg: chart.svg().expect("a picture"),
            csv: chart.csv(),
            command: "anabranch lab run dtc".to_owned(),
        }],
        verdicts: judge(vec![(target, judged), (words, parts)]),
        parameters: crate::reproduction::parameters(
            &crate::dtc::Dtc,
            &crate::dtc::reproduction::PAPER.targets(),
            |_| "ours",
        ),
        errata: crate::dtc::reproduction::PAPER.errata(),
    }
}

#[test]
fn the_page_has_everything_of_a_paper_and_loads_nothing() {
    let page = page(&[reproduction()]);
    for wanted in [
        "Distributed TCP Caching",
        "id=\"dtc.nodtc_data_tx.n6.p15\"",
        "7307 packets",
        "9999 ± 12 packets",
        "30 runs",
        "+36.8 %",
        "8888 ± 12 packets",
        "-11 %",
        "in trend only: 1 of 2",
        "✓ one &lt;thing&gt;<br>✗ another",
        "not reproduced",
        "another &lt;cause&gt;",
        "anabranch lab reproduce dtc --quick --runs 3 --seed 9",
        "anabranch lab run dtc --set hops=6",
        "<code>&lt;script&gt;</code>",
        "id=\"erratum-D18\"",
        "prefers-color-scheme: dark",
        "@media print",
        "Loss (%)",
        "0 of 1 numbers of the baselines, 0 of 1 claims in words are reproduced.",
        "href=\"#robustness\"",
        "href=\"#dtc-figures\"",
        "How far the &lt;claims&gt; hold",
        "anabranch lab robustness dtc --settings 200",
        "anabranch lab reproduce dtc --robustness DIR --quick --runs 3 --seed 9",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    let without = super::page(&[Reproduction { map: None, ..reproduction() }]);
    assert!(
        !without.contains("#robustness") && !without.contains("settings"),
        "nothing is said of what was not measured"
    );
    // The SVG namespace is a name, not an address that is loaded.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for foreign in ["http:", "https:", "<script", "<link", "@import", "url(", " src=", "NaN"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn every_colour_of_the_pictures_has_one_on_a_dark_ground() {
    let style = include_str!("style.css");
    for i in 0..plot::COLOURS.len() {
        assert_eq!(style.matches(&format!("--series-{i}:")).count(), 3, "light, dark and print");
    }
    assert!(colours().contains(".picture [fill=\"#0072b2\"] { fill: var(--series-0); }"));
}

#[test]
fn elements_are_closed_and_names_come_once() {
    let page = page(&[reproduction()]);
    for element in [
        "section", "table", "figure", "div", "dl", "tr", "td", "th", "p", "h3", "span", "code", "svg", "ul",
        "li", "details", "summary", "nav", "header",
    ] {
        let opened =
            page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    ids.sort_unstable();
    let twice: Vec<_> = ids.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&link), "{link} leads nowhere");
    }
}

#[test]
fn files_are_named_after_what_is_in_them() {
    let names: Vec<String> = reproduction().files().into_iter().map(|(name, _)| name).collect();
    let expected =
        ["figure-1.svg", "figure-1.csv", "robustness.svg", "robustness.csv", "table-1.csv", "verdicts.csv"];
    assert_eq!(names, expected);
}
