//! What a transfer is made of. All times are seconds, rates bit/s, sizes bytes.

use super::error::{ModelError, not_negative, positive, within};
use super::reading::Reading;

/// One way through one gateway: a wired TCP connection, then a wireless one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// RTT1, seconds, between the correspondent node and the gateway, without transmission times.
    pub wired_rtt: f64,
    /// RTT2, seconds, between the gateway and the sensor node, without transmission times.
    pub wireless_rtt: f64,
    /// R1, bit/s.
    pub wired_rate: f64,
    /// R_g, bit/s.
    pub wireless_rate: f64,
    /// S1, bytes of payload in a wired segment.
    pub wired_mss: u32,
    /// S2, bytes of payload in a wireless segment.
    pub wireless_mss: u32,
    /// What headers add to each wired segment on the wire, bytes; the paper's assumption (3) says 0.
    pub wired_overhead: u32,
    /// What headers add to each wireless segment on the air, bytes; the paper's assumption (3)
    /// says 0.
    pub wireless_overhead: u32,
    /// Bytes of a segment without payload on the air (ACK, SYN, SYN/ACK); the paper's assumption
    /// (3) says 0.
    pub wireless_control: u32,
    /// Wireless links in a row. Each takes a segment whole before it passes it on; the paper has
    /// one, and RTT2 contains the propagation over all of them.
    pub hops: u32,
    /// T_p, seconds that the gateway needs for a packet, queueing included: equation (13).
    pub processing: f64,
    /// Losses and time-outs of the establishment.
    pub handshake: Handshake,
}

impl Path {
    /// A path with the given one-way delays (seconds) and wireless rate (bit/s) and otherwise the
    /// values of section 6: 100 Mbit/s wired, 1296 and 81 bytes a segment, no overhead, nothing
    /// lost.
    pub fn new(wired_delay: f64, wireless_delay: f64, wireless_rate: f64) -> Self {
        Self {
            wired_rtt: 2.0 * wired_delay,
            wireless_rtt: 2.0 * wireless_delay,
            wired_rate: 100e6,
            wireless_rate,
            // 81 bytes are what an 802.15.4 frame leaves for IPv6 at worst; 1296 are 16 of them
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

    /// T_1, seconds to transmit one wired segment with its overhead.
    pub fn wired_segment_time(&self) -> f64 {
        8.0 * (f64::from(self.wired_mss) + f64::from(self.wired_overhead)) / self.wired_rate
    }

    /// T_g, seconds to transmit one wireless segment with its overhead.
    pub fn wireless_segment_time(&self) -> f64 {
        8.0 * (f64::from(self.wireless_mss) + f64::from(self.wireless_overhead)) / self.wireless_rate
    }

    /// Seconds until `octets` sent in one packet have crossed all wireless links, propagation
    /// apart.
    pub fn wireless_crossing(&self, octets: u32) -> f64 {
        8.0 * f64::from(octets) / self.wireless_rate * f64::from(self.hops)
    }

    /// RTT2 as segments without payload see it: with their own time on the air, both ways.
    pub fn wireless_control_rtt(&self) -> f64 {
        self.wireless_rtt + 2.0 * self.wireless_crossing(self.wireless_control)
    }

    /// Seconds that a segment needs beyond its own `T_g` because further links take it whole (0 for
    /// one hop).
    pub fn relaying(&self) -> f64 {
        self.wireless_segment_time() * f64::from(self.hops.saturating_sub(1))
    }

    /// Seconds from a code-update request until the node's answer when both travel through this
    /// (default) gateway as a router over a fresh TCP connection: one round trip for the handshake,
    /// one for the question. For [`Transfer::request`].
    pub fn request_time(&self) -> f64 {
        2.0 * (self.wired_rtt + self.wireless_rtt)
    }

    /// [`Path::request_time`] with the time on the air: a SYN and a SYN/ACK, the last ACK with the
    /// `request`'s packet right behind it, the `answer`'s packet; both sizes in bytes with
    /// headers.
    pub fn request_time_of(&self, request: u32, answer: u32) -> f64 {
        let behind = self.wireless_control + request;
        self.request_time()
            + 2.0 * self.wireless_crossing(self.wireless_control)
            + self.wireless_crossing(behind)
            + self.wireless_crossing(answer)
    }

    /// The path's own sanity.
    ///
    /// # Errors
    /// The first quantity that is not what its definition asks for.
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

/// Time-outs and losses of one session's establishment, equations (1) to (3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Handshake {
    /// t_1, seconds: time-out of the wired SYN and SYN/ACK.
    pub wired_timeout: f64,
    /// t_2, seconds: time-out of the wireless SYN and SYN/ACK.
    pub wireless_timeout: f64,
    /// t_SET, seconds: time-out of SETSYN and SETACK.
    pub set_timeout: f64,
    /// How often each message is lost before it arrives.
    pub losses: HandshakeLosses,
}

impl Default for Handshake {
    /// Three seconds each (the paper is silent), nothing lost.
    fn default() -> Self {
        Self {
            wired_timeout: 3.0,
            wireless_timeout: 3.0,
            set_timeout: 3.0,
            losses: HandshakeLosses::default(),
        }
    }
}

/// How often each message of the establishment is lost in a row; the paper's a to g. Every loss
/// doubles that message's time-out.
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
    /// f: the wireless ACK, counted as if it were sent again by a timer (S17).
    pub wireless_ack: u32,
    /// g: SETACK.
    pub set_ack: u32,
}

/// How a TCP window grows, in segments. Both connections of a path have the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// W_0, the initial window; at least 1.
    pub initial: f64,
    /// W_sst, the slow-start threshold; infinite for none. Counts as W_max where it is larger.
    pub ssthresh: f64,
    /// W_max, the largest window.
    pub max: f64,
    /// s, segments per ACK; at least 1.
    pub segments_per_ack: u32,
}

