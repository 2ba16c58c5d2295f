//! The kernel's statistics of a TCP connection (TCP_INFO; `struct tcp_info` of linux/tcp.h).
//!
//! The structure grows with new kernels, always at its end. Fields that an older kernel lacks are
//! `None`; fields that are newer than this module are not read.

use std::io;
use std::os::fd::AsFd;

use anabranch_core::time::Duration;

use crate::os;

/// State of a connection (net/tcp_states.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Data may flow both ways.
    Established,
    /// Our SYN is sent.
    SynSent,
    /// The peer's SYN is received.
    SynReceived,
    /// We have closed and wait for an acknowledgement.
    FinWait1,
    /// We have closed and wait for the peer to close.
    FinWait2,
    /// Both have closed.
    TimeWait,
    /// No connection.
    Closed,
    /// The peer has closed.
    CloseWait,
    /// Both have closed, and we wait for an acknowledgement.
    LastAck,
    /// Waits for incoming connections.
    Listen,
    /// Both have closed simultaneously.
    Closing,
    /// A state added by a newer kernel.
    Other(u8),
}

/// Statistics of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpInfo {
    /// Connection state.
    pub state: State,
    /// Largest payload of a sent segment in bytes.
    pub snd_mss: u32,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// Slow-start threshold in segments; `None` before the first slow start has ended.
    pub snd_ssthresh: Option<u32>,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Of these, segments that the peer has selectively acknowledged.
    pub sacked: u32,
    /// Of these, segments that are considered lost.
    pub lost: u32,
    /// Segments retransmitted and not acknowledged.
    pub retrans: u32,
    /// Smoothed round-trip time; `None` before the first sample.
    pub rtt: Option<Duration>,
    /// Bytes per round trip for which the receive buffer is tuned.
    pub rcv_space: u32,
    /// Total number of retransmitted segments.
    pub total_retrans: u32,
    /// Number of bytes acknowledged by the peer; since Linux 4.1.
    pub bytes_acked: Option<u64>,
    /// Number of bytes received; since Linux 4.1.
    pub bytes_received: Option<u64>,
    /// Number of bytes written and not sent; since Linux 4.6.
    pub notsent_bytes: Option<u32>,
    /// Smallest round-trip time of the last `net.ipv4.tcp_min_rtt_wlen` seconds (300); since Linux
    /// 4.6; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Recent delivery rate in bit/s; since Linux 4.9; `None` before it was measured.
    pub delivery_rate: Option<f64>,
    /// True if the delivery rate was limited by the application, not by the path; it is then a
    /// lower bound.
    pub app_limited: bool,
    /// Time that the connection waited for room in its send buffer; since Linux 4.10.
    pub sndbuf_limited: Option<Duration>,
    /// Time that the connection waited for the peer's window; since Linux 4.10.
    pub rwnd_limited: Option<Duration>,
    /// Window advertised by the peer in bytes; since Linux 5.4.
    pub snd_wnd: Option<u32>,
}

impl TcpInfo {
    /// Reads the statistics of a connection.
    ///
    /// # Errors
    /// The descriptor is not a TCP socket, or the kernel returns less than any known version
    /// (`InvalidData`).
    pub fn read(socket: impl AsFd) -> io::Result<Self> {
        let mut octets = [0; LEN];
        let len = os::read(socket.as_fd(), (libc::IPPROTO_TCP, libc::TCP_INFO), &mut octets)?;
        Self::parse(&octets[..len]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Parses the kernel's structure; `None` if it is shorter than that of Linux 2.6. Newer fields
    /// are ignored.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let u8 = |at: usize| octets.get(at).copied();
        let u32 = |at: usize| Some(u32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?));
        let u64 = |at: usize| Some(u64::from_ne_bytes(octets.get(at..at + 8)?.try_into().ok()?));
        let span = |micros: u32| Duration::from_micros(u64::from(micros));
        let total_retrans = u32(100)?;
        Some(Self {
            state: State::from_number(u8(0)?),
            snd_mss: u32(16)?,
            unacked: u32(24)?,
            sacked: u32(28)?,
            lost: u32(32)?,
            retrans: u32(36)?,
            rtt: u32(68).filter(|rtt| *rtt != 0).map(span),
            // The value before slow start has ended: TCP_INFINITE_SSTHRESH.
            snd_ssthresh: u32(76).filter(|segments| *segments < 0x7fff_ffff),
            snd_cwnd: u32(80)?,
            rcv_space: u32(96)?,
            total_retrans,
            bytes_acked: u64(120),
            bytes_received: u64(128),
            notsent_bytes: u32(144),
            min_rtt: u32(148).filter(|rtt| *rtt != 0 && *rtt != u32::MAX).map(span),
            // The kernel counts bytes per second.
            delivery_rate: u64(160).filter(|rate| *rate != 0).map(|rate| rate as f64 * 8.0),
            app_limited: u8(7)? & 1 != 0,
            rwnd_limited: u64(176).map(long_span),
            sndbuf_limited: u64(184).map(long_span),
            snd_wnd: u32(228),
        })
    }

