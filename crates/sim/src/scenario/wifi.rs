//! What a scenario file says of an IEEE 802.11 channel.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::{OrOff, options};
use super::units::{Length, Probability, Span};
use crate::network::AdhocConfig;
use crate::radio::ConfigError;
use crate::wifi::{
    Eifs, FirstAccess, Locking, PathLoss, Preamble, Rate, ResponseTimeout, WifiConfig, Window,
};

/// Where the options of `[wifi]` start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WifiBase {
    /// IEEE Std 802.11: DSSS at 2 Mbit/s without RTS, an endless supply of energy.
    #[default]
    Standard,
    /// ns-2.35: RTS before all unicast data, a backoff before every frame, EIFS after every signal,
    /// 1000 J for each node, no second route for a packet that the MAC gave up.
    Ns2,
}

/// A channel, and what holds for every node's interface to it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WifiOptions {
    /// PHY, MAC, propagation and power.
    pub channel: WifiConfig,
    /// Queue and MTU.
    pub interface: AdhocConfig,
}

options! {
    /// The IEEE 802.11 channel that all nodes with a `position` share: DSSS, ad hoc, with DCF. It
    /// carries IPv4 and IPv6.
    pub struct WifiSection of WifiOptions,
    /// Where the options start from.
    base: WifiBase;
    /// How far frames are received: a length such as "100 m". Needed.
    range: Length = channel.propagation.range;
    /// How far frames are sensed and disturb others; 2.2 times `range` if it is not given, and not
    /// less than it.
    carrier_sense_range: Length = channel.propagation.carrier_sense_range;
    /// Probability that a frame is lost between two nodes within range.
    loss: Probability = channel.propagation.loss;
    /// A frame that is being received survives others if it is this many times stronger than each,
    /// at least 1.
    capture: f64 = channel.propagation.capture;
    /// What a receiver does with a frame that begins while other signals are there.
    locking: Locking = channel.propagation.locking;
    /// How power falls with the distance: "free-space", or `{ two-ray = { height = 1.5 } }` with
    /// the antennas' height in metres.
    path_loss: PathLoss = channel.propagation.path_loss;
    /// Carrier frequency in Hz, 1 MHz to 1 THz.
    frequency_hz: f64 = channel.propagation.frequency;
    /// Transmit power in mW.
    transmit_power_mw: f64 = channel.propagation.transmit_power;
    /// Rate of unicast data: 1, 2, 5.5 or 11 Mbit/s.
    data_rate: Rate = channel.phy.data_rate;
    /// Rate of RTS, CTS, acknowledgements and broadcasts: one of these, at most `data_rate`.
    basic_rate: Rate = channel.phy.basic_rate;
    /// Preamble of every frame. "short" needs a `basic_rate` of 2 Mbit/s or more.
    preamble: Preamble = channel.phy.preamble;
    /// aSlotTime in whole microseconds, at most 1 ms.
    slot: Span = channel.phy.slot;
    /// aSIFSTime in whole microseconds, at most 1 ms.
    sifs: Span = channel.phy.sifs;
    /// Bytes of the longest frame, MAC header and FCS included, 1 to 2346.
    max_mpdu: u16 = channel.phy.max_mpdu;
    /// aCWmin in slots, 1 to `cw_max`.
    cw_min: u16 = channel.mac.cw_min;
    /// aCWmax in slots, at most 32767.
    cw_max: u16 = channel.mac.cw_max;
    /// dot11RTSThreshold: unicast frames with more bytes are sent after RTS and CTS; 0 for all,
    /// 2347 for none.
    rts_threshold: u16 = channel.mac.rts_threshold;
    /// dot11ShortRetryLimit: attempts for a frame of up to `rts_threshold` bytes, and for an RTS, 1
    /// to 255.
    short_retry_limit: u8 = channel.mac.short_retry_limit;
    /// dot11LongRetryLimit: attempts for a longer frame, 1 to 255.
    long_retry_limit: u8 = channel.mac.long_retry_limit;
    /// When EIFS takes the place of DIFS.
    eifs: Eifs = channel.mac.eifs;
    /// What a station does with its first frame after a pause.
    first_access: FirstAccess = channel.mac.first_access;
    /// From which numbers a backoff is drawn.
    window: Window = channel.mac.window;
    /// How long a station waits for a CTS or an acknowledgement.
    response_timeout: ResponseTimeout = channel.mac.response_timeout;
    /// How long before it sends a station no longer notices the frames of others; at most `slot`.
    unaware: Span = channel.mac.unaware;
    /// Power that a radio draws while it transmits, in W.
    transmit_w: f64 = channel.power.transmit;
    /// Power that a radio draws while it senses a signal, in W.
    receive_w: f64 = channel.power.receive;
    /// Power that a radio draws while the channel is clear, in W.
    idle_w: f64 = channel.power.idle;
    /// Power that a radio draws while it is off, in W.
    off_w: f64 = channel.power.off;
    /// Energy after which a node's radio is off for good, in J, or "off" for an endless supply.
    initial_energy_j: OrOff<f64> = channel.initial_energy_j;
    /// Packets that wait for the MAC at a node, beside the one that it has, at least 1.
    queue: u32 = interface.queue;
    /// Largest IP packet in bytes.
    mtu: u32 = interface.mtu;
    /// Other routes that a packet is given whose next hop did not answer.
    reroutes: u8 = interface.reroutes;
}

/// The key at fault, where there is one, and what is wrong.
type Fault = (Option<&'static str>, String);

impl WifiSection {
    /// What the section means, with every value written out, or what is wrong.
    pub(super) fn resolve(&mut self) -> Result<WifiOptions, Fault> {
        let Some(Length(range)) = self.range else {
            return Err((None, "expected `range`, a length such as \"100 m\"".to_owned()));
        };
        let mut options = match self.base {
            WifiBase::Standard => {
                WifiOptions { channel: WifiConfig::dsss(range), interface: AdhocConfig::default() }
            }
            WifiBase::Ns2 => WifiOptions { channel: WifiConfig::ns2(range), interface: AdhocConfig::ns2() },
        };
        self.lay_over(&mut options);
        options.channel.check().map_err(|error| Self::fault(&error))?;
        if options.interface.queue == 0 {
            return Err((Some("queue"), "a queue of no packet sends nothing".to_owned()));
        }
        self.complete(&options);
        Ok(options)
    }

    /// The radio's complaint, at the key that it is about.
    fn fault(error: &ConfigError) -> Fault {
        let ConfigError::Range(names, range) = *error else { return (None, error.to_string()) };
        let first = names.split([',', ' ']).next().unwrap_or(names);
        let key = match first {
            "frequency" => "frequency_hz",
            "transmit_power" => "transmit_power_mw",
            "height" => "path_loss",
            "power" => "transmit_w",
            other => other,
        };
        (Some(key), format!("{names}: expected {range}"))
    }
}
