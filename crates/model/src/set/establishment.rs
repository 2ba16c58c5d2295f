//! Equations (1) to (5): time to open one session.

use super::parameters::{Handshake, Path};
use super::reading::{HandshakeEnd, OpenWait};

/// The parts of L_CE in seconds; [`Establishment::total`] is equation (4) or (5).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Establishment {
    /// L_1, equation (1): the wired handshake; its last ACK carries the SETSYN.
    pub wired: f64,
    /// L_2, equation (2): the wireless handshake.
    pub wireless: f64,
    /// The open-wait state: RTT2, or 0 as in equation (4) (S3).
    pub open_wait: f64,
    /// Equation (3): the SETACK's way back.
    pub set_ack: f64,
}

impl Establishment {
    /// L_CE of one session through `path`. Infinite if losses double a timeout beyond the range of
    /// numbers.
    pub fn of(path: &Path, open_wait: OpenWait, handshake: HandshakeEnd) -> Self {
        let Handshake { wired_timeout, wireless_timeout, set_timeout, losses } = path.handshake;
        let trips = match handshake {
            HandshakeEnd::LastAck => 1.5,
            HandshakeEnd::SynAck => 1.0,
        };
        Self {
            wired: 1.5 * path.wired_rtt
                + waited(losses.wired_syn, wired_timeout)
                + waited(losses.wired_syn_ack, wired_timeout)
                + waited(losses.wired_ack, wired_timeout),
            wireless: trips * path.wireless_control_rtt()
                + waited(losses.wireless_syn, wireless_timeout)
                + waited(losses.wireless_syn_ack, wireless_timeout)
                + waited(losses.wireless_ack, wireless_timeout),
            open_wait: match open_wait {
                OpenWait::Counted => path.wireless_control_rtt(),
                OpenWait::Omitted => 0.0,
            },
            set_ack: path.wired_rtt / 2.0 + waited(losses.set_ack, set_timeout),
        }
    }

    /// L_CE in seconds, equation (5), or (4) without the open-wait state.
    pub fn total(&self) -> f64 {
        self.wired + self.wireless + self.open_wait + self.set_ack
    }
}

/// `sum_{k=0}^{losses-1} 2^k timeout`: total time of `losses` consecutive timeouts, each twice the
/// previous one.
fn waited(losses: u32, timeout: f64) -> f64 {
    if losses == 0 || timeout == 0.0 { 0.0 } else { (f64::from(losses).exp2() - 1.0) * timeout }
}
