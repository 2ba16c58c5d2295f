//! Three senders over a shaped and lossy link between namespaces: `tc tbf` and `iptables -m
//! statistic` in both directions.
//!
//! This is the short form; the long one is `cargo xtask campaign sense`.

#![expect(clippy::disallowed_types, reason = "processes live in real time")]

use std::env;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns::{self, Broom, done, ip, name};

use super::{command, folder, lines, payloads};

/// Length of a record's payload in bytes.
const RECORD: usize = 1000;
const SENDERS: usize = 3;

/// The command of a program, in a namespace.
fn within(netns: &str, program: &Command) -> Command {
    let mut command = netns::inside(netns, &[]);
    command.arg(program.get_program()).args(program.get_args());
    command.current_dir(program.get_current_dir().expect("it is set"));
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// Rate in kbit/s and loss in percent. Returns the rate of delivered payload over that of the link
/// less its losses.
fn utilisation(at: usize, kbit: u64, loss: u64, seconds: u64) -> f64 {
    let (near, far) = (name(&format!("l{at}n")), name(&format!("l{at}f")));
    let _broom = Broom::new([&near, &far]);
    for netns in [&near, &far] {
        ip(&["netns", "add", netns]);
    }
    ip(&["-n", &near, "link", "add", "v", "type", "veth", "peer", "name", "v", "netns", &far]);
    for (netns, address) in [(&near, "10.9.0.1/24"), (&far, "10.9.0.2/24")] {
        ip(&["-n", netns, "address", "add", address, "dev", "v"]);
        ip(&["-n", netns, "link", "set", "dev", "v", "up"]);
        ip(&["-n", netns, "link", "set", "dev", "lo", "up"]);
        if loss > 0 {
            let share = format!("0.{loss:02}");
            let rule = ["-A", "INPUT", "-i", "v", "-m", "statistic", "--mode", "random", "--probability"];
            let words = [&["netns", "exec", netns, "iptables"], &rule[..], &[&share, "-j", "DROP"]].concat();
            done("ip", &words);
        }
    }
    // A queue of 100 ms.
    let (rate, limit) = (format!("{kbit}kbit"), (kbit * 100 / 8).max(6000).to_string());
    let shape = ["qdisc", "add", "dev", "v", "root", "tbf", "rate", &rate, "burst", "4kb", "limit", &limit];
    done("tc", &[&["-n", &near], &shape[..]].concat());

    let folder = folder();
    let path = folder.path();
    let sink = command(path, "sink", &["--listen", "10.9.0.2:47300", "--psk", "fleet.key", "--out", "out"]);
    let _sink = anabranch_testkit::daemon::Daemon::spawn(within(&far, &sink));
    let start = |sender: usize| -> Child {
        let name = format!("s{sender}");
        let arguments = ["--to", "10.9.0.2", "--psk", "fleet.key", "--name", &name, "--linger", "60s"];
        let mut command = within(&near, &command(path, "sense", &arguments));
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        command.spawn().expect("the program starts")
    };
    let mut senders: Vec<Child> = (0..SENDERS).map(start).collect();
    let end = Instant::now() + Duration::from_secs(seconds);
    let feeds = senders.iter_mut().map(|child| {
        let mut pipe = child.stdin.take().expect("it is piped");
        std::thread::spawn(move || {
            let mut record = vec![b'x'; RECORD];
            record.push(b'\n');
            let mut count = 0;
            while Instant::now() < end && pipe.write_all(&record).is_ok() {
                count += 1;
            }
            count
        })
    });
    let given: Vec<usize> = feeds.collect::<Vec<_>>().into_iter().map(|feed| feed.join().unwrap()).collect();
    let delivered = lines(&path.join("out")).iter().filter(|line| line["number"].is_number()).count();
    for child in &mut senders {
        assert!(child.wait().unwrap().success(), "all records are confirmed");
    }
    let all = payloads(&lines(&path.join("out")));
    let counts: Vec<usize> = all.values().map(Vec::len).collect();
    assert_eq!(counts, given, "each record is delivered once and in order");
    let capacity = (kbit * 1000) as f64 * (100 - loss) as f64 / 100.0;
    delivered as f64 * RECORD as f64 * 8.0 / seconds as f64 / capacity
}

#[test]
fn each_record_arrives_once_over_a_lossy_link() {
    if netns::skipped()
        || ["tc", "iptables"].iter().any(|program| {
            let package = if *program == "tc" { "iproute2" } else { "iptables" };
            find_or_install(program, package).is_none()
        })
    {
        return;
    }
    let long = env::var("ANABRANCH_SENSE_LONG").is_ok();
    let seconds = if long { 60 } else { 3 };
    let cells: &[(u64, u64)] = match long {
        true => &[
            (1000, 0),
            (1000, 2),
            (1000, 5),
            (1000, 20),
            (5000, 0),
            (5000, 5),
            (5000, 20),
            (20_000, 0),
            (20_000, 5),
            (20_000, 20),
        ],
        false => &[(5000, 5)],
    };
    for (at, (kbit, loss)) in cells.iter().enumerate() {
        let share = utilisation(at, *kbit, *loss, seconds);
        println!("{kbit} kbit/s, loss {loss} %: {share:.3} of capacity x (1 - loss)");
    }
}
