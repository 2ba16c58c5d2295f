//! Three paths, one striped connection and eight plain ones of iperf3, under a budget: against the
//! kernel's autotuning with the same memory.

use std::fs;
use std::io::Read;
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns::{Kept, done, run, text};
use anabranch_testkit::paths::{Path, Paths};
use anabranch_testkit::priority;
use serde_json::Value;

use super::{given, tune};

/// What is compared.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    /// Rates in Mbit/s and round-trip times in ms of the paths.
    paths: [(u32, u64); 3],
    /// Bytes of kernel memory.
    budget: u64,
    /// Rate of each plain connection; 0 is no limit.
    plain: &'static str,
    /// Further options of the command.
    options: &'static [&'static str],
}

/// The peer of the striped connection, which is reached over all paths.
const PEER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// Number of plain connections over each path.
const PLAIN: [usize; 3] = [3, 3, 2];
/// Number of connections with data.
const CONNECTIONS: u64 = 11;
/// Interval of looking at the memory.
const SAMPLE: Duration = Duration::from_millis(10);

const NAMED: Case = Case {
    name: "a long fat path beside two others",
    paths: [(50, 150), (20, 50), (5, 20)],
    budget: 2_000_000,
    plain: "500K",
    options: &[],
};

/// The cases of the long form.
const CASES: [Case; 9] = [
    NAMED,
    Case { name: "guarantee 0", options: &["--guarantee", "0"], ..NAMED },
    Case { name: "policy atbt", options: &["--policy", "atbt"], ..NAMED },
    Case { name: "policy drs", options: &["--policy", "drs"], ..NAMED },
    Case { name: "policy fixed", options: &["--policy", "fixed"], ..NAMED },
    Case { name: "the links of the paper", paths: [(11, 20), (2, 240), (7, 140)], ..NAMED },
    Case { name: "the slowest path is the longest", paths: [(50, 5), (20, 50), (5, 200)], ..NAMED },
    Case { name: "plain connections without limit", plain: "0", ..NAMED },
    Case { name: "a budget of 4 MB", budget: 4_000_000, ..NAMED },
];

/// Result of one run.
#[derive(Clone, Debug)]
struct Outcome {
    /// Received payload of the striped connection in bit/s.
    striped: f64,
    /// Of each plain connection.
    plain: Vec<f64>,
    /// Largest sums of the memory of all sockets in bytes: of the send queues, and of all that `ss`
    /// tells, without copies on the way to devices.
    queued: u64,
    whole: u64,
    samples: u64,
    /// Processor time of the command in seconds.
    processor: f64,
}

struct World {
    paths: Paths,
    case: Case,
    /// Seconds before the measurement, and its length.
    seconds: (u64, u64),
}

impl World {
    fn open(case: Case, seconds: (u64, u64)) -> Option<Self> {
        let path = |(mbit_per_s, millis): (u32, u64)| Path {
            kbit_per_s: 1000 * mbit_per_s,
            delay: Duration::from_millis(millis),
            // 100 ms.
            queue: 12_500 * mbit_per_s,
            loss: 0,
        };
        find_or_install("iperf3", "iperf3")?;
        let paths = Paths::open(&case.paths.map(path))?;
        paths.far(|| done("ip", &["address", "add", &PEER.to_string(), "dev", "lo"]));
        paths.near(|| {
            for (i, to) in paths.addresses().enumerate() {
                let (to, table, device) = (to.to_string(), (100 + i).to_string(), format!("p{i}"));
                done("ip", &["rule", "add", "from", &local(i), "table", &table]);
                done("ip", &["route", "add", "default", "via", &to, "dev", &device, "table", &table]);
            }
        });
        Some(Self { paths, case, seconds })
    }

