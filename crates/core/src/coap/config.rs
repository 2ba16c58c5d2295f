//! Options of block-wise transfers, with the defaults of the RFCs.

use anabranch_wire::coap::Block;

use crate::time::Duration;

/// How a body is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Method {
    /// PUT with Block1 (RFC 7959): the sender of the body is the client; one confirmable block per
    /// round trip.
    #[default]
    Block1,
    /// GET with Block2 (RFC 7959): the receiver of the body is the client; one block per round
    /// trip.
    Block2,
    /// PUT with Q-Block1 (RFC 9177): the sender is the client; sets of non-confirmable blocks.
    #[cfg_attr(feature = "serde", serde(rename = "q-block1"))]
    QBlock1,
    /// GET with Q-Block2 (RFC 9177): the receiver is the client; sets of non-confirmable blocks.
    #[cfg_attr(feature = "serde", serde(rename = "q-block2"))]
    QBlock2,
}

impl Method {
    /// Whether the sender of the body is the client.
    pub const fn is_put(self) -> bool {
        matches!(self, Self::Block1 | Self::QBlock1)
    }
}

/// Options of both ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// How the body is carried. Servers answer all methods.
    pub method: Method,
    /// Largest block in bytes: a power of two from 16 to 1024. Each end asks the other for at most
    /// this size.
    pub block_size: u16,
    /// ACK_TIMEOUT: least wait for the acknowledgement of a confirmable message, 2 s (RFC 7252
    /// section 4.8).
    pub ack_timeout: Duration,
    /// ACK_RANDOM_FACTOR: a first wait is chosen at random between ACK_TIMEOUT and this multiple of
    /// it, 1.5 (RFC 7252 section 4.8).
    pub ack_random_factor: f64,
    /// MAX_RETRANSMIT: largest number of retransmissions of a confirmable message, 4 (RFC 7252
    /// section 4.8).
    pub max_retransmit: u8,
    /// MAX_LATENCY: longest time that a datagram takes, 100 s (RFC 7252 section 4.8.2).
    pub max_latency: Duration,
    /// MAX_PAYLOADS: number of non-confirmable blocks that are sent at once, 10 (RFC 9177 section
    /// 7.2). Both ends need the same number.
    pub max_payloads: u16,
    /// NON_TIMEOUT: least pause between two sets of blocks without a permission of the receiver, 2
    /// s (RFC 9177 section 7.2). The pause is chosen once for each body, at random up to
    /// ACK_RANDOM_FACTOR times this.
    pub non_timeout: Duration,
    /// NON_RECEIVE_TIMEOUT: first wait for a missing block, 4 s; doubles with each request (RFC
    /// 9177 section 7.2).
    pub non_receive_timeout: Duration,
    /// NON_MAX_RETRANSMIT: largest number of requests for missing blocks without a block in answer,
    /// 4 (RFC 9177 section 7.2).
    pub non_max_retransmit: u8,
    /// NON_PARTIAL_TIMEOUT: time for which the received part of a body is kept, 247 s (RFC 9177
    /// section 7.2). After the last block, a sender waits this long for the confirmation.
    pub non_partial_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            method: Method::default(),
            block_size: 1024,
            ack_timeout: Duration::from_secs(2),
            ack_random_factor: 1.5,
            max_retransmit: 4,
            max_latency: Duration::from_secs(100),
            max_payloads: 10,
            non_timeout: Duration::from_secs(2),
            non_receive_timeout: Duration::from_secs(4),
            non_max_retransmit: 4,
            non_partial_timeout: Duration::from_secs(247),
        }
    }
}

impl Config {
    /// MAX_TRANSMIT_SPAN: longest time from the first to the last transmission of a confirmable
    /// message, 45 s (RFC 7252 section 4.8.2).
    pub fn max_transmit_span(&self) -> Duration {
        self.randomised(doubled(self.ack_timeout, self.max_retransmit) - self.ack_timeout)
    }

    /// MAX_TRANSMIT_WAIT: longest time from the first transmission of a confirmable message until
    /// the sender gives up, 93 s (RFC 7252 section 4.8.2).
    pub fn max_transmit_wait(&self) -> Duration {
        self.randomised(doubled(self.ack_timeout, self.max_retransmit.saturating_add(1)) - self.ack_timeout)
    }

    /// EXCHANGE_LIFETIME: time after which a message ID may be used again, 247 s (RFC 7252 section
    /// 4.8.2). PROCESSING_DELAY is ACK_TIMEOUT.
    pub fn exchange_lifetime(&self) -> Duration {
        self.max_transmit_span() + self.max_latency * 2 + self.ack_timeout
    }

    /// NON_PARTIAL_TIMEOUT by the formula of RFC 9177 section 7.2.
    pub fn partial_timeout(&self) -> Duration {
        let waits = doubled(self.non_timeout, self.non_max_retransmit) - self.non_timeout;
        self.randomised(waits) + self.max_latency * 2 + self.non_timeout
    }

    /// The longest that this time gets by ACK_RANDOM_FACTOR.
    pub fn randomised(&self, time: Duration) -> Duration {
        Duration::from_nanos((time.as_nanos() as f64 * self.ack_random_factor) as u64)
    }

    /// SZX of the largest block; that of 1024 bytes if the size is invalid.
    pub(super) fn szx(&self) -> u8 {
        Block::szx_of(self.block_size).unwrap_or(Block::MAX_SZX)
    }

    /// Number of blocks in a set, at least 1.
    pub(super) fn set(&self) -> u32 {
        self.max_payloads.max(1).into()
    }
}

/// A time, doubled this many times; saturates.
pub(super) fn doubled(time: Duration, times: u8) -> Duration {
    time * 1u64.checked_shl(times.into()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The printed values of RFC 7252 section 4.8.2 and RFC 9177 table 3.
    #[test]
    fn derived_times_are_those_of_the_rfcs() {
        let config = Config::default();
        let seconds = [
            config.max_transmit_span(),
            config.max_transmit_wait(),
            config.exchange_lifetime(),
            config.partial_timeout(),
            config.non_partial_timeout,
        ];
        assert_eq!(seconds, [45, 93, 247, 247, 247].map(Duration::from_secs));
        assert_eq!(doubled(Duration::from_secs(1), 200), Duration::MAX);
    }
}
