//! The common interface of the three machines, for drivers.

use super::receiver::Receiver;
use super::relay::Relay;
use super::session_manager::Sender;
use super::stream::{Effect, StreamEvent, StreamId, StreamStatus};
use crate::time::{Duration, Instant};

/// A sender, a relay or a receiver. Each method equals the method of the same name of [`Sender`],
/// [`Relay`] and [`Receiver`]; if a machine has no such method, it has no effect.
pub trait Machine {
    /// Handles an accepted connection; `None` if the machine accepts none.
    fn handle_accepted(&mut self, now: Instant) -> Option<StreamId>;
    /// Handles an event of a stream.
    fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent);
    /// Handles new figures of a stream.
    fn handle_status(&mut self, now: Instant, stream: StreamId, status: StreamStatus);
    /// Handles the round-trip time measured by the handshake of a stream.
    fn handle_round_trip(&mut self, now: Instant, stream: StreamId, rtt: Duration);
    /// Handles expired timers.
    fn handle_timeout(&mut self, now: Instant);
    /// When to call [`Machine::handle_timeout`].
    fn next_timeout(&self) -> Option<Instant>;
    /// Returns the next effect for the driver, until `None`.
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
