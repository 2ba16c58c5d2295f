//! Proportional Rate Reduction (RFC 9937): how much leaves for each acknowledgement of a recovery,
//! so that the window falls evenly to where the congestion control wants it and neither stops nor
//! bursts on the way.

/// One recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: bytes in flight when the recovery began.
    start: u32,
    /// prr_delivered: bytes that have arrived since.
    delivered: u32,
    /// prr_out: bytes that have left since.
    out: u32,
    /// The window until the next acknowledgement, in bytes.
    window: u32,
    /// The acknowledgement that begins it is to be counted.
    by_ack: bool,
}

/// What an acknowledgement of a recovery says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// DeliveredData: bytes acknowledged or reported for the first time.
    pub(crate) bytes: u32,
    /// SafeACK: SND.UNA has moved, and no further loss was found.
    pub(crate) safe: bool,
    /// Bytes thought to be in the network.
    pub(crate) pipe: u32,
}

impl Prr {
    /// A recovery begins with `start` bytes in flight, without what the acknowledgement that begins
    /// it brings.
    pub(crate) fn begin(start: u32) -> Self {
        Self { start: start.max(1), by_ack: true, ..Self::default() }
    }

    /// What the first acknowledgement brings is among the bytes in flight already.
    pub(crate) fn begun_by_timer(&mut self) {
        self.by_ack = false;
    }

    /// The window in bytes.
    #[inline]
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Data leaves.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(bytes);
    }

    /// RFC 9937 section 6.2; `ssthresh` is where the window goes.
    pub(crate) fn on_ack(&mut self, delivery: &Delivery, ssthresh: u32, mss: u32) {
        if core::mem::take(&mut self.by_ack) {
            // What it brings was in flight when the recovery began.
            self.start = self.start.saturating_add(delivery.bytes);
        }
        self.delivered = self.delivered.saturating_add(delivery.bytes);
        let may_send = if delivery.pipe > ssthresh {
            let share = u64::from(self.delivered) * u64::from(ssthresh);
            (share.div_ceil(self.start.into()).min(u32::MAX.into()) as u32).saturating_sub(self.out)
        } else {
            let owed = self.delivered.saturating_sub(self.out).max(delivery.bytes);
            let safe = if delivery.safe { mss } else { 0 };
            owed.saturating_add(safe).min(ssthresh - delivery.pipe)
        };
        // The first segment leaves at once.
        let may_send = if self.out == 0 { may_send.max(mss) } else { may_send };
        self.window = delivery.pipe.saturating_add(may_send);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// RFC 9937 section 6.2: 20 segments, of which the first is lost, and ten are to remain. Each
    /// acknowledgement reports one more, and half a segment leaves for each until ten are in the
    /// network.
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

    /// A recovery that a timer begins has all its acknowledgements among the bytes in flight.
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
        // 10 of 20, and 10 of 30, of which ten are to remain.
        assert_eq!((share(true), share(false)), (5 * MSS, 10 * MSS * 10 / 30 + 1));
    }

    /// Where more is lost than the window shrinks by, what arrives is replaced, and an
    /// acknowledgement that moves SND.UNA and shows no loss lets one segment more leave.
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
