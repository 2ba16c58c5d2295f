//! A chain of hosts: two ends, and routers between them, of which some cache.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use anabranch_testkit::daemon::Daemon;
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns::{
    self, Broom, Farewell, Kept, done, inside, ip, mortal, name, run, text, within,
};
use rustix::net::sockopt::set_tcp_congestion;

/// Asks a process to end; it must do so with exit code 0.
pub(crate) fn terminate(process: &mut Kept) {
    run("kill", &["-TERM", &process.0.id().to_string()]);
    assert_eq!(process.0.wait().expect("it is ours").code(), Some(0));
}

/// Address families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    V4,
    V6,
}

/// The hosts, from the client to the server. They are removed on drop.
pub(crate) struct Chain {
    pub(crate) hosts: Vec<String>,
    _broom: Broom,
}

impl Chain {
    /// Prints that the test is skipped and returns `None` if hosts cannot be made here.
    pub(crate) fn open(number: usize) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let packages = [("iptables", "iptables"), ("ethtool", "ethtool"), ("curl", "curl")];
        if netns::skipped()
            || packages.iter().any(|(program, package)| find_or_install(program, package).is_none())
        {
            return None;
        }
        let chain = NEXT.fetch_add(1, Relaxed);
        let hosts: Vec<_> = (0..number).map(|i| name(&format!("c{chain}h{i}"))).collect();
        let broom = Broom::new(&hosts);
        for host in &hosts {
            ip(&["netns", "add", host]);
            ip(&["-n", host, "link", "set", "dev", "lo", "up"]);
            within(host, || {
                for (file, value) in [
                    ("ipv4/ip_forward", "1"),
                    ("ipv6/conf/all/forwarding", "1"),
                    ("ipv6/conf/default/accept_dad", "0"),
                    ("ipv4/tcp_no_metrics_save", "1"),
                ] {
                    fs::write(format!("/proc/sys/net/{file}"), value).expect("root may set this");
                }
            });
        }
        let this = Self { hosts, _broom: broom };
        for i in 0..number - 1 {
            let [near, far] = [&this.hosts[i], &this.hosts[i + 1]];
            ip(&["-n", near, "link", "add", "right", "type", "veth", "peer", "name", "left", "netns", far]);
            for (host, device, end) in [(near, "right", 1), (far, "left", 2)] {
                for family in [Family::V4, Family::V6] {
                    let address = format!("{}/{}", address(family, i, end), family.prefix());
                    ip(&["-n", host, "address", "add", &address, "dev", device]);
                }
                // Packets of a radio: none is longer than the MTU, and each has its checksum.
                let off = ["-K", device, "tx", "off", "tso", "off", "gso", "off", "gro", "off"];
                done("ip", &[&["netns", "exec", host, "ethtool"], &off[..]].concat());
                ip(&["-n", host, "link", "set", "dev", device, "up"]);
            }
        }
        for (i, host) in this.hosts.iter().enumerate() {
            for family in [Family::V4, Family::V6] {
                for link in (0..number - 1).filter(|link| *link > i || *link + 1 < i) {
                    let via = if link > i { address(family, i, 2) } else { address(family, i - 1, 1) };
                    let to = format!("{}/{}", address(family, link, 0), family.prefix());
                    ip(&["-n", host, family.option(), "route", "add", &to, "via", &via]);
                }
            }
        }
        Some(this)
    }

    /// Lets every host lose TCP packets that it receives.
    pub(crate) fn lose(&self, probability: f64) {
        let probability = probability.to_string();
        for host in &self.hosts {
            for tables in ["iptables", "ip6tables"] {
                let rule = [
                    "-w",
                    "-t",
                    "raw",
                    "-A",
                    "PREROUTING",
                    "-p",
                    "tcp",
                    "-m",
                    "statistic",
                    "--mode",
                    "random",
                ];
                let rule = [&rule[..], &["--probability", &probability, "-j", "DROP"]].concat();
                done("ip", &[&["netns", "exec", host, tables], &rule[..]].concat());
            }
        }
    }

    /// Numbers of the routers.
    pub(crate) fn routers(&self) -> std::ops::Range<usize> {
        1..self.hosts.len() - 1
    }

    /// Starts a cache on a router, with rules.
    pub(crate) fn cache(&self, router: usize, more: &[&str]) -> Daemon {
        Daemon::spawn(self.command(router, &[&["--queue", "1", "--setup", "--json"], more].concat()))
    }

    /// A command `anabranch-cache` on a router.
    pub(crate) fn command(&self, router: usize, arguments: &[&str]) -> Command {
        let mut command = mortal("ip", Farewell::Kill);
        command.args(["netns", "exec", &self.hosts[router]]);
        command.arg(assert_cmd::cargo::cargo_bin!("anabranch-cache")).args(arguments);
        command
    }

    /// Serves `contents` over HTTP at the last host until the process ends, with this congestion
    /// control. Returns the URL.
    pub(crate) fn serve(&self, family: Family, contents: &[u8], congestion: &'static str) -> String {
        let last = self.hosts.len() - 2;
        let address = address(family, last, 2);
        let address = if family == Family::V6 { format!("[{address}]") } else { address };
        let listener = within(self.hosts.last().expect("there are hosts"), || {
            let at: SocketAddr = format!("{address}:0").parse().expect("an address");
            let listener = TcpListener::bind(at).expect("the port is free");
            set_tcp_congestion(&listener, congestion).expect("the kernel has it");
            listener
        });
        let port = listener.local_addr().expect("it is bound").port();
        let contents = Arc::new(contents.to_vec());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let contents = Arc::clone(&contents);
                thread::spawn(move || answer(stream, &contents));
            }
        });
        format!("http://{address}:{port}/")
    }

    /// Starts a client on the first host that fetches the URL to its standard output, within
    /// `seconds`.
    pub(crate) fn fetch(&self, url: &str, seconds: u32) -> Kept {
        let seconds = seconds.to_string();
        let mut client =
            inside(&self.hosts[0], &["curl", "--silent", "--globoff", "--max-time", &seconds, url]);
        Kept(client.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("curl runs"))
    }

    /// Fetches the URL; the client may take a minute.
    pub(crate) fn fetched(&self, url: &str) -> Vec<u8> {
        octets(&mut self.fetch(url, 60))
    }

    /// Adds a rule of IPv4 on a host.
    pub(crate) fn add_rule(&self, host: usize, rule: &str) {
        let words: Vec<&str> = rule.split(' ').collect();
        done("ip", &[&["netns", "exec", &self.hosts[host], "iptables", "-w"], &words[..]].concat());
    }

    /// The rules of a router, with those of IPv6.
    pub(crate) fn rules(&self, router: usize) -> String {
        let list =
            |tables| run("ip", &["netns", "exec", &self.hosts[router], tables, "-w", "-t", "security", "-S"]);
        ["iptables", "ip6tables"].map(|tables| text(&list(tables).stdout)).concat()
    }
}

