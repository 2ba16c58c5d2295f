//! TCP endpoints that exchange IP packets.

use std::net::IpAddr;

use anabranch_core::segment::{Flags, Segment, SeqNumber};
use anabranch_core::tcp::{Config, Connection};
use anabranch_core::time::Instant;
use anabranch_wire::ip::{self, Header, Protocol};
use bytes::Bytes;

/// An end of a connection that sends or receives one file.
#[derive(Debug)]
pub(crate) struct End {
    connection: Option<Connection>,
    addresses: [IpAddr; 2],
    /// Data to write.
    outbox: Bytes,
    closes: bool,
    /// Data read.
    pub(crate) inbox: Vec<u8>,
    highest: SeqNumber,
    /// Number of segments with data, and of those that were sent before.
    pub(crate) sent: u32,
    pub(crate) repeated: u32,
}

/// Largest payload of a segment in bytes.
pub(crate) const MSS: u16 = 100;

fn config() -> Config {
    // Without caches a chain loses many segments in a row.
    Config { mss: MSS, default_mss: MSS, syn_retries: 50, data_retries: 50, ..Config::default() }
}

impl End {
    /// The end with `addresses[0]`, which connects and sends `file`.
    pub(crate) fn sender(addresses: [IpAddr; 2], file: Bytes) -> Self {
        let connection = Connection::connect(Instant::ZERO, config(), 4000, 80, SeqNumber(u32::MAX - 999));
        Self { connection: Some(connection), outbox: file, closes: true, ..Self::receiver(addresses) }
    }

    /// The end with `addresses[0]`, which accepts.
    pub(crate) fn receiver(addresses: [IpAddr; 2]) -> Self {
        Self {
            connection: None,
            addresses,
            outbox: Bytes::new(),
            closes: false,
            inbox: Vec::new(),
            highest: SeqNumber(u32::MAX - 999),
            sent: 0,
            repeated: 0,
        }
    }

    /// True if the other end has acknowledged all data.
    pub(crate) fn is_done(&self) -> bool {
        let connection = self.connection.as_ref();
        self.outbox.is_empty() && connection.is_some_and(|connection| connection.info().buffered == 0)
    }

    /// Handles a packet, which must be valid and for this end.
    pub(crate) fn receive(&mut self, now: Instant, packet: &[u8]) {
        let (header, range) = ip::parse(packet).expect("a packet");
        assert_eq!([header.dst, header.src], self.addresses);
        let segment = ip::parse_tcp(&header, Bytes::copy_from_slice(&packet[range])).expect("a segment");
        match &mut self.connection {
            Some(connection) => connection.handle_segment(now, segment),
            None => self.connection = Connection::accept(now, config(), &segment, SeqNumber(5000)),
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.connection.as_ref()?.next_timeout()
    }

    /// Handles expired timers.
    pub(crate) fn timeout(&mut self, now: Instant) {
        if let Some(connection) = &mut self.connection
            && connection.next_timeout().is_some_and(|at| at <= now)
        {
            connection.handle_timeout(now);
        }
    }

    /// The next packet to send.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        let connection = self.connection.as_mut()?;
        while !self.outbox.is_empty() && connection.write(&mut self.outbox).is_ok_and(|n| n > 0) {}
        if self.closes && self.outbox.is_empty() {
            self.closes = false;
            connection.close(now);
        }
        while let Some(data) = connection.read(usize::MAX) {
            self.inbox.extend_from_slice(&data);
        }
        while connection.poll_event().is_some() {}
        let segment = connection.poll_transmit(now)?;
        self.count(&segment);
        let mut packet = Vec::new();
        let header = Header::new(self.addresses[0], self.addresses[1], Protocol::TCP);
        ip::emit_tcp(&header, &segment, &mut packet).expect("a short packet");
        Some(packet)
    }

    fn count(&mut self, segment: &Segment) {
        if segment.seq_len() > 0 && !segment.flags.contains(Flags::RST) {
            self.sent += 1;
            self.repeated += u32::from(segment.seq_end().le(self.highest));
            self.highest = self.highest.max(segment.seq_end());
        }
    }
}

/// Addresses of both ends, of either family.
pub(crate) fn addresses(version: u8) -> [IpAddr; 2] {
    let texts = if version == 4 { ["192.0.2.1", "198.51.100.2"] } else { ["fd00::1", "fd00::2"] };
    texts.map(|text| text.parse().expect("an address"))
}

/// A file of `n` bytes.
pub(crate) fn file(n: usize) -> Bytes {
    (0..n as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}
