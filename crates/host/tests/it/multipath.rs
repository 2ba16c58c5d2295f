//! `anabranch-multipath` between hosts that are network namespaces, against Linux's Multipath TCP
//! and against itself.

#![expect(clippy::disallowed_types, reason = "programs end in real time")]

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_testkit::daemon::Daemon;
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns::{self, Broom, Farewell, Kept, inside, ip, mortal, name, run, text, within};
use anabranch_testkit::{contents, full_pipe};
use serde_json::Value;
use tempfile::TempDir;

use crate::world::terminate;

/// Port of the servers.
const PORT: u16 = 8000;
const SOCKS: &str = "127.0.0.1:1080";

/// A client and a server with two networks between them, a file at the server, and its server
/// process.
struct Hosts {
    client: String,
    server: String,
    file: Vec<u8>,
    folder: TempDir,
    _broom: Broom,
}

impl Hosts {
    /// Prints that the test is skipped and returns `None` if hosts cannot be made here. Each
    /// network carries at most `rate` Mbit/s in each direction; 0 is no limit.
    fn open(which: &str, rate: u32) -> Option<Self> {
        let programs = [("iptables", "iptables"), ("curl", "curl"), ("python3", "python3")];
        if netns::skipped()
            || programs.iter().any(|(program, package)| find_or_install(program, package).is_none())
        {
            return None;
        }
        let [client, server] = ["c", "s"].map(|end| name(&format!("{which}{end}")));
        let broom = Broom::new([&client, &server]);
        for host in [&client, &server] {
            ip(&["netns", "add", host]);
            ip(&["-n", host, "link", "set", "dev", "lo", "up"]);
            ip(&["-n", host, "mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", "4"]);
        }
        for net in 1..=2 {
            let [near, far] = [format!("c{net}"), format!("s{net}")];
            ip(&[
                "-n", &client, "link", "add", &near, "type", "veth", "peer", "name", &far, "netns", &server,
            ]);
            for (host, device, end) in [(&client, &near, 1), (&server, &far, 2)] {
                ip(&["-n", host, "address", "add", &format!("10.9.{net}.{end}/24"), "dev", device]);
                ip(&["-n", host, "address", "add", &format!("fd09:{net}::{end}/64"), "dev", device, "nodad"]);
                ip(&["-n", host, "link", "set", "dev", device, "up"]);
                if rate > 0 {
                    let shape =
                        format!("qdisc add dev {device} root tbf rate {rate}mbit burst 32kb latency 50ms");
                    netns::done("tc", &[&["-n", host][..], &shape.split(' ').collect::<Vec<_>>()].concat());
                }
            }
            let metric = net.to_string();
            ip(&[
                "-n",
                &client,
                "route",
                "add",
                "default",
                "via",
                &format!("10.9.{net}.2"),
                "metric",
                &metric,
            ]);
            ip(&[
                "-n",
                &client,
                "-6",
                "route",
                "add",
                "default",
                "via",
                &format!("fd09:{net}::2"),
                "metric",
                &metric,
            ]);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = contents(2_000_000);
        fs::write(folder.path().join("file"), &file).expect("a file");
        Some(Self { client, server, file, folder, _broom: broom })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    /// Starts a server of the kernel's MPTCP or TCP at the server.
    fn serve(&self, protocol: &str, port: u16) -> Kept {
        let file = self.path();
        let (port, file) = (port.to_string(), file.to_str().expect("text"));
        let mut server = inside(
            &self.server,
            &["python3", "-c", include_str!("multipath/server.py"), protocol, &port, file],
        );
        let mut server = Kept(server.stdout(Stdio::piped()).spawn().expect("python3 runs"));
        let mut ready = [0; 6];
        server.0.stdout.as_mut().expect("it is piped").read_exact(&mut ready).expect("it says so");
        server
    }

    /// Starts `anabranch-multipath` on a host.
    fn start(&self, host: &str, arguments: &[&str]) -> Daemon {
        Daemon::spawn(self.command(host, arguments))
    }

    fn command(&self, host: &str, arguments: &[&str]) -> Command {
        let mut command = mortal("ip", Farewell::Interrupt);
        command.args(["netns", "exec", host]);
        command.arg(assert_cmd::cargo::cargo_bin!("anabranch-multipath")).arg("--json").args(arguments);
        command
    }

    /// What curl receives on the client, without the `--silent --max-time 30` that it always has.
    fn curl(&self, arguments: &[&str]) -> Vec<u8> {
        self.curling(arguments).wait_with_output().expect("it ends").stdout
    }

    fn curling(&self, arguments: &[&str]) -> std::process::Child {
        let fixed = ["curl", "--silent", "--show-error", "--globoff", "--max-time", "30"];
        inside(&self.client, &[&fixed, arguments].concat()).stdout(Stdio::piped()).spawn().expect("curl runs")
    }

    /// Counters of MPTCP of a host's kernel.
    fn counters(&self, host: &str) -> BTreeMap<String, u64> {
        let said = text(&inside(host, &["cat", "/proc/net/netstat"]).output().expect("it is there").stdout);
        let rows: Vec<Vec<&str>> = said
            .lines()
            .filter_map(|line| line.strip_prefix("MPTcpExt: "))
            .map(|line| line.split(' ').collect())
            .collect();
        let value = |text: &&str| text.parse().expect("a number");
        rows[0].iter().map(|name| (*name).to_owned()).zip(rows[1].iter().map(value)).collect()
    }
}

/// The last report of a process that is asked to end.
fn ended(mut daemon: Daemon) -> Value {
    daemon.signal("-TERM");
    let (code, out) = daemon.ended();
    assert_eq!(code, Some(0), "{out}");
    serde_json::from_str(out.lines().last().expect("it reports at the end")).expect("JSON")
}

/// Bytes that each path has carried.
fn carried(report: &Value) -> Vec<u64> {
    let of = |path: &Value| {
        path["sent_bytes"].as_u64().expect("a number") + path["received_bytes"].as_u64().expect("a number")
    };
    report["paths"].as_array().expect("a list").iter().map(of).collect()
}

#[test]
fn proxies_and_forwards_reach_a_kernel_over_all_interfaces() {
    let Some(hosts) = Hosts::open("mpa", 0) else { return };
    let _server = hosts.serve("mptcp", PORT);
    let forward = format!("127.0.0.1:9000=10.9.1.2:{PORT}");
    let daemon =
        hosts.start(&hosts.client, &["--socks", SOCKS, "--connect", "127.0.0.1:8080", "--forward", &forward]);
    let file = hosts.path();
    let file = file.to_str().expect("text");
    for (proxy, url) in [
        (&["--socks5-hostname", SOCKS][..], "http://10.9.1.2:8000/"),
        (&["--socks5-hostname", SOCKS], "http://[fd09:2::2]:8000/"),
        (&["--proxytunnel", "--proxy", "127.0.0.1:8080"], "http://10.9.2.2:8000/"),
        (&["--proxytunnel", "--proxy", "127.0.0.1:8080"], "http://[fd09:1::2]:8000/"),
        (&[], "http://127.0.0.1:9000/"),
    ] {
        assert!(hosts.curl(&[proxy, &[url]].concat()) == hosts.file, "{proxy:?} {url}");
        let said = hosts.curl(&[proxy, &["--upload-file", file, url]].concat());
        assert_eq!(text(&said), "same", "{proxy:?} {url}");
    }
    let report = ended(daemon);
    assert_eq!((&report["opened"], &report["fallbacks"]), (&10.into(), &0.into()), "{report}");
    assert!(carried(&report).iter().all(|bytes| *bytes > 500_000), "{report}");
    let counters = hosts.counters(&hosts.server);
    assert!(counters["MPJoinAckRx"] >= 9, "{counters:?}");
    assert_eq!((counters["MPCapableFallbackACK"], counters["MPFailRx"], counters["DataCsumErr"]), (0, 0, 0));
}

/// The third acknowledgement and the first data carry the keys. If both are lost, the next segment
/// brings them, or the kernel would take the connection as TCP.
#[test]
fn the_loss_of_the_first_segments_ends_no_multipath() {
    let Some(hosts) = Hosts::open("mpm", 0) else { return };
    let _server = hosts.serve("mptcp", PORT);
    let daemon = hosts.start(&hosts.client, &["--socks", SOCKS, "--interface", "c1"]);
    let file = hosts.path();
    for (url, iptables) in [("http://10.9.1.2:8000/", "iptables"), ("http://[fd09:1::2]:8000/", "ip6tables")]
    {
        for segments in 1..=4 {
            // Each rule drops the first packet that it sees.
            let rule = "INPUT -p tcp --dport 8000 ! --syn -m statistic --mode nth --every 1000000 --packet 0 -j DROP";
            let rule: Vec<&str> = rule.split(' ').collect();
            let tables = |deed: &str| {
                let status = inside(&hosts.server, &[&[iptables, deed], &rule[..]].concat()).status();
                assert!(status.expect("it runs").success());
            };
            (0..segments).for_each(|_| tables("-A"));
            let upload = ["--upload-file", file.to_str().expect("text"), "--header", "Expect:"];
            let said = hosts.curl(&[&["--socks5-hostname", SOCKS][..], &upload, &[url]].concat());
            assert_eq!(text(&said), "same", "{url} {segments}");
            (0..segments).for_each(|_| tables("-D"));
        }
    }
    let report = ended(daemon);
    assert_eq!((&report["opened"], &report["fallbacks"]), (&8.into(), &0.into()), "{report}");
    let counters = hosts.counters(&hosts.server);
    let fallbacks: Vec<_> =
        counters.iter().filter(|(name, of)| name.contains("Fallback") && **of > 0).collect();
    assert!(fallbacks.is_empty() && counters["DSSNotMatching"] == 0, "{counters:?}");
}

#[test]
fn a_server_without_mptcp_is_reached_by_tcp() {
    let Some(hosts) = Hosts::open("mpb", 0) else { return };
    let _server = hosts.serve("tcp", PORT);
    let daemon = hosts.start(&hosts.client, &["--socks", SOCKS]);
    let file = hosts.path();
    let proxy = ["--socks5-hostname", SOCKS, "http://10.9.1.2:8000/"];
    assert!(hosts.curl(&proxy) == hosts.file);
    let upload = ["--upload-file", file.to_str().expect("text")];
    assert_eq!(text(&hosts.curl(&[&upload[..], &proxy].concat())), "same");
    let report = ended(daemon);
    assert_eq!((&report["opened"], &report["fallbacks"]), (&2.into(), &2.into()), "{report}");
}

#[test]
fn listeners_serve_the_kernel_s_clients_and_our_own() {
    let Some(hosts) = Hosts::open("mpd", 0) else { return };
    // A plain server, which only this host reaches.
    let _server = hosts.serve("tcp", 9000);
    let server = hosts.start(&hosts.server, &["--listen", "8000=127.0.0.1:9000"]);
    // The kernel's client with a second address, by its own path manager.
    ip(&["-n", &hosts.client, "mptcp", "endpoint", "add", "10.9.2.1", "dev", "c2", "subflow"]);
    ip(&["-n", &hosts.client, "rule", "add", "from", "10.9.2.1", "table", "77"]);
    ip(&["-n", &hosts.client, "route", "add", "default", "via", "10.9.2.2", "table", "77"]);
    let client = ["python3", "-c", include_str!("multipath/client.py"), "10.9.1.2", "8000"];
    let fetched = inside(&hosts.client, &client).output().expect("python3 runs");
    assert!(fetched.stdout == hosts.file, "{}", text(&fetched.stderr));
    let counters = hosts.counters(&hosts.client);
    assert!(counters["MPJoinSynAckRx"] >= 1 && counters["MPCapableSYNACKRX"] == 1, "{counters:?}");
    // A client without MPTCP.
    assert!(hosts.curl(&["http://10.9.2.2:8000/"]) == hosts.file);
    let daemon = hosts.start(&hosts.client, &["--socks", SOCKS]);
    assert!(hosts.curl(&["--socks5-hostname", SOCKS, "http://10.9.1.2:8000/"]) == hosts.file);
    let report = ended(daemon);
    assert_eq!(report["fallbacks"], 0, "{report}");
    assert!(carried(&report).iter().all(|bytes| *bytes > 100_000), "{report}");
    let report = ended(server);
    assert_eq!((&report["accepted"], &report["connections"]), (&3.into(), &0.into()), "{report}");
}

#[test]
fn an_interface_that_fails_is_left_and_used_again() {
    let Some(hosts) = Hosts::open("mpe", 10) else { return };
    let _server = hosts.serve("mptcp", PORT);
    let daemon = hosts.start(&hosts.client, &["--socks", SOCKS]);
    let file = hosts.path();
    let upload = ["--upload-file", file.to_str().expect("text")];
    let url = ["--socks5-hostname", SOCKS, "http://10.9.1.2:8000/"];
    let upload = hosts.curling(&[&upload[..], &url].concat());
    let download = hosts.curling(&url);
    thread::park_timeout(Duration::from_millis(300));
    ip(&["-n", &hosts.client, "link", "set", "dev", "c2", "down"]);
    daemon.says("c2 is lost");
    thread::park_timeout(Duration::from_millis(300));
    ip(&["-n", &hosts.client, "link", "set", "dev", "c2", "up"]);
    // The kernel has dropped it with the link.
    ip(&["-n", &hosts.client, "route", "add", "default", "via", "10.9.2.2", "metric", "2"]);
    daemon.says("c2 has returned");
    assert_eq!(text(&upload.wait_with_output().expect("it ends").stdout), "same");
    assert!(download.wait_with_output().expect("it ends").stdout == hosts.file);
    let report = ended(daemon);
    assert!(carried(&report).iter().all(|bytes| *bytes > 500_000), "{report}");
}

/// Each connection sends, closes its direction, and gets its answer afterwards.
#[test]
fn many_connections_at_once_leave_nothing() {
    let Some(hosts) = Hosts::open("mpf", 0) else { return };
    let _server = hosts.serve("mptcp", PORT);
    let daemon = hosts.start(&hosts.client, &["--socks", SOCKS, "--metrics", "127.0.0.1"]);
    const NUMBER: usize = 200;
    within(&hosts.client, || {
        let open = || {
            let mut stream = TcpStream::connect(SOCKS).expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a legal time");
            stream.write_all(&[5, 1, 0, 5, 1, 0, 1, 10, 9, 1, 2, 0x1f, 0x40]).expect("it reads");
            stream
        };
        let mut streams: Vec<TcpStream> = (0..NUMBER).map(|_| open()).collect();
        for stream in &mut streams {
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).expect("it answers");
            assert_eq!(answer[..4], [5, 0, 5, 0]);
            stream.write_all(b"PUT / HTTP/1.0\r\ncontent-length: 9\r\n\r\n").expect("it reads");
        }
        for stream in &mut streams {
            stream.write_all(b"no thing.").expect("it reads");
            stream.shutdown(Shutdown::Write).expect("it is open");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("text");
            assert!(answer.ends_with("different"), "{answer}");
        }
    });
    // The last ones may still wait for the peer's FIN.
    let open = || text(&hosts.curl(&["http://127.0.0.1:47202/metrics"]));
    let closed = |page: &str| page.contains("\nanabranch_multipath_connections 0\n");
    assert!((0..500).any(|_| closed(&open()) || {
        thread::park_timeout(Duration::from_millis(20));
        false
    }));
    let files = text(&run("ls", &[&format!("/proc/{}/fd", daemon.child.id())]).stdout).lines().count();
    assert!(0 < files && files < 50, "{files}");
    let report = ended(daemon);
    assert_eq!((&report["opened"], &report["connections"]), (&NUMBER.into(), &0.into()), "{report}");
}

#[test]
fn what_a_client_of_the_proxies_must_not_say_is_answered() {
    let Some(hosts) = Hosts::open("mpg", 0) else { return };
    let daemon = hosts.start(&hosts.client, &["--socks", SOCKS, "--connect", "127.0.0.1:8080"]);
    let said = |address: &str, request: &[u8]| {
        within(&hosts.client, || {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a legal time");
            stream.write_all(request).expect("it reads");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).expect("it closes");
            answer
        })
    };
    assert_eq!(said(SOCKS, b"GET / HTTP/1.1\r\n\r\n"), b"");
    assert_eq!(said(SOCKS, &[5, 1, 2]), [5, 0xff]);
    // A port without a server, and an address of this host.
    assert_eq!(said(SOCKS, &[5, 1, 0, 5, 1, 0, 1, 10, 9, 1, 2, 0, 9])[2..4], [5, 5]);
    assert_eq!(said(SOCKS, &[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 9])[2..4], [5, 4]);
    let http = |request: &str| text(&said("127.0.0.1:8080", request.as_bytes()));
    assert!(http("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(http("CONNECT x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(http("CONNECT 10.9.1.2:9 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 502 "));
    ended(daemon);
}

/// A pipe that is full and a reader that has gone stop no connection.
#[test]
fn nobody_has_to_read_the_reports() {
    let Some(hosts) = Hosts::open("mph", 0) else { return };
    let _server = hosts.serve("tcp", PORT);
    let (reader, writer) = full_pipe();
    let mut command = hosts.command(&hosts.client, &["--socks", SOCKS]);
    let mut daemon = Kept(command.stdout(writer).stderr(Stdio::piped()).spawn().expect("it starts"));
    drop(command);
    let mut said = BufReader::new(daemon.0.stderr.take().expect("it is piped"));
    let mut until = |text: &str| {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(said.read_line(&mut line).expect("text") > 0, "it never says {text}");
        }
    };
    until("listening");
    // The first report is due.
    thread::park_timeout(Duration::from_millis(1300));
    let fetch = ["--socks5-hostname", SOCKS, "--max-time", "10", "http://10.9.1.2:8000/"];
    assert!(hosts.curl(&fetch) == hosts.file);
    drop(reader);
    until("no more reports");
    assert!(hosts.curl(&fetch) == hosts.file);
    terminate(&mut daemon);
}

/// The log of a program whose standard error is full and not read stops no connection and no change
/// of an interface.
#[test]
fn nobody_has_to_read_the_log() {
    let Some(hosts) = Hosts::open("mpj", 0) else { return };
    let _server = hosts.serve("tcp", PORT);
    let (_reader, writer) = full_pipe();
    let mut command = hosts.command(&hosts.client, &["--socks", SOCKS]);
    let mut daemon = Kept(command.stdout(Stdio::piped()).stderr(writer).spawn().expect("it starts"));
    drop(command);
    let fetch = ["--socks5-hostname", SOCKS, "--max-time", "2", "http://10.9.1.2:8000/"];
    let fetched = || hosts.curl(&fetch) == hosts.file;
    let soon = |done: &dyn Fn() -> bool| {
        (0..20).any(|_| {
            thread::park_timeout(Duration::from_millis(100));
            done()
        })
    };
    assert!(soon(&fetched));
    ip(&["-n", &hosts.client, "link", "set", "dev", "c1", "down"]);
    // The warning of its loss waits, and the other interface carries the next connection.
    let fetch = ["--socks5-hostname", SOCKS, "--max-time", "2", "http://10.9.2.2:8000/"];
    assert!(soon(&|| hosts.curl(&fetch) == hosts.file));
    terminate(&mut daemon);
}

/// Clients that say nothing take no more than a share of the descriptors, and make room for those
/// that say something.
#[test]
fn clients_that_say_nothing_leave_room_for_the_others() {
    let Some(hosts) = Hosts::open("mpk", 0) else { return };
    let _server = hosts.serve("mptcp", PORT);
    let mut command = mortal("ip", Farewell::Interrupt);
    let limited = "ulimit -n 128 && exec \"$0\" --json --socks 127.0.0.1:1080 --connect 127.0.0.1:8080";
    command.args(["netns", "exec", &hosts.client, "sh", "-c", limited]);
    command.arg(assert_cmd::cargo::cargo_bin!("anabranch-multipath"));
    let daemon = Daemon::spawn(command);
    let files = || text(&run("ls", &[&format!("/proc/{}/fd", daemon.child.id())]).stdout).lines().count();
    let often = || {
        (0..50).map(|_| {
            thread::park_timeout(Duration::from_millis(20));
            files()
        })
    };
    // What sets up routes and rules has descriptors of its own at first.
    let idle = often().min().expect("a number");
    for (address, option) in [(SOCKS, "--socks5-hostname"), ("127.0.0.1:8080", "--proxytunnel")] {
        let proxy =
            if address == SOCKS { [option, SOCKS].to_vec() } else { vec![option, "--proxy", address] };
        let open = || TcpStream::connect(address).expect("the kernel takes it");
        // A client that has said all but its destination is a silent one.
        let silent: Vec<TcpStream> = within(&hosts.client, || (0..150).map(|_| open()).collect());
        let mut hesitant: Vec<TcpStream> = within(&hosts.client, || (0..150).map(|_| open()).collect());
        for client in &mut hesitant {
            // Those that have given way are closed.
            let _ = client.write_all(if address == SOCKS { &[5, 1, 0] } else { b"CONNECT " });
        }
        // All are still there.
        let fetch = ["--max-time", "5", "http://10.9.1.2:8000/"];
        assert!(hosts.curl(&[&proxy[..], &fetch].concat()) == hosts.file, "{address}");
        // On a busy host some have given way before others are accepted.
        let busy: Vec<usize> = often().collect();
        assert!(busy.iter().any(|busy| idle + 10 < *busy), "{address}: {idle} {busy:?}");
        assert!(busy.iter().all(|busy| *busy < idle + 50), "{address}: {idle} {busy:?}");
        // Interfaces are followed, too.
        ip(&["-n", &hosts.client, "link", "set", "dev", "c2", "down"]);
        daemon.says("c2 is lost");
        ip(&["-n", &hosts.client, "link", "set", "dev", "c2", "up"]);
        daemon.says("c2 has returned");
        drop((silent, hesitant));
    }
    ended(daemon);
}

/// The kernel drops the static routes of an interface that goes down, and keeps those of its
/// addresses.
#[test]
fn an_interface_that_returns_without_its_routes_is_warned_of() {
    let Some(hosts) = Hosts::open("mpl", 0) else { return };
    let daemon = hosts.start(&hosts.client, &["--socks", SOCKS]);
    let set = |state: &str| ip(&["-n", &hosts.client, "link", "set", "dev", "c2", state]);
    set("down");
    daemon.says("c2 is lost");
    set("up");
    daemon.says("c2 has no default route");
    set("down");
    daemon.says("c2 is lost");
    // Without any route it is not used.
    ip(&["-n", &hosts.client, "address", "flush", "dev", "c2"]);
    ip(&["-n", &hosts.client, "address", "add", "10.9.2.1/24", "dev", "c2", "noprefixroute"]);
    ip(&["netns", "exec", &hosts.client, "sysctl", "-qw", "net.ipv6.conf.c2.disable_ipv6=1"]);
    set("up");
    daemon.says("c2 has no route");
    let report = ended(daemon);
    let up = |name: &str| {
        let paths = report["paths"].as_array().expect("a list").iter();
        paths.filter(|path| path["interface"] == name).all(|path| path["up"] == true)
    };
    assert!(up("c1") && !up("c2"), "{report}");
}

/// Programs that configure an interface set its routes last.
#[test]
fn an_interface_whose_routes_come_soon_is_not_warned_of() {
    let Some(hosts) = Hosts::open("mpn", 0) else { return };
    let daemon = hosts.start(&hosts.client, &["--socks", SOCKS]);
    let configure = |commands: &str| {
        let done = inside(&hosts.client, &["sh", "-ec", commands]).status().expect("a shell");
        assert!(done.success(), "{commands}");
    };
    // All that is said in 4 s, which is longer than a warning waits.
    let said = || std::iter::from_fn(|| daemon.line_within(Duration::from_secs(4))).collect::<Vec<_>>();
    let default = "ip route add default via 10.9.2.2 metric 2";
    // Two halves, as a VPN sets them, are a default route.
    for routes in [default, "ip route add 0.0.0.0/1 via 10.9.2.2; ip route add 128.0.0.0/1 via 10.9.2.2"] {
        configure("ip link set dev c2 down");
        daemon.says("c2 is lost");
        configure(&format!("ip link set dev c2 up; sleep 0.3; {routes}"));
        let said = said();
        assert!(said.iter().any(|line| line.contains("c2 has returned")), "{said:?}");
        assert!(!said.iter().any(|line| line.contains("warning")), "{said:?}");
    }
    // A warning that was given is taken back, once.
    configure("ip link set dev c2 down");
    daemon.says("c2 is lost");
    configure("ip link set dev c2 up");
    daemon.says("c2 has no default route");
    configure(default);
    daemon.says("c2 is used for all destinations");
    assert_eq!(said(), Vec::<String>::new());
    ended(daemon);
}

/// States of the program's connections when it is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Busy {
    Idle,
    Upload,
    Download,
    HalfOpen,
}

