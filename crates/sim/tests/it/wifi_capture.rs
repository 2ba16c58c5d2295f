//! A capture of transmitted IEEE 802.11 frames, read back by tshark.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;

use anabranch_core::time::Duration;
use anabranch_sim::pcapng::{CaptureWriter, Direction, InterfaceInfo, LinkType};
use anabranch_sim::wifi::octets::{self, Payload};
use anabranch_sim::wifi::{AirFrame, Effect, FrameKind, Preamble, Station, WifiConfig};
use anabranch_testkit::tshark::Tshark;
use anabranch_wire::ieee80211;

use crate::dcf::{Dcf, Flow, Traffic, after, row};

/// A UDP datagram in an IPv4 packet of `len` bytes, from one station to another or to all.
fn packet(frame: &AirFrame, len: usize) -> Vec<u8> {
    let host = |station: Station| [10, 0, 0, station.0 as u8 + 1];
    let mut octets = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
    octets[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    octets.extend(host(frame.from));
    octets.extend(frame.to.map_or([255; 4], host));
    let sum = octets.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    octets[10..12].copy_from_slice(&sum.to_be_bytes());
    octets.extend([0xb8, 0x07, 0xb8, 0x07]);
    octets.extend((len as u16 - 20).to_be_bytes());
    octets.resize(len, 0);
    octets
}

#[test]
fn tshark_reads_all_that_was_on_the_air() {
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0).with_rts_threshold(400), &row(3, 80.0), 1);
    dcf.wifi.show_frames();
    for i in 0..3 {
        dcf.wifi.set_loss(Station(i), Station(i + 1), 0.2);
        dcf.wifi.set_loss(Station(i + 1), Station(i), 0.1);
    }
    let flow = |from, to, mpdu_len| Flow { from, to, mpdu_len, rate: 20.0 };
    let flows = [flow(0, Some(1), 300), flow(1, Some(2), 1000), flow(2, Some(1), 1500), flow(3, None, 200)];
    let mut frames: Vec<AirFrame> = Vec::new();
    let mut traffic = Traffic::new(&mut dcf, &flows, 1);
    traffic.run(&mut dcf, after(Duration::from_secs(5)), |effect| {
        if let Effect::Frame(frame) = effect {
            frames.push(*frame);
        }
    });
    let interface = InterfaceInfo {
        name: "wifi".into(),
        description: String::new(),
        link_type: LinkType::IEEE802_11_RADIOTAP,
    };
    let mut capture = CaptureWriter::new(Vec::new(), &[interface]).unwrap();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for frame in &frames {
        let len = usize::from(frame.mpdu_len);
        let octets = if frame.kind == FrameKind::Data { packet(frame, len - 36) } else { Vec::new() };
        let mut out = Vec::new();
        octets::emit(frame, Preamble::Long, Payload { ether_type: 0x0800, octets: &octets }, &mut out)
            .unwrap();
        assert_eq!(out.len(), ieee80211::radiotap::LEN + len, "{frame:?}");
        capture.packet(0, frame.end, Direction::Unknown, &out, None).unwrap();
        let filter = match frame.kind {
            FrameKind::Data => "wlan.fc.type_subtype == 32",
            FrameKind::Rts => "wlan.fc.type_subtype == 27",
            FrameKind::Cts => "wlan.fc.type_subtype == 28",
            FrameKind::Ack => "wlan.fc.type_subtype == 29",
        };
        *counts.entry(filter).or_default() += 1;
        *counts.entry("wlan.fc.retry == 1").or_default() += u64::from(frame.retry);
    }
    println!("{counts:?}");
    assert!(frames.len() > 500 && counts.len() == 5 && counts["wlan.fc.retry == 1"] > 20);
    let Some(tshark) = Tshark::open("wifi", &capture.finish().unwrap()) else { return };
    let filters: [&str; 5] = counts.keys().copied().collect::<Vec<_>>().try_into().unwrap();
    let [a, b, c, d, e] = filters;
    let bad = "_ws.malformed || wlan.fcs.status == 0 || ip.checksum.status == 0";
    let [read @ .., malformed, udp] = tshark.counts([a, b, c, d, e, bad, "udp"]);
    assert_eq!(filters.into_iter().zip(read).collect::<BTreeMap<_, u64>>(), counts);
    assert_eq!((malformed, udp), (0, counts["wlan.fc.type_subtype == 32"]));
    // The fields of one frame of each kind, as the radio has them.
    let fields = "wlan.ra wlan.ta wlan.duration wlan.seq radiotap.datarate";
    let read: Vec<Vec<String>> = tshark
        .fields("frame", fields)
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect();
    assert_eq!(read.len(), frames.len());
    let address = |station: Station| format!("02:00:00:00:00:{:02x}", station.0);
    for (frame, read) in frames.iter().zip(&read) {
        assert_eq!(read[0], frame.to.map_or("ff:ff:ff:ff:ff:ff".into(), address));
        assert_eq!(read[2], (frame.duration.as_nanos() / 1000).to_string());
        assert_eq!(read[4], (u32::from(frame.rate.half_mbps()) / 2).to_string());
        match frame.kind {
            FrameKind::Data => {
                assert_eq!((&read[1], &read[3]), (&address(frame.from), &frame.seq.to_string()))
            }
            FrameKind::Rts => assert_eq!(read[1], address(frame.from)),
            FrameKind::Cts | FrameKind::Ack => assert_eq!(read[1], ""),
        }
    }
}
