//! Parameters of a transfer. All times are in seconds, rates in bit/s, sizes in bytes.

use super::error::{ModelError, not_negative, positive, within};
use super::reading::Reading;

/// A path through one gateway: a wired TCP connection followed by a wireless one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// RTT1 in seconds, between the correspondent node and the gateway, without transmission times.
    pub wired_rtt: f64,
    /// RTT2 in seconds, between the gateway and the sensor node, without transmission times.
    pub wireless_rtt: f64,
    /// R1: wired rate in bit/s.
    pub wired_rate: f64,
    /// R_g: wireless rate in bit/s.
    pub wireless_rate: f64,
    /// S1: payload of a wired segment in bytes.
    pub wired_mss: u32,
    /// S2: payload of a wireless segment in bytes.
    pub wireless_mss: u32,
    /// Bytes of headers added to each wired segment; 0 by assumption (3) of the paper.
    pub wired_overhead: u32,
    /// Bytes of headers added to each wireless segment; 0 by assumption (3) of the paper.
    pub wireless_overhead: u32,
    /// Length on the air of a segment without payload (ACK, SYN, SYN/ACK) in bytes; 0 by assumption
    /// (3) of the paper.
    pub wireless_control: u32,
    /// Number of consecutive wireless links. Each link receives a whole segment before it forwards
    /// it. The paper has one link; RTT2 includes the propagation over all of them.
    pub hops: u32,
    /// T_p: processing time of a packet at the gateway in seconds, queueing included: equation
    /// (13).
    pub processing: f64,
    /// Losses and timeouts of the establishment.
    pub handshake: Handshake,
}

impl Path {
    /// A path with these one-way delays (seconds) and wireless rate (bit/s), and otherwise the
    /// values of section 6: 100 Mbit/s wired, segments of 1296 and 81 bytes, no overhead, no
    /// losses.
    pub fn new(wired_delay: f64, wireless_delay: f64, wireless_rate: f64) -> Self {
        Self {
            wired_rtt: 2.0 * wired_delay,
            wireless_rtt: 2.0 * wireless_delay,
            wired_rate: 100e6,
            wireless_rate,
            // An 802.15.4 frame leaves at least 81 bytes for IPv6; 1296 bytes are 16 times as much
            // (S14).
            wired_mss: 1296,
            wireless_mss: 81,
            wired_overhead: 0,
            wireless_overhead: 0,
            wireless_control: 0,
            hops: 1,
            processing: 0.0,
            handshake: Handshake::default(),
        }
    }

    /// T_1: transmission time of a wired segment with its overhead, in seconds.
    pub fn wired_segment_time(&self) -> f64 {
        8.0 * (f64::from(self.wired_mss) + f64::from(self.wired_overhead)) / self.wired_rate
    }

    /// T_g: transmission time of a wireless segment with its overhead, in seconds.
    pub fn wireless_segment_time(&self) -> f64 {
        8.0 * (f64::from(self.wireless_mss) + f64::from(self.wireless_overhead)) / self.wireless_rate
    }

    /// Time in seconds until a packet of `octets` bytes has crossed all wireless links, without
    /// propagation.
    pub fn wireless_crossing(&self, octets: u32) -> f64 {
        8.0 * f64::from(octets) / self.wireless_rate * f64::from(self.hops)
    }

    /// RTT2 of segments without payload: includes their transmission times in both directions.
    pub fn wireless_control_rtt(&self) -> f64 {
        self.wireless_rtt + 2.0 * self.wireless_crossing(self.wireless_control)
    }

    /// Additional time of a segment in seconds, beyond its own `T_g`, because each further link
    /// receives it whole (0 for one hop).
    pub fn relaying(&self) -> f64 {
        self.wireless_segment_time() * f64::from(self.hops.saturating_sub(1))
    }

    /// Time in seconds from a code-update request until the node's answer, if both travel over a
    /// new TCP connection that this (default) gateway routes: one round trip for the handshake, one
    /// for the request. For [`Transfer::request`].
    pub fn request_time(&self) -> f64 {
        2.0 * (self.wired_rtt + self.wireless_rtt)
    }

    /// As [`Path::request_time`], including transmission times: a SYN and a SYN/ACK, the last ACK
    /// directly followed by the packet of the `request`, and the packet of the `answer`. Both sizes
    /// are in bytes and include headers.
    pub fn request_time_of(&self, request: u32, answer: u32) -> f64 {
        let behind = self.wireless_control + request;
        self.request_time()
            + 2.0 * self.wireless_crossing(self.wireless_control)
            + self.wireless_crossing(behind)
            + self.wireless_crossing(answer)
    }

    /// Checks the parameters of the path.
    ///
    /// # Errors
    /// The first quantity outside its range.
    pub fn check(&self) -> Result<(), ModelError> {
        not_negative("the wired round-trip time", self.wired_rtt)?;
        not_negative("the wireless round-trip time", self.wireless_rtt)?;
        positive("the wired rate", self.wired_rate)?;
        positive("the wireless rate", self.wireless_rate)?;
        positive("the wired segment size", f64::from(self.wired_mss))?;
        positive("the wireless segment size", f64::from(self.wireless_mss))?;
        positive("the number of wireless hops", f64::from(self.hops))?;
        not_negative("the processing delay", self.processing)?;
        not_negative("the wired handshake time-out", self.handshake.wired_timeout)?;
        not_negative("the wireless handshake time-out", self.handshake.wireless_timeout)?;
        not_negative("the SETACK time-out", self.handshake.set_timeout)?;
        Ok(())
    }
}

