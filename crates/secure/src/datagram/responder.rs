//! The sink's side, for all senders.

mod peer;

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeSet;

use self::peer::{Peer, Waiting};
use super::cookie::Cookies;
use super::name::Greeting;
use super::proof::{ID, check_shared, ephemeral, id, welcome_shared};
use super::session::{Dropped, Keys, NotOpen, Session};
use super::{CHALLENGE, HEAD, HELLO_BODY, Name, SEALED_HEADER, VERSION, inner, kind, number, pattern};
use crate::greeting::{Own, Purpose};
use crate::keys::{PublicKey, SecretKey, SharedKey};
use crate::noise::{hkdf, receive};
use crate::octets::NoEntropy;
use crate::small::Entropy;

/// Replies that wait for transmission; further ones are dropped.
const MOST_REPLIES: usize = 256;
/// Refusals that wait for the owner; further ones are only counted.
const MOST_REFUSALS: usize = 16;
/// Handshakes with X25519 that one host may request in a second. Over IPv6 a host is a /64.
const PER_HOST: u32 = 200;
/// The same for all hosts together: at most about half a processor.
const PER_SECOND: u32 = 2000;
/// Number of hosts that are counted; further hosts wait for the next second.
const HOSTS: usize = 4096;
/// Names that one public key may use at a time, so that its owner cannot take all places.
const NAMES: usize = 16;
/// A silent sender may lose its place to a new one after this time.
const REPLACEABLE: Duration = Duration::from_secs(60);

/// The senders that a sink accepts.
#[derive(Clone, Debug, Default)]
pub struct Accepts {
    /// The sink's own key; without it only senders with a pre-shared key can connect.
    pub own: Option<SecretKey>,
    /// Public keys of accepted senders.
    pub known: Vec<PublicKey>,
    /// Pre-shared keys of accepted senders.
    pub shared: Vec<SharedKey>,
    /// Accepts everyone without encryption. Keys are then not used.
    pub insecure: bool,
}

/// What a sender has proved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Credential {
    /// Nothing.
    None,
    /// Knowledge of the pre-shared key with this id.
    Shared([u8; ID]),
    /// Possession of the private key.
    Known(PublicKey),
}

impl Credential {
    /// A short text that identifies the credential: 16 hexadecimal digits, empty without one.
    pub fn fingerprint(&self) -> alloc::string::String {
        let id: [u8; ID] = match self {
            Self::None => return alloc::string::String::new(),
            Self::Shared(id) => *id,
            Self::Known(key) => {
                let [digest, _, _] = hkdf(&key.0, b"anabranch 1 sense key");
                core::array::from_fn(|at| digest[at])
            }
        };
        alloc::format!("{}", crate::octets::Hex(&id))
    }
}

/// Number of a sender at this sink. A number is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerNumber(pub u64);

/// A message of RDCA was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Its sender.
    pub peer: PeerNumber,
    /// The sender's run.
    pub run: u64,
}

/// A handshake that was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The source address, which the cookie has validated.
    pub from: SocketAddr,
    /// The reason.
    pub why: &'static str,
}

/// Counters of a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResponderCounters {
    /// Datagrams of no known type or length.
    pub malformed: u64,
    /// COOKIEs sent.
    pub cookies: u64,
    /// Handshakes answered.
    pub welcomes: u64,
    /// Handshakes refused: of strangers, or without a place.
    pub refused: u64,
    /// Datagrams of unknown sessions.
    pub unknown: u64,
    /// Datagrams that were received before, or are too old.
    pub replayed: u64,
    /// Datagrams that do not verify.
    pub forged: u64,
    /// Changes of a sender's address.
    pub moved: u64,
}

