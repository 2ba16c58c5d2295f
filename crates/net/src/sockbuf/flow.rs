//! One socket: its state in the kernel, converted for policies.

use std::collections::VecDeque;
use std::io;

use anabranch_core::sockbuf::FlowView;
use anabranch_core::time::{Duration, Instant};

use super::place::{Open, Place};
use super::process::Gone;
use crate::buffers::{self, LEAST_SEND_BUFFER, Memory};
use crate::tcp_info::{State, TcpInfo};

#[derive(Debug)]
pub(super) struct Flow {
    /// Its number in its connection.
    pub number: u32,
    pub place: Place,
    overrun: u64,
    /// Reported bandwidth of its interface in bit/s.
    pub reported: Option<f64>,
    meter: Meter,
    /// Bytes of kernel memory per byte of payload: 1 to 2.
    overhead: f64,
    /// Kernel memory acknowledged so far: each byte times the overhead at that time.
    acknowledged: f64,
    pub info: TcpInfo,
    pub memory: Memory,
}

impl Flow {
    /// Reads the state of a socket without changing it.
    pub(super) fn new(number: u32, place: &Place, overrun: u64) -> io::Result<Self> {
        let socket = place.first()?;
        let info = TcpInfo::read(&socket)?;
        if info.state == State::Closed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let memory = Memory::read(&socket)?;
        let place = place.clone();
        let meter = Meter::default();
        let (reported, overhead, acknowledged) = (None, MOST_OVERHEAD, 0.0);
        Ok(Self { number, place, overrun, reported, meter, overhead, acknowledged, info, memory })
    }

    /// Reads the state of the connection.
    pub(super) fn look(&mut self) -> Result<(), Gone> {
        let socket = self.place.open()?;
        let before = self.info.bytes_acked;
        self.info = TcpInfo::read(&socket).map_err(|_| Gone::Unreadable)?;
        if let (Some(before), Some(now)) = (before, self.info.bytes_acked) {
            self.acknowledged += now.saturating_sub(before) as f64 * self.overhead;
        }
        if self.info.state == State::Closed {
            return Err(Gone::Closed);
        }
        self.read_memory(&socket)?;
        let payload = buffers::unacknowledged(&socket).unwrap_or(0);
        if payload >= 2 * u64::from(self.info.snd_mss) {
            let measured = (self.memory.queued as f64 / payload as f64).clamp(1.0, MOST_OVERHEAD);
            self.overhead += NEWEST * (measured - self.overhead);
        }
        Ok(())
    }

    /// Sets the smallest limit, until the socket is assigned more.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let socket = self.place.first()?;
        self.memory.send_buffer = self.place.limit(&socket, LEAST_SEND_BUFFER)?;
        Ok(())
    }

    /// Reads the amount of queued memory.
    pub(super) fn weigh(&mut self) -> Result<(), Gone> {
        let socket = self.place.open()?;
        self.read_memory(&socket)
    }

    fn read_memory(&mut self, socket: &Open) -> Result<(), Gone> {
        self.memory = Memory::read(socket).map_err(|_| Gone::Unreadable)?;
        self.place.found(self.memory.send_buffer);
        Ok(())
    }

    /// Records what was acknowledged since the last period.
    pub(super) fn measure(&mut self, now: Instant) {
        let Some(acknowledged) = self.info.bytes_acked else { return };
        // A socket without waiting data reveals nothing about the path.
        let waits = self.info.notsent_bytes.is_some_and(|octets| octets > 0);
        let busy = waits || 2 * self.memory.queued >= self.memory.send_buffer;
        self.meter.record(now, acknowledged, busy);
    }

    /// Limits the queue to this many bytes of the pool, plus the socket's own share.
    pub(super) fn set(&mut self, octets: u64) -> Result<(), Gone> {
        let socket = self.place.open()?;
        let wanted = octets.saturating_add(LEAST_SEND_BUFFER);
        self.memory.send_buffer = self.place.limit(&socket, wanted).map_err(|_| Gone::Unreadable)?;
        Ok(())
    }

    /// Limit in bytes of the pool.
    pub(super) fn limit(&self) -> u64 {
        self.memory.send_buffer.saturating_sub(LEAST_SEND_BUFFER)
    }

    /// Bytes of the pool that no other socket can use: the limit, or the queued bytes if more.
    pub(super) fn holds(&self) -> u64 {
        let queued = self.memory.queued.saturating_sub(self.overrun);
        self.memory.send_buffer.max(queued).saturating_sub(LEAST_SEND_BUFFER)
    }

    /// Queued bytes that count against the pool.
    pub(super) fn occupied(&self) -> u64 {
        let above = self.memory.queued.saturating_sub(self.overrun);
        self.memory.queued.min(self.memory.send_buffer).max(above).saturating_sub(LEAST_SEND_BUFFER)
    }

    /// Kernel memory acknowledged since the socket was added. It never decreases.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged as u64
    }

    /// Kernel memory of one segment, by the kernel's own estimate.
    pub(super) fn segment(&self) -> u64 {
        2 * u64::from(self.info.snd_mss.max(1))
    }

    /// The view that a policy gets. `floor` is the smallest size of its connection.
    pub(super) fn view(&self, floor: u64) -> FlowView {
        FlowView {
            interface: self.number,
            bandwidth: self.bandwidth().map(|payload| payload * self.overhead),
            rtt: self.info.min_rtt.or(self.info.rtt),
            window: (self.info.window() as f64 * self.overhead) as u64,
            mss: u32::try_from(floor).unwrap_or(u32::MAX),
        }
    }

    /// Bandwidth times RTT in bytes of kernel memory.
    pub(super) fn product(&self) -> Option<f64> {
        let rtt = self.info.min_rtt.or(self.info.rtt)?;
        Some(self.bandwidth()? * self.overhead * rtt.as_secs_f64() / 8.0)
    }

    /// Bandwidth in bit/s of payload.
    pub(super) fn bandwidth(&self) -> Option<f64> {
        self.reported.or_else(|| self.meter.most()).or(self.info.delivery_rate)
    }
}

