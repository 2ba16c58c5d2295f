//! Tests with small logs, written byte by byte: the result of each record, and what the reader
//! refuses. `crates/cli/tests/it/replay` tests logs of whole runs.

use anabranch_view::log::{Ending, LogError, Medium, Reader, Record};
use anabranch_view::replay::{Fate, Part, Repair, Replay, Transfer};

/// The head of a log with nodes `a` and `b`, a link of 1 Mbit/s and 5 ms each way, and TCP flows
/// both ways.
pub(crate) fn head() -> Vec<u8> {
    let mut log = b"ABLOG\x01".to_vec();
    log.extend(b"\x01\x04name\x02ab\x07\x00\x031.0");
    log.extend(b"\x02\x01a\x04host\x00");
    log.extend(b"\x02\x01b\x00\x01");
    log.extend(3.5_f64.to_le_bytes());
    log.extend((-2.0_f64).to_le_bytes());
    for ends in [[0, 1], [1, 0]] {
        log.extend([3, ends[0], ends[1], 0, 0xc0, 0x84, 0x3d, 0xc0, 0x96, 0xb1, 0x02]);
        log.extend([4, ends[0], ends[1] + 1, 6, 80, 81]);
    }
    log
}

/// TCP data of 10 octets on the first flow, `seq` behind the packet before, which is number 1
/// behind that.
pub(crate) fn data(seq: u8) -> [u8; 9] {
    [6, 2, 0, 1, 50, 0, seq * 2, 10, 9]
}

#[test]
fn a_head_is_what_was_written() {
    let log = head();
    let mut reader = Reader::new(log.as_slice()).expect("a log");
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("whole records") {
        records.push(record);
    }
    assert_eq!(reader.ending(), Some(Ending::Cut(log.len() as u64)));
    let [Record::Run(run), Record::Node(a), Record::Node(b), Record::Link(link), Record::Flow(flow), ..] =
        records.as_slice()
    else {
        panic!("{records:?}");
    };
    assert_eq!((run.name.as_str(), run.hash.as_str(), run.seed, run.run), ("name", "ab", 7, 0));
    assert_eq!((a.name.as_str(), a.kind.as_str(), a.position), ("a", "host", None));
    assert_eq!((b.name.as_str(), b.position), ("b", Some((3.5, -2.0))));
    assert_eq!((link.over, link.rate, link.delay), (Medium::Cable, 1_000_000, 5_000_000));
    assert_eq!((flow.source, flow.destination, flow.ports), (0, Some(1), (80, 81)));
}

/// Two packets are sent. The first is lost and retransmitted, the second waits.
#[test]
fn a_packet_that_is_lost_is_repaired_by_its_copy() {
    let mut log = head();
    log.extend(data(0));
    log.extend([16, 5, 0, 2]);
    log.extend(data(10));
    log.extend([16, 0, 0, 2, 20, 0, 0, 0, 100]);
    log.extend([18, 50, 0, 2, 1]);
    log.extend([17, 60, 0, 2]);
    // Ten bytes back: the first bytes again.
    log.extend([6, 2, 0, 1, 50, 0, 19, 10, 9]);
    log.extend([16, 1, 0, 2]);
    log.extend([17, 40, 0, 2]);
    log.extend([31, 0, 7]);
    let replay = Replay::read(log.as_slice(), Part::default()).expect("a log");
    assert_eq!((replay.cut, replay.events, replay.end), (None, 8, 156));
    let again: Vec<bool> = replay.packets.iter().map(|seen| seen.again).collect();
    assert_eq!(again, [false, false, true]);
    let fates: Vec<_> = replay.flights.iter().map(|f| (f.sent, f.leaves, f.end, f.fate)).collect();
    let expected = [(5, 5, 55, Fate::Lost(1)), (5, 105, 115, Fate::Arrived), (116, 116, 156, Fate::Arrived)];
    assert_eq!(fates, expected);
    assert_eq!(replay.losses.len(), 1);
    assert_eq!((replay.losses[0].at, replay.losses[0].repair), (55, Repair::EndToEnd { at: 156 }));
    let moment = replay.at(60);
    assert_eq!((moment.queued, moment.under_way, moment.lost), (vec![1, 0], vec![0, 0], 1));
    // Nothing is on the links between the two packets; at the end all packets have arrived.
    assert_eq!(replay.at(115).under_way, [0, 0]);
    assert_eq!(replay.at(156).arrived, 2);
}

