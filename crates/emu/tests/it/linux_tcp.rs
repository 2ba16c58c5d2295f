//! Interoperability of our TCP and Linux's: a simulated node and a network namespace, connected by
//! a simulated network.

mod cell;
mod ours;
mod watch;

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anabranch_core::tcp::{CloseReason, Config};
use anabranch_core::time::{Duration, Instant};
use anabranch_emu::driver::Traffic;
use anabranch_emu::interrupt::Interrupt;
use anabranch_emu::{Ended, Ends, Output, Report};
use anabranch_scenario::Source;
use anabranch_sim::address::address_of;
use anabranch_sim::link::LinkMetrics;
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_testkit::debian::{self, find_or_install};
use anabranch_testkit::netns::{self, Broom, exists, skipped};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::{end_if_asked, kernel_end, one_at_a_time};

use self::cell::{CELLS, Cell, Condition, Opener, Order};
use self::ours::{Ours, Outcome, Rest};
use self::watch::{Options, Watch};

const PORT: u16 = 8000;
const KERNEL: NodeId = NodeId(0);
const OURS: NodeId = NodeId(1);
/// Upper limit of a connection's duration.
const PATIENCE: Duration = Duration::from_secs(60);
/// Silence after which a stalled reader starts to read, so that windows close before.
const STALL: Duration = Duration::from_millis(300);
/// Number of simultaneous connections for each opener.
const AT_A_TIME: usize = 3;
/// Drops the packets to which MATCH applies, on the kernel's way in or out, and counts them.
const FILTER: &str = "add table FAMILY path
add chain FAMILY path syns { type filter hook HOOK priority 0; }
add rule FAMILY path syns tcp flags MATCH counter drop";
/// SYNs that request ECN.
const ASKING: &str = "& (syn|ecn|cwr) == syn|ecn|cwr";
/// The first SYN-ACK.
const FIRST_ANSWER: &str = "& (syn|ack) == syn|ack numgen inc mod 1000 == 0";
/// The kernel's slow-start threshold before the first reduction.
const UNBOUNDED_SSTHRESH: u64 = 0x7fff_ffff;
/// Bits of `tcpi_options` in TCP_INFO: ECN is negotiated, and a segment with ECT has arrived.
const TCPI_OPT_ECN: u64 = 8;
const TCPI_OPT_ECN_SEEN: u64 = 16;
/// The program at the kernel's end.
const PEER: &str = include_str!("linux_tcp/peer.py");

/// The result of a connection.
struct Played {
    cell: Cell,
    /// Output of the kernel's end, if it got that far.
    kernel: Value,
    ours: Option<Outcome>,
    watch: Watch,
    ended: Ended,
    elapsed: Duration,
    /// The link from the kernel to our end, and the link back.
    links: [LinkMetrics; 2],
    traffic: Traffic,
    /// Number of packets that the filter dropped.
    filtered: u64,
}

#[test]
fn the_kernel_opens() {
    play_all(Opener::Kernel);
}

#[test]
fn we_open() {
    play_all(Opener::Ours);
}

fn play_all(opener: Opener) {
    if skipped() || find_or_install("python3", "python3").is_none() {
        return;
    }
    // Before the first emulation, since each emulation takes signals for its own end.
    end_if_asked();
    let cells = Mutex::new(CELLS.iter().enumerate().filter(|(_, cell)| cell.opener == opener));
    let next = || cells.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((i, cell)) = next() {
                    let played = play(i, cell);
                    end_if_asked();
                    let Some(played) = played else { continue };
                    println!("{cell:?}: {}, {:?}", played.elapsed, played.watch);
                    played.check();
                }
            });
        }
    });
}

/// Installs the filter of `cell`, if it has one, in its namespace. If the kernel does not support
/// the filter, prints that this cell is skipped and returns false.
fn put_filter(cell: &Cell, netns: &str) -> bool {
    let outgoing = match cell.condition {
        Condition::Filter => cell.opener == Opener::Kernel,
        Condition::LostAnswer => cell.opener == Opener::Ours,
        _ => return true,
    };
    if find_or_install("nft", "nftables").is_none() {
        return false;
    }
    let family = if cell.ip == IpVersion::V4 { "ip" } else { "ip6" };
    let hook = if outgoing { "output" } else { "input" };
    let packets = if cell.condition == Condition::Filter { ASKING } else { FIRST_ANSWER };
    let rules = FILTER.replace("FAMILY", family).replace("HOOK", hook).replace("MATCH", packets);
    let output = netns::run("ip", &["netns", "exec", netns, "nft", &rules]);
    if !output.status.success() {
        debian::skipped(&format!("{cell:?}: nft: {}", netns::text(&output.stderr).trim()));
    }
    output.status.success()
}

