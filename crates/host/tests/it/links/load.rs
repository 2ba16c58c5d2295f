//! Memory and processor time of many and of fast connections.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};

use serde_json::json;

use super::{Links, Means, given, outcome, path};

/// Resident memory of a process in kB.
fn memory(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("every process has it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Processor time of a process in seconds.
fn processor(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name in brackets").split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    (ticks(12) + ticks(13)) / 100.0
}

#[test]
fn many_connections_need_little_memory_and_leave_none() {
    let (at_once, in_turn) = (given("AT_ONCE", 50), given("IN_TURN", 50));
    let Some(links) = Links::open(&[path(100, 5, 0); 2]) else { return };
    let carrier = links.carrier(Means::Ours(&[]));
    let pid = carrier.daemon.as_ref().expect("it is ours").child.id();
    let mut afters = vec![memory(pid)];
    // The second round shows what the first one has left. Connections in TIME-WAIT need memory too.
    for round in 0..2 {
        let before = afters[round];
        let job = json!({"kind": "many", "at_once": at_once, "in_turn": in_turn});
        let mut client = links.begin(&carrier, job);
        let mut said = BufReader::new(client.0.stdout.take().expect("it is piped"));
        said.read_line(&mut String::new()).expect("it says that all are open");
        let during = memory(pid);
        client.0.stdin.take().expect("it is piped").write_all(b"\n").expect("it waits");
        client.0.stdout = None;
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("text");
        assert!(client.0.wait().expect("it is ours").success() && !rest.contains("failed"), "{rest}");
        let after = memory(pid);
        let each = (during - before) / at_once as f64;
        println!(
            "round {round}: {before} kB, {each:.1} kB for each of {at_once} connections, then {after} kB"
        );
        assert!(each < 40.0, "{each} kB for each connection");
        afters.push(after);
    }
    assert!(afters[2] < 1.1 * afters[1], "{afters:?} kB at the beginning and after each round");
}

/// Prints the processor time of one connection without a rate limit that it could reach.
#[test]
fn processor_time_for_each_gigabit() {
    let runs = given("RUNS", 0);
    let Some(links) = (runs > 0).then(|| Links::open(&[path(2000, 1, 0); 2])).flatten() else { return };
    for (name, means) in [("kernel", Means::Kernel("cubic")), ("ours", Means::Ours(&[]))] {
        for _ in 0..runs {
            let carrier = links.carrier(means);
            let pid = carrier.daemon.as_ref().map(|daemon| daemon.child.id());
            let before = pid.map_or(0.0, processor);
            let done = outcome(&mut links.begin(&carrier, json!({"kind": "put", "seconds": 5})).0);
            let octets: u64 = super::bins(&done).values().sum();
            let gigabits = octets as f64 * 8e-9;
            let (client, program) =
                (done["processor"].as_f64().expect("a time"), pid.map_or(0.0, processor) - before);
            println!(
                "{name}: {:.2} Gbit/s; seconds of processor time for each Gbit: {:.2} the client, {:.2} the program",
                gigabits / 5.0,
                client / gigabits,
                program / gigabits
            );
        }
    }
}
