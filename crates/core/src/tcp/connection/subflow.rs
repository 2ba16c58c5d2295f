//! What a connection does for the Multipath TCP connection above it (RFC 8684). Without one nothing
//! here runs.

use alloc::boxed::Box;

use bytes::Bytes;

use super::{Connection, State};
use crate::segment::{DataSeqNumber, Mptcp, SackBlocks, Segment, SeqNumber};
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
        this.become_subflow(iss, multipath);
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
        this.become_subflow(iss, multipath);
        this.take_syn(now, syn);
        Some(this)
    }

    fn become_subflow(&mut self, iss: SeqNumber, multipath: Multipath) {
        let first = multipath.begins_with_keys().then_some(iss + 1);
        self.tx.set_map(Some(SendMap::new(first)));
        self.multipath = Some(Box::new(multipath));
    }

    /// The segment acknowledges our SYN in SYN-SENT.
    pub(crate) fn awaits(&self, segment: &Segment) -> bool {
        self.state == State::SynSent && segment.ack.gt(self.tx.una()) && segment.ack.le(self.tx.max())
    }

    /// The peer does not speak MPTCP: this is a plain connection from now on. `window` is what it
    /// has offered, in bytes, if its window is known.
    pub(crate) fn leave_multipath(&mut self, window: Option<u32>) {
        let Some(multipath) = self.multipath.take() else { return };
        self.tx.set_map(None);
        self.rx.set_shared_window(None);
        if let Some(window) = window {
            self.tx.bound_window(window);
        }
        if self.state != State::SynSent {
            self.tx.widen_mss(u32::from(multipath.overhead()));
        }
    }

    /// What is carried for the connection above.
    #[inline]
    pub(crate) fn multipath(&mut self) -> Option<&mut Multipath> {
        self.multipath.as_deref_mut()
    }

    /// Bytes of each data segment that its mapping takes.
    pub(super) fn multipath_overhead(&self) -> u16 {
        self.multipath.as_ref().map_or(0, |multipath| multipath.overhead())
    }

    /// As [`Connection::multipath_overhead`], of the segment with keys too.
    pub(super) fn multipath_room(&self) -> u16 {
        let keys = |multipath: &Multipath| if multipath.first.is_some() { TIGHTER as u16 } else { 0 };
        self.multipath.as_deref().map_or(0, |multipath| multipath.overhead() + keys(multipath))
    }

    /// Queues bytes that belong at `dsn`; all of them, since the caller has asked for the room.
    /// Returns where they end on the subflow.
    pub(crate) fn write_mapped(&mut self, dsn: DataSeqNumber, data: Bytes) -> SeqNumber {
        self.tx.write_mapped(dsn, data)
    }

    /// Bytes that would leave at once.
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

    /// What a time-out has shown as lost is being sent again.
    pub(crate) fn repairs_timeout(&self) -> bool {
        self.tx.repairs_timeout()
    }

    /// The peer has the bytes from `seq` to `end`, by this subflow's acknowledgements.
    pub(crate) fn has_delivered(&self, seq: SeqNumber, end: SeqNumber) -> bool {
        self.tx.has_delivered(seq, end)
    }

    /// SND.UNA: what lies before it is no longer kept.
    #[inline]
    pub(crate) fn una(&self) -> SeqNumber {
        self.tx.una()
    }

    /// How many bytes the connection above can take.
    #[inline]
    pub(crate) fn set_shared_window(&mut self, octets: u32) {
        if self.state != State::SynSent {
            self.rx.set_shared_window(Some(octets));
        }
    }

    /// The window's growth from now on (RFC 6356).
    pub(crate) fn set_coupling(&mut self, coupling: Coupling) {
        self.tx.set_coupling(coupling);
    }

    /// What was received is with the connection above already.
    pub(crate) fn drop_received(&mut self) {
        self.rx.drop_ready();
    }

    /// An acknowledgement leaves with the next poll.
    pub(crate) fn acknowledge(&mut self) {
        self.rx.acknowledge_once();
    }

    /// A segment has passed all checks.
    #[inline]
    pub(super) fn tell_multipath(&mut self, segment: &Segment, seq: SeqNumber, shift: u8) {
        let Some(multipath) = &mut self.multipath else { return };
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
        });
    }

    /// The options of a segment that is about to leave, and how many SACK blocks have room beside
    /// them.
    #[inline]
    pub(super) fn multipath_options(&mut self, seq: SeqNumber, len: usize, sack: &mut SackBlocks) -> Mptcp {
        let Some(multipath) = &mut self.multipath else { return Mptcp::NONE };
        if len > 0 {
            return multipath.of_data(seq, self.tx.dsn(seq), len);
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

    /// What no data segment can say leaves before data. A probe asks for the byte before SND.NXT
    /// again, which every receiver answers (RFC 9293 section 3.8.4).
    #[inline]
    pub(super) fn poll_urgent(&mut self, now: Instant) -> Option<Segment> {
        let multipath = self.multipath.as_ref().filter(|multipath| multipath.is_urgent())?;
        let back = u32::from(multipath.probe_due);
        Some(self.bare_segment(now, back))
    }
}

/// RFC 9293 section 3.1.
const OPTIONS_LEN: usize = 40;
/// The timestamps option with its padding (RFC 7323 appendix A).
const STAMPS_LEN: usize = 12;
/// RFC 2018 section 3, padded.
pub(super) const SACK_HEAD: usize = 4;
pub(super) const SACK_BLOCK: usize = 8;
