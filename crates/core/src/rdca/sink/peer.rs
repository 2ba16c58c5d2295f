//! One sender as the sink knows it.

use anabranch_wire::rdca::{Incarnation, Message, Reply, Seq, StreamId, TimeStamp};

use super::event::{PeerId, SinkCounters};
use crate::rdca::config::SinkConfig;
use crate::rdca::reorder::Pool;
use crate::rdca::stream::{Common, Stream};
use crate::time::{Duration, Instant};

/// A stream that was asked for, until data comes on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub incarnation: Incarnation,
    pub id: StreamId,
    pub first: Seq,
    /// What the sender's clock said, and when.
    pub clock: (TimeStamp, Instant),
}

#[derive(Debug)]
pub(super) struct Peer {
    pub id: PeerId,
    /// A request makes no stream yet: it may be an old one that comes late, and must not end the
    /// present one. Data with the number that was given in answer cannot be.
    pub asked: Option<Asked>,
    pub stream: Option<Stream>,
    pub reply: Option<Reply>,
    pub heard: Instant,
    /// It stands in the queue of those that have something to say.
    pub queued: bool,
}

impl Peer {
    /// When it is forgotten if nothing is heard of it.
    pub(super) fn expires(&self, config: &SinkConfig) -> Instant {
        self.heard
            + match &self.stream {
                None => ASKED.min(config.idle),
                Some(stream) if stream.ended => config.linger,
                Some(_) => config.idle,
            }
    }

    pub(super) fn wants_to_speak(&self, now: Instant, pool: &Pool) -> bool {
        let due = |s: &Stream| {
            s.owes.congestion || s.owes.confirm || s.packets.due(pool).is_some_and(|at| at <= now)
        };
        self.reply.is_some() || self.stream.as_ref().is_some_and(due)
    }

    pub(super) fn speak(
        &mut self,
        now: Instant,
        config: &SinkConfig,
        common: Common,
        pool: &mut Pool,
        counters: &mut SinkCounters,
    ) -> Option<Message> {
        if let Some(reply) = self.reply.take() {
            counters.replies += 1;
            return Some(Message::Reply(reply));
        }
        let stream = self.stream.as_mut()?;
        // A SNACK confirms, too, and a notification does. Whoever asked is answered by the first of
        // them.
        if let Some(snack) = stream.snack(now, config, common, pool) {
            counters.snacks += 1;
            stream.owes.confirm = false;
            return Some(Message::Snack(snack));
        }
        if let Some(report) = stream.congestion(now, config, common) {
            counters.congestions += 1;
            stream.owes.confirm = false;
            return Some(Message::Congestion(report));
        }
        if core::mem::take(&mut stream.owes.confirm) {
            counters.confirms += 1;
            return Some(Message::Confirm(stream.report(now, config, common)));
        }
        None
    }
}

/// A request on which no data follows is forgotten after so long.
const ASKED: Duration = Duration::from_secs(30);
