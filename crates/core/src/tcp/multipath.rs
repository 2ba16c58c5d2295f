//! What a connection has beyond TCP while it is a subflow of a Multipath TCP connection (RFC 8684):
//! options to say, options heard, and where its bytes belong.
//!
//! The connection above decides what all this means; here it is only carried. One thing is TCP's
//! own affair: a segment never straddles two mappings that are not contiguous.

use alloc::collections::VecDeque;

use bytes::Bytes;

use crate::segment::{
    CapableForm, DataSeqNumber, Dss, Mapping, MpCapable, Mptcp, MptcpOption, SeqNumber, WireDsn,
};

/// How many bytes a data sequence number takes in the options that we write (RFC 8684 section
/// 3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DsnWidth {
    /// 4: enough while less than 2^31 bytes are under way.
    Four,
    /// 8.
    Eight,
}

impl DsnWidth {
    fn wire(self, number: DataSeqNumber) -> WireDsn {
        match self {
            Self::Four => WireDsn::Short(number.0 as u32),
            Self::Eight => WireDsn::Long(number),
        }
    }

    /// Bytes that a data segment's DSS takes, with padding.
    pub(crate) const fn overhead(self) -> u16 {
        match self {
            Self::Four => 20,
            Self::Eight => 28,
        }
    }
}

/// The state of a subflow.
#[derive(Debug)]
pub(crate) struct Multipath {
    /// Of our SYN or SYN/ACK.
    pub(crate) syn: MptcpOption,
    /// In every segment without data until the peer is known to have had it.
    pub(crate) ack: Option<MptcpOption>,
    /// In the first data segment, in place of its DSS, until the peer is known to have had it.
    pub(crate) first: Option<MpCapable>,
    /// Once each, as soon as possible.
    pub(crate) once: VecDeque<MptcpOption>,
    /// With a reset.
    pub(crate) reset: Option<MptcpOption>,
    /// The DATA_ACK, once there is one.
    pub(crate) data_ack: Option<DataSeqNumber>,
    /// Where our data ends, once it does: a segment that ends there says so.
    pub(crate) data_end: Option<DataSeqNumber>,
    /// Say the end without data.
    pub(crate) data_fin_due: bool,
    /// The end was said.
    pub(crate) data_fin_said: bool,
    /// Ask the peer for an acknowledgement.
    pub(crate) probe_due: bool,
    width: DsnWidth,
    iss: SeqNumber,
    /// What was heard, in order, until the connection above takes it.
    pub(crate) inbox: VecDeque<Incoming>,
    /// What the last acknowledgement said on the level of data, and its window.
    last: (Mptcp, u16),
}

/// What a segment says to the connection above.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The options.
    pub(crate) mptcp: Mptcp,
    /// SEG.WND, scaled: counted from the DATA_ACK (RFC 8684 section 3.3.5).
    pub(crate) window: u32,
    /// SEG.SEQ relative to the peer's initial sequence number.
    pub(crate) seq: u32,
    /// The bytes carried.
    pub(crate) payload: Bytes,
}

impl Multipath {
    pub(crate) fn new(syn: MptcpOption, width: DsnWidth, iss: SeqNumber) -> Self {
        Self {
            syn,
            ack: None,
            first: None,
            once: VecDeque::new(),
            reset: None,
            data_ack: None,
            data_end: None,
            data_fin_due: false,
            data_fin_said: false,
            probe_due: false,
            width,
            iss,
            inbox: VecDeque::new(),
            last: (Mptcp::NONE, 0),
        }
    }

    pub(crate) fn overhead(&self) -> u16 {
        self.width.overhead()
    }

    /// The first segment with data bears keys: we have offered MPTCP.
    pub(crate) fn begins_with_keys(&self) -> bool {
        let syn = |capable: &MpCapable| capable.form == CapableForm::Syn;
        matches!(&self.syn, MptcpOption::MpCapable(capable) if syn(capable))
    }

    /// Something wants to leave that no data segment can say. As long as a segment without data
    /// says what the peer may not have had yet, the rest waits.
    #[inline]
    pub(crate) fn is_urgent(&self) -> bool {
        self.probe_due || self.ack.is_none() && (self.data_fin_due || !self.once.is_empty())
    }

    /// The options of a segment with `len` bytes of data from `seq` on, which belong at `dsn`.
    pub(crate) fn of_data(&mut self, seq: SeqNumber, dsn: Option<DataSeqNumber>, len: usize) -> Mptcp {
        let relative = seq.distance(self.iss) as u32;
        let ends = dsn.is_some_and(|dsn| self.data_end == Some(dsn + len as u64));
        if let (Some(capable), 1) = (self.first, relative)
            && let CapableForm::Ack { sender, receiver } = capable.form
        {
            let form = CapableForm::Data { sender, receiver, len: len as u16, checksum: None };
            return Mptcp::only(MptcpOption::MpCapable(MpCapable { form, ..capable }));
        }
        let mut dss = self.acknowledging();
        if let Some(dsn) = dsn {
            let dsn = self.width.wire(dsn);
            let len = len as u16 + u16::from(ends);
            dss = dss.with_mapping(Mapping { dsn, subflow_seq: relative, len, checksum: None });
            if ends {
                dss = dss.with_data_fin();
                self.data_fin_said = true;
            }
        }
        Mptcp::dss_only(dss)
    }