/// Number of packets that the filter dropped.
fn filtered(netns: &str) -> u64 {
    let output = netns::run("ip", &["netns", "exec", netns, "nft", "-j", "list", "ruleset"]);
    let rules: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let rules = rules["nftables"].as_array().map_or(&[][..], Vec::as_slice);
    let expressions = rules.iter().filter_map(|rule| rule["rule"]["expr"].as_array()).flatten();
    expressions.filter_map(|expression| expression["counter"]["packets"].as_u64()).sum()
}

fn octets(seed: u64, len: usize) -> Bytes {
    Bytes::from(Prng::new(seed).octets(len))
}

/// Runs one cell. Returns `None` if [`put_filter`] has skipped it.
fn play(i: usize, cell: &Cell) -> Option<Played> {
    let netns = netns::name(&format!("tcp{i}"));
    let _broom = Broom::new([&netns]);
    let scenario = Source::new("cell.toml", cell.scenario(&netns)).scenario().expect("a legal scenario");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let [from_kernel, from_ours] = [0, 1].map(|end| octets(2 * i as u64 + end, cell.octets()));
    std::fs::write(path("kernel"), &from_kernel).expect("a file");
    std::fs::write(path("ours"), &from_ours).expect("a file");
    let stall = if cell.condition == Condition::SmallWindows { STALL } else { Duration::ZERO };

    let interrupt = Interrupt::catch().expect("signals can be caught");
    let ends = {
        let _guard = one_at_a_time();
        Ends::open(&scenario).expect("we may make devices")
    };
    if !put_filter(cell, &netns) {
        return None;
    }
    // The kernel drops bursts that exceed the device's queue.
    let device = &ends.iter().next().expect("there is one device").device;
    netns::ip(&["-n", &netns, "link", "set", "dev", device, "txqueuelen", "10000"]);
    let opens = cell.opener == Opener::Kernel;
    let said = json!({
        "address": address_of(cell.ip, if opens { OURS } else { KERNEL }),
        "port": PORT,
        "opens": opens,
        "order": match cell.order {
            Order::AtOnce => "at-once",
            Order::KernelFirst => "kernel-first",
            Order::OursFirst => "ours-first",
        },
        "send": path("kernel"),
        "expect": path("ours"),
        "receive_buffer": cell.receive_buffer(),
        "stall": stall.as_secs_f64(),
        "sack": cell.kernel.sack,
        "timestamps": cell.kernel.timestamps,
        "window_scaling": cell.kernel.window_scaling,
        "sysctls": cell.sysctls(),
        "congestion": cell.congestion(),
    });
    let (peer, stdout) = kernel_end(&netns, PEER, &said);

    let (at_rest, rest) = channel();
    let mut builder = scenario.plan(1, 0, &BTreeMap::new()).expect("nothing is drawn").builder;
    let app = Ours {
        tcp: cell.tcp(),
        opener: cell.opener,
        order: cell.order,
        kernel: KERNEL,
        port: PORT,
        outgoing: from_ours,
        expected: from_kernel,
        stall,
        at_rest,
        state: ours::Progress::default(),
    };
    builder.app(OURS, Instant::ZERO, app);
    let mut sim = builder.build();
    sim.observe(Watch::default());
    let stop = &interrupt;
    let (report, kernel, ours) = thread::scope(|scope| {
        let wait = scope.spawn(move || {
            let (kernel, ours) = wait(stdout, &rest);
            stop.trigger().expect("the emulation listens");
            (kernel, ours)
        });
        let until = (&interrupt, Instant::ZERO + PATIENCE, Output::Stderr);
        let report = ends.run(&mut sim, &scenario, until, |_| {});
        drop(peer);
        let (kernel, ours) = wait.join().expect("it only reads");
        (report.expect("the devices stay"), kernel, ours)
    });
    let has_filter = [Condition::Filter, Condition::LostAnswer].contains(&cell.condition);
    let filtered = if has_filter { filtered(&netns) } else { 0 };
    drop(ends);
    assert!(!exists(&netns), "the namespace {netns} is left");
    let links = [0, 1].map(|i: usize| *sim.world().network.links()[i].metrics());
    let watch = sim.take_observer::<Watch>().expect("it was attached above");
    let Report { ended, elapsed, traffic, .. } = report;
    let [traffic] = traffic[..] else { panic!("there is one device") };
    Some(Played { cell: *cell, kernel, ours, watch, ended, elapsed, links, traffic, filtered })
}

