//! Paths of a host with two interfaces: `interfaces` and `routes`, with the kernel as the network.
//!
//! A program of its own, whose tests run one after the other: what a test starts inherits the locks
//! of all others, and keeps them as long as it runs.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anabranch_host::interfaces::{Interface, Watch, list};
use anabranch_host::routes::{Path, Routes, RoutesError, RoutesOptions};
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::given;
use anabranch_testkit::netns::{self, Broom, Kept, done, inside, ip, name, run, text, within};
use anabranch_testkit::prng::Prng;
use anabranch_wire::ip::{self as wire_ip, Header, Protocol};
use anabranch_wire::tcp::{Flags, Segment, SeqNumber};
use bytes::Bytes;

/// A host with the interfaces `up0` and `up1`, and a server behind both. Each interface has a
/// gateway, and the server has one address of each family.
struct Homes {
    host: String,
    server: String,
    _broom: Broom,
    _turn: MutexGuard<'static, ()>,
}

const SERVER_V4: &str = "10.8.9.9";
const SERVER_V6: &str = "fd08:9::9";

impl Homes {
    /// The host does not forward, checks the way back of packets strictly, and its firewall drops
    /// what it would forward. It has rules of its own in each table, as any host with a firewall.
    fn open() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        static TURN: Mutex<()> = Mutex::new(());
        if netns::skipped() || find_or_install("iptables", "iptables").is_none() {
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let number = NEXT.fetch_add(1, Relaxed);
        let (host, server) = (name(&format!("r{number}h")), name(&format!("r{number}s")));
        let this = Self { _broom: Broom::new([&host, &server]), host, server, _turn: turn };
        for netns in [&this.host, &this.server] {
            ip(&["netns", "add", netns]);
            ip(&["-n", netns, "link", "set", "dev", "lo", "up"]);
            within(netns, || {
                set("ipv6/conf/default/accept_dad", "0");
                // Namespaces may inherit these.
                set("ipv4/ip_forward", "0");
                set("ipv6/conf/all/forwarding", "0");
                set("ipv4/conf/all/rp_filter", "1");
            });
        }
        within(&this.server, || set("ipv4/conf/all/rp_filter", "0"));
        for i in 0..2 {
            let (near, far) = (format!("up{i}"), format!("down{i}"));
            let link = ["link", "add", &near, "type", "veth", "peer", "name", &far, "netns", &this.server];
            ip(&[&["-n", &this.host], &link[..]].concat());
            for (netns, device, end) in [(&this.host, &near, 1), (&this.server, &far, 2)] {
                for address in [format!("10.8.{i}.{end}/24"), format!("fd08:{i}::{end}/64")] {
                    ip(&["-n", netns, "address", "add", &address, "dev", device]);
                }
                ip(&["-n", netns, "link", "set", "dev", device, "up"]);
            }
            within(&this.server, || set(&format!("ipv4/conf/{far}/rp_filter"), "0"));
            this.default_route(i);
        }
        for address in [format!("{SERVER_V4}/32"), format!("{SERVER_V6}/128")] {
            ip(&["-n", &this.server, "address", "add", &address, "dev", "lo"]);
        }
        for tables in ["iptables", "ip6tables"] {
            for rule in [
                "-P FORWARD DROP",
                "-A FORWARD -p udp -j DROP",
                "-t nat -A POSTROUTING -p udp -j ACCEPT",
                "-t nat -A PREROUTING -p udp -j ACCEPT",
            ] {
                let words: Vec<&str> = rule.split(' ').collect();
                done("ip", &[&["netns", "exec", &this.host, tables, "-w"], &words[..]].concat());
            }
        }
        Some(this)
    }

    /// Adds the default routes of an interface, which its link loses when it goes down.
    fn default_route(&self, i: usize) {
        let (device, metric) = (format!("up{i}"), (100 + i).to_string());
        for via in [format!("10.8.{i}.2"), format!("fd08:{i}::2")] {
            let to = if via.contains(':') { "::/0" } else { "0.0.0.0/0" };
            let route = ["route", "add", to, "via", &via, "dev", &device, "metric", &metric];
            ip(&[&["-n", &self.host], &route[..]].concat());
        }
    }

