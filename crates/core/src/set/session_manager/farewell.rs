//! The end of a transfer that has failed for good. The node is told, because it would otherwise be
//! busy until its idle time-out.
//!
//! An open session carries CANCEL. If there is none, the sender repeats its request, which joins
//! the transfer, and sends CANCEL after the node's ACCEPT on the same control stream. Nodes of
//! earlier versions ignore CANCEL there.

use anabranch_wire::set::{Decoder, FileIdentity, Item, Message, Request};

use super::{Failure, Outcome, Phase, Sender};
use crate::set::stream::{Effect, Leg, StreamEvent, StreamId};
use crate::time::Instant;

/// Whether the node reserves its place for this transfer, as far as the sender knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Held {
    /// The node does not.
    #[default]
    No,
    /// A request was written and not answered.
    Perhaps,
    /// The node has accepted the transfer.
    Yes,
}

/// State of the release of the node's place after a failure.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    pub(super) held: Held,
    /// The transfer is not tried again.
    wanted: bool,
    /// The control stream for CANCEL was dialled.
    dialled: bool,
    /// That stream, until the node has answered on it.
    stream: Option<(StreamId, Decoder)>,
}

impl Sender {
    /// Gives up the transfer for good. If it is not over, its outcome is [`Failure::Cancelled`],
    /// and the node drops it. If it has failed and the node does not know, the sender may call the
    /// node once more to tell it. Call this before the driver closes the open streams, and not if
    /// the same transfer is tried again soon. No effect on a delivered transfer.
    pub fn give_up(&mut self, now: Instant) {
        self.cancel(now);
        self.farewell.wanted = true;
        self.bid_farewell();
    }

    /// Calls the node to cancel the transfer, unless the node knows.
    pub(super) fn bid_farewell(&mut self) {
        let is_held = match self.phase {
            // These failures end the transfer at the node as well.
            Phase::Ended(Outcome::Failed(Failure::Refused(_) | Failure::Unfinished(_))) => false,
            Phase::Ended(Outcome::Failed(Failure::Cancelled)) => self.farewell.held != Held::No,
            Phase::Ended(Outcome::Failed(_)) => self.farewell.held == Held::Yes,
            Phase::Ended(Outcome::Delivered) | Phase::Requesting(_) | Phase::Plain(_) | Phase::Sessions => {
                false
            }
        };
        let is_told = self.sessions.iter().any(|session| session.told && !session.suspect);
        if !self.farewell.wanted || self.farewell.dialled || !is_held || is_told {
            return;
        }
        let stream = self.new_stream();
        self.farewell.dialled = true;
        self.farewell.stream = Some((stream, Decoder::new()));
        self.effects.push_back(Effect::Dial { stream, to: self.node, leg: Leg::Control });
    }

    /// Handles an event of the stream dialled by [`Sender::bid_farewell`]; false if `stream` is
    /// another.
    pub(super) fn handle_farewell(&mut self, stream: StreamId, event: &StreamEvent) -> bool {
        let Some((_, decoder)) = self.farewell.stream.as_mut().filter(|(of, _)| *of == stream) else {
            return false;
        };
        match event {
            StreamEvent::Opened => {
                // Length and digest suffice to join the transfer. Without signature and manifest,
                // most nodes that have already dropped the transfer do not start it again.
                let file = self.config.file;
                let file = file.map(|file| FileIdentity { signature: None, discard: false, ..file });
                let request = Request { file, ..self.bare_request() };
                self.say(stream, &Message::Request(request));
            }
            StreamEvent::Data(octets) => {
                decoder.push(octets.clone());
                // The node's report of its bytes precedes ACCEPT and is not needed here.
                let answer = loop {
                    match decoder.next_item() {
                        Ok(None) => return true,
                        Ok(Some(Item::Message(Message::Ack(_)))) => {}
                        Ok(Some(Item::Message(message))) => break Some(message),
                        Ok(Some(Item::Data { .. } | Item::LongManifest(_))) | Err(_) => break None,
                    }
                };
                self.farewell.stream = None;
                if let Some(Message::Accept(_)) = answer {
                    self.say(stream, &Message::Cancel);
                    self.effects.push_back(Effect::Shutdown { stream });
                } else {
                    self.effects.push_back(Effect::Abort { stream });
                }
            }
            StreamEvent::Ended => {
                self.farewell.stream = None;
                self.effects.push_back(Effect::Abort { stream });
            }
            StreamEvent::Closed(_) => self.farewell.stream = None,
        }
        true
    }
}
