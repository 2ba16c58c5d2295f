//! Carries out one schedule: the emulation, the programs in its nodes, and the pushes.

#![expect(clippy::disallowed_types, reason = "processes live in real time")]

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_testkit::contents;
use anabranch_testkit::netns::{self, inside, run};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::emulate_faults::schedule::{Kind, ROUTERS, Schedule};
use crate::emulation::{Emulation, program};

/// A push asks the node four times, for 8 s each, and gives up when nothing was delivered for 120
/// s.
const REQUEST: Duration = Duration::from_secs(4 * 8);
const STALL: Duration = Duration::from_secs(120);
/// Time for the file itself, with all bytes sent again.
const FILE: Duration = Duration::from_secs(60);
/// Limit on the number of pushes.
const TRIES: usize = 60;
/// Pause between two pushes.
const PAUSE: Duration = Duration::from_millis(300);

/// Result of a schedule.
pub(crate) struct Outcome {
    schedule: Schedule,
    /// End of each push, in order.
    pub(crate) pushes: Vec<Ended>,
    /// Time from the end of the faults to the end of the last push.
    pub(crate) after: Duration,
    /// Violations of requirements.
    pub(crate) findings: Vec<String>,
    /// Lag of the emulation in milliseconds: the 99th percentile and the maximum.
    pub(crate) lag_ms: (f64, f64),
    /// Folder of the run, kept if there is a finding.
    folder: Option<PathBuf>,
}

/// How a push ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) took: Duration,
    why: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.schedule)?;
        for Ended { why, took, .. } in &self.pushes {
            writeln!(f, "    {:.2} s: {why}", took.as_secs_f64())?;
        }
        let (p99, max) = self.lag_ms;
        let after = self.after.as_secs_f64();
        writeln!(f, "    over {after:.1} s after the faults; lag {p99:.1} ms (p99), {max:.1} ms (max)")?;
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
    /// Names of the namespaces begin with this.
    names: String,
    folder: &'a Path,
    /// Start of the emulation.
    started: Instant,
    /// Kills and starts of gateways that have not happened.
    kills: Vec<(Duration, usize, bool)>,
    gateways: [Option<Child>; ROUTERS],
    node: Option<Child>,
    push: Option<Child>,
    sha256: String,
    pushes: Vec<Ended>,
    findings: Vec<String>,
}

/// Carries out a schedule to its end.
pub(crate) fn carry_out(schedule: Schedule) -> Outcome {
    let folder = TempDir::with_prefix("anabranch-mesh-faults-").expect("a temporary folder");
    let names = netns::name(&format!("m{}", schedule.run));
    let path = folder.path().join("mesh.toml");
    fs::write(&path, schedule.scenario(&names)).expect("it can be written");
    let ends = ["s", "b1", "b2", "b3", "t"].map(|end| format!("{names}-{end}"));
    let emulation = Emulation::start(&path, ends.to_vec(), &[]);
    let mut world = World::new(&schedule, names, folder.path());
    world.run();
    let after = world.started.elapsed().saturating_sub(schedule.end());
    world.end();
    let pushes = std::mem::take(&mut world.pushes);
    let findings = std::mem::take(&mut world.findings);
    drop(world);
    let report = emulation.interrupt();
    let lag = |key: &str| report["lag"][key].as_f64().unwrap_or(f64::NAN) * 1e3;
    let folder = (!findings.is_empty()).then(|| folder.keep());
    Outcome { schedule, pushes, after, findings, lag_ms: (lag("p99_s"), lag("max_s")), folder }
}

