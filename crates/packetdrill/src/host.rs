//! A host in simulated time: descriptors and sockets over connections of the core.

mod args;
mod call;
mod errors;
mod flow;
mod link;
mod options;
mod poll;
mod socket;
mod transfer;
mod transport;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use anabranch_core::mptcp::{Secrets, SubflowId};
use anabranch_core::segment::{Segment, SeqNumber};
use anabranch_core::tcp::{CloseReason, Event, SackRole, reset_for};
use anabranch_core::time::Instant;

pub(crate) use self::args::{Attempt, Reply};
pub(crate) use self::flow::Flow;
pub(crate) use self::link::Link;
use self::link::MARGIN;
use self::poll::Epoll;
use self::socket::{Socket, Stage};
use self::transport::Happening;
pub(crate) use self::transport::Transport;
use crate::settings::Settings;

/// The host under test.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) settings: Settings,
    now: Instant,
    files: BTreeMap<i64, File>,
    sockets: Vec<Socket>,
    links: Vec<Link>,
    /// The subflows of all connections, in the order of opening.
    flows: Vec<Flow>,
    /// Segments that have left, oldest first.
    pub(crate) sent: VecDeque<Sent>,
    /// The flow to which packets without ports and addresses belong.
    pub(crate) current: Option<usize>,
}

/// The object behind a descriptor.
#[derive(Debug)]
enum File {
    /// Index into `Host::sockets`.
    Socket(usize),
    Epoll(Epoll),
    /// A file to send from; all of its bytes are zeros.
    Data,
}

/// A segment that has left.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    /// Index of the flow.
    pub(crate) flow: usize,
    pub(crate) segment: Segment,
    /// True if the segment ends with the last byte written.
    pub(crate) ends_queue: bool,
}

impl Host {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            now: START,
            files: BTreeMap::new(),
            sockets: Vec::new(),
            links: Vec::new(),
            flows: Vec::new(),
            sent: VecDeque::new(),
            current: None,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// The connection of a flow.
    pub(crate) fn link(&self, flow: usize) -> Option<&Link> {
        self.links.get(self.flows.get(flow)?.link?)
    }

