//! Counters of a node.

/// Counters since the start of the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments passed to the node.
    pub segments: u64,
    /// Segments of connections without state.
    pub stateless: u64,
    /// Segments only forwarded because their numbers do not fit their connection.
    pub unacceptable: u64,
    /// Segments stored in the cache.
    pub cached: u64,
    /// Cached segments overwritten by others.
    pub displaced: u64,
    /// Data segments forwarded without caching, because every place was locked or by chance.
    pub not_cached: u64,
    /// Locks set.
    pub locked: u64,
    /// Segments retransmitted from the cache.
    pub local_retransmissions: u64,
    /// Retransmitted segments that the receiver has acknowledged before the sender retransmitted
    /// them: an upper bound of the avoided end-to-end retransmissions, since a segment that was not
    /// lost counts as well.
    pub repaired: u64,
    /// Retransmissions caused by a local time-out.
    pub local_timeouts: u64,
    /// Segments left to the endpoints after [`super::Config::max_repeats`].
    pub given_up: u64,
    /// Data segments held back because the node had already sent them.
    pub data_held: u64,
    /// Data segments held back and answered because the receiver had acknowledged them.
    pub data_answered: u64,
    /// Acknowledgements held back because the node repairs every gap that they show.
    pub acks_held: u64,
    /// Acknowledgements sent by the node itself: copies of forwarded ones.
    pub acks_repeated: u64,
    /// Acknowledgements with an added SACK block.
    pub sack_added: u64,
    /// Segments whose SACK option was removed, or whose SACK-permitted option was added or removed.
    pub sack_rewritten: u64,
    /// Measured round-trip times.
    pub rtt_samples: u64,
    /// Measurements abandoned because of a retransmission.
    pub rtt_cancelled: u64,
    /// Connections dropped to make room.
    pub evicted: u64,
    /// Connections dropped because they were idle.
    pub expired: u64,
    /// Connections dropped after FIN or RST.
    pub closed: u64,
}