/// The sink's side of the connections to all senders.
///
/// Order of calls: [`Responder::handle`] and [`Responder::seal`], then [`Responder::poll_transmit`]
/// until it returns `None`. It has no timers.
#[derive(Debug)]
pub struct Responder {
    accepts: Accepts,
    known: BTreeSet<PublicKey>,
    shared: BTreeMap<[u8; ID], SharedKey>,
    entropy: Entropy,
    most: usize,
    cookies: Cookies,
    next: u64,
    peers: BTreeMap<PeerNumber, Peer>,
    senders: BTreeMap<(Credential, Name), PeerNumber>,
    /// Number of senders with each credential.
    names: BTreeMap<Credential, usize>,
    /// The sessions of all peers by the numbers that this sink has chosen.
    sessions: BTreeMap<u32, PeerNumber>,
    /// The sessions of HELLOs, by their sources and the senders' numbers. Entries may be out of
    /// date.
    greeted: BTreeMap<(SocketAddr, u32), u32>,
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    forgotten: Vec<PeerNumber>,
    refusals: VecDeque<Refusal>,
    /// Handshakes of each host in the second that began at `counted_since`.
    hosts: BTreeMap<IpAddr, u32>,
    /// Those of all hosts.
    handshakes: u32,
    counted_since: Duration,
    counters: ResponderCounters,
}

/// An accepted HELLO.
struct Accepted {
    credential: Credential,
    run: u64,
    name: Name,
    keys: Option<Keys>,
    welcome: Vec<u8>,
}

impl Responder {
    /// Creates a sink for at most `senders` senders.
    ///
    /// # Errors
    /// There is no entropy.
    pub fn new(now: Duration, accepts: Accepts, senders: usize, entropy: Entropy) -> Result<Self, NoEntropy> {
        let mut responder = Self {
            accepts: Accepts::default(),
            known: BTreeSet::new(),
            shared: BTreeMap::new(),
            entropy,
            most: senders,
            cookies: Cookies::new(now, entropy)?,
            next: 0,
            peers: BTreeMap::new(),
            senders: BTreeMap::new(),
            names: BTreeMap::new(),
            sessions: BTreeMap::new(),
            greeted: BTreeMap::new(),
            replies: VecDeque::new(),
            forgotten: Vec::new(),
            refusals: VecDeque::new(),
            hosts: BTreeMap::new(),
            handshakes: 0,
            counted_since: now,
            counters: ResponderCounters::default(),
        };
        responder.accept(accepts);
        Ok(responder)
    }

    /// Replaces the accepted senders. Sessions of senders that are no longer accepted end.
    pub fn accept(&mut self, accepts: Accepts) {
        self.known = accepts.known.iter().copied().collect();
        self.shared = accepts.shared.iter().map(|key| (id(key), key.clone())).collect();
        self.accepts = accepts;
        let gone: Vec<PeerNumber> = self
            .senders
            .iter()
            .filter(|((credential, _), _)| !self.is_accepted(credential))
            .map(|(_, number)| *number)
            .collect();
        gone.into_iter().for_each(|number| self.forget(number));
    }

    fn is_accepted(&self, credential: &Credential) -> bool {
        match credential {
            Credential::None => self.accepts.insecure,
            Credential::Shared(id) => !self.accepts.insecure && self.shared.contains_key(id),
            Credential::Known(key) => !self.accepts.insecure && self.known.contains(key),
        }
    }

    /// The credential and the name of a sender.
    pub fn sender(&self, peer: PeerNumber) -> Option<(Credential, Name)> {
        self.peers.get(&peer).map(|peer| peer.sender)
    }

    /// The address of a sender, validated or not.
    pub fn address(&self, peer: PeerNumber) -> Option<SocketAddr> {
        self.peers.get(&peer).map(|peer| peer.path.address)
    }

    /// Number of senders with a session.
    pub fn senders(&self) -> usize {
        self.peers.len()
    }

    /// Counters since the start.
    pub const fn counters(&self) -> ResponderCounters {
        self.counters
    }

    /// Handles a datagram. If it carries a message of RDCA, `plain` has the message.
    pub fn handle(
        &mut self,
        now: Duration,
        from: SocketAddr,
        datagram: &[u8],
        plain: &mut Vec<u8>,
    ) -> Option<Received> {
        plain.clear();
        match datagram.first() {
            Some(&kind::HELLO) if datagram.len() > HELLO_BODY => {
                self.handle_hello(now, from, datagram);
                None
            }
            Some(&kind::SEALED) if datagram.len() >= SEALED_HEADER => {
                self.handle_sealed(now, from, datagram, plain)
            }
            _ => {
                self.counters.malformed += 1;
                None
            }
        }
    }

    /// Replaces `out` with the datagram that carries `message`, and returns its destination.
    ///
    /// # Errors
    /// The sender has no session in use, or may not be sent that many bytes before its new address
    /// is validated.
    pub fn seal(
        &mut self,
        now: Duration,
        peer: PeerNumber,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<SocketAddr, NotOpen> {
        self.peers.get_mut(&peer).ok_or(NotOpen)?.seal(now, message, out)
    }

    /// Returns the next datagram of a handshake or of an address check.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.replies.pop_front()
    }

