//! Opening of a connection and its subflows (RFC 8684 sections 3.1 and 3.2), and fallback to TCP
//! (section 3.7).

use core::net::IpAddr;

use super::{Announced, Connection, Mode};
use crate::mptcp::config::Config;
use crate::mptcp::info::{Event, JoinError, PathId, SubflowId};
use crate::mptcp::keys::{Identity, Ordered, address_hmac, join_hmac, leftmost_64, leftmost_160};
use crate::mptcp::receive::DataReceiver;
use crate::mptcp::scheduler::AnyScheduler;
use crate::mptcp::send::DataSender;
use crate::mptcp::subflow::{Stage, Subflow};
use crate::segment::{
    AddAddr, AddressId, CapableForm, DataSeqNumber, Flags, Key, MpCapable, MpJoin, MpTcpRst, Mptcp,
    MptcpOption, ResetReason, Segment, SeqNumber, Token,
};
use crate::tcp::{self, Keys, Multipath, reset_for};
use crate::time::{Duration, Instant};

/// Values that must be unpredictable (RFC 8684 section 5), drawn by the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Secrets {
    /// Our key for a new connection, which must not be in use. Ignored for a further subflow.
    pub key: Key,
    /// Our nonce for a further subflow. Ignored for a new connection.
    pub nonce: u32,
    /// Initial sequence number of the subflow.
    pub iss: SeqNumber,
}

/// The token of the connection that a SYN wants to join; `None` if it is no SYN with MP_JOIN.
pub fn join_token(segment: &Segment) -> Option<Token> {
    joining(segment).map(|join| join.0)
}

/// Token, nonce, address and flag B of a SYN with MP_JOIN.
fn joining(segment: &Segment) -> Option<(Token, u32, AddressId, bool)> {
    if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::ACK) {
        return None;
    }
    segment.mptcp.options().iter().find_map(|option| match option {
        MptcpOption::MpJoin(MpJoin::Syn { backup, address, token, nonce }) => {
            Some((*token, *nonce, *address, *backup))
        }
        _ => None,
    })
}

/// The MP_CAPABLE option if we support its parameters: version 1, HMAC-SHA256, no extension.
pub(super) fn capable(mptcp: &Mptcp) -> Option<&MpCapable> {
    mptcp.options().iter().find_map(|option| match option {
        MptcpOption::MpCapable(capable) if is_supported(capable) => Some(capable),
        _ => None,
    })
}

fn is_supported(capable: &MpCapable) -> bool {
    capable.version == VERSION && capable.hmac_sha256 && !capable.extended
}

/// Whether the options are those of a plain TCP segment. An MP_CAPABLE with unsupported parameters
/// is ignored (RFC 8684 section 3.1).
pub(super) fn is_plain(mptcp: &Mptcp) -> bool {
    let ignored =
        |option: &MptcpOption| matches!(option, MptcpOption::MpCapable(capable) if !is_supported(capable));
    mptcp.dss().is_none() && mptcp.options().iter().all(ignored)
}

impl JoinError {
    /// Builds the reset that answers a SYN with MP_JOIN which was refused for this reason (RFC 8684
    /// sections 3.2 and 3.6); `None` if the segment is itself a reset.
    pub fn reset_for(self, segment: &Segment) -> Option<Segment> {
        let (transient, reason) = match self {
            Self::Token | Self::NotJoin | Self::NotMultipath => (false, ResetReason::MPTCP_SPECIFIC),
            Self::Closing => (false, ResetReason::PROHIBITED),
            Self::TooMany => (true, ResetReason::LACK_OF_RESOURCES),
        };
        let why = MptcpOption::MpTcpRst(MpTcpRst { transient, reason });
        reset_for(segment).map(|reset| Segment { mptcp: Mptcp::only(why), ..reset })
    }
}

fn our_capable(checksum_required: bool, form: CapableForm) -> MpCapable {
    MpCapable {
        version: VERSION,
        checksum_required,
        extended: false,
        no_joins_here: false,
        hmac_sha256: true,
        form,
    }
}

