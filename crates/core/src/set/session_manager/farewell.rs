//! The end of a transfer that has failed for good: the node is told, or it would be busy until its
//! patience is over.
//!
//! A session that is open carries CANCEL. If none is, the sender repeats its request, which joins
//! the transfer, and CANCEL follows the node's ACCEPT on the same control stream. Nodes of versions
//! before that ignore it there.

use anabranch_wire::set::{Decoder, FileIdentity, Item, Message, Request};

use super::{Failure, Outcome, Phase, Sender};
use crate::set::stream::{Effect, Leg, StreamEvent, StreamId};
use crate::time::Instant;

/// Whether the node keeps its place for this transfer, as far as the sender knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Held {
    /// It does not.
    #[default]
    No,
    /// A request was written that is not answered.
    Perhaps,
    /// It has accepted the transfer.
    Yes,
}

/// What becomes of the node's place when the transfer has failed.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    pub(super) held: Held,
    /// The transfer is not tried again.
    wanted: bool,
    /// The control stream for CANCEL was dialled.
    dialled: bool,
    /// That stream, while the node has not answered on it.
    stream: Option<(StreamId, Decoder)>,
}

impl Sender {
    /// Gives the transfer up for good: the outcome of one that is not over is
    /// [`Failure::Cancelled`], and the node forgets it. Of one that has failed, the node is told if
    /// it was not yet; the sender may call the node once more to say so. To be called before the
    /// driver closes what is open, and not if the same transfer is tried again soon. Nothing
    /// happens to one that was delivered.
    pub fn give_up(&mut self, now: Instant) {
        self.cancel(now);
        self.farewell.wanted = true;
        self.bid_farewell();
    }

    /// Calls the node to tell it that the transfer is given up, if it may not know.
    pub(super) fn bid_farewell(&mut self) {
        let is_held = match self.phase {
            // These end the transfer at the node as well.
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

    /// Something happened to the stream that [`Sender::bid_farewell`] has dialled; false if
    /// `stream` is another one.
    pub(super) fn handle_farewell(&mut self, stream: StreamId, event: &StreamEvent) -> bool {
        let Some((_, decoder)) = self.farewell.stream.as_mut().filter(|(of, _)| *of == stream) else {
            return false;
        };
        match event {
            StreamEvent::Opened => {
                // Only the length and the digest have to be those of the transfer. Without
                // signature and manifest, most nodes that have forgotten it do not begin it again.
                let file = self.config.file;
                let file = file.map(|file| FileIdentity { signature: None, discard: false, ..file });
                let request = Request { file, ..self.bare_request() };
                self.say(stream, &Message::Request(request));
            }
            StreamEvent::Data(octets) => {
                decoder.push(octets.clone());
                // What the node has of the file comes before ACCEPT, and is of no interest.
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
