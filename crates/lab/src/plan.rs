//! The closed forms: each takes a question and returns an answer, which has the JSON form that the
//! command line and Python share. Callers parse the user's input into questions and format answers
//! as tables.
//!
//! Code map: [`set`] is the latency of a SET transfer for each number of gateways; [`csma`],
//! [`rtt`] and [`schedule`] are sections V to VII of the multipath TCP paper over hops of [`hops`];
//! [`sockbuf`] is the control loop of send buffers.

pub mod csma;
pub mod hops;
pub mod rtt;
pub mod schedule;
pub mod set;
pub mod sockbuf;

/// Name of the used equations of the multipath TCP paper.
fn equations(printed: bool) -> &'static str {
    if printed { "printed" } else { "corrected" }
}
