use super::*;

const AREA: Area = Area { corner: Position { x: -100.0, y: 50.0 }, width: 1500.0, height: 300.0 };

fn stream(name: &str) -> Stream {
    Stream::new(11, 0, name, "mobility")
}

fn after(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn waypoint(slowest: f64, fastest: f64, pause: u64) -> RandomWaypoint {
    RandomWaypoint { area: AREA, slowest, fastest, pause: Duration::from_secs(pause) }
}

fn movers(motion: &Motion, count: usize) -> Vec<Mover> {
    (0..count).map(|i| Mover::new(motion, None, stream(&format!("node {i}")))).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn distances_in_rectangles_are_those_of_the_literature() {
    let of = |width, height| Area { corner: Position::default(), width, height }.mean_distance();
    // (2 + sqrt 2 + 5 ln(1 + sqrt 2)) / 15 for the unit square.
    assert!((of(1.0, 1.0) - 0.521_405_433_164_720_7).abs() < 1e-12);
    // A line: a third of its length.
    assert!((of(3000.0, 0.01) / 1000.0 - 1.0).abs() < 1e-4);
    let mut random = stream("pairs");
    let drawn = mean((0..200_000).map(|_| AREA.draw(&mut random).distance(AREA.draw(&mut random))));
    assert!((drawn / AREA.mean_distance() - 1.0).abs() < 0.005, "{drawn} {}", AREA.mean_distance());
}

#[test]
fn a_leg_is_walked_at_its_speed() {
    let leg = Leg::at_speed(Position::new(0.0, 0.0), Position::new(30.0, 40.0), after(2.0), 5.0);
    assert_eq!((leg.end, leg.speed()), (after(12.0), 5.0));
    assert_eq!(leg.place(after(7.0)), Position::new(15.0, 20.0));
    assert_eq!(leg.place(after(12.0)), Position::new(30.0, 40.0));
    assert_eq!(leg.place(after(99.0)), Position::new(30.0, 40.0));
}

#[test]
fn random_waypoint_is_stationary_from_its_start() {
    // Navidi and Camp: the density of the speed of moving stations falls as 1/v, so its mean is
    // `(b - a) / ln(b / a)`. The fraction of pausing stations is the mean pause over the mean
    // cycle.
    let plan = waypoint(1.0, 20.0, 30);
    let motion = Motion::RandomWaypoint(plan);
    let cycle = AREA.mean_distance() * (20.0f64.ln() / 19.0);
    let (pauses, speed) = (30.0 / (30.0 + cycle), 19.0 / 20.0f64.ln());
    assert!((plan.pauses() - pauses).abs() < 1e-12);
    let mut movers = movers(&motion, 4000);
    for seconds in [0.0, 10.0, 500.0, 5000.0] {
        let legs: Vec<Leg> = movers.iter_mut().map(|mover| mover.leg_at(after(seconds))).collect();
        let resting = mean(legs.iter().map(|leg| f64::from(u8::from(leg.from == leg.to))));
        let moving = mean(legs.iter().filter(|leg| leg.from != leg.to).map(Leg::speed));
        assert!((resting - pauses).abs() < 0.025, "{resting} pause at {seconds} s, not {pauses}");
        assert!((moving / speed - 1.0).abs() < 0.05, "{moving} m/s at {seconds} s, not {speed}");
    }
}

#[test]
fn from_even_places_random_waypoint_slows_down() {
    // Uniform positions and speeds are not stationary: the mean speed is 10.5 m/s at first, and
    // 6.34 m/s in the end.
    let motion = Motion::RandomWaypoint(waypoint(1.0, 20.0, 0));
    let mut random = stream("places");
    let start = |i| Mover::new(&motion, Some(AREA.draw(&mut random)), stream(&format!("node {i}")));
    let mut movers: Vec<Mover> = (0..4000).map(start).collect();
    let mut speed = |seconds| mean(movers.iter_mut().map(|mover| mover.leg_at(after(seconds)).speed()));
    assert!((speed(0.0) / 10.5 - 1.0).abs() < 0.03);
    assert!((speed(5000.0) / (19.0 / 20.0f64.ln()) - 1.0).abs() < 0.05);
}

#[test]
fn with_a_least_speed_of_0_the_mean_speed_goes_to_0() {
    let motion = Motion::RandomWaypoint(waypoint(0.0, 20.0, 0));
    let mut movers: Vec<Mover> =
        (0..2000).map(|i| Mover::new(&motion, Some(AREA.corner), stream(&format!("node {i}")))).collect();
    let mut speed = |seconds| mean(movers.iter_mut().map(|mover| mover.leg_at(after(seconds)).speed()));
    let speeds = [0.0, 100.0, 1000.0, 10_000.0].map(&mut speed);
    // Yoon, Liu and Noble: it halves long before 1000 s, and continues to fall.
    assert!((speeds[0] / 10.0 - 1.0).abs() < 0.05, "{speeds:?}");
    assert!(speeds.windows(2).all(|pair| pair[1] < 0.85 * pair[0]), "{speeds:?}");
    assert!(speeds[2] < 5.0, "{speeds:?}");
}

/// Fractions of the movers in the middle strip and in the outer strips of a rectangle, each a fifth
/// of its width and of full height.
fn strips(movers: &mut [Mover], times: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let mut counts = [0.0; 2];
    let mut all = 0.0;
    for seconds in times {
        for mover in movers.iter_mut() {
            let across = (mover.place(after(seconds)).x - AREA.corner.x) / AREA.width;
            assert!((0.0..=1.0).contains(&across));
            counts[0] += f64::from(u8::from((0.4..0.6).contains(&across)));
            counts[1] += f64::from(u8::from(!(0.1..0.9).contains(&across)));
            all += 1.0;
        }
    }
    counts.map(|count| count / all)
}

#[test]
fn nodes_are_denser_in_the_middle() {
    // On a line of length 1 the density without pause is 6 x (1 - x) (Bettstetter, Resta, Santi
    // 2003, theorem 1): 0.296 in the middle fifth, and 0.056 in the two outer tenths. With pause it
    // is a mixture with the uniform density.
    let line = Area { height: 0.01, ..AREA };
    for pause in [0, 200] {
        let plan = RandomWaypoint { area: line, ..waypoint(5.0, 15.0, pause) };
        let mut movers = movers(&Motion::RandomWaypoint(plan), 1000);
        let [middle, outer] = strips(&mut movers, (0..60).map(|i| 100.0 * f64::from(i)));
        let mixed = |moving: f64, even: f64| (1.0 - plan.pauses()) * moving + plan.pauses() * even;
        let (expected_middle, expected_outer) = (mixed(0.296, 0.2), mixed(0.056, 0.2));
        assert!((middle - expected_middle).abs() < 0.008, "{middle} not {expected_middle}");
        assert!((outer - expected_outer).abs() < 0.008, "{outer} not {expected_outer}");
    }
}

#[test]
fn gauss_markov_is_autoregressive() {
    // Far from all edges, speeds have the mean and the standard deviation from the start, and a
    // correlation of memory^k after k steps.
    let wide = Area { corner: Position::new(-5e6, -5e6), width: 1e7, height: 1e7 };
    let plan = GaussMarkov {
        area: wide,
        speed: 8.0,
        deviation: 1.5,
        turn: 0.4,
        memory: 0.8,
        interval: Duration::from_secs(2),
    };
    let motion = Motion::GaussMarkov(plan);
    let starts = |i| Mover::new(&motion, Some(Position::default()), stream(&format!("node {i}")));
    let speeds: Vec<Vec<f64>> = (0..3000)
        .map(|i| {
            let mut mover = starts(i);
            (0..10).map(|k| mover.leg_at(after(2.0 * f64::from(k))).speed()).collect()
        })
        .collect();
    for k in [0, 3, 9] {
        let at_k = mean(speeds.iter().map(|all| all[k]));
        let deviation = mean(speeds.iter().map(|all| (all[k] - at_k) * (all[k] - at_k))).sqrt();
        assert!((at_k - 8.0).abs() < 0.1 && (deviation - 1.5).abs() < 0.07, "{at_k} {deviation}");
        let together = mean(speeds.iter().map(|all| (all[0] - 8.0) * (all[k] - 8.0))) / (1.5 * 1.5);
        assert!((together - 0.8f64.powi(k as i32)).abs() < 0.07, "{together} after {k}");
    }
    // Directions keep close to the mean one, which is drawn uniformly: the mean position of all
    // stays at the origin, but each one gets far away.
    let mut ends: Vec<Position> = Vec::new();
    for i in 0..3000 {
        ends.push(starts(i).place(after(2000.0)));
    }
    let (x, y) = (mean(ends.iter().map(|p| p.x)), mean(ends.iter().map(|p| p.y)));
    assert!(x.abs() < 1000.0 && y.abs() < 1000.0, "{x} {y}");
    // E cos of a normal deviate of 0.4 is exp(-0.08).
    let far = mean(ends.iter().map(|p| p.distance(Position::default())));
    assert!((far / (8.0 * 2000.0 * (-0.08f64).exp()) - 1.0).abs() < 0.02, "{far}");
}

#[test]
fn gauss_markov_stays_inside_and_leaves_the_edges() {
    for memory in [0.0, 0.5, 0.95, 1.0] {
        let plan = GaussMarkov {
            area: AREA,
            speed: 10.0,
            deviation: 2.0,
            turn: 0.5,
            memory,
            interval: Duration::from_millis(700),
        };
        let mut movers = movers(&Motion::GaussMarkov(plan), 200);
        let [middle, outer] = strips(&mut movers, (1..200).map(|i| 37.0 * f64::from(i)));
        assert!(
            middle > 0.1 && outer < 0.35,
            "memory {memory}: {middle} in the middle, {outer} at the edges"
        );
        for mover in &mut movers {
            let Position { y, .. } = mover.place(after(8000.0));
            assert!((50.0..=350.0).contains(&y));
        }
    }
}

#[test]
fn movement_is_continuous_and_as_fast_as_it_says() {
    let gauss_markov = GaussMarkov {
        area: AREA,
        speed: 5.0,
        deviation: 1.0,
        turn: 0.5,
        memory: 0.7,
        interval: Duration::from_secs(1),
    };
    for motion in [Motion::RandomWaypoint(waypoint(1.0, 20.0, 2)), Motion::GaussMarkov(gauss_markov)] {
        let mut mover = Mover::new(&motion, None, stream("one"));
        let mut last = mover.place(Instant::ZERO);
        for i in 1..200_000 {
            let place = mover.place(after(f64::from(i) * 0.01));
            assert!(place.distance(last) <= 0.2001, "{motion:?} jumps from {last:?} to {place:?}");
            last = place;
        }
    }
}

#[test]
fn where_a_station_is_does_not_depend_on_who_asks() {
    let motion = Motion::RandomWaypoint(waypoint(1.0, 20.0, 2));
    let new = || Mover::new(&motion, None, stream("one"));
    let (mut often, mut once) = (new(), new());
    let places: Vec<Position> = (0..5000).map(|i| often.place(after(f64::from(i)))).collect();
    assert_eq!(once.place(after(4999.0)), places[4999]);
}

#[test]
fn movements_of_ns2_are_read() {
    let text = "#\n# nodes: 2, pause: 0\n$node_(0) set X_ 10.0\n$node_(0) set Y_ 20\n$node_(0) set Z_ 0.000\n\
        $node_(1) set X_ 0\n$node_(1) set Y_ 0\n$god_ set-dist 0 1 1\n\
        $ns_ at 1.0 \"$node_(0) setdest 110.0 20.0 10\"\n\
        $ns_ at 3.0 \"$node_(0) setdest 30.0 120.0 5.0\"\n\
        $ns_ at 9 \"$god_ set-dist 0 1 2\"\n\
        $ns_ at  5.0  \"$node_(1) setdest 3.0 4.0 1.0\"\n$ns_ at 7.0 \"$node_(1) setdest 0.0 0.0 0.0\"\n";
    let traces = trace::read(text).unwrap();
    let mut movers: Vec<Mover> =
        traces.values().map(|legs| Mover::new(&Motion::Trace(legs.clone()), None, stream("trace"))).collect();
    let mut at = |node: usize, seconds| movers[node].place(after(seconds));
    for (seconds, x, y) in [(0.0, 10.0, 20.0), (1.0, 10.0, 20.0), (2.0, 20.0, 20.0), (3.0, 30.0, 20.0)] {
        assert_eq!(at(0, seconds), Position::new(x, y), "at {seconds} s");
    }
    // The second leg begins before the first one has ended, and takes 20 s.
    assert_eq!(at(0, 13.0), Position::new(30.0, 70.0));
    assert_eq!(at(0, 24.0), Position::new(30.0, 120.0));
    // A speed of 0 stops a node.
    assert_eq!(at(1, 4.0), Position::new(0.0, 0.0));
    assert!(at(1, 7.0).distance(Position::new(1.2, 1.6)) < 1e-9);
    assert!(at(1, 99.0).distance(Position::new(1.2, 1.6)) < 1e-9);
}

#[test]
fn what_is_written_is_read_again() {
    let motion = Motion::RandomWaypoint(waypoint(1.0, 20.0, 5));
    let mut written = movers(&motion, 20);
    let text = trace::write(&mut written.clone(), after(900.0));
    let traces = trace::read(&text).unwrap();
    assert_eq!(traces.len(), 20);
    for (mover, legs) in written.iter_mut().zip(traces.values()) {
        let mut again = Mover::new(&Motion::Trace(legs.clone()), None, stream("trace"));
        for seconds in 0..900 {
            let (one, other) = (mover.place(after(seconds.into())), again.place(after(seconds.into())));
            assert!(one.distance(other) < 1e-3, "{one:?} and {other:?} at {seconds} s");
        }
    }
}

#[test]
fn what_is_wrong_in_a_movement_file_is_said() {
    let check = |text: &str| {
        let error = trace::read(text).unwrap_err();
        format!("{error} ({})", error.hint.unwrap_or_default())
    };
    let place = "$node_(0) set X_ 1\n$node_(0) set Y_ 2\n";
    let all = [
        "node 0 moves".to_owned(),
        "\n$node_(0) set X_ here".to_owned(),
        "$node_(0) set Z_ 7.5".to_owned(),
        "$node_(zero) set X_ 1".to_owned(),
        "$node_(0) set X_ 1e9".to_owned(),
        "$node_(0) set X_ inf".to_owned(),
        "$node_(3) set X_ 1".to_owned(),
        format!("{place}$ns_ at -1 \"$node_(0) setdest 1 2 3\""),
        format!("{place}$ns_ at 1 \"$node_(0) setdest 1 2 -3\""),
        format!("{place}$ns_ at 1 \"$node_(0) setdest 1 2\""),
        format!("{place}$ns_ at 1 \"$node_(0) set X_ 5\""),
        "$ns_ at 1 \"$node_(4) setdest 1 2 3\"".to_owned(),
    ];
    let said: Vec<String> = all.iter().map(|text| check(text)).collect();
    expect_test::expect![[r#"
        line 1: `node 0 moves` is no movement (expected `$node_(3) set X_ 12.0` or `$ns_ at 2.0 "$node_(3) setdest 90.0 44.9 1.37"`)
        line 2: `here` is not a number ()
        line 1: a height of 7.5 m (nodes move in a plane: remove the line, or set 0)
        line 1: `$node_(zero) set X_ 1` is no movement (expected `$node_(3) set X_ 12.0` or `$ns_ at 2.0 "$node_(3) setdest 90.0 44.9 1.37"`)
        line 1: 1000000000 m is farther than 10,000 km from the origin ()
        line 1: `inf` is not a number ()
        line 1: `$node_(3)` has no place to start from (add `$node_(N) set X_ ...` and `$node_(N) set Y_ ...`)
        line 3: -1 s is no time of a run (times are seconds from 0 on)
        line 3: a speed of -3 m/s (speeds are 0, which stops a node, and more)
        line 3: `$ns_ at 1 "$node_(0) setdest 1 2"` is no movement (expected `$node_(3) set X_ 12.0` or `$ns_ at 2.0 "$node_(3) setdest 90.0 44.9 1.37"`)
        line 3: `$ns_ at 1 "$node_(0) set X_ 5"` is no movement (expected `$node_(3) set X_ 12.0` or `$ns_ at 2.0 "$node_(3) setdest 90.0 44.9 1.37"`)
        line 1: `$node_(4)` has no place to start from (add `$node_(N) set X_ ...` and `$node_(N) set Y_ ...`)"#]].assert_eq(&said.join("\n"));
}
