//! Services of a connection for the Multipath TCP connection that owns it (RFC 8684). A single-path
//! connection runs none of this code.

use alloc::boxed::Box;

use bytes::Bytes;

use super::{Connection, State};
use crate::segment::{DataSeqNumber, Flags, Mptcp, SackBlocks, Segment, SeqNumber};
use crate::tcp::Config;
use crate::tcp::congestion::Coupling;
use crate::tcp::multipath::{Incoming, Multipath, SendMap, TIGHTER};
use crate::time::Instant;

impl Connection {
    /// As [`Connection::connect`], for a subflow.
    pub(crate) fn connect_subflow(
        now: Instant,
        config: Config,
        ports: (u16, u16),
        iss: SeqNumber,
        multipath: Multipath,
    ) -> Self {
        let mut this = Self::connect(now, config, ports.0, ports.1, iss);
        this.become_subflow(multipath);
        this
    }

    /// As [`Connection::accept`], for a subflow.
    pub(crate) fn accept_subflow(
        now: Instant,
        config: Config,
        syn: &Segment,
        iss: SeqNumber,
        multipath: Multipath,
    ) -> Option<Self> {
        let mut this = Self::accept(now, config, syn, iss)?;
        this.become_subflow(multipath);
        // A second time, because the options of the subflow reduce the MSS.
        this.take_syn(now, syn);
        Some(this)
    }

    fn become_subflow(&mut self, multipath: Multipath) {
        self.tx.set_map(Some(SendMap::new(multipath.begins_with_keys())));
        self.multipath = Some(Box::new(multipath));
    }

    /// Whether the segment acknowledges our SYN in SYN-SENT.
    pub(crate) fn awaits(&self, segment: &Segment) -> bool {
        self.state == State::SynSent && segment.ack.gt(self.tx.una()) && segment.ack.le(self.tx.max())
    }

    /// Falls back to plain TCP. `window` is the peer's offered window in bytes, if known. `first`
    /// is the number of the subflow's first byte, if an infinite mapping must tell the peer.
    pub(crate) fn leave_multipath(&mut self, window: Option<u32>, first: Option<DataSeqNumber>) {
        let Some(multipath) = &mut self.multipath else { return };
        let overhead = multipath.overhead();
        match first {
            Some(first) => multipath.leave(first),
            None => self.multipath = None,
        }
        self.tx.set_map(None);
        self.rx.set_shared_window(None);
        if let Some(window) = window {
            self.tx.bound_window(window);
        }
        // In SYN-SENT the MSS is not yet computed. An infinite mapping needs the room.
        if self.state != State::SynSent && first.is_none() {
            self.tx.widen_mss(u32::from(overhead));
        }
    }

    /// The MPTCP state, for the MPTCP connection.
    #[inline]
    pub(crate) fn multipath(&mut self) -> Option<&mut Multipath> {
        self.multipath.as_deref_mut()
    }

    /// Bytes of each data segment that its mapping takes.
    pub(super) fn multipath_overhead(&self) -> u16 {
        self.multipath.as_ref().map_or(0, |multipath| multipath.overhead())
    }

    /// As [`Connection::multipath_overhead`], including the larger option of the segment with keys.
    pub(super) fn multipath_room(&self) -> u16 {
        let keys = |multipath: &Multipath| if multipath.keys.is_some() { TIGHTER as u16 } else { 0 };
        self.multipath.as_deref().map_or(0, |multipath| multipath.overhead() + keys(multipath))
    }

    /// Notes that the peer has our keys, or our HMAC: they are not repeated any more.
    pub(crate) fn end_handshake(&mut self) {
        if let Some(multipath) = &mut self.multipath {
            multipath.ack = None;
            multipath.keys = None;
        }
        self.tx.widen_map();
    }

    /// Queues all of `data`, mapped to `dsn`; the caller has checked the room. Returns the end of
    /// the data on the subflow.
    pub(crate) fn write_mapped(&mut self, dsn: DataSeqNumber, data: Bytes) -> SeqNumber {
        self.tx.write_mapped(dsn, data)
    }

    /// Queues all of `data` after the fallback to plain TCP, even if a smaller send buffer has been
    /// set in the meantime.
    pub(crate) fn write_all(&mut self, data: Bytes) {
        if !data.is_empty() {
            self.tx.write_mapped(DataSeqNumber(0), data);
        }
    }

