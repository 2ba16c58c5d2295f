//! The gateway (sections 4.2.3, 4.3 and 4.6): a relay between two independent TCP connections.
//!
//! It reads the SETSYN, dials the node, tells the node which transfer the connection belongs to,
//! and answers with SETACK after the open-wait state. From then on it forwards bytes in both
//! directions without reading them. It offers the sender the node's receive window less the bytes
//! that the gateway still holds, and therefore holds at most one window per session.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use anabranch_wire::set::{self as wire, Decoder, Item, Message, Plan, SetAck, SetAckStatus, SetSyn};
use bytes::Bytes;

use super::stream::{Effect, Leg, StreamClose, StreamEvent, StreamId, StreamStatus};
use crate::time::{Duration, Instant};

/// Delay between the opening of the wireless connection and the SETACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OpenWait {
    /// One round trip of the wireless connection, as in the paper: by then the node has received
    /// the last ACK of the handshake (equation 5).
    RoundTrip,
    /// No delay.
    None,
}

/// Granularity of the node's window as offered to the sender (section 4.6, erratum S14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowUnits {
    /// Bytes.
    Octets,
    /// Whole segments of the wired connection of this many bytes, as printed; at least one.
    WiredSegments(u32),
}

/// Options of a [`Relay`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RelayConfig {
    /// Delay of the SETACK.
    pub open_wait: OpenWait,
    /// Bytes that one session may send before the wireless half is open.
    pub initial_window: u32,
    /// Largest number of bytes of one session at the gateway, whatever window the node offers.
    pub buffer: u32,
    /// Size of a wired segment in bytes: the least window offered while the gateway holds nothing.
    pub segment: u32,
    /// Granularity of the node's window as offered to the sender.
    pub units: WindowUnits,
    /// Time without a SETSYN after which a connection is reset.
    pub setsyn_timeout: Duration,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            open_wait: OpenWait::None,
            initial_window: 4 * 1440,
            buffer: 64 * 1024,
            segment: 1440,
            units: WindowUnits::Octets,
            setsyn_timeout: Duration::from_secs(30),
        }
    }
}

impl RelayConfig {
    /// The gateway as printed: SETACK after the open-wait state.
    pub fn paper() -> Self {
        Self { open_wait: OpenWait::RoundTrip, ..Self::default() }
    }
}

/// Counters of a [`Relay`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RelayCounters {
    /// Sessions opened.
    pub opened: u64,
    /// Sessions whose node could not be reached.
    pub unreachable: u64,
    /// Sessions whose node the driver must not dial.
    pub forbidden: u64,
    /// Sessions for which the driver had no room.
    pub congested: u64,
    /// Connections that were reset: no SETSYN, another message in its place, or still open after a
    /// refusal. The last kind is also counted in the counter of its refusal.
    pub rejected: u64,
    /// Bytes from sender to node.
    pub octets_down: u64,
    /// Bytes from node to sender.
    pub octets_up: u64,
}

#[derive(Debug)]
enum State {
    AwaitSetSyn {
        deadline: Instant,
    },
    Dialing,
    OpenWait {
        until: Instant,
    },
    Open,
    /// The refusal was written to the sender, which should close. Its further data is dropped.
    Refused {
        deadline: Instant,
    },
}

#[derive(Debug)]
struct Session {
    wired: StreamId,
    wireless: Option<StreamId>,
    state: State,
    /// Decoder for SETSYN and its repetitions; dropped at the first byte of other data.
    decoder: Option<Decoder>,
    setsyn: Option<SetSyn>,
    /// Bytes for the node that arrived before its connection was open.
    early: VecDeque<Bytes>,
    /// The sender has closed before the wireless connection was open.
    wired_ended: bool,
    /// Whether bytes of the node were forwarded to the sender. A SETACK after them could stand in
    /// the middle of a message.
    node_spoke: bool,
    /// The node has closed its direction, so no more data is sent to the sender.
    node_ended: bool,
    limit: u32,
}

impl Session {
    fn is_refused(&self) -> bool {
        matches!(self.state, State::Refused { .. })
    }
}

/// The relay of one gateway, for any number of sessions.
#[derive(Debug)]
pub struct Relay {
    config: RelayConfig,
    sessions: Vec<Session>,
    next_stream: u32,
    effects: VecDeque<Effect>,
    counters: RelayCounters,
}

impl Relay {
    /// Creates a relay without sessions.
    pub fn new(config: RelayConfig) -> Self {
        let counters = RelayCounters::default();
        Self { config, sessions: Vec::new(), next_stream: 0, effects: VecDeque::new(), counters }
    }