/// The final output of the kernel's end, and the result of our end if it has finished.
fn wait(mut stdout: BufReader<ChildStdout>, rest: &Receiver<Outcome>) -> (Value, Option<Outcome>) {
    let mut text = String::new();
    let _ = stdout.read_to_string(&mut text);
    let Ok(kernel) = serde_json::from_str::<Value>(&text) else { return (Value::Null, None) };
    let patience = std::time::Duration::from_nanos(PATIENCE.as_nanos());
    let ours =
        if kernel["error"].is_null() { rest.recv_timeout(patience).ok() } else { rest.try_recv().ok() };
    (kernel, ours)
}

impl Played {
    fn check(&self) {
        let Self { cell, kernel, .. } = self;
        let octets = cell.octets();
        assert_eq!(self.ended, Ended::Interrupted, "{cell:?}");
        let ours =
            self.ours.as_ref().unwrap_or_else(|| panic!("{cell:?}: ours has not come to rest: {kernel}"));
        // Bit-identical and complete.
        assert_eq!((&kernel["error"], &kernel["wrong"]), (&Value::Null, &Value::Null), "{cell:?}");
        assert_eq!(kernel["received"], octets, "{cell:?}");
        assert_eq!((ours.received, ours.wrong, ours.connections), (octets, None, 1), "{cell:?}");
        // Closed normally, without a reset.
        assert_eq!(kernel["states"], json!([]), "{cell:?}");
        assert!(ours.peer_closed, "{cell:?}");
        let rest = ours.rest.expect("it has come to rest");
        assert!([Rest::TimeWait, Rest::Closed(CloseReason::Graceful)].contains(&rest), "{cell:?}: {rest:?}");
        for name in ["EstabResets", "AttemptFails", "InErrs", "InCsumErrors"] {
            assert_eq!(self.counter(name), 0, "{cell:?}: {name}");
        }
        let [linux, we] = &self.watch.ends;
        assert_eq!((linux.resets, we.resets, self.watch.unread), (0, 0, 0), "{cell:?}");
        assert_eq!(self.counter("OutRsts"), linux.resets_afterwards, "{cell:?}");
        assert!(linux.fins > 0 && we.fins > 0, "{cell:?}");
        assert_eq!((linux.false_claims, we.false_claims), (0, 0), "{cell:?}");
        self.check_options();
        self.check_ecn(ours);
        self.check_dsack();
        self.check_condition(ours);
    }

    fn check_options(&self) {
        let (cell, both) = (&self.cell, self.cell.both());
        let [linux, we] = &self.watch.ends;
        let expected = match cell.opener {
            // Each direction negotiates SACK separately (RFC 2018 section 2); Linux never permits
            // it alone.
            Opener::Kernel => (cell.kernel, Options { sack: cell.ours.sack, ..both }),
            Opener::Ours => (both, cell.ours),
        };
        assert_eq!((linux.offered, we.offered), expected, "{cell:?}");
        for end in [linux, we] {
            assert_eq!(end.with_timestamps > 0, both.timestamps, "{cell:?}");
            assert!(both.sack || end.with_sack == 0, "{cell:?}");
        }
        // 256 KiB in units of 128 bytes, or the largest value of the field.
        if cell.condition != Condition::SmallWindows && !cell.modern {
            assert_eq!(we.largest_window < 4096, both.window_scaling, "{cell:?}");
        }
    }

