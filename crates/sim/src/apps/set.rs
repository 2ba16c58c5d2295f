//! The core's SET state machines on simulated nodes: [`SetSender`], [`SetRelay`], [`SetNode`].
//!
//! Their common driver maps streams to TCP connections of the node's host.

mod driver;

use anabranch_core::set::{
    Moments, Outcome, Plan, Receiver, ReceiverConfig, Relay, RelayConfig, Sender, SenderConfig,
    SessionReport, StripingDecision, TransferId,
};
use anabranch_core::tcp::Config;
use anabranch_core::time::Instant;
use bytes::{Bytes, BytesMut};

pub use self::driver::LegTotals;
use self::driver::{Driver, Profiles};
use crate::address::address_of;
use crate::app::{App, Ctx};
use crate::packet::{IpVersion, NodeId};
use crate::stream::{ConnId, StreamEvent};
use crate::world::World;

/// Port on which a node accepts requests and sessions. It belongs to no registered service, so that
/// Wireshark does not decode a captured session as something else.
pub const NODE_PORT: u16 = 47_200;
/// Port on which a gateway accepts sessions.
pub const GATEWAY_PORT: u16 = 47_201;

/// Options of a transfer.
#[derive(Clone, Debug)]
pub struct SetSenderConfig {
    /// Receiving node.
    pub node: NodeId,
    /// Data to transfer.
    pub file: Bytes,
    /// Options of the session manager.
    pub set: SenderConfig,
    /// TCP configuration of connections to gateways.
    pub wired: Config,
    /// TCP configuration of end-to-end connections to the node.
    pub control: Config,
    /// IP version of the network.
    pub ip: IpVersion,
    /// Whether the run ends when the transfer is over.
    pub stop_when_over: bool,
}

/// The correspondent node: makes one transfer when it starts.
#[derive(Debug)]
pub struct SetSender {
    config: SetSenderConfig,
    driver: Option<Driver<Sender>>,
    /// Number of decisions of adaptive striping that observers have seen.
    told: usize,
    /// Time of the request.
    pub started: Option<Instant>,
    /// Time at which the connection that carries the data was open: the first session, or for the
    /// baselines the plain connection, after the node had answered.
    pub established: Option<Instant>,
    /// Time at which the sender knew the outcome.
    pub finished: Option<Instant>,
}

impl SetSender {
    /// A sender that begins when it is started.
    pub fn new(config: SetSenderConfig) -> Self {
        Self { config, driver: None, told: 0, started: None, established: None, finished: None }
    }

    /// Outcome of the transfer, once it is over.
    pub fn outcome(&self) -> Option<Outcome> {
        self.driver.as_ref()?.machine.outcome()
    }

    /// Number of bytes that the node is known to have delivered in order.
    pub fn delivered(&self) -> u64 {
        self.driver.as_ref().map_or(0, |d| d.machine.delivered())
    }

    /// The sessions in the order in which they were opened, with the TCP totals of their wired
    /// half.
    pub fn sessions(&self) -> Vec<(SessionReport, LegTotals)> {
        let Some(driver) = &self.driver else { return Vec::new() };
        driver.machine.sessions().map(|s| (s.clone(), driver.totals_of(s.stream))).collect()
    }

    /// Moments of the transfer, of which reports make phases; `None` before its start.
    pub fn moments(&self) -> Option<&Moments> {
        self.driver.as_ref().map(|d| d.machine.moments())
    }

    /// What adaptive striping has decided so far: see [`Sender::decisions`].
    pub fn decisions(&self) -> &[StripingDecision] {
        self.driver.as_ref().map_or(&[], |d| d.machine.decisions())
    }

    /// TCP retransmissions of this node for the transfer.
    pub fn retransmissions(&self) -> u64 {
        self.driver.as_ref().map_or(0, |d| d.totals_of_dialled().retransmissions)
    }

    /// [`SetSender::retransmissions`] at this moment, for a sender on `node`. A stalled connection
    /// reports late, so this method queries it.
    pub fn current_retransmissions(&self, world: &World, node: NodeId) -> u64 {
        self.driver.as_ref().map_or(0, |d| d.current_totals_of_dialled(world, node).retransmissions)
    }

