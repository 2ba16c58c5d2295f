//! The file that a sender sends.

use bytes::Bytes;

use super::stream::{Effect, StreamId};

/// The contents of a file.
#[derive(Clone, Debug)]
pub enum File {
    /// The bytes themselves.
    Octets(Bytes),
    /// A file of this many bytes that the driver holds: see [`Effect::WriteFile`].
    Elsewhere(u64),
}

impl From<Bytes> for File {
    fn from(octets: Bytes) -> Self {
        Self::Octets(octets)
    }
}

/// A range of bytes of a file.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Octets(Bytes),
    Elsewhere { start: u64, end: u64 },
}

impl File {
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Octets(octets) => octets.len() as u64,
            Self::Elsewhere(length) => *length,
        }
    }

    /// Bytes `start..end`, which must exist.
    pub(super) fn part(&self, start: u64, end: u64) -> Part {
        match self {
            Self::Octets(octets) => Part::Octets(octets.slice(start as usize..end as usize)),
            Self::Elsewhere(_) => Part::Elsewhere { start, end },
        }
    }
}

impl Part {
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Octets(octets) => octets.len() as u64,
            Self::Elsewhere { start, end } => end - start,
        }
    }

    /// The effect that writes the bytes.
    pub(super) fn write(self, stream: StreamId) -> Effect {
        match self {
            Self::Octets(octets) => Effect::Write { stream, octets },
            Self::Elsewhere { start, end } => Effect::WriteFile { stream, start, end },
        }
    }
}
