//! Maps a transfer of a scenario to the parameters of the closed form of section 5.

use anabranch_core::set::gateways::select;
use anabranch_core::set::{self, OpenWhen, StripingPolicy};
use anabranch_core::tcp::{Config as Tcp, DelayedAck, InitialWindow};
use anabranch_model::set::{OpenWait, Path, Probing, Reading, SessionStarts, Transfer, Window};

use crate::{Scenario, Scheme, SetSpec, TransferSpec};
use anabranch_sim::network::Network;
use anabranch_sim::packet::{IpVersion, NodeId};

/// Bytes of a TCP header without options.
const TCP_HEADER: u32 = 20;
/// Bytes of the timestamps option in each header, which reduce the payload.
const STAMPS: u16 = 12;
/// Window limit in segments, for a TCP without a limit of its own.
const NO_LIMIT: f64 = 4096.0;

/// The parameters of the closed form for a transfer, given by its index: `octets` bytes through the
/// gateways that SET would select, in that order, along the routes of the network without faults.
/// `None` for plain TCP. The gateways are empty if none is reachable. The closed form takes neither
/// losses nor other traffic into account.
pub fn scenario_model(scenario: &Scenario, transfer: usize, octets: u64) -> Option<Transfer> {
    let transfer = &scenario.transfers[transfer];
    let Scheme::Set(spec) = &transfer.scheme else { return None };
    let table = scenario.gateway_table(transfer.to, &spec.gateways);
    let sim = scenario
        .builder(scenario.seed, 0)
        .expect("a scenario with `best` has no radio, and nothing that is drawn")
        .build();
    let lay = Lay { network: &sim.world().network, ip: scenario.network.ip, transfer, spec };
    let paths: Vec<Path> =
        select(&table, usize::MAX).iter().filter_map(|g| lay.path(NodeId(g.id.into()))).collect();
    let asked = spec.default_gateway.and_then(|gateway| lay.path(gateway)).or(paths.first().copied());
    let (ip, control) = (lay.ip_number(), overhead(lay.ip_number()));
    let request =
        asked.map_or(0.0, |path| path.request_time_of(control + REQUEST, control + answer(ip, table.len())));
    Some(Transfer {
        window: window(&spec.wireless),
        request,
        node_buffer: Some(spec.set.node_buffer.0 as f64),
        probing: probing(spec.striping, transfer.tcp.mss),
        reading: reading(spec.set.open, spec.set.open_wait),
        ..Transfer::new(octets, paths)
    })
}

/// The ends of a transfer and the network between them.
struct Lay<'s> {
    network: &'s Network,
    ip: IpVersion,
    transfer: &'s TransferSpec,
    spec: &'s SetSpec,
}

impl Lay<'_> {
    /// The path through a gateway; `None` if there is no route.
    fn path(&self, gateway: NodeId) -> Option<Path> {
        let (wired_delay, wired_rate, _) = self.leg(self.transfer.from, gateway)?;
        let (wireless_delay, wireless_rate, hops) = self.leg(gateway, self.transfer.to)?;
        let wireless = Tcp { mss: self.spec.wireless.mss.min(self.transfer.tcp.mss), ..self.spec.wireless };
        // Timestamps are used only if both ends offer them. The node's offer follows the sender's
        // profile.
        let both = Tcp { timestamps: wireless.timestamps && self.transfer.tcp.timestamps, ..wireless };
        let ((wired_mss, wired_overhead), (wireless_mss, wireless_overhead)) =
            (self.segment(&self.transfer.tcp), self.segment(&both));
        Some(Path {
            wired_rate,
            wired_mss,
            wireless_mss,
            wired_overhead,
            wireless_overhead,
            wireless_control: wireless_overhead,
            hops,
            ..Path::new(wired_delay, wireless_delay, wireless_rate)
        })
    }

    /// Delay in seconds, rate of the slowest link in bit/s, and number of links from one node to
    /// another.
    fn leg(&self, from: NodeId, to: NodeId) -> Option<(f64, f64, u32)> {
        let links = self.network.path(from, to)?;
        let configs = || links.iter().map(|link| self.network.link(*link).config());
        let delay = configs().map(|config| config.delay.as_secs_f64()).sum();
        let rate = configs().map(|config| config.rate).min()?;
        Some((delay, rate as f64, links.len() as u32))
    }

    /// Bytes of payload and of headers in a full segment.
    fn segment(&self, tcp: &Tcp) -> (u32, u32) {
        let stamps = if tcp.timestamps { STAMPS } else { 0 };
        (tcp.mss.saturating_sub(stamps).max(1).into(), overhead(self.ip_number()) + u32::from(stamps))
    }

    fn ip_number(&self) -> u8 {
        match self.ip {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

/// Windows of the wireless connections. SETSYN and JOIN are the first segments of each connection,
/// so their ACK has already opened the window once.
fn window(tcp: &Tcp) -> Window {
    let segments = match tcp.initial_window {
        InitialWindow::Segments(n) => f64::from(n),
        InitialWindow::Rfc6928 => {
            let mss = u32::from(tcp.mss.max(1));
            f64::from((10 * mss).min(14_600.max(2 * mss)) / mss)
        }
    };
    let initial = segments.max(1.0) + 1.0;
    let segments_per_ack = match tcp.delayed_ack {
        DelayedAck::Off => 1,
        DelayedAck::Every { segments, .. } => u32::from(segments.max(1)),
    };
    let max = tcp.window_limit.map_or(NO_LIMIT, f64::from).max(initial);
    Window { initial, max, segments_per_ack, ..Window::default() }
}

/// Bytes that IP (version `ip`, 4 or 6) and TCP without options add to a segment.
pub fn overhead(ip: u8) -> u32 {
    TCP_HEADER + if ip == 6 { 40 } else { 20 }
}

/// Bytes of a REQUEST.
pub const REQUEST: u32 = 14;

/// Bytes of the node's answer: its buffer size, and a row for each gateway.
pub fn answer(ip: u8, gateways: usize) -> u32 {
    let row = if ip == 6 { 23 } else { 11 };
    5 + row * gateways as u32
}

/// The amount of data that predictive and adaptive striping risk before they have measured: two
/// wired segments on the first session, one on every other session.
pub fn probing(striping: StripingPolicy, wired_mss: u16) -> Option<Probing> {
    let segment = u64::from(wired_mss);
    match striping {
        StripingPolicy::Predictive | StripingPolicy::Adaptive => {
            Some(Probing { first: 2 * segment, others: segment })
        }
        StripingPolicy::Window | StripingPolicy::Turns | StripingPolicy::Custom(_) => None,
    }
}

/// The variant of the equations for this order of opening sessions.
pub fn reading(open: OpenWhen, open_wait: set::OpenWait) -> Reading {
    let starts = match open {
        OpenWhen::Staggered => SessionStarts::Staggered,
        OpenWhen::OneByOne => SessionStarts::OneAfterAnother,
        OpenWhen::AtOnce => SessionStarts::AtOnce,
    };
    let open_wait = match open_wait {
        set::OpenWait::RoundTrip => OpenWait::Counted,
        set::OpenWait::None => OpenWait::Omitted,
    };
    Reading { starts, open_wait, ..Reading::protocol() }
}
