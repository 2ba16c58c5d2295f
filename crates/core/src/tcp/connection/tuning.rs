//! Automatic buffer growth: "Dynamic Right-Sizing" of the receive buffer (Fisk and Feng, LACSI
//! 2001), and a send buffer of twice the congestion window, both as on Linux.

use super::{Connection, Pending, stamps};
use crate::segment::Segment;
use crate::tcp::config::AutoTune;
use crate::time::{Duration, Instant};

/// State of the tuning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    most: AutoTune,
    /// Round-trip time assumed before the first measurement.
    unknown: Duration,
    /// Length of the current round: a round-trip time, including the queueing delay of the path.
    rtt: Option<Duration>,
    /// Shortest round-trip time of the peer's echoes in this round.
    shortest: Option<Duration>,
    /// Start of the current round, and the bytes read before it.
    round: Option<(Instant, u64)>,
    /// Largest number of bytes read in one round.
    best: u64,
}

impl Tuning {
    /// `unknown` is the round-trip time assumed before the first measurement.
    pub(super) fn new(most: AutoTune, unknown: Duration) -> Self {
        Self { most, unknown, rtt: None, shortest: None, round: None, best: 0 }
    }

    /// The owner has set the receive buffer, so tuning leaves it alone.
    pub(super) fn leave_receiver(&mut self) {
        self.most.receive = 0;
    }

    /// The owner has set the send buffer, so tuning leaves it alone.
    pub(super) fn leave_sender(&mut self) {
        self.most.send = 0;
    }

    /// Records the round-trip time of a data segment's timestamp echo.
    fn sample(&mut self, rtt: Duration) {
        self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// Computes the length of the next round. The peer's echo is trusted up to twice the previous
    /// round, at first up to our own measurement or its substitute. An old echo, after idle time or
    /// from a misbehaving peer, would otherwise count a long time of reading as one round trip.
    fn next_rtt(&mut self, measured: Option<Duration>) -> Duration {
        let most = self.rtt.map(|rtt| rtt * 2).or(measured).unwrap_or(self.unknown);
        let echoed = self.shortest.take().map(|rtt| rtt.min(most.max(TICK)));
        let rtt = echoed.or(measured).or(self.rtt).unwrap_or(self.unknown);
        self.rtt = Some(rtt);
        rtt
    }

    /// Computes the receive buffer at the end of a round: twice the bytes read in it, because slow
    /// start doubles them in the next round, plus twice their growth. `read` counts all bytes read;
    /// `measured` is our own round-trip time.
    fn receive_buffer(
        &mut self,
        now: Instant,
        measured: Option<Duration>,
        read: u64,
        mss: u32,
    ) -> Option<u32> {
        let Some(((since, before), rtt)) = self.round.zip(self.rtt) else {
            self.next_rtt(measured);
            self.round = Some((now, read));
            return None;
        };
        if now.saturating_since(since) < rtt {
            return None;
        }
        self.next_rtt(measured);
        self.round = Some((now, read));
        let octets = read - before;
        let growth = octets.checked_sub(self.best).filter(|growth| *growth > 0)?;
        self.best = octets;
        let wanted = 2 * octets + 2 * growth + 16 * u64::from(mss);
        Some(wanted.min(self.most.receive.into()) as u32)
    }
}

impl Connection {
    /// Enlarges the buffers if tuning is enabled. A subflow uses the buffers of its MPTCP
    /// connection.
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
        let read = self.rx.received() - u64::from(self.rx.readable());
        let wanted = tuning.receive_buffer(now, self.tx.rtt().srtt(), read, self.tx.mss());
        if let Some(wanted) = wanted.filter(|wanted| *wanted > self.rx.buffer()) {
            self.rx.set_buffer(wanted);
        }
        if send > self.tx.buffer() && self.tx.set_buffer(send) {
            self.events.raise(Pending::Writable);
        }
    }
}

/// Resolution of an echo.
const TICK: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn tuning() -> Tuning {
        Tuning::new(AutoTune::LINUX, ms(1000))
    }

    /// The rounds that result from a peer's echoes; our own measurement is 20 ms.
    fn rounds(echoes: [u64; 6]) -> [u64; 6] {
        let mut tuning = tuning();
        echoes.map(|echo| {
            tuning.sample(ms(echo * 2));
            tuning.sample(ms(echo));
            tuning.next_rtt(Some(ms(20))).as_millis()
        })
    }

    #[test]
    fn rounds_follow_the_shortest_echo() {
        assert_eq!(rounds([50; 6]), [20, 40, 50, 50, 50, 50]);
        assert_eq!(rounds([5, 5, 200, 200, 200, 8]), [5, 5, 10, 20, 40, 8]);
    }

    #[test]
    fn rounds_without_echoes_follow_our_own_measurement() {
        let mut tuning = tuning();
        assert_eq!([30, 90, 10].map(|own| tuning.next_rtt(Some(ms(own)))), [30, 90, 10].map(ms));
    }

    /// A client that was idle before its upload echoes a timestamp that is a minute old.
    #[test]
    fn rounds_without_our_own_measurement_are_bounded() {
        let mut tuning = tuning();
        tuning.sample(ms(60_000));
        assert_eq!(tuning.next_rtt(None), ms(1000));
        tuning.sample(ms(40));
        assert_eq!(tuning.next_rtt(None), ms(40));
    }

    /// Without timestamps and without data of ours, the receive buffer still grows.
    #[test]
    fn rounds_begin_without_any_measurement() {
        let mut tuning = tuning();
        let mut buffers = [0, 999, 1000, 1999, 2000]
            .map(|at| tuning.receive_buffer(Instant::ZERO + ms(at), None, at * 1000, 1000));
        assert_eq!(buffers, [None, None, Some(4_016_000), None, None]);
        buffers = [2000, 2010, 2020, 2030, 2040]
            .map(|at| tuning.receive_buffer(Instant::ZERO + ms(at), Some(ms(10)), at * 1000, 1000));
        assert_eq!(buffers, [None; 5]);
    }

    /// A round that a misbehaving peer has lengthened lasts that long.
    #[test]
    fn rounds_of_a_liar_last_as_long_as_it_says() {
        let mut near = tuning();
        near.sample(ms(1));
        assert_eq!(near.next_rtt(Some(Duration::ZERO)), ms(1));
        assert_eq!(rounds([60_000; 6]), [20, 40, 80, 160, 320, 640]);
    }
}
