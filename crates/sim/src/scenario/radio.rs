//! What a scenario file says of the radio.

use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::{Length, Probability, QueueSize, Span};
use super::wifi::WifiOptions;
use crate::frames;
use crate::link::QueueLimit;
use crate::network::{FragmentForwarding, VirtualReassembly, WirelessConfig};
use crate::packet::NodeId;
use crate::radio::{
    Capture, CcaMode, ConfigError, CslConfig, Fcs, LogDistance, MacConfig, PhyConfig, Position, Propagation,
    RadioConfig, UnitDisk,
};

/// Shortest frame that a scenario can ask for, in octets: a packet of 1280 octets makes 27 of it,
/// and a node keeps track of 32.
const LEAST_FRAME: u16 = 64;

/// A physical layer of IEEE 802.15.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum Phy {
    /// O-QPSK in the 2.4 GHz band: 250 kbit/s, frames of up to 127 octets.
    #[default]
    #[serde(rename = "oqpsk-250k")]
    OQpsk250k,
    /// SUN FSK below 1 GHz: 100 kbit/s, frames of up to 2047 octets.
    #[serde(rename = "fsk-100k")]
    Fsk100k,
}

/// What a node does with a packet in pieces that is for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// It puts it together before it goes on.
    #[default]
    Reassembly,
    /// It passes each fragment on as soon as it is here (RFC 8930).
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

/// The radio channel that all nodes with a `position` share: IEEE 802.15.4 without beacons, with
/// 6LoWPAN.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RadioSection {
    /// The physical layer.
    pub phy: Phy,
    /// Longest frame in octets, MAC header and FCS included: 64 to what the physical layer allows,
    /// which it is if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u16>,
    /// Bytes of the frame check sequence, 2 or 4: for "oqpsk-250k" 2, which is the only choice; for
    /// "fsk-100k" 4 if none is given.
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
    /// Longest delay before such a retry, evenly distributed from 0, beside that of CSMA-CA. The
    /// standard has none.
    pub retry_delay: Span,
    /// How often a frame that found no free channel is handed to the MAC again, each time from the
    /// beginning of CSMA-CA. The standard leaves this to the layer above.
    #[serde(skip_serializing_if = "is_zero")]
    pub access_retries: u8,
    /// Packets that wait for the radio of a node at most; "unlimited" for all.
    pub queue: QueueSize,
    /// Packets in pieces that a node puts together at a time, 1 to 64.
    pub reassemblies: u32,
    /// How long their pieces wait for the rest.
    pub reassembly_timeout: Span,
    /// What a node does with a packet in pieces that is for others.
    #[serde(skip_serializing_if = "Forwarding::is_default")]
    pub forwarding: Forwarding,
    /// Packets of others that a node remembers at a time, 1 to 1024. Only with
    /// `forwarding = "fragments"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_reassemblies: Option<u32>,
    /// How long the fragments of a packet wait for the rest, in place of `reassembly_timeout`. Only
    /// with `forwarding = "fragments"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment_timeout: Option<Span>,
    /// From the end of one fragment to the next of the same packet, at least. Only with
    /// `forwarding = "fragments"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment_gap: Option<Span>,
    /// How far frames are received: a length such as "50 m", or a number of metres. Needed, unless
    /// there is `log_distance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Length>,
    /// How far frames disturb others; `range` if none is given, and not less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interference_range: Option<Length>,
    /// How far a clear channel assessment hears frames; `range` if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier_sense_range: Option<Length>,
    /// Probability that a frame, or an acknowledgement of one, is lost between two nodes within
    /// range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
    /// What becomes of frames that overlap: "off", `{ first = 2.0 }` or `{ any = 2.0 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// How nodes sleep, by coordinated sampled listening (CSL); all of them listen all the time if
    /// this is not given.
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

/// Coordinated sampled listening (IEEE Std 802.15.4-2020, section 6.12.2). A period is rounded to
/// whole units of 10 symbols, 160 µs of "oqpsk-250k" and 100 µs of "fsk-100k".
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CslSection {
    /// macCslPeriod: how often each node samples the channel, and sleeps in between; "0 s" for
    /// nodes that never sleep. A node can have its own, `csl_period`.
    pub period: Span,
    /// macCslMaxPeriod: the longest period of all nodes, and the length of a wake-up sequence for a
    /// receiver of which it is not known when it samples; `period` if none is given. At most 65535
    /// units: 10.4856 s or 6.5535 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_period: Option<Span>,
    /// How long a channel sample lasts, less than the period; a clear channel assessment, 8
    /// symbols, if none is given. A signal that is too weak for the assessment is found by a sample
    /// that is longer than a wake-up frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Span>,
    /// macCslFramePendingWait: how long a receiver stays awake for the next frame if it was told
    /// that one follows. The default, and the least, is macLifsPeriod and the longest frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_pending_wait: Option<Span>,
    /// How far the clock of a node is off at most, in parts per million, 0 to 500; each node draws
    /// its own. 20 if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_accuracy_ppm: Option<u16>,
    /// Senders learn from acknowledgements when their neighbours sample, and send a short wake-up
    /// sequence around that time.
    #[serde(default = "yes")]
    pub synchronized: bool,
}