    /// Number of segments in flight, which the kernel compares with the congestion window
    /// (`tcp_packets_in_flight`).
    pub fn in_flight(&self) -> u32 {
        let gone = self.sacked.saturating_add(self.lost);
        self.unacked.saturating_sub(gone).saturating_add(self.retrans)
    }

    /// Congestion window in bytes.
    pub fn window(&self) -> u64 {
        u64::from(self.snd_cwnd) * u64::from(self.snd_mss)
    }
}

impl State {
    fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Established,
            2 => Self::SynSent,
            3 | 12 => Self::SynReceived,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 => Self::Closed,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listen,
            11 => Self::Closing,
            other => Self::Other(other),
        }
    }
}

fn long_span(micros: u64) -> Duration {
    Duration::from_micros(micros.min(u64::MAX / 1000))
}

/// Bytes up to and including `tcpi_snd_wnd`.
const LEN: usize = 232;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn a_connection_stands_as_it_was_used() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(TcpInfo::read(&listener).unwrap().state, State::Listen);
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[1; 5000]).unwrap();
        receiver.read_exact(&mut [0; 5000]).unwrap();
        // The answer acknowledges all data.
        receiver.write_all(&[2]).unwrap();
        sender.read_exact(&mut [0]).unwrap();
        let info = TcpInfo::read(&sender).unwrap();
        assert_eq!(
            (info.state, info.unacked, info.bytes_received),
            (State::Established, 0, Some(1)),
            "{info:?}"
        );
        // Linux counts the SYN.
        assert!(matches!(info.bytes_acked, Some(5000 | 5001)), "{info:?}");
        assert!(info.snd_mss >= 536 && info.window() >= u64::from(info.snd_mss), "{info:?}");
        assert!(info.rtt.is_some() && info.min_rtt.is_some(), "{info:?}");
        assert!(info.delivery_rate.is_some_and(|rate| rate > 0.0) && info.app_limited, "{info:?}");
        drop(receiver);
        assert_eq!(sender.read(&mut [0]).unwrap(), 0);
        assert_eq!(TcpInfo::read(&sender).unwrap().state, State::CloseWait);
    }

    #[test]
    fn what_an_old_kernel_does_not_say_is_not_there() {
        let mut octets = [0; LEN];
        octets[0] = 1;
        octets[16..20].copy_from_slice(&1448_u32.to_ne_bytes());
        octets[80..84].copy_from_slice(&10_u32.to_ne_bytes());
        // tcpi_unacked, _sacked, _lost and _retrans.
        for (at, segments) in [(24, 9_u32), (28, 3), (32, 2), (36, 1)] {
            octets[at..at + 4].copy_from_slice(&segments.to_ne_bytes());
        }
        octets[120..128].copy_from_slice(&77_u64.to_ne_bytes());
        octets[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        octets[160..168].copy_from_slice(&1000_u64.to_ne_bytes());
        octets[228..232].copy_from_slice(&65_535_u32.to_ne_bytes());
        let new = TcpInfo::parse(&octets).unwrap();
        assert_eq!((new.window(), new.bytes_acked, new.snd_wnd), (14_480, Some(77), Some(65_535)));
        assert_eq!(new.in_flight(), 5);
        assert_eq!((new.min_rtt, new.rtt, new.delivery_rate), (None, None, Some(8000.0)));
        // Linux 4.9, Linux 2.6, and a length that no version has.
        let middle = TcpInfo::parse(&octets[..168]).unwrap();
        assert_eq!(middle, TcpInfo { snd_wnd: None, rwnd_limited: None, sndbuf_limited: None, ..new });
        let old = TcpInfo::parse(&octets[..104]).unwrap();
        assert_eq!((old.window(), old.bytes_acked, old.min_rtt), (14_480, None, None));
        for len in 0..104 {
            assert_eq!(TcpInfo::parse(&octets[..len]), None, "{len}");
        }
        // A partially present field.
        assert_eq!(TcpInfo::parse(&octets[..167]).unwrap().delivery_rate, None);
    }

    #[test]
    fn what_is_not_tcp_has_no_such_state() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(TcpInfo::read(&udp).is_err());
    }
}