    /// The time of the next timer.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.links
            .iter()
            .flat_map(|link| link.connection.next_timeout().into_iter().chain(link.held_until))
            .min()
    }

    /// Advances the clock and fires the timers that are due by then.
    pub(crate) fn advance(&mut self, to: Instant) {
        let passed = to.saturating_since(self.now);
        self.now = self.now.max(to);
        for link in &mut self.links {
            link.spend(passed);
            if link.held_until.is_some_and(|at| at <= self.now) {
                link.release();
            }
            if link.connection.next_timeout().is_some_and(|at| at <= self.now) {
                link.connection.handle_timeout(self.now);
            }
        }
        self.drain();
    }

    /// A segment arrives on a flow.
    pub(crate) fn receive(&mut self, flow: usize, segment: Segment) {
        let Some(Flow { link, subflow, .. }) = self.flows.get(flow).copied() else { return };
        if let Some(found) = link.and_then(|link| self.links.get_mut(link)) {
            if found.closed.is_some() && found.connection.multi().is_none() {
                let (at, reset) = (self.now, reset_for(&segment));
                self.sent.extend(reset.map(|segment| Sent { at, flow, segment, ends_queue: false }));
                return;
            }
            let accepted = found.listener.is_some();
            if let Some(multi) = found.connection.multi_mut() {
                let learns = accepted && !multi.connection.is_multipath();
                multi.confirms = learns && flow::is_third(&segment);
            }
            let len = segment.payload.len() as u32;
            if len > 0 {
                found.last_data = self.now;
                let largest = self.settings.peer_mss.unwrap_or(len);
                found.largest_received = found.largest_received.max(len.min(largest));
            }
            found.connection.handle_segment(self.now, subflow, segment);
            if found.held_for_more && (found.nodelay || found.connection.info().buffered == 0) {
                found.release();
            }
        }
        self.drain();
    }

    /// The lower limit of the new connection's initial sequence number if this SYN ends a
    /// connection in TIME-WAIT, so that a listener may accept it.
    pub(crate) fn gives_way(&mut self, flow: usize, syn: &Segment) -> Option<SeqNumber> {
        let link = self.flows.get(flow)?.link?;
        let least = self.links.get_mut(link)?.connection.give_way(self.now, syn);
        self.drain();
        least
    }

    /// Handles a SYN for a listener on `port`. Returns the index of the first flow of the new
    /// connection, which begins at `iss`.
    pub(crate) fn open(
        &mut self,
        mut syn: Segment,
        port: Option<u16>,
        addresses: (IpAddr, IpAddr),
        iss: SeqNumber,
    ) -> Option<usize> {
        let listens = |socket: &Socket| match &socket.stage {
            Stage::Listening { .. } => port.is_none_or(|port| port == socket.port),
            Stage::New | Stage::Connected(_) => false,
        };
        let listener = self.sockets.iter().rposition(listens)?;
        let socket = &self.sockets[listener];
        let mut config = socket.config;
        config.syn_retries = self.settings.synack_retries;
        if !syn.options.sack_permitted && config.sack == SackRole::Both {
            // RFC 2018 section 2 lets a SYN-ACK permit SACK regardless of the SYN; Linux permits it
            // only if the SYN does.
            config.sack = SackRole::Off;
        }
        let lowat = socket.lowat.unwrap_or(self.settings.notsent_lowat);
        syn.dst_port = socket.port;
        if syn.src_port == 0 {
            syn.src_port = FIRST_PORT.wrapping_add(self.links.len() as u16);
        }
        let (advertised_mss, send_buffer) = (config.mss, config.send_buffer);
        config.send_buffer = send_buffer.saturating_add(MARGIN);
        let (user_timeout, most_buffer) = (socket.user_timeout, socket.most_buffer);
        let secrets = self.secrets(iss);
        let mut connection = self.passive(config, self.sockets[listener].multipath, &syn, secrets)?;
        connection.set_user_timeout(self.now, user_timeout);
        let (link, ports) = (self.links.len(), (syn.dst_port, syn.src_port));
        self.links.push(Link {
            listener: Some(listener),
            lowat,
            advertised_mss,
            send_buffer,
            most_buffer,
            ..Link::new(connection, iss, ports)
        });
        let flow = self.first_flow(link, addresses, secrets);
        self.drain();
        Some(flow)
    }

    /// Adds the first flow of a connection, which becomes the current one.
    fn first_flow(&mut self, link: usize, addresses: (IpAddr, IpAddr), secrets: Secrets) -> usize {
        let (ports, Secrets { iss, nonce, .. }) = (self.links[link].ports, secrets);
        let flow = self.flows.len();
        self.flows.push(Flow { link: Some(link), subflow: SubflowId(0), iss, ports, addresses, nonce });
        self.current = Some(flow);
        flow
    }

    /// The initial sequence number of the next connection, at least the limit from
    /// [`Host::gives_way`].
    pub(crate) fn next_iss(&self, least: Option<SeqNumber>) -> SeqNumber {
        let iss = SeqNumber(ISS.wrapping_add(self.flows.len() as u32 * 0x0100_0000));
        least.map_or(iss, |least| if iss.ge(least) { iss } else { least })
    }

    /// Takes all effects of all connections.
    fn drain(&mut self) {
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            link.largest_window = link.largest_window.max(link.connection.info().peer_window);
            self.send(index);
            while let Some(happening) = self.links[index].connection.poll_event() {
                match happening {
                    Happening::Tcp(event) => self.event(index, event),
                    Happening::Address(address, port) => self.join_address(index, address, port),
                    Happening::Other => {}
                }
            }
            // The path manager may have reacted to an event.
            if let Some(multi) = self.links[index].connection.multi_mut() {
                multi.confirms = false;
                self.send(index);
            }
        }
    }

    /// Takes all segments of a connection.
    fn send(&mut self, index: usize) {
        let at = self.now;
        while let Some((subflow, segment)) = self.links[index].poll_transmit(at) {
            let link = &self.links[index];
            let end = segment.seq + segment.payload.len() as u32;
            let ends_queue = match link.connection.multi() {
                None => end.0 == (link.iss + 1).0.wrapping_add(link.written as u32),
                Some(multi) => multi.connection.info().unsent == 0,
            };
            let flow = self.flow_of(index, subflow);
            self.sent.push_back(Sent { at, flow, segment, ends_queue });
        }
        self.links[index].stamp(at);
    }

    fn event(&mut self, index: usize, event: Event) {
        let link = &mut self.links[index];
        match event {
            Event::Established => {
                link.established = true;
                link.last_data = self.now;
                if let Some(listener) = link.listener
                    && let Some(Socket { stage: Stage::Listening { ready }, .. }) =
                        self.sockets.get_mut(listener)
                {
                    ready.push_back(index);
                }
            }
            Event::Readable => {}
            Event::PeerClosed => link.peer_closed = true,
            Event::Writable => {
                link.expand();
                if !(link.no_space && link.is_writable()) {
                    return;
                }
                link.no_space = false;
            }
            Event::Closed(reason) => {
                link.closed = Some(reason);
                link.error = match reason {
                    CloseReason::Refused => Some("ECONNREFUSED"),
                    CloseReason::Reset if link.peer_closed => Some("EPIPE"),
                    CloseReason::Reset => Some("ECONNRESET"),
                    CloseReason::TimedOut => Some("ETIMEDOUT"),
                    CloseReason::Graceful | CloseReason::Aborted => None,
                };
            }
        }
        self.links[index].wakeups += 1;
    }
}

/// The host's clock at time 0 of a script: timestamps do not begin with 0.
pub(crate) const START: Instant = Instant::from_nanos(10_000_000_000);
/// Our initial sequence number, chosen so that the sequence numbers of most scripts wrap around.
const ISS: u32 = u32::MAX - 4_000;
/// First port of peers whose packets have no ports.
const FIRST_PORT: u16 = 40_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_gives_way_bounds_the_next_number() {
        let host = Host::new(Settings::default());
        let iss = host.next_iss(None);
        let bounded = [iss + (u32::MAX - 9), iss, iss + 10].map(|least| host.next_iss(Some(least)));
        assert_eq!(bounded, [iss, iss, iss + 10]);
    }
}
