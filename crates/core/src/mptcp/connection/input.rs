//! Processing of segments on the data level.

use bytes::Bytes;

use super::handshake::{capable, is_plain};
use super::{Connection, Mode};
use crate::mptcp::info::{Event, SubflowId};
use crate::mptcp::receive::Brought;
use crate::mptcp::subflow::{Check, Heard, Misplaced, Stage, Subflow};
use crate::segment::{
    AddAddr, CapableForm, DataSeqNumber, Dss, Flags, MpJoin, MpTcpRst, Mptcp, MptcpOption, ResetReason,
    Segment,
};
use crate::tcp::{self, Incoming, reset_for};
use crate::time::Instant;

impl Connection {
    /// Handles a segment for a subflow.
    pub fn handle_segment(&mut self, now: Instant, subflow: SubflowId, segment: Segment) {
        let index = subflow.index();
        if self.subflows.get(index).is_some_and(|s| !s.is_alive()) {
            // Answer as from a closed port.
            self.dropped += 1;
            self.resets.extend(reset_for(&segment).map(|reset| (subflow, reset)));
            return;
        }
        if !self.screen(index, &segment) {
            self.dropped += 1;
            return self.look_after(now);
        }
        // Before the subflow processes the segment: a reset closes it and its options are no longer
        // passed on.
        let fastclose = self.fastclose(&segment);
        let reason = reset_reason(&segment);
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        subflow.tcp.handle_segment(now, segment);
        let speaks = subflow.measure(now);
        let closed = subflow.tcp.state() == tcp::State::Closed;
        if closed {
            subflow.reset = reason;
        }
        if speaks {
            self.keep(index);
        }
        while let Some(incoming) =
            self.subflows.get_mut(index).and_then(|s| s.tcp.multipath()).and_then(|m| m.inbox.pop_front())
        {
            self.last_heard = index;
            self.take(index, incoming);
        }
        if let (true, Some(subflow)) = (self.mode != Mode::Plain, self.subflows.get_mut(index)) {
            subflow.tcp.drop_received();
        }
        if fastclose && closed {
            self.be_fastclosed();
        }
        self.look_after(now);
    }

    /// Whether the segment is a reset that ends all subflows (RFC 8684 section 3.5).
    fn fastclose(&self, segment: &Segment) -> bool {
        let ours = |option: &MptcpOption| matches!(option, MptcpOption::MpFastclose { receiver } if *receiver == self.local.key);
        segment.flags.contains(Flags::RST) && segment.mptcp.options().iter().any(ours)
    }

    /// Processes one segment that the subflow has accepted.
    fn take(&mut self, index: usize, incoming: Incoming) {
        if self.mode == Mode::Plain {
            return;
        }
        if !self.is_authentic(index, &incoming.mptcp) {
            return;
        }
        if let (0, Some(capable)) = (index, capable(&incoming.mptcp)) {
            let capable = *capable;
            self.learn(index, &capable, incoming.window);
            if let (CapableForm::Data { len, checksum, .. }, Some(remote)) = (capable.form, self.remote) {
                self.hear(index, (1, remote.idsn + 1, len.into()), (checksum, len));
            }
        }
        self.mute = is_plain(&incoming.mptcp);
        if self.speaks_plain(index, &incoming) {
            return self.fall_back(Some(incoming.window));
        }
        // An infinite mapping belongs to data.
        let infinite = |dss: &Dss| dss.mapping().is_some_and(|mapping| mapping.len == 0);
        if self.may_fall_back() && !incoming.payload.is_empty() && incoming.mptcp.dss().is_some_and(infinite)
        {
            return self.fall_back(Some(incoming.window));
        }
        for option in incoming.mptcp.options() {
            self.take_option(index, option);
        }
        // Without the peer's key, no data sequence number can be interpreted.
        if self.mode != Mode::Multipath {
            return;
        }
        self.maybe_confirm(index, &incoming.mptcp);
        if let Some(dss) = incoming.mptcp.dss() {
            self.take_dss(index, *dss, incoming.window);
        }
        let waits = self.subflows.get(index).is_some_and(Subflow::may_deliver);
        if waits || !incoming.payload.is_empty() {
            self.take_data(index, incoming.seq, incoming.payload);
        }
    }

    /// Whether the sender of the options has proved that it knows our key. On a subflow that the
    /// peer opens, nothing counts before its HMAC; an acknowledgement without it ends the subflow
    /// (RFC 8684 section 3.2).
    fn is_authentic(&mut self, index: usize, mptcp: &Mptcp) -> bool {
        let Some(subflow) = self.subflows.get(index) else { return false };
        let Stage::Joined { .. } = subflow.stage else { return true };
        let answered = !matches!(subflow.tcp.state(), tcp::State::SynReceived | tcp::State::Closed);
        let proof = mptcp.options().iter().find_map(|option| match option {
            MptcpOption::MpJoin(MpJoin::Ack { hmac }) => Some(*hmac),
            _ => None,
        });
        match proof {
            Some(hmac) => self.check_join_proof(index, &hmac),
            None if answered => {
                self.dropped += 1;
                self.reset_subflow(index, ResetReason::MPTCP_SPECIFIC);
            }
            None => {}
        }
        self.subflows.get(index).is_some_and(|s| s.stage == Stage::Ready)
    }

