//! Tests of metrics, health, and JSON logs of a gateway and a node.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use anabranch_testkit::uninterrupted;
use serde_json::Value;
use tokio::time::Instant;

use crate::deployed::world::*;

/// Address of a daemon's metrics.
fn metrics_of(daemon: &Daemon) -> String {
    let line = daemon.says("metrics on http://");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    address.expect("it says where").to_owned()
}

/// Head and body of the answer to a request.
fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers with text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

fn get(address: &str, path: &str) -> (String, String) {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

/// Value of a sample.
fn sample(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().expect("a number")
}

#[test]
fn metrics_count_what_was_relayed_received_and_refused() {
    let folder = folder(300_000);
    let gateway = ["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"];
    let gateway = start(folder.path(), &[&gateway[..], &["--metrics", "127.0.0.1:0"]].concat());
    let known = gateway.known();
    let node =
        ["node", "--listen", "127.0.0.1:0", "--gateways", &known, "--out", "got", "--max-size", "400 kB"];
    let node = start(folder.path(), &[&node[..], &["--metrics", "127.0.0.1:0"]].concat());
    let (of_gateway, of_node) = (metrics_of(&gateway), metrics_of(&node));
    let page = get(&of_node, "/metrics").1;
    assert_eq!(sample(&page, "anabranch_node_received_bytes_total"), 0.0);
    for reason in ["too large", "no room", "signature", "rollback"] {
        let series = format!("anabranch_node_transfers_refused_total{{reason=\"{reason}\"}}");
        assert_eq!(sample(&page, &series), 0.0);
    }
    let run = push(folder.path(), &["file", "--to", &node.address, "--quiet"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    std::fs::write(folder.path().join("long"), contents(500_000)).expect("it can be written");
    assert_eq!(push(folder.path(), &["long", "--to", &node.address, "--quiet"]).status.code(), Some(1));
    // A stranger, whose bytes are not a greeting.
    let mut stranger = TcpStream::connect(&node.address).expect("it listens");
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it reads");
    let _ = stranger.read(&mut [0]);

    gateway.says("bytes to the node");
    let page = get(&of_gateway, "/metrics").1;
    assert!(
        sample(&page, "anabranch_gateway_relayed_bytes_total{direction=\"down\"}") >= 300_000.0,
        "{page}"
    );
    assert!(sample(&page, "anabranch_gateway_sessions_total{result=\"served\"}") >= 1.0, "{page}");
    assert_eq!(sample(&page, "anabranch_gateway_sessions"), 0.0, "{page}");
    let page = get(&of_node, "/metrics").1;
    assert_eq!(sample(&page, "anabranch_node_received_bytes_total"), 300_000.0);
    assert_eq!(sample(&page, "anabranch_node_transfer_bytes"), 0.0, "between transfers");
    assert_eq!(sample(&page, "anabranch_node_transfers_begun_total"), 1.0);
    assert_eq!(sample(&page, "anabranch_node_transfers_total{result=\"finished\"}"), 1.0);
    assert_eq!(sample(&page, "anabranch_node_transfers_refused_total{reason=\"too large\"}"), 1.0);
    assert_eq!(sample(&page, "anabranch_refused_total{reason=\"garbled\"}"), 1.0);
    assert!(sample(&page, "process_resident_memory_bytes") > 1e6);
    assert!(sample(&page, "process_open_fds") <= sample(&page, "process_max_fds"));
    // Format: each sample follows the HELP and TYPE lines of its family.
    let mut family = "";
    for line in page.lines() {
        match line.strip_prefix("# ").map(|rest| rest.split(' ').collect::<Vec<_>>()) {
            Some(words) => {
                assert!(words[0] == "HELP" || words[0] == "TYPE" && words[1] == family, "{line}");
                family = line.split(' ').nth(2).expect("a name");
            }
            None => assert!(line.starts_with(family), "{line} under {family}"),
        }
    }
}

/// A file of at most 1200 bytes is sent with its request, with or without keys, so the gateway does
/// not see it.
#[test]
fn a_small_file_leaves_no_session_at_its_gateway() {
    for insecure in [&[][..], &["--insecure"]] {
        let folder = folder(1_000);
        let gateway = ["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"];
        let gateway = [&gateway[..], &["--metrics", "127.0.0.1:0"], insecure].concat();
        let gateway = start(folder.path(), &gateway);
        let metrics = metrics_of(&gateway);
        let known = if insecure.is_empty() { gateway.known() } else { gateway.address.clone() };
        let node = ["node", "--listen", "127.0.0.1:0", "--gateways", &known, "--out", "got"];
        let node = start(folder.path(), &[&node[..], insecure].concat());
        let to_node = ["--to", &node.address, "--quiet"];
        // Skip the lines about the start.
        while gateway.line_within(Duration::from_millis(300)).is_some() {}
        // Once without state at sender and node, and once with the file already delivered.
        for _ in 0..2 {
            let run = push(folder.path(), &[&["file"], &to_node[..], insecure].concat());
            assert!(run.status.success(), "{}", text(&run.stderr));
            assert!(std::fs::read(folder.path().join("got")).expect("it is there") == contents(1_000));
        }
        assert_eq!(gateway.line_within(Duration::from_millis(500)), None);
        let page = get(&metrics, "/metrics").1;
        assert_eq!(sample(&page, "anabranch_gateway_sessions"), 0.0, "{page}");
        let ended = page.lines().filter(|line| line.starts_with("anabranch_gateway_sessions_total{"));
        let ended: Vec<&str> = ended.collect();
        assert!(!ended.is_empty() && ended.iter().all(|line| line.ends_with(" 0")), "{ended:?}");
        // The same gateway carries a longer file.
        std::fs::write(folder.path().join("long"), contents(1_201)).expect("it can be written");
        let run = push(folder.path(), &[&["long"], &to_node[..], insecure].concat());
        assert!(run.status.success(), "{}", text(&run.stderr));
        gateway.says("bytes to the node");
        let page = get(&metrics, "/metrics").1;
        assert_eq!(sample(&page, "anabranch_gateway_sessions_total{result=\"served\"}"), 1.0, "{page}");
    }
}

/// The node is killed during a push, which calls it through its gateway again and again.
#[test]
fn a_gateway_says_that_a_node_is_gone() {
    let folder = folder(60_000_000);
    let gateway = ["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"];
    let gateway = start(folder.path(), &[&gateway[..], &["--metrics", "127.0.0.1:0"]].concat());
    let known = gateway.known();
    let address = metrics_of(&gateway);
    let node = ["node", "--listen", "127.0.0.1:0", "--gateways", &known, "--out", "got"];
    let mut node = start(folder.path(), &node);
    let slow = ["push", "file", "--to", &node.address, "--quiet", "--rate", "100 Mbit/s"];
    let mut push = command(folder.path(), &slow);
    let push = push.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut push = push.expect("the program starts");
    node.says("has begun");
    while std::fs::metadata(folder.path().join(".got.part")).map_or(0, |part| part.len()) == 0 {
        std::thread::yield_now();
    }
    node.child.kill().and_then(|()| node.child.wait()).expect("it is ours");
    assert_eq!(push.wait().expect("it is ours").code(), Some(1));
    let line = gateway.says("the node was not reached");
    assert!(line.contains("Connection refused"), "{line}");
    // The session that was open counts as well. None is left when the push is over.
    let began = Instant::now();
    let page = loop {
        let page = get(&address, "/metrics").1;
        if sample(&page, "anabranch_gateway_sessions") == 0.0 {
            break page;
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{page}");
    };
    let ended = |result| sample(&page, &format!("anabranch_gateway_sessions_total{{result=\"{result}\"}}"));
    assert_eq!((ended("served"), ended("reset")), (1.0, 0.0), "{page}");
    assert!(ended("unreachable") >= 1.0, "{page}");
}

/// Silent callers at the port of metrics do not delay transfers. After they have gone, other
/// callers of that port are served.
#[test]
fn callers_of_metrics_are_few_and_disturb_no_transfer() {
    let folder = folder(100_000);
    let gateway = gateway(folder.path());
    let known = gateway.known();
    let node =
        ["node", "--listen", "127.0.0.1:0", "--gateways", &known, "--out", "got", "--metrics", "127.0.0.1:0"];
    let node = start(folder.path(), &node);
    let metrics = metrics_of(&node);
    let silent: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(&metrics).expect("the kernel takes them")).collect();
    assert!(push(folder.path(), &["file", "--to", &node.address, "--quiet"]).status.success());
    silent.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    assert_eq!(get(&metrics, "/healthz").1, "ok\n");
    let (head, _) = ask(&metrics, &format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(5_000)));
    assert!(head.starts_with("HTTP/1.1 431 "), "{head}");
    assert!(push(folder.path(), &["file", "--to", &node.address, "--quiet"]).status.success());
}

/// Silent callers at the port of metrics are replaced by others, and closed after 5 s.
#[test]
fn silent_callers_of_metrics_delay_no_other_caller() {
    let folder = folder(1);
    let node = ["node", "--listen", "127.0.0.1:0", "--out", "got", "--metrics", "127.0.0.1:0"];
    let node = start(folder.path(), &node);
    let metrics = metrics_of(&node);
    let began = Instant::now();
    let mut silent: Vec<TcpStream> =
        (0..60).map(|_| TcpStream::connect(&metrics).expect("the kernel takes them")).collect();
    assert_eq!(get(&metrics, "/healthz").1, "ok\n");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "the answer took {took:?}");
    // Reading ends when the program closes the connection.
    let closed_within = |stream: &mut TcpStream, time| {
        stream.set_read_timeout(Some(time)).expect("a time");
        match uninterrupted(|| stream.read(&mut [0])) {
            Ok(n) => n == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    };
    // At most 8 callers are kept: earlier ones are closed at once.
    let (first, last) = silent.split_at_mut(52);
    assert!(first.iter_mut().all(|stream| closed_within(stream, Duration::from_secs(1))));
    let youngest = last.last_mut().expect("there are 8");
    assert!(!closed_within(youngest, Duration::from_millis(100)), "a slow caller has some time");
    assert!(last.iter_mut().all(|stream| closed_within(stream, Duration::from_secs(10))));
    let took = began.elapsed();
    assert!(took > Duration::from_secs(4) && took < Duration::from_secs(15), "closed after {took:?}");
}

#[test]
fn a_node_whose_disk_is_fuller_than_its_reserve_is_not_healthy() {
    let folder = folder(1_000);
    for (reserve, expected) in [("1 kB", "200 OK"), ("1000000 GB", "503 Service Unavailable")] {
        let node = ["node", "--listen", "127.0.0.1:0", "--out", "got", "--metrics", "127.0.0.1:0"];
        let node = start(folder.path(), &[&node[..], &["--reserve", reserve]].concat());
        let (head, body) = get(&metrics_of(&node), "/healthz");
        assert!(head.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{head}");
        assert_eq!(body.contains("less than --reserve"), reserve != "1 kB", "{body}");
        // The port does not authenticate callers, so it names no files.
        assert!(!body.contains('/') && !body.contains("got"), "{body}");
    }
}

#[test]
fn each_line_of_a_json_log_is_an_object_with_level_and_event() {
    let folder = folder(2_000);
    let json = ["--log-format", "json"];
    let gateway = ["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"];
    let gateway = start(folder.path(), &[&gateway[..], &json].concat());
    let known = gateway.known();
    let node = ["node", "--listen", "127.0.0.1:0", "--gateways", &known, "--out", "got"];
    let node = start(folder.path(), &[&node[..], &json].concat());
    assert!(push(folder.path(), &["file", "--to", &node.address, "--quiet"]).status.success());
    for (daemon, program, event) in [(&gateway, "gateway", "served"), (&node, "node", "begun")] {
        let line = daemon.says(event);
        let object: Value = serde_json::from_str(&line).expect(&line);
        assert_eq!(
            (&object["program"], &object["level"], &object["event"]),
            (&program.into(), &"info".into(), &event.into())
        );
        assert!(
            object["time"].as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z')),
            "{line}"
        );
        assert!(
            object["message"].is_string() && (object["peer"].is_string() || object["transfer"].is_string())
        );
    }
    // The error that ends a program.
    let ended =
        command(folder.path(), &["node", "--out", "x", "--listen", "192.0.2.1:1", "--log-format", "json"])
            .output();
    let ended = ended.expect("the program starts");
    let object: Value = serde_json::from_slice(&ended.stderr).expect("one object");
    assert_eq!((ended.status.code(), &object["level"]), (Some(2), &"error".into()));
    assert!(object["hint"].is_string(), "{object}");
    // Lines of lower levels are not logged, so the program does not print where it listens.
    let arguments = ["gateway", "--listen", "127.0.0.1:0", "--log-level", "warning"];
    let mut quiet = command(folder.path(), &arguments);
    let mut quiet = quiet.stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut first = String::new();
    let lines = BufReader::new(quiet.stderr.take().expect("it is piped")).read_line(&mut first);
    quiet.kill().and_then(|()| quiet.wait()).expect("it is ours");
    assert!(lines.is_ok() && first.starts_with("warning: no --allow given"), "{first}");
}
