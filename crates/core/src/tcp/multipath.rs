//! State of a connection that is a subflow of a Multipath TCP connection (RFC 8684): options to
//! send, options received, and the mapping of its bytes to the data stream.
//!
//! The MPTCP connection interprets the options; this module only carries them. One rule is enforced
//! here: a segment never spans two mappings that are not contiguous.

use alloc::collections::VecDeque;

use bytes::Bytes;

use crate::segment::{
    CapableForm, DataSeqNumber, Dss, DssChecksum, Mapping, MpCapable, Mptcp, MptcpOption, SeqNumber, WireDsn,
};

/// Size of a data sequence number in the options that we send (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DsnWidth {
    /// 4 bytes: sufficient while less than 2^31 bytes are in flight.
    Four,
    /// 8 bytes.
    Eight,
}

impl DsnWidth {
    fn wire(self, number: DataSeqNumber) -> WireDsn {
        match self {
            Self::Four => WireDsn::Short(number.0 as u32),
            Self::Eight => WireDsn::Long(number),
        }
    }

    /// Bytes that the DSS option of a data segment takes, with padding.
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
    /// Option of our SYN or SYN/ACK.
    pub(crate) syn: MptcpOption,
    /// Option of every segment without data until the peer is known to have received it.
    pub(crate) ack: Option<MptcpOption>,
    /// The keys in data segments, until the peer is known to have received them.
    pub(crate) keys: Option<Keys>,
    /// Whether to send `ack` in a segment of its own, before any data.
    pub(crate) ack_due: bool,
    /// Options to send once each, as soon as possible.
    pub(crate) once: VecDeque<MptcpOption>,
    /// Option of a reset.
    pub(crate) reset: Option<MptcpOption>,
    /// The DATA_ACK, once there is one.
    pub(crate) data_ack: Option<DataSeqNumber>,
    /// The end of our data, once known: a segment that ends there carries the DATA_FIN.
    pub(crate) data_end: Option<DataSeqNumber>,
    /// Whether to send the DATA_FIN in a segment without data.
    pub(crate) data_fin_due: bool,
    /// Whether the DATA_FIN was sent.
    pub(crate) data_fin_said: bool,
    /// Whether to ask the peer for an acknowledgement.
    pub(crate) probe_due: bool,
    /// Whether mappings carry checksums.
    pub(crate) checksums: bool,
    /// After the fallback of an open connection: the number of the first byte of the subflow, if
    /// it had one. Only an infinite mapping and `once` are still sent.
    pub(crate) left: Option<DataSeqNumber>,
    /// Position of the data that carries the infinite mapping (RFC 8684 section 3.7), relative to
    /// the initial sequence number.
    infinite: Option<u32>,
    width: DsnWidth,
    iss: SeqNumber,
    /// Received options, in order, until the MPTCP connection takes them.
    pub(crate) inbox: VecDeque<Incoming>,
    /// Options and window of the last acknowledgement.
    last: (Mptcp, u16),
}

/// Keys that data segments carry in place of a DSS (RFC 8684 section 3.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// The option of a segment without data.
    pub(crate) capable: MpCapable,
    /// Data sequence number of the first byte of the subflow.
    pub(crate) dsn: DataSeqNumber,
    /// Whether all data segments carry the keys, not only the first one.
    pub(crate) repeat: bool,
}

impl Keys {
    /// The option of a segment that ends `end` bytes after the beginning of the subflow; `None` if
    /// the segment has a DSS.
    fn of_data(&self, begin: u32, end: u32, checksum: Option<u16>) -> Option<MptcpOption> {
        // A peer that gets a segment without the keys first takes the connection as plain TCP. The
        // mapping always begins with the subflow, so it grows with each segment. Linux finds the
        // bytes of a segment within it, but could not verify a checksum of earlier ones.
        let carries = begin == 0 || (self.repeat && checksum.is_none());
        let CapableForm::Ack { sender, receiver } = self.capable.form else { return None };
        let len = u16::try_from(end).ok().filter(|_| carries)?;
        let form = CapableForm::Data { sender, receiver, len, checksum };
        Some(MptcpOption::MpCapable(MpCapable { form, ..self.capable }))
    }
}

/// Options and data of a received segment, for the MPTCP connection.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The MPTCP options.
    pub(crate) mptcp: Mptcp,
    /// SEG.WND, scaled: counted from the DATA_ACK (RFC 8684 section 3.3.5).
    pub(crate) window: u32,
    /// SEG.SEQ relative to the peer's initial sequence number.
    pub(crate) seq: u32,
    /// The payload.
    pub(crate) payload: Bytes,
    /// Whether the segment carries a FIN.
    pub(crate) fin: bool,
}

