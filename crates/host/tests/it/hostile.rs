//! Packets of a host that forges.

use std::net::Ipv4Addr;

use anabranch_testkit::contents;
use anabranch_testkit::netns::within;
use anabranch_testkit::prng::Prng;
use anabranch_wire::ip::{self, Header, Protocol};
use anabranch_wire::tcp::{Flags, Segment, SeqNumber};
use bytes::Bytes;

use crate::world::{Chain, Family, address, ended};

/// A flood of connections that do not exist takes no more than the limits, causes few packets, and
/// harms no real connection.
#[test]
fn a_flood_of_forged_segments_is_bounded() {
    const FORGED: u32 = 5_000;
    let Some(chain) = Chain::open(3) else { return };
    let file = contents(100_000);
    let url = chain.serve(Family::V4, &file, "cubic");
    let cache = chain.cache(1, &["--memory", "1 MiB", "--connections", "64"]);
    let target: Ipv4Addr = address(Family::V4, 1, 2).parse().expect("an address");
    within(&chain.hosts[0], || {
        let raw = anabranch_host::raw::RawSender::open(1).expect("root may open it");
        let mut prng = Prng::new(7);
        for _ in 0..FORGED {
            let word = prng.below(1 << 32) as u32;
            let source = Ipv4Addr::from(0x0a09_0000 | word & 0xff);
            let flags = if word & 0x100 == 0 { Flags::SYN } else { Flags::ACK };
            let segment = Segment {
                src_port: (word >> 16) as u16,
                dst_port: 9,
                seq: SeqNumber(prng.below(1 << 32) as u32),
                flags,
                payload: if flags == Flags::ACK { Bytes::from(vec![7; 1000]) } else { Bytes::new() },
                ..Segment::default()
            };
            let mut packet = Vec::new();
            ip::emit_tcp(&Header::new(source.into(), target.into(), Protocol::TCP), &segment, &mut packet)
                .expect("a legal packet");
            // A full queue of the device is no failure.
            let _ = raw.send(&packet, target.into());
        }
    });
    assert_eq!(chain.fetched(&url), file);
    let report = ended(cache);
    let count = |name: &str| report[name].as_u64().expect(name);
    assert!(count("segments") > u64::from(FORGED) / 2, "{report}");
    assert!(count("connections") <= 64 && count("cached_bytes") <= 1 << 20, "{report}");
    assert!(count("local_repairs") <= 3 * count("segments"), "{report}");
}