/// Bytes 0 to 10 arrive, 20 to 30, 5 to 25 and, again, 0 to 10: each byte counts once.
#[test]
fn bytes_that_arrive_again_are_not_fresh() {
    let mut log = head();
    let mut before = 0_i64;
    for (seq, len) in [(0, 10), (20, 10), (5, 20), (0, 10), (40, 10)] {
        let difference = seq - before;
        before = seq;
        log.extend([6, 2, 0, 1, 50, 0, (difference << 1 ^ difference >> 63) as u8, len, 9]);
        log.extend([16, 1, 0, 2]);
        // The last one does not arrive.
        log.extend(if seq == 40 { vec![18, 5, 0, 2, 1] } else { vec![17, 5, 0, 2] });
    }
    // A datagram of 70 bytes, on a flow of its own.
    log.extend([4, 0, 2, 17, 80, 81, 6, 2, 2, 0, 70, 0, 16, 1, 0, 2, 17, 5, 0, 2]);
    let replay = Replay::read(log.as_slice(), Part::default()).expect("a log");
    let fresh: Vec<u64> = replay.packets.iter().map(|seen| seen.fresh).collect();
    assert_eq!(fresh, [10, 10, 10, 0, 0, 70]);
    let page = anabranch_view::page::html(&replay);
    assert!(page.contains(r#""name":"packet.fresh","octets":6,"rows":6"#), "{page}");
}

/// Packets of 50 bytes at 1 Mbit/s take 400 µs each. The second begins at another rate, and a
/// failure cuts it.
#[test]
fn a_link_is_busy_while_it_transmits() {
    let mut log = head();
    log.extend(data(0));
    log.extend([16, 0, 0, 2]);
    log.extend(data(10));
    // 2 ms later; 2 Mbit/s since 1 ms.
    log.extend([25, 0xc0, 0x84, 0x3d, 4, 0, 0x80, 0x89, 0x7a]);
    log.extend([16, 0xc0, 0x84, 0x3d, 0, 2]);
    log.extend([18, 0xa0, 0x8d, 0x06, 0, 2, 2]);
    let replay = Replay::read(log.as_slice(), Part::default()).expect("a log");
    assert_eq!((replay.changes[0].value, replay.flights[1].leaves), (2_000_000, 2_000_000));
    let busy = |time| (replay.busy(0, time), replay.busy(1, time));
    assert_eq!(busy(0), (0, 0));
    assert_eq!(busy(300_000), (300_000, 0));
    assert_eq!(busy(2_000_000), (400_000, 0));
    assert_eq!(busy(2_050_000), (450_000, 0));
    // 100 µs until the failure, of 200 µs.
    assert_eq!(busy(9_000_000), (500_000, 0));
}

/// The link over the air is as busy as its frames take.
#[test]
fn a_radio_link_is_busy_while_its_frames_are_on_the_air() {
    let mut log = moving();
    // 20 ns until 100 and 30 ns until 150, the second the other way.
    log.extend([21, 30, 0, 2, 0, 1, 20, 12, 0, 0]);
    log.extend([21, 50, 1, 1, 1, 1, 30, 12]);
    let mut replay = Replay::read(log.as_slice(), Part::default()).expect("a log");
    replay.links.iter_mut().for_each(|link| link.over = Medium::Ieee802154);
    assert_eq!((replay.busy(0, 90), replay.busy(0, 200), replay.busy(1, 200)), (10, 20, 30));
}

#[track_caller]
fn damaged(octets: &[u8], expected: &str) {
    let mut log = head();
    let at = log.len() as u64;
    log.extend(octets);
    match Replay::read(log.as_slice(), Part::default()) {
        Err(LogError::Damaged { offset, what }) => assert_eq!((offset, what), (at, expected)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_that_name_nothing_are_refused() {
    damaged(&[3, 2, 0, 0, 1, 1], "a node that there is not");
    damaged(&[4, 0, 4, 6, 1, 1], "a node that there is not");
    damaged(&[6, 2, 2, 1, 50, 0, 0, 10, 9], "a flow that there is not");
    damaged(&[16, 0, 2, 0], "a link that there is not");
    damaged(&[18, 0, 0, 0, 10], "an unknown reason");
    damaged(&[25, 0, 5, 0, 0], "an unknown incident");
    damaged(&[99, 0], "an event of an unknown kind");
    damaged(&[7], "a record of an unknown kind");
    damaged(&[3, 0, 1, 3, 1, 1], "a link over nothing known");
    damaged(&[2, 1, b'c', 0, 2], "a node's place is neither there nor absent");
    damaged(&[26, 0, 0, 1, 0xff], "a text that is not UTF-8");
    damaged(&[26, 0, 0, 0x81, 0x80, 0x04], "a text of more than 65536 bytes");
    damaged(&[31, 0, 1], "it says that there were other events");
    damaged(&[16, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, 0, 0], "a time beyond all times");
    let long = [16, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02];
    damaged(&long, "a number of more than 64 bits");
}

#[test]
fn time_that_ends_in_the_middle_of_a_text_is_a_cut() {
    let mut log = head();
    let whole = log.len() as u64;
    log.extend([26, 0, 0, 200, 1, b'a', b'b']);
    let replay = Replay::read(log.as_slice(), Part::default()).expect("what is there");
    assert_eq!((replay.cut, replay.events), (Some(whole), 0));
}

/// A log of version 2: `b` moves 10 m east in 100 ns; after 50 ns it turns back to its start.
fn moving() -> Vec<u8> {
    let mut log = head();
    log[5] = 2;
    for (passed, nanos, x) in [(20, 100, 13.5_f64), (50, 50, 3.5)] {
        log.extend([27, passed, 1, nanos]);
        log.extend(x.to_le_bytes());
        log.extend((-2.0_f64).to_le_bytes());
    }
    log
}

#[test]
fn a_node_goes_straight_until_its_next_leg() {
    let mut log = moving();
    // A wake-up frame of 12 bytes from the first node to the second.
    log.extend([21, 30, 0, 2, 4, 1, 20, 12]);
    log.extend([31, 50, 3]);
    let replay = Replay::read(log.as_slice(), Part::default()).expect("a log");
    assert_eq!((replay.cut, replay.events), (None, 4));
    let place = |time| replay.place(1, time);
    for (time, at) in [(0, 3.5), (20, 3.5), (45, 6.0), (70, 8.5), (95, 6.0), (120, 3.5), (150, 3.5)] {
        assert_eq!(place(time), Some((at, -2.0)), "{time}");
    }
    assert_eq!(replay.place(0, 50), None);
    assert_eq!(replay.frames.len(), 1);
    // A part starts with the nodes where they are at that time.
    let part = Part { from: 45, ..Part::default() };
    let later = Replay::read(log.as_slice(), part).expect("a log");
    assert_eq!((later.place(1, 45), later.place(1, 95)), (Some((6.0, -2.0)), Some((6.0, -2.0))));
    let part = Part { from: 130, ..Part::default() };
    let later = Replay::read(log.as_slice(), part).expect("a log");
    assert_eq!((later.legs.len(), later.nodes[1].position), (0, Some((3.5, -2.0))));
}

#[test]
fn legs_and_wake_up_frames_are_of_version_2() {
    for record in [&moving()[head().len()..], &[21, 30, 0, 2, 4, 1, 20, 12]] {
        let mut log = head();
        log.extend(record);
        assert!(matches!(Replay::read(log.as_slice(), Part::default()), Err(LogError::Damaged { .. })));
    }
    let mut log = head();
    log[5] = 5;
    assert!(matches!(Reader::new(log.as_slice()), Err(LogError::Version(5))));
    let mut log = moving();
    let at = log.len() - 16;
    log[at..at + 8].copy_from_slice(&f64::NAN.to_le_bytes());
    assert!(matches!(Replay::read(log.as_slice(), Part::default()), Err(LogError::Damaged { .. })));
}

/// The page's data: the columns of legs, in millimetres.
#[test]
fn a_page_has_the_legs() {
    let replay = Replay::read(moving().as_slice(), Part::default()).expect("a log");
    let page = anabranch_view::page::html(&replay);
    assert!(page.contains(r#""name":"leg.start","octets":2,"rows":2"#), "{page}");
    assert!(page.contains("class Legs"));
}

/// A log of version 3: a transfer of `a` to `b` that began at 20 ns and is over at 100 ns, of which
/// three phases have ended.
fn pushed() -> Vec<u8> {
    let mut log = moving();
    log[5] = 3;
    log.extend([28, 30, 0, 1, 80, 3, 10, 0, 60]);
    log.extend([31, 0, 3]);
    log
}

#[test]
fn phases_of_transfers_are_of_version_3() {
    let mut log = pushed();
    let replay = Replay::read(log.as_slice(), Part::default()).expect("a log");
    assert_eq!((replay.cut, replay.legs.len(), replay.transfers.len()), (None, 2, 1));
    let Transfer { name, start, phases } = &replay.transfers[0];
    assert_eq!((name.as_str(), *start, phases.as_slice()), ("a → b, simulated", Some(20), &[10, 0, 60][..]));
    let page = anabranch_view::page::html(&replay);
    assert!(page.contains(r#""transfers":[["a → b, simulated",20,[10,0,60]]]"#), "{page}");
    log[5] = 2;
    assert!(matches!(Replay::read(log.as_slice(), Part::default()), Err(LogError::Damaged { .. })));
    // Seven phases, and phases that are longer than the transfer.
    let start = pushed().len() - 7;
    for (at, octet) in [(start, 7), (start + 3, 71)] {
        let mut log = pushed();
        log[at] = octet;
        assert!(matches!(Replay::read(log.as_slice(), Part::default()), Err(LogError::Damaged { .. })));
    }
}

/// A log of version 4: a flow of `a` to `b`, whose send buffer is 1000 and later 600 bytes.
fn tuned() -> Vec<u8> {
    let mut log = moving();
    log[5] = 4;
    log.extend([4, 0, 2, 6, 1, 2]);
    log.extend([29, 30, 0, 0xd0, 0x0f]);
    log.extend([29, 10, 0, 0x9f, 0x06]);
    log.extend([31, 0, 4]);
    log
}

#[test]
fn send_buffers_are_of_version_4() {
    let mut log = tuned();
    let replay = Replay::read(log.as_slice(), Part::default()).expect("a log");
    assert_eq!(replay.cut, None);
    let buffers: Vec<_> = replay.states.iter().map(|(flow, _, state)| (*flow, state.send_buffer)).collect();
    assert_eq!(buffers, [(0, 1000), (0, 600)]);
    log[5] = 3;
    assert!(matches!(Replay::read(log.as_slice(), Part::default()), Err(LogError::Damaged { .. })));
}