    /// Whether the peer speaks plain TCP, or a middlebox makes it appear so, on the only subflow
    /// that was ready: data arrives without MPTCP options, or the answer to the handshake has none:
    /// the acknowledgement of our first data, or a FIN (RFC 8684 section 3.7).
    fn speaks_plain(&self, index: usize, incoming: &Incoming) -> bool {
        let Some(subflow) = self.subflows.get(index) else { return false };
        let tcp = subflow.tcp.info();
        index == 0
            && !self.diverged
            && is_plain(&incoming.mptcp)
            && match subflow.stage {
                // The third segment of the handshake.
                Stage::Offering => tcp.state != tcp::State::SynSent,
                // A middlebox may have cut a segment: its mapping covers the part without an
                // option.
                Stage::Ready if self.confirmed => {
                    !incoming.payload.is_empty() && !subflow.covers(incoming.seq)
                }
                Stage::Ready => tcp.bytes_acked > 0 || !incoming.payload.is_empty() || incoming.fin,
                Stage::Joining { .. }
                | Stage::Joined { .. }
                | Stage::Unconfirmed
                | Stage::Retiring
                | Stage::Gone => false,
            }
    }

    fn hear(&mut self, index: usize, (seq, dsn, len): (u32, DataSeqNumber, u32), sum: (Option<u16>, u16)) {
        let check = (self.checksums && !self.failed).then(|| Check::new(sum.0, sum.1));
        if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.hear(Heard { seq, dsn, len, check });
        }
    }

    fn maybe_confirm(&mut self, index: usize, mptcp: &Mptcp) {
        match self.subflows.get(index).map(|s| s.stage) {
            Some(Stage::Ready) if index == 0 && !self.confirmed && mptcp.dss().is_some() => {
                self.confirm(index)
            }
            Some(Stage::Unconfirmed) if mptcp.dss().is_some() => self.confirm(index),
            _ => {}
        }
    }

    fn take_option(&mut self, index: usize, option: &MptcpOption) {
        match option {
            MptcpOption::MpJoin(MpJoin::Ack { hmac }) => self.check_join_proof(index, hmac),
            MptcpOption::MpJoin(_) | MptcpOption::MpCapable(_) | MptcpOption::MpTcpRst(_) => {}
            MptcpOption::AddAddr(add) => self.take_address(index, add),
            MptcpOption::RemoveAddr(ids) => {
                for id in ids {
                    let on = |s: &Subflow| s.is_alive() && s.remote_address == *id;
                    let gone: alloc::vec::Vec<usize> =
                        (0..self.subflows.len()).filter(|i| on(&self.subflows[*i])).collect();
                    gone.into_iter().for_each(|i| self.reset_subflow(i, ResetReason::UNSPECIFIED));
                    self.raise(Event::AddressRemoved(*id));
                }
            }
            MptcpOption::MpPrio { backup } => {
                if let Some(subflow) = self.subflows.get_mut(index) {
                    subflow.backup_there = *backup;
                    let id = subflow.id;
                    self.raise(Event::Priority(id, *backup));
                }
            }
            // On the only subflow an infinite mapping follows, with the next data (RFC 8684 section
            // 3.7). MP_FAIL is answered by MP_FAIL.
            MptcpOption::MpFail { .. } if self.may_fall_back() => {
                self.leaving = true;
                // The peer has our key: it has computed checksums.
                self.confirmed = true;
                if !core::mem::replace(&mut self.failed, true) {
                    self.say(MptcpOption::MpFail { dsn: self.rx.nxt() });
                }
            }
            MptcpOption::MpFail { .. } => self.reset_subflow(index, ResetReason::MIDDLEBOX),
            MptcpOption::MpFastclose { receiver } => {
                if *receiver == self.local.key {
                    self.be_fastclosed();
                } else {
                    self.dropped += 1;
                }
            }
        }
    }

    fn take_address(&mut self, index: usize, add: &AddAddr) {
        let Some(hmac) = add.hmac else {
            return self.announced.retain(|announced| announced.add.id != add.id);
        };
        if self.expected_address_hmac(add) != Some(hmac) {
            self.dropped += 1;
            return;
        }
        // The HMAC shows that the peer has our key. With an IPv6 address and timestamps, no DSS
        // fits beside it.
        if index == 0 && !self.confirmed {
            self.confirm(index);
        }
        if let Some(multipath) = self.subflows.get_mut(index).and_then(|s| s.tcp.multipath()) {
            multipath.say(MptcpOption::AddAddr(AddAddr { hmac: None, ..*add }));
        }
        self.raise(Event::AddressAdded { id: add.id, address: add.address, port: add.port });
    }

    fn take_dss(&mut self, index: usize, dss: Dss, window: u32) {
        if let Some(ack) = dss.data_ack() {
            let ack = ack.expand(self.tx.una());
            match self.tx.acknowledge(ack, window) {
                Some(true) => {
                    self.stall_at = None;
                    self.stalls = 0;
                    self.raise(Event::Writable);
                }
                Some(false) => {}
                None => self.dropped += 1,
            }
        }
        let Some(mapping) = dss.mapping().filter(|mapping| mapping.len > 0) else { return };
        let dsn = mapping.dsn.expand(self.rx.nxt());
        let mut len = u32::from(mapping.len);
        if dss.data_fin() {
            len = len.saturating_sub(1);
            let verified = len > 0 || !self.checksums || self.failed || {
                Check::new(mapping.checksum, mapping.len).holds(dsn, mapping.subflow_seq, &[])
            };
            if !verified || !self.rx.end_at(dsn + u64::from(len)) {
                self.dropped += 1;
            }
            if let Some(subflow) = self.subflows.get_mut(index) {
                subflow.tcp.acknowledge();
            }
            // A DATA_FIN may complete the stream without further payload.
            if self.rx.reach_end() {
                self.peer_closed();
            }
        }
        if len > 0 {
            self.hear(index, (mapping.subflow_seq, dsn, len), (mapping.checksum, mapping.len));
        }
    }

    /// Stores payload, and earlier payload whose mapping is new, at its mapped position, even if
    /// earlier data of its subflow is missing (RFC 8684 section 3.3.5).
    fn take_data(&mut self, index: usize, mut seq: u32, mut payload: Bytes) {
        let held = self.rx.out_of_order();
        let mut brought = Brought::Nothing;
        loop {
            let alone = self.may_fall_back();
            let (verify, most) = (self.checksums && !self.failed, u64::from(self.config.tcp.receive_buffer));
            let Some(subflow) = self.subflows.get_mut(index) else { return };
            let rx = &mut self.rx;
            let mut deliver = |dsn, piece| match rx.receive(dsn, piece) {
                Brought::Nothing => {}
                Brought::Data if brought == Brought::End => {}
                better => brought = better,
            };
            let placed = subflow.place((seq, core::mem::take(&mut payload)), (verify, most), &mut deliver);
            match placed {
                Ok(()) => break,
                Err(Misplaced::TooMuch) => {
                    self.dropped += 1;
                    self.reset_subflow(index, ResetReason::MPTCP_SPECIFIC);
                    break;
                }
                Err(Misplaced::Damaged { dsn, data }) => {
                    self.dropped += 1;
                    if !alone {
                        self.fail_subflow(index, dsn);
                        break;
                    }
                    // The bytes of the only subflow cannot be sent again: the application gets
                    // them, as from TCP (RFC 8684 section 3.7).
                    self.failed = true;
                    let mut at = dsn;
                    for piece in data {
                        let len = piece.len() as u64;
                        deliver(at, piece);
                        at = at + len;
                    }
                    self.say(MptcpOption::MpFail { dsn });
                    seq = 0;
                }
            }
        }
        match brought {
            Brought::Nothing => {}
            Brought::Data => {
                if self.tells_of_holes(held)
                    && let Some(subflow) = self.subflows.get_mut(index)
                {
                    // The window of all subflows depends on this acknowledgement.
                    subflow.tcp.acknowledge();
                }
                self.raise(Event::Readable);
            }
            Brought::End => {
                if self.rx.readable() > 0 {
                    self.raise(Event::Readable);
                }
                if let Some(subflow) = self.subflows.get_mut(index) {
                    subflow.tcp.acknowledge();
                }
                self.peer_closed();
            }
        }
    }

    /// Whether data that fills a hole is acknowledged at once, if `held` bytes waited behind the
    /// hole: the window of all subflows depends on it. A peer that requests acknowledgements by PSH
    /// waits for one only if its window is small.
    fn tells_of_holes(&self, held: u64) -> bool {
        let small = held > u64::from(self.config.tcp.receive_buffer / 2);
        held > 0 && (small || !self.config.tcp.ack_on_push)
    }

    fn peer_closed(&mut self) {
        self.raise(Event::PeerClosed);
    }
}

/// The reason that a reset carries.
fn reset_reason(segment: &Segment) -> Option<MpTcpRst> {
    let reset = segment.flags.contains(Flags::RST);
    segment.mptcp.options().iter().find_map(|option| match option {
        MptcpOption::MpTcpRst(why) if reset => Some(*why),
        _ => None,
    })
}
