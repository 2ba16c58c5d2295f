//! Our TCP against Linux's: a simulated node and a network namespace with the simulated network between them.

mod cell;
mod ours;
mod watch;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{process, thread};

use anabranch_core::tcp::CloseReason;
use anabranch_core::time::{Duration, Instant};
use anabranch_emu::interrupt::Interrupt;
use anabranch_emu::{Ended, Ends};
use anabranch_sim::address::address_of;
use anabranch_sim::packet::NodeId;
use anabranch_sim::scenario::Source;
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns::{self, Broom, Kept, exists, inside, skipped};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::raise;

use self::cell::{CELLS, Cell, Condition, Opener, Order};
use self::ours::{Ours, Outcome, Rest};
use self::watch::{Options, Watch};

/// What each end sends.
const OCTETS: usize = 10_000_000;
const PORT: u16 = 8000;
const KERNEL: NodeId = NodeId(0);
const OURS: NodeId = NodeId(1);
/// No connection takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long nothing must come until somebody reads, where windows shall close.
const STALL: Duration = Duration::from_millis(300);
/// The kernel's end.
const PEER: &str = include_str!("linux_tcp/peer.py");

/// What has become of a connection.
struct Played {
    cell: Cell,
    /// What the kernel's end says, if it has come so far.
    kernel: Value,
    ours: Option<Outcome>,
    watch: Watch,
    ended: Ended,
    elapsed: Duration,
    lost: u64,
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
    // Signals are for the whole process: one emulation at a time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let end_if_asked = || {
        if ended_from_outside().load(Ordering::SeqCst) {
            process::exit(130);
        }
    };
    for (i, cell) in CELLS.iter().enumerate().filter(|(_, cell)| cell.opener == opener) {
        end_if_asked();
        let played = play(i, cell);
        end_if_asked();
        println!("{cell:?}: {}, {:?}", played.elapsed, played.watch);
        played.check();
    }
}

/// Set when somebody wants this process to end. An emulation takes the signal for its own end, so that it tidies up.
fn ended_from_outside() -> &'static AtomicBool {
    static ENDED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    ENDED.get_or_init(|| {
        let ended = Arc::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&ended)).expect("signals can be caught");
        }
        ended
    })
}

fn octets(seed: u64) -> Bytes {
    Bytes::from(Prng::new(seed).octets(OCTETS))
}

fn play(i: usize, cell: &Cell) -> Played {
    let netns = netns::name(&format!("tcp{i}"));
    let _broom = Broom::new([&netns]);
    let scenario = Source::new("cell.toml", cell.scenario(&netns)).scenario().expect("a legal scenario");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (from_kernel, from_ours) = (octets(2 * i as u64), octets(2 * i as u64 + 1));
    std::fs::write(path("kernel"), &from_kernel).expect("a file");
    std::fs::write(path("ours"), &from_ours).expect("a file");
    let stall = if cell.condition == Condition::SmallWindows { STALL } else { Duration::ZERO };

    let interrupt = Interrupt::catch().expect("signals can be caught");
    let ends = Ends::open(&scenario).expect("we may make devices");
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
    });
    let mut peer = inside(&netns, &["python3", "-c", PEER, &said.to_string()]);
    let mut peer = Kept(peer.stdout(Stdio::piped()).spawn().expect("python3 runs"));
    let mut stdout = BufReader::new(peer.0.stdout.take().expect("it is a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n");

    let (at_rest, rest) = channel();
    let mut builder = scenario.plan(1, 0, &BTreeMap::new()).builder;
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
    let (report, kernel, ours) = thread::scope(|scope| {
        let wait = scope.spawn(move || {
            let (kernel, ours) = wait(stdout, &rest);
            // The signal that none of a terminal is.
            raise(SIGHUP).expect("a signal to ourselves");
            (kernel, ours)
        });
        let report = ends.run(&mut sim, &interrupt, scenario.emulation, Instant::ZERO + PATIENCE, |_| {});
        drop(peer);
        let (kernel, ours) = wait.join().expect("it only reads");
        (report.expect("the devices stay"), kernel, ours)
    });
    drop(ends);
    assert!(!exists(&netns), "the namespace {netns} is left");
    let lost = sim.world().network.links().iter().map(|link| link.metrics().dropped_loss).sum();
    let watch = sim.take_observer::<Watch>().expect("it was attached above");
    Played { cell: *cell, kernel, ours, watch, ended: report.ended, elapsed: report.elapsed, lost }
}

/// What the kernel's end says at last, and what has become of ours if that has come to its end.
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
        assert_eq!(self.ended, Ended::Interrupted, "{cell:?}");
        let ours =
            self.ours.as_ref().unwrap_or_else(|| panic!("{cell:?}: ours has not come to rest: {kernel}"));
        // Bit for bit, and to the end.
        assert_eq!((&kernel["error"], &kernel["wrong"]), (&Value::Null, &Value::Null), "{cell:?}");
        assert_eq!(kernel["received"], OCTETS, "{cell:?}");
        assert_eq!((ours.received, ours.wrong, ours.connections), (OCTETS, None, 1), "{cell:?}");
        // Closed in order, and nobody had to be reset.
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
        self.check_condition(ours);
    }

    fn check_options(&self) {
        let (cell, both) = (&self.cell, self.cell.both());
        let [linux, we] = &self.watch.ends;
        let expected = match cell.opener {
            // SACK is permitted for each direction by itself (RFC 2018 section 2); Linux never permits it alone.
            Opener::Kernel => (cell.kernel, Options { sack: cell.ours.sack, ..both }),
            Opener::Ours => (both, cell.ours),
        };
        assert_eq!((linux.offered, we.offered), expected, "{cell:?}");
        for end in [linux, we] {
            assert_eq!(end.with_timestamps > 0, both.timestamps, "{cell:?}");
            assert!(both.sack || end.with_sack == 0, "{cell:?}");
        }
        // 256 KiB in units of 128 octets, or the largest that there is.
        if cell.condition != Condition::SmallWindows {
            assert_eq!(we.largest_window < 4096, both.window_scaling, "{cell:?}");
        }
    }

    fn check_condition(&self, ours: &Outcome) {
        let (cell, Options { sack, .. }) = (&self.cell, self.cell.both());
        let [linux, we] = &self.watch.ends;
        let info = ours.info.expect("it was looked at");
        match cell.condition {
            Condition::Plain => assert_eq!(self.lost, 0, "{cell:?}"),
            Condition::Loss => {
                assert!(self.lost > 50 && info.retransmissions > 50, "{cell:?}");
                assert!(self.counter("TCPOFOQueue") > 50, "{cell:?}");
                assert_eq!(self.counter("TCPSackRecovery") > 0, sack, "{cell:?}");
                assert_eq!(self.counter("TCPRenoRecovery") > 0, !sack, "{cell:?}");
                assert_eq!(linux.with_sack > 50 && we.with_sack > 50, sack, "{cell:?}");
            }
            Condition::Reordering => {
                assert!(self.counter("TCPOFOQueue") > 50, "{cell:?}");
                assert_eq!(linux.with_sack > 50 && we.with_sack > 50, sack, "{cell:?}");
            }
            // Both windows were closed, and opened again.
            Condition::SmallWindows => assert!(linux.zero_windows > 0 && we.zero_windows > 0, "{cell:?}"),
        }
    }

    fn counter(&self, name: &str) -> u64 {
        let counter = self.kernel["counters"][name].as_u64();
        counter.unwrap_or_else(|| panic!("the kernel does not count {name}"))
    }
}
