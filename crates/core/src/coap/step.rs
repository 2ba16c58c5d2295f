//! What the methods tell the client.

use bytes::Bytes;

use super::Failure;

/// What a transfer does after an event.
#[derive(Debug)]
pub(super) enum Step {
    /// Waits.
    Wait,
    /// Sends its next confirmable request.
    Next,
    /// Has received the whole body.
    Received(Bytes),
    /// Has ended.
    Over(Result<(), Failure>),
}