impl Multipath {
    pub(crate) fn new(syn: MptcpOption, width: DsnWidth, iss: SeqNumber) -> Self {
        Self {
            syn,
            ack: None,
            ack_due: false,
            keys: None,
            once: VecDeque::new(),
            reset: None,
            data_ack: None,
            data_end: None,
            data_fin_due: false,
            data_fin_said: false,
            probe_due: false,
            checksums: false,
            left: None,
            infinite: None,
            width,
            iss,
            inbox: VecDeque::new(),
            last: (Mptcp::NONE, 0),
        }
    }

    pub(crate) fn overhead(&self) -> u16 {
        self.width.overhead()
    }

    /// Whether the first data segment carries the keys, because we have offered MPTCP.
    pub(crate) fn begins_with_keys(&self) -> bool {
        let syn = |capable: &MpCapable| capable.form == CapableForm::Syn;
        matches!(&self.syn, MptcpOption::MpCapable(capable) if syn(capable))
    }

    /// Whether an option is due that only a segment without data can carry. The rest waits while
    /// `ack` has to be repeated in every such segment.
    #[inline]
    pub(crate) fn is_urgent(&self) -> bool {
        self.probe_due || self.ack_due || self.ack.is_none() && (self.data_fin_due || !self.once.is_empty())
    }

    /// Schedules an option for the next segment without data. It takes the place of a waiting one
    /// about the same address or priority, so that a peer cannot make the queue grow.
    pub(crate) fn say(&mut self, option: MptcpOption) {
        self.once.retain(|earlier| match (earlier, &option) {
            (MptcpOption::AddAddr(a), MptcpOption::AddAddr(b)) => {
                (a.id, a.hmac.is_none()) != (b.id, b.hmac.is_none())
            }
            (MptcpOption::MpPrio { .. }, MptcpOption::MpPrio { .. }) => false,
            (earlier, option) => earlier != option,
        });
        self.once.push_back(option);
    }

    /// Ends MPTCP on the open subflow, the first byte of which is at `first` of the data. The next
    /// data carries an infinite mapping.
    pub(crate) fn leave(&mut self, first: DataSeqNumber) {
        self.left = Some(first);
        self.data_fin_due = false;
        self.probe_due = false;
        self.ack = None;
    }

    fn checksum(&self, dsn: DataSeqNumber, seq: u32, len: u16, data: &[u8]) -> Option<u16> {
        self.checksums.then(|| {
            let mut sum = DssChecksum::new(dsn, seq, len);
            sum.add(data);
            sum.value()
        })
    }

    /// Returns the options of a segment with `data` from `seq` on, mapped to `dsn`.
    pub(crate) fn of_data(&mut self, seq: SeqNumber, dsn: Option<DataSeqNumber>, data: &[u8]) -> Mptcp {
        let (len, relative) = (data.len(), seq.distance(self.iss) as u32);
        if let Some(first) = self.left {
            if *self.infinite.get_or_insert(relative) != relative {
                return Mptcp::NONE;
            }
            let dsn = self.width.wire(first + u64::from(relative) - 1);
            let checksum = self.checksums.then_some(0);
            let mapping = Mapping { dsn, subflow_seq: relative, len: 0, checksum };
            return Mptcp::dss_only(Dss::default().with_mapping(mapping));
        }
        let ends = dsn.is_some_and(|dsn| self.data_end == Some(dsn + len as u64));
        let begin = relative.wrapping_sub(1);
        if let Some(keys) = self.keys
            && let Some(dsn) = dsn.filter(|dsn| *dsn == keys.dsn + u64::from(begin))
            && let checksum = self.checksum(dsn, relative, len as u16, data)
            && let Some(option) = keys.of_data(begin, begin.wrapping_add(len as u32), checksum)
        {
            return Mptcp::only(option);
        }
        let mut dss = self.acknowledging();
        if let Some(dsn) = dsn {
            // RFC 8684 section 3.3.3: the DATA_FIN counts as one byte of the mapping.
            let len = len as u16 + u16::from(ends);
            let checksum = self.checksum(dsn, relative, len, data);
            let dsn = self.width.wire(dsn);
            dss = dss.with_mapping(Mapping { dsn, subflow_seq: relative, len, checksum });
            if ends {
                dss = dss.with_data_fin();
                self.data_fin_said = true;
            }
        }
        Mptcp::dss_only(dss)
    }

