//! Checks the contract between every machine and its driver, whatever the peers do.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::set::{Effect, StreamEvent, StreamId};
use arbitrary::{Result, Unstructured};

use crate::probe::Probe;

/// State of a stream as the driver sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Open,
    /// The machine has shut down its direction.
    Shut,
    /// Reset by the machine, or reported as closed: no further event may name it.
    Gone,
}

/// Streams between a machine and its driver.
#[derive(Debug, Default)]
pub(super) struct Streams {
    lines: BTreeMap<StreamId, Line>,
    /// Number of bytes that the peer may send, by stream.
    windows: BTreeMap<StreamId, u32>,
    /// Streams that the machine wants to open.
    dialling: BTreeSet<StreamId>,
    /// Streams whose peer has ended its direction.
    ended: BTreeSet<StreamId>,
    /// Number of bytes written by the machine.
    pub(super) written: u64,
}

impl Streams {
    /// The machine has named a stream that a peer opened.
    pub(super) fn accepted(&mut self, stream: StreamId) {
        assert!(self.lines.insert(stream, Line::Open).is_none(), "{stream:?} is named twice");
    }

    /// The driver reports the end of a stream.
    pub(super) fn closed(&mut self, stream: StreamId) {
        self.lines.entry(stream).and_modify(|line| *line = Line::Gone);
    }

    /// A stream for an event; occasionally one that does not exist.
    pub(super) fn choose(&self, octets: &mut Unstructured<'_>) -> Result<StreamId> {
        if octets.ratio(1, 32)? {
            return Ok(StreamId(octets.int_in_range(1 << 31..=u32::MAX)?));
        }
        let known: Vec<StreamId> =
            self.lines.iter().filter(|(_, line)| **line != Line::Gone).map(|(stream, _)| *stream).collect();
        if known.is_empty() { Ok(StreamId(u32::MAX)) } else { Ok(*octets.choose(&known)?) }
    }

    /// Whether this event is possible for a stream: none before it is open, and after the peer's
    /// end only the machine's own.
    pub(super) fn may(&mut self, stream: StreamId, event: &StreamEvent) -> bool {
        match event {
            StreamEvent::Data(octets) => {
                !octets.is_empty() && !self.dialling.contains(&stream) && !self.ended.contains(&stream)
            }
            StreamEvent::Ended => !self.dialling.contains(&stream) && self.ended.insert(stream),
            StreamEvent::Opened => self.dialling.remove(&stream) || !self.lines.contains_key(&stream),
            StreamEvent::Closed(_) => true,
        }
    }

    /// Number of bytes that the peer may still send on a stream.
    pub(super) fn window(&mut self, stream: StreamId) -> &mut u32 {
        self.windows.entry(stream).or_insert(1 << 16)
    }

    /// Whether an event may name the stream.
    pub(super) fn is_known(&self, stream: StreamId) -> bool {
        self.lines.get(&stream).is_some_and(|line| *line != Line::Gone)
    }

    /// Checks that an effect is legal in the state of its stream.
    pub(super) fn check(&mut self, effect: &Effect, probe: &mut Probe) {
        probe.say(|| format!("  {effect:?}"));
        probe.feature(std::mem::discriminant(effect));
        match effect {
            Effect::Dial { stream, .. } => {
                self.accepted(*stream);
                self.dialling.insert(*stream);
            }
            Effect::Write { stream, octets } => {
                assert!(!octets.is_empty(), "nothing is written");
                self.written += octets.len() as u64;
                assert_ne!(
                    self.lines.get(stream),
                    Some(&Line::Shut),
                    "{stream:?} is written to after its end"
                );
                assert!(self.lines.contains_key(stream), "{stream:?} is nobody's");
            }
            Effect::WriteFile { stream, start, end } => {
                assert!(start < end, "nothing is written");
                self.written += end - start;
                assert_eq!(self.lines.get(stream), Some(&Line::Open), "{stream:?} is written to");
            }
            Effect::Shutdown { stream } => {
                if let Some(line) = self.lines.get_mut(stream).filter(|line| **line == Line::Open) {
                    *line = Line::Shut;
                }
            }
            Effect::Abort { stream } => {
                self.lines.insert(*stream, Line::Gone);
            }
            Effect::LimitReceive { stream, octets } => {
                self.windows.insert(*stream, *octets);
            }
            Effect::Deliver { octets } => assert!(!octets.is_empty(), "nothing is delivered"),
        }
    }
}
