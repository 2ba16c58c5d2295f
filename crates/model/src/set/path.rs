//! Equations (10) and (11): one share of the file through one gateway.

use super::parameters::{Path, Transfer};
use super::reading::{BufferShare, TransmissionCount, WiredStage, WiredWindow};
use super::windows::{Flight, Windows, ack_time};

/// The terms of equation (10) for one path in seconds. Their sum is L_DT.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parts {
    /// `T_1 + RTT1/2 + T_p`: the first wired segment reaches the gateway and is processed.
    pub first_segment: f64,
    /// `m_2 T_g`: the gateway transmits.
    pub transmission: f64,
    /// The gateway waits for ACKs between windows, and for the data that follows the probe.
    pub stall: f64,
    /// Additional time if the wired stage is slower than the wireless one (S7); 0 in the paper.
    pub wired_limit: f64,
    /// `RTT2/2`, and the time of the last segment on further links: it reaches the node.
    pub last_segment: f64,
}

impl Parts {
    /// L_DT in seconds, equation (10).
    pub fn total(&self) -> f64 {
        self.first_segment + self.transmission + self.stall + self.wired_limit + self.last_segment
    }
}

/// A path of a transfer with all values that do not depend on its share.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane<'a> {
    path: &'a Path,
    transfer: &'a Transfer,
    wired: Windows,
    wireless: Windows,
    /// Number of segments after which this session waits for the node's first acknowledgement.
    probe: Option<u64>,
}

impl<'a> Lane<'a> {
    /// `path` as one of `sessions` that share the node's buffer. The transfer must have passed
    /// [`Transfer::check`]. `None` if the gateway would advertise a window of zero to the wired
    /// side (S14).
    pub fn new(transfer: &'a Transfer, path: &'a Path, sessions: usize) -> Option<Self> {
        let receive = receive_window(transfer, path, sessions);
        let wired = wired_window(receive, path, transfer.reading.wired_window);
        let windows = |receive| {
            Windows::new(transfer.window, receive, transfer.reading.avoidance, transfer.reading.growth)
        };
        (wired > 0.0).then(|| Self {
            path,
            transfer,
            wired: windows(wired),
            wireless: windows(receive),
            probe: None,
        })
    }

    /// Makes the session carry `octets` bytes first, and the rest after the node has acknowledged
    /// them.
    #[must_use]
    pub fn probed(self, octets: u64) -> Self {
        Self { probe: Some(octets.div_ceil(u64::from(self.path.wireless_mss))), ..self }
    }

    /// m_1: number of wired segments for `segments` wireless segments.
    pub fn wired_segments(&self, segments: u64) -> u64 {
        let octets = u128::from(segments) * u128::from(self.path.wireless_mss);
        octets.div_ceil(u128::from(self.path.wired_mss)) as u64
    }

    /// K_1, equation (6), and the stalls of the wired sender.
    pub fn wired_flight(&self, segments: u64) -> Flight {
        let (time, ack) = self.wired_times();
        self.wired.flight(self.wired_segments(segments), time, ack)
    }

    /// K_2, equation (7), and the stalls of the gateway.
    pub fn wireless_flight(&self, segments: u64) -> Flight {
        let time = self.path.wireless_segment_time();
        // On further links, a segment and its ACK need their transmission times again.
        let rtt = self.path.wireless_rtt
            + self.path.relaying()
            + self.path.wireless_crossing(self.path.wireless_control);
        let ack = ack_time(&self.transfer.window, time, rtt, self.transfer.reading.ack_time);
        self.wireless.flight(segments, time, ack)
    }

    /// Equation (10) for a share of `segments` wireless segments; all zero for no segments.
    pub fn parts(&self, segments: u64) -> Parts {
        if segments == 0 {
            return Parts::default();
        }
        let path = self.path;
        let counted = match self.transfer.reading.transmission {
            TransmissionCount::Wireless => segments,
            TransmissionCount::Wired => self.wired_segments(segments),
        };
        let mut parts = Parts {
            first_segment: path.wired_segment_time() + path.wired_rtt / 2.0 + path.processing,
            transmission: counted as f64 * path.wireless_segment_time(),
            stall: self.wireless_flight(segments).stall + self.probing(segments),
            wired_limit: 0.0,
            last_segment: path.wireless_rtt / 2.0 + path.relaying(),
        };
        if self.transfer.reading.wired_stage == WiredStage::MayLimit {
            parts.wired_limit = (self.wired_stage(segments) - parts.total()).max(0.0);
        }
        parts
    }

    /// Time in seconds that the gateway idles while the node's first acknowledgement travels to the
    /// correspondent node and the next wired segment arrives: both round trips.
    fn probing(&self, segments: u64) -> f64 {
        match self.probe {
            Some(probe) if segments > probe => {
                let acknowledged = self.path.wireless_crossing(self.path.wireless_control);
                let last = self.path.relaying();
                self.path.wireless_rtt + self.path.wired_rtt + last + acknowledged + self.wired_times().0
            }
            Some(_) | None => 0.0,
        }
    }

    /// Time in seconds until the share is delivered if only the wire limits the gateway, not ACKs:
    /// each wired segment must have arrived before its content can follow the rest.
    fn wired_stage(&self, segments: u64) -> f64 {
        let path = self.path;
        let count = self.wired_segments(segments);
        let (time, ack) = self.wired_times();
        let each = f64::from(path.wired_mss) / f64::from(path.wireless_mss) * path.wireless_segment_time();
        // The last wired segment may be partly filled; the missing part is not transmitted.
        let missing = count as f64 * each - segments as f64 * path.wireless_segment_time();
        self.wired.relayed(count, time, ack, each) - missing
            + path.wired_rtt / 2.0
            + path.processing
            + path.wireless_rtt / 2.0
            + path.relaying()
    }

    /// T_1 and the wired T_ACK in seconds.
    fn wired_times(&self) -> (f64, f64) {
        let time = self.path.wired_segment_time();
        (time, ack_time(&self.transfer.window, time, self.path.wired_rtt, self.transfer.reading.ack_time))
    }
}

/// W_receive of one session in wireless segments: the node's buffer shared by `sessions` (S9), at
/// least one segment in the default reading; infinite without a buffer limit.
pub fn receive_window(transfer: &Transfer, path: &Path, sessions: usize) -> f64 {
    let Some(buffer) = transfer.node_buffer else { return f64::INFINITY };
    let share = buffer / sessions as f64 / f64::from(path.wireless_mss);
    match transfer.reading.buffer_share {
        BufferShare::DisorderShrinks => (share / (1.0 + transfer.disorder)).max(1.0),
        BufferShare::LeftToRight => share * (1.0 + transfer.disorder),
    }
}

/// A receive window of `receive` wireless segments as the gateway advertises it, in wired segments
/// (section 4.6, S8 and S14). Zero means that the wired side can never send.
pub fn wired_window(receive: f64, path: &Path, reading: WiredWindow) -> f64 {
    let translated = receive * f64::from(path.wireless_mss) / f64::from(path.wired_mss);
    match reading {
        WiredWindow::SameOctets => translated.max(1.0),
        WiredWindow::SameCount => receive,
        WiredWindow::WholeSegments => translated.floor(),
    }
}
