//! The `[radio]` section: an IEEE 802.15.4 channel.

use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::{Length, Probability, QueueSize, Span};
use super::wifi::WifiOptions;
use anabranch_sim::frames;
use anabranch_sim::link::QueueLimit;
use anabranch_sim::network::{FragmentForwarding, VirtualReassembly, WirelessConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{
    Capture, CcaMode, ConfigError, CslConfig, Fcs, LogDistance, MacConfig, PhyConfig, Position, Propagation,
    RadioConfig, UnitDisk,
};

/// Least `frame` of a scenario in bytes: it cuts a packet of 1280 bytes into 27 fragments, and a
/// node keeps track of 32.
const LEAST_FRAME: u16 = 64;

/// Physical layer of IEEE 802.15.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum Phy {
    /// O-QPSK in the 2.4 GHz band: 250 kbit/s, frames of up to 127 bytes.
    #[default]
    #[serde(rename = "oqpsk-250k")]
    OQpsk250k,
    /// SUN FSK below 1 GHz: 100 kbit/s, frames of up to 2047 bytes.
    #[serde(rename = "fsk-100k")]
    Fsk100k,
}

/// How a node forwards a fragmented packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// Reassembles the packet before forwarding it.
    #[default]
    Reassembly,
    /// Forwards each fragment as soon as it arrives (RFC 8930).
    Fragments,
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl Forwarding {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The radio channel shared by all nodes with a `position`: IEEE 802.15.4 without beacons, with
/// 6LoWPAN.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RadioSection {
    /// Physical layer.
    pub phy: Phy,
    /// Longest frame in bytes, including MAC header and FCS: from 64 to the largest frame of the
    /// physical layer, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u16>,
    /// Length of the frame check sequence in bytes: always 2 for "oqpsk-250k"; 2 or 4 for
    /// "fsk-100k", 4 if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fcs: Option<u8>,
    /// macMinBE, 0 to `max_be`.
    pub min_be: u8,
    /// macMaxBE, 3 to 8.
    pub max_be: u8,
    /// macMaxCsmaBackoffs, 0 to 5.
    pub max_csma_backoffs: u8,
    /// macMaxFrameRetries, 0 to 15.
    pub max_frame_retries: u8,
    /// Longest random delay before a retransmission, evenly distributed from 0, in addition to the
    /// backoff of CSMA-CA; at most 10 s. The standard has no such delay.
    pub retry_delay: Span,
    /// Number of times that a frame is handed to the MAC again after it found no free channel; each
    /// time CSMA-CA starts anew. The standard leaves this to the next higher layer.
    #[serde(skip_serializing_if = "is_zero")]
    pub access_retries: u8,
    /// Capacity of a node's queue in front of its radio: a number of packets, at least 1, or
    /// "unlimited".
    pub queue: QueueSize,
    /// Number of fragmented packets that a node reassembles at the same time, 1 to 64.
    pub reassemblies: u32,
    /// Time for which a node waits for the remaining fragments of a packet, more than 0.
    pub reassembly_timeout: Span,
    /// How a node forwards a fragmented packet.
    #[serde(skip_serializing_if = "Forwarding::is_default")]
    pub forwarding: Forwarding,
    /// Number of forwarded packets whose fragments a node tracks at the same time, 1 to 1024. Only
    /// with `forwarding = "fragments"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_reassemblies: Option<u32>,
    /// Time for which a node waits for the remaining fragments of a packet, more than 0, in place
    /// of `reassembly_timeout`. Only with `forwarding = "fragments"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment_timeout: Option<Span>,
    /// Least time between the end of one fragment and the start of the next fragment of the same
    /// packet. It gives the next node time to forward the first one out of range, and does not
    /// apply on the last hop. Only with `forwarding = "fragments"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment_gap: Option<Span>,
    /// Distance up to which frames are received, such as "50 m" or a number of metres. Required
    /// without `log_distance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Length>,
    /// Distance up to which frames disturb others; at least `range`, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interference_range: Option<Length>,
    /// Distance up to which a clear channel assessment detects frames; `range` if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier_sense_range: Option<Length>,
    /// Probability that a frame or its acknowledgement is lost between two nodes within range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
    /// Reception of overlapping frames: "off" loses all of them. `{ first = 2.0 }` and
    /// `{ any = 2.0 }` let a frame survive if the other senders are at least twice as far from the
    /// receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// Sleep of the nodes by coordinated sampled listening (CSL). Without this section all nodes
    /// listen all the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csl: Option<CslSection>,
    /// Path loss over distance with shadowing, in place of ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_distance: Option<LogDistanceSection>,
}

