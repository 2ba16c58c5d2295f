//! The constants of RFC 3561 section 10 as options.

use crate::time::Duration;

/// Parameters of a node. [`Config::default`] has the values of RFC 3561 section 10.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// ACTIVE_ROUTE_TIMEOUT: lifetime of an unused route; 3 s, or 10 s without link-layer
    /// notifications.
    pub active_route_timeout: Duration,
    /// MY_ROUTE_TIMEOUT: the lifetime of the routes in a destination's own replies; 2
    /// ACTIVE_ROUTE_TIMEOUT.
    pub my_route_timeout: Duration,
    /// DELETE_PERIOD: how long an invalid route is kept with its sequence number. It must be at
    /// least as long as any neighbour may continue to use the route: K max(ACTIVE_ROUTE_TIMEOUT,
    /// ALLOWED_HELLO_LOSS HELLO_INTERVAL), with K = 5.
    pub delete_period: Duration,
    /// NODE_TRAVERSAL_TIME: time that a message takes over one hop, including queues and
    /// processing; 40 ms.
    pub node_traversal_time: Duration,
    /// NET_DIAMETER: the largest number of hops between two nodes, 1 to 255; 35.
    pub net_diameter: u8,
    /// TIMEOUT_BUFFER: extra hops in the time-out of a ring search; 2.
    pub timeout_buffer: u8,
    /// PATH_DISCOVERY_TIME: how long a request is remembered to detect duplicates; 2
    /// NET_TRAVERSAL_TIME.
    pub path_discovery_time: Duration,
    /// TTL_START: TTL of the first request in hops, at least 1; 1.
    pub ttl_start: u8,
    /// TTL_INCREMENT: increase of the TTL for each further request, at least 1; 2.
    pub ttl_increment: u8,
    /// TTL_THRESHOLD: above this TTL, requests go through the whole network; 7.
    pub ttl_threshold: u8,
    /// RREQ_RETRIES: retries of a request through the whole network; 2.
    pub request_retries: u8,
    /// RREQ_RATELIMIT: largest number of originated requests in any second; 10.
    pub request_rate_limit: u8,
    /// RERR_RATELIMIT: largest number of route errors in any second; 10.
    pub error_rate_limit: u8,
    /// How long a destination that was not found stays [`super::Route::Unreachable`]. The RFC
    /// specifies no such time: with the default of zero the next packet starts a new search.
    pub hold_after_failure: Duration,
    /// Whether a node answers requests for other destinations to which it knows a route; if not,
    /// its own requests have the D flag set.
    pub intermediate_replies: IntermediateReplies,
    /// Whether the node upstream of a broken link searches for another path itself (section 6.12).
    pub local_repair: LocalRepair,
    /// LOCAL_ADD_TTL: extra hops in the TTL of a repair request; 2.
    pub local_add_ttl: u8,
    /// MAX_REPAIR_TTL: largest distance of a destination in hops for a local repair; beyond it the
    /// originator repairs; 0.3 NET_DIAMETER, 10.
    pub max_repair_ttl: u8,
    /// Whether Hello messages monitor the neighbours (section 6.9).
    pub hello: Hello,
    /// HELLO_INTERVAL; 1 s.
    pub hello_interval: Duration,
    /// ALLOWED_HELLO_LOSS: number of silent intervals after which a neighbour counts as lost, at
    /// least 1; 2.
    pub allowed_hello_loss: u8,
    /// Whether replies are acknowledged, which detects unidirectional links (section 6.8).
    pub reply_acks: ReplyAcks,
    /// NEXT_HOP_WAIT: how long a node waits for an RREP-ACK; NODE_TRAVERSAL_TIME + 10 ms.
    pub next_hop_wait: Duration,
    /// BLACKLIST_TIMEOUT: how long a node ignores the requests of a neighbour that its reply did
    /// not reach; RREQ_RETRIES NET_TRAVERSAL_TIME.
    pub blacklist_timeout: Duration,
    /// Broadcasts wait for a random part of this time to avoid collisions between neighbours; 10
    /// ms, as in ns-2. The RFC specifies none.
    pub jitter: Duration,
    /// Largest number of stored routes, valid or not, and also of remembered requests. Further ones
    /// are counted but not stored.
    pub max_routes: usize,
}

