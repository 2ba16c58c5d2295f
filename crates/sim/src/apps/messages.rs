//! Messages that differ in length, have a connection each, or are answered: [`MessageSource`] and
//! [`MessageSink`].
//!
//! A message contains its number, its generation time, its length and the length of its reply. The
//! sink therefore knows when each message had arrived completely, and the source when each reply
//! had. [`super::packets`] handles messages of equal length that share a connection.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::tcp::CloseReason;
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;

use super::bulk::pattern;
use super::pace::{Pace, Spacing};
use super::packets::{Arrived, PAUSE};
use super::sizes::Law;
use crate::app::{App, Ctx};
use crate::host::MAX_DATAGRAM;
use crate::packet::NodeId;
use crate::random::Stream;
use crate::stream::{ConnId, StreamEvent};
use crate::transport::TransportConfig;

/// Least length of a message in bytes: its number, generation time, length and reply length.
pub const LEAST_MESSAGE: u32 = 20;

/// Transport of messages.
#[derive(Clone, Copy, Debug)]
pub enum Via {
    /// One connection for all messages, replaced when it fails.
    Connection(TransportConfig),
    /// A connection for each message. A message whose connection fails is lost.
    Connections(TransportConfig),
    /// A datagram for each message, and one for its reply.
    Datagrams {
        /// Port of the source.
        from_port: u16,
        /// Time after which an unanswered message is given up.
        timeout: Duration,
    },
}

/// Options of a source.
#[derive(Clone, Debug)]
pub struct MessageConfig {
    /// Receiver.
    pub to: NodeId,
    /// Port of the receiver.
    pub port: u16,
    /// Largest number of messages.
    pub packets: u32,
    /// Distribution of the message length, at least [`LEAST_MESSAGE`] bytes.
    pub sizes: Law,
    /// Distribution of the reply length, at least [`LEAST_MESSAGE`] bytes, if each message waits
    /// for the reply to the one before.
    pub replies: Option<Law>,
    /// Arrival process of the messages.
    pub spacing: Spacing,
    /// Mean time between two messages.
    pub interval: Duration,
    /// Time after which no message is generated.
    pub until: Option<Instant>,
    /// Transport of the messages.
    pub via: Via,
    /// Name of the traffic, which names the random stream: two sources of a node need different
    /// names.
    pub name: String,
}

/// Header of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Head {
    number: u32,
    made: Instant,
    len: u32,
    reply: u32,
}

impl Head {
    fn encode(&self) -> [u8; LEAST_MESSAGE as usize] {
        let mut octets = [0; LEAST_MESSAGE as usize];
        octets[..4].copy_from_slice(&self.number.to_be_bytes());
        octets[4..12].copy_from_slice(&self.made.as_nanos().to_be_bytes());
        octets[12..16].copy_from_slice(&self.len.to_be_bytes());
        octets[16..].copy_from_slice(&self.reply.to_be_bytes());
        octets
    }