    /// One run, with the command or with the kernel's own tuning.
    fn play(&self, is_tuned: bool) -> Outcome {
        let most = if is_tuned { 4_194_304 } else { self.case.budget / CONNECTIONS };
        self.paths.near(|| {
            fs::write("/proc/sys/net/ipv4/tcp_wmem", format!("4096 16384 {most}")).expect("root may");
        });
        let striped = (0..3).map(|i| (i, PEER, 1, "0"));
        let plain = self.paths.addresses().enumerate().map(|(i, to)| (i, to, PLAIN[i], self.case.plain));
        let flows: Vec<_> = striped.chain(plain).collect();
        let ports: Vec<String> = (0..flows.len()).map(|i| (5201 + i).to_string()).collect();
        let _servers: Vec<Kept> = self.paths.far(|| {
            let servers = ports.iter().map(|port| Kept(iperf3(&["-s", "-1", "-p", port]))).collect();
            while ports.iter().any(|port| !is_listening(port)) {
                thread::yield_now();
            }
            servers
        });
        let (warm, length) = (self.seconds.0.to_string(), self.seconds.1.to_string());
        let mut clients: Vec<Kept> = self.paths.near(|| {
            let client = |((path, to, number, rate), port): (&(usize, Ipv4Addr, usize, &str), &String)| {
                let (to, from, number) = (to.to_string(), local(*path), number.to_string());
                let ends = ["-c", &to, "-p", port, "-B", &from, "-P", &number, "-b", rate];
                Kept(iperf3(&[&ends[..], &["-C", "cubic", "-J", "-O", &warm, "-t", &length]].concat()))
            };
            flows.iter().zip(&ports).map(client).collect()
        });
        let state = tempfile::tempdir().expect("a folder");
        let tuner = is_tuned.then(|| {
            let budget = format!("{} B", self.case.budget);
            let pids: Vec<String> =
                clients.iter().flat_map(|c| ["--pid".into(), c.0.id().to_string()]).collect();
            let pids: Vec<&str> = pids.iter().map(String::as_str).collect();
            let mut command = tune(
                &state,
                &[&["--log-level", "warning", "--budget", &budget][..], &pids, self.case.options].concat(),
            );
            Kept(self.paths.near(|| command.spawn().expect("it starts")))
        });
        let (stop, stopped) = channel::<()>();
        let warm_up = Duration::from_secs(self.seconds.0);
        let (paths, tuned) = (&self.paths, tuner.as_ref().map(|tuner| tuner.0.id()));
        let ((queued, whole, samples, processor), reports) = thread::scope(|scope| {
            let sampler = scope.spawn(move || {
                paths.near(move || {
                    let _ = stopped.recv_timeout(warm_up);
                    let (mut queued, mut whole, mut samples, mut processor) = (0, 0, 0, 0.0);
                    while stopped.recv_timeout(SAMPLE) == Err(RecvTimeoutError::Timeout) {
                        let now = memory();
                        (queued, whole, samples) = (now.0.max(queued), now.1.max(whole), samples + 1);
                        processor = tuned.and_then(processor_time).unwrap_or(processor);
                    }
                    (queued, whole, samples, processor)
                })
            });
            let reports: Vec<Value> = clients.iter_mut().map(|client| report(&mut client.0)).collect();
            drop(stop);
            (sampler.join().expect("no panic"), reports)
        });
        if let Some(mut tuner) = tuner {
            assert!(tuner.0.wait().expect("it is ours").success(), "it ends with the programs");
        }
        let streams = |report: &Value| report["end"]["streams"].as_array().cloned().unwrap_or_default();
        let rate = |stream: &Value| stream["receiver"]["bits_per_second"].as_f64().expect("a rate");
        let rates =
            |reports: &[Value]| reports.iter().flat_map(streams).map(|s| rate(&s)).collect::<Vec<_>>();
        let plain = rates(&reports[3..]);
        assert_eq!(plain.len(), PLAIN.iter().sum::<usize>());
        Outcome { striped: rates(&reports[..3]).iter().sum(), plain, queued, whole, samples, processor }
    }
}

fn local(path: usize) -> String {
    format!("10.77.{path}.1")
}

/// In the namespace of the calling thread. It does not wait for a processor, as a program on a host
/// of its own would not.
fn iperf3(arguments: &[&str]) -> Child {
    let real_time = priority::may_be_real_time();
    let words = if real_time { &["chrt", "--rr", "1", "iperf3"][..] } else { &["iperf3"] };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    command.stdout(Stdio::piped()).spawn().expect("it is installed")
}

