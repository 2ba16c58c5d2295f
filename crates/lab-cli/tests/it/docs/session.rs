//! Runs the commands of a page in order, in a folder of its own.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;
use std::{env, fs};

use anabranch_testkit::netns::{Farewell, mortal};
use tempfile::TempDir;

use crate::docs::commands::{self, commands, difference, fault_of_cargo};
use crate::docs::namespaces::Namespaces;
use crate::docs::page::{Block, Kind, Page};
use crate::docs::root;

/// Files of the repository in a page's folder.
const THERE: [&str; 5] = ["LICENSE-APACHE", "README.md", "docs", "examples", "packaging"];
/// Processor time in seconds after which a started command has accepted its input.
const BEGUN: f64 = 0.3;
/// Time limit without output for an interrupted program.
const PATIENCE: Duration = Duration::from_secs(5);
/// Output that shows that a program is ready.
const READY: [&str; 3] = ["listening on", "running;", "Serving HTTP"];

/// Pages run in parallel, and their programs listen on the same ports.
static PORTS: Mutex<()> = Mutex::new(());

/// Error for a program that ended instead of running on.
const NOT_READY: &str = "ended before it was ready";

/// Result of a page.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) commands: usize,
    pub(crate) faults: Vec<String>,
}

/// Runs the wanted blocks of a page. After a fault the rest is skipped, since it may need the
/// failed block's results.
pub(crate) fn play(page: &Page, wanted: impl Fn(&Block) -> bool) -> Done {
    let mut done = Done::default();
    let mut session = None;
    for block in page.blocks.iter().filter(|block| wanted(block)) {
        let session = session.get_or_insert_with(Session::new);
        match session.block(block) {
            Ok(commands) => done.commands += commands,
            Err(fault) if fault.contains(NOT_READY) && fault.contains("Address already in use") => {
                println!("SKIPPED: the rest of {}: {fault}", block.place);
                break;
            }
            Err(fault) => {
                done.faults.push(format!("{}: {fault}", block.place));
                break;
            }
        }
    }
    done
}

struct Session {
    folder: TempDir,
    /// Programs that run until the page has ended.
    running: Vec<Running>,
    /// Held while programs listen on ports of the machine. Dropped after them.
    ports: Option<MutexGuard<'static, ()>>,
    /// Created by the first block that needs it.
    namespaces: Option<Namespaces>,
}

