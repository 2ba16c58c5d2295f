//! Network namespaces for tests against the kernel, and programs in them. Nothing outlives the test
//! process, however it ends.
//!
//! Three mechanisms ensure that. A signal of the terminal also reaches the programs, which are in
//! our process group. A program is started by `setpriv --pdeathsig`, so that the kernel signals it
//! when we end. A [`Broom`] removes namespaces when its pipe closes, which happens when our process
//! ends.

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

/// Signal for a program when the thread that started it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Farewell {
    /// SIGINT, for a program that cleans up.
    Interrupt,
    /// SIGKILL, for a program that needs no clean-up.
    Kill,
}

/// Whether this test cannot create devices and namespaces. If so, the reason is printed on the
/// terminal, past the capture of test output.
pub fn skipped() -> bool {
    static OBSTACLE: OnceLock<Option<String>> = OnceLock::new();
    let obstacle = OBSTACLE.get_or_init(obstacle);
    if let Some(why) = obstacle {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        debian::skipped(&format!("{test}: {why}"));
    }
    obstacle.is_some()
}

/// Why the kernel refuses to create devices and namespaces; `None` if it does not.
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
    // Being root does not prove that namespaces can be created, so try it.
    let probe = name("probe");
    let made = run("ip", &["netns", "add", &probe]);
    run("ip", &["netns", "delete", &probe]);
    let reason = text(&made.stderr);
    (!made.status.success()).then(|| format!("no network namespace can be made: {}", reason.trim()))
}

/// A namespace name that no other process's tests use.
pub fn name(what: &str) -> String {
    format!("abt{}{what}", std::process::id())
}

/// Whether a namespace of this name exists.
pub fn exists(name: &str) -> bool {
    Path::new("/run/netns").join(name).exists()
}

/// A command that is signalled when the test process ends.
pub fn mortal(program: impl AsRef<OsStr>, farewell: Farewell) -> Command {
    let signal = match farewell {
        Farewell::Interrupt => "INT",
        Farewell::Kill => "KILL",
    };
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal, "--"]).arg(program).stdin(Stdio::null());
    command
}

/// A command in a namespace, killed when the test process ends.
pub fn inside(netns: &str, arguments: &[&str]) -> Command {
    let mut command = mortal("ip", Farewell::Kill);
    command.args(["netns", "exec", netns]).args(arguments);
    command
}

/// Runs `deed` on a new thread in the namespace. Sockets created there stay in that namespace,
/// wherever they are used later.
///
/// # Panics
/// The namespace does not exist, or `deed` panics.
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

/// Runs a program to its end and returns its output.
pub fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).output().expect("the program is here")
}

/// Output as text.
pub fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// Whether the process runs as root.
pub fn is_root() -> bool {
    run("id", &["-u"]).stdout.trim_ascii() == b"0"
}

/// A child process that is killed when this is dropped.
#[derive(Debug)]
pub struct Kept(pub Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Removes namespaces when it is dropped, or when this process ends.
#[derive(Debug)]
pub struct Broom(Child);

impl Broom {
    /// Creates a broom for namespaces that exist or will exist.
    pub fn new<S: AsRef<OsStr>>(namespaces: impl IntoIterator<Item = S>) -> Self {
        let script = "cat; for name; do [ ! -e \"/run/netns/$name\" ] || ip netns delete \"$name\"; done";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).args(namespaces);
        // The shell has its own process group, so that a signal of the terminal to ours does not
        // end it.
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self(shell.spawn().expect("a shell is here"))
    }
}

impl Drop for Broom {
    fn drop(&mut self) {
        // `wait` closes the pipe, then waits until the shell has removed the namespaces.
        let _ = self.0.wait();
    }
}

/// Runs `ip`, which must succeed.
pub fn ip(arguments: &[&str]) {
    done("ip", arguments);
}

/// Runs a program, which must succeed.
///
/// # Panics
/// It fails.
#[track_caller]
pub fn done(program: &str, arguments: &[&str]) {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
}
