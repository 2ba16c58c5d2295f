//! Tests of SIGHUP: a running gateway and node read their keys again.

use std::fs;

use crate::deployed::world::*;

#[test]
fn a_sender_is_revoked_and_comes_back_without_a_restart() {
    // Longer than a file that needs no gateway.
    let folder = folder(2_000);
    let made =
        command(folder.path(), &["key", "new", "other", "signer"]).output().expect("the program starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let write = |name: &str, from: &[&str]| {
        let read = |key: &&str| fs::read_to_string(folder.path().join(key)).expect("it was made");
        fs::write(folder.path().join(name), from.iter().map(read).collect::<String>())
            .expect("it can be written");
    };
    write("senders", &["sender.pub", "other.pub"]);
    write("revoked", &["signer.pub"]);
    let keys = ["--senders", "senders", "--revoked", "revoked"];
    let gateway =
        ["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535", "--key", "gateway.key"];
    let gateway = start(folder.path(), &[&gateway[..], &keys[..]].concat());
    let known = gateway.known();
    let node = ["node", "--listen", "127.0.0.1:0", "--gateways", &known, "--out", "got", "--key", "node.key"];
    let node = start(folder.path(), &[&node[..], &keys[..]].concat());
    let push = |own: &str| {
        let keys = ["--key", own, "--node-key", "node.pub", "--no-resume", "--restart", "--quiet"];
        let run = push(folder.path(), &[&["file", "--to", &node.address], &keys[..]].concat());
        (run.status.code(), text(&run.stderr).to_owned())
    };
    let reload = || {
        for (daemon, name) in [(&node, "node"), (&gateway, "gateway")] {
            daemon.signal("-HUP");
            daemon.says(&format!("{name}: keys"));
        }
    };
    assert_eq!(push("sender.key").0, Some(0));
    assert_eq!(push("other.key").0, Some(0));
    write("revoked", &["signer.pub", "other.pub"]);
    reload();
    let (code, said) = push("other.key");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("--senders (or --psk) have this sender's key"), "{said}");
    assert_eq!(push("sender.key").0, Some(0));
    // An unreadable file changes nothing.
    fs::write(folder.path().join("senders"), "x25519:00").expect("it can be written");
    reload();
    assert_eq!(push("sender.key").0, Some(0));
    write("senders", &["other.pub"]);
    write("revoked", &["signer.pub"]);
    reload();
    assert_eq!(push("other.key").0, Some(0));
}

/// The file may contain either half of a pair, or nothing.
#[test]
fn either_half_of_a_pair_and_a_pre_shared_key_can_be_revoked() {
    // Longer than a file that needs no gateway.
    let folder = folder(2_000);
    for new in [&["key", "new", "other"][..], &["key", "new", "--kind", "psk", "one", "two"]] {
        let made = command(folder.path(), new).output().expect("the program starts");
        assert!(made.status.success(), "{}", text(&made.stderr));
    }
    let listen = ["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"];
    let served = ["--key", "gateway.key", "--senders", "sender.pub,other.pub"];
    let gateway = start(folder.path(), &[&listen[..], &served].concat());
    let revoke = |names: &[&str]| {
        let read = |key: &&str| fs::read_to_string(folder.path().join(key)).expect("it was made");
        let keys = names.iter().map(read).collect::<String>();
        fs::write(folder.path().join("revoked"), keys).expect("it can be written");
    };
    revoke(&[]);
    let node = ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--out", "got"];
    let keys = ["--key", "node.key", "--senders", "sender.pub,other.pub", "--psk", "one.key,two.key"];
    let node = start(folder.path(), &[&node[..], &keys, &["--revoked", "revoked"]].concat());
    let takes = |keys: &[&str]| {
        let to = ["file", "--to", &node.address, "--no-resume", "--restart", "--quiet"];
        push(folder.path(), &[&to[..], keys].concat()).status.success()
    };
    let known = |own| takes(&["--key", own, "--node-key", "node.pub"]);
    let shared = |own| takes(&["--key", "other.key", "--psk", own]);
    assert!(known("sender.key") && shared("one.key"), "nothing is revoked");
    revoke(&["sender.key", "one.key"]);
    node.signal("-HUP");
    node.says("node: keys");
    assert!(!known("sender.key") && !shared("one.key"));
    assert!(known("other.key") && shared("two.key"), "the others stay");
}

/// A node that requires signatures does not accept unsigned files after all signers were revoked.
#[test]
fn a_node_whose_signers_are_all_revoked_does_not_start() {
    let folder = folder(1);
    let new = ["key", "new", "--kind", "signing", "signer"];
    let made = command(folder.path(), &new).output().expect("the program starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let signer = "signer.pub";
    let node = [
        "node",
        "--check",
        "--listen",
        "127.0.0.1:0",
        "--out",
        "got",
        "--signers",
        signer,
        "--revoked",
        signer,
    ];
    let run = command(folder.path(), &node).output().expect("the program starts");
    assert_eq!(run.status.code(), Some(2), "{}", text(&run.stderr));
}

/// The node still accepts the sender, so only the gateway can refuse it.
#[test]
fn a_gateway_revokes_a_sender_by_itself_at_its_start_and_by_sighup() {
    let folder = folder(10_000);
    let revoke = |names: &[&str]| {
        let read = |key: &&str| fs::read_to_string(folder.path().join(key)).expect("it was made");
        let keys = names.iter().map(read).collect::<String>();
        fs::write(folder.path().join("revoked"), keys).expect("it can be written");
    };
    revoke(&["sender.pub"]);
    let listen = ["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"];
    let gateway = start(folder.path(), &[&listen[..], &["--revoked", "revoked"]].concat());
    let listen = ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--out", "got"];
    // A short limit, so that the transfer refused by the gateway gives way soon.
    let node = start(folder.path(), &[&listen[..], &["--idle", "300ms"]].concat());
    let push = || {
        let to = ["file", "--to", &node.address, "--no-resume", "--restart", "--quiet", "--wait", "30s"];
        let run = push(folder.path(), &to);
        (run.status.code(), text(&run.stderr).to_owned())
    };
    for (round, is_revoked) in [true, false, true, false].into_iter().enumerate() {
        if round > 0 {
            revoke(if is_revoked { &["sender.pub"] } else { &[] });
            gateway.signal("-HUP");
            gateway.says("gateway: keys");
        }
        let (code, said) = push();
        assert_eq!(code, Some(i32::from(is_revoked)), "round {round}: {said}");
        assert_eq!(folder.path().join("got").exists(), round > 0);
        if is_revoked {
            gateway.says("reset");
        }
    }
}
