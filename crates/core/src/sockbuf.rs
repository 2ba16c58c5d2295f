//! Send-buffer management: divides one pool of buffer memory among the connections of a host, one
//! of which is striped over several interfaces (paper: `sockbuf`, section 3; errata B1 to B18).
//!
//! A [`Tuner`] manages the pool. Its owner holds the connections and their buffers. The owner opens
//! and closes connections in the tuner and reports their state twice a second ([`View`]: occupancy,
//! and bandwidth, RTT, window and MSS of each flow). The tuner answers with the size of each buffer
//! ([`Assignment`]). [`Config`] selects the policy that divides the pool:
//!
//! * [`PolicyConfig::Pid`] is the paper's policy. It has a monitoring agent, a PID [`Controller`]
//!   for the striped connection, which receives the memory that the other connections leave unused,
//!   and a resource manager that divides the rest among the other connections.
//! * [`PolicyConfig::Atbt`] is automatic TCP buffer tuning as Figures 1 and 2 of the paper print
//!   it.
//! * [`PolicyConfig::AtbtOriginal`] is the original of Semke, Mahdavi and Mathis, with one fair
//!   share for all connections.
//! * [`PolicyConfig::RightSizing`] is dynamic right-sizing (Fisk and Feng) on the sender's side.
//! * [`PolicyConfig::Product`] assigns twice the bandwidth-delay product.
//! * [`PolicyConfig::Fixed`] assigns the same size to all connections.
//!
//! Order of calls: any [`Tuner::open`], [`Tuner::close`] and [`Tuner::handle_views`], then
//! [`Tuner::poll_assignment`] until `None`, carrying out each assignment before polling the next;
//! then [`Tuner::next_timeout`], which returns when the next views are due.
//!
//! # Invariants
//!
//! * The limits reported to the owner sum to at most [`Config::threshold`]: assignments that shrink
//!   a buffer come first. After [`Tuner::set_threshold`] lowers the threshold, the smaller pool
//!   takes effect as soon as the buffers have drained.
//! * The tuner never assigns a buffer less than its current contents. An over-full buffer keeps its
//!   share until it has drained, and the memory intended for others waits. [`Assignment::target`]
//!   is the final size, [`Assignment::limit`] the size in force. Until then the buffer accepts no
//!   data ([`Assignment::size`]), so that an application that always has more to send cannot starve
//!   others.
//! * Data that a peer does not read stays in the buffer; its memory is free for others only when
//!   the connection ends.
//! * A target is at least one MSS. A limit is too, unless the pool is still full of the data of
//!   other connections.
//! * No view causes a panic: invalid values are ignored and counted in [`Counters`].
//!
//! The controller and the agent's averages are defined on reals and use floating point; sizes are
//! whole bytes.
//!
//! Code map: `view` holds the reported state, `pool` the assigned memory, `share` the two ways to
//! divide it, `policy` the trait. `monitor`, `pid` and `manager` are the three parts of the paper's
//! policy, `atbt` and `sizing` the other policies, and `tuner` the machine.

mod atbt;
mod config;
mod manager;
mod monitor;
mod pid;
mod policy;
mod pool;
mod share;
mod sizing;
mod tuner;
mod view;

#[cfg(test)]
mod tests;

pub use config::{Allocation, Config, ConfigError, Deviation, Excess, PidConfig, PolicyConfig, SetPoint};
pub use pid::{Controller, Gains};
pub use pool::Assignment;
pub use share::divide;
pub use tuner::{Counters, OpenError, ThresholdError, Tuner};
pub use view::{Connection, ConnectionId, FlowView, Kind, View};