impl Connection {
    /// Opens a connection actively on a path. The first segment polled is the SYN with MP_CAPABLE,
    /// for subflow 0.
    pub fn connect(now: Instant, config: Config, path: PathId, ports: (u16, u16), secrets: Secrets) -> Self {
        let syn = MptcpOption::MpCapable(our_capable(config.checksums, CapableForm::Syn));
        let multipath = Multipath::new(syn, config.dsn_width, secrets.iss);
        let tcp = tcp::Connection::connect_subflow(now, config.subflow(), ports, secrets.iss, multipath);
        let mut this = Self::new(config, secrets.key);
        this.subflows.push(Subflow::new(SubflowId(0), path, tcp, Stage::Offering));
        this
    }

    /// Opens a connection passively: answers a SYN without MP_JOIN. Without a supported MP_CAPABLE
    /// it is plain TCP. `None` if the segment is no SYN.
    pub fn accept(
        now: Instant,
        config: Config,
        path: PathId,
        syn: &Segment,
        secrets: Secrets,
    ) -> Option<Self> {
        let mut this = Self::new(config, secrets.key);
        let offer = capable(&syn.mptcp).filter(|capable| capable.form == CapableForm::Syn);
        let tcp = if let Some(offer) = offer {
            this.checksums |= offer.checksum_required;
            this.joins_here = !offer.no_joins_here;
            let answer = our_capable(this.checksums, CapableForm::SynAck { sender: secrets.key });
            let multipath = this.multipath(MptcpOption::MpCapable(answer), secrets.iss);
            tcp::Connection::accept_subflow(now, config.subflow(), syn, secrets.iss, multipath)?
        } else {
            this.mode = Mode::Plain;
            tcp::Connection::accept(now, config.subflow(), syn, secrets.iss)?
        };
        let stage = if offer.is_some() { Stage::Offering } else { Stage::Ready };
        this.subflows.push(Subflow::new(SubflowId(0), path, tcp, stage));
        Some(this)
    }

    fn new(config: Config, key: Key) -> Self {
        let local = Identity::new(key);
        Self {
            mode: Mode::Offered,
            local,
            remote: None,
            confirmed: false,
            checksums: config.checksums,
            failed: false,
            leaving: false,
            diverged: false,
            mute: false,
            joins_here: true,
            announced: alloc::vec::Vec::new(),
            subflows: alloc::vec::Vec::new(),
            tx: DataSender::new(local.idsn + 1, config.tcp.send_buffer),
            rx: DataReceiver::new(DataSeqNumber(0), 0, 0, 1),
            scheduler: AnyScheduler::new(config.scheduler, config.tcp.push),
            last_heard: 0,
            turn: 0,
            resets: Default::default(),
            events: Default::default(),
            stall_at: None,
            stalls: 0,
            over: None,
            dropped: 0,
            config,
        }
    }

    fn multipath(&self, syn: MptcpOption, iss: SeqNumber) -> Multipath {
        let mut multipath = Multipath::new(syn, self.config.dsn_width, iss);
        multipath.checksums = self.checksums;
        multipath
    }

    pub(super) fn refuses_join(&self) -> Option<JoinError> {
        let open = self.subflows.iter().filter(|s| s.is_alive()).count();
        if self.over.is_some() || (self.tx.fin_acked() && self.rx.ended()) {
            Some(JoinError::Closing)
        } else if self.mode != Mode::Multipath || !self.confirmed || self.failed {
            // After MP_FAIL on the only subflow, the connection continues as plain TCP.
            Some(JoinError::NotMultipath)
        } else if open >= usize::from(self.config.max_subflows.min(MAX_SUBFLOWS)) || self.place().is_none() {
            Some(JoinError::TooMany)
        } else {
            None
        }
    }