    /// The options of a segment without data.
    pub(crate) fn of_bare(&mut self) -> Mptcp {
        self.probe_due = false;
        if let Some(option) = &self.ack {
            return Mptcp::only(option.clone());
        }
        let mut dss = self.acknowledging();
        if let (true, Some(end)) = (self.data_fin_due, self.data_end) {
            let dsn = self.width.wire(end);
            let mapping = Mapping { dsn, subflow_seq: 0, len: 1, checksum: None };
            dss = dss.with_mapping(mapping).with_data_fin();
            self.data_fin_said = true;
        } else if let Some(option) = self.once.pop_front() {
            let mut options = if self.data_ack.is_some() { Mptcp::dss_only(dss) } else { Mptcp::NONE };
            // Beside an address of IPv6 and timestamps nothing else has room.
            if options.bare_len() + option.wire_len() > ROOM {
                options = Mptcp::NONE;
            }
            options.push(option);
            return options;
        }
        self.data_fin_due = false;
        if self.data_ack.is_none() && dss == Dss::default() {
            return Mptcp::NONE;
        }
        Mptcp::dss_only(dss)
    }

    /// The options of a reset.
    pub(crate) fn of_reset(&mut self) -> Mptcp {
        self.reset.take().map_or(Mptcp::NONE, Mptcp::only)
    }

    fn acknowledging(&self) -> Dss {
        let dss = Dss::default();
        self.data_ack.map_or(dss, |number| dss.with_data_ack(self.width.wire(number)))
    }

    /// Whether an acknowledgement says something new to the connection above: then it is no
    /// duplicate on its subflow, whatever else it repeats.
    #[inline]
    pub(crate) fn is_news(&mut self, mptcp: &Mptcp, window: u16) -> bool {
        let news = self.last.1 != window || self.last.0 != *mptcp;
        if news {
            self.last = (mptcp.clone(), window);
        }
        news
    }
}

/// Where the bytes of a subflow belong in the data stream: runs, in the order of the subflow.
#[derive(Debug)]
pub(crate) struct SendMap {
    runs: VecDeque<Run>,
    /// The first byte of the subflow, whose segment has less room (an MP_CAPABLE in place of a
    /// DSS).
    tight: Option<SeqNumber>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    seq: SeqNumber,
    dsn: DataSeqNumber,
    len: u32,
}

impl Run {
    fn end(&self) -> SeqNumber {
        self.seq + self.len
    }
}

impl SendMap {
    pub(crate) fn new(tight: Option<SeqNumber>) -> Self {
        Self { runs: VecDeque::new(), tight }
    }

    /// The next `len` bytes of the subflow begin at `seq` and belong at `dsn`.
    pub(crate) fn push(&mut self, seq: SeqNumber, dsn: DataSeqNumber, len: u32) {
        if let Some(last) = self.runs.back_mut()
            && last.end() == seq
            && last.dsn + u64::from(last.len) == dsn
        {
            last.len += len;
            return;
        }
        self.runs.push_back(Run { seq, dsn, len });
    }

    /// All before `una` is acknowledged.
    pub(crate) fn advance(&mut self, una: SeqNumber) {
        while self.runs.front().is_some_and(|run| run.end().le(una)) {
            self.runs.pop_front();
        }
    }

    fn find(&self, seq: SeqNumber) -> Option<&Run> {
        let i = self.runs.partition_point(|run| run.end().le(seq));
        self.runs.get(i).filter(|run| run.seq.le(seq))
    }

    /// Bytes from `seq` on that one mapping covers, at most `most`; a whole segment has `mss`.
    pub(crate) fn limit(&self, seq: SeqNumber, most: u32, mss: u32) -> u32 {
        let tight = mss.saturating_sub(TIGHTER).max(1);
        let most = if self.tight == Some(seq) { most.min(tight) } else { most };
        self.find(seq).map_or(most, |run| (run.end().distance(seq).max(0) as u32).min(most))
    }

    /// Where the byte at `seq` belongs.
    pub(crate) fn dsn(&self, seq: SeqNumber) -> Option<DataSeqNumber> {
        self.find(seq).map(|run| run.dsn + seq.distance(run.seq).max(0) as u64)
    }
}

/// An MP_CAPABLE with data takes 24 bytes with padding, a short DSS 20.
pub(crate) const TIGHTER: u32 = 4;
/// Bytes of options beside timestamps (RFC 7323 appendix A).
const ROOM: usize = 28;
/// The window on the level of the subflow: there is only one, of the connection above, which sends
/// nothing past it.
pub(crate) const UNBOUNDED: u32 = 1 << 30;