/// Timeouts and losses during the establishment of one session, equations (1) to (3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Handshake {
    /// t_1: timeout of the wired SYN and SYN/ACK in seconds.
    pub wired_timeout: f64,
    /// t_2: timeout of the wireless SYN and SYN/ACK in seconds.
    pub wireless_timeout: f64,
    /// t_SET: timeout of SETSYN and SETACK in seconds.
    pub set_timeout: f64,
    /// Number of losses of each message.
    pub losses: HandshakeLosses,
}

impl Default for Handshake {
    /// Timeouts of three seconds (the paper gives none), no losses.
    fn default() -> Self {
        Self {
            wired_timeout: 3.0,
            wireless_timeout: 3.0,
            set_timeout: 3.0,
            losses: HandshakeLosses::default(),
        }
    }
}

/// Number of consecutive losses of each message of the establishment; a to g in the paper. Every
/// loss doubles the timeout of that message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandshakeLosses {
    /// a: the wired SYN.
    pub wired_syn: u32,
    /// b: the wired SYN/ACK.
    pub wired_syn_ack: u32,
    /// c: the wired ACK, which carries SETSYN.
    pub wired_ack: u32,
    /// d: the wireless SYN.
    pub wireless_syn: u32,
    /// e: the wireless SYN/ACK.
    pub wireless_syn_ack: u32,
    /// f: the wireless ACK, counted as if a timer retransmitted it (S17).
    pub wireless_ack: u32,
    /// g: SETACK.
    pub set_ack: u32,
}

/// Growth of a TCP window, in segments. Both connections of a path use the same values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// W_0: initial window; at least 1.
    pub initial: f64,
    /// W_sst: slow-start threshold; infinite for none. A value above W_max counts as W_max.
    pub ssthresh: f64,
    /// W_max: largest window.
    pub max: f64,
    /// s: segments per ACK; at least 1.
    pub segments_per_ack: u32,
}

impl Default for Window {
    /// Initial window of one segment, slow start up to the limit of 64, one ACK for every second
    /// segment.
    fn default() -> Self {
        Self { initial: 1.0, ssthresh: f64::INFINITY, max: 64.0, segments_per_ack: 2 }
    }
}

impl Window {
    /// r = 1 + 1/s: growth factor of a window in slow start.
    pub fn growth(&self) -> f64 {
        1.0 + 1.0 / f64::from(self.segments_per_ack)
    }

    /// The effective slow-start threshold: min(W_sst, W_max).
    pub fn threshold(&self) -> f64 {
        self.ssthresh.min(self.max)
    }

    /// Checks the window: `1 <= W_0 <= W_sst`, `W_0 <= W_max`, `s >= 1`.
    ///
    /// # Errors
    /// The first quantity outside its range.
    pub fn check(&self) -> Result<(), ModelError> {
        positive("the number of segments per ACK", f64::from(self.segments_per_ack))?;
        within("the largest window (segments)", self.max, 1.0, f64::MAX)?;
        within("the initial window (segments)", self.initial, 1.0, self.max)?;
        within("the slow-start threshold (segments)", self.ssthresh, self.initial, f64::INFINITY)?;
        Ok(())
    }
}

/// How the file is divided among sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Striping {
    /// Sessions take segments as they can send them, so that all end at about the same time.
    #[default]
    Dynamic,
    /// Every session carries the same number of bytes, regardless of when it starts.
    Equal,
}

/// Limits of the data given to a session before its path is known. The paper's striping fills
/// windows and does not probe; this project's striping limits the bytes at risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probing {
    /// Bytes for the first session, which opens first and takes them immediately.
    pub first: u64,
    /// Bytes for each other session; more follow after the node has acknowledged these.
    pub others: u64,
}

/// A file transfer to one node through one or more gateways.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// O: size of the file in bytes (the paper's O is in bits).
    pub octets: u64,
    /// The paths in the order in which their sessions are set up.
    pub gateways: Vec<Path>,
    /// The windows of every TCP connection.
    pub window: Window,
    /// B_2: receive buffer of the node for all sessions together in bytes; `None` if it is never a
    /// limit.
    pub node_buffer: Option<f64>,
    /// F: out-of-order factor at the node, 0 to 1.
    pub disorder: f64,
    /// Time in seconds from the request until the node's answer with its gateways; the paper
    /// ignores it. [`Path::request_time`] computes that of the protocol.
    pub request: f64,
    /// How the file is divided.
    pub striping: Striping,
    /// Limits for unknown paths with dynamic striping; `None` for no limit.
    pub probing: Option<Probing>,
    /// The form of the equations.
    pub reading: Reading,
}

impl Transfer {
    /// A transfer of `octets` bytes through `gateways`, with defaults for what the paper leaves
    /// open: no request time, no limit by the node's buffer, dynamic striping, corrected equations.
    pub fn new(octets: u64, gateways: Vec<Path>) -> Self {
        Self {
            octets,
            gateways,
            window: Window::default(),
            node_buffer: None,
            disorder: 0.0,
            request: 0.0,
            striping: Striping::default(),
            probing: None,
            reading: Reading::default(),
        }
    }

    /// Checks all parameters.
    ///
    /// # Errors
    /// [`ModelError::NoGateways`], or the first quantity outside its range.
    pub fn check(&self) -> Result<(), ModelError> {
        if self.gateways.is_empty() {
            return Err(ModelError::NoGateways);
        }
        self.gateways.iter().try_for_each(Path::check)?;
        self.window.check()?;
        if let Some(buffer) = self.node_buffer {
            positive("the node's buffer", buffer)?;
        }
        within("the out-of-order factor", self.disorder, 0.0, 1.0)?;
        not_negative("the request time", self.request)?;
        Ok(())
    }
}
