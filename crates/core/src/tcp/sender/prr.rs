//! Proportional Rate Reduction (RFC 9937): limits the data sent for each acknowledgement of a
//! recovery. The window decreases evenly to the target of the congestion control, without a pause
//! and without a burst.

/// State of one recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: bytes in flight when the recovery began.
    start: u32,
    /// prr_delivered: bytes delivered since then.
    delivered: u32,
    /// prr_out: bytes sent since then.
    out: u32,
    /// The window until the next acknowledgement, in bytes.
    window: u32,
    /// Whether the acknowledgement that begins the recovery still has to be counted.
    by_ack: bool,
}

/// Information of an acknowledgement during a recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// DeliveredData: bytes acknowledged or reported for the first time.
    pub(crate) bytes: u32,
    /// SafeACK: SND.UNA has moved, and no further loss was found.
    pub(crate) safe: bool,
    /// Bytes estimated to be in the network.
    pub(crate) pipe: u32,
}

impl Prr {
    /// Begins a recovery with `start` bytes in flight, without the data delivered by the
    /// acknowledgement that begins it.
    pub(crate) fn begin(start: u32) -> Self {
        Self { start: start.max(1), by_ack: true, ..Self::default() }
    }

    /// Notes that a timer has begun the recovery: the data of the first acknowledgement is among
    /// the bytes in flight already.
    pub(crate) fn begun_by_timer(&mut self) {
        self.by_ack = false;
    }

    /// The window in bytes.
    #[inline]
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Records sent data.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(bytes);
    }

    /// RFC 9937 section 6.2; `ssthresh` is the target of the window.
    pub(crate) fn on_ack(&mut self, delivery: &Delivery, ssthresh: u32, mss: u32) {
        if core::mem::take(&mut self.by_ack) {
            // The data that it delivers was in flight when the recovery began.
            self.start = self.start.saturating_add(delivery.bytes);
        }
        self.delivered = self.delivered.saturating_add(delivery.bytes);
        let may_send = if delivery.pipe > ssthresh {
            // Above the target: send ssthresh / RecoverFS of the delivered data (the proportional
            // part).
            let share = u64::from(self.delivered) * u64::from(ssthresh);
            (share.div_ceil(self.start.into()).min(u32::MAX.into()) as u32).saturating_sub(self.out)
        } else {
            // At or below the target: replace the delivered data, and catch up in slow-start steps
            // as long as no further loss is found (PRR-SSRB and PRR-CRB).
            let owed = self.delivered.saturating_sub(self.out).max(delivery.bytes);
            let safe = if delivery.safe { mss } else { 0 };
            owed.saturating_add(safe).min(ssthresh - delivery.pipe)
        };
        // The fast retransmit is always allowed (RFC 9937 section 6.2).
        let may_send = if self.out == 0 { may_send.max(mss) } else { may_send };
        self.window = delivery.pipe.saturating_add(may_send);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// RFC 9937 section 6.2: 20 segments are in flight, the first is lost, and the target is ten.
    /// Each acknowledgement reports one more segment, and half a segment is sent for each until ten
    /// are in flight.
    #[test]
    fn one_loss_halves_the_rate_evenly() {
        let mut prr = Prr::begin(19 * MSS);
        let (mut pipe, mut sent) = (16 * MSS, std::vec::Vec::new());
        for _ in 0..16 {
            let delivery = Delivery { bytes: MSS, safe: false, pipe };
            prr.on_ack(&delivery, 10 * MSS, MSS);
            let mut n = 0;
            while pipe + MSS <= prr.window() {
                prr.sent(MSS);
                pipe += MSS;
                n += 1;
            }
            sent.push(n);
            pipe -= MSS;
        }
        assert_eq!(sent, [1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1]);
    }

    /// If a timer begins the recovery, the data of all its acknowledgements is among the bytes in
    /// flight.
    #[test]
    fn what_a_timer_begins_counts_nothing_twice() {
        let share = |by_timer| {
            let mut prr = Prr::begin(20 * MSS);
            if by_timer {
                prr.begun_by_timer();
            }
            prr.on_ack(&Delivery { bytes: 10 * MSS, safe: false, pipe: 15 * MSS }, 10 * MSS, MSS);
            prr.window() - 15 * MSS
        };
        // 10 of 20, and 10 of 30, with a target of ten.
        assert_eq!((share(true), share(false)), (5 * MSS, 10 * MSS * 10 / 30 + 1));
    }

    /// If more is lost than the window shrinks by, delivered data is replaced. An acknowledgement
    /// that moves SND.UNA and shows no loss allows one segment more.
    #[test]
    fn many_losses_are_repaired_as_fast_as_acknowledgements_come() {
        let mut prr = Prr::begin(19 * MSS);
        prr.on_ack(&Delivery { bytes: MSS, safe: false, pipe: 4 * MSS }, 10 * MSS, MSS);
        assert_eq!(prr.window(), 5 * MSS);
        prr.sent(MSS);
        prr.on_ack(&Delivery { bytes: MSS, safe: true, pipe: 4 * MSS }, 10 * MSS, MSS);
        assert_eq!(prr.window(), 6 * MSS);
        prr.sent(2 * MSS);
        prr.on_ack(&Delivery { bytes: 12 * MSS, safe: true, pipe: 9 * MSS }, 10 * MSS, MSS);
        assert_eq!(prr.window(), 10 * MSS, "never past the threshold");
    }
}