impl<'a> World<'a> {
    fn new(schedule: &'a Schedule, names: String, folder: &'a Path) -> Self {
        let started = Instant::now();
        let file = contents(schedule.octets);
        fs::write(folder.join("file"), &file).expect("it can be written");
        fs::create_dir(folder.join("out")).expect("it can be made");
        let mut make = std::process::Command::new(program());
        let made = make.current_dir(folder).args(["key", "new", "sender", "gateway", "node"]).output();
        assert!(made.expect("the program starts").status.success());
        let mut world = Self {
            schedule,
            names,
            folder,
            started,
            kills: schedule.kills(),
            gateways: [const { None }; ROUTERS],
            node: None,
            push: None,
            sha256: hex(&file),
            pushes: Vec::new(),
            findings: Vec::new(),
        };
        (0..ROUTERS).for_each(|i| world.start_gateway(i));
        let keys = world.keys(&["--key", "node.key", "--senders", "sender.pub"]);
        let table = (0..ROUTERS).map(|i| format!("[{}]:47201", router(i)));
        let table = table.map(|address| if schedule.secure { address + "=gateway.pub" } else { address });
        let table = table.collect::<Vec<_>>().join(",");
        let listen = format!("[{TARGET}]:47200");
        let listen = ["node", "--listen", &listen, "--gateways", &table, "--out", "out/got", "--json"];
        let idle = schedule.idle.map_or(vec![], |idle| vec!["--idle", idle]);
        world.node = Some(world.spawn("t", &[&listen[..], keys, &idle].concat(), "node"));
        // Wait until the programs have read their keys, and begin before the first fault.
        thread::sleep(PAUSE);
        world
    }

    fn run(&mut self) {
        match self.schedule.kind {
            Kind::RetryFor => {
                if self.push(&["--retry-for", "3min"]).is_some_and(|ended| !ended.status.success()) {
                    self.findings.push("not delivered, although it tries again".to_owned());
                }
            }
            Kind::Again => {
                while self.push(&[]).is_some_and(|ended| !ended.status.success()) {
                    if self.pushes.len() >= TRIES {
                        return self.findings.push(format!("not delivered after {TRIES} pushes"));
                    }
                    let since = Instant::now();
                    while since.elapsed() < PAUSE {
                        self.step();
                    }
                }
            }
        }
    }

    /// Continues until a push has ended; `None` if it does not.
    fn push(&mut self, options: &[&str]) -> Option<&Ended> {
        let keys = self.keys(&["--key", "sender.key", "--node-key", "node.pub"]);
        let words = [&["push", "file", "--to", TARGET, "--json", "--state", "state"], keys, options].concat();
        let since = self.started.elapsed();
        let stem = format!("push-{}", self.pushes.len());
        self.push = Some(self.spawn("s", &words, &stem));
        let limit = since.max(self.schedule.end()) + REQUEST + STALL + FILE;
        loop {
            self.step();
            let push = self.push.as_mut().expect("it has not ended");
            if let Some(status) = push.try_wait().expect("it is ours") {
                self.push = None;
                let why = self.judge(status, &stem);
                self.pushes.push(Ended { status, took: self.started.elapsed().saturating_sub(since), why });
                return self.pushes.last();
            }
            if self.started.elapsed() > limit {
                let why = format!(
                    "a push runs {:?} after its start and the faults",
                    limit - since.max(self.schedule.end())
                );
                self.findings.push(why);
                return None;
            }
        }
    }

    /// Kills and starts the gateways that are due.
    fn step(&mut self) {
        while let Some((_, router, starts)) =
            self.kills.first().copied().filter(|(at, ..)| *at <= self.started.elapsed())
        {
            self.kills.remove(0);
            match starts {
                true => self.start_gateway(router),
                false => self.kill_gateway(router),
            }
        }
        thread::sleep(Duration::from_millis(5));
    }

