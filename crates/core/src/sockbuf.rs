//! Send buffers of a host with several connections, one of them striped over several interfaces:
//! who gets how much of a pool (paper: `sockbuf`, section 3; errata B1 to B18).
//!
//! A [`Tuner`] holds the pool. Its owner, who has the connections and their buffers, opens and
//! closes them here, tells twice a second how they stand ([`View`]: occupancy, and bandwidth, RTT,
//! window and MSS of each flow) and is told how large each buffer may be ([`Assignment`]). Which
//! policy divides the pool is a choice in [`Config`]:
//!
//! * [`PolicyConfig::Pid`], the paper's: a monitoring agent, a PID [`Controller`] for the striped
//!   connection, which takes what the others leave unused, and a resource manager that divides the
//!   rest among them;
//! * [`PolicyConfig::Atbt`], automatic TCP buffer tuning as Figures 1 and 2 of the paper print it,
//!   and [`PolicyConfig::AtbtOriginal`] as Semke, Mahdavi and Mathis have it, with one fair share
//!   for all;
//! * [`PolicyConfig::RightSizing`], dynamic right-sizing (Fisk and Feng), on the sender's side;
//! * [`PolicyConfig::Product`], twice the bandwidth-delay product;
//! * [`PolicyConfig::Fixed`], the same for all.
//!
//! Order of calls: any [`Tuner::open`], [`Tuner::close`] and [`Tuner::handle_views`], then
//! [`Tuner::poll_assignment`] until `None`, each answer being carried out before the next is asked
//! for; then [`Tuner::next_timeout`], which says when views are due.
//!
//! # What holds at any instant
//!
//! * The limits that the owner was told are together no more than [`Config::threshold`]: what
//!   shrinks is told first. A pool that [`Tuner::set_threshold`] makes smaller is there as soon as
//!   buffers have drained.
//! * A buffer is never told to be smaller than what is in it. It keeps its share until it has
//!   drained, and what was meant for others waits: [`Assignment::target`] is where it goes,
//!   [`Assignment::limit`] what holds now. Until then it takes nothing ([`Assignment::size`]), so
//!   that an application that always has more to send cannot keep others out.
//! * What a peer does not read stays in the buffer, and is free for others only when the connection
//!   ends.
//! * A target is at least one MSS. A limit is too, unless the pool is still full of others' bytes.
//! * No view makes anything panic: nonsense is ignored and counted in [`Counters`].
//!
//! The controller and the agent's averages are defined on reals and use them; sizes are whole
//! bytes.
//!
//! Code map: `view` is what is seen, `pool` who has what, `share` the two ways to divide, `policy`
//! the trait; `monitor`, `pid` and `manager` are the paper's three parts, `atbt` and `sizing` the
//! other policies, `tuner` the machine.

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