    /// All that a command may have changed, as text.
    fn state(&self) -> String {
        within(&self.host, || {
            let show = |words: &str| {
                let words: Vec<&str> = words.split(' ').collect();
                let output = run(words[0], &words[1..]);
                assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
                text(&output.stdout)
            };
            let shown = [
                "ip -4 rule",
                "ip -6 rule",
                "ip -4 route show table all",
                "ip -6 route show table all",
                "ip -br link",
                "iptables-save",
                "ip6tables-save",
            ];
            // The date, and the counters of chains.
            let steady = |line: &str| match (line.starts_with('#'), line.split_once(" [")) {
                (true, _) => String::new(),
                (_, Some((chain, _))) if line.starts_with(':') => format!("{chain}\n"),
                _ => format!("{line}\n"),
            };
            let mut state: String = shown.map(show).concat().lines().map(steady).collect();
            for family in ["ipv4", "ipv6"] {
                let folder = format!("/proc/sys/net/{family}/conf");
                let devices = fs::read_dir(&folder).expect("the kernel has it");
                let mut devices: Vec<_> = devices.map(|entry| entry.expect("an entry").path()).collect();
                devices.sort();
                for device in devices {
                    for file in ["forwarding", "force_forwarding", "rp_filter", "accept_ra"] {
                        let value = fs::read_to_string(device.join(file)).unwrap_or_default();
                        state += &format!("{}/{file} {}\n", device.display(), value.trim());
                    }
                }
            }
            state
        })
    }

