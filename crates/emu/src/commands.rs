//! The commands of an emulation, in the namespaces of its ends.
//!
//! One thread starts them in order and waits for them. Each command has a process group of its own,
//! so that what it has started is stopped with it, unless it has left the group (`setsid`). Only
//! this thread collects ended processes, and only at the end: until then the number of a group is
//! its own, and a signal meets no other processes.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::Scenario;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, pidfd_open, waitid,
};
use serde::Serialize;

use crate::clock::Clock;
use crate::namespace::{OWNER, own_identity};

/// Time that commands have to end after SIGTERM, before SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Exit code of a shell for a command that a signal has ended: this plus the signal's number.
const SIGNALLED: i32 = 128;
/// Exit code of a shell for a command that cannot be started.
const NOT_STARTED: i32 = 127;

/// Where the commands' standard output goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// To the standard output of this program.
    Stdout,
    /// To the standard error of this program.
    Stderr,
}

/// A command that was started.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// Name of the node in whose namespace it ran.
    pub node: String,
    /// The command, with addresses in place of names.
    pub command: String,
    /// Whether it ran in the background.
    pub background: bool,
    /// Start in seconds since the start of the emulation.
    pub start_s: f64,
    /// End in seconds since the start of the emulation.
    pub end_s: f64,
    /// Exit code; 128 plus the number of the signal that ended it; 127 if it could not be started.
    pub code: i32,
    /// Whether the emulation has stopped it.
    pub stopped: bool,
}

impl Outcome {
    /// Whether the command has failed by itself.
    pub fn has_failed(&self) -> bool {
        self.code != 0 && !self.stopped
    }
}

/// The running commands. Dropping this stops them.
#[derive(Debug)]
pub(crate) struct Commands {
    /// Readable once the commands have ended; a byte written to it stops them.
    line: UnixStream,
    runner: Option<JoinHandle<Vec<Outcome>>>,
}

impl Commands {
    /// Starts the commands of a scenario; `None` if it has none.
    pub(crate) fn start(scenario: &Scenario, clock: Clock, output: Output) -> io::Result<Option<Self>> {
        if scenario.commands.is_empty() {
            return Ok(None);
        }
        let prepared = scenario.commands.iter().map(|command| {
            let node = &scenario.nodes[command.node.index()];
            Prepared {
                node: node.name.clone(),
                netns: node.tun.as_ref().and_then(|tun| tun.netns.clone()),
                command: with_addresses(&command.command, scenario),
                background: command.background,
            }
        });
        let list: Vec<_> = prepared.collect();
        let (line, far) = UnixStream::pair()?;
        let (running, ended, outcomes) = (Vec::new(), Vec::new(), Vec::new());
        let runner = Runner { line: far, clock, output, running, ended, outcomes };
        let runner = thread::Builder::new().name("commands".to_owned()).spawn(move || runner.run(list))?;
        Ok(Some(Self { line, runner: Some(runner) }))
    }

    /// Stops the commands that still run, and returns all that were started.
    pub(crate) fn finish(mut self) -> Vec<Outcome> {
        self.stop()
    }

    fn stop(&mut self) -> Vec<Outcome> {
        // The thread may have ended already.
        let _ = (&self.line).write_all(&[0]);
        self.runner.take().and_then(|runner| runner.join().ok()).unwrap_or_default()
    }
}

impl AsFd for Commands {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A command before its start.
#[derive(Debug)]
struct Prepared {
    node: String,
    netns: Option<String>,
    command: String,
    background: bool,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// Readable once the process has ended.
    ended: OwnedFd,
    /// Index of its outcome.
    index: usize,
}

/// The thread that starts the commands.
#[derive(Debug)]
struct Runner {
    line: UnixStream,
    clock: Clock,
    output: Output,
    running: Vec<Running>,
    /// Commands that have ended. What they have started may still run.
    ended: Vec<Running>,
    outcomes: Vec<Outcome>,
}

impl Runner {
    fn run(mut self, list: Vec<Prepared>) -> Vec<Outcome> {
        'list: for prepared in list {
            let background = prepared.background;
            let index = self.start(prepared);
            while !background && self.is_running(index) {
                if self.wait(None, true) {
                    break 'list;
                }
            }
            if self.outcomes[index].has_failed() {
                break;
            }
        }
        self.stop_all();
        // The emulation may have ended meanwhile.
        let _ = (&self.line).write_all(&[0]);
        self.outcomes
    }

