//! One schedule, carried out: processes, what happens to them, and a push that is repeated until the file is there.

#![expect(clippy::disallowed_types, reason = "processes live in real time")]

use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_testkit::netns::{inside, run};
use anabranch_testkit::tmpfs::Tmpfs;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::faults::network::Network;
use crate::faults::schedule::{Event, Schedule, Who};
use crate::programs;

/// A push asks the node four times, for 8 s each, and gives up when nothing was delivered for 120 s.
const REQUEST: Duration = Duration::from_secs(4 * 8);
const STALL: Duration = Duration::from_secs(120);
/// What the file itself may take, with all octets sent again, and the end of connections, on a busy machine.
const FILE: Duration = Duration::from_secs(30);
/// Nobody repeats a push more often, or waits longer in all.
const TRIES: usize = 60;
const PATIENCE: Duration = Duration::from_secs(600);
/// From one push to the next.
const PAUSE: Duration = Duration::from_millis(300);

/// What came of a schedule.
pub(crate) struct Outcome {
    pub(crate) schedule: Schedule,
    /// How each push ended, in order.
    pub(crate) pushes: Vec<Ended>,
    /// From the first push to the last.
    pub(crate) took: Duration,
    /// What should not have been.
    pub(crate) findings: Vec<String>,
    /// Kept if there is a finding.
    pub(crate) folder: Option<PathBuf>,
}

/// How one push ended.
pub(crate) struct Ended {
    pub(crate) why: String,
    pub(crate) took: Duration,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.schedule)?;
        for Ended { why, took } in &self.pushes {
            writeln!(f, "    {:.2} s: {why}", took.as_secs_f64())?;
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

/// What is under way.
struct World<'a> {
    schedule: &'a Schedule,
    network: Network,
    folder: &'a Path,
    disk: Option<Tmpfs>,
    node: Option<Child>,
    gateways: Vec<Option<Child>>,
    push: Option<Running>,
    /// The address of some gateway is not what the node's table says.
    moved: bool,
    started: Instant,
    /// When something was last done to anybody.
    disturbed: Instant,
    sha256: String,
    pushes: Vec<Ended>,
    findings: Vec<String>,
}

/// A push that is under way.
struct Running {
    child: Child,
    since: Instant,
    killed: bool,
    interrupted: bool,
}

/// Runs a schedule to its end.
pub(crate) fn carry_out(schedule: Schedule) -> Outcome {
    let folder = TempDir::with_prefix("anabranch-faults-").expect("a temporary folder");
    let (pushes, findings, took) = {
        let mut world = World::new(&schedule, folder.path());
        world.run();
        let took = world.started.elapsed();
        world.end();
        (std::mem::take(&mut world.pushes), std::mem::take(&mut world.findings), took)
    };
    let folder = (!findings.is_empty()).then(|| folder.keep());
    Outcome { schedule, pushes, took, findings, folder }
}