/// Programs of the host that wait before they do their work for the seconds that a file `slow` in
/// the folder says, as on a host without a free processor. Returns the PATH to use.
fn slow_programs(folder: &Path) -> String {
    for program in ["ip", "iptables", "iptables-restore", "ip6tables", "ip6tables-restore"] {
        let path = folder.join(program);
        let found = text(&run("sh", &["-c", &format!("command -v {program}")]).stdout);
        let slow = folder.join("slow");
        let script = format!(
            "#!/bin/sh\n[ -e {slow} ] && sleep $(cat {slow})\nexec {} \"$@\"\n",
            found.trim(),
            slow = slow.display()
        );
        fs::write(&path, script).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
    }
    format!("{}:{}", folder.display(), std::env::var("PATH").expect("there is a PATH"))
}

/// Ctrl-C removes all in few steps, and the peers learn at once that their connections are over.
#[test]
fn a_program_that_is_stopped_ends_soon_in_every_state() {
    let Some(hosts) = Hosts::open("mpo", 1) else { return };
    let _server = hosts.serve("mptcp", PORT);
    let folder = tempfile::tempdir().expect("a folder");
    let (path, slow) = (slow_programs(folder.path()), folder.path().join("slow"));
    let silence = "iptables -A INPUT -p tcp --dport 8009 -j DROP";
    let silenced = inside(&hosts.server, &silence.split(' ').collect::<Vec<_>>()).status();
    assert!(silenced.expect("it runs").success());
    let file = hosts.path();
    let file = file.to_str().expect("text");
    let connected = || {
        let list = ["ss", "-Htn", "state", "established", "sport", "=", ":8000"];
        text(&inside(&hosts.server, &list).output().expect("it is part of iproute2").stdout)
    };
    let soon = |done: &dyn Fn() -> bool| {
        (0..500).any(|_| {
            thread::park_timeout(Duration::from_millis(20));
            done()
        })
    };
    for state in [Busy::Idle, Busy::Upload, Busy::Download, Busy::HalfOpen] {
        let mut command = hosts.command(&hosts.client, &["--socks", SOCKS]);
        command.env("PATH", &path);
        let mut daemon = Daemon::spawn(command);
        let proxy = ["--socks5-hostname", SOCKS];
        let client = match state {
            Busy::Idle => None,
            Busy::Upload => Some(["--upload-file", file, "http://10.9.1.2:8000/"].to_vec()),
            Busy::Download => Some(vec!["http://10.9.1.2:8000/"]),
            Busy::HalfOpen => Some(vec!["http://10.9.1.2:8009/"]),
        };
        let client = client.map(|request| hosts.curling(&[&proxy[..], &request].concat()));
        if matches!(state, Busy::Upload | Busy::Download) {
            assert!(soon(&|| connected().lines().count() == 2), "{state:?}: {}", connected());
        }
        // Data is under way, and the program has seen what it has changed itself.
        thread::park_timeout(Duration::from_millis(800));
        fs::write(&slow, "0.3").expect("a file");
        let begun = Instant::now();
        daemon.signal("-INT");
        let (code, said) = daemon.ended();
        let time = begun.elapsed();
        println!("{state:?}: {time:?}");
        // One program after the other for each family and each chain takes 4.8 s at least.
        assert!(code == Some(130) && time < Duration::from_millis(4500), "{state:?}: {time:?} {said}");
        fs::remove_file(&slow).expect("it is there");
        assert!(soon(&|| connected().is_empty()), "{state:?}: {}", connected());
        if let Some(client) = client {
            // It has failed, not ended.
            assert!(!client.wait_with_output().expect("it ends").status.success(), "{state:?}");
        }
    }
}

