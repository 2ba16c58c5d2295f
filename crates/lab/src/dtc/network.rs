//! From a configuration to a scenario: the chain of Figure 4, as values of the scenario format.

use std::collections::BTreeMap;

use anabranch_core::segment::Segment;
use anabranch_core::tcp::{Recovery, SackRole};
use anabranch_core::time::Duration;
use anabranch_sim::frames;
use anabranch_sim::link::QueueLimit;
use anabranch_sim::packet::{IpVersion, NodeId, Packet, Payload};
use anabranch_sim::radio::PhyConfig;
use anabranch_sim::scenario::dtc::{Algorithm, DtcProfile};
use anabranch_sim::scenario::file::{
    BackSection, FactorsSection, FileConfig, LinkSection, Loss, NodeKind, NodeSection, TransferKind,
    TransferSection,
};
use anabranch_sim::scenario::radio::{Phy, RadioSection};
use anabranch_sim::scenario::tcp::{Base, TcpProfile};
use anabranch_sim::scenario::units::{Length, Limit, Probability, QueueSize, Rate, Size, Span};
use anabranch_sim::scenario::{Scenario, Source};

use super::config::{Config, Medium, Mode};
use crate::experiment::RunError;

/// What a segment and an acknowledgement take over one hop (erratum D21).
const HOP: Duration = Duration::from_millis(22);
/// The sender's segments leave it no closer to each other than 3.5 hops: what the tables' columns without losses
/// come from (erratum D8).
const SPACING: Duration = Duration::from_millis(77);
/// How long after the time of a hop a missing link acknowledgement is noticed.
const LINK_ACK_TIMEOUT: Duration = Duration::from_millis(3);
/// How far frames are heard, and disturb others, in metres.
const RANGE: f64 = 100.0;
/// How far a node is from the next, in metres: it hears its neighbours, and not those behind them.
const SPACE: f64 = 80.0;
/// The name of the caching nodes' profile.
const PROFILE: &str = "relay";
/// Octets of headers without options.
const IPV6_AND_TCP: u32 = 60;
/// Serialisation is part of the delay.
const RATE: Rate = Rate(10_000_000_000);

impl Config {
    /// The scenario.
    ///
    /// # Errors
    ///
    /// What the scenario format has against it.
    pub fn scenario(&self) -> Result<Scenario, RunError> {
        // A scenario is understood from its text, so that what is simulated can always be written down.
        let text = toml::to_string(&self.file_config()).map_err(|e| RunError::Scenario(e.to_string()))?;
        Source::new("dtc", text).scenario().map_err(|e| RunError::Scenario(e.to_string()))
    }

    /// The same as a scenario file.
    pub fn file_config(&self) -> FileConfig {
        let names: Vec<String> = (0..=self.hops).map(|i| self.name(i)).collect();
        FileConfig {
            name: "dtc".to_owned(),
            stop: Span(Duration::from_secs(365 * 24 * 3600)),
            tcp: BTreeMap::from([("default".to_owned(), self.tcp())]),
            dtc: self.caching(),
            radio: (self.medium == Medium::Radio).then(|| self.radio()),
            node: names.iter().enumerate().map(|(i, name)| self.node(i, name)).collect(),
            link: match self.medium {
                Medium::Links => {
                    names.windows(2).enumerate().map(|(i, ends)| self.link(i, &ends[0], &ends[1])).collect()
                }
                Medium::Radio => Vec::new(),
            },
            transfer: vec![self.transfer()],
            ..FileConfig::default()
        }
    }

    fn name(&self, position: usize) -> String {
        match position {
            0 => "s".to_owned(),
            i if i == self.hops => "d".to_owned(),
            i => format!("r{i}"),
        }
    }

    fn node(&self, position: usize, name: &str) -> NodeSection {
        let end = position == 0 || position == self.hops;
        NodeSection {
            position: (self.medium == Medium::Radio).then_some([SPACE * position as f64, 0.0]),
            dtc: (!end && self.mode != Mode::Tcp).then(|| PROFILE.to_owned()),
            ..NodeSection::new(name, if end { NodeKind::Host } else { NodeKind::Node })
        }
    }

    /// One channel of O-QPSK, the standard's CSMA-CA, and what of it this experiment varies.
    fn radio(&self) -> RadioSection {
        RadioSection {
            phy: Phy::OQpsk250k,
            range: Some(Length(RANGE)),
            loss: Some(Probability(self.frame_loss())),
            max_frame_retries: self.retries,
            queue: QueueSize(QueueLimit::Packets(1000)),
            ..RadioSection::default()
        }
    }

