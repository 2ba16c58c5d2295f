//! One session of the sender through one gateway (the paper's TM, section 4.2.1).
//!
//! The session manager uses the paper's six functions: [`TcpManager::call`] and
//! [`TcpManager::release`] open and close a session, [`Notice::Opened`] and [`Notice::Closed`] are
//! its `opened()` and `closed()`, `write` sends a chunk, and [`Notice::Read`] is `read()`.
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

/// State of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The wired connection is being opened.
    Calling,
    /// SETSYN is sent; the gateway opens the wireless connection (the paper's OPEN-WAIT).
    OpenWait {
        /// When the SETSYN is repeated (`t_SET`).
        resend: Instant,
        /// Number of SETSYNs sent.
        sent: u8,
    },
    /// Both halves are open.
    Opened,
    /// The file is delivered; the connections are closing.
    Released,
    /// The session has ended.
    Closed(Ending),
}

/// Reason for the end of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The file was delivered.
    Delivered,
    /// The stream ended before that.
    Stream(StreamClose),
    /// The gateway could not or would not reach the node, or had no capacity.
    Refused(SetAckStatus),
    /// Nothing was received for too long.
    Silent,
    /// The gateway or the node has violated the protocol.
    Protocol,
    /// The owner has cancelled the transfer.
    Cancelled,
}

/// A notice to the session manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// `opened()`.
    Opened,
    /// `closed()`.
    Closed,
    /// `read()`: the node's acknowledgement.
    Read(Ack),
    /// The node rejects the transfer.
    Refused(RefuseReason),
}

/// Parameters shared by all sessions of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    /// Final destination in the SETSYN.
    pub node: SocketAddr,
    /// Layout of the data header.
    pub layout: Layout,
    /// Initial `t_SET`; doubles with every SETSYN.
    pub set_timeout: Duration,
    /// Total number of SETSYNs per session.
    pub set_tries: u8,
}

/// A chunk in flight on this session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) stamp: Stamp,
    /// Total bytes written on this session up to the end of this chunk.
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
    /// Bytes of the file written in total, copies included.
    pub(super) written: u64,
    /// Number of these bytes that the node has received on this session.
    pub(super) received: u64,
    /// When the last message was received, or the first of the chunks in flight was written.
    pub(super) heard: Instant,
    /// The session was silent, and its chunks were taken back.
    pub(super) suspect: bool,
    /// Time from `call` to SETACK.
    pub(super) establishment: Option<Duration>,
    pub(super) called: Instant,
    /// Whether a SETSYN with the number of this session was sent.
    pub(super) greeted: bool,
    /// Bytes written and received by earlier sessions through this gateway, whose list entry this
    /// session has taken.
    pub(super) earlier: (u64, u64),
    /// When the gateway was lost, if it was lost before this session.
    pub(super) lost: Option<Instant>,
    /// Whether CANCEL was written and may have arrived.
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

    /// `release()`: ends the session after the file was delivered. Bytes still in flight are
    /// copies, so the stream is reset if there are any.
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

    /// Ends the session because the transfer has failed, and sends CANCEL to the node if the
    /// session is open. Only whole chunks are written, so CANCEL stands between messages. The
    /// stream is closed and not reset, because a reset could discard CANCEL. A plain split
    /// connection, or one without a node yet, is reset.
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

    /// Whether the session is neither closed nor released.
    pub(super) fn is_alive(&self) -> bool {
        match self.state {
            State::Calling | State::OpenWait { .. } | State::Opened => true,
            State::Released | State::Closed(_) => false,
        }
    }

    /// Handles an event of the session's stream.
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

    /// Repeats the SETSYN when `t_SET` has expired.
    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut VecDeque<Effect>) -> Vec<Notice> {
        match self.state {
            State::OpenWait { resend, sent } if resend <= now => {
                if sent >= self.common.set_tries {
                    self.cut(Ending::Silent, out);
                    return alloc::vec![Notice::Closed];
                }
                // After data a second SETSYN would be read as part of the data, so the session can
                // only wait.
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

    /// When `t_SET` expires.
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
            // A plain split connection has no SETACK: the file follows at once.
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

    /// `write()`: sends the chunk of the file at `start`, which the node is to acknowledge at once if
    /// `at_once`.
    pub(super) fn write(
        &mut self,
        now: Instant,
        start: u64,
        part: Part,
        at_once: bool,
        out: &mut VecDeque<Effect>,
    ) {
        let length = part.length();
        let addresses = PaperAddresses { intermediate: self.gateway.address, last: self.common.node };
        let mut header = Vec::with_capacity(24);
        wire::data_header(self.common.layout, &addresses, start, self.next_offset, length, &mut header);
        if at_once {
            wire::ask_at_once(&mut header);
        }
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

    /// Bytes in flight on this session, copies included: the next chunk follows them.
    pub(super) fn outstanding(&self) -> u64 {
        self.written - self.received
    }

    /// Bytes in flight on this session up to the end of `chunk`.
    pub(super) fn before_end_of(&self, chunk: &Chunk) -> u64 {
        chunk.upto - self.received
    }

    /// Sends bytes of the plain file, without a header.
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

    /// Handles the number of bytes that the node has received on this session. The stream is in
    /// order, so the number identifies the chunks.
    /// `acknowledged` gets the state and the length in bytes of each.
    pub(super) fn handle_received(
        &mut self,
        now: Instant,
        received: u64,
        mut acknowledged: impl FnMut(&Stamp, u64),
    ) {
        // A number out of range is a false report; it only harms the estimate of its own session.
        self.received = received.clamp(self.received, self.written);
        while let Some(chunk) = self.chunks.pop_front_if(|c| c.upto <= self.received) {
            let octets = chunk.end - chunk.start;
            self.estimate.acknowledged(now, &chunk.stamp, octets);
            acknowledged(&chunk.stamp, octets);
        }
    }
}
