//! Random schedules of faults, and the mesh in which they happen.

use std::fmt::{self, Write};
use std::time::Duration;

use anabranch_testkit::prng::Prng;

/// Number of border routers.
pub(crate) const ROUTERS: usize = 3;

/// A target in the middle of three rings of relays, with a border router at three hops on each of
/// three sides. `NAMES-x` are namespaces.
const MESH: &str = r#"
name = "faults"
stop = "30 min"

[emulation]
lag_limit = "1 s"

[radio]
range = "100 m"
carrier_sense_range = "180 m"

[[node]]
name = "server"
host = "tun"
netns = "NAMES-s"

[[nodes]]
name = "br{i}"
count = 3
kind = "gateway"
host = "tun"
netns = "NAMES-b{i}"
place = { at = [[262, 0], [-131, 227], [-131, -227]] }

[[node]]
name = "target"
kind = "node"
host = "tun"
netns = "NAMES-t"
position = [0, 0]

[[nodes]]
name = "inner{i}"
count = 6
place = { star = { centre = [0, 0], radius = 85 } }

[[nodes]]
name = "middle{i}"
count = 12
place = { star = { centre = [0, 0], radius = 170 } }

[[nodes]]
name = "outer{i}"
count = 12
place = { star = { centre = [0, 0], radius = 240 } }

[[link]]
name = "wired{i}"
from = "server"
to = "br{i}"
rate = "100 Mbit/s"
delay = "10 ms"
"#;

/// Number of relays in each ring.
const RINGS: [(&str, u64); 3] = [("inner", 6), ("middle", 12), ("outer", 12)];

/// Length of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    /// A few seconds, for the suite.
    Short,
    /// Up to a minute of faults.
    Long,
}

/// What the sender does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The push is repeated until the file is delivered.
    Again,
    /// One push with `--retry-for`.
    RetryFor,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The node of a border router fails and returns; its gateway dies with it, or stays.
    Router { router: usize, kills: bool },
    /// The gateway's process gets SIGKILL, and is started again.
    Gateway(usize),
    /// All gateways get SIGKILL, and are started again.
    AllGateways,
    /// Relays fail and return.
    Relays(Vec<String>),
    /// The channel is jammed, at these nodes or everywhere.
    Jam(Option<&'static str>),
    /// The wire of one border router is cut, or all of them.
    Wire(Option<usize>),
}

/// A schedule, determined by seed and run.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) run: u64,
    pub(crate) kind: Kind,
    pub(crate) secure: bool,
    /// `--idle` of the node, if it is not the default.
    pub(crate) idle: Option<&'static str>,
    pub(crate) octets: usize,
    /// Faults with their start and end, counted from the start of the emulation.
    pub(crate) faults: Vec<(Duration, Duration, Fault)>,
}

impl Schedule {
    pub(crate) fn draw(seed: u64, run: u64, length: Length) -> Self {
        let mut random = Prng::of_run(seed, run);
        let (octets, window, longest, most) = match length {
            Length::Short => (6_000..=12_000, 1_500..=4_000, 2_000, 2),
            Length::Long => (20_000..=60_000, 700..=15_000, 20_000, 6),
        };
        let faults = (0..random.range(1..=most)).map(|_| {
            let at = random.range(window.clone());
            let lasts = random.range(500..=longest);
            // Now and then longer than a push waits for the answer to its request.
            let away = if length == Length::Long && random.chance(30) { lasts * 3 } else { lasts.min(8_000) };
            let (lasts, fault) = match random.below(11) {
                0 | 1 => {
                    (lasts, Fault::Router { router: random.below(3) as usize, kills: random.chance(50) })
                }
                2 | 3 => (lasts.min(8_000), Fault::Gateway(random.below(3) as usize)),
                4 => (away, Fault::AllGateways),
                5 | 6 => (lasts, Fault::Relays(relays(&mut random))),
                7 | 8 => {
                    let nodes = random.pick(&[None, None, Some("inner*"), Some("outer*")]);
                    (longest.min(10_000), Fault::Jam(nodes))
                }
                _ => (away, Fault::Wire(random.pick(&[None, None, Some(0), Some(1), Some(2)]))),
            };
            (Duration::from_millis(at), Duration::from_millis(at + lasts), fault)
        });
        let mut faults: Vec<_> = faults.collect();
        faults.sort_by_key(|(at, ..)| *at);
        Self {
            run,
            kind: if run.is_multiple_of(2) { Kind::RetryFor } else { Kind::Again },
            secure: random.chance(50),
            idle: random.chance(50).then_some("10 s"),
            octets: random.range(octets) as usize,
            faults,
        }
    }

    /// End of the last fault.
    pub(crate) fn end(&self) -> Duration {
        self.faults.iter().map(|(_, until, _)| *until).max().unwrap_or_default()
    }

