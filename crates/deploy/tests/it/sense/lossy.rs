//! Three senders over a shaped and lossy link between namespaces: `tc tbf` and `iptables -m
//! statistic` in both directions.
//!
//! This is the short form; the long one is `cargo xtask campaign sense`.

#![expect(clippy::disallowed_types, reason = "processes live in real time")]

use std::env;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anabranch_testkit::daemon::Daemon;
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::given;
use anabranch_testkit::netns::{self, Broom, Kept, done, ip, name};
use serde_json::Value;

use super::{command, folder, lines, payloads};

/// Length of a record's payload in bytes: with all headers, a datagram of 1232 bytes at most.
const RECORD: usize = 1180;
/// Bytes of Ethernet, IPv4, UDP, the session, RDCA and the record's header.
const HEADERS: usize = 14 + 28 + 25 + 13 + 10;
const SENDERS: usize = 3;

/// The command of a program, in a namespace.
fn within(netns: &str, program: &Command) -> Command {
    let mut command = netns::inside(netns, &[]);
    command.arg(program.get_program()).args(program.get_args());
    command.current_dir(program.get_current_dir().expect("it is set"));
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A shaped link that loses packets in both directions, between two namespaces.
struct Link {
    near: String,
    far: String,
    /// Rate less the losses, in bit/s.
    capacity: f64,
    _broom: Broom,
}

impl Link {
    /// Rate in kbit/s and loss in percent.
    fn open(at: usize, kbit: u64, loss: u64) -> Self {
        let (near, far) = (name(&format!("l{at}n")), name(&format!("l{at}f")));
        let broom = Broom::new([&near, &far]);
        for netns in [&near, &far] {
            ip(&["netns", "add", netns]);
        }
        ip(&["-n", &near, "link", "add", "v", "type", "veth", "peer", "name", "v", "netns", &far]);
        for (netns, address) in [(&near, "10.9.0.1/24"), (&far, "10.9.0.2/24")] {
            ip(&["-n", netns, "address", "add", address, "dev", "v"]);
            ip(&["-n", netns, "link", "set", "dev", "v", "up"]);
            ip(&["-n", netns, "link", "set", "dev", "lo", "up"]);
            // The queue counts packets, not TCP's bursts.
            let off = ["-K", "v", "tso", "off", "gso", "off", "gro", "off"];
            let _ = netns::run("ip", &[&["netns", "exec", netns, "ethtool"], &off[..]].concat());
            if loss > 0 {
                let share = format!("0.{loss:02}");
                let rule = ["-A", "INPUT", "-i", "v", "-m", "statistic", "--mode", "random", "--probability"];
                let words =
                    [&["netns", "exec", netns, "iptables"], &rule[..], &[&share, "-j", "DROP"]].concat();
                done("ip", &words);
            }
        }
        // A queue of 100 ms.
        let (rate, limit) = (format!("{kbit}kbit"), (kbit * 100 / 8).max(6000).to_string());
        let shape =
            ["qdisc", "add", "dev", "v", "root", "tbf", "rate", &rate, "burst", "4kb", "limit", &limit];
        done("tc", &[&["-n", &near], &shape[..]].concat());
        let capacity = (kbit * 1000) as f64 * (100 - loss) as f64 / 100.0;
        Self { near, far, capacity, _broom: broom }
    }

    fn sink(&self, path: &Path) -> Daemon {
        let sink =
            command(path, "sink", &["--listen", "10.9.0.2:47300", "--psk", "fleet.key", "--out", "out"]);
        Daemon::spawn(within(&self.far, &sink))
    }

    fn sense(&self, path: &Path, sender: usize) -> Command {
        let name = format!("s{sender}");
        let arguments = ["--to", "10.9.0.2", "--psk", "fleet.key", "--name", &name, "--linger", "60s"];
        let mut command = within(&self.near, &command(path, "sense", &arguments));
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// The rate of delivered payload since the start over the capacity, with senders that always
    /// have records. Each record must arrive once.
    fn utilisation(&self, seconds: u64) -> f64 {
        let folder = folder();
        let path = folder.path();
        let _sink = self.sink(path);
        let mut senders: Vec<Child> =
            (0..SENDERS).map(|sender| self.sense(path, sender).spawn().expect("it starts")).collect();
        let end = Instant::now() + Duration::from_secs(seconds);
        let feeds = senders.iter_mut().map(|child| {
            let mut pipe = child.stdin.take().expect("it is piped");
            std::thread::spawn(move || {
                let mut record = vec![b'x'; RECORD];
                record.push(b'\n');
                let mut count = 0;
                while Instant::now() < end && pipe.write_all(&record).is_ok() {
                    count += 1;
                }
                count
            })
        });
        let feeds: Vec<_> = feeds.collect();
        let given: Vec<usize> = feeds.into_iter().map(|feed| feed.join().unwrap()).collect();
        let delivered = lines(&path.join("out")).iter().filter(|line| line["number"].is_number()).count();
        for child in &mut senders {
            assert!(child.wait().unwrap().success(), "all records are confirmed");
        }
        let all = payloads(&lines(&path.join("out")));
        let counts: Vec<usize> = all.values().map(Vec::len).collect();
        assert_eq!(counts, given, "each record is delivered once and in order");
        delivered as f64 * RECORD as f64 * 8.0 / seconds as f64 / self.capacity
    }

    /// Mean and median delay in milliseconds from the creation of a record to its delivery, and the
    /// share of records delivered at the end, with 0.7 of the capacity offered.
    fn delay(&self, over: Over, seconds: u64) -> [f64; 3] {
        let folder = folder();
        let path = folder.path();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/sensors.py");
        let interval = SENDERS as f64 * (RECORD + HEADERS) as f64 * 8.0 / (0.7 * self.capacity);
        // TCP may not deliver all in any reasonable time.
        let most = (seconds + 8).to_string();
        let seconds = seconds.to_string();
        let python = |netns: &str, arguments: &[&str]| {
            let mut command =
                netns::inside(netns, &[&["timeout", &most, "python3", script], arguments].concat());
            command.env("RECORD", RECORD.to_string()).env("INTERVAL", format!("{interval:.6}"));
            command.current_dir(path);
            command
        };
        let server = match over {
            Over::Sense => None,
            Over::Tcp(_) => {
                Some(Kept(python(&self.far, &["serve", "tcp", "10.9.0.2", "out"]).spawn().unwrap()))
            }
        };
        let _sink = matches!(over, Over::Sense).then(|| self.sink(path));
        let mut children = Vec::new();
        for sender in 0..SENDERS {
            let kind = if server.is_some() { "tcp" } else { "lines" };
            let mut source = python(&self.near, &["send", kind, "10.9.0.2", "1", &seconds, "2"]);
            match over {
                Over::Tcp(congestion) => drop(source.env("CONGESTION", congestion)),
                Over::Sense => {
                    let mut sense = Kept(self.sense(path, sender).spawn().unwrap());
                    source.stdout(sense.0.stdin.take().unwrap());
                    children.push(sense);
                }
            }
            // The server listens within this time.
            std::thread::park_timeout(Duration::from_millis(300));
            children.push(Kept(source.spawn().unwrap()));
        }
        children.iter_mut().for_each(|child| drop(child.0.wait()));
        let output = python(&self.far, &["report", "out", &seconds, "2", &SENDERS.to_string()]).output();
        let report: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        assert_eq!(report["in_order"], true, "{report}");
        ["delay_mean_s", "delay_p50_s", "delivery_ratio"].map(|key| {
            report[key].as_f64().unwrap_or(f64::NAN) * if key == "delivery_ratio" { 1.0 } else { 1e3 }
        })
    }
}

/// What carries the records.
#[derive(Clone, Copy, Debug)]
enum Over {
    Sense,
    /// The kernel's TCP with this congestion control.
    Tcp(&'static str),
}

#[test]
fn each_record_arrives_once_over_a_lossy_link() {
    if netns::skipped()
        || ["tc", "iptables"].iter().any(|program| {
            let package = if *program == "tc" { "iproute2" } else { "iptables" };
            find_or_install(program, package).is_none()
        })
    {
        return;
    }
    let long = env::var("ANABRANCH_SENSE_LONG").is_ok();
    let seconds = if long { 20 } else { 3 };
    let (rates, losses): (&[u64], &[u64]) =
        if long { (&[1000, 5000, 20_000], &[0, 2, 5, 10, 20]) } else { (&[5000], &[5]) };
    // In kbit/s: one of the rates alone.
    let only = given("ANABRANCH_SENSE_RATE");
    println!(
        "| rate, kbit/s | loss, % | payload / capacity | bytes on the wire / capacity | delay, mean and median, ms, and delivered: sense | cubic | bbr |"
    );
    println!("|{}", " --- |".repeat(7));
    let cells = rates.iter().flat_map(|rate| losses.iter().map(move |loss| (*rate, *loss)));
    let cells = cells.filter(|(kbit, _)| only.is_none_or(|only| only == *kbit));
    for (at, (kbit, loss)) in cells.enumerate() {
        let link = Link::open(at, kbit, loss);
        let share = link.utilisation(seconds);
        let wire = share * (RECORD + HEADERS) as f64 / RECORD as f64;
        let mut line = format!("| {kbit} | {loss} | {share:.3} | {wire:.3} |");
        let delays = [Over::Sense, Over::Tcp("cubic"), Over::Tcp("bbr")];
        for over in delays {
            if !long || loss <= 2 {
                line += " |";
                continue;
            }
            let [mean, median, delivered] = link.delay(over, seconds * 3 / 4);
            line += &format!(" {mean:.0}, {median:.0}, {delivered:.3} |");
        }
        println!("{line}");
    }
}
