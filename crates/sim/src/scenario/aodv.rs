//! What a scenario file says of routes that nodes look for by AODV (RFC 3561).

use anabranch_core::aodv::{self, Hello, IntermediateReplies, LocalRepair, ReplyAcks};
use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::options;
use super::units::Span;
use crate::network::AodvConfig;

/// Where the options of `[aodv]` start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AodvBase {
    /// RFC 3561, section 10.
    #[default]
    Rfc,
    /// ns-2.35, without its local repair.
    Ns2,
}

options! {
    /// Packets follow routes that the nodes look for when they need them (AODV, RFC 3561). Only
    /// with `[wifi]` and IPv4.
    pub struct AodvSection of AodvConfig,
    /// Where the options start from.
    base: AodvBase;
    /// ACTIVE_ROUTE_TIMEOUT: how long an unused route stays valid.
    active_route_timeout: Span = router.active_route_timeout;
    /// MY_ROUTE_TIMEOUT: lifetime of the routes that a destination gives.
    my_route_timeout: Span = router.my_route_timeout;
    /// DELETE_PERIOD: how long a route that is no longer valid is remembered.
    delete_period: Span = router.delete_period;
    /// NODE_TRAVERSAL_TIME: time that a message takes over one hop.
    node_traversal_time: Span = router.node_traversal_time;
    /// NET_DIAMETER: hops between two nodes at most, 1 to 255.
    net_diameter: u8 = router.net_diameter;
    /// TIMEOUT_BUFFER: hops by which the wait for an answer exceeds its way.
    timeout_buffer: u8 = router.timeout_buffer;
    /// PATH_DISCOVERY_TIME: how long a request is recognised.
    path_discovery_time: Span = router.path_discovery_time;
    /// TTL_START: reach of the first request in hops, at least 1.
    ttl_start: u8 = router.ttl_start;
    /// TTL_INCREMENT: hops that each further request adds, at least 1.
    ttl_increment: u8 = router.ttl_increment;
    /// TTL_THRESHOLD: reach above which requests go through the whole network.
    ttl_threshold: u8 = router.ttl_threshold;
    /// RREQ_RETRIES: further requests through the whole network.
    request_retries: u8 = router.request_retries;
    /// RREQ_RATELIMIT: requests of a node in any second.
    request_rate_limit: u8 = router.request_rate_limit;
    /// RERR_RATELIMIT: route errors of a node in any second.
    error_rate_limit: u8 = router.error_rate_limit;
    /// How long a destination that was not found counts as unreachable.
    hold_after_failure: Span = router.hold_after_failure;
    /// Which nodes may answer a request.
    intermediate_replies: IntermediateReplies = router.intermediate_replies;
    /// Local repair (section 6.12).
    local_repair: LocalRepair = router.local_repair;
    /// LOCAL_ADD_TTL: hops that a repair reaches beyond the last known distance.
    local_add_ttl: u8 = router.local_add_ttl;
    /// MAX_REPAIR_TTL: distance in hops up to which a node repairs a route.
    max_repair_ttl: u8 = router.max_repair_ttl;
    /// Hello messages (section 6.9).
    hello: Hello = router.hello;
    /// HELLO_INTERVAL.
    hello_interval: Span = router.hello_interval;
    /// ALLOWED_HELLO_LOSS: silent intervals after which a neighbour counts as gone, at least 1.
    allowed_hello_loss: u8 = router.allowed_hello_loss;
    /// Acknowledgements of replies (section 6.8).
    reply_acks: ReplyAcks = router.reply_acks;
    /// NEXT_HOP_WAIT: how long a node waits for an RREP-ACK.
    next_hop_wait: Span = router.next_hop_wait;
    /// BLACKLIST_TIMEOUT: how long a node's requests are ignored that a reply did not reach.
    blacklist_timeout: Span = router.blacklist_timeout;
    /// Broadcasts are delayed by a random part of this time.
    jitter: Span = router.jitter;
    /// Routes that a node knows at most, at least 1.
    max_routes: u32 = router.max_routes;
    /// Packets that wait at a node for a route, over all destinations.
    buffer: u32 = buffer;
    /// How long these packets wait at most.
    buffer_time: Span = buffer_time;
}

impl AodvSection {
    /// What the section means, with every value written out, or the key at fault and what is wrong
    /// with it.
    pub(super) fn resolve(&mut self) -> Result<AodvConfig, (&'static str, String)> {
        let mut config: AodvConfig = match self.base {
            AodvBase::Rfc => aodv::Config::default().into(),
            AodvBase::Ns2 => aodv::Config::ns2().into(),
        };
        self.lay_over(&mut config);
        let at_least_one = [
            ("net_diameter", config.router.net_diameter == 0),
            ("ttl_start", config.router.ttl_start == 0),
            ("ttl_increment", config.router.ttl_increment == 0),
            ("allowed_hello_loss", config.router.allowed_hello_loss == 0),
            ("max_routes", config.router.max_routes == 0),
        ];
        if let Some((key, _)) = at_least_one.iter().find(|(_, zero)| *zero) {
            return Err((key, "expected at least 1".to_owned()));
        }
        let some_time = [
            ("active_route_timeout", config.router.active_route_timeout),
            ("my_route_timeout", config.router.my_route_timeout),
            ("node_traversal_time", config.router.node_traversal_time),
            ("hello_interval", config.router.hello_interval),
        ];
        if let Some((key, _)) = some_time.iter().find(|(_, span)| span.is_zero()) {
            return Err((key, "expected more than no time".to_owned()));
        }
        if config.router.hello_interval < Duration::from_millis(1) {
            return Err(("hello_interval", "expected at least 1 ms".to_owned()));
        }
        self.complete(&config);
        Ok(config)
    }
}