    /// Opens a further subflow on a path, from our address with the given id. `tcp` overrides the
    /// options of the first subflow.
    pub fn join(
        &mut self,
        now: Instant,
        (path, address): (PathId, AddressId),
        ports: (u16, u16),
        tcp: Option<tcp::Config>,
        secrets: Secrets,
    ) -> Result<SubflowId, JoinError> {
        if let Some(error) = self.refuses_join() {
            return Err(error);
        }
        let Some(remote) = self.remote else { return Err(JoinError::NotMultipath) };
        let syn = MpJoin::Syn { backup: false, address, token: remote.token, nonce: secrets.nonce };
        let multipath = self.multipath(MptcpOption::MpJoin(syn), secrets.iss);
        let config = Config { tcp: tcp.unwrap_or(self.config.tcp), ..self.config }.subflow();
        let tcp = tcp::Connection::connect_subflow(now, config, ports, secrets.iss, multipath);
        Ok(self.add(path, tcp, Stage::Joining { nonce: secrets.nonce }))
    }

    /// Answers a SYN with MP_JOIN; `address` is the id of our address that received it. On an error
    /// the caller answers with [`JoinError::reset_for`].
    pub fn accept_join(
        &mut self,
        now: Instant,
        path: PathId,
        syn: &Segment,
        address: AddressId,
        secrets: Secrets,
    ) -> Result<SubflowId, JoinError> {
        let Some((token, nonce, remote_address, backup)) = joining(syn) else {
            return Err(JoinError::NotJoin);
        };
        if token != self.local.token {
            return Err(JoinError::Token);
        }
        if let Some(error) = self.refuses_join() {
            return Err(error);
        }
        let Some(remote) = self.remote else { return Err(JoinError::NotMultipath) };
        let (ours, theirs) = self.hmacs(remote, secrets.nonce, nonce);
        let answer = MpJoin::SynAck { backup, address, hmac: leftmost_64(&ours), nonce: secrets.nonce };
        let multipath = self.multipath(MptcpOption::MpJoin(answer), secrets.iss);
        let config = self.config.subflow();
        let tcp = tcp::Connection::accept_subflow(now, config, syn, secrets.iss, multipath)
            .ok_or(JoinError::NotJoin)?;
        let id = self.add(path, tcp, Stage::Joined { expects: leftmost_160(&theirs) });
        if let Some(subflow) = self.subflows.get_mut(id.index()) {
            subflow.remote_address = remote_address;
            subflow.backup_there = backup;
        }
        Ok(id)
    }

    /// Our HMAC and the peer's for two nonces.
    fn hmacs(&self, remote: Identity, ours: u32, theirs: u32) -> ([u8; 32], [u8; 32]) {
        let (local, remote) = (self.local.key, remote.key);
        (
            join_hmac(Ordered { of: local, other: remote }, Ordered { of: ours, other: theirs }),
            join_hmac(Ordered { of: remote, other: local }, Ordered { of: theirs, other: ours }),
        )
    }

    /// The place of the next subflow: a new one, or that of a closed subflow whose data is
    /// acknowledged. The first subflow keeps its place.
    fn place(&self) -> Option<usize> {
        let next = self.subflows.len();
        let is_free = |index: &usize| !self.subflows[*index].is_alive() && !self.tx.is_on(*index);
        if next < PLACES { Some(next) } else { (1..next).find(is_free) }
    }

    fn add(&mut self, path: PathId, tcp: tcp::Connection, stage: Stage) -> SubflowId {
        let place = self.place().unwrap_or(self.subflows.len());
        let id = SubflowId(place as u16);
        let subflow = Subflow::new(id, path, tcp, stage);
        match self.subflows.get_mut(place) {
            Some(closed) => *closed = subflow,
            None => self.subflows.push(subflow),
        }
        self.refresh();
        id
    }