    fn check_condition(&self, ours: &Outcome) {
        let (cell, both @ Options { sack, .. }) = (&self.cell, self.cell.both());
        let [linux, we] = &self.watch.ends;
        let info = ours.info.expect("it was looked at");
        match cell.condition {
            Condition::Plain => assert_eq!(self.lost(), 0, "{cell:?}"),
            Condition::Loss => {
                assert!(self.lost() > 50 && info.retransmissions > 50, "{cell:?}");
                assert!(self.counter("TCPOFOQueue") > 50, "{cell:?}");
                assert_eq!(self.counter("TCPSackRecovery") > 0, sack, "{cell:?}");
                assert_eq!(self.counter("TCPRenoRecovery") > 0, !sack, "{cell:?}");
                assert_eq!(linux.with_sack > 50 && we.with_sack > 50, sack, "{cell:?}");
            }
            Condition::Reordering => {
                assert!(self.counter("TCPOFOQueue") > 50, "{cell:?}");
                assert_eq!(linux.with_sack > 50 && we.with_sack > 50, sack, "{cell:?}");
            }
            // Both windows were closed and opened again.
            Condition::SmallWindows => assert!(linux.zero_windows > 0 && we.zero_windows > 0, "{cell:?}"),
            // `check_ecn` checks the rest.
            Condition::Marking | Condition::Filter | Condition::LostAnswer => self.check_nothing_lost(),
            Condition::Duplication => {
                self.check_nothing_lost();
                // Duplicates created by the network are not taken for losses.
                assert_eq!((info.fast_retransmits, info.undone), (0, 0), "{cell:?}");
            }
            Condition::Lateness => {
                self.check_nothing_lost();
                // Nothing was lost, so every recovery was spurious.
                assert!(info.fast_retransmits > 0 && info.undone > 0, "{cell:?}: {info:?}");
                let undone = ["TCPDSACKUndo", "TCPFullUndo", "TCPPartialUndo"].map(|name| self.counter(name));
                assert!(undone.iter().any(|n| *n > 0), "{cell:?}");
                // Without timestamps, only D-SACK reveals it.
                assert!(both.timestamps || undone[0] > 0, "{cell:?}: {undone:?}");
            }
            Condition::Rough => {
                assert!(self.lost() > 20 && info.retransmissions > 20, "{cell:?}: {info:?}");
                assert!(self.counter("TCPOFOQueue") > 20, "{cell:?}");
            }
            Condition::Long => {
                self.check_nothing_lost();
                let small = Config::modern();
                let window = u32::from(we.largest_window) << 7;
                assert!(
                    window > small.receive_buffer && info.send_buffer > small.send_buffer,
                    "{cell:?}: {info:?}"
                );
            }
        }
    }

    /// Number of packets that the channels lost.
    fn lost(&self) -> u64 {
        self.links.iter().map(|link| link.dropped_loss).sum()
    }

    /// Checks that no packet was lost, or dropped by a queue or a device.
    fn check_nothing_lost(&self) {
        let Self { cell, links, traffic, .. } = self;
        let dropped =
            links.iter().map(|l| l.dropped_loss + l.dropped_full + l.dropped_down + l.cut + l.dropped_mtu);
        assert_eq!((dropped.sum::<u64>(), traffic.refused, traffic.bad), (0, 0, 0), "{cell:?}");
        assert_eq!(self.kernel["dropped"], 0, "{cell:?}");
    }

    fn check_ecn(&self, ours: &Outcome) {
        let Self { cell, kernel, links, watch, .. } = self;
        let [linux, we] = watch.ends.map(|end| end.ecn);
        let info = ours.info.expect("it was looked at");
        self.check_ecn_handshake();
        let [linux_sends, we_send] = cell.ecn_capable();
        let field = |name: &str| kernel["info"][name].as_u64().expect("a number");
        let option = |bit: u64| field("options") & bit != 0;
        assert_eq!(info.ecn, we_send, "{cell:?}");
        assert_eq!((option(TCPI_OPT_ECN), option(TCPI_OPT_ECN_SEEN)), (linux_sends, we_send), "{cell:?}");
        for (end, sends) in [(linux, linux_sends), (we, we_send)] {
            assert_eq!((end.capable > 0, end.wrongly_capable), (sends, 0), "{cell:?}");
        }
        // Marks set, marks received, the echo, the sender that receives it, and CWR.
        let to_us = [
            links[0].marked,
            info.marks_received,
            we.echoes,
            self.counter("TCPDeliveredCE"),
            field("delivered_ce"),
            linux.reduced,
        ];
        let to_kernel =
            [links[1].marked, self.counter("InCEPkts"), linux.echoes, info.mark_reductions, we.reduced];
        let marking = [Condition::Marking, Condition::LostAnswer].contains(&cell.condition);
        for (sends, figures) in [(linux_sends, &to_us[..]), (we_send, &to_kernel[..])] {
            if !sends {
                assert!(figures.iter().all(|n| *n == 0), "{cell:?}: {figures:?}");
            } else if marking {
                assert!(figures.iter().all(|n| *n > 0), "{cell:?}: {figures:?}");
            }
        }
        assert_eq!(self.counter("InECT0Pkts") > 0, we_send, "{cell:?}");
        if !marking {
            return;
        }
        assert_eq!(self.counter("InCEPkts"), links[1].marked, "{cell:?}");
        assert!(info.marks_received <= links[0].marked, "{cell:?}");
        assert_eq!(we.wrong_echoes, 0, "{cell:?}");
        // Nothing was lost, so only marks have set the slow-start thresholds.
        if linux_sends {
            assert!(field("ssthresh") < UNBOUNDED_SSTHRESH, "{cell:?}");
        }
        if we_send {
            assert!(info.ssthresh < u32::MAX, "{cell:?}");
        }
        if info.retransmissions == 0 {
            // The last reduction may have no data after it, or may be later than the statistics.
            assert!(we.reduced.abs_diff(info.mark_reductions) <= 1, "{cell:?}: {we:?} {info:?}");
        }
    }

