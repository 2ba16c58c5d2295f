//! Tests of programs whose standard error or output is not read.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use anabranch_testkit::broken_pipe;

use crate::programs::command;

/// The exit code is that of the error, not that of a panic.
#[test]
fn an_error_that_nobody_reads_has_its_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    for (program, arguments) in [
        ("gateway", &["--listen", "127.0.0.1:0", "--key", "none.key"][..]),
        ("node", &["--listen", "127.0.0.1:0", "--out", "got", "--key", "none.key"]),
        ("push", &["none", "--to", "127.0.0.1:9"]),
        ("key", &["sign", "none", "--key", "none.key"]),
        ("key", &["nonsense"]),
        ("push", &["--nonsense"]),
    ] {
        let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("a device"));
        for stderr in [broken_pipe(), full(), Stdio::null()] {
            let mut run = command(program);
            run.current_dir(folder.path()).args(arguments).stdin(Stdio::null()).stderr(stderr);
            let code = run.output().expect("it starts").status.code();
            assert_eq!(code, Some(2), "{program} {arguments:?}");
        }
    }
}

/// An unread warning does not end the program.
#[test]
fn a_warning_that_nobody_reads_is_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("file"), "content").expect("room");
    let made = command("key")
        .current_dir(path)
        .args(["new", "--kind", "signing", "sender"])
        .output()
        .expect("it starts");
    assert!(made.status.success());
    fs::set_permissions(path.join("sender.key"), Permissions::from_mode(0o644)).expect("it is ours");
    let mut sign = command("key");
    sign.current_dir(path).args(["sign", "file", "--key", "sender.key"]).stderr(broken_pipe());
    assert_eq!(sign.output().expect("it starts").status.code(), Some(0));
}
