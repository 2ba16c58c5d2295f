//! One body over CoAP ([`anabranch_core::coap`]) over UDP: [`CoapEnd`] is its client or its server.

use anabranch_core::coap::{Client, Config, Counters, Event, Failure, Server};
use anabranch_core::time::Instant;
use bytes::Bytes;

use crate::app::{App, Ctx};
use crate::packet::NodeId;
use crate::stream::{ConnId, StreamEvent};

/// Path of the resource: one short segment, as the names of constrained nodes are.
const PATH: &str = "b";

/// Options of an end.
#[derive(Clone, Debug)]
pub struct CoapConfig {
    /// The other node.
    pub peer: NodeId,
    /// Port of this end.
    pub port: u16,
    /// Port of the client's peer, the server. A server answers to the port of a request.
    pub peer_port: u16,
    /// The whole body: what one end sends, and the other compares.
    pub body: Bytes,
    /// Options of the transfer.
    pub coap: Config,
}

#[derive(Debug)]
enum Machine {
    Client(Client),
    Server(Server),
}

/// One end of a transfer. A node that starts again begins its part again.
#[derive(Debug)]
pub struct CoapEnd {
    config: CoapConfig,
    is_client: bool,
    machine: Option<Machine>,
    /// Port of the peer: a client's is known from its first datagram on.
    peer_port: u16,
    /// Time at which the client began.
    pub started: Option<Instant>,
    /// Time at which the whole body had arrived at this end.
    pub received: Option<Instant>,
    /// Outcome of the client, and its time.
    pub outcome: Option<(Instant, Result<(), Failure>)>,
    /// Number of bodies with wrong bytes, which is an error of the simulator.
    pub wrong: u64,
    /// Counters of the time before the node was last started.
    before: Counters,
    lives: u64,
}

impl CoapEnd {
    /// The client: it sends the body if the method is a PUT, else it receives the body.
    pub fn client(config: CoapConfig) -> Self {
        Self::new(config, true)
    }

    /// The server.
    pub fn server(config: CoapConfig) -> Self {
        Self::new(config, false)
    }

    fn new(config: CoapConfig, is_client: bool) -> Self {
        Self {
            peer_port: config.peer_port,
            config,
            is_client,
            machine: None,
            started: None,
            received: None,
            outcome: None,
            wrong: 0,
            before: Counters::default(),
            lives: 0,
        }
    }

    /// Number of bytes of the body that have arrived at this end.
    pub fn octets(&self) -> u64 {
        match &self.machine {
            _ if self.received.is_some() => self.config.body.len() as u64,
            Some(Machine::Client(client)) => client.received(),
            Some(Machine::Server(server)) => server.received(),
            None => 0,
        }
    }

    /// Counters since the beginning.
    pub fn counters(&self) -> Counters {
        let now = match &self.machine {
            Some(Machine::Client(client)) => client.counters(),
            Some(Machine::Server(server)) => server.counters(),
            None => Counters::default(),
        };
        Counters {
            sent: self.before.sent + now.sent,
            retransmissions: self.before.retransmissions + now.retransmissions,
            timeouts: self.before.timeouts + now.timeouts,
            ignored: self.before.ignored + now.ignored,
        }
    }

    /// Sends the machine's datagrams and handles its events.
    fn attend(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        while let Some(machine) = &mut self.machine {
            let (datagram, event) = match machine {
                Machine::Client(client) => (client.poll_transmit(now), client.poll_event()),
                Machine::Server(server) => (server.poll_transmit(now), server.poll_event()),
            };
            let is_idle = datagram.is_none() && event.is_none();
            if let Some(datagram) = datagram {
                let (peer, port) = (self.config.peer, self.config.port);
                let sent = ctx.send_datagram(peer, port, self.peer_port, datagram);
                sent.expect("a message is shorter than a datagram, and the nodes of a scenario exist");
            }
            match event {
                Some(Event::Received(body)) if body == self.config.body => {
                    self.received.get_or_insert(now);
                }
                Some(Event::Received(_)) => self.wrong += 1,
                Some(Event::Finished(outcome)) => {
                    self.outcome = Some((now, outcome));
                    ctx.finished();
                }
                Some(Event::Discarded) => ctx.trace(format_args!("CoAP blocks are discarded")),
                None => {}
            }
            if is_idle {
                break;
            }
        }
        let due = match &self.machine {
            Some(Machine::Client(client)) => client.next_timeout(),
            Some(Machine::Server(server)) => server.next_timeout(),
            None => None,
        };
        ctx.set_timer(due);
    }
}

impl App for CoapEnd {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        let (now, port, coap) = (ctx.now(), self.config.port, self.config.coap);
        (self.before, self.outcome) = (self.counters(), None);
        if ctx.bind(port).is_err() {
            ctx.trace(format_args!("port {port} is taken: this end of a CoAP transfer hears nothing"));
        }
        self.lives += 1;
        let entropy = ctx.stream(&format!("coap {port}")).bits().wrapping_add(self.lives);
        let body = self.config.body.clone();
        self.machine = Some(match (self.is_client, coap.method.is_put()) {
            (true, true) => Machine::Client(Client::put(now, coap, PATH, body, entropy)),
            (true, false) => Machine::Client(Client::get(now, coap, PATH, entropy)),
            (false, true) => Machine::Server(Server::receiving(coap, entropy)),
            (false, false) => Machine::Server(Server::serving(coap, body, entropy)),
        });
        if self.is_client {
            self.started.get_or_insert(now);
        }
        self.attend(ctx);
    }

    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}

    fn on_datagram(&mut self, ctx: &mut Ctx<'_>, from: NodeId, from_port: u16, _: u16, payload: Bytes) {
        if from != self.config.peer {
            return;
        }
        match &mut self.machine {
            Some(Machine::Client(client)) if from_port == self.peer_port => {
                client.handle_datagram(ctx.now(), &payload);
            }
            Some(Machine::Server(server)) => {
                self.peer_port = from_port;
                server.handle_datagram(ctx.now(), &payload);
            }
            _ => return,
        }
        self.attend(ctx);
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        match &mut self.machine {
            Some(Machine::Client(client)) => client.handle_timeout(ctx.now()),
            Some(Machine::Server(server)) => server.handle_timeout(ctx.now()),
            None => {}
        }
        self.attend(ctx);
    }
}