fn yes() -> bool {
    true
}

impl CslSection {
    /// With every default, and periods in whole units.
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

/// Path loss over distance. What is not given is that of the 2.4 GHz band indoors, or for
/// "fsk-100k" of 868 MHz.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LogDistanceSection {
    /// Path-loss exponent, 1 to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponent: Option<f64>,
    /// Path loss at 1 m, in dB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_loss_db: Option<f64>,
    /// Standard deviation of the shadowing, in dB, drawn once for each pair of nodes and run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadowing_db: Option<f64>,
    /// Transmit power, in dBm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_power_dbm: Option<f64>,
    /// Noise in a receiver's band, in dBm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_floor_dbm: Option<f64>,
    /// Weakest frame that a receiver locks on, in dBm. Bit errors decide what arrives, so this is
    /// below a data sheet's sensitivity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity_dbm: Option<f64>,
    /// SINR below which a receiver does not lock on a frame, in dB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preamble_sinr_db: Option<f64>,
    /// Energy at which the channel is busy, in dBm; above the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cca_threshold_dbm: Option<f64>,
    /// What a clear channel assessment listens for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cca_mode: Option<CcaMode>,
    /// SINR in dB with which a later frame takes a receiver over; none does if this is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_sinr_db: Option<f64>,
    /// Ratio of a frame's power to that of all frames that overlap it, in dB, below which it is
    /// lost, -20 to 40. If it is not given, interference counts as noise, which flatters receivers;
    /// measurements of 2.4 GHz radios suggest 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub co_channel_rejection_db: Option<f64>,
    /// A weaker signal is nothing at all, in dBm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weakest_dbm: Option<f64>,
}

/// A radio channel and the nodes on it.
#[derive(Clone, PartialEq, Debug)]
pub struct RadioSpec {
    /// The channel, and what holds for every node on it.
    pub channel: Channel,
    /// The nodes on the air and where they are; in the scenario's first run, where places are
    /// drawn.
    pub places: Vec<(NodeId, Position)>,
    /// From where to where frames are received. Under `log_distance` this is without shadowing,
    /// which each run draws anew.
    pub links: Vec<(NodeId, NodeId)>,
    /// How long each of them is for static routes: [`crate::routing::hop_over_air`].
    pub lengths: Vec<u64>,
    /// Nodes that have a macCslPeriod of their own.
    pub csl_periods: Vec<(NodeId, Duration)>,
}

/// A radio channel, of either kind.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Channel {
    /// `[radio]`.
    Ieee802154(RadioConfig, WirelessConfig),
    /// `[wifi]`.
    Ieee80211(WifiOptions),
}

impl Channel {
    /// How far frames are received, in metres, where that is a matter of distance alone.
    pub fn range(&self) -> Option<f64> {
        match self {
            Self::Ieee802154(config, _) => match config.propagation {
                Propagation::UnitDisk(disk) => Some(disk.range),
                Propagation::LogDistance(_) => None,
            },
            Self::Ieee80211(options) => Some(options.channel.propagation.range),
        }
    }

    /// Bytes of the largest IP packet.
    pub fn mtu(&self) -> u32 {
        match self {
            Self::Ieee802154(..) => frames::MTU,
            Self::Ieee80211(options) => options.interface.mtu,
        }
    }
}

/// The keys of `csl`.
const CSL_KEYS: [&str; 5] = ["period", "max_period", "sample", "frame_pending_wait", "clock_accuracy_ppm"];

/// The keys that lead to a fault, and what is wrong.
type Fault = (Vec<&'static str>, String);

impl RadioSection {
    /// The channel, or what is wrong.
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

    /// The radio's complaint at the key that it is about.
    fn fault(&self, error: &ConfigError) -> Fault {
        let ConfigError::Range(names, range) = *error else { return (Vec::new(), error.to_string()) };
        let mut keys = Vec::new();
        let key = names.split(',').next().unwrap_or(names);
        if let Some(csl) = self.csl.filter(|_| CSL_KEYS.contains(&key)) {
            // A longest period that was not said is the period.
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

    /// As it is, every default written out.
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
