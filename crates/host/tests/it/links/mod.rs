//! Whole programs over paths with a rate: `anabranch-multipath`, and the kernel's Multipath TCP beside
//! it, as clients of the same server with Multipath TCP. The long forms are
//! `cargo xtask campaign multipath`.

mod failures;
mod load;
mod rates;
mod requests;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Read;
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anabranch_testkit::daemon::Daemon;
use anabranch_testkit::netns::{Kept, done, inside};
use anabranch_testkit::paths::{Path, Paths};
use anabranch_testkit::priority;
use serde_json::{Value, json};

/// Address of the server, which all paths lead to.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const PORT: u16 = 7000;

/// A client's host with several interfaces, each with a gateway, and a server.
struct Links {
    paths: Paths,
    /// The interfaces of the client's host.
    devices: Vec<String>,
    _server: Daemon,
}

/// What carries the client's connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Means {
    /// The kernel, with this congestion control.
    Kernel(&'static str),
    /// `anabranch-multipath` with these options.
    Ours(&'static [&'static str]),
    /// TCP of the kernel over one of the paths.
    Plain(usize),
}

/// A program that carries connections while it is there.
struct Carrier {
    means: Means,
    daemon: Option<Daemon>,
}

/// A path with a queue of 100 ms.
const fn path(mbit_per_s: u32, millis: u64, loss: u32) -> Path {
    let delay = Duration::from_millis(millis);
    Path { kbit_per_s: 1000 * mbit_per_s, delay, queue: 12_500 * mbit_per_s, loss }
}

impl Links {
    fn open(specs: &[Path]) -> Option<Self> {
        let paths = Paths::open(specs)?;
        let number = specs.len().to_string();
        let limits = ["mptcp", "limits", "set", "subflows", &number, "add_addr_accepted", &number];
        let devices: Vec<_> = specs
            .iter()
            .enumerate()
            .map(|(i, s)| format!("{}{i}", if s.loss == 0 { 'p' } else { 'd' }))
            .collect();
        paths.far(|| {
            done("ip", &["address", "add", &SERVER.to_string(), "dev", "lo"]);
            done("ip", &limits);
        });
        let mut server = python(paths.names()[1]);
        server.args(["serve", &PORT.to_string()]);
        let server = Daemon::spawn(server);
        paths.near(|| {
            done("ip", &limits);
            for (i, (to, device)) in paths.addresses().zip(&devices).enumerate() {
                let (to, from, table, metric) =
                    (to.to_string(), local(i), (100 + i).to_string(), (50 + i).to_string());
                let default = ["route", "add", "default", "via", &to, "dev", device];
                done("ip", &[&default[..], &["metric", &metric]].concat());
                done("ip", &[&default[..], &["table", &table]].concat());
                done("ip", &["rule", "add", "from", &from, "table", &table]);
                // The other direction of a path arrives at a device of its own. So the endpoint names
                // no device, and the kernel forwards from there.
                done("ip", &["mptcp", "endpoint", "add", &from, "subflow"]);
                fs::write(format!("/proc/sys/net/ipv4/conf/d{i}/forwarding"), "1")
                    .expect("root may set this");
            }
        });
        Some(Self { paths, devices, _server: server })
    }

    /// Also limits the rate from the server.
    fn limit_both(&self, specs: &[Path]) {
        for (i, spec) in specs.iter().enumerate().filter(|(_, spec)| spec.loss == 0) {
            let (device, rate, queue) =
                (format!("d{i}"), format!("{}kbit", spec.kbit_per_s), spec.queue.to_string());
            let shape = ["qdisc", "add", "dev", &device, "root", "tbf", "rate", &rate, "burst", "16kb"];
            self.paths.far(|| done("tc", &[&shape[..], &["limit", &queue, "overhead", "14"]].concat()));
        }
    }

    fn carrier(&self, means: Means) -> Carrier {
        let daemon = match means {
            Means::Ours(options) => {
                let mut command = quick(self.paths.names()[0]);
                command.arg(assert_cmd::cargo::cargo_bin!("anabranch-multipath"));
                command.args(["--socks", "127.0.0.1:0", "--json"]).args(options);
                command.args(self.devices.iter().flat_map(|device| ["--interface", device]));
                Some(Daemon::spawn(command))
            }
            Means::Kernel(_) | Means::Plain(_) => None,
        };
        Carrier { means, daemon }
    }

    /// Begins a job of the client.
    fn begin(&self, carrier: &Carrier, mut job: Value) -> Kept {
        job["to"] = json!([SERVER, PORT]);
        match (carrier.means, &carrier.daemon) {
            (_, Some(daemon)) => {
                let port = daemon.address.split(':').nth(1).and_then(|rest| rest.parse::<u16>().ok());
                job["socks"] = json!(port.expect("a port"));
            }
            (Means::Plain(path), _) => {
                job["from"] = json!(local(path));
                job["congestion"] = json!("cubic");
            }
            (Means::Kernel(congestion), _) => job["congestion"] = json!(congestion),
            (Means::Ours(_), None) => unreachable!("it has a program"),
        }
        let mut client = python(self.paths.names()[0]);
        client.args(["ask", &job.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Kept(client.spawn().expect("python3 is here"))
    }

    fn ask(&self, carrier: &Carrier, job: Value) -> Value {
        outcome(&mut self.begin(carrier, job).0)
    }
}

/// What a client prints at its end.
fn outcome(client: &mut Child) -> Value {
    let mut text = String::new();
    client.stdout.as_mut().expect("it is piped").read_to_string(&mut text).expect("text");
    assert!(client.wait().expect("it is ours").success(), "{text}");
    serde_json::from_str(text.lines().last().expect("an outcome")).expect("JSON")
}

/// Bytes that arrived, by millisecond.
fn bins(outcome: &Value) -> BTreeMap<u64, u64> {
    let bins = outcome["bins"].as_object().expect("bins").iter();
    bins.map(|(at, octets)| (at.parse().expect("a time"), octets.as_u64().expect("a number"))).collect()
}

fn local(path: usize) -> String {
    format!("10.77.{path}.1")
}

fn python(netns: &str) -> Command {
    let mut command = quick(netns);
    command.arg("python3").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/links/peer.py"));
    command
}

/// A program that does not wait for a processor, as on a host of its own.
fn quick(netns: &str) -> Command {
    let mut words = vec!["prlimit", "--nofile=16384"];
    if priority::may_be_real_time() {
        words.extend(["chrt", "--rr", "1"]);
    }
    inside(netns, &words)
}

/// A number that makes a test long.
fn given(name: &str, default: u64) -> u64 {
    let text = env::var(format!("ANABRANCH_MULTIPATH_{name}")).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value below which this part of all values is.
fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (part * values.len() as f64).ceil() as usize;
    values[at.saturating_sub(1).min(values.len() - 1)]
}
