//! Carries out one schedule: processes, faults, and pushes.

#![expect(clippy::disallowed_types, reason = "processes live in real time")]

use std::fmt;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use anabranch_testkit::contents;
use anabranch_testkit::embedded::{self, program};
use anabranch_testkit::netns::{inside, run};
use anabranch_testkit::tmpfs::Tmpfs;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::faults::flips::Relay;
use crate::faults::meter::{Meter, Returned};
use crate::faults::network::{Network, behind};
use crate::faults::schedule::{Event, Kind, Link, Schedule, Who};
use crate::programs;

/// A push asks the node four times, for 8 s each, and gives up when nothing was delivered for 120
/// s.
const REQUEST: Duration = Duration::from_secs(4 * 8);
const STALL: Duration = Duration::from_secs(120);
/// Time for the file itself on a busy machine, with all bytes sent again, and for the end of
/// connections.
const FILE: Duration = Duration::from_secs(30);
/// Limits on the number of pushes and on the whole time.
const TRIES: usize = 60;
const PATIENCE: Duration = Duration::from_secs(600);
/// Pause between two pushes.
const PAUSE: Duration = Duration::from_millis(300);

/// Result of a schedule.
pub(crate) struct Outcome {
    pub(crate) schedule: Schedule,
    /// End of each push, in order.
    pub(crate) pushes: Vec<Ended>,
    /// Time from the first push to the last.
    pub(crate) took: Duration,
    /// Violations of requirements.
    pub(crate) findings: Vec<String>,
    /// Returned gateways, with the time until they had their share again.
    pub(crate) returned: Vec<Returned>,
    /// Number of flipped bits.
    pub(crate) flipped: u64,
    /// Folder of the run, kept if there is a finding.
    pub(crate) folder: Option<PathBuf>,
}

/// How a push ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) why: String,
    pub(crate) took: Duration,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.schedule)?;
        for Ended { why, took, .. } in &self.pushes {
            writeln!(f, "    {:.2} s: {why}", took.as_secs_f64())?;
        }
        for Returned { gateway, used, .. } in &self.returned {
            let used = used.map_or("not".to_owned(), |used| format!("after {:.1} s", used.as_secs_f64()));
            writeln!(f, "    gateway {gateway} returned, and was used again: {used}")?;
        }
        if self.flipped > 0 {
            writeln!(f, "    {} bits were changed", self.flipped)?;
        }
        for finding in &self.findings {
            writeln!(f, "  FINDING: {finding}")?;
        }
        match &self.folder {
            Some(folder) => writeln!(f, "  see {}", folder.display()),
            None => Ok(()),
        }
    }
}

/// State of a run.
struct World<'a> {
    schedule: &'a Schedule,
    /// Relays in front of the node and of each gateway.
    relays: Vec<Relay>,
    meter: Meter,
    network: Network,
    folder: &'a Path,
    disk: Option<Tmpfs>,
    node: Option<Child>,
    gateways: Vec<Option<Child>>,
    push: Option<Running>,
    /// Whether a gateway's address differs from the node's table.
    moved: bool,
    started: Instant,
    /// Time of the last fault.
    disturbed: Instant,
    /// Number of events carried out.
    happened: usize,
    /// The files, and the index of the one being pushed.
    files: Vec<Contents>,
    now: usize,
    pushes: Vec<Ended>,
    findings: Vec<String>,
}

/// A file to push.
struct Contents {
    name: &'static str,
    octets: u64,
    sha256: String,
}

/// A running push.
struct Running {
    child: Child,
    since: Instant,
    killed: bool,
    interrupted: bool,
}

/// Carries out a schedule to its end.
pub(crate) fn carry_out(schedule: Schedule) -> Outcome {
    let folder = TempDir::with_prefix("anabranch-faults-").expect("a temporary folder");
    let mut world = World::new(&schedule, folder.path());
    world.run();
    let took = world.started.elapsed();
    world.end();
    let pushes = std::mem::take(&mut world.pushes);
    let findings = std::mem::take(&mut world.findings);
    let returned = std::mem::take(&mut world.meter.returned);
    let flipped = world.relays.iter().map(Relay::flipped).sum();
    drop(world);
    let folder = (!findings.is_empty()).then(|| folder.keep());
    Outcome { schedule, pushes, took, findings, returned, flipped, folder }
}

