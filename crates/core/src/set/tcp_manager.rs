//! One session of the sender, through one gateway (the paper's TM, section 4.2.1).
//!
//! The session manager speaks to it by the paper's six functions: [`TcpManager::call`] and
//! [`TcpManager::release`] open and close it, [`Notice::Opened`] and [`Notice::Closed`] are its
//! `opened()` and `closed()`, `write` gives it a chunk and [`Notice::Read`] is `read()`.
//!
//! ```text
//!            call            stream opened          SETACK
//!  Closed ---------> Calling -----------> OpenWait --------> Opened --- release ---> Released
//!                       \______________________\______________\__ stream closed, refused ---> Closed
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use anabranch_wire::set::{
    self as wire, Ack, Decoder, Gateway, Item, Join, Layout, Message, PaperAddresses, Plan, RefuseReason,
    SetAckStatus, SetSyn,
};
use bytes::Bytes;

use super::file::Part;
use super::path::{Estimate, Stamp};
use super::stream::{Effect, Leg, StreamClose, StreamEvent, StreamId, StreamStatus};
use crate::time::{Duration, Instant};

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The wired connection is being opened.
    Calling,
    /// SETSYN is sent; the gateway opens the wireless connection (the paper's OPEN-WAIT).
    OpenWait {
        /// When the SETSYN is sent again (`t_SET`).
        resend: Instant,
        /// How often it was sent.
        sent: u8,
    },
    /// Both halves are open.
    Opened,
    /// All is delivered; the connections are closing.
    Released,
    /// Over.
    Closed(Ending),
}

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// All was delivered.
    Delivered,
    /// Its stream ended before that.
    Stream(StreamClose),
    /// The gateway could not or would not reach the node, or not now.
    Refused(SetAckStatus),
    /// Nothing was heard of it for too long.
    Silent,
    /// It sent what no gateway or node may send.
    Protocol,
    /// The owner of the transfer has given it up.
    Cancelled,
}

/// What the session manager learns from a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// `opened()`.
    Opened,
    /// `closed()`.
    Closed,
    /// `read()`: the node's acknowledgement.
    Read(Ack),
    /// The node gives up the transfer.
    Refused(RefuseReason),
}

/// What all sessions of a transfer have in common.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    /// The final destination of SETSYN.
    pub node: SocketAddr,
    /// Layout of the data header.
    pub layout: Layout,
    /// First `t_SET`; doubles with every SETSYN.
    pub set_timeout: Duration,
    /// SETSYNs in all.
    pub set_tries: u8,
}

/// A chunk that is on this session's way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) stamp: Stamp,
    /// Bytes that this session had carried with it.
    upto: u64,
}

/// One session.
#[derive(Debug)]
pub struct TcpManager {
    pub(super) gateway: Gateway,
    pub(super) join: Join,
    pub(super) stream: StreamId,
    pub(super) state: State,
    pub(super) status: StreamStatus,
    pub(super) estimate: Estimate,
    pub(super) chunks: VecDeque<Chunk>,
    /// Bytes of the file written in all, copies included.
    pub(super) written: u64,
    /// Bytes of those that the node has received on this session.
    pub(super) received: u64,
    /// When a message last came, or the first of the present chunks was written.
    pub(super) heard: Instant,
    /// Its chunks were taken back because nothing was heard.
    pub(super) suspect: bool,
    /// From `call` to SETACK.
    pub(super) establishment: Option<Duration>,
    pub(super) called: Instant,
    /// A SETSYN was sent, with the number of this session.
    pub(super) greeted: bool,
    /// Bytes that earlier sessions through this gateway had carried whose place in the list this
    /// one took: written, received.
    pub(super) earlier: (u64, u64),
    /// Since when this gateway had no session, if it was lost before this one.
    pub(super) lost: Option<Instant>,
    /// CANCEL was written, and may have arrived.
    pub(super) told: bool,
    common: Common,
    decoder: Decoder,
    next_offset: u64,
}

impl TcpManager {
    /// `call()`: opens a session through `gateway` on a new stream.
    pub fn call(
        now: Instant,
        common: Common,
        gateway: Gateway,
        join: Join,
        stream: StreamId,
        out: &mut VecDeque<Effect>,
    ) -> Self {
        out.push_back(Effect::Dial { stream, to: gateway.address, leg: Leg::Wired });
        Self {
            gateway,
            join,
            stream,
            state: State::Calling,
            status: StreamStatus::default(),
            estimate: Estimate::new(now),
            chunks: VecDeque::new(),
            written: 0,
            received: 0,
            heard: now,
            suspect: false,
            establishment: None,
            called: now,
            greeted: false,
            earlier: (0, 0),
            lost: None,
            told: false,
            common,
            decoder: Decoder::new(),
            next_offset: 0,
        }
    }