impl Session {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in THERE {
            symlink(root().join(name), folder.path().join(name)).expect("a link can be made");
        }
        // Commands may write beside these files, so copy them.
        copied(&root().join("scenarios"), &folder.path().join("scenarios"));
        Self { folder, running: Vec::new(), ports: None, namespaces: None }
    }

    /// Runs a block and returns the number of its commands.
    fn block(&mut self, block: &Block) -> Result<usize, String> {
        match &block.kind {
            Kind::Scenario(Some(name)) | Kind::Sweep(name) => {
                fs::write(self.folder.path().join(name), &block.text).map_err(|error| error.to_string())?;
                return Ok(0);
            }
            Kind::Console { .. } | Kind::Elsewhere | Kind::Refused(_) => {}
            _ => return Ok(0),
        }
        let commands = commands(&block.text)?;
        for command in &commands {
            self.command(command, &block.kind).map_err(|fault| format!("`{}`: {fault}", command.line))?;
        }
        Ok(commands.len())
    }

    fn command(&mut self, command: &commands::Command, kind: &Kind) -> Result<(), String> {
        let line = command.line.split(" #").next().unwrap_or(&command.line).trim();
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        let line = line.replacen("cargo run --release -- ", "anabranch ", 1);
        if line.starts_with("cargo ") {
            return fault_of_cargo(&root(), &line).map_or(Ok(()), Err);
        }
        let missing = |word: &&str| word.starts_with("scenarios/") && !self.folder.path().join(word).exists();
        if let Some(scenario) = line.split_whitespace().find(missing) {
            return Err(format!("there is no {scenario}"));
        }
        let shown = &command.printed[..];
        match kind {
            Kind::Elsewhere | Kind::Console { root: true, long: true } => self.looked_at(&line),
            Kind::Refused(code) => self.run(&line, *code, shown),
            Kind::Console { long: true, .. } => self.begun(&line),
            Kind::Console { root, .. } => {
                if *root && self.namespaces.is_none() {
                    self.namespaces = Some(Namespaces::new());
                }
                match line.strip_suffix('&') {
                    Some(line) => self.started(line),
                    None => self.run(&line, 0, shown),
                }
            }
            _ => Ok(()),
        }
    }

    /// Runs a command to its end.
    fn run(&self, line: &str, code: i32, shown: &[String]) -> Result<(), String> {
        let output = self.shell(line).output().map_err(|error| error.to_string())?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.code() != Some(code) {
            return Err(format!("it ended with {}, not {code}\n{out}{err}", output.status));
        }
        difference(shown, if code == 0 { &out } else { &err }).map_or(Ok(()), Err)
    }

    /// Starts a program and waits until it is ready.
    fn started(&mut self, line: &str) -> Result<(), String> {
        if self.namespaces.is_none() && self.ports.is_none() {
            self.ports = Some(PORTS.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let running = Running::start(self.shell(&format!("exec {line} 2>&1")))?;
        let mut said = String::new();
        while let Ok(line) = running.said.recv() {
            said += &format!("{line}\n");
            if READY.iter().any(|ready| line.contains(ready)) {
                self.running.push(running);
                return Ok(());
            }
        }
        Err(format!("it {NOT_READY}:\n{said}"))
    }

    /// Runs a command until it succeeds, or has used enough processor time to have rejected bad
    /// input.
    fn begun(&self, line: &str) -> Result<(), String> {
        if !line.starts_with("anabranch ") {
            return self.parses(line);
        }
        let mut running = Running::start(self.shell(&format!("exec {line} 2>&1")))?;
        loop {
            if let Some(status) = running.child.try_wait().map_err(|error| error.to_string())? {
                let said: Vec<String> = running.said.iter().collect();
                return if status.success() { Ok(()) } else { Err(format!("{status}\n{}", said.join("\n"))) };
            }
            let used = processor_time(running.child.id()).unwrap_or_default();
            if used >= BEGUN {
                // An interrupted laboratory finishes its current runs, which can take seconds.
                let _ = running.child.kill();
                return Ok(());
            }
            // Read the output, so that the command does not block.
            let _ = running.said.recv_timeout(Duration::from_millis(20));
        }
    }

    /// Checks a command for other machines: options of node and gateway with `--check`, others by
    /// parsing.
    fn looked_at(&self, line: &str) -> Result<(), String> {
        let line = line.trim_end_matches('&').trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        match &words[..] {
            ["anabranch", "key", "new", names @ ..] if names.iter().all(|name| !name.contains('/')) => {
                self.run(line, 0, &[])
            }
            ["anabranch", "node" | "gateway", options @ ..] if !options.contains(&"--config") => {
                self.run(&format!("{line} --check"), 0, &[])
            }
            ["anabranch", ..] => {
                self.run(&format!("{} --help", line.split('>').next().unwrap_or(line)), 0, &[])
            }
            _ => self.parses(line),
        }
    }

    /// Checks that the shell can parse a line.
    fn parses(&self, line: &str) -> Result<(), String> {
        let output = self.bare("sh").args(["-n", "-c", line]).output().map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    fn shell(&self, line: &str) -> Command {
        let mut shell = self.bare("sh");
        shell.args(["-c", line]);
        shell
    }

    /// A command in the page's folder that ends with this process.
    fn bare(&self, program: &str) -> Command {
        let mut command = match &self.namespaces {
            Some(namespaces) => namespaces.inside(program, self.folder.path()),
            None => mortal(program, Farewell::Interrupt),
        };
        command.current_dir(self.folder.path()).env("PATH", path()).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", self.folder.path().join(".state")).env("PYTHONUNBUFFERED", "1");
        // Set as a cluster's scheduler does.
        command.env("SLURM_ARRAY_TASK_ID", "1");
        command
    }
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("it is here") {
        let entry = entry.expect("it can be read");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copied(&from, &to);
        } else {
            fs::copy(&from, &to).expect("it can be copied");
        }
    }
}

/// A folder in which `anabranch` is the complete program, whatever else was built.
fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs-programs");
        fs::create_dir_all(&folder).expect("a folder");
        for name in ["anabranch", "anabranch-lab"] {
            let _ = fs::remove_file(folder.join(name));
            symlink(assert_cmd::cargo::cargo_bin!("anabranch-lab"), folder.join(name)).expect("a link");
        }
        folder
    })
}

/// PATH with that folder first.
fn path() -> std::ffi::OsString {
    let own = programs().to_path_buf();
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths([own].into_iter().chain(env::split_paths(&others))).expect("no folder has a colon")
}

/// A running program with its lines of output. It is interrupted on drop, and killed if it does not
/// end.
struct Running {
    child: Child,
    said: Receiver<String>,
}

impl Running {
    fn start(mut command: Command) -> Result<Self, String> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let lines = BufReader::new(child.stdout.take().ok_or("it has no output")?).lines();
        let (sender, said) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // Read on even without a receiver, so that the program does not block.
                let _ = sender.send(line);
            }
        });
        Ok(Self { child, said })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        // Its output ends when the program does.
        while self.said.recv_timeout(PATIENCE).is_ok() {}
        // Background jobs of a shell ignore the signal, and not all programs handle it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of a process in seconds, if it still exists.
fn processor_time(id: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // After the name, which may contain any character: fields twelve and thirteen, in hundredths of
    // a second (proc_pid_stat(5)).
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    Some(ticks.sum::<f64>() / 100.0)
}