/// An interface whose name no rule can have does not stop the others; remote clients of a proxy do
/// not reach this host.
#[test]
fn what_cannot_be_used_and_what_must_not_be_reached() {
    let Some(hosts) = Hosts::open("mpi", 0) else { return };
    ip(&["-n", &hosts.client, "link", "add", "odd~name", "type", "veth", "peer", "name", "odd~peer"]);
    ip(&["-n", &hosts.client, "link", "set", "dev", "odd~peer", "up"]);
    ip(&["-n", &hosts.client, "address", "add", "10.9.7.1/24", "dev", "odd~name"]);
    ip(&["-n", &hosts.client, "link", "set", "dev", "odd~name", "up"]);
    let _server = hosts.serve("tcp", PORT);
    let file = hosts.path();
    let own =
        ["python3", "-c", include_str!("multipath/server.py"), "tcp", "8001", file.to_str().expect("text")];
    let mut own = Kept(inside(&hosts.client, &own).stdout(Stdio::piped()).spawn().expect("python3 runs"));
    own.0.stdout.as_mut().expect("it is piped").read_exact(&mut [0; 6]).expect("it says so");
    let reached = |url: &str| hosts.curl(&["--socks5-hostname", SOCKS, url]) == hosts.file;
    ip(&["-n", &hosts.client, "address", "add", "10.9.1.5/24", "dev", "c1"]);
    for (options, itself) in [(&["--socks", SOCKS][..], true), (&["--socks", SOCKS, "--allow-remote"], false)]
    {
        let daemon = hosts.start(&hosts.client, options);
        let warnings = daemon.preface.iter().filter(|line| line.contains("odd~name")).count();
        assert_eq!(warnings, 1, "{:?}", daemon.preface);
        assert!(reached("http://10.9.1.2:8000/"));
        // The last is a secondary address, whose packets have another source.
        for url in ["http://10.9.1.1:8001/", "http://[fd09:2::1]:8001/", "http://10.9.1.5:8001/"] {
            assert_eq!(reached(url), itself, "{options:?} {url}");
        }
        let report = ended(daemon);
        assert_eq!(report["paths"].as_array().map(Vec::len), Some(2), "{report}");
    }
}

