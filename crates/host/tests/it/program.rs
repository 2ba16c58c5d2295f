//! Exit codes, reports and metrics.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anabranch_testkit::daemon::Daemon;
use anabranch_testkit::netns::{Kept, within};
use anabranch_testkit::{contents, full_pipe};

use crate::world::{Chain, Family, ended, terminate};

#[test]
fn without_privileges_the_exit_code_is_3() {
    let Some(chain) = Chain::open(3) else { return };
    for arguments in [&["--queue", "1"][..], &["--queue", "1", "--teardown"]] {
        // The program is where others may not look: its file is passed on as a descriptor.
        let program = chain.command(1, arguments);
        let words: Vec<_> = program.get_args().collect();
        let drop = ["--bounding-set=-all", "--inh-caps=-all", "--"];
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &chain.hosts[1], "setpriv"]).args(drop);
        let at = words.iter().position(|word| word.to_string_lossy().ends_with("anabranch-cache"));
        command.args(&words[at.expect("its program")..]);
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("CAP_NET_ADMIN"), "{said}");
    }
}

#[test]
fn bad_options_have_exit_code_2() {
    let cache = |arguments: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-cache"));
        let output = command.args(arguments).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = cache(&["--queue", "1", "--memory", "1 kB", "--check"]);
    assert!(code == Some(2) && said.contains("--memory") && said.contains("hint: "), "{said}");
    let (code, said) = cache(&["--queue", "70000"]);
    assert!(code == Some(2) && said.contains("--queue"), "{said}");
    assert_eq!(cache(&["--queue", "1", "--check"]).0, Some(0));
}

#[test]
fn counters_are_metrics_and_reports_of_a_driver_are_read() {
    let Some(chain) = Chain::open(3) else { return };
    let file = contents(20_000);
    let url = chain.serve(Family::V4, &file, "cubic");
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("acks");
    let path = socket.to_str().expect("text");
    let cache = chain.cache(1, &["--metrics", "127.0.0.1:0", "--next-hop-acks", path]);
    let line = cache.says("metrics on ");
    let address =
        line.split("http://").nth(1).and_then(|rest| rest.strip_suffix("/metrics")).expect("an address");
    assert_eq!(chain.fetched(&url), file);
    let driver = UnixDatagram::unbound().expect("a socket");
    for report in [&b"A"[..], b"Tnothing", b"", b"?"] {
        driver.send_to(report, &socket).expect("the cache reads it");
    }
    let page = within(&chain.hosts[1], || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it reads");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("text");
        page
    });
    for name in ["connections", "cached_bytes", "local_repairs_total", "retransmissions_avoided_total"] {
        assert!(page.contains(&format!("\nanabranch_cache_{name} ")), "{name}: {page}");
    }
    let report = ended(cache);
    assert_eq!(
        (&report["reports"], &report["unsent"], &report["malformed"]),
        (&2.into(), &0.into(), &0.into())
    );
    assert_eq!(report["packets"], report["segments"]);
    assert!(!socket.exists());
}

/// A firewall that drops the cache's packets leaves connections as they are without a cache.
#[test]
fn a_cache_whose_packets_are_refused_says_so_and_holds_nothing() {
    let Some(chain) = Chain::open(3) else { return };
    chain.add_rule(1, "-P OUTPUT DROP");
    let file = contents(20_000);
    let url = chain.serve(Family::V4, &file, "cubic");
    let cache = chain.cache(1, &[]);
    chain.add_rule(0, "-t raw -A PREROUTING -p tcp -m statistic --mode nth --every 3 --packet 2 -j DROP");
    assert_eq!(chain.fetched(&url), file);
    let said = cache.says("refuses packets of the cache");
    assert!(said.contains("OUTPUT"), "{said}");
    assert!(ended(cache)["unsent"].as_u64() >= Some(3));
}

/// Full pipes in place of standard output and error stop no packet and no end.
#[test]
fn nobody_has_to_read_what_a_cache_says() {
    let Some(chain) = Chain::open(3) else { return };
    let file = contents(20_000);
    let url = chain.serve(Family::V4, &file, "cubic");
    let ((reader, stdout), (_reader, stderr)) = (full_pipe(), full_pipe());
    let mut command = chain.command(1, &["--queue", "1", "--setup", "--json"]);
    let mut cache = Kept(command.stdout(stdout).stderr(stderr).spawn().expect("it starts"));
    drop(command);
    assert!((0..100).any(|_| {
        thread::park_timeout(Duration::from_millis(100));
        chain.rules(1).contains("NFQUEUE")
    }));
    // The first report is due.
    thread::park_timeout(Duration::from_millis(1300));
    assert_eq!(chain.fetched(&url), file);
    drop(reader);
    thread::park_timeout(Duration::from_millis(1300));
    assert_eq!(chain.fetched(&url), file);
    terminate(&mut cache);
    assert!(!chain.rules(1).contains("NFQUEUE"));
}

/// The rules of a cache that runs as a user with the two capabilities of the unit.
#[test]
fn two_capabilities_suffice() {
    let Some(chain) = Chain::open(3) else { return };
    let before = chain.rules(1);
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("anabranch-cache");
    anabranch_testkit::executable::copy(assert_cmd::cargo::cargo_bin!("anabranch-cache"), &program);
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("ours");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &chain.hosts[1], "setpriv", "--reuid", "65534", "--clear-groups"]);
    command.args(["--inh-caps=-all,+net_admin,+net_raw", "--ambient-caps=-all,+net_admin,+net_raw"]);
    command.args(["--bounding-set=-all,+net_admin,+net_raw", "--"]).arg(&program);
    command.args(["--queue", "1", "--setup", "--json"]).env("XTABLES_LOCKFILE", folder.path().join("lock"));
    let cache = Daemon::spawn(command);
    assert_ne!(chain.rules(1), before);
    ended(cache);
    assert_eq!(chain.rules(1), before);
}
