//! Data and mappings that do not arrive together (RFC 8684 section 3.3.1).

use std::cell::RefCell;
use std::rc::Rc;

use crate::mptcp_world::{End, Path, Verdict, World};
use anabranch_core::mptcp::{Config, Connection, Event, PathId, SubflowId};
use anabranch_core::segment::{
    DataSeqNumber, Dss, Flags, Mapping, MpTcpRst, Mptcp, MptcpOption, ResetReason, Segment, SeqNumber,
    WireDsn,
};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::counting;
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

const SENT: usize = 3_000;

fn octets(seed: u64, n: usize) -> Bytes {
    Bytes::from(Prng::new(seed).octets(n))
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// What a test needs to speak for the client on one path.
#[derive(Clone, Default)]
struct Voice {
    last: Segment,
    iss: SeqNumber,
    /// The next data sequence number, and the last DATA_ACK.
    next: DataSeqNumber,
    ack: Option<WireDsn>,
}

impl Voice {
    /// A segment whose first byte is number `skip` after those that were sent.
    fn segment(&self, skip: u32, payload: &'static [u8]) -> Segment {
        let ack = self.ack.expect("the client has received a SYN/ACK");
        Segment {
            seq: self.last.seq_end() + skip,
            flags: Flags::ACK,
            mptcp: Mptcp::dss_only(Dss::default().with_data_ack(ack)),
            payload: Bytes::from_static(payload),
            ..self.last.clone()
        }
    }

    /// Only a mapping of `len` bytes that begin at number `skip`, after `sent` bytes.
    fn mapping(&self, sent: u32, (skip, len): (u32, u16), ends: bool) -> Segment {
        let mut segment = self.segment(sent, b"");
        let mapping = Mapping {
            dsn: WireDsn::Short((self.next + u64::from(skip)).0 as u32),
            subflow_seq: (self.last.seq_end() + skip).distance(self.iss) as u32,
            len: len + u16::from(ends),
            checksum: None,
        };
        let dss = segment.mptcp.dss().copied().unwrap_or_default().with_mapping(mapping);
        segment.mptcp = Mptcp::dss_only(if ends { dss.with_data_fin() } else { dss });
        segment
    }
}

/// A connection whose client has sent [`SENT`] bytes, and the client's voice on each path.
fn connected(paths: usize) -> (World, Vec<Voice>) {
    let config = Config { tcp: tcp::Config { mss: 1000, ..tcp::Config::default() }, ..Config::default() };
    let config = Config { tcp: tcp::Config { receive_buffer: 1 << 20, ..config.tcp }, ..config };
    let mut world = World::new(config, config, vec![Path::new(10_000_000, 10); paths], 3);
    let heard = Rc::new(RefCell::new(vec![Voice::default(); paths]));
    let voices = heard.clone();
    world.rule = Some(Box::new(move |_, end, PathId(path), segment| {
        if end == End::Client {
            let mut voices = voices.borrow_mut();
            if let Some(ack) = segment.mptcp.dss().and_then(Dss::data_ack) {
                voices.iter_mut().for_each(|voice| voice.ack = Some(ack));
            }
            if let Some(mapping) = segment.mptcp.dss().and_then(Dss::mapping) {
                let next = mapping.dsn.expand(voices[0].next) + u64::from(mapping.len);
                voices.iter_mut().for_each(|voice| voice.next = next);
            }
            let voice = &mut voices[usize::from(path)];
            if segment.flags.contains(Flags::SYN) {
                voice.iss = segment.seq;
            }
            voice.last = segment.clone();
        }
        Verdict::Pass
    }));
    world.client.outbox = octets(5, SENT);
    world.run_until(at(1_000), |_| false);
    assert_eq!(world.server.inbox.len(), SENT);
    let voices = heard.borrow().clone();
    (world, voices)
}

fn read(connection: &mut Connection) -> Vec<u8> {
    core::iter::from_fn(|| connection.read(usize::MAX)).flatten().collect()
}

/// The data is delivered with its last missing part, be it data or a mapping.
#[test]
fn a_mapping_without_data_delivers_what_waits_for_it() {
    let (mut world, voices) = connected(1);
    let (now, server, client) = (world.now, world.server.mptcp(), &voices[0]);
    let mut say = |segment| {
        server.handle_segment(now, SubflowId(0), segment);
        let events: Vec<_> = core::iter::from_fn(|| server.poll_event()).collect();
        (read(server), events)
    };
    assert_eq!(say(client.segment(0, b"abcd")), (vec![], vec![]));
    assert_eq!(say(client.segment(4, b"efgh")), (vec![], vec![]));
    assert_eq!(say(client.mapping(8, (0, 2), false)), (b"ab".to_vec(), vec![Event::Readable]));
    // Its data waits on the data level.
    assert_eq!(say(client.mapping(8, (6, 2), false)), (vec![], vec![]));
    assert_eq!(say(client.mapping(8, (2, 4), false)), (b"cdefgh".to_vec(), vec![Event::Readable]));
    // The same mapping again changes nothing.
    assert_eq!(say(client.mapping(8, (2, 4), false)), (vec![], vec![]));
    assert_eq!(say(client.segment(8, b"end")), (vec![], vec![]));
    assert_eq!(
        say(client.mapping(11, (8, 3), true)),
        (b"end".to_vec(), vec![Event::Readable, Event::PeerClosed])
    );
}

/// A DATA_FIN may come in a mapping of data that has all arrived.
#[test]
fn a_data_fin_counts_with_a_mapping_of_old_data() {
    let (mut world, voices) = connected(1);
    let (now, server, client) = (world.now, world.server.mptcp(), &voices[0]);
    server.handle_segment(now, SubflowId(0), client.segment(0, b"end"));
    server.handle_segment(now, SubflowId(0), client.mapping(3, (0, 3), false));
    server.handle_segment(now, SubflowId(0), client.segment(3, b""));
    assert_eq!(read(server), b"end");
    while server.poll_event().is_some() {}
    server.handle_segment(now, SubflowId(0), client.mapping(3, (0, 3), true));
    assert_eq!(core::iter::from_fn(|| server.poll_event()).collect::<Vec<_>>(), [Event::PeerClosed]);
}

/// A mapping that does not arrive within some data ends its subflow. Single bytes at every second
/// number cost a hundred times their length.
#[test]
fn single_bytes_without_a_mapping_end_their_subflow() {
    let (mut world, voices) = connected(2);
    let (now, server) = (world.now, world.server.mptcp());
    let before = counting::in_use();
    let mut most = 0;
    let mut reset = None;
    for i in 0..4_096 {
        server.handle_segment(now, SubflowId(1), voices[1].segment(1 + 2 * i, b"x"));
        while let Some((id, segment)) = server.poll_transmit(now) {
            if segment.flags.contains(Flags::RST) {
                reset.get_or_insert((i, id, segment.mptcp));
            }
        }
        most = most.max(counting::in_use() - before);
    }
    let why = MpTcpRst { transient: false, reason: ResetReason::MPTCP_SPECIFIC };
    let expected = (64, SubflowId(1), Mptcp::only(MptcpOption::MpTcpRst(why)));
    assert_eq!(reset, Some(expected));
    assert!(most < 64 << 10, "{most} bytes");
    assert!(server.subflows().eq([(SubflowId(0), PathId(0))]));
    world.client.outbox = octets(6, 10_000);
    world.run_until(at(5_000), |_| false);
    assert_eq!(world.server.inbox[SENT..], octets(6, 10_000));
}

/// Each segment costs the same, whatever waits already.
#[test]
fn data_that_waits_for_its_mapping_is_stored_once() {
    const N: u32 = 500;
    static DATA: [u8; 600] = [7; 600];
    let (mut world, voices) = connected(1);
    let (now, server) = (world.now, world.server.mptcp());
    let before = counting::octets();
    for i in 0..N {
        server.handle_segment(now, SubflowId(0), voices[0].segment(1 + 601 * i, &DATA));
        while server.poll_transmit(now).is_some() {}
    }
    assert_eq!(server.subflows().count(), 1);
    let each = (counting::octets() - before) / u64::from(N);
    assert!(each < 10 * DATA.len() as u64, "{each} bytes are allocated for a segment");
}
