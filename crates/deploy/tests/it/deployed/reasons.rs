//! Tests of why a push failed, gateway by gateway, and of the format of a node's result.

use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::deployed::world::*;

/// A port on which no program listens.
const DEAD: &str = "127.0.0.1:1";

#[test]
fn each_lost_gateway_has_its_own_reason() {
    let folder = folder(1_000_000);
    let made = command(folder.path(), &["key", "new", "stranger"]).output().expect("the program starts");
    assert!(made.status.success());
    let listen = ["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"];
    let keys = ["--key", "gateway.key", "--senders", "stranger.pub"];
    let strange = start(folder.path(), &[&listen[..], &keys].concat());
    let node = start(folder.path(), &["node", "--listen", "127.0.0.1:0", "--out", "got"]);
    let via = format!("{},{DEAD}=gateway.pub", strange.known());
    let run = push(folder.path(), &["file", "--to", &node.address, "--via", &via, "--quiet"]);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("{DEAD}: Connection refused")), "{said}");
    assert!(said.contains(&format!("{}: ", strange.address)) && said.contains("key handshake"), "{said}");
    // Nothing was delivered, so nothing was sent twice.
    assert!(!text(&run.stdout).contains("sent twice"), "{}", text(&run.stdout));
}

#[test]
fn a_refusal_of_the_node_does_not_blame_a_gateway() {
    let folder = folder(100_000);
    let gateway = gateway(folder.path());
    let command = ["node", "--listen", "127.0.0.1:0", "--pipe", "cat > got; exit 3"];
    let node = start(folder.path(), &command);
    let via = format!("{DEAD}=gateway.pub,{}", gateway.known());
    let run = push(folder.path(), &["file", "--to", &node.address, "--via", &via, "--quiet"]);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("it could not store the file") && !said.contains(DEAD), "{said}");
}

#[test]
fn a_gateway_that_may_not_call_the_node_is_told_which_address_to_allow() {
    let folder = folder(10_000);
    let gateway = start(folder.path(), &["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.1:9"]);
    let node = start(
        folder.path(),
        &["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--out", "got"],
    );
    let run = push(folder.path(), &["file", "--to", &node.address, "--quiet"]);
    let hint = format!("`--allow {}`", node.address);
    assert!(text(&run.stderr).contains(&hint), "{}", text(&run.stderr));
}

#[test]
fn a_command_that_reads_only_the_beginning_is_known_by_its_exit_status() {
    let folder = folder(3_000_000);
    let gateway = gateway(folder.path());
    let node = ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--pipe", "exit 3"];
    let node = start(folder.path(), &node);
    assert_eq!(push(folder.path(), &["file", "--to", &node.address, "--quiet"]).status.code(), Some(1));
    node.says("the command ended with exit status: 3");
}

/// A pipe has a path, `/dev/stdin`, but that path does not name a file that could be opened again.
#[test]
fn a_pipe_is_pushed_by_its_path() {
    let folder = folder(50_000);
    let gateway = gateway(folder.path());
    let node = ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--out", "got"];
    let node = start(folder.path(), &node);
    let arguments = ["push", "/dev/stdin", "--to", &node.address, "--quiet"];
    let mut push = command(folder.path(), &arguments).stdin(Stdio::piped()).spawn().expect("it starts");
    push.stdin.take().expect("it is piped").write_all(&contents(50_000)).expect("it reads");
    assert!(push.wait().expect("it is ours").success());
    assert!(fs::read(folder.path().join("got")).expect("it is there") == contents(50_000));
}

#[test]
fn a_result_is_never_left_out_and_is_an_object_beside_a_json_log() {
    let folder = folder(1_000);
    let gateway = gateway(folder.path());
    for options in [&[][..], &["--quiet"], &["--log-level", "error"]] {
        // With `--log-level error` the node does not print where it listens.
        let free = TcpListener::bind(home()).and_then(|free| free.local_addr()).expect("a port");
        let address = free.to_string();
        let node = ["node", "--listen", &address, "--gateways", &gateway.known(), "--out", "got", "--once"];
        let mut node = command(folder.path(), &[&node[..], &["--log-format", "json"], options].concat());
        let mut node =
            node.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        while TcpStream::connect(&address).is_err() {
            assert!(node.try_wait().expect("it is ours").is_none(), "{options:?}: it has ended");
            thread::yield_now();
        }
        let run = push(folder.path(), &["file", "--to", &address, "--quiet", "--restart"]);
        assert!(run.status.success(), "{options:?}: {}", text(&run.stderr));
        let ended = node.wait_with_output().expect("it is ours");
        let object: Value = serde_json::from_slice(&ended.stdout).expect("one object");
        assert_eq!((&object["event"], &object["bytes"]), (&"received".into(), &1_000.into()), "{options:?}");
        assert_eq!(object["sha256"], sha256(&contents(1_000)));
    }
}

#[test]
fn a_key_that_cannot_be_written_leaves_no_file() {
    let folder = folder(1);
    for name in [".", "..", "new/", "a/.."] {
        let run = command(folder.path(), &["key", "new", name]).output().expect("the program starts");
        assert_eq!(run.status.code(), Some(2), "{name}");
    }
    // A limit on file sizes of 0 bytes acts like a full disk.
    let key = command(folder.path(), &["key", "new", "full"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(key.get_program());
    limited.args(key.get_args()).current_dir(folder.path());
    let run = limited.output().expect("a shell");
    assert_eq!(run.status.code(), Some(2), "{}", text(&run.stderr));
    assert!(!folder.path().join("full.key").exists());
    assert!(File::open(folder.path().join("full.pub")).is_err());
}
