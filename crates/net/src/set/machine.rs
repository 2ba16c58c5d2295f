//! What a driver needs of the three machines.

use anabranch_core::set::{Effect, Receiver, Relay, Sender, StreamEvent, StreamId, StreamStatus};
use anabranch_core::time::{Duration, Instant};

/// Which streams stop reading while much waits to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// That on which it waits: what is read there is answered there.
    Own,
    /// All: what is read on one is written on another.
    All,
}

/// A machine of `core::set`.
pub(super) trait Machine {
    /// See [`Held`].
    const HELD: Held;
    /// `None` if nobody may connect.
    fn handle_accepted(&mut self, now: Instant) -> Option<StreamId>;
    fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent);
    fn handle_status(&mut self, now: Instant, stream: StreamId, status: StreamStatus);
    fn handle_round_trip(&mut self, now: Instant, stream: StreamId, rtt: Duration);
    fn handle_timeout(&mut self, now: Instant);
    fn next_timeout(&self) -> Option<Instant>;
    fn poll_effect(&mut self, now: Instant) -> Option<Effect>;
}

impl Machine for Sender {
    const HELD: Held = Held::Own;

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
    const HELD: Held = Held::All;

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
    const HELD: Held = Held::Own;

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
