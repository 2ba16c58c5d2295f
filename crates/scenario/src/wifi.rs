//! The `[wifi]` section: an IEEE 802.11 channel.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::{OrOff, options};
use super::units::{Length, Probability, Span};
use anabranch_sim::network::AdhocConfig;
use anabranch_sim::radio::ConfigError;
use anabranch_sim::wifi::{
    Eifs, FirstAccess, Locking, PathLoss, Preamble, Rate, ResponseTimeout, WifiConfig, Window,
};

/// Base values of the options in `[wifi]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WifiBase {
    /// IEEE Std 802.11: DSSS at 2 Mbit/s without RTS; unlimited energy.
    #[default]
    Standard,
    /// ns-2.35: RTS for all unicast data, a backoff before every frame, EIFS after every signal,
    /// 1000 J for each node, and no second route for a packet that the MAC has given up.
    Ns2,
}

/// A channel, and the configuration of every node's interface to it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WifiOptions {
    /// PHY, MAC, propagation and power.
    pub channel: WifiConfig,
    /// Queue and MTU.
    pub interface: AdhocConfig,
}

options! {
    /// The IEEE 802.11 channel shared by all nodes with a `position`: DSSS in ad hoc mode with DCF.
    /// It carries IPv4 and IPv6.
    pub struct WifiSection of WifiOptions,
    /// Base values of the options.
    base: WifiBase;
    /// Distance up to which frames are received, such as "100 m". Required.
    range: Length = channel.propagation.range;
    /// Distance up to which frames are sensed and disturb others; at least `range`, 2.2 times
    /// `range` if it is not given.
    carrier_sense_range: Length = channel.propagation.carrier_sense_range;
    /// Probability that a frame is lost between two nodes within range.
    loss: Probability = channel.propagation.loss;
    /// Factor by which a frame must be stronger than each overlapping frame to survive it: at
    /// least 1.
    capture: f64 = channel.propagation.capture;
    /// What a receiver does with a frame that begins while other signals are present.
    locking: Locking = channel.propagation.locking;
    /// Path loss model: "free-space", or `{ two-ray = { height = 1.5 } }` with the height of the
    /// antennas in metres, 0.01 to 1000.
    path_loss: PathLoss = channel.propagation.path_loss;
    /// Carrier frequency in Hz, 1 MHz to 1 THz.
    frequency_hz: f64 = channel.propagation.frequency;
    /// Transmit power in mW, 0.000001 to 1,000,000.
    transmit_power_mw: f64 = channel.propagation.transmit_power;
    /// Rate of unicast data: 1, 2, 5.5 or 11 Mbit/s.
    data_rate: Rate = channel.phy.data_rate;
    /// Rate of RTS, CTS, acknowledgements and broadcasts: one of the rates of `data_rate`, and at
    /// most `data_rate`.
    basic_rate: Rate = channel.phy.basic_rate;
    /// Preamble of every frame. "short" needs a `basic_rate` of 2 Mbit/s or more.
    preamble: Preamble = channel.phy.preamble;
    /// aSlotTime in whole microseconds, at most 1 ms.
    slot: Span = channel.phy.slot;
    /// aSIFSTime in whole microseconds, at most 1 ms.
    sifs: Span = channel.phy.sifs;
    /// Longest frame in bytes, including MAC header and FCS, 1 to 2346.
    max_mpdu: u16 = channel.phy.max_mpdu;
    /// aCWmin in slots, 1 to `cw_max`.
    cw_min: u16 = channel.mac.cw_min;
    /// aCWmax in slots, at most 32767.
    cw_max: u16 = channel.mac.cw_max;
    /// dot11RTSThreshold: RTS and CTS precede unicast frames with more bytes than this. 0 for all
    /// frames, 2347 for none.
    rts_threshold: u16 = channel.mac.rts_threshold;
    /// dot11ShortRetryLimit: attempts for an RTS, and for a frame of up to `rts_threshold` bytes, 1
    /// to 255.
    short_retry_limit: u8 = channel.mac.short_retry_limit;
    /// dot11LongRetryLimit: attempts for a longer frame, 1 to 255.
    long_retry_limit: u8 = channel.mac.long_retry_limit;
    /// When EIFS replaces DIFS.
    eifs: Eifs = channel.mac.eifs;
    /// Channel access of the first frame after an idle time.
    first_access: FirstAccess = channel.mac.first_access;
    /// Range from which a backoff is drawn.
    window: Window = channel.mac.window;
    /// Time for which a station waits for a CTS or an acknowledgement.
    response_timeout: ResponseTimeout = channel.mac.response_timeout;
    /// Time before a transmission within which the station no longer notices that another frame
    /// begins, at most `slot`. It models aCCATime and aRxTxTurnaroundTime.
    unaware: Span = channel.mac.unaware;
    /// Power consumption while transmitting, in W, 0 to 100.
    transmit_w: f64 = channel.power.transmit;
    /// Power consumption while sensing a signal, in W, 0 to 100.
    receive_w: f64 = channel.power.receive;
    /// Power consumption while the channel is idle, in W, 0 to 100.
    idle_w: f64 = channel.power.idle;
    /// Power consumption while the radio is off, in W, 0 to 100.
    off_w: f64 = channel.power.off;
    /// Initial energy of each node in J; the radio is off for good when it is used up. "off" for
    /// unlimited energy.
    initial_energy_j: OrOff<f64> = channel.initial_energy_j;
    /// Capacity of a node's queue in packets, without the packet at the MAC, at least 1.
    queue: u32 = interface.queue;
    /// Largest IP packet in bytes.
    mtu: u32 = interface.mtu;
    /// Number of alternative routes tried for a packet whose next hop did not answer.
    reroutes: u8 = interface.reroutes;
}

/// The key at fault, if there is one, and the reason.
type Fault = (Option<&'static str>, String);

impl WifiSection {
    /// Checks the section and fills in every default.
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

    /// Turns an error of the channel's configuration into a fault at the corresponding key.
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