    /// Returns the next handshake that was refused.
    pub fn poll_refusal(&mut self) -> Option<Refusal> {
        self.refusals.pop_front()
    }

    /// Returns the next sender that has lost its place, or is no longer accepted.
    pub fn poll_forgotten(&mut self) -> Option<PeerNumber> {
        self.forgotten.pop()
    }

    fn reply(&mut self, to: SocketAddr, datagram: Vec<u8>) {
        if self.replies.len() < MOST_REPLIES {
            self.replies.push_back((to, datagram));
        }
    }

    fn refuse(&mut self, from: SocketAddr, why: &'static str) {
        self.counters.refused += 1;
        if self.refusals.len() < MOST_REFUSALS {
            self.refusals.push_back(Refusal { from, why });
        }
    }

    fn handle_hello(&mut self, now: Duration, from: SocketAddr, hello: &[u8]) {
        let Some(theirs) = number(hello, HEAD - 4) else { return };
        self.cookies.renew(now, self.entropy);
        if !self.cookies.is_valid(&hello[HEAD..HELLO_BODY], from, theirs) {
            let mut cookie = Vec::with_capacity(HELLO_BODY);
            cookie.extend_from_slice(&[kind::COOKIE, 0, 0, 0]);
            cookie.extend_from_slice(&theirs.to_be_bytes());
            cookie.extend_from_slice(&self.cookies.cookie(from, theirs));
            self.counters.cookies += 1;
            return self.reply(from, cookie);
        }
        // The address is validated. All state and all work that costs more begin here. A repeated
        // HELLO gets the same answer, so that an observer who repeats it replaces no session.
        let known = self.greeted.get(&(from, theirs)).and_then(|ours| {
            let peer = self.peers.get(self.sessions.get(ours)?)?;
            peer.answer(*ours, hello).map(<[u8]>::to_vec)
        });
        if let Some(welcome) = known {
            return self.reply(from, welcome);
        }
        let Ok(ours) = self.new_number() else { return };
        match self.accepted(now, from, hello, ours) {
            Ok(accepted) => self.welcome(now, from, (theirs, ours, hello), accepted),
            Err(why) => self.refuse(from, why),
        }
    }

    /// A random session number that is not in use.
    fn new_number(&self) -> Result<u32, NoEntropy> {
        loop {
            let mut octets = [0; 4];
            (self.entropy)(&mut octets)?;
            let number = u32::from_be_bytes(octets);
            if !self.sessions.contains_key(&number) {
                return Ok(number);
            }
        }
    }