    /// `None` if the bytes are not the header of a message.
    fn decode(octets: &[u8]) -> Option<Self> {
        let (number, rest) = octets.split_first_chunk()?;
        let (made, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (reply, _) = rest.split_first_chunk()?;
        let made = Instant::from_nanos(u64::from_be_bytes(*made));
        let (number, len) = (u32::from_be_bytes(*number), u32::from_be_bytes(*len));
        let reply = u32::from_be_bytes(*reply);
        (len >= LEAST_MESSAGE).then_some(Self { number, made, len, reply })
    }

    /// Bytes of the message from position `from`, as many as are contiguous.
    fn octets(&self, from: u32) -> Bytes {
        if from < LEAST_MESSAGE {
            return Bytes::copy_from_slice(&self.encode()[from as usize..]);
        }
        self.body(from, self.len - from)
    }

    /// At most `most` bytes of the body, from position `from`.
    fn body(&self, from: u32, most: u32) -> Bytes {
        let all = pattern();
        let at = (from as usize).wrapping_add(self.number as usize * 251) % all.len();
        all.slice(at..all.len().min(at + most as usize))
    }

    /// The whole message as one datagram.
    fn datagram(&self) -> Bytes {
        let mut octets = self.encode().to_vec();
        while octets.len() < self.len as usize {
            octets.extend_from_slice(&self.octets(octets.len() as u32));
        }
        octets.into()
    }

    /// The reply that the message requests.
    fn answer(&self) -> Self {
        Self { len: self.reply, reply: 0, ..*self }
    }
}

/// Reads messages from the byte stream of a connection.
#[derive(Clone, Debug, Default)]
struct Reader {
    head: Vec<u8>,
    /// The message in progress, and how many of its bytes have been received.
    under_way: Option<(Head, u32)>,
    /// Whether the stream contained an invalid message: nothing more is read.
    is_wrong: bool,
}

impl Reader {
    /// Calls `whole` for each message that is completed by these bytes.
    fn take(&mut self, mut octets: &[u8], mut whole: impl FnMut(Head)) {
        while !octets.is_empty() && !self.is_wrong {
            let Some((head, got)) = &mut self.under_way else {
                let missing = (LEAST_MESSAGE as usize - self.head.len()).min(octets.len());
                self.head.extend_from_slice(&octets[..missing]);
                octets = &octets[missing..];
                if self.head.len() == LEAST_MESSAGE as usize {
                    let head = Head::decode(&std::mem::take(&mut self.head));
                    self.is_wrong = head.is_none();
                    self.under_way = head.map(|head| (head, LEAST_MESSAGE));
                    self.end(&mut whole);
                }
                continue;
            };
            let expected = head.body(*got, head.len - *got);
            let here = expected.len().min(octets.len());
            self.is_wrong = octets[..here] != expected[..here];
            *got += here as u32;
            octets = &octets[here..];
            self.end(&mut whole);
        }
    }

    fn end(&mut self, whole: &mut impl FnMut(Head)) {
        if let Some((head, _)) = self.under_way.filter(|(head, got)| *got == head.len && !self.is_wrong) {
            self.under_way = None;
            whole(head);
        }
    }
}

/// Messages to be written to a connection.
#[derive(Clone, Debug, Default)]
struct Outgoing {
    waiting: VecDeque<Head>,
    /// Number of bytes of the first message that are written.
    written: u32,
}

impl Outgoing {
    /// Writes as much as there is room for. Each message that is completely written is passed to
    /// `done`.
    fn fill(&mut self, ctx: &mut Ctx<'_>, id: ConnId, mut done: impl FnMut(Head)) {
        while let Some(head) = self.waiting.front() {
            match ctx.write(id, &mut head.octets(self.written)) {
                Ok(0) | Err(_) => break,
                Ok(n) => self.written += n as u32,
            }
            if self.written == head.len {
                done(*head);
                self.waiting.pop_front();
                self.written = 0;
            }
        }
    }
}

/// A connection of a source.
#[derive(Clone, Debug, Default)]
struct Flow {
    out: Outgoing,
    /// Messages that are written but not finished, and the position in the connection at which each
    /// ends.
    told: VecDeque<(Head, u64)>,
    end: u64,
    replies: Reader,
}

impl Flow {
    fn fill(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        let Self { out, told, end, .. } = self;
        out.fill(ctx, id, |head| {
            *end += u64::from(head.len);
            told.push_back((head, *end));
        });
    }

    /// The peer has acknowledged this many bytes, which finishes all messages up to there.
    fn acknowledged(&mut self, octets: u64) {
        while self.told.front().is_some_and(|(_, end)| *end <= octets) {
            self.told.pop_front();
        }
    }

    fn is_over(&self) -> bool {
        self.out.waiting.is_empty() && self.told.is_empty()
    }

