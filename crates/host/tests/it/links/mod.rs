//! Whole programs over paths with a rate: `anabranch-multipath`, and the kernel's Multipath TCP
//! beside it, as clients of the same server with Multipath TCP. The long forms are
//! `cargo xtask campaign multipath`.

mod browser;
mod failures;
mod load;
mod rates;
mod requests;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use anabranch_testkit::daemon::Daemon;
use anabranch_testkit::netns::{Broom, Kept, done, inside, ip, name, within};
use anabranch_testkit::paths::{Path, Paths};
use anabranch_testkit::priority;
use serde_json::{Value, json};

/// Address of the server, which all paths lead to.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const PORT: u16 = 7000;

/// A client's host with several interfaces, a router, and a server. The rates of the paths are
/// those of the router: a host's own rate limiter would hold back its own TCP, but not what it
/// forwards.
struct Links {
    paths: Paths,
    /// Namespace of the client's host.
    home: String,
    number: usize,
    _server: Daemon,
    _broom: Broom,
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

/// What is compared: the kernel's Multipath TCP, our schedulers, and a last one.
fn compared(last: (&'static str, Means)) -> [(&'static str, Means); 8] {
    [
        ("kernel cubic", Means::Kernel("cubic")),
        ("kernel bbr", Means::Kernel("bbr")),
        ("fastest", Means::Ours(&["--scheduler", "fastest"])),
        ("predictive", Means::Ours(&["--scheduler", "predictive"])),
        ("blest", Means::Ours(&["--scheduler", "blest"])),
        ("daps", Means::Ours(&["--scheduler", "daps"])),
        ("round-robin", Means::Ours(&["--scheduler", "round-robin"])),
        last,
    ]
}

/// All of these, or the one whose place is given.
fn chosen(means: &[(&'static str, Means)]) -> Vec<(&'static str, Means)> {
    let one = anabranch_testkit::given("ANABRANCH_MULTIPATH_MEANS");
    one.map_or_else(|| means.to_vec(), |one| vec![means[one as usize]])
}

/// A program that carries connections while it is there.
struct Carrier {
    means: Means,
    daemon: Option<Daemon>,
}

impl Carrier {
    /// The port of our program's proxy.
    fn port(&self) -> u16 {
        let address = &self.daemon.as_ref().expect("it is ours").address;
        address.split(':').nth(1).and_then(|port| port.parse().ok()).expect("a port")
    }
}

/// A path with a queue of 100 ms.
const fn path(mbit_per_s: u32, millis: u64, loss: u32) -> Path {
    let delay = Duration::from_millis(millis);
    Path { kbit_per_s: 1000 * mbit_per_s, delay, queue: 12_500 * mbit_per_s, loss }
}

impl Links {
    fn open(specs: &[Path]) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let paths = Paths::open(specs)?;
        let home = name(&format!("l{}", NEXT.fetch_add(1, Relaxed)));
        let broom = Broom::new([&home]);
        ip(&["netns", "add", &home]);
        ip(&["-n", &home, "link", "set", "dev", "lo", "up"]);
        // Addresses change once no duplicate is found, and then a browser gives up its requests.
        let whole = || fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
        within(&home, whole).expect("root may set this");
        let [near, far] = paths.names();
        ip(&["-n", far, "address", "add", &SERVER.to_string(), "dev", "lo"]);
        let limit = specs.len().to_string();
        for netns in [&home, far] {
            let limits = ["mptcp", "limits", "set", "subflows", &limit, "add_addr_accepted", &limit];
            ip(&[&["-n", netns], &limits[..]].concat());
        }
        paths.near(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("root may set this"));
        for (i, (to, spec)) in paths.addresses().zip(specs).enumerate() {
            let (device, from, table) = (format!("h{i}"), local(i), (100 + i).to_string());
            let link = ["link", "add", &device, "type", "veth", "peer", "name", &device, "netns", near];
            ip(&[&["-n", &home], &link[..]].concat());
            for (netns, end) in [(home.as_str(), &from), (near, &gateway(i))] {
                ip(&["-n", netns, "address", "add", &format!("{end}/24"), "dev", &device]);
                ip(&["-n", netns, "link", "set", "dev", &device, "up"]);
            }
            // The router has a way for each interface.
            let onward = if spec.loss == 0 { format!("p{i}") } else { format!("d{i}") };
            ip(&["-n", near, "rule", "add", "from", &from, "table", &table]);
            let way = ["route", "add", "default", "via", &to.to_string(), "dev", &onward, "table", &table];
            ip(&[&["-n", near], &way[..]].concat());
            ip(&["-n", far, "route", "add", &format!("{from}/32"), "dev", &format!("d{i}")]);
            let rule = ["rule", "add", "from", &from, "table", &table];
            ip(&[&["-n", &home], &rule[..]].concat());
            routes(i).iter().for_each(|route| ip(&[vec!["-n", &home], route.split(' ').collect()].concat()));
            ip(&["-n", &home, "mptcp", "endpoint", "add", &from, "dev", &device, "subflow"]);
        }
        let mut server = python(far);
        server.args(["serve", &PORT.to_string()]);
        let server = Daemon::spawn(server);
        Some(Self { paths, home, number: specs.len(), _server: server, _broom: broom })
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
                let mut command = quick(&self.home);
                command.arg(assert_cmd::cargo::cargo_bin!("anabranch-multipath"));
                command.args(["--socks", "127.0.0.1:0", "--json"]).args(options);
                (0..self.number).for_each(|i| {
                    command.arg("--interface").arg(format!("h{i}"));
                });
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
            (_, Some(_)) => job["socks"] = json!(carrier.port()),
            (Means::Plain(path), _) => {
                job["from"] = json!(local(path));
                job["congestion"] = json!("cubic");
            }
            (Means::Kernel(congestion), _) => job["congestion"] = json!(congestion),
            (Means::Ours(_), None) => unreachable!("it has a program"),
        }
        let mut client = python(&self.home);
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

/// Address of an interface.
fn local(path: usize) -> String {
    format!("10.76.{path}.1")
}

fn gateway(path: usize) -> String {
    format!("10.76.{path}.2")
}

/// The routes of an interface, which are gone when it goes down, as arguments of `ip`.
fn routes(path: usize) -> [String; 2] {
    let default = format!("route add default via {} dev h{path}", gateway(path));
    [format!("{default} metric {}", 50 + path), format!("{default} table {}", 100 + path)]
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
    anabranch_testkit::given(&format!("ANABRANCH_MULTIPATH_{name}")).unwrap_or(default)
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