    /// The loss of a frame, or of its acknowledgement, with which `loss` is that of a data segment over a hop: of its frames
    /// all must arrive, and be acknowledged but for the last, or the MAC gives the segment up.
    pub(super) fn frame_loss(&self) -> f64 {
        let must_arrive = f64::from(2 * self.frames() - 1);
        1.0 - (1.0 - self.loss).powf(1.0 / must_arrive)
    }

    /// Frames of a data segment over a hop between two nodes that are not the ends.
    pub(super) fn frames(&self) -> u32 {
        let packet = Packet {
            id: 0,
            src: NodeId(0),
            dst: NodeId(3),
            wire_len: IPV6_AND_TCP + u32::from(self.payload),
            identification: 0,
            hop_limit: 0,
            traffic_class: 0,
            path: 0,
            payload: Payload::Tcp(Segment::default()),
        };
        let hop = (NodeId(1), Some(NodeId(2)));
        let cut = frames::cut(IpVersion::V6, &packet, hop, (&PhyConfig::o_qpsk()).into());
        cut.map_or(1, |cut| cut.pieces())
    }

    /// What the nodes do, if they do anything.
    fn caching(&self) -> BTreeMap<String, DtcProfile> {
        let algorithm = match self.mode {
            Mode::Tcp => return BTreeMap::new(),
            Mode::Paper => Algorithm::Paper,
            Mode::Improved => Algorithm::Improved,
        };
        let profile = DtcProfile {
            algorithm,
            cache_segments: Some(self.cache_segments as u32),
            cache_probability: Some(Probability(self.cache_probability)),
            flying_start: Some(self.flying_start),
            ..DtcProfile::default()
        };
        BTreeMap::from([(PROFILE.to_owned(), profile)])
    }

    /// The link behind the node at `position`.
    fn link(&self, position: usize, from: &str, to: &str) -> LinkSection {
        let loss = |p| Loss::Bernoulli(Probability(p));
        // Towards the sender everything is as short as an acknowledgement; and the last hop into it loses
        // nothing (erratum D7).
        let factors =
            |data| FactorsSection { data, ack: self.ack_loss_factor, link_ack: self.link_ack_loss_factor };
        let back = BackSection {
            spacing: Some(Span(Duration::ZERO)),
            loss: Some(loss(if position == 0 { 0.0 } else { self.loss })),
            loss_factors: Some(factors(self.ack_loss_factor)),
            ..BackSection::default()
        };
        LinkSection {
            name: None,
            from: from.to_owned(),
            to: to.to_owned(),
            rate: RATE,
            delay: Span(HOP),
            queue: QueueSize(QueueLimit::Packets(1000)),
            ecn_threshold: None,
            mtu: 1500,
            loss: loss(self.loss),
            loss_factors: factors(1.0),
            // Without caching nodes nobody listens to the link layer.
            link_ack_timeout: (self.mode != Mode::Tcp).then_some(Span(LINK_ACK_TIMEOUT)),
            reordering: Probability::default(),
            lateness: Span(Duration::from_millis(50)),
            duplication: Probability::default(),
            spacing: Span(if position == 0 { SPACING } else { Duration::ZERO }),
            back: Some(back),
        }
    }

    /// BSD Reno with a small window (errata D8, D17, D22 and D23).
    fn tcp(&self) -> TcpProfile {
        let seconds = |n| Some(Span(Duration::from_secs(n)));
        TcpProfile {
            base: Some(Base::Paper),
            mss: Some(self.payload),
            window_limit: Some(Limit(Some(self.window as u32))),
            // The tables' time-outs are those of a sender that always slow-starts (erratum D23).
            least_ssthresh: Some(self.window as u16),
            // Fast recovery inflates the congestion window past its limit, but not past what the receiver offers.
            receive_buffer: Some(Size(self.window as u64 * u64::from(self.payload))),
            rto_initial: seconds(6),
            rto_min: seconds(1),
            rto_max: seconds(16),
            delayed_ack: Some(Limit(None)),
            // A sender that does not offer SACK still has a peer that answers the nodes' offer.
            sack: Some(if self.sender_sack { SackRole::Both } else { SackRole::Receiver }),
            timestamps: Some(false),
            window_scale: Some(Limit(None)),
            recovery: Some(Recovery::RenoGoBackN),
            syn_retries: Some(u8::MAX),
            data_retries: Some(u8::MAX),
            ..TcpProfile::default()
        }
    }

    /// Without end: the run ends with the last acknowledgement that counts, while more is under way (erratum D8).
    fn transfer(&self) -> TransferSection {
        TransferSection {
            name: Some("bulk".to_owned()),
            ..TransferSection::new(TransferKind::Tcp, self.name(0), self.name(self.hops))
        }
    }
}
