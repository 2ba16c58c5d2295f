//! Tests that after a failed push the node is free for the next one at once.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;

use crate::deployed::world::*;

/// A push of the file `file`, with its standard error.
struct Pushing {
    child: Child,
    said: PathBuf,
}

impl Pushing {
    /// Starts a push, and returns when the node has at least a tenth of the file.
    fn partly(folder: &Path, node: &Daemon, options: &[&str]) -> Self {
        // Slow enough to be interrupted even on a busy machine.
        let slow = ["push", "file", "--to", &node.address, "--rate", "100 Mbit/s"];
        let said = folder.join("said");
        let mut push = command(folder, &[&slow[..], options].concat());
        push.stdout(Stdio::null()).stderr(fs::File::create(&said).expect("room"));
        let pushing = Self { child: push.spawn().expect("the program starts"), said };
        pushing.says("bytes delivered (");
        pushing
    }

    /// Waits for this text on standard error.
    fn says(&self, what: &str) {
        while !fs::read_to_string(&self.said).expect("it is there").contains(what) {
            thread::yield_now();
        }
    }

    /// Waits until the push fails with this reason.
    fn fails(mut self, why: &str) {
        assert_eq!(self.child.wait().expect("it is ours").code(), Some(1));
        let said = fs::read_to_string(&self.said).expect("it is there");
        assert!(said.contains(why), "{said}");
    }
}

fn assert_delivered(run: &std::process::Output, folder: &Path) {
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert!(
        fs::read(folder.join("got")).expect("it is there") == fs::read(folder.join("file")).expect("room")
    );
}

#[test]
fn a_push_that_finds_no_gateway_leaves_the_node_free() {
    let folder = folder(10_000);
    let gateway = gateway(folder.path());
    let node = start(folder.path(), &["node", "--listen", "127.0.0.1:0", "--out", "got"]);
    let run = push(folder.path(), &["file", "--to", &node.address, "--quiet", "--no-resume"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains("the node knows no gateway"), "{}", text(&run.stderr));
    node.says("abandoned after");
    let via = ["file", "--to", &node.address, "--via", &gateway.known(), "--quiet", "--no-resume"];
    assert_delivered(&push(folder.path(), &via), folder.path());
}

/// The next push has another transfer identifier, and resumes.
#[test]
fn a_push_that_loses_its_gateways_leaves_the_node_free() {
    let folder = folder(60_000_000);
    let [mut lost, left] = [(); 2].map(|()| gateway(folder.path()));
    let node = start(folder.path(), &["node", "--listen", "127.0.0.1:0", "--out", "got"]);
    let first = Pushing::partly(folder.path(), &node, &["--via", &lost.known()]);
    lost.child.kill().and_then(|()| lost.child.wait()).expect("it is ours");
    first.fails("every gateway was lost");
    node.says("abandoned after");
    let via = ["file", "--to", &node.address, "--via", &left.known(), "--quiet", "--no-resume"];
    assert_delivered(&push(folder.path(), &via), folder.path());
    node.says("resumes at byte");
}

/// Between two tries the push keeps its place; an interrupt then releases it.
#[test]
fn a_push_that_is_interrupted_between_two_tries_leaves_the_node_free() {
    let folder = folder(60_000_000);
    let [mut lost, left] = [(); 2].map(|()| gateway(folder.path()));
    let node = start(folder.path(), &["node", "--listen", "127.0.0.1:0", "--out", "got"]);
    let options = ["--via", &lost.known(), "--retry-for", "10min"];
    let mut first = Pushing::partly(folder.path(), &node, &options);
    lost.child.kill().and_then(|()| lost.child.wait()).expect("it is ours");
    // The third pause takes four seconds.
    first.says("trying again in 4 s");
    let via = ["file", "--to", &node.address, "--via", &left.known(), "--quiet", "--no-resume"];
    let run = push(folder.path(), &via);
    assert!(text(&run.stderr).contains("it is busy with another transfer"), "{}", text(&run.stderr));
    let id = first.child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &id]).status().expect("a kill");
    assert_eq!(first.child.wait().expect("it is ours").code(), Some(130));
    assert_delivered(&push(folder.path(), &via), folder.path());
}

#[test]
fn a_push_of_a_file_that_is_cut_off_leaves_the_node_free() {
    let folder = folder(60_000_000);
    let gateways = [(); 2].map(|()| gateway(folder.path()));
    let known = gateways.each_ref().map(|gateway| gateway.known()).join(",");
    let node = ["node", "--listen", "127.0.0.1:0", "--out", "got", "--gateways", &known];
    let node = start(folder.path(), &node);
    let first = Pushing::partly(folder.path(), &node, &[]);
    let file = OpenOptions::new().write(true).open(folder.path().join("file")).expect("it is there");
    file.set_len(20_000_000).expect("a disk");
    first.fails("cannot read the rest of the file");
    node.says("abandoned after");
    let run = push(folder.path(), &["file", "--to", &node.address, "--quiet", "--restart"]);
    assert_delivered(&run, folder.path());
}
