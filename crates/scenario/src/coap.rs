//! The `[coap.NAME]` section: options of block-wise transfers over CoAP
//! ([`anabranch_core::coap`]).

use anabranch_core::coap::{Config, Method};
use anabranch_core::time::Duration;

use super::options::options;
use super::units::Span;

/// Bytes of a message besides its block, at most: header, token, and the options of a transfer.
pub(super) const OVERHEAD: u32 = 40;

options! {
    /// A CoAP profile. Keys that are not given have the default of the RFC.
    pub struct CoapProfile of Config,
    /// How a body is carried.
    method: Method;
    /// Size of a block in bytes: 16, 32, 64, 128, 256, 512 or 1024.
    block_size: u16 = block_size;
    /// ACK_TIMEOUT: least wait for the answer to a confirmable message, more than 0; 2 s (RFC 7252
    /// section 4.8).
    ack_timeout: Span = ack_timeout;
    /// ACK_RANDOM_FACTOR: waits are chosen at random up to this multiple, 1 to 100; 1.5 (RFC 7252
    /// section 4.8).
    ack_random_factor: f64 = ack_random_factor;
    /// MAX_RETRANSMIT: largest number of retransmissions of a confirmable message, at most 20; 4
    /// (RFC 7252 section 4.8).
    max_retransmit: u8 = max_retransmit;
    /// MAX_LATENCY: longest time that a datagram is assumed to take; 100 s (RFC 7252 section
    /// 4.8.2).
    max_latency: Span = max_latency;
    /// MAX_PAYLOADS: number of non-confirmable blocks in a set, at least 1; 10 (RFC 9177 section
    /// 7.2).
    max_payloads: u16 = max_payloads;
    /// NON_TIMEOUT: least pause between two sets without a permission of the receiver, more than 0;
    /// `ack_timeout` (RFC 9177 section 7.2).
    non_timeout: Span = non_timeout;
    /// NON_RECEIVE_TIMEOUT: first wait for a missing block. It exceeds the longest pause,
    /// `non_timeout` times `ack_random_factor`, by at least 1 s; twice `non_timeout`, but at least
    /// that (RFC 9177 section 7.2).
    non_receive_timeout: Span = non_receive_timeout;
    /// NON_MAX_RETRANSMIT: largest number of requests for missing blocks without an answer, at most
    /// 20; `max_retransmit` (RFC 9177 section 7.2).
    non_max_retransmit: u8 = non_max_retransmit;
    /// NON_PARTIAL_TIMEOUT: time for which the received part of a body is kept, and for which a
    /// sender waits for the confirmation; by the formula of RFC 9177 section 7.2, 247 s with the
    /// other defaults.
    non_partial_timeout: Span = non_partial_timeout;
}

impl CoapProfile {
    /// Checks the profile and fills in every default. An error is the key at fault and the reason.
    pub(super) fn resolve(&mut self) -> Result<Config, (&'static str, &'static str)> {
        let mut config = Config { method: self.method, ..Config::default() };
        self.lay_over(&mut config);
        let factor = config.ack_random_factor;
        let faults = [
            (
                "block_size",
                !config.block_size.is_power_of_two() || !(16..=1024).contains(&config.block_size),
                "expected 16, 32, 64, 128, 256, 512 or 1024 bytes",
            ),
            ("ack_timeout", config.ack_timeout.is_zero(), "expected more than no time"),
            ("ack_random_factor", !(1.0..=100.0).contains(&factor), "expected 1 to 100"),
            ("max_retransmit", config.max_retransmit > 20, "expected at most 20"),
            ("max_payloads", config.max_payloads == 0, "expected at least 1"),
            ("non_timeout", config.non_timeout.is_zero(), "expected more than no time"),
            ("non_max_retransmit", config.non_max_retransmit > 20, "expected at most 20"),
        ];
        if let Some((key, _, message)) = faults.into_iter().find(|(_, wrong, _)| *wrong) {
            return Err((key, message));
        }
        // The defaults of RFC 9177 section 7.2 follow other values.
        if self.non_timeout.is_none() {
            config.non_timeout = config.ack_timeout;
        }
        if self.non_max_retransmit.is_none() {
            config.non_max_retransmit = config.max_retransmit;
        }
        let least = config.randomised(config.non_timeout) + Duration::from_secs(1);
        if self.non_receive_timeout.is_none() {
            config.non_receive_timeout = least.max(config.non_timeout * 2);
        }
        if config.non_receive_timeout < least {
            return Err((
                "non_receive_timeout",
                "expected at least `non_timeout` times `ack_random_factor`, and 1 s more",
            ));
        }
        if self.non_partial_timeout.is_none() {
            config.non_partial_timeout = config.partial_timeout();
        }
        self.complete(&config);
        Ok(config)
    }
}
