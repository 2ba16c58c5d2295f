//! `--setup` and `--teardown`.

use anabranch_testkit::contents;
use anabranch_testkit::netns::done;

use crate::world::{Chain, Family, ended};

#[test]
fn rules_are_there_while_the_cache_runs_and_packets_pass_after_a_crash() {
    let Some(chain) = Chain::open(3) else { return };
    let file = contents(20_000);
    let url = chain.serve(Family::V6, &file, "reno");
    // A rule of the operator's must survive.
    let own = ["-w", "-t", "mangle", "-A", "FORWARD", "-p", "udp", "-j", "ACCEPT"];
    done("ip", &[&["netns", "exec", &chain.hosts[1], "iptables"], &own[..]].concat());
    let before = chain.rules(1);
    let cache = chain.cache(1, &[]);
    let during = chain.rules(1);
    assert_eq!(during.matches("-A FORWARD -j anabranch-cache-1\n").count(), 2, "{during}");
    assert!(during.contains("--queue-num 1 --queue-bypass"), "{during}");
    assert_eq!(chain.fetched(&url), file);
    assert!(ended(cache)["segments"].as_u64() > Some(20));
    assert_eq!(chain.rules(1), before);

    let mut killed = chain.cache(1, &[]);
    killed.child.kill().expect("it runs");
    killed.child.wait().expect("it is ours");
    assert_eq!(chain.rules(1), during);
    assert_eq!(chain.fetched(&url), file, "packets pass a queue without a process");
    // The next cache replaces the rules, and another may not take its queue.
    let cache = chain.cache(1, &[]);
    assert_eq!(chain.rules(1), during);
    let second = chain.command(1, &["--queue", "1", "--setup"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.code() == Some(2) && said.contains("queue 1 belongs to another process"), "{said}");
    assert_eq!(chain.rules(1), during, "the first keeps its rules");
    drop(cache);
    for _ in 0..2 {
        let gone = chain.command(1, &["--queue", "1", "--teardown"]).output().expect("it starts");
        assert!(gone.status.success(), "{}", String::from_utf8_lossy(&gone.stderr));
        assert_eq!(chain.rules(1), before);
    }
}

#[test]
fn an_interrupt_removes_the_rules() {
    let Some(chain) = Chain::open(3) else { return };
    let before = chain.rules(1);
    let mut cache = chain.cache(1, &[]);
    cache.signal("-INT");
    assert_eq!(cache.ended().0, Some(130));
    assert_eq!(chain.rules(1), before);
}