impl Default for RadioSection {
    fn default() -> Self {
        let (mac, wireless) = (MacConfig::default(), WirelessConfig::default());
        Self {
            phy: Phy::OQpsk250k,
            frame: None,
            fcs: None,
            min_be: mac.min_be,
            max_be: mac.max_be,
            max_csma_backoffs: mac.max_csma_backoffs,
            max_frame_retries: mac.max_frame_retries,
            retry_delay: Span(mac.retry_delay),
            access_retries: wireless.access_retries,
            queue: QueueSize(QueueLimit::Packets(wireless.queue)),
            reassemblies: wireless.reassemblies as u32,
            reassembly_timeout: Span(wireless.reassembly_timeout),
            forwarding: Forwarding::Reassembly,
            virtual_reassemblies: None,
            fragment_timeout: None,
            fragment_gap: None,
            range: None,
            interference_range: None,
            carrier_sense_range: None,
            loss: None,
            capture: None,
            csl: None,
            log_distance: None,
        }
    }
}

/// Coordinated sampled listening (IEEE Std 802.15.4-2020, section 6.12.2). Periods are rounded to
/// whole units of 10 symbols: 160 µs for "oqpsk-250k", 100 µs for "fsk-100k".
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CslSection {
    /// macCslPeriod: interval between two channel samples of a node, between which it sleeps; "0 s"
    /// for nodes that never sleep. `csl_period` of a node overrides it.
    pub period: Span,
    /// macCslMaxPeriod: the longest period of any node; `period` if none is given. It is also the
    /// length of the wake-up sequence to a receiver whose sampling times are unknown. At most 65535
    /// units: 10.4856 s for "oqpsk-250k", 6.5535 s for "fsk-100k".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_period: Option<Span>,
    /// Duration of a channel sample, less than the period; that of a clear channel assessment (8
    /// symbols) if none is given. A sample longer than a wake-up frame also detects signals that
    /// are too weak for the assessment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Span>,
    /// macCslFramePendingWait: time for which a receiver stays awake for an announced next frame.
    /// The default is the least value: macLifsPeriod plus the longest frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_pending_wait: Option<Span>,
    /// Largest error of a node's clock in parts per million, 0 to 500; 20 if none is given. Each
    /// node draws its own error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_accuracy_ppm: Option<u16>,
    /// Whether senders learn the sampling times of their neighbours from acknowledgements, and then
    /// send a short wake-up sequence around such a time.
    #[serde(default = "yes")]
    pub synchronized: bool,
}

fn yes() -> bool {
    true
}

impl CslSection {
    /// The configuration with every default, and with periods in whole units.
    fn config(&self, phy: &PhyConfig) -> CslConfig {
        let period = CslConfig::in_units(self.period.0, phy);
        let base = CslConfig::new(period, phy);
        CslConfig {
            period,
            max_period: self.max_period.map_or(period, |most| CslConfig::in_units(most.0, phy)),
            sample: self.sample.map_or(base.sample, |sample| sample.0),
            frame_pending_wait: self.frame_pending_wait.map_or(base.frame_pending_wait, |wait| wait.0),
            clock_accuracy_ppm: self.clock_accuracy_ppm.unwrap_or(base.clock_accuracy_ppm),
            synchronized: self.synchronized,
        }
    }

    fn of(csl: &CslConfig) -> Self {
        Self {
            period: Span(csl.period),
            max_period: Some(Span(csl.max_period)),
            sample: Some(Span(csl.sample)),
            frame_pending_wait: Some(Span(csl.frame_pending_wait)),
            clock_accuracy_ppm: Some(csl.clock_accuracy_ppm),
            synchronized: csl.synchronized,
        }
    }
}

