//! Reads a log record by record. The input is not trusted: a number without a referent is an error,
//! and memory is allocated only for bytes that were read.

mod octets;
mod record;

use std::io::{self, BufRead};

use anabranch_wire::eventlog::{MAGIC, VERSION, VERSION_4, tag};

use octets::{EXACT, Fault, Octets};
pub use record::{Event, Flow, Frame, Link, Medium, Node, Packet, Piece, Record, Run, State};

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The input is empty.
    #[error("the log is empty")]
    Empty,
    /// The input does not begin like a log.
    #[error("not an event log: it does not begin with `ABLOG`")]
    Foreign,
    /// The log has another version.
    #[error("the log is of version {0}, and this program reads versions 1 to 4")]
    Version(u8),
    /// A record is invalid.
    #[error("the log is damaged at byte {offset}: {what}")]
    Damaged {
        /// Offset of the record from the start of the log, in bytes.
        offset: u64,
        /// What is wrong with the record.
        what: &'static str,
    },
    /// The file or pipe cannot be read.
    #[error("cannot read the log: {0}")]
    Io(#[from] io::Error),
    /// A page of the log would be too large.
    #[error("the log has more than {limit} rows for a page")]
    TooMuch {
        /// Limit on the rows of a page.
        limit: u64,
    },
}

/// How a log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With its end record.
    Whole,
    /// Without an end record, after this number of bytes in complete records.
    Cut(u64),
}

/// A reader that goes through a log once.
#[derive(Debug)]
pub struct Reader<R> {
    octets: Octets<R>,
    version: u8,
    now: u64,
    events: u64,
    nodes: u32,
    links: Vec<Places>,
    flows: Vec<Figures>,
    packet: i64,
    discarded: i64,
    framed: i64,
    ending: Option<Ending>,
}

/// Values that the next record of a link is relative to.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    sent: i64,
    arrived: i64,
}

/// Values that the next record of a flow is relative to.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    seq: i64,
    ack: i64,
    dsn: i64,
    state: [i64; 8],
    send_buffer: i64,
}

impl<R: BufRead> Reader<R> {
    /// Reads the head of a log from `input`.
    ///
    /// # Errors
    ///
    /// The input is empty, is not a log, or has another version.
    pub fn new(input: R) -> Result<Self, LogError> {
        let mut octets = Octets::new(input);
        for (i, expected) in MAGIC.into_iter().enumerate() {
            match octets.octet() {
                Ok(octet) if octet == expected => {}
                Err(Fault::Io(error)) => return Err(error.into()),
                Err(_) if i == 0 => return Err(LogError::Empty),
                Ok(_) | Err(_) => return Err(LogError::Foreign),
            }
        }
        let version = match octets.octet() {
            Ok(version @ VERSION..=VERSION_4) => version,
            Ok(other) => return Err(LogError::Version(other)),
            Err(Fault::Io(error)) => return Err(error.into()),
            Err(_) => return Err(LogError::Foreign),
        };
        Ok(Self {
            octets,
            version,
            now: 0,
            events: 0,
            nodes: 0,
            links: Vec::new(),
            flows: Vec::new(),
            packet: 0,
            discarded: 0,
            framed: 0,
            ending: None,
        })
    }

    /// How the log ended; `None` before its end.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Number of events read so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Reads the next record; `None` after the last complete one.
    ///
    /// # Errors
    ///
    /// The log is damaged, or cannot be read.
    pub fn next_record(&mut self) -> Result<Option<Record>, LogError> {
        if self.ending.is_some() {
            return Ok(None);
        }
        let offset = self.octets.offset();
        match self.read_record() {
            Ok(Record::Event(_, Event::End { events })) => {
                if events != self.events - 1 {
                    return Err(LogError::Damaged { offset, what: "it says that there were other events" });
                }
                match self.octets.octet() {
                    Err(Fault::End) => {}
                    Err(Fault::Io(error)) => return Err(error.into()),
                    Ok(_) | Err(Fault::Bad(_)) => {
                        return Err(LogError::Damaged { offset, what: "something follows the end" });
                    }
                }
                self.ending = Some(Ending::Whole);
                Ok(Some(Record::Event(self.now, Event::End { events })))
            }
            Ok(record) => Ok(Some(record)),
            Err(Fault::End) => {
                self.ending = Some(Ending::Cut(offset));
                Ok(None)
            }
            Err(Fault::Bad(what)) => Err(LogError::Damaged { offset, what }),
            Err(Fault::Io(error)) => Err(error.into()),
        }
    }

    fn read_record(&mut self) -> Result<Record, Fault> {
        let tag = self.octets.octet()?;
        if tag >= tag::FIRST_EVENT {
            let passed = self.octets.number()?;
            let now = self.now.checked_add(passed).filter(|now| *now <= EXACT);
            let now = now.ok_or(Fault::Bad("a time beyond all times"))?;
            let event = self.read_event(tag)?;
            (self.now, self.events) = (now, self.events + 1);
            return Ok(Record::Event(now, event));
        }
        match tag {
            tag::RUN => self.read_run(),
            tag::NODE => self.read_node(),
            tag::LINK => self.read_link(),
            tag::FLOW => self.read_flow(),
            tag::SUBFLOW => {
                let flow = self.flow()?;
                let (group, subflow) = (self.octets.small()?, self.octets.small()?);
                Ok(Record::Subflow { flow, group, subflow })
            }
            tag::PACKET => self.read_packet(),
            _ => Err(Fault::Bad("a record of an unknown kind")),
        }
    }

    fn node(&mut self) -> Result<u32, Fault> {
        self.octets.below(self.nodes, "a node that there is not")
    }

    fn link(&mut self) -> Result<u32, Fault> {
        self.octets.below(self.links.len() as u32, "a link that there is not")
    }

    fn flow(&mut self) -> Result<u32, Fault> {
        self.octets.below(self.flows.len() as u32, "a flow that there is not")
    }

    /// Reads a node's number plus one; 0 means no node.
    fn maybe_node(&mut self) -> Result<Option<u32>, Fault> {
        Ok(self.octets.below(self.nodes.saturating_add(1), "a node that there is not")?.checked_sub(1))
    }
}