/// Acknowledged bytes of the last periods.
#[derive(Clone, Debug, Default)]
struct Meter {
    last: Option<(Instant, u64)>,
    /// Rates in bit/s, the oldest first.
    rates: VecDeque<f64>,
}

impl Meter {
    /// `acknowledged` is the total since the connection began. `busy`: the socket had enough data
    /// to send.
    fn record(&mut self, now: Instant, acknowledged: u64, busy: bool) {
        let Some((then, before)) = self.last.replace((now, acknowledged)) else { return };
        let span: Duration = now.saturating_since(then);
        if span.is_zero() {
            return;
        }
        let rate = acknowledged.saturating_sub(before) as f64 * 8.0 / span.as_secs_f64();
        if busy || self.most().is_some_and(|most| rate > most) {
            if self.rates.len() == PERIODS {
                self.rates.pop_front();
            }
            self.rates.push_back(rate);
        }
    }

    fn most(&self) -> Option<f64> {
        self.rates.iter().copied().max_by(f64::total_cmp)
    }
}

/// Number of periods for which a rate is remembered.
const PERIODS: usize = 10;
/// The kernel's own estimate: as much overhead as payload (socket(7)).
const MOST_OVERHEAD: f64 = 2.0;
/// Weight of the newest overhead in its moving average.
const NEWEST: f64 = 0.3;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_was_acknowledged_stays_so_while_structures_cost_less() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let (mut far, _) = listener.accept().unwrap();
        buffers::set_receive_buffer(&far, 100_000).unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let mut flow = Flow::new(0, &Place::here(&near), 0).unwrap();
        assert_eq!((flow.acknowledged(), flow.overhead), (0, MOST_OVERHEAD));
        flow.set(1_000_000).unwrap();
        let (mut last, mut written) = (0, 0);
        for _ in 0..50 {
            while let Ok(len) = near.as_ref().write(&[1; 50_000]) {
                written += len as u64;
            }
            flow.look().unwrap();
            assert!(flow.acknowledged() >= last);
            last = flow.acknowledged();
            while far.read(&mut [0; 50_000]).is_ok() {}
        }
        assert!(flow.overhead < 1.2, "{}", flow.overhead);
        assert!(last > written / 2 && last < 2 * written, "{last} of {written}");
    }

    #[test]
    fn an_idle_socket_has_not_become_slower() {
        let mut meter = Meter::default();
        let second = |n| Instant::ZERO + Duration::from_secs(n);
        meter.record(second(0), 0, true);
        assert_eq!(meter.most(), None);
        meter.record(second(1), 125_000, true);
        assert_eq!(meter.most(), Some(1e6));
        for n in 2..50 {
            meter.record(second(n), 125_000, false);
        }
        assert_eq!(meter.most(), Some(1e6));
        // A higher rate counts even if the socket is not busy; a second record at the same time
        // does not.
        meter.record(second(50), 375_000, false);
        meter.record(second(50), 375_000, true);
        assert_eq!(meter.most(), Some(2e6));
        // A lower rate of a busy socket takes effect after ten periods.
        for n in 51..61 {
            assert_eq!(meter.most(), Some(2e6), "{n}");
            meter.record(second(n), 375_000 + (n - 50) * 12_500, true);
        }
        assert_eq!(meter.most(), Some(1e5));
    }
}
