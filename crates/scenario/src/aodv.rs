//! The `[aodv]` section: on-demand routing (AODV, RFC 3561).

use anabranch_core::aodv::{self, Hello, IntermediateReplies, LocalRepair, ReplyAcks};
use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::options;
use super::units::Span;
use anabranch_sim::network::AodvConfig;

/// Base values of the options in `[aodv]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AodvBase {
    /// Defaults of RFC 3561, section 10.
    #[default]
    Rfc,
    /// Defaults of ns-2.35, without its local repair.
    Ns2,
}

options! {
    /// On-demand routing: nodes look for a route when they have a packet for a new destination
    /// (AODV, RFC 3561). Needs `[wifi]` and IPv4.
    pub struct AodvSection of AodvConfig,
    /// Base values of the options.
    base: AodvBase;
    /// ACTIVE_ROUTE_TIMEOUT: time for which an unused route stays valid, more than 0.
    active_route_timeout: Span = router.active_route_timeout;
    /// MY_ROUTE_TIMEOUT: lifetime that a destination puts into its replies, more than 0.
    my_route_timeout: Span = router.my_route_timeout;
    /// DELETE_PERIOD: time for which an invalid route is remembered.
    delete_period: Span = router.delete_period;
    /// NODE_TRAVERSAL_TIME: estimated time of a message over one hop, more than 0.
    node_traversal_time: Span = router.node_traversal_time;
    /// NET_DIAMETER: largest number of hops between two nodes, 1 to 255.
    net_diameter: u8 = router.net_diameter;
    /// TIMEOUT_BUFFER: hops that are added to the wait for a reply, for congestion on the way.
    timeout_buffer: u8 = router.timeout_buffer;
    /// PATH_DISCOVERY_TIME: time for which a request is recognised as a duplicate.
    path_discovery_time: Span = router.path_discovery_time;
    /// TTL_START: reach of the first request in hops, at least 1.
    ttl_start: u8 = router.ttl_start;
    /// TTL_INCREMENT: hops by which the reach grows with each further request, at least 1.
    ttl_increment: u8 = router.ttl_increment;
    /// TTL_THRESHOLD: reach in hops above which requests go through the whole network.
    ttl_threshold: u8 = router.ttl_threshold;
    /// RREQ_RETRIES: number of repeated requests through the whole network.
    request_retries: u8 = router.request_retries;
    /// RREQ_RATELIMIT: largest number of requests of a node in one second.
    request_rate_limit: u8 = router.request_rate_limit;
    /// RERR_RATELIMIT: largest number of route errors of a node in one second.
    error_rate_limit: u8 = router.error_rate_limit;
    /// Time for which a destination counts as unreachable after a failed discovery.
    hold_after_failure: Span = router.hold_after_failure;
    /// Nodes that may answer a request.
    intermediate_replies: IntermediateReplies = router.intermediate_replies;
    /// Local repair of a broken route (section 6.12).
    local_repair: LocalRepair = router.local_repair;
    /// LOCAL_ADD_TTL: hops by which a repair reaches beyond the last known distance.
    local_add_ttl: u8 = router.local_add_ttl;
    /// MAX_REPAIR_TTL: largest distance in hops at which a node repairs a route.
    max_repair_ttl: u8 = router.max_repair_ttl;
    /// Hello messages to detect broken links (section 6.9).
    hello: Hello = router.hello;
    /// HELLO_INTERVAL: time between two Hello messages, at least 1 ms.
    hello_interval: Span = router.hello_interval;
    /// ALLOWED_HELLO_LOSS: silent intervals after which a neighbour counts as lost, at least 1.
    allowed_hello_loss: u8 = router.allowed_hello_loss;
    /// Acknowledgements of route replies (section 6.8).
    reply_acks: ReplyAcks = router.reply_acks;
    /// NEXT_HOP_WAIT: time for which a node waits for an RREP-ACK.
    next_hop_wait: Span = router.next_hop_wait;
    /// BLACKLIST_TIMEOUT: time for which a node ignores the requests of a neighbour that has not
    /// acknowledged a reply.
    blacklist_timeout: Span = router.blacklist_timeout;
    /// Longest random delay of a broadcast. It keeps neighbours from sending at the same moment.
    jitter: Span = router.jitter;
    /// Largest number of routes in a node's table, at least 1.
    max_routes: u32 = router.max_routes;
    /// Largest number of packets that wait for a route at a node, over all destinations.
    buffer: u32 = buffer;
    /// Longest time for which a packet waits for a route.
    buffer_time: Span = buffer_time;
}

impl AodvSection {
    /// Checks the section and fills in every default. An error is the key at fault and the reason.
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
