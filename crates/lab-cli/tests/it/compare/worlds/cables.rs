//! A server, three border routers and a node in namespaces, joined by cables that `tc tbf` and
//! `iptables` shape.
//!
//! The buckets are in namespaces of their own between border routers and node. In the border
//! router, TCP would see its own packets in the queue and hold others back (TCP small queues).
//! Behind a modem or a radio it does not.

use std::process::Stdio;

use anabranch_testkit::netns::{self, Broom, Kept, inside, ip, text};

/// Largest Ethernet frame without its FCS, in bytes, and size of the buckets. With room for two,
/// SET takes a cable of 56 kbit/s for a fast one at first, because two packets arrive at once.
const FRAME: u64 = 1514;

/// Cables from the border routers to the node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cables {
    pub(super) name: &'static str,
    pub(super) kbit_per_s: [u32; 3],
    /// Queue of each, in bytes.
    pub(super) queue: u32,
}

/// The namespaces: `s` is the server, `t` the node, `b1` to `b3` the border routers, and `m1` to
/// `m3` hold the token buckets. The node is 10.9.0.1; border router `i` is 10.1.i.2 for the server.
pub(super) struct Spaces {
    /// The names of the namespaces begin with this.
    names: String,
    _broom: Broom,
}

impl Spaces {
    /// Makes the namespaces. `per_cent` of the packets of each cable are lost, in both directions.
    pub(super) fn open(worker: usize, cables: &Cables, per_cent: f64) -> Self {
        let names = netns::name(&format!("v{worker}"));
        let this = Self { _broom: Broom::new(ends().map(|end| format!("{names}{end}"))), names };
        for end in ends() {
            ip(&["netns", "add", &this.name(&end)]);
            this.set(&end, "ip link set lo up; echo 1 > /proc/sys/net/ipv4/ip_forward");
        }
        this.set("t", "ip address add 10.9.0.1/32 dev lo");
        for (i, rate) in (1..).zip(cables.kbit_per_s) {
            this.join((&format!("w{i}"), "s"), ("wan", &format!("b{i}")), &format!("10.1.{i}"));
            this.join(("near", &format!("m{i}")), ("lan", &format!("b{i}")), &format!("10.2.{i}"));
            this.join((&format!("l{i}"), "t"), ("far", &format!("m{i}")), &format!("10.3.{i}"));
            let (router, bucket) = (format!("b{i}"), format!("m{i}"));
            this.set(&router, &format!("ip route add 10.9.0.1 via 10.2.{i}.1 congctl cubic"));
            this.set(&bucket, &format!("ip route add 10.9.0.1 via 10.3.{i}.1"));
            this.set("t", &format!("ip route add 10.2.{i}.0/24 via 10.3.{i}.2 congctl cubic"));
            // The control stream of the server goes through the first border router.
            this.set("t", &format!("ip route add 10.1.{i}.0/24 via 10.3.{i}.2 congctl cubic"));
            this.set(&bucket, &format!("ip route add 10.1.{i}.0/24 via 10.2.{i}.2"));
            // The rate of the simulated link is that of IP packets; the bucket counts Ethernet's.
            let rate = u64::from(rate) * FRAME / 1500;
            let queue = cables.queue;
            for device in ["near", "far"] {
                let tbf = format!("tbf rate {rate}kbit burst {FRAME} limit {queue}");
                this.set(&bucket, &format!("tc qdisc add dev {device} root {tbf}"));
            }
            if per_cent > 0.0 {
                let lose = format!("-m statistic --mode random --probability {} -j DROP", per_cent / 100.0);
                this.set(&bucket, &format!("iptables -A FORWARD {lose}"));
            }
        }
        this.set("s", "ip route add 10.9.0.1 via 10.1.1.2 congctl cubic");
        this
    }

    /// Joins two namespaces by a cable without limits; the first end is `prefix`.1, the other
    /// `prefix`.2. Connections over it use CUBIC.
    fn join(&self, one: (&str, &str), other: (&str, &str), prefix: &str) {
        let [here, there] = [one.1, other.1].map(|end| self.name(end));
        let ends =
            ["link", "add", one.0, "netns", &here, "type", "veth", "peer", "name", other.0, "netns", &there];
        ip(&ends);
        for (host, (device, end)) in (1..).zip([one, other]) {
            let own = format!("{prefix}.{host}");
            let route = format!("{prefix}.0/24 dev {device} proto kernel scope link src {own} congctl cubic");
            let commands = format!(
                "ip address add {own}/24 dev {device}; ip link set {device} up; ip route replace {route}"
            );
            self.set(end, &commands);
        }
    }

    /// All namespaces, by their last letters.
    pub(super) fn all(&self) -> impl Iterator<Item = String> + use<> {
        ends()
    }

    fn name(&self, end: &str) -> String {
        format!("{}{end}", self.names)
    }

    /// Runs commands that must succeed.
    fn set(&self, end: &str, commands: &str) {
        self.sh(end, commands).unwrap_or_else(|why| panic!("{commands}: {why}"));
    }

    /// Runs commands of the shell up to the first that fails; returns what that has said.
    pub(super) fn sh(&self, end: &str, commands: &str) -> Result<(), String> {
        let output = inside(&self.name(end), &["sh", "-ec", commands]).output().expect("the shell starts");
        if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
    }

    /// Starts a program that runs until this is dropped.
    pub(super) fn start(&self, end: &str, program: &str, arguments: &[&str]) -> Kept {
        let mut command = inside(&self.name(end), &[&[program], arguments].concat());
        Kept(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts"))
    }
}

fn ends() -> impl Iterator<Item = String> {
    let numbered = |letter: &'static str| (1..=3).map(move |i| format!("{letter}{i}"));
    ["s", "t"].map(str::to_owned).into_iter().chain(numbered("b")).chain(numbered("m"))
}
