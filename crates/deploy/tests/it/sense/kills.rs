//! SIGKILL at random moments.

use std::fmt::Write;
use std::thread::park_timeout;
use std::time::Duration;

use anabranch_testkit::daemon::home;
use anabranch_testkit::given;
use anabranch_testkit::prng::Prng;

use super::{folder, lines, payloads, sense, sink};

/// Kills in the short form; `ANABRANCH_SENSE_KILLS` sets another number.
fn kills() -> u64 {
    given("ANABRANCH_SENSE_KILLS").unwrap_or(6)
}

/// The file has each record once and in order, whenever the sink is killed. A sender that is killed
/// begins a new run, and the end of the old one is reported.
#[test]
fn a_file_has_each_record_once_whoever_is_killed() {
    let (kills, seed) = (kills(), 1);
    let mut prng = Prng::new(seed);
    let folder = folder();
    let path = folder.path();
    let listen = home();
    let mut arguments = vec!["--listen", &listen, "--psk", "fleet.key", "--out", "out.jsonl"];
    let mut daemon = sink(path, &arguments);
    let to = daemon.address.clone();
    arguments[1] = &to;
    let input = |records: u64| {
        (0..records).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "record {n}");
            text
        })
    };
    let records = 2000 * kills;
    let options = ["--psk", "fleet.key", "--rate", "400 kbit/s", "--datagram", "300", "--name"];
    let start =
        |name: &'static str| sense(path, &to, &[&options[..], &[name]].concat(), input(records).into());
    let (mut steady, mut killed) = (start("steady"), start("killed"));
    for kill in 0..kills {
        park_timeout(Duration::from_millis(prng.range(100..=700)));
        if kill % 3 == 2 {
            killed.kill().unwrap();
            killed.wait().unwrap();
            killed = start("killed");
        } else {
            drop(daemon);
            daemon = sink(path, &arguments);
        }
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(steady.wait().unwrap().success());
    drop(daemon);
    let all = lines(&path.join("out.jsonl"));
    let runs = payloads(&all);
    for ((name, run), records) in &runs {
        assert!(
            records.iter().enumerate().all(|(n, record)| *record == format!("record {n}")),
            "seed {seed}"
        );
        let is_over = |line: &serde_json::Value| line["run"] == **run && line["event"].is_string();
        let ends = all.iter().filter(|line| is_over(line)).count();
        let is_last = runs.range((name.clone(), String::new())..).count() == 0;
        assert!(ends <= 1 || is_last, "{name} {run}: {ends}");
    }
    let steady: Vec<_> = runs.iter().filter(|((name, _), _)| name == "steady").collect();
    assert!(steady.len() == 1 && steady[0].1.len() as u64 == records, "{}", steady[0].1.len());
    let killed = runs.keys().filter(|(name, _)| name == "killed").count();
    let ended = all.iter().filter(|line| line["sender"] == "killed" && line["event"] == "restarted").count();
    assert_eq!(ended + 1, killed, "each run but the last is reported as ended");
}