    /// The state for a new connection: unfinished messages are sent again.
    fn again(self) -> Self {
        let waiting = self.told.into_iter().map(|(head, _)| head).chain(self.out.waiting).collect();
        Self { out: Outgoing { waiting, written: 0 }, ..Self::default() }
    }
}

/// Generates messages over time, or each message some time after the reply to the one before.
#[derive(Debug)]
pub struct MessageSource {
    config: MessageConfig,
    pace: Pace,
    /// Stream for message lengths; set at the start.
    random: Option<Stream>,
    /// Time of the next message.
    next: Option<Instant>,
    /// Number of messages generated. A node that starts again continues the numbering.
    pub made: u32,
    flows: BTreeMap<ConnId, Flow>,
    /// Messages that wait for a connection, and until when.
    unconnected: Option<(Flow, Instant)>,
    /// The message whose reply datagram is awaited, and when it is given up.
    asked: Option<(Head, Instant)>,
    /// Replies in order of arrival. Number and time are those of the message, the source is the
    /// node that answered.
    pub answered: Vec<Arrived>,
    /// Number of failed connections and of messages given up.
    pub failures: u32,
    is_finished: bool,
}

impl MessageSource {
    /// A source that begins when it is started.
    pub fn new(config: MessageConfig) -> Self {
        let mut pace = Pace::new(config.interval, config.spacing.clone(), config.packets);
        pace.purpose = format!("packets of {}", config.name).into();
        pace.until = config.until;
        Self {
            config,
            pace,
            random: None,
            next: None,
            made: 0,
            flows: BTreeMap::new(),
            unconnected: None,
            asked: None,
            answered: Vec::new(),
            failures: 0,
            is_finished: false,
        }
    }

    /// Generates the messages that are due.
    fn make(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(at) = self.next.filter(|at| *at <= ctx.now()) {
            let Some(random) = &mut self.random else { return };
            let reply = self.config.replies.as_ref().map_or(0, |replies| replies.draw(random, 0));
            let head = Head {
                number: self.made,
                made: at,
                len: self.config.sizes.draw(random, self.pace.row()),
                reply,
            };
            self.made += 1;
            // With replies, the next message follows the reply.
            self.next = if reply > 0 { None } else { self.pace.next(at, self.made as usize) };
            self.send(ctx, head);
        }
    }

    fn send(&mut self, ctx: &mut Ctx<'_>, head: Head) {
        let flow =
            |head| Flow { out: Outgoing { waiting: VecDeque::from([head]), written: 0 }, ..Flow::default() };
        match self.config.via {
            Via::Connections(transport) => self.connect(ctx, transport, flow(head)),
            Via::Connection(transport) => {
                if let Some((id, flow)) = self.flows.iter_mut().next() {
                    flow.out.waiting.push_back(head);
                    flow.fill(ctx, *id);
                } else if let Some((flow, _)) = &mut self.unconnected {
                    flow.out.waiting.push_back(head);
                } else {
                    self.connect(ctx, transport, flow(head));
                }
            }
            Via::Datagrams { from_port, timeout } => {
                let (to, port) = (self.config.to, self.config.port);
                if ctx.send_datagram(to, from_port, port, head.datagram()).is_err() {
                    ctx.trace(format_args!("{to:?} does not exist: the message is lost"));
                }
                self.asked = Some((head, ctx.now() + timeout));
            }
        }
    }

    fn connect(&mut self, ctx: &mut Ctx<'_>, transport: TransportConfig, flow: Flow) {
        match ctx.connect(self.config.to, self.config.port, transport) {
            Ok(id) => {
                self.flows.insert(id, flow);
            }
            Err(_) => self.failed(ctx, flow),
        }
    }

    /// Handles a connection that has failed or could not be opened.
    fn failed(&mut self, ctx: &mut Ctx<'_>, flow: Flow) {
        self.failures += 1;
        match self.config.via {
            Via::Connection(_) => self.unconnected = Some((flow.again(), ctx.now() + PAUSE)),
            Via::Connections(_) | Via::Datagrams { .. } => self.go_on(ctx.now()),
        }
    }

    /// If messages wait for replies, schedules the next message after a think time.
    fn go_on(&mut self, now: Instant) {
        if self.config.replies.is_some() {
            self.next = self.pace.next(now, self.made as usize);
        }
    }

    fn answered(&mut self, now: Instant, Head { number, made, len, .. }: Head) {
        self.answered.push(Arrived { from: self.config.to, number, made, at: now, len });
        self.go_on(now);
    }

