//! Section VII: distribution of packets over paths. The recursion and the probabilities of section
//! IV are implemented in the core, because nodes run them: see
//! [`anabranch_core::mptcp::prediction`].

pub use anabranch_core::mptcp::prediction::{
    Adaptation, Binomial, CaseTwo, FastRetransmit, Growth, Halving, Limits, MAX_STATES, MAX_TIME, MAX_WINDOW,
    Packets, Path, Reading, Recovery, RoundTime, SLICES, ScheduleError, TimeoutCase, TimeoutSum, Transitions,
    losses, packets, schedule, transitions,
};
