//! The sender's side.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::name::Greeting;
use super::proof::Proof;
use super::session::{NotOpen, REKEY_AFTER, REKEY_PACKETS, Session};
use super::{CHALLENGE, COOKIE, HEAD, HELLO_BODY, Name, VERSION, inner, kind, number};
use crate::octets::NoEntropy;
use crate::small::Entropy;

/// Time until a HELLO is repeated; it doubles up to [`LONGEST_WAIT`].
const WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// Pause after a failure of the source of entropy.
const NO_ENTROPY: Duration = Duration::from_secs(1);
/// Time without an awaited answer after which the sender begins a handshake, and least time between
/// two.
const SILENCE: Duration = Duration::from_secs(10);
/// Least time between two handshakes that an unauthenticated UNKNOWN causes.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(5);
/// An UNKNOWN counts only if it answers one of this many last packets.
const RECENT: u32 = 4096;

/// Datagrams that were dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InitiatorCounters {
    /// Neither of a known type nor of a known session.
    pub strange: u32,
    /// Forged, replayed or of an old session.
    pub rejected: u32,
    /// Handshakes begun.
    pub handshakes: u32,
    /// Handshakes completed.
    pub completed: u32,
}

/// A handshake that waits for WELCOME.
struct Calling<B> {
    number: u32,
    begun: B,
    due: Duration,
    wait: Duration,
    cookie: Cookie,
}

/// One COOKIE is accepted for each HELLO that the timer sends. So no two hosts can keep each other
/// busy, whatever they send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cookie {
    Awaited,
    /// The HELLO must be sent with the new cookie.
    Taken,
    Sent,
}

impl<B> Calling<B> {
    fn is_due(&self, now: Duration) -> bool {
        self.due <= now || self.cookie == Cookie::Taken
    }
}

/// The sender's side of the connection to one sink.
///
/// Order of calls: [`Initiator::handle`], [`Initiator::seal`] and [`Initiator::call`] as needed,
/// then [`Initiator::poll_transmit`] until it returns `false`, then [`Initiator::next_timeout`].
pub struct Initiator<P: Proof> {
    proof: P,
    entropy: Entropy,
    greeting: Greeting,
    /// The session in use, and the number by which the sink names it.
    session: Option<(u32, Session<2>)>,
    calling: Option<Calling<P::Begun>>,
    /// The HELLO of `calling`.
    hello: Vec<u8>,
    called: Option<Duration>,
    /// When to call again after there was no entropy.
    again: Option<Duration>,
    /// When the first message was sent whose answer is awaited.
    silent_since: Option<Duration>,
    response: Option<[u8; CHALLENGE]>,
    /// Whether the session must be used once, so that the sink knows that it is in use.
    confirms: bool,
    counters: InitiatorCounters,
}

impl<P: Proof> Initiator<P> {
    /// Length of the longest HELLO in bytes.
    pub const LONGEST_HELLO: usize = HELLO_BODY + P::BODY + Greeting::MOST;

    /// Creates the sender `name` in the run `run`, a random number that no other run of this sender
    /// has. `entropy` must never return the same bytes twice.
    pub fn new(proof: P, name: &Name, run: u64, entropy: Entropy) -> Self {
        Self {
            proof,
            entropy,
            greeting: Greeting::new(run, name),
            session: None,
            calling: None,
            hello: Vec::with_capacity(Self::LONGEST_HELLO),
            called: None,
            again: None,
            silent_since: None,
            response: None,
            confirms: false,
            counters: InitiatorCounters::default(),
        }
    }

    /// Since when the sink owes an answer.
    pub const fn silent_since(&self) -> Option<Duration> {
        self.silent_since
    }

    /// Notes that a message asks for an answer. The sink may be silent otherwise. Without an answer
    /// the sender takes the session for lost.
    pub fn await_answer(&mut self, now: Duration) {
        self.silent_since.get_or_insert(now);
    }

    /// Whether messages can be sealed.
    pub fn is_open(&self, now: Duration) -> bool {
        self.session.as_ref().is_some_and(|(_, session)| session.is_usable(now))
    }

    /// Counters since the start.
    pub const fn counters(&self) -> InitiatorCounters {
        self.counters
    }

    /// Begins a handshake, unless one is in progress. A present session stays in use meanwhile.
    pub fn call(&mut self, now: Duration) {
        if self.calling.is_some() {
            return;
        }
        (self.called, self.again) = (Some(now), Some(now + NO_ENTROPY));
        let mut octets = [0; 4];
        if (self.entropy)(&mut octets).is_err() {
            return;
        }
        let number = u32::from_be_bytes(octets);
        let Ok(begun) = self.begin(number, &[0; COOKIE]) else { return };
        self.again = None;
        self.counters.handshakes = self.counters.handshakes.wrapping_add(1);
        self.calling = Some(Calling { number, begun, due: now, wait: WAIT, cookie: Cookie::Sent });
    }

    /// Makes the HELLO with this cookie.
    fn begin(&mut self, number: u32, cookie: &[u8]) -> Result<P::Begun, NoEntropy> {
        self.hello.clear();
        self.hello.extend_from_slice(&[kind::HELLO, VERSION, self.proof.pattern(), 0]);
        self.hello.extend_from_slice(&number.to_be_bytes());
        self.hello.extend_from_slice(cookie);
        self.proof.begin(self.greeting.octets(), self.entropy, &mut self.hello)
    }