    fn start(&mut self, prepared: Prepared) -> usize {
        let Prepared { node, netns, command, background } = prepared;
        let mut program = match &netns {
            Some(name) => {
                let mut ip = Command::new("ip");
                ip.args(["netns", "exec", name, "sh"]);
                ip
            }
            None => Command::new("sh"),
        };
        program.arg("-c").arg(&command).stdin(Stdio::null()).process_group(0).env(OWNER, own_identity());
        if let Some(path) = with_own_folder() {
            program.env("PATH", path);
        }
        if self.output == Output::Stderr {
            program.stdout(io::stderr());
        }
        let start_s = self.clock.now().as_secs_f64();
        let (end_s, index) = (start_s, self.outcomes.len());
        self.outcomes.push(Outcome { node, command, background, start_s, end_s, code: 0, stopped: false });
        let started = program.spawn().and_then(|mut child| {
            match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
                Ok(ended) => Ok(Running { child, ended, index }),
                Err(error) => {
                    child.kill()?;
                    child.wait()?;
                    Err(error.into())
                }
            }
        });
        match started {
            Ok(running) => self.running.push(running),
            Err(_) => self.outcomes[index].code = NOT_STARTED,
        }
        index
    }

    fn is_running(&self, index: usize) -> bool {
        self.running.iter().any(|running| running.index == index)
    }

    /// Waits until a command ends or the deadline has passed; with `attentive` also until the
    /// emulation asks to stop, which returns true.
    fn wait(&mut self, deadline: Option<Instant>, attentive: bool) -> bool {
        let line = attentive.then(|| PollFd::from_borrowed_fd(self.line.as_fd(), PollFlags::IN));
        let commands = self.running.iter().map(|running| &running.ended);
        let commands = commands.map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN));
        let mut fds: Vec<_> = commands.chain(line).collect();
        let timeout = deadline.map(|deadline| self.clock.until(deadline));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return false,
            // Without the kernel's help nothing can be waited for.
            Err(_) => return true,
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for at in (0..self.running.len()).rev().filter(|at| ready[*at]) {
            let ended = self.running.swap_remove(at);
            let outcome = &mut self.outcomes[ended.index];
            outcome.end_s = self.clock.now().as_secs_f64();
            // Without collecting the process, whose number is that of its group.
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let status = waitid(WaitId::Pid(Pid::from_child(&ended.child)), how);
            outcome.code = status.ok().flatten().map_or(NOT_STARTED, |status| code(&status));
            self.ended.push(ended);
        }
        attentive && ready.last() == Some(&true)
    }

    /// Stops all commands that run.
    fn stop_all(&mut self) {
        // Those that have ended by themselves do not count as stopped.
        self.wait(Some(Instant::ZERO), false);
        for running in &self.running {
            self.outcomes[running.index].stopped = true;
        }
        for (signal, patience) in [(Signal::TERM, Some(GRACE)), (Signal::KILL, None)] {
            let deadline = patience.map(|patience| self.clock.now() + patience);
            for command in self.running.iter().chain(&self.ended) {
                // All of the group may have ended.
                let _ = kill_process_group(Pid::from_child(&command.child), signal);
            }
            while !self.running.is_empty() && deadline.is_none_or(|deadline| self.clock.now() < deadline) {
                self.wait(deadline, false);
            }
        }
        self.ended.iter_mut().for_each(|command| drop(command.child.wait()));
    }
}

/// The exit code that a shell reports.
fn code(status: &WaitIdStatus) -> i32 {
    let signal = || status.terminating_signal().map(|signal| SIGNALLED + signal);
    status.exit_status().or_else(signal).unwrap_or(NOT_STARTED)
}

/// PATH with the folder of this program first, so that commands meet this version of it.
fn with_own_folder() -> Option<OsString> {
    let own = std::env::current_exe().ok()?.parent()?.to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([own].into_iter().chain(std::env::split_paths(&path))).ok()
}

/// The command with the address of each node in place of `{NAME}`, and that of its interface in
/// place of `{NAME.INTERFACE}`. Other braces are the shell's.
fn with_addresses(command: &str, scenario: &Scenario) -> String {
    let mut text = String::new();
    let mut rest = command;
    while let Some((before, after)) = rest.split_once('{') {
        text += before;
        // `${NAME}` is a variable of the shell.
        let named = after
            .split_once('}')
            .filter(|_| !before.ends_with('$'))
            .and_then(|(name, after)| Some((address_at(name, scenario)?, after)));
        rest = match named {
            Some((address, after)) => {
                text += &address.to_string();
                after
            }
            None => {
                text.push('{');
                after
            }
        };
    }
    text + rest
}