impl Family {
    fn prefix(self) -> u8 {
        if self == Self::V4 { 24 } else { 64 }
    }

    fn option(self) -> &'static str {
        if self == Self::V4 { "-4" } else { "-6" }
    }
}

/// Address of an end of a link: 1 is nearer to the client, 0 is the network.
pub(crate) fn address(family: Family, link: usize, end: u8) -> String {
    match family {
        Family::V4 => format!("10.9.{link}.{end}"),
        Family::V6 => format!("fd09:{link}::{end}"),
    }
}

/// What a client received.
pub(crate) fn octets(client: &mut Kept) -> Vec<u8> {
    let mut octets = Vec::new();
    client.0.stdout.take().expect("it is piped").read_to_end(&mut octets).expect("a pipe can be read");
    octets
}

/// The last JSON object of a cache that is asked to end.
pub(crate) fn ended(mut cache: Daemon) -> serde_json::Value {
    cache.signal("-TERM");
    let (code, out) = cache.ended();
    assert_eq!(code, Some(0), "{out}");
    serde_json::from_str(out.lines().last().expect("it reports at the end")).expect("JSON")
}

/// Answers one request, and waits for the end of the connection: the kernel gives up a closed
/// socket with unacknowledged data after fewer retransmissions (tcp_orphan_retries). Errors are
/// those of clients that gave up.
fn answer(stream: TcpStream, contents: &[u8]) {
    let mut reader = BufReader::new(&stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|len| len > 2) {
        line.clear();
    }
    let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", contents.len());
    let _ = (&stream).write_all(&[head.as_bytes(), contents].concat());
    let _ = stream.shutdown(Shutdown::Write);
    let _ = std::io::copy(&mut reader, &mut std::io::sink());
}
