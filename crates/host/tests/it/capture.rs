//! What the cache sends, as Wireshark reads it.

use std::collections::BTreeMap;
use std::process::Stdio;

use anabranch_testkit::contents;
use anabranch_testkit::daemon::PATIENCE;
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns::{Farewell, mortal};
use anabranch_testkit::tshark::Tshark;

use crate::world::{Chain, Family, ended};

/// Every packet behind a cache has good checksums, and every byte is that of the file, wherever it
/// is repeated.
#[test]
fn repeated_segments_are_the_sender_s() {
    let Some(chain) = Chain::open(4) else { return };
    if find_or_install("tcpdump", "tcpdump").is_none() {
        return;
    }
    let file = contents(60_000);
    chain.lose(0.1);
    let caches = chain.routers().map(|router| chain.cache(router, &[])).collect::<Vec<_>>();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pcap");
    let mut tcpdump = mortal("ip", Farewell::Kill);
    // The link before the client: its packets have passed both caches.
    tcpdump
        .args(["netns", "exec", &chain.hosts[1], "tcpdump", "-U", "-i", "left"])
        .args(["--immediate-mode", "-w"])
        .arg(&path);
    let mut tcpdump = tcpdump.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = std::io::BufReader::new(tcpdump.stderr.take().expect("it is piped"));
    std::io::BufRead::read_line(&mut said, &mut String::new()).expect("it says that it listens");
    for family in [Family::V4, Family::V6] {
        assert_eq!(chain.fetched(&chain.serve(family, &file, "cubic")), file);
    }
    let reports: Vec<_> = caches.into_iter().map(ended).collect();
    // What is left in the kernel's buffer when tcpdump ends is lost.
    let captured = || std::fs::metadata(&path).map_or(0, |file| file.len());
    for _ in 0..PATIENCE.as_millis() / 20 {
        if captured() > 2 * file.len() as u64 {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    tcpdump.kill().expect("it runs");
    tcpdump.wait().expect("it is ours");
    let repairs: u64 = reports.iter().filter_map(|report| report["local_repairs"].as_u64()).sum();
    assert!(repairs > 0, "{reports:?}");

    let octets = std::fs::read(&path).expect("a capture");
    let Some(tshark) = Tshark::open("cache", &octets) else { return };
    assert_eq!(tshark.count("tcp.checksum.status == 0 || ip.checksum.status == 0"), 0);
    let fields = "ipv6.src tcp.stream tcp.seq ip.ttl ipv6.hlim tcp.payload";
    let rows = tshark
        .fields("tcp.len > 0 && tcp.dstport != 80 && tcp.srcport < tcp.dstport || tcp.len > 100", fields);
    let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", file.len());
    let sent = [head.as_bytes(), &file[..]].concat();
    let mut copies = BTreeMap::<_, u32>::new();
    for row in rows.lines() {
        let cells: Vec<&str> = row.split('\t').collect();
        let payload: Vec<u8> = (0..cells[5].len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&cells[5][i..i + 2], 16).expect("hex"))
            .collect();
        if payload.starts_with(b"GET ") {
            continue;
        }
        // Relative numbers: the SYN has 0.
        let from: usize = cells[2].parse::<usize>().expect("a number") - 1;
        assert_eq!(sent.get(from..from + payload.len()), Some(&payload[..]), "{row}");
        // The two routers have forwarded it: once more than the client's side of the chain.
        let hops = if cells[0].is_empty() { cells[3] } else { cells[4] };
        assert_eq!(hops, "62", "{row}");
        *copies.entry((cells[1].to_owned(), from)).or_default() += 1;
    }
    assert!(copies.values().any(|copies| *copies > 1), "some segment was repeated");
}