    /// A process that places and removes paths. It is killed when this is dropped.
    fn holder(&self) -> Kept {
        let mut holder = inside(&self.host, &[]);
        holder.arg(env::current_exe().expect("this test")).env(HOLDER, "1");
        holder.args(["--exact", "nothing_remains_of_a_process_that_is_killed_at_any_moment"]);
        Kept(holder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
    }

    /// Waits until a process has placed the path of `up0`.
    fn wait_for_a_path(&self) {
        within(&self.host, || {
            assert!((0..30_000).any(|_| is_forwarded() || {
                pass(Duration::from_millis(1));
                false
            }));
        });
    }

    fn interface(&self, name: &str) -> Interface {
        let found = within(&self.host, || list().expect("`ip` is here"));
        found.into_iter().find(|interface| interface.name == name).expect("it is there")
    }
}

fn routes(listen: &[u16]) -> Routes {
    Routes::new(RoutesOptions { listen: listen.to_vec() }).expect("no other process runs")
}

fn set(file: &str, value: &str) {
    fs::write(format!("/proc/sys/net/{file}"), value).expect("root may set this");
}

/// Whether the kernel forwards packets that arrive at `up0`.
fn is_forwarded() -> bool {
    let parameter = "/proc/sys/net/ipv4/conf/up0/forwarding";
    fs::read_to_string(parameter).expect("it is there").trim() == "1"
}

/// The next SYN that the kernel sends to the device, with its source and destination.
fn received(path: &Path) -> (IpAddr, IpAddr, Segment) {
    let mut buffer = [0; 2000];
    for _ in 0..2000 {
        let Ok(len) = path.device.recv(&mut buffer) else {
            thread::park_timeout(Duration::from_millis(1));
            continue;
        };
        let (header, payload) = wire_ip::parse(&buffer[..len]).expect("the kernel's packet");
        if header.protocol != Protocol::TCP {
            continue;
        }
        let payload = Bytes::copy_from_slice(&buffer[payload]);
        let segment = wire_ip::parse_tcp(&header, payload).expect("a segment");
        if segment.flags.contains(Flags::SYN) {
            return (header.src, header.dst, segment);
        }
    }
    panic!("nothing arrives at {}", path.name);
}

fn send(path: &Path, from: IpAddr, to: IpAddr, segment: &Segment) {
    let mut packet = Vec::new();
    wire_ip::emit_tcp(&Header::new(from, to, Protocol::TCP), segment, &mut packet).expect("legal");
    path.device.send(&packet).expect("the kernel takes it");
}

/// Our end opens a connection to the server, by hand. Returns the client's address as the server
/// sees it.
fn connect(homes: &Homes, path: &Path, local: IpAddr, server: &str) -> SocketAddr {
    let server: IpAddr = server.parse().expect("an address");
    let listener = within(&homes.server, || TcpListener::bind((server, 0)).expect("a port is free"));
    let dst_port = listener.local_addr().expect("it is bound").port();
    let syn = Segment {
        src_port: 5000,
        dst_port,
        seq: SeqNumber(1),
        flags: Flags::SYN,
        window: 1000,
        ..Segment::default()
    };
    send(path, local, server, &syn);
    let (from, to, answer) = received(path);
    assert_eq!((from, to, answer.src_port, answer.dst_port), (server, local, dst_port, 5000));
    assert_eq!(answer.flags, Flags::SYN.with(Flags::ACK));
    let ack = Segment { seq: SeqNumber(2), ack: answer.seq + 1, flags: Flags::ACK, ..syn };
    send(path, local, server, &ack);
    listener.accept().expect("the handshake is complete").1
}

#[test]
fn packets_of_a_path_leave_through_its_interface_and_nothing_remains() {
    let Some(homes) = Homes::open() else { return };
    let before = homes.state();
    within(&homes.host, || {
        let mut routes = routes(&[8080]);
        assert!(matches!(Routes::new(RoutesOptions::default()), Err(RoutesError::Running)));
        assert!(matches!(Routes::tear_down(), Err(RoutesError::Running)));
        let names = ["up0", "up1"];
        let paths = names.map(|name| routes.place(&homes.interface(name)).expect("it is placed"));
        assert_eq!(names.map(|name| homes.interface(name).up), [true; 2]);
        // Our own devices are no interfaces.
        assert_eq!(list().expect("`ip` is here").len(), 2);
        for (i, path) in paths.iter().enumerate() {
            let v6 = path.local_v6.expect("the kernel translates IPv6");
            let seen = connect(&homes, path, path.local_v4.into(), SERVER_V4);
            assert_eq!(seen.ip().to_string(), format!("10.8.{i}.1"));
            let seen = connect(&homes, path, v6.into(), SERVER_V6);
            assert_eq!(Ok(seen.ip()), format!("fd08:{i}::1").parse());
            // A stranger reaches the port of --listen.
            let to: SocketAddr = format!("10.8.{i}.1:8080").parse().expect("an address");
            let patience = Duration::from_secs(5);
            let server = homes.server.clone();
            let stranger =
                thread::spawn(move || within(&server, || TcpStream::connect_timeout(&to, patience)));
            let (from, local, syn) = received(path);
            assert_eq!((local, syn.dst_port), (IpAddr::V4(path.local_v4), 8080));
            let answer = Segment {
                src_port: 8080,
                dst_port: syn.src_port,
                ack: syn.seq + 1,
                flags: Flags::SYN.with(Flags::ACK),
                window: 1000,
                ..Segment::default()
            };
            send(path, local, from, &answer);
            stranger.join().expect("no panic").expect("it is connected");
        }
        // One path is removed, the other stays.
        routes.remove("up0").expect("it is removed");
        connect(&homes, &paths[1], paths[1].local_v4.into(), SERVER_V4);
        drop(paths);
        routes.remove("up1").expect("it is removed");
        assert_eq!(homes.state(), before);
    });
    assert_eq!(homes.state(), before);
}

/// Strangers cannot use the host as a router, or reach the device of a path, although the kernel
/// forwards for the interface.
#[test]
fn strangers_are_not_forwarded() {
    let Some(homes) = Homes::open() else { return };
    for tables in ["iptables", "ip6tables"] {
        done("ip", &["netns", "exec", &homes.host, tables, "-w", "-P", "FORWARD", "ACCEPT"]);
    }
    within(&homes.host, || {
        let mut routes = routes(&[]);
        let path = routes.place(&homes.interface("up0")).expect("it is placed");
        let target = path.local_v4.to_string();
        ip(&["-n", &homes.server, "route", "add", &target, "via", "10.8.0.1"]);
        // A host behind up1.
        ip(&["-n", &homes.server, "route", "add", "10.8.77.7", "via", "10.8.0.1"]);
        ip(&["-n", &homes.host, "route", "add", "10.8.77.7", "via", "10.8.1.2"]);
        for to in [target.as_str(), "10.8.77.7"] {
            let to: SocketAddr = format!("{to}:80").parse().expect("an address");
            within(&homes.server, || {
                TcpStream::connect_timeout(&to, Duration::from_millis(200)).expect_err("it is refused")
            });
        }
        let mut buffer = [0; 2000];
        while let Ok(len) = path.device.recv(&mut buffer) {
            let (header, _) = wire_ip::parse(&buffer[..len]).expect("the kernel's packet");
            assert_ne!(header.protocol, Protocol::TCP, "a stranger's packet arrives");
        }
        let link = run("ip", &["-n", &homes.server, "-s", "-j", "link", "show", "dev", "down1"]);
        let link: serde_json::Value = serde_json::from_slice(&link.stdout).expect("JSON");
        let seen = run("ip", &["-n", &homes.host, "-s", "-j", "neigh", "show", "dev", "up1"]);
        assert!(!text(&seen.stdout).contains("10.8.1.2"), "it was forwarded: {link}");
        drop(routes);
    });
}

/// At any moment a process that changes paths is killed. The long form is
/// `cargo xtask campaign multipath`.
#[test]
fn nothing_remains_of_a_process_that_is_killed_at_any_moment() {
    if env::var(HOLDER).is_ok() {
        hold();
    }
    let _alone = HOLDERS.lock();
    let (kills, mut prng) = (
        given("ANABRANCH_MULTIPATH_KILLS").unwrap_or(3),
        Prng::new(given("ANABRANCH_MULTIPATH_SEED").unwrap_or(1)),
    );
    let Some(homes) = Homes::open() else { return };
    let before = homes.state();
    let (mut changed, mut kill) = (0, 0);
    // Few kills may be at moments without a change.
    while kill < kills || changed * 2 <= kill && kill < 5 * kills {
        let mut holder = homes.holder();
        // Some are killed at their start, however long a busy machine takes for it.
        if kill % 3 > 0 {
            homes.wait_for_a_path();
        }
        kill += 1;
        let millis = prng.below(LONGEST);
        pass(Duration::from_millis(millis));
        let is_running = holder.0.try_wait().expect("it is ours").is_none();
        drop(holder);
        changed += u64::from(homes.state() != before);
        within(&homes.host, || {
            // The next start removes it, or the operator.
            match kill % 2 {
                1 => Routes::tear_down().expect("no other process runs"),
                _ => drop(routes(&[])),
            }
        });
        assert_eq!(homes.state(), before, "killed after {millis} ms");
        assert!(is_running, "the process has ended by itself");
    }
    println!("{kill} kills, {changed} of them after a change");
    assert!(changed * 2 > kill, "{changed} of {kill}");
}

/// Places and removes paths until this process is killed.
fn hold() -> ! {
    let mut routes = routes(&[8080]);
    let interfaces = list().expect("`ip` is here");
    let mut paths = BTreeMap::new();
    for interface in interfaces.iter().cycle() {
        match paths.remove(&interface.name) {
            Some(path) => {
                drop::<Path>(path);
                routes.remove(&interface.name).expect("it is placed");
            }
            None => {
                let path = routes.place(interface).expect("it can be placed");
                paths.insert(interface.name.clone(), path);
            }
        }
    }
    unreachable!("the host has interfaces");
}

/// A process that this one starts inherits the locks of its other tests.
static HOLDERS: Mutex<()> = Mutex::new(());
/// Environment variable of the process that is killed.
const HOLDER: &str = "ANABRANCH_MULTIPATH_HOLDER";
/// Longest time until a process is killed, in ms.
const LONGEST: u64 = 500;

/// Waits. A parked thread would be woken by threads that have ended.
fn pass(time: Duration) {
    let (_sender, receiver) = channel::<()>();
    let _ = receiver.recv_timeout(time);
}

/// A bridge of containers leads to its containers only.
#[test]
fn an_interface_without_a_default_route_reaches_its_link() {
    let Some(homes) = Homes::open() else { return };
    within(&homes.host, || {
        for family in ["-4", "-6"] {
            ip(&["-n", &homes.host, family, "route", "delete", "default", "dev", "up1"]);
        }
        let mut routes = routes(&[]);
        let interface = homes.interface("up1");
        let covers =
            |to: &str| interface.destinations().any(|(one, _)| one.contains(to.parse().expect("one")));
        assert!(covers("10.8.1.2") && !covers(SERVER_V4) && covers("fd08:1::2") && !covers(SERVER_V6));
        assert!(homes.interface("up0").destinations().any(|(one, _)| one.length() == 0));
        let path = routes.place(&interface).expect("it is placed");
        connect(&homes, &path, path.local_v4.into(), "10.8.1.2");
        let from = path.local_v4.to_string();
        let way = run("ip", &["route", "get", SERVER_V4, "from", &from, "iif", &path.name]);
        assert!(!way.status.success(), "{}", text(&way.stdout));
    });
}

/// A renamed device keeps its parameters, also that of forwarding.
#[test]
fn a_renamed_interface_gets_its_former_parameters_back() {
    let Some(homes) = Homes::open() else { return };
    let rename = |from, to| {
        ip(&["-n", &homes.host, "link", "set", "dev", from, "down"]);
        ip(&["-n", &homes.host, "link", "set", "dev", from, "name", to]);
        ip(&["-n", &homes.host, "link", "set", "dev", to, "up"]);
    };
    let parameters = ["ipv4/conf/IF/forwarding", "ipv6/conf/IF/force_forwarding"];
    let read = |interface: &str| {
        parameters.map(|file| {
            let path = format!("/proc/sys/net/{}", file.replace("IF", interface));
            fs::read_to_string(path).unwrap_or_else(|_| "0".into()).trim().to_owned()
        })
    };
    within(&homes.host, || {
        let forwarded = || text(&run("iptables", &["-w", "-S", "anabranch-multipath"]).stdout);
        let mut routes = routes(&[]);
        let _kept = ["up0", "up1"].map(|name| routes.place(&homes.interface(name)).expect("it is placed"));
        assert_eq!(read("up1")[0], "1");
        rename("up1", "wan");
        routes.remove("up1").expect("it is placed");
        assert_eq!(read("wan"), ["0", "0"]);
        let _path = routes.place(&homes.interface("wan")).expect("it is placed");
        assert!(forwarded().contains("-i wan -j DROP"), "{}", forwarded());
        // Two names change places.
        for (from, to) in [("up0", "up1"), ("wan", "up0"), ("up1", "wan")] {
            rename(from, to);
        }
        for name in ["up0", "wan"] {
            routes.refresh(&homes.interface(name)).expect("it is placed");
            assert!(forwarded().contains(&format!("-i {name} -j DROP")), "{}", forwarded());
        }
        // No program has noticed the last name.
        rename("wan", "other");
        drop(routes);
        assert_eq!(["other", "up0"].map(read), [["0", "0"], ["0", "0"]]);
    });
}

/// Docker, for example, lets the kernel forward.
#[test]
fn another_program_may_let_the_kernel_forward() {
    let Some(homes) = Homes::open() else { return };
    within(&homes.host, || {
        let chains = || {
            let listed = ["iptables", "ip6tables"].map(|tables| run(tables, &["-w", "-S"]).stdout);
            text(&listed.concat())
        };
        let (all_v4, all_v6) = ("ipv4/conf/all/forwarding", "ipv6/conf/all/forwarding");
        let mut routes = routes(&[]);
        let _path = routes.place(&homes.interface("up0")).expect("it is placed");
        assert_eq!(chains().matches("-i up0 -j DROP").count(), 2, "{}", chains());
        for all in [all_v4, all_v6] {
            set(all, "1");
        }
        routes.review().expect("it is placed");
        assert_eq!(chains().matches("-i up0 -j DROP").count(), 0, "{}", chains());
        // It has ended, and the path still needs it.
        set(all_v4, "0");
        routes.review().expect("it is placed");
        let forwards = || fs::read_to_string("/proc/sys/net/ipv4/conf/up0/forwarding").expect("it is there");
        assert_eq!(forwards().trim(), "1");
        assert_eq!(chains().matches("-i up0 -j DROP").count(), 1, "{}", chains());
        set(all_v4, "1");
        drop(routes);
        assert_eq!(forwards().trim(), "1");
    });
}

/// A firewall that is loaded anew empties the chains.
#[test]
fn chains_that_another_program_empties_are_noticed() {
    let _alone = HOLDERS.lock();
    let Some(homes) = Homes::open() else { return };
    let flush = || {
        for table in ["filter", "nat"] {
            ip(&["netns", "exec", &homes.host, "iptables", "-w", "-t", table, "-F"]);
        }
    };
    let before = homes.state();
    // Killed, with chains that hold no former values.
    let holder = homes.holder();
    homes.wait_for_a_path();
    drop(holder);
    within(&homes.host, || {
        flush();
        Routes::tear_down().expect("no other process runs");
        assert!(!is_forwarded());
    });
    let parameters = |state: &str| state.lines().filter(|l| l.starts_with("/proc")).collect::<String>();
    assert_eq!(parameters(&homes.state()), parameters(&before));
    within(&homes.host, || {
        let mut routes = routes(&[]);
        let path = routes.place(&homes.interface("up0")).expect("it is placed");
        assert!(routes.inspection()().expect("`iptables` is here"));
        flush();
        assert!(!routes.inspection()().expect("`iptables` is here"));
        routes.mend().expect("it is placed");
        assert!(routes.inspection()().expect("`iptables` is here"));
        connect(&homes, &path, path.local_v4.into(), SERVER_V4);
    });
}

#[test]
fn a_path_follows_its_interface() {
    let Some(homes) = Homes::open() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    within(&homes.host, || {
        let mut routes = routes(&[]);
        let first = homes.interface("up0");
        let path = routes.place(&first).expect("it is placed");
        runtime.block_on(async {
            let mut watch = Watch::open().expect("a socket");
            let mut quiet = async |what: &str| {
                let waited = tokio::time::timeout(Duration::from_millis(30), watch.changed()).await;
                assert!(waited.is_err(), "{what}");
            };
            quiet("nothing has changed").await;
            routes.refresh(&homes.interface("up0")).expect("it is as before");
            quiet("a refresh without a change changes nothing").await;
            ip(&["-n", &homes.host, "link", "set", "dev", "up0", "down"]);
            watch.changed().await.expect("a change");
            let down = homes.interface("up0");
            assert!(!down.up && down.gateways.is_empty(), "{down:?}");
            routes.refresh(&down).expect("no route is left");
            ip(&["-n", &homes.host, "link", "set", "dev", "up0", "mtu", "1400", "up"]);
            // The kernel keeps the addresses of IPv4 only.
            ip(&["-n", &homes.host, "address", "add", "fd08:0::1/64", "dev", "up0"]);
            homes.default_route(0);
            watch.changed().await.expect("a change");
            let back = homes.interface("up0");
            assert_eq!((back.mtu, back.gateways.clone()), (1400, first.gateways.clone()));
            routes.refresh(&back).expect("it is placed");
        });
        connect(&homes, &path, path.local_v4.into(), SERVER_V4);
        connect(&homes, &path, path.local_v6.expect("IPv6").into(), SERVER_V6);
        let mtu = run("ip", &["-j", "link", "show", "dev", &path.name]);
        assert!(text(&mtu.stdout).contains("\"mtu\":1400"), "{}", text(&mtu.stdout));
        // Another gateway.
        ip(&["-n", &homes.server, "address", "add", "10.8.0.3/24", "dev", "down0"]);
        let change = ["route", "replace", "default", "via", "10.8.0.3", "dev", "up0", "metric", "100"];
        ip(&[&["-n", &homes.host], &change[..]].concat());
        routes.refresh(&homes.interface("up0")).expect("it is placed");
        let ways =
            run("ip", &["route", "get", SERVER_V4, "from", &path.local_v4.to_string(), "iif", &path.name]);
        assert!(text(&ways.stdout).contains("via 10.8.0.3 dev up0"), "{}", text(&ways.stdout));
        connect(&homes, &path, path.local_v4.into(), SERVER_V4);
    });
}

#[test]
fn the_last_path_with_ipv6_takes_its_rules_along() {
    let Some(homes) = Homes::open() else { return };
    within(&homes.host, || {
        let mut routes = routes(&[]);
        let path = routes.place(&homes.interface("up0")).expect("it is placed");
        let rules = || text(&run("ip6tables", &["-w", "-S", "anabranch-multipath"]).stdout);
        assert!(path.local_v6.is_some() && rules().contains(&path.name));
        // The device of the next path has no IPv6.
        set("ipv6/conf/default/disable_ipv6", "1");
        assert_eq!(routes.place(&homes.interface("up1")).expect("it is placed").local_v6, None);
        routes.remove("up0").expect("it is placed");
        assert!(!rules().contains(&path.name), "{}", rules());
        assert!(routes.inspection()().expect("`iptables` is here"));
    });
}
