//! `--setup` and `--teardown`.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anabranch_testkit::contents;
use anabranch_testkit::netns::within;

use crate::world::{Chain, Family, address, ended};

#[test]
fn rules_are_there_while_the_cache_runs_and_packets_pass_after_a_crash() {
    let Some(chain) = Chain::open(3) else { return };
    let file = contents(20_000);
    let url = chain.serve(Family::V6, &file, "reno");
    // A rule of the operator's must survive.
    chain.add_rule(1, "-t security -A FORWARD -p udp -j ACCEPT");
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

/// The client's side may connect, the server's side may only answer.
#[test]
fn a_firewall_stays_closed_and_what_it_allows_is_cached() {
    let Some(chain) = Chain::open(3) else { return };
    for rule in [
        "-P FORWARD DROP",
        "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
        "-A FORWARD -i left -j ACCEPT",
    ] {
        chain.add_rule(1, rule);
    }
    let cache = chain.cache(1, &[]);
    let inside: SocketAddr = format!("{}:9", address(Family::V4, 0, 1)).parse().expect("an address");
    let _listener = within(&chain.hosts[0], || TcpListener::bind(inside).expect("the port is free"));
    // Longer than the cache's first time-out, after which it would repeat the SYN.
    let outside = within(&chain.hosts[2], || TcpStream::connect_timeout(&inside, Duration::from_millis(600)));
    assert!(outside.is_err(), "the firewall drops the SYN");
    let file = contents(20_000);
    assert_eq!(chain.fetched(&chain.serve(Family::V4, &file, "cubic")), file);
    assert!(ended(cache)["segments"].as_u64() > Some(20));
}

#[test]
fn a_second_cache_and_a_host_that_translates_are_refused() {
    let Some(chain) = Chain::open(3) else { return };
    let refused = |queue, reason: &str| {
        let before = chain.rules(1);
        let output = chain.command(1, &["--queue", queue, "--setup"]).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(reason), "{said}");
        assert_eq!(chain.rules(1), before);
    };
    let cache = chain.cache(1, &[]);
    refused("2", "another cache has rules: the chain anabranch-cache-1");
    drop(cache);
    chain.add_rule(1, "-t nat -A POSTROUTING -o right -j MASQUERADE");
    refused("1", "translates addresses");
    // Rules that change nothing are no obstacle.
    chain.add_rule(1, "-t nat -F POSTROUTING");
    chain.add_rule(1, "-t nat -A POSTROUTING -o right -j ACCEPT");
    let gone = chain.command(1, &["--queue", "1", "--teardown"]).output().expect("it starts");
    assert!(gone.status.success(), "{}", String::from_utf8_lossy(&gone.stderr));
    ended(chain.cache(1, &[]));
}