/// Path loss over distance (log-distance model). The defaults describe the 2.4 GHz band indoors,
/// for "fsk-100k" the 868 MHz band. Keys in dBm, `preamble_sinr_db` and `capture_sinr_db` are -250
/// to 100.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LogDistanceSection {
    /// Path-loss exponent, 1 to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponent: Option<f64>,
    /// Path loss at 1 m, in dB, 0 to 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_loss_db: Option<f64>,
    /// Standard deviation of the shadowing in dB, 0 to 20. The shadowing is drawn once for each
    /// pair of nodes and run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadowing_db: Option<f64>,
    /// Transmit power, in dBm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_power_dbm: Option<f64>,
    /// Noise power in a receiver's band, in dBm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_floor_dbm: Option<f64>,
    /// Weakest frame on which a receiver locks, in dBm. Bit errors decide separately whether the
    /// frame is received, so this value is below the sensitivity of a data sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity_dbm: Option<f64>,
    /// SINR in dB below which a receiver does not lock on a frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preamble_sinr_db: Option<f64>,
    /// Energy in dBm above which the channel is busy. It must exceed the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cca_threshold_dbm: Option<f64>,
    /// Mode of the clear channel assessment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cca_mode: Option<CcaMode>,
    /// SINR in dB above which a later frame takes over a receiver that is locked on another frame;
    /// without this key none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_sinr_db: Option<f64>,
    /// Least ratio in dB of a frame's power to that of all overlapping frames, below which the
    /// frame is lost, -20 to 40. Without this key interference counts as noise, which is
    /// optimistic; measurements of 2.4 GHz radios suggest 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub co_channel_rejection_db: Option<f64>,
    /// Power in dBm below which a signal is ignored altogether, at most `sensitivity_dbm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weakest_dbm: Option<f64>,
}

/// A radio channel and the nodes on it.
#[derive(Clone, PartialEq, Debug)]
pub struct RadioSpec {
    /// The channel, and the configuration of every node on it.
    pub channel: Channel,
    /// The nodes on the channel and their positions; those of the scenario's first run, if
    /// positions are drawn.
    pub places: Vec<(NodeId, Position)>,
    /// Ends of the links over which frames are received. With `log_distance` these ignore
    /// shadowing, which each run draws anew.
    pub links: Vec<(NodeId, NodeId)>,
    /// Length of each link for static routes: [`anabranch_sim::routing::hop_over_air`].
    pub lengths: Vec<u64>,
    /// Nodes with their own macCslPeriod.
    pub csl_periods: Vec<(NodeId, Duration)>,
}

/// A radio channel of either kind.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Channel {
    /// `[radio]`.
    Ieee802154(RadioConfig, WirelessConfig),
    /// `[wifi]`.
    Ieee80211(WifiOptions),
}

impl Channel {
    /// Distance up to which frames are received, in metres; `None` if it does not depend on
    /// distance alone.
    pub fn range(&self) -> Option<f64> {
        match self {
            Self::Ieee802154(config, _) => match config.propagation {
                Propagation::UnitDisk(disk) => Some(disk.range),
                Propagation::LogDistance(_) => None,
            },
            Self::Ieee80211(options) => Some(options.channel.propagation.range),
        }
    }

    /// Largest IP packet in bytes.
    pub fn mtu(&self) -> u32 {
        match self {
            Self::Ieee802154(..) => frames::MTU,
            Self::Ieee80211(options) => options.interface.mtu,
        }
    }
}

/// The keys of `csl`.
const CSL_KEYS: [&str; 5] = ["period", "max_period", "sample", "frame_pending_wait", "clock_accuracy_ppm"];