    /// Announces another address of ours on the first working subflow, again until the peer echoes
    /// it. Returns false if no subflow works, or if the option has no room: an IPv6 address with a
    /// port does not fit beside timestamps.
    pub fn add_address(&mut self, now: Instant, id: AddressId, address: IpAddr, port: Option<u16>) -> bool {
        let Some(remote) = self.remote else { return false };
        if self.config.tcp.timestamps && address.is_ipv6() && port.is_some() {
            return false;
        }
        let keys = Ordered { of: self.local.key, other: remote.key };
        let hmac = Some(address_hmac(keys, id, address, port));
        let add = AddAddr { id, address, port, hmac };
        if !self.say(MptcpOption::AddAddr(add)) {
            return false;
        }
        self.announced.retain(|before| before.add.id != id);
        self.announced.push(Announced { add, at: now + ECHO_TIME, tries: 1 });
        true
    }

    /// Repeats the announcements that are due and were not echoed (RFC 8684 section 3.4.1).
    pub(super) fn announce_again(&mut self, now: Instant) {
        self.announced.retain(|announced| announced.at > now || announced.tries < MAX_ANNOUNCEMENTS);
        for i in 0..self.announced.len() {
            let Announced { add, at, tries } = self.announced[i];
            if at <= now {
                self.say(MptcpOption::AddAddr(add));
                self.announced[i] = Announced { add, at: now + ECHO_TIME * (1 << tries), tries: tries + 1 };
            }
        }
    }

    /// Withdraws an address of ours (RFC 8684 section 3.4.2). Returns false if no subflow works.
    pub fn remove_address(&mut self, id: AddressId) -> bool {
        self.announced.retain(|announced| announced.add.id != id);
        self.say(MptcpOption::RemoveAddr(alloc::vec![id]))
    }

    pub(super) fn say(&mut self, option: MptcpOption) -> bool {
        let ready = self.subflows.iter_mut().find(|s| s.is_ready());
        let Some(multipath) = ready.and_then(|s| s.tcp.multipath()) else { return false };
        multipath.say(option);
        true
    }

    /// The HMAC that the peer's ADD_ADDR must carry.
    pub(super) fn expected_address_hmac(&self, add: &AddAddr) -> Option<u64> {
        let keys = Ordered { of: self.remote?.key, other: self.local.key };
        Some(address_hmac(keys, add.id, add.address, add.port))
    }

    /// Checks a segment before the subflow processes it, for conditions that no later step could
    /// undo. Returns false if it must be dropped.
    pub(super) fn screen(&mut self, index: usize, segment: &Segment) -> bool {
        let Some(subflow) = self.subflows.get_mut(index) else { return false };
        let has = |flag| segment.flags.contains(flag);
        if has(Flags::RST) {
            return true;
        }
        match subflow.stage {
            Stage::Offering if has(Flags::SYN) && has(Flags::ACK) => {
                let agreed = capable(&segment.mptcp)
                    .is_some_and(|capable| matches!(capable.form, CapableForm::SynAck { .. }));
                if !agreed && subflow.tcp.awaits(segment) {
                    self.fall_back(None);
                }
                true
            }
            // In a simultaneous open no segment can carry the keys, so both ends continue as TCP.
            Stage::Offering if has(Flags::SYN) => {
                if subflow.tcp.state() == tcp::State::SynSent {
                    self.fall_back(None);
                }
                true
            }
            // Without the key, the data cannot be placed. It is sent again, with the key before it.
            Stage::Offering => {
                segment.payload.is_empty() || is_plain(&segment.mptcp) || capable(&segment.mptcp).is_some()
            }
            // Before its HMAC was verified, data could come from an attacker.
            Stage::Joined { .. } => segment.payload.is_empty() || joins(segment),
            Stage::Joining { nonce } if has(Flags::SYN) && has(Flags::ACK) => {
                !subflow.tcp.awaits(segment) || self.check_join_answer(index, segment, nonce)
            }
            // A simultaneous open would skip the check of the peer's HMAC.
            Stage::Joining { .. } => !has(Flags::SYN),
            Stage::Unconfirmed | Stage::Ready | Stage::Retiring | Stage::Gone => true,
        }
    }

