//! Ticks, places, escapes, and a whole picture.

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
    assert_eq!(ticks(Scale::FromZero, &[0.0]), "-0.2 0 0.2");
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
    // Each series: six markers and one in the legend; 18 error bars of three strokes.
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