    /// Returns the options of a segment without data.
    pub(crate) fn of_bare(&mut self) -> Mptcp {
        self.probe_due = false;
        self.ack_due = false;
        if let Some(option) = &self.ack {
            return Mptcp::only(option.clone());
        }
        if self.left.is_some() {
            return self.once.pop_front().map_or(Mptcp::NONE, Mptcp::only);
        }
        let mut dss = self.acknowledging();
        if let (true, Some(end)) = (self.data_fin_due, self.data_end) {
            let dsn = self.width.wire(end);
            // RFC 8684 section 3.3.3: a DATA_FIN without data has a mapping of one byte, with
            // subflow sequence number 0.
            let checksum = self.checksum(end, 0, 1, &[]);
            let mapping = Mapping { dsn, subflow_seq: 0, len: 1, checksum };
            dss = dss.with_mapping(mapping).with_data_fin();
            self.data_fin_said = true;
        } else if let Some(option) = self.once.pop_front() {
            let mut options = if self.data_ack.is_some() { Mptcp::dss_only(dss) } else { Mptcp::NONE };
            // An IPv6 address and timestamps leave no room for the DSS.
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

    /// Returns the options of a reset.
    pub(crate) fn of_reset(&mut self) -> Mptcp {
        self.reset.take().map_or(Mptcp::NONE, Mptcp::only)
    }

    fn acknowledging(&self) -> Dss {
        let dss = Dss::default();
        self.data_ack.map_or(dss, |number| dss.with_data_ack(self.width.wire(number)))
    }

    /// Whether an acknowledgement brings new information on the data level. Then it is no duplicate
    /// on its subflow, even if its TCP fields repeat the previous ones.
    #[inline]
    pub(crate) fn is_news(&mut self, mptcp: &Mptcp, window: u16) -> bool {
        let news = self.last.1 != window || self.last.0 != *mptcp;
        if news {
            self.last = (mptcp.clone(), window);
        }
        news
    }
}

/// Mapping of the bytes of a subflow to the data stream: runs, in the order of the subflow.
#[derive(Debug)]
pub(crate) struct SendMap {
    runs: VecDeque<Run>,
    /// Whether segments may carry the keys, for which they have less room, because an MP_CAPABLE
    /// takes the place of the DSS.
    tight: bool,
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
    pub(crate) fn new(tight: bool) -> Self {
        Self { runs: VecDeque::new(), tight }
    }

    /// Notes that segments carry no keys any more.
    pub(crate) fn widen(&mut self) {
        self.tight = false;
    }

    /// Appends a mapping: the next `len` bytes of the subflow begin at `seq` and belong at `dsn`.
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

    /// Drops the mappings of data acknowledged up to `una`.
    pub(crate) fn advance(&mut self, una: SeqNumber) {
        while self.runs.front().is_some_and(|run| run.end().le(una)) {
            self.runs.pop_front();
        }
    }

    fn find(&self, seq: SeqNumber) -> Option<&Run> {
        let i = self.runs.partition_point(|run| run.end().le(seq));
        self.runs.get(i).filter(|run| run.seq.le(seq))
    }

    /// Number of bytes from `seq` on that one mapping covers, at most `most`; `mss` is a whole
    /// segment.
    pub(crate) fn limit(&self, seq: SeqNumber, most: u32, mss: u32) -> u32 {
        let tight = mss.saturating_sub(TIGHTER).max(1);
        let most = if self.tight { most.min(tight) } else { most };
        self.find(seq).map_or(most, |run| (run.end().distance(seq).max(0) as u32).min(most))
    }

    /// The data sequence number of the byte at `seq`.
    pub(crate) fn dsn(&self, seq: SeqNumber) -> Option<DataSeqNumber> {
        self.find(seq).map(|run| run.dsn + seq.distance(run.seq).max(0) as u64)
    }
}

/// Difference between an MP_CAPABLE with data (24 bytes with padding) and a short DSS (20 bytes).
pub(crate) const TIGHTER: u32 = 4;
/// Option space beside timestamps in bytes (RFC 7323 appendix A).
const ROOM: usize = 28;
/// The window of a subflow. Flow control is done once, by the MPTCP connection, which sends nothing
/// past its own window.
pub(crate) const UNBOUNDED: u32 = 1 << 30;