    /// `release()`: everything is delivered. What is still on its way is a copy, so it is cut off.
    pub fn release(&mut self, out: &mut VecDeque<Effect>) {
        match self.state {
            State::Opened if self.outstanding() == 0 => {
                out.push_back(Effect::Shutdown { stream: self.stream });
                self.state = State::Released;
            }
            State::Calling | State::OpenWait { .. } | State::Opened => self.cut(Ending::Delivered, out),
            State::Released | State::Closed(_) => {}
        }
    }

    /// Ends the session at once.
    pub(super) fn cut(&mut self, ending: Ending, out: &mut VecDeque<Effect>) {
        if self.is_alive() {
            out.push_back(Effect::Abort { stream: self.stream });
            self.state = State::Closed(ending);
        }
    }

    /// Ends the session because the transfer has failed, and tells the node so if its stream is
    /// open that far: what is written is whole chunks, so CANCEL stands between messages. The
    /// stream is closed after it, not reset, or it would not arrive. Where plain bytes flow or no
    /// node is there yet, a reset has to do.
    pub(super) fn cancel(&mut self, ending: Ending, out: &mut VecDeque<Effect>) {
        if self.state != State::Opened || self.join.plan == Plan::Split {
            return self.cut(ending, out);
        }
        let mut octets = Vec::with_capacity(1);
        wire::encode(&Message::Cancel, &mut octets);
        self.send(octets.into(), out);
        out.push_back(Effect::Shutdown { stream: self.stream });
        self.state = State::Closed(ending);
        self.told = true;
    }

    /// Not over and not released.
    pub(super) fn is_alive(&self) -> bool {
        match self.state {
            State::Calling | State::OpenWait { .. } | State::Opened => true,
            State::Released | State::Closed(_) => false,
        }
    }

    /// Its stream did something.
    pub(super) fn handle_stream(
        &mut self,
        now: Instant,
        event: StreamEvent,
        out: &mut VecDeque<Effect>,
    ) -> Vec<Notice> {
        match (event, self.state) {
            (StreamEvent::Opened, State::Calling) => {
                self.send_setsyn(now, 1, out);
                Vec::new()
            }
            (StreamEvent::Data(octets), State::OpenWait { .. } | State::Opened) => {
                self.read(now, octets, out)
            }
            (StreamEvent::Ended, State::Calling | State::OpenWait { .. } | State::Opened) => {
                self.cut(Ending::Stream(StreamClose::Graceful), out);
                alloc::vec![Notice::Closed]
            }
            (StreamEvent::Closed(why), State::Calling | State::OpenWait { .. } | State::Opened) => {
                self.state = State::Closed(Ending::Stream(why));
                alloc::vec![Notice::Closed]
            }
            (StreamEvent::Closed(_), State::Released) => {
                self.state = State::Closed(Ending::Delivered);
                Vec::new()
            }
            (StreamEvent::Closed(why), State::Closed(_)) => {
                // The node resets its sessions when it has read CANCEL.
                self.told &= why != StreamClose::TimedOut;
                Vec::new()
            }
            (
                StreamEvent::Opened | StreamEvent::Data(_) | StreamEvent::Ended,
                State::Calling | State::OpenWait { .. } | State::Opened | State::Released | State::Closed(_),
            ) => Vec::new(),
        }
    }

