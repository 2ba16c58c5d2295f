//! What a node has done since it began.

/// Counts; all saturate nowhere near what a run can reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments handed in.
    pub segments: u64,
    /// Segments of connections without state.
    pub stateless: u64,
    /// Segments only forwarded, since their numbers do not fit their connection.
    pub unacceptable: u64,
    /// Segments that went into the cache.
    pub cached: u64,
    /// Cached segments overwritten by others.
    pub displaced: u64,
    /// Data segments forwarded while every place was locked, or by the draw of the cache's chance.
    pub not_cached: u64,
    /// Locks set.
    pub locked: u64,
    /// Segments that the node repeated from its cache.
    pub local_retransmissions: u64,
    /// Local time-outs among the causes of a repetition.
    pub local_timeouts: u64,
    /// Segments given up to the ends after [`super::Config::max_repeats`].
    pub given_up: u64,
    /// Data segments held back, since the node had already sent them.
    pub data_held: u64,
    /// Data segments held back and answered, since the receiver had acknowledged them.
    pub data_answered: u64,
    /// Acknowledgements held back, since every gap they showed is repaired from here on.
    pub acks_held: u64,
    /// Acknowledgements of the node's own making, copies of one that it had forwarded.
    pub acks_repeated: u64,
    /// Acknowledgements that got a SACK block.
    pub sack_added: u64,
    /// Segments that lost their SACK option, or that got or lost SACK-permitted.
    pub sack_rewritten: u64,
    /// Round trips measured.
    pub rtt_samples: u64,
    /// Running measurements abandoned for a repetition.
    pub rtt_cancelled: u64,
    /// Connections forgotten to make room.
    pub evicted: u64,
    /// Connections forgotten for silence.
    pub expired: u64,
    /// Connections forgotten after FIN or RST.
    pub closed: u64,
}
