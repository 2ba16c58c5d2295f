//! `tcpi_*` and the related constants.

use crate::host::Link;
use anabranch_core::tcp::{Info, RecoveryStage, State};
use anabranch_core::time::{Duration, Instant};

/// The state of a connection that a snippet can use.
#[derive(Debug)]
pub(crate) struct Figures<'a> {
    link: Option<&'a Link>,
    now: Instant,
}

impl<'a> Figures<'a> {
    pub(crate) fn of(link: Option<&'a Link>, now: Instant) -> Self {
        Self { link, now }
    }

    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        Self { link: None, now: Instant::ZERO }
    }

    /// The value of a name, if it is known.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        if let Some((_, value)) = CONSTANTS.iter().find(|(found, _)| *found == name) {
            return Some(*value as f64);
        }
        let (link, name) = (self.link?, name.strip_prefix("tcpi_")?);
        let heard = match name {
            "busy_time" => Some(micros(link.spent.busy)),
            "rwnd_limited" => Some(micros(link.spent.window_limited)),
            "sndbuf_limited" => Some(micros(link.spent.buffer_limited)),
            "advmss" => Some(i64::from(link.advertised_mss)),
            "rcv_mss" => Some(i64::from(link.largest_received)),
            "last_data_recv" => Some(self.now.saturating_since(link.last_data).as_millis() as i64),
            _ => None,
        };
        heard.or_else(|| figure(&link.connection.info(), name)).map(|value| value as f64)
    }
}

/// A field of Linux's `struct tcp_info`. Linux counts segments where this TCP counts bytes.
fn figure(info: &Info, name: &str) -> Option<i64> {
    let mss = u32::from(info.mss.max(1));
    let segments = |bytes: u32| i64::from(bytes.div_ceil(mss));
    Some(match name {
        "state" => state(info.state),
        "snd_cwnd" => i64::from(info.cwnd / mss),
        "snd_ssthresh" if info.ssthresh == u32::MAX => INFINITE_SSTHRESH,
        "snd_ssthresh" => i64::from(info.ssthresh / mss),
        "snd_mss" => i64::from(info.mss),
        "ca_state" => match info.recovery {
            RecoveryStage::Open => 0,
            RecoveryStage::Disorder => 1,
            RecoveryStage::Recovery => 3,
            RecoveryStage::Loss => 4,
        },
        "sacked" => segments(info.sacked),
        "unacked" => segments(info.in_flight),
        "rto" => micros(info.rto),
        "rtt" => info.srtt.map_or(0, micros),
        "rttvar" => micros(info.rttvar),
        "min_rtt" => info.min_rtt.map_or(0, micros),
        "total_retrans" => info.retransmissions as i64,
        "notsent_bytes" => i64::from(info.unsent),
        "bytes_acked" => info.bytes_acked as i64,
        "bytes_received" => info.bytes_received as i64,
        "bytes_sent" => info.bytes_sent as i64,
        "snd_wnd" => i64::from(info.peer_window),
        _ => return None,
    })
}

fn micros(duration: Duration) -> i64 {
    (duration.as_nanos() / 1000) as i64
}

fn state(state: State) -> i64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: i64 = 0x7fff_ffff;

const CONSTANTS: &[(&str, i64)] = &[
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
];