    /// Reads replies, and closes a finished connection of a single message.
    fn attend(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let mut replies = Vec::new();
        while let Some(octets) = ctx.read(id, usize::MAX) {
            flow.replies.take(&octets, |head| replies.push(head));
        }
        flow.fill(ctx, id);
        if self.config.replies.is_some() {
            // With replies, a message is finished by its reply, not by the acknowledgement.
            flow.told.retain(|(head, _)| replies.iter().all(|reply| reply.number != head.number));
        } else {
            flow.acknowledged(ctx.info(id).map_or(0, |info| info.bytes_acked));
        }
        // The last bytes also close the connection, unless a reply is outstanding.
        let may_close =
            flow.out.waiting.is_empty() && (self.config.replies.is_none() || flow.told.is_empty());
        let (is_over, is_alone) = (flow.is_over(), matches!(self.config.via, Via::Connections(_)));
        replies.into_iter().for_each(|reply| self.answered(ctx.now(), reply));
        if (is_alone || self.next.is_none()) && may_close {
            ctx.close(id);
        }
        // Nothing more is expected from the connection, which may stay in TIME-WAIT for a minute.
        if is_over && is_alone {
            self.flows.remove(&id);
        }
    }

    fn arm(&mut self, ctx: &mut Ctx<'_>) {
        let is_idle = self.flows.values().all(Flow::is_over) && self.unconnected.is_none();
        if self.next.is_none() && self.asked.is_none() && is_idle && !self.is_finished {
            self.is_finished = true;
            ctx.finished();
        }
        let due = [self.next, self.unconnected.as_ref().map(|(_, at)| *at), self.asked.map(|(_, at)| at)];
        ctx.set_timer(due.into_iter().flatten().min());
    }
}

impl App for MessageSource {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.flows.clear();
        (self.unconnected, self.asked) = (None, None);
        if self.random.is_none() {
            self.random = Some(ctx.stream(&format!("message sizes of {}", self.config.name)));
        }
        if let Via::Datagrams { from_port, .. } = self.config.via
            && ctx.bind(from_port).is_err()
        {
            ctx.trace(format_args!("port {from_port} is taken: this source hears nothing"));
        }
        self.next = self.pace.start(ctx).filter(|_| self.made < self.config.packets);
        self.on_timer(ctx);
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        if !self.flows.contains_key(&id) {
            return;
        }
        match event {
            StreamEvent::Opened | StreamEvent::Writable | StreamEvent::Readable => self.attend(ctx, id),
            StreamEvent::PeerClosed | StreamEvent::Accepted { .. } => {}
            StreamEvent::Closed(reason) => {
                self.attend(ctx, id);
                let Some(flow) = self.flows.remove(&id) else { return };
                if reason != CloseReason::Graceful && !flow.is_over() {
                    self.failed(ctx, flow);
                }
            }
        }
        self.arm(ctx);
    }

    fn on_datagram(&mut self, ctx: &mut Ctx<'_>, from: NodeId, from_port: u16, _: u16, payload: Bytes) {
        if (from, from_port) != (self.config.to, self.config.port) {
            return;
        }
        let (mut reader, mut reply) = (Reader::default(), None);
        reader.take(&payload, |head| reply = Some(head));
        let is_asked = |head: &Head| self.asked.is_some_and(|(asked, _)| asked.number == head.number);
        // A reply after its timeout is ignored: its message is already given up.
        if let Some(reply) = reply.filter(is_asked) {
            self.asked = None;
            self.answered(ctx.now(), reply);
        }
        self.arm(ctx);
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        if self.asked.is_some_and(|(_, until)| until <= now) {
            self.asked = None;
            self.failures += 1;
            self.go_on(now);
        }
        if let Some((flow, _)) = self.unconnected.take_if(|(_, at)| *at <= now)
            && let Via::Connection(transport) = self.config.via
        {
            self.connect(ctx, transport, flow);
        }
        self.make(ctx);
        self.arm(ctx);
    }
}

/// A connection of a sink.
#[derive(Debug)]
struct Incoming {
    peer: NodeId,
    messages: Reader,
    replies: Outgoing,
    /// Whether the source has closed: the sink then closes after its replies.
    is_closing: bool,
}