/// Which nodes may answer a request (RFC 3561 section 6.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum IntermediateReplies {
    /// Only the destination: the node's own requests have the D flag set.
    Refused,
    /// Every node that knows a sufficiently fresh route.
    Accepted,
    /// Every node that knows a sufficiently fresh route; it also sends the destination a gratuitous
    /// reply. The G flag is set (section 6.6.3).
    Gratuitous,
}

/// Local repair (RFC 3561 section 6.12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LocalRepair {
    /// The originator searches for a new route.
    Off,
    /// The node upstream of the break tries first.
    On,
}

/// Hello messages (RFC 3561 sections 6.9 and 6.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Hello {
    /// No Hello messages: the link layer reports lost links.
    Off,
    /// A node on an active route sends Hello messages, and its neighbours drop the link if they
    /// stop.
    On,
}

/// Acknowledgements of replies (RFC 3561 section 6.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReplyAcks {
    /// Not requested: the link layer reports undelivered replies. The node still acknowledges
    /// replies of neighbours that request it.
    Off,
    /// Requested with each reply.
    On,
}

impl Config {
    /// NET_TRAVERSAL_TIME: 2 NODE_TRAVERSAL_TIME NET_DIAMETER.
    pub fn net_traversal_time(&self) -> Duration {
        self.node_traversal_time * 2 * u64::from(self.net_diameter)
    }

    /// RING_TRAVERSAL_TIME: 2 NODE_TRAVERSAL_TIME (TTL_VALUE + TIMEOUT_BUFFER).
    pub fn ring_traversal_time(&self, ttl: u8) -> Duration {
        self.node_traversal_time * 2 * (u64::from(ttl) + u64::from(self.timeout_buffer))
    }

    /// How long a neighbour that sends Hello messages may be silent.
    pub(super) fn hello_patience(&self, interval: Duration) -> Duration {
        interval * u64::from(self.allowed_hello_loss.max(1))
    }

    /// The parameters of ns-2.35 (`aodv/aodv.h`, `aodv/aodv.cc`), except where ns-2.35 has a
    /// different algorithm: NODE_TRAVERSAL_TIME 30 ms, NETWORK_DIAMETER 30, TTL_START 5,
    /// ACTIVE_ROUTE_TIMEOUT and MY_ROUTE_TIMEOUT 10 s, BCAST_ID_SAVE 6 s, RREQ_RETRIES 3, no buffer
    /// in the time-out of a ring search, MAX_RREQ_TIMEOUT 10 s, neither Hello messages nor
    /// RREP-ACKs. ns-2.35 never deletes a route; here DELETE_PERIOD is long instead.
    ///
    /// ns-2.35 also repairs locally if the destination is nearer than the source. Local repair is
    /// off here, as in papers that simulate plain AODV; [`Config::local_repair`] turns on the RFC's
    /// local repair.
    pub fn ns2() -> Self {
        let active_route_timeout = Duration::from_secs(10);
        Self {
            active_route_timeout,
            my_route_timeout: active_route_timeout,
            delete_period: active_route_timeout * 5,
            node_traversal_time: Duration::from_millis(30),
            net_diameter: 30,
            timeout_buffer: 0,
            path_discovery_time: Duration::from_secs(6),
            ttl_start: 5,
            request_retries: 3,
            hold_after_failure: Duration::from_secs(10),
            max_repair_ttl: 9,
            allowed_hello_loss: 3,
            ..Self::default()
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            active_route_timeout: Duration::from_secs(3),
            my_route_timeout: Duration::from_secs(6),
            delete_period: Duration::from_secs(15),
            node_traversal_time: Duration::from_millis(40),
            net_diameter: 35,
            timeout_buffer: 2,
            path_discovery_time: Duration::from_millis(5_600),
            ttl_start: 1,
            ttl_increment: 2,
            ttl_threshold: 7,
            request_retries: 2,
            request_rate_limit: 10,
            error_rate_limit: 10,
            hold_after_failure: Duration::ZERO,
            intermediate_replies: IntermediateReplies::Accepted,
            local_repair: LocalRepair::Off,
            local_add_ttl: 2,
            max_repair_ttl: 10,
            hello: Hello::Off,
            hello_interval: Duration::from_secs(1),
            allowed_hello_loss: 2,
            reply_acks: ReplyAcks::Off,
            next_hop_wait: Duration::from_millis(50),
            blacklist_timeout: Duration::from_millis(5_600),
            jitter: Duration::from_millis(10),
            max_routes: 4096,
        }
    }
}
