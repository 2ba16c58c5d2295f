//! What a driver needs of the three machines, whatever it drives them over.

use super::receiver::Receiver;
use super::relay::Relay;
use super::session_manager::Sender;
use super::stream::{Effect, StreamEvent, StreamId, StreamStatus};
use crate::time::{Duration, Instant};

/// A sender, a relay or a receiver. Each method does what that of the same name does in [`Sender`],
/// [`Relay`] and [`Receiver`]; one that a machine does not have does nothing.
pub trait Machine {
    /// Somebody has connected; `None` if nobody may.
    fn handle_accepted(&mut self, now: Instant) -> Option<StreamId>;
    /// Something has happened to a stream.
    fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent);
    /// How a stream stands.
    fn handle_status(&mut self, now: Instant, stream: StreamId, status: StreamStatus);
    /// The round trip of a stream, as its handshake has shown it.
    fn handle_round_trip(&mut self, now: Instant, stream: StreamId, rtt: Duration);
    /// Time has passed.
    fn handle_timeout(&mut self, now: Instant);
    /// When [`Machine::handle_timeout`] is to be called.
    fn next_timeout(&self) -> Option<Instant>;
    /// What it wants next.
    fn poll_effect(&mut self, now: Instant) -> Option<Effect>;
}

impl Machine for Sender {
    fn handle_accepted(&mut self, _now: Instant) -> Option<StreamId> {
        None
    }

    fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent) {
        Sender::handle_stream(self, now, stream, event);
    }

    fn handle_status(&mut self, now: Instant, stream: StreamId, status: StreamStatus) {
        Sender::handle_status(self, now, stream, status);
    }

    fn handle_round_trip(&mut self, _now: Instant, _stream: StreamId, _rtt: Duration) {}

    fn handle_timeout(&mut self, now: Instant) {
        Sender::handle_timeout(self, now);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Sender::next_timeout(self)
    }

    fn poll_effect(&mut self, now: Instant) -> Option<Effect> {
        Sender::poll_effect(self, now)
    }
}

impl Machine for Relay {
    fn handle_accepted(&mut self, now: Instant) -> Option<StreamId> {
        Some(Relay::handle_accepted(self, now))
    }

    fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent) {
        Relay::handle_stream(self, now, stream, event);
    }

    fn handle_status(&mut self, now: Instant, stream: StreamId, status: StreamStatus) {
        Relay::handle_status(self, now, stream, status);
    }

    fn handle_round_trip(&mut self, now: Instant, stream: StreamId, rtt: Duration) {
        Relay::handle_round_trip(self, now, stream, rtt);
    }

    fn handle_timeout(&mut self, now: Instant) {
        Relay::handle_timeout(self, now);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Relay::next_timeout(self)
    }

    fn poll_effect(&mut self, _now: Instant) -> Option<Effect> {
        Relay::poll_effect(self)
    }
}

impl Machine for Receiver {
    fn handle_accepted(&mut self, now: Instant) -> Option<StreamId> {
        Some(Receiver::handle_accepted(self, now))
    }

    fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent) {
        Receiver::handle_stream(self, now, stream, event);
    }

    fn handle_status(&mut self, _now: Instant, _stream: StreamId, _status: StreamStatus) {}

    fn handle_round_trip(&mut self, _now: Instant, _stream: StreamId, _rtt: Duration) {}

    fn handle_timeout(&mut self, now: Instant) {
        Receiver::handle_timeout(self, now);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Receiver::next_timeout(self)
    }

    fn poll_effect(&mut self, _now: Instant) -> Option<Effect> {
        Receiver::poll_effect(self)
    }
}