/// Receives the messages for a port, and answers those that request a reply.
#[derive(Debug)]
pub struct MessageSink {
    port: u16,
    /// Transport of connections; `None` for datagrams.
    transport: Option<TransportConfig>,
    open: BTreeMap<ConnId, Incoming>,
    /// Messages received, in order of arrival, without duplicates.
    pub arrived: Vec<Arrived>,
    /// Number of messages that were received again over another connection.
    pub again: u64,
    /// Number of connections and datagrams with invalid content, which is an error of the
    /// simulator.
    pub wrong: u64,
    /// Message numbers received from each source: all below the first value, and these.
    seen: BTreeMap<NodeId, (u32, std::collections::BTreeSet<u32>)>,
}

impl MessageSink {
    /// A sink that listens on `port` for connections of this transport, or for datagrams if it is
    /// `None`.
    pub fn new(port: u16, transport: Option<TransportConfig>) -> Self {
        let (open, seen) = (BTreeMap::new(), BTreeMap::new());
        Self { port, transport, open, arrived: Vec::new(), again: 0, wrong: 0, seen }
    }

    fn take(&mut self, now: Instant, from: NodeId, Head { number, made, len, .. }: Head) {
        // A source sends messages again over a new connection, so they may arrive twice.
        let (next, later) = self.seen.entry(from).or_default();
        if number < *next || !later.insert(number) {
            self.again += 1;
            return;
        }
        // Keeps only the numbers behind a gap.
        while later.remove(next) {
            *next += 1;
        }
        self.arrived.push(Arrived { from, number, made, at: now, len });
    }

    fn attend(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        let Some(incoming) = self.open.get_mut(&id) else { return };
        let (was_wrong, mut whole) = (incoming.messages.is_wrong, Vec::new());
        while let Some(octets) = ctx.read(id, usize::MAX) {
            incoming.messages.take(&octets, |head| whole.push(head));
        }
        self.wrong += u64::from(incoming.messages.is_wrong && !was_wrong);
        let replies = whole.iter().filter(|head| head.reply >= LEAST_MESSAGE).map(Head::answer);
        incoming.replies.waiting.extend(replies);
        incoming.replies.fill(ctx, id, |_| {});
        if incoming.is_closing && incoming.replies.waiting.is_empty() {
            ctx.close(id);
        }
        let peer = incoming.peer;
        whole.into_iter().for_each(|head| self.take(ctx.now(), peer, head));
    }
}

impl App for MessageSink {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.open.clear();
        let is_taken = match self.transport {
            Some(transport) => ctx.listen(self.port, transport).is_err(),
            None => ctx.bind(self.port).is_err(),
        };
        if is_taken {
            ctx.trace(format_args!("port {} is taken: this sink hears nothing", self.port));
        }
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        match event {
            StreamEvent::Accepted { peer, .. } => {
                let (messages, replies) = (Reader::default(), Outgoing::default());
                self.open.insert(id, Incoming { peer, messages, replies, is_closing: false });
            }
            StreamEvent::PeerClosed => {
                if let Some(incoming) = self.open.get_mut(&id) {
                    incoming.is_closing = true;
                }
                self.attend(ctx, id);
            }
            StreamEvent::Closed(_) => {
                self.attend(ctx, id);
                self.open.remove(&id);
            }
            StreamEvent::Readable | StreamEvent::Writable | StreamEvent::Opened => self.attend(ctx, id),
        }
    }

    fn on_datagram(&mut self, ctx: &mut Ctx<'_>, from: NodeId, from_port: u16, _: u16, payload: Bytes) {
        let (mut reader, mut whole) = (Reader::default(), None);
        reader.take(&payload, |head| whole = Some(head));
        let Some(head) = whole else {
            self.wrong += 1;
            return;
        };
        self.take(ctx.now(), from, head);
        if (LEAST_MESSAGE as usize..=MAX_DATAGRAM).contains(&(head.reply as usize))
            && ctx.send_datagram(from, self.port, from_port, head.answer().datagram()).is_err()
        {
            ctx.trace(format_args!("{from:?} does not exist: the reply is lost"));
        }
    }
}
