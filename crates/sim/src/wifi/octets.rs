//! Frames as bytes, for captures.

use anabranch_wire::ieee80211::radiotap::{self, Radiotap};
use anabranch_wire::ieee80211::{self, Address, EmitError, Frame, Header};

use super::{AirFrame, FrameKind, Preamble, Station};

/// BSSID of the ad hoc network of all stations: a random number with the bits of a local address
/// (11.1.3).
pub const BSSID: Address = Address([2, 0x1b, 0x55, 0xa0, 0x0c, 0x1d]);

/// Content of a data frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload<'a> {
    /// EtherType: 0x0800 for IPv4, 0x86dd for IPv6.
    pub ether_type: u16,
    /// Its bytes: 36 fewer than the MPDU has.
    pub octets: &'a [u8],
}

/// The address of a station.
pub const fn address(station: Station) -> Address {
    Address::numbered(station.0)
}

/// Appends a radiotap header and the frame, including the FCS. `payload` is the content of data;
/// other frames have none.
///
/// # Errors
/// None that frames of [`super::Wifi`] can have.
pub fn emit(
    frame: &AirFrame,
    preamble: Preamble,
    payload: Payload<'_>,
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let short_preamble = preamble == Preamble::Short;
    let rate = frame.rate.half_mbps();
    radiotap::emit(&Radiotap { rate, short_preamble, frequency: CHANNEL_1, signal_dbm: None }, out);
    let duration = u16::try_from(frame.duration.as_nanos() / 1000).unwrap_or(u16::MAX);
    let receiver = frame.to.map_or(Address::BROADCAST, address);
    let octets = match frame.kind {
        FrameKind::Data => {
            let AirFrame { seq, retry, .. } = *frame;
            let (src, ether_type) = (address(frame.from), payload.ether_type);
            let header = Header { duration, dst: receiver, src, bssid: BSSID, seq, retry, ether_type };
            Frame::Data(header, payload.octets)
        }
        FrameKind::Rts => Frame::Rts { duration, receiver, transmitter: address(frame.from) },
        FrameKind::Cts => Frame::Cts { duration, receiver },
        FrameKind::Ack => Frame::Ack { duration, receiver },
    };
    ieee80211::emit(&octets, out)
}

/// In MHz. The simulated channel has no number, but a capture must name one.
const CHANNEL_1: u16 = 2412;
