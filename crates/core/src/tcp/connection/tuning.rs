//! Buffers that follow the path: "Dynamic Right-Sizing" of the receiver (Fisk and Feng, LACSI 2001) and a send buffer of
//! twice the congestion window, both as Linux has them.

use super::{Connection, Pending, stamps};
use crate::segment::Segment;
use crate::tcp::config::AutoTune;
use crate::time::{Duration, Instant};

/// What the tuning remembers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    most: AutoTune,
    /// The round trip as the peer's echoes show it, smoothed; the queue on the way is in it.
    rtt: Option<Duration>,
    /// When the round trip began in which reading is counted, and the octets that were read before it.
    round: Option<(Instant, u64)>,
    /// Most octets that were read in one.
    best: u64,
}

impl Tuning {
    pub(super) fn new(most: AutoTune) -> Self {
        Self { most, rtt: None, round: None, best: 0 }
    }

    /// The owner has chosen the receive buffer.
    pub(super) fn leave_receiver(&mut self) {
        self.most.receive = 0;
    }

    /// The owner has chosen the send buffer.
    pub(super) fn leave_sender(&mut self) {
        self.most.send = 0;
    }

    /// A segment of the peer with data echoes a timestamp.
    fn sample(&mut self, rtt: Duration) {
        self.rtt = Some(self.rtt.map_or(rtt, |smoothed| (smoothed * 7 + rtt) / 8));
    }

    /// The receive buffer for what was read in the round trip that is over, if it is: twice that, since a slow start doubles
    /// it in the next one, and once more what it has grown by. `read` counts from the beginning.
    fn receive_buffer(&mut self, now: Instant, rtt: Duration, read: u64, mss: u32) -> Option<u32> {
        let (since, before) = *self.round.get_or_insert((now, read));
        if now.saturating_since(since) < rtt {
            return None;
        }
        self.round = Some((now, read));
        let octets = read - before;
        let growth = octets.checked_sub(self.best).filter(|growth| *growth > 0)?;
        self.best = octets;
        let wanted = 2 * octets + 2 * growth + 16 * u64::from(mss);
        Some(wanted.min(self.most.receive.into()) as u32)
    }
}

impl Connection {
    /// Enlarges the buffers, if they are to follow the path. A subflow has those of its connection.
    #[inline]
    pub(super) fn tune(&mut self, now: Instant, segment: &Segment) {
        if self.tuning.is_some() && self.multipath.is_none() {
            self.tune_buffers(now, segment);
        }
    }

    fn tune_buffers(&mut self, now: Instant, segment: &Segment) {
        let Some(tuning) = &mut self.tuning else { return };
        let send = self.tx.cwnd().saturating_mul(2).min(tuning.most.send);
        let echo =
            segment.options.timestamps.filter(|_| self.stamps.is_some() && !segment.payload.is_empty());
        if let Some(rtt) = echo.and_then(|echo| stamps::round_trip(now, echo.echo)) {
            tuning.sample(rtt);
        }
        if let Some(rtt) = tuning.rtt.or(self.tx.rtt().srtt()) {
            let read = self.rx.received() - u64::from(self.rx.readable());
            let wanted = tuning.receive_buffer(now, rtt, read, self.tx.mss());
            if let Some(wanted) = wanted.filter(|wanted| *wanted > self.rx.buffer()) {
                self.rx.set_buffer(wanted);
            }
        }
        if send > self.tx.buffer() && self.tx.set_buffer(send) {
            self.events.raise(Pending::Writable);
        }
    }
}