    fn after(&mut self, ctx: &mut Ctx<'_>) {
        for decision in self.decisions().iter().skip(self.told) {
            ctx.trace(format_args!("striping: {decision}"));
        }
        self.told = self.decisions().len();
        if self.established.is_none() && self.driver.as_ref().is_some_and(|d| d.machine.is_established()) {
            self.established = Some(ctx.now());
        }
        if self.finished.is_none() && self.outcome().is_some() {
            self.finished = Some(ctx.now());
            // The baselines have no acknowledgements of parts, and so few phases.
            if let Some(moments) = self.moments().filter(|_| self.config.set.plan == Plan::Stripe) {
                ctx.show_phases(self.config.node, moments);
            }
            ctx.finished();
            if self.config.stop_when_over {
                ctx.stop();
            }
        }
    }
}

impl App for SetSender {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.started = Some(now);
        let transfer = TransferId(ctx.stream("transfer").bits());
        let node = (address_of(self.config.ip, self.config.node), NODE_PORT).into();
        let machine = Sender::new(now, self.config.set, node, transfer, self.config.file.clone());
        let profiles =
            Profiles { control: self.config.control, wired: self.config.wired, wireless: self.config.wired };
        let mut driver = Driver::new(machine, profiles);
        driver.pump(ctx);
        self.driver = Some(driver);
        self.after(ctx);
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, connection: ConnId, event: StreamEvent) {
        if let Some(driver) = &mut self.driver {
            driver.handle(ctx, connection, event);
        }
        self.after(ctx);
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(driver) = &mut self.driver {
            driver.handle_timeout(ctx);
        }
        self.after(ctx);
    }
}

/// The relay on a gateway.
#[derive(Debug)]
pub struct SetRelay {
    config: RelayConfig,
    listen: Config,
    driver: Driver<Relay>,
}

impl SetRelay {
    /// A relay that accepts sessions with `wired` and connects to nodes with `wireless`.
    pub fn new(config: RelayConfig, wired: Config, wireless: Config) -> Self {
        let profiles = Profiles { control: wired, wired, wireless };
        Self { config, listen: wired, driver: Driver::new(Relay::new(config), profiles) }
    }

    /// The relay.
    pub fn relay(&self) -> &Relay {
        &self.driver.machine
    }

    /// TCP totals of all wireless halves so far.
    pub fn wireless_totals(&self) -> LegTotals {
        self.driver.totals_of_dialled()
    }

    /// [`SetRelay::wireless_totals`] at this moment, for a relay on `node`. A stalled connection
    /// reports late, so this method queries it.
    pub fn current_wireless_totals(&self, world: &World, node: NodeId) -> LegTotals {
        self.driver.current_totals_of_dialled(world, node)
    }
}

impl App for SetRelay {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        // A gateway that starts again has lost its state.
        self.driver.reset(Relay::new(self.config));
        ctx.listen(GATEWAY_PORT, self.listen).expect("a node that starts has no listener");
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, connection: ConnId, event: StreamEvent) {
        self.driver.handle(ctx, connection, event);
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        self.driver.handle_timeout(ctx);
    }
}

/// The sensor node, which receives.
#[derive(Debug)]
pub struct SetNode {
    config: ReceiverConfig,
    listen: Config,
    driver: Driver<Receiver>,
    /// Data read from the receive buffer, in order.
    pub delivered: BytesMut,
    /// Time at which the last byte was delivered.
    pub completed: Option<Instant>,
}

impl SetNode {
    /// A node that accepts requests and sessions with `tcp`.
    pub fn new(config: ReceiverConfig, tcp: Config) -> Self {
        let driver = Driver::new(Receiver::new(config.clone()), Profiles::all(tcp));
        Self { config, listen: tcp, driver, delivered: BytesMut::new(), completed: None }
    }

    /// The receiver.
    pub fn receiver(&self) -> &Receiver {
        &self.driver.machine
    }

    fn after(&mut self, ctx: &mut Ctx<'_>) {
        self.driver.take_delivered(&mut self.delivered);
        if self.completed.is_none() && self.driver.machine.is_complete() {
            self.completed = Some(ctx.now());
        }
    }
}

impl App for SetNode {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.driver.reset(Receiver::new(self.config.clone()));
        ctx.listen(NODE_PORT, self.listen).expect("a node that starts has no listener");
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, connection: ConnId, event: StreamEvent) {
        self.driver.handle(ctx, connection, event);
        self.after(ctx);
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        self.driver.handle_timeout(ctx);
        self.after(ctx);
    }
}