    /// Handles an accepted connection of a sender; returns the stream.
    pub fn handle_accepted(&mut self, now: Instant) -> StreamId {
        let wired = self.new_stream();
        let limit = self.config.initial_window;
        self.effects.push_back(Effect::LimitReceive { stream: wired, octets: limit });
        self.sessions.push(Session {
            wired,
            wireless: None,
            state: State::AwaitSetSyn { deadline: now + self.config.setsyn_timeout },
            decoder: Some(Decoder::new()),
            setsyn: None,
            early: VecDeque::new(),
            wired_ended: false,
            node_spoke: false,
            node_ended: false,
            limit,
        });
        wired
    }

    /// Handles an event of a stream.
    pub fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent) {
        let Some(index) = self.sessions.iter().position(|s| s.wired == stream || s.wireless == Some(stream))
        else {
            return;
        };
        let from_sender = self.sessions[index].wired == stream;
        match (event, from_sender) {
            (StreamEvent::Data(_) | StreamEvent::Ended, true) if self.sessions[index].is_refused() => {}
            (StreamEvent::Data(octets), true) => self.pass_down(index, octets),
            (StreamEvent::Data(octets), false) => self.send_up(index, octets),
            (StreamEvent::Opened, false) => self.open(now, index),
            (StreamEvent::Opened, true) => {}
            (StreamEvent::Ended, true) => self.end_wired(index),
            (StreamEvent::Ended, false) => {
                self.sessions[index].node_ended = true;
                let stream = self.sessions[index].wired;
                self.effects.push_back(Effect::Shutdown { stream });
            }
            (StreamEvent::Closed(why), true) => self.close_wired(index, why),
            (StreamEvent::Closed(why), false) => self.close_wireless(now, index, why),
        }
    }

    /// Handles new figures of a stream. The figures of the wireless stream determine the window
    /// offered to the sender.
    pub fn handle_status(&mut self, _now: Instant, stream: StreamId, status: StreamStatus) {
        let Some(index) = self.sessions.iter().position(|s| s.wireless == Some(stream)) else { return };
        if matches!(self.sessions[index].state, State::AwaitSetSyn { .. } | State::Dialing) {
            return;
        }
        let held = status.unsent.saturating_add(status.in_flight);
        let plan = self.sessions[index].setsyn.map(|s| s.join.plan);
        let limit = wired_window(&self.config, plan, status.peer_window, held);
        let session = &mut self.sessions[index];
        // Smaller changes would cause silly windows (RFC 9293 section 3.8.6.2.2).
        if limit.abs_diff(session.limit) >= self.config.segment / 4 || (limit == 0) != (session.limit == 0) {
            session.limit = limit;
            self.effects.push_back(Effect::LimitReceive { stream: session.wired, octets: limit });
        }
    }

    /// Handles expired timers. See [`Relay::next_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        for index in (0..self.sessions.len()).rev() {
            match self.sessions[index].state {
                State::AwaitSetSyn { deadline } | State::Refused { deadline } if deadline <= now => {
                    self.reject(index);
                }
                State::OpenWait { until } if until <= now => self.send_setack(index),
                State::AwaitSetSyn { .. }
                | State::Dialing
                | State::OpenWait { .. }
                | State::Open
                | State::Refused { .. } => {}
            }
        }
    }

    /// When to call [`Relay::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let times = self.sessions.iter().filter_map(|s| match s.state {
            State::AwaitSetSyn { deadline } | State::Refused { deadline } => Some(deadline),
            State::OpenWait { until } => Some(until),
            State::Dialing | State::Open => None,
        });
        times.min()
    }

    /// Returns the next effect for the driver, until `None`.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Counters since the start.
    pub fn counters(&self) -> RelayCounters {
        self.counters
    }

    fn new_stream(&mut self) -> StreamId {
        let stream = StreamId(self.next_stream);
        self.next_stream += 1;
        stream
    }

    fn pass_down(&mut self, index: usize, octets: Bytes) {
        let Some(decoder) = &mut self.sessions[index].decoder else { return self.send_down(index, octets) };
        decoder.push(octets);
        while let Session { decoder: Some(decoder), setsyn, .. } = &mut self.sessions[index] {
            let known = setsyn.is_some();
            match decoder.next_is_setsyn() {
                None => return,
                Some(false) if known => {
                    let rest = self.sessions[index].decoder.take().map(Decoder::into_rest);
                    return self.send_down(index, rest.unwrap_or_default());
                }
                Some(_) => {}
            }
            match decoder.next_item() {
                Ok(None) => return,
                Ok(Some(Item::Message(Message::SetSyn(setsyn)))) => self.handle_setsyn(index, setsyn),
                Ok(Some(_)) | Err(_) => return self.reject(index),
            }
        }
    }

    fn handle_setsyn(&mut self, index: usize, setsyn: SetSyn) {
        if self.sessions[index].setsyn.is_some() {
            // A repetition: the sender has not seen the SETACK, or it is not due yet. After data of
            // the node another SETACK has no place, and TCP delivers the first one anyway.
            let session = &self.sessions[index];
            if matches!(session.state, State::Open) && !session.node_spoke {
                self.send_setack(index);
            }
            return;
        }
        let wireless = self.new_stream();
        let session = &mut self.sessions[index];
        session.setsyn = Some(setsyn);
        session.wireless = Some(wireless);
        session.state = State::Dialing;
        if setsyn.join.plan == Plan::Split {
            // After the SETSYN of a plain split connection the file follows, whatever its first
            // byte is.
            if let Some(decoder) = session.decoder.take() {
                session.early.push_back(decoder.into_rest());
            }
        }
        self.effects.push_back(Effect::Dial { stream: wireless, to: setsyn.destination, leg: Leg::Wireless });
    }

    fn send_down(&mut self, index: usize, octets: Bytes) {
        if octets.is_empty() {
            return;
        }
        self.counters.octets_down += octets.len() as u64;
        let session = &mut self.sessions[index];
        match (&session.state, session.wireless) {
            (State::OpenWait { .. } | State::Open, Some(stream)) => {
                self.effects.push_back(Effect::Write { stream, octets });
            }
            (_, _) => {
                // The gateway holds these bytes until the wireless half is open, so the window
                // shrinks.
                session.limit = session.limit.saturating_sub(octets.len() as u32);
                session.early.push_back(octets);
                self.effects.push_back(Effect::LimitReceive { stream: session.wired, octets: session.limit });
            }
        }
    }

    fn send_up(&mut self, index: usize, octets: Bytes) {
        if matches!(self.sessions[index].state, State::OpenWait { .. }) {
            // A node that sends data has received the last ACK of the handshake, so the wait is
            // over.
            self.send_setack(index);
        }
        self.counters.octets_up += octets.len() as u64;
        let session = &mut self.sessions[index];
        session.node_spoke = true;
        let stream = session.wired;
        self.effects.push_back(Effect::Write { stream, octets });
    }

    /// Handles the opening of the wireless connection: introduces the session, sends waiting data
    /// and enters OPEN-WAIT.
    fn open(&mut self, now: Instant, index: usize) {
        let session = &mut self.sessions[index];
        let (State::Dialing, Some(setsyn), Some(stream)) = (&session.state, session.setsyn, session.wireless)
        else {
            return;
        };
        self.counters.opened += 1;
        let mut octets = Vec::with_capacity(12);
        wire::encode(&Message::Join(setsyn.join), &mut octets);
        self.effects.push_back(Effect::Write { stream, octets: octets.into() });
        for octets in session.early.drain(..).filter(|o| !o.is_empty()) {
            self.effects.push_back(Effect::Write { stream, octets });
        }
        if session.wired_ended {
            self.effects.push_back(Effect::Shutdown { stream });
        }
        // The driver reports the round-trip time of the handshake separately: see
        // `handle_round_trip`.
        session.state = State::OpenWait { until: now };
        if self.config.open_wait == OpenWait::None {
            self.send_setack(index);
        }
    }

    /// Sets the length of OPEN-WAIT: the round-trip time of a wireless connection. The driver calls
    /// this with or right after [`StreamEvent::Opened`].
    pub fn handle_round_trip(&mut self, now: Instant, stream: StreamId, rtt: Duration) {
        let found = self.sessions.iter_mut().find(|s| s.wireless == Some(stream));
        if let Some(Session { state: State::OpenWait { until }, .. }) = found {
            *until = now + rtt;
        }
    }

    fn send_setack(&mut self, index: usize) {
        let session = &mut self.sessions[index];
        session.state = State::Open;
        let Some(setsyn) = session.setsyn.filter(|s| s.join.plan != Plan::Split) else { return };
        if session.node_ended {
            return;
        }
        let stream = session.wired;
        self.answer(stream, &setsyn, SetAckStatus::Open);
    }

    fn answer(&mut self, stream: StreamId, setsyn: &SetSyn, status: SetAckStatus) {
        let mut octets = Vec::with_capacity(2);
        wire::encode(&Message::SetAck(SetAck { session: setsyn.join.session, status }), &mut octets);
        self.effects.push_back(Effect::Write { stream, octets: octets.into() });
    }

    fn end_wired(&mut self, index: usize) {
        let session = &mut self.sessions[index];
        match (&session.state, session.wireless) {
            (State::OpenWait { .. } | State::Open, Some(stream)) => {
                self.effects.push_back(Effect::Shutdown { stream });
            }
            (State::Dialing, _) => session.wired_ended = true,
            (_, _) => self.reject(index),
        }
    }

    fn close_wired(&mut self, index: usize, why: StreamClose) {
        let session = self.sessions.swap_remove(index);
        if let (Some(stream), false) = (session.wireless, why == StreamClose::Graceful) {
            self.effects.push_back(Effect::Abort { stream });
        }
    }

    fn close_wireless(&mut self, now: Instant, index: usize, why: StreamClose) {
        let session = &mut self.sessions[index];
        let stream = session.wired;
        match (&session.state, session.setsyn) {
            (State::Dialing, Some(setsyn)) if setsyn.join.plan != Plan::Split => {
                let (counter, status) = match why {
                    StreamClose::Forbidden => (&mut self.counters.forbidden, SetAckStatus::Forbidden),
                    StreamClose::Congested => (&mut self.counters.congested, SetAckStatus::Congested),
                    StreamClose::Graceful
                    | StreamClose::Reset
                    | StreamClose::Refused
                    | StreamClose::TimedOut => (&mut self.counters.unreachable, SetAckStatus::Unreachable),
                };
                *counter += 1;
                session.wireless = None;
                session.early.clear();
                // Early data may have filled the window. Without reading from the sender, the relay
                // would not notice that it closes.
                session.limit = self.config.initial_window;
                self.effects.push_back(Effect::LimitReceive { stream, octets: session.limit });
                session.state = State::Refused { deadline: now + self.config.setsyn_timeout };
                self.answer(stream, &setsyn, status);
                self.effects.push_back(Effect::Shutdown { stream });
                return;
            }
            _ if why == StreamClose::Graceful => {}
            _ => self.effects.push_back(Effect::Abort { stream }),
        }
        self.sessions.swap_remove(index);
    }

    fn reject(&mut self, index: usize) {
        self.counters.rejected += 1;
        let session = self.sessions.swap_remove(index);
        self.effects.push_back(Effect::Abort { stream: session.wired });
        if let Some(stream) = session.wireless {
            self.effects.push_back(Effect::Abort { stream });
        }
    }
}