    /// Checks a SYN/ACK with MP_JOIN: its sender must know our key.
    fn check_join_answer(&mut self, index: usize, segment: &Segment, nonce: u32) -> bool {
        let answer = segment.mptcp.options().iter().find_map(|option| match option {
            MptcpOption::MpJoin(MpJoin::SynAck { backup, address, hmac, nonce }) => {
                Some((*backup, *address, *hmac, *nonce))
            }
            _ => None,
        });
        let proof = self.remote.zip(answer).and_then(|(remote, (backup, address, hmac, theirs))| {
            let (ours, expected) = self.hmacs(remote, nonce, theirs);
            (leftmost_64(&expected) == hmac).then_some((backup, address, ours))
        });
        let Some(subflow) = self.subflows.get_mut(index) else { return false };
        match proof {
            Some((backup, address, ours)) => {
                subflow.backup_there = backup;
                subflow.remote_address = address;
                if let Some(multipath) = subflow.tcp.multipath() {
                    multipath.ack = Some(MptcpOption::MpJoin(MpJoin::Ack { hmac: leftmost_160(&ours) }));
                }
                true
            }
            None => {
                let id = subflow.id;
                self.resets.extend(JoinError::Token.reset_for(segment).map(|reset| (id, reset)));
                self.dropped += 1;
                // The peer has its reset; without this the SYN would be repeated.
                subflow.tcp.abort(Instant::ZERO);
                self.bury(index, tcp::CloseReason::Refused);
                false
            }
        }
    }

