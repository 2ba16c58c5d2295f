//! Interoperability of our MPTCP and Linux's: a host of two simulated nodes and a network namespace
//! with two addresses, connected by a simulated network.

mod cell;
mod middlebox;
mod ours;

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::{env, thread};

use anabranch_core::mptcp::Event;
use anabranch_core::tcp::CloseReason;
use anabranch_core::time::{Duration, Instant};
use anabranch_emu::interrupt::Interrupt;
use anabranch_emu::{Ended, Ends, Output};
use anabranch_scenario::Source;
use anabranch_sim::address::address_of;
use anabranch_sim::capture::Capture;
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::given;
use anabranch_testkit::netns::{self, Broom, exists, skipped};
use anabranch_testkit::prng::Prng;
use anabranch_testkit::tshark::Tshark;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::{end_if_asked, kernel_end, one_at_a_time};

use self::cell::{Cell, Condition, Opener, Subject, cells};
use self::middlebox::{Meddling, Middlebox, Way};
use self::ours::{Ours, Outcome};

/// Port of the end that is connected to, which Wireshark takes for no protocol.
const PORT: u16 = 48_000;
/// Port that our end announces with its second address.
const ANNOUNCED_PORT: u16 = 48_002;
const KERNEL: [NodeId; 2] = [NodeId(0), NodeId(1)];
const OURS: [NodeId; 2] = [NodeId(2), NodeId(3)];
/// Upper limit of a connection's duration.
const PATIENCE: Duration = Duration::from_secs(40);
/// Number of simultaneous connections.
const AT_ONCE: usize = 3;
/// The program at the kernel's end.
const PEER: &str = include_str!("linux_mptcp/peer.py");

/// The result of a connection.
struct Played {
    kernel: Value,
    ours: Option<Outcome>,
    ended: Ended,
    elapsed: Duration,
    sent: [Bytes; 2],
    capture: Vec<u8>,
}