    /// Checks a push that has ended; returns what it said.
    fn judge(&mut self, status: ExitStatus, stem: &str) -> String {
        let read =
            |end: &str| fs::read_to_string(self.folder.join(format!("{stem}.{end}"))).unwrap_or_default();
        let (report, said) = (read("out"), read("err"));
        let file = fs::read(self.folder.join("out/got")).ok();
        let is_whole = file.as_ref().is_some_and(|file| hex(file) == self.sha256);
        if file.is_some() && !is_whole {
            self.findings.push("the node has a wrong file".to_owned());
        }
        match status.code() {
            Some(0) => {
                let report: Value = serde_json::from_str(&report).unwrap_or_default();
                let whole = |key: &str| report[key] == self.schedule.octets;
                if !is_whole
                    || report["sha256"] != self.sha256.as_str()
                    || !whole("bytes")
                    || !whole("delivered_bytes")
                {
                    self.findings
                        .push(format!("exit code 0, the file is whole: {is_whole}, the report: {report}"));
                }
                format!("delivered, of it {} bytes before", report["resumed_from"])
            }
            Some(1) => {
                let why = said.lines().find_map(|line| line.strip_prefix("error: "));
                if why.is_none() || !said.contains("  hint: ") {
                    self.findings.push(format!("a push has failed and said no more than `{}`", said.trim()));
                }
                why.unwrap_or_default().to_owned()
            }
            _ => {
                self.findings.push(format!("a push has ended with {status}: {}", said.trim()));
                status.to_string()
            }
        }
    }

    fn start_gateway(&mut self, i: usize) {
        if self.gateways[i].is_some() {
            return;
        }
        let listen = format!("[{}]:47201", router(i));
        let keys = self.keys(&["--key", "gateway.key", "--senders", "sender.pub"]);
        let words = [&["gateway", "--listen", &listen, "--allow", TARGET], keys].concat();
        self.gateways[i] = Some(self.spawn(&format!("b{}", i + 1), &words, &format!("gateway-{}", i + 1)));
    }

    fn kill_gateway(&mut self, i: usize) {
        if let Some(gateway) = self.gateways[i].take() {
            self.end_daemon(gateway, &format!("gateway {}", i + 1));
        }
    }

    /// Kills a daemon, none of which ends by itself.
    fn end_daemon(&mut self, mut daemon: Child, name: &str) {
        let ended = daemon.try_wait().expect("it is ours");
        let _ = daemon.kill();
        let _ = daemon.wait();
        if let Some(status) = ended {
            self.findings.push(format!("the {name} has ended with {status}"));
        }
    }

    /// These key options, or `--insecure`.
    fn keys<'k>(&self, keys: &'k [&'k str]) -> &'k [&'k str] {
        if self.schedule.secure { keys } else { &["--insecure"] }
    }

    fn spawn(&self, end: &str, words: &[&str], stem: &str) -> Child {
        let open = |end: &str| {
            let path = self.folder.join(format!("{stem}.{end}"));
            File::options().create(true).append(true).open(path).expect("it can be written")
        };
        let mut command = inside(&format!("{}-{end}", self.names), &[&[program()], words].concat());
        // The state of daemons must not come from another run.
        command.env("XDG_STATE_HOME", self.folder);
        command.current_dir(self.folder).stdout(open("out")).stderr(open("err"));
        command.spawn().expect("the program starts")
    }

    /// Ends the daemons, and checks the output of all programs.
    fn end(&mut self) {
        (0..ROUTERS).for_each(|i| self.kill_gateway(i));
        if let Some(node) = self.node.take() {
            self.end_daemon(node, "node");
        }
        for entry in fs::read_dir(self.folder).expect("it is there").flatten() {
            let path = entry.path();
            let is_error = path.extension().is_some_and(|end| end == "err");
            if is_error && fs::read_to_string(&path).unwrap_or_default().contains("panicked") {
                self.findings.push(format!("{} has panicked", path.display()));
            }
        }
        for line in fs::read_to_string(self.folder.join("node.out")).unwrap_or_default().lines() {
            let received: Value = serde_json::from_str(line).unwrap_or_default();
            if received["sha256"] != self.sha256.as_str() {
                self.findings.push(format!("the node has reported {line}"));
            }
        }
    }
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        for child in self.push.iter_mut().chain(&mut self.node).chain(self.gateways.iter_mut().flatten()) {
            // `ip netns exec` becomes the program, so this is the program's process.
            run("kill", &["-KILL", &child.id().to_string()]);
            let _ = child.wait();
        }
    }
}

/// Single nodes have the first addresses, and then the nodes of groups.
const TARGET: &str = "fd00::2";

fn router(i: usize) -> String {
    format!("fd00::{}", i + 3)
}

fn hex(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().map(|o| format!("{o:02x}")).collect()
}