    /// Replaces `out` with the datagram that carries `message`. The message must not be empty, and
    /// its first byte must be at least 16.
    ///
    /// # Errors
    /// There is no session; a handshake has begun.
    pub fn seal(&mut self, now: Duration, message: &[u8], out: &mut Vec<u8>) -> Result<(), NotOpen> {
        let is_old = self.session.as_ref().is_none_or(|(_, session)| {
            session.age(now) >= REKEY_AFTER || session.sealed() >= REKEY_PACKETS || !session.is_usable(now)
        });
        let long_ago = |at: Option<Duration>| at.is_some_and(|at| now.saturating_sub(at) >= SILENCE);
        let is_silent = long_ago(self.silent_since) && self.called.is_none_or(|at| long_ago(Some(at)));
        if is_old || is_silent {
            self.call(now);
        }
        let (_, session) = self.session.as_mut().ok_or(NotOpen)?;
        session.seal(now, message, out)?;
        self.confirms = false;
        Ok(())
    }

    /// Handles a datagram from the sink. Returns whether `plain` has a message of RDCA.
    pub fn handle(&mut self, now: Duration, datagram: &[u8], plain: &mut Vec<u8>) -> bool {
        plain.clear();
        match datagram.first() {
            Some(&kind::COOKIE) => self.handle_cookie(now, datagram),
            Some(&kind::WELCOME) => self.handle_welcome(now, datagram),
            Some(&kind::UNKNOWN) => self.handle_unknown(now, datagram),
            Some(&kind::SEALED) => return self.handle_sealed(now, datagram, plain),
            _ => self.counters.strange += 1,
        }
        false
    }

    /// Replaces `out` with the next datagram of a handshake or of an address check. Returns `false`
    /// if there is none.
    pub fn poll_transmit(&mut self, now: Duration, out: &mut Vec<u8>) -> bool {
        if self.again.is_some_and(|again| again <= now) {
            self.call(now);
        }
        if let Some(calling) = self.calling.as_mut().filter(|calling| calling.is_due(now)) {
            out.clear();
            out.extend_from_slice(&self.hello);
            if calling.cookie == Cookie::Taken {
                calling.cookie = Cookie::Sent;
            } else {
                calling.due = now + calling.wait;
                calling.wait = (calling.wait * 2).min(LONGEST_WAIT);
                calling.cookie = Cookie::Awaited;
            }
            return true;
        }
        let Some((_, session)) = self.session.as_mut() else { return false };
        if let Some(octets) = self.response.take() {
            let mut message = [inner::RESPONSE; 1 + CHALLENGE];
            message[1..].copy_from_slice(&octets);
            self.confirms = false;
            return session.seal(now, &message, out).is_ok();
        }
        core::mem::take(&mut self.confirms) && session.seal(now, &[], out).is_ok()
    }

    /// When to call [`Initiator::poll_transmit`] again, unless something else happens before.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.calling.as_ref().map(|calling| calling.due).or(self.again)
    }

    fn handle_cookie(&mut self, now: Duration, datagram: &[u8]) {
        let calling = self.calling.take_if(|calling| {
            calling.cookie == Cookie::Awaited
                && datagram.len() == HELLO_BODY
                && number(datagram, HEAD - 4) == Some(calling.number)
        });
        let Some(mut calling) = calling else {
            self.counters.strange += 1;
            return;
        };
        // With the cookie that the HELLO has, a WELCOME may be under way.
        if self.hello[HEAD..HELLO_BODY] != datagram[HEAD..] {
            // Without entropy the handshake ends, and another one begins later.
            let Ok(begun) = self.begin(calling.number, &datagram[HEAD..]) else {
                self.again = Some(now + NO_ENTROPY);
                return;
            };
            calling.begun = begun;
        }
        calling.cookie = Cookie::Taken;
        // The sink answers, so the next loss is repaired soon.
        (calling.due, calling.wait) = (now + WAIT, 2 * WAIT);
        self.calling = Some(calling);
    }

    fn handle_welcome(&mut self, now: Duration, datagram: &[u8]) {
        let calling =
            self.calling.as_ref().filter(|calling| number(datagram, HEAD - 4) == Some(calling.number));
        let Some(calling) = calling else {
            self.counters.strange += 1;
            return;
        };
        let own = calling.number;
        let Some((remote, keys)) = self.proof.finish(&calling.begun, datagram) else {
            self.counters.rejected += 1;
            return;
        };
        self.session = Some((own, Session::new(now, remote, keys)));
        self.counters.completed = self.counters.completed.wrapping_add(1);
        (self.calling, self.silent_since, self.response, self.confirms) = (None, None, None, true);
    }

    fn handle_unknown(&mut self, now: Duration, datagram: &[u8]) {
        let answers = |session: &Session<2>| {
            let (named, packet) = (number(datagram, 1), number(datagram, 5));
            let back = packet.map(|packet| session.sealed().wrapping_sub(packet));
            named == Some(session.remote) && back.is_some_and(|back| (1..=RECENT).contains(&back))
        };
        if !self.session.as_ref().is_some_and(|(_, session)| answers(session)) {
            self.counters.strange += 1;
        } else if self.called.is_none_or(|at| now.saturating_sub(at) >= UNKNOWN_PAUSE) {
            self.call(now);
        }
    }

    fn handle_sealed(&mut self, now: Duration, datagram: &[u8], plain: &mut Vec<u8>) -> bool {
        let named = number(datagram, 1);
        let Some((_, session)) = self.session.as_mut().filter(|(own, _)| named == Some(*own)) else {
            self.counters.strange += 1;
            return false;
        };
        if session.open(now, datagram, plain).is_err() {
            self.counters.rejected += 1;
            return false;
        }
        self.silent_since = None;
        match plain.split_first() {
            None => false,
            Some((&inner::CHALLENGE, octets)) => {
                self.response = octets.try_into().ok();
                false
            }
            Some((&first, _)) => first >= 16,
        }
    }
}

impl<P: Proof> fmt::Debug for Initiator<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initiator").field("counters", &self.counters).finish_non_exhaustive()
    }
}
