//! Our end of a connection: sends bytes, compares received bytes, closes.

use std::sync::mpsc::Sender;

use anabranch_core::tcp::{CloseReason, Config, Info, State};
use anabranch_core::time::Duration;
use anabranch_sim::app::{App, Ctx};
use anabranch_sim::packet::NodeId;
use anabranch_sim::stream::{ConnId, StreamEvent};
use bytes::Bytes;

use super::cell::{Opener, Order};

/// Interval at which it checks whether its connection is at rest.
const LOOK: Duration = Duration::from_millis(5);

/// The final state of its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    TimeWait,
    Closed(CloseReason),
}

/// The result of our end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) received: usize,
    /// Position of the first piece that differs.
    pub(crate) wrong: Option<usize>,
    /// The peer has closed its direction.
    pub(crate) peer_closed: bool,
    pub(crate) rest: Option<Rest>,
    pub(crate) connections: usize,
    /// Statistics of the connection at the last check.
    pub(crate) info: Option<Info>,
}

/// Our end. It sends its result to `at_rest` when everything except TIME-WAIT is over.
pub(crate) struct Ours {
    pub(crate) tcp: Config,
    pub(crate) opener: Opener,
    pub(crate) order: Order,
    pub(crate) kernel: NodeId,
    pub(crate) port: u16,
    pub(crate) outgoing: Bytes,
    pub(crate) expected: Bytes,
    /// If not zero: it does not read until data has arrived, and then waits for this time.
    pub(crate) stall: Duration,
    pub(crate) at_rest: Sender<Outcome>,
    pub(crate) state: Progress,
}

/// Progress of our end.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    id: Option<ConnId>,
    reading: bool,
    writing: bool,
    /// Readable bytes at the last check, while it does not read.
    readable: u32,
    outcome: Outcome,
}

impl Ours {
    fn opened(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        self.state.id = Some(id);
        self.state.outcome.connections += 1;
        self.state.writing = self.order != Order::KernelFirst;
        ctx.set_timer(Some(ctx.now() + self.stall.max(LOOK)));
        self.write(ctx, id);
    }

    fn write(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        if !self.state.writing {
            return;
        }
        while !self.outgoing.is_empty() {
            match ctx.write(id, &mut self.outgoing) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        self.state.writing = false;
        ctx.close(id);
    }

    fn read(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        if !self.state.reading {
            return;
        }
        while let Some(octets) = ctx.read(id, usize::MAX) {
            let outcome = &mut self.state.outcome;
            let end = outcome.received + octets.len();
            if outcome.wrong.is_none() && self.expected.get(outcome.received..end) != Some(&octets[..]) {
                outcome.wrong = Some(outcome.received);
            }
            outcome.received = end;
        }
    }

    fn rest(&mut self, rest: Rest) {
        if self.state.outcome.rest.is_none() {
            self.state.outcome.rest = Some(rest);
            let _ = self.at_rest.send(self.state.outcome.clone());
        }
    }
}

impl App for Ours {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        match self.opener {
            Opener::Kernel => ctx.listen(self.port, self.tcp).expect("the port is free"),
            Opener::Ours => {
                ctx.connect(self.kernel, self.port, self.tcp).expect("a port is free");
            }
        }
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        match event {
            StreamEvent::Opened | StreamEvent::Accepted { .. } => self.opened(ctx, id),
            StreamEvent::Readable => self.read(ctx, id),
            StreamEvent::Writable => self.write(ctx, id),
            StreamEvent::PeerClosed => {
                self.read(ctx, id);
                self.state.outcome.peer_closed = true;
                if self.order == Order::KernelFirst {
                    self.state.writing = true;
                    self.write(ctx, id);
                }
            }
            StreamEvent::Closed(reason) => {
                self.read(ctx, id);
                self.rest(Rest::Closed(reason));
            }
        }
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        let Some(id) = self.state.id else { return };
        let readable = ctx.info(id).map_or(0, |info| info.readable);
        let before = std::mem::replace(&mut self.state.readable, readable);
        if !self.stall.is_zero() && !self.state.reading && (readable == 0 || readable > before) {
            return ctx.set_timer(Some(ctx.now() + self.stall));
        }
        self.state.reading = true;
        self.read(ctx, id);
        if let Some(info) = ctx.info(id) {
            self.state.outcome.info = Some(info);
            if info.state == State::TimeWait {
                return self.rest(Rest::TimeWait);
            }
            ctx.set_timer(Some(ctx.now() + LOOK));
        }
    }
}
