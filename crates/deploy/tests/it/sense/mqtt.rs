//! A sink that publishes to mosquitto, which is restarted twice.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anabranch_testkit::daemon::{PATIENCE, home};
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns::{Farewell, Kept, mortal};
use serde_json::Value;

use super::{folder, sense, sink};

/// A broker that keeps its messages on disk, so that a restart loses none.
fn broker(program: &Path, folder: &Path) -> Kept {
    let mut command = mortal(program, Farewell::Kill);
    command.args(["-c", "mosquitto.conf"]).current_dir(folder);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Kept(child.expect("the broker starts"))
}

fn wait_for(port: u16) {
    for _ in 0..PATIENCE.as_millis() / 20 {
        if std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("the broker does not listen");
}

#[test]
fn what_the_broker_has_is_what_the_sink_has_acknowledged() {
    let (Some(mosquitto), Some(subscriber)) = (
        find_or_install("mosquitto", "mosquitto").or_else(sbin),
        find_or_install("mosquitto_sub", "mosquitto-clients"),
    ) else {
        return;
    };
    let folder = folder();
    let path = folder.path();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let here = path.display();
    let settings = format!(
        "listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {here}/\n\
         autosave_on_changes true\nautosave_interval 1\nmax_queued_messages 0\nuser root\n"
    );
    fs::write(path.join("mosquitto.conf"), settings).unwrap();
    let mut running = broker(&mosquitto, path);
    wait_for(port);
    // The session of the subscriber is kept by the broker while the subscriber is away.
    let port_text = port.to_string();
    let subscribe = |more: &[&str]| {
        let mut command = mortal(&subscriber, Farewell::Kill);
        let common = ["-h", "127.0.0.1", "-p", &port_text, "-t", "site/#", "-q", "1", "-i", "reader", "-c"];
        command.args(common).args(more).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    assert!(subscribe(&["-E"]).status().unwrap().success());
    let url = format!("mqtt://127.0.0.1:{port}/site");
    let daemon = sink(path, &["--listen", &home(), "--insecure", "--mqtt", &url]);
    let input: String = (0..300).map(|n| format!("record {n}\n")).collect();
    let options = ["--insecure", "--name", "probe", "--rate", "80 kbit/s"];
    let mut sender: Child = sense(path, &daemon.address, &options, input.into());
    // Not SIGKILL: mosquitto sends PUBACK before it saves a message, so it loses acknowledged ones.
    for _ in 0..2 {
        std::thread::park_timeout(Duration::from_millis(400));
        let id = running.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        running.0.wait().unwrap();
        running = broker(&mosquitto, path);
        wait_for(port);
    }
    assert!(sender.wait().unwrap().success(), "all are acknowledged");
    let output = subscribe(&["-F", "%t %p", "-W", "3"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = BTreeSet::new();
    for line in text.lines() {
        let (topic, payload) = line.split_once(' ').unwrap();
        assert_eq!(topic, "site/probe");
        let record: Value = serde_json::from_str(payload).unwrap();
        if let Some(number) = record["number"].as_u64() {
            assert_eq!(record["payload"], format!("record {number}"));
            numbers.insert(number);
        }
    }
    let missing: Vec<u64> = (0..300).filter(|number| !numbers.contains(number)).collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
}

/// Debian's place of daemons, which is not in every `PATH`.
fn sbin() -> Option<std::path::PathBuf> {
    Some("/usr/sbin/mosquitto".into()).filter(|path: &std::path::PathBuf| path.exists())
}
