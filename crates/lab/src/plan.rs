//! The closed forms as questions with an answer each, and the answer as the JSON object that every
//! door of the project gives out. What a person types or a program passes is made a question by
//! those who ask; a table of an answer is theirs too.
//!
//! Code map: [`set`] is the latency of a SET transfer by number of gateways; [`csma`], [`rtt`] and
//! [`schedule`] are sections V to VII of the paper on multipath TCP over hops of [`hops`];
//! [`sockbuf`] is the control loop of send buffers.

pub mod csma;
pub mod hops;
pub mod rtt;
pub mod schedule;
pub mod set;
pub mod sockbuf;

/// Which equations of the paper on multipath TCP, in one word.
fn equations(printed: bool) -> &'static str {
    if printed { "printed" } else { "corrected" }
}
