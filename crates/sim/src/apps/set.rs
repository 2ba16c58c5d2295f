//! The core's SET machines on simulated nodes: [`SetSender`], [`SetRelay`], [`SetNode`].
//!
//! What they share is their driver: streams are TCP connections of the node's host.

mod driver;

use anabranch_core::set::{
    Outcome, Receiver, ReceiverConfig, Relay, RelayConfig, Sender, SenderConfig, SessionReport, TransferId,
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

/// The port on which a node takes requests and sessions. No registered service's, or Wireshark
/// would take a captured session for that.
pub const NODE_PORT: u16 = 47_200;
/// The port on which a gateway takes sessions.
pub const GATEWAY_PORT: u16 = 47_201;

/// A transfer to make.
#[derive(Clone, Debug)]
pub struct SetSenderConfig {
    /// The node.
    pub node: NodeId,
    /// The octets.
    pub file: Bytes,
    /// Options of the session manager.
    pub set: SenderConfig,
    /// TCP to the gateways.
    pub wired: Config,
    /// TCP to the node, end to end.
    pub control: Config,
    /// The network's IP version.
    pub ip: IpVersion,
    /// End the run once the transfer is over.
    pub stop_when_over: bool,
}

/// The correspondent node: makes one transfer when it starts.
#[derive(Debug)]
pub struct SetSender {
    config: SetSenderConfig,
    driver: Option<Driver<Sender>>,
    /// When the request was made.
    pub started: Option<Instant>,
    /// When the connection that carries the octets was open: the first session, or for the
    /// baselines the plain connection, once the node had answered.
    pub established: Option<Instant>,
    /// When the sender knew the outcome.
    pub finished: Option<Instant>,
}

impl SetSender {
    /// A sender that begins when it is started.
    pub fn new(config: SetSenderConfig) -> Self {
        Self { config, driver: None, started: None, established: None, finished: None }
    }

    /// How the transfer ended, once it has.
    pub fn outcome(&self) -> Option<Outcome> {
        self.driver.as_ref()?.machine.outcome()
    }

    /// Octets that the node is known to have delivered in order.
    pub fn delivered(&self) -> u64 {
        self.driver.as_ref().map_or(0, |d| d.machine.delivered())
    }

    /// The sessions, in the order of calls, and what TCP did for each on the wired half.
    pub fn sessions(&self) -> Vec<(SessionReport, LegTotals)> {
        let Some(driver) = &self.driver else { return Vec::new() };
        driver.machine.sessions().map(|s| (s.clone(), driver.totals_of(s.stream))).collect()
    }

    /// Segments that this node's TCP sent again for the transfer.
    pub fn retransmissions(&self) -> u64 {
        self.driver.as_ref().map_or(0, |d| d.totals_of_dialled().retransmissions)
    }

    /// [`SetSender::retransmissions`] at this moment, with the sender on `node`; a connection that
    /// stalls reports late.
    pub fn current_retransmissions(&self, world: &World, node: NodeId) -> u64 {
        self.driver.as_ref().map_or(0, |d| d.current_totals_of_dialled(world, node).retransmissions)
    }

    fn after(&mut self, ctx: &mut Ctx<'_>) {
        if self.established.is_none() && self.driver.as_ref().is_some_and(|d| d.machine.is_established()) {
            self.established = Some(ctx.now());
        }
        if self.finished.is_none() && self.outcome().is_some() {
            self.finished = Some(ctx.now());
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

/// A gateway's relay.
#[derive(Debug)]
pub struct SetRelay {
    config: RelayConfig,
    listen: Config,
    driver: Driver<Relay>,
}

impl SetRelay {
    /// A relay that takes sessions with `wired` and dials nodes with `wireless`.
    pub fn new(config: RelayConfig, wired: Config, wireless: Config) -> Self {
        let profiles = Profiles { control: wired, wired, wireless };
        Self { config, listen: wired, driver: Driver::new(Relay::new(config), profiles) }
    }

    /// The relay.
    pub fn relay(&self) -> &Relay {
        &self.driver.machine
    }

    /// What TCP did on all wireless halves so far.
    pub fn wireless_totals(&self) -> LegTotals {
        self.driver.totals_of_dialled()
    }

    /// [`SetRelay::wireless_totals`] at this moment, with the relay on `node`; a connection that
    /// stalls reports late.
    pub fn current_wireless_totals(&self, world: &World, node: NodeId) -> LegTotals {
        self.driver.current_totals_of_dialled(world, node)
    }
}

impl App for SetRelay {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        // A gateway that comes back has forgotten everything.
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

/// The sensor node: receives.
#[derive(Debug)]
pub struct SetNode {
    config: ReceiverConfig,
    listen: Config,
    driver: Driver<Receiver>,
    /// What came out of the receive buffer, in order.
    pub delivered: BytesMut,
    /// When the last octet was delivered.
    pub completed: Option<Instant>,
}

impl SetNode {
    /// A node that takes requests and sessions with `tcp`.
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