impl Default for Window {
    /// One segment at first, slow start up to the limit of 64, an ACK for every second segment.
    fn default() -> Self {
        Self { initial: 1.0, ssthresh: f64::INFINITY, max: 64.0, segments_per_ack: 2 }
    }
}

impl Window {
    /// r = 1 + 1/s, by which a window grows in slow start.
    pub fn growth(&self) -> f64 {
        1.0 + 1.0 / f64::from(self.segments_per_ack)
    }

    /// The slow-start threshold that takes effect: min(W_sst, W_max).
    pub fn threshold(&self) -> f64 {
        self.ssthresh.min(self.max)
    }

    /// The window's own sanity: `1 <= W_0 <= W_sst`, `W_0 <= W_max`, `s >= 1`.
    ///
    /// # Errors
    /// The first quantity out of its range.
    pub fn check(&self) -> Result<(), ModelError> {
        positive("the number of segments per ACK", f64::from(self.segments_per_ack))?;
        within("the largest window (segments)", self.max, 1.0, f64::MAX)?;
        within("the initial window (segments)", self.initial, 1.0, self.max)?;
        within("the slow-start threshold (segments)", self.ssthresh, self.initial, f64::INFINITY)?;
        Ok(())
    }
}

/// Who decides how much each session carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Striping {
    /// Sessions draw segments as they can send them, so that all end at about the same time.
    #[default]
    Dynamic,
    /// Every session carries the same number of bytes, whenever it started.
    Equal,
}

/// What sessions are given before anything is known of them. The paper's striping fills windows and
/// probes nothing; ours puts no more than this at stake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probing {
    /// Bytes for the first session, which is open before the others are and takes them at once.
    pub first: u64,
    /// Bytes for each other session; more follow when the node's acknowledgement of these is back.
    pub others: u64,
}

/// A file on its way to one node through one or more gateways.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// O, the file's size in bytes (the paper's O is in bits).
    pub octets: u64,
    /// The paths in the order in which their sessions are set up.
    pub gateways: Vec<Path>,
    /// The windows of every TCP connection.
    pub window: Window,
    /// B_2, bytes of receive buffer at the node for all sessions together; `None` if it never
    /// limits.
    pub node_buffer: Option<f64>,
    /// F, the out-of-order factor at the node, 0 to 1.
    pub disorder: f64,
    /// Seconds from the request until the node has answered with its gateways; the paper counts
    /// none. [`Path::request_time`] computes the protocol's.
    pub request: f64,
    /// How the file is divided.
    pub striping: Striping,
    /// What a session is given before it is known, with dynamic striping; `None` for no such limit.
    pub probing: Option<Probing>,
    /// Which form of the equations holds.
    pub reading: Reading,
}

impl Transfer {
    /// `octets` through `gateways`, with the defaults for what the paper leaves open: no request
    /// time, no limit by the node's buffer, dynamic striping, corrected equations.
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

    /// Everything that can be wrong with the numbers.
    ///
    /// # Errors
    /// [`ModelError::NoGateways`], or the first quantity out of its range.
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
