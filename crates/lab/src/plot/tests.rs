//! Tests of ticks, positions, escaping, and a whole picture.

use super::axis::{Placed, label};
use super::*;

fn point(x: f64, y: f64, ci95: f64) -> Point {
    Point { x, y, ci95: Some(ci95) }
}

fn chart() -> Chart {
    Chart {
        title: "Effect of the node's buffer, 129 kB".into(),
        x: Axis::new("Receive buffer", "kB"),
        y: Axis::new("Latency", "s").scaled(Scale::FromZero),
        series: (1..=3)
            .map(|n| Series {
                name: format!("SET, {n} gateways"),
                points: (1..=6)
                    .map(|i| {
                        let x = f64::from(i * 8);
                        point(x, (4.0 + 40.0 / x) / f64::from(n), 0.3 / f64::from(n))
                    })
                    .collect(),
                look: Look::Marked,
            })
            .collect(),
    }
}

fn ticks(scale: Scale, values: &[f64]) -> String {
    let placed = Placed::new(scale, values, &[]);
    placed.ticks().iter().map(|&tick| label(tick)).collect::<Vec<_>>().join(" ")
}

#[test]
fn ticks_are_round_and_enclose_the_data() {
    assert_eq!(ticks(Scale::Linear, &[0.0, 1.0]), "0 0.2 0.4 0.6 0.8 1");
    assert_eq!(ticks(Scale::Linear, &[3.0, 17.0]), "2 4 6 8 10 12 14 16 18");
    assert_eq!(ticks(Scale::FromZero, &[0.62, 0.67]), "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7");
    assert_eq!(ticks(Scale::Linear, &[-3e-3, 4e-3]), "-0.003 -0.002 -0.001 0 0.001 0.002 0.003 0.004");
    assert_eq!(ticks(Scale::Linear, &[5.0]), "4 5 6");
    assert_eq!(ticks(Scale::FromZero, &[0.0]), "0 0.2 0.4 0.6 0.8 1");
    assert_eq!(ticks(Scale::Linear, &[0.0, 2e6]), "0 500000 1e6 1.5e6 2e6");
}

#[test]
fn logarithmic_ticks() {
    assert_eq!(ticks(Scale::Log, &[56.0, 256.0]), "50 100 200 500");
    assert_eq!(ticks(Scale::Log, &[0.001, 1.0]), "0.001 0.01 0.1 1");
    assert_eq!(ticks(Scale::Log, &[10.0]), "10 20 50 100");
    assert_eq!(ticks(Scale::Log, &[1.0, 100.0]), "1 2 5 10 20 50 100");
    let placed = Placed::new(Scale::Log, &[1.0, 100.0], &[]);
    assert!((placed.place(10.0) - 0.5).abs() < 1e-12);
    assert_eq!(placed.place(-1.0), 0.0);
}

#[test]
fn ticks_can_be_given() {
    for scale in [Scale::Linear, Scale::Log] {
        let placed = Placed::new(scale, &[56.0, 256.0], &[56.0, 128.0, 256.0]);
        assert_eq!(placed.ticks(), [56.0, 128.0, 256.0]);
        assert!(placed.place(56.0) > 0.0 && placed.place(56.0) < 0.06);
        assert!(placed.place(256.0) < 1.0 && placed.place(256.0) > 0.94);
    }
    let from_zero = Placed::new(Scale::FromZero, &[1.0, 3.0], &[1.0, 2.0, 3.0]);
    assert_eq!(from_zero.place(0.0), 0.0);
    assert!(from_zero.place(3.0) > 0.94);
    assert_eq!(Placed::new(Scale::FromZero, &[-3.0, -1.0], &[-3.0, 0.0]).place(0.0), 1.0);
    assert!(Placed::new(Scale::FromZero, &[0.0], &[0.0]).place(0.0).is_finite());
    assert!(Placed::new(Scale::Log, &[5.0], &[5.0]).place(5.0) == 0.5);
}

#[test]
fn the_same_chart_is_the_same_bytes() {
    assert_eq!(chart().svg(), chart().svg());
}

