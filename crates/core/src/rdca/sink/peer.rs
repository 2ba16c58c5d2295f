//! State of one sender at the sink.

use anabranch_wire::rdca::{Incarnation, Message, Reply, Seq, StreamId, TimeStamp};

use super::event::{PeerId, SinkCounters};
use crate::rdca::config::SinkConfig;
use crate::rdca::reorder::Pool;
use crate::rdca::stream::{Common, Stream};
use crate::time::{Duration, Instant};

/// A requested stream on which no data has arrived yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub incarnation: Incarnation,
    pub id: StreamId,
    pub first: Seq,
    /// The time stamp of the request and its arrival time.
    pub clock: (TimeStamp, Instant),
}

#[derive(Debug)]
pub(super) struct Peer {
    pub id: PeerId,
    /// A request alone does not create a stream: it may be an old request that arrives late, which
    /// must not end the present stream. Data with the stream number of the reply proves that the
    /// request was new.
    pub asked: Option<Asked>,
    pub stream: Option<Stream>,
    pub reply: Option<Reply>,
    pub heard: Instant,
    /// Whether the peer is in the queue of peers with pending messages.
    pub queued: bool,
}

impl Peer {
    /// When the peer is forgotten unless a message arrives.
    pub(super) fn expires(&self, config: &SinkConfig) -> Instant {
        self.heard
            + match &self.stream {
                None => ASKED.min(config.idle),
                Some(stream) if stream.ended => config.linger,
                Some(_) => config.idle,
            }
    }

    /// When the stream has a message that waits for its time.
    pub(super) fn due(&self, config: &SinkConfig, pool: &Pool) -> Option<Instant> {
        let stream = self.stream.as_ref()?;
        [stream.packets.due(pool), stream.confirms(config)].into_iter().flatten().min()
    }

    pub(super) fn wants_to_speak(&self, now: Instant, config: &SinkConfig, pool: &Pool) -> bool {
        self.reply.is_some()
            || self.stream.as_ref().is_some_and(|stream| stream.owes.congestion)
            || self.due(config, pool).is_some_and(|at| at <= now)
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
        // A SNACK or a notification also confirms, so the first of them answers a request for a
        // confirmation.
        if let Some(snack) = stream.snack(now, config, common, pool) {
            counters.snacks += 1;
            return Some(Message::Snack(snack));
        }
        if let Some(report) = stream.congestion(now, config, common) {
            counters.congestions += 1;
            return Some(Message::Congestion(report));
        }
        if stream.confirms(config).is_some_and(|at| at <= now) {
            counters.confirms += 1;
            return Some(Message::Confirm(stream.report(now, config, common)));
        }
        None
    }
}

/// How long a request without following data is kept.
const ASKED: Duration = Duration::from_secs(30);
