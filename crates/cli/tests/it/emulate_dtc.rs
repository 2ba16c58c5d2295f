//! Compares the kernel's TCP over a lossy chain with and without caching nodes, with the shipped
//! scenario.

#![expect(clippy::disallowed_types, reason = "what is compared is real time")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_testkit::contents;
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns::{self, Kept, inside, run, skipped, text};
use tempfile::TempDir;

use crate::emulation::Emulation;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/dtc-tun.toml");

/// Bytes per transfer.
const OCTETS: usize = 200_000;
/// Minimum ratio of the durations without and with caching nodes.
const FACTOR: u32 = 3;
/// Seeds of the losses. A single transfer depends too much on chance, so the sums over these are
/// compared.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Time limit for transfers through caching nodes.
const PATIENCE: Duration = Duration::from_secs(300);
/// Interval between checks whether the comparison is decided.
const LOOK: Duration = Duration::from_millis(100);

/// One of the two chains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Chain {
    Caching,
    Plain,
}

impl Chain {
    const BOTH: [Self; 2] = [Self::Caching, Self::Plain];

    /// Address of the far end.
    fn far(self) -> &'static str {
        match self {
            Self::Caching => "10.0.0.7",
            Self::Plain => "10.0.0.14",
        }
    }
}

/// TUN ends of the scenario: near and far of each chain.
const ENDS: [&str; 4] = ["near", "far", "near-plain", "far-plain"];

/// An emulation of both chains, with a server at the far end of each.
struct Bench {
    emulation: Emulation,
    servers: Vec<Kept>,
    folder: TempDir,
}

impl Bench {
    fn start(test: &str, seed: u64) -> Self {
        let namespaces: Vec<_> = (0..ENDS.len()).map(|i| netns::name(&format!("{test}{seed}e{i}"))).collect();
        let mut set = vec![format!("seed={seed}")];
        set.extend(ENDS.iter().zip(&namespaces).map(|(node, netns)| format!("node.{node}.netns={netns}")));
        let emulation = Emulation::start(Path::new(SHIPPED), namespaces, &set);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), contents(OCTETS)).expect("a file");
        let mut this = Self { emulation, servers: Vec::new(), folder };
        this.servers = Chain::BOTH.map(|chain| this.serve(chain)).into();
        this
    }

    fn near(&self, chain: Chain) -> &str {
        &self.emulation.namespaces[2 * chain as usize]
    }

    fn serve(&self, chain: Chain) -> Kept {
        let netns = &self.emulation.namespaces[2 * chain as usize + 1];
        let serve = ["python3", "-u", "-m", "http.server", "--bind", chain.far(), "8000"];
        let mut server = inside(netns, &serve);
        server.current_dir(self.folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Kept(server.spawn().expect("python3 runs"));
        let mut said = String::new();
        let mut stdout = BufReader::new(server.0.stdout.take().expect("it is a pipe"));
        stdout.read_line(&mut said).expect("text");
        assert!(said.contains("Serving"), "{said}");
        server
    }

    /// Starts a client that fetches the file to its standard output.
    fn fetch(&self, chain: Chain) -> Kept {
        let url = format!("http://{}:8000/file", chain.far());
        let mut client = inside(self.near(chain), &["curl", "--silent", "--no-buffer", &url]);
        Kept(client.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("curl runs"))
    }
}

/// A finished transfer: its chain, its duration, and the received bytes.
struct Fetched {
    place: (usize, Chain),
    took: Duration,
    octets: Vec<u8>,
}

/// Reports a transfer when all bytes have arrived, or when its client was killed.
fn watch(place: (usize, Chain), client: &mut Kept, begun: Instant, over: Sender<Fetched>) {
    let mut stdout = client.0.stdout.take().expect("it is a pipe");
    thread::spawn(move || {
        let mut octets = Vec::new();
        let _ = stdout.read_to_end(&mut octets);
        let _ = over.send(Fetched { place, took: begun.elapsed(), octets });
    });
}

fn programs_are_missing() -> bool {
    skipped() || find_or_install("curl", "curl").is_none() || find_or_install("python3", "python3").is_none()
}

