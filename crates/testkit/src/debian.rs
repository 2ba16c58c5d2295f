//! Finds or installs third-party programs from Debian packages, for comparison with this
//! workspace's output.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Finds `program`. If it is missing and the tests run as root, its Debian `package` is installed.
///
/// Returns `None` if the program is not available. Then a line that begins with `SKIPPED:` is
/// printed on the terminal, past the capture of test output, so that a skipped test is not taken
/// for a passed one.
pub fn find_or_install(program: &str, package: &str) -> Option<PathBuf> {
    let found = obtain(program, package);
    if found.is_none() {
        skipped(&format!(
            "a check against {program}, which is not here: apt-get install {package} as root, then run this test again"
        ));
    }
    found
}

/// Like [`find_or_install`], without a message.
pub(crate) fn obtain(program: &str, package: &str) -> Option<PathBuf> {
    // Tests run in parallel, but apt does not.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    find(program).or_else(|| {
        install(program, package);
        find(program)
    })
}

/// The first executable of this name in `PATH`.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

/// Installs with the present package lists, then with updated ones.
fn install(program: &str, package: &str) {
    if !is_root() {
        return;
    }
    // `apt-get update` fails while another one runs, so test binaries take turns. If the lock file
    // cannot be opened, try anyway.
    let lock = File::create(env::temp_dir().join("anabranch-tests-apt.lock"));
    let _turn = lock.and_then(|file| file.lock().map(|()| file));
    if find(program).is_some() {
        return;
    }
    let install = ["install", "--yes", "--no-install-recommends", package];
    if !apt_get(&install) && apt_get(&["update"]) {
        apt_get(&install);
    }
}

fn apt_get(arguments: &[&str]) -> bool {
    quiet("apt-get", ["-o", "DPkg::Lock::Timeout=300", "-qq"].iter().chain(arguments))
}

fn quiet<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> bool {
    Command::new(program)
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Prints why a test is skipped: on the terminal, past the capture of test output, and in the
/// test's own output, where `cargo xtask test` counts it.
pub fn skipped(why: &str) {
    let _ = std::io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes());
    println!("SKIPPED: {why}");
}