/// The address that a name in braces stands for.
fn address_at(name: &str, scenario: &Scenario) -> Option<IpAddr> {
    if let Some(node) = scenario.find_node(name) {
        return Some(scenario.address(node, 0));
    }
    let (node, device) = name.rsplit_once('.')?;
    let node = scenario.find_node(node)?;
    let tun = scenario.nodes[node.index()].tun.as_ref()?;
    let index = tun.devices.iter().find(|own| own.name == device).and_then(|own| own.carries.interface())?;
    Some(scenario.address(node, index))
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::Source;

    use super::*;

    fn scenario(commands: &[&str]) -> Scenario {
        let list: Vec<String> = commands.iter().map(|command| format!("{command:?}")).collect();
        let text = format!(
            "[emulation]\nrun = [{}]\n[[node]]\nname = \"a\"\nhost = \"tun\"\n[[node]]\nname = \"b-1\"\n\
             [[link]]\nfrom = \"a\"\nto = \"b-1\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n",
            list.join(", ")
        );
        Source::new("file", text).scenario().expect("a legal scenario")
    }

    fn outcomes(commands: &[&str]) -> Vec<Outcome> {
        let commands = Commands::start(&scenario(commands), Clock::start(), Output::Stderr);
        let mut commands = commands.expect("it starts").expect("there are commands");
        let runner = commands.runner.take().expect("it runs");
        runner.join().expect("it does not panic")
    }

    fn codes(commands: &[&str]) -> Vec<(i32, bool)> {
        outcomes(commands).iter().map(|outcome| (outcome.code, outcome.stopped)).collect()
    }

    #[test]
    fn names_in_braces_become_addresses() {
        let of = |command| with_addresses(command, &scenario(&["a: true"]));
        assert_eq!(of("ping {b-1} {a}"), "ping fd00::2 fd00::1");
        assert_eq!(of("curl http://[{a}]:80/"), "curl http://[fd00::1]:80/");
        for shell in ["echo ${a-x} ${b-1} {x,y} {b} { {", "awk '{print $1}'", "}{", "{"] {
            assert_eq!(of(shell), shell.replace("{a}", "fd00::1"));
        }
    }

    #[test]
    fn commands_run_in_order_and_end_with_the_first_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("order");
        let note = |what: &str| format!("a: echo {what} >> {}", file.display());
        let [first, second, third] = ["first", "second", "third"].map(note);
        assert_eq!(codes(&[&first, &second, "a: exit 7", &third]), [(0, false), (0, false), (7, false)]);
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), "first\nsecond\n");
        assert_eq!(codes(&["a: kill -9 $$"]), [(137, false)]);
        assert_eq!(codes(&["a: no-such-program"]), [(127, false)]);
    }

    #[test]
    fn the_background_is_stopped_at_the_end_with_all_that_it_has_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let pid = folder.path().join("pid");
        let server = format!("a: sleep 1000 & echo $! > {}; wait &", pid.display());
        let wait = format!("a: until test -s {}; do sleep 0.01; done", pid.display());
        let ended = outcomes(&[&server, "a: exit 3 &", &wait, "a: sleep 0.2"]);
        let codes: Vec<_> = ended.iter().map(|outcome| (outcome.code, outcome.stopped)).collect();
        assert_eq!(codes, [(143, true), (3, false), (0, false), (0, false)]);
        assert!(ended[0].end_s >= ended[3].end_s && ended[3].start_s >= ended[2].end_s, "{ended:?}");
        let pid = std::fs::read_to_string(pid).expect("the file");
        assert!(is_soon_gone(pid.trim()));
    }

    /// Whether the process ends within moments, as a killed one does.
    fn is_soon_gone(pid: &str) -> bool {
        (0..500).any(|_| {
            thread::sleep(std::time::Duration::from_millis(10));
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
        })
    }

    /// Of these the leader of the group has ended before the group is stopped.
    #[test]
    fn what_an_ended_command_has_started_is_stopped_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let pids = ["left", "deaf"].map(|name| folder.path().join(name));
        let left = format!("a: sleep 1000 & echo $! > {}", pids[0].display());
        let deaf = format!("a: (trap '' TERM; exec sleep 1000) & echo $! > {}; wait &", pids[1].display());
        let wait = format!("a: until test -s {}; do sleep 0.01; done; sleep 0.1", pids[1].display());
        let ended = outcomes(&[&left, &deaf, &wait]);
        assert_eq!(ended.iter().map(|one| one.stopped).collect::<Vec<_>>(), [false, true, false]);
        for pid in pids {
            let pid = std::fs::read_to_string(pid).expect("the file");
            assert!(is_soon_gone(pid.trim()), "{pid}");
        }
    }

    #[test]
    fn what_ignores_a_signal_is_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let deaf = folder.path().join("deaf");
        let command = format!("a: trap '' TERM; echo > {}; while :; do sleep 0.1; done", deaf.display());
        let commands = Commands::start(&scenario(&[&command]), Clock::start(), Output::Stderr);
        let commands = commands.expect("it starts");
        while !deaf.exists() {
            thread::sleep(std::time::Duration::from_millis(10));
        }
        let clock = Clock::start();
        let ended = commands.expect("there are commands").finish();
        assert_eq!(
            ended.iter().map(|outcome| (outcome.code, outcome.stopped)).collect::<Vec<_>>(),
            [(137, true)]
        );
        assert!(clock.now() >= Instant::ZERO + GRACE);
    }
}
