//! Network namespaces for tests against the kernel, and programs in them: nothing outlives the test
//! process, however that ends.
//!
//! Three things see to that. A signal of the terminal reaches programs too, which are in our
//! process group. A program is started by `setpriv --pdeathsig`, so that the kernel sends it a
//! signal when we are gone. A [`Broom`] removes namespaces when a pipe of ours closes, as it does
//! with the process.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::debian;

/// The signal that a program gets when the thread that has started it is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Farewell {
    /// SIGINT: it tidies up and ends.
    Interrupt,
    /// SIGKILL: it has nothing to tidy up.
    Kill,
}

/// True, and said on the terminal past the capture of test output, if this test can make no devices
/// and namespaces.
pub fn skipped() -> bool {
    static OBSTACLE: OnceLock<Option<String>> = OnceLock::new();
    let obstacle = OBSTACLE.get_or_init(obstacle);
    if let Some(why) = obstacle {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        debian::skipped(&format!("{test}: {why}"));
    }
    obstacle.is_some()
}

/// Why the kernel would not let us make devices and namespaces.
fn obstacle() -> Option<String> {
    if !is_root() {
        return Some("needs root for TUN devices and network namespaces".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    for (program, package) in [("ip", "iproute2"), ("setpriv", "util-linux")] {
        if debian::obtain(program, package).is_none() {
            return Some(format!("there is no program `{program}`"));
        }
    }
    let probe = name("probe");
    let made = run("ip", &["netns", "add", &probe]);
    run("ip", &["netns", "delete", &probe]);
    let reason = text(&made.stderr);
    (!made.status.success()).then(|| format!("no network namespace can be made: {}", reason.trim()))
}

/// A name for a namespace that no other process's tests use.
pub fn name(what: &str) -> String {
    format!("abt{}{what}", std::process::id())
}

/// The namespace has its name still.
pub fn exists(name: &str) -> bool {
    Path::new("/run/netns").join(name).exists()
}

/// A program that gets a signal when we are gone.
pub fn mortal(program: impl AsRef<OsStr>, farewell: Farewell) -> Command {
    let signal = match farewell {
        Farewell::Interrupt => "INT",
        Farewell::Kill => "KILL",
    };
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal, "--"]).arg(program).stdin(Stdio::null());
    command
}

/// A program in a namespace, which is killed when we are gone.
pub fn inside(netns: &str, arguments: &[&str]) -> Command {
    let mut command = mortal("ip", Farewell::Kill);
    command.args(["netns", "exec", netns]).args(arguments);
    command
}

/// Does something on a thread of its own that is in a namespace. Sockets that are made there stay
/// there, wherever they are used later.
///
/// # Panics
/// If there is no such namespace, or the deed panics.
pub fn within<T: Send>(netns: &str, deed: impl FnOnce() -> T + Send) -> T {
    let file = File::open(Path::new("/run/netns").join(netns)).expect("the namespace is there");
    thread::scope(|scope| {
        let inside = scope.spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("root may change namespaces");
            deed()
        });
        inside.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// What `program` with these arguments says, when it has ended.
pub fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).output().expect("the program is here")
}

/// What a program has said.
pub fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// We are root.
pub fn is_root() -> bool {
    run("id", &["-u"]).stdout.trim_ascii() == b"0"
}

/// A child that is killed when this is dropped.
#[derive(Debug)]
pub struct Kept(pub Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Removes namespaces of ours that are there when this is dropped, or when this process is gone.
#[derive(Debug)]
pub struct Broom(Child);

impl Broom {
    /// For namespaces that are there, or will be.
    pub fn new<S: AsRef<OsStr>>(namespaces: impl IntoIterator<Item = S>) -> Self {
        let script = "cat; for name; do [ ! -e \"/run/netns/$name\" ] || ip netns delete \"$name\"; done";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).args(namespaces);
        // In a process group of its own: what ends ours from the terminal shall not end it.
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self(shell.spawn().expect("a shell is here"))
    }
}

impl Drop for Broom {
    fn drop(&mut self) {
        // This closes the pipe, and waits until it has swept.
        let _ = self.0.wait();
    }
}

/// Runs `ip`, which has to succeed.
pub fn ip(arguments: &[&str]) {
    done("ip", arguments);
}

/// Runs a program, which has to succeed.
///
/// # Panics
/// It does not.
#[track_caller]
pub fn done(program: &str, arguments: &[&str]) {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
}