/// The C receiver, with and without keys.
fn receiver(secure: bool) -> &'static Path {
    static PROGRAMS: [OnceLock<(TempDir, PathBuf)>; 2] = [const { OnceLock::new() }; 2];
    let kind = if secure { embedded::Kind::Noise } else { embedded::Kind::Plain };
    let (_, path) = PROGRAMS[usize::from(secure)].get_or_init(|| {
        let folder = TempDir::new().expect("a temporary folder");
        let path = folder.path().join("receive");
        program(kind, &[&embedded::file("examples/receive.c")], &path).expect("a C compiler");
        (folder, path)
    });
    path
}

impl<'a> World<'a> {
    fn new(schedule: &'a Schedule, folder: &'a Path) -> Self {
        if schedule.kind == Kind::OtherFileToC {
            receiver(schedule.secure);
        }
        let network = Network::open(schedule.run, schedule.family, &schedule.rates);
        let file = contents(schedule.octets as usize);
        // Differs from the first file at every byte.
        let other: Option<Vec<u8>> =
            schedule.other.map(|octets| contents(octets as usize).into_iter().map(|octet| !octet).collect());
        let files = [("file", Some(file)), ("other", other)].into_iter().filter_map(|(name, octets)| {
            let octets = octets?;
            fs::write(folder.join(name), &octets).expect("it can be written");
            Some(Contents { name, octets: octets.len() as u64, sha256: hex(&octets) })
        });
        let out = folder.join("out");
        fs::create_dir(&out).expect("it can be made");
        let disk = schedule.disk.map(|octets| Tmpfs::mount(&out, octets));
        let mut make = programs::command("key");
        let made = make.current_dir(folder).args(["new", "sender", "gateway", "node"]).output();
        assert!(made.expect("the program starts").status.success());
        let mut world = Self {
            schedule,
            relays: Vec::new(),
            meter: Meter::new(&network.gateways, &schedule.rates),
            network,
            folder,
            disk,
            node: None,
            gateways: Vec::new(),
            push: None,
            moved: false,
            started: Instant::now(),
            disturbed: Instant::now(),
            happened: 0,
            files: files.collect(),
            now: 0,
            pushes: Vec::new(),
            findings: Vec::new(),
        };
        for (i, flips) in schedule.flips.iter().enumerate() {
            let (netns, address) = match i.checked_sub(1) {
                None => (&world.network.node, world.network.node_address()),
                Some(i) => (&world.network.gateways, world.network.gateway_address(i)),
            };
            world.relays.push(Relay::open(netns, address, behind(address), flips.clone()));
        }
        for i in 0..schedule.rates.len() {
            world.gateways.push(None);
            world.start(Who::Gateway(i));
        }
        world.start(Who::Node);
        // Wait until the programs have read their keys.
        thread::sleep(PAUSE);
        world.started = Instant::now();
        world
    }

    fn run(&mut self) {
        match self.schedule.kind {
            Kind::Mixed | Kind::Flips => self.push_until_delivered(&[]),
            Kind::Return | Kind::Rolling => self.push_once(&[]),
            Kind::Unreached => {
                // The link is cut before the push begins, and restored after it has given up.
                self.step();
                self.push(&[]);
                self.happen(Event::Mend(Link::Air));
                self.push_until_delivered(&[]);
            }
            Kind::Absent => self.push_once(&["--retry-for", "3min"]),
            Kind::SmallDisk => self.push_more_than_fits(),
            Kind::OtherFile => {
                self.push(&[]);
                self.rest(self.schedule.end().saturating_sub(self.started.elapsed()) + PAUSE);
                self.now = 1;
                // The node's part of the first file waits for the rest, unless it is discarded.
                self.push(&["--wait", "20 s"]);
                let is_refused =
                    |ended: &Ended| ended.why.contains("bytes of an unfinished transfer of another file");
                if self.pushes.last().is_some_and(is_refused) {
                    self.push_once(&["--wait", "20 s", "--restart"]);
                }
                self.expect_delivered();
            }
            Kind::OtherFileToC => {
                self.push(&["--no-resume"]);
                self.now = 1;
                self.push_once(&["--wait", "30 s", "--no-resume"]);
                self.expect_receiver_ends();
            }
        }
        self.meter.end();
    }

    fn push_until_delivered(&mut self, options: &[&str]) {
        let mut options = options.to_vec();
        while self.findings.is_empty() {
            let is_flipped = !self.relays.is_empty();
            let Some(ended) = self.push(&options) else { return };
            if ended.status.success() {
                return;
            }
            // A bit of the request was flipped: the node waits for the rest of a file that does not
            // exist.
            if is_flipped && ended.why.contains("unfinished transfer of another file") {
                options = vec!["--restart"];
            }
            if self.pushes.len() >= TRIES || self.started.elapsed() > PATIENCE {
                let why = format!("not delivered after {} pushes", self.pushes.len());
                return self.findings.push(why);
            }
            self.rest(PAUSE);
        }
    }