#[test]
fn bad_options_have_exit_code_2_and_a_hint() {
    let multipath = |arguments: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-multipath"));
        let output = command.args(arguments).output().expect("it starts");
        (output.status.code(), text(&output.stderr))
    };
    for address in ["--socks=0.0.0.0", "--connect=[::]:8080", "--forward=0.0.0.0:80=host:80"] {
        let (code, said) = multipath(&[address, "--check"]);
        assert!(code == Some(2) && said.contains("--allow-remote"), "{said}");
        assert_eq!(multipath(&[address, "--allow-remote", "--check"]).0, Some(0));
    }
    for wrong in
        ["--forward=80", "--forward=x=host:80", "--listen=0=host:80", "--listen=80=host", "--scheduler=x"]
    {
        let (code, said) = multipath(&[wrong, "--check"]);
        assert!(code == Some(2) && said.contains(wrong.split('=').next().expect("it has one")), "{said}");
    }
    assert_eq!(multipath(&["--check"]).0, Some(0));
    let long = "--interface=sixteen-bytes-00";
    for (wrong, error) in [
        ("--queue-delay=999us", "1 ms to 1 s"),
        ("--queue-delay=1001ms", "1 ms to 1 s"),
        ("--queue-delay=10", "no unit"),
        ("--interface=lo", "loopback"),
        ("--backup=lo", "loopback"),
        ("--interface=", "expected the name"),
        ("--interface=a/b", "slash"),
        ("--backup=a b", "space"),
        (long, "15 bytes"),
    ] {
        let (code, said) = multipath(&[wrong, "--check"]);
        assert!(code == Some(2) && said.contains(error), "{wrong}: {said}");
    }
    for right in ["--queue-delay=0s", "--queue-delay=1ms", "--queue-delay=1s", &long[..long.len() - 1]] {
        assert_eq!(multipath(&[right, "--check"]).0, Some(0), "{right}");
    }
    for same in [
        ["--socks=127.0.0.1:8080", "--connect=127.0.0.1"],
        ["--socks=127.0.0.1", "--forward=1080=host:80"],
        ["--listen=80=host:80", "--listen=80=other:80"],
        ["--listen=47202=host:80", "--metrics=0.0.0.0"],
        ["--socks=127.0.0.1:8080", "--connect=[::ffff:127.0.0.1]:8080"],
    ] {
        let (code, said) = multipath(&[&same[..], &["--check"]].concat());
        assert!(code == Some(2) && said.contains("two services want port"), "{same:?}: {said}");
    }
    for (twice, error) in [
        ([["--interface", "eth0"], ["--backup", "eth0"]], "named by --interface and by --backup"),
        ([["--backup", "eth0"], ["--interface", "eth0"]], "named by --interface and by --backup"),
        ([["--interface", "eth0"], ["--interface", "eth0"]], "eth0 is named twice"),
        ([["--backup", "eth0"], ["--backup", "eth0"]], "eth0 is named twice"),
    ] {
        let (code, said) = multipath(&[twice.as_flattened(), &["--check"]].concat());
        assert!(code == Some(2) && said.contains(error) && said.contains("hint: "), "{twice:?}: {said}");
    }
    assert_eq!(multipath(&["--interface=eth0", "--interface=eth1", "--backup=wwan0", "--check"]).0, Some(0));
    let apart = ["--socks=127.0.0.1:80", "--listen=80=host:80", "--connect=127.0.0.2:80", "--check"];
    assert_eq!(multipath(&apart).0, Some(0));
}