fn report(client: &mut Child) -> Value {
    let mut json = String::new();
    client.stdout.take().expect("it is piped").read_to_string(&mut json).expect("text");
    let report: Value = serde_json::from_str(&json).expect("a report");
    assert_eq!(report["error"], Value::Null, "{report}");
    report
}

fn is_listening(port: &str) -> bool {
    !run("ss", &["-Hltn", "sport", "=", &format!(":{port}")]).stdout.is_empty()
}

/// Memory of the sockets of this namespace: `w`, and `w` with `r`, `f` and `o` (ss(8)).
fn memory() -> (u64, u64) {
    let listing = text(&run("ss", &["-Htnm"]).stdout);
    let (mut queued, mut whole) = (0, 0);
    for memory in listing.split("skmem:(").skip(1) {
        for word in memory.split(')').next().unwrap_or_default().split(',') {
            let number = |kind: char| word.strip_prefix(kind).and_then(|digits| digits.parse::<u64>().ok());
            queued += number('w').unwrap_or(0);
            whole += ['w', 'r', 'f', 'o'].into_iter().filter_map(number).sum::<u64>();
        }
    }
    (queued, whole)
}

/// Seconds of processor time of a process.
fn processor_time(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    // USER_HZ is 100 on every Linux.
    Some(ticks / 100.0)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let number = values.len() as f64;
    values.sum::<f64>() / number
}

#[test]
fn eleven_connections_of_a_program_stay_within_a_budget() {
    // The kernel alone has 5 MB in the queues.
    let case = Case { budget: 1_300_000, ..NAMED };
    let Some(world) = World::open(case, (1, 2)) else { return };
    let tuned = world.play(true);
    println!("{tuned:?}");
    assert!(tuned.queued <= case.budget && tuned.samples > 20, "{tuned:?}");
    assert!(tuned.striped > 10e6 && tuned.plain.iter().all(|rate| *rate > 200e3), "{tuned:?}");
}

/// Prints a row for each case of the long form.
#[test]
fn a_striped_connection_gets_what_plain_ones_leave() {
    let runs = given("RUNS", 0);
    let only = given("CASE", CASES.len() as u64) as usize;
    for case in CASES.iter().enumerate().filter(|(i, _)| only == CASES.len() || only == *i).map(|(_, c)| *c) {
        let seconds = (given("WARM", 7), given("SECONDS", 12));
        let Some(world) = (runs > 0).then(|| World::open(case, seconds)).flatten() else { return };
        let (mut tuned, mut kernel) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            kernel.push(world.play(false));
            tuned.push(world.play(true));
            println!("{}: {:?}\n  {:?}", case.name, kernel.last(), tuned.last());
        }
        let striped = |outcomes: &[Outcome]| mean(outcomes.iter().map(|outcome| outcome.striped));
        let plain = |outcomes: &[Outcome], i: usize| mean(outcomes.iter().map(|outcome| outcome.plain[i]));
        let ratios = (0..8).map(|i| plain(&tuned, i) / plain(&kernel, i));
        let worst = ratios.fold(f64::INFINITY, f64::min);
        let queued = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome.queued).max();
        let whole = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome.whole).max();
        println!(
            "| {} | {:.1} | {:.1} | {:.2} | {worst:.3} | {:?} | {:?} | {:?} | {:?} | {:.2} |",
            case.name,
            striped(&kernel) / 1e6,
            striped(&tuned) / 1e6,
            striped(&tuned) / striped(&kernel),
            queued(&kernel).unwrap_or(0) / 1000,
            queued(&tuned).unwrap_or(0) / 1000,
            whole(&kernel).unwrap_or(0) / 1000,
            whole(&tuned).unwrap_or(0) / 1000,
            mean(tuned.iter().map(|outcome| outcome.processor)),
        );
        assert!(tuned.iter().all(|outcome| outcome.queued <= case.budget), "{tuned:?}");
    }
}