    /// SYNs and SYN-ACKs (RFC 3168 section 6.1.1).
    fn check_ecn_handshake(&self) {
        let cell = &self.cell;
        let [linux, we] = self.watch.ends.map(|end| end.ecn);
        let (opener, other) = match cell.opener {
            Opener::Kernel => (linux, we),
            Opener::Ours => (we, linux),
        };
        assert_eq!((other.asks, opener.agrees), (0, 0), "{cell:?}");
        let (asks, agrees) = match (cell.condition, cell.opener) {
            // The filter drops the SYN that requests ECN, and the next SYN does not request it
            // (section 6.1.1.1).
            (Condition::Filter, Opener::Kernel) => {
                assert!(self.filtered > 0, "{cell:?}");
                (0, false)
            }
            (Condition::Filter, Opener::Ours) => {
                assert!(self.filtered == 1 && opener.syns > 1, "{cell:?}");
                (1, false)
            }
            (Condition::LostAnswer, _) => {
                assert!(self.filtered == 1 && opener.syns > 1, "{cell:?}");
                (1, true)
            }
            _ => (u64::from(cell.asks_for_ecn()), cell.ecn_capable() == [true, true]),
        };
        assert_eq!((opener.asks, other.agrees > 0), (asks, agrees), "{cell:?}");
    }

    fn check_dsack(&self) {
        let Self { cell, kernel, watch, .. } = self;
        let [linux, we] = watch.ends.map(|end| end.dsack);
        let sum = |names: [&str; 2]| names.map(|name| self.counter(name)).iter().sum::<u64>();
        let sent = sum(["TCPDSACKOldSent", "TCPDSACKOfoSent"]);
        let received = sum(["TCPDSACKRecv", "TCPDSACKOfoRecv"]);
        if !cell.dsack.kernel {
            assert_eq!((linux.reports, sent), (0, 0), "{cell:?}");
        }
        if !cell.dsack.ours {
            assert_eq!((we.reports, received), (0, 0), "{cell:?}");
        }
        let least = match cell.condition {
            Condition::Duplication => 30,
            Condition::Rough => 5,
            // The number of spurious recoveries depends on the load of the machine.
            Condition::Lateness => 1,
            _ => return,
        };
        if cell.dsack.kernel {
            assert!(linux.reports >= least && sent >= least, "{cell:?}: {linux:?}, {sent}");
        }
        if cell.dsack.ours {
            assert!(we.reports >= least && received >= least, "{cell:?}: {we:?}, {received}");
            assert!(kernel["info"]["dsack_dups"].as_u64() >= Some(least), "{cell:?}");
        }
        if cell.condition == Condition::Duplication {
            // Our end reports each of them, but the connection may end before the last report.
            let all = we.duplicates_heard;
            assert!(we.reports <= all && we.reports * 10 >= all * 9, "{cell:?}: {we:?}");
        }
    }

    fn counter(&self, name: &str) -> u64 {
        let counter = self.kernel["counters"][name].as_u64();
        counter.unwrap_or_else(|| panic!("the kernel does not count {name}"))
    }
}