    /// Number of bytes that would be sent at once.
    pub(crate) fn room(&self, now: Instant) -> u32 {
        match self.state {
            State::Established | State::CloseWait => self.tx.room(now),
            State::SynSent
            | State::SynReceived
            | State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => 0,
        }
    }

    /// As [`Config::window_bounds`].
    pub(crate) fn window_bounds(&self) -> (u32, u32) {
        self.config.window_bounds()
    }

    /// Whether data declared lost by a time-out is being retransmitted.
    pub(crate) fn repairs_timeout(&self) -> bool {
        self.tx.repairs_timeout()
    }

    /// Whether the peer has the bytes from `seq` to `end`, according to this subflow's
    /// acknowledgements.
    pub(crate) fn has_delivered(&self, seq: SeqNumber, end: SeqNumber) -> bool {
        self.tx.has_delivered(seq, end)
    }

    /// SND.UNA: data before it is no longer kept.
    #[inline]
    pub(crate) fn una(&self) -> SeqNumber {
        self.tx.una()
    }

    /// Sets the number of bytes that the MPTCP connection can accept.
    #[inline]
    pub(crate) fn set_shared_window(&mut self, octets: u32) {
        if self.state != State::SynSent {
            self.rx.set_shared_window(Some(octets));
        }
    }

    /// Sets the growth of the window (RFC 6356).
    pub(crate) fn set_coupling(&mut self, coupling: Coupling) {
        self.tx.set_coupling(coupling);
    }

    /// Discards received data, which the MPTCP connection already has.
    pub(crate) fn drop_received(&mut self) {
        self.rx.drop_ready();
    }

    /// Schedules an acknowledgement.
    pub(crate) fn acknowledge(&mut self) {
        self.rx.acknowledge_once();
    }

    /// Passes an accepted segment to the MPTCP connection.
    #[inline]
    pub(super) fn tell_multipath(&mut self, segment: &Segment, seq: SeqNumber, shift: u8) {
        let Some(multipath) = self.multipath.as_mut().filter(|m| m.left.is_none()) else { return };
        // After its FIN the peer sends no more data.
        let takes = match self.state {
            State::SynSent | State::SynReceived | State::Established | State::FinWait1 | State::FinWait2 => {
                true
            }
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait | State::Closed => false,
        };
        multipath.inbox.push_back(Incoming {
            mptcp: segment.mptcp.clone(),
            window: u32::from(segment.window) << shift,
            seq: seq.distance(self.rx.irs()) as u32,
            payload: if takes { segment.payload.clone() } else { Bytes::new() },
            fin: segment.flags.contains(Flags::FIN),
        });
    }

    /// Returns the MPTCP options of a segment that is about to leave, and reduces `sack` to the
    /// blocks that fit beside them.
    #[inline]
    pub(super) fn multipath_options(&mut self, seq: SeqNumber, data: &[u8], sack: &mut SackBlocks) -> Mptcp {
        let Some(multipath) = &mut self.multipath else { return Mptcp::NONE };
        if !data.is_empty() {
            return multipath.of_data(seq, self.tx.dsn(seq), data);
        }
        let mptcp = multipath.of_bare();
        let stamps = if self.stamps.is_some() { STAMPS_LEN } else { 0 };
        let room = OPTIONS_LEN.saturating_sub(stamps + mptcp.bare_len().next_multiple_of(4));
        let blocks = room.saturating_sub(SACK_HEAD) / SACK_BLOCK;
        if sack.as_slice().len() > blocks {
            *sack = sack.as_slice().iter().take(blocks).copied().collect();
        }
        mptcp
    }

    /// Returns a segment without data if an option is due that no data segment can carry. A probe
    /// repeats the number before SND.NXT, which every receiver answers (RFC 9293 section 3.8.4).
    #[inline]
    pub(super) fn poll_urgent(&mut self, now: Instant) -> Option<Segment> {
        let multipath = self.multipath.as_ref().filter(|multipath| multipath.is_urgent())?;
        let back = u32::from(multipath.probe_due);
        Some(self.bare_segment(now, back))
    }
}

/// Largest length of all options (RFC 9293 section 3.1).
const OPTIONS_LEN: usize = 40;
/// Length of the timestamps option with padding (RFC 7323 appendix A).
const STAMPS_LEN: usize = 12;
/// Lengths of the SACK option's header, with padding, and of a block (RFC 2018 section 3).
pub(super) const SACK_HEAD: usize = 4;
pub(super) const SACK_BLOCK: usize = 8;