    /// Verifies a HELLO and makes its WELCOME.
    fn accepted(
        &mut self,
        now: Duration,
        from: SocketAddr,
        hello: &[u8],
        ours: u32,
    ) -> Result<Accepted, &'static str> {
        let body = &hello[HELLO_BODY..];
        if hello[1] != VERSION {
            return Err("another version of the protocol");
        }
        let mut welcome = Vec::with_capacity(HEAD + 32 + 16 + 4);
        welcome.extend_from_slice(&[kind::WELCOME, 0, 0, 0]);
        welcome.extend_from_slice(&hello[HEAD - 4..HEAD]);
        let mut plain = Vec::new();
        let (credential, keys) = match hello[2] {
            pattern::CLEAR if self.accepts.insecure => {
                plain.extend_from_slice(body);
                welcome.extend_from_slice(&ours.to_be_bytes());
                (Credential::None, None)
            }
            pattern::CLEAR => return Err("it does not encrypt"),
            _ if self.accepts.insecure => return Err("it encrypts, and this sink is --insecure"),
            pattern::SHARED => {
                let (key, credential) = self.shared_by(body).ok_or(STRANGER)?;
                let (greeting, digest) = check_shared(&key, hello).ok_or("its HELLO does not verify")?;
                plain.extend_from_slice(greeting);
                let keys = welcome_shared(&key, &digest, ours, self.entropy, &mut welcome);
                (credential, Some(keys.map_err(|_| "no entropy")?))
            }
            pattern::FORWARD => {
                let (key, credential) = self.shared_by(body).ok_or(STRANGER)?;
                self.may_compute(now, from)?;
                let (keys, _) = self.agree(
                    Own::Shared(&key),
                    hello.split_at(HELLO_BODY + ID),
                    ours,
                    &mut plain,
                    &mut welcome,
                )?;
                (credential, Some(keys))
            }
            pattern::KNOWN => {
                let own = self.accepts.own.clone().ok_or("this sink has no --key")?;
                self.may_compute(now, from)?;
                let (keys, peer) =
                    self.agree(Own::Known(&own), hello.split_at(HELLO_BODY), ours, &mut plain, &mut welcome)?;
                (Credential::Known(peer.ok_or(STRANGER)?), Some(keys))
            }
            _ => return Err("an unknown pattern"),
        };
        let (run, name) = Greeting::parse(&plain).ok_or("its greeting is malformed")?;
        Ok(Accepted { credential, run, name, keys, welcome })
    }

    /// The pre-shared key whose id begins a body.
    fn shared_by(&self, body: &[u8]) -> Option<(SharedKey, Credential)> {
        let id: [u8; ID] = *body.first_chunk()?;
        self.shared.get(&id).map(|key| (key.clone(), Credential::Shared(id)))
    }

    /// The Noise patterns. Appends the greeting to `plain` and the body to `welcome`.
    fn agree(
        &self,
        own: Own<'_>,
        (head, message): (&[u8], &[u8]),
        ours: u32,
        plain: &mut Vec<u8>,
        welcome: &mut Vec<u8>,
    ) -> Result<(Keys, Option<PublicKey>), &'static str> {
        let known = |key: &PublicKey| self.known.contains(key);
        let received = receive(Purpose::Sense(head), own, message, plain, known).map_err(|_| STRANGER)?;
        let peer = received.peer();
        let ephemeral = ephemeral(self.entropy).map_err(|_| "no entropy")?;
        let agreed = received.answer(&ephemeral, &ours.to_be_bytes(), welcome).map_err(|_| STRANGER)?;
        let [open, seal] = agreed.ciphers;
        Ok((Keys { seal, open }, peer))
    }

    /// Refuses a host that has caused too many handshakes with X25519 in this second.
    pub(super) fn may_compute(&mut self, now: Duration, from: SocketAddr) -> Result<(), &'static str> {
        if now.saturating_sub(self.counted_since) >= Duration::from_secs(1) {
            self.hosts.clear();
            self.handshakes = 0;
            self.counted_since = now;
        }
        // At a socket on [::] all IPv4 hosts have addresses in one /64, ::ffff:0:0/96.
        let host = match from.ip().to_canonical() {
            IpAddr::V6(ip) => IpAddr::from((ip.to_bits() >> 64 << 64).to_be_bytes()),
            ip @ IpAddr::V4(_) => ip,
        };
        if self.handshakes >= PER_SECOND || self.hosts.len() >= HOSTS && !self.hosts.contains_key(&host) {
            return Err(BUSY);
        }
        let count = self.hosts.entry(host).or_default();
        *count = count.saturating_add(1);
        if *count > PER_HOST {
            return Err(TOO_MANY);
        }
        self.handshakes += 1;
        Ok(())
    }

    fn welcome(
        &mut self,
        now: Duration,
        from: SocketAddr,
        (theirs, ours, hello): (u32, u32, &[u8]),
        accepted: Accepted,
    ) {
        let Accepted { credential, run, name, keys, welcome } = accepted;
        let sender = (credential, name);
        let present = self.senders.get(&sender).copied();
        let Some(number) = present.or_else(|| self.admit(now, sender, from)) else {
            return self
                .refuse(from, "no room: --max-senders, or the limit of names for its key, is reached");
        };
        let Some(peer) = self.peers.get_mut(&number) else { return };
        let session = Session::new(now, theirs, keys);
        let waiting =
            Waiting { number: ours, run, from, session, hello: hello.to_vec(), welcome: welcome.clone() };
        if let Some(replaced) = peer.wait(waiting) {
            self.sessions.remove(&replaced);
        }
        self.sessions.insert(ours, number);
        if self.greeted.len() > 2 * self.peers.len() + MOST_REPLIES {
            self.greeted.retain(|_, ours| self.sessions.contains_key(ours));
        }
        self.greeted.insert((from, theirs), ours);
        self.counters.welcomes += 1;
        self.reply(from, welcome);
    }

    /// Finds a place for a new sender. If there is none, a sender without a session in use loses
    /// its place, or else a silent one: of those, one whose credential has most names, and of
    /// these, the one that has been silent for longest. If the credential has no place left, only
    /// its own senders can lose one.
    fn admit(&mut self, now: Duration, sender: (Credential, Name), from: SocketAddr) -> Option<PeerNumber> {
        let names = |credential: &Credential| self.names.get(credential).copied().unwrap_or(0);
        let is_crowd = matches!(sender.0, Credential::Known(_)) && names(&sender.0) >= NAMES;
        if is_crowd || self.peers.len() >= self.most {
            let is_busy = |peer: &Peer| peer.is_proven() && now.saturating_sub(peer.heard) < REPLACEABLE;
            let last = |(_, peer): &(&PeerNumber, &Peer)| {
                (is_busy(peer), peer.is_proven(), Reverse(names(&peer.sender.0)), peer.heard)
            };
            let candidates = self.peers.iter().filter(|(_, peer)| !is_crowd || peer.sender.0 == sender.0);
            let (number, peer) = candidates.min_by_key(last)?;
            let number = *number;
            if is_busy(peer) {
                return None;
            }
            self.forget(number);
        }
        *self.names.entry(sender.0).or_default() += 1;
        let number = PeerNumber(self.next);
        self.next += 1;
        self.peers.insert(number, Peer::new(now, sender, from));
        self.senders.insert(sender, number);
        Some(number)
    }

    fn forget(&mut self, number: PeerNumber) {
        if let Some(peer) = self.peers.remove(&number) {
            self.forgotten.push(number);
            self.senders.remove(&peer.sender);
            if let Entry::Occupied(mut names) = self.names.entry(peer.sender.0) {
                *names.get_mut() -= 1;
                if *names.get() == 0 {
                    names.remove();
                }
            }
            peer.numbers().for_each(|number| {
                self.sessions.remove(&number);
            });
        }
    }

    fn handle_sealed(
        &mut self,
        now: Duration,
        from: SocketAddr,
        datagram: &[u8],
        plain: &mut Vec<u8>,
    ) -> Option<Received> {
        let session = number(datagram, 1)?;
        let found = self.sessions.get(&session).copied();
        let Some((number, peer)) = found.and_then(|number| Some((number, self.peers.get_mut(&number)?)))
        else {
            self.unknown(from, datagram);
            return None;
        };
        let opened = match peer.open(now, session, datagram, plain) {
            Ok(opened) => opened,
            Err(Dropped::Replayed) => {
                self.counters.replayed += 1;
                return None;
            }
            Err(Dropped::Forged) => {
                self.counters.forged += 1;
                return None;
            }
            Err(Dropped::Expired) => {
                self.unknown(from, datagram);
                return None;
            }
        };
        for ended in opened.ended {
            self.sessions.remove(&ended);
        }
        peer.heard = now;
        if opened.is_newest && peer.path.arrived(from, datagram.len()) {
            self.counters.moved += 1;
        }
        let run = peer.run;
        let is_message = match plain.split_first() {
            None => false,
            Some((&inner::RESPONSE, octets)) => {
                peer.path.answered(from, octets);
                false
            }
            Some((&first, _)) => first >= 16,
        };
        let mut challenge = [0; CHALLENGE];
        if peer.path.is_to_be_checked(now) && (self.entropy)(&mut challenge).is_ok() {
            let mut out = Vec::new();
            if let Ok(to) = peer.challenge(now, challenge, &mut out) {
                self.reply(to, out);
            }
        }
        is_message.then_some(Received { peer: number, run })
    }

    /// Tells a sender that its session is unknown here.
    fn unknown(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.counters.unknown += 1;
        let mut unknown = datagram[..SEALED_HEADER].to_vec();
        unknown[0] = kind::UNKNOWN;
        self.reply(to, unknown);
    }
}

/// Why a HELLO is refused that needs X25519.
const TOO_MANY: &str = "too many handshakes from this host";
/// Why it is refused if the hosts together have caused too many.
const BUSY: &str = "too many handshakes in this second; it tries again";
/// Why a HELLO is refused whose credential is not accepted.
const STRANGER: &str = "its key is not accepted here, or it has another key for this sink";