/// The path of keys to a fault, and the reason.
type Fault = (Vec<&'static str>, String);

impl RadioSection {
    /// Checks the section and makes the configuration of the channel.
    pub(super) fn config(&self) -> Result<(RadioConfig, WirelessConfig), Fault> {
        let base = match self.phy {
            Phy::OQpsk250k => RadioConfig::o_qpsk(1.0),
            Phy::Fsk100k => RadioConfig::sun_fsk(1.0),
        };
        let phy = self.phy(base.phy)?;
        let config = RadioConfig {
            phy,
            mac: MacConfig {
                min_be: self.min_be,
                max_be: self.max_be,
                max_csma_backoffs: self.max_csma_backoffs,
                max_frame_retries: self.max_frame_retries,
                retry_delay: self.retry_delay.0,
            },
            propagation: self.propagation()?,
            csl: self.csl.map(|csl| csl.config(&phy)),
            ..base
        };
        config.check().map_err(|error| self.fault(&error))?;
        Ok((config, self.wireless()?))
    }

    fn phy(&self, phy: PhyConfig) -> Result<PhyConfig, Fault> {
        let phy = match (self.fcs, self.phy) {
            (None, _) | (Some(2), Phy::OQpsk250k) | (Some(4), Phy::Fsk100k) => phy,
            (Some(2), Phy::Fsk100k) => phy.with_fcs(Fcs::Crc16),
            (Some(_), Phy::OQpsk250k) => {
                return Err((vec!["fcs"], "frames of O-QPSK end with 2 bytes of FCS".to_owned()));
            }
            (Some(fcs), Phy::Fsk100k) => {
                return Err((vec!["fcs"], format!("expected 2 or 4, found {fcs}")));
            }
        };
        match self.frame {
            None => Ok(phy),
            Some(frame) if (LEAST_FRAME..=phy.max_psdu).contains(&frame) => {
                Ok(PhyConfig { max_psdu: frame, ..phy })
            }
            Some(frame) => {
                let most = phy.max_psdu;
                let message = format!(
                    "a frame of {frame} bytes: expected {LEAST_FRAME}, for 6LoWPAN, to {most}, which the physical layer allows"
                );
                Err((vec!["frame"], message))
            }
        }
    }

    fn propagation(&self) -> Result<Propagation, Fault> {
        let said = [
            ("range", self.range.is_some()),
            ("interference_range", self.interference_range.is_some()),
            ("carrier_sense_range", self.carrier_sense_range.is_some()),
            ("loss", self.loss.is_some()),
            ("capture", self.capture.is_some()),
        ];
        let Some(log_distance) = &self.log_distance else {
            let Some(Length(range)) = self.range else {
                let message = "expected `range`, a length such as \"50 m\", or a table `log_distance`";
                return Err((vec![], message.to_owned()));
            };
            return Ok(Propagation::UnitDisk(UnitDisk {
                range,
                interference_range: self.interference_range.map_or(range, |length| length.0),
                carrier_sense_range: self.carrier_sense_range.map_or(range, |length| length.0),
                loss: self.loss.unwrap_or_default().0,
                capture: self.capture.unwrap_or_default(),
            }));
        };
        match said.iter().find(|(_, said)| *said) {
            Some((key, _)) => {
                Err((vec![key], format!("`{key}` is of the unit disk, and there is `log_distance`")))
            }
            None => Ok(Propagation::LogDistance(log_distance.model(self.phy))),
        }
    }

    fn wireless(&self) -> Result<WirelessConfig, Fault> {
        let queue = match self.queue.0 {
            QueueLimit::Packets(packets) if packets > 0 => packets,
            QueueLimit::Packets(_) | QueueLimit::Bytes(_) => {
                let message =
                    "expected a number of packets, at least one, such as \"32 packets\", or \"unlimited\"";
                return Err((vec!["queue"], message.to_owned()));
            }
        };
        if !(1..=64).contains(&self.reassemblies) {
            return Err((vec!["reassemblies"], format!("expected 1 to 64, found {}", self.reassemblies)));
        }
        if self.reassembly_timeout.0.is_zero() {
            return Err((vec!["reassembly_timeout"], "no packet in pieces would ever be whole".to_owned()));
        }
        Ok(WirelessConfig {
            queue,
            access_retries: self.access_retries,
            forwarding: self.forwarding()?,
            reassemblies: self.reassemblies as usize,
            reassembly_timeout: self.reassembly_timeout.0,
            ..WirelessConfig::default()
        })
    }

    fn forwarding(&self) -> Result<FragmentForwarding, Fault> {
        let base = VirtualReassembly::default();
        let (entries, timeout, gap) = (self.virtual_reassemblies, self.fragment_timeout, self.fragment_gap);
        if self.forwarding == Forwarding::Reassembly {
            let said = [
                ("virtual_reassemblies", entries.is_some()),
                ("fragment_timeout", timeout.is_some()),
                ("fragment_gap", gap.is_some()),
            ];
            return match said.iter().find(|(_, said)| *said) {
                None => Ok(FragmentForwarding::Reassembly),
                Some((key, _)) => {
                    Err((vec![key], format!("`{key}` has no meaning without `forwarding = \"fragments\"`")))
                }
            };
        }
        match entries {
            Some(n) if !(1..=1024).contains(&n) => {
                Err((vec!["virtual_reassemblies"], format!("expected 1 to 1024, found {n}")))
            }
            _ if timeout.is_some_and(|timeout| timeout.0.is_zero()) => {
                Err((vec!["fragment_timeout"], "no packet in pieces would ever be whole".to_owned()))
            }
            _ => Ok(FragmentForwarding::Fragments(VirtualReassembly {
                entries: entries.map_or(base.entries, |n| n as usize),
                timeout: timeout.map_or(base.timeout, |timeout| timeout.0),
                gap: gap.map_or(base.gap, |gap| gap.0),
            })),
        }
    }

    /// Turns an error of the radio's configuration into a fault at the corresponding key.
    fn fault(&self, error: &ConfigError) -> Fault {
        let ConfigError::Range(names, range) = *error else { return (Vec::new(), error.to_string()) };
        let mut keys = Vec::new();
        let key = names.split(',').next().unwrap_or(names);
        if let Some(csl) = self.csl.filter(|_| CSL_KEYS.contains(&key)) {
            // Without `max_period` the period is the longest period, so the fault lies in `period`.
            let key = if key == "max_period" && csl.max_period.is_none() { "period" } else { key };
            let said = key != "sample" || csl.sample.is_some();
            return (
                vec!["csl", if said { key } else { "period" }],
                format!("`{names}` of `csl`: expected {range}"),
            );
        }
        let of_mac = names.starts_with("max_") || names.starts_with("retry_");
        if self.log_distance.is_some() && !of_mac {
            keys.push("log_distance");
        }
        keys.push(key);
        (keys, format!("{names}: expected {range}"))
    }

    /// Fills in every default.
    pub(super) fn complete(&mut self, config: &RadioConfig, wireless: &WirelessConfig) {
        if let FragmentForwarding::Fragments(how) = wireless.forwarding {
            self.virtual_reassemblies = Some(how.entries as u32);
            self.fragment_timeout = Some(Span(how.timeout));
            self.fragment_gap = Some(Span(how.gap));
        }
        self.frame = Some(config.phy.max_psdu);
        self.fcs = Some(config.phy.fcs.len() as u8);
        self.csl = config.csl.as_ref().map(CslSection::of);
        match config.propagation {
            Propagation::UnitDisk(disk) => {
                self.interference_range = Some(Length(disk.interference_range));
                self.carrier_sense_range = Some(Length(disk.carrier_sense_range));
                self.loss = Some(Probability(disk.loss));
                self.capture = Some(self.capture.unwrap_or_default());
            }
            Propagation::LogDistance(model) => self.log_distance = Some(LogDistanceSection::of(&model)),
        }
    }
}

impl LogDistanceSection {
    fn model(&self, phy: Phy) -> LogDistance {
        let base = match phy {
            Phy::OQpsk250k => LogDistance::default(),
            Phy::Fsk100k => LogDistance::sun_fsk(),
        };
        LogDistance {
            exponent: self.exponent.unwrap_or(base.exponent),
            reference_loss_db: self.reference_loss_db.unwrap_or(base.reference_loss_db),
            shadowing_db: self.shadowing_db.unwrap_or(base.shadowing_db),
            tx_power_dbm: self.tx_power_dbm.unwrap_or(base.tx_power_dbm),
            noise_floor_dbm: self.noise_floor_dbm.unwrap_or(base.noise_floor_dbm),
            sensitivity_dbm: self.sensitivity_dbm.unwrap_or(base.sensitivity_dbm),
            preamble_sinr_db: self.preamble_sinr_db.unwrap_or(base.preamble_sinr_db),
            cca_threshold_dbm: self.cca_threshold_dbm.unwrap_or(base.cca_threshold_dbm),
            cca_mode: self.cca_mode.unwrap_or(base.cca_mode),
            capture_sinr_db: self.capture_sinr_db.or(base.capture_sinr_db),
            co_channel_rejection_db: self.co_channel_rejection_db.or(base.co_channel_rejection_db),
            weakest_dbm: self.weakest_dbm.unwrap_or(base.weakest_dbm),
        }
    }

    fn of(model: &LogDistance) -> Self {
        Self {
            exponent: Some(model.exponent),
            reference_loss_db: Some(model.reference_loss_db),
            shadowing_db: Some(model.shadowing_db),
            tx_power_dbm: Some(model.tx_power_dbm),
            noise_floor_dbm: Some(model.noise_floor_dbm),
            sensitivity_dbm: Some(model.sensitivity_dbm),
            preamble_sinr_db: Some(model.preamble_sinr_db),
            cca_threshold_dbm: Some(model.cca_threshold_dbm),
            cca_mode: Some(model.cca_mode),
            capture_sinr_db: model.capture_sinr_db,
            co_channel_rejection_db: model.co_channel_rejection_db,
            weakest_dbm: Some(model.weakest_dbm),
        }
    }
}
