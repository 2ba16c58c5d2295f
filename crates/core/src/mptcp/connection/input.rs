//! Processing of segments on the data level.

use bytes::{Buf, Bytes};

use super::handshake::capable;
use super::{Connection, Mode};
use crate::mptcp::info::{Event, SubflowId};
use crate::mptcp::receive::Brought;
use crate::mptcp::subflow::{Heard, Stage};
use crate::segment::{AddAddr, CapableForm, Dss, Flags, MpJoin, Mptcp, MptcpOption, ResetReason, Segment};
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
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        subflow.tcp.handle_segment(now, segment);
        subflow.measure(now);
        let closed = subflow.tcp.state() == tcp::State::Closed;
        while let Some(incoming) =
            self.subflows.get_mut(index).and_then(|s| s.tcp.multipath()).and_then(|m| m.inbox.pop_front())
        {
            self.last_heard = index;
            self.take(now, index, incoming);
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
    fn take(&mut self, now: Instant, index: usize, incoming: Incoming) {
        if let Some(capable) = capable(&incoming.mptcp) {
            let capable = *capable;
            self.learn(index, &capable, incoming.window);
            if let (CapableForm::Data { len, .. }, Some(remote)) = (capable.form, self.remote) {
                let heard = Heard { seq: 1, dsn: remote.idsn + 1, len: len.into() };
                self.subflows[index].hear(heard);
            }
        }
        if self.speaks_plain(index, &incoming) {
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
        if !incoming.payload.is_empty() {
            self.take_data(now, index, incoming.seq, incoming.payload);
        }
    }

    /// Whether the peer does not support MPTCP: before any confirmation, data arrives without MPTCP
    /// options, or ours is acknowledged without them (RFC 8684 section 3.7).
    fn speaks_plain(&self, index: usize, incoming: &Incoming) -> bool {
        let Some(subflow) = self.subflows.get(index) else { return false };
        let tcp = subflow.tcp.info();
        index == 0
            && self.subflows.len() == 1
            && !self.confirmed
            && incoming.mptcp.is_empty()
            && match subflow.stage {
                // The third segment of the handshake.
                Stage::Offering => tcp.state != tcp::State::SynSent,
                Stage::Ready => tcp.bytes_acked > 0 || !incoming.payload.is_empty(),
                Stage::Joining { .. }
                | Stage::Joined { .. }
                | Stage::Unconfirmed
                | Stage::Retiring
                | Stage::Gone => false,
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
                    let on = |s: &crate::mptcp::subflow::Subflow| s.is_alive() && s.remote_address == *id;
                    let gone: alloc::vec::Vec<usize> =
                        (0..self.subflows.len()).filter(|i| on(&self.subflows[*i])).collect();
                    gone.into_iter().for_each(|i| self.reset_subflow(i, ResetReason::UNSPECIFIED));
                    self.raise(Event::AddressRemoved(*id));
                }
            }
            MptcpOption::MpPrio { backup } => {
                if let Some(subflow) = self.subflows.get_mut(index) {
                    subflow.backup = *backup;
                    let id = subflow.id;
                    self.raise(Event::Priority(id, *backup));
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
        // An echo of our ADD_ADDR only confirms its arrival.
        let Some(hmac) = add.hmac else { return };
        if self.expected_address_hmac(add) != Some(hmac) {
            self.dropped += 1;
            return;
        }
        if let Some(multipath) = self.subflows.get_mut(index).and_then(|s| s.tcp.multipath()) {
            multipath.once.push_back(MptcpOption::AddAddr(AddAddr { hmac: None, ..*add }));
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
        let Some(mapping) = dss.mapping() else { return };
        let dsn = mapping.dsn.expand(self.rx.nxt());
        let mut len = u32::from(mapping.len);
        if dss.data_fin() {
            len = len.saturating_sub(1);
            if !self.rx.end_at(dsn + u64::from(len)) {
                self.dropped += 1;
            }
            if let Some(subflow) = self.subflows.get_mut(index) {
                subflow.tcp.acknowledge();
            }
            // A DATA_FIN without data may complete the stream, so no payload has to follow.
            if len == 0 && self.rx.reach_end() {
                self.peer_closed();
            }
        }
        if let (true, Some(subflow)) = (len > 0, self.subflows.get_mut(index)) {
            subflow.hear(Heard { seq: mapping.subflow_seq, dsn, len });
        }
    }

    /// Stores payload at its mapped position, even if earlier data of its subflow is missing (RFC
    /// 8684 section 3.3.5).
    fn take_data(&mut self, _now: Instant, index: usize, mut seq: u32, mut payload: Bytes) {
        let held = self.rx.out_of_order();
        let mut brought = Brought::Nothing;
        while !payload.is_empty() {
            let Some(subflow) = self.subflows.get_mut(index) else { return };
            let Some((before, dsn, n)) = subflow.locate(seq, payload.len() as u32) else {
                break;
            };
            if before > 0 {
                break;
            }
            subflow.bytes_received += u64::from(n);
            let piece = payload.split_to(n as usize);
            seq = seq.wrapping_add(n);
            match self.rx.receive(dsn, piece) {
                Brought::Nothing => {}
                Brought::Data if brought == Brought::End => {}
                better => brought = better,
            }
        }
        if payload.has_remaining() {
            // The subflow has acknowledged data without a mapping. The data is lost, so the subflow
            // cannot be used any more (RFC 8684 section 3.7).
            self.dropped += 1;
            self.reset_subflow(index, ResetReason::MPTCP_SPECIFIC);
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