    /// The scenario with its events.
    ///
    /// A node or link is down while a fault of it lasts. Overlapping faults of one end together,
    /// with the latest of them.
    pub(crate) fn scenario(&self, names: &str) -> String {
        let mut text = MESH.replace("NAMES", names);
        for (at, until, fault) in self.merged() {
            let (at, until) = (at.as_millis(), until.as_millis());
            let (down, up, target) = match fault {
                Target::Node(name) => ("fail-node", "recover-node", format!("node = \"{name}\"")),
                Target::Wire(i) => {
                    ("link-down", "link-up", format!("from = \"server\"\nto = \"br{}\"", i + 1))
                }
                Target::Channel(nodes) => {
                    let nodes = nodes.map_or(String::new(), |nodes| format!("nodes = \"{nodes}\"\n"));
                    let lasts = until - at;
                    let event =
                        format!("at = \"{at} ms\"\naction = \"jam\"\nlasts = \"{lasts} ms\"\n{nodes}");
                    writeln!(text, "\n[[event]]\n{event}").expect("a string grows");
                    continue;
                }
            };
            for (time, action) in [(at, down), (until, up)] {
                writeln!(text, "\n[[event]]\nat = \"{time} ms\"\naction = \"{action}\"\n{target}")
                    .expect("a string grows");
            }
        }
        text
    }

    /// What is down when, each part of the network once at a time.
    fn merged(&self) -> Vec<(Duration, Duration, Target)> {
        let mut all: Vec<(Duration, Duration, Target)> = Vec::new();
        for (at, until, fault) in &self.faults {
            let targets: Vec<Target> = match fault {
                Fault::Router { router, .. } => vec![Target::Node(format!("br{}", router + 1))],
                Fault::Gateway(_) | Fault::AllGateways => vec![],
                Fault::Relays(names) => names.iter().cloned().map(Target::Node).collect(),
                Fault::Jam(nodes) => vec![Target::Channel(*nodes)],
                Fault::Wire(None) => (0..ROUTERS).map(Target::Wire).collect(),
                Fault::Wire(Some(router)) => vec![Target::Wire(*router)],
            };
            for target in targets {
                // Faults are in the order of their starts.
                match all.iter_mut().find(|(_, end, other)| *other == target && *end >= *at) {
                    Some((_, end, _)) => *end = (*end).max(*until),
                    None => all.push((*at, *until, target)),
                }
            }
        }
        all
    }

    /// When the process of a gateway is killed and started again, in order.
    pub(crate) fn kills(&self) -> Vec<(Duration, usize, bool)> {
        let mut kills: Vec<(Duration, usize, bool)> = Vec::new();
        for (at, until, fault) in &self.faults {
            let routers = match fault {
                Fault::Gateway(router) | Fault::Router { router, kills: true } => *router..router + 1,
                Fault::AllGateways => 0..ROUTERS,
                Fault::Router { kills: false, .. } | Fault::Relays(_) | Fault::Jam(_) | Fault::Wire(_) => {
                    0..0
                }
            };
            kills.extend(routers.flat_map(|router| [(*at, router, false), (*until, router, true)]));
        }
        kills.sort_by_key(|(at, ..)| *at);
        kills
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Target {
    Node(String),
    Wire(usize),
    Channel(Option<&'static str>),
}

/// One to four relays, most of them on the shortest paths, or half of the innermost ring.
fn relays(random: &mut Prng) -> Vec<String> {
    if random.chance(20) {
        let first = random.below(6);
        return (0..3).map(|i| format!("inner{}", (first + i) % 6 + 1)).collect();
    }
    let mut names: Vec<String> = (0..random.range(1..=4))
        .map(|_| {
            let (ring, count) = random.pick(&RINGS);
            // The border routers are a third of a circle apart, the first beside the first relays.
            let number = match random.chance(70) {
                true => random.below(3) * count / 3 + 1,
                false => random.range(1..=count),
            };
            format!("{ring}{number}")
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, kind, secure, idle, octets, faults } = self;
        let secure = if *secure { "" } else { ", insecure" };
        write!(f, "run {run}, {kind:?}: {octets} bytes{secure}, idle {}", idle.unwrap_or("by default"))?;
        faults.iter().try_for_each(|(at, until, fault)| {
            write!(f, ", {fault:?} from {:.1} to {:.1} s", at.as_secs_f64(), until.as_secs_f64())
        })
    }
}

#[test]
fn schedules_of_a_seed_are_the_same_and_their_scenarios_valid() {
    let draw = |seed, run| format!("{:?}", Schedule::draw(seed, run, Length::Long));
    assert_eq!(draw(1, 7), draw(1, 7));
    assert_ne!(draw(1, 7), draw(2, 7));
    for run in 0..100 {
        let schedule = Schedule::draw(1, run, Length::Long);
        let text = schedule.scenario("x");
        let scenario = anabranch_scenario::Source::new("faults.toml", &text).scenario();
        scenario.unwrap_or_else(|error| panic!("run {run}: {error}\n{text}"));
        assert!(schedule.end() <= Duration::from_secs(75));
    }
}