/// Computes the window to offer to the sender: the node's window less the bytes that the gateway
/// holds or has in flight to it, but at least two wired segments less these bytes.
///
/// Without this floor, a node window below one segment would stop the session for good. With one
/// segment, the wireless half would idle while the next segment is on its way. A plain stream would
/// even wait for a time-out: the silly window avoidance of both ends (RFC 9293 sections 3.8.6.2.1
/// and 3.8.6.2.2) holds back data smaller than both a segment and half a window. In the printed
/// units the floor of a SET session is one segment.
fn wired_window(config: &RelayConfig, plan: Option<Plan>, node_window: u32, held: u32) -> u32 {
    let window = node_window.min(config.buffer);
    let (window, floor) = match config.units {
        WindowUnits::Octets => (window, 2),
        WindowUnits::WiredSegments(segment) => {
            let floor = if plan == Some(Plan::Split) { 2 } else { 1 };
            (window / segment.max(1) * segment.max(1), floor)
        }
    };
    window.max(config.segment.saturating_mul(floor)).saturating_sub(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: Option<Plan> = Some(Plan::Stripe);

    #[test]
    fn the_nodes_window_is_carried_back_less_what_is_held() {
        let config = RelayConfig { segment: 1296, ..RelayConfig::default() };
        assert_eq!(wired_window(&config, SET, 10_000, 3_000), 7_000);
        assert_eq!(wired_window(&config, SET, 100, 0), 2592, "two segments are the floor");
        assert_eq!(wired_window(&config, Some(Plan::Split), 100, 0), 2592);
        assert_eq!(wired_window(&config, SET, 100, 2600), 0, "but not while two are held");
        assert_eq!(wired_window(&config, SET, u32::MAX, 0), config.buffer);
    }

    /// The example of section 4.6: y = x * 127 / 1296 segments, which is 0 for x up to 10 (erratum
    /// S14).
    #[test]
    fn the_printed_units_round_down_to_wired_segments() {
        let config =
            RelayConfig { segment: 1296, units: WindowUnits::WiredSegments(1296), ..RelayConfig::default() };
        assert_eq!(wired_window(&config, SET, 102 * 127, 0), 9 * 1296);
        assert_eq!(wired_window(&config, SET, 10 * 127, 0), 1296);
    }
}