#[test]
fn every_cell() {
    if skipped() || find_or_install("python3", "python3").is_none() {
        return;
    }
    // Before the first emulation, since each emulation takes signals for its own end.
    end_if_asked();
    let number = |name: &str| given(name).map(|number| number as usize);
    let octets = number("ANABRANCH_MPTCP_BYTES").unwrap_or(1_000_000);
    let only = env::var("ANABRANCH_MPTCP_ONLY").ok();
    let all = env::var_os("ANABRANCH_MPTCP_ALL").is_some();
    let cells = cells(octets, all);
    let cells: Vec<_> = cells.iter().enumerate().collect();
    let chosen = |cell: &Cell| only.as_ref().is_none_or(|only| format!("{cell:?}").contains(only));
    let queue = Mutex::new(cells.into_iter().filter(|(_, cell)| chosen(cell)));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..number("ANABRANCH_MPTCP_AT_ONCE").unwrap_or(AT_ONCE) {
            scope.spawn(|| {
                while let Some((i, cell)) = next() {
                    let played = play(i, cell);
                    end_if_asked();
                    let faults = played.check(i, cell);
                    println!("{cell:?}: {}, {faults:?}", played.elapsed);
                    if !faults.is_empty() {
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push((*cell, faults));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    for failure in &failures {
        println!("FAILED {failure:?}");
    }
    assert!(failures.is_empty(), "{} cells", failures.len());
}

/// Routes of the kernel: each of its addresses uses its own device, and each of ours is reached
/// over one of them without a bound address.
fn set_up(cell: &Cell, netns: &str) {
    let family = if cell.ip == IpVersion::V4 { "-4" } else { "-6" };
    // An emulation has one device in a namespace; the second joins the first.
    netns::ip(&["-n", &second(netns), "link", "set", "dev", "k2", "netns", netns]);
    netns::ip(&["-n", netns, "link", "set", "dev", "k2", "addrgenmode", "none"]);
    netns::ip(&["-n", netns, "link", "set", "dev", "k2", "up"]);
    let second = address_of(cell.ip, KERNEL[1]).to_string();
    let nodad = if cell.ip == IpVersion::V4 { &[][..] } else { &["nodad"] };
    netns::ip(&[&["-n", netns, "address", "add", &second, "dev", "k2"], nodad].concat());
    for i in 0..2 {
        let [from, to] = [KERNEL[i], OURS[i]].map(|node| address_of(cell.ip, node).to_string());
        let (device, table) = (format!("k{}", i + 1), (100 + i).to_string());
        netns::ip(&["-n", netns, "link", "set", "dev", &device, "txqueuelen", "10000"]);
        netns::ip(&["-n", netns, family, "rule", "add", "from", &from, "table", &table]);
        netns::ip(&["-n", netns, family, "route", "add", "default", "dev", &device, "table", &table]);
        netns::ip(&["-n", netns, family, "route", "add", &to, "dev", &device, "src", &from]);
    }
    let limits = ["-n", netns, "mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", "4"];
    netns::ip(&limits);
    if cell.opener == Opener::Kernel {
        for command in at_open(cell) {
            netns::ip(
                &[&["-n", netns], &command.iter().map(String::as_str).collect::<Vec<_>>()[1..]].concat(),
            );
        }
    }
}

/// Commands that give the kernel its second address as an endpoint. A connection that is not yet
/// accepted opens no subflow, so a listening kernel gets it afterwards.
fn at_open(cell: &Cell) -> Vec<Vec<String>> {
    let address = address_of(cell.ip, KERNEL[1]).to_string();
    let command = |endpoint: &[&str]| {
        [&["ip", "mptcp", "endpoint", "add", &address], endpoint]
            .concat()
            .iter()
            .map(|s| (*s).to_owned())
            .collect()
    };
    cell.endpoint().map(command).into_iter().collect()
}

/// The namespace in which the kernel's second device is made.
fn second(netns: &str) -> String {
    format!("{netns}b")
}

/// Runs one cell.
fn play(i: usize, cell: &Cell) -> Played {
    let netns = netns::name(&format!("mp{i}"));
    let _broom = Broom::new([&netns, &second(&netns)]);
    let scenario = Source::new("cell.toml", cell.scenario(&netns)).scenario().expect("a legal scenario");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let sent = [0, 1].map(|end| Bytes::from(Prng::new(2 * i as u64 + end).octets(cell.octets)));
    std::fs::write(path("kernel"), &sent[0]).expect("a file");
    std::fs::write(path("ours"), &sent[1]).expect("a file");

    let interrupt = Interrupt::catch().expect("signals can be caught");
    let ends = {
        let _guard = one_at_a_time();
        Ends::open(&scenario).expect("we may make devices")
    };
    set_up(cell, &netns);
    let opens = cell.opener == Opener::Kernel;
    let any = if cell.ip == IpVersion::V4 { "0.0.0.0" } else { "::" };
    let said = json!({
        "address": if opens { address_of(cell.ip, OURS[0]).to_string() } else { any.to_owned() },
        "port": PORT,
        "opens": opens,
        "send": path("kernel"),
        "expect": path("ours"),
        "patience": PATIENCE.as_secs_f64(),
        // When Linux falls back after a shutdown, it drops what it has not sent; when it has fallen
        // back and gets a FIN, it drops what the program has not read.
        "closes_last": cell.falls_back(),
        "at_open": if opens { vec![] } else { at_open(cell) },
        "at_half": cell.at_half(),
        "sysctls": {
            "ipv4/tcp_timestamps": u8::from(cell.has_timestamps()),
            "mptcp/checksum_enabled": u8::from(cell.checksums[0]),
            "mptcp/allow_join_initial_addr_port": u8::from(cell.subject != Subject::NoJoins),
        },
    });
    let (peer, stdout) = kernel_end(&netns, PEER, &said);

    let (at_rest, rest) = channel();
    let mut builder = scenario.plan(1, i as u64, &BTreeMap::new()).expect("nothing is drawn").builder;
    let app = Ours {
        ip: cell.ip,
        config: cell.config(),
        opener: cell.opener,
        closes_last: cell.falls_back(),
        joined: cell.subflows() < 2 && cell.meddling() != Meddling::StripJoin,
        outgoing: sent[1].clone(),
        expected: cell.octets,
        deeds: cell.deeds(),
        middlebox: Middlebox::new(cell.meddling(), cell.octets / 3),
        secrets: Prng::new(i as u64),
        at_rest,
        state: ours::State::default(),
    };
    builder.app(OURS[0], Instant::ZERO, app);
    let mut sim = builder.build();
    sim.observe(Capture::new(Vec::new(), cell.ip));
    let stop = &interrupt;
    let (report, kernel, ours) = thread::scope(|scope| {
        let wait = scope.spawn(move || {
            let results = wait(stdout, &rest);
            stop.trigger().expect("the emulation listens");
            results
        });
        let until = (&interrupt, Instant::ZERO + PATIENCE * 2, Output::Stderr);
        let report = ends.run(&mut sim, &scenario, until, |_| {});
        drop(peer);
        let (kernel, ours) = wait.join().expect("it only reads");
        (report.expect("the devices stay"), kernel, ours)
    });
    drop(ends);
    assert!(!exists(&netns), "the namespace {netns} is left");
    let capture = sim.take_observer::<Capture<Vec<u8>>>().expect("it was attached above");
    let capture = capture.finish().expect("memory does not fail");
    Played { kernel, ours, ended: report.ended, elapsed: report.elapsed, sent, capture }
}

/// The final output of the kernel's end, and the result of our end if it has finished.
fn wait(mut stdout: BufReader<ChildStdout>, rest: &Receiver<Outcome>) -> (Value, Option<Outcome>) {
    let mut text = String::new();
    let _ = stdout.read_to_string(&mut text);
    let kernel = serde_json::from_str::<Value>(&text).unwrap_or_default();
    (kernel, rest.recv_timeout(std::time::Duration::from_secs(3)).ok())
}

impl Played {
    /// Everything that is wrong.
    fn check(&self, i: usize, cell: &Cell) -> Vec<String> {
        let mut faults = Vec::new();
        let Self { kernel, ours, .. } = self;
        let mut expect = |holds: bool, what: String| {
            if !holds {
                faults.push(what);
            }
        };
        expect(self.ended == Ended::Interrupted, format!("{:?} after {}", self.ended, self.elapsed));
        let nothing = Outcome::default();
        expect(ours.is_some(), "our end has not finished".to_owned());
        let ours = ours.as_ref().unwrap_or(&nothing);
        if !cell.is_aborted() {
            let meddled = cell.subject == Subject::Meddled(Meddling::Corrupt(Way::FromUs));
            let errors = [&kernel["error"], &kernel["send_error"]];
            expect(errors.iter().all(|error| error.is_null()), format!("kernel: {errors:?}"));
            expect(kernel["wrong"].is_null() != meddled, format!("kernel: wrong at {}", kernel["wrong"]));
            expect(kernel["received"] == cell.octets, format!("kernel received {}", kernel["received"]));
            expect(ours.received.len() == cell.octets, format!("received {}", ours.received.len()));
            let wrong = ours.received.iter().zip(&self.sent[0][..]).position(|(a, b)| a != b);
            let damaged = ours.received.iter().zip(&self.sent[0][..]).filter(|(a, b)| a != b).count();
            let meddled = u8::from(cell.subject == Subject::Meddled(Meddling::Corrupt(Way::ToUs)));
            expect(damaged == usize::from(meddled), format!("{damaged} bytes differ from {wrong:?} on"));
            expect(ours.closed == Some(CloseReason::Graceful), format!("{:?}", ours.closed));
            expect(kernel["info"]["fallback"] == cell.falls_back(), format!("{}", kernel["info"]));
            expect(ours.info.multipath != cell.falls_back(), "fallback".to_owned());
        }
        expect(kernel["states"] == json!([]), format!("states {}", kernel["states"]));
        let carrying = ours.shares.iter().filter(|n| **n > 0).count();
        // The kernel may have sent its first half before a subflow that is given up at half time.
        let joins = ours.events.iter().filter(|e| matches!(e, Event::SubflowEstablished(_))).count();
        let carrying = if cell.gives_up() { 1 + joins } else { carrying };
        expect(carrying >= cell.subflows(), format!("shares {:?}", ours.shares));
        let refuses = cell.meddling() == Meddling::StripJoin;
        expect((ours.refused > 0) == refuses, format!("refused {}", ours.refused));
        expect(
            (ours.changed > 0) == (cell.meddling() != Meddling::Nothing),
            format!("changed {}", ours.changed),
        );
        self.check_counters(cell, &mut expect);
        self.check_capture(i, cell, &mut expect);
        faults
    }

    fn check_counters(&self, cell: &Cell, expect: &mut impl FnMut(bool, String)) {
        let count = |name: &str| self.kernel["counters"][name].as_u64();
        let (required, allowed) = cell.counters();
        for name in &required {
            expect(count(name) > Some(0), format!("{name} is {:?}", count(name)));
        }
        for name in SUSPECTS.into_iter().filter(|name| !required.contains(name) && !allowed.contains(name)) {
            // A path that failed is stale.
            let failing = cell.condition == Condition::Failing && name == "SubflowStale";
            // Older kernels lack some of them.
            expect(count(name).unwrap_or(0) == 0 || failing, format!("{name} is {:?}", count(name)));
        }
    }

    /// Wireshark understands all options.
    fn check_capture(&self, i: usize, cell: &Cell, expect: &mut impl FnMut(bool, String)) {
        if let Ok(folder) = env::var("ANABRANCH_MPTCP_CAPTURES") {
            std::fs::write(format!("{folder}/{i}.pcapng"), &self.capture).expect("a file");
        }
        let Some(tshark) = Tshark::open(&format!("mptcp{i}"), &self.capture) else { return };
        // Wireshark finds other protocols in random payload, and errors there. The capture has each
        // packet on both of its links, which its reassembly does not expect.
        let here = "frame.protocols matches \"tcp(:mptcp)?(:data)?$\" \
                    and not _ws.expert.message contains \"overlaps\"";
        let filters = ["mptcp", "_ws.malformed", "tcp.option.len.invalid", "_ws.expert.severity == 8388608"];
        let filters = filters.map(|filter| format!("{filter} and {here}"));
        let [options, malformed, lengths, errors] = tshark.counts(filters.each_ref().map(String::as_str));
        expect((options > 0) != cell.is_bare(), format!("{options} segments of MPTCP"));
        let bad = [malformed, lengths, errors];
        expect(bad == [0; 3], format!("malformed, invalid lengths, errors: {bad:?}"));
    }
}

/// Counters of MPTcpExt that mean an error, a refusal or a fallback.
const SUSPECTS: [&str; 42] = [
    "MPCapableFallbackACK",
    "MPCapableFallbackSYNACK",
    "MPCapableSYNTXDrop",
    "MPCapableSYNTXDisabled",
    "MPCapableDataFallback",
    "MPFallbackTokenInit",
    "MPJoinNoTokenFound",
    "MPJoinSynAckHMacFailure",
    "MPJoinAckHMacFailure",
    "MPJoinRejected",
    "MPJoinSynTxCreatSkErr",
    "MPJoinSynTxBindErr",
    "MPJoinSynTxConnectErr",
    "DSSNotMatching",
    "DSSCorruptionFallback",
    "DSSCorruptionReset",
    "InfiniteMapTx",
    "InfiniteMapRx",
    "DSSNoMatchTCP",
    "DataCsumErr",
    "NoDSSInWindow",
    "AddAddrDrop",
    "AddAddrTxDrop",
    "EchoAddTxDrop",
    "RmAddrDrop",
    "RmAddrTxDrop",
    "MismatchPortSynRx",
    "MismatchPortAckRx",
    "MPFailTx",
    "MPFailRx",
    "MPFastcloseTx",
    "MPFastcloseRx",
    "MPRstTx",
    "MPRstRx",
    "SubflowStale",
    "Blackhole",
    "MD5SigFallback",
    "DssFallback",
    "SimultConnectFallback",
    "FallbackFailed",
    "InCsumErrors",
    "InErrs",
];