    /// Learns the peer's key from the SYN/ACK, from the third segment, or from the data that
    /// repeats it. `window` is the window of that segment in bytes, counted from the first byte of
    /// data.
    pub(super) fn learn(&mut self, index: usize, capable: &MpCapable, window: u32) {
        let sender = match (capable.form, self.remote) {
            (_, Some(_)) | (CapableForm::Syn, None) => return,
            // Only the answer to our own offer has this form.
            (CapableForm::SynAck { sender }, None) if self.offers(index) => sender,
            (CapableForm::SynAck { .. }, None) => {
                self.dropped += 1;
                return;
            }
            (CapableForm::Ack { sender, receiver } | CapableForm::Data { sender, receiver, .. }, None) => {
                if receiver != self.local.key {
                    self.dropped += 1;
                    // Its data is acknowledged already, so it must not be missing in silence.
                    if matches!(capable.form, CapableForm::Data { .. }) {
                        self.reset_subflow(index, ResetReason::MPTCP_SPECIFIC);
                    }
                    return;
                }
                self.confirmed = true;
                sender
            }
        };
        if matches!(capable.form, CapableForm::SynAck { .. }) {
            self.checksums |= capable.checksum_required;
            self.joins_here = !capable.no_joins_here;
        }
        let checksums = self.checksums;
        let remote = Identity::new(sender);
        self.remote = Some(remote);
        self.mode = Mode::Multipath;
        self.tx.acknowledge(self.local.idsn + 1, window);
        let tcp = self.config.tcp;
        let shift = tcp.window_scale.unwrap_or(0);
        self.rx = DataReceiver::new(remote.idsn + 1, tcp.receive_buffer, shift, tcp.mss.into());
        if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.stage = Stage::Ready;
            if let Some(multipath) = subflow.tcp.multipath() {
                multipath.checksums = checksums;
            }
            if let (false, Some(multipath)) = (self.confirmed, subflow.tcp.multipath()) {
                let keys = CapableForm::Ack { sender: self.local.key, receiver: sender };
                multipath.ack = Some(MptcpOption::MpCapable(our_capable(checksums, keys)));
                let repeat = self.config.repeat_keys;
                let capable = our_capable(checksums, keys);
                multipath.keys = Some(Keys { capable, dsn: self.local.idsn + 1, repeat });
                multipath.ack_due = repeat;
            } else if matches!(capable.form, CapableForm::Ack { .. }) {
                // The fourth segment tells the peer that its key has arrived, so that it may open
                // subflows.
                subflow.tcp.acknowledge();
            }
        }
        self.refresh();
    }

    /// Notes that the peer has received our HMAC: shown by a DSS on the first subflow, or by any
    /// segment on a further one.
    pub(super) fn confirm(&mut self, index: usize) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        subflow.tcp.end_handshake();
        subflow.confirm_at = None;
        if index == 0 {
            self.confirmed = true;
        }
        if subflow.stage == Stage::Unconfirmed {
            subflow.stage = Stage::Ready;
            self.diverged = true;
            let id = subflow.id;
            self.raise(Event::SubflowEstablished(id));
        }
    }

    /// Whether the subflow is the first one of a connection that we open.
    fn offers(&mut self, index: usize) -> bool {
        let subflow = self.subflows.get_mut(index);
        subflow.and_then(|s| s.tcp.multipath()).is_some_and(|multipath| multipath.begins_with_keys())
    }

    /// Checks the third segment of a join.
    pub(super) fn check_join_proof(&mut self, index: usize, hmac: &[u8; 20]) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        let Stage::Joined { expects } = subflow.stage else {
            if subflow.stage == Stage::Ready {
                // The fourth segment was lost (RFC 8684 section 3.2).
                subflow.tcp.acknowledge();
            }
            return;
        };
        if expects == *hmac {
            subflow.stage = Stage::Ready;
            subflow.tcp.acknowledge();
            self.diverged = true;
            let id = subflow.id;
            self.raise(Event::SubflowEstablished(id));
        } else {
            self.dropped += 1;
            self.reset_subflow(index, ResetReason::MPTCP_SPECIFIC);
        }
    }

    /// Whether the connection may continue as plain TCP: all data has been on its first subflow
    /// once, so the bytes of the subflow are those of the data. Joins that were refused or are not
    /// answered yet have carried none.
    pub(super) fn may_fall_back(&self) -> bool {
        self.mode == Mode::Multipath && !self.diverged
    }

    /// Falls back to plain TCP. `window` is the peer's offered window in bytes, if a segment has
    /// carried one.
    pub(super) fn fall_back(&mut self, window: Option<u32>) {
        if self.mode == Mode::Plain {
            return;
        }
        // After the negotiation the peer has to be told: an infinite mapping (RFC 8684 section
        // 3.7).
        let first = (self.mode == Mode::Multipath && self.confirmed).then(|| self.local.idsn + 1);
        self.mode = Mode::Plain;
        self.announced.clear();
        (1..self.subflows.len()).for_each(|further| self.reset_subflow(further, ResetReason::MIDDLEBOX));
        let rest = self.tx.take_unassigned();
        let (Some(subflow), rx) = (self.subflows.first_mut(), &mut self.rx) else { return };
        if let Some(remote) = self.remote {
            subflow.flush(remote.idsn + 1, |dsn, data| {
                rx.receive(dsn, data);
            });
        }
        subflow.tcp.leave_multipath(window, first);
        subflow.stage = Stage::Ready;
        subflow.tcp.write_all(rest);
        if self.tx.is_closed() {
            subflow.tcp.close(Instant::ZERO);
        }
        if self.rx.readable() > 0 {
            self.raise(Event::Readable);
        }
        self.raise(Event::FellBack);
    }
}

fn joins(segment: &Segment) -> bool {
    let ack = |option: &MptcpOption| matches!(option, MptcpOption::MpJoin(MpJoin::Ack { .. }));
    segment.mptcp.options().iter().any(ack)
}

/// Version of the protocol (RFC 8684 section 3.1).
const VERSION: u8 = 1;
/// Time after which the first ADD_ADDR without an echo is repeated; it doubles each time.
const ECHO_TIME: Duration = Duration::from_secs(1);
/// Largest number of times that an address is announced.
const MAX_ANNOUNCEMENTS: u32 = 4;
/// Largest number of simultaneous subflows.
const MAX_SUBFLOWS: u8 = 8;
/// Number of subflows, closed ones included, beyond which places are used again: a host that has
/// seen a token can make and reset subflows without end.
const PLACES: usize = 64;
