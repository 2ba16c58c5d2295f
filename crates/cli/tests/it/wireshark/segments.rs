//! Captures of TCP streams, written byte by byte without code of this workspace that could share a
//! fault.

/// From the sender to the node or gateway, or back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Down,
    Up,
}

/// A capture of raw IPv4 packets, in the first pcap format.
pub(crate) struct Segments {
    pub(crate) pcap: Vec<u8>,
    packets: u32,
    ports: u16,
}

/// A connection in the capture.
pub(crate) struct Stream {
    client: u16,
    server: u16,
    /// Number of bytes so far, down and up.
    sent: [u32; 2],
}

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;
const FIN: u8 = 0x01;

impl Segments {
    pub(crate) fn new() -> Self {
        let mut pcap = Vec::new();
        // Magic, version 2.4, zone, accuracy, snapshot length, LINKTYPE_RAW.
        for word in [0xa1b2_c3d4, 2 << 16 | 4, 0, 0, 0x4_0000, 101_u32] {
            pcap.extend(word.to_be_bytes());
        }
        Self { pcap, packets: 0, ports: 40_000 }
    }

    /// Adds an open connection to this port.
    pub(crate) fn stream(&mut self, server: u16) -> Stream {
        self.ports += 1;
        let mut stream = Stream { client: self.ports, server, sent: [0, 0] };
        self.segment(&mut stream, Way::Down, SYN, &[]);
        self.segment(&mut stream, Way::Up, SYN | ACK, &[]);
        stream
    }

    /// Adds bytes in one segment.
    pub(crate) fn say(&mut self, stream: &mut Stream, way: Way, octets: &[u8]) {
        self.segment(stream, way, ACK | PSH, octets);
    }

    /// Adds bytes in segments of this size.
    pub(crate) fn say_in_pieces(&mut self, stream: &mut Stream, way: Way, octets: &[u8], size: usize) {
        octets.chunks(size).for_each(|piece| self.say(stream, way, piece));
    }

    /// Ends one direction.
    pub(crate) fn close(&mut self, stream: &mut Stream, way: Way) {
        self.segment(stream, way, ACK | FIN, &[]);
    }

    fn segment(&mut self, stream: &mut Stream, way: Way, flags: u8, payload: &[u8]) {
        let addresses = [[10, 0, 0, 1_u8], [10, 0, 0, 2]];
        let (mine, ports, ips) = match way {
            Way::Down => (0, [stream.client, stream.server], addresses),
            Way::Up => (1, [stream.server, stream.client], [addresses[1], addresses[0]]),
        };
        let mut tcp: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        tcp.extend(stream.sent[mine].to_be_bytes());
        let heard = if flags & ACK == 0 { 0 } else { stream.sent[1 - mine] };
        tcp.extend(heard.to_be_bytes());
        tcp.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(payload);
        let length = tcp.len() as u16;
        let pseudo = [&ips.concat()[..], &[0, 6], &length.to_be_bytes(), &tcp].concat();
        tcp[16..18].copy_from_slice(&checksum(&pseudo).to_be_bytes());
        let mut ip = vec![0x45, 0];
        ip.extend((20 + length).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        ip.extend(ips.concat());
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let octets = (ip.len() + tcp.len()) as u32;
        for word in [self.packets, 0, octets, octets] {
            self.pcap.extend(word.to_be_bytes());
        }
        self.pcap.extend(ip);
        self.pcap.extend(tcp);
        self.packets += 1;
        stream.sent[mine] += payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
    }
}

/// Checksum (RFC 1071).
fn checksum(octets: &[u8]) -> u16 {
    let words = octets.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c.get(1).copied().unwrap_or(0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
