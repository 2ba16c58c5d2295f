//! The same transfer for the closed form: section 5 with what assumption (3) leaves out.

use anabranch_model::set::{self as model, Path, Reading, Transfer, Window};
use anabranch_sim::scenario::advice::{REQUEST, answer, overhead, probing, reading};
use anabranch_sim::scenario::units::Span;

use super::config::{Config, Medium, Scheme, Tcp};
use super::network::{WIRED_MSS, WIRELESS_MSS};

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
            Tcp::Paper => (2.0, 64.0),
            Tcp::Modern => (11.0, 4096.0),
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