    fn push_once(&mut self, options: &[&str]) {
        self.push(options);
        self.expect_delivered();
    }

    fn expect_delivered(&mut self) {
        if let Some(ended) = self.pushes.last().filter(|ended| !ended.status.success()) {
            self.findings.push(format!("not delivered: {}", ended.why));
        }
    }

    fn push_more_than_fits(&mut self) {
        let before = self.meter.total();
        let refused = self.push(&[]).is_some_and(|ended| {
            ended.status.code() == Some(1) && ended.why.contains("it has no space for the file; 0 of ")
        });
        let carried = self.meter.total() - before;
        if !refused || carried > 20_000 {
            self.findings.push(format!("not refused before anything was sent: {carried} octets were"));
        }
        self.now = 1;
        self.push_once(&[]);
    }

    /// The C program ends once it has a file, which must be the delivered one.
    fn expect_receiver_ends(&mut self) {
        let since = Instant::now();
        while since.elapsed() < FILE {
            let ended = self.node.as_mut().and_then(|node| node.try_wait().expect("it is ours"));
            if let Some(status) = ended {
                self.node = None;
                if !status.success() {
                    self.findings.push(format!("the receiver has ended with {status}"));
                }
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.findings.push(format!("the receiver has not ended {FILE:?} after the push"));
    }

    /// Continues until a push has ended; `None` if it does not.
    fn push(&mut self, options: &[&str]) -> Option<&Ended> {
        self.start_push(options);
        loop {
            self.step();
            if self.look() {
                return self.pushes.last();
            }
            let push = self.push.as_ref().expect("it has not ended");
            let limit = REQUEST + STALL + FILE;
            if push.since.max(self.disturbed).elapsed() > limit {
                self.findings.push(format!("a push has not ended {limit:?} after the last fault"));
                return None;
            }
        }
    }

    fn rest(&mut self, pause: Duration) {
        let since = Instant::now();
        while since.elapsed() < pause {
            self.step();
        }
    }

    fn step(&mut self) {
        while let Some((_, event)) =
            self.schedule.events.get(self.happened).filter(|(at, _)| *at <= self.started.elapsed())
        {
            self.happened += 1;
            self.happen(*event);
        }
        self.meter.look();
        thread::sleep(Duration::from_millis(5));
    }

    /// Checks the processes. Returns whether the push has ended.
    fn look(&mut self) -> bool {
        let Some(push) = &mut self.push else { return false };
        let Some(status) = push.child.try_wait().expect("it is ours") else { return false };
        let push = self.push.take().expect("it was there");
        let stem = format!("push-{}", self.pushes.len());
        let said = fs::read_to_string(self.folder.join(format!("{stem}.err"))).unwrap_or_default();
        let report = fs::read_to_string(self.folder.join(format!("{stem}.out"))).unwrap_or_default();
        let why = match (status.code(), status.signal()) {
            (Some(0), _) => self.delivered(&report),
            (Some(1), _) => self.failed(&said),
            (Some(130), _) if push.interrupted && said.contains("interrupted: ") => "interrupted".to_owned(),
            (_, Some(9)) if push.killed => "killed".to_owned(),
            // The signal arrived before the program had a handler, and so before any output.
            (_, Some(2)) if push.interrupted && said.is_empty() => "interrupted".to_owned(),
            _ => {
                self.findings.push(format!("a push ended with {status}: {}", said.trim()));
                status.to_string()
            }
        };
        self.pushes.push(Ended { status, why, took: push.since.elapsed() });
        self.look_at_file(status);
        true
    }

    /// Checks the report of a successful push.
    fn delivered(&mut self, report: &str) -> String {
        let report: Value = serde_json::from_str(report).unwrap_or_default();
        let Contents { octets, sha256, .. } = &self.files[self.now];
        let whole = |key: &str| report[key] == *octets;
        if report["sha256"] != sha256.as_str() || !whole("bytes") || !whole("delivered_bytes") {
            self.findings.push(format!("delivered, and the report is {report}"));
        }
        format!("delivered, of it {} octets before", report["resumed_from"])
    }

    /// Checks a failed push, which must print a reason.
    fn failed(&mut self, said: &str) -> String {
        let why = said.lines().find_map(|line| line.strip_prefix("error: "));
        if why.is_none() || !said.contains("  hint: ") {
            self.findings.push(format!("a push has failed and said no more than `{}`", said.trim()));
        }
        why.unwrap_or_default().to_owned()
    }

    /// A file in place must be one of the files, and the last delivered one.
    fn look_at_file(&mut self, status: ExitStatus) {
        match fs::read(self.folder.join("out/got")) {
            Ok(file) if self.is_known(&hex(&file), status.success()) => {}
            Ok(file) => self.findings.push(format!("a wrong file of {} octets is there", file.len())),
            Err(error) if status.success() => self.findings.push(format!("delivered, and no file: {error}")),
            Err(_) => {}
        }
    }

    /// Whether this is the digest of the file being pushed or, if that is not delivered, of an
    /// earlier one.
    fn is_known(&self, sha256: &str, is_delivered: bool) -> bool {
        let known = &self.files[if is_delivered { self.now } else { 0 }..=self.now];
        known.iter().any(|file| file.sha256 == sha256)
    }

    fn happen(&mut self, event: Event) {
        self.disturbed = Instant::now();
        let others_carry = matches!(self.schedule.kind, Kind::Return | Kind::Rolling);
        match event {
            Event::Start(Who::Gateway(i)) | Event::Mend(Link::Wire(i)) if others_carry => {
                self.meter.returns(i);
            }
            Event::Kill(Who::Gateway(i)) | Event::Cut(Link::Wire(i), _) => self.meter.leaves(i),
            _ => {}
        }
        match event {
            Event::Kill(who) => self.kill(who),
            Event::Start(who) => self.start(who),
            Event::Interrupt => {
                if let Some(push) = &mut self.push {
                    push.interrupted = true;
                }
                self.signal(Who::Push, "-INT");
            }
            Event::Cut(link, end) => self.network.cut(link, end),
            Event::Mend(link) => self.network.mend(link),
            Event::Freeze(who) => self.signal(who, "-STOP"),
            Event::Thaw(who) => self.signal(who, "-CONT"),
            Event::Enlarge => {
                if let Some(disk) = &self.disk {
                    disk.resize(64 << 20);
                }
            }
            Event::Move(who) => {
                self.kill(who);
                match who {
                    Who::Gateway(i) => {
                        self.network.move_gateway(i);
                        self.moved = true;
                    }
                    Who::Node | Who::Push => self.network.move_node(),
                }
                self.start(who);
            }
        }
    }

    fn child(&mut self, who: Who) -> Option<&mut Child> {
        match who {
            Who::Gateway(i) => self.gateways[i].as_mut(),
            Who::Node => self.node.as_mut(),
            Who::Push => self.push.as_mut().map(|push| &mut push.child),
        }
    }

    fn signal(&mut self, who: Who, name: &str) {
        if let Some(child) = self.child(who) {
            run("kill", &[name, &child.id().to_string()]);
        }
    }

    fn kill(&mut self, who: Who) {
        if who == Who::Push {
            // The end of the push is checked as usual: it may have completed just before.
            if let Some(push) = &mut self.push {
                push.killed = true;
                push.child.kill().expect("it is ours");
            }
            return;
        }
        let Some(child) = self.child(who) else { return };
        // No daemon ends by itself.
        let ended = child.try_wait().expect("it is ours");
        let _ = child.kill();
        let _ = child.wait();
        // The C program ends once it has a file.
        let may_end = self.schedule.kind == Kind::OtherFileToC && who == Who::Node;
        if let Some(status) = ended.filter(|status| !may_end || !status.success()) {
            self.findings.push(format!("{who:?} has ended with {status}"));
        }
        match who {
            Who::Gateway(i) => self.gateways[i] = None,
            Who::Node | Who::Push => self.node = None,
        }
    }

    fn start(&mut self, who: Who) {
        if self.child(who).is_some() {
            return;
        }
        let is_relayed = !self.relays.is_empty();
        let own = |address: SocketAddr| if is_relayed { behind(address) } else { address }.to_string();
        match who {
            Who::Gateway(i) => {
                let listen = own(self.network.gateway_address(i));
                let allow = ["--allow", "10.79.200.0/24:1-65535", "--allow", "[fd79:c8::/64]:1-65535"];
                let keys = self.keys(&["--key", "gateway.key", "--senders", "sender.pub"]);
                let words = [&["gateway", "--listen", &listen][..], &allow, keys].concat();
                self.gateways[i] = Some(self.spawn(&self.network.gateways, &words, &format!("gateway-{i}")));
            }
            Who::Node if self.schedule.kind == Kind::OtherFileToC => {
                let receiver = receiver(self.schedule.secure).to_str().expect("a path of text");
                let keys = ["-k", "node.key", "-s", "sender.pub", "-g", "gateway.pub"];
                let keys = if self.schedule.secure { &keys[..] } else { &[] };
                let node = self.network.node_address().to_string();
                // Longer than a busy machine takes to open a session.
                let words = [&[receiver, "-i", "5000"], keys, &["out/got", &node]].concat();
                let table: Vec<String> = self.table().map(|address| address.to_string()).collect();
                let words: Vec<&str> = words.into_iter().chain(table.iter().map(String::as_str)).collect();
                self.node = Some(self.spawn_program(&self.network.node, &words, "node"));
            }
            Who::Node => {
                let (listen, table) = (own(self.network.node_address()), self.known());
                let listen =
                    ["node", "--listen", &listen, "--gateways", &table, "--out", "out/got", "--json"];
                let keys = self.keys(&["--key", "node.key", "--senders", "sender.pub"]);
                let words = [&listen[..], keys, &["--idle", "10 s"]].concat();
                self.node = Some(self.spawn(&self.network.node, &words, "node"));
            }
            Who::Push => {}
        }
    }

    fn start_push(&mut self, options: &[&str]) {
        let (node, table) = (self.network.node_address().to_string(), self.known());
        let keys = self.keys(&["--key", "sender.key", "--node-key", "node.pub"]);
        let to = ["push", self.files[self.now].name, "--to", &node, "--json"];
        let mut words = [&to[..], keys, options].concat();
        if !options.contains(&"--no-resume") {
            words.extend(["--state", "state"]);
        }
        if self.moved {
            words.extend(["--via", &table]);
        }
        let child = self.spawn(&self.network.sender, &words, &format!("push-{}", self.pushes.len()));
        self.push = Some(Running { child, since: Instant::now(), killed: false, interrupted: false });
    }

    /// These key options, or `--insecure`.
    fn keys<'k>(&self, keys: &'k [&'k str]) -> &'k [&'k str] {
        if self.schedule.secure { keys } else { &["--insecure"] }
    }

    fn table(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        (0..self.schedule.rates.len()).map(|i| self.network.gateway_address(i))
    }

    /// The gateways, as options name them.
    fn known(&self) -> String {
        let key = if self.schedule.secure { "=gateway.pub" } else { "" };
        let table: Vec<String> = self.table().map(|address| format!("{address}{key}")).collect();
        table.join(",")
    }

    fn spawn(&self, netns: &str, words: &[&str], stem: &str) -> Child {
        let program = programs::words(words[0]);
        let program: Vec<&str> = program.iter().map(String::as_str).collect();
        self.spawn_program(netns, &[&program[..], &words[1..]].concat(), stem)
    }

    fn spawn_program(&self, netns: &str, words: &[&str], stem: &str) -> Child {
        let open = |end: &str| {
            let path = self.folder.join(format!("{stem}.{end}"));
            File::options().create(true).append(true).open(path).expect("it can be written")
        };
        let mut command = inside(netns, words);
        // The state of daemons must not come from another run.
        command.env("XDG_STATE_HOME", self.folder);
        command.current_dir(self.folder).stdout(open("out")).stderr(open("err"));
        command.spawn().expect("the program starts")
    }

    /// Checks the output of all programs.
    fn end(&mut self) {
        for who in (0..self.gateways.len()).map(Who::Gateway).chain([Who::Node]) {
            self.kill(who);
        }
        for entry in fs::read_dir(self.folder).expect("it is there").flatten() {
            let path = entry.path();
            let said = match path.extension() {
                Some(end) if end == "err" => fs::read_to_string(&path).unwrap_or_default(),
                _ => continue,
            };
            if said.contains("panicked") {
                self.findings.push(format!("{} has panicked", path.display()));
            }
        }
        // Every digest that the node printed must belong to one of these files.
        let said = fs::read_to_string(self.folder.join("node.out")).unwrap_or_default();
        for line in said.lines() {
            let received: Value = serde_json::from_str(line).unwrap_or_default();
            if !self.files.iter().any(|file| received["sha256"] == file.sha256.as_str()) {
                self.findings.push(format!("the node has reported {line}"));
            }
        }
    }
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        let push = self.push.as_mut().map(|push| &mut push.child);
        for child in push.into_iter().chain(self.node.as_mut()).chain(self.gateways.iter_mut().flatten()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn hex(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().map(|o| format!("{o:02x}")).collect()
}