impl<'a> World<'a> {
    fn new(schedule: &'a Schedule, folder: &'a Path) -> Self {
        let network = Network::open(schedule.run, schedule.family, &schedule.rates);
        let file: Vec<u8> =
            (0..schedule.octets as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(folder.join("file"), &file).expect("it can be written");
        let out = folder.join("out");
        fs::create_dir(&out).expect("it can be made");
        let disk = schedule.disk.map(|octets| Tmpfs::mount(&out, octets));
        let mut make = programs::command("key");
        let made = make.current_dir(folder).args(["new", "sender", "gateway", "node"]).output();
        assert!(made.expect("the program starts").status.success());
        let mut world = Self {
            schedule,
            network,
            folder,
            disk,
            node: None,
            gateways: Vec::new(),
            push: None,
            moved: false,
            started: Instant::now(),
            disturbed: Instant::now(),
            sha256: hex(&file),
            pushes: Vec::new(),
            findings: Vec::new(),
        };
        for i in 0..schedule.rates.len() {
            world.gateways.push(None);
            world.start(Who::Gateway(i));
        }
        world.start(Who::Node);
        // They have keys to read.
        thread::sleep(PAUSE);
        world.started = Instant::now();
        world
    }

    fn run(&mut self) {
        let mut events = self.schedule.events.iter().peekable();
        let mut next = Instant::now();
        loop {
            while let Some((_, event)) = events.next_if(|(at, _)| *at <= self.started.elapsed()) {
                self.happen(*event);
            }
            if self.look() {
                return;
            }
            if self.push.is_some() {
                next = Instant::now() + PAUSE;
            } else if Instant::now() >= next {
                if self.pushes.len() >= TRIES || self.started.elapsed() > PATIENCE {
                    let why = format!("not delivered after {} pushes", self.pushes.len());
                    return self.findings.push(why);
                }
                self.start(Who::Push);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// True once a push has come to its good end, or there is no sense in going on.
    fn look(&mut self) -> bool {
        let Some(push) = &mut self.push else { return false };
        let limit = REQUEST + STALL + FILE;
        if push.since.max(self.disturbed).elapsed() > limit {
            self.findings.push(format!("a push has not ended {limit:?} after the last fault"));
            return true;
        }
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
            _ => {
                self.findings.push(format!("a push ended with {status}: {}", said.trim()));
                status.to_string()
            }
        };
        self.pushes.push(Ended { why, took: push.since.elapsed() });
        self.look_at_file(status);
        status.success() || !self.findings.is_empty()
    }

    /// What the report says.
    fn delivered(&mut self, report: &str) -> String {
        let report: Value = serde_json::from_str(report).unwrap_or_default();
        let whole = |key: &str| report[key] == self.schedule.octets;
        if report["sha256"] != self.sha256.as_str() || !whole("bytes") || !whole("delivered_bytes") {
            self.findings.push(format!("delivered, and the report is {report}"));
        }
        format!("delivered, of it {} octets before", report["resumed_from"])
    }

    /// Why it has failed, which it has to say.
    fn failed(&mut self, said: &str) -> String {
        let why = said.lines().find_map(|line| line.strip_prefix("error: "));
        if why.is_none() || !said.contains("  hint: ") {
            self.findings.push(format!("a push has failed and said no more than `{}`", said.trim()));
        }
        why.unwrap_or_default().to_owned()
    }

    /// A file that is there is the file.
    fn look_at_file(&mut self, status: ExitStatus) {
        match fs::read(self.folder.join("out/got")) {
            Ok(file) if hex(&file) == self.sha256 => {}
            Ok(file) => self.findings.push(format!("a wrong file of {} octets is there", file.len())),
            Err(error) if status.success() => self.findings.push(format!("delivered, and no file: {error}")),
            Err(_) => {}
        }
    }

    fn happen(&mut self, event: Event) {
        self.disturbed = Instant::now();
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
            // How it ends is looked at as ever: it may have come to its end just before.
            if let Some(push) = &mut self.push {
                push.killed = true;
                push.child.kill().expect("it is ours");
            }
            return;
        }
        let Some(child) = self.child(who) else { return };
        // Nobody of them ends by itself.
        let ended = child.try_wait().expect("it is ours");
        let _ = child.kill();
        let _ = child.wait();
        if let Some(status) = ended {
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
        let node = self.network.node_address().to_string();
        let table: Vec<String> = (0..self.schedule.rates.len())
            .map(|i| format!("{}=gateway.pub", self.network.gateway_address(i)))
            .collect();
        let table = table.join(",");
        match who {
            Who::Gateway(i) => {
                let listen = self.network.gateway_address(i).to_string();
                let allow = ["--allow", "10.79.200.0/24:1-65535", "--allow", "[fd79:c8::/64]:1-65535"];
                let keys = ["--key", "gateway.key", "--senders", "sender.pub"];
                let words = [&["gateway", "--listen", &listen][..], &allow, &keys].concat();
                self.gateways[i] = Some(self.spawn(&self.network.gateways, &words, &format!("gateway-{i}")));
            }
            Who::Node => {
                let listen = ["node", "--listen", &node, "--gateways", &table, "--out", "out/got", "--json"];
                let keys = ["--key", "node.key", "--senders", "sender.pub", "--idle", "10 s"];
                self.node = Some(self.spawn(&self.network.node, &[&listen[..], &keys].concat(), "node"));
            }
            Who::Push => {
                let keys = ["--key", "sender.key", "--node-key", "node.pub", "--state", "state"];
                let mut words = [&["push", "file", "--to", &node, "--json"][..], &keys].concat();
                if self.moved {
                    words.extend(["--via", &table]);
                }
                let stem = format!("push-{}", self.pushes.len());
                let child = self.spawn(&self.network.sender, &words, &stem);
                let since = Instant::now();
                self.push = Some(Running { child, since, killed: false, interrupted: false });
            }
        }
    }

    fn spawn(&self, netns: &str, words: &[&str], stem: &str) -> Child {
        let open = |end: &str| {
            let path = self.folder.join(format!("{stem}.{end}"));
            File::options().create(true).append(true).open(path).expect("it can be written")
        };
        let program = programs::words(words[0]);
        let program: Vec<&str> = program.iter().map(String::as_str).collect();
        let mut command = inside(netns, &[&program[..], &words[1..]].concat());
        command.current_dir(self.folder).stdout(open("out")).stderr(open("err"));
        command.spawn().expect("the program starts")
    }

    /// What everybody said until now.
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
        // Whatever the node has called a file is this one.
        let said = fs::read_to_string(self.folder.join("node.out")).unwrap_or_default();
        for line in said.lines() {
            let received: Value = serde_json::from_str(line).unwrap_or_default();
            if received["sha256"] != self.sha256.as_str() {
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
