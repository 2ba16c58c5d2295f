//! The same transfer for the closed form: section 5 with what assumption (3) leaves out.

use anabranch_model::set::{
    self as model, OpenWait, Path, Probing, Reading, SessionStarts, Transfer, Window,
};
use anabranch_sim::scenario::set::{OpenName, OpenWaitName, StripingName};
use anabranch_sim::scenario::units::Span;

use super::config::{Config, Medium, Scheme, TcpName};
use super::network::{WIRED_MSS, WIRELESS_MSS, overhead};

/// Which form of section 5's equations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Equations {
    /// Corrected, with headers, control segments and our order of opening: what the simulation does.
    Protocol,
    /// As on the page: no headers, no request, every erratum kept.
    Printed,
}

impl Config {
    /// The transfer as the closed form sees it, through all gateways.
    pub fn model(&self, equations: Equations) -> Transfer {
        let paths: Vec<Path> = (0..self.gateways).map(|i| self.model_path(i, equations)).collect();
        let plain = Transfer::new(self.file.0, paths);
        let node_buffer = Some(self.node_buffer.0 as f64);
        if equations == Equations::Printed {
            return Transfer { node_buffer, reading: Reading::printed(), ..plain };
        }
        let (initial, max) = match self.tcp {
            // SETSYN and JOIN were the first window: their ACK has opened the second.
            TcpName::Paper => (2.0, 64.0),
            TcpName::Modern => (11.0, 4096.0),
        };
        Transfer {
            window: Window { initial, max, ..Window::default() },
            request: plain.gateways[0].request_time_of(
                overhead(self.ip) + REQUEST,
                overhead(self.ip) + answer(self.ip, self.gateways),
            ),
            node_buffer,
            probing: probing(self.striping, WIRED_MSS),
            reading: reading(self.open, self.open_wait),
            ..plain
        }
    }

    /// The latency by the closed form; `None` for TCP from end to end and for a channel that paths share, neither of which
    /// section 5 treats.
    pub(super) fn model_latency(&self) -> Option<f64> {
        if self.medium == Medium::Radio {
            return None;
        }
        let gateways = match self.scheme {
            Scheme::Set => self.gateways,
            Scheme::Split => 1,
            Scheme::EndToEnd => return None,
        };
        model::latency(&self.model(Equations::Protocol), gateways).ok().map(|l| l.total)
    }

    fn model_path(&self, i: usize, equations: Equations) -> Path {
        let seconds = |span: Span| span.0.as_secs_f64();
        let hops = self.hops.of(i);
        // Other transfers of the same kind take turns with this one on the gateway's link.
        let share = (self.background + 1) as f64;
        let mut path = Path::new(
            seconds(self.wired_delay.of(i)),
            seconds(self.wireless_delay.of(i)) * hops as f64,
            self.wireless_rate.of(i).0 as f64 / share,
        );
        path.wired_rate = self.wired_rate.of(i).0 as f64;
        path.wired_mss = WIRED_MSS.into();
        path.wireless_mss = WIRELESS_MSS.into();
        if equations == Equations::Protocol {
            path.hops = hops as u32;
            path.wired_overhead = overhead(self.ip);
            path.wireless_overhead = overhead(self.ip);
            path.wireless_control = overhead(self.ip);
        }
        path
    }
}

/// Octets of a request.
pub(super) const REQUEST: u32 = 14;

/// Octets of the node's answer: its buffer and a row for each gateway.
pub(super) fn answer(ip: u8, gateways: usize) -> u32 {
    let row = if ip == 6 { 23 } else { 11 };
    5 + row * gateways as u32
}

/// What the predictive striping puts at stake: two wired segments on the first session, one on any other.
pub(super) fn probing(striping: StripingName, wired_mss: u16) -> Option<Probing> {
    let segment = u64::from(wired_mss);
    match striping {
        StripingName::Predictive => Some(Probing { first: 2 * segment, others: segment }),
        StripingName::Window | StripingName::Custom(_) => None,
    }
}

/// The equations for this order of opening.
pub(super) fn reading(open: OpenName, open_wait: OpenWaitName) -> Reading {
    let starts = match open {
        OpenName::Staggered => SessionStarts::Staggered,
        OpenName::OneByOne => SessionStarts::OneAfterAnother,
        OpenName::AtOnce => SessionStarts::AtOnce,
    };
    let open_wait = match open_wait {
        OpenWaitName::RoundTrip => OpenWait::Counted,
        OpenWaitName::None => OpenWait::Omitted,
    };
    Reading { starts, open_wait, ..Reading::protocol() }
}
