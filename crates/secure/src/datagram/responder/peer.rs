//! One sender at the sink: its sessions and its address.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use super::Credential;
use crate::datagram::session::{Dropped, NotOpen, Session};
use crate::datagram::{CHALLENGE, Name, OVERHEAD, inner};

/// How long the previous session is accepted.
const OVERLAP: Duration = Duration::from_secs(30);
/// Number of sessions that wait for their first use, of different HELLOs.
const WAITING: usize = 2;
/// Least time between two challenges.
const CHALLENGES: Duration = Duration::from_millis(250);

type SinkSession = Session<5>;

/// A session that its sender has not used yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub number: u32,
    pub run: u64,
    /// The address that the cookie has validated.
    pub from: SocketAddr,
    pub session: SinkSession,
    /// The HELLO and its answer.
    pub hello: Vec<u8>,
    pub welcome: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub sender: (Credential, Name),
    /// The run of the session in use.
    pub run: u64,
    pub heard: Duration,
    pub path: Path,
    current: Option<(u32, SinkSession)>,
    previous: Option<Box<(u32, SinkSession, Duration)>>,
    waiting: Vec<Waiting>,
}

/// Result of opening a datagram.
pub(super) struct Opened {
    /// Whether it is the newest datagram of the session in use.
    pub is_newest: bool,
    /// Numbers of the sessions that have ended.
    pub ended: Vec<u32>,
}

impl Peer {
    pub(super) fn new(now: Duration, sender: (Credential, Name), from: SocketAddr) -> Self {
        let path = Path::new(from);
        Self { sender, run: 0, heard: now, path, current: None, previous: None, waiting: Vec::new() }
    }

    /// Whether the sender has used a session, which proves its credential and that it is alive.
    pub(super) const fn is_proven(&self) -> bool {
        self.current.is_some()
    }

    /// Numbers of all sessions.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let previous = self.previous.iter().map(|previous| previous.0);
        let current = self.current.iter().map(|(number, _)| *number);
        current.chain(previous).chain(self.waiting.iter().map(|waiting| waiting.number))
    }

    /// Adds a session. Returns the number of the session that it replaces.
    pub(super) fn wait(&mut self, waiting: Waiting) -> Option<u32> {
        let replaced = (self.waiting.len() >= WAITING).then(|| self.waiting.remove(0).number);
        self.waiting.push(waiting);
        replaced
    }

    /// The answer to this HELLO, if its session waits for its first use.
    pub(super) fn answer(&self, number: u32, hello: &[u8]) -> Option<&[u8]> {
        let mut waiting = self.waiting.iter();
        waiting.find(|waiting| waiting.number == number && waiting.hello == hello).map(|own| &own.welcome[..])
    }

    /// Opens a datagram of the session `number`. The first datagram of a waiting session puts that
    /// session into use.
    pub(super) fn open(
        &mut self,
        now: Duration,
        number: u32,
        datagram: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<Opened, Dropped> {
        if let Some((_, session)) = self.current.as_mut().filter(|(own, _)| *own == number) {
            let is_newest = session.open(now, datagram, plain)?;
            return Ok(Opened { is_newest, ended: Vec::new() });
        }
        if let Some(previous) = self.previous.as_mut().filter(|previous| previous.0 == number) {
            if now >= previous.2 {
                return Err(Dropped::Expired);
            }
            previous.1.open(now, datagram, plain)?;
            return Ok(Opened { is_newest: false, ended: Vec::new() });
        }
        let at = self.waiting.iter().position(|waiting| waiting.number == number).ok_or(Dropped::Expired)?;
        self.waiting[at].session.open(now, datagram, plain)?;
        let Waiting { number, run, from, session, .. } = self.waiting.swap_remove(at);
        let mut ended: Vec<u32> = self.waiting.drain(..).map(|waiting| waiting.number).collect();
        ended.extend(self.previous.take().map(|previous| previous.0));
        match self.current.replace((number, session)) {
            // A session of another run ends at once: its process has ended.
            Some((old, session)) if self.run == run => {
                self.previous = Some(Box::new((old, session, now + OVERLAP)));
            }
            Some((old, _)) => ended.push(old),
            None => {}
        }
        self.run = run;
        self.path = Path::new(from);
        Ok(Opened { is_newest: true, ended })
    }

    pub(super) fn seal(
        &mut self,
        now: Duration,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<SocketAddr, NotOpen> {
        let (_, session) = self.current.as_mut().ok_or(NotOpen)?;
        if !self.path.may_send(message.len() + OVERHEAD) {
            return Err(NotOpen);
        }
        session.seal(now, message, out)?;
        self.path.sent(out.len());
        Ok(self.path.address)
    }

    pub(super) fn challenge(
        &mut self,
        now: Duration,
        octets: [u8; CHALLENGE],
        out: &mut Vec<u8>,
    ) -> Result<SocketAddr, NotOpen> {
        let mut message = [inner::CHALLENGE; 1 + CHALLENGE];
        message[1..].copy_from_slice(&octets);
        let to = self.seal(now, &message, out)?;
        self.path.challenge = Some((octets, now));
        Ok(to)
    }
}

/// Where a sender is.
#[derive(Debug)]
pub(super) struct Path {
    pub address: SocketAddr,
    /// The last address at which the sender has proved to receive.
    validated: SocketAddr,
    /// Number of bytes received from `address` and not yet returned, while it is not validated.
    credit: usize,
    challenge: Option<([u8; CHALLENGE], Duration)>,
}

impl Path {
    const fn new(from: SocketAddr) -> Self {
        Self { address: from, validated: from, credit: 0, challenge: None }
    }

    /// Notes the source of the newest datagram. Returns whether it is another one than before.
    pub(super) fn arrived(&mut self, from: SocketAddr, octets: usize) -> bool {
        let moved = from != self.address;
        if moved {
            (self.address, self.credit, self.challenge) = (from, 0, None);
        }
        self.credit = self.credit.saturating_add(octets).min(MOST_CREDIT);
        moved
    }

    /// Notes the answer to a challenge.
    pub(super) fn answered(&mut self, from: SocketAddr, octets: &[u8]) {
        if self.challenge.is_some_and(|(challenge, _)| challenge == octets) && from == self.address {
            (self.validated, self.challenge) = (from, None);
        }
    }

    fn is_validated(&self) -> bool {
        self.address == self.validated
    }

    /// Whether a challenge is due.
    pub(super) fn is_to_be_checked(&self, now: Duration) -> bool {
        let recent = |(_, at): ([u8; CHALLENGE], Duration)| now.saturating_sub(at) < CHALLENGES;
        !self.is_validated() && !self.challenge.is_some_and(recent)
    }

    fn may_send(&self, octets: usize) -> bool {
        self.is_validated() || octets <= self.credit
    }

    fn sent(&mut self, octets: usize) {
        self.credit = self.credit.saturating_sub(octets);
    }
}

/// Limit on the credit of an address that is not validated.
const MOST_CREDIT: usize = 1 << 16;