#[test]
fn the_picture_holds_what_was_asked_for() {
    let svg = chart().svg().expect("a chart");
    assert_eq!(svg.matches("<path ").count(), 3);
    // Each series has six markers and one in the legend; 18 error bars have three lines each.
    assert_eq!(svg.matches("<circle ").count(), 7);
    assert_eq!(svg.matches("<polygon ").count(), 14);
    assert_eq!(svg.matches(r#"stroke-width="1.2""#).count(), 54);
    for words in
        ["Effect of the node's buffer, 129 kB", "Receive buffer (kB)", "Latency (s)", "SET, 3 gateways"]
    {
        assert!(svg.contains(&format!(">{words}</text>")), "{words}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn text_is_escaped() {
    let mut chart = chart();
    chart.title = "a < b & \"c\"\u{7}".into();
    let svg = chart.svg().expect("a chart");
    assert!(svg.contains("<title>a &lt; b &amp; &quot;c&quot; </title>"));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let title = chart().title;
    let empty = Chart { series: vec![], ..chart() };
    assert_eq!(empty.svg(), Err(ChartError::Empty { title: title.clone() }));
    let many = Chart { series: vec![chart().series[0].clone(); 8], ..chart() };
    assert_eq!(many.svg(), Err(ChartError::TooManySeries { title, series: 8 }));
    for (x, y, ci95) in
        [(f64::NAN, 1.0, 0.0), (1.0, f64::INFINITY, 0.0), (1.0, 1.0, f64::NAN), (1.0, 1.0, -1.0)]
    {
        let mut bad = chart();
        bad.series[1].points[2] = point(x, y, ci95);
        let refusal = ChartError::Unplaceable { series: "SET, 2 gateways".into(), point: 2 };
        assert_eq!(bad.svg(), Err(refusal));
    }
    let mut zero = Chart { y: chart().y.scaled(Scale::Log), ..chart() };
    assert!(zero.svg().is_ok());
    zero.series[0].points[0].y = 0.0;
    assert!(zero.svg().is_err());
}

#[test]
fn csv_has_a_header_and_quotes_what_needs_it() {
    let text = chart().csv();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("series,Receive buffer (kB),Latency (s),ci95"));
    assert_eq!(lines.next(), Some("\"SET, 1 gateways\",8,9,0.3"));
    assert_eq!(lines.count(), 17);
    assert_eq!(csv::record(&["a\"b", "c\nd", "e"]), "\"a\"\"b\",\"c\nd\",e\n");
}

fn map() -> map::Map {
    let place = |name: &str, x, y| map::Place { name: name.into(), x, y };
    map::Map {
        title: "Four nodes".into(),
        x: Axis::new("x", "m"),
        y: Axis::new("y", "m"),
        lines: vec![map::Lines {
            name: "hops".into(),
            stroke: map::Stroke::Strong,
            ends: vec![[(0.0, 0.0), (100.0, 50.0)]],
        }],
        groups: vec![
            map::Group { name: "centre".into(), places: vec![place("0", 0.0, 0.0)] },
            map::Group {
                name: "nodes".into(),
                places: vec![place("1", 100.0, 50.0), place("2", 40.0, 10.0), place("3", 41.0, 10.0)],
            },
        ],
    }
}

#[test]
fn a_map_has_one_scale_and_names_that_cover_nothing() {
    let svg = map().svg().expect("a map");
    // Twice as wide as high: 520 by 260 pixels.
    assert!(svg.contains(r#"height="362""#), "{svg}");
    // One circle and one in the legend; three squares and one in the legend.
    assert_eq!((svg.matches("<circle ").count(), svg.matches("<polygon ").count()), (2, 4));
    assert_eq!(svg.matches("paint-order").count(), 4);
    for words in ["Four nodes", "x (m)", "y (m)", "hops", "nodes"] {
        assert!(svg.contains(&format!(">{words}</text>")), "{words}");
    }
    // The centre is in the corner; its name is clear of both axes, above and to the right.
    let (x, y) = (46.0 + 2.0 * 7.2, 44.0 + 260.0);
    let name = svg.lines().find(|line| line.ends_with(">0</text>") && line.contains("paint-order"));
    let number = |key: &str| -> f64 {
        let rest = name.expect("the centre's name").split_once(key).expect("a place").1;
        rest.split('"').next().and_then(|n| n.parse().ok()).expect("a number")
    };
    assert!(number(" x=\"") > x && number(" y=\"") < y, "{name:?}");
    // Names of places at the same position do not all have space.
    let mut crowd = map();
    crowd.groups[1].places = vec![crowd.groups[1].places[0].clone(); 20];
    let names = crowd.svg().expect("a map").matches("paint-order").count();
    assert!((2..20).contains(&names), "{names}");
}

#[test]
fn a_map_is_a_table_too_and_refuses_what_has_no_place() {
    expect_test::expect![[r#"
        kind,name,x (m),y (m),to x (m),to y (m)
        centre,0,0,0,,
        nodes,1,100,50,,
        nodes,2,40,10,,
        nodes,3,41,10,,
        hops,,0,0,100,50
    "#]]
    .assert_eq(&map().csv());
    let bad = |change: fn(&mut map::Map)| {
        let mut map = map();
        change(&mut map);
        map.svg().expect_err("it cannot be drawn")
    };
    assert_eq!(bad(|m| m.groups.clear()), ChartError::Empty { title: "Four nodes".into() });
    let nowhere = |series: &str, point| ChartError::Unplaceable { series: series.into(), point };
    assert_eq!(bad(|m| m.groups[1].places[2].y = f64::NAN), nowhere("nodes", 2));
    assert_eq!(bad(|m| m.lines[0].ends[0][1].0 = f64::INFINITY), nowhere("hops", 0));
    let many = bad(|m| m.groups = vec![m.groups[0].clone(); 8]);
    assert_eq!(many, ChartError::TooManySeries { title: "Four nodes".into(), series: 8 });
}

#[test]
fn lines_without_markers_share_colours() {
    let mut pairs = chart();
    let one = pairs.series[0].clone();
    pairs.series = (0..10)
        .map(|i| Series {
            look: Look::Line { colour: i / 2, dash: if i % 2 == 0 { Dash::Solid } else { Dash::Dashed } },
            ..one.clone()
        })
        .collect();
    let svg = pairs.svg().expect("more lines than there are markers");
    assert_eq!((svg.matches("<circle ").count(), svg.matches("<polygon ").count()), (0, 0));
    // Each dashed line, and its sample in the legend.
    assert_eq!(svg.matches("stroke-dasharray=\"7 3\"").count(), 10);
    assert_eq!(svg.matches(r##"fill="none" stroke="#0072b2""##).count(), 2);
}

#[test]
fn a_bar_past_zero_ends_at_zero_where_nothing_is_less() {
    let mut few = chart();
    few.series[0].points[0].ci95 = Some(50.0);
    let negative = |chart: &Chart| chart.svg().expect("it can be drawn").contains(">-");
    assert!(!negative(&few), "a latency is not negative");
    few.series[0].points[0].y = -1.0;
    assert!(negative(&few));
}