#[test]
fn caching_nodes_are_three_times_as_fast() {
    if programs_are_missing() {
        return;
    }
    let benches = SEEDS.map(|seed| Bench::start("dtc", seed));
    let expected = contents(OCTETS);
    let (over, fetched) = channel();
    let begun = Instant::now();
    let mut clients = Vec::new();
    for (i, bench) in benches.iter().enumerate() {
        for chain in Chain::BOTH {
            let mut client = bench.fetch(chain);
            watch((i, chain), &mut client, begun, over.clone());
            clients.push(client);
        }
    }
    drop(over);
    // An unfinished transfer has taken at least the time until now, which may decide the
    // comparison.
    let mut done: Vec<Fetched> = Vec::new();
    let so_far = |done: &[Fetched], chain| -> (usize, Duration) {
        let all: Vec<_> = done.iter().filter(|f| f.place.1 == chain).map(|f| f.took).collect();
        let missing = (SEEDS.len() - all.len()) as u32;
        (all.len(), all.iter().sum::<Duration>() + begun.elapsed() * missing)
    };
    let (caching, plain) = loop {
        let ((n, caching), (_, plain)) = (so_far(&done, Chain::Caching), so_far(&done, Chain::Plain));
        if n == SEEDS.len() && (plain >= caching * FACTOR || done.len() == 2 * SEEDS.len()) {
            break (caching, plain);
        }
        assert!(n == SEEDS.len() || begun.elapsed() < PATIENCE, "{n} of {} transfers are over", SEEDS.len());
        match fetched.recv_timeout(LOOK) {
            Ok(transfer) => done.push(transfer),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    };
    let whole = done.len();
    // Dropping the clients ends the other transfers, and their received bytes can be checked.
    drop(clients);
    done.extend(fetched.iter());
    assert_eq!(done.len(), 2 * SEEDS.len());
    for (i, transfer) in done.iter().enumerate() {
        let Fetched { place, octets, .. } = transfer;
        assert!(i >= whole || octets.len() == OCTETS, "{place:?}: {} octets", octets.len());
        assert!(expected.starts_with(octets), "{place:?}: {} octets that differ", octets.len());
    }
    let ratio = plain.as_secs_f64() / caching.as_secs_f64();
    println!("{caching:?} with caching nodes; {plain:?}, {ratio:.2} times that, or more without");
    assert!(plain >= caching * FACTOR, "{caching:?} with caching nodes, {plain:?} without");
    for Bench { emulation, servers, .. } in benches {
        drop(servers);
        let report = emulation.interrupt();
        // In the chain without caching nodes every link has a `p` in its name, and no other link
        // but those that join both chains.
        let metrics = report["metrics"].as_object().expect("metrics by name");
        let sum = |of: &str, plain: bool| -> f64 {
            let links = metrics.iter().filter_map(|(name, metric)| {
                let link = name.strip_prefix("link.")?.strip_suffix(of)?;
                (link.contains('p') == plain).then(|| metric["mean"].as_f64())?
            });
            links.sum()
        };
        assert!(sum(".dropped_loss", false) > 0.0 && sum(".dropped_loss", true) > 0.0, "nothing was lost");
        assert_eq!(report["metrics"]["link.c3>p3.packets"]["mean"].as_f64(), Some(0.0));
    }
}

#[test]
fn an_interrupt_during_transfers_leaves_nothing() {
    if programs_are_missing() {
        return;
    }
    let bench = Bench::start("dtcint", 1);
    let mut clients = Chain::BOTH.map(|chain| bench.fetch(chain));
    // One transfer is in the middle of the file; the other may still be in its handshake.
    let mut first = [0];
    let mut stdout = clients[Chain::Caching as usize].0.stdout.take().expect("it is a pipe");
    stdout.read_exact(&mut first).expect("the first octet");
    let Bench { emulation, servers, .. } = bench;
    let first_device = format!("ab{:x}n", emulation.child.id());
    let prefix = netns::name("dtcint");
    emulation.interrupt();
    // The servers keep the namespaces alive, which have no name any more; the devices are gone.
    for server in &servers {
        let inside = format!("--net=/proc/{}/ns/net", server.0.id());
        let links = text(&run("nsenter", &[&inside, "ip", "-o", "link"]).stdout);
        assert!(links.contains("lo:") && links.lines().count() == 1, "{links}");
    }
    // Devices are created in the initial namespace before they move.
    let links = text(&run("ip", &["-o", "link"]).stdout);
    assert!(!links.contains(&first_device), "{links}");
    drop((clients, servers));
    let processes = text(&run("ps", &["-eo", "args"]).stdout);
    assert!(!processes.contains(&prefix), "{processes}");
}
