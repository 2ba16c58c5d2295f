//! The constants of RFC 3561 section 10 as options.

use crate::time::Duration;

/// How a node takes part. [`Config::default`] has the values of RFC 3561 section 10.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// ACTIVE_ROUTE_TIMEOUT: how long a route is good that nobody uses; 3 s, or 10 s without word
    /// from the link layer.
    pub active_route_timeout: Duration,
    /// MY_ROUTE_TIMEOUT: the lifetime of the routes that a destination gives; 2
    /// ACTIVE_ROUTE_TIMEOUT.
    pub my_route_timeout: Duration,
    /// DELETE_PERIOD: how long a route that is good no more is remembered, with its sequence
    /// number. At least as long as any neighbour may go on using it: K max(ACTIVE_ROUTE_TIMEOUT,
    /// ALLOWED_HELLO_LOSS HELLO_INTERVAL), with K = 5.
    pub delete_period: Duration,
    /// NODE_TRAVERSAL_TIME: what a message takes over one hop, queues and processing included; 40
    /// ms.
    pub node_traversal_time: Duration,
    /// NET_DIAMETER: the most hops between two nodes, 1 to 255; 35.
    pub net_diameter: u8,
    /// TIMEOUT_BUFFER: hops by which the wait for an answer is longer than its way; 2.
    pub timeout_buffer: u8,
    /// PATH_DISCOVERY_TIME: how long a request is known again; 2 NET_TRAVERSAL_TIME.
    pub path_discovery_time: Duration,
    /// TTL_START: how far the first request goes, in hops, at least 1; 1.
    pub ttl_start: u8,
    /// TTL_INCREMENT: how much further the next, at least 1; 2.
    pub ttl_increment: u8,
    /// TTL_THRESHOLD: beyond it requests go through the whole network; 7.
    pub ttl_threshold: u8,
    /// RREQ_RETRIES: requests through the whole network after the first; 2.
    pub request_retries: u8,
    /// RREQ_RATELIMIT: requests of a node's own in any second; 10.
    pub request_rate_limit: u8,
    /// RERR_RATELIMIT: route errors in any second; 10.
    pub error_rate_limit: u8,
    /// How long a destination that was not found is [`super::Route::Unreachable`]. The RFC says
    /// nothing: zero, and the next packet starts a new search.
    pub hold_after_failure: Duration,
    /// Whether a node answers requests for others to which it knows a route; if not, its own
    /// requests have D set.
    pub intermediate_replies: IntermediateReplies,
    /// Whether the node upstream of a broken link looks for another way itself (section 6.12).
    pub local_repair: LocalRepair,
    /// LOCAL_ADD_TTL: hops by which a repair reaches further than it should have to; 2.
    pub local_add_ttl: u8,
    /// MAX_REPAIR_TTL: a destination further away than that is left to the originator; 0.3
    /// NET_DIAMETER, 10.
    pub max_repair_ttl: u8,
    /// Whether neighbours are watched by Hello messages (section 6.9).
    pub hello: Hello,
    /// HELLO_INTERVAL; 1 s.
    pub hello_interval: Duration,
    /// ALLOWED_HELLO_LOSS: intervals of silence after which a neighbour is gone, at least 1; 2.
    pub allowed_hello_loss: u8,
    /// Whether replies are acknowledged, which finds links that lead one way only (section 6.8).
    pub reply_acks: ReplyAcks,
    /// NEXT_HOP_WAIT: how long an RREP-ACK is waited for; NODE_TRAVERSAL_TIME + 10 ms.
    pub next_hop_wait: Duration,
    /// BLACKLIST_TIMEOUT: how long requests of a node are ignored that a reply did not reach;
    /// RREQ_RETRIES NET_TRAVERSAL_TIME.
    pub blacklist_timeout: Duration,
    /// Broadcasts wait for a random part of this, so that neighbours do not collide; 10 ms, as in
    /// ns-2. The RFC has none.
    pub jitter: Duration,
    /// Routes that a node knows at most, good or not, and also requests. Others are counted and not
    /// stored.
    pub max_routes: usize,
}

/// Who may answer a request (RFC 3561 section 6.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum IntermediateReplies {
    /// The destination only: D is set in the node's own requests.
    Refused,
    /// Each node that knows a route that is new enough.
    Accepted,
    /// The same, and the destination is told of the route too: G is set (section 6.6.3).
    Gratuitous,
}

/// Local repair (RFC 3561 section 6.12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LocalRepair {
    /// The originator looks for a new route.
    Off,
    /// The node upstream of the break tries first.
    On,
}

/// Hello messages (RFC 3561 sections 6.9 and 6.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Hello {
    /// The link layer tells of a break.
    Off,
    /// A node on a route says that it is there, and is given up when it does not.
    On,
}

/// Acknowledgements of replies (RFC 3561 section 6.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReplyAcks {
    /// Not asked for: the link layer tells. They are given to those who ask.
    Off,
    /// Asked for with each reply.
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

    /// How long a neighbour may be silent that sends Hellos.
    pub(super) fn hello_patience(&self, interval: Duration) -> Duration {
        interval * u64::from(self.allowed_hello_loss.max(1))
    }

    /// The values of ns-2.35 (`aodv/aodv.h`, `aodv/aodv.cc`), as far as they are values and not
    /// another algorithm: NODE_TRAVERSAL_TIME 30 ms, NETWORK_DIAMETER 30, TTL_START 5,
    /// ACTIVE_ROUTE_TIMEOUT and MY_ROUTE_TIMEOUT 10 s, BCAST_ID_SAVE 6 s, RREQ_RETRIES 3, no buffer
    /// in the time of a ring, MAX_RREQ_TIMEOUT 10 s, neither Hellos nor RREP-ACKs. A route there is
    /// never deleted, so here it is kept for long.
    ///
    /// ns-2.35 also repairs locally where the destination is nearer than the source. Here that is
    /// off, as papers that simulate plain AODV have it; [`Config::local_repair`] turns on the
    /// RFC's.
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
