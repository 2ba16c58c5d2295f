//! The reason why a transfer was not delivered.

use std::fmt;

use anabranch_core::coap;
use anabranch_core::set::{Failure, Outcome as SetOutcome};
use anabranch_core::tcp::CloseReason;
use anabranch_core::time::Instant;

use super::{Planned, Scenario};
use anabranch_sim::apps::Outcome;
use anabranch_sim::apps::coap::CoapEnd;
use anabranch_sim::apps::set::SetSender;
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::Simulation;

/// State of a transfer at the end of a run, as its sender knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Everything was delivered.
    Delivered,
    /// The transfer was in progress when the run ended.
    UnderWay,
    /// The connection was not yet established when the run ended.
    Opening,
    /// The transfer had not begun when the run ended.
    NotBegun,
    /// One of the two end nodes was down when the run ended; its name.
    Down(String),
    /// No SYN was answered, and the sender gave up at this time.
    GivenUp(Instant),
    /// No acknowledgement arrived for too long, and the sender closed the connection at this time.
    TimedOut(Instant),
    /// The receiver reset the connection at this time.
    Reset(Instant),
    /// The receiver refused the connection at this time.
    Refused(Instant),
    /// The sender aborted the connection at this time.
    Aborted(Instant),
    /// A transfer with a request (end-to-end, split or SET) failed at this time.
    Failed(Failure, Instant),
    /// A client of CoAP gave up at this time.
    Abandoned(coap::Failure, Instant),
}

impl Ending {
    /// Advice for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Delivered => "nothing is to be done",
            Self::UnderWay | Self::NotBegun => {
                "raise `stop`, or see what the links drop; a TCP transfer without `bytes` is cut at `stop`"
            }
            Self::Opening => "raise `stop`, or see what the links drop",
            Self::Down(_) => "let the `[[event]]` come later, or let another bring the node back",
            Self::GivenUp(_) => "see what the links drop, or raise `syn_retries` of the TCP profile",
            Self::TimedOut(_) => "see what the links drop, or raise `data_retries` of the TCP profile",
            Self::Reset(_) | Self::Refused(_) | Self::Aborted(_) => {
                "see which node fails or starts again: `--trace PATH` has the segment with RST"
            }
            Self::Abandoned(..) => {
                "see what the links drop, or raise `max_retransmit` of the CoAP profile: `--pcap PATH` has the messages"
            }
            Self::Failed(..) => {
                "see what the links drop and which gateways fail: `--events PATH` and `anabranch view`"
            }
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |at: &Instant| format!("{:.3} s", at.as_secs_f64());
        match self {
            Self::Delivered => f.write_str("it was delivered"),
            Self::UnderWay => f.write_str("it was under way at the end of the run"),
            Self::Opening => f.write_str("its connection was not open at the end of the run"),
            Self::NotBegun => f.write_str("it had not begun at the end of the run"),
            Self::Down(node) => write!(f, "`{node}` was down at the end of the run"),
            Self::GivenUp(at) => write!(f, "no SYN was answered, and the sender gave up at {}", seconds(at)),
            Self::TimedOut(at) => {
                write!(
                    f,
                    "nothing was acknowledged for too long, and the connection timed out at {}",
                    seconds(at)
                )
            }
            Self::Reset(at) => write!(f, "the receiver reset the connection at {}", seconds(at)),
            Self::Refused(at) => write!(f, "the receiver refused the connection at {}", seconds(at)),
            Self::Aborted(at) => write!(f, "the sender aborted the connection at {}", seconds(at)),
            Self::Abandoned(failure, at) => write!(f, "{failure}, and the client gave up at {}", seconds(at)),
            Self::Failed(failure, at) => write!(f, "{failure}, known at {}", seconds(at)),
        }
    }
}

/// Packets that nodes dropped in a run, over all transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeDrops {
    /// Dropped because there was no route.
    pub no_route: u64,
    /// Dropped because the hop limit was used up.
    pub hop_limit: u64,
    /// Dropped because the node was down when they arrived.
    pub down: u64,
}

impl Scenario {
    /// State of each transfer during or after a run, in the order of [`Scenario::transfers`].
    pub fn endings(&self, planned: &Planned, sim: &Simulation) -> Vec<Ending> {
        let mut endings = vec![Ending::NotBegun; self.transfers.len()];
        for transfer in &planned.transfers {
            let sender = transfer.latest(sim);
            let at = sender.finished.unwrap_or(sim.now());
            endings[transfer.index] = match sender.outcome {
                Outcome::Done => Ending::Delivered,
                Outcome::Failed(reason) => closed(reason, sender.opened.is_some(), at),
                Outcome::Pending => self.pending(transfer.index, sender.started, sender.opened, sim),
            };
        }
        for transfer in &planned.coaps {
            let client = sim.app::<CoapEnd>(transfer.client);
            endings[transfer.index] = match client.outcome {
                _ if sim.app::<CoapEnd>(transfer.receiver).received.is_some() => Ending::Delivered,
                Some((at, Err(failure))) => Ending::Abandoned(failure, at),
                _ => self.pending(transfer.index, client.started, client.started, sim),
            };
        }
        for transfer in &planned.sets {
            let sender = sim.app::<SetSender>(transfer.sender);
            let at = sender.finished.unwrap_or(sim.now());
            endings[transfer.index] = match sender.outcome() {
                Some(SetOutcome::Delivered) => Ending::Delivered,
                Some(SetOutcome::Failed(failure)) => Ending::Failed(failure, at),
                None => self.pending(transfer.index, sender.started, sender.established, sim),
            };
        }
        endings
    }

    fn pending(
        &self,
        index: usize,
        started: Option<Instant>,
        opened: Option<Instant>,
        sim: &Simulation,
    ) -> Ending {
        let spec = &self.transfers[index];
        let down = |node: &NodeId| !sim.world().network.is_up(*node);
        if let Some(node) = [spec.from, spec.to].into_iter().find(down) {
            return Ending::Down(self.nodes[node.index()].name.clone());
        }
        match (started, opened) {
            (None, _) => Ending::NotBegun,
            (Some(_), None) => Ending::Opening,
            (Some(_), Some(_)) => Ending::UnderWay,
        }
    }

    /// Packets that nodes dropped in a run.
    pub fn node_drops(&self, sim: &Simulation) -> NodeDrops {
        let network = &sim.world().network;
        let nodes = (0..self.nodes.len()).map(|i| network.node_metrics(NodeId(i as u32)));
        nodes.fold(NodeDrops::default(), |sum, node| NodeDrops {
            no_route: sum.no_route + node.no_route,
            hop_limit: sum.hop_limit + node.hop_limit,
            down: sum.down + node.down,
        })
    }
}

fn closed(reason: CloseReason, opened: bool, at: Instant) -> Ending {
    match reason {
        CloseReason::Graceful => Ending::Delivered,
        CloseReason::TimedOut if opened => Ending::TimedOut(at),
        CloseReason::TimedOut => Ending::GivenUp(at),
        CloseReason::Reset => Ending::Reset(at),
        CloseReason::Refused => Ending::Refused(at),
        CloseReason::Aborted => Ending::Aborted(at),
    }
}