    /// `t_SET` has run out, perhaps.
    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut VecDeque<Effect>) -> Vec<Notice> {
        match self.state {
            State::OpenWait { resend, sent } if resend <= now => {
                if sent >= self.common.set_tries {
                    self.cut(Ending::Silent, out);
                    return alloc::vec![Notice::Closed];
                }
                // After data, a second SETSYN would be read as part of it; then only patience is
                // left.
                if self.written == 0 {
                    self.send_setsyn(now, sent + 1, out);
                } else {
                    self.state = State::OpenWait { resend: now + self.set_timeout(sent + 1), sent: sent + 1 };
                }
                Vec::new()
            }
            State::Calling | State::OpenWait { .. } | State::Opened | State::Released | State::Closed(_) => {
                Vec::new()
            }
        }
    }

    /// When `t_SET` runs out.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::OpenWait { resend, .. } => Some(resend),
            State::Calling | State::Opened | State::Released | State::Closed(_) => None,
        }
    }

    fn set_timeout(&self, sent: u8) -> Duration {
        self.common.set_timeout * (1 << u64::from(sent.saturating_sub(1)).min(16))
    }

    fn send_setsyn(&mut self, now: Instant, sent: u8, out: &mut VecDeque<Effect>) {
        self.greeted = true;
        let mut octets = Vec::with_capacity(32);
        wire::encode(
            &Message::SetSyn(SetSyn { join: self.join, destination: self.common.node }),
            &mut octets,
        );
        self.send(octets.into(), out);
        self.state = match self.join.plan {
            // A plain split connection has no SETACK: what follows is the file.
            Plan::Split => State::Opened,
            Plan::Stripe | Plan::EndToEnd => State::OpenWait { resend: now + self.set_timeout(sent), sent },
        };
    }

    fn send(&mut self, octets: Bytes, out: &mut VecDeque<Effect>) {
        self.status.unsent = self.status.unsent.saturating_add(octets.len() as u32);
        out.push_back(Effect::Write { stream: self.stream, octets });
    }

    fn send_part(&mut self, part: Part, out: &mut VecDeque<Effect>) {
        let length = u32::try_from(part.length()).unwrap_or(u32::MAX);
        self.status.unsent = self.status.unsent.saturating_add(length);
        out.push_back(part.write(self.stream));
    }

    /// `write()` for a chunk of the file at `start`.
    pub(super) fn write(&mut self, now: Instant, start: u64, part: Part, out: &mut VecDeque<Effect>) {
        let length = part.length();
        let addresses = PaperAddresses { intermediate: self.gateway.address, last: self.common.node };
        let mut header = Vec::with_capacity(24);
        wire::data_header(self.common.layout, &addresses, start, self.next_offset, length, &mut header);
        self.next_offset = start + length;
        if self.outstanding() == 0 {
            self.heard = now;
        }
        self.send(header.into(), out);
        self.send_part(part, out);
        let stamp = self.estimate.stamp(now, self.outstanding(), length);
        self.written += length;
        self.chunks.push_back(Chunk { start, end: start + length, stamp, upto: self.written });
    }

    /// Bytes on this session's way, needed or not: they come before what is written next.
    pub(super) fn outstanding(&self) -> u64 {
        self.written - self.received
    }

    /// Bytes that come before the end of `chunk` on this session's way.
    pub(super) fn before_end_of(&self, chunk: &Chunk) -> u64 {
        chunk.upto - self.received
    }

    /// Bytes of the plain file, without a header.
    pub(super) fn write_plain(&mut self, file: Part, out: &mut VecDeque<Effect>) {
        self.written += file.length();
        self.send_part(file, out);
        out.push_back(Effect::Shutdown { stream: self.stream });
    }

    fn read(&mut self, now: Instant, octets: Bytes, out: &mut VecDeque<Effect>) -> Vec<Notice> {
        self.heard = now;
        self.suspect = false;
        self.decoder.push(octets);
        let mut notices = Vec::new();
        loop {
            match self.decoder.next_item() {
                Ok(None) => return notices,
                Ok(Some(Item::Message(Message::Ack(ack)))) => notices.push(Notice::Read(ack)),
                Ok(Some(Item::Message(Message::Refuse(refuse)))) if refuse.reason.is_final() => {
                    notices.push(Notice::Refused(refuse.reason));
                }
                Ok(Some(Item::Message(Message::SetAck(answer)))) if answer.session == self.join.session => {
                    match (answer.status, self.state) {
                        (SetAckStatus::Open, State::OpenWait { .. }) => {
                            self.state = State::Opened;
                            let establishment = now.saturating_since(self.called);
                            self.establishment = Some(establishment);
                            self.estimate.suppose(establishment);
                            notices.push(Notice::Opened);
                        }
                        (SetAckStatus::Open, _) => {}
                        (
                            status @ (SetAckStatus::Unreachable
                            | SetAckStatus::Forbidden
                            | SetAckStatus::Congested),
                            _,
                        ) => {
                            self.cut(Ending::Refused(status), out);
                            notices.push(Notice::Closed);
                            return notices;
                        }
                    }
                }
                Ok(Some(_)) | Err(_) => {
                    self.cut(Ending::Protocol, out);
                    notices.push(Notice::Closed);
                    return notices;
                }
            }
        }
    }

    /// The node has received so many bytes on this session: its stream is in order, so we know
    /// which.
    pub(super) fn handle_received(&mut self, now: Instant, received: u64) {
        // More than was written, or less than before, is a lie that harms nobody but its author.
        self.received = received.clamp(self.received, self.written);
        while let Some(chunk) = self.chunks.pop_front_if(|c| c.upto <= self.received) {
            self.estimate.acknowledged(now, &chunk.stamp, chunk.end - chunk.start);
        }
    }
}
