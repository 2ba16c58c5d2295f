//! Network namespaces, and the program `ip` (iproute2), which makes them.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::Error;

/// Where `ip netns` stores the names of namespaces.
const NAMESPACES: &str = "/run/netns";
/// Locked while an emulation looks at namespaces and changes them.
const LOCK: &str = "/run/anabranch-emulate.lock";
/// Beginning of the alias that marks the loopback device of a namespace that an emulation has
/// created; the emulation's identity follows. The mark ends with the namespace, so that it never
/// stands for another one of the same name.
const MARK: &str = "anabranch-emulate ";

/// A network namespace created by this program; removed on drop.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    /// Identity of the emulation that has created it.
    owner: String,
}

impl Namespace {
    /// Creates the namespace; `None` if it exists. One that an emulation has left behind, because
    /// it was killed, is removed first.
    pub(crate) fn ensure(name: &str) -> Result<Option<Self>, Error> {
        let _lock = lock();
        if Path::new(NAMESPACES).join(name).exists() {
            let Some(owner) = owner_of(name) else { return Ok(None) };
            if is_alive(&owner) {
                let process = owner.split(' ').next().unwrap_or_default().to_owned();
                return Err(Error::InUse { name: name.to_owned(), process });
            }
            Self { name: name.to_owned(), owner }.remove();
        }
        ip(["netns", "add", name])?;
        // From here on, an error removes the namespace.
        let made = Self { name: name.to_owned(), owner: own_identity() };
        let mark = format!("{MARK}{}", made.owner);
        ip(["-n", name, "link", "set", "dev", "lo", "up", "alias", &mark])?;
        Ok(Some(made))
    }

    fn remove(&self) {
        // There is no caller who could handle a failure. A user's own programs in the namespace are
        // left alone.
        if let Ok(output) = run(["netns", "pids", &self.name]) {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let pids = text.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?));
            pids.for_each(|pid| kill_command_of(pid, &self.owner));
        }
        let _ = ip(["netns", "delete", &self.name]);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Keeps other emulations from looking at namespaces and changing them at the same time, until it
/// is dropped.
fn lock() -> Option<fs::File> {
    // Not the folder of namespaces, which `ip` locks itself.
    let file = fs::File::create(LOCK).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Identity of the emulation that has created the namespace.
fn owner_of(name: &str) -> Option<String> {
    let output = run(["-n", name, "link", "show", "dev", "lo"]).ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let alias = text.lines().find_map(|line| line.trim().strip_prefix("alias "))?;
    alias.strip_prefix(MARK).map(str::to_owned)
}

/// Environment variable of an emulation's commands, with the identity of the emulation.
pub(crate) const OWNER: &str = "ANABRANCH_EMULATION";

/// Kills the process if an emulation has started it, or a process that has started it.
fn kill_command_of(pid: Pid, owner: &str) {
    // The descriptor stands for this process even if its number is used again.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    let entry = format!("{OWNER}={owner}");
    if environment.split(|octet| *octet == 0).any(|other| other == entry.as_bytes()) {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

/// The identity of this process.
pub(crate) fn own_identity() -> String {
    identity(std::process::id()).unwrap_or_default()
}

/// Number and start time of a process, which no other process has until the next boot.
fn identity(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain spaces. Field 22 is the start time (proc_pid_stat(5)).
    let (_, rest) = stat.rsplit_once(") ")?;
    let started = rest.split(' ').nth(19)?;
    // A killed process that its parent has not collected yet does nothing any more.
    (!rest.starts_with('Z')).then(|| format!("{pid} {started}"))
}

/// Whether the process with this identity runs.
fn is_alive(owner: &str) -> bool {
    let pid = owner.split(' ').next().and_then(|pid| pid.parse().ok());
    pid.and_then(identity).is_some_and(|now| now == owner)
}

/// Runs `ip` with these arguments.
pub(crate) fn ip<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Result<(), Error> {
    run(arguments).map(|_| ())
}

/// Runs `ip` with these commands, one a line: faster than one process for each.
pub(crate) fn ip_batch(netns: Option<&str>, commands: &str) -> Result<(), Error> {
    let netns = netns.iter().flat_map(|name| ["-n", name]);
    call(netns.chain(["-batch", "-"]), commands).map(|_| ())
}

fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Result<Output, Error> {
    call(arguments, "")
}

fn call<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>, input: &str) -> Result<Output, Error> {
    let arguments: Vec<_> = arguments.into_iter().map(|a| a.as_ref().to_owned()).collect();
    let child = Command::new("ip")
        .args(&arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C signals a whole process group. In its own group, `ip` is not interrupted while it
        // cleans up.
        .process_group(0)
        .spawn();
    let mut child = child.map_err(Error::NoIp)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A failure of the program shows in its exit code.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(Error::NoIp)?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.trim().replace('\n', "; ");
    let words: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
    let doing = format!("`ip {}`", words.join(" "));
    if reason.contains("not permitted") || reason.contains("Permission denied") {
        return Err(Error::Privilege { doing: format!("run {doing}"), reason });
    }
    Err(Error::Setup { doing: format!("run {doing}"), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let own = identity(std::process::id()).expect("this process runs");
        assert!(is_alive(&own));
        for gone in ["", "1", "x 1", &format!("{own}1"), "4194304 1"] {
            assert!(!is_alive(gone), "{gone}");
        }
    }
}
